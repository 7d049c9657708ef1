//! Heap tables: rows in slotted pages, versions by undo.

use crate::instance::Core;
use crate::page::PageId;
use crate::space::Segment;
use crate::transaction::{ReadView, Transaction, Xid};
use crate::value::{Row, RowId, Value};
use crate::{Context, Result};

/// Inserts rows, as many in one change as fit a page. `inserted` is told each row's address, in order.
///
/// # Errors
/// [`crate::EngineError::RowTooLong`], [`crate::EngineError::TablespaceFull`], what storage says. Rows told to `inserted` are there.
pub fn insert(
    _core: &Core,
    _context: &Context,
    _segment: &Segment,
    _transaction: &mut Transaction,
    _rows: &[Row],
    _inserted: &mut dyn FnMut(usize, RowId),
) -> Result<()> {
    unimplemented!()
}

/// Replaces a row (locks it first, waiting for another transaction that holds it). Returns the row as it was.
///
/// # Errors
/// [`crate::EngineError::NoSuchRow`], [`crate::EngineError::Deadlock`], …
pub fn update(
    _core: &Core,
    _context: &Context,
    _segment: &Segment,
    _transaction: &mut Transaction,
    _row: RowId,
    _new: &[Value],
) -> Result<Row> {
    unimplemented!()
}

/// Marks a row as deleted. Returns the row as it was.
///
/// # Errors
/// As [`update`].
pub fn delete(
    _core: &Core,
    _context: &Context,
    _segment: &Segment,
    _transaction: &mut Transaction,
    _row: RowId,
) -> Result<Row> {
    unimplemented!()
}

/// Locks a row without changing it and returns its newest version.
///
/// # Errors
/// As [`update`].
pub fn lock(
    _core: &Core,
    _context: &Context,
    _segment: &Segment,
    _transaction: &mut Transaction,
    _row: RowId,
) -> Result<Option<Row>> {
    unimplemented!()
}

/// The version of a row that the view sees; `None` when it sees none.
///
/// # Errors
/// What storage says.
pub fn get(_core: &Core, _context: &Context, _row: RowId, _view: &ReadView) -> Result<Option<Row>> {
    unimplemented!()
}

/// The newest version of a row, committed or not.
pub struct Newest {
    /// Who made it; the row is locked when that transaction goes on.
    pub xid: Xid,
    /// The row; none when it is marked as deleted.
    pub row: Option<Row>,
}

/// The newest version of a row; `None` when there is no such row (never was, or purged). Takes no lock and waits for nobody:
/// what a unique check asks about the rows that an index names for a key.
///
/// # Errors
/// What storage says.
pub fn newest(_core: &Core, _context: &Context, _row: RowId) -> Result<Option<Newest>> {
    unimplemented!()
}

/// The rows of one page that the view sees, in slot order, for full scans. `page` is the page as it was read, through the cache or
/// past it (then it may be older than the cache's, but has all that the view sees). A page that is not a heap page of `segment`
/// (never used, or of another kind) has none. With `columns`, each row has just these values, in this order.
///
/// # Errors
/// What storage says (undo and migrated rows are read through the cache).
pub fn rows_in_page(
    _core: &Core,
    _context: &Context,
    _segment: &Segment,
    _id: PageId,
    _page: &[u8],
    _view: &ReadView,
    _columns: Option<&[usize]>,
    _rows: &mut Vec<(RowId, Row)>,
) -> Result<()> {
    unimplemented!()
}

/// How many rows [`rows_in_page`] would give.
///
/// # Errors
/// As [`rows_in_page`].
pub fn count_in_page(
    _core: &Core,
    _context: &Context,
    _segment: &Segment,
    _id: PageId,
    _page: &[u8],
    _view: &ReadView,
) -> Result<u64> {
    unimplemented!()
}
