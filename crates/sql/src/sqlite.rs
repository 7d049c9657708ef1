//! SQLite as we open it: in memory, Oracle's functions known, its limits as wide as they go.
//!
//! Tables of the engine are not here: SQLite reaches them as virtual tables only.

use crate::function::aggregate::Numbers;
use crate::{function, rewrite};
use engine::Value;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;

type Result<T, E = rusqlite::Error> = std::result::Result<T, E>;

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
    // LIKE tells capitals from small letters, as in Oracle.
    db.pragma_update(None, "case_sensitive_like", true)?;
    // What SQLite sorts and sets aside by itself stays in memory too: it has no storage of its own.
    db.pragma_update(None, "temp_store", "memory")?;
    functions(db, now)
}

/// SYSDATE is not deterministic: it is looked at each time.
fn functions(db: &Connection, now: impl Fn() -> u64 + Send + Sync + 'static) -> Result<()> {
    scalar(db, "nvl", 2, |v| Ok(function::nvl(v[0].clone(), v[1].clone())))?;
    scalar(db, "nvl2", 3, |v| Ok(v[if v[0] == Value::Null { 2 } else { 1 }].clone()))?;
    scalar(db, "decode", -1, function::decode)?;
    scalar(db, "greatest", -1, |v| Ok(function::extreme(v.to_vec(), true)))?;
    scalar(db, "least", -1, |v| Ok(function::extreme(v.to_vec(), false)))?;
    scalar(db, "to_char", -1, |v| function::to_char(one(v, "TO_CHAR")?, format(v)?))?;
    scalar(db, "to_number", -1, |v| function::to_number(one(v, "TO_NUMBER")?, format(v)?))?;
    for name in ["to_date", "to_timestamp"] {
        scalar(db, name, -1, |v| match one(v, "TO_DATE")? {
            Value::Text(text) => function::to_date(text, format(v)?).map(Value::Text),
            Value::Null => Ok(Value::Null),
            other => Err(format!("TO_DATE takes a text, not {other:?}")),
        })?;
    }
    scalar(db, "trunc", -1, |v| function::trunc(one(v, "TRUNC")?, v.get(1)))?;
    for (name, count) in
        [("mod", 2), ("floor", 1), ("ceil", 1), ("power", 2), ("sqrt", 1), ("ln", 1), ("log", 2), ("exp", 1)]
    {
        scalar(db, name, count, move |v| function::arithmetic(name, v))?;
    }
    scalar(db, "round", -1, function::round)?;
    scalar(db, "add_months", 2, |v| match (&v[0], function::trunc(&v[1], None)?) {
        (Value::Text(date), Value::Integer(months)) => function::add_months(date, months).map(Value::Text),
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        _ => Err("ADD_MONTHS takes a date and a number".into()),
    })?;
    scalar(db, "last_day", 1, |v| match &v[0] {
        Value::Text(date) => function::last_day(date).map(Value::Text),
        Value::Null => Ok(Value::Null),
        other => Err(format!("LAST_DAY takes a date, not {other:?}")),
    })?;
    scalar(db, "instr", -1, |v| {
        let [Some(text), Some(part)] = [0, 1].map(|at| v.get(at).and_then(text)) else {
            return Ok(Value::Null);
        };
        let [from, nth] =
            [2, 3].map(|at| v.get(at).map_or(Ok(Value::Integer(1)), |v| function::trunc(v, None)));
        match (from?, nth?) {
            (Value::Integer(from), Value::Integer(nth)) => {
                function::instr(&text, &part, from, nth).map(Value::Integer)
            }
            _ => Ok(Value::Null),
        }
    })?;
    for (name, left) in [("lpad", true), ("rpad", false)] {
        scalar(db, name, -1, move |v| {
            let fill = v.get(2).map_or(Some(" ".to_owned()), text);
            let length = v.get(1).map_or(Ok(Value::Null), |length| function::trunc(length, None))?;
            Ok(match (v.first().and_then(text), length, fill) {
                (Some(value), Value::Integer(length), Some(fill)) => {
                    function::pad(&value, length, &fill, left).map_or(Value::Null, Value::Text)
                }
                _ => Value::Null,
            })
        })?;
    }
    scalar(
        db,
        "initcap",
        1,
        |v| Ok(text(&v[0]).map_or(Value::Null, |v| Value::Text(function::initcap(&v)))),
    )?;
    scalar(db, "ascii", 1, |v| {
        Ok(text(&v[0]).and_then(|v| function::ascii(&v)).map_or(Value::Null, Value::Integer))
    })?;
    scalar(db, "chr", 1, |v| {
        let Value::Integer(number) = v[0] else { return Ok(Value::Null) };
        Ok(function::chr(number).map_or(Value::Null, Value::Text))
    })?;
    for (name, what) in [("median", Over::Median), ("stddev", Over::Deviation), ("variance", Over::Variance)]
    {
        db.create_aggregate_function(name, 1, FunctionFlags::SQLITE_UTF8, what)?;
    }
    db.create_scalar_function("sysdate", -1, FunctionFlags::SQLITE_UTF8, move |c| {
        let days = if c.is_empty() { 0.0 } else { c.get(0)? };
        Ok(function::sysdate(now(), days))
    })
}

/// A function of values alone; `count` -1 is any number of them.
fn scalar(
    db: &Connection,
    name: &str,
    count: i32,
    compute: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function(name, count, flags, move |c| {
        let values: Vec<_> = (0..c.len()).map(|at| value(c, at)).collect();
        compute(&values).map(sql_value).map_err(|words| rusqlite::Error::UserFunctionError(words.into()))
    })
}

fn one<'v>(values: &'v [Value], name: &str) -> Result<&'v Value, String> {
    values.first().ok_or_else(|| format!("{name} takes a value"))
}

/// The second value, which is a format.
fn format(values: &[Value]) -> Result<Option<&str>, String> {
    match values {
        [] | [_] => Ok(None),
        [_, Value::Text(format)] => Ok(Some(format)),
        _ => Err("what follows the value is a format in single quotes".into()),
    }
}

/// As a text, as SQLite would write it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) => Some(number.to_string()),
        Value::Null | Value::Blob(_) => None,
    }
}

/// A function over the numbers of a group.
#[derive(Clone, Copy)]
enum Over {
    Median,
    Deviation,
    Variance,
}

impl Aggregate<Numbers, rusqlite::types::Value> for Over {
    fn init(&self, _context: &mut Context<'_>) -> Result<Numbers> {
        Ok(Numbers::default())
    }

    fn step(&self, context: &mut Context<'_>, numbers: &mut Numbers) -> Result<()> {
        numbers.push(&value(context, 0));
        Ok(())
    }

    fn finalize(
        &self,
        _context: &mut Context<'_>,
        numbers: Option<Numbers>,
    ) -> Result<rusqlite::types::Value> {
        let numbers = numbers.unwrap_or_default();
        let result = match self {
            Self::Median => numbers.median(),
            Self::Deviation => numbers.variance().map(f64::sqrt),
            Self::Variance => numbers.variance(),
        };
        Ok(sql_value(result.map_or(Value::Null, function::whole_or_real)))
    }
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
