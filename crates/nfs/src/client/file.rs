//! A file that is open.

use super::mount::Shared;
use crate::Handle;
use crate::transfer::{Stability, Verifier, WriteResult};
use crate::v4::open::StateId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// To be read; it exists.
    Read,
    /// To be read and written; it exists.
    Write,
    /// The same; made where it does not exist.
    Create {
        /// Permissions of a new one.
        mode: u32,
    },
    /// The same; it must not exist.
    New {
        /// Different for each new file: by it the server knows a repeated call.
        verifier: [u8; 8],
        /// Permissions.
        mode: u32,
    },
}

impl How {
    pub(super) const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// An open file of a mount. It is closed when it and all queues over it are dropped.
pub struct File {
    pub(super) open: Arc<OpenFile>,
}

/// The last one who has it closes it.
pub(super) struct OpenFile {
    pub(super) state: Arc<FileState>,
    pub(super) shared: Arc<Shared>,
}

impl File {
    /// Its path below the export.
    pub fn path(&self) -> &str {
        &self.open.state.path
    }

    pub(super) fn state(&self) -> &FileState {
        &self.open.state
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.path(), self.state().handle)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.shared.close(&self.state);
    }
}

/// What mount, queues and the file itself share.
pub(super) struct FileState {
    pub(super) handle: Handle,
    pub(super) directory: Handle,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) write: bool,
    open: Mutex<Opened>,
    uncommitted: Mutex<Uncommitted>,
}

/// Of version 4.
#[derive(Clone, Copy, Default)]
struct Opened {
    state: StateId,
    /// Calls that its owner has made.
    calls: u32,
    /// The client id's generation that it belongs to.
    generation: u64,
}

/// What was written and may be lost with the server's memory.
#[derive(Clone, Copy, Default)]
struct Uncommitted {
    verifier: Option<Verifier>,
    /// Writes since then.
    writes: u64,
    /// Some of them are gone.
    lost: bool,
}

/// A lock is never left in pieces: what it guards is copied in and out.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileState {
    pub(super) fn new(handle: Handle, directory: Handle, name: &str, path: &str, write: bool) -> Self {
        Self {
            handle,
            directory,
            name: name.to_owned(),
            path: path.to_owned(),
            write,
            open: Mutex::default(),
            uncommitted: Mutex::default(),
        }
    }

    pub(super) fn reopened(&self, state: StateId, calls: u32, generation: u64) {
        *lock(&self.open) = Opened { state, calls, generation };
    }

    pub(super) fn state(&self) -> (StateId, u32) {
        let open = lock(&self.open);
        (open.state, open.calls)
    }

    pub(super) fn generation(&self) -> u64 {
        lock(&self.open).generation
    }

    /// Notes a write that the server has done.
    pub(super) fn wrote(&self, result: &WriteResult) {
        if result.stability == Stability::Unstable {
            let mut now = lock(&self.uncommitted);
            now.lost |= now.writes > 0 && now.verifier != Some(result.verifier);
            now.verifier = Some(result.verifier);
            now.writes += 1;
        }
    }

    /// How many writes a commit that is sent now will cover.
    pub(super) fn uncommitted(&self) -> u64 {
        lock(&self.uncommitted).writes
    }

    /// A commit that covers `writes` has come back: whether all of them were still there.
    pub(super) fn committed(&self, verifier: Verifier, writes: u64) -> bool {
        let mut now = lock(&self.uncommitted);
        let kept = !now.lost && (now.writes == 0 || now.verifier == Some(verifier));
        // What was lost stays so: who is told once does not look a second time.
        now.lost = !kept;
        now.writes = now.writes.saturating_sub(writes);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_knows_whether_the_server_lost_writes_before_it() {
        let handle = Handle::new(b"f").expect("short");
        let write = |file: &FileState, verifier: u8, stability: Stability| {
            file.wrote(&WriteResult { bytes: 1, stability, verifier: Verifier([verifier; 8]) });
        };
        let file = FileState::new(handle, handle, "f", "f", true);
        write(&file, 1, Stability::Unstable);
        let covered = file.uncommitted();
        write(&file, 1, Stability::Unstable);
        assert!(file.committed(Verifier([1; 8]), covered));
        assert_eq!(file.uncommitted(), 1, "the one that came after the commit was sent");
        assert!(!file.committed(Verifier([2; 8]), 1), "the server was restarted in between");
        assert!(!file.committed(Verifier([2; 8]), 0), "and says so for good");

        let file = FileState::new(handle, handle, "f", "f", true);
        write(&file, 1, Stability::File);
        assert!(file.committed(Verifier([2; 8]), file.uncommitted()), "a stable write is not lost");
        write(&file, 3, Stability::Unstable);
        write(&file, 4, Stability::Unstable);
        assert!(!file.committed(Verifier([4; 8]), 2), "the first was lost");
    }
}
