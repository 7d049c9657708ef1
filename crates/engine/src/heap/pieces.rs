//! Rows on their way into pages, as the pages will have them.
//!
//! A row comes as values, or as the bytes that another page has of it: `INSERT … SELECT` between tables whose columns
//! store alike copies rows from page to page and never makes values of them.

use super::change::check_length;
use super::layout;
use super::malformed;
use super::page::{ROW_HEADER_BYTES, RowHeader};
use crate::Result;
use crate::instance::Core;
use crate::row;
use crate::value::{RowId, Value};

/// Row pieces, one after the other, headers still empty.
pub struct Pieces {
    page_bytes: usize,
    bytes: Vec<u8>,
    capacities: Vec<usize>,
    /// How many are in their pages already, and their bytes.
    placed: usize,
    placed_bytes: usize,
}

impl Pieces {
    /// None yet, for pages of so many bytes.
    pub fn new(page_bytes: usize) -> Self {
        Self { page_bytes, bytes: Vec::new(), capacities: Vec::new(), placed: 0, placed_bytes: 0 }
    }

    /// Forgets them and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.capacities.clear();
        (self.placed, self.placed_bytes) = (0, 0);
    }

    /// How many, those included that are in their pages already.
    pub fn count(&self) -> usize {
        self.capacities.len()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// [`crate::EngineError::RowTooLong`].
    pub fn push(&mut self, row: &[Value]) -> Result<()> {
        let start = self.begin();
        row::encode(row, &mut self.bytes);
        self.end(start)
    }

    /// Adds a row that lies in a page, there at `row`: all of its content, or with `columns` just these, in this order. Bytes
    /// behind the content's end are left out.
    ///
    /// # Errors
    /// [`crate::EngineError::RowTooLong`]; [`crate::EngineError::CorruptBlock`] when the bytes are no row.
    pub(super) fn push_content(
        &mut self,
        core: &Core,
        row: RowId,
        content: &[u8],
        columns: Option<&[usize]>,
    ) -> Result<()> {
        let start = self.begin();
        let copied = match columns {
            None => row::content_bytes(content).map(|bytes| self.bytes.extend_from_slice(&content[..bytes])),
            Some(columns) => row::copy_columns(content, columns, &mut self.bytes),
        };
        copied.map_err(malformed(core, row))?;
        self.end(start)
    }

    fn begin(&mut self) -> usize {
        let start = self.bytes.len();
        self.bytes.resize(start + ROW_HEADER_BYTES, 0);
        start
    }

    fn end(&mut self, start: usize) -> Result<()> {
        let piece = self.bytes.len() - start;
        check_length(piece - ROW_HEADER_BYTES, self.page_bytes)?;
        let capacity = layout::capacity_for(piece);
        self.bytes.resize(start + capacity, 0);
        self.capacities.push(capacity);
        Ok(())
    }

    /// Capacities of those that are still to be placed.
    pub(super) fn left(&self) -> &[usize] {
        &self.capacities[self.placed..]
    }

    /// Bytes of those that are still to be placed.
    pub(super) fn left_bytes(&self) -> usize {
        self.bytes.len() - self.placed_bytes
    }

    /// Takes the next `rows` of them, with this header: their bytes and their capacities.
    pub(super) fn take(&mut self, rows: usize, header: RowHeader) -> (&[u8], &[usize]) {
        let header = header.to_bytes();
        let (first, start) = (self.placed, self.placed_bytes);
        self.placed += rows;
        let capacities = &self.capacities[first..self.placed];
        for capacity in capacities {
            self.bytes[self.placed_bytes..][..ROW_HEADER_BYTES].copy_from_slice(&header);
            self.placed_bytes += capacity;
        }
        (&self.bytes[start..self.placed_bytes], capacities)
    }
}
