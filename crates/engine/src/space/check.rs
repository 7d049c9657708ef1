//! Looks whether the books on space are right: every unit of every data file belongs to one segment, or is free, and the maps say
//! so. What DDL, growth and crashes must never break.

use super::extents::Extent;
use super::layout::{UNIT_BLOCKS, free, map as layout};
use super::segment::SegmentState;
use super::{Segment, Space};
use crate::files::control::TablespaceKind;
use crate::instance::Core;
use crate::page::{self, PageId, PageKind, get_u32, get_u64};
use crate::{Context, Result};
use std::collections::BTreeMap;

impl Space {
    /// What is wrong, in words; nothing when all is well. Nobody may change anything meanwhile.
    ///
    /// # Errors
    /// What storage says.
    pub fn check(&self, core: &Core, context: &Context) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        for (object, header) in self.pending(core, context)? {
            problems.push(format!("segment {object} at {header} is still pending"));
        }
        let mut owners: BTreeMap<PageId, u32> = BTreeMap::new();
        for segment in self.all_segments() {
            let state = self.state(core, context, &segment)?;
            check_memory(core, context, &state, &mut problems)?;
            check_free_pages(core, context, &state, &mut problems)?;
            for extent in &state.shape.read().extents {
                own_units(segment.object, extent, &mut owners, &mut problems);
            }
        }
        for file in core.files.all().iter().filter(|file| file.kind != TablespaceKind::Temporary) {
            self.check_file(core, context, (file.number, file.blocks()), &mut owners, &mut problems)?;
        }
        problems.extend(owners.iter().map(|(unit, object)| format!("{unit} of {object} is in no file")));
        Ok(problems)
    }

    /// Those of the catalog, and of undo.
    fn all_segments(&self) -> Vec<Segment> {
        let tables = self.catalog.all();
        let of_table = |table: &super::Table| {
            let indexes: Vec<Segment> = table.indexes.iter().map(|index| index.segment).collect();
            std::iter::once(table.segment).chain(indexes)
        };
        tables.iter().flat_map(|table| of_table(table)).chain(self.undo_segments()).collect()
    }

    /// Compares the maps of a file with the units that segments own, and takes these out of `owners`.
    fn check_file(
        &self,
        core: &Core,
        context: &Context,
        (file, blocks): (u16, u32),
        owners: &mut BTreeMap<PageId, u32>,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        for range in 0.. {
            let units = layout::units_in_file(blocks, range, self.block_bytes);
            if units == 0 {
                break;
            }
            let page = core.cache.read(core, context, layout::page(file, range, self.block_bytes))?;
            let is_fresh = page::kind(&page) == Some(PageKind::Free);
            let mut used = 0;
            for unit in 0..layout::units(self.block_bytes) {
                let marked = page[layout::BITS + unit as usize / 8] >> (unit % 8) & 1 == 1;
                used += u32::from(marked);
                let first = PageId { file, block: layout::block(range, unit, self.block_bytes) };
                match (marked, owners.remove(&first)) {
                    (true, Some(_)) | (false, None) => {}
                    (true, None) if unit == 0 => {}
                    (true, None) => problems.push(format!("{first} is marked as used and nobody's: a leak")),
                    (false, Some(object)) => problems.push(format!("{first} of {object} is marked as free")),
                }
            }
            if !is_fresh && used != get_u32(&page, layout::USED) {
                problems.push(format!("the map of file {file} range {range} counts its units wrong"));
            }
        }
        Ok(())
    }
}

fn own_units(object: u32, extent: &Extent, owners: &mut BTreeMap<PageId, u32>, problems: &mut Vec<String>) {
    for n in (0..extent.blocks).step_by(UNIT_BLOCKS as usize) {
        let unit = PageId { file: extent.first.file, block: extent.first.block + n };
        if let Some(other) = owners.insert(unit, object) {
            problems.push(format!("{unit} belongs to {other} and to {object}"));
        }
    }
}

/// Whether what is known in memory is what the header says.
fn check_memory(
    core: &Core,
    context: &Context,
    state: &SegmentState,
    problems: &mut Vec<String>,
) -> Result<()> {
    let stored = SegmentState::load(core, context, state.segment)?;
    let (stored_shape, shape) = (stored.shape.read(), state.shape.read());
    let (stored_tail, tail) = (stored.tail.lock(), state.tail.lock());
    let same = stored_shape.extents == shape.extents
        && stored_shape.high_water == shape.high_water
        && stored_shape.lists == shape.lists
        && stored_tail.lists == tail.lists
        && stored_tail.free_first == tail.free_first
        && stored_tail.free_pages == tail.free_pages
        && stored_tail.free_space == tail.free_space;
    if !same {
        problems.push(format!("the header of {} is not what memory knows", state.segment.object));
    }
    Ok(())
}

/// Whether the list of free pages is as long as it says, and has only pages of the segment.
fn check_free_pages(
    core: &Core,
    context: &Context,
    state: &SegmentState,
    problems: &mut Vec<String>,
) -> Result<()> {
    let (mut next, pages) = {
        let tail = state.tail.lock();
        (tail.free_first, tail.free_pages)
    };
    let object = state.segment.object;
    let mut count = 0;
    while next.is_some() && count <= pages {
        let page = core.cache.read(core, context, next)?;
        let ours = state.shape.read().number(next).is_some();
        if !ours || page::kind(&page) != Some(PageKind::Free) || page::object(&page) != object {
            problems.push(format!("{next} is on the list of free pages of {object} and is none"));
        }
        count += 1;
        next = PageId::from_u64(get_u64(&page, free::NEXT));
    }
    if count != pages {
        problems.push(format!("{object} has {count} free pages and counts {pages}"));
    }
    Ok(())
}
