//! What a database must say, kept in maps: committed rows, and what each session has changed since.

use engine::{EngineError, Row, RowId, Value};
use std::collections::{BTreeMap, BTreeSet};

/// An index: numbers of its columns, and whether it is unique.
pub type IndexModel = (Vec<usize>, bool);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableModel {
    pub rows: BTreeMap<RowId, Row>,
    pub indexes: BTreeMap<String, IndexModel>,
}

/// All tables by name.
pub type Model = BTreeMap<String, TableModel>;

/// What a session has changed: rows by table and address, none for a deleted one.
pub type Changes = BTreeMap<(String, RowId), Option<Row>>;

/// The rows of a table as a session sees them.
pub fn seen(committed: &Model, changes: &Changes, table: &str) -> BTreeMap<RowId, Row> {
    let mut rows = committed[table].rows.clone();
    for ((name, at), row) in changes {
        match row {
            _ if name != table => {}
            Some(row) => _ = rows.insert(*at, row.clone()),
            None => _ = rows.remove(at),
        }
    }
    rows
}

/// Commits.
pub fn apply(committed: &mut Model, changes: &mut Changes) {
    for ((table, at), row) in std::mem::take(changes) {
        let rows = &mut committed.get_mut(&table).expect("a table with changes is not dropped").rows;
        match row {
            Some(row) => _ = rows.insert(at, row),
            None => _ = rows.remove(&at),
        }
    }
}

/// How what was found is another than what was expected, in words.
pub fn difference(expected: &Model, found: &Model) -> String {
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let mut words = String::new();
    for name in names {
        let (Some(e), Some(f)) = (expected.get(name), found.get(name)) else {
            words += &format!("table {name}: expected {}, ", expected.contains_key(name));
            continue;
        };
        let addresses: BTreeSet<&RowId> = e.rows.keys().chain(f.rows.keys()).collect();
        for at in addresses.into_iter().filter(|at| e.rows.get(at) != f.rows.get(at)) {
            words += &format!("{name} {at}: expected {:?}, found {:?}; ", e.rows.get(at), f.rows.get(at));
        }
        if e.indexes != f.indexes {
            words += &format!("{name}: expected indexes {:?}, found {:?}; ", e.indexes, f.indexes);
        }
    }
    words
}

/// How a change may be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    Duplicate,
    Locked,
}

impl Refusal {
    pub fn of(error: &EngineError) -> Self {
        match error {
            EngineError::DuplicateKey { .. } => Self::Duplicate,
            EngineError::RowLocked { .. } => Self::Locked,
            other => panic!("{other}"),
        }
    }
}

/// The key of a row, if a unique index must have it once.
fn exclusive_key(row: &Row, columns: &[usize]) -> Option<Vec<Value>> {
    let key: Vec<Value> = columns.iter().map(|column| row[*column].clone()).collect();
    (!key.contains(&Value::Null)).then_some(key)
}

/// How a row may be refused that a session puts at an address (of its own, or a new one): because of keys that are there, or that
/// others have put in or taken out and not committed.
pub fn refusals(
    committed: &Model,
    own: &Changes,
    others: &[&Changes],
    table: &str,
    at: Option<RowId>,
    row: &Row,
) -> BTreeSet<Refusal> {
    let mut refusals = BTreeSet::new();
    let mine = seen(committed, own, table);
    for (columns, _) in committed[table].indexes.values().filter(|(_, unique)| *unique) {
        let Some(key) = exclusive_key(row, columns) else { continue };
        if at.is_some_and(|at| exclusive_key(&mine[&at], columns).as_ref() == Some(&key)) {
            continue;
        }
        let has_key = |row: &Row| exclusive_key(row, columns).as_ref() == Some(&key);
        let mut held = BTreeSet::new();
        for ((name, other_at), change) in others.iter().flat_map(|changes| changes.iter()) {
            if name != table {
                continue;
            }
            held.insert(*other_at);
            let before = committed[table].rows.get(other_at);
            if before.is_some_and(has_key) || change.as_ref().is_some_and(has_key) {
                refusals.insert(Refusal::Locked);
            }
        }
        if mine.iter().any(|(other, row)| Some(*other) != at && !held.contains(other) && has_key(row)) {
            refusals.insert(Refusal::Duplicate);
        }
    }
    refusals
}
