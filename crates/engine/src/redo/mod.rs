//! Redo: the log buffer, the log writer, the groups, and reading it all back.
//!
//! A commit is durable when the log is flushed up to the end of its record: [`RedoLog::append`] (from
//! [`crate::change::Change::finish`]), then [`RedoLog::wait_durable`].

use crate::instance::Core;
use crate::page::Lsn;
use crate::{Context, Result};

/// The redo log of an instance.
pub struct RedoLog {}

impl RedoLog {
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
