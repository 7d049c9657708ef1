//! What tables and indexes look like: definitions as a user gives them, and descriptions as sessions hold them.
//!
//! A [`Table`] or [`Index`] never changes. DDL publishes a new description and marks the old one stale; whoever comes with
//! a stale one is given the newest (see `catalog`). So a statement that began with a description ends with it.

use super::Segment;
use super::lock::TableLock;
use crate::btree;
use crate::cache::Pool;
use crate::flash::FlashUse;
use crate::transaction::Xid;
use crate::value::{Row, RowId, Value};
use crate::{EngineError, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a column prefers to hold. As in SQLite a value that cannot be converted without loss is stored as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers; reals without a fraction become whole.
    Integer,
    /// Floating point numbers; whole numbers that a real holds exactly become real.
    Real,
    /// UTF-8.
    Text,
    /// Bytes.
    Blob,
    /// Whatever comes.
    Any,
}

impl ColumnKind {
    pub(super) const ALL: [Self; 5] = [Self::Integer, Self::Real, Self::Text, Self::Blob, Self::Any];

    /// The value as a column of this kind stores it. Only numbers are converted, and only without loss; NaN becomes NULL.
    pub fn store(self, value: Value) -> Value {
        /// Beyond ±2⁵³ not every whole number is a real.
        const EXACT: i64 = 1 << 53;
        match (self, value) {
            (_, Value::Real(r)) if r.is_nan() => Value::Null,
            (Self::Integer, Value::Real(r)) if r.fract() == 0.0 && r.abs() < EXACT as f64 => {
                Value::Integer(r as i64)
            }
            (Self::Real, Value::Integer(n)) if (-EXACT..=EXACT).contains(&n) => Value::Real(n as f64),
            (_, value) => value,
        }
    }
}

/// What a column may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Domain {
    kind: ColumnKind,
    not_null: bool,
}

impl Domain {
    /// Whether [`Table::store`] changes no value of `source`, and refuses none.
    fn holds_all_of(self, source: Self) -> bool {
        let converts = matches!(self.kind, ColumnKind::Integer | ColumnKind::Real);
        (!converts || self.kind == source.kind) && (!self.not_null || source.not_null)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As written; compared without regard to ASCII case.
    pub name: String,
    /// What it prefers to hold.
    pub kind: ColumnKind,
    /// The type as declared, `VARCHAR2(100)`: for people.
    pub declared: String,
    /// Refuses NULL.
    pub not_null: bool,
}

impl Column {
    /// A column that may be NULL.
    pub fn new(name: &str, kind: ColumnKind) -> Self {
        let declared = format!("{kind:?}").to_ascii_uppercase();
        Self { name: name.to_owned(), kind, declared, not_null: false }
    }

    pub(crate) fn domain(&self) -> Domain {
        Domain { kind: self.kind, not_null: self.not_null }
    }
}

/// A table to be made.
#[derive(Clone, Debug)]
pub struct TableDef {
    /// Name, compared without regard to ASCII case.
    pub name: String,
    /// At least one.
    pub columns: Vec<Column>,
    /// Where; the default permanent tablespace (`USERS`) when none.
    pub tablespace: Option<String>,
    /// How its blocks are treated in the cache.
    pub pool: Pool,
    /// And in the flash cache.
    pub flash: FlashUse,
}

impl TableDef {
    /// In the default tablespace and pool.
    pub fn new(name: &str, columns: Vec<Column>) -> Self {
        Self {
            name: name.to_owned(),
            columns,
            tablespace: None,
            pool: Pool::Default,
            flash: FlashUse::Default,
        }
    }
}

/// An index to be made.
#[derive(Clone, Debug)]
pub struct IndexDef {
    /// Name, compared without regard to ASCII case.
    pub name: String,
    /// Its table.
    pub table: String,
    /// Names of the columns, the most significant first.
    pub columns: Vec<String>,
    /// No two rows may have the same key; a key with a NULL in it equals no other.
    pub unique: bool,
    /// Where; the table's tablespace when none.
    pub tablespace: Option<String>,
}

/// A table, as it was described at one moment.
pub struct Table {
    /// Number, the same for the table's whole life.
    pub object: u32,
    /// As written when it was made.
    pub name: String,
    /// In order.
    pub columns: Vec<Column>,
    /// All of them, oldest first.
    pub indexes: Vec<Arc<Index>>,
    /// Its rows; another one after a truncate.
    pub segment: Segment,
    /// Name of the segment's tablespace.
    pub tablespace: String,
    /// How its blocks are treated in the cache.
    pub pool: Pool,
    /// And in the flash cache.
    pub flash: FlashUse,
    /// One of the catalog's own tables: readable, not writable.
    pub dictionary: bool,
    /// Columns that are part of an index, ascending.
    pub(crate) key_columns: Vec<usize>,
    pub(crate) lock: Arc<TableLock>,
    pub(crate) stale: AtomicBool,
}

impl Table {
    /// The number of a column by name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Whether DDL has replaced this description.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::SeqCst)
    }

    /// The row as it is stored.
    ///
    /// # Errors
    /// [`EngineError::Invalid`]: another number of values, NULL in a column that refuses it.
    pub(crate) fn store(&self, values: Row) -> Result<Row> {
        if values.len() != self.columns.len() {
            return Err(EngineError::Invalid(format!(
                "table {} has {} columns, not {}",
                self.name,
                self.columns.len(),
                values.len()
            )));
        }
        let stored = |(column, value): (&Column, Value)| match column.kind.store(value) {
            Value::Null if column.not_null => {
                Err(EngineError::Invalid(format!("column {}.{} must not be NULL", self.name, column.name)))
            }
            value => Ok(value),
        };
        self.columns.iter().zip(values).map(stored).collect()
    }

    /// Whether rows of columns like these are stored here just as they are there.
    pub(crate) fn stores_alike(&self, source: &[Domain]) -> bool {
        let mut pairs = self.columns.iter().zip(source);
        self.columns.len() == source.len()
            && pairs.all(|(column, source)| column.domain().holds_all_of(*source))
    }

    /// This table with other indexes or another segment; the lock is the same.
    pub(crate) fn with(&self, indexes: Vec<Arc<Index>>, segment: Segment) -> Self {
        Self {
            object: self.object,
            name: self.name.clone(),
            columns: self.columns.clone(),
            key_columns: key_columns(&indexes),
            indexes,
            segment,
            tablespace: self.tablespace.clone(),
            pool: self.pool,
            flash: self.flash,
            dictionary: self.dictionary,
            lock: self.lock.clone(),
            stale: AtomicBool::new(false),
        }
    }
}

/// An index, as it was described at one moment.
pub struct Index {
    /// Number, the same for the index's whole life.
    pub object: u32,
    /// As written when it was made.
    pub name: String,
    /// Number of its table.
    pub table: u32,
    /// Numbers of the columns in the table, the most significant first.
    pub columns: Vec<usize>,
    /// No two rows may have the same key; a key with a NULL in it equals no other.
    pub unique: bool,
    /// Its entries; another one after its table was truncated.
    pub segment: Segment,
    /// Name of the segment's tablespace.
    pub tablespace: String,
    /// A view that lacks transactions before this one began before the index was built, and would miss entries.
    pub(crate) built_at: Xid,
    /// Its table's.
    pub(crate) lock: Arc<TableLock>,
    pub(crate) stale: AtomicBool,
}

impl Index {
    /// The key of a row.
    pub fn key(&self, row: &[Value]) -> Vec<u8> {
        let values: Vec<Value> = self.columns.iter().map(|&column| row[column].clone()).collect();
        btree::encode_key(&values)
    }

    /// Whether two versions of a row have the same key.
    pub(crate) fn same_key(&self, a: &[Value], b: &[Value]) -> bool {
        // Most updates leave the columns as they are, to the bit; only for others it is worth making keys.
        let identical = |column: &usize| match (&a[*column], &b[*column]) {
            (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        };
        self.columns.iter().all(identical) || self.key(a) == self.key(b)
    }

    /// Whether DDL has replaced this description.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::SeqCst)
    }

    /// Whether the row's key must differ from all others.
    pub(crate) fn is_exclusive(&self, row: &[Value]) -> bool {
        self.unique && self.columns.iter().all(|&column| row[column] != Value::Null)
    }

    pub(crate) fn with(&self, segment: Segment, built_at: Xid) -> Self {
        Self {
            object: self.object,
            name: self.name.clone(),
            table: self.table,
            columns: self.columns.clone(),
            unique: self.unique,
            segment,
            tablespace: self.tablespace.clone(),
            built_at,
            lock: self.lock.clone(),
            stale: AtomicBool::new(false),
        }
    }
}

/// All columns that are part of one of these indexes, ascending.
pub(crate) fn key_columns(indexes: &[Arc<Index>]) -> Vec<usize> {
    let columns: BTreeSet<usize> = indexes.iter().flat_map(|index| index.columns.iter().copied()).collect();
    columns.into_iter().collect()
}

/// Where the catalog keeps an object's rows, so that DDL finds them without a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct CatalogRows {
    /// In `obj$`.
    pub object: Option<RowId>,
    /// In `col$` (of a table).
    pub columns: Vec<RowId>,
    /// In `ind$` (of an index).
    pub index: Option<RowId>,
    /// In `icol$` (of an index).
    pub index_columns: Vec<RowId>,
}
