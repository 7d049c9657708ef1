//! A record as JSON or as CSV, for programs that do not speak SQLite.
//!
//! Both walk the descriptions of the tables, so a new column is exported the day it is declared.

use crate::rows::TABLES;
use crate::table::{Column, Description, Kind};
use crate::{Reader, RecordError, SCHEMA_VERSION, chain};
use rusqlite::types::ValueRef;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The whole record as one JSON object: `schema_version`, then for each table an array of objects, one for each row.
/// Booleans, nested JSON and numbers keep their type; bytes are hex text; not-a-number and infinity are null.
///
/// # Errors
/// [`RecordError::Sqlite`].
pub fn export_json(record: &Reader) -> Result<Value, RecordError> {
    let mut all = Map::from_iter([("schema_version".to_owned(), json!(SCHEMA_VERSION))]);
    for table in &TABLES {
        let mut rows = Vec::new();
        each_row(record, table, |cells| {
            let named = table.all_columns().zip(cells).map(|(column, cell)| (column.name.to_owned(), cell));
            rows.push(Value::Object(named.collect()));
            Ok(())
        })?;
        all.insert(table.name.to_owned(), Value::Array(rows));
    }
    Ok(Value::Object(all))
}

/// One CSV file for each table (`phase.csv` …) into `directory`, which is created if need be; answers their paths. The
/// first line names the columns, an empty field is NULL, bytes are hex, nested values are JSON text. Files of these
/// names are replaced.
///
/// # Errors
/// [`RecordError::Io`] where a file cannot be written; [`RecordError::Sqlite`].
pub fn export_csv(record: &Reader, directory: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let failed = |source| RecordError::Io { path: directory.into(), act: "exported", cause: source };
    std::fs::create_dir_all(directory).map_err(failed)?;
    TABLES.iter().map(|table| export_table(record, table, directory, failed)).collect()
}

fn export_table(
    record: &Reader,
    table: &Description,
    directory: &Path,
    failed: impl Fn(std::io::Error) -> RecordError,
) -> Result<PathBuf, RecordError> {
    let path = directory.join(format!("{}.csv", table.name));
    // A file of that name is somebody's: it is not overwritten.
    let file = std::fs::File::create_new(&path).map_err(&failed)?;
    let mut csv = csv::Writer::from_writer(file);
    csv.write_record(table.all_columns().map(|column| column.name)).map_err(|e| failed(e.into()))?;
    each_row(record, table, |cells| csv.write_record(cells.iter().map(field)).map_err(|e| failed(e.into())))?;
    csv.flush().map_err(&failed)?;
    Ok(path)
}

fn field(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Hands every row of `table` to `take`, one JSON value for each column.
fn each_row(
    record: &Reader,
    table: &Description,
    mut take: impl FnMut(Vec<Value>) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let failed = |e| record.failed(e);
    let columns: Vec<Column> = table.all_columns().collect();
    let mut statement = record.db().prepare(&table.select("ORDER BY id")).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let cell =
            |(index, column): (usize, &Column)| row.get_ref(index).map(|value| json_of(column.kind, value));
        take(columns.iter().enumerate().map(cell).collect::<rusqlite::Result<_>>().map_err(failed)?)?;
    }
    Ok(())
}

fn json_of(kind: Kind, value: ValueRef) -> Value {
    match (kind, value) {
        (_, ValueRef::Null) => Value::Null,
        (Kind::Unsigned, ValueRef::Integer(n)) => json!(n.cast_unsigned()),
        (Kind::Boolean, ValueRef::Integer(n)) => json!(n != 0),
        (_, ValueRef::Integer(n)) => json!(n),
        (_, ValueRef::Real(x)) => json!(x),
        (Kind::Json, ValueRef::Text(text)) => serde_json::from_slice(text).unwrap_or(Value::Null),
        (_, ValueRef::Text(text)) => json!(String::from_utf8_lossy(text)),
        (_, ValueRef::Blob(bytes)) => json!(chain::hex(bytes)),
    }
}

/// Bytes as hex text in serde's world, as the exports write them.
pub(crate) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&crate::chain::hex(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => {
                Ok(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
            }
            _ => Err(D::Error::custom(format!("{text:?} is not hex"))),
        }
    }
}
