//! What `dba_segments` shows. The views of instance, files, cache and redo are theirs.

use super::{Call, Session};
use crate::cache::Pool;
use crate::flash::FlashUse;
use crate::page::PageId;
use crate::space::{Segment, SegmentSize, Table};
use crate::{EngineError, Result};

/// A row of `dba_segments`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRow {
    /// `SEGMENT_NAME`.
    pub name: String,
    /// `SEGMENT_TYPE`: `TABLE`, `INDEX` or `TYPE2 UNDO`.
    pub kind: &'static str,
    /// `TABLESPACE_NAME`.
    pub tablespace: String,
    /// `HEADER_FILE` and `HEADER_BLOCK`.
    pub header: PageId,
    /// `DATA_OBJECT_ID`.
    pub object: u32,
    /// `EXTENTS`, `BLOCKS`, and how many of them are in use.
    pub size: SegmentSize,
    /// `BYTES`.
    pub bytes: u64,
    /// `BUFFER_POOL`.
    pub pool: Pool,
    /// `FLASH_CACHE`.
    pub flash: FlashUse,
}

impl Session {
    /// `dba_segments`: tables and indexes by name, the catalog's own included, then undo.
    ///
    /// # Errors
    /// What storage says.
    pub fn segments(&mut self) -> Result<Vec<SegmentRow>> {
        self.call(|call| call.segments())
    }

    /// What is wrong with the books on space, in words: leaks, blocks that two segments have. Nobody may change anything
    /// meanwhile.
    ///
    /// # Errors
    /// What storage says.
    pub fn check_space(&mut self) -> Result<Vec<String>> {
        self.call(|call| call.core.space.check(call.core, call.context))
    }

    /// The size of a segment: `SELECT bytes FROM dba_segments WHERE …`, without looking at all others.
    ///
    /// # Errors
    /// What storage says.
    pub fn segment_size(&mut self, segment: &Segment) -> Result<SegmentSize> {
        self.call(|call| call.core.space.size(call.core, call.context, segment))
    }
}

impl Call<'_> {
    fn segments(&mut self) -> Result<Vec<SegmentRow>> {
        let mut rows = Vec::new();
        for table in self.core.space.catalog.all() {
            match self.add_table_segments(&table, &mut rows) {
                // Dropped since we looked.
                Err(EngineError::NoSuch { .. }) => {}
                done => done?,
            }
        }
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        for (n, segment) in self.core.space.undo_segments().into_iter().enumerate() {
            let name = format!("_SYSSMU{}$", n + 1);
            rows.push(self.segment_row(name, "TYPE2 UNDO", segment, Default::default())?);
        }
        Ok(rows)
    }

    fn add_table_segments(&mut self, table: &Table, rows: &mut Vec<SegmentRow>) -> Result<()> {
        let (_reading, newest) = self.read(table)?;
        let table = newest.as_deref().unwrap_or(table);
        rows.push(self.segment_row(table.name.clone(), "TABLE", table.segment, (table.pool, table.flash))?);
        for index in &table.indexes {
            rows.push(self.segment_row(index.name.clone(), "INDEX", index.segment, Default::default())?);
        }
        Ok(())
    }

    fn segment_row(
        &self,
        name: String,
        kind: &'static str,
        segment: Segment,
        (pool, flash): (Pool, FlashUse),
    ) -> Result<SegmentRow> {
        let core = &**self.core;
        let size = core.space.size(core, self.context, &segment)?;
        Ok(SegmentRow {
            name,
            kind,
            tablespace: core.space.tablespace_name(core, segment.tablespace),
            header: segment.header,
            object: segment.object,
            bytes: u64::from(size.blocks) * u64::from(core.files.block_bytes()),
            size,
            pool,
            flash,
        })
    }
}
