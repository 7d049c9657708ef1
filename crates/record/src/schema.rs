//! The file: how it is created, and how it is recognised.

use crate::RecordError;
use crate::rows::{Experiment, TABLES};
use crate::table::{Column, Description, Kind, insert};
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The schema that this crate writes; it reads this one and all before it. Rises when a column changes its meaning
/// or its place.
pub const SCHEMA_VERSION: i64 = 2;

/// `Rdbt`: marks the file as ours in SQLite's header (offset 68), where `file` shows it.
const APPLICATION_ID: i64 = 0x5264_6274;

/// A write of so much at the start of a file is done or not, whoever is killed meanwhile.
const PAGE_BYTES: usize = 4096;

/// How long a lock of another connection is waited for: a reader's is held for milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Creates the file with empty tables.
///
/// 1. The tables and the first row are made in memory.
/// 2. `create_new`, so that two runs, or a symlink, cannot make us write into a file that is not ours; then everything, the first
///    page last: a kill leaves a whole record, or in the microseconds before a file that does not say that it is one.
/// 3. The write-ahead log is switched on. From here a kill leaves a file and a log that SQLite reads together.
///
/// A log left by another file of this name is refused first: SQLite would play it into ours.
pub(crate) fn create(path: &Path, experiment: &Experiment) -> Result<Connection, RecordError> {
    for leftover in [beside(path, "-wal"), beside(path, "-journal")] {
        if leftover.exists() {
            return Err(RecordError::Exists(leftover));
        }
    }
    let io = |source| RecordError::Io { path: path.into(), act: "created", cause: source };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(io)?;
    }
    let failed = |source| RecordError::Sqlite { path: path.into(), act: "created", cause: source };
    let image = image(experiment).map_err(failed)?;
    let file =
        OpenOptions::new().write(true).create_new(true).open(path).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => RecordError::Exists(path.into()),
            _ => io(source),
        })?;
    // A kill can cut a long write between two pages.
    let (first, rest) = image.split_at(image.len().min(PAGE_BYTES));
    file.write_all_at(rest, first.len() as u64).map_err(io)?;
    file.write_all_at(first, 0).map_err(io)?;
    connect_writer(path).map_err(failed)
}

/// The bytes of a record with its tables and first row.
fn image(experiment: &Experiment) -> rusqlite::Result<Vec<u8>> {
    let mut db = Connection::open_in_memory()?;
    let tables: String = TABLES.iter().map(create_table).collect();
    db.execute_batch(&format!(
        "BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; {tables} COMMIT;"
    ))?;
    insert(&db, None, experiment)?;
    Ok(db.serialize("main")?.to_vec())
}

pub(crate) fn connect_writer(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(PATIENCE)?;
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
///
/// A run that was killed in the middle of [`create`] or of the last step of `Writer::finish` leaves a rollback journal,
/// which a read-only connection may not play back: a writing one does it first.
pub(crate) fn open(path: &Path) -> Result<Connection, RecordError> {
    recognise(path)?;
    let failed = |source| RecordError::Sqlite { path: path.into(), act: "opened", cause: source };
    let db = match connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(e)
            if e.sqlite_error()
                .is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK) =>
        {
            drop(connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?);
            recognise(path)?;
            connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        }
        other => other,
    }
    .map_err(failed)?;
    add_absent_tables(&db).map_err(failed)?;
    Ok(db)
}

/// Gives a record of an older schema the tables that it does not have yet: empty, in this connection's memory alone.
fn add_absent_tables(db: &Connection) -> rusqlite::Result<()> {
    for table in &TABLES {
        if !db.table_exists(None, table.name)? {
            db.execute_batch(
                &create_table(table)
                    .replacen("CREATE TABLE", "CREATE TEMP TABLE", 1)
                    .replace("CREATE INDEX ", "CREATE INDEX temp."),
            )?;
        }
    }
    Ok(())
}

/// Connects and reads something: SQLite touches neither file nor journal before.
fn connect(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(PATIENCE)?;
    db.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(db)
}

/// Looks at the header of the file, as `file` does: nothing that is not ours is handed to SQLite.
///
/// SQLite's header, numbers big-endian: 0..16 `SQLite format 3\0`, 60..64 user_version, 68..72 application_id.
fn recognise(path: &Path) -> Result<(), RecordError> {
    let not = |why: &str| RecordError::NotARecord { path: path.into(), why: why.into() };
    let io = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => RecordError::Missing(path.into()),
        _ => RecordError::Io { path: path.into(), act: "opened", cause: source },
    };
    let meta = std::fs::metadata(path).map_err(io)?;
    if !meta.is_file() {
        return Err(not(if meta.is_dir() { "it is a folder" } else { "it is not a regular file" }));
    }
    let mut header = Vec::new();
    File::open(path).map_err(io)?.take(72).read_to_end(&mut header).map_err(io)?;
    let number =
        |at: usize| header[at..].first_chunk().map_or(0, |bytes| i64::from(u32::from_be_bytes(*bytes)));
    match header.len() {
        0 => return Err(not("it is empty (killed before its first row?)")),
        72 if header.iter().all(|byte| *byte == 0) => {
            return Err(not("it begins with zeroes (killed before its first row?)"));
        }
        72 if header.starts_with(b"SQLite format 3\0") => {}
        _ => return Err(not("it is no SQLite file")),
    }
    if number(68) != APPLICATION_ID {
        return Err(not("it is an SQLite file of another program"));
    }
    match number(60) {
        1..=SCHEMA_VERSION => Ok(()),
        found => Err(RecordError::NewerSchema { path: path.into(), found, known: SCHEMA_VERSION }),
    }
}
