//! An export in use: the way to its files.

use super::alerts::{Alert, Alerts};
use super::caller::Trouble;
use super::channel::Channels;
use super::control::{Control, Root, Way};
use super::error::NfsError;
use super::file::{File, FileState, How, OpenFile, lock};
use super::follow::{Followed, Pnfs, PnfsCounters};
use super::identity::Identity;
use super::keeper::Keeper;
use super::paths::Paths;
use super::queue::{Queue, QueueOptions};
use super::seen::Seen;
use super::target::{Target, Version};
use crate::rpc::call::Credential;
use crate::v4::identity::Owner;
use crate::{Attributes, Fault, Handle, Status};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Nanos, Rng, Seed, clock};

/// Longest transfer that is asked for, bytes.
const PAYLOAD_BYTES_MAX: u32 = 1 << 20;
const LAYOUT_REFRESH: Nanos = Nanos::millis(30_000);
/// How long an answer is waited for, unless something else is said.
pub(super) const SILENCE: Nanos = Nanos::millis(15_000);
/// Longest that closing waits for a server.
pub(super) const CLOSE_MAX: Nanos = Nanos::millis(2_000);

/// As whom, and for how long to try.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Who we say we are.
    pub credential: Credential,
    /// Longest that a call is repeated while the server is away or asks to wait; then it is an error.
    pub limit: Nanos,
    /// An answer that does not come in this time means that the connection is dead; another is made, and the call sent again.
    pub silence: Nanos,
    /// How often layouts are looked at again though nothing was said: a server may move data silently. 0: never.
    pub layout_refresh: Nanos,
    /// Whether packets leave by the interface of the peer's own network, whatever routes say.
    pub dont_route: bool,
    /// Most connections by each path that plain calls of files share ([`Storage`](crate::Storage)); none: one for each caller at work.
    pub channels: Option<u32>,
}

impl Default for MountOptions {
    /// As this process's user, for ten minutes: Oracle's `mnt_timeout`.
    fn default() -> Self {
        let groups: Vec<u32> = rustix::process::getgroups()
            .unwrap_or_default()
            .into_iter()
            .map(|group| group.as_raw())
            .collect();
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self {
            credential: Credential::sys(&machine(), uid, gid, &groups),
            limit: Nanos::millis(600_000),
            silence: SILENCE,
            layout_refresh: LAYOUT_REFRESH,
            dont_route: false,
            channels: None,
        }
    }
}

/// What was found at an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountFacts {
    /// The version in use: the one that was asked for.
    pub version: Version,
    /// Longest READ, bytes.
    pub read_max: u32,
    /// Longest WRITE, bytes.
    pub write_max: u32,
    /// Times that the control connection was made anew.
    pub reconnects: u64,
    /// Callbacks that were answered over the control connection.
    pub callbacks: u64,
    /// Where the control connection goes to; none while it is broken.
    pub control: Option<SocketAddr>,
}

/// An export in use. Its files and queues keep it alive.
#[derive(Clone)]
pub struct Mount {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) way: Arc<Way>,
    pub(super) root: Root,
    control: Mutex<Control>,
    keeper: Option<Keeper>,
    pub(super) pnfs: Option<Pnfs>,
    /// Goes up with each connection that is lost or made: the server may have been restarted in between.
    pub(super) era: AtomicU64,
    /// Who we are to data servers, before the name of a worker.
    pub(super) owner: Owner,
    /// Of all workers.
    pub(super) channels: Channels,
    pub(super) paths: Paths,
    channels_max: Option<u32>,
    /// For the verifiers of new files.
    chance: Mutex<Rng>,
}

impl Mount {
    /// Connects to `target`, and finds its export.
    ///
    /// # Errors
    /// [`NfsError`]: unreachable, another version, no such export, not for us.
    pub fn open(target: Target, options: MountOptions) -> Result<Self, NfsError> {
        let version = target.version;
        let way = Arc::new(Way {
            target,
            credential: options.credential,
            limit: options.limit,
            silence: options.silence,
            dont_route: options.dont_route,
            alerts: Alerts::default(),
            seen: Seen::default(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
        });
        let mut rng = Rng::new(Seed::draw());
        let verifier = rng.next_u64().to_be_bytes();
        let name = format!("redoubt {} {} {:016x}", machine(), std::process::id(), rng.next_u64());
        let owner = Owner { name: name.into_bytes(), verifier };
        let mut control = Control::new(way.clone(), Identity::new(version, owner.clone()));
        let root = control.attach()?;
        let keeper = if version == Version::V3 { None } else { Some(Keeper::start()?) };
        let pnfs = root.layouts.map(|kind| Pnfs::new(kind, options.layout_refresh));
        let task = keeper.as_ref().map(Keeper::task);
        control.bell = keeper.as_ref().map(Keeper::bell);
        let paths = Paths::new(way.target.paths.len());
        let shared = Arc::new(Shared {
            way,
            root,
            control: Mutex::new(control),
            keeper,
            pnfs,
            era: 0.into(),
            owner,
            channels: Channels::default(),
            paths,
            channels_max: options.channels,
            chance: Mutex::new(rng),
        });
        let mut control = shared.control();
        control.shared = Arc::downgrade(&shared);
        // Those that were tried in vain.
        (0..control.path).for_each(|path| shared.paths.broke(&shared, path));
        drop(control);
        if let Some(task) = task {
            task.keep(&shared);
        }
        Ok(Self { shared })
    }

    /// What was found.
    pub fn facts(&self) -> MountFacts {
        let control = self.shared.control();
        MountFacts {
            version: self.shared.way.target.version,
            read_max: self.shared.root.read_max,
            write_max: self.shared.root.write_max,
            reconnects: control.reconnects,
            callbacks: lock(&control.identity.back).answered(),
            control: control.caller.as_ref().map(|caller| caller.connection.peer),
        }
    }

    /// Most connections that plain calls of files share, by all paths together.
    pub(crate) fn channels_max(&self) -> usize {
        let paths = self.shared.way.target.paths.len();
        self.shared.channels_max.map_or(usize::MAX, |each| (each as usize).max(1) * paths)
    }

    /// What was done to follow the data: zeroes without pNFS.
    pub fn pnfs(&self) -> PnfsCounters {
        self.shared.pnfs.as_ref().map(Pnfs::counters).unwrap_or_default()
    }

    /// The times that data was found elsewhere, oldest first; the last few thousand.
    pub fn followed(&self) -> Vec<Followed> {
        self.shared.pnfs.as_ref().map(Pnfs::followed).unwrap_or_default()
    }

    /// What became of connections, servers and data, oldest first; the last thousand lines.
    pub fn alerts(&self) -> Vec<Alert> {
        self.shared.way.alerts.all()
    }

    /// The same lines, each once: those since this was asked last.
    pub fn news(&self) -> Vec<Alert> {
        self.shared.way.alerts.news()
    }

    /// Opens the file at `path` below the export.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn file(&self, path: &str, how: Open) -> Result<File, NfsError> {
        let shared = &self.shared;
        let how = match how {
            Open::Read => How::Read,
            Open::Write => How::Write,
            Open::Create { mode } => How::Create { mode },
            Open::New { mode } => {
                let mut chance = shared.chance.lock().unwrap_or_else(PoisonError::into_inner);
                How::New { verifier: chance.next_u64().to_be_bytes(), mode }
            }
        };
        let mut control = shared.control();
        let (directory, name) = control.walk(&shared.root, path)?;
        let state = control.open_file(directory, name, path, how)?;
        drop(control);
        Ok(File { open: Arc::new(OpenFile { state, shared: shared.clone() }) })
    }

    /// What the server says of `file`.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn attributes(&self, file: &File) -> Result<Attributes, NfsError> {
        let attributes =
            self.on(file.path(), "GETATTR", |control, deadline| match control.way.target.version {
                Version::V3 => control.attributes_v3(&file.state().handle, deadline),
                _ => control.attributes_v4(&file.state().handle, deadline),
            })?;
        file.state().measured(attributes.size);
        Ok(attributes)
    }

    /// Makes `file` `bytes` bytes long.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn set_size(&self, file: &File, bytes: u64) -> Result<(), NfsError> {
        file.state().layouts.resized();
        file.state().uncommitted.resized(bytes);
        self.on(file.path(), "SETATTR", |control, deadline| match control.way.target.version {
            Version::V3 => control.set_size_v3(&file.state().handle, bytes, deadline),
            _ => control.set_size_v4(file.state(), bytes, deadline),
        })
    }

    /// Removes the file at `path`.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn remove(&self, path: &str) -> Result<(), NfsError> {
        let (directory, name) = self.shared.control().walk(&self.shared.root, path)?;
        self.once(path, "REMOVE", Status::NOENT, |control, deadline| match control.way.target.version {
            Version::V3 => control.remove_v3(&directory, name, deadline),
            _ => control.remove_v4(&directory, name, deadline),
        })
    }

    /// A worker's own way to `files` of this mount: a connection, in 4.1 a session, and a queue of requests.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn queue(&self, options: QueueOptions, files: &[&File]) -> Result<Queue, NfsError> {
        let files = files.iter().map(|file| file.open.clone()).collect();
        Queue::open(self.shared.clone(), options, files)
    }

    pub(super) fn on<T>(
        &self,
        path: &str,
        what: &'static str,
        attempt: impl FnMut(&mut Control, Nanos) -> Result<T, Trouble>,
    ) -> Result<T, NfsError> {
        let limit = self.shared.way.limit;
        let result = self.shared.control().perform(what, limit, attempt)?;
        result.map_err(|fault| refused(path, fault))
    }
}

/// How [`Mount::file`] opens a file. Permissions are those of a file that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// To be read; it exists.
    Read,
    /// To be read and written; it exists.
    Write,
    /// The same; made where it does not exist.
    Create {
        /// Permissions.
        mode: u32,
    },
    /// The same; it must not exist.
    New {
        /// Permissions.
        mode: u32,
    },
}

impl Shared {
    pub(super) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None while somebody has it.
    pub(super) fn try_control(&self) -> Option<MutexGuard<'_, Control>> {
        self.control.try_lock().ok()
    }

    /// There is something to do for the keeper.
    pub(super) fn wake_keeper(&self) {
        self.keeper.iter().for_each(|keeper| keeper.bell().ring());
    }

    /// A number that nobody of this mount had.
    pub(super) fn draw(&self) -> u64 {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// Closes a file, as far as the server still listens.
    pub(super) fn close(&self, file: &Arc<FileState>) {
        let mut control = self.control();
        control.files.retain(|other| !Arc::ptr_eq(other, file));
        control.end_layout(file, clock::now() + CLOSE_MAX);
        if self.way.target.version != Version::V3 && control.caller.is_some() {
            let _ = control.perform("CLOSE", CLOSE_MAX, |control, deadline| control.close_v4(file, deadline));
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.stop();
        }
        if self.way.target.version != Version::V3 {
            self.control().detach_v4(clock::now() + CLOSE_MAX);
        }
    }
}

impl Control {
    /// The directory that `path` lies in, and its last name.
    pub(super) fn walk<'p>(&mut self, root: &Root, path: &'p str) -> Result<(Handle, &'p str), NfsError> {
        let names: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        if names.iter().any(|name| ["", ".", ".."].contains(name) || name.len() > 255) {
            return Err(NfsError::Name(path.to_owned()));
        }
        let mut directory = root.handle;
        let limit = self.way.limit;
        for name in &names[..names.len() - 1] {
            let found =
                self.perform("LOOKUP", limit, |control, deadline| control.find(&directory, name, deadline))?;
            directory = found.map_err(|fault| refused(path, fault))?;
        }
        Ok((directory, names[names.len() - 1]))
    }

    fn open_file(
        &mut self,
        directory: Handle,
        name: &str,
        path: &str,
        how: How,
    ) -> Result<Arc<FileState>, NfsError> {
        let limit = self.way.limit;
        let opened = self.perform("OPEN", limit, |control, deadline| match control.way.target.version {
            Version::V3 => control.open_v3(&directory, name, how, deadline).map(|handle| (handle, None)),
            _ => control
                .open_v4(&directory, name, how, deadline)
                .map(|(handle, state, calls)| (handle, Some((state, calls)))),
        })?;
        let (handle, open) = opened.map_err(|fault| refused(path, fault))?;
        let state = Arc::new(FileState::new(handle, directory, name, path, how.writes()));
        if let Some((id, calls)) = open {
            state.reopened(id, calls, self.identity.generation);
        }
        self.way.seen.opened(&state);
        self.files.push(state.clone());
        Ok(state)
    }
}

pub(super) fn refused(path: &str, fault: Fault) -> NfsError {
    NfsError::Refused { path: path.to_owned(), fault }
}

fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
