//! Sorts that spill to the temp tablespace.

use crate::value::Row;
use crate::{Context, Result};

/// One column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Index in the row.
    pub column: usize,
    /// Largest first.
    pub descending: bool,
}

/// Collects rows, sorts them, gives them back. Runs beyond `sort_area_size` go to temp files (`direct path write temp`,
/// `direct path read temp`).
pub struct Sorter {}

impl Sorter {
    /// Takes a row.
    ///
    /// # Errors
    /// No space in temp.
    pub fn push(&mut self, _context: &Context, _row: Row) -> Result<()> {
        unimplemented!()
    }

    /// The next row in order; no more pushes after the first call.
    ///
    /// # Errors
    /// What storage says.
    pub fn next(&mut self, _context: &Context) -> Result<Option<Row>> {
        unimplemented!()
    }
}
