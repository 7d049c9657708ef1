//! The files of a database: control file, data files in tablespaces, temp files; redo files are `redo`'s.
//!
//! [`FileSet`] is the list of open data and temp files, by absolute number. Looking a file up takes no lock. Files are added,
//! grown and dropped in `admin`, each step recorded in the [`control`] file; their first block is `header`'s; [`iostat`] counts
//! their I/O; [`written`] and [`read_back`] find writes that never arrived.

pub mod admin;
pub mod control;
pub mod header;
pub mod iostat;
pub mod read_back;
pub mod written;

use crate::page::PageId;
use crate::{EngineError, Result};
use control::{FileRecord, TablespaceKind};
use io::sim::Disk;
use io::{Access, Storage};
use iostat::FileStatistics;
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use written::WriteNotes;

/// Kinds of files, with the numbers of `v$iostat_file.filetype_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileType {
    /// Whatever has no row of its own: the doublewrite file.
    Other = 0,
    /// `Control File`.
    Control = 1,
    /// `Data File`.
    Data = 2,
    /// `Log File`.
    Log = 3,
    /// `Temp File`.
    Temp = 6,
    /// A file or device of the flash cache: `v$flashfilestat` shows it, `v$iostat_file` does not.
    Flash = 255,
}

impl FileType {
    /// `v$iostat_file.filetype_name`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "Other",
            Self::Control => "Control File",
            Self::Data => "Data File",
            Self::Log => "Log File",
            Self::Temp => "Temp File",
            Self::Flash => "Flash Cache",
        }
    }
}

/// An open data or temp file.
pub struct DataFile {
    /// Absolute file number.
    pub number: u16,
    /// Number of its tablespace.
    pub tablespace: u16,
    /// What its tablespace is for.
    pub kind: TablespaceKind,
    /// Where it is.
    pub path: PathBuf,
    /// Its I/O.
    pub statistics: FileStatistics,
    /// What was written to its blocks, with `_verify_writes`.
    pub written: Option<WriteNotes>,
    /// Whoever writes holds it when `filesystemio_options = directio`: one writer of a file at a time.
    pub writer: Mutex<()>,
    blocks: AtomicU32,
    /// None when it was dropped: whoever still had the number gets an error, and the space is free.
    disk: RwLock<Option<Arc<dyn Disk>>>,
    /// One grows it at a time.
    growth: Mutex<()>,
}

impl DataFile {
    /// The file itself.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] when it was dropped.
    pub fn disk(&self) -> Result<Arc<dyn Disk>> {
        self.disk.read().clone().ok_or_else(|| EngineError::NoSuch {
            kind: "file",
            name: self.path.display().to_string(),
            hint: ": it was dropped".into(),
        })
    }

    /// Its size, header block included.
    pub fn blocks(&self) -> u32 {
        self.blocks.load(Ordering::Acquire)
    }

    /// `Data File` or `Temp File`.
    pub fn file_type(&self) -> FileType {
        if self.kind == TablespaceKind::Temporary { FileType::Temp } else { FileType::Data }
    }
}

const SHELF: usize = 256;

/// 256 files with neighbouring numbers.
type Shelf = [OnceLock<Arc<DataFile>>; SHELF];

/// The open data and temp files, by absolute file number.
pub struct FileSet {
    storage: Arc<dyn Storage>,
    access: Access,
    block_bytes: u32,
    /// `_verify_writes`.
    verify: bool,
    /// A number is used once in a database's life, so a place is filled once and never emptied: readers need no lock.
    shelves: Box<[OnceLock<Box<Shelf>>]>,
    /// Redo files, all together.
    pub log: Arc<FileStatistics>,
    /// Files without a row of their own.
    pub other: FileStatistics,
}

impl FileSet {
    /// No files yet.
    pub fn new(storage: Arc<dyn Storage>, access: Access, block_bytes: u32) -> Self {
        let shelves = (0..=usize::from(u16::MAX) / SHELF).map(|_| OnceLock::new()).collect();
        Self {
            storage,
            access,
            block_bytes,
            verify: false,
            shelves,
            log: Arc::default(),
            other: FileStatistics::default(),
        }
    }

    /// With notes of what is written to each block from now on: `_verify_writes`.
    #[must_use]
    pub fn verifying(self, verify: bool) -> Self {
        Self { verify, ..self }
    }

    /// Where the files are.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// How files are opened: `filesystemio_options`, always durable when a write completes.
    pub fn access(&self) -> Access {
        self.access
    }

    /// `db_block_size`.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// A file by its number; also one that was dropped since the instance started.
    #[inline]
    pub fn get(&self, number: u16) -> Option<&Arc<DataFile>> {
        self.shelves[usize::from(number) / SHELF].get()?[usize::from(number) % SHELF].get()
    }

    /// The file of a page, with its path, for an error's words.
    ///
    /// # Panics
    /// When there is no such file, or it was dropped: a damaged address, a bug.
    pub fn of(&self, id: PageId) -> (Arc<dyn Disk>, PathBuf) {
        let file = self.get(id.file).unwrap_or_else(|| panic!("{id}: there is no such file"));
        (file.disk().unwrap_or_else(|error| panic!("{id}: {error}")), file.path.clone())
    }

    /// All open files, by number.
    pub fn all(&self) -> Vec<Arc<DataFile>> {
        let shelves = self.shelves.iter().filter_map(OnceLock::get);
        let files = shelves.flat_map(|shelf| shelf.iter().filter_map(OnceLock::get));
        files.filter(|file| file.disk.read().is_some()).cloned().collect()
    }

    /// The open files of a tablespace, by number.
    pub fn of_tablespace(&self, tablespace: u16) -> Vec<Arc<DataFile>> {
        let mut files = self.all();
        files.retain(|file| file.tablespace == tablespace);
        files
    }

    fn insert(&self, record: &FileRecord, kind: TablespaceKind, disk: Arc<dyn Disk>) -> Arc<DataFile> {
        let file = Arc::new(DataFile {
            number: record.number,
            tablespace: record.tablespace,
            kind,
            path: record.path.clone(),
            statistics: FileStatistics::default(),
            written: self.verify.then(WriteNotes::default),
            writer: Mutex::new(()),
            blocks: AtomicU32::new(record.blocks),
            disk: RwLock::new(Some(disk)),
            growth: Mutex::new(()),
        });
        let shelf = self.shelves[usize::from(record.number) / SHELF]
            .get_or_init(|| Box::new([const { OnceLock::new() }; SHELF]));
        let fresh = shelf[usize::from(record.number) % SHELF].set(file.clone()).is_ok();
        assert!(fresh, "file number {} is used a second time", record.number);
        file
    }

    /// Opens a file that the control file knows, and looks at its header.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] with what to do, what storage says.
    pub fn open(&self, record: &FileRecord, kind: TablespaceKind, database_id: u64) -> Result<Arc<DataFile>> {
        let disk = self.storage.open(&record.path, self.access)?;
        let needed = u64::from(record.blocks) * u64::from(self.block_bytes);
        if disk.bytes() < needed {
            return Err(damaged(
                &record.path,
                format!(
                    "the file has {} bytes and should have {needed}; it was cut off or replaced: restore it",
                    disk.bytes()
                ),
            ));
        }
        header::check(&*disk, record, kind, database_id, self.block_bytes)?;
        Ok(self.insert(record, kind, disk))
    }

    /// Makes a file of `record.blocks` zeroed blocks with its header, durable when this returns.
    ///
    /// # Errors
    /// What storage says; no file is left behind.
    pub fn create(
        &self,
        record: &FileRecord,
        kind: TablespaceKind,
        database_id: u64,
    ) -> Result<Arc<DataFile>> {
        let bytes = u64::from(record.blocks) * u64::from(self.block_bytes);
        let disk = self.storage.create(&record.path, bytes, self.access)?;
        if let Err(error) = header::write(&*disk, record, kind, database_id, self.block_bytes) {
            drop(disk);
            let _ = self.storage.remove(&record.path);
            return Err(error);
        }
        Ok(self.insert(record, kind, disk))
    }
}

fn damaged(path: &Path, what: String) -> EngineError {
    EngineError::Damaged { path: path.to_path_buf(), what }
}

#[cfg(test)]
mod tests;
