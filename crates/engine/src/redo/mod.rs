//! Redo: the log buffer, the log writer, the groups, and reading it all back.
//!
//! A commit is durable when the log is flushed up to the end of its record: [`RedoLog::reserve`] before the first latch,
//! [`RedoLog::append`] (both from [`crate::change::Change`]), then [`RedoLog::wait_durable`].
//!
//! | file | what |
//! |---|---|
//! | `record`, `chunk`, `header` | formats, with byte rulers |
//! | `group` | groups, members, states, which comes next |
//! | `buffer` | the log buffer and the promises of its reservations |
//! | `room` | waiting for room: `log buffer space`, `log file switch (checkpoint incomplete)` |
//! | `writer` | the log writer: one write in numbered steps |
//! | `sync` | `log file sync`: leading, queueing, waking |
//! | `admin` | switch, add and drop groups, what `v$log` and its like show |
//! | `files`, `open` | making, removing and opening redo files |
//! | `glue` | the log in its instance: control file, parameters, the process `lgwr` |
//! | `scan`, `recovery` | finding the end of the log, rolling forward |
//!
//! An LSN is a position in one endless stream of bytes, chunk headers and padding included. Chunks follow each other without
//! a gap, also from one group to the next; a chunk lies in its file at header block + (its LSN - first LSN of the group).

mod admin;
mod buffer;
mod chunk;
mod files;
mod glue;
mod group;
mod header;
mod open;
pub(crate) mod record;
mod recovery;
mod room;
mod scan;
mod sync;
#[cfg(test)]
mod tests;
mod writer;

pub use admin::{Log, Logfile};
pub use buffer::Reservation;
pub use files::{FIRST_LSN, GroupSpec};
pub use glue::log_writer;
pub use group::GroupStatus;
pub use open::{RedoOptions, create_files};
pub use recovery::{Pages, Recovered};

use crate::files::control::{GroupRecord, LogRecord};
use crate::files::iostat::FileStatistics;
use crate::instance::Core;
use crate::page::Lsn;
use crate::{Context, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use units::Clock;

/// Who keeps what must outlive the instance: the control file, and the alert log.
pub trait Keeper: Send + Sync {
    /// Replaces the list of groups in the control file; durable when it returns.
    ///
    /// # Errors
    /// What storage says: the control file still has the old list.
    fn keep(&self, context: &Context, groups: &[GroupRecord]) -> Result<()>;

    /// A turn of the log has ended, for `v$log_history`. Nothing depends on it.
    fn switched(&self, context: &Context, ended: LogRecord);

    /// The log can no longer be written: the instance stops.
    fn crashed(&self, why: &str);

    /// Why the instance has stopped, if so.
    fn failure(&self) -> Option<String>;

    /// A line for the alert log.
    fn alert(&self, line: &str);
}

/// The redo log of an instance.
pub struct RedoLog {
    state: Mutex<buffer::State>,
    /// What belongs to the log writer's role; locked by its holder.
    writer: Mutex<writer::Writer>,
    /// Signalled when there may be room: a half was taken, a group became free, a reservation was given back.
    room: Condvar,
    durable: AtomicU64,
    restart: AtomicU64,
    wake_list: sync::WakeList,
    /// Wakes the thread `lgwr`, once there is one.
    lgwr: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Somebody wants everything written and does not wait for it.
    posted: AtomicBool,
    /// When everything was written last, nanoseconds.
    flushed: AtomicU64,
    /// Why the log can no longer be written.
    failure: OnceLock<String>,
    /// Held by who adds or drops a group, from beginning to end.
    admin: Mutex<()>,
    /// Held by who changes the list of groups or a member's state, until the control file has it. The log writer may need
    /// it, so nobody makes files while holding it.
    keeping: Mutex<()>,
    keeper: Arc<dyn Keeper>,
    storage: Arc<dyn io::Storage>,
    access: io::Access,
    clock: Clock,
    database: u64,
    /// Bytes of a log block.
    block: u32,
    statistics: Arc<FileStatistics>,
    /// Nobody else can make progress while we wait: do the work instead.
    inline: bool,
    call_bytes: u64,
}

impl RedoLog {
    /// Waits until everything up to `lsn` is on disk (`log file sync`, kept in parts: queue, write, wake-up).
    ///
    /// # Errors
    /// [`crate::EngineError::Crashed`] when the log writer met an error: the commit may or may not be there after a restart.
    pub fn wait_durable(&self, _core: &Core, context: &Context, lsn: Lsn) -> Result<()> {
        self.sync(context, lsn)
    }

    /// Everything up to here is on disk.
    #[inline]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// The end of what was appended: everything is on disk once this is.
    pub fn tail_lsn(&self) -> Lsn {
        self.state.lock().tail()
    }

    /// Where recovery would have to begin for all that is appended from now on: the start of the chunk that the next record
    /// goes to. Pages are marked dirty with it.
    ///
    /// At most [`RedoLog::tail_lsn`], which lies inside a chunk. Who sees this position sees everything that was done before
    /// the records before it were appended, marks of dirty pages included.
    #[inline]
    pub fn restart_lsn(&self) -> Lsn {
        Lsn(self.restart.load(Ordering::Acquire))
    }

    /// Stops the log for good, because something happened after which nothing more may become durable (a failed write of
    /// a data file, a failed log write). All who wait get [`crate::EngineError::Crashed`]. The first reason stays.
    pub fn crash(&self, why: &str) {
        if self.failure.set(why.to_owned()).is_ok() {
            self.keeper.crashed(why);
        }
        self.wake_all();
    }

    /// Wakes everybody who waits for the log or for room in it, so that they look at [`RedoLog::failure`] again. Those whose
    /// chunk is being written are woken when it is.
    pub fn wake_all(&self) {
        if let Some(why) = self.keeper.failure() {
            // The instance may have been stopped by somebody else.
            let _ = self.failure.set(why);
        }
        let waiting = {
            let state = self.state.lock();
            self.room.notify_all();
            state.waiting.clone()
        };
        waiting.iter().for_each(|waiter| waiter.thread.unpark());
        self.post();
    }

    /// Why the log can no longer be written, if so.
    pub fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }
}
