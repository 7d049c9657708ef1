//! A name space of files: what the engine creates, opens and removes, on real storage or a simulated one.
//!
//! [`RealStorage`] is the file system (and block devices); [`crate::sim::SimStorage`] keeps everything in memory and
//! crashes, lies and fails on purpose. The engine knows only the trait.

mod owner;
mod real;

pub use owner::Ownership;
pub use real::RealStorage;

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
    /// least `bytes` long and blank, by which is meant its first MiB.
    ///
    /// # Errors
    /// [`IoError::Exists`], [`IoError::NotBlank`], [`IoError::NoSpace`] (nothing is left behind), and those of
    /// [`crate::File::create_new`].
    fn create(&self, path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>, IoError>;

    /// Opens an existing file or block device.
    ///
    /// # Errors
    /// Those of [`crate::File::open`].
    fn open(&self, path: &Path, access: Access) -> Result<Arc<dyn Disk>, IoError>;

    /// Makes an open file longer, from `from` bytes (its size as its owner knows it; an extension that the power ended may
    /// have left more) to `to`: the new bytes are written zeroes and durable when this returns.
    ///
    /// # Errors
    /// [`IoError::NoSpace`]: the file is `from` bytes long again. A block device cannot grow beyond its end.
    fn extend(&self, path: &Path, from: u64, to: u64) -> Result<(), IoError>;

    /// Removes a file, durable when this returns. A block device stays, but is blank afterwards.
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

    /// Whether a block device is there.
    fn is_device(&self, path: &Path) -> bool;

    /// Takes the lock that is named by the file `path`, made when it is absent, until the result is dropped. Nobody else has it
    /// then: no other process of this machine, no other owner in this one. It goes with its process, however that ends.
    ///
    /// # Errors
    /// [`IoError::Locked`] at once when somebody has it, with who.
    fn lock(&self, path: &Path) -> Result<StorageLock, IoError>;

    /// Creates a directory and its parents, durable when this returns; fine when it is there.
    ///
    /// # Errors
    /// What the file system says.
    fn create_directory(&self, path: &Path) -> Result<(), IoError>;

    /// What is in a directory: whole paths, sorted.
    ///
    /// # Errors
    /// What the file system says.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>, IoError>;

    /// Whose `path` is, its mode, and as whom this process runs: for messages that a permission is missing. None where there is
    /// nothing to say.
    fn ownership(&self, _path: &Path) -> Option<Ownership> {
        None
    }

    /// Opens a queue over `files`, which must come from this storage; requests name them by index.
    ///
    /// # Errors
    /// Those of [`crate::open_queue`].
    ///
    /// # Panics
    /// With a file of another storage, with none, with depth 0: bugs.
    fn open_queue(
        &self,
        api: Api,
        depth: u32,
        buffer_bytes: u32,
        files: &[Arc<dyn Disk>],
    ) -> Result<Box<dyn Queue>, IoError>;
}

/// A lock that is held as long as this lives.
pub struct StorageLock {
    _held: Box<dyn Send + Sync>,
}

impl StorageLock {
    /// Held by whatever `held` is.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

#[cfg(test)]
mod tests;
