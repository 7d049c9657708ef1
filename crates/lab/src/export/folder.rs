//! A directory of our own on an export, removed with everything in it.
//!
//! The journal notes it before it is made, so `redoubt cleanup` removes what a killed run left ([`remove_left`]). The server may be away then,
//! or the journal be on another machine: therefore each folder has a lock in it that names its process, and whoever makes the next one on that
//! export removes those whose process is gone.

use super::{Export, Source, in_force};
use crate::LabError;
use host::journal::{CleanupResult, Journal, Step, Undo};
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
    /// In the journal.
    step: Option<Step>,
}

impl Folder {
    /// Makes one in `parent`, on an export that is mounted; folders there whose process is gone are removed before. `journal`: none where
    /// the server is this process.
    ///
    /// # Errors
    /// What the server says; the journal cannot be written.
    pub fn create(parent: &Path, mut journal: Option<&mut Journal>) -> Result<Self, LabError> {
        let (source, storage) =
            in_force(parent).ok_or_else(|| IoError::NoSuchFile { path: parent.to_path_buf() })?;
        sweep(&storage, parent);
        let mut rng = Rng::new(Seed::draw());
        let mut last = None;
        for _ in 0..TRIES {
            let path = parent.join(format!("{PREFIX}{:016x}", rng.next_u64()));
            let undo = || Undo::RemoveOnServer { folder: path.clone(), by: source.words() };
            let step = journal.as_deref_mut().map(|journal| journal.will(undo())).transpose()?;
            let made = storage.create_directory(&path);
            match made.and_then(|()| storage.lock(&path.join(LOCK))) {
                Ok(lock) => return Ok(Self { storage, path, lock: Some(lock), step }),
                Err(error) => last = Some(error),
            }
            // There is nothing, or an empty directory.
            let _ = storage.remove_directory(&path);
            if let Some((journal, step)) = journal.as_deref_mut().zip(step) {
                journal.settle(step)?;
            }
        }
        Err(last.map_or_else(|| LabError::Target("no folder could be made".into()), LabError::from))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and notes so.
    ///
    /// # Errors
    /// What the server says; it stays in the journal.
    pub fn remove(mut self, journal: &mut Journal) -> Result<(), LabError> {
        self.clear()?;
        Ok(self.step.map_or(Ok(()), |step| journal.settle(step))?)
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

fn is_ours(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
}

/// Removes what killed runs left. What cannot be removed stays: it is no reason not to measure.
fn sweep(storage: &Storage, parent: &Path) {
    for path in storage.list(parent).unwrap_or_default().into_iter().filter(|path| is_ours(path)) {
        let _ = take_away(storage, &path);
    }
}

/// Removes a folder whose process is gone.
fn take_away(storage: &Storage, path: &Path) -> Result<(), IoError> {
    let lock = storage.lock(&path.join(LOCK))?;
    let emptied = empty(storage, path);
    drop(lock);
    emptied?;
    storage.remove_directory(path)
}

/// Removes what a killed run noted in its journal: `folder`, on the server that `by` says how to reach ([`Source::words`]).
pub fn remove_left(folder: &Path, by: &str) -> CleanupResult {
    let failed = |error: &dyn std::fmt::Display| CleanupResult::Failed(error.to_string());
    if !is_ours(folder) {
        return CleanupResult::LeftAlone(format!("no directory of ours begins with anything but {PREFIX}"));
    }
    let export = match Source::read(by).map_err(LabError::Target).and_then(|source| Export::of(&source, None))
    {
        Ok(export) => export,
        Err(error) => return failed(&error),
    };
    let storage = &export.storage;
    match storage.list(folder) {
        Err(IoError::NoSuchFile { .. }) => return CleanupResult::AlreadyGone,
        Err(error) => return failed(&error),
        Ok(_) => {}
    }
    match take_away(storage, folder) {
        Ok(()) => CleanupResult::Undone,
        Err(error @ (IoError::Locked { .. } | IoError::Elsewhere { call: "lock", .. })) => {
            CleanupResult::LeftAlone(error.to_string())
        }
        Err(error) => failed(&error),
    }
}
