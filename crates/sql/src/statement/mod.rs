//! Statements that SQLite does not know. Text in, [`Statement`] out; nothing is executed here.
//!
//! Start with [`parse`]. `table.rs` has tables and indexes, `system.rs` has ALTER SYSTEM, DATABASE, TABLESPACE and the
//! ends of transactions, `cursor.rs` walks over tokens.

mod cursor;
mod system;
mod table;

pub use engine::AlterSystem;
pub use engine::cache::Pool;
pub use engine::files::control::TablespaceKind;
pub use engine::flash::FlashUse;
pub use table::Caching;

use crate::SqlError;
use crate::column::Type;
use crate::token;
pub(crate) use cursor::Cursor;
use std::ops::Range;

/// A statement, as far as we must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// One that returns rows; SQLite's.
    Query,
    /// INSERT, UPDATE, DELETE, REPLACE, MERGE: begins a transaction when there is none; SQLite's.
    Change,
    /// `INSERT INTO t SELECT … FROM t`: the source must be read as it was when the statement began.
    ChangeFromSelf {
        /// The table.
        table: String,
    },
    /// Anything else that SQLite may know (EXPLAIN, PRAGMA, WITH, VALUES).
    Other,
    /// `CREATE TABLE t (…)`.
    CreateTable(CreateTable),
    /// `CREATE [UNIQUE] INDEX`.
    CreateIndex(CreateIndex),
    /// `DROP TABLE`; PURGE is what it does anyway.
    DropTable {
        /// Its name.
        name: String,
        /// Not there is fine.
        if_exists: bool,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// Its name.
        name: String,
        /// Not there is fine.
        if_exists: bool,
    },
    /// `TRUNCATE TABLE`.
    Truncate {
        /// The table.
        name: String,
    },
    /// `ALTER TABLE t STORAGE (BUFFER_POOL … FLASH_CACHE …)`.
    AlterTable {
        /// The table.
        name: String,
        /// Its caches from now on.
        caching: Caching,
    },
    /// `ALTER SYSTEM`.
    AlterSystem(AlterSystem),
    /// `ALTER DATABASE ADD LOGFILE GROUP`.
    AddLogfile {
        /// Its number; the next free one when none is given.
        group: Option<u32>,
        /// Its files.
        members: Vec<String>,
        /// Bytes of each; as the other groups when none is given.
        bytes: Option<u64>,
    },
    /// `ALTER DATABASE DROP LOGFILE GROUP`.
    DropLogfile {
        /// Its number.
        group: u32,
    },
    /// `CREATE [UNDO | TEMPORARY] TABLESPACE`.
    CreateTablespace {
        /// Its name.
        name: String,
        /// What it is for.
        kind: TablespaceKind,
        /// Its files.
        files: Vec<DataFile>,
    },
    /// `ALTER TABLESPACE … ADD DATAFILE`.
    AddDatafile {
        /// The tablespace.
        tablespace: String,
        /// The new files.
        files: Vec<DataFile>,
    },
    /// `DROP TABLESPACE`.
    DropTablespace {
        /// Its name.
        name: String,
        /// With the tables in it.
        including_contents: bool,
        /// Its files too.
        and_datafiles: bool,
    },
    /// `COMMIT [WORK] [WRITE [IMMEDIATE | BATCH] [WAIT | NOWAIT]]`.
    Commit {
        /// BATCH rather than IMMEDIATE.
        batch: Option<bool>,
        /// Not before it is durable, or at once.
        wait: Option<bool>,
    },
    /// `ROLLBACK [TO [SAVEPOINT] name]`.
    Rollback {
        /// The savepoint; none is the whole transaction.
        to: Option<String>,
    },
    /// `SAVEPOINT name`.
    Savepoint {
        /// Its name.
        name: String,
    },
    /// Understood, of no effect here; the sentence says why.
    Nothing(&'static str),
}

/// `CREATE TABLE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateTable {
    /// Its name, owner left out.
    pub name: String,
    /// There already is fine.
    pub if_not_exists: bool,
    /// Its columns; none are given with AS SELECT.
    pub columns: Vec<ColumnDefinition>,
    /// Unique keys: PRIMARY KEY and UNIQUE, each with its name when it has one.
    pub unique: Vec<UniqueKey>,
    /// Where.
    pub tablespace: Option<String>,
    /// How its blocks are treated.
    pub caching: Caching,
    /// Where in the text the query behind AS is.
    pub query: Option<Range<usize>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type as it was typed: `VARCHAR2(100)`; empty when only named, as before AS SELECT.
    pub declared: String,
    /// Its type, understood.
    pub kind: Option<Type>,
    /// NOT NULL or PRIMARY KEY.
    pub not_null: bool,
}

/// PRIMARY KEY or UNIQUE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueKey {
    /// The constraint's name.
    pub name: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
    /// PRIMARY KEY.
    pub primary: bool,
}

/// `CREATE INDEX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIndex {
    /// Its name.
    pub name: String,
    /// There already is fine.
    pub if_not_exists: bool,
    /// Of which table.
    pub table: String,
    /// On which columns.
    pub columns: Vec<String>,
    /// UNIQUE.
    pub unique: bool,
    /// Where.
    pub tablespace: Option<String>,
}

/// `'…' SIZE 100M AUTOEXTEND ON NEXT 10M MAXSIZE 1G`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataFile {
    /// Its path; the engine chooses one when none is given.
    pub path: Option<String>,
    /// Bytes; the engine's default when none is given.
    pub bytes: Option<u64>,
    /// AUTOEXTEND ON or OFF.
    pub autoextend: Option<bool>,
    /// NEXT in bytes.
    pub bytes_next: Option<u64>,
    /// MAXSIZE in bytes; none is unlimited or not said.
    pub bytes_max: Option<u64>,
}

/// Understands `text`, one statement without its `;`.
///
/// # Errors
/// Only for statements that are ours; what is SQLite's to understand passes.
pub fn parse(text: &str) -> Result<Statement, SqlError> {
    let tokens = token::tokens(text)?;
    let mut cursor = Cursor::new(text, &tokens);
    let Some(first) = tokens.first() else {
        return Ok(Statement::Nothing("an empty statement"));
    };
    let statement = match first.text.to_ascii_uppercase().as_str() {
        "SELECT" => return Ok(Statement::Query),
        "WITH" => return Ok(with(&tokens)),
        "INSERT" => return Ok(insert(&tokens)),
        "UPDATE" | "DELETE" | "REPLACE" | "MERGE" => return Ok(Statement::Change),
        "CREATE" => table::create(&mut cursor)?,
        "DROP" => table::drop(&mut cursor)?,
        "TRUNCATE" => table::truncate(&mut cursor)?,
        "ALTER" => system::alter(&mut cursor)?,
        "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "BEGIN" | "SET" => system::transaction(&mut cursor)?,
        _ => return Ok(Statement::Other),
    };
    cursor.end()?;
    Ok(statement)
}

/// A declared type, as a column of a table has it: `VARCHAR2(100)`. None when it is none of ours.
pub fn declared_type(text: &str) -> Option<Type> {
    let tokens = token::tokens(text).ok()?;
    let mut cursor = Cursor::new(text, &tokens);
    let kind = table::column_type(&mut cursor).ok()?;
    cursor.end().ok()?;
    Some(kind)
}

/// A WITH that ends in INSERT, UPDATE or DELETE outside parentheses changes; any other one asks.
fn with(tokens: &[token::Token<'_>]) -> Statement {
    let mut depth = 0_i32;
    for token in tokens {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if depth == 0 && ["INSERT", "UPDATE", "DELETE", "REPLACE"].iter().any(|w| token.is(w)) => {
                return Statement::Change;
            }
            _ => {}
        }
    }
    Statement::Query
}

/// An INSERT, and whether it reads the table that it fills.
fn insert(tokens: &[token::Token<'_>]) -> Statement {
    let Some(into) = tokens.iter().position(|t| t.is("INTO")) else { return Statement::Change };
    let (table, behind) = cursor::qualified(tokens, into + 1);
    let select = tokens.iter().skip(behind).position(|t| t.is("SELECT") || t.is("WITH"));
    let (Some(table), Some(select)) = (table, select) else { return Statement::Change };
    let itself = tokens[behind + select..].iter().any(|t| {
        matches!(t.kind, token::Kind::Word | token::Kind::Quoted) && t.unquoted().eq_ignore_ascii_case(&table)
    });
    if itself { Statement::ChangeFromSelf { table } } else { Statement::Change }
}

#[cfg(test)]
mod tests;
