//! B+tree indexes: keys with row addresses.

use crate::instance::Core;
use crate::space::Segment;
use crate::transaction::Transaction;
use crate::value::{RowId, Value};
use crate::{Context, Result};
use std::ops::Bound;

/// `values` as bytes that compare (`memcmp`) as the values do: NULL last, numbers in one order, then text, then blobs.
pub fn encode_key(_values: &[Value]) -> Vec<u8> {
    unimplemented!()
}

/// Makes the root page of a new index in its segment.
///
/// # Errors
/// What storage says.
pub fn create(_core: &Core, _context: &Context, _segment: &Segment) -> Result<()> {
    unimplemented!()
}

/// Adds an entry; nothing happens when the same key and row are there already (then nothing is taken back either). With
/// `transaction`, an undo record goes along in the same redo record.
///
/// # Errors
/// What storage says.
pub fn insert(
    _core: &Core,
    _context: &Context,
    _segment: &Segment,
    _transaction: Option<&mut Transaction>,
    _key: &[u8],
    _row: RowId,
) -> Result<()> {
    unimplemented!()
}

/// Takes an entry out; fine when it is not there. Used by rollback and purge.
///
/// # Errors
/// What storage says.
pub fn remove(_core: &Core, _context: &Context, _segment: &Segment, _key: &[u8], _row: RowId) -> Result<()> {
    unimplemented!()
}

/// Walks entries in key order (or backwards), a leaf at a time; holds no latch between calls.
pub struct RangeScan {}

impl RangeScan {
    /// From and to, in encoded keys.
    pub fn new(_segment: &Segment, _from: Bound<Vec<u8>>, _to: Bound<Vec<u8>>, _descending: bool) -> Self {
        unimplemented!()
    }

    /// The next entry.
    ///
    /// # Errors
    /// What storage says.
    pub fn next(&mut self, _core: &Core, _context: &Context) -> Result<Option<(Vec<u8>, RowId)>> {
        unimplemented!()
    }
}
