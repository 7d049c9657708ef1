//! Names, files, and which nodes keep their data.

use crate::store::lock;
use nfs::Status;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The directory that is exported.
pub(crate) const ROOT: u64 = 1;
/// Most files and directories.
const INODES_MAX: usize = 100_000;

/// What pNFS calls a device: data spread over nodes in the same way. A volume has one; a file that was moved by itself has its own.
pub(crate) struct Device {
    pub(crate) id: u64,
    pub(crate) mapping: RwLock<Mapping>,
    /// A move is under way that clients are told of: no layout is given meanwhile.
    pub(crate) moving: std::sync::atomic::AtomicBool,
}

/// Where a device's data is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The nodes, in the order of the stripes.
    pub(crate) nodes: Vec<usize>,
    /// Part of the name by which clients know it: changes with a move that layouts are recalled for.
    pub(crate) published: u32,
}

impl Mapping {
    /// The node that keeps the byte at `offset`.
    pub(crate) fn owner(&self, offset: u64, unit: u64) -> usize {
        self.nodes[(offset / unit) as usize % self.nodes.len()]
    }
}

impl Device {
    pub(crate) fn mapping(&self) -> std::sync::RwLockReadGuard<'_, Mapping> {
        self.mapping.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file or directory.
pub(crate) struct Inode {
    pub(crate) id: u64,
    pub(crate) mode: AtomicU32,
    pub(crate) size: AtomicU64,
    /// Goes up with each change.
    pub(crate) change: AtomicU64,
    device: RwLock<Arc<Device>>,
    /// Of a directory.
    pub(crate) entries: Option<Mutex<BTreeMap<String, u64>>>,
    /// By which it was made exclusively; 0 for none.
    pub(crate) verifier: AtomicU64,
}

impl Inode {
    pub(crate) fn device(&self) -> Arc<Device> {
        self.device.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_device(&self, device: Arc<Device>) {
        *self.device.write().unwrap_or_else(PoisonError::into_inner) = device;
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.change.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes it at least so long.
    pub(crate) fn grow(&self, size: u64) {
        self.size.fetch_max(size, Ordering::AcqRel);
        self.changed();
    }

    pub(crate) fn entries(&self) -> Result<&Mutex<BTreeMap<String, u64>>, Status> {
        self.entries.as_ref().ok_or(Status::NOTDIR)
    }
}

/// All of them.
pub(crate) struct Tree {
    inodes: RwLock<HashMap<u64, Arc<Inode>>>,
    next: AtomicU64,
    next_device: AtomicU64,
    devices: Mutex<HashMap<u64, Arc<Device>>>,
}

impl Tree {
    /// An empty root on `nodes`.
    pub(crate) fn new(nodes: Vec<usize>) -> Self {
        let tree = Self {
            inodes: RwLock::default(),
            next: AtomicU64::new(ROOT),
            next_device: AtomicU64::new(1),
            devices: Mutex::default(),
        };
        let device = tree.new_device(nodes);
        let root = tree.inode(0o755, true, device);
        tree.inodes.write().unwrap_or_else(PoisonError::into_inner).insert(root.id, root);
        tree
    }

    pub(crate) fn new_device(&self, nodes: Vec<usize>) -> Arc<Device> {
        let id = self.next_device.fetch_add(1, Ordering::Relaxed);
        let mapping = RwLock::new(Mapping { nodes, published: 1 });
        let device = Arc::new(Device { id, mapping, moving: false.into() });
        lock(&self.devices).insert(id, device.clone());
        device
    }

    pub(crate) fn device(&self, id: u64) -> Option<Arc<Device>> {
        lock(&self.devices).get(&id).cloned()
    }

    fn inode(&self, mode: u32, directory: bool, device: Arc<Device>) -> Arc<Inode> {
        Arc::new(Inode {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            mode: mode.into(),
            size: 0.into(),
            change: 1.into(),
            device: RwLock::new(device),
            entries: directory.then(Mutex::default),
            verifier: 0.into(),
        })
    }

    pub(crate) fn get(&self, id: u64) -> Result<Arc<Inode>, Status> {
        self.inodes.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned().ok_or(Status::STALE)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Inode>> {
        self.inodes.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn lookup(&self, directory: u64, name: &str) -> Result<Arc<Inode>, Status> {
        let directory = self.get(directory)?;
        let id = lock(directory.entries()?).get(name).copied().ok_or(Status::NOENT)?;
        self.get(id)
    }

    /// What is at `path`, names between slashes.
    pub(crate) fn walk(&self, path: &str) -> Result<Arc<Inode>, Status> {
        let mut at = self.get(ROOT)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = self.lookup(at.id, name)?;
        }
        Ok(at)
    }

    /// Makes `name`, or finds it where it exists; whether it was made. It is kept where its directory is.
    pub(crate) fn create(
        &self,
        directory: u64,
        name: &str,
        mode: u32,
        is_directory: bool,
    ) -> Result<(Arc<Inode>, bool), Status> {
        let parent = self.get(directory)?;
        let mut entries = lock(parent.entries()?);
        if let Some(&id) = entries.get(name) {
            return Ok((self.get(id)?, false));
        }
        let mut inodes = self.inodes.write().unwrap_or_else(PoisonError::into_inner);
        if inodes.len() >= INODES_MAX {
            return Err(Status::NOSPC);
        }
        let inode = self.inode(mode, is_directory, parent.device());
        inodes.insert(inode.id, inode.clone());
        entries.insert(name.to_owned(), inode.id);
        parent.changed();
        Ok((inode, true))
    }

    /// Takes `name` out of its directory; the result has no name any more.
    pub(crate) fn remove(
        &self,
        directory: u64,
        name: &str,
        is_directory: Option<bool>,
    ) -> Result<u64, Status> {
        let parent = self.get(directory)?;
        let mut entries = lock(parent.entries()?);
        let &id = entries.get(name).ok_or(Status::NOENT)?;
        let inode = self.get(id)?;
        match (is_directory, &inode.entries) {
            (Some(true), None) => return Err(Status::NOTDIR),
            (Some(false), Some(_)) => return Err(Status::ISDIR),
            (_, Some(below)) if !lock(below).is_empty() => return Err(Status::NOTEMPTY),
            _ => {}
        }
        entries.remove(name);
        parent.changed();
        self.inodes.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        Ok(id)
    }

    /// Gives `from` the name `to`, in place of what had it: the result is that one's number.
    pub(crate) fn rename(
        &self,
        (from_directory, from): (u64, &str),
        (to_directory, to): (u64, &str),
    ) -> Result<Option<u64>, Status> {
        let moved = self.lookup(from_directory, from)?;
        match self.lookup(to_directory, to) {
            Ok(other) if other.id == moved.id => return Ok(None),
            Ok(other) => match (&other.entries, &moved.entries) {
                (Some(below), Some(_)) if lock(below).is_empty() => {}
                (Some(_), Some(_)) => return Err(Status::NOTEMPTY),
                (None, None) => {}
                (Some(_), None) => return Err(Status::ISDIR),
                (None, Some(_)) => return Err(Status::NOTDIR),
            },
            Err(Status::NOENT) => {}
            Err(other) => return Err(other),
        }
        let (source, target) = (self.get(from_directory)?, self.get(to_directory)?);
        // The new name first: whoever looks always finds one of them, and never two locks are held at once.
        let replaced = lock(target.entries()?).insert(to.to_owned(), moved.id);
        lock(source.entries()?).remove(from);
        if let Some(id) = replaced {
            self.inodes.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
        source.changed();
        target.changed();
        Ok(replaced)
    }
}
