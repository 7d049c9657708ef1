//! Redo: the log buffer, the log writer, the groups, and reading it all back.
//!
//! A commit is durable when the log is flushed up to the end of its record: [`RedoLog::append`] (from
//! [`crate::change::Change::finish`]), then [`RedoLog::wait_durable`].

use crate::instance::process::Process;
use crate::instance::{Core, Foundation};
use crate::page::Lsn;
use crate::{Context, Result};
use std::path::PathBuf;

/// A redo group to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its files, all alike; absolute.
    pub members: Vec<PathBuf>,
    /// Size of each, bytes; rounded up to whole log blocks.
    pub bytes: u64,
}

/// The redo log of an instance.
pub struct RedoLog {}

impl RedoLog {
    /// Makes the first groups and notes them in the control file (`foundation.control`, list `groups`: a member is noted as
    /// `Creating` before its file is made, so that a crash leaves nothing unknown). Ready to be appended to: the tail is where
    /// the first group's content begins, and is durable.
    ///
    /// # Errors
    /// [`crate::EngineError::Invalid`] for sizes that make no sense, what storage says; the caller then removes every file
    /// that the control file names.
    pub fn create(_foundation: &Foundation, _context: &Context, _groups: &[GroupSpec]) -> Result<Self> {
        unimplemented!()
    }

    /// Opens the members that the control file names and reads their headers; members that were being made or dropped are
    /// removed. Nothing can be appended before [`RedoLog::recover`].
    ///
    /// # Errors
    /// [`crate::EngineError::Damaged`] when a group has no usable member left, what storage says.
    pub fn open(_foundation: &Foundation, _context: &Context) -> Result<Self> {
        unimplemented!()
    }

    /// Rolls forward: applies all records from the control file's checkpoint to the end of the log, through the cache, and
    /// makes the end the tail. Also called after a clean shutdown: then there is nothing to apply, and the end is the
    /// checkpoint. Database writers are at work meanwhile, log writer and checkpointer are not: everything that is applied
    /// counts as durable, and nobody moves the checkpoint. Pages of files that are not open (dropped, or never finished) are
    /// skipped.
    ///
    /// # Errors
    /// [`crate::EngineError::Damaged`] when redo that must be there is not, what storage says.
    pub fn recover(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// All changes before `lsn` are in the data files and the control file says so: groups that ended before it may be
    /// written over.
    pub fn note_checkpoint(&self, _lsn: Lsn) {
        unimplemented!()
    }

    /// How far the checkpoint must come for somebody who waits for a log group; `None` when nobody does.
    pub fn checkpoint_wanted(&self) -> Option<Lsn> {
        unimplemented!()
    }

    /// Wakes everybody who waits here, so that they look at `core.health` again. Called from any thread.
    pub fn wake_all(&self) {}

    /// Waits until everything up to `lsn` is on disk (`log file sync`, kept in parts: queue, write, wake-up).
    ///
    /// # Errors
    /// [`crate::EngineError::Crashed`] when the log writer met an error: the commit may or may not be there after a restart.
    pub fn wait_durable(&self, _core: &Core, _context: &Context, _lsn: Lsn) -> Result<()> {
        unimplemented!()
    }

    /// Everything up to here is on disk.
    pub fn durable_lsn(&self) -> Lsn {
        unimplemented!()
    }

    /// The end of what was appended.
    pub fn tail_lsn(&self) -> Lsn {
        unimplemented!()
    }
}

/// The process `lgwr`.
///
/// # Errors
/// What its files say.
pub fn log_writer(_core: &Core) -> Result<Box<dyn Process>> {
    unimplemented!()
}
