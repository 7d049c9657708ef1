//! `CREATE TABLE … AS SELECT`: the table's columns come from the query, its rows too.
//!
//! A column that the query takes from a table or view is declared as there. What an expression gives is seen when it comes:
//! numbers make a NUMBER, texts a VARCHAR2, bytes a BLOB.

use super::definition::make_table;
use super::prepare::SqliteWork;
use super::{Connection, definition};
use crate::column::{self, Kind, Type};
use crate::direct;
use crate::link::Link;
use crate::outcome::{Cell, Outcome, Sink};
use crate::statement::{self, CreateTable, Statement};
use crate::token::tokens;
use crate::{Error, SqlError};
use engine::space::{Column, Table};
use engine::{Row, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows looked at, at most, to see what expressions give.
const EARLY_ROWS_MAX: usize = 1_000;

impl Connection {
    pub(super) fn create_table_as(&mut self, table: &CreateTable, text: &str) -> Result<Outcome, Error> {
        if table.if_not_exists && self.link.lock().session.table(&table.name).is_ok() {
            return Ok(Outcome::Nothing("there is a table of that name already"));
        }
        let range = table.query.clone().unwrap_or(0..0);
        let query = &text[range.clone()];
        let moved = |error: Error| match error {
            Error::Statement(error) => Error::Statement(SqlError {
                offset: error.offset.map(|offset| offset + range.start),
                ..error
            }),
            other => other,
        };
        self.savepoints.clear();
        let direct = direct::source(query, &tokens(query).map_err(|error| moved(error.into()))?);
        let source = direct.and_then(|source| {
            let from = self.link.lock().session.table(&source.table).ok()?;
            let columns = chosen(&from, source.columns.as_deref())?;
            Some((from, source, columns))
        });
        match source {
            Some((from, source, columns)) => {
                let names = names(table, columns.iter().map(|column| column.name.clone()).collect())?;
                let columns = columns.into_iter().zip(names).map(|(column, name)| Column { name, ..column });
                make_table(&self.link, table, columns.collect())?;
                self.fill_or_drop(table, |connection| {
                    connection.copy(&table.name, &from.name, source.columns.as_deref()).map(|_| ())
                })?;
            }
            None => {
                let statement = statement::parse(query).map_err(|error| moved(error.into()))?;
                if !matches!(statement, Statement::Query | Statement::Other) {
                    return Err(SqlError::at(range.start, "expected a query behind AS").into());
                }
                let work = self.prepare_sqlite(query, &statement).map_err(moved)?;
                self.fill_from(table, &work).map_err(moved)?;
            }
        }
        Ok(Outcome::Done("Table created."))
    }

    fn fill_from(&mut self, table: &CreateTable, work: &SqliteWork) -> Result<(), Error> {
        let mut filler = Filler {
            link: self.link.clone(),
            table,
            columns: self.result_columns(table, work)?,
            early: Vec::new(),
            made: None,
            failed: None,
        };
        self.meet(&work.tables)?;
        let filled = self.statement(|connection| {
            let mut progress = Default::default();
            connection.steps(work, &[], &mut filler, &mut progress)?;
            filler.finish()
        });
        let made = filler.made.is_some();
        let done = filled.and_then(|()| Ok(self.link.lock().session.commit()?));
        if done.is_err() && made {
            self.link.lock().session.drop_table(&table.name)?;
        }
        done
    }

    /// The table is there and empty: fills it and commits, or takes it away again.
    fn fill_or_drop(
        &mut self,
        table: &CreateTable,
        fill: impl FnOnce(&Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let filled = fill(self).and_then(|()| Ok(self.link.lock().session.commit()?));
        if filled.is_err() {
            self.link.lock().session.drop_table(&table.name)?;
        }
        filled
    }

    /// Name and, where the query says so, type of each column.
    fn result_columns(
        &self,
        table: &CreateTable,
        work: &SqliteWork,
    ) -> Result<Vec<(String, Option<String>)>, Error> {
        let prepared = self.db.prepare_cached(&work.rewritten.sql);
        let statement = prepared.map_err(|error| self.sqlite_error(&error, work))?;
        let (mut given, mut declared) = (Vec::new(), Vec::new());
        for column in statement.columns() {
            given.push(column.name().to_owned());
            let known = column.decl_type().map(column::undeclared);
            declared.push(known.filter(|known| statement::declared_type(known).is_some()).map(str::to_owned));
        }
        Ok(names(table, given)?.into_iter().zip(declared).collect())
    }
}

/// The columns of a table that are named; all when none are. None when there is no such column.
fn chosen(from: &Table, names: Option<&[String]>) -> Option<Vec<Column>> {
    match names {
        None => Some(from.columns.clone()),
        Some(names) => names.iter().map(|name| Some(from.columns[from.column(name)?].clone())).collect(),
    }
}

/// The new table's column names: those before AS, or else the query's.
fn names(table: &CreateTable, given: Vec<String>) -> Result<Vec<String>, SqlError> {
    if !table.columns.is_empty() {
        if table.columns.len() != given.len() {
            let (named, gives) = (table.columns.len(), given.len());
            return Err(SqlError::whole(format!("{named} columns are named, the query gives {gives}")));
        }
        return Ok(table.columns.iter().map(|column| column.name.clone()).collect());
    }
    for (at, name) in given.iter().enumerate() {
        let plain = name.chars().all(crate::token::in_name);
        if !plain || name.is_empty() {
            return Err(SqlError::whole(format!("give the expression {name} a name: {name} AS total")));
        }
        if given[..at].iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(SqlError::whole(format!("two columns are called {name}; rename one with AS")));
        }
    }
    Ok(given)
}

/// Takes the query's rows into the new table, which it makes as soon as all types are known.
struct Filler<'a> {
    link: Arc<Link>,
    table: &'a CreateTable,
    columns: Vec<(String, Option<String>)>,
    early: Vec<Row>,
    made: Option<(Arc<Table>, Vec<Type>)>,
    failed: Option<Error>,
}

impl Filler<'_> {
    fn take(&mut self, row: Row) -> Result<(), Error> {
        if self.made.is_some() {
            return self.insert(row);
        }
        for ((_, declared), value) in self.columns.iter_mut().zip(&row) {
            let seen = match value {
                Value::Null => None,
                Value::Integer(_) | Value::Real(_) => Some("NUMBER"),
                Value::Text(_) => Some("VARCHAR2"),
                Value::Blob(_) => Some("BLOB"),
            };
            if declared.is_none() {
                *declared = seen.map(str::to_owned);
            }
        }
        self.early.push(row);
        let known = self.columns.iter().all(|(_, declared)| declared.is_some());
        if known || self.early.len() >= EARLY_ROWS_MAX { self.make() } else { Ok(()) }
    }

    /// Makes the table and gives it the rows that waited for it.
    fn make(&mut self) -> Result<(), Error> {
        let any = Type { kind: Kind::Any, length_max: None };
        let columns = self.columns.iter().map(|(name, declared)| {
            // What was NULL in all rows so far takes whatever comes.
            let declared = declared.clone().unwrap_or_else(|| "ANY".into());
            let kind = statement::declared_type(&declared).unwrap_or(any);
            (
                Column { name: name.clone(), kind: definition::engine_kind(kind), declared, not_null: false },
                kind,
            )
        });
        let (columns, types): (Vec<_>, Vec<_>) = columns.unzip();
        self.made = Some((make_table(&self.link, self.table, columns)?, types));
        std::mem::take(&mut self.early).into_iter().try_for_each(|row| self.insert(row))
    }

    fn insert(&mut self, row: Row) -> Result<(), Error> {
        let Some((table, types)) = &self.made else { return Ok(()) };
        let values = row.into_iter().zip(types).zip(&self.columns);
        let fitted = values.map(|((value, kind), (name, _))| {
            let wrong = |words| {
                SqlError::whole(format!("column {name}: {words}; name the types: CREATE TABLE, then INSERT"))
            };
            kind.fit(value).map_err(wrong)
        });
        let row = fitted.collect::<Result<Row, _>>()?;
        Ok(self.link.lock().insert(table, row)?)
    }

    fn finish(&mut self) -> Result<(), Error> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        if self.made.is_none() {
            self.make()?;
        }
        Ok(self.link.lock().flush()?)
    }
}

impl Sink for Filler<'_> {
    fn columns(&mut self, _names: &[String]) {}

    fn row(&mut self, row: &[Cell<'_>]) -> ControlFlow<()> {
        let row = row.iter().map(|cell| cell.to_value()).collect();
        match self.take(row) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
