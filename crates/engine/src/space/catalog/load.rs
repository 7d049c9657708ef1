//! Reading the catalog at open.

use super::dictionary::{self, CatalogRow, ColumnRow, IndexColumnRow, IndexRow, Kind, ObjectRow};
use crate::heap::{PageScan, PageSource};
use crate::instance::Core;
use crate::page::PageId;
use crate::space::lock::TableLock;
use crate::space::segment::corrupt;
use crate::space::table::{CatalogRows, key_columns};
use crate::space::{Index, Table};
use crate::transaction::{ReadView, Xid};
use crate::value::RowId;
use crate::{Context, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A row with its address.
type Found<T> = (RowId, T);

/// Everything in the four tables, by object.
struct Contents {
    objects: Vec<Found<ObjectRow>>,
    columns: BTreeMap<u32, Vec<Found<ColumnRow>>>,
    indexes: BTreeMap<u32, Found<IndexRow>>,
    index_columns: BTreeMap<u32, Vec<Found<IndexColumnRow>>>,
}

/// Puts all committed tables and indexes into the catalog of `core`.
///
/// # Errors
/// What storage says; [`crate::EngineError::CorruptBlock`] for rows that make no sense.
pub fn load(core: &Core, context: &Context) -> Result<()> {
    let guard = core.transactions.view(Xid::default());
    let contents = Contents::read(core, context, &guard.view)?;
    let catalog = &core.space.catalog;
    for table in dictionary::tables() {
        catalog.publish(table, []);
    }
    for (address, object) in contents.objects.iter().filter(|(_, object)| object.kind == Kind::Table) {
        let (table, rows) = contents.table(core, *address, object)?;
        core.cache.set_pool(table.segment.object, table.pool);
        core.cache.set_flash_use(table.segment.object, table.flash);
        catalog.publish(table, rows);
    }
    Ok(())
}

impl Contents {
    fn read(core: &Core, context: &Context, view: &ReadView) -> Result<Self> {
        let mut columns: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for row in read::<ColumnRow>(core, context, dictionary::COL, view)? {
            columns.entry(row.1.object).or_default().push(row);
        }
        let mut index_columns: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for row in read::<IndexColumnRow>(core, context, dictionary::ICOL, view)? {
            index_columns.entry(row.1.object).or_default().push(row);
        }
        columns.values_mut().for_each(|rows| rows.sort_by_key(|(_, row)| row.position));
        index_columns.values_mut().for_each(|rows| rows.sort_by_key(|(_, row)| row.position));
        let indexes = read::<IndexRow>(core, context, dictionary::IND, view)?;
        let mut objects = read::<ObjectRow>(core, context, dictionary::OBJ, view)?;
        objects.sort_by_key(|(_, row)| row.object);
        let indexes = indexes.into_iter().map(|row| (row.1.object, row)).collect();
        Ok(Self { objects, columns, indexes, index_columns })
    }

    fn table(
        &self,
        core: &Core,
        address: RowId,
        object: &ObjectRow,
    ) -> Result<(Table, Vec<(u32, CatalogRows)>)> {
        let columns = self.columns.get(&object.object).map(Vec::as_slice).unwrap_or_default();
        let mut rows = vec![(
            object.object,
            CatalogRows {
                object: Some(address),
                columns: columns.iter().map(|(address, _)| *address).collect(),
                ..CatalogRows::default()
            },
        )];
        let lock = TableLock::new();
        let mut indexes = Vec::new();
        for (address, row) in self.objects.iter().filter(|(_, row)| row.kind == Kind::Index) {
            let Some((index_address, index)) = self.indexes.get(&row.object) else {
                return Err(corrupt(
                    core,
                    address.page,
                    "an index".into(),
                    format!("no row in ind$ for {}", row.name),
                ));
            };
            if index.table != object.object {
                continue;
            }
            let of_index = self.index_columns.get(&row.object).map(Vec::as_slice).unwrap_or_default();
            rows.push((
                row.object,
                CatalogRows {
                    object: Some(*address),
                    index: Some(*index_address),
                    index_columns: of_index.iter().map(|(address, _)| *address).collect(),
                    ..CatalogRows::default()
                },
            ));
            indexes.push(Arc::new(Index {
                object: row.object,
                name: row.name.clone(),
                table: object.object,
                columns: of_index.iter().map(|(_, row)| row.column).collect(),
                unique: index.unique,
                segment: row.segment,
                tablespace: core.space.tablespace_name(core, row.segment.tablespace),
                built_at: Xid::default(),
                lock: lock.clone(),
                stale: AtomicBool::new(false),
            }));
        }
        let table = Table {
            object: object.object,
            name: object.name.clone(),
            columns: columns.iter().map(|(_, row)| row.column.clone()).collect(),
            key_columns: key_columns(&indexes),
            indexes,
            segment: object.segment,
            tablespace: core.space.tablespace_name(core, object.segment.tablespace),
            pool: object.pool,
            flash: object.flash,
            dictionary: false,
            lock,
            stale: AtomicBool::new(false),
        };
        Ok((table, rows))
    }
}

/// All rows of a dictionary table that the view sees.
fn read<T: CatalogRow>(
    core: &Core,
    context: &Context,
    object: u32,
    view: &ReadView,
) -> Result<Vec<Found<T>>> {
    let segment = dictionary::segment(object);
    let mut found = Vec::new();
    let mut rows = Vec::new();
    for (first, blocks) in core.space.runs(core, context, &segment)? {
        let ids: Vec<PageId> =
            (0..blocks).map(|n| PageId { file: first.file, block: first.block + n }).collect();
        core.cache.prefetch(core, context, &ids)?;
        for id in ids {
            PageScan { core, context, segment: &segment, id, view }.rows(
                PageSource::Cache,
                None,
                &mut rows,
            )?;
        }
    }
    for (address, row) in rows {
        let row = T::from_row(row).ok_or_else(|| {
            corrupt(
                core,
                address.page,
                format!("a catalog row in slot {}", address.slot),
                "something else".into(),
            )
        })?;
        found.push((address, row));
    }
    Ok(found)
}
