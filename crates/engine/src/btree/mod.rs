//! B+tree indexes: keys with row addresses.
//!
//! A tree's entries are pairs of an encoded key ([`encode_key`]) and a [`RowId`], ordered by key, then row; the same key may be
//! there with many rows. Entries have no versions: a reader looks at the row that it sees and compares the key, and entries
//! of deleted rows stay until purge. The root is the block after the segment's header and never moves; it is always a
//! branch, and leaves are on level 0.
//!
//! Start with `node` (one page), then `descend` (the ways down), `insert`, `split`, `remove`, `scan`. `build` makes a tree from
//! sorted entries, `check` looks whether one is sound. `pages` is what they stand on.

mod build;
mod check;
mod descend;
mod insert;
mod key;
mod node;
mod pages;
mod remove;
mod scan;
mod split;

pub use check::Structure;
pub use insert::Judgement;
pub use key::{decode_key, encode_key, encode_value, key_range};

use crate::instance::Core;
use crate::space::Segment;
use crate::statistics::Statistic;
use crate::transaction::Transaction;
use crate::value::RowId;
use crate::{Context, Result};
use pages::Live;
use scan::Cursor;
use std::cell::RefCell;
use std::ops::Bound;

/// The longest encoded key that a block of this size takes: a quarter of it, less some bytes.
pub const fn key_bytes_max(block_bytes: usize) -> usize {
    node::key_bytes_max(block_bytes)
}

/// Makes the tree of a new index in its segment, empty.
///
/// # Errors
/// What storage says.
pub fn create(core: &Core, context: &Context, segment: &Segment) -> Result<()> {
    build(core, context, segment, &mut std::iter::empty()).map(|_| ())
}

/// Makes the tree of a new index in its segment from entries in order (strictly ascending by key, then row), instead of
/// [`create`] and many [`insert()`]s. The result is how many there were.
///
/// # Errors
/// What storage says, what `entries` says, [`crate::EngineError::Invalid`] for a key that is too long; drop the segment then.
///
/// # Panics
/// When the entries are not in order.
pub fn build(
    core: &Core,
    context: &Context,
    segment: &Segment,
    entries: &mut dyn Iterator<Item = Result<(Vec<u8>, RowId)>>,
) -> Result<u64> {
    let block_bytes = core.files.block_bytes() as usize;
    build::build(&Live::new(core, context, segment), block_bytes, entries)
}

/// Adds an entry; nothing happens when the same key and row are there already (then nothing is taken back either). With
/// `transaction`, an undo record goes along in the same redo record.
///
/// # Errors
/// What storage says; [`crate::EngineError::Invalid`] for a key that is too long.
pub fn insert(
    core: &Core,
    context: &Context,
    segment: &Segment,
    transaction: Option<&mut Transaction>,
    key: &[u8],
    row: RowId,
) -> Result<()> {
    let transaction = RefCell::new(transaction);
    insert::insert(&Live { transaction, ..Live::new(core, context, segment) }, key, row)
}

/// As [`insert()`], for a unique index: asks `judge` about the rows other than `row` that the index has for the key (not when there
/// are none), and adds the entry when it says [`Judgement::Proceed`]. Until then nobody else can add an entry with
/// this key. `judge` may read heap pages and look at transactions; it must not wait, nor touch an index.
///
/// The result is what `judge` said last; after [`Judgement::WaitFor`] wait and call again.
///
/// # Errors
/// As [`insert()`], and what `judge` says.
pub fn insert_unique(
    core: &Core,
    context: &Context,
    segment: &Segment,
    transaction: Option<&mut Transaction>,
    key: &[u8],
    row: RowId,
    judge: &mut dyn FnMut(&[RowId]) -> Result<Judgement>,
) -> Result<Judgement> {
    let transaction = RefCell::new(transaction);
    insert::insert_unique(&Live { transaction, ..Live::new(core, context, segment) }, key, row, judge)
}

/// Takes an entry out; fine when it is not there. Used by rollback and purge.
///
/// # Errors
/// What storage says.
pub fn remove(core: &Core, context: &Context, segment: &Segment, key: &[u8], row: RowId) -> Result<()> {
    remove::remove(&Live::new(core, context, segment), key, row)
}

/// The rows that the index has for a key, by address; some may be deleted, or have another key by now.
///
/// # Errors
/// What storage says.
pub fn entries_with_key(core: &Core, context: &Context, segment: &Segment, key: &[u8]) -> Result<Vec<RowId>> {
    context.count(Statistic::IndexFetchByKey, 1);
    scan::rows_with_key(&Live::new(core, context, segment), key)
}

/// Looks whether the tree is sound, page by page.
///
/// # Errors
/// What storage says; what is wrong with the tree is in the result.
pub fn check(core: &Core, context: &Context, segment: &Segment) -> Result<Structure> {
    check::check(&Live::new(core, context, segment))
}

/// Walks entries in key order (or backwards), a leaf at a time; holds no latch between calls. Entries that come or go while it
/// walks may be given or not; all others are given once.
pub struct RangeScan {
    segment: Segment,
    cursor: Cursor,
    begun: bool,
}

impl RangeScan {
    /// From and to, in encoded keys; [`key_range`] makes them from leading values.
    pub fn new(segment: &Segment, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>, descending: bool) -> Self {
        Self { segment: *segment, cursor: Cursor::new(from, to, descending), begun: false }
    }

    /// The next entry.
    ///
    /// # Errors
    /// What storage says.
    pub fn next(&mut self, core: &Core, context: &Context) -> Result<Option<(Vec<u8>, RowId)>> {
        Ok(self.next_ref(core, context)?.map(|(key, row)| (key.to_vec(), row)))
    }

    /// As [`RangeScan::next`], without a copy of the key.
    ///
    /// # Errors
    /// What storage says.
    pub fn next_ref(&mut self, core: &Core, context: &Context) -> Result<Option<(&[u8], RowId)>> {
        if !std::mem::replace(&mut self.begun, true) {
            context.count(Statistic::IndexScans, 1);
        }
        self.cursor.next(&Live::new(core, context, &self.segment))
    }
}

#[cfg(test)]
mod tests;
