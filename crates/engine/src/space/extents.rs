//! Extents: runs of free units in the files of a tablespace, and making files longer when there is none.
//!
//! All taking and giving back of extents in an instance goes through one mutex (`enq: ST - contention`). It is held for one
//! change, and extents are large where many are needed, so it is not in anybody's way; in return map pages are formatted
//! once, the dictionary page has one writer, and a place that was found free stays free until it is taken.

use super::layout::{UNIT_BLOCKS, map as layout};
use super::map;
use super::wait::{EXCLUSIVE, enqueue, lock_or_wait};
use crate::change::{Change, Handle};
use crate::files::admin::Growth;
use crate::files::control::TablespaceKind;
use crate::instance::Core;
use crate::page::{PageId, PageKind};
use crate::{Context, EngineError, Result};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use waits::Event;

/// A run of neighbouring blocks that belongs to one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first block.
    pub first: PageId,
    /// Number of its blocks.
    pub blocks: u32,
}

/// A place for an extent in a space map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub extent: Extent,
    /// Its map page, and whether that was never written.
    pub map: PageId,
    pub map_is_fresh: bool,
    unit: u32,
    units: u32,
}

/// What is known about the files' free space, and the right to change it.
#[derive(Default)]
pub(super) struct FreeExtents {
    /// For ranges that were searched in vain: units wanted then, and units that the range had.
    searched: BTreeMap<(u16, u32), (u32, u32)>,
    /// Where the next search in a tablespace begins, so that its files fill evenly.
    turn: BTreeMap<u16, usize>,
}

/// The mutexes over the extents of an instance.
#[derive(Default)]
pub(super) struct Extents {
    free: Mutex<FreeExtents>,
    /// Held while a file is made longer, by who has not `free`: others go on meanwhile.
    growing: Mutex<()>,
}

/// Blocks of a segment's next extent: 8 while it is small, then 1, 8 and 64 MiB, so that a segment of 100 GiB has some 1,800.
pub(super) fn next_extent_blocks(extents: u32, blocks: u32, block_bytes: usize) -> u32 {
    let bytes = u64::from(blocks) * block_bytes as u64;
    let want: u64 = match bytes {
        _ if extents < 16 => 0,
        0..0x400_0000 => 1 << 20,
        0x400_0000..0x4000_0000 => 8 << 20,
        _ => 64 << 20,
    };
    (want as u32 / block_bytes as u32).next_multiple_of(UNIT_BLOCKS).max(UNIT_BLOCKS)
}

impl Extents {
    /// The right to take and give back extents.
    pub fn lock(&self, context: &Context) -> MutexGuard<'_, FreeExtents> {
        lock_or_wait(&self.free, context, Event::EnqStContention, [enqueue(*b"ST", EXCLUSIVE), 0, 0])
    }

    /// Finds a place for an extent of `blocks`, or of fewer when there is no such run and the tablespace cannot grow. Makes a
    /// file longer when it must. The place stays free as long as the guard is held.
    ///
    /// # Errors
    /// [`EngineError::TablespaceFull`].
    pub fn find<'a>(
        &'a self,
        core: &Core,
        context: &Context,
        tablespace: u16,
        blocks: u32,
        object: u32,
    ) -> Result<(MutexGuard<'a, FreeExtents>, Place)> {
        let mut blocks = blocks;
        loop {
            let mut free = self.lock(context);
            if let Some(place) = free.search(core, context, tablespace, blocks)? {
                return Ok((free, place));
            }
            let had = total_blocks(core, tablespace);
            drop(free);
            let growing = lock_or_wait(
                &self.growing,
                context,
                Event::EnqTtContention,
                [enqueue(*b"TT", EXCLUSIVE), tablespace.into(), 0],
            );
            // Somebody else may have done it while we waited.
            if total_blocks(core, tablespace) > had {
                continue;
            }
            let grown = grow(core, context, tablespace, blocks)?;
            drop(growing);
            match grown {
                None => {}
                Some(_) if blocks > UNIT_BLOCKS => blocks = (blocks / 2).next_multiple_of(UNIT_BLOCKS),
                Some(cause) => return Err(full(core, tablespace, object, cause)),
            }
        }
    }
}

/// Makes one of the files longer, so that `blocks` neighbours are free (or, where that would cross the end of a range, so
/// that the next growth does it). Words when none can grow.
fn grow(core: &Core, context: &Context, tablespace: u16, blocks: u32) -> Result<Option<String>> {
    let mut cause = "it has no file".to_owned();
    for file in core.files.of_tablespace(tablespace) {
        // One unit more than asked for: the first of a range is the range's own.
        let whole = file.blocks() / UNIT_BLOCKS * UNIT_BLOCKS;
        let goal = whole.saturating_add(blocks).saturating_add(UNIT_BLOCKS);
        match core.grow_file(context, file.number, goal)? {
            Growth::Grown(_) => return Ok(None),
            Growth::Stuck(words) => cause = words,
        }
    }
    Ok(Some(cause))
}

fn full(core: &Core, tablespace: u16, object: u32, cause: String) -> EngineError {
    EngineError::TablespaceFull {
        tablespace: core.space.tablespace_name(core, tablespace),
        object: core.space.object_name(object),
        cause,
    }
}

/// Files and their sizes, in blocks.
fn files_of(core: &Core, tablespace: u16) -> Vec<(u16, u32)> {
    core.files.of_tablespace(tablespace).iter().map(|file| (file.number, file.blocks())).collect()
}

fn total_blocks(core: &Core, tablespace: u16) -> u64 {
    files_of(core, tablespace).iter().map(|(_, blocks)| u64::from(*blocks)).sum()
}

impl FreeExtents {
    fn search(
        &mut self,
        core: &Core,
        context: &Context,
        tablespace: u16,
        blocks: u32,
    ) -> Result<Option<Place>> {
        let files = files_of(core, tablespace);
        let turn = self.turn.entry(tablespace).or_default();
        let first = *turn % files.len().max(1);
        *turn = first + 1;
        for n in 0..files.len() {
            let (file, file_blocks) = files[(first + n) % files.len()];
            if let Some(place) = self.search_file(core, context, file, file_blocks, blocks)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn search_file(
        &mut self,
        core: &Core,
        context: &Context,
        file: u16,
        file_blocks: u32,
        blocks: u32,
    ) -> Result<Option<Place>> {
        let block_bytes = core.files.block_bytes() as usize;
        let want = blocks / UNIT_BLOCKS;
        for range in 0.. {
            let limit = layout::units_in_file(file_blocks, range, block_bytes);
            if limit == 0 {
                break;
            }
            if self
                .searched
                .get(&(file, range))
                .is_some_and(|(in_vain, had)| want >= *in_vain && limit == *had)
            {
                continue;
            }
            let map = layout::page(file, range, block_bytes);
            let page = core.cache.read(core, context, map)?;
            match map::find(&page, limit, want) {
                Some(unit) => {
                    let first = PageId { file, block: layout::block(range, unit, block_bytes) };
                    return Ok(Some(Place {
                        extent: Extent { first, blocks },
                        map,
                        map_is_fresh: crate::page::kind(&page) == Some(PageKind::Free),
                        unit,
                        units: want,
                    }));
                }
                None => {
                    self.searched.insert((file, range), (want, limit));
                }
            }
        }
        Ok(None)
    }

    /// Forgets what was found out about the ranges of these extents: they are about to have more free space.
    pub fn forget(&mut self, core: &Core, extents: &[Extent]) {
        for extent in extents {
            let (range, _) = layout::place(extent.first.block, core.files.block_bytes() as usize);
            self.searched.remove(&(extent.first.file, range));
        }
    }
}

/// Makes the first map page of a data file.
///
/// # Errors
/// What storage says.
pub(super) fn create_map(core: &Core, context: &Context, file: u16) -> Result<()> {
    if core.files.get(file).is_some_and(|file| file.kind == TablespaceKind::Temporary) {
        return Ok(());
    }
    let mut change = Change::begin(core, context, 1, map::MARK_BYTES)?;
    let page =
        change.new_page(layout::page(file, 0, core.files.block_bytes() as usize), PageKind::SpaceMap, 0)?;
    map::mark(&mut change, page, 0, 1, true);
    change.finish();
    Ok(())
}

/// Bytes of edits that [`mark_taken`] makes at most.
pub(super) const TAKE_BYTES: usize = 2 * map::MARK_BYTES;

/// Latches the map page of a place: what can fail in taking it, and the last in its change that may. A map page that is formatted and
/// then not written to must not stay in the cache for others to find.
///
/// # Errors
/// What the read met.
pub(super) fn latch_map(change: &mut Change<'_>, place: &Place) -> Result<Handle> {
    if place.map_is_fresh {
        change.new_page(place.map, PageKind::SpaceMap, 0)
    } else {
        change.page(place.map)
    }
}

/// Takes the place.
pub(super) fn mark_taken(change: &mut Change<'_>, handle: Handle, place: &Place) {
    if place.map_is_fresh {
        map::mark(change, handle, 0, 1, true);
    }
    map::mark(change, handle, place.unit, place.units, true);
}

/// Marks an extent as free; its map page is latched already.
pub(super) fn give_back(change: &mut Change<'_>, handle: Handle, extent: &Extent, block_bytes: usize) {
    let (_, unit) = layout::place(extent.first.block, block_bytes);
    map::mark(change, handle, unit, extent.blocks / UNIT_BLOCKS, false);
}

/// The map page that speaks of an extent.
pub(super) fn map_of(extent: &Extent, block_bytes: usize) -> PageId {
    let (range, _) = layout::place(extent.first.block, block_bytes);
    layout::page(extent.first.file, range, block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_grow_with_their_segment() {
        for (extents, blocks, block_bytes, next) in [
            (0, 0, 8192, 8),
            (15, 120, 8192, 8),
            (16, 128, 8192, 128),
            (79, 8191, 8192, 128),
            (80, 8192, 8192, 1024),
            (200, 1 << 17, 8192, 8192),
            (16, 128, 32768, 32),
            (16, 128, 2048, 512),
            (3000, u32::MAX, 2048, 32768),
        ] {
            assert_eq!(
                next_extent_blocks(extents, blocks, block_bytes),
                next,
                "{extents} {blocks} {block_bytes}"
            );
        }
    }
}
