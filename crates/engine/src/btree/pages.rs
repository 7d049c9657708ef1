//! What a tree stands on: pages to read, changes to make, space to take and give back.
//!
//! [`Live`] is the engine. The tests have another one, in memory, with latches and a redo of its own, so that the walks of this
//! module are tried with threads and failing floors before anything else.

use super::node::{self, Sink};
use crate::change::{Change, Handle};
use crate::instance::Core;
use crate::page::{self, Lsn, PageId, PageKind};
use crate::space::Segment;
use crate::statistics::Statistic;
use crate::transaction::{Transaction, Undo, UndoPages};
use crate::value::RowId;
use crate::{Context, EngineError, Result};
use std::cell::RefCell;
use std::ops::{Deref, Range};

/// The floors below one tree, for one caller.
pub(super) trait Pages {
    /// A page latched for reading.
    type Read: Deref<Target = [u8]>;
    /// Pages being changed together.
    type Change: Edit;
    /// Where an undo record will be written.
    type Undo;

    /// Where the tree begins; never moves.
    fn root(&self) -> PageId;
    fn object(&self) -> u32;
    /// Latches a page for reading.
    fn read(&self, id: PageId) -> Result<Self::Read>;
    /// Has the pages read; call it without a latch.
    fn prefetch(&self, ids: &[PageId]) -> Result<()>;
    /// Begins a change; call it without a latch.
    fn begin(&self, pages_max: usize, edit_bytes_max: usize) -> Result<Self::Change>;
    /// Makes room for the undo record of an entry; call it without a latch. The result is what the record may add to a change:
    /// pages and bytes of edits. Without a transaction there is no undo, here and in the next two.
    fn reserve_undo(&self, key: &[u8], row: RowId) -> Result<(usize, usize)>;
    /// Latches the undo pages, after those of the index.
    fn latch_undo(&self, change: &mut Self::Change) -> Result<Self::Undo>;
    /// Writes the record, before the edits that it takes back.
    fn write_undo(&self, change: &mut Self::Change, undo: Self::Undo, key: &[u8], row: RowId);
    /// A page to format; call it without a latch.
    fn allocate(&self) -> Result<PageId>;
    /// Gives a page back; call it without a latch.
    fn free(&self, id: PageId) -> Result<()>;
    /// Counts something that happened.
    fn count(&self, statistic: Statistic);
    /// The error of a page that is not what the tree led to.
    fn corrupt(&self, id: PageId, expected: String, found: String) -> EngineError;
}

/// A change of pages, as [`Change`] has it.
pub(super) trait Edit {
    fn page(&mut self, id: PageId) -> Result<Handle>;
    fn new_page(&mut self, id: PageId, kind: PageKind, object: u32) -> Result<Handle>;
    fn bytes(&self, page: Handle) -> &[u8];
    fn id(&self, page: Handle) -> PageId;
    fn release(&mut self, page: Handle);
    fn write(&mut self, page: Handle, at: usize, data: &[u8]);
    fn copy_within(&mut self, page: Handle, from: Range<usize>, to: usize);
    fn finish(self) -> Lsn;
}

/// One page of a change, to be edited as a node.
pub(super) struct Editing<'c, C> {
    change: &'c mut C,
    page: Handle,
}

/// Begins to edit a latched page.
pub(super) fn edit<C: Edit>(change: &mut C, page: Handle) -> Editing<'_, C> {
    Editing { change, page }
}

impl<C: Edit> Sink for Editing<'_, C> {
    fn bytes(&self) -> &[u8] {
        self.change.bytes(self.page)
    }
    fn write(&mut self, at: usize, data: &[u8]) {
        self.change.write(self.page, at, data);
    }
    fn copy_within(&mut self, from: Range<usize>, to: usize) {
        self.change.copy_within(self.page, from, to);
    }
}

/// Checks that a page is a node of this tree, of the level that its parent promises (`None`: the root, a branch of any level).
///
/// # Errors
/// [`EngineError::CorruptBlock`].
pub(super) fn expect_node<P: Pages>(pages: &P, id: PageId, bytes: &[u8], level: Option<u8>) -> Result<()> {
    let there = node::level(bytes);
    let right_level = level.map_or(there > 0, |level| there == level);
    if right_level && bytes[4] == node::kind(there) as u8 && page::object(bytes) == pages.object() {
        return Ok(());
    }
    let level = level.map_or_else(|| "root".into(), |level| format!("node of level {level}"));
    Err(pages.corrupt(
        id,
        format!("a {level} of the index with object number {}", pages.object()),
        format!("kind {}, level {there}, object number {}", bytes[4], page::object(bytes)),
    ))
}

/// The engine's pages of one segment.
pub(super) struct Live<'a> {
    pub core: &'a Core,
    pub context: &'a Context,
    pub segment: &'a Segment,
    pub transaction: RefCell<Option<&'a mut Transaction>>,
}

impl<'a> Live<'a> {
    pub fn new(core: &'a Core, context: &'a Context, segment: &'a Segment) -> Self {
        Self { core, context, segment, transaction: RefCell::new(None) }
    }

    fn undo<'k>(&self, key: &'k [u8], row: RowId) -> Undo<'k> {
        Undo::IndexInsert { object: self.segment.object, key, row }
    }
}

impl<'a> Pages for Live<'a> {
    type Read = crate::cache::PageRead;
    type Change = Change<'a>;
    type Undo = Option<UndoPages>;

    fn root(&self) -> PageId {
        // Space promises it: the first page that a segment gives is the block after its header.
        PageId { block: self.segment.header.block + 1, ..self.segment.header }
    }
    fn object(&self) -> u32 {
        self.segment.object
    }
    fn read(&self, id: PageId) -> Result<Self::Read> {
        self.core.cache.read(self.core, self.context, id)
    }
    fn prefetch(&self, ids: &[PageId]) -> Result<()> {
        self.core.cache.prefetch(self.core, self.context, ids)
    }
    fn begin(&self, pages_max: usize, edit_bytes_max: usize) -> Result<Change<'a>> {
        Change::begin(self.core, self.context, pages_max, edit_bytes_max)
    }
    fn reserve_undo(&self, key: &[u8], row: RowId) -> Result<(usize, usize)> {
        let Some(transaction) = &mut *self.transaction.borrow_mut() else { return Ok((0, 0)) };
        let bytes = self.undo(key, row).bytes();
        transaction.reserve(self.core, self.context, bytes)?;
        Ok((Transaction::CHANGE_PAGES, Transaction::change_bytes(bytes)))
    }
    fn latch_undo(&self, change: &mut Change<'a>) -> Result<Option<UndoPages>> {
        self.transaction.borrow_mut().as_mut().map(|transaction| transaction.latch(change)).transpose()
    }
    fn write_undo(&self, change: &mut Change<'a>, undo: Option<UndoPages>, key: &[u8], row: RowId) {
        if let (Some(transaction), Some(pages)) = (&mut *self.transaction.borrow_mut(), undo) {
            transaction.write(change, pages, &self.undo(key, row));
        }
    }
    fn allocate(&self) -> Result<PageId> {
        self.core.space.allocate_page(self.core, self.context, self.segment)
    }
    fn free(&self, id: PageId) -> Result<()> {
        self.core.space.free_page(self.core, self.context, self.segment, id)
    }
    fn count(&self, statistic: Statistic) {
        self.context.count(statistic, 1);
    }
    fn corrupt(&self, id: PageId, expected: String, found: String) -> EngineError {
        let (_, path) = self.core.files.of(id);
        EngineError::CorruptBlock { id, path, expected, found }
    }
}

impl Edit for Change<'_> {
    fn page(&mut self, id: PageId) -> Result<Handle> {
        Change::page(self, id)
    }
    fn new_page(&mut self, id: PageId, kind: PageKind, object: u32) -> Result<Handle> {
        Change::new_page(self, id, kind, object)
    }
    fn bytes(&self, page: Handle) -> &[u8] {
        Change::bytes(self, page)
    }
    fn id(&self, page: Handle) -> PageId {
        Change::id(self, page)
    }
    fn release(&mut self, page: Handle) {
        Change::release(self, page);
    }
    fn write(&mut self, page: Handle, at: usize, data: &[u8]) {
        Change::write(self, page, at, data);
    }
    fn copy_within(&mut self, page: Handle, from: Range<usize>, to: usize) {
        Change::copy_within(self, page, from, to);
    }
    fn finish(self) -> Lsn {
        Change::finish(self)
    }
}
