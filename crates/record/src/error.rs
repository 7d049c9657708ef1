//! Why a record could not be written or read. Each message says what was seen and what to do.

use std::path::PathBuf;
use thiserror::Error;

/// An error of a record. The sentences are for people; the variants are for programs.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A record is never overwritten.
    #[error("{} exists already and a record is never overwritten; choose another name or move it away", .0.display())]
    Exists(PathBuf),
    /// Nothing is there.
    #[error("there is no record at {}; `redoubt report last` takes the newest run", .0.display())]
    Missing(PathBuf),
    /// The file is something else.
    #[error("{} is not a record of Redoubt: {why}; a record is the .redoubt file that a run names at its end", path.display())]
    NotARecord {
        /// The file.
        path: PathBuf,
        /// What was seen instead.
        why: String,
    },
    /// The file comes from a later Redoubt.
    #[error("{} was written with schema {found}, this Redoubt reads up to {known}; read it with the Redoubt that wrote it or a newer one", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The operating system refused.
    #[error("the record {} could not be {act}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// `created`, `exported` ….
        act: &'static str,
        /// With the errno.
        cause: std::io::Error,
    },
    /// SQLite refused.
    #[error("the record {} could not be {act}: {cause}{}", path.display(), advice(cause))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// `written`, `read` ….
        act: &'static str,
        /// SQLite's words and code.
        cause: rusqlite::Error,
    },
    /// Evidence came for a visit that is sealed (or was never begun).
    #[error(
        "visit {0} is not open: its hash is computed when it ends, and rows that come later would break it"
    )]
    VisitNotOpen(i64),
    /// Evidence came for a phase that was never kept.
    #[error("phase {0} is not open: it was never written")]
    NoSuchPhase(i64),
    /// A plan or visit is not what it was when it was sealed.
    #[error("{} was changed after the run: {row} does not match its hash", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// `plan 1`, `visit 7`.
        row: String,
    },
    /// No run has that name.
    #[error("no run is called {name:?} in {}; give a path, `last`, or the beginning of a name{}", directory.display(), known(names))]
    NoSuchRun {
        /// As typed.
        name: String,
        /// Where the runs are.
        directory: PathBuf,
        /// The newest few that exist.
        names: Vec<String>,
    },
    /// Several runs have that name.
    #[error("{name:?} fits several runs; type more of one of these: {}", names.join(", "))]
    Ambiguous {
        /// As typed.
        name: String,
        /// What it may mean.
        names: Vec<String>,
    },
}

/// What to do about the SQLite errors that a user can do something about.
fn advice(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseCorrupt, DiskFull, PermissionDenied, ReadOnly,
    };
    match error.sqlite_error_code() {
        Some(DiskFull) => "; make room, what was written before is safe",
        Some(CannotOpen | PermissionDenied | ReadOnly) => {
            "; check the permissions, or copy it with its -wal file to a folder that you can write in"
        }
        Some(DatabaseBusy) => "; another program holds it, close that and try again",
        Some(DatabaseCorrupt) => "; `sqlite3 FILE .recover` saves what is left",
        _ => "",
    }
}

fn known(names: &[String]) -> String {
    if names.is_empty() { " (there are none yet)".into() } else { format!(" of: {}", names.join(", ")) }
}
