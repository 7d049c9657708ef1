//! What a heap page holds, counted piece by piece: for tests that look for what should be gone.

use super::page::{DELETED, FORWARD, Head, MIGRATED, is_heap_of, slot};

/// Pieces of some pages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageCounts {
    /// By the pages' own count.
    pub live: usize,
    /// Rows, moved ones included, those marked as deleted not.
    pub rows: usize,
    /// Rows marked as deleted.
    pub deleted: usize,
    /// Rows whose content has moved.
    pub forwards: usize,
    /// Contents of such rows.
    pub migrated: usize,
}

/// Adds what a page holds, if it is one of `object`.
pub(crate) fn count_pieces(page: &[u8], object: u32, counts: &mut PageCounts) {
    if !is_heap_of(page, object) {
        return;
    }
    let head = Head::read(page);
    counts.live += usize::from(head.live);
    for slot in (0..head.slots).filter_map(|number| slot(page, number)) {
        let header = slot.header(page);
        let count = |flag: bool| usize::from(flag);
        counts.migrated += count(header.is(MIGRATED));
        counts.forwards += count(header.is(FORWARD));
        counts.deleted += count(header.is(DELETED));
        counts.rows += count(header.flags & (MIGRATED | DELETED) == 0);
    }
}
