//! A connection: one session of the engine, with SQLite in front of it.
//!
//! Start with [`Connection::execute`]. A text becomes a [`Prepared`] (`prepare`): something that the engine does alone, something
//! of ours that SQLite does not know (`definition`, `system`, `create_as`), or something for SQLite (`run`), which then comes back for rows
//! through `virtual_table`. Transactions are the engine's: SQLite has none of its own.

mod create_as;
mod definition;
mod describe;
mod prepare;
mod run;
mod system;
mod transaction;

pub use prepare::Prepared;

use crate::explain::Lines;
use crate::link::Link;
use crate::outcome::{Kept, Nowhere, Outcome, Sink};
use crate::statement::Statement;
use crate::virtual_table::EngineTable;
use crate::virtual_table::instance::InstanceView;
use crate::{Error, sqlite};
use engine::{Savepoint, Session, Value};
use prepare::Work;
use std::sync::Arc;
use waits::ash::Sampler;

/// Prepared statements that SQLite keeps for the next time.
const KEPT_STATEMENTS: usize = 64;

/// A connection to an instance. Used by one thread at a time.
///
/// A statement that fails is undone, the transaction goes on. DDL commits, as in Oracle. Dropping a connection rolls back.
pub struct Connection {
    link: Arc<Link>,
    db: rusqlite::Connection,
    /// Newest last; names in small letters.
    savepoints: Vec<(String, Savepoint)>,
}

impl Connection {
    /// Over a session of the engine.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn new(session: Session) -> Result<Self, Error> {
        let clock = session.context().slot.registry().clock().clone();
        let link = Link::new(session);
        let made = sqlite::open(move || clock.unix_seconds()).and_then(|db| {
            sqlite::create_dual(&db)?;
            EngineTable::register(&db, &link)?;
            InstanceView::register(&db, &link)?;
            db.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
            Ok(db)
        });
        let db = made.map_err(|error| sqlite::error(&error, &Default::default()))?;
        Ok(Self { link, db, savepoints: Vec::new() })
    }

    /// `v$active_session_history` shows what this sampler has; without one it is empty.
    pub fn set_history(&mut self, sampler: Arc<Sampler>) {
        self.link.lock().history = Some(sampler);
    }

    /// How many lines `dba_source` has from now on.
    pub fn set_source_lines(&mut self, lines: u64) {
        self.link.lock().source_lines = lines;
    }

    /// Does something with the session itself, between statements.
    pub fn with_session<T>(&mut self, work: impl FnOnce(&mut Session) -> T) -> T {
        work(&mut self.link.lock().session)
    }

    /// Does one statement, without its `;`.
    ///
    /// # Errors
    /// What is wrong with it, or why it could not be done.
    pub fn execute(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        let prepared = self.prepare(text)?;
        self.run(&prepared, &[], sink)
    }

    /// Does a prepared statement, with a value for each of its `?`.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn run(
        &mut self,
        prepared: &Prepared,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        self.call(prepared.id, |connection| match &prepared.work {
            Work::Sqlite(work) => connection.run_sqlite(work, parameters, sink),
            Work::Explain(work) => connection.run_sqlite(work, parameters, &mut Lines::new(sink)),
            Work::Count { table, label } => connection.count(table, label, sink),
            Work::Copy { target, source, columns } => connection.copy(target, source, columns.as_deref()),
            Work::Ours(statement) => connection.do_ours(statement, &prepared.text),
        })
    }

    /// Does one statement and lets its rows fall.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn done(&mut self, text: &str) -> Result<Outcome, Error> {
        self.execute(text, &mut Nowhere)
    }

    /// Does one statement and keeps its rows.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn query(&mut self, text: &str) -> Result<Kept, Error> {
        let mut kept = Kept::default();
        self.execute(text, &mut kept)?;
        Ok(kept)
    }

    fn do_ours(&mut self, statement: &Statement, text: &str) -> Result<Outcome, Error> {
        use Statement as S;
        match statement {
            S::CreateTable(table) if table.query.is_some() => self.create_table_as(table, text),
            S::CreateTable(table) => self.create_table(table),
            S::CreateIndex(index) => self.create_index(index),
            S::DropTable { name, if_exists } => self.drop_table(name, *if_exists),
            S::DropIndex { name, if_exists } => self.drop_index(name, *if_exists),
            S::Truncate { name } => self.truncate(name),
            S::AlterTable { name, caching } => self.alter_table(name, *caching),
            S::Commit { .. } => self.commit(),
            S::Rollback { to } => self.rollback(to.as_deref()),
            S::Savepoint { name } => self.savepoint(name),
            S::Nothing(why) => Ok(Outcome::Nothing(why)),
            other => self.change_system(other),
        }
    }
}
