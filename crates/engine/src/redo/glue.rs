//! The log in its instance: where it gets its files and parameters, who keeps its groups, the process `lgwr`.

use super::files::{FIRST_LSN, GroupSpec, announced, remove_all};
use super::{Keeper, RedoLog, RedoOptions, create_files};
use crate::files::control::{ControlFile, FileState, GroupRecord, LogRecord};
use crate::instance::process::{Process, Role};
use crate::instance::{AlertLog, Core, Foundation, Health};
use crate::parameter::Parameter;
use crate::{Context, EngineError, Result};
use std::sync::Arc;
use units::Nanos;
use waits::SessionKind;

/// The control file, the alert log and the instance's health.
struct InstanceKeeper {
    control: Arc<ControlFile>,
    alert: Arc<AlertLog>,
    health: Arc<Health>,
}

impl Keeper for InstanceKeeper {
    fn keep(&self, context: &Context, groups: &[GroupRecord]) -> Result<()> {
        keep(&self.control, context, groups)
    }

    fn switched(&self, context: &Context, ended: LogRecord) {
        let noted = self.control.update(context, |content| {
            content.push_log(ended);
            Ok(())
        });
        if let Err(error) = noted {
            self.alert.line(&format!("log sequence {} is not in the history: {error}", ended.sequence));
        }
    }

    fn crashed(&self, why: &str) {
        self.health.crash(why);
    }

    fn failure(&self) -> Option<String> {
        self.health.crashed()
    }

    fn alert(&self, line: &str) {
        self.alert.line(line);
    }
}

fn keep(control: &ControlFile, context: &Context, groups: &[GroupRecord]) -> Result<()> {
    control.update(context, |content| {
        content.groups = groups.to_vec();
        content.groups.sort_by_key(|group| group.number);
        content.next_group = content.groups.last().map_or(1, |group| group.number + 1);
        Ok(())
    })
}

impl RedoLog {
    /// Makes the first groups and notes them in the control file. Ready to be appended to: the tail is where the first group's
    /// content begins, and is durable.
    ///   1. the control file announces the members, so that a crash leaves nothing unknown. 2. they are made.
    ///   3. the control file says that they are there, and where redo begins.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] for sizes that make no sense, what storage says; the caller then removes every file
    /// that the control file names.
    pub fn create(foundation: &Foundation, context: &Context, groups: &[GroupSpec]) -> Result<Self> {
        let content = foundation.control.content();
        let block = content.log_block_bytes;
        let mut records: Vec<GroupRecord> =
            (1..).zip(groups).map(|(number, spec)| announced(number, spec, block)).collect();
        keep(&foundation.control, context, &records)?;
        let (storage, access) = (&*foundation.environment.storage, foundation.files.access());
        create_files(storage, access, content.database_id, block, &records)?;
        records.iter_mut().flat_map(|r| &mut r.members).for_each(|member| member.state = FileState::Online);
        foundation.control.update(context, |content| {
            content.groups = records;
            content.checkpoint = FIRST_LSN;
            Ok(())
        })?;
        Self::open_members(foundation)
    }

    /// Opens the members that the control file names and reads their headers; members that were being made or dropped are
    /// removed. Nothing can be appended before [`RedoLog::recover`].
    ///
    /// # Errors
    /// [`EngineError::Damaged`] when a group has no usable member left, what storage says.
    pub fn open(foundation: &Foundation, context: &Context) -> Result<Self> {
        finish_interrupted(foundation, context)?;
        Self::open_members(foundation)
    }

    fn open_members(foundation: &Foundation) -> Result<Self> {
        let content = foundation.control.content();
        let options = RedoOptions {
            database: content.database_id,
            buffer_bytes: foundation.parameters.number(Parameter::LogBuffer),
            access: foundation.files.access(),
            checkpoint: content.checkpoint,
            block: content.log_block_bytes,
            groups: content.groups.clone(),
            statistics: foundation.files.log.clone(),
        };
        let keeper = Arc::new(InstanceKeeper {
            control: foundation.control.clone(),
            alert: foundation.alert.clone(),
            health: foundation.health.clone(),
        });
        let helper = foundation.context(SessionKind::Background, "lg00")?;
        helper.slot.rest();
        Self::over(&foundation.environment, options, keeper, helper)
    }
}

/// Removes what ADD or DROP LOGFILE GROUP left when the power went.
fn finish_interrupted(foundation: &Foundation, context: &Context) -> Result<()> {
    let content = foundation.control.content();
    let unfinished = |group: &GroupRecord| {
        group.members.iter().any(|m| matches!(m.state, FileState::Creating | FileState::Dropping))
    };
    let (gone, kept): (Vec<_>, Vec<_>) = content.groups.iter().cloned().partition(unfinished);
    for group in &gone {
        let left = remove_all(&*foundation.environment.storage, group, content.database_id);
        if let Some(path) = left.into_iter().next() {
            return Err(EngineError::Damaged {
                path,
                what: "this redo file was being made or dropped at the crash and cannot be removed; remove it yourself"
                    .into(),
            });
        }
        foundation
            .alert
            .line(&format!("removed log group {}: it was being made or dropped at the crash", group.number));
    }
    if gone.is_empty() { Ok(()) } else { keep(&foundation.control, context, &kept) }
}

/// How often the log writer looks when nobody calls it: redo that nobody waits for is written then.
const IDLE: Nanos = Nanos::millis(1_000);

/// The log writer as a process.
struct LogWriter;

impl Process for LogWriter {
    fn role(&self) -> Role {
        Role::LogWriter
    }

    fn step(&mut self, core: &Core, context: &Context) -> Result<bool> {
        core.redo.log_writer_step(context)
    }

    fn idle(&self) -> Nanos {
        IDLE
    }
}

/// The process `lgwr`. From now on, who hands the log over calls it.
///
/// # Errors
/// None.
pub fn log_writer(core: &Arc<Core>) -> Result<Box<dyn Process>> {
    if !core.redo.inline {
        let weak = Arc::downgrade(core);
        core.redo.set_log_writer(Box::new(move || {
            if let Some(core) = weak.upgrade() {
                core.processes.post(Role::LogWriter);
            }
        }));
    }
    Ok(Box::new(LogWriter))
}
