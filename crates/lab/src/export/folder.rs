//! A directory of our own on an export, removed with everything in it.
//!
//! No journal can undo there: the server may be away when this machine is asked to clean up. Instead each folder has a lock in it that
//! names its process, and whoever makes the next one on that export removes those whose process is gone.

use super::mounted;
use crate::LabError;
use io::{IoError, Storage as _, StorageLock};
use nfs::Storage;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Rng, Seed};

const PREFIX: &str = "redoubt-nfs-";
const LOCK: &str = "lock";
/// Another may take a folder that has no lock yet for one that was left.
const TRIES: u32 = 4;

/// The directory; [`Folder::remove`] it, or dropping it does.
pub struct Folder {
    storage: Arc<Storage>,
    path: PathBuf,
    lock: Option<StorageLock>,
}

impl Folder {
    /// Makes one in `parent`, on an export that is mounted; folders there whose process is gone are removed before.
    ///
    /// # Errors
    /// What the server says.
    pub fn create(parent: &Path) -> Result<Self, LabError> {
        let storage = mounted(parent)?;
        sweep(&storage, parent);
        let mut rng = Rng::new(Seed::draw());
        let mut last = None;
        for _ in 0..TRIES {
            let path = parent.join(format!("{PREFIX}{:016x}", rng.next_u64()));
            storage.create_directory(&path)?;
            match storage.lock(&path.join(LOCK)) {
                Ok(lock) => return Ok(Self { storage, path, lock: Some(lock) }),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| LabError::Target("no folder could be made".into()), LabError::from))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it.
    ///
    /// # Errors
    /// What the server says; the next run there tries again.
    pub fn remove(mut self) -> Result<(), LabError> {
        Ok(self.clear()?)
    }

    fn clear(&mut self) -> Result<(), IoError> {
        if self.lock.is_none() {
            return Ok(());
        }
        empty(&self.storage, &self.path)?;
        self.lock = None;
        self.storage.remove_directory(&self.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Who wanted to know has asked for it.
        let _ = self.clear();
    }
}

/// Removes everything in `directory` but a lock at its top.
fn empty(storage: &Storage, directory: &Path) -> Result<(), IoError> {
    for path in storage.list(directory)? {
        if path.file_name().is_some_and(|name| name == LOCK) {
            continue;
        }
        let Err(error) = storage.remove(&path) else { continue };
        // What is no directory says itself why it stays.
        if storage.list(&path).is_err() {
            return Err(error);
        }
        empty(storage, &path)?;
        storage.remove_directory(&path)?;
    }
    Ok(())
}

/// Removes what killed runs left. What cannot be removed stays: it is no reason not to measure.
fn sweep(storage: &Storage, parent: &Path) {
    let ours = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    };
    for path in storage.list(parent).unwrap_or_default().into_iter().filter(ours) {
        if let Ok(lock) = storage.lock(&path.join(LOCK)) {
            let emptied = empty(storage, &path);
            drop(lock);
            if emptied.is_ok() {
                let _ = storage.remove_directory(&path);
            }
        }
    }
}
