//! Tables and indexes: CREATE, DROP, TRUNCATE. DDL commits.

use super::Connection;
use crate::column::{Kind, Type};
use crate::link::Link;
use crate::outcome::Outcome;
use crate::statement::{Caching, CreateIndex, CreateTable};
use crate::{Error, SqlError, view};
use engine::EngineError;
use engine::space::{Column, ColumnKind, IndexDef, Table, TableDef};
use std::sync::Arc;

impl Connection {
    pub(super) fn create_table(&mut self, table: &CreateTable) -> Result<Outcome, Error> {
        if table.if_not_exists && self.link.lock().session.table(&table.name).is_ok() {
            return Ok(Outcome::Nothing("there is a table of that name already"));
        }
        let columns = table.columns.iter().map(|column| {
            let kind = column.kind.unwrap_or(Type { kind: Kind::Any, length_max: None });
            Column {
                name: column.name.clone(),
                kind: engine_kind(kind),
                declared: column.declared.clone(),
                not_null: column.not_null,
            }
        });
        self.savepoints.clear();
        make_table(&self.link, table, columns.collect())?;
        Ok(Outcome::Done("Table created."))
    }

    pub(super) fn create_index(&mut self, index: &CreateIndex) -> Result<Outcome, Error> {
        let session = &mut self.link.lock().session;
        if index.if_not_exists && session.index(&index.name).is_ok() {
            return Ok(Outcome::Nothing("there is an index of that name already"));
        }
        self.savepoints.clear();
        session.create_index(&IndexDef {
            name: index.name.clone(),
            table: index.table.clone(),
            columns: index.columns.clone(),
            unique: index.unique,
            tablespace: index.tablespace.clone(),
        })?;
        Ok(Outcome::Done("Index created."))
    }

    pub(super) fn drop_table(&mut self, name: &str, if_exists: bool) -> Result<Outcome, Error> {
        self.savepoints.clear();
        match self.link.lock().session.drop_table(name) {
            Err(EngineError::NoSuch { .. }) if if_exists => Ok(Outcome::Nothing("there is no such table")),
            done => done.map(|()| Outcome::Done("Table dropped.")).map_err(Error::from),
        }
    }

    pub(super) fn drop_index(&mut self, name: &str, if_exists: bool) -> Result<Outcome, Error> {
        self.savepoints.clear();
        match self.link.lock().session.drop_index(name) {
            Err(EngineError::NoSuch { .. }) if if_exists => Ok(Outcome::Nothing("there is no such index")),
            done => done.map(|()| Outcome::Done("Index dropped.")).map_err(Error::from),
        }
    }

    pub(super) fn alter_table(&mut self, name: &str, caching: Caching) -> Result<Outcome, Error> {
        self.savepoints.clear();
        self.link.lock().session.set_table_caching(name, caching.pool, caching.flash)?;
        Ok(Outcome::Done("Table altered."))
    }

    pub(super) fn truncate(&mut self, name: &str) -> Result<Outcome, Error> {
        self.savepoints.clear();
        self.link.lock().session.truncate_table(name)?;
        Ok(Outcome::Done("Table truncated."))
    }
}

/// Makes the table and the indexes of its keys; all or nothing.
pub(super) fn make_table(
    link: &Link,
    table: &CreateTable,
    columns: Vec<Column>,
) -> Result<Arc<Table>, Error> {
    check_name(&table.name)?;
    let definition = TableDef {
        name: table.name.clone(),
        columns,
        tablespace: table.tablespace.clone(),
        pool: table.caching.pool.unwrap_or_default(),
        flash: table.caching.flash.unwrap_or_default(),
    };
    let session = &mut link.lock().session;
    let mut made = session.create_table(&definition)?;
    for key in &table.unique {
        let suffix = if key.primary { "pk".into() } else { format!("{}_uk", key.columns.join("_")) };
        let name = key.name.clone().unwrap_or_else(|| format!("{}_{suffix}", table.name));
        let index = IndexDef {
            name,
            table: table.name.clone(),
            columns: key.columns.clone(),
            unique: true,
            tablespace: table.tablespace.clone(),
        };
        if let Err(error) = session.create_index(&index) {
            session.drop_table(&table.name)?;
            return Err(error.into());
        }
        made = session.table(&table.name)?;
    }
    Ok(made)
}

/// Names that mean something else in a query.
fn check_name(name: &str) -> Result<(), SqlError> {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("sqlite_") {
        return Err(SqlError::whole(format!("{name}: names that begin with sqlite_ are SQLite's own")));
    }
    if view::find(name).is_some() || lower == "dual" {
        return Err(SqlError::whole(format!("{name} is a view of the instance; take another name")));
    }
    Ok(())
}

/// As what the engine keeps a column.
pub(super) fn engine_kind(kind: Type) -> ColumnKind {
    match kind.kind {
        Kind::Integer => ColumnKind::Integer,
        Kind::Real => ColumnKind::Real,
        Kind::Text => ColumnKind::Text,
        Kind::Blob => ColumnKind::Blob,
        // Whole numbers stay whole, others are floating point: both at once is the engine's Any.
        Kind::Number | Kind::Any => ColumnKind::Any,
    }
}
