//! Statements that read and change rows: through SQLite, or by the engine alone.

use super::Connection;
use super::prepare::SqliteWork;
use crate::link::Inner;
use crate::outcome::{Cell, Outcome, Sink};
use crate::step::{self, Interrupter, Progress};
use crate::{Error, SqlError};
use engine::space::Table;
use engine::{EngineError, Value};
use std::sync::Arc;
use waits::TextId;

/// How often a statement is begun again because other sessions changed its rows. Each time it has waited for one of them to
/// commit, so this many times is a statement that will not get through.
const RESTARTS_MAX: u32 = 1_000;

/// Rows taken for granted in a block, and in a table.
const ROWS_PER_BLOCK: f64 = 50.0;
const ROWS_MIN: f64 = 1_000.0;

impl Connection {
    /// What stops this connection's statements.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter::of(&self.db)
    }

    /// One user call: its time is DB time, its text is what the session is at.
    pub(super) fn call<T>(
        &mut self,
        id: TextId,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        {
            let inner = self.link.lock();
            inner.session.context().slot.set_sql(Some(id));
            inner.session.context().slot.begin_call();
        }
        let done = work(self);
        let inner = self.link.lock();
        inner.session.context().slot.end_call();
        inner.session.context().slot.set_sql(None);
        done
    }

    /// One statement: it reads what was committed when it began, and when it fails, what it changed is taken back.
    pub(super) fn statement<T>(&self, mut work: impl FnMut(&Self) -> Result<T, Error>) -> Result<T, Error> {
        for _ in 0..RESTARTS_MAX {
            self.begin()?;
            let failed = match work(self) {
                Ok(done) => {
                    self.link.lock().session.end_statement();
                    return Ok(done);
                }
                Err(error) => error,
            };
            let mut inner = self.link.lock();
            inner.forget();
            if inner.session.in_statement() {
                inner.session.rollback_statement()?;
            }
            // Its rows were changed by somebody who has committed since: it is taken back already, and begins again.
            if !matches!(failed, Error::Engine(EngineError::StatementRestart)) {
                return Err(failed);
            }
        }
        Err(SqlError::whole(format!(
            "begun {RESTARTS_MAX} times, and each time other sessions had changed its rows; try again later"
        ))
        .into())
    }

    fn begin(&self) -> Result<(), Error> {
        let mut inner = self.link.lock();
        inner.forget();
        inner.session.begin_statement()?;
        Ok(())
    }

    pub(super) fn run_sqlite(
        &self,
        work: &SqliteWork,
        parameters: &[Value],
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        self.meet(&work.tables)?;
        let mut progress = Progress::default();
        self.statement(|connection| {
            // A change gives its first row when everything is changed, so nothing was told when it begins again.
            connection.steps(work, parameters, sink, &mut progress)
        })?;
        let changed = self.link.lock().changed;
        Ok(match work.verb {
            Some(verb) => Outcome::Changed(verb, changed),
            None => Outcome::Rows(progress.rows),
        })
    }

    pub(super) fn steps(
        &self,
        work: &SqliteWork,
        parameters: &[Value],
        sink: &mut dyn Sink,
        progress: &mut Progress,
    ) -> Result<(), Error> {
        step::steps(&self.db, &work.rewritten.sql, parameters, sink, progress)
            .map_err(|error| self.sqlite_error(&error, work))?;
        self.link.lock().flush()?;
        Ok(())
    }

    /// What SQLite says, or, when a virtual table failed, why.
    pub(super) fn sqlite_error(&self, error: &rusqlite::Error, work: &SqliteWork) -> Error {
        self.link.go_on();
        if let Some(failed) = self.link.lock().failed.take() {
            return failed.into();
        }
        let mut wrong = match step::failure(error, &work.rewritten) {
            Error::Statement(wrong) => wrong,
            other => return other,
        };
        if let Some(name) = wrong.text.strip_prefix("no such table: ") {
            // SQLite knows neither the place nor other tables; we do.
            let name = name.trim_start_matches("main.").to_owned();
            wrong.offset = place_of(&work.text, &name);
            if let Err(error) = self.link.lock().session.table(&name) {
                wrong.text = error.to_string();
            }
        }
        wrong.into()
    }

    pub(super) fn count(&self, table: &str, label: &str, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        let count = self.statement(|connection| {
            let session = &mut connection.link.lock().session;
            let table = session.table(table)?;
            Ok(session.count(&table)?)
        })?;
        sink.columns(&[label.to_owned()]);
        let _ = sink.row(&[Cell::Integer(count as i64)]);
        Ok(Outcome::Rows(1))
    }

    pub(super) fn copy(
        &self,
        target: &str,
        source: &str,
        columns: Option<&[String]>,
    ) -> Result<Outcome, Error> {
        let copied = self.statement(|connection| {
            let session = &mut connection.link.lock().session;
            let (target, source) = (session.table(target)?, session.table(source)?);
            let mut scan = match columns {
                None => session.scan(&source)?,
                Some(names) => {
                    let at = |name: &String| source.column(name).ok_or_else(|| no_column(&source, name));
                    let columns: Vec<_> = names.iter().map(at).collect::<Result<_, _>>()?;
                    session.scan_columns(&source, &columns)?
                }
            };
            Ok(session.insert_select(&target, &mut scan)?)
        })?;
        Ok(Outcome::Changed("inserted", copied))
    }
}

/// There was one when the statement was prepared.
fn no_column(table: &Arc<Table>, name: &str) -> Error {
    SqlError::whole(format!("table {} has no column {name} any more", table.name)).into()
}

/// Where a name is typed.
fn place_of(text: &str, name: &str) -> Option<usize> {
    let tokens = crate::token::tokens(text).ok()?;
    tokens.iter().find(|token| token.unquoted().eq_ignore_ascii_case(name)).map(|token| token.start)
}

impl Inner {
    /// What a statement has had in hand.
    fn forget(&mut self) {
        (self.changed, self.failed, self.pending) = (0, None, None);
        self.late.clear();
    }

    /// About how many rows a table has, for planning. It may be small now and large when the plan is used, so it is never
    /// taken for a small one.
    pub fn rows_of(&mut self, table: &Table) -> engine::Result<f64> {
        let size = self.session.segment_size(&table.segment)?;
        Ok((f64::from(size.high_water) * ROWS_PER_BLOCK).max(ROWS_MIN))
    }
}
