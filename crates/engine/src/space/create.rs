//! Segments are made and dropped, without leaks after a crash.
//!
//! DDL changes two things that cannot be one change: extents (space maps, headers) and rows of the catalog (a transaction). In
//! between stands the dictionary page's list of *pending* segments: whether such a segment is to live is decided by the
//! catalog, at the next open ([`Space::resolve_pending`]). An entry comes and goes in the same redo record as what it guards:
//!
//! ```text
//! create:  1. extent + header + entry, one change     crash after 1: not in the catalog -> dropped at open
//!          2. catalog rows, commit                    crash after 2: in the catalog -> entry removed at open
//!          3. entry removed
//! drop:    1. entry                                   crash after 1: still in the catalog -> entry removed at open
//!          2. catalog rows deleted, commit            crash after 2: not in the catalog -> dropped at open
//!          3. extents given back, some at a time, the header says which are left; crash: the rest at open
//!          4. last extent + header blanked + entry removed, one change
//! ```
//! Were the entry removed before 4 a crash would leak the last extent; after it, a crash would give back an extent that
//! belongs to somebody else by then.

use super::extents::{self, Extent, TAKE_BYTES, map_of, next_extent_blocks};
use super::layout::{DICTIONARY, DICTIONARY_VERSION, UNIT_BLOCKS, dictionary, header as layout};
use super::segment::{ListPage, SegmentState, Tail};
use super::{Segment, Space, map};
use crate::change::{Change, Handle};
use crate::instance::Core;
use crate::page::{PageId, PageKind, get_u32, get_u64};
use crate::{Context, EngineError, Result};
use std::sync::Arc;

/// Objects from here on are the users'; those before are the engine's own.
pub const FIRST_USER_OBJECT: u32 = 100;

/// Extents that one change gives back at most, and the map pages that it may have to latch for that.
const DROP_EXTENTS: usize = 32;
const DROP_MAPS: usize = 4;

/// Bytes of edits of a fresh header, and of a pending entry with the next object number.
const HEADER_EDITS: usize = 8 * 16;
const DICTIONARY_EDITS: usize = 3 * 16 + dictionary::ENTRY_BYTES;

impl Space {
    /// Makes a segment (header page and first extent) in a tablespace, in one change. For segments that no catalog row
    /// speaks of (undo); the caller finds them again by itself.
    ///
    /// # Errors
    /// [`EngineError::TablespaceFull`].
    pub fn create_segment(
        &self,
        core: &Core,
        context: &Context,
        object: u32,
        tablespace: u16,
    ) -> Result<Segment> {
        self.make_segment(core, context, Some(object), tablespace)
    }

    /// Makes a segment with a new object number, pending until [`Space::settle`] or dropped.
    ///
    /// # Errors
    /// [`EngineError::TablespaceFull`].
    pub(crate) fn create_pending(&self, core: &Core, context: &Context, tablespace: u16) -> Result<Segment> {
        self.make_segment(core, context, None, tablespace)
    }

    /// A number for an object that has no segment of its own making here.
    ///
    /// # Errors
    /// What storage says.
    pub fn next_object(&self, core: &Core, context: &Context) -> Result<u32> {
        let _only_writer = self.extents.lock(context);
        let mut change = Change::begin(core, context, 1, DICTIONARY_EDITS)?;
        let page = change.page(DICTIONARY)?;
        let object = take_object(&mut change, page);
        change.finish();
        Ok(object)
    }

    /// With an object number of its own, or with a new one and then pending.
    fn make_segment(
        &self,
        core: &Core,
        context: &Context,
        object: Option<u32>,
        tablespace: u16,
    ) -> Result<Segment> {
        let blocks = next_extent_blocks(0, 0, core.files.block_bytes() as usize);
        let (_free, place) = self.extents.find(core, context, tablespace, blocks, object.unwrap_or(0))?;
        let header_id = place.extent.first;
        let mut change = Change::begin(core, context, 3, HEADER_EDITS + TAKE_BYTES + DICTIONARY_EDITS)?;
        let drawn = match object {
            Some(_) => None,
            None => {
                let page = change.page(DICTIONARY)?;
                let bytes = change.bytes(page);
                Some((page, get_u32(bytes, dictionary::NEXT_OBJECT), free_entry(bytes)?))
            }
        };
        let object = object.or(drawn.map(|(_, number, _)| number)).expect("given or drawn");
        let header = change.new_page(header_id, PageKind::SegmentHeader, object)?;
        let map = extents::latch_map(&mut change, &place)?;
        if let Some((page, _, entry)) = drawn {
            take_object(&mut change, page);
            write_entry(&mut change, page, entry, object, header_id);
        }
        extents::mark_taken(&mut change, map, &place);
        write_header(&mut change, header, place.extent, tablespace);
        change.finish();
        let segment = Segment { object, header: header_id, tablespace };
        self.insert_state(SegmentState::new(segment, place.extent));
        Ok(segment)
    }

    /// Makes the dictionary page of a new database.
    ///
    /// # Errors
    /// What storage says.
    pub(super) fn create_dictionary_page(&self, core: &Core, context: &Context) -> Result<()> {
        let mut change = Change::begin(core, context, 1, DICTIONARY_EDITS)?;
        let page = change.new_page(DICTIONARY, PageKind::Dictionary, 0)?;
        change.write(page, dictionary::NEXT_OBJECT, &FIRST_USER_OBJECT.to_le_bytes());
        change.write(page, dictionary::VERSION, &DICTIONARY_VERSION.to_le_bytes());
        change.finish();
        Ok(())
    }

    /// Enters segments that are about to be dropped: from the commit of their catalog rows on they are gone.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] when there is no place for so many; nothing was entered then.
    pub(crate) fn mark_pending(&self, core: &Core, context: &Context, segments: &[Segment]) -> Result<()> {
        let _only_writer = self.extents.lock(context);
        let mut change = Change::begin(core, context, 1, segments.len() * DICTIONARY_EDITS)?;
        let page = change.page(DICTIONARY)?;
        if free_entries(change.bytes(page)).count() < segments.len() {
            return Err(no_place());
        }
        for segment in segments {
            let entry = free_entry(change.bytes(page)).expect("counted above");
            write_entry(&mut change, page, entry, segment.object, segment.header);
        }
        change.finish();
        Ok(())
    }

    /// Takes segments off the list: the catalog has them, or has kept them.
    ///
    /// # Errors
    /// What storage says.
    pub(crate) fn settle(&self, core: &Core, context: &Context, objects: &[u32]) -> Result<()> {
        let _only_writer = self.extents.lock(context);
        let mut change = Change::begin(core, context, 1, objects.len() * DICTIONARY_EDITS)?;
        let page = change.page(DICTIONARY)?;
        for object in objects {
            clear_entry(&mut change, page, *object);
        }
        change.finish();
        Ok(())
    }

    /// Gives all extents of a segment back; the caller has made sure that nobody uses them, and that the catalog no longer has
    /// it. A crash in the middle is no harm when the segment is pending.
    ///
    /// 1. the log is durable, and with it the commit that took the segment out of the catalog, also one that did not wait
    ///    (`commit_wait`). After 2, a crash that took the commit back would bring the segment back without what was forgotten.
    /// 2. its dirty blocks are forgotten.
    /// 3. its extents are given back. Before 2, its old blocks could be written over somebody else's new ones.
    ///
    /// # Errors
    /// What storage says.
    pub fn drop_segment(&self, core: &Core, context: &Context, segment: &Segment) -> Result<()> {
        let state = self.state(core, context, segment)?;
        core.redo.wait_durable(core, context, core.redo.tail_lsn())?;
        core.cache.discard(core, segment.object);
        let mut tail = super::grow::hw(&state, context);
        let mut extents = state.shape.read().extents.clone();
        while !extents.is_empty() {
            self.give_back_some(core, context, &state, &mut tail, &mut extents)?;
        }
        self.forget_state(segment.object);
        Ok(())
    }

    /// Gives back the last extents, as many as one change may: all of the same list.
    fn give_back_some(
        &self,
        core: &Core,
        context: &Context,
        state: &Arc<SegmentState>,
        tail: &mut Tail,
        extents: &mut Vec<Extent>,
    ) -> Result<()> {
        let segment = state.segment;
        let block_bytes = core.files.block_bytes() as usize;
        let last = *tail.lists.last().expect("there is always the header");
        let (count, maps) = last_of(extents, last, block_bytes);
        let left = extents.len() - count;
        let going = &extents[left..];
        let mut free = self.extents.lock(context);
        free.forget(core, going);

        let edits = HEADER_EDITS + DICTIONARY_EDITS + count * map::MARK_BYTES;
        let mut change = Change::begin(core, context, maps.len() + 4, edits)?;
        let list_goes = count == last.entries as usize;
        // What can fail first: pages that are read.
        let page = if left == 0 { Some(change.page(DICTIONARY)?) } else { None };
        let handles = maps.iter().map(|id| change.page(*id)).collect::<Result<Vec<Handle>>>()?;
        let map_handle = |extent: &Extent| {
            let id = map_of(extent, block_bytes);
            handles[maps.iter().position(|other| *other == id).expect("collected from these")]
        };
        if let Some(page) = page {
            // Whoever comes across this page again must not take it for a header: its extent is somebody else's now.
            change.new_page(segment.header, PageKind::Free, 0)?;
            clear_entry(&mut change, page, segment.object);
        } else {
            let header = change.page(segment.header)?;
            let shorter = Shorter { segment, list: last, left: left as u32, gone: count as u32, list_goes };
            shorter.write(&mut change, header, tail, blocks_of(&extents[..left]))?;
        }
        for extent in going {
            extents::give_back(&mut change, map_handle(extent), extent, block_bytes);
        }
        change.finish();
        drop(free);
        extents.truncate(left);
        if list_goes {
            tail.lists.pop();
        } else {
            tail.lists.last_mut().expect("as above").entries -= count as u32;
        }
        Ok(())
    }

    /// Segments that DDL is at work on: object and header.
    pub(super) fn pending(&self, core: &Core, context: &Context) -> Result<Vec<(u32, PageId)>> {
        Ok(entries(&core.cache.read(core, context, DICTIONARY)?))
    }

    /// Decides about segments that were pending when the instance stopped: `lives` knows what the catalog says.
    ///
    /// # Errors
    /// What storage says.
    pub(super) fn resolve_pending(
        &self,
        core: &Core,
        context: &Context,
        lives: &dyn Fn(u32) -> bool,
    ) -> Result<()> {
        for (object, header) in self.pending(core, context)? {
            if lives(object) {
                self.settle(core, context, &[object])?;
                continue;
            }
            let tablespace = {
                let page = core.cache.read(core, context, header)?;
                super::segment::tablespace_of(&page)
            };
            self.drop_segment(core, context, &Segment { object, header, tablespace })?;
        }
        Ok(())
    }
}

/// What a header and a list say after some extents are gone.
struct Shorter {
    segment: Segment,
    list: ListPage,
    left: u32,
    gone: u32,
    list_goes: bool,
}

impl Shorter {
    fn write(&self, change: &mut Change<'_>, header: Handle, tail: &Tail, blocks: u32) -> Result<()> {
        let in_header = self.list.id == self.segment.header;
        if self.list_goes {
            // The list's own page is in the first of its extents, and goes with it. The one before becomes the last.
            let before = tail.lists[tail.lists.len() - 2].id;
            let (page, next_at) = if before == self.segment.header {
                (header, layout::NEXT)
            } else {
                (change.page(before)?, layout::LIST_NEXT)
            };
            change.write(page, next_at, &0u64.to_le_bytes());
        } else {
            let (page, count_at) = if in_header {
                (header, layout::HERE)
            } else {
                (change.page(self.list.id)?, layout::LIST_HERE)
            };
            change.write(page, count_at, &(self.list.entries - self.gone).to_le_bytes());
        }
        change.write(header, layout::BLOCKS, &blocks.to_le_bytes());
        change.write(header, layout::HIGH_WATER, &blocks.to_le_bytes());
        change.write(header, layout::EXTENTS, &self.left.to_le_bytes());
        Ok(())
    }
}

/// How many of the last extents one change gives back, and their map pages. The first extent of a list goes in the same change as
/// the rest of its list, or alone: its first page is the list.
fn last_of(extents: &[Extent], list: ListPage, block_bytes: usize) -> (usize, Vec<PageId>) {
    let mut maps: Vec<PageId> = Vec::new();
    let mut count = 0;
    for extent in extents.iter().rev().take(DROP_EXTENTS.min(list.entries as usize)) {
        let id = map_of(extent, block_bytes);
        if !maps.contains(&id) {
            if maps.len() == DROP_MAPS {
                break;
            }
            maps.push(id);
        }
        count += 1;
    }
    (count, maps)
}

fn blocks_of(extents: &[Extent]) -> u32 {
    extents.iter().map(|extent| extent.blocks).sum()
}

fn write_header(change: &mut Change<'_>, header: Handle, extent: Extent, tablespace: u16) {
    change.write(header, layout::BLOCKS, &extent.blocks.to_le_bytes());
    change.write(header, layout::HIGH_WATER, &1u32.to_le_bytes());
    change.write(header, layout::EXTENTS, &1u32.to_le_bytes());
    change.write(header, layout::HERE, &1u32.to_le_bytes());
    change.write(header, layout::TABLESPACE, &tablespace.to_le_bytes());
    change.write(header, layout::LIST, &layout::entry(extent.first, extent.blocks));
}

fn take_object(change: &mut Change<'_>, page: Handle) -> u32 {
    let object = get_u32(change.bytes(page), dictionary::NEXT_OBJECT);
    change.write(page, dictionary::NEXT_OBJECT, &(object + 1).to_le_bytes());
    object
}

fn entry_at(entry: usize) -> usize {
    dictionary::PENDING + entry * dictionary::ENTRY_BYTES
}

fn free_entries(page: &[u8]) -> impl Iterator<Item = usize> {
    (0..dictionary::capacity(page.len())).filter(|entry| get_u32(page, entry_at(*entry)) == 0)
}

fn free_entry(page: &[u8]) -> Result<usize> {
    free_entries(page).next().ok_or_else(no_place)
}

fn no_place() -> EngineError {
    EngineError::Invalid("too many tables and indexes are being made or dropped at once; try again".into())
}

fn write_entry(change: &mut Change<'_>, page: Handle, entry: usize, object: u32, header: PageId) {
    let mut bytes = [0; dictionary::ENTRY_BYTES];
    bytes[..4].copy_from_slice(&object.to_le_bytes());
    bytes[4..].copy_from_slice(&header.to_u64().to_le_bytes());
    change.write(page, entry_at(entry), &bytes);
}

/// Empties the object's place; fine when it has none.
fn clear_entry(change: &mut Change<'_>, page: Handle, object: u32) {
    let bytes = change.bytes(page);
    let entry =
        (0..dictionary::capacity(bytes.len())).find(|entry| get_u32(bytes, entry_at(*entry)) == object);
    if let Some(entry) = entry {
        change.fill(page, entry_at(entry), dictionary::ENTRY_BYTES, 0);
    }
}

/// The pending segments: object and header.
fn entries(page: &[u8]) -> Vec<(u32, PageId)> {
    let entries = (0..dictionary::capacity(page.len())).map(entry_at);
    entries
        .map(|at| (get_u32(page, at), PageId::from_u64(get_u64(page, at + 4))))
        .filter(|(object, _)| *object != 0)
        .collect()
}

/// The header of the n-th segment that is made in a new database, from 0: those of the catalog.
pub(super) const fn bootstrap_header(n: u32) -> PageId {
    // Unit 0 is the range's own; each first extent is one unit.
    PageId { file: 1, block: (1 + n) * UNIT_BLOCKS }
}
