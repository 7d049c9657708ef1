//! One statement of SQLite's from its first row to its last.

use crate::outcome::{Cell, Sink};
use crate::rewrite::Rewritten;
use crate::{Error, rewrite, sqlite, token};
use engine::Value;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

/// Stops the running statement of a connection, from another thread.
pub struct Interrupter(rusqlite::InterruptHandle);

impl Interrupter {
    /// Of a connection.
    pub(crate) fn of(db: &Connection) -> Self {
        Self(db.get_interrupt_handle())
    }

    /// The statement that runs now ends with [`Error::Interrupted`] before its next row. Nothing happens when none runs.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

/// How far a statement has come.
#[derive(Default)]
pub struct Progress {
    /// Rows given.
    pub rows: u64,
    columns_told: bool,
}

/// Gives all rows to the sink, or until it wants no more.
pub fn steps(
    db: &Connection,
    sql: &str,
    parameters: &[Value],
    sink: &mut dyn Sink,
    progress: &mut Progress,
) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached(sql)?;
    let columns = statement.column_count();
    if columns > 0 && !progress.columns_told {
        let names: Vec<_> = statement.column_names().map(rewrite::as_typed).collect();
        sink.columns(&names);
        progress.columns_told = true;
    }
    let parameters = parameters.iter().map(|value| sqlite::sql_value(value.clone()));
    let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
    let mut spare = Vec::with_capacity(columns);
    while let Some(row) = rows.next()? {
        let mut cells = recycle(spare);
        for column in 0..columns {
            cells.push(cell(row.get_ref(column)?));
        }
        progress.rows += 1;
        if sink.row(&cells).is_break() {
            break;
        }
        spare = recycle(cells);
    }
    Ok(())
}

/// What SQLite says, in our words where it can be put better.
pub fn failure(error: &rusqlite::Error, rewritten: &Rewritten) -> Error {
    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
        return Error::Interrupted;
    }
    sqlite::error(error, rewritten).into()
}

/// Whether a statement that is no query and no change is one that SQLite may have: VALUES, and EXPLAIN of a record. Others would change
/// SQLite itself, or files.
pub fn is_harmless(text: &str) -> bool {
    let first = token::tokens(text).ok().and_then(|tokens| tokens.first().copied());
    first.is_some_and(|token| token.is("EXPLAIN") || token.is("VALUES"))
}

/// The same memory, empty, for the cells of another row.
fn recycle<'b>(mut cells: Vec<Cell<'_>>) -> Vec<Cell<'b>> {
    cells.clear();
    cells.into_iter().map(|_| Cell::Null).collect()
}

fn cell(value: ValueRef<'_>) -> Cell<'_> {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        // SQLite makes a text of any bytes when it is told to; what is no text is shown as the bytes that it is.
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or(Cell::Blob(bytes), Cell::Text),
        ValueRef::Blob(bytes) => Cell::Blob(bytes),
    }
}
