//! The API for statements: tables, indexes, rows, transactions.
//!
//! Start with [`Session`]. Each public method is one user call: it passes the instance's gate, counts as DB time, and does its
//! work as methods of [`Call`], which knows nothing of either. By journey: `transaction` (begin, commit, rollback, savepoints,
//! statements), `dml` (rows), `entry` (their index entries, unique checks), `scan` (full scans, count), `cursor` (index
//! look-ups and ranges), `ddl`, `create_index`, `truncate`, `admin` (ALTER SYSTEM, tablespaces, log groups), `views`.
//!
//! A session is used by one thread at a time.

mod admin;
mod create_index;
mod cursor;
mod ddl;
mod dml;
mod entry;
mod scan;
mod transaction;
mod truncate;
mod views;

pub use admin::AlterSystem;
pub use cursor::Cursor;
pub use scan::Scan;
pub use transaction::Savepoint;
pub use views::SegmentRow;

use crate::instance::{Core, Instance, Seat};
use crate::sort::{SortKey, Sorter};
use crate::space::lock::{Asker, Holds};
use crate::space::{Index, Table};
use crate::statistics::Statistic;
use crate::value::{Row, RowId, Value};
use crate::{Context, Result};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use transaction::State;
use waits::SessionKind;

/// A user's session.
///
/// A statement that fails is undone, the transaction goes on. Statements read what was committed before they began, and
/// their own transaction's work. Dropping a session rolls back.
pub struct Session {
    core: Arc<Core>,
    context: Context,
    seat: Arc<Seat>,
    state: State,
    /// Open scans and cursors.
    cursors: Arc<AtomicU32>,
}

/// A user's call that goes on: what a session has, without gate and clock.
struct Call<'a> {
    core: &'a Arc<Core>,
    context: &'a Context,
    state: &'a mut State,
    cursors: &'a Arc<AtomicU32>,
}

impl<'a> Call<'a> {
    fn asker(&self, object: u32) -> Asker<'a> {
        let cursors = self.cursors.load(Ordering::Relaxed);
        let holds = if cursors > 0 || self.state.has_locks() { Holds::Something } else { Holds::Nothing };
        Asker { core: self.core, context: self.context, object, cursors, holds }
    }
}

impl Instance {
    /// A new session of `program`. It may outlive the instance: then its calls fail.
    ///
    /// # Errors
    /// [`crate::EngineError::ShuttingDown`]; [`crate::EngineError::Invalid`] when all `sessions` are taken.
    pub fn session(&self, program: &str) -> Result<Session> {
        Session::begin(&self.core, program)
    }
}

impl Session {
    fn begin(core: &Arc<Core>, program: &str) -> Result<Self> {
        let seat = core.gate.seat()?;
        let context = match core.context(SessionKind::Foreground, program) {
            Ok(context) => context,
            Err(error) => {
                core.gate.leave(&seat);
                return Err(error);
            }
        };
        context.count(Statistic::LogonsCumulative, 1);
        Ok(Self { core: core.clone(), context, seat, state: State::default(), cursors: Arc::default() })
    }

    /// One user call.
    fn call<T>(&mut self, work: impl FnOnce(&mut Call<'_>) -> Result<T>) -> Result<T> {
        let _inside = self.core.gate.enter(&self.seat)?;
        let _call = self.context.slot.call();
        self.core.health.check()?;
        let done = work(&mut Call {
            core: &self.core,
            context: &self.context,
            state: &mut self.state,
            cursors: &self.cursors,
        });
        // A call that was refused before it changed anything leaves no lock behind that nobody would think of.
        self.state.leave_if_idle();
        done
    }

    /// The instance.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Wait slot and counters of this session.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Its number, from 1.
    pub fn sid(&self) -> u32 {
        self.context.session
    }

    /// A table by name; its description of now. Letter case does not matter.
    ///
    /// # Errors
    /// [`crate::EngineError::NoSuch`], with the nearest name.
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.core.space.catalog.table(name)
    }

    /// An index by name.
    ///
    /// # Errors
    /// As [`Session::table`].
    pub fn index(&self, name: &str) -> Result<Arc<Index>> {
        self.core.space.catalog.index(name)
    }

    /// All tables of users, by name.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.core.space.catalog.tables()
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`crate::EngineError::DuplicateKey`], [`crate::EngineError::Invalid`] (number of values, NULL where there must be
    /// none), [`crate::EngineError::RowTooLong`], [`crate::EngineError::TablespaceFull`], [`crate::EngineError::Deadlock`] …;
    /// the statement is undone then.
    pub fn insert(&mut self, table: &Table, values: &[Value]) -> Result<RowId> {
        self.call(|call| call.insert(table, values))
    }

    /// Inserts many rows as one statement; the result is their number.
    ///
    /// # Errors
    /// As [`Session::insert`]; then none of them is there.
    pub fn insert_many(&mut self, table: &Table, rows: &mut dyn Iterator<Item = Row>) -> Result<u64> {
        self.call(|call| call.insert_many(table, rows))
    }

    /// Inserts what is left of a scan (`INSERT INTO t SELECT * FROM u`, also of the same table) as one statement; the result
    /// is the number of rows.
    ///
    /// # Errors
    /// As [`Session::insert`] and [`Scan::next`]; then none of them is there.
    pub fn insert_select(&mut self, table: &Table, scan: &mut Scan) -> Result<u64> {
        self.call(|call| call.insert_select(table, scan))
    }

    /// Replaces a row. Waits for another transaction that has changed it.
    ///
    /// # Errors
    /// As [`Session::insert`], and [`crate::EngineError::NoSuchRow`]. Between [`Session::begin_statement`] and
    /// [`Session::end_statement`] also [`crate::EngineError::StatementRestart`].
    pub fn update(&mut self, table: &Table, row: RowId, values: &[Value]) -> Result<()> {
        self.call(|call| call.update(table, row, values))
    }

    /// Deletes a row. Waits for another transaction that has changed it.
    ///
    /// # Errors
    /// As [`Session::update`].
    pub fn delete(&mut self, table: &Table, row: RowId) -> Result<()> {
        self.call(|call| call.delete(table, row))
    }

    /// A row by its address, as the statement sees it.
    ///
    /// # Errors
    /// What storage says.
    pub fn get(&mut self, table: &Table, row: RowId) -> Result<Option<Row>> {
        self.call(|call| call.get(table, row))
    }

    /// Locks a row until the transaction ends, waiting for another one that holds it; its newest committed version.
    ///
    /// # Errors
    /// [`crate::EngineError::Deadlock`], what storage says.
    pub fn get_for_update(&mut self, table: &Table, row: RowId) -> Result<Option<Row>> {
        self.call(|call| call.get_for_update(table, row))
    }

    /// All rows with a key, or with a key that begins so when fewer values than columns are given. NULL finds NULL.
    ///
    /// # Errors
    /// What storage says; [`crate::EngineError::StatementRestart`] when the index was made after the statement began.
    pub fn lookup(&mut self, index: &Index, key: &[Value]) -> Result<Vec<(RowId, Row)>> {
        self.call(|call| call.lookup(index, key))
    }

    /// As [`Session::lookup`], but of this moment, with what the open statement has changed so far: who stands in the way of a
    /// row that was refused as [`crate::EngineError::DuplicateKey`].
    ///
    /// # Errors
    /// What storage says.
    pub fn lookup_now(&mut self, index: &Index, key: &[Value]) -> Result<Vec<(RowId, Row)>> {
        self.call(|call| call.lookup_now(index, key))
    }

    /// Rows with keys in a range, in the order of the keys. A bound with fewer values than the index has columns speaks of all
    /// keys that begin so.
    ///
    /// # Errors
    /// As [`Session::lookup`].
    pub fn range(
        &mut self,
        index: &Index,
        from: Bound<&[Value]>,
        to: Bound<&[Value]>,
        descending: bool,
    ) -> Result<Cursor> {
        self.call(|call| call.range(index, from, to, descending))
    }

    /// All rows of a table, in no particular order. Small tables are read through the cache, large ones past it.
    ///
    /// # Errors
    /// What storage says.
    pub fn scan(&mut self, table: &Table) -> Result<Scan> {
        self.call(|call| call.scan(table, None))
    }

    /// As [`Session::scan`]; each row has just these columns, in this order.
    ///
    /// # Errors
    /// What storage says.
    pub fn scan_columns(&mut self, table: &Table, columns: &[usize]) -> Result<Scan> {
        self.call(|call| call.scan(table, Some(columns.to_vec())))
    }

    /// `SELECT COUNT(*)`.
    ///
    /// # Errors
    /// What storage says.
    pub fn count(&mut self, table: &Table) -> Result<u64> {
        self.call(|call| call.count(table))
    }

    /// Collects rows and gives them back sorted; spills to temp beyond `sort_area_size`.
    pub fn sorter(&self, keys: &[SortKey]) -> Sorter {
        Sorter::new(&self.core, keys)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // At a shutdown, or after a crash, somebody else rolls back.
        let _ = self.call(|call| call.rollback());
        self.core.gate.leave(&self.seat);
    }
}

#[cfg(test)]
mod tests;
