//! A file that is open.

use super::layouts::{DataServer, Layouts};
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
    uncommitted: Mutex<Vec<Uncommitted>>,
    pub(super) layouts: Layouts,
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

/// What was written to one server and may be lost with its memory.
#[derive(Clone)]
struct Uncommitted {
    at: Place,
    verifier: Verifier,
    /// Writes since the last commit.
    writes: u64,
    /// Some of them are gone.
    lost: bool,
}

/// Where a commit has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// To the server that was mounted.
    Server,
    /// To a data server, where the file has this handle.
    Data(DataServer, Handle),
}

/// A lock is never left in pieces: what it guards is copied in and out.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
            layouts: Layouts::default(),
        }
    }

    pub(super) fn reopened(&self, state: StateId, calls: u32, generation: u64) {
        *lock(&self.open) = Opened { state, calls, generation };
        self.layouts.changed();
    }

    pub(super) fn state(&self) -> (StateId, u32) {
        let open = lock(&self.open);
        (open.state, open.calls)
    }

    pub(super) fn generation(&self) -> u64 {
        lock(&self.open).generation
    }

    /// Notes a write that the server at `at` has done.
    pub(super) fn wrote(&self, at: &Place, result: &WriteResult) {
        if result.stability != Stability::Unstable {
            return;
        }
        let mut all = lock(&self.uncommitted);
        match all.iter_mut().find(|one| one.at == *at) {
            Some(one) => {
                one.lost |= one.writes > 0 && one.verifier != result.verifier;
                one.verifier = result.verifier;
                one.writes += 1;
            }
            None => {
                let at = at.clone();
                all.push(Uncommitted { at, verifier: result.verifier, writes: 1, lost: false });
            }
        }
    }

    /// Where commits have to go that are sent now, and how many writes they will cover.
    pub(super) fn uncommitted(&self) -> Vec<(Place, u64)> {
        let all = lock(&self.uncommitted);
        all.iter().filter(|one| one.writes > 0 || one.lost).map(|one| (one.at.clone(), one.writes)).collect()
    }

    /// A commit that covers `writes` has come back from `at`: whether all of them were still there. None where the server is gone for good.
    pub(super) fn committed(&self, at: &Place, verifier: Option<Verifier>, writes: u64) -> bool {
        let mut all = lock(&self.uncommitted);
        let Some(one) = all.iter_mut().find(|one| one.at == *at) else { return true };
        let kept = !one.lost && (one.writes == 0 || verifier == Some(one.verifier));
        // What was lost stays so: who is told once does not look a second time.
        one.lost = !kept;
        one.writes = one.writes.saturating_sub(writes);
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
            let result = WriteResult { bytes: 1, stability, verifier: Verifier([verifier; 8]) };
            file.wrote(&Place::Server, &result);
        };
        let writes = |file: &FileState| file.uncommitted().first().map_or(0, |(_, writes)| *writes);
        let commit = |file: &FileState, verifier: u8, writes: u64| {
            file.committed(&Place::Server, Some(Verifier([verifier; 8])), writes)
        };
        let file = FileState::new(handle, handle, "f", "f", true);
        write(&file, 1, Stability::Unstable);
        let covered = writes(&file);
        write(&file, 1, Stability::Unstable);
        assert!(commit(&file, 1, covered));
        assert_eq!(writes(&file), 1, "the one that came after the commit was sent");
        assert!(!commit(&file, 2, 1), "the server was restarted in between");
        assert!(!commit(&file, 2, 0), "and says so for good");

        let file = FileState::new(handle, handle, "f", "f", true);
        write(&file, 1, Stability::File);
        assert!(commit(&file, 2, writes(&file)), "a stable write is not lost");
        write(&file, 3, Stability::Unstable);
        write(&file, 4, Stability::Unstable);
        assert!(!commit(&file, 4, 2), "the first was lost");

        let server = DataServer { addresses: vec![([127, 0, 0, 1], 2049).into()], v3: true };
        let place = Place::Data(server, handle);
        let file = FileState::new(handle, handle, "f", "f", true);
        let result = WriteResult { bytes: 1, stability: Stability::Unstable, verifier: Verifier([7; 8]) };
        file.wrote(&place, &result);
        write(&file, 8, Stability::Unstable);
        assert_eq!(file.uncommitted(), [(place.clone(), 1), (Place::Server, 1)], "each server its own");
        assert!(commit(&file, 8, 1) && !file.committed(&place, None, 1));
    }
}
