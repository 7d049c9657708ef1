//! Heap tables: rows in slotted pages, versions by undo.
//!
//! ```text
//! insert ──▶ pieces ──▶ target (which page) ──▶ layout (where in it)
//! get, scan ──▶ page::look ──▶ read (older versions, moved rows)        INSERT … SELECT: from page::look to pieces, undecoded
//! update, delete, lock ──▶ latch (the row, locked for us) ──▶ layout
//! rollback ──▶ take_back        purge ──▶ purge
//! ```
//! A row keeps its address for life. When an update makes it too long for its page, its content moves to another page and a
//! forward piece stays behind; who made which version is always told by the piece at the address.
//!
//! Every change is one [`crate::change::Change`]: heap pages by address, then the undo page, then the undo header.

#[cfg(test)]
pub(crate) mod audit;
mod change;
mod insert;
mod latch;
mod layout;
mod page;
mod pieces;
mod purge;
mod read;
mod scan;
mod take_back;
mod target;
#[cfg(test)]
mod tests;

pub use change::{delete, lock, update};
pub use insert::insert;
pub use page::{ROW_HEADER_BYTES, RowHeader};
pub use pieces::Pieces;
pub use read::{Newest, get, newest};
pub use scan::{PageScan, PageSource};

pub(crate) use purge::{KeyHistory, purge_deleted, purge_updated};
pub(crate) use take_back::take_back;
pub(crate) use target::{Claims, InsertPages};

use crate::instance::Core;
use crate::page::PageId;
use crate::row::Malformed;
use crate::transaction::ReadView;
use crate::value::RowId;
use crate::{EngineError, Result};

/// Which row to change, and what the caller knows about it. A plain [`RowId`] will do.
#[derive(Clone, Copy, Debug)]
pub struct Locator<'a> {
    /// Where.
    pub row: RowId,
    /// The view in which the caller found the row: should somebody have changed it since,
    /// [`EngineError::NoSuchRow`] says so instead of overwriting what the caller never saw.
    pub seen_by: Option<&'a ReadView>,
    /// Columns that are part of an index, ascending. An update that leaves them as they are is nothing to purge. When
    /// none is given, every update is taken to change them.
    pub keys: Option<&'a [usize]>,
    /// When another transaction holds the row: [`EngineError::RowLocked`] instead of waiting.
    pub nowait: bool,
}

impl From<RowId> for Locator<'_> {
    fn from(row: RowId) -> Self {
        Self { row, seen_by: None, keys: None, nowait: false }
    }
}

/// A row piece whose bytes are no row.
fn malformed(core: &Core, row: RowId) -> impl FnOnce(Malformed) -> EngineError + '_ {
    move |Malformed| damaged(core, row.page, format!("a row in slot {}", row.slot))
}

fn damaged(core: &Core, id: PageId, expected: String) -> EngineError {
    EngineError::CorruptBlock { id, path: core.files.of(id).1, expected, found: "something else".into() }
}

/// What a page latch was for turned out not to be there any more.
fn no_such_row<T>(row: RowId) -> Result<T> {
    Err(EngineError::NoSuchRow(row))
}
