//! What a database is made with, and where its files go.

use crate::Result;
use crate::files::admin::FileSpec;
use crate::files::control::{FIRST_COPY, TablespaceKind};
use io::Storage;
use std::path::{Path, PathBuf};

/// What a new database is made with. To open one, only directory and parameters matter.
#[derive(Clone, Debug)]
pub struct InstanceConfig {
    /// Where its files go unless placed one by one; absolute. Control file, SYSTEM and alert log are always here.
    pub directory: PathBuf,
    /// Which files go elsewhere.
    pub placement: Placement,
    /// Parameters by name. At creation they are kept in the control file; at an open they count for this run alone.
    pub parameters: Vec<(String, String)>,
    /// First size of the file of USERS, bytes; it grows by itself.
    pub data_bytes: u64,
    /// First size of the file of UNDO, bytes; it grows by itself.
    pub undo_bytes: u64,
    /// First size of the file of TEMP, bytes; it grows by itself.
    pub temp_bytes: u64,
    /// Size of each redo group, bytes.
    pub redo_bytes: u64,
    /// How many redo groups; at least 2.
    pub redo_groups: u32,
}

/// Where classes of files go. Each place is a directory, or a block device for one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The file of USERS.
    pub data: Option<PathBuf>,
    /// The file of UNDO.
    pub undo: Option<PathBuf>,
    /// The file of TEMP.
    pub temp: Option<PathBuf>,
    /// Redo groups: one place for all, or several that are filled in turn. A block device takes one group.
    pub redo: Vec<PathBuf>,
    /// The second copy of the control file.
    pub control: Option<PathBuf>,
}

const MIB: u64 = 1 << 20;
/// First size of SYSTEM: catalog and little else.
const SYSTEM_BYTES: u64 = 8 * MIB;
/// By how much files grow: large enough that growing is rare, small enough to be short.
const NEXT_BYTES: u64 = 16 * MIB;

/// A tablespace that every database begins with.
pub(super) struct FirstTablespace {
    pub(super) name: &'static str,
    pub(super) kind: TablespaceKind,
    pub(super) file: FileSpec,
}

impl InstanceConfig {
    /// The usual sizes: 64 MiB of data, 32 MiB of undo, 16 MiB of temp, three redo groups of 64 MiB.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            placement: Placement::default(),
            parameters: Vec::new(),
            data_bytes: 64 * MIB,
            undo_bytes: 32 * MIB,
            temp_bytes: 16 * MIB,
            redo_bytes: 64 * MIB,
            redo_groups: 3,
        }
    }

    /// The same with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where the first copy of the control file is.
    pub fn control_path(&self) -> PathBuf {
        self.directory.join(FIRST_COPY)
    }

    pub(super) fn control_paths(&self, storage: &dyn Storage) -> Vec<PathBuf> {
        let second = self.place(storage, self.placement.control.as_deref(), "control02.ctl");
        vec![self.control_path(), second]
    }

    /// A class's file: in its directory, or the device itself.
    fn place(&self, storage: &dyn Storage, place: Option<&Path>, name: &str) -> PathBuf {
        match place {
            None => self.directory.join(name),
            Some(place) if storage.is_device(place) => place.to_path_buf(),
            Some(directory) => directory.join(name),
        }
    }

    /// In the order of their numbers.
    pub(super) fn tablespaces(&self, storage: &dyn Storage) -> [FirstTablespace; 4] {
        let file = |place: Option<&Path>, name: &str, bytes: u64| FileSpec {
            path: self.place(storage, place, name),
            bytes,
            next_bytes: NEXT_BYTES,
            max_bytes: u64::MAX,
        };
        let placement = &self.placement;
        [
            FirstTablespace {
                name: "SYSTEM",
                kind: TablespaceKind::Permanent,
                file: file(None, "system01.dbf", SYSTEM_BYTES),
            },
            FirstTablespace {
                name: "UNDO",
                kind: TablespaceKind::Undo,
                file: file(placement.undo.as_deref(), "undo01.dbf", self.undo_bytes),
            },
            FirstTablespace {
                name: "TEMP",
                kind: TablespaceKind::Temporary,
                file: file(placement.temp.as_deref(), "temp01.dbf", self.temp_bytes),
            },
            FirstTablespace {
                name: "USERS",
                kind: TablespaceKind::Permanent,
                file: file(placement.data.as_deref(), "users01.dbf", self.data_bytes),
            },
        ]
    }

    /// One path for each redo group.
    pub(super) fn redo_paths(&self, storage: &dyn Storage) -> Vec<PathBuf> {
        let places = &self.placement.redo;
        let place =
            |number: u32| places.get((number as usize - 1) % places.len().max(1)).map(PathBuf::as_path);
        let path = |number| self.place(storage, place(number), &format!("redo{number:02}.log"));
        (1..=self.redo_groups).map(path).collect()
    }

    /// Makes the directories that the files go to.
    pub(super) fn make_directories(&self, storage: &dyn Storage) -> Result<()> {
        storage.create_directory(&self.directory)?;
        let p = &self.placement;
        let one = [&p.data, &p.undo, &p.temp, &p.control].into_iter().flatten();
        for place in one.chain(&p.redo) {
            if !storage.is_device(place) {
                storage.create_directory(place)?;
            }
        }
        Ok(())
    }
}
