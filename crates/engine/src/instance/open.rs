//! Opening a database: control file, files, roll forward, roll back.

use super::{AlertLog, Core, Foundation, Gate, Health, Instance, InstanceConfig, process};
use crate::cache;
use crate::context::{Background, Environment};
use crate::files::FileSet;
use crate::files::admin;
use crate::files::control::{self, Content, ControlFile, ControlPlan, FIRST_COPY, State};
use crate::flash;
use crate::parameter::{Parameter, Parameters};
use crate::redo::{self, RedoLog};
use crate::statistics::Statistics;
use crate::{Context, EngineError, Result};
use io::{Access, Storage, StorageLock};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use units::Nanos;
use waits::SessionKind;
use waits::ash::Sampler;

/// Name of the file that says which process has the database open.
const LOCK_FILE: &str = "redoubt.lock";
/// Rows of active session history that are kept: an hour of five active sessions at one sample a second.
const HISTORY_ROWS: usize = 20_000;

impl Instance {
    /// Opens a database, recovering it when it was not shut down cleanly. Of `config`, directory and parameters count.
    ///
    /// 1. lock: nobody else has it open.
    /// 2. control file: what there is and where it stands.
    /// 3. what an interrupted ADD or DROP left is removed, then the data files are opened and their headers looked at. After a
    ///    crash each file is synced before it is read: what a killed process wrote may be readable and not durable, and a page
    ///    that recovery finds up to date is not written again.
    /// 4. database writers start: roll forward needs free buffers. No checkpointer yet: the checkpoint stays where it is until
    ///    everything after it is in memory or on disk again.
    /// 5. torn blocks are restored, redo is rolled forward from the checkpoint. Its end is where new redo goes.
    /// 6. log writer and checkpointer start. The control file says `open`: from here on there is new redo.
    /// 7. undo: which transactions were active; the catalog; then those are rolled back.
    /// 8. the system monitor starts; sessions may come.
    ///
    /// # Errors
    /// What is damaged or missing; [`io::IoError::Locked`] when another process has it.
    pub fn open(environment: Environment, config: InstanceConfig) -> Result<Self> {
        let lock = Arc::new(lock(&environment, &config.directory)?);
        let foundation = foundation(environment, &config, lock, Source::Existing)?;
        let context = foundation.context(SessionKind::Foreground, "open")?;
        let was_clean = foundation.control.content().state == State::Clean;
        foundation.alert.line(if was_clean { "opening" } else { "opening after a crash" });
        admin::finish_interrupted(
            &*foundation.environment.storage,
            &foundation.control,
            &foundation.alert,
            &context,
        )?;
        admin::open_all(&foundation.files, &foundation.control, &foundation.alert)?;
        if !was_clean {
            make_durable(&foundation)?;
        }
        let redo = RedoLog::open(&foundation, &context)?;
        let instance = Self { core: Core::new(foundation, redo)? };
        instance.recover(&context)?;
        instance.core.alert.line("open");
        Ok(instance)
    }

    fn recover(&self, context: &Context) -> Result<()> {
        let core = &self.core;
        for writer in cache::database_writers(core)? {
            core.processes.start(core, writer)?;
        }
        if core.cache.flash().is_some() {
            core.processes.start(core, flash::writer())?;
        }
        core.cache.restore_torn(core, context)?;
        core.redo.recover(core, context)?;
        self.start_log_writer_and_checkpointer()?;
        core.control.update(context, |content| {
            content.state = State::Open;
            content.opens += 1;
            Ok(())
        })?;
        core.transactions.open(core, context)?;
        core.space.open(core, context)?;
        core.transactions.recover(core, context)?;
        core.processes.start(core, process::system_monitor())
    }

    pub(super) fn start_log_writer_and_checkpointer(&self) -> Result<()> {
        let core = &self.core;
        core.processes.start(core, redo::log_writer(core)?)?;
        core.processes.start(core, cache::checkpointer(core)?)
    }
}

/// Syncs the data files.
fn make_durable(foundation: &Foundation) -> Result<()> {
    for file in foundation.files.all() {
        file.disk()?.sync().check(&file.path, "fdatasync", 0, 0)?;
    }
    Ok(())
}

/// Keeps other instances, also those of other processes, away from the database.
pub(super) fn lock(environment: &Environment, directory: &Path) -> Result<StorageLock> {
    Ok(environment.storage.lock(&directory.join(LOCK_FILE))?)
}

/// While the lock is held, or another process could be locking what is removed.
pub(super) fn remove_lock_file(storage: &dyn Storage, directory: &Path) {
    let _ = storage.remove(&directory.join(LOCK_FILE));
}

/// Where the control file comes from.
pub(super) enum Source {
    /// It is there.
    Existing,
    /// It is made, with this content.
    New(Box<Content>),
}

/// Everything below the parts: control file, parameters, registry, no files open yet.
pub(super) fn foundation(
    environment: Environment,
    config: &InstanceConfig,
    lock: Arc<StorageLock>,
    source: Source,
) -> Result<Foundation> {
    let storage = environment.storage.clone();
    let alert = Arc::new(AlertLog::new(storage.clone(), environment.clock.clone(), &config.directory));
    let health = Health::new(alert.clone());
    // How files are opened is a parameter, and the parameters are in the control file: it is read through the page cache,
    // and opened again as the parameters say.
    let plan = |access| ControlPlan {
        storage: &*storage,
        clock: environment.clock.clone(),
        health: health.clone(),
        access,
    };
    let (parameters, control) = match source {
        Source::New(content) => {
            let parameters = Parameters::new(&content.parameters, &[])?;
            let control = ControlFile::create(plan(access_of(&parameters)), *content)?;
            (parameters, control)
        }
        Source::Existing => {
            let first = config.control_path();
            let plain = Access { read: true, write: true, direct: false, dsync: true };
            let kept =
                ControlFile::open(plan(plain), &first)?.ok_or_else(|| unfinished(&config.directory))?;
            let content = kept.content();
            if content.state == State::Creating {
                return Err(unfinished(&config.directory));
            }
            drop(kept);
            let parameters = parameters_of(&content, &config.parameters)?;
            let control = ControlFile::open(plan(access_of(&parameters)), &first)?;
            (parameters, control.ok_or_else(|| unfinished(&config.directory))?)
        }
    };
    let sessions = parameters.number(Parameter::Sessions) as usize;
    let waits = waits::Registry::new(environment.clock.clone(), sessions);
    let interval = Nanos::millis(parameters.number(Parameter::AshInterval));
    // A simulation has nobody who could sleep until the next sample: who wants one takes it (`Sampler::step`).
    let history = match (environment.clock.is_real(), environment.background) {
        (true, Background::Threads) => Sampler::start(&waits, interval, HISTORY_ROWS),
        _ => Sampler::stepped(&waits, interval, HISTORY_ROWS),
    };
    let files = FileSet::new(storage, access_of(&parameters), parameters.block_bytes())
        .verifying(parameters.boolean(Parameter::VerifyWrites));
    Ok(Foundation {
        waits,
        history: Arc::new(history),
        environment,
        directory: config.directory.clone(),
        parameters,
        statistics: Statistics::new(),
        alert,
        health,
        control: Arc::new(control),
        files,
        gate: Gate::default(),
        lock: Mutex::new(Some(lock)),
    })
}

/// What the control file keeps and what this start was given; what was chosen at creation stays.
fn parameters_of(content: &Content, given: &[(String, String)]) -> Result<Parameters> {
    let parameters = Parameters::new(&content.parameters, given)?;
    for (parameter, made_with) in
        [(Parameter::BlockSize, content.block_bytes), (Parameter::LogBlockSize, content.log_block_bytes)]
    {
        let asked = parameters.number(parameter);
        if asked != u64::from(made_with) {
            return Err(EngineError::Invalid(format!(
                "{} = {asked}: the database was created with {made_with}; leave it out",
                parameter.definition().name
            )));
        }
    }
    Ok(parameters)
}

/// Files are always durable when a write completes, past the page cache in the direct modes.
fn access_of(parameters: &Parameters) -> Access {
    Access::for_mode(parameters.io_mode(), true)
}

fn unfinished(directory: &Path) -> EngineError {
    EngineError::Damaged {
        path: directory.to_path_buf(),
        what: "a database was being made here when the power went, and holds nothing yet; create it again"
            .into(),
    }
}

/// Whether a control file is there that says more than "being made". Damage counts as a database: it is not to be
/// made anew over it.
pub(super) fn is_complete(storage: &dyn Storage, directory: &Path) -> bool {
    let first = directory.join(FIRST_COPY);
    storage.exists(&first)
        && match control::peek(storage, &first) {
            Ok(content) => content.is_some_and(|content| content.state != State::Creating),
            Err(_) => true,
        }
}
