//! A segment at run time: its extents, its high-water mark, its free pages.
//!
//! What the header page says is kept in memory too ([`SegmentState`]), read once, and changed together with the page by whoever
//! holds `enq: HW`. So nobody reads the header to find a page, and nobody but the one who raises the mark latches it.
//!
//! Pages below the high-water mark that nobody was given yet wait in `fresh`: the mark rises by several pages at once in a
//! segment of rows that has become large, and sessions take them from there under a mutex held for nanoseconds. In a crash
//! they are lost to `fresh`, but not for good: they are blank, and `hints` comes across them.

use super::Segment;
use super::extents::Extent;
use super::hints::Hints;
use super::layout::header as layout;
use crate::instance::Core;
use crate::page::{self, PageId, PageKind, get_u16, get_u32, get_u64};
use crate::{Context, EngineError, Result};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Pages that the mark of a large segment rises by at once.
const RAISE_PAGES_MAX: u32 = 32;

/// A page that has a list of extents: the header, or one of the lists that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListPage {
    pub id: PageId,
    /// Entries in it.
    pub entries: u32,
}

/// What changes when the segment grows; under `enq: HW`.
pub(super) struct Tail {
    /// The header first.
    pub lists: Vec<ListPage>,
    pub free_first: PageId,
    pub free_pages: u32,
    pub free_space: PageId,
}

/// Where the pages are.
#[derive(Default)]
pub(super) struct Shape {
    /// In the order of the segment's pages.
    pub extents: Vec<Extent>,
    /// Number of the first page of each.
    bases: Vec<u32>,
    /// Index of each, by its first block.
    by_block: BTreeMap<PageId, usize>,
    /// The header and the extent lists.
    pub lists: Vec<PageId>,
    /// Pages in all extents.
    pub blocks: u32,
    /// Pages that were given out or are about to be.
    pub high_water: u32,
}

impl Shape {
    pub fn push(&mut self, extent: Extent) {
        self.by_block.insert(extent.first, self.extents.len());
        self.extents.push(extent);
        self.bases.push(self.blocks);
        self.blocks += extent.blocks;
    }

    /// The number of a page in the segment.
    pub fn number(&self, id: PageId) -> Option<u32> {
        let (first, index) = self.by_block.range(..=id).next_back()?;
        let offset = id.block.wrapping_sub(first.block);
        let inside = first.file == id.file && offset < self.extents[*index].blocks;
        inside.then(|| self.bases[*index] + offset)
    }

    /// The page of a number, and how many pages of its extent follow it, itself included.
    pub fn page(&self, number: u32) -> (PageId, u32) {
        let index = self.bases.partition_point(|base| *base <= number) - 1;
        let Extent { first, blocks } = self.extents[index];
        let offset = number - self.bases[index];
        (PageId { file: first.file, block: first.block + offset }, blocks - offset)
    }

    /// Pages below the high-water mark as runs of neighbours, without those of `except` (sorted).
    pub fn runs(&self, except: &[PageId]) -> Vec<(PageId, u32)> {
        let mut runs: Vec<(PageId, u32)> = Vec::new();
        let mut push = |first: PageId, blocks: u32| match runs.last_mut() {
            _ if blocks == 0 => {}
            Some((start, length)) if start.file == first.file && start.block + *length == first.block => {
                *length += blocks;
            }
            _ => runs.push((first, blocks)),
        };
        let mut left = self.high_water;
        for extent in &self.extents {
            let end = extent.first.block + extent.blocks.min(left);
            left -= extent.blocks.min(left);
            let mut at = extent.first;
            let from = except.partition_point(|id| *id < at);
            for hole in except[from..].iter().take_while(|id| id.file == at.file && id.block < end) {
                push(at, hole.block - at.block);
                at.block = hole.block + 1;
            }
            push(at, end - at.block);
        }
        runs
    }
}

/// A segment at run time.
pub(crate) struct SegmentState {
    pub segment: Segment,
    pub(super) tail: Mutex<Tail>,
    pub(super) shape: RwLock<Shape>,
    /// Below the high-water mark, blank, given to nobody. The mark rises under this mutex, so whoever holds it sees a page
    /// either here, or given out, or above the mark.
    pub(super) fresh: Mutex<VecDeque<PageId>>,
    /// Some pages were given out since it was loaded.
    pub(super) given: AtomicBool,
    /// There when its pages hold rows: made when somebody asks for a page with space.
    pub(super) hints: OnceLock<Hints>,
}

impl SegmentState {
    /// Of a segment that was just made: the header and nothing else is in use.
    pub fn new(segment: Segment, extent: Extent) -> Self {
        let mut shape = Shape { high_water: 1, lists: vec![segment.header], ..Shape::default() };
        shape.push(extent);
        let tail = Tail {
            lists: vec![ListPage { id: segment.header, entries: 1 }],
            free_first: PageId::NONE,
            free_pages: 0,
            free_space: PageId::NONE,
        };
        Self::with(segment, tail, shape)
    }

    fn with(segment: Segment, tail: Tail, shape: Shape) -> Self {
        Self {
            segment,
            tail: Mutex::new(tail),
            shape: RwLock::new(shape),
            fresh: Mutex::default(),
            given: AtomicBool::new(false),
            hints: OnceLock::new(),
        }
    }

    /// Reads header and extent lists.
    ///
    /// # Errors
    /// [`EngineError::CorruptBlock`] when they are no such pages, what storage says.
    pub fn load(core: &Core, context: &Context, segment: Segment) -> Result<Self> {
        let mut shape = Shape::default();
        let (mut tail, mut next, blocks) = {
            let header = core.cache.read(core, context, segment.header)?;
            check_list_page(core, &segment, segment.header, &header)?;
            let entries = get_u32(&header, layout::HERE);
            read_entries(&header, layout::LIST, entries, &mut shape);
            shape.high_water = get_u32(&header, layout::HIGH_WATER);
            let tail = Tail {
                lists: vec![ListPage { id: segment.header, entries }],
                free_first: PageId::from_u64(get_u64(&header, layout::FREE_FIRST)),
                free_pages: get_u32(&header, layout::FREE_PAGES),
                free_space: PageId::from_u64(get_u64(&header, layout::FREE_SPACE)),
            };
            (tail, get_u64(&header, layout::NEXT), get_u32(&header, layout::BLOCKS))
        };
        while next != 0 {
            let id = PageId::from_u64(next);
            let page = core.cache.read(core, context, id)?;
            check_list_page(core, &segment, id, &page)?;
            let entries = get_u32(&page, layout::LIST_HERE);
            read_entries(&page, layout::LIST_LIST, entries, &mut shape);
            tail.lists.push(ListPage { id, entries });
            next = get_u64(&page, layout::LIST_NEXT);
        }
        shape.lists = tail.lists.iter().map(|list| list.id).collect();
        if shape.blocks != blocks || shape.high_water > blocks {
            let expected = format!("extents of {blocks} blocks");
            return Err(corrupt(core, segment.header, expected, format!("{} blocks", shape.blocks)));
        }
        Ok(Self::with(segment, tail, shape))
    }

    pub fn holds_rows(&self) -> bool {
        self.hints.get().is_some()
    }

    /// Pages that the high-water mark rises by. An index or undo segment gets one at a time: nobody comes across what is
    /// lost in a crash there. A small table too, so that it stays small.
    pub(super) fn raise_pages(&self, high_water: u32) -> u32 {
        if self.holds_rows() { (high_water / 16).clamp(1, RAISE_PAGES_MAX) } else { 1 }
    }

    /// Pages as runs of neighbours; header, extent lists, and pages that nobody was given yet are left out.
    pub(super) fn runs(&self) -> Vec<(PageId, u32)> {
        let fresh = self.fresh.lock();
        let shape = self.shape.read();
        let mut except: Vec<PageId> = fresh.iter().chain(&shape.lists).copied().collect();
        except.sort_unstable();
        shape.runs(&except)
    }
}

fn read_entries(page: &[u8], list: usize, entries: u32, shape: &mut Shape) {
    for n in 0..entries as usize {
        let (first, blocks) = layout::read_entry(page, list, n);
        shape.push(Extent { first, blocks });
    }
}

/// Whether a page is the header (or a list) of this segment.
pub(super) fn is_list_page(segment: &Segment, page: &[u8]) -> bool {
    page::kind(page) == Some(PageKind::SegmentHeader) && page::object(page) == segment.object
}

fn check_list_page(core: &Core, segment: &Segment, id: PageId, page: &[u8]) -> Result<()> {
    let list = if id == segment.header { layout::LIST } else { layout::LIST_LIST };
    let entries = get_u32(page, if id == segment.header { layout::HERE } else { layout::LIST_HERE });
    if is_list_page(segment, page) && entries as usize <= layout::capacity(list, page.len()) {
        return Ok(());
    }
    let found = format!("{:?} of object {}, {entries} extents", page::kind(page), page::object(page));
    Err(corrupt(core, id, format!("extents of object {}", segment.object), found))
}

pub(super) fn corrupt(core: &Core, id: PageId, expected: String, found: String) -> EngineError {
    EngineError::CorruptBlock { id, path: core.files.of(id).1, expected, found }
}

/// The tablespace that a header says it is in.
pub(super) fn tablespace_of(page: &[u8]) -> u16 {
    get_u16(page, layout::TABLESPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(file: u16, block: u32) -> PageId {
        PageId { file, block }
    }

    fn shape(extents: &[(u16, u32, u32)], high_water: u32) -> Shape {
        let mut shape = Shape { high_water, ..Shape::default() };
        for (file, block, blocks) in extents {
            shape.push(Extent { first: id(*file, *block), blocks: *blocks });
        }
        shape
    }

    #[test]
    fn pages_have_numbers_and_numbers_have_pages() {
        // The extents' order is not that of their addresses.
        let shape = shape(&[(2, 64, 8), (1, 8, 16), (2, 8, 8)], 32);
        for (number, page, left) in [
            (0, id(2, 64), 8),
            (7, id(2, 71), 1),
            (8, id(1, 8), 16),
            (23, id(1, 23), 1),
            (24, id(2, 8), 8),
            (31, id(2, 15), 1),
        ] {
            assert_eq!(shape.page(number), (page, left), "{number}");
            assert_eq!(shape.number(page), Some(number), "{page}");
        }
        for page in [id(1, 7), id(1, 24), id(2, 7), id(2, 16), id(2, 63), id(2, 72), id(3, 8), PageId::NONE] {
            assert_eq!(shape.number(page), None, "{page}");
        }
    }

    #[test]
    fn runs_join_neighbours_and_leave_out_what_nobody_has() {
        let extents = &[(1, 8, 8), (1, 16, 8), (2, 8, 8)];
        for (high_water, except, runs) in [
            (0, &[][..], &[][..]),
            (3, &[], &[(id(1, 8), 3)]),
            (20, &[], &[(id(1, 8), 16), (id(2, 8), 4)]),
            (20, &[id(1, 10), id(2, 8)], &[(id(1, 8), 2), (id(1, 11), 13), (id(2, 9), 3)]),
            (20, &[id(1, 8), id(1, 9), id(2, 11)], &[(id(1, 10), 14), (id(2, 8), 3)]),
            (20, &[id(2, 12)], &[(id(1, 8), 16), (id(2, 8), 4)]),
        ] {
            assert_eq!(shape(extents, high_water).runs(except), runs, "{high_water} {except:?}");
        }
    }
}
