//! Finding room for rows, and keeping what is known about it over a restart.
//!
//! The hints of a segment (see `hints`) are read from its free-space pages when somebody first looks for room, and written back
//! by smon and at shutdown: one change for each page that differs. Nothing else depends on them, so a crash costs at
//! most some looking around.

use super::grow::hw;
use super::hints::Hints;
use super::layout::{header, space as layout};
use super::segment::SegmentState;
use super::{Segment, Space};
use crate::change::Change;
use crate::instance::Core;
use crate::page::{self, PageId, PageKind, get_u64};
use crate::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Pages of which nothing is known that one search looks at before it takes a new page instead.
const PROBES: usize = 4;

/// Bytes of a free-space page's edits besides the hints themselves.
const EDITS: usize = 4 * 16;

impl Space {
    /// A heap page that had at least `bytes` free when it was last noted; none when only new pages will do. It was formatted for
    /// rows of this segment. Another session may be given the same page, and it may be fuller by now: look, and call
    /// [`Space::note_free`] when done with it.
    ///
    /// # Errors
    /// What storage says.
    pub fn page_with_space(
        &self,
        core: &Core,
        context: &Context,
        segment: &Segment,
        bytes: usize,
    ) -> Result<Option<PageId>> {
        let state = self.state(core, context, segment)?;
        let hints = hints(core, context, &state)?;
        match hints.take(bytes, self.block_bytes) {
            Some(number) => Ok(Some(state.shape.read().page(number).0)),
            None => probe(core, context, &state, hints),
        }
    }

    /// Notes how much is free in a heap page (a hint: coarse, not in redo).
    pub fn note_free(&self, segment: &Segment, page: PageId, bytes: usize) {
        let Some(state) = self.known_state(segment.object) else { return };
        let Some(hints) = state.hints.get() else { return };
        let number = state.shape.read().number(page);
        if let Some(number) = number {
            hints.note(number, bytes, self.block_bytes);
        }
    }

    /// Writes the hints of all segments where they changed; whether any had. Smon's work, and a shutdown's.
    ///
    /// # Errors
    /// What storage says.
    pub fn write_hints(&self, core: &Core, context: &Context) -> Result<bool> {
        let mut wrote = false;
        for state in self.all_states() {
            if state.hints.get().is_some_and(|hints| hints.changed.swap(false, Ordering::Relaxed)) {
                wrote = true;
                write(self, core, context, &state)?;
            }
        }
        Ok(wrote)
    }
}

/// Looks at a few pages of which nothing is known. Those that were never used go to `fresh`: nobody has them, because they were
/// below the high-water mark when the segment was loaded, and have not been given out since.
fn probe(core: &Core, context: &Context, state: &SegmentState, hints: &Hints) -> Result<Option<PageId>> {
    for _ in 0..PROBES {
        let Some(number) = hints.next_unknown() else { return Ok(None) };
        let (id, _) = state.shape.read().page(number);
        let (kind, object) = {
            let page = core.cache.read(core, context, id)?;
            (page::kind(&page), page::object(&page))
        };
        if object == state.segment.object && kind == Some(PageKind::Heap) {
            return Ok(Some(id));
        }
        hints.is_no_candidate(number);
        let is_ours = object == state.segment.object
            && matches!(kind, Some(PageKind::SegmentHeader | PageKind::FreeSpace));
        if !is_ours {
            state.fresh.lock().push_back(id);
            return Ok(None);
        }
    }
    Ok(None)
}

/// The hints of a segment; made, with what its free-space pages say, when they are asked for first.
pub(super) fn hints<'a>(core: &Core, context: &Context, state: &'a SegmentState) -> Result<&'a Hints> {
    state.hints.get().map_or_else(|| load(core, context, state), Ok)
}

fn load<'a>(core: &Core, context: &Context, state: &'a SegmentState) -> Result<&'a Hints> {
    let mut chunks = Vec::new();
    let mut next = hw(state, context).free_space;
    while next.is_some() {
        let page = core.cache.read(core, context, next)?;
        chunks.push(page[layout::LEVELS..].to_vec());
        next = PageId::from_u64(get_u64(&page, layout::NEXT));
    }
    let hints = {
        // The mark rises, and pages are given out, under this mutex only.
        let _fresh = state.fresh.lock();
        let pages = state.shape.read().high_water;
        let unknown = if state.given.load(Ordering::Relaxed) { 0 } else { pages };
        state.hints.get_or_init(|| Hints::new(pages, unknown))
    };
    let chunk_pages = layout::chunk_pages(core.files.block_bytes() as usize) as u32;
    for (chunk, bytes) in chunks.iter().enumerate() {
        let levels = bytes.iter().flat_map(|byte| [byte & 0xF, byte >> 4]);
        hints.load(chunk as u32 * chunk_pages, levels);
    }
    Ok(hints)
}

/// Writes the hints of one segment.
fn write(space: &Space, core: &Core, context: &Context, state: &Arc<SegmentState>) -> Result<()> {
    let hints = state.hints.get().expect("only segments with hints are written");
    let block_bytes = core.files.block_bytes() as usize;
    let chunk_pages = layout::chunk_pages(block_bytes);
    let mut before: Option<PageId> = None;
    let mut next = hw(state, context).free_space;
    for chunk in 0..(hints.pages() as usize).div_ceil(chunk_pages) {
        let id = match next {
            PageId::NONE => add_page(space, core, context, state, before, chunk as u32)?,
            id => id,
        };
        let levels = hints.save((chunk * chunk_pages) as u32, chunk_pages);
        let bytes: Vec<u8> = levels.chunks(2).map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4).collect();
        next = write_chunk(core, context, id, &bytes)?;
        before = Some(id);
    }
    Ok(())
}

/// Brings a free-space page up to date; the result is the next one.
fn write_chunk(core: &Core, context: &Context, id: PageId, bytes: &[u8]) -> Result<PageId> {
    let (next, first, end) = {
        let page = core.cache.read(core, context, id)?;
        let old = &page[layout::LEVELS..][..bytes.len()];
        let differs = |n: &usize| old[*n] != bytes[*n];
        let first = (0..bytes.len()).find(differs);
        let end = (0..bytes.len()).rfind(differs).map_or(0, |last| last + 1);
        (PageId::from_u64(get_u64(&page, layout::NEXT)), first, end)
    };
    if let Some(first) = first {
        let mut change = Change::begin(core, context, 1, EDITS + bytes.len())?;
        let page = change.page(id)?;
        change.write(page, layout::LEVELS + first, &bytes[first..end]);
        change.finish();
    }
    Ok(next)
}

/// Adds a free-space page at the end of the chain.
fn add_page(
    space: &Space,
    core: &Core,
    context: &Context,
    state: &Arc<SegmentState>,
    before: Option<PageId>,
    chunk: u32,
) -> Result<PageId> {
    let id = space.allocate_blank(core, context, state)?;
    let mut tail = hw(state, context);
    let mut change = Change::begin(core, context, 2, EDITS)?;
    let (linking, at) = match before {
        Some(before) => (change.page(before)?, layout::NEXT),
        None => (change.page(state.segment.header)?, header::FREE_SPACE),
    };
    let page = change.new_page(id, PageKind::FreeSpace, state.segment.object)?;
    change.write(page, layout::CHUNK, &chunk.to_le_bytes());
    change.write(linking, at, &id.to_u64().to_le_bytes());
    change.finish();
    if before.is_none() {
        tail.free_space = id;
    }
    Ok(id)
}
