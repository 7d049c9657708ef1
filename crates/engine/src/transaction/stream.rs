//! Transactions as they write undo: streams, records, and how a change carries one.

use super::edit::Latched;
use super::record::{self, RecordHead, Undo};
use super::segment::UndoSegment;
use super::undo_page;
use super::{UndoMark, UndoPtr, Xid};
use crate::change::{Change, Handle};
use crate::heap::InsertPages;
use crate::instance::Core;
use crate::page::PageId;
use crate::{Context, EngineError, Result};
use std::sync::Arc;

/// A slot of a transaction table with its chain of undo pages, and what belongs to whoever has it: one transaction at
/// a time, as a rule those of one session, one after the other. So nobody else latches its undo page or inserts into
/// its heap pages.
pub(crate) struct Stream {
    /// Who had it last.
    pub(super) session: u32,
    segment: Arc<UndoSegment>,
    pub(super) slot: u16,
    /// Where the next record goes; none before the first.
    pub(super) tail: PageId,
    /// Where in it.
    pub(super) used: usize,
    /// The tail's position in the chain.
    pub(super) sequence: u32,
    /// End number of the slot's last transaction, 0 for none.
    pub(super) previous_end: u64,
    /// A record on its way into a page; kept for its memory.
    record: Vec<u8>,
    /// Where its rows are inserted.
    pub(crate) inserts: InsertPages,
}

impl Stream {
    /// A slot that was never used.
    pub fn new(segment: Arc<UndoSegment>, slot: u16) -> Self {
        Self {
            session: 0,
            segment,
            slot,
            tail: PageId::NONE,
            used: 0,
            sequence: 0,
            previous_end: 0,
            record: Vec::new(),
            inserts: InsertPages::default(),
        }
    }

    pub fn segment(&self) -> &Arc<UndoSegment> {
        &self.segment
    }

    /// Undo segment in the upper, slot in the lower 16 bits.
    pub fn number(&self) -> u32 {
        (u32::from(self.segment.number) << 16) | u32::from(self.slot)
    }
}

/// A transaction that goes on; belongs to a session. Does nothing on drop: the session commits or rolls back.
pub struct Transaction {
    /// Its id.
    pub xid: Xid,
    stream: Stream,
    /// Its last record that was not taken back.
    pub(super) last: UndoPtr,
    /// Its first record; none (0) when it has not begun on disk.
    pub(super) first: UndoPtr,
    /// Number of its next record.
    next_number: u64,
    /// Whether purge has something to do when it has committed.
    pub(super) work: bool,
    /// Bytes of its records.
    pub(super) undo_bytes: u64,
}

/// The pages of a change that an undo record goes to, latched by [`Transaction::latch`].
#[derive(Clone, Copy, Debug)]
pub struct UndoPages {
    page: Handle,
    header: Option<Handle>,
}

/// How a change carries an undo record, for `heap` and `btree`:
/// 1. [`Transaction::reserve`], before [`Change::begin`], which is then told [`Transaction::CHANGE_PAGES`] and
///    [`Transaction::change_bytes`] more;
/// 2. [`Transaction::latch`], after all index and heap pages are latched; the last thing that may fail;
/// 3. [`Transaction::write`], then the edits that it takes back, then [`Change::finish`].
impl Transaction {
    /// Pages that an undo record adds to a change.
    pub const CHANGE_PAGES: usize = 2;

    /// One that has written nothing yet.
    pub(super) fn new(xid: Xid, stream: Stream) -> Self {
        Self { xid, stream, last: UndoPtr(0), first: UndoPtr(0), next_number: 1, work: false, undo_bytes: 0 }
    }

    /// One that recovery found: its records from `first` to `last`.
    pub(super) fn found(xid: Xid, stream: Stream, first: UndoPtr, last: UndoPtr) -> Self {
        Self { xid, stream, last, first, next_number: u64::MAX, work: false, undo_bytes: 0 }
    }

    /// Bytes of edits that an undo record of at most `bytes` adds to a change: the record, where the page's records
    /// end, and the transaction's beginning in the undo header, each with what an edit costs.
    pub fn change_bytes(bytes: usize) -> usize {
        (bytes + 8) + (4 + 8) + (8 + 8)
    }

    /// Makes room for an undo record of at most `bytes` (see [`Undo::bytes`]); no latch may be held. May take a new
    /// undo page, which is a change of its own.
    ///
    /// # Errors
    /// [`EngineError::TablespaceFull`] for the undo tablespace.
    pub fn reserve(&mut self, core: &Core, context: &Context, bytes: usize) -> Result<()> {
        let stream = &mut self.stream;
        let page_bytes = stream.segment.page_bytes();
        if stream.tail.is_some() && stream.used + bytes <= page_bytes {
            return Ok(());
        }
        let max = undo_page::record_max(page_bytes);
        if bytes > max {
            return Err(EngineError::RowTooLong { bytes, block_bytes: page_bytes, max });
        }
        stream.extend(core, context)
    }

    /// Latches where the record goes. Dropping the change afterwards, unedited, is fine.
    ///
    /// # Errors
    /// What storage says.
    pub fn latch(&mut self, change: &mut Change<'_>) -> Result<UndoPages> {
        let page = change.page(self.stream.tail)?;
        let header = if self.has_begun() { None } else { Some(change.page(self.stream.segment.header)?) };
        Ok(UndoPages { page, header })
    }

    /// Writes the record. The transaction has begun on disk with its first one, in the same redo record: no page ever has
    /// the id of a transaction that the transaction table does not know.
    pub fn write(&mut self, change: &mut Change<'_>, pages: UndoPages, undo: &Undo<'_>) -> UndoPtr {
        let stream = &mut self.stream;
        let head = RecordHead {
            length: 0,
            undone: false,
            xid: self.xid,
            previous: self.last,
            number: self.next_number,
            previous_end: pages.header.map(|_| stream.previous_end),
        };
        record::encode(&mut stream.record, &head, undo);
        let at = stream.used;
        let page_bytes = stream.segment.page_bytes();
        assert!(at + stream.record.len() <= page_bytes, "room for {undo:?} was not reserved");
        undo_page::append(&mut Latched::new(change, pages.page), at, &stream.record);
        stream.used += stream.record.len();
        self.undo_bytes += stream.record.len() as u64;
        let record = UndoPtr::new(stream.tail, at);
        if let Some(header) = pages.header {
            undo_page::begin(&mut Latched::new(change, header), stream.slot, self.xid);
            self.first = record;
        }
        self.last = record;
        self.next_number += 1;
        self.work |= matches!(undo, Undo::Delete { .. } | Undo::Update { keys: true, .. });
        record
    }

    /// This moment, to come back to with [`super::Transactions::rollback_to`]. Costs nothing.
    pub fn mark(&self) -> UndoMark {
        UndoMark(self.next_number)
    }

    /// Bytes that its undo page still has.
    pub(crate) fn room(&self) -> usize {
        self.stream.segment.page_bytes() - self.stream.used
    }

    /// Number that its next undo record will have.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Whether it has written anything.
    pub(super) fn has_begun(&self) -> bool {
        self.first != UndoPtr(0)
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    pub(super) fn into_stream(self) -> Stream {
        self.stream
    }
}
