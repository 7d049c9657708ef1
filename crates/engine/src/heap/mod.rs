//! Heap tables: rows in slotted pages, versions by undo.

use crate::instance::Core;
use crate::space::Segment;
use crate::transaction::{ReadView, Transaction};
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
