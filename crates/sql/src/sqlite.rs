//! SQLite as we open it: in memory, Oracle's functions known, its limits as wide as they go.
//!
//! Tables of the engine are not here: SQLite reaches them as virtual tables only.

use crate::{function, rewrite};
use engine::Value;
use rusqlite::config::DbConfig;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

/// A connection of its own for a session. `now`: seconds since 1970-01-01 UTC, what SYSDATE shows.
///
/// # Errors
/// What SQLite says.
pub fn open(now: impl Fn() -> u64 + Send + Sync + 'static) -> Result<Connection> {
    let db = Connection::open_in_memory()?;
    prepare(&db, now)?;
    for limit in [Limit::SQLITE_LIMIT_LENGTH, Limit::SQLITE_LIMIT_SQL_LENGTH, Limit::SQLITE_LIMIT_COLUMN] {
        db.set_limit(limit, i32::MAX)?;
    }
    Ok(db)
}

/// Sets any connection up as all of ours are.
///
/// # Errors
/// What SQLite says.
pub fn prepare(db: &Connection, now: impl Fn() -> u64 + Send + Sync + 'static) -> Result<()> {
    // A name in double quotes that is nothing's name is an error here, not a text.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    // What SQLite sorts and sets aside by itself stays in memory too: it has no storage of its own.
    db.pragma_update(None, "temp_store", "memory")?;
    functions(db, now)
}

fn functions(db: &Connection, now: impl Fn() -> u64 + Send + Sync + 'static) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("nvl", 2, flags, |c| Ok(sql_value(function::nvl(value(c, 0), value(c, 1)))))?;
    db.create_scalar_function("nvl2", 3, flags, |c| {
        Ok(sql_value(value(c, if value(c, 0) == Value::Null { 2 } else { 1 })))
    })?;
    db.create_scalar_function("decode", -1, flags, |c| {
        let values: Vec<_> = (0..c.len()).map(|at| value(c, at)).collect();
        function::decode(&values).map(sql_value).map_err(failed)
    })?;
    db.create_scalar_function("to_char", -1, flags, |c| {
        let format = match (c.len(), (c.len() == 2).then(|| value(c, 1))) {
            (1, _) => None,
            (_, Some(Value::Text(format))) => Some(format),
            _ => return Err(failed("TO_CHAR takes a value and a format in single quotes".into())),
        };
        function::to_char(&value(c, 0), format.as_deref()).map(sql_value).map_err(failed)
    })?;
    db.create_scalar_function("sysdate", -1, FunctionFlags::SQLITE_UTF8, move |c| {
        let days = if c.is_empty() { 0.0 } else { c.get(0)? };
        Ok(function::sysdate(now(), days))
    })
}

fn value(context: &Context<'_>, at: usize) -> Value {
    match context.get_raw(at) {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    }
}

/// A value of the engine for SQLite.
pub fn sql_value(value: Value) -> rusqlite::types::Value {
    match value {
        Value::Null => rusqlite::types::Value::Null,
        Value::Integer(number) => number.into(),
        Value::Real(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Blob(bytes) => bytes.into(),
    }
}

fn failed(words: String) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(words.into())
}

/// DUAL: one row. Made once for a connection.
///
/// # Errors
/// What SQLite says.
pub fn create_dual(db: &Connection) -> Result<()> {
    db.execute_batch("CREATE TEMP VIEW dual AS SELECT 'X' AS [DUMMY]")
}

/// What SQLite says is wrong, with its place in `statement` as the user typed it.
pub fn error(error: &rusqlite::Error, rewritten: &rewrite::Rewritten) -> crate::SqlError {
    match error {
        rusqlite::Error::SqlInputError { msg, offset, .. } => match usize::try_from(*offset) {
            Ok(offset) => crate::SqlError::at(rewritten.original(offset), msg.clone()),
            Err(_) => crate::SqlError::whole(msg.clone()),
        },
        other => crate::SqlError::whole(other.to_string()),
    }
}
