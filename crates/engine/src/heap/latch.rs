//! Latching a row for a change, when nobody else holds it.
//!
//! Pages are latched by address. Which ones a row needs (its own, the one its content has moved to, the one it is about to
//! move to) is only known when it was looked at; so a look that finds a page missing is given up, unedited, and made
//! again with that page.

use super::page::{self, DELETED, FORWARD, Forward, MIGRATED_BYTES, OF_VERSION, ROW_HEADER_BYTES, RowHeader};
use super::{Locator, damaged, malformed, no_such_row};
use crate::change::{Change, Handle};
use crate::instance::Core;
use crate::page::PageId;
use crate::row;
use crate::space::Segment;
use crate::transaction::{Transaction, Xid};
use crate::value::RowId;
use crate::{Context, EngineError, Result};

/// Heap pages that a change of a row latches.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub home: PageId,
    /// Where its content has moved to.
    pub remote: Option<PageId>,
    /// Where its content is about to move to.
    pub target: Option<PageId>,
    /// Its content is about to move to a page that is still to be formatted.
    pub fresh: bool,
}

/// Those pages, latched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handles {
    pub home: Handle,
    pub remote: Option<Handle>,
    pub target: Option<Handle>,
}

impl Places {
    pub fn of(row: RowId) -> Self {
        Self { home: row.page, remote: None, target: None, fresh: false }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1 + [self.remote.is_some(), self.target.is_some(), self.fresh].into_iter().filter(|is| *is).count()
    }

    /// Latches them in the order of their addresses.
    pub fn latch(&self, change: &mut Change<'_>) -> Result<Handles> {
        let mut ids = [Some(self.home), self.remote, self.target];
        ids.sort_unstable();
        let mut handles = [None; 3];
        for (handle, id) in handles.iter_mut().zip(ids) {
            *handle = match id {
                Some(id) => Some(change.page(id)?),
                None => None,
            };
        }
        let of = |wanted: PageId| {
            ids.iter().position(|id| *id == Some(wanted)).and_then(|at| handles[at]).expect("latched above")
        };
        Ok(Handles { home: of(self.home), remote: self.remote.map(of), target: self.target.map(of) })
    }
}

/// A row whose pages are latched.
pub(super) struct Found {
    pub handles: Handles,
    /// Of the newest version, without flags of where it lies.
    pub header: RowHeader,
    pub content: Vec<u8>,
    /// Where the content is, if not at home.
    pub forward: Option<Forward>,
}

/// What a look at a latched page found.
pub(super) enum Look {
    Row(Found),
    /// No row there.
    Nothing,
    /// Look again: the page of the content was not latched; now it is among the places.
    Again,
}

/// Looks at the row in the latched pages.
pub(super) fn look(
    core: &Core,
    change: &Change<'_>,
    handles: Handles,
    places: &mut Places,
    object: u32,
    row: RowId,
) -> Result<Look> {
    let home = change.bytes(handles.home);
    let slot = page::slot(home, row.slot).filter(|_| page::is_heap_of(home, object));
    let Some(slot) = slot.filter(|slot| !slot.header(home).is(page::MIGRATED)) else {
        return Ok(Look::Nothing);
    };
    let header = slot.header(home);
    let of_version = RowHeader { flags: header.flags & OF_VERSION, ..header };
    if !header.is(FORWARD) {
        let content = slot.content(home);
        let bytes = row::content_bytes(content).map_err(malformed(core, row))?;
        let content = content[..bytes].to_vec();
        return Ok(Look::Row(Found { handles, header: of_version, content, forward: None }));
    }
    let forward = slot.forward(home);
    let remote = match handles.remote {
        Some(remote) if change.id(remote) == forward.target.page => remote,
        _ => {
            places.remote = Some(forward.target.page);
            return Ok(Look::Again);
        }
    };
    let content = forward
        .content(change.bytes(remote), row)
        .ok_or_else(|| damaged(core, forward.target.page, format!("the content of {row}")))?;
    let bytes = row::content_bytes(content).map_err(malformed(core, forward.target))?;
    let content = content[..bytes].to_vec();
    Ok(Look::Row(Found { handles, header: of_version, content, forward: Some(forward) }))
}

/// Bytes of edits that a change of one row costs at most, besides undo: new pieces, and a page compacted.
pub(super) fn edit_bytes(page_bytes: usize, content: usize) -> usize {
    let pieces = 2 * (content + ROW_HEADER_BYTES + MIGRATED_BYTES);
    pieces + page_bytes + 512
}

/// A change of one row that is about to be made.
pub(super) struct RowChange<'a> {
    pub core: &'a Core,
    pub context: &'a Context,
    pub segment: &'a Segment,
    pub locator: Locator<'a>,
    pub places: Places,
    /// Bytes of undo that must fit.
    pub undo_bytes: usize,
    /// Bytes of edits besides undo.
    pub edit_bytes: usize,
}

impl<'a> RowChange<'a> {
    /// Latches the row, waiting for whoever else holds it. The row is there, not marked as deleted, and locked by
    /// nobody else.
    ///
    /// # Errors
    /// [`EngineError::NoSuchRow`], [`EngineError::Deadlock`], [`EngineError::RowLocked`], what storage says.
    pub fn latch(&mut self, transaction: &mut Transaction) -> Result<(Change<'a>, Found)> {
        let row = self.locator.row;
        let page_bytes = transaction.stream().segment().page_bytes();
        loop {
            transaction.reserve(self.core, self.context, self.undo_bytes)?;
            let pages = self.places.count() + Transaction::CHANGE_PAGES;
            // What undo turns out to need may be more than was asked for, as long as the undo page has it.
            let bytes = self.edit_bytes + Transaction::change_bytes(page_bytes);
            let mut change = Change::begin(self.core, self.context, pages, bytes)?;
            let handles = self.places.latch(&mut change)?;
            let found = match look(self.core, &change, handles, &mut self.places, self.segment.object, row)? {
                Look::Row(found) => found,
                Look::Again => continue,
                Look::Nothing => return no_such_row(row),
            };
            let holder = found.header.xid;
            if holder != transaction.xid && self.core.transactions.is_active(holder) {
                drop(change);
                self.wait_for(transaction.xid, holder)?;
                continue;
            }
            if self.core.transactions.purge_mark.is_on(row) {
                drop(change);
                self.core.transactions.purge_mark.wait();
                continue;
            }
            if found.header.is(DELETED) || self.locator.seen_by.is_some_and(|view| !view.sees(holder)) {
                return no_such_row(row);
            }
            return Ok((change, found));
        }
    }

    fn wait_for(&self, own: Xid, holder: Xid) -> Result<()> {
        if self.locator.nowait {
            return match self.core.transactions.blocker(holder) {
                Some(blocker) => Err(EngineError::RowLocked { blocker }),
                None => Ok(()),
            };
        }
        self.core.transactions.wait_for(self.core, self.context, own, holder)
    }
}
