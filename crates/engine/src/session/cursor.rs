//! Rows by key: look-ups and ranges.
//!
//! An index names rows for a key; which version of them is seen, and whether that has this key, the row itself says. So each entry is
//! followed to its row, and the row is taken when its key is the entry's. A row that has had several keys has several entries
//! and is taken once.

use super::transaction::{View, dropped};
use super::{Call, Session};
use crate::btree::{self, RangeScan};
use crate::heap;
use crate::page::PageId;
use crate::space::Index;
use crate::space::lock::Reading;
use crate::statistics::Statistic;
use crate::value::{Row, RowId, Value};
use crate::{EngineError, Result};
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

/// Entries that a range reads ahead so that their rows' blocks can be read together: few at first, as many ranges are short.
const AHEAD_MIN: usize = 4;
const AHEAD_MAX: usize = 64;

/// A range of an index that is being read.
pub struct Cursor {
    index: Index,
    entries: RangeScan,
    view: View,
    ahead: VecDeque<(Vec<u8>, RowId)>,
    ahead_next: usize,
    at_end: bool,
    _reading: Reading,
}

impl Cursor {
    /// The next row.
    ///
    /// # Errors
    /// What storage says.
    pub fn next(&mut self, session: &mut Session) -> Result<Option<(RowId, Row)>> {
        if self.ahead.is_empty() && self.at_end {
            return Ok(None);
        }
        session.call(|call| self.next_row(call))
    }

    fn next_row(&mut self, call: &Call<'_>) -> Result<Option<(RowId, Row)>> {
        loop {
            if self.ahead.is_empty() {
                self.read_ahead(call)?;
            }
            let Some((key, address)) = self.ahead.pop_front() else { return Ok(None) };
            if let Some(row) = call.row_of_entry(&self.index, &key, address, &self.view)? {
                return Ok(Some((address, row)));
            }
        }
    }

    fn read_ahead(&mut self, call: &Call<'_>) -> Result<()> {
        let (core, context) = (&**call.core, call.context);
        while !self.at_end && self.ahead.len() < self.ahead_next {
            match self.entries.next(core, context)? {
                Some(entry) => self.ahead.push_back(entry),
                None => self.at_end = true,
            }
        }
        if self.ahead_next > AHEAD_MIN {
            let mut pages: Vec<PageId> = self.ahead.iter().map(|(_, address)| address.page).collect();
            pages.sort_unstable();
            pages.dedup();
            core.cache.prefetch(core, context, &pages)?;
        }
        self.ahead_next = (self.ahead_next * 2).min(AHEAD_MAX);
        Ok(())
    }
}

impl Call<'_> {
    /// The version of an entry's row that the view sees, if that has the entry's key.
    fn row_of_entry(&self, index: &Index, key: &[u8], address: RowId, view: &View) -> Result<Option<Row>> {
        self.context.count(Statistic::TableFetchByRowid, 1);
        let row = heap::get(self.core, self.context, address, &view.view)?;
        Ok(row.filter(|row| index.key(row) == key))
    }

    /// Enters an index's table to read it, and gives the index's newest description when the caller's is stale.
    fn read_index(&self, index: &Index) -> Result<(Reading, Option<Arc<Index>>)> {
        let reading = index.lock.read(self.asker(index.table), self.cursors)?;
        if !index.is_stale() {
            return Ok((reading, None));
        }
        let table = self.core.space.catalog.by_object(index.table);
        let newest =
            table.and_then(|table| table.indexes.iter().find(|other| other.object == index.object).cloned());
        newest.map(|index| (reading, Some(index))).ok_or_else(|| dropped("index", &index.name))
    }

    /// A view from before the index was built would miss entries of old versions.
    fn check_built(&mut self, index: &Index, view: &View) -> Result<()> {
        if view.view.next >= index.built_at {
            return Ok(());
        }
        self.rollback_statement()?;
        Err(EngineError::StatementRestart)
    }

    pub(super) fn lookup(&mut self, index: &Index, key: &[Value]) -> Result<Vec<(RowId, Row)>> {
        let (_reading, newest) = self.read_index(index)?;
        let index = newest.as_deref().unwrap_or(index);
        let view = self.view();
        self.check_built(index, &view)?;
        self.lookup_in(index, key, &view)
    }

    pub(super) fn lookup_now(&mut self, index: &Index, key: &[Value]) -> Result<Vec<(RowId, Row)>> {
        let (_reading, newest) = self.read_index(index)?;
        let index = newest.as_deref().unwrap_or(index);
        let view = self.view_of_now();
        self.lookup_in(index, key, &view)
    }

    fn lookup_in(&self, index: &Index, key: &[Value], view: &View) -> Result<Vec<(RowId, Row)>> {
        let (core, context) = (&**self.core, self.context);
        context.count(Statistic::IndexFetchByKey, 1);
        let mut rows = Vec::new();
        if key.len() == index.columns.len() {
            let key_bytes = btree::encode_key(key);
            // At most one row with the key is seen, whatever else the entries lead to.
            let one = index.unique && !key.contains(&Value::Null);
            for address in btree::entries_with_key(core, context, &index.segment, &key_bytes)? {
                if let Some(row) = self.row_of_entry(index, &key_bytes, address, view)? {
                    rows.push((address, row));
                    if one {
                        break;
                    }
                }
            }
            return Ok(rows);
        }
        let (from, to) = btree::key_range(Bound::Included(key), Bound::Included(key));
        let mut entries = RangeScan::new(&index.segment, from, to, false);
        while let Some((key, address)) = entries.next(core, context)? {
            if let Some(row) = self.row_of_entry(index, &key, address, view)? {
                rows.push((address, row));
            }
        }
        Ok(rows)
    }

    pub(super) fn range(
        &mut self,
        index: &Index,
        from: Bound<&[Value]>,
        to: Bound<&[Value]>,
        descending: bool,
    ) -> Result<Cursor> {
        let (reading, newest) = self.read_index(index)?;
        let index = newest.as_deref().unwrap_or(index);
        let view = self.view();
        self.check_built(index, &view)?;
        self.context.count(Statistic::IndexScans, 1);
        let (from, to) = btree::key_range(from, to);
        Ok(Cursor {
            entries: RangeScan::new(&index.segment, from, to, descending),
            index: index.with(index.segment, index.built_at),
            view,
            ahead: VecDeque::new(),
            ahead_next: AHEAD_MIN,
            at_end: false,
            _reading: reading,
        })
    }
}
