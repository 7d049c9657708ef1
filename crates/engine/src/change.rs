//! The one way to change pages: a change latches pages, edits them, and becomes one redo record, all or nothing.
//!
//! 1. [`Change::begin`] reserves redo space; this is the only step that may wait for the log writer, and it holds no latch yet.
//! 2. [`Change::page`] and [`Change::new_page`] latch pages exclusively; this may read, wait, and fail.
//! 3. The edits ([`Change::write`], [`Change::copy_within`], [`Change::fill`]) cannot fail. They are applied to the latched
//!    bytes at once and collected as redo: a redo record is a list of byte edits of pages, so recovery knows no row and no key.
//! 4. [`Change::finish`] marks the pages dirty, appends the record to the log buffer, notes its end as the pages' LSN, and
//!    releases the latches.
//!
//! Dropping a change before its first edit releases the latches and the reservation. Dropping it after an edit is a bug
//! and panics: all that can fail belongs before the first edit.

use crate::instance::Core;
use crate::page::{Lsn, PageId, PageKind};
use crate::{Context, Result};

/// Pages being changed together.
pub struct Change<'a> {
    _core: &'a Core,
    _context: &'a Context,
}

/// A page latched by a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub(crate) u16);

impl<'a> Change<'a> {
    /// Begins a change of at most `pages_max` pages and `edit_bytes_max` bytes of edits (data plus 8 for each edit).
    ///
    /// # Errors
    /// [`crate::EngineError::Crashed`] when redo can no longer be written.
    pub fn begin(
        _core: &'a Core,
        _context: &'a Context,
        _pages_max: usize,
        _edit_bytes_max: usize,
    ) -> Result<Self> {
        unimplemented!()
    }

    /// Latches a page exclusively, reading it when it is not cached. The same page twice gives the same handle.
    ///
    /// Latches are taken in this order, or with [`Change::try_page`]: index pages top down and left to right, then heap
    /// pages by address, then undo pages, then space pages (segment header, free space, space map).
    ///
    /// # Errors
    /// What the read met.
    pub fn page(&mut self, _id: PageId) -> Result<Handle> {
        unimplemented!()
    }

    /// As [`Change::page`], but `None` when somebody else holds the latch.
    ///
    /// # Errors
    /// What the read met.
    pub fn try_page(&mut self, _id: PageId) -> Result<Option<Handle>> {
        unimplemented!()
    }

    /// A page whose old content does not matter, formatted: not read, and recovery does not read it either.
    ///
    /// # Errors
    /// No free buffer.
    pub fn new_page(&mut self, _id: PageId, _kind: PageKind, _object: u32) -> Result<Handle> {
        unimplemented!()
    }

    /// The page as it is now, edits so far included.
    pub fn bytes(&self, _page: Handle) -> &[u8] {
        unimplemented!()
    }

    /// Its address.
    pub fn id(&self, _page: Handle) -> PageId {
        unimplemented!()
    }

    /// Gives a page back before it was edited; lets others at it while this change goes on.
    pub fn release(&mut self, _page: Handle) {
        unimplemented!()
    }

    /// Writes `data` at byte `at` (from [`crate::page::HEADER_BYTES`] on; also bytes 24 to 32, which are the kind's).
    pub fn write(&mut self, _page: Handle, _at: usize, _data: &[u8]) {
        unimplemented!()
    }

    /// `memmove` inside the page.
    pub fn copy_within(&mut self, _page: Handle, _from: std::ops::Range<usize>, _to: usize) {
        unimplemented!()
    }

    /// Fills `length` bytes.
    pub fn fill(&mut self, _page: Handle, _at: usize, _length: usize, _byte: u8) {
        unimplemented!()
    }

    /// Everything happens now. The LSN is the end of the record: durable once the log is flushed up to it.
    pub fn finish(self) -> Lsn {
        unimplemented!()
    }
}
