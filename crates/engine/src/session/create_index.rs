//! CREATE INDEX over the rows that are there.

use super::Call;
use super::ddl::key_columns;
use crate::btree;
use crate::sort::EntrySorter;
use crate::space::lock::To;
use crate::space::{Index, IndexDef, Segment, Table};
use crate::transaction::Xid;
use crate::value::Value;
use crate::{EngineError, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Call<'_> {
    /// 1. the table is shut to writers: all transactions that wrote to it have ended, so a view of now sees each row's newest
    ///    version, and no version changes. 2. the segment, pending. 3. rows -> keys -> sort -> tree. 4. the catalog's rows,
    ///    commit. 5. everybody may know it; no longer pending. A crash before 4 drops the segment at the next open.
    ///
    /// Rows that are deleted but not purged get no entries: views that still see them are older than the index, and are
    /// refused by it ([`Index::built_at`]).
    pub(super) fn create_index(&mut self, def: &IndexDef) -> Result<Arc<Index>> {
        self.core.space.catalog.check_free("index", &def.name)?;
        let (table, _shut) = self.shut_table(&def.table, To::Writers)?;
        let (core, context) = (&**self.core, self.context);
        let columns = key_columns(&table, def)?;
        let (segment, tablespace_name) = {
            // A tablespace is dropped under this lock, when nothing is pending in it.
            let _ddl = core.space.catalog.lock(context);
            let name = def.tablespace.as_deref().unwrap_or(&table.tablespace);
            let (tablespace, name) = self.tablespace(Some(name))?;
            (core.space.create_pending(core, context, tablespace)?, name)
        };
        let mut index = Index {
            object: segment.object,
            name: def.name.clone(),
            table: table.object,
            columns,
            unique: def.unique,
            segment,
            tablespace: tablespace_name,
            built_at: Xid::default(),
            lock: table.lock.clone(),
            stale: AtomicBool::new(false),
        };
        match self.fill_index(&table, &index) {
            Ok(built_at) => index.built_at = built_at,
            Err(error) => {
                self.drop_segments(&[segment])?;
                return Err(error);
            }
        }
        self.publish_index(&table, index, segment)
    }

    fn publish_index(&mut self, table: &Table, index: Index, segment: Segment) -> Result<Arc<Index>> {
        let (core, context) = (&**self.core, self.context);
        let catalog = &core.space.catalog;
        let _ddl = catalog.lock(context);
        if let Err(error) = catalog.check_free("index", &index.name) {
            self.drop_segments(&[segment])?;
            return Err(error);
        }
        let rows = self.write_catalog(&[segment], |writer| writer.add_index(&index))?;
        let index = Arc::new(index);
        let indexes = table.indexes.iter().chain([&index]).cloned().collect();
        catalog.publish(table.with(indexes, table.segment), [(index.object, rows)]);
        core.space.settle(core, context, &[segment.object])?;
        Ok(index)
    }

    /// Sorts the keys of all rows and makes the tree of them. The result is the first transaction that the build did not see.
    fn fill_index(&mut self, table: &Table, index: &Index) -> Result<Xid> {
        let (core, context) = (&**self.core, self.context);
        let mut sorter = EntrySorter::new(self.core);
        let mut scan = self.scan_as(table, Some(index.columns.clone()), self.view_of_now())?;
        let built_at = scan.first_unseen();
        while scan.fill(self)? {
            while let Some((address, key)) = scan.take_buffered() {
                sorter.push(context, &btree::encode_key(&key), address)?;
            }
        }
        drop(scan);
        let mut before: Option<Vec<u8>> = None;
        let mut entries = std::iter::from_fn(|| {
            let next = sorter.next(context).transpose()?;
            Some(next.and_then(|(key, address)| {
                if index.unique {
                    check_unique(index, before.as_deref(), &key)?;
                    before = Some(key.clone());
                }
                Ok((key, address))
            }))
        });
        btree::build(core, context, &index.segment, &mut entries)?;
        Ok(built_at)
    }
}

/// Keys come in order, so equal ones are neighbours. A key with a NULL equals none.
fn check_unique(index: &Index, before: Option<&[u8]>, key: &[u8]) -> Result<()> {
    if before != Some(key) {
        return Ok(());
    }
    let values = btree::decode_key(key).unwrap_or_default();
    if values.contains(&Value::Null) {
        return Ok(());
    }
    Err(EngineError::DuplicateKey { index: index.name.clone() })
}
