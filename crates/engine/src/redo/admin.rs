//! What an administrator does to the log, and sees of it: switch, add and drop groups; `v$log`, `v$logfile`.

use super::buffer::Shortage;
use super::files::{GroupSpec, announced, check_size, create_members, group_of, remove_all};
use super::group::{Group, Groups};
use super::header::Header;
use super::room::Urge;
use super::{GroupStatus, RedoLog};
use crate::files::control::{FileState, GroupRecord, LogRecord};
use crate::files::iostat::FileIo;
use crate::instance::Core;
use crate::page::Lsn;
use crate::{Context, EngineError, Result};
use std::path::{Path, PathBuf};
use waits::Event;

/// A row of `v$log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Number of the group.
    pub group: u32,
    /// Which turn of the log it holds; 0 none.
    pub sequence: u32,
    /// Size of a member, bytes.
    pub bytes: u64,
    /// Bytes of a log block.
    pub block_bytes: u32,
    /// How many members.
    pub members: u32,
    /// Where it stands.
    pub status: GroupStatus,
    /// LSN of its first byte.
    pub first_lsn: Lsn,
    /// When the log came to it, seconds since 1970; 0 never.
    pub first_time: u64,
    /// End of its redo; none for the current group.
    pub next_lsn: Option<Lsn>,
}

/// A row of `v$logfile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logfile {
    /// Number of the group.
    pub group: u32,
    /// The member.
    pub path: PathBuf,
    /// `STATUS` `INVALID`: a write to it failed, or it could not be opened; its content is not used.
    pub invalid: bool,
}

impl RedoLog {
    /// `v$log`, by group.
    pub fn log(&self) -> Vec<Log> {
        let state = self.state.lock();
        let groups = &state.groups;
        let mut rows: Vec<Log> = (0..groups.all.len())
            .map(|index| {
                let group = &groups.all[index];
                Log {
                    group: group.number,
                    sequence: group.sequence,
                    bytes: group.bytes,
                    block_bytes: group.block,
                    members: group.members.len() as u32,
                    status: groups.status(index),
                    first_lsn: group.first,
                    first_time: group.first_time,
                    next_lsn: (group.end != Lsn(u64::MAX)).then_some(group.end),
                }
            })
            .collect();
        rows.sort_by_key(|row| row.group);
        rows
    }

    /// What was written to each member that is there.
    pub fn member_io(&self) -> Vec<(PathBuf, FileIo)> {
        let state = self.state.lock();
        let members = state.groups.all.iter().flat_map(|group| group.members.iter());
        members.map(|member| (member.path.clone(), member.statistics.look())).collect()
    }

    /// `v$logfile`, by group.
    pub fn logfile(&self) -> Vec<Logfile> {
        let state = self.state.lock();
        let mut rows: Vec<Logfile> = state
            .groups
            .all
            .iter()
            .flat_map(|group| {
                group.members.iter().map(|member| Logfile {
                    group: group.number,
                    path: member.path.clone(),
                    invalid: member.usable().is_none(),
                })
            })
            .collect();
        rows.sort_by(|a, b| (a.group, &a.path).cmp(&(b.group, &b.path)));
        rows
    }

    /// `ALTER SYSTEM SWITCH LOGFILE`: the log goes on to the next group; returns when its header is on disk. Waits for a
    /// checkpoint when no group is free.
    ///
    /// # Errors
    /// [`EngineError::Crashed`]; what a checkpoint met.
    pub fn switch_logfile(&self, core: &Core, context: &Context) -> Result<()> {
        self.switch(context, &mut |lsn| core.cache.urge_checkpoint(core, context, lsn))
    }

    pub(super) fn switch(&self, context: &Context, urge: Urge<'_>) -> Result<()> {
        let before = self.state.lock().switches;
        loop {
            let mut state = self.state.lock();
            if self.has_failed() {
                return Err(self.crashed_error());
            }
            if state.switches != before {
                return Ok(());
            }
            if !state.groups.next_is_free() && !state.switching {
                drop(state);
                self.wait_for_checkpoint(context, urge, |state| {
                    !state.groups.next_is_free() && !state.switching && state.switches == before
                })?;
                continue;
            }
            let _wait = context.slot.enter(Event::SwitchLogfileCommand, 0, 0, 0);
            state.switch_requested |= !state.switching;
            if state.writing {
                state.room_waiters += 1;
                self.room.wait(&mut state);
                state.room_waiters -= 1;
            } else {
                state.writing = true;
                drop(state);
                self.lead(None);
            }
        }
    }

    /// Adds a group, of number `group` or the next free one; its number.
    ///   1. the control file announces the group, so that a crash leaves no file that nobody knows of;
    ///   2. its files are made, with headers;
    ///   3. the control file says that it is there;
    ///   4. only now the log may use it. Before 3, a crash would leave redo in a group that the next open removes.
    ///
    /// # Errors
    /// [`EngineError::Exists`]; [`EngineError::Invalid`] when it is too small for the log buffer; what storage says: no
    /// file is left behind.
    pub fn add_group(&self, context: &Context, group: Option<u32>, spec: &GroupSpec) -> Result<u32> {
        let _admin = self.admin.lock();
        let number = group.unwrap_or_else(|| self.next_number());
        let mut record = announced(number, spec, self.block);
        self.check_new(&record)?;
        self.keep_with(context, Some(&record))?;
        let made = create_members(&*self.storage, self.access, self.database, self.block, &record);
        let made = made.and_then(|members| {
            record.members.iter_mut().for_each(|member| member.state = FileState::Online);
            self.keep_with(context, Some(&record)).map(|()| members)
        });
        match made {
            Ok(members) => {
                let mut state = self.state.lock();
                state.groups.put_back(group_of(&record, self.block, members));
                self.room.notify_all();
                Ok(number)
            }
            Err(error) => {
                // What was made is gone already, or goes at the next open.
                remove_all(&*self.storage, &record, self.database);
                let _ = self.keep_with(context, None);
                Err(error)
            }
        }
    }

    fn next_number(&self) -> u32 {
        self.state.lock().groups.all.iter().map(|g| g.number).max().unwrap_or(0) + 1
    }

    /// The control file gets the groups as they are, and one more.
    fn keep_with(&self, context: &Context, more: Option<&GroupRecord>) -> Result<()> {
        let _keeping = self.keeping.lock();
        let mut records = self.state.lock().groups.records();
        records.extend(more.cloned());
        self.keeper.keep(context, &records)
    }

    fn check_new(&self, record: &GroupRecord) -> Result<()> {
        let state = self.state.lock();
        let groups = &state.groups.all;
        if groups.iter().any(|g| g.number == record.number) {
            return Err(EngineError::Exists { kind: "log group", name: record.number.to_string() });
        }
        let known = |path: &Path| groups.iter().any(|g| g.members.iter().any(|o| o.path == path));
        if let Some(taken) = record
            .members
            .iter()
            .find(|m| known(&m.path) || self.storage.exists(&m.path) && !self.storage.is_device(&m.path))
        {
            return Err(EngineError::Exists { kind: "file", name: taken.path.display().to_string() });
        }
        check_size(record, self.block, 2 * state.half)
    }

    /// Drops a group and removes its files.
    ///   1. the log stops using it;
    ///   2. the control file announces that it goes, so that a crash finishes what was begun;
    ///   3. the files go. 4. the control file forgets it.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`]; [`EngineError::Invalid`] when it is CURRENT or ACTIVE, one of the last two, or promised to
    /// changes that go on; what the control file met.
    pub fn drop_group(&self, context: &Context, number: u32) -> Result<()> {
        let _admin = self.admin.lock();
        let group = {
            let mut state = self.state.lock();
            let group = take_out(&mut state.groups, number)?;
            // Promise 2 of the reservations may have rested on this group.
            if state.shortage(0) == Some(Shortage::Checkpoint) {
                state.groups.put_back(group);
                return Err(EngineError::Invalid(format!(
                    "log group {number} is the only one that the log can go on to now; ALTER SYSTEM CHECKPOINT, then try again"
                )));
            }
            group
        };
        let mut record = group.record();
        record.members.iter_mut().for_each(|member| member.state = FileState::Dropping);
        if let Err(error) = self.keep_with(context, Some(&record)) {
            self.state.lock().groups.put_back(group);
            return Err(error);
        }
        drop(group);
        for path in remove_all(&*self.storage, &record, self.database) {
            self.keeper.alert(&format!(
                "log member {} of dropped group {number} could not be removed",
                path.display()
            ));
        }
        self.keep_with(context, None)
    }

    /// The log came to the group of `header`: tells the control file and the alert log. What is remembered of the turn
    /// before is for people, so a control file that cannot be written is the keeper's concern.
    pub(super) fn note_switch(&self, context: &Context, header: &Header) {
        let ended = {
            let state = self.state.lock();
            let before =
                state.groups.all.iter().find(|g| g.sequence + 1 == header.sequence && g.sequence > 0);
            before.map(|g| LogRecord {
                sequence: g.sequence.into(),
                first_lsn: g.first,
                next_lsn: g.end,
                first_time: g.first_time,
            })
        };
        if let Some(ended) = ended {
            self.keeper.switched(context, ended);
        }
        self.keeper.alert(&format!("log switched to sequence {}, group {}", header.sequence, header.group));
    }
}

/// # Errors
/// When the group may not be dropped.
fn take_out(groups: &mut Groups, number: u32) -> Result<Group> {
    let index = groups.all.iter().position(|g| g.number == number).ok_or_else(|| EngineError::NoSuch {
        kind: "log group",
        name: number.to_string(),
        hint: "; SELECT group#, status FROM v$log".into(),
    })?;
    let refuse =
        |why: &str, hint: &str| Err(EngineError::Invalid(format!("log group {number} {why}; {hint}")));
    match groups.status(index) {
        GroupStatus::Current => {
            return refuse(
                "is CURRENT",
                "ALTER SYSTEM SWITCH LOGFILE, then ALTER SYSTEM CHECKPOINT, then drop it",
            );
        }
        GroupStatus::Active => {
            return refuse("is ACTIVE: crash recovery needs it", "ALTER SYSTEM CHECKPOINT, then drop it");
        }
        GroupStatus::Unused | GroupStatus::Inactive => {}
    }
    if groups.all.len() <= 2 {
        return refuse("is one of the last two", "add another group first");
    }
    Ok(groups.take_out(index))
}
