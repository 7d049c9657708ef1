//! A whole storage in memory: files by name, one power switch for all of them.
//!
//! [`SimStorage`] keeps one list of writes over all its files, so [`SimStorage::crash`] cuts the power for all at one moment:
//! what was durable stays, and of the rest chance decides within the device's [`Promises`], as in [`super::CrashDisk`]. Names
//! are durable when the call that made, removed or replaced them returns; making and extending a file take two calls, so
//! that a cut between them leaves half a file, as it may happen.
//!
//! To cut one workload at many points: [`SimStorage::on_call`] is told each call while it goes on, and may take a
//! [`SimStorage::fork`], which shares all bytes that nobody writes; crash the fork, open the database on it, look.
//! To fail it at many points: [`SimStorage::inject`] the n-th call for n = 1, 2, 3 … until the fault no longer fires.

mod disk;
mod image;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use disk::SimDisk;

use super::{Call, Disk, Fault, Promises, SimQueue, Trouble};
use crate::error::IoError;
use crate::mode::{Access, Api};
use crate::queue::Queue;
use crate::storage::{Storage, StorageLock};
use state::{Plan, State};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Seed;

/// A call that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInfo<'a> {
    /// The how manyth of this storage, from 1.
    pub number: u64,
    /// What kind.
    pub call: Call,
    /// On which file.
    pub path: &'a Path,
    /// Where in it; 0 for calls on names.
    pub offset: u64,
    /// How much; 0 for calls on names.
    pub bytes: u64,
}

/// Who looks at each call.
pub type Observer = Arc<dyn Fn(&SimStorage, &CallInfo<'_>) + Send + Sync>;

struct Shared {
    state: Mutex<State>,
    promises: Promises,
    seed: Seed,
    observer: Mutex<Option<Observer>>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without any lock held, so that the observer may do everything.
    fn observe(self: &Arc<Self>, info: &CallInfo<'_>) {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            observer(&SimStorage { shared: self.clone() }, info);
        }
    }
}

/// A storage in memory. Clones are the same storage; [`SimStorage::fork`] makes another one.
#[derive(Clone)]
pub struct SimStorage {
    shared: Arc<Shared>,
}

impl SimStorage {
    /// Empty, but for the root directory. `seed` decides in which order queues complete their requests.
    pub fn new(promises: Promises, seed: Seed) -> Self {
        let mut state = State::default();
        state.directories.insert("/".into());
        Self::over(state, promises, seed)
    }

    fn over(state: State, promises: Promises, seed: Seed) -> Self {
        let observer = Mutex::new(None);
        Self { shared: Arc::new(Shared { state: Mutex::new(state), promises, seed, observer }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// As a [`Storage`] for an environment.
    pub fn handle(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    /// Another storage that is as this one is now, writes that are not durable and writes in flight included. Files opened in
    /// this one are not open in that one, faults and observer stay behind. Costs one pointer per 16 KiB of files.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut state = self.state().clone();
        state.faults.clear();
        Self::over(state, self.shared.promises, self.shared.seed)
    }

    /// The power goes and comes back: files opened before answer `EIO`, locks are free, and chance from `seed` decides what
    /// happened to each write that was not durable or not even complete.
    pub fn crash(&self, seed: Seed) {
        self.state().crash(seed, self.shared.promises);
    }

    /// The process is killed, the machine goes on: as [`SimStorage::crash`], but what was written is still there to read, and
    /// may be lost by a later crash.
    pub fn kill(&self, seed: Seed) {
        self.state().kill(seed);
    }

    /// From now on (or no longer) the device says yes to every sync and durable write, and does nothing of the kind.
    pub fn set_lying(&self, lying: bool) {
        self.state().lying = lying;
    }

    /// From now on all files together have at most so many bytes; creating and extending beyond ends with no space.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// One more planned failure, over the calls on all files.
    pub fn inject(&self, fault: Fault) {
        self.state().faults.push(Plan { path: None, fault, calls: 0, fired: 0 });
    }

    /// One more planned failure, over the calls on one file.
    pub fn inject_on(&self, path: &Path, fault: Fault) {
        self.state().faults.push(Plan { path: Some(path.to_path_buf()), fault, calls: 0, fired: 0 });
    }

    /// How often planned failures have struck since the last [`SimStorage::heal`].
    pub fn fired(&self) -> u64 {
        self.state().faults.iter().map(|plan| plan.fired).sum()
    }

    /// No planned failures any more.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Who is told of each call while it goes on; the call waits meanwhile. When the observer crashes this storage, the
    /// call it was told of ends with `EIO`.
    pub fn on_call(&self, observer: Option<Observer>) {
        *self.shared.observer.lock().unwrap_or_else(PoisonError::into_inner) = observer;
    }

    /// Writes completed and not durable.
    pub fn pending(&self) -> usize {
        self.state().pending.len()
    }

    /// Damages a file behind everybody's back: `data` is at `offset` from now on, durably.
    ///
    /// # Panics
    /// When there is no such file or place in it: a bug of the test.
    pub fn damage(&self, path: &Path, offset: u64, data: &[u8]) {
        let mut state = self.state();
        let file = *state.names.get(path).expect("a file to damage");
        let file = &mut state.files[file];
        assert_eq!(file.now.write(data, offset), data.len(), "beyond the end");
        file.durable.write(data, offset);
    }

    /// Begins a call on a name.
    fn begin(&self, call: &'static str, path: &Path) -> Result<(), IoError> {
        let (number, trouble, epoch) = {
            let mut state = self.state();
            let trouble = state.begin_call(Call::Name, path);
            (state.calls, trouble, state.epoch)
        };
        let info = CallInfo { number, call: Call::Name, path, offset: 0, bytes: 0 };
        self.shared.observe(&info);
        let failed = |errno| Err(IoError::from_errno(path, call, 0, errno));
        match trouble {
            Some(Trouble::Errno(errno)) => failed(errno),
            Some(Trouble::Short(_)) => failed(libc::EIO),
            _ if self.state().epoch != epoch => failed(libc::EIO),
            None | Some(Trouble::Lost | Trouble::Torn | Trouble::Misdirected(_)) => Ok(()),
        }
    }

    fn disk(&self, file: usize, path: &Path, access: Access) -> Arc<dyn Disk> {
        let epoch = self.state().epoch;
        let shared = self.shared.clone();
        Arc::new(SimDisk { shared, file, path: path.into(), access, epoch, poison: AtomicI32::new(0) })
    }
}

fn errno(path: &Path, call: &'static str, errno: i32) -> IoError {
    IoError::from_errno(path, call, 0, errno)
}

impl Storage for SimStorage {
    fn create(&self, path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        self.begin("create", path)?;
        let (file, epoch) = {
            let mut state = self.state();
            if state.names.contains_key(path) || state.directories.contains(path) {
                return Err(errno(path, "create", libc::EEXIST));
            }
            if !path.parent().is_some_and(|parent| state.directories.contains(parent)) {
                return Err(errno(path, "create", libc::ENOENT));
            }
            if state.capacity.is_some_and(|capacity| state.used() + bytes > capacity) {
                return Err(errno(path, "create", libc::ENOSPC));
            }
            (state.make(path, bytes / 2), state.epoch)
        };
        let result = self.begin("create", path);
        {
            let mut state = self.state();
            match result {
                Ok(()) => state.resize(file, bytes),
                Err(error) => {
                    // After a crash nobody was left to take it back.
                    if state.epoch == epoch {
                        state.names.remove(path);
                    }
                    return Err(error);
                }
            }
        }
        Ok(self.disk(file, path, Access { write: true, ..access }))
    }

    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        self.begin("open", path)?;
        let file = self.state().names.get(path).copied();
        let file = file.ok_or_else(|| errno(path, "open", libc::ENOENT))?;
        Ok(self.disk(file, path, access))
    }

    fn extend(&self, path: &Path, from: u64, to: u64) -> Result<(), IoError> {
        self.begin("extend", path)?;
        let (file, epoch) = {
            let mut state = self.state();
            let file = *state.names.get(path).ok_or_else(|| errno(path, "extend", libc::ENOENT))?;
            state.resize(file, from);
            let more = to.saturating_sub(from);
            if state.capacity.is_some_and(|capacity| state.used() + more > capacity) {
                return Err(errno(path, "extend", libc::ENOSPC));
            }
            state.resize(file, from + more / 2);
            (file, state.epoch)
        };
        let result = self.begin("extend", path);
        let mut state = self.state();
        if state.epoch == epoch {
            state.resize(file, if result.is_ok() { to } else { from });
        }
        result
    }

    fn remove(&self, path: &Path) -> Result<(), IoError> {
        self.begin("unlink", path)?;
        let mut state = self.state();
        let was_text = state.texts.remove(path).is_some();
        match state.names.remove(path) {
            None if !was_text => Err(errno(path, "unlink", libc::ENOENT)),
            _ => Ok(()),
        }
    }

    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), IoError> {
        self.begin("replace", path)?;
        let mut state = self.state();
        let file = state.make(path, content.len() as u64);
        state.files[file].now.write(content, 0);
        state.files[file].durable = state.files[file].now.clone();
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.begin("read", path)?;
        let state = self.state();
        if let Some(text) = state.texts.get(path) {
            return Ok(text.clone().into_bytes());
        }
        let file = *state.names.get(path).ok_or_else(|| errno(path, "read", libc::ENOENT))?;
        let image = &state.files[file].now;
        let mut content = vec![0; image.bytes() as usize];
        image.read(&mut content, 0);
        Ok(content)
    }

    fn append_line(&self, path: &Path, line: &str) {
        let mut state = self.state();
        let text = state.texts.entry(path.to_path_buf()).or_default();
        text.push_str(line);
        text.push('\n');
    }

    fn exists(&self, path: &Path) -> bool {
        let state = self.state();
        state.names.contains_key(path) || state.directories.contains(path) || state.texts.contains_key(path)
    }

    fn is_device(&self, _path: &Path) -> bool {
        false
    }

    fn lock(&self, path: &Path) -> Result<StorageLock, IoError> {
        self.begin("flock", path)?;
        let mut state = self.state();
        if state.locks.contains_key(path) {
            return Err(IoError::Locked { path: path.to_path_buf(), holder: None });
        }
        state.next_lock += 1;
        let number = state.next_lock;
        state.locks.insert(path.to_path_buf(), number);
        Ok(StorageLock::new(Held { shared: self.shared.clone(), path: path.to_path_buf(), number }))
    }

    fn create_directory(&self, path: &Path) -> Result<(), IoError> {
        self.begin("mkdir", path)?;
        let mut state = self.state();
        for directory in path.ancestors() {
            if state.names.contains_key(directory) {
                return Err(errno(directory, "mkdir", libc::EEXIST));
            }
            state.directories.insert(directory.to_path_buf());
        }
        Ok(())
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, IoError> {
        self.begin("readdir", directory)?;
        let state = self.state();
        if !state.directories.contains(directory) {
            return Err(errno(directory, "readdir", libc::ENOENT));
        }
        let all = state.names.keys().chain(&state.directories).chain(state.texts.keys());
        let mut paths: Vec<_> =
            all.filter(|path| path.parent() == Some(directory)).map(|path| path.to_path_buf()).collect();
        paths.sort();
        Ok(paths)
    }

    /// Whatever the API, requests complete late and in an order drawn from the seed; until then a write is in flight, and a
    /// crash may lose, tear or keep it.
    fn open_queue(
        &self,
        _api: Api,
        depth: u32,
        buffer_bytes: u32,
        files: &[Arc<dyn Disk>],
    ) -> Result<Box<dyn Queue>, IoError> {
        assert!(depth > 0, "a queue needs a slot");
        assert!(!files.is_empty(), "a queue needs a file");
        let ours = |disk: &Arc<dyn Disk>| {
            let file = disk.clone().as_any().and_then(|any| any.downcast::<SimDisk>().ok());
            file.expect("a file of this storage")
        };
        let number = {
            let mut state = self.state();
            state.queues += 1;
            state.queues
        };
        let files = files.iter().map(ours).collect();
        Ok(Box::new(SimQueue::over(depth, buffer_bytes, files, self.shared.seed.part(number))?))
    }
}

/// A lock; what it locked was free again after a crash, and may be somebody else's now.
struct Held {
    shared: Arc<Shared>,
    path: PathBuf,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if state.locks.get(&self.path) == Some(&self.number) {
            state.locks.remove(&self.path);
        }
    }
}
