//! The files of a database: control file, data files in tablespaces, temp files; redo files are `redo`'s.

use crate::page::PageId;
use io::sim::Disk;
use std::path::PathBuf;
use std::sync::Arc;

/// The open data and temp files, by absolute file number.
pub struct FileSet {}

impl FileSet {
    /// The file of a page, with its path, for an error's words.
    ///
    /// # Panics
    /// When there is no such file: a damaged address, a bug.
    pub fn of(&self, _id: PageId) -> (Arc<dyn Disk>, PathBuf) {
        unimplemented!()
    }
}
