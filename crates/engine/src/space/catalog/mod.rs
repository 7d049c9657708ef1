//! The catalog: which tables and indexes there are.
//!
//! On disk it is four ordinary tables in SYSTEM (`dictionary`), whose segments lie at fixed pages. In memory it is all of them,
//! described by [`Table`] and [`Index`]: read once at open (`load`), changed by DDL after its commit (`write` has the rows).

pub(crate) mod dictionary;
pub(super) mod load;
pub(crate) mod write;

use super::table::CatalogRows;
use super::wait::lock_or_wait;
use super::{Index, Segment, Table};
use crate::{Context, EngineError, Result};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use waits::Event;

/// All descriptions.
#[derive(Default)]
pub(crate) struct Catalog {
    inner: RwLock<Inner>,
    ddl: Mutex<()>,
}

#[derive(Default)]
struct Inner {
    /// By name in small letters.
    tables: BTreeMap<String, Arc<Table>>,
    by_object: BTreeMap<u32, Arc<Table>>,
    /// By name in small letters.
    indexes: BTreeMap<String, Arc<Index>>,
    /// By object of a segment: the segment, and the number of its table.
    segments: BTreeMap<u32, (Segment, u32)>,
    /// Where the rows of tables and indexes are.
    rows: BTreeMap<u32, CatalogRows>,
}

impl Inner {
    fn insert(&mut self, table: Arc<Table>) {
        self.segments.insert(table.segment.object, (table.segment, table.object));
        for index in &table.indexes {
            self.segments.insert(index.segment.object, (index.segment, table.object));
            self.indexes.insert(index.name.to_ascii_lowercase(), index.clone());
        }
        self.tables.insert(table.name.to_ascii_lowercase(), table.clone());
        self.by_object.insert(table.object, table);
    }

    /// Everything but the rows. Who has the old description is told so.
    fn remove(&mut self, object: u32) {
        let Some(table) = self.by_object.remove(&object) else { return };
        table.stale.store(true, Ordering::SeqCst);
        self.tables.remove(&table.name.to_ascii_lowercase());
        self.segments.remove(&table.segment.object);
        for index in &table.indexes {
            index.stale.store(true, Ordering::SeqCst);
            self.segments.remove(&index.segment.object);
            self.indexes.remove(&index.name.to_ascii_lowercase());
        }
    }
}

impl Catalog {
    /// The right to change it (`row cache lock`): held by DDL from its look at the names until its commit is published.
    pub fn lock(&self, context: &Context) -> MutexGuard<'_, ()> {
        lock_or_wait(&self.ddl, context, Event::RowCacheLock, [0; 3])
    }

    /// A table by name.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`], with the nearest name.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        let inner = self.inner.read();
        inner
            .tables
            .get(&name.to_ascii_lowercase())
            .cloned()
            .ok_or_else(|| no_such("table", name, inner.tables.keys()))
    }

    /// An index by name.
    ///
    /// # Errors
    /// As [`Catalog::table`].
    pub fn index(&self, name: &str) -> Result<Arc<Index>> {
        let inner = self.inner.read();
        let index = inner.indexes.get(&name.to_ascii_lowercase()).cloned();
        index.ok_or_else(|| no_such("index", name, inner.indexes.keys()))
    }

    /// The users' tables, by name.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.inner.read().tables.values().filter(|table| !table.dictionary).cloned().collect()
    }

    /// All tables, by number.
    pub fn all(&self) -> Vec<Arc<Table>> {
        self.inner.read().by_object.values().cloned().collect()
    }

    /// The newest description of a table.
    pub fn by_object(&self, object: u32) -> Option<Arc<Table>> {
        self.inner.read().by_object.get(&object).cloned()
    }

    /// Segment and table, by the object of a segment.
    pub fn owner(&self, segment: u32) -> Option<(Segment, u32)> {
        self.inner.read().segments.get(&segment).copied()
    }

    /// The name of the table or index that has a segment.
    pub fn name_of_segment(&self, segment: u32) -> Option<String> {
        let inner = self.inner.read();
        let (_, table) = inner.segments.get(&segment)?;
        let table = inner.by_object.get(table)?;
        let index = table.indexes.iter().find(|index| index.segment.object == segment);
        Some(index.map_or_else(|| table.name.clone(), |index| index.name.clone()))
    }

    /// Whether a table or index has its segment in a tablespace.
    pub fn has_segments(&self, tablespace: u16) -> bool {
        self.inner.read().segments.values().any(|(segment, _)| segment.tablespace == tablespace)
    }

    /// Whether a name is free.
    ///
    /// # Errors
    /// [`EngineError::Exists`].
    pub fn check_free(&self, kind: &'static str, name: &str) -> Result<()> {
        let inner = self.inner.read();
        let key = name.to_ascii_lowercase();
        let taken =
            if kind == "table" { inner.tables.contains_key(&key) } else { inner.indexes.contains_key(&key) };
        if taken { Err(EngineError::Exists { kind, name: name.to_owned() }) } else { Ok(()) }
    }

    /// Where the rows of a table or index are.
    pub fn rows(&self, object: u32) -> CatalogRows {
        self.inner.read().rows.get(&object).cloned().unwrap_or_default()
    }

    /// Publishes a new description in place of the old one, with the rows of what is new.
    pub fn publish(&self, table: Table, rows: impl IntoIterator<Item = (u32, CatalogRows)>) -> Arc<Table> {
        let table = Arc::new(table);
        let mut inner = self.inner.write();
        inner.remove(table.object);
        inner.insert(table.clone());
        inner.rows.extend(rows);
        table
    }

    /// Forgets a table with its indexes.
    pub fn forget(&self, table: &Table) {
        let mut inner = self.inner.write();
        inner.remove(table.object);
        inner.rows.remove(&table.object);
        for index in &table.indexes {
            inner.rows.remove(&index.object);
        }
    }

    /// Forgets the rows of one index.
    pub fn forget_rows(&self, object: u32) {
        self.inner.write().rows.remove(&object);
    }
}

fn no_such<'a>(kind: &'static str, name: &str, names: impl Iterator<Item = &'a String>) -> EngineError {
    let wanted = name.to_ascii_lowercase();
    let near = names.map(|name| (distance(&wanted, name), name)).min();
    let hint = match near {
        Some((distance, near)) if distance <= 1 + wanted.len() / 4 => format!("; did you mean {near}?"),
        _ => String::new(),
    };
    EngineError::NoSuch { kind, name: name.to_owned(), hint }
}

/// How many letters must be changed, put in or taken out (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, n) in
            [("", "", 0), ("orders", "order", 1), ("t", "u", 1), ("kitten", "sitting", 3), ("", "abc", 3)]
        {
            assert_eq!(distance(a, b), n, "{a} {b}");
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let names = ["customers".to_owned(), "orders".to_owned()];
        let text = no_such("table", "ORDRES", names.iter()).to_string();
        assert_eq!(text, "table ORDRES does not exist; did you mean orders?");
        assert_eq!(no_such("table", "zzz", names.iter()).to_string(), "table zzz does not exist");
    }
}
