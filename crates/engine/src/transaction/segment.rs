//! Undo segments: where pages for undo come from and go back to.
//!
//! The pages of a segment are its header, the chains of its slots, and the free list in the header. All three are changed
//! under the mutex `list`, so who takes a page off the free list may look at it before latching it. A page that is on no
//! chain is latched by nobody else, which is why it may be latched after the header.
//!
//! Room is looked for in this order: the segment's free list; a page that its space never gave before; what purge
//! frees; a free page of another segment of the tablespace. Only then the tablespace is full.

use super::edit::Latched;
use super::stream::Stream;
use super::undo_page::{self, UndoHeader};
use super::{Transactions, Xid};
use crate::change::Change;
use crate::instance::Core;
use crate::page::{PageId, PageKind};
use crate::space::Segment;
use crate::{Context, EngineError, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const _: () = assert!(SEGMENTS as usize <= undo_page::SEGMENTS_MAX);

/// Bytes of edits of a change that moves pages between chains and lists.
const LINK_EDIT_BYTES: usize = 256;

/// Undo segments of a tablespace that has room for them.
const SEGMENTS: u32 = 10;
/// Room that a segment should have: a small tablespace gets fewer.
const BLOCKS_PER_SEGMENT: u32 = 64;

/// Object number of an undo segment: beyond all that the catalog gives out.
pub(super) fn undo_object(tablespace: u16, number: u32) -> u32 {
    0x8000_0000 | (u32::from(tablespace) << 8) | number
}

/// An undo segment that is attached.
pub(crate) struct UndoSegment {
    segment: Segment,
    /// Position among the attached ones: the undo segment number (usn) of waits and views.
    pub(super) number: u16,
    pub(super) header: PageId,
    slots: u16,
    page_bytes: usize,
    /// How many transactions had ended when the last one of this segment had: a view that noted fewer may need its undo.
    last_ended: AtomicU64,
    /// Guards the free list; has a page that the space gave and that is not noted in the header yet.
    list: Mutex<Option<PageId>>,
}

impl UndoSegment {
    /// Where the header of an undo segment is: the first page that a segment gives is the block after its own header.
    pub fn header_of(segment: &Segment) -> PageId {
        PageId { block: segment.header.block + 1, ..segment.header }
    }

    /// Of a segment whose header page is `page`.
    pub fn new(segment: Segment, number: u16, page: &[u8]) -> Self {
        Self {
            segment,
            number,
            header: Self::header_of(&segment),
            slots: undo_page::slots(page),
            page_bytes: page.len(),
            last_ended: AtomicU64::new(0),
            list: Mutex::new(None),
        }
    }

    pub fn tablespace(&self) -> u16 {
        self.segment.tablespace
    }

    /// Its space.
    #[cfg(test)]
    pub fn space(&self) -> &Segment {
        &self.segment
    }

    pub fn slots(&self) -> u16 {
        self.slots
    }

    /// A transaction of the segment has ended; so many have now.
    pub(super) fn note_end(&self, count: u64) {
        self.last_ended.store(count, Ordering::Relaxed);
    }

    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Gives the stream an empty page as its tail, in one change.
    fn link_page(&self, core: &Core, context: &Context, stream: &mut Stream) -> Result<()> {
        let mut spare = self.list.lock();
        let mut header = UndoHeader::read(&core.cache.read(core, context, self.header)?);
        let page = if header.free_list.is_some() {
            let page = header.free_list;
            header.free_list = undo_page::next(&core.cache.read(core, context, page)?);
            header.free -= 1;
            page
        } else {
            // The page is ours from here on, also when the change fails: the next one uses it.
            let page = match *spare {
                Some(page) => page,
                None => core.space.allocate_page(core, context, &self.segment)?,
            };
            *spare = Some(page);
            header.taken += 1;
            page
        };
        let mut change = Change::begin(core, context, 3, LINK_EDIT_BYTES)?;
        let tail = match stream.tail {
            PageId::NONE => None,
            tail => Some(change.page(tail)?),
        };
        let head = change.page(self.header)?;
        let fresh = change.new_page(page, PageKind::Undo, self.segment.object)?;
        undo_page::init(&mut Latched::new(&mut change, fresh), stream.sequence + 1, stream.tail);
        if let Some(tail) = tail {
            undo_page::set_next(&mut Latched::new(&mut change, tail), page);
        }
        let mut latched = Latched::new(&mut change, head);
        header.write(&mut latched);
        undo_page::set_tail(&mut latched, stream.slot, page);
        if tail.is_none() {
            undo_page::set_head(&mut latched, stream.slot, page);
        }
        change.finish();
        if *spare == Some(page) {
            *spare = None;
        }
        stream.tail = page;
        stream.used = undo_page::RECORDS_AT;
        stream.sequence += 1;
        Ok(())
    }

    /// Puts the pages of a slot's chain before `tail` on the free list, in one change however many they are: they are
    /// linked already. Notes that everything that ended up to `horizon` is purged: the pages of who ended before are used
    /// again from here on, so purge must not come back to them after a restart.
    pub(super) fn free_before(
        &self,
        core: &Core,
        context: &Context,
        slot: u16,
        tail: PageId,
        horizon: u64,
    ) -> Result<u32> {
        let _list = self.list.lock();
        let entry = undo_page::slot(&core.cache.read(core, context, self.header)?, slot);
        let Some(head) = entry.map(|entry| entry.head).filter(|&head| head != tail) else { return Ok(0) };
        let first = undo_page::sequence(&core.cache.read(core, context, head)?);
        let (last, end) = {
            let page = core.cache.read(core, context, tail)?;
            (undo_page::previous(&page), undo_page::sequence(&page))
        };
        let pages = end - first;
        let mut change = Change::begin(core, context, 2, LINK_EDIT_BYTES)?;
        let last = change.page(last)?;
        let page = change.page(self.header)?;
        let mut header = UndoHeader::read(change.bytes(page));
        undo_page::set_next(&mut Latched::new(&mut change, last), header.free_list);
        header.free_list = head;
        header.free += pages;
        header.horizon = header.horizon.max(horizon);
        let mut latched = Latched::new(&mut change, page);
        header.write(&mut latched);
        undo_page::set_head(&mut latched, slot, tail);
        change.finish();
        Ok(pages)
    }

    /// Moves a free page of `from` to our free list; false when it has none.
    fn take_from(&self, core: &Core, context: &Context, from: &Self) -> Result<bool> {
        let (first, second) = if self.number < from.number { (self, from) } else { (from, self) };
        let _lists = (first.list.lock(), second.list.lock());
        let mut theirs = UndoHeader::read(&core.cache.read(core, context, from.header)?);
        let mut ours = UndoHeader::read(&core.cache.read(core, context, self.header)?);
        if !theirs.free_list.is_some() {
            return Ok(false);
        }
        let page = theirs.free_list;
        theirs.free_list = undo_page::next(&core.cache.read(core, context, page)?);
        theirs.free -= 1;
        let after = std::mem::replace(&mut ours.free_list, page);
        ours.free += 1;
        let mut change = Change::begin(core, context, 3, LINK_EDIT_BYTES)?;
        let moved = change.page(page)?;
        let lower = change.page(self.header.min(from.header))?;
        let upper = change.page(self.header.max(from.header))?;
        let (our_page, their_page) = if self.header < from.header { (lower, upper) } else { (upper, lower) };
        undo_page::set_next(&mut Latched::new(&mut change, moved), after);
        theirs.write(&mut Latched::new(&mut change, their_page));
        ours.write(&mut Latched::new(&mut change, our_page));
        change.finish();
        Ok(true)
    }

    /// Puts pages that the space gave, and that a crash kept from being noted, on the free list.
    pub(super) fn adopt_lost(&self, core: &Core, context: &Context) -> Result<()> {
        let _list = self.list.lock();
        let header = UndoHeader::read(&core.cache.read(core, context, self.header)?);
        let runs = core.space.runs(core, context, &self.segment)?;
        let pages = runs
            .into_iter()
            .flat_map(|(first, blocks)| {
                (first.block..first.block + blocks).map(move |block| PageId { block, ..first })
            })
            .filter(|page| *page != self.segment.header);
        for page in pages.skip(header.taken as usize) {
            let mut change = Change::begin(core, context, 2, LINK_EDIT_BYTES)?;
            let head = change.page(self.header)?;
            let fresh = change.new_page(page, PageKind::Undo, self.segment.object)?;
            let mut header = UndoHeader::read(change.bytes(head));
            let mut latched = Latched::new(&mut change, fresh);
            undo_page::init(&mut latched, 0, PageId::NONE);
            undo_page::set_next(&mut latched, header.free_list);
            header.free_list = page;
            header.taken += 1;
            header.free += 1;
            header.write(&mut Latched::new(&mut change, head));
            change.finish();
        }
        Ok(())
    }

    /// Keeps for the time after a restart what other undo segments, soon gone, would have told: which ids and end numbers
    /// are taken, and what is purged.
    fn note_floors(&self, core: &Core, context: &Context, xid_floor: Xid, horizon: u64) -> Result<()> {
        let _list = self.list.lock();
        let mut change = Change::begin(core, context, 1, LINK_EDIT_BYTES)?;
        let page = change.page(self.header)?;
        let mut header = UndoHeader::read(change.bytes(page));
        header.xid_floor = header.xid_floor.max(xid_floor);
        header.horizon = header.horizon.max(horizon);
        header.write(&mut Latched::new(&mut change, page));
        change.finish();
        Ok(())
    }
}

impl Stream {
    /// Takes an empty page for the next records.
    pub(super) fn extend(&mut self, core: &Core, context: &Context) -> Result<()> {
        let segment = self.segment().clone();
        loop {
            match segment.link_page(core, context, self) {
                Err(full @ EngineError::TablespaceFull { .. }) => {
                    if !core.transactions.make_room(core, context, &segment)? {
                        return Err(full);
                    }
                }
                done => return done,
            }
        }
    }
}

impl Transactions {
    /// Makes the undo segments of a new undo tablespace: of a new database, or of `CREATE UNDO TABLESPACE`. Its space
    /// maps are there. Until the last step, the list of segments in the first one, a crash leaves a tablespace without
    /// undo segments.
    ///
    /// # Errors
    /// [`EngineError::TablespaceFull`], what storage says.
    pub fn create(&self, core: &Core, context: &Context, tablespace: u16) -> Result<()> {
        let blocks: u32 = core.files.of_tablespace(tablespace).iter().map(|file| file.blocks()).sum();
        let count = (blocks / BLOCKS_PER_SEGMENT).clamp(1, SEGMENTS);
        let mut headers = Vec::new();
        for number in 0..count {
            let object = undo_object(tablespace, number);
            let segment = core.space.create_segment(core, context, object, tablespace)?;
            self.format_segment(core, context, &segment)?;
            headers.push(UndoSegment::header_of(&segment));
        }
        let mut change = Change::begin(core, context, 1, LINK_EDIT_BYTES)?;
        let first = change.page(headers[0])?;
        undo_page::set_segments(&mut Latched::new(&mut change, first), &headers);
        change.finish();
        self.attach(core, context, tablespace).inspect_err(|_| self.forget(tablespace))
    }

    /// The segments of a tablespace are no longer there.
    fn forget(&self, tablespace: u16) {
        let mut table = self.shared.table();
        table.streams.segments.retain(|slots| slots.segment.tablespace() != tablespace);
        table.streams.idle.retain(|stream| stream.segment().tablespace() != tablespace);
    }

    /// Makes a fresh segment an undo segment.
    fn format_segment(&self, core: &Core, context: &Context, segment: &Segment) -> Result<()> {
        let page = core.space.allocate_page(core, context, segment)?;
        assert_eq!(page, UndoSegment::header_of(segment), "the first page of a fresh segment");
        let (xid_floor, horizon) = self.floors();
        let mut change = Change::begin(core, context, 1, LINK_EDIT_BYTES)?;
        let fresh = change.new_page(page, PageKind::UndoHeader, segment.object)?;
        let header = UndoHeader { free_list: PageId::NONE, taken: 1, free: 0, xid_floor, horizon };
        header.init(&mut Latched::new(&mut change, fresh));
        change.finish();
        Ok(())
    }

    fn floors(&self) -> (Xid, u64) {
        let table = self.shared.table();
        (table.next_xid(), table.horizon)
    }

    /// New transactions go to this tablespace, whose segments are attached; those that go on end where they began.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] when no undo segment of it is attached.
    pub fn use_tablespace(&self, tablespace: u16) -> Result<()> {
        let mut table = self.shared.table();
        if !table.streams.segments.iter().any(|slots| slots.segment.tablespace() == tablespace) {
            return Err(EngineError::NoSuch {
                kind: "undo tablespace number",
                name: tablespace.to_string(),
                hint: String::new(),
            });
        }
        table.streams.current = tablespace;
        Ok(())
    }

    /// Whether an undo tablespace may still be needed: by transactions that go on, or by views and purge.
    pub fn needs_tablespace(&self, tablespace: u16) -> bool {
        let of_it = |segment: &UndoSegment| segment.tablespace() == tablespace;
        // Held meanwhile, so that what purge takes in hand is seen here or there.
        let purge = self.purge.lock();
        let table = self.shared.table();
        let segments =
            || table.streams.segments.iter().map(|slots| &slots.segment).filter(|segment| of_it(segment));
        let is_in = |slot: u32| segments().any(|segment| u32::from(segment.number) == slot >> 16);
        let oldest_view = table.oldest_view();
        table.streams.current == tablespace
            || purge.is_busy_with(of_it)
            || table.active.iter().any(|active| is_in(active.slot))
            || table.history.values().any(|ended| of_it(&ended.segment))
            // Also of those that purge has nothing to do about.
            || segments().any(|segment| segment.last_ended.load(Ordering::Relaxed) > oldest_view)
    }

    /// Lets an undo tablespace go that is no longer needed; its segments may then be dropped.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] when it is still needed; what storage says.
    pub fn detach(&self, core: &Core, context: &Context, tablespace: u16) -> Result<()> {
        if self.needs_tablespace(tablespace) {
            return Err(EngineError::Invalid(
                "the undo tablespace is still needed by transactions or queries; switch to another with ALTER SYSTEM SET undo_tablespace, and try again when they have ended"
                    .into(),
            ));
        }
        // Written before the segments are forgotten: their headers are the only other place that knows these numbers.
        let kept: Vec<Arc<UndoSegment>> = {
            let table = self.shared.table();
            table.streams.segments.iter().map(|slots| slots.segment.clone()).collect()
        };
        let (xid_floor, horizon) = self.floors();
        if let Some(segment) = kept.iter().find(|segment| segment.tablespace() != tablespace) {
            segment.note_floors(core, context, xid_floor, horizon)?;
        }
        self.forget(tablespace);
        Ok(())
    }

    /// Looks for undo pages that can be used again when the tablespace gives no more; false when there are none.
    fn make_room(&self, core: &Core, context: &Context, segment: &Arc<UndoSegment>) -> Result<bool> {
        if self.purge_step(core, context)? {
            return Ok(true);
        }
        let others: Vec<Arc<UndoSegment>> = {
            let table = self.shared.table();
            table.streams.segments.iter().map(|slots| slots.segment.clone()).collect()
        };
        for other in others {
            let lends = other.number != segment.number && other.tablespace() == segment.tablespace();
            if lends && segment.take_from(core, context, &other)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
