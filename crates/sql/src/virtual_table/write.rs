//! Changes of a table of the engine: SQLite hands over rows, the engine makes them durable with the transaction.
//!
//! Inserted rows are collected and go to the engine together, as many as fit a page in one change. Nobody sees that they wait:
//! a statement that reads the table it inserts into has read it before its first row is inserted (SQLite sees to it), and the
//! connection hands over what is left before the statement ends.

use super::{EngineTable, Writable, value_of};
use crate::link::Inner;
use engine::space::Table;
use engine::{Row, RowId, Value};
use rusqlite::types::ValueRef;
use rusqlite::{Error, Result};
use std::sync::Arc;

/// Rows, and about how many bytes, that are collected at most.
const ROWS_MAX: usize = 256;
const BYTES_MAX: usize = 256 << 10;

/// Rows of an INSERT on their way to the engine.
pub struct Pending {
    table: Arc<Table>,
    rows: Vec<Row>,
    bytes: usize,
}

impl Inner {
    /// Takes a row, and hands rows over when there are many.
    pub fn insert(&mut self, table: &Arc<Table>, row: Row) -> engine::Result<()> {
        let size = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            _ => 8,
        };
        let bytes: usize = row.iter().map(size).sum();
        if self.pending.as_ref().is_some_and(|pending| !Arc::ptr_eq(&pending.table, table)) {
            self.flush()?;
        }
        let pending =
            self.pending.get_or_insert_with(|| Pending { table: table.clone(), rows: Vec::new(), bytes: 0 });
        pending.rows.push(row);
        pending.bytes += bytes;
        if pending.rows.len() >= ROWS_MAX || pending.bytes >= BYTES_MAX { self.flush() } else { Ok(()) }
    }

    /// Hands over all rows that wait.
    pub fn flush(&mut self) -> engine::Result<()> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        if let [row] = &pending.rows[..] {
            self.session.insert(&pending.table, row)?;
        } else {
            self.session.insert_many(&pending.table, &mut pending.rows.into_iter())?;
        }
        Ok(())
    }
}

impl EngineTable {
    /// The values as the columns keep them.
    fn fit(&self, values: &mut dyn Iterator<Item = ValueRef<'_>>) -> Result<Row> {
        let columns = self.entry.table.columns.iter().zip(&self.entry.types).zip(values);
        columns
            .map(|((column, kind), value)| {
                kind.fit(value_of(value)).map_err(|words| {
                    Error::ModuleError(format!("column {}.{}: {words}", self.entry.table.name, column.name))
                })
            })
            .collect()
    }
}

impl Writable for EngineTable {
    fn delete(&mut self, address: i64) -> Result<()> {
        self.link.with(|inner| {
            inner.changed += 1;
            inner.session.delete(&self.entry.table, RowId::from_i64(address))
        })
    }

    fn insert(
        &mut self,
        address: ValueRef<'_>,
        values: &mut dyn Iterator<Item = ValueRef<'_>>,
    ) -> Result<i64> {
        if address != ValueRef::Null {
            return Err(Error::ModuleError("a row's address cannot be chosen".into()));
        }
        let row = self.fit(values)?;
        self.link.with(|inner| {
            inner.changed += 1;
            inner.insert(&self.entry.table, row)
        })?;
        Ok(0)
    }

    fn update(
        &mut self,
        old: i64,
        new: ValueRef<'_>,
        values: &mut dyn Iterator<Item = ValueRef<'_>>,
    ) -> Result<()> {
        if new != ValueRef::Integer(old) {
            return Err(Error::ModuleError("a row's address cannot be changed".into()));
        }
        let row = self.fit(values)?;
        self.link.with(|inner| {
            inner.changed += 1;
            inner.session.update(&self.entry.table, RowId::from_i64(old), &row)
        })
    }
}
