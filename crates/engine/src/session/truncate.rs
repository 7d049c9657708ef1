//! TRUNCATE: a table gets new, empty segments in place of its old ones.

use super::Call;
use super::ddl::segments_of;
use crate::space::lock::To;
use crate::space::{Segment, Table};
use crate::transaction::Xid;
use crate::{EngineError, Result};
use std::sync::Arc;

impl Call<'_> {
    /// 1. new segments, pending. 2. the old ones are pending too. 3. the catalog names the new ones, commit. 4. everybody knows
    ///    them; they are no longer pending. 5. the old ones' space is given back. A crash before 3 drops the new ones at the
    ///    next open, one after it the old ones.
    pub(super) fn truncate_table(&mut self, name: &str) -> Result<()> {
        let (table, shut) = self.shut_table(name, To::All)?;
        let (core, context) = (&**self.core, self.context);
        let catalog = &core.space.catalog;
        let _ddl = catalog.lock(context);
        let made = self.new_segments(&table)?;
        let old = segments_of(&table);
        if let Err(error) = core.space.mark_pending(core, context, &old) {
            self.drop_segments(&made)?;
            return Err(error);
        }
        let indexes = table.indexes.iter().zip(&made[1..]);
        // Nothing is in them, so no view misses anything.
        let indexes: Vec<_> =
            indexes.map(|(index, segment)| Arc::new(index.with(*segment, Xid::default()))).collect();
        let truncated = table.with(indexes, made[0]);
        let moved = self.change_catalog(&old, |writer| {
            writer.move_table(&catalog.rows(table.object), &truncated)?;
            let mut indexes = truncated.indexes.iter();
            indexes.try_for_each(|index| writer.move_index(&catalog.rows(index.object), index))
        });
        match moved {
            Ok(()) => {}
            Err(error @ EngineError::Crashed(_)) => return Err(error),
            Err(error) => {
                self.drop_segments(&made)?;
                return Err(error);
            }
        }
        core.cache.set_pool(made[0].object, table.pool);
        core.cache.set_flash_use(made[0].object, table.flash);
        catalog.publish(truncated, []);
        drop(shut);
        let objects: Vec<u32> = made.iter().map(|segment| segment.object).collect();
        core.space.settle(core, context, &objects)?;
        self.drop_segments(&old)
    }

    /// One segment for the table and each of its indexes, or none.
    fn new_segments(&self, table: &Table) -> Result<Vec<Segment>> {
        let (core, context) = (&**self.core, self.context);
        let mut made = vec![core.space.create_pending(core, context, table.segment.tablespace)?];
        for index in &table.indexes {
            match self.create_index_segment(index.segment.tablespace) {
                Ok(segment) => made.push(segment),
                Err(error) => {
                    self.drop_segments(&made)?;
                    return Err(error);
                }
            }
        }
        Ok(made)
    }
}
