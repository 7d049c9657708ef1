//! The embedded database as a target: made once in the run's workspace, opened with each configuration, used by sessions.
//!
//! Start with [`Database`]. Workloads: [`growth`] (the article's script), [`commit`], [`order_entry`], [`scan`],
//! [`random_read`]; [`open`] is what a case needs of a database; [`drive`] runs sessions against the clock; [`interval`] and [`evidence`] take down what the
//! database itself saw.

pub mod commit;
pub mod drive;
pub mod evidence;
mod flash;
pub mod growth;
pub mod interval;
pub mod open;
pub mod order_entry;
pub mod places;
pub mod random_read;
pub mod scan;
pub mod source;
mod storage;

use crate::LabError;
use crate::compare::configuration::Configuration;
use crate::export;
use engine::{AlterSystem, Background, Environment, Instance, InstanceConfig, Row, Session, Shutdown};
pub use flash::Flash;
use io::{IoMode, Storage};
pub use places::Places;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use storage::OwnedStorage;
use units::{Bytes, Seed};

/// What a database is made with.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Block.
    pub block: Bytes,
    /// Buffer cache.
    pub cache: Bytes,
    /// First size of the data file.
    pub data: Bytes,
    /// First size of the undo file.
    pub undo: Bytes,
    /// Each redo group.
    pub redo: Bytes,
    /// Redo groups.
    pub redo_groups: u32,
    /// Flash cache; nothing: none.
    pub flash: Bytes,
}

impl Sizes {
    /// Bytes of all files when they are made.
    pub fn total(&self) -> Bytes {
        const SYSTEM_AND_TEMP: u64 = 32 << 20;
        let redo = u64::from(self.redo_groups) * self.redo.0;
        Bytes(self.data.0 + self.undo.0 + redo + self.flash.0 + SYSTEM_AND_TEMP)
    }
}

/// A database of ours in the run's workspace.
pub struct Database {
    directory: PathBuf,
    environment: Environment,
    config: InstanceConfig,
}

impl Database {
    /// Makes it in `places` (a workspace, or one place for each class of files) and shuts it down again.
    ///
    /// # Errors
    /// What the engine says.
    pub fn create(
        places: impl Into<Places>,
        sizes: &Sizes,
        parameters: &[(String, String)],
        seed: Seed,
    ) -> Result<Self, LabError> {
        let places = places.into();
        let directory = export::absolute(&places.directory)?;
        let storage: Arc<dyn Storage> = match export::is_export(&directory) {
            true => export::storage(&directory)?,
            false => Arc::new(OwnedStorage::new(places.workspaces)),
        };
        let environment = Environment { storage, clock: io::clock(), background: Background::Threads, seed };
        let mut config = InstanceConfig::new(&directory)
            .with("db_block_size", &sizes.block.0.to_string())
            .with("db_cache_size", &sizes.cache.0.to_string());
        for (name, value) in parameters {
            config = config.with(name, value);
        }
        config.placement = places.placement;
        config.data_bytes = sizes.data.0;
        config.undo_bytes = sizes.undo.0;
        config.redo_bytes = sizes.redo.0;
        config.redo_groups = sizes.redo_groups;
        let instance = Instance::create(environment.clone(), config.clone())?;
        instance.shutdown(Shutdown::Immediate)?;
        config.parameters.clear();
        Ok(Self { directory, environment, config })
    }

    /// From now on it is opened so that what it writes can be read back ([`crate::verify::shut_down`]).
    #[must_use]
    pub fn verifying(mut self, verify: bool) -> Self {
        if verify {
            self.config = self.config.with("_verify_writes", "true");
        }
        self
    }

    /// Opens it with the I/O mode and API of a configuration.
    ///
    /// # Errors
    /// What the engine says.
    pub fn open(&self, configuration: &Configuration) -> Result<Instance, LabError> {
        self.open_with(configuration, &[])
    }

    /// The same with parameters for this time, by name.
    ///
    /// # Errors
    /// What the engine says.
    pub fn open_with(
        &self,
        configuration: &Configuration,
        parameters: &[(String, String)],
    ) -> Result<Instance, LabError> {
        let api = match configuration.mode {
            IoMode::None | IoMode::Directio => "auto".to_owned(),
            _ => configuration.api.to_string(),
        };
        let config =
            parameters.iter().fold(self.config.clone(), |config, (name, value)| config.with(name, value));
        let config = config
            .with("filesystemio_options", &configuration.mode.to_string())
            .with("filesystemio_api", &api);
        let mut environment = self.environment.clone();
        if export::is_export(&self.directory) {
            environment.storage = export::storage(&self.directory)?;
        }
        Ok(Instance::open(environment, config)?)
    }
}

/// Opens `count` sessions, named after the workload.
///
/// # Errors
/// What the engine says.
pub fn sessions(instance: &Instance, workload: &str, count: u32) -> Result<Vec<Session>, LabError> {
    (0..count).map(|n| Ok(instance.session(&format!("{workload} {n}"))?)).collect()
}

/// What a session says it is about, where its waits are sampled.
#[derive(Clone, Copy)]
pub struct Action(waits::TextId);

impl Action {
    /// Keeps its name.
    pub fn new(session: &Session, name: &str) -> Self {
        Self(session.core().waits.keep_text(name))
    }

    /// From now on.
    pub fn set(self, session: &Session) {
        session.context().slot.set_action(Some(self.0));
    }
}

/// A check of a workload's own promise that did not hold: its figures are worth nothing.
pub fn inconsistent(workload: &'static str, reason: String) -> LabError {
    LabError::Workload { workload, reason: format!("the data is not consistent: {reason}") }
}

/// The rows until Ctrl-C; [`stop_if`] tells afterwards which it was.
fn until<'a>(cancel: &'a AtomicBool, rows: impl Iterator<Item = Row> + 'a) -> impl Iterator<Item = Row> + 'a {
    rows.take_while(|_| !cancel.load(Ordering::Relaxed))
}

/// After Ctrl-C the database is on its way out, so what `session` has open is not rolled back: that may take as long as it took to
/// do it.
///
/// # Errors
/// [`LabError::Cancelled`] after Ctrl-C.
fn stop_if(cancel: &AtomicBool, session: &Session) -> Result<(), LabError> {
    if cancel.load(Ordering::Relaxed) {
        session.shutdown_abort();
        return Err(LabError::Cancelled);
    }
    Ok(())
}

/// `SELECT bytes FROM dba_segments`.
///
/// # Errors
/// What the engine says.
pub fn segment_bytes(session: &mut Session, table: &engine::Table) -> Result<u64, LabError> {
    let block = session.core().files.block_bytes() as u64;
    Ok(u64::from(session.segment_size(&table.segment)?.blocks) * block)
}

/// `ALTER SYSTEM SET name = value SCOPE = MEMORY`.
pub fn set(name: &str, value: &str) -> AlterSystem {
    AlterSystem::Set {
        name: name.to_owned(),
        value: value.to_owned(),
        scope: Some(engine::parameter::Scope::Memory),
    }
}
