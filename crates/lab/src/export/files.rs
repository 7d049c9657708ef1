//! The files of a load, wherever they are.

use super::{is_export, storage};
use io::sim::Disk;
use io::{Access, Api, File, IoError, Outcome, Queue, QueueOptions, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Open files, all of one storage.
pub struct OpenFiles {
    paths: Vec<PathBuf>,
    place: Place,
}

enum Place {
    Here(Vec<Arc<File>>),
    Export(Arc<dyn Storage>, Vec<Arc<dyn Disk>>),
}

impl OpenFiles {
    /// Opens them.
    ///
    /// # Errors
    /// Those of [`File::open`], or what the server says.
    pub fn open(paths: &[PathBuf], access: Access) -> Result<Self, IoError> {
        let place = if paths.first().is_some_and(|path| is_export(path)) {
            let storage = storage(&paths[0])?;
            let disks = paths.iter().map(|path| storage.open(path, access)).collect::<Result<_, _>>()?;
            Place::Export(storage, disks)
        } else {
            let files = paths.iter().map(|path| Ok(Arc::new(File::open(path, access)?)));
            Place::Here(files.collect::<Result<_, IoError>>()?)
        };
        Ok(Self { paths: paths.to_vec(), place })
    }

    /// One of this machine that is open.
    pub fn of(file: Arc<File>) -> Self {
        Self { paths: vec![file.path().to_path_buf()], place: Place::Here(vec![file]) }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.paths.len()
    }

    /// What one is called.
    pub fn path(&self, index: u32) -> &Path {
        &self.paths[index as usize]
    }

    /// Asks for no read-ahead; an export has none.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn advise_random(&self) -> Result<(), IoError> {
        match &self.place {
            Place::Here(files) => files.iter().try_for_each(|file| file.advise_random()),
            Place::Export(..) => Ok(()),
        }
    }

    /// Open flags of the first, read back from the kernel, or what stands for them.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn flags(&self) -> Result<String, IoError> {
        match &self.place {
            Place::Here(files) => Ok(files[0].flags_in_force()?.text),
            Place::Export(..) => Ok("none: our NFS client, past every cache of this machine".into()),
        }
    }

    /// A queue over all of them. On an export it is a connection of its own, and `api` is none.
    ///
    /// # Errors
    /// Those of [`io::open_queue`], or what the server says.
    pub fn queue(&self, api: Api, depth: u32, buffer_bytes: u32) -> Result<Box<dyn Queue>, IoError> {
        match &self.place {
            Place::Here(files) => io::open_queue(api, QueueOptions::new(depth, buffer_bytes, files.clone())),
            Place::Export(storage, disks) => storage.open_queue(api, depth, buffer_bytes, disks),
        }
    }

    /// How a transfer ended, as a result.
    ///
    /// # Errors
    /// What it means.
    pub fn check(
        &self,
        index: u32,
        call: &'static str,
        offset: u64,
        bytes: u32,
        outcome: Outcome,
    ) -> Result<(), IoError> {
        match &self.place {
            Place::Here(files) => files[index as usize].check(call, offset, bytes, outcome),
            Place::Export(..) => outcome.check(self.path(index), call, offset, bytes),
        }
    }
}
