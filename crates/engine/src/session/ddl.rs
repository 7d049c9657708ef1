//! Tables and indexes are made and dropped. DDL commits: what the session has changed, and itself.

use super::{Call, Session};
use crate::btree;
use crate::cache::Pool;
use crate::files::control::TablespaceKind;
use crate::flash::FlashUse;
use crate::space::catalog::write::Writer;
use crate::space::lock::{Shut, TableLock, To};
use crate::space::{Index, IndexDef, Segment, Table, TableDef};
use crate::transaction::Transaction;
use crate::{EngineError, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where tables go that name no tablespace, when it is there; SYSTEM otherwise.
const DEFAULT_TABLESPACE: &str = "USERS";
/// As in Oracle.
const COLUMNS_MAX: usize = 1000;
const KEY_COLUMNS_MAX: usize = 32;
const NAME_BYTES_MAX: usize = 128;

impl Session {
    /// Makes a table. Commits.
    ///
    /// # Errors
    /// [`EngineError::Exists`], [`EngineError::NoSuch`] (tablespace), [`EngineError::Invalid`], what storage says; nothing is left
    /// behind then.
    pub fn create_table(&mut self, def: &TableDef) -> Result<Arc<Table>> {
        self.call(|call| call.create_table(def))
    }

    /// Drops a table with its indexes. Commits. Waits for transactions that have written to it and for open cursors.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`], what storage says; [`EngineError::Invalid`] when this session has a cursor open on it.
    pub fn drop_table(&mut self, name: &str) -> Result<()> {
        self.call(|call| call.drop_table(name))
    }

    /// Empties a table at once, with its indexes. Commits. Waits as [`Session::drop_table`].
    ///
    /// # Errors
    /// As [`Session::drop_table`].
    pub fn truncate_table(&mut self, name: &str) -> Result<()> {
        self.call(|call| call.truncate_table(name))
    }

    /// Sets how a table's blocks are treated in the cache: those that are read from now on. Commits. Waits for transactions that
    /// have written to it.
    ///
    /// # Errors
    /// As [`Session::drop_table`].
    pub fn set_table_caching(
        &mut self,
        name: &str,
        pool: Option<Pool>,
        flash: Option<FlashUse>,
    ) -> Result<()> {
        self.call(|call| call.set_table_caching(name, pool, flash))
    }

    /// Makes an index over the rows that are there. Commits. Waits for transactions that have written to the table, and lets nobody
    /// write to it meanwhile; readers go on.
    ///
    /// # Errors
    /// [`EngineError::DuplicateKey`], [`EngineError::Exists`], [`EngineError::NoSuch`], what storage says; nothing is left behind
    /// then.
    pub fn create_index(&mut self, def: &IndexDef) -> Result<Arc<Index>> {
        self.call(|call| call.create_index(def))
    }

    /// Drops an index. Commits. Waits as [`Session::drop_table`].
    ///
    /// # Errors
    /// As [`Session::drop_table`].
    pub fn drop_index(&mut self, name: &str) -> Result<()> {
        self.call(|call| call.drop_index(name))
    }
}

impl Call<'_> {
    /// 1. the segment, pending. 2. the catalog's rows, commit. 3. everybody may know it; no longer pending. A crash before 2
    ///    drops the segment at the next open (see `space::create`).
    fn create_table(&mut self, def: &TableDef) -> Result<Arc<Table>> {
        check_table(def)?;
        self.commit()?;
        let (core, context) = (&**self.core, self.context);
        let catalog = &core.space.catalog;
        let _ddl = catalog.lock(context);
        catalog.check_free("table", &def.name)?;
        let (tablespace, tablespace_name) = self.tablespace(def.tablespace.as_deref())?;
        let segment = core.space.create_pending(core, context, tablespace)?;
        let table = Table {
            object: segment.object,
            name: def.name.clone(),
            columns: def.columns.clone(),
            indexes: Vec::new(),
            key_columns: Vec::new(),
            segment,
            tablespace: tablespace_name,
            pool: def.pool,
            flash: def.flash,
            dictionary: false,
            lock: TableLock::new(),
            stale: AtomicBool::new(false),
        };
        let rows = self.write_catalog(&[segment], |writer| writer.add_table(&table))?;
        core.cache.set_pool(segment.object, def.pool);
        core.cache.set_flash_use(segment.object, def.flash);
        let table = catalog.publish(table, [(segment.object, rows)]);
        core.space.settle(core, context, &[segment.object])?;
        Ok(table)
    }

    /// 1. its segments are pending. 2. the catalog's rows are gone, commit. 3. nobody finds it any more. 4. the space is given
    ///    back, and is no longer pending. A crash before 2 leaves the table as it was, one after it does 4 at the next open.
    pub(super) fn drop_table(&mut self, name: &str) -> Result<()> {
        let (table, shut) = self.shut_table(name, To::All)?;
        let (core, context) = (&**self.core, self.context);
        let catalog = &core.space.catalog;
        let _ddl = catalog.lock(context);
        let objects = std::iter::once(table.object).chain(table.indexes.iter().map(|index| index.object));
        let rows: Vec<_> = objects.map(|object| catalog.rows(object)).collect();
        let segments = segments_of(&table);
        core.space.mark_pending(core, context, &segments)?;
        self.change_catalog(&segments, |writer| rows.iter().try_for_each(|rows| writer.delete(rows)))?;
        catalog.forget(&table);
        drop(shut);
        self.drop_segments(&segments)
    }

    fn set_table_caching(&mut self, name: &str, pool: Option<Pool>, flash: Option<FlashUse>) -> Result<()> {
        let (table, _shut) = self.shut_table(name, To::Writers)?;
        let (core, context) = (&**self.core, self.context);
        let catalog = &core.space.catalog;
        let _ddl = catalog.lock(context);
        let (pool, flash) = (pool.unwrap_or(table.pool), flash.unwrap_or(table.flash));
        let changed = Table { pool, flash, ..table.with(table.indexes.clone(), table.segment) };
        self.change_catalog(&[], |writer| writer.move_table(&catalog.rows(table.object), &changed))?;
        core.cache.set_pool(table.segment.object, pool);
        core.cache.set_flash_use(table.segment.object, flash);
        catalog.publish(changed, []);
        Ok(())
    }

    pub(super) fn drop_index(&mut self, name: &str) -> Result<()> {
        let core = &**self.core;
        let found = core.space.catalog.index(name)?;
        let owner = core.space.catalog.by_object(found.table).map(|table| table.name.clone());
        let (table, shut) = self.shut_table(&owner.unwrap_or_default(), To::All)?;
        let context = self.context;
        let catalog = &core.space.catalog;
        let _ddl = catalog.lock(context);
        let index = catalog.index(name)?;
        let rows = catalog.rows(index.object);
        core.space.mark_pending(core, context, &[index.segment])?;
        self.change_catalog(&[index.segment], |writer| writer.delete(&rows))?;
        let indexes = table.indexes.iter().filter(|other| other.object != index.object).cloned().collect();
        catalog.publish(table.with(indexes, table.segment), []);
        catalog.forget_rows(index.object);
        drop(shut);
        self.drop_segments(&[index.segment])
    }

    /// Commits, and shuts a table, which may not be one of the catalog's own.
    pub(super) fn shut_table(&mut self, name: &str, to: To) -> Result<(Arc<Table>, Shut)> {
        self.commit()?;
        loop {
            let table = self.core.space.catalog.table(name)?;
            if table.dictionary {
                return Err(EngineError::Invalid(format!(
                    "{name} belongs to the catalog and cannot be changed"
                )));
            }
            let shut = table.lock.shut(self.asker(table.object), to)?;
            // Somebody else's DDL may have come first: then there is another table by this name, or none.
            if !table.is_stale() {
                return Ok((table, shut));
            }
        }
    }

    /// A permanent tablespace by name, or the default one: number and name.
    pub(super) fn tablespace(&self, name: Option<&str>) -> Result<(u16, String)> {
        let content = self.core.control.content();
        let default = || content.tablespace_named(DEFAULT_TABLESPACE).or_else(|| content.tablespaces.first());
        let found = name.map_or_else(default, |name| content.tablespace_named(name));
        match found {
            Some(tablespace) if tablespace.kind == TablespaceKind::Permanent => {
                Ok((tablespace.number, tablespace.name.clone()))
            }
            Some(tablespace) => Err(EngineError::Invalid(format!(
                "tablespace {} is not for tables and indexes",
                tablespace.name
            ))),
            None => Err(EngineError::NoSuch {
                kind: "tablespace",
                name: name.unwrap_or(DEFAULT_TABLESPACE).to_owned(),
                hint: String::new(),
            }),
        }
    }

    /// Writes to the catalog in a transaction of its own and commits. When that fails, the segments that were made for it are
    /// dropped.
    pub(super) fn write_catalog<T>(
        &mut self,
        made: &[Segment],
        work: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.commit_catalog(work) {
            Err(error @ EngineError::Crashed(_)) => Err(error),
            Err(error) => {
                self.drop_segments(made)?;
                Err(error)
            }
            done => done,
        }
    }

    /// As [`Call::write_catalog`]; when it fails, `kept` are no longer pending.
    pub(super) fn change_catalog<T>(
        &mut self,
        kept: &[Segment],
        work: impl FnOnce(&mut Writer<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.commit_catalog(work) {
            Err(error @ EngineError::Crashed(_)) => Err(error),
            Err(error) => {
                let objects: Vec<u32> = kept.iter().map(|segment| segment.object).collect();
                self.core.space.settle(self.core, self.context, &objects)?;
                Err(error)
            }
            done => done,
        }
    }

    fn commit_catalog<T>(&mut self, work: impl FnOnce(&mut Writer<'_>) -> Result<T>) -> Result<T> {
        let (core, context) = (&**self.core, self.context);
        let mut transaction: Transaction = core.transactions.begin(core, context)?;
        let done = work(&mut Writer { core, context, transaction: &mut transaction });
        match done {
            Ok(value) => core.transactions.commit(core, context, transaction).map(|()| value),
            Err(error) => {
                core.transactions.rollback(core, context, transaction)?;
                Err(error)
            }
        }
    }

    /// Gives the space of segments back that nobody uses and the catalog does not have.
    pub(super) fn drop_segments(&self, segments: &[Segment]) -> Result<()> {
        for segment in segments {
            self.core.transactions.forget_insert_pages(segment.object);
            self.core.space.drop_segment(self.core, self.context, segment)?;
        }
        Ok(())
    }

    /// Makes the segment of an index, pending, with an empty tree.
    pub(super) fn create_index_segment(&self, tablespace: u16) -> Result<Segment> {
        let (core, context) = (&**self.core, self.context);
        let segment = core.space.create_pending(core, context, tablespace)?;
        match btree::create(core, context, &segment) {
            Ok(()) => Ok(segment),
            Err(error) => {
                self.drop_segments(&[segment])?;
                Err(error)
            }
        }
    }
}

/// The table's and its indexes' segments.
pub(super) fn segments_of(table: &Table) -> Vec<Segment> {
    std::iter::once(table.segment).chain(table.indexes.iter().map(|index| index.segment)).collect()
}

pub(super) fn check_name(kind: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let what = format!("the name of {kind} {name:?} must have 1 to {NAME_BYTES_MAX} bytes");
        return Err(EngineError::Invalid(what));
    }
    Ok(())
}

fn check_table(def: &TableDef) -> Result<()> {
    check_name("table", &def.name)?;
    if def.columns.is_empty() || def.columns.len() > COLUMNS_MAX {
        let what =
            format!("table {} must have 1 to {COLUMNS_MAX} columns, not {}", def.name, def.columns.len());
        return Err(EngineError::Invalid(what));
    }
    let mut names = BTreeSet::new();
    for column in &def.columns {
        check_name("column", &column.name)?;
        if !names.insert(column.name.to_ascii_lowercase()) {
            return Err(EngineError::Invalid(format!("table {} has two columns {}", def.name, column.name)));
        }
    }
    Ok(())
}

/// The numbers of the columns of an index.
pub(super) fn key_columns(table: &Table, def: &IndexDef) -> Result<Vec<usize>> {
    check_name("index", &def.name)?;
    if def.columns.is_empty() || def.columns.len() > KEY_COLUMNS_MAX {
        let what =
            format!("index {} must have 1 to {KEY_COLUMNS_MAX} columns, not {}", def.name, def.columns.len());
        return Err(EngineError::Invalid(what));
    }
    let mut columns = Vec::new();
    for name in &def.columns {
        let column = table.column(name).ok_or_else(|| EngineError::NoSuch {
            kind: "column",
            name: format!("{}.{name}", table.name),
            hint: String::new(),
        })?;
        if columns.contains(&column) {
            return Err(EngineError::Invalid(format!("index {} has column {name} twice", def.name)));
        }
        columns.push(column);
    }
    Ok(columns)
}
