//! Changes of a table of the engine: SQLite hands over rows, the engine makes them durable with the transaction.
//!
//! Inserted rows are collected and go to the engine together, as many as fit a page in one change. Nobody sees that they wait: a
//! statement does not see its own changes, and the connection hands over what is left before the statement ends.

use super::{EngineTable, Writable, value_of};
use crate::link::Inner;
use engine::space::Table;
use engine::{EngineError, Row, RowId, Value};
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

/// A change of a row that waits for others.
pub struct Late {
    table: Arc<Table>,
    address: RowId,
    row: Row,
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

    /// Changes a row; at the end of the statement when another row still has its key, and may lose it meanwhile
    /// (`UPDATE t SET id = id + 1`).
    fn update(&mut self, table: &Arc<Table>, address: RowId, row: Row) -> engine::Result<()> {
        match self.session.update(table, address, &row) {
            Err(EngineError::DuplicateKey { .. }) => {
                self.late.push(Late { table: table.clone(), address, row });
                Ok(())
            }
            done => done,
        }
    }

    /// Changes the rows that had to wait for others, the last one first: then each finds its key free in rows that all move
    /// one way. As long as one succeeds, the others have another chance.
    fn update_late(&mut self) -> engine::Result<()> {
        while !self.late.is_empty() {
            let (before, mut refused) = (self.late.len(), None);
            for late in std::mem::take(&mut self.late).into_iter().rev() {
                match self.session.update(&late.table, late.address, &late.row) {
                    Err(error @ EngineError::DuplicateKey { .. }) => {
                        refused = Some(error);
                        self.late.push(late);
                    }
                    done => done?,
                }
            }
            self.late.reverse();
            if let Some(error) = refused.filter(|_| self.late.len() == before) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Hands over all rows that wait.
    pub fn flush(&mut self) -> engine::Result<()> {
        self.update_late()?;
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
            inner.update(&self.entry.table, RowId::from_i64(old), row)
        })
    }
}
