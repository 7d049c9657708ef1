//! An instance: the processes and memory over one database.

use crate::Result;
use crate::cache::BufferCache;
use crate::context::Environment;
use crate::files::FileSet;
use crate::redo::RedoLog;
use crate::transaction::Transactions;
use std::path::PathBuf;
use std::sync::Arc;

/// What all floors of an instance share. Made by [`Instance::create`] and [`Instance::open`].
pub struct Core {
    /// What it stands on.
    pub environment: Environment,
    /// All wait slots.
    pub waits: Arc<waits::Registry>,
    /// Open files.
    pub files: FileSet,
    /// Frames.
    pub cache: BufferCache,
    /// Redo.
    pub redo: RedoLog,
    /// Segments and catalog.
    pub space: crate::space::Space,
    /// Undo, locks, views.
    pub transactions: Transactions,
}

/// What a new database is made with.
#[derive(Clone, Debug)]
pub struct InstanceConfig {
    /// Where its files go unless placed one by one.
    pub directory: PathBuf,
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Roll back what is open, write everything, mark the database clean.
    Immediate,
    /// Stop at once; the next open recovers.
    Abort,
}

/// A running database.
pub struct Instance {
    /// Shared by all its threads.
    pub core: Arc<Core>,
}

impl Instance {
    /// Makes a new database and opens it.
    ///
    /// # Errors
    /// When its directory has a database already, or what storage says; nothing is left behind then.
    pub fn create(_environment: Environment, _config: InstanceConfig) -> Result<Self> {
        unimplemented!()
    }

    /// Opens a database, recovering it when it was not shut down cleanly.
    ///
    /// # Errors
    /// What is damaged or missing.
    pub fn open(_environment: Environment, _config: InstanceConfig) -> Result<Self> {
        unimplemented!()
    }
}
