//! Rows of a table of the engine, as one search finds them.
//!
//! Rows come from the engine some at a time: the first few, because the statement may want no more, then more and more.

use super::{Entry, Rows, ref_of, value_of};
use crate::column::Probe;
use crate::link::{Inner, Link};
use crate::plan::{Access, Direction, Op, columns_used};
use engine::btree::encode_key;
use engine::sort::{SortKey, Sorter};
use engine::space::Index;
use engine::{Cursor, Row, RowId, Scan, Value};
use rusqlite::types::ValueRef;
use rusqlite::{Error, Result};
use std::ops::Bound;
use std::sync::Arc;

/// Rows fetched at first, and at most, at once.
const BATCH_FIRST: usize = 4;
const BATCH_MAX: usize = 256;

/// What planning says to a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    access: Access,
    /// As SQLite gives it: see [`columns_used`].
    columns: u64,
    /// For each argument, whether it is a literal of the statement's text.
    constant: Vec<bool>,
}

impl Search {
    /// As text, for SQLite to carry. `words` are for people who ask for the plan.
    pub fn encode(access: &Access, columns: u64, constant: &[bool], words: &str) -> String {
        let constant: String = constant.iter().map(|&yes| if yes { '1' } else { '0' }).collect();
        format!("{}|{columns:x}|{constant}|{words}", access.encode())
    }

    fn decode(text: &str) -> Option<Self> {
        let mut parts = text.split('|');
        let access = Access::decode(parts.next()?)?;
        let columns = u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(Self { access, columns, constant: parts.next()?.chars().map(|c| c == '1').collect() })
    }
}

/// Where rows come from.
enum Source {
    /// No more of them.
    Nothing,
    Scan(Scan),
    Range(Cursor),
    Sorted(Sorter),
}

/// A cursor on a table.
pub struct TableRows {
    link: Arc<Link>,
    entry: Arc<Entry>,
    source: Source,
    buffer: Vec<(RowId, Row)>,
    at: usize,
    batch: usize,
    /// Where in a row each column is.
    places: Vec<usize>,
}

impl TableRows {
    /// Stands nowhere.
    pub fn new(link: Arc<Link>, entry: Arc<Entry>) -> Self {
        let (source, places) = (Source::Nothing, Vec::new());
        Self { link, entry, source, buffer: Vec::new(), at: 0, batch: BATCH_FIRST, places }
    }

    fn place(&mut self, columns: &[usize], first: usize) {
        self.places.clear();
        self.places.resize(self.entry.types.len(), usize::MAX);
        for (place, &column) in columns.iter().enumerate() {
            self.places[column] = first + place;
        }
    }

    fn search(&mut self, inner: &mut Inner, search: &Search, arguments: Vec<Value>) -> engine::Result<()> {
        let entry = self.entry.clone();
        let all: Vec<_> = (0..entry.types.len()).collect();
        match &search.access {
            Access::Scan => {
                let used = columns_used(search.columns, all.len());
                self.place(&used, 0);
                self.source = Source::Scan(scan(inner, &entry, &used)?);
            }
            Access::Sort(terms) => {
                let used = columns_used(search.columns, all.len());
                // In front are the terms, each with whether it is NULL.
                self.place(&used, 2 * terms.len());
                self.source = Source::Sorted(sort(inner, &entry, terms, &used)?);
            }
            Access::Row => {
                self.place(&all, 0);
                if let Some(Value::Integer(address)) = arguments.first() {
                    let address = RowId::from_i64(*address);
                    let row = inner.session.get(&entry.table, address)?;
                    self.buffer.extend(row.map(|row| (address, row)));
                }
            }
            Access::Index { index, equal, low, high, descending } => {
                self.place(&all, 0);
                let index = &entry.table.indexes[*index];
                let range = Range::new(&entry, index, *equal, [*low, *high], arguments, &search.constant);
                if let Some(range) = range {
                    self.find(inner, index, range, *equal, *descending)?;
                }
            }
        }
        Ok(())
    }

    fn find(
        &mut self,
        inner: &mut Inner,
        index: &Index,
        range: Range,
        equal: usize,
        descending: bool,
    ) -> engine::Result<()> {
        if index.unique && range.prefix.len() == index.columns.len() {
            self.buffer = inner.session.lookup(index, &range.prefix)?;
            return Ok(());
        }
        let (from, to) = range.bounds();
        let mut cursor = inner.session.range(index, slice(&from), slice(&to), descending)?;
        if range.prefix.len() >= equal {
            self.source = Source::Range(cursor);
            return Ok(());
        }
        // There are rows with several values in a column that should have one. SQLite will choose among them, but the order by
        // the columns behind it is ours to make.
        while let Some(row) = cursor.next(&mut inner.session)? {
            self.buffer.push(row);
        }
        let key = |row: &Row| {
            let values: Vec<_> = index.columns[equal..].iter().map(|&column| row[column].clone()).collect();
            encode_key(&values)
        };
        self.buffer.sort_by_cached_key(|(_, row)| key(row));
        if descending {
            self.buffer.reverse();
        }
        Ok(())
    }

    fn fill(&mut self, inner: &mut Inner) -> engine::Result<()> {
        self.buffer.clear();
        self.at = 0;
        while self.buffer.len() < self.batch {
            let row = match &mut self.source {
                Source::Nothing => None,
                Source::Scan(scan) => scan.next(&mut inner.session)?,
                Source::Range(cursor) => cursor.next(&mut inner.session)?,
                Source::Sorted(sorter) => sorter.next(inner.session.context())?.map(addressed),
            };
            match row {
                Some(row) => self.buffer.push(row),
                None => {
                    // What it holds (space in temp, a place at the table) is free again.
                    self.source = Source::Nothing;
                    break;
                }
            }
        }
        self.batch = (self.batch * 2).min(BATCH_MAX);
        Ok(())
    }
}

fn scan(inner: &mut Inner, entry: &Entry, used: &[usize]) -> engine::Result<Scan> {
    if used.len() == entry.types.len() {
        inner.session.scan(&entry.table)
    } else {
        inner.session.scan_columns(&entry.table, used)
    }
}

/// All rows, sorted: each is the terms, the columns that are used, and its address.
fn sort(
    inner: &mut Inner,
    entry: &Entry,
    terms: &[(usize, Direction)],
    used: &[usize],
) -> engine::Result<Sorter> {
    // NULL is greatest for the engine and smallest for SQLite, so whether it is one is a term of its own.
    let keys: Vec<_> = terms
        .iter()
        .enumerate()
        .flat_map(|(n, (_, way))| {
            let descending = *way == Direction::Descending;
            [SortKey { column: 2 * n, descending }, SortKey { column: 2 * n + 1, descending }]
        })
        .collect();
    let mut sorter = inner.session.sorter(&keys);
    let columns: Vec<_> = terms.iter().map(|(column, _)| column).chain(used).copied().collect();
    let mut scan = inner.session.scan_columns(&entry.table, &columns)?;
    while let Some((address, row)) = scan.next(&mut inner.session)? {
        let mut values = row.into_iter();
        let mut record = Row::with_capacity(2 * terms.len() + used.len() + 1);
        for value in values.by_ref().take(terms.len()) {
            record.push(Value::Integer(i64::from(value != Value::Null)));
            record.push(value);
        }
        record.extend(values);
        record.push(Value::Integer(address.to_i64()));
        sorter.push(inner.session.context(), record)?;
    }
    Ok(sorter)
}

fn addressed(row: Row) -> (RowId, Row) {
    let address = match row.last() {
        Some(Value::Integer(address)) => RowId::from_i64(*address),
        other => unreachable!("sorted rows end with their address, not {other:?}"),
    };
    (address, row)
}

/// A range of an index.
struct Range {
    /// Values of its leading columns.
    prefix: Vec<Value>,
    /// Of the column behind them.
    low: Option<(Op, Value)>,
    high: Option<(Op, Value)>,
}

impl Range {
    /// None when no row can be in it. `arguments`: for the `equal` columns, then for the bounds that there are.
    fn new(
        entry: &Entry,
        index: &Index,
        equal: usize,
        bounds: [Option<Op>; 2],
        arguments: Vec<Value>,
        constant: &[bool],
    ) -> Option<Self> {
        let mut found = Self { prefix: Vec::new(), low: None, high: None };
        let mut arguments = arguments.into_iter().zip(constant);
        let mut probe = |column: usize| {
            let (value, &constant) = arguments.next()?;
            Some(entry.types[index.columns[column]].probe(value, constant))
        };
        for column in 0..equal {
            match probe(column)? {
                Probe::Value(value) => found.prefix.push(value),
                Probe::Nothing => return None,
                // Many values equal it; SQLite tells them apart.
                Probe::Many => return Some(found),
            }
        }
        for (bound, place) in bounds.into_iter().zip([&mut found.low, &mut found.high]) {
            let Some(op) = bound else { continue };
            match probe(equal)? {
                Probe::Value(value) => *place = Some((op, value)),
                Probe::Nothing => return None,
                Probe::Many => {}
            }
        }
        Some(found)
    }

    fn bounds(&self) -> (Bound<Vec<Value>>, Bound<Vec<Value>>) {
        let with = |value: &Value| self.prefix.iter().chain([value]).cloned().collect::<Vec<_>>();
        let whole = || match self.prefix.is_empty() {
            true => Bound::Unbounded,
            false => Bound::Included(self.prefix.clone()),
        };
        let from = match &self.low {
            Some((Op::Greater, value)) => Bound::Excluded(with(value)),
            Some((_, value)) => Bound::Included(with(value)),
            None => whole(),
        };
        let to = match &self.high {
            Some((Op::Less, value)) => Bound::Excluded(with(value)),
            Some((_, value)) => Bound::Included(with(value)),
            // NULLs come last, and none of them is greater than anything.
            None if self.low.is_some() => Bound::Excluded(with(&Value::Null)),
            None => whole(),
        };
        (from, to)
    }
}

fn slice(bound: &Bound<Vec<Value>>) -> Bound<&[Value]> {
    bound.as_ref().map(Vec::as_slice)
}

impl Rows for TableRows {
    fn begin(&mut self, plan: &str, arguments: &mut dyn Iterator<Item = ValueRef<'_>>) -> Result<()> {
        let search = Search::decode(plan)
            .ok_or_else(|| Error::ModuleError(format!("the plan {plan} is not one of ours")))?;
        let arguments: Vec<_> = arguments.map(value_of).collect();
        self.buffer.clear();
        (self.source, self.at, self.batch) = (Source::Nothing, 0, BATCH_FIRST);
        let link = self.link.clone();
        link.with(|inner| {
            self.search(inner, &search, arguments)?;
            if self.buffer.is_empty() { self.fill(inner) } else { Ok(()) }
        })
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        if self.at < self.buffer.len() || matches!(self.source, Source::Nothing) {
            return Ok(());
        }
        let link = self.link.clone();
        link.with(|inner| self.fill(inner))
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.buffer.len()
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let value = self.places.get(column).and_then(|&place| self.buffer.get(self.at)?.1.get(place));
        // SQLite asks for no column that it did not announce.
        value.map_or(ValueRef::Null, ref_of)
    }

    fn address(&self) -> i64 {
        self.buffer.get(self.at).map_or(0, |(address, _)| address.to_i64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_travels_as_text() {
        let access =
            Access::Index { index: 3, equal: 1, low: Some(Op::Greater), high: None, descending: true };
        let search = Search { access, columns: u64::MAX, constant: vec![true, false] };
        let text = Search::encode(&search.access, search.columns, &search.constant, "RANGE");
        assert_eq!(text, "I3,1,x,-,D|ffffffffffffffff|10|RANGE");
        assert_eq!(Search::decode(&text), Some(search));
        assert_eq!(Search::decode("S"), None);
    }
}
