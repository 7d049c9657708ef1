//! A file that is open.

use super::layouts::{DataServer, Layouts};
use super::mount::Shared;
use super::seen::{FileFacts, LayoutFacts, Looks};
use super::uncommitted::Uncommitted;
use crate::Handle;
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
    pub(super) uncommitted: Uncommitted,
    pub(super) layouts: Layouts,
    /// Bytes, when it was asked last.
    size: Mutex<Option<u64>>,
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
            uncommitted: Uncommitted::default(),
            layouts: Layouts::default(),
            size: Mutex::default(),
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

    /// It was found to be so long.
    pub(super) fn measured(&self, bytes: u64) {
        *lock(&self.size) = Some(bytes);
    }

    pub(super) fn facts(&self) -> FileFacts {
        let (looks, held, since) = self.layouts.seen();
        let layout = held.map(|held| LayoutFacts {
            kind: held.layout.kind,
            nodes: held.servers.iter().map(|server| server.addresses[0]).collect(),
            since,
            sure: held.sure(),
        });
        let Looks { recalls, refreshes, doubts, moves } = looks;
        FileFacts {
            path: self.path.clone(),
            size: *lock(&self.size),
            layout,
            recalls,
            refreshes,
            doubts,
            moves,
        }
    }

    pub(super) fn generation(&self) -> u64 {
        lock(&self.open).generation
    }
}
