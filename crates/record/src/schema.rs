//! The file: how it is created, and how it is recognised.

use crate::RecordError;
use crate::rows::TABLES;
use crate::table::{Column, Description, Kind};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The schema that this crate writes; it reads this one and all before it. Rises when a column changes its meaning
/// or its place.
pub const SCHEMA_VERSION: i64 = 1;

/// `Rdbt`: marks the file as ours in SQLite's header (offset 68), where `file` shows it.
const APPLICATION_ID: i64 = 0x5264_6274;

/// Creates the file with empty tables.
///
/// 1. `create_new`, so that two runs, or a symlink, cannot make us write into a file that is not ours.
/// 2. The tables in one transaction with a rollback journal: they are in the file itself before
/// 3. the write-ahead log is switched on. From here a kill leaves a file and a log that SQLite reads together.
///
/// A log left by another file of this name is refused first: SQLite would play it into ours.
pub(crate) fn create(path: &Path) -> Result<Connection, RecordError> {
    for leftover in [beside(path, "-wal"), beside(path, "-journal")] {
        if leftover.exists() {
            return Err(RecordError::Exists(leftover));
        }
    }
    let io = |source| RecordError::Io { path: path.into(), act: "created", source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(io)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => RecordError::Exists(path.into()),
        _ => io(source),
    })?;
    initialise(path).map_err(|source| RecordError::Sqlite { path: path.into(), act: "created", source })
}

fn initialise(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(Duration::from_secs(10))?;
    let tables: String = TABLES.iter().map(create_table).collect();
    db.execute_batch(&format!(
        "BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; {tables} COMMIT;"
    ))?;
    // Checkpoints sync the disk, perhaps the very one that is measured: the writer places them between visits.
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON;",
    )?;
    db.set_prepared_statement_cache_capacity(2 * TABLES.len());
    Ok(db)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(suffix);
    name.into()
}

fn create_table(table: &Description) -> String {
    let columns: Vec<String> = table.all_columns().map(|column| declaration(&column)).collect();
    let index = match table.owner {
        Some(owner) => format!("CREATE INDEX {0}_{owner} ON {0} ({owner});\n", table.name),
        None => String::new(),
    };
    format!("CREATE TABLE {} (\n  {}\n);\n{index}", table.name, columns.join(",\n  "))
}

fn declaration(column: &Column) -> String {
    if column.name == "id" {
        return "id INTEGER PRIMARY KEY".into();
    }
    let kind = match column.kind {
        Kind::Text | Kind::Json => "TEXT",
        Kind::Integer | Kind::Unsigned | Kind::Boolean => "INTEGER",
        Kind::Real => "REAL",
        Kind::Blob => "BLOB",
    };
    let presence = if column.nullable { "" } else { " NOT NULL" };
    let owner = column.name.strip_suffix("_id").filter(|name| TABLES.iter().any(|table| table.name == *name));
    let reference = owner.map_or(String::new(), |table| format!(" REFERENCES {table}(id)"));
    format!("\"{}\" {kind}{presence}{reference}", column.name)
}

/// Opens a record for reading, and only a record.
pub(crate) fn open(path: &Path) -> Result<Connection, RecordError> {
    let not = |why: &str| RecordError::NotARecord { path: path.into(), why: why.into() };
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(RecordError::Missing(path.into())),
        Err(source) => return Err(RecordError::Io { path: path.into(), act: "opened", source }),
        Ok(meta) if meta.is_dir() => return Err(not("it is a folder")),
        Ok(meta) if !meta.is_file() => return Err(not("it is not a regular file")),
        Ok(meta) if meta.len() == 0 => return Err(not("it is empty (killed before its first row?)")),
        Ok(_) => {}
    }
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not("it is no SQLite file"),
        _ => RecordError::Sqlite { path: path.into(), act: "opened", source },
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(failed)?;
    db.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
    let pragma = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed);
    if pragma("application_id")? != APPLICATION_ID {
        return Err(not("it is an SQLite file of another program"));
    }
    match pragma("user_version")? {
        1..=SCHEMA_VERSION => Ok(db),
        found if found > SCHEMA_VERSION => {
            Err(RecordError::NewerSchema { path: path.into(), found, known: SCHEMA_VERSION })
        }
        found => Err(not(&format!("its schema version is {found}"))),
    }
}
