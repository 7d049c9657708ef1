//! Files of a database inside a run's workspaces: every name is noted as ours before the file is made.

use host::workspace::Workspace;
use io::sim::Disk;
use io::{Access, Api, IoError, Ownership, Queue, RealStorage, Storage, StorageLock};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file system, with a file's workspace told before anything is created in it: what a killed run leaves, cleanup removes.
pub struct OwnedStorage {
    workspaces: Vec<Arc<Workspace>>,
    noted: Mutex<BTreeSet<PathBuf>>,
}

impl OwnedStorage {
    /// For files in `workspaces` (and others, which are passed on).
    pub fn new(workspaces: Vec<Arc<Workspace>>) -> Self {
        Self { workspaces, noted: Mutex::default() }
    }

    /// Notes the name, and the one under which the engine drafts a replacement.
    fn note(&self, path: &Path) -> Result<(), IoError> {
        let ours = |workspace: &&Arc<Workspace>| path.parent() == Some(workspace.path());
        let Some(workspace) = self.workspaces.iter().find(ours) else { return Ok(()) };
        let Some(name) = path.file_name().and_then(|n| n.to_str()) else { return Ok(()) };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        for name in [name.to_owned(), format!(".{name}.new")] {
            let file = path.with_file_name(&name);
            if !noted.contains(&file) {
                workspace.list(&name).map_err(|_| IoError::NoSpace {
                    path: path.to_owned(),
                    call: "note in the workspace",
                    errno: 28,
                })?;
                noted.insert(file);
            }
        }
        Ok(())
    }
}

impl Storage for OwnedStorage {
    fn create(&self, path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        self.note(path)?;
        RealStorage.create(path, bytes, access)
    }
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn Disk>, IoError> {
        RealStorage.open(path, access)
    }
    fn extend(&self, path: &Path, from: u64, to: u64) -> Result<(), IoError> {
        RealStorage.extend(path, from, to)
    }
    fn remove(&self, path: &Path) -> Result<(), IoError> {
        RealStorage.remove(path)
    }
    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), IoError> {
        self.note(path)?;
        RealStorage.replace(path, content)
    }
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        RealStorage.read(path)
    }
    fn append_line(&self, path: &Path, line: &str) {
        if self.note(path).is_ok() {
            RealStorage.append_line(path, line);
        }
    }
    fn exists(&self, path: &Path) -> bool {
        RealStorage.exists(path)
    }
    fn is_device(&self, path: &Path) -> bool {
        RealStorage.is_device(path)
    }
    fn lock(&self, path: &Path) -> Result<StorageLock, IoError> {
        self.note(path)?;
        RealStorage.lock(path)
    }
    fn create_directory(&self, path: &Path) -> Result<(), IoError> {
        RealStorage.create_directory(path)
    }
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, IoError> {
        RealStorage.list(directory)
    }
    fn ownership(&self, path: &Path) -> Option<Ownership> {
        RealStorage.ownership(path)
    }
    fn open_queue(
        &self,
        api: Api,
        depth: u32,
        buffer_bytes: u32,
        files: &[Arc<dyn Disk>],
    ) -> Result<Box<dyn Queue>, IoError> {
        RealStorage.open_queue(api, depth, buffer_bytes, files)
    }
}
