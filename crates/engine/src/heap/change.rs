//! Update, delete and lock of one row.
//!
//! An update puts the new content where the old one was if it fits there, else elsewhere in the same page, else into
//! another page, which becomes the row's remote page until the content moves on again.

use super::latch::{Found, Places, RowChange, edit_bytes};
use super::page::{
    DELETED, Forward, MIGRATED_BYTES, ROW_HEADER_BYTES, RowHeader, content_max, is_heap_of, migrated_piece,
    plain_piece,
};
use super::target::{self, Target};
use super::{Locator, layout, malformed};
use crate::change::{Change, Handle};
use crate::instance::Core;
use crate::page::PageKind;
use crate::row;
use crate::space::Segment;
use crate::transaction::edit::Latched;
use crate::transaction::{Delta, Transaction, Undo, UndoPtr, Xid};
use crate::value::{Row, RowId, Value};
use crate::{Context, EngineError, Result};

/// Bytes of undo that an update asks for at first; it looks again when it needs more and the undo page has no more.
const DELTA_BYTES_EXPECTED: usize = 128;

fn row_change<'a>(
    core: &'a Core,
    context: &'a Context,
    segment: &'a Segment,
    locator: Locator<'a>,
) -> RowChange<'a> {
    // Every record but an update's is as long as this one.
    let undo = Undo::Lock { object: segment.object, row: locator.row, before: RowHeader::default() };
    RowChange {
        core,
        context,
        segment,
        locator,
        places: Places::of(locator.row),
        undo_bytes: undo.bytes(),
        edit_bytes: 128,
    }
}

/// Marks a row as deleted (locks it first, waiting for another transaction that holds it). Returns the row as it was.
///
/// # Errors
/// [`EngineError::NoSuchRow`], [`EngineError::Deadlock`], [`EngineError::RowLocked`], what storage says.
pub fn delete<'a>(
    core: &'a Core,
    context: &'a Context,
    segment: &'a Segment,
    transaction: &mut Transaction,
    row: impl Into<Locator<'a>>,
) -> Result<Row> {
    let locator = row.into();
    let (mut change, found) = row_change(core, context, segment, locator).latch(transaction)?;
    let old = row::decode(&found.content).map_err(malformed(core, locator.row))?;
    let undo = Undo::Delete { object: segment.object, row: locator.row, before: found.header };
    set_header(&mut change, transaction, &found, locator.row, &undo, DELETED)?;
    change.finish();
    Ok(old)
}

/// Locks a row without changing it and returns its newest version.
///
/// # Errors
/// As [`delete`]; `None` instead of [`EngineError::NoSuchRow`].
pub fn lock<'a>(
    core: &'a Core,
    context: &'a Context,
    segment: &'a Segment,
    transaction: &mut Transaction,
    row: impl Into<Locator<'a>>,
) -> Result<Option<Row>> {
    let locator = row.into();
    let (mut change, found) = match row_change(core, context, segment, locator).latch(transaction) {
        Err(EngineError::NoSuchRow(_)) => return Ok(None),
        latched => latched?,
    };
    let row = row::decode(&found.content).map_err(malformed(core, locator.row))?;
    if found.header.xid != transaction.xid {
        let undo = Undo::Lock { object: segment.object, row: locator.row, before: found.header };
        set_header(&mut change, transaction, &found, locator.row, &undo, 0)?;
        change.finish();
    }
    Ok(Some(row))
}

/// The row's newest version becomes ours, its content stays.
fn set_header(
    change: &mut Change<'_>,
    transaction: &mut Transaction,
    found: &Found,
    row: RowId,
    undo: &Undo<'_>,
    flags: u8,
) -> Result<()> {
    let pages = transaction.latch(change)?;
    let record = transaction.write(change, pages, undo);
    let moved = if found.forward.is_some() { super::page::FORWARD } else { 0 };
    let header = RowHeader { flags: flags | moved, xid: transaction.xid, undo: record.0 };
    let live = if flags & DELETED != 0 { -1 } else { 0 };
    layout::set_header(&mut Latched::new(change, found.handles.home), row.slot, header, live);
    Ok(())
}

/// Replaces a row (locks it first, waiting for another transaction that holds it). Returns the row as it was.
///
/// # Errors
/// [`EngineError::NoSuchRow`], [`EngineError::Deadlock`], [`EngineError::RowLocked`], [`EngineError::RowTooLong`],
/// [`EngineError::TablespaceFull`], what storage says.
pub fn update<'a>(
    core: &'a Core,
    context: &'a Context,
    segment: &'a Segment,
    transaction: &mut Transaction,
    row: impl Into<Locator<'a>>,
    new: &[Value],
) -> Result<Row> {
    let mut content = Vec::new();
    row::encode(new, &mut content);
    let page_bytes = transaction.stream().segment().page_bytes();
    check_length(content.len(), page_bytes)?;
    let mut attempt = row_change(core, context, segment, row.into());
    attempt.undo_bytes += DELTA_BYTES_EXPECTED;
    attempt.edit_bytes = edit_bytes(page_bytes, content.len());
    let mut target: Option<Target> = None;
    loop {
        let at = attempt.locator.row;
        let (mut change, found) = attempt.latch(transaction)?;
        let keys = match attempt.locator.keys {
            None => true,
            Some(keys) => row::differs_in(&found.content, &content, keys).map_err(malformed(core, at))?,
        };
        let delta = Delta::between(&found.content, &content);
        let undo = Undo::Update { object: segment.object, row: at, before: found.header, delta, keys };
        if undo.bytes() > transaction.room() {
            attempt.undo_bytes = undo.bytes();
            continue;
        }
        let place = match place(core, &change, &found, at, content.len(), target) {
            Some(place) => place,
            None => {
                drop(change);
                target = Some(next_target(&mut attempt, transaction, target, content.len())?);
                continue;
            }
        };
        let old = row::decode(&found.content).map_err(malformed(core, at))?;
        let pages = transaction.latch(&mut change)?;
        // The last thing that may fail; the page is ours alone, so it may be latched after undo.
        let place = match place {
            Place::Fresh(target) => {
                let page = change.new_page(target.page, PageKind::Heap, segment.object)?;
                layout::init(&mut Latched::new(&mut change, page));
                Place::Other(page)
            }
            place => place,
        };
        let record = transaction.write(&mut change, pages, &undo);
        let mover = Mover { core, at, found: &found, content: &content, xid: transaction.xid, record };
        mover.put(&mut change, place);
        change.finish();
        if let Some(target) = target {
            target::took(transaction, target, 0);
        }
        return Ok(old);
    }
}

pub(super) fn check_length(bytes: usize, page_bytes: usize) -> Result<()> {
    let max = content_max(page_bytes);
    if bytes > max { Err(EngineError::RowTooLong { bytes, block_bytes: page_bytes, max }) } else { Ok(()) }
}

/// Where the new content goes.
#[derive(Clone, Copy)]
enum Place {
    /// Into the row's own page.
    Home,
    /// Into the page to which it has moved before.
    Remote(Handle, Forward),
    /// Into another page.
    Other(Handle),
    /// Into a page that is still to be formatted.
    Fresh(Target),
}

/// Where a content of `bytes` fits among the latched pages; none when another page is needed.
fn place(
    core: &Core,
    change: &Change<'_>,
    found: &Found,
    at: RowId,
    bytes: usize,
    target: Option<Target>,
) -> Option<Place> {
    let is_active = |xid: Xid| core.transactions.is_active(xid);
    match (found.forward, found.handles.remote) {
        (Some(forward), Some(remote)) => {
            let page = change.bytes(remote);
            if layout::fits(page, forward.target.slot, MIGRATED_BYTES + bytes, &is_active) {
                return Some(Place::Remote(remote, forward));
            }
        }
        _ => {
            if layout::fits(change.bytes(found.handles.home), at.slot, ROW_HEADER_BYTES + bytes, &is_active) {
                return Some(Place::Home);
            }
        }
    }
    let target = target?;
    if target.fresh {
        return Some(Place::Fresh(target));
    }
    let page = found.handles.target?;
    let others = page != found.handles.home && Some(page) != found.handles.remote;
    (others && layout::fits_new(change.bytes(page), MIGRATED_BYTES + bytes)).then_some(Place::Other(page))
}

/// Another page for the content: the one into which the session inserts, or the next one when that was `refused`.
fn next_target(
    attempt: &mut RowChange<'_>,
    transaction: &mut Transaction,
    refused: Option<Target>,
    bytes: usize,
) -> Result<Target> {
    let RowChange { core, context, segment, .. } = *attempt;
    if let Some(target) = refused {
        target::leave(core, segment, transaction, target, 0);
    }
    let mut target = target::get(core, context, segment, transaction, MIGRATED_BYTES + bytes)?;
    if !target.fresh && !is_heap_of(&core.cache.read(core, context, target.page)?, segment.object) {
        target.fresh = true;
        target::is_fresh(transaction, target);
    }
    attempt.places.target = if target.fresh { None } else { Some(target.page) };
    attempt.places.fresh = target.fresh;
    Ok(target)
}

/// A new content on its way into a page.
struct Mover<'a> {
    core: &'a Core,
    at: RowId,
    found: &'a Found,
    content: &'a [u8],
    xid: Xid,
    record: UndoPtr,
}

impl Mover<'_> {
    fn put(&self, change: &mut Change<'_>, place: Place) {
        let is_active = |xid: Xid| self.core.transactions.is_active(xid);
        let header = RowHeader { flags: 0, xid: self.xid, undo: self.record.0 };
        let home = self.found.handles.home;
        match place {
            Place::Home => {
                let piece = plain_piece(header, self.content);
                let mut page = Latched::new(change, home);
                layout::replace(&mut page, self.at.slot, &piece, self.xid, &is_active);
            }
            Place::Remote(remote, forward) => {
                let forward = Forward { stamp: forward.stamp.wrapping_add(1), ..forward };
                let piece = migrated_piece(self.at, forward.stamp, self.xid, self.content);
                let mut page = Latched::new(change, remote);
                layout::replace(&mut page, forward.target.slot, &piece, self.xid, &is_active);
                self.point_to(change, header, forward);
            }
            Place::Other(other) => {
                let stamp = self.found.forward.map_or(0, |forward| forward.stamp.wrapping_add(1));
                let piece = migrated_piece(self.at, stamp, self.xid, self.content);
                let page = change.id(other);
                let slot = layout::add(&mut Latched::new(change, other), &piece, self.xid, &is_active);
                if let (Some(old), Some(remote)) = (self.found.forward, self.found.handles.remote) {
                    layout::remove(&mut Latched::new(change, remote), old.target.slot, false);
                }
                self.point_to(change, header, Forward { target: RowId { page, slot }, stamp });
            }
            Place::Fresh(_) => unreachable!("a fresh page was formatted"),
        }
    }

    /// The row's own page says where the content is.
    fn point_to(&self, change: &mut Change<'_>, header: RowHeader, forward: Forward) {
        let mut page = Latched::new(change, self.found.handles.home);
        // It always fits where the row was, so nothing is compacted for it.
        layout::replace(&mut page, self.at.slot, &forward.piece(header), self.xid, &|_| true);
    }
}
