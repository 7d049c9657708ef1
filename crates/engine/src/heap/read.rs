//! Rows as a view sees them: the piece in the page, or an older version from undo.
//!
//! No latch is held while another page is read: who reads a moved content checks its stamp, and starts again when the row
//! moved on meanwhile. Undo records never change, and a registered view keeps those it may need.

use super::page::{self, DELETED, FIRST, FORWARD, Forward, OF_VERSION, RowHeader, Seen};
use super::{damaged, malformed};
use crate::instance::Core;
use crate::row;
use crate::statistics::Statistic;
use crate::transaction::{ReadView, Sight, Undo, UndoPtr, Xid, decode_record, read_record};
use crate::value::{Row, RowId};
use crate::{Context, Result};

/// A version of a row, out of any page.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// Without flags of where it lies.
    pub header: RowHeader,
    /// Nothing behind its end.
    pub content: Vec<u8>,
}

impl Version {
    pub fn is_deleted(&self) -> bool {
        self.header.is(DELETED)
    }

    /// Whether the change with this undo record made it.
    pub fn is_made_by(&self, xid: Xid, record: UndoPtr) -> bool {
        self.header.xid == xid && !self.header.is(FIRST) && self.header.undo == record.0
    }
}

/// The version of a row that the view sees; `None` when it sees none.
///
/// # Errors
/// What storage says.
pub fn get(core: &Core, context: &Context, row: RowId, view: &ReadView) -> Result<Option<Row>> {
    {
        let page = core.cache.read(core, context, row.page)?;
        if !page::is_heap(&page) {
            return Ok(None);
        }
        match page::look(&page, row.slot, view) {
            Seen::Row(content) => return row::decode(content).map(Some).map_err(malformed(core, row)),
            Seen::Nothing => return Ok(None),
            Seen::Elsewhere => {}
        }
    }
    match seen_version(core, context, row, view)? {
        Some(version) => row::decode(&version.content).map(Some).map_err(malformed(core, row)),
        None => Ok(None),
    }
}

/// The newest version of a row, committed or not.
pub struct Newest {
    /// Who made it; the row is locked when that transaction goes on.
    pub xid: Xid,
    /// The row; none when it is marked as deleted.
    pub row: Option<Row>,
}

/// The newest version of a row; `None` when there is no such row (never was, or purged). Takes no lock and waits for
/// nobody: what a unique check asks about the rows that an index names for a key.
///
/// # Errors
/// What storage says.
pub fn newest(core: &Core, context: &Context, row: RowId) -> Result<Option<Newest>> {
    let Some(version) = newest_version(core, context, row)? else { return Ok(None) };
    let xid = version.header.xid;
    let row = match version.is_deleted() {
        true => None,
        false => Some(row::decode(&version.content).map_err(malformed(core, row))?),
    };
    Ok(Some(Newest { xid, row }))
}

/// What a row's page says about it.
enum Piece {
    Plain(Version),
    Forward(RowHeader, Forward),
}

fn piece(core: &Core, context: &Context, row: RowId) -> Result<Option<Piece>> {
    let page = core.cache.read(core, context, row.page)?;
    let Some(slot) = page::slot(&page, row.slot).filter(|_| page::is_heap(&page)) else { return Ok(None) };
    let header = slot.header(&page);
    let of_version = RowHeader { flags: header.flags & OF_VERSION, ..header };
    if header.is(page::MIGRATED) {
        return Ok(None);
    }
    if header.is(FORWARD) {
        return Ok(Some(Piece::Forward(of_version, slot.forward(&page))));
    }
    let content = slot.content(&page);
    let bytes = row::content_bytes(content).map_err(malformed(core, row))?;
    Ok(Some(Piece::Plain(Version { header: of_version, content: content[..bytes].to_vec() })))
}

/// The newest version of a row, deleted or not; none when the address is no row.
pub(super) fn newest_version(core: &Core, context: &Context, row: RowId) -> Result<Option<Version>> {
    loop {
        let (header, forward) = match piece(core, context, row)? {
            None => return Ok(None),
            Some(Piece::Plain(version)) => return Ok(Some(version)),
            Some(Piece::Forward(header, forward)) => (header, forward),
        };
        context.count(Statistic::TableFetchContinuedRow, 1);
        let page = core.cache.read(core, context, forward.target.page)?;
        // Another stamp: the content moved on after the home page was released. Look again.
        if let Some(content) = forward.content(&page, row) {
            let bytes = row::content_bytes(content).map_err(malformed(core, forward.target))?;
            return Ok(Some(Version { header, content: content[..bytes].to_vec() }));
        }
    }
}

/// Makes `version` the version before it. Not for a first version.
pub(super) fn step_back(core: &Core, context: &Context, row: RowId, version: &mut Version) -> Result<()> {
    let at = UndoPtr(version.header.undo);
    let bytes = read_record(core, context, at, version.header.xid)?;
    context.count(Statistic::ConsistentChanges, 1);
    let mismatch =
        || damaged(core, at.page(), format!("at byte {} the version before that of {row}", at.at()));
    match decode_record(core, at, &bytes)?.1 {
        Undo::Update { row: of, before, delta, .. } if of == row => {
            version.content = delta.apply(&version.content).ok_or_else(mismatch)?;
            version.header = before;
        }
        Undo::Delete { row: of, before, .. } | Undo::Lock { row: of, before, .. } if of == row => {
            version.header = before;
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

/// The version that the view sees, from the newest backwards.
pub(super) fn seen_version(
    core: &Core,
    context: &Context,
    row: RowId,
    view: &ReadView,
) -> Result<Option<Version>> {
    let Some(mut version) = newest_version(core, context, row)? else { return Ok(None) };
    loop {
        let header = version.header;
        let first = header.is(FIRST);
        let seen = match view.sight(header.xid, first.then_some(header.undo)) {
            Sight::Seen => true,
            Sight::Unseen => false,
            Sight::Own => {
                let at = UndoPtr(header.undo);
                let bytes = read_record(core, context, at, header.xid)?;
                decode_record(core, at, &bytes)?.0.number < view.own_before
            }
        };
        if seen {
            return Ok(Some(version).filter(|version| !version.is_deleted()));
        }
        if first {
            return Ok(None);
        }
        step_back(core, context, row, &mut version)?;
    }
}
