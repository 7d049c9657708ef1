//! Rollback of heap changes: the row gets its old header and content back, and its undo record is marked, in one change.
//!
//! It always has room: a piece keeps its capacity while its last writer goes on (see `page`), so an older content fits
//! where the newer one is; a row whose content has moved away goes home when its old place is large enough.

use super::latch::{Found, Look, Places, edit_bytes, look};
use super::page::{
    self, DELETED, FIRST, FORWARD, Forward, Head, MIGRATED_BYTES, ROW_HEADER_BYTES, RowHeader,
    migrated_piece, plain_piece,
};
use super::{damaged, layout};
use crate::change::{Change, Handle};
use crate::instance::Core;
use crate::page::PageId;
use crate::transaction::edit::Latched;
use crate::transaction::{Delta, RecordHead, Runs, Undo, UndoPtr, Xid, undo_page};
use crate::value::RowId;
use crate::{Context, Result};

/// Takes back the change of the undo record at `at`, which is not one of an index.
pub(crate) fn take_back(
    core: &Core,
    context: &Context,
    at: UndoPtr,
    head: &RecordHead,
    undo: &Undo<'_>,
) -> Result<()> {
    match *undo {
        Undo::Insert { object, page, runs } => take_out(core, context, at, head, (object, page, runs)),
        Undo::Update { object, row, before, delta, .. } => {
            let change = Restore { object, row, before, delta: Some(delta), live: 0 };
            change.run(core, context, at, head)
        }
        Undo::Delete { object, row, before } => {
            Restore { object, row, before, delta: None, live: 1 }.run(core, context, at, head)
        }
        Undo::Lock { object, row, before } => {
            Restore { object, row, before, delta: None, live: 0 }.run(core, context, at, head)
        }
        Undo::IndexInsert { .. } => unreachable!("index entries are not the heap's"),
    }
}

fn mark(change: &mut Change<'_>, page: Handle, at: UndoPtr) {
    undo_page::mark_undone(&mut Latched::new(change, page), at.at());
}

/// Whether a slot has a row that the record inserted.
fn is_inserted_by(page: &[u8], slot: u16, head: &RecordHead) -> bool {
    page::slot(page, slot).is_some_and(|slot| {
        let header = slot.header(page);
        header.is(FIRST) && !header.is(page::MIGRATED) && header.xid == head.xid && header.undo == head.number
    })
}

/// Takes inserted rows out of their page.
fn take_out(
    core: &Core,
    context: &Context,
    at: UndoPtr,
    head: &RecordHead,
    (object, id, runs): (u32, PageId, Runs<'_>),
) -> Result<()> {
    // Rare: a row that an update moved away and whose old place was too small to come home.
    let moved: Vec<u16> = {
        let page = core.cache.read(core, context, id)?;
        let is_moved = |slot: &u16| {
            is_inserted_by(&page, *slot, head)
                && page::slot(&page, *slot).is_some_and(|found| found.header(&page).is(FORWARD))
        };
        if page::is_heap_of(&page, object) { runs.slots().filter(is_moved).collect() } else { Vec::new() }
    };
    for slot in moved {
        remove_row(core, context, object, RowId { page: id, slot }, true, |found| {
            found.header.xid == head.xid
        })?;
    }
    let mut change = Change::begin(core, context, 2, 64 + 48 * runs.slots().count())?;
    let page = change.page(id)?;
    let undo = change.page(at.page())?;
    if page::is_heap_of(change.bytes(page), object) {
        for slot in runs.slots() {
            if is_inserted_by(change.bytes(page), slot, head) {
                layout::remove(&mut Latched::new(&mut change, page), slot, true);
            }
        }
    }
    mark(&mut change, undo, at);
    let free = page::is_heap_of(change.bytes(page), object).then(|| Head::read(change.bytes(page)).free());
    change.finish();
    note_free(core, object, id, free);
    Ok(())
}

fn note_free(core: &Core, object: u32, page: PageId, free: Option<usize>) {
    if let (Some(free), Some(segment)) = (free, core.space.segment(object)) {
        core.space.note_free(&segment, page, free);
    }
}

/// Takes a row out for good, with its content wherever it is, if it is still the one that is meant. `live`: it is not
/// marked as deleted.
pub(super) fn remove_row(
    core: &Core,
    context: &Context,
    object: u32,
    row: RowId,
    live: bool,
    is_meant: impl Fn(&Found) -> bool,
) -> Result<()> {
    let mut places = Places::of(row);
    loop {
        let mut change = Change::begin(core, context, places.count(), 256)?;
        let handles = places.latch(&mut change)?;
        let found = match look(core, &change, handles, &mut places, object, row)? {
            Look::Row(found) if is_meant(&found) => found,
            Look::Again => continue,
            Look::Row(_) | Look::Nothing => return Ok(()),
        };
        if let (Some(forward), Some(remote)) = (found.forward, handles.remote) {
            layout::remove(&mut Latched::new(&mut change, remote), forward.target.slot, false);
        }
        layout::remove(&mut Latched::new(&mut change, handles.home), row.slot, live);
        let free = Head::read(change.bytes(handles.home)).free();
        change.finish();
        note_free(core, object, row.page, Some(free));
        return Ok(());
    }
}

/// A row that gets an older version back.
struct Restore<'a> {
    object: u32,
    row: RowId,
    before: RowHeader,
    /// How the content was; none when it did not change.
    delta: Option<Delta<'a>>,
    /// By how many the page's live rows grow.
    live: i32,
}

impl Restore<'_> {
    fn run(&self, core: &Core, context: &Context, at: UndoPtr, head: &RecordHead) -> Result<()> {
        let mut places = Places::of(self.row);
        let page_bytes = core.cache.read(core, context, at.page())?.len();
        loop {
            let bytes = edit_bytes(page_bytes, page_bytes);
            let mut change = Change::begin(core, context, places.count() + 1, bytes)?;
            let handles = places.latch(&mut change)?;
            let found = match look(core, &change, handles, &mut places, self.object, self.row)? {
                Look::Row(found) => Some(found),
                Look::Again => continue,
                Look::Nothing => None,
            };
            // Whatever else is there now belongs to a table that was dropped or truncated meanwhile.
            let found = found.filter(|found| {
                let header = found.header;
                header.xid == head.xid && !header.is(FIRST) && header.undo == at.0
            });
            let older =
                match (&found, self.delta) {
                    (Some(found), Some(delta)) => {
                        let older = delta.apply(&found.content);
                        Some(older.ok_or_else(|| {
                            damaged(core, self.row.page, format!("the row of {}", self.row))
                        })?)
                    }
                    _ => None,
                };
            let undo = change.page(at.page())?;
            match (found, older) {
                (Some(found), Some(older)) => self.put_content(core, &mut change, &found, &older),
                (Some(found), None) => self.put_header(&mut change, &found),
                (None, _) => {}
            }
            mark(&mut change, undo, at);
            change.finish();
            return Ok(());
        }
    }

    fn put_header(&self, change: &mut Change<'_>, found: &Found) {
        let moved = if found.forward.is_some() { FORWARD } else { 0 };
        let header = RowHeader { flags: self.before.flags | moved, ..self.before };
        let mut page = Latched::new(change, found.handles.home);
        layout::set_header(&mut page, self.row.slot, header, self.live);
    }

    fn put_content(&self, core: &Core, change: &mut Change<'_>, found: &Found, older: &[u8]) {
        debug_assert!(self.before.flags & DELETED == 0, "a deleted row is not updated");
        let is_active = |xid: Xid| core.transactions.is_active(xid);
        let (home, before) = (found.handles.home, self.before);
        let room = page::slot(change.bytes(home), self.row.slot).map_or(0, |slot| slot.capacity);
        let comes_home = ROW_HEADER_BYTES + older.len() <= room;
        match (found.forward, found.handles.remote) {
            (Some(forward), Some(remote)) if !comes_home => {
                let forward = Forward { stamp: forward.stamp.wrapping_add(1), ..forward };
                let piece = migrated_piece(self.row, forward.stamp, before.xid, older);
                let mut page = Latched::new(change, remote);
                debug_assert_eq!(piece.len(), MIGRATED_BYTES + older.len());
                layout::replace(&mut page, forward.target.slot, &piece, before.xid, &is_active);
                let mut page = Latched::new(change, home);
                layout::replace(&mut page, self.row.slot, &forward.piece(before), before.xid, &is_active);
            }
            (forward, remote) => {
                if let (Some(forward), Some(remote)) = (forward, remote) {
                    layout::remove(&mut Latched::new(change, remote), forward.target.slot, false);
                }
                let mut page = Latched::new(change, home);
                let piece = plain_piece(before, older);
                layout::replace(&mut page, self.row.slot, &piece, before.xid, &is_active);
            }
        }
    }
}
