//! A table of the engine: what SQLite is told of it, and how its rows are found.

use super::rows::{Search, TableRows};
use super::{Adapted, Shape};
use crate::column::{Kind, Type};
use crate::link::Link;
use crate::plan::{self, Constraint, IndexShape, Op, Order};
use crate::{explain, quote, statement};
use engine::space::{Column, ColumnKind, Table};
use rusqlite::vtab::{IndexConstraintOp, IndexFlags, IndexInfo, Module};
use rusqlite::{Connection, Error, Result};
use std::sync::Arc;

/// Name of the module under which SQLite knows the engine's tables.
const MODULE: &str = "redoubt_table";

/// A table as it is described to SQLite. When the engine's description changes, there is a new one.
pub struct Entry {
    /// The engine's.
    pub table: Arc<Table>,
    /// What each column takes.
    pub types: Vec<Type>,
    /// What planning knows.
    pub shape: plan::Shape,
}

impl Entry {
    /// `rows`: about how many there are.
    pub fn new(table: Arc<Table>, rows: f64) -> Self {
        let types = table.columns.iter().map(type_of).collect();
        let index = |index: &Arc<engine::space::Index>| IndexShape {
            columns: index.columns.clone(),
            unique: index.unique,
        };
        let shape = plan::Shape {
            nullable: table.columns.iter().map(|column| !column.not_null).collect(),
            indexes: table.indexes.iter().map(index).collect(),
            rows,
        };
        Self { table, types, shape }
    }
}

/// What a column takes: as it was declared, or, where that says nothing to us, as the engine keeps it.
pub fn type_of(column: &Column) -> Type {
    let kind = || match column.kind {
        ColumnKind::Integer => Kind::Integer,
        ColumnKind::Real => Kind::Real,
        ColumnKind::Text => Kind::Text,
        ColumnKind::Blob => Kind::Blob,
        ColumnKind::Any => Kind::Any,
    };
    statement::declared_type(&column.declared).unwrap_or_else(|| Type { kind: kind(), length_max: None })
}

/// The declared type, spelled as SQLite can read it, with a word before it that makes SQLite compare as we do.
/// [`crate::column::undeclared`] takes the word off again.
fn declared_for_sqlite(column: &Column) -> String {
    let (name, numbers) = column.declared.split_once('(').unwrap_or((&column.declared, ""));
    // VARCHAR2(10 CHAR), NUMBER(*, 0): SQLite takes only numbers there.
    let numbers = numbers.replace('*', "38");
    let numbers: Vec<_> =
        numbers.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty()).collect();
    let numbers = if numbers.is_empty() { String::new() } else { format!("({})", numbers.join(",")) };
    let word = match type_of(column).kind {
        Kind::Text => "TEXT ",
        Kind::Blob | Kind::Any => "BLOB ",
        // Whatever of INT, REAL, FLOA, DOUB is in their names, and NUMERIC where nothing is.
        Kind::Integer | Kind::Number | Kind::Real => "",
    };
    format!("{word}{}{numbers}", name.trim())
}

/// A table of the engine.
pub struct EngineTable {
    pub(super) link: Arc<Link>,
    pub(super) entry: Arc<Entry>,
}

impl EngineTable {
    /// Makes the engine's tables possible in `db`.
    pub fn register(db: &Connection, link: &Arc<Link>) -> Result<()> {
        db.create_module(MODULE, const { &Module::<Adapted<Self>>::update_module() }, Some(link.clone()))
    }

    /// `CREATE VIRTUAL TABLE` for a table.
    pub fn create(name: &str) -> String {
        format!("CREATE VIRTUAL TABLE {} USING {MODULE}", quote(name))
    }
}

impl Shape for EngineTable {
    type Rows = TableRows;

    fn connect(link: &Arc<Link>, name: &str) -> Result<Self> {
        let entry = link.lock().entries.get(&name.to_ascii_lowercase()).cloned();
        let entry = entry.ok_or_else(|| Error::ModuleError(format!("no such table: {name}")))?;
        Ok(Self { link: link.clone(), entry })
    }

    fn declaration(&self) -> String {
        let column = |column: &Column| format!("{} {}", quote(&column.name), declared_for_sqlite(column));
        let columns: Vec<_> = self.entry.table.columns.iter().map(column).collect();
        format!("CREATE TABLE x ({})", columns.join(", "))
    }

    fn plan(&self, info: &mut IndexInfo) -> Result<()> {
        let constraints = constraints(info)?;
        let order: Vec<_> = info
            .order_bys()
            .map(|term| Order { column: column(term.column()), descending: term.is_order_by_desc() })
            .collect();
        let plan = plan::best(&self.entry.shape, &constraints, &order);
        let constant: Vec<bool> =
            plan.arguments.iter().map(|&at| Ok(info.rhs_value(at)?.is_some())).collect::<Result<_>>()?;
        for (place, &at) in plan.arguments.iter().enumerate() {
            // SQLite counts from 1; it tests the condition again itself.
            info.constraint_usage(at).set_argv_index(place as i32 + 1);
        }
        if plan.one_row {
            info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
        }
        info.set_order_by_consumed(plan.ordered && !order.is_empty());
        info.set_estimated_cost(plan.cost);
        info.set_estimated_rows(plan.rows as i64);
        let words = explain::words(&self.entry.table, &plan.access);
        info.set_idx_str(&Search::encode(&plan.access, info.col_used(), &constant, &words));
        Ok(())
    }

    fn rows(&self) -> TableRows {
        TableRows::new(self.link.clone(), self.entry.clone())
    }
}

fn constraints(info: &IndexInfo) -> Result<Vec<Constraint>> {
    let constraint = |(at, constraint): (usize, rusqlite::vtab::IndexConstraint<'_>)| {
        use IndexConstraintOp as Sqlite;
        let op = match constraint.operator() {
            Sqlite::SQLITE_INDEX_CONSTRAINT_EQ => Op::Equal,
            Sqlite::SQLITE_INDEX_CONSTRAINT_GT => Op::Greater,
            Sqlite::SQLITE_INDEX_CONSTRAINT_GE => Op::GreaterOrEqual,
            Sqlite::SQLITE_INDEX_CONSTRAINT_LT => Op::Less,
            Sqlite::SQLITE_INDEX_CONSTRAINT_LE => Op::LessOrEqual,
            Sqlite::SQLITE_INDEX_CONSTRAINT_LIMIT => Op::Limit,
            _ => Op::Other,
        };
        // LIMIT and OFFSET compare no column, so there is no collation to ask for.
        let compares = op != Op::Limit && op != Op::Other;
        Ok(Constraint {
            column: column(constraint.column()),
            op,
            usable: constraint.is_usable(),
            binary: compares && info.collation(at)?.eq_ignore_ascii_case("BINARY"),
        })
    };
    info.constraints().enumerate().map(constraint).collect()
}

/// SQLite's number of a column; -1 is the row's address.
fn column(number: i32) -> Option<usize> {
    usize::try_from(number).ok()
}
