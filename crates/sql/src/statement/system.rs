//! ALTER, tablespaces, and the ends of transactions.

use super::cursor::Cursor;
use super::{AlterSystem, DataFile, Statement, TablespaceKind, table};
use crate::SqlError;
use crate::token::Kind;
use engine::parameter::Scope;

pub fn alter(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    cursor.expect(&["ALTER"])?;
    if cursor.eat(&["SYSTEM"]) {
        return alter_system(cursor).map(Statement::AlterSystem);
    }
    if cursor.eat(&["DATABASE"]) {
        return alter_database(cursor);
    }
    if cursor.eat(&["TABLESPACE"]) {
        let tablespace = cursor.name("the tablespace's name")?;
        cursor.expect(&["ADD"])?;
        if cursor.eat_one(&["DATAFILE", "TEMPFILE"]).is_none() {
            return Err(cursor.expected("DATAFILE"));
        }
        let files = data_files(cursor)?;
        return Ok(Statement::AddDatafile { tablespace, files });
    }
    if cursor.eat(&["TABLE"]) {
        let name = cursor.name("the table's name")?;
        cursor.expect(&["STORAGE"])?;
        return Ok(Statement::AlterTable { name, caching: table::storage(cursor)? });
    }
    if cursor.eat(&["SESSION"]) {
        return alter_session(cursor);
    }
    Err(cursor.expected("SYSTEM, DATABASE, TABLESPACE, TABLE or SESSION"))
}

fn alter_system(cursor: &mut Cursor<'_>) -> Result<AlterSystem, SqlError> {
    if cursor.eat(&["FLUSH", "BUFFER_CACHE"]) {
        return Ok(AlterSystem::FlushBufferCache);
    }
    if cursor.eat(&["FLUSH", "FLASH_CACHE"]) {
        return Ok(AlterSystem::FlushFlashCache);
    }
    if cursor.eat(&["SWITCH", "LOGFILE"]) {
        return Ok(AlterSystem::SwitchLogfile);
    }
    if cursor.eat(&["CHECKPOINT"]) {
        return Ok(AlterSystem::Checkpoint);
    }
    if !cursor.eat(&["SET"]) {
        return Err(
            cursor.expected("FLUSH BUFFER_CACHE, FLUSH FLASH_CACHE, SWITCH LOGFILE, CHECKPOINT or SET")
        );
    }
    let name = cursor.name("a parameter's name")?;
    cursor.expect_sign("=")?;
    let minus = cursor.eat_sign("-");
    let value = match cursor.next() {
        Some(token) if matches!(token.kind, Kind::Word | Kind::Quoted | Kind::Text | Kind::Number) => {
            token.unquoted()
        }
        _ => return Err(cursor.expected("a value")),
    };
    let mut scope = None;
    if cursor.eat(&["SCOPE"]) {
        cursor.expect_sign("=")?;
        scope = Some(match cursor.eat_one(&["MEMORY", "SPFILE", "BOTH"]) {
            Some("MEMORY") => Scope::Memory,
            Some("SPFILE") => Scope::Spfile,
            Some(_) => Scope::Both,
            None => return Err(cursor.expected("MEMORY, SPFILE or BOTH")),
        });
    }
    Ok(AlterSystem::Set { name, value: if minus { format!("-{value}") } else { value }, scope })
}

/// Oracle 9's way to empty the cache is the one thing of ALTER SESSION that does something here.
fn alter_session(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    cursor.expect(&["SET"])?;
    if cursor.eat(&["EVENTS"]) {
        cursor.eat_sign("=");
        let event = cursor.quoted("an event in single quotes")?;
        let words: Vec<_> = event.split_whitespace().map(str::to_ascii_uppercase).collect();
        let flush = words.iter().any(|word| word == "FLUSH_CACHE");
        return Ok(if flush {
            Statement::AlterSystem(AlterSystem::FlushBufferCache)
        } else {
            Statement::Nothing("this event does nothing here")
        });
    }
    cursor.rest("a parameter")?;
    Ok(Statement::Nothing("sessions have no parameters here"))
}

fn alter_database(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    let add = match cursor.eat_one(&["ADD", "DROP"]) {
        Some(word) => word == "ADD",
        None => return Err(cursor.expected("ADD LOGFILE or DROP LOGFILE")),
    };
    cursor.expect(&["LOGFILE"])?;
    let place = cursor.offset();
    let group = if cursor.eat(&["GROUP"]) { Some(cursor.integer("the group's number")?) } else { None };
    let group = match group {
        Some(group) => Some(
            u32::try_from(group)
                .ok()
                .filter(|&group| group > 0)
                .ok_or_else(|| SqlError::at(place, "groups are numbered from 1"))?,
        ),
        None => None,
    };
    if !add {
        let group = group.ok_or_else(|| cursor.expected("GROUP and its number"))?;
        return Ok(Statement::DropLogfile { group });
    }
    let mut members = Vec::new();
    if cursor.eat_sign("(") {
        members.push(cursor.quoted("a file in single quotes")?);
        while cursor.eat_sign(",") {
            members.push(cursor.quoted("a file in single quotes")?);
        }
        cursor.expect_sign(")")?;
    } else if cursor.peek().is_some_and(|t| t.kind == Kind::Text) {
        members.push(cursor.quoted("a file")?);
    }
    let bytes = if cursor.eat(&["SIZE"]) { Some(cursor.bytes()?) } else { None };
    if cursor.eat(&["BLOCKSIZE"]) {
        cursor.bytes()?;
    }
    // Nothing is overwritten that is not ours, also not with REUSE.
    if cursor.peek().is_some_and(|t| t.is("REUSE")) {
        return Err(SqlError::at(
            cursor.offset(),
            "an existing file is not overwritten; leave REUSE out, take a new name",
        ));
    }
    Ok(Statement::AddLogfile { group, members, bytes })
}

/// `[UNDO | TEMPORARY] TABLESPACE …`; none when it is something else.
pub fn create_tablespace(cursor: &mut Cursor<'_>) -> Result<Option<Statement>, SqlError> {
    cursor.eat_one(&["BIGFILE", "SMALLFILE"]);
    let kind = if cursor.eat(&["TABLESPACE"]) {
        TablespaceKind::Permanent
    } else if cursor.eat(&["UNDO", "TABLESPACE"]) {
        TablespaceKind::Undo
    } else if cursor.eat(&["TEMPORARY", "TABLESPACE"]) {
        TablespaceKind::Temporary
    } else {
        return Ok(None);
    };
    let name = cursor.name("the tablespace's name")?;
    let files = match cursor.eat_one(&["DATAFILE", "TEMPFILE"]) {
        Some(_) => data_files(cursor)?,
        None => vec![DataFile::default()],
    };
    // How extents are managed is the engine's own; Oracle's scripts say it too.
    loop {
        if cursor.eat(&["EXTENT", "MANAGEMENT", "LOCAL"]) {
            if cursor.eat(&["UNIFORM"]) && cursor.eat(&["SIZE"]) {
                cursor.bytes()?;
            }
        } else if !(cursor.eat(&["SEGMENT", "SPACE", "MANAGEMENT", "AUTO"])
            || cursor.eat(&["AUTOALLOCATE"])
            || cursor.eat(&["LOGGING"])
            || cursor.eat(&["ONLINE"]))
        {
            return Ok(Some(Statement::CreateTablespace { name, kind, files }));
        }
    }
}

pub fn drop_tablespace(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    let name = cursor.name("the tablespace's name")?;
    let including_contents = cursor.eat(&["INCLUDING", "CONTENTS"]);
    let and_datafiles = including_contents && cursor.eat(&["AND", "DATAFILES"]);
    cursor.eat(&["CASCADE", "CONSTRAINTS"]);
    Ok(Statement::DropTablespace { name, including_contents, and_datafiles })
}

fn data_files(cursor: &mut Cursor<'_>) -> Result<Vec<DataFile>, SqlError> {
    let mut files = vec![data_file(cursor)?];
    while cursor.eat_sign(",") {
        files.push(data_file(cursor)?);
    }
    Ok(files)
}

fn data_file(cursor: &mut Cursor<'_>) -> Result<DataFile, SqlError> {
    let mut file = DataFile::default();
    if cursor.peek().is_some_and(|t| t.kind == Kind::Text) {
        file.path = Some(cursor.quoted("a path")?);
    }
    if cursor.eat(&["SIZE"]) {
        file.bytes = Some(cursor.bytes()?);
    }
    if cursor.eat(&["AUTOEXTEND"]) {
        file.autoextend = match cursor.eat_one(&["ON", "OFF"]) {
            Some(word) => Some(word == "ON"),
            None => return Err(cursor.expected("ON or OFF")),
        };
        if cursor.eat(&["NEXT"]) {
            file.bytes_next = Some(cursor.bytes()?);
        }
        if cursor.eat(&["MAXSIZE"]) && !cursor.eat(&["UNLIMITED"]) {
            file.bytes_max = Some(cursor.bytes()?);
        }
    }
    Ok(file)
}

pub fn transaction(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    let Some(word) = cursor.eat_one(&["COMMIT", "END", "ROLLBACK", "SAVEPOINT", "BEGIN", "SET"]) else {
        return Err(cursor.expected("COMMIT, ROLLBACK or SAVEPOINT"));
    };
    match word {
        "BEGIN" => {
            cursor.eat_one(&["DEFERRED", "IMMEDIATE", "EXCLUSIVE"]);
            cursor.eat(&["TRANSACTION"]);
            Ok(Statement::Nothing("a transaction begins with its first change by itself"))
        }
        "SET" => {
            cursor.expect(&["TRANSACTION"])?;
            if let Some(token) = cursor.peek()
                && (token.is("READ") || token.is("ISOLATION"))
            {
                cursor.rest("a level")?;
                return Ok(Statement::Nothing(
                    "each statement reads what was committed when it began; that is the one level",
                ));
            }
            cursor.rest("READ ONLY, READ WRITE, ISOLATION LEVEL or NAME")?;
            Ok(Statement::Nothing("a transaction has no name here"))
        }
        "SAVEPOINT" => Ok(Statement::Savepoint { name: cursor.name("the savepoint's name")? }),
        "ROLLBACK" => {
            cursor.eat_one(&["WORK", "TRANSACTION"]);
            if !cursor.eat(&["TO"]) {
                return Ok(Statement::Rollback { to: None });
            }
            cursor.eat(&["SAVEPOINT"]);
            Ok(Statement::Rollback { to: Some(cursor.name("the savepoint's name")?) })
        }
        _ => commit(cursor),
    }
}

fn commit(cursor: &mut Cursor<'_>) -> Result<Statement, SqlError> {
    cursor.eat_one(&["WORK", "TRANSACTION"]);
    if cursor.eat(&["COMMENT"]) {
        cursor.quoted("a comment in single quotes")?;
    }
    let (mut batch, mut wait) = (None, None);
    if cursor.eat(&["WRITE"]) {
        while let Some(word) = cursor.eat_one(&["IMMEDIATE", "BATCH", "WAIT", "NOWAIT"]) {
            match word {
                "IMMEDIATE" | "BATCH" => batch = Some(word == "BATCH"),
                _ => wait = Some(word == "WAIT"),
            }
        }
    }
    Ok(Statement::Commit { batch, wait })
}
