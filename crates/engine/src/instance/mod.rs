//! An instance: the processes and memory over one database.
//!
//! [`Instance`] is made by [`Instance::create`] or [`Instance::open`] and ends with [`Instance::shutdown`]. Its parts share
//! [`Core`]: first the [`Foundation`] (files, control file, parameters, counters), which the constructors of the other parts
//! get, then those parts. [`process`] runs the background work, `health` stops everything when a promise cannot be kept,
//! `gate` lets calls in.

mod admin;
mod alert;
mod config;
mod create;
mod gate;
mod health;
mod open;
pub mod process;
mod shutdown;
mod views;

pub use admin::Applied;
pub use alert::AlertLog;
pub use config::{InstanceConfig, Placement};
pub use gate::{Gate, Inside, Seat};
pub use health::Health;
pub use shutdown::Shutdown;
pub use views::{DatafileRow, FileIoRow, IostatRow, SysstatRow, TablespaceRow, TempfileRow};

use crate::cache::BufferCache;
use crate::context::{Context, Environment};
use crate::files::FileSet;
use crate::files::control::ControlFile;
use crate::parameter::{Parameter, Parameters};
use crate::redo::RedoLog;
use crate::sort::TempSpace;
use crate::space::Space;
use crate::statistics::Statistics;
use crate::transaction::Transactions;
use crate::{EngineError, Result};
use io::{Storage, StorageLock};
use parking_lot::Mutex;
use process::Processes;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use waits::SessionKind;
use waits::ash::Sampler;

/// What the parts of an instance are built on; their constructors get it before there is a [`Core`].
pub struct Foundation {
    /// What it stands on.
    pub environment: Environment,
    /// The database's directory.
    pub directory: PathBuf,
    /// All wait slots.
    pub waits: Arc<waits::Registry>,
    /// Active session history: `v$active_session_history`.
    pub history: Arc<Sampler>,
    /// Values in force.
    pub parameters: Parameters,
    /// `v$sysstat`.
    pub statistics: Arc<Statistics>,
    /// What people are told.
    pub alert: Arc<AlertLog>,
    /// Whether to go on.
    pub health: Arc<Health>,
    /// What the database consists of.
    pub control: Arc<ControlFile>,
    /// Open files.
    pub files: FileSet,
    /// What calls pass.
    pub gate: Gate,
    /// Keeps other instances out until this one has stopped; sessions may outlive it.
    lock: Mutex<Option<Arc<StorageLock>>>,
}

impl Foundation {
    /// A companion for a new session or process.
    ///
    /// # Errors
    /// When all `sessions` are taken.
    pub fn context(&self, kind: SessionKind, program: &str) -> Result<Context> {
        let slot = self.waits.try_register(kind, program).ok_or_else(|| {
            let sessions = self.waits.sessions_max();
            EngineError::Invalid(format!(
                "all {sessions} sessions are taken; end some, or raise parameter sessions and start again"
            ))
        })?;
        Ok(Context { session: slot.sid(), slot, counters: self.statistics.counters() })
    }
}

/// What all floors of an instance share: a [`Foundation`] (which it derefs to) and the parts on it.
pub struct Core {
    foundation: Foundation,
    /// Frames.
    pub cache: BufferCache,
    /// Redo.
    pub redo: RedoLog,
    /// Segments and catalog.
    pub space: Space,
    /// Undo, locks, views.
    pub transactions: Transactions,
    /// Space for sorts.
    pub temp: TempSpace,
    /// Background processes.
    pub processes: Processes,
}

impl Deref for Core {
    type Target = Foundation;
    fn deref(&self) -> &Foundation {
        &self.foundation
    }
}

impl Core {
    /// The floors over a foundation, not yet at work.
    fn new(foundation: Foundation, redo: RedoLog) -> Result<Arc<Self>> {
        let cache = BufferCache::new(&foundation)?;
        let space = Space::new(&foundation)?;
        let transactions = Transactions::new(&foundation)?;
        let processes = Processes::default();
        let temp = TempSpace::default();
        let core = Arc::new(Self { foundation, cache, redo, space, transactions, temp, processes });
        core.health.watch_over(&core);
        Ok(core)
    }

    /// Makes a commit durable up to `lsn` as `commit_wait` and `commit_logging` want it: waits for the log, or only calls the log
    /// writer, or leaves it to him when he writes next.
    ///
    /// # Errors
    /// As [`RedoLog::wait_durable`].
    pub fn sync_commit(&self, context: &Context, lsn: crate::Lsn) -> Result<()> {
        if self.parameters.choice(Parameter::CommitWait) == "wait" {
            return self.redo.wait_durable(self, context, lsn);
        }
        if self.parameters.choice(Parameter::CommitLogging) == "immediate" {
            self.redo.post();
        }
        self.health.check()
    }

    /// Wakes everybody who waits in any part, so that they look at [`Foundation::health`] and [`Foundation::gate`] again.
    pub fn wake_all(&self) {
        for role in self.processes.roles() {
            self.processes.post(role);
        }
        self.redo.wake_all();
        self.cache.wake_all();
        self.transactions.wake_all();
        self.space.wake_all();
    }
}

/// A running database. Dropping it is [`Shutdown::Abort`].
pub struct Instance {
    /// Shared by all its threads.
    pub core: Arc<Core>,
}

impl Deref for Instance {
    type Target = Core;
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Instance {
    /// Whether `directory` holds a database that was made to its end.
    pub fn exists(storage: &dyn Storage, directory: &Path) -> bool {
        open::is_complete(storage, directory)
    }

    /// Why it stopped itself, when it did.
    pub fn crashed(&self) -> Option<String> {
        self.core.health.crashed()
    }

    /// Where the alert log is.
    pub fn alert_log(&self) -> &Path {
        self.core.alert.path()
    }
}

#[cfg(test)]
mod tests;
