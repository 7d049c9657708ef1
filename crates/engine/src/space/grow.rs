//! Pages for segments: from `fresh`, from the list of free pages, from above the high-water mark, from a new extent.

use super::extents::{self, Extent, Place, TAKE_BYTES, next_extent_blocks};
use super::layout::{free, header as layout};
use super::segment::{ListPage, SegmentState, Tail, corrupt};
use super::wait::{EXCLUSIVE, enqueue, lock_or_wait};
use super::{Segment, Space};
use crate::change::Change;
use crate::instance::Core;
use crate::page::{self, PageId, PageKind, get_u64};
use crate::{Context, Result};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;
use waits::Event;

/// Bytes of edits of a header: all of its fields, each with the 8 bytes that an edit costs.
const HEADER_EDITS: usize = 12 * 16;

impl Space {
    /// A page of the segment that was never used, or was freed: raises the high-water mark (or reuses), a change of its own. The
    /// caller formats it with [`Change::new_page`]. A crash between the two leaves an empty page in the segment, nothing worse.
    ///
    /// The first page ever given from a fresh (or truncated) segment is the block after its header: that is where the root of
    /// an index lies, so nobody has to look it up.
    ///
    /// Hold no latch and have no change open: this is one, and may make a file longer.
    ///
    /// # Errors
    /// [`crate::EngineError::TablespaceFull`].
    pub fn allocate_page(&self, core: &Core, context: &Context, segment: &Segment) -> Result<PageId> {
        let state = self.state(core, context, segment)?;
        let page = self.allocate_blank(core, context, &state)?;
        state.given.store(true, Ordering::Relaxed);
        Ok(page)
    }

    /// Gives an index or undo page back to its segment. Hold no latch and have no change open.
    ///
    /// # Errors
    /// What storage says.
    pub fn free_page(&self, core: &Core, context: &Context, segment: &Segment, page: PageId) -> Result<()> {
        let state = self.state(core, context, segment)?;
        let mut tail = hw(&state, context);
        let mut change = Change::begin(core, context, 2, HEADER_EDITS)?;
        let header = change.page(segment.header)?;
        let freed = change.new_page(page, PageKind::Free, segment.object)?;
        change.write(freed, free::NEXT, &tail.free_first.to_u64().to_le_bytes());
        change.write(header, layout::FREE_FIRST, &page.to_u64().to_le_bytes());
        change.write(header, layout::FREE_PAGES, &(tail.free_pages + 1).to_le_bytes());
        change.finish();
        tail.free_first = page;
        tail.free_pages += 1;
        Ok(())
    }

    /// A page that nobody has, for whatever use.
    pub(super) fn allocate_blank(
        &self,
        core: &Core,
        context: &Context,
        state: &SegmentState,
    ) -> Result<PageId> {
        let fresh = state.fresh.lock().pop_front();
        fresh.map_or_else(|| self.allocate_slowly(core, context, state), Ok)
    }

    fn allocate_slowly(&self, core: &Core, context: &Context, state: &SegmentState) -> Result<PageId> {
        let mut tail = hw(state, context);
        // Whoever had the lock before us may have left some.
        if let Some(page) = state.fresh.lock().pop_front() {
            return Ok(page);
        }
        if tail.free_first.is_some() {
            return take_free(core, context, state, &mut tail);
        }
        let (high_water, blocks) = {
            let shape = state.shape.read();
            (shape.high_water, shape.blocks)
        };
        if high_water == blocks {
            self.add_extent(core, context, state, &mut tail)?;
        }
        raise(core, context, state)
    }

    /// Adds an extent: its entry goes to the last list, or, when that is full, to a new list in the extent's first block.
    fn add_extent(
        &self,
        core: &Core,
        context: &Context,
        state: &SegmentState,
        tail: &mut Tail,
    ) -> Result<()> {
        let segment = state.segment;
        let block_bytes = core.files.block_bytes() as usize;
        let (extents, blocks) = {
            let shape = state.shape.read();
            (shape.extents.len() as u32, shape.blocks)
        };
        let want = next_extent_blocks(extents, blocks, block_bytes);
        let (_free, place) = self.extents.find(core, context, segment.tablespace, want, segment.object)?;
        let last = *tail.lists.last().expect("there is always the header");
        let list = list_of(last, segment.header);
        let full = last.entries as usize == layout::capacity(list.entries_at, block_bytes);
        let added =
            Growth { segment, place, last, extents: extents + 1, blocks: blocks + place.extent.blocks };
        if full {
            added.with_new_list(core, context)?;
            tail.lists.push(ListPage { id: place.extent.first, entries: 1 });
        } else {
            added.in_last_list(core, context)?;
            tail.lists.last_mut().expect("as above").entries += 1;
        }
        let _fresh = state.fresh.lock();
        let mut shape = state.shape.write();
        shape.push(place.extent);
        if full {
            shape.high_water += 1;
            shape.lists.push(place.extent.first);
        }
        Ok(())
    }
}

/// Locks `enq: HW` of a segment.
pub(super) fn hw<'a>(state: &'a SegmentState, context: &Context) -> MutexGuard<'a, Tail> {
    let Segment { header, tablespace, .. } = state.segment;
    let parameters = [enqueue(*b"HW", EXCLUSIVE), tablespace.into(), header.block.into()];
    lock_or_wait(&state.tail, context, Event::EnqHwContention, parameters)
}

/// Takes the first page off the list of free pages.
fn take_free(core: &Core, context: &Context, state: &SegmentState, tail: &mut Tail) -> Result<PageId> {
    let id = tail.free_first;
    let next = {
        let page = core.cache.read(core, context, id)?;
        if page::kind(&page) != Some(PageKind::Free) || page::object(&page) != state.segment.object {
            let found = format!("{:?} of object {}", page::kind(&page), page::object(&page));
            return Err(corrupt(core, id, format!("free page of object {}", state.segment.object), found));
        }
        PageId::from_u64(get_u64(&page, free::NEXT))
    };
    let mut change = Change::begin(core, context, 1, HEADER_EDITS)?;
    let header = change.page(state.segment.header)?;
    change.write(header, layout::FREE_FIRST, &next.to_u64().to_le_bytes());
    change.write(header, layout::FREE_PAGES, &(tail.free_pages - 1).to_le_bytes());
    change.finish();
    tail.free_first = next;
    tail.free_pages -= 1;
    Ok(id)
}

/// Raises the high-water mark inside the last extent. The first page is the result, others go to `fresh`.
fn raise(core: &Core, context: &Context, state: &SegmentState) -> Result<PageId> {
    let (high_water, (first, left)) = {
        let shape = state.shape.read();
        (shape.high_water, shape.page(shape.high_water))
    };
    let pages = state.raise_pages(high_water).min(left);
    let mut change = Change::begin(core, context, 1, HEADER_EDITS)?;
    let header = change.page(state.segment.header)?;
    change.write(header, layout::HIGH_WATER, &(high_water + pages).to_le_bytes());
    change.finish();
    let mut fresh = state.fresh.lock();
    fresh.extend((1..pages).map(|n| PageId { file: first.file, block: first.block + n }));
    state.shape.write().high_water += pages;
    if let Some(hints) = state.hints.get() {
        hints.grow(high_water + pages);
    }
    Ok(first)
}

/// Where a list page has what.
struct ListAt {
    count_at: usize,
    next_at: usize,
    entries_at: usize,
}

fn list_of(list: ListPage, header: PageId) -> ListAt {
    if list.id == header {
        ListAt { count_at: layout::HERE, next_at: layout::NEXT, entries_at: layout::LIST }
    } else {
        ListAt { count_at: layout::LIST_HERE, next_at: layout::LIST_NEXT, entries_at: layout::LIST_LIST }
    }
}

/// An extent being added.
struct Growth {
    segment: Segment,
    place: Place,
    /// The last list so far.
    last: ListPage,
    /// With the new one.
    extents: u32,
    blocks: u32,
}

impl Growth {
    fn in_last_list(&self, core: &Core, context: &Context) -> Result<()> {
        let mut change = Change::begin(core, context, 3, HEADER_EDITS + TAKE_BYTES)?;
        let header = change.page(self.segment.header)?;
        let list = change.page(self.last.id)?;
        let map = extents::latch_map(&mut change, &self.place)?;
        let at = list_of(self.last, self.segment.header);
        let Extent { first, blocks } = self.place.extent;
        let entry_at = at.entries_at + self.last.entries as usize * layout::ENTRY_BYTES;
        change.write(list, entry_at, &layout::entry(first, blocks));
        change.write(list, at.count_at, &(self.last.entries + 1).to_le_bytes());
        self.count(&mut change, header);
        extents::mark_taken(&mut change, map, &self.place);
        change.finish();
        Ok(())
    }

    /// The new list is the first page of the new extent, and so below the high-water mark at once.
    fn with_new_list(&self, core: &Core, context: &Context) -> Result<()> {
        let mut change = Change::begin(core, context, 4, HEADER_EDITS + TAKE_BYTES)?;
        let Extent { first, blocks } = self.place.extent;
        let header = change.page(self.segment.header)?;
        let last = change.page(self.last.id)?;
        let list = change.new_page(first, PageKind::SegmentHeader, self.segment.object)?;
        let map = extents::latch_map(&mut change, &self.place)?;
        change.write(list, layout::LIST_LIST, &layout::entry(first, blocks));
        change.write(list, layout::LIST_HERE, &1u32.to_le_bytes());
        change.write(last, list_of(self.last, self.segment.header).next_at, &first.to_u64().to_le_bytes());
        self.count(&mut change, header);
        let high_water = self.blocks - blocks + 1;
        change.write(header, layout::HIGH_WATER, &high_water.to_le_bytes());
        extents::mark_taken(&mut change, map, &self.place);
        change.finish();
        Ok(())
    }

    fn count(&self, change: &mut Change<'_>, header: crate::change::Handle) {
        change.write(header, layout::BLOCKS, &self.blocks.to_le_bytes());
        change.write(header, layout::EXTENTS, &self.extents.to_le_bytes());
    }
}
