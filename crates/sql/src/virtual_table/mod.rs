//! Tables of the engine and views of the instance, as SQLite's virtual tables.
//!
//! [`table`] has the tables, [`rows`] what is read from them, [`mod@write`] what is written, [`instance`] the views. What SQLite
//! calls is in `adapter`; it hands over to the traits of this file.

#[allow(unsafe_code)]
mod adapter;
pub mod instance;
mod rows;
mod table;
mod write;

pub use adapter::Table as Adapted;
pub use table::{EngineTable, Entry, type_of};
pub use write::{Late, Pending};

use crate::link::Link;
use engine::Value;
use rusqlite::Result;
use rusqlite::types::ValueRef;
use rusqlite::vtab::IndexInfo;
use std::sync::Arc;

/// What a virtual table is.
pub trait Shape: Sized + 'static {
    /// What is read from it.
    type Rows: Rows;
    /// The table of that name.
    fn connect(link: &Arc<Link>, name: &str) -> Result<Self>;
    /// `CREATE TABLE x (…)`: names and types of its columns.
    fn declaration(&self) -> String;
    /// Chooses how the rows are found, and tells SQLite.
    fn plan(&self, info: &mut IndexInfo) -> Result<()>;
    /// A cursor that stands nowhere yet; owns what it needs.
    fn rows(&self) -> Self::Rows;
}

/// A virtual table that takes changes.
pub trait Writable: Shape {
    /// Deletes a row.
    fn delete(&mut self, address: i64) -> Result<()>;
    /// Inserts a row; `address` is NULL unless the statement gave one. Returns the row's address, or 0 when it is not known yet.
    fn insert(
        &mut self,
        address: ValueRef<'_>,
        values: &mut dyn Iterator<Item = ValueRef<'_>>,
    ) -> Result<i64>;
    /// Replaces a row; `new` is its address after the statement, which must be `old`.
    fn update(
        &mut self,
        old: i64,
        new: ValueRef<'_>,
        values: &mut dyn Iterator<Item = ValueRef<'_>>,
    ) -> Result<()>;
}

/// Rows of one search, one after the other.
pub trait Rows: 'static {
    /// Begins a search as `plan` says, with the arguments that the plan asked for. Stands at the first row, or at the end.
    fn begin(&mut self, plan: &str, arguments: &mut dyn Iterator<Item = ValueRef<'_>>) -> Result<()>;
    /// The next row.
    fn next(&mut self) -> Result<()>;
    /// Behind the last row.
    fn is_at_end(&self) -> bool;
    /// A value of the current row.
    fn value(&self, column: usize) -> ValueRef<'_>;
    /// The current row's address.
    fn address(&self) -> i64;
}

/// A value of SQLite for the engine.
pub fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    }
}

/// A value of the engine for SQLite.
pub fn ref_of(value: &Value) -> ValueRef<'_> {
    match value {
        Value::Null => ValueRef::Null,
        Value::Integer(number) => ValueRef::Integer(*number),
        Value::Real(number) => ValueRef::Real(*number),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
    }
}
