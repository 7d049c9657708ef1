//! A name space of files: what the engine creates, opens and removes, on real storage or a simulated one.
//!
//! [`RealStorage`] is the file system (and block devices); [`crate::sim::SimStorage`] keeps everything in memory and
//! crashes, lies and fails on purpose. The engine knows only the trait.

use crate::error::IoError;
use crate::mode::{Access, Api};
use crate::queue::Queue;
use crate::sim::Disk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files by name. All paths are absolute.
pub trait Storage: Send + Sync {
    /// Creates a new file of `bytes` zeroes, really written (no holes, no unwritten extents) and durable, its name
    /// included, when this returns. Never overwrites. A block device is not created but taken as it is: it must be at
    /// least `bytes` long.
    ///
    /// # Errors
    /// [`IoError::Exists`], [`IoError::NoSpace`] (nothing is left behind), and those of [`crate::File::create_new`].
    fn create(&self, path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>, IoError>;

    /// Opens an existing file or block device.
    ///
    /// # Errors
    /// Those of [`crate::File::open`].
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn Disk>, IoError>;

    /// Makes an open file longer: the new bytes are written zeroes and durable when this returns.
    ///
    /// # Errors
    /// [`IoError::NoSpace`]: the file keeps its old size. A block device cannot grow.
    fn extend(&self, path: &Path, bytes: u64) -> Result<(), IoError>;

    /// Removes a file (never a block device), durable when this returns.
    ///
    /// # Errors
    /// [`IoError::NoSuchFile`], [`IoError::Permission`], …
    fn remove(&self, path: &Path) -> Result<(), IoError>;

    /// Replaces the small file `path` as a whole: after a crash it has the old content or the new, never a mixture.
    /// Creates it when it is absent.
    ///
    /// # Errors
    /// What the file system says.
    fn replace(&self, path: &Path, content: &[u8]) -> Result<(), IoError>;

    /// The content of a small file.
    ///
    /// # Errors
    /// [`IoError::NoSuchFile`], …
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError>;

    /// Appends a line of text to a log that people read (the alert log); not durable, never fails the caller.
    fn append_line(&self, path: &Path, line: &str);

    /// Whether something is there.
    fn exists(&self, path: &Path) -> bool;

    /// Creates a directory and its parents; fine when it is there.
    ///
    /// # Errors
    /// What the file system says.
    fn create_directory(&self, path: &Path) -> Result<(), IoError>;

    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// What the file system says.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, IoError>;

    /// Opens a queue over `files`, which must come from this storage; requests name them by index.
    ///
    /// # Errors
    /// Those of [`crate::open_queue`].
    fn open_queue(
        &self,
        api: Api,
        depth: u32,
        buffer_bytes: u32,
        files: &[Arc<dyn Disk>],
    ) -> Result<Box<dyn Queue>, IoError>;
}
