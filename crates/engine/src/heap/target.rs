//! Where new rows go: each stream (as a rule, each session) inserts into pages of its own, so sessions do not wait for
//! each other's latches.
//!
//! A page into which a stream inserts is claimed: no other stream gets it. That is also what makes it safe to format a page
//! which the segment gave but which was never used: only who claimed it does so.

use super::page::SLOT_BYTES;
use crate::instance::Core;
use crate::page::PageId;
use crate::space::Segment;
use crate::transaction::Transaction;
use crate::{Context, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

/// Objects whose insert page a stream keeps in mind.
const PAGES_MAX: usize = 16;
/// Pages with too little room in a row after which a new one is asked for: the hints about free space are coarse.
const REFUSALS_MAX: u32 = 2;

/// Pages into which streams insert.
#[derive(Default)]
pub(crate) struct Claims {
    /// With the object to which each belongs.
    pages: Mutex<BTreeMap<PageId, u32>>,
    /// Counts the times when an object's were forgotten.
    generation: AtomicU64,
}

impl Claims {
    /// Whether the page is the caller's from now on.
    fn claim(&self, page: PageId, object: u32) -> bool {
        match self.pages.lock().entry(page) {
            Entry::Vacant(place) => {
                place.insert(object);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    fn release(&self, page: PageId) {
        self.pages.lock().remove(&page);
    }

    /// Streams no longer insert into pages of an object, into which nobody is inserting now.
    pub fn forget(&self, object: u32) {
        self.pages.lock().retain(|_, of| *of != object);
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }
}

/// A page to insert into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    segment: Segment,
    pub page: PageId,
    /// Given by the segment, never used: it must be formatted.
    pub fresh: bool,
    /// Rows were inserted into it.
    used: bool,
    /// Bytes free in it, as last seen.
    free: usize,
}

impl Target {
    /// Whether rows were inserted into it before.
    pub fn was_used(&self) -> bool {
        self.used
    }
}

/// The pages of one stream.
#[derive(Default)]
pub(crate) struct InsertPages {
    pages: Vec<Target>,
    generation: u64,
    refusals: u32,
}

/// Bytes of a page that inserts leave free, so that rows can grow where they are (Oracle's PCTFREE 10).
pub(super) fn spare(page_bytes: usize) -> usize {
    page_bytes / 10
}

/// The page into which the transaction's next row of `bytes` goes, if it fits.
pub(super) fn get(
    core: &Core,
    context: &Context,
    segment: &Segment,
    transaction: &mut Transaction,
    bytes: usize,
) -> Result<Target> {
    let claims = &core.transactions.claims;
    let page_bytes = transaction.stream().segment().page_bytes();
    let pages = &mut transaction.stream_mut().inserts;
    let generation = claims.generation();
    if pages.generation != generation {
        let claimed = claims.pages.lock();
        pages.pages.retain(|target| claimed.get(&target.page) == Some(&target.segment.object));
        pages.generation = generation;
    }
    if let Some(target) = pages.pages.iter().find(|target| target.segment.object == segment.object) {
        return Ok(*target);
    }
    let wanted = bytes + SLOT_BYTES + spare(page_bytes);
    let mut found = None;
    if pages.refusals < REFUSALS_MAX {
        let page = core.space.page_with_space(core, context, segment, wanted)?;
        found = page.filter(|&page| claims.claim(page, segment.object)).map(|page| (page, false));
    }
    let (page, fresh) = match found {
        Some(found) => found,
        None => {
            let page = core.space.allocate_page(core, context, segment)?;
            claims.claim(page, segment.object);
            (page, true)
        }
    };
    if pages.pages.len() == PAGES_MAX {
        let oldest = pages.pages.remove(0);
        claims.release(oldest.page);
        if oldest.used {
            core.space.note_free(&oldest.segment, oldest.page, oldest.free);
        }
    }
    let target = Target { segment: *segment, page, fresh, used: false, free: 0 };
    pages.pages.push(target);
    Ok(target)
}

/// The page was never used, whatever it was taken for.
pub(super) fn is_fresh(transaction: &mut Transaction, target: Target) {
    if let Some(found) = find(transaction, target) {
        found.fresh = true;
    }
}

/// Rows were inserted; `free` bytes are left.
pub(super) fn took(transaction: &mut Transaction, target: Target, free: usize) {
    transaction.stream_mut().inserts.refusals = 0;
    if let Some(found) = find(transaction, target) {
        found.fresh = false;
        found.used = true;
        found.free = free;
    }
}

/// The page has no room: `free` bytes are left. Others may have it.
pub(super) fn leave(
    core: &Core,
    segment: &Segment,
    transaction: &mut Transaction,
    target: Target,
    free: usize,
) {
    let pages = &mut transaction.stream_mut().inserts;
    pages.pages.retain(|page| page.page != target.page);
    pages.refusals += 1;
    core.transactions.claims.release(target.page);
    core.space.note_free(segment, target.page, free);
}

fn find(transaction: &mut Transaction, target: Target) -> Option<&mut Target> {
    transaction.stream_mut().inserts.pages.iter_mut().find(|page| page.page == target.page)
}
