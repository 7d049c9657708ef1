//! Where the files of a private server lie: in its folder, and, for classes that have a place of their own, in folders there.
//!
//! Each folder is known to the journal (`host::server`), the one that the server starts in last: an undo ends the server before it
//! takes its files.

use super::{DATA, Kind};
use crate::LabError;
use crate::factor::FileClass;
use engine::Placement;
use host::journal::Journal;
use host::server::{ServerFolder, User};
use io::{Access, File};
use std::path::{Path, PathBuf};

/// In a folder of its own: the files of a class.
const FILES: &str = "files";

/// Paths that a server is told.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Socket, log, process number.
    pub(super) main: PathBuf,
    /// The data directory.
    pub(super) data: PathBuf,
    /// Tables, where they lie elsewhere than the data directory (PostgreSQL).
    pub(super) tables: Option<PathBuf>,
    /// Undo, where it lies elsewhere (MariaDB).
    pub(super) undo: Option<PathBuf>,
    /// Temporary files, where they lie elsewhere.
    pub(super) temp: Option<PathBuf>,
    /// Redo, where it lies elsewhere.
    pub(super) redo: Option<PathBuf>,
}

impl Layout {
    /// Everything in one folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        let (main, data) = (folder.to_owned(), folder.join(DATA));
        Self { main, data, tables: None, undo: None, temp: None, redo: None }
    }
}

/// The folders of a server.
pub(super) struct Files {
    /// Where it starts; socket and log lie here, and every class without a place of its own.
    main: ServerFolder,
    /// Classes that lie elsewhere, each with the directory of its files.
    elsewhere: Vec<(FileClass, ServerFolder, PathBuf)>,
    kind: Kind,
}

impl Kind {
    /// Why files of `class` cannot be placed by themselves; none where they can.
    pub fn cannot_place(self, class: FileClass) -> Option<&'static str> {
        match (self, class) {
            (Self::Postgres, FileClass::Undo) => {
                Some("PostgreSQL has no undo: old versions of rows stay in the table")
            }
            (Self::Mariadb, FileClass::Control) => Some(
                "MariaDB has no control file: what it holds is in the header of its redo log and in ibdata1",
            ),
            _ => None,
        }
    }
}

impl Files {
    /// Makes the folders: the server's own in `parent`, and one in each place of `placement` for what the product can place there.
    pub(super) fn create(
        kind: Kind,
        parent: &Path,
        placement: &Placement,
        user: Option<User>,
        journal: &mut Journal,
    ) -> Result<Self, LabError> {
        let places = [
            (FileClass::Data, placement.data.as_deref()),
            (FileClass::Undo, placement.undo.as_deref()),
            (FileClass::Temp, placement.temp.as_deref()),
            (FileClass::Redo, placement.redo.first().map(PathBuf::as_path)),
            (FileClass::Control, placement.control.as_deref()),
        ];
        let mut elsewhere = Vec::new();
        for (class, place) in places {
            let Some(place) = place.filter(|place| *place != parent && kind.cannot_place(class).is_none())
            else {
                continue;
            };
            let folder =
                ServerFolder::create(place, &format!("{}-{class}", kind.name()), user.clone(), journal)?;
            let files = folder.directory(FILES)?;
            elsewhere.push((class, folder, files));
        }
        Ok(Self { main: ServerFolder::create(parent, kind.name(), user, journal)?, elsewhere, kind })
    }

    /// Where it starts.
    pub(super) fn main(&self) -> &ServerFolder {
        &self.main
    }

    /// Where everything lies.
    pub(super) fn layout(&self) -> Layout {
        let of = |class| self.of(class).map(Path::to_owned);
        let tables = if self.kind == Kind::Postgres { of(FileClass::Data) } else { None };
        Layout {
            data: self.data_directory(),
            tables,
            undo: of(FileClass::Undo),
            temp: of(FileClass::Temp),
            redo: of(FileClass::Redo),
            ..Layout::in_folder(self.main.path())
        }
    }

    /// The directory of `class`, where it has one of its own.
    fn of(&self, class: FileClass) -> Option<&Path> {
        self.elsewhere.iter().find(|(known, ..)| *known == class).map(|(.., files)| files.as_path())
    }

    /// What the product calls its data directory: PostgreSQL's holds `pg_control`, the catalog and the commit log, and the tables
    /// unless these have a tablespace elsewhere; MariaDB's holds the tables.
    fn data_directory(&self) -> PathBuf {
        let class = match self.kind {
            Kind::Postgres => FileClass::Control,
            Kind::Mariadb => FileClass::Data,
        };
        self.of(class).map_or_else(|| self.main.path().join(DATA), Path::to_owned)
    }

    /// Every folder, the one that ends the server first.
    pub(super) fn folders(&self) -> impl Iterator<Item = &ServerFolder> {
        std::iter::once(&self.main).chain(self.elsewhere.iter().rev().map(|(_, folder, _)| folder))
    }

    /// Nothing of it is in the page cache afterwards; nobody may have it open.
    pub(super) fn drop_from_page_cache(&self) -> Result<(), LabError> {
        let plain = Access { read: true, write: false, direct: false, dsync: false };
        for path in self.folders().flat_map(|folder| files_below(folder.path())) {
            // Symlinks and files that vanish are none of ours.
            if let Ok(file) = File::open(&path, plain) {
                file.drop_cache()?;
            }
        }
        Ok(())
    }
}

/// Regular files, directories gone through; links are not followed.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&entry.path())),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}
