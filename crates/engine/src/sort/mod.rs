//! Sorts that spill to the temp tablespace.
//!
//! [`Sorter`] sorts rows by columns, [`EntrySorter`] index entries for [`crate::btree::build`]. Below them, `records`
//! sorts by key bytes: in the `area`, and what does not fit there as runs in temp files (`spill`), which are merged (`merge`).
//! `scratch` is what it stands on, [`TempSpace`] which blocks of the temp files are taken.

mod area;
mod merge;
mod record;
mod records;
mod scratch;
mod spill;
mod temp;

pub use temp::TempSpace;

use crate::btree::encode_value;
use crate::instance::Core;
use crate::value::{Row, RowId};
use crate::{Context, Result};
use records::RecordSorter;
use std::sync::Arc;

/// One column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Index in the row.
    pub column: usize,
    /// Largest first.
    pub descending: bool,
}

/// Collects rows, sorts them, gives them back. Runs beyond `sort_area_size` go to temp files (`direct path write temp`,
/// `direct path read temp`), whose space is free again when the sorter is dropped.
///
/// The order is that of [`crate::btree::encode_key`]: NULL is greater than everything, so it comes last, or first where
/// `descending`. Rows that are equal in all columns come in the order in which they were pushed.
pub struct Sorter {
    keys: Vec<SortKey>,
    records: RecordSorter,
    key: Vec<u8>,
    payload: Vec<u8>,
}

impl Sorter {
    /// For one sort, with the `sort_area_size` of now.
    pub fn new(core: &Arc<Core>, keys: &[SortKey]) -> Self {
        Self::over(RecordSorter::new(core), keys)
    }

    fn over(records: RecordSorter, keys: &[SortKey]) -> Self {
        Self { keys: keys.to_vec(), records, key: Vec::new(), payload: Vec::new() }
    }

    /// Takes a row.
    ///
    /// # Errors
    /// No space in temp, what storage says; drop the sorter then.
    ///
    /// # Panics
    /// When the row has no such column, or after the first [`Sorter::next`].
    pub fn push(&mut self, context: &Context, row: Row) -> Result<()> {
        self.key.clear();
        for sort in &self.keys {
            let from = self.key.len();
            encode_value(&row[sort.column], &mut self.key);
            if sort.descending {
                // With an end of its own, no value's bytes begin another's, and turning all of them turns the order.
                self.key.push(0);
                self.key[from..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        self.payload.clear();
        record::encode(&row, &mut self.payload);
        self.records.push(context, &self.key, &self.payload)
    }

    /// The next row in order; no more pushes after the first call.
    ///
    /// # Errors
    /// What storage says.
    pub fn next(&mut self, context: &Context) -> Result<Option<Row>> {
        Ok(self.records.next(context)?.map(|(_, payload)| record::decode(payload)))
    }
}

/// Collects index entries, gives them back in the order of an index: by encoded key, then row.
pub struct EntrySorter {
    records: RecordSorter,
    key: Vec<u8>,
}

impl EntrySorter {
    /// For one index, with the `sort_area_size` of now.
    pub fn new(core: &Arc<Core>) -> Self {
        Self { records: RecordSorter::new(core), key: Vec::new() }
    }

    /// Takes an entry; `key` is from [`crate::btree::encode_key`].
    ///
    /// # Errors
    /// No space in temp, what storage says; drop the sorter then.
    ///
    /// # Panics
    /// After the first [`EntrySorter::next`].
    pub fn push(&mut self, context: &Context, key: &[u8], row: RowId) -> Result<()> {
        // The row right behind the key sorts after it: where one key begins another, that goes on with FF, and a row with the
        // upper byte of a file number, which is smaller.
        self.key.clear();
        self.key.extend_from_slice(key);
        self.key.extend_from_slice(&row.to_i64().to_be_bytes());
        self.records.push(context, &self.key, &[])
    }

    /// The next entry in order; no more pushes after the first call.
    ///
    /// # Errors
    /// What storage says.
    pub fn next(&mut self, context: &Context) -> Result<Option<(Vec<u8>, RowId)>> {
        Ok(self.records.next(context)?.map(|(record, _)| {
            let (key, row) = record.split_last_chunk().expect("a row is behind the key");
            (key.to_vec(), RowId::from_i64(i64::from_be_bytes(*row)))
        }))
    }
}

#[cfg(test)]
mod tests;
