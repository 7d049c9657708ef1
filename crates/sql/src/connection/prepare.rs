//! From a text to what is to be done, once for many times.

use super::Connection;
use crate::direct::{self, Direct};
use crate::rewrite::{self, Rewritten};
use crate::statement::{self, Statement};
use crate::token::{self, Kind, Token};
use crate::virtual_table::{EngineTable, Entry};
use crate::{Error, SqlError, explain, quote, sqlite, step};
use engine::space::Table;
use std::collections::BTreeSet;
use std::sync::Arc;
use waits::TextId;

/// Characters of a statement that v$sql shows, as in Oracle. Longer ones that begin alike are one there.
const SHOWN_CHARS: usize = 1_000;

/// A statement that may be done many times: [`Connection::run`].
pub struct Prepared {
    pub(super) text: String,
    /// Its `sql_id`.
    pub(super) id: TextId,
    pub(super) work: Work,
}

/// Who does it.
pub(super) enum Work {
    Sqlite(SqliteWork),
    /// Only how it would be done.
    Explain(SqliteWork),
    Count {
        table: String,
        label: String,
    },
    Copy {
        target: String,
        source: String,
        columns: Option<Vec<String>>,
    },
    Ours(Statement),
}

/// A statement for SQLite.
pub(super) struct SqliteWork {
    pub text: String,
    pub rewritten: Rewritten,
    /// Tables of the engine that it may name.
    pub tables: Vec<Met>,
    /// What it does to rows, when it changes any.
    pub verb: Option<&'static str>,
}

/// A table of the engine under a name that SQLite has for it.
pub(super) struct Met {
    /// SQLite's, in small letters.
    name: String,
    /// The engine's.
    table: String,
}

/// A second name for a table that a statement reads and fills at once. Under one name SQLite would copy all rows aside before it
/// inserts the first; but a statement of ours does not see what it inserts itself. No table has a name that begins so.
fn second_name(table: &str) -> String {
    format!(" {} before", table.to_ascii_lowercase())
}

impl Connection {
    /// Understands a statement, without its `;`.
    ///
    /// # Errors
    /// What is wrong with it, as far as it is known before it is done.
    pub fn prepare(&mut self, text: &str) -> Result<Prepared, Error> {
        let statement = statement::parse(text)?;
        let tokens = token::tokens(text)?;
        let work = match statement {
            Statement::Other if explain::explained(&tokens).is_some() => self.explain(text, &tokens)?,
            Statement::Query | Statement::Change | Statement::ChangeFromSelf { .. } | Statement::Other => {
                match self.direct(text, &tokens)? {
                    Some(work) => work,
                    None => Work::Sqlite(self.prepare_sqlite(text, &statement)?),
                }
            }
            ours => Work::Ours(ours),
        };
        let shown = text.char_indices().nth(SHOWN_CHARS).map_or(text, |(end, _)| &text[..end]);
        let id = self.link.lock().session.context().slot.registry().keep_text(shown);
        Ok(Prepared { text: text.to_owned(), id, work })
    }

    /// `EXPLAIN PLAN FOR …`.
    fn explain(&mut self, text: &str, tokens: &[Token<'_>]) -> Result<Work, Error> {
        let start = explain::explained(tokens).unwrap_or(0);
        // Blanks, so that places in it are those in what was typed.
        let behind = " ".repeat(start) + &text[start..];
        let statement = statement::parse(&behind)?;
        if !matches!(statement, Statement::Query | Statement::Change | Statement::ChangeFromSelf { .. }) {
            return Err(SqlError::at(start, "only queries and changes of rows have a plan").into());
        }
        let mut work = self.prepare_sqlite(&behind, &statement)?;
        work.rewritten.sql.insert_str(0, "EXPLAIN QUERY PLAN ");
        work.verb = None;
        Ok(Work::Explain(work))
    }

    /// A text for SQLite.
    pub(super) fn prepare_sqlite(&mut self, text: &str, statement: &Statement) -> Result<SqliteWork, Error> {
        let tokens = token::tokens(text)?;
        refuse(&tokens, statement)?;
        let mut tables = self.tables_named(&tokens);
        let mut own = None;
        let second = second_name(match statement {
            Statement::ChangeFromSelf { table } => table,
            _ => "",
        });
        if let Statement::ChangeFromSelf { table } = statement {
            own = Some(rewrite::SelfSource { table, source: &second });
            tables.push(Met { name: second.clone(), table: table.clone() });
        }
        let rewritten = rewrite::rewrite(text, own)?;
        let verb = match statement {
            Statement::Change | Statement::ChangeFromSelf { .. } => Some(verb(&tokens)),
            _ => None,
        };
        let work = SqliteWork { text: text.to_owned(), rewritten, tables, verb };
        // Wrong names are told now and not when it runs; the work is not lost, SQLite keeps it.
        self.meet(&work.tables)?;
        let prepared = self.db.prepare_cached(&work.rewritten.sql).map(|_| ());
        prepared.map_err(|error| self.sqlite_error(&error, &work))?;
        Ok(work)
    }

    fn direct(&self, text: &str, tokens: &[Token<'_>]) -> Result<Option<Work>, Error> {
        let Some(direct) = direct::recognise(text, tokens) else { return Ok(None) };
        let inner = self.link.lock();
        Ok(match direct {
            Direct::Count { table, label } => {
                inner.session.table(&table).is_ok().then_some(Work::Count { table, label })
            }
            Direct::Copy { target, source } => {
                let tables = (inner.session.table(&target), inner.session.table(&source.table));
                let (Ok(to), Ok(from)) = tables else { return Ok(None) };
                let columns = source.columns;
                fits(&to, &from, columns.as_deref()).then_some(Work::Copy {
                    target,
                    source: source.table,
                    columns,
                })
            }
        })
    }

    /// Which of the statement's words are tables of the engine. More than it really reads does no harm.
    fn tables_named(&self, tokens: &[Token<'_>]) -> Vec<Met> {
        let words = tokens.iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted));
        let words: BTreeSet<_> = words.map(|token| token.unquoted().to_ascii_lowercase()).collect();
        let inner = self.link.lock();
        let known = |name: &String| inner.session.table(name).is_ok() || inner.entries.contains_key(name);
        words.into_iter().filter(known).map(|name| Met { table: name.clone(), name }).collect()
    }

    /// Makes SQLite see the tables as the engine has them now.
    pub(super) fn meet(&self, tables: &[Met]) -> Result<(), Error> {
        for Met { name, table } in tables {
            let (old, new) = {
                let inner = self.link.lock();
                (inner.entries.get(name).map(|entry| entry.table.clone()), inner.session.table(table).ok())
            };
            match (&old, &new) {
                (Some(old), Some(new)) if Arc::ptr_eq(old, new) => continue,
                (None, None) => continue,
                _ => {}
            }
            // Every statement that SQLite has prepared for the old one is prepared again by itself.
            if old.is_some() {
                self.plainly(&format!("DROP TABLE IF EXISTS {}", quote(name)))?;
                self.link.lock().entries.remove(name);
            }
            if let Some(table) = new {
                let mut inner = self.link.lock();
                let rows = inner.rows_of(&table)?;
                inner.entries.insert(name.clone(), Arc::new(Entry::new(table, rows)));
                drop(inner);
                self.plainly(&EngineTable::create(name))?;
            }
        }
        Ok(())
    }

    /// A statement for SQLite alone, which nobody typed.
    fn plainly(&self, sql: &str) -> Result<(), Error> {
        Ok(self.db.execute_batch(sql).map_err(|error| sqlite::error(&error, &Default::default()))?)
    }
}

/// Whether rows go from one table to the other as they are: same number of columns, declared alike. Otherwise SQLite
/// carries them, and each value is made to fit.
fn fits(to: &Table, from: &Table, columns: Option<&[String]>) -> bool {
    let all: Vec<_> = (0..from.columns.len()).collect();
    let chosen: Option<Vec<_>> = match columns {
        Some(names) => names.iter().map(|name| from.column(name)).collect(),
        None => Some(all),
    };
    let Some(chosen) = chosen else { return false };
    let alike = |(column, &at): (&engine::space::Column, &usize)| {
        let other = &from.columns[at];
        column.kind == other.kind && column.declared.eq_ignore_ascii_case(&other.declared)
    };
    chosen.len() == to.columns.len() && to.columns.iter().zip(&chosen).all(alike)
}

/// What SQLite would do to itself, or do differently from what is said.
fn refuse(tokens: &[Token<'_>], statement: &Statement) -> Result<(), SqlError> {
    let Some(first) = tokens.first() else { return Ok(()) };
    let at = |words: &str| Err(SqlError::at(first.start, words));
    let second = |word| tokens.get(1).is_some_and(|token| token.is(word));
    if first.is("MERGE") {
        return at("MERGE is not known here; write UPDATE and INSERT … WHERE NOT EXISTS");
    }
    if first.is("REPLACE") || second("OR") {
        return at("OR REPLACE, OR IGNORE … are not known here; a key that is there already is an error");
    }
    if *statement == Statement::Other && !step::is_harmless(first.text) {
        return at(&format!("{} is no statement here", first.text));
    }
    Ok(())
}

/// What a statement does to rows.
fn verb(tokens: &[Token<'_>]) -> &'static str {
    let mut depth = 0_i32;
    for token in tokens {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if depth > 0 => {}
            _ if token.is("INSERT") => return "inserted",
            _ if token.is("UPDATE") => return "updated",
            _ if token.is("DELETE") => return "deleted",
            _ => {}
        }
    }
    "changed"
}
