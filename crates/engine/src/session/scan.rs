//! Full scans: through the cache when the table is small, past it when it is large.

use super::transaction::View;
use super::{Call, Session};
use crate::Result;
use crate::cache::DirectRead;
use crate::heap::{PageScan, PageSource, Pieces};
use crate::page::PageId;
use crate::parameter::Parameter;
use crate::space::Domain;
use crate::space::lock::Reading;
use crate::space::{Column, Segment, Table};
use crate::statistics::Statistic;
use crate::transaction::Xid;
use crate::value::{Row, RowId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Share of the cache up to which a table is small, when `_small_table_threshold` does not say.
const SMALL_PERCENT: usize = 2;

/// Where the pages come from.
enum Source {
    /// The cache; pages that are missing are read ahead, a window at a time.
    Cached { runs: VecDeque<(PageId, u32)>, window: VecDeque<PageId>, window_max: u32 },
    /// The disk, in large requests.
    Direct(Box<DirectRead>),
}

impl Source {
    fn open(call: &Call<'_>, segment: &Segment) -> Result<Self> {
        let (core, context) = (call.core, call.context);
        let runs = core.space.runs(core, context, segment)?;
        let blocks: u32 = runs.iter().map(|(_, blocks)| blocks).sum();
        let frames = core.cache.frame_count();
        let threshold = match core.parameters.number(Parameter::SmallTableThreshold) as usize {
            0 => frames * SMALL_PERCENT / 100,
            blocks => blocks,
        };
        let is_long = blocks as usize > threshold;
        let direct = match core.parameters.choice(Parameter::SerialDirectRead) {
            "always" => true,
            "never" => false,
            _ => is_long,
        };
        context.count(if is_long { Statistic::TableScansLong } else { Statistic::TableScansShort }, 1);
        if direct && blocks > 0 {
            context.count(Statistic::TableScansDirect, 1);
            // What is read past the cache must be on disk. Later changes are none of this statement's business.
            core.cache.write_dirty(&**core, context, Some(segment.object))?;
            return Ok(Self::Direct(Box::new(DirectRead::open(&**core, context, runs)?)));
        }
        let together = core.parameters.number(Parameter::MultiblockReadCount) as u32;
        let window_max = together.min(frames as u32 / 4).max(1);
        Ok(Self::Cached { runs: runs.into(), window: VecDeque::new(), window_max })
    }
}

/// The next page of the cache's; reads ahead when the window is at its end.
fn next_cached(
    call: &Call<'_>,
    runs: &mut VecDeque<(PageId, u32)>,
    window: &mut VecDeque<PageId>,
    window_max: u32,
) -> Result<Option<PageId>> {
    if window.is_empty() {
        while let (Some((first, blocks)), true) = (runs.front_mut(), window.len() < window_max as usize) {
            let now = (*blocks).min(window_max - window.len() as u32);
            window.extend((0..now).map(|n| PageId { file: first.file, block: first.block + n }));
            first.block += now;
            *blocks -= now;
            if *blocks == 0 {
                runs.pop_front();
            }
        }
        call.core.cache.prefetch(&**call.core, call.context, window.make_contiguous())?;
    }
    Ok(window.pop_front())
}

/// A full scan that goes on. What it sees is what was committed when it (or the open statement) began, and what its own transaction
/// had done until then; a rollback takes the latter away from it.
pub struct Scan {
    segment: Segment,
    columns: Option<Vec<usize>>,
    /// Of each value that a row has.
    domains: Vec<Domain>,
    view: View,
    source: Source,
    rows: std::vec::IntoIter<(RowId, Row)>,
    _reading: Reading,
}

impl Scan {
    /// The next row; no more after the first `None`.
    ///
    /// # Errors
    /// What storage says.
    pub fn next(&mut self, session: &mut Session) -> Result<Option<(RowId, Row)>> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            if !session.call(|call| self.fill(call))? {
                return Ok(None);
            }
        }
    }

    /// The first transaction that had not begun when the scan did.
    pub(super) fn first_unseen(&self) -> Xid {
        self.view.view.next
    }

    /// A row that was read already.
    pub(super) fn take_buffered(&mut self) -> Option<(RowId, Row)> {
        self.rows.next()
    }

    /// Reads on until there are rows; false at the end. Those read before must have been taken.
    pub(super) fn fill(&mut self, call: &Call<'_>) -> Result<bool> {
        let (core, context) = (&**call.core, call.context);
        let Self { segment, columns, view, source, .. } = self;
        let page = |id| PageScan { core, context, segment, id, view: &view.view };
        let mut rows = Vec::new();
        let columns = columns.as_deref();
        while rows.is_empty() {
            match source {
                Source::Cached { runs, window, window_max } => {
                    let Some(id) = next_cached(call, runs, window, *window_max)? else { return Ok(false) };
                    context.count(Statistic::TableScanBlocksGotten, 1);
                    page(id).rows(PageSource::Cache, columns, &mut rows)?;
                }
                Source::Direct(read) => {
                    let more = read.next(context, &mut |id, bytes| {
                        context.count(Statistic::TableScanBlocksGotten, 1);
                        page(id).rows(PageSource::Bytes(bytes), columns, &mut rows)
                    })?;
                    if !more {
                        return Ok(false);
                    }
                }
            }
        }
        context.count(Statistic::TableScanRowsGotten, rows.len() as u64);
        self.rows = rows.into_iter();
        Ok(true)
    }

    /// Whether its rows can go into a table as they are stored.
    pub(super) fn suits(&self, table: &Table) -> bool {
        table.stores_alike(&self.domains)
    }

    /// As [`Scan::fill`], with the rows as they are stored; there may be none although it goes on. Those read before must have
    /// been taken.
    pub(super) fn copy(&mut self, call: &Call<'_>, pieces: &mut Pieces) -> Result<bool> {
        let (core, context) = (&**call.core, call.context);
        let Self { segment, columns, view, source, .. } = self;
        let page = |id| PageScan { core, context, segment, id, view: &view.view };
        let (columns, before) = (columns.as_deref(), pieces.count());
        match source {
            Source::Cached { runs, window, window_max } => {
                let Some(id) = next_cached(call, runs, window, *window_max)? else { return Ok(false) };
                context.count(Statistic::TableScanBlocksGotten, 1);
                page(id).copy(PageSource::Cache, columns, pieces)?;
            }
            Source::Direct(read) => {
                let more = read.next(context, &mut |id, bytes| {
                    context.count(Statistic::TableScanBlocksGotten, 1);
                    page(id).copy(PageSource::Bytes(bytes), columns, pieces)
                })?;
                if !more {
                    return Ok(false);
                }
            }
        }
        context.count(Statistic::TableScanRowsGotten, (pieces.count() - before) as u64);
        Ok(true)
    }
}

impl Call<'_> {
    /// Enters a table to read it, and gives its newest description when the caller's is stale.
    pub(super) fn read(&self, table: &Table) -> Result<(Reading, Option<Arc<Table>>)> {
        let reading = table.lock.read(self.asker(table.object), self.cursors)?;
        Ok((reading, self.newest(table)?))
    }

    pub(super) fn scan(&mut self, table: &Table, columns: Option<Vec<usize>>) -> Result<Scan> {
        self.scan_as(table, columns, self.view())
    }

    pub(super) fn scan_as(&mut self, table: &Table, columns: Option<Vec<usize>>, view: View) -> Result<Scan> {
        let (reading, newest) = self.read(table)?;
        let table = newest.as_deref().unwrap_or(table);
        if let Some(wrong) = columns.iter().flatten().find(|column| **column >= table.columns.len()) {
            return Err(crate::EngineError::Invalid(format!("table {} has no column {wrong}", table.name)));
        }
        let source = Source::open(self, &table.segment)?;
        let domains = match &columns {
            None => table.columns.iter().map(Column::domain).collect(),
            Some(columns) => columns.iter().map(|column| table.columns[*column].domain()).collect(),
        };
        Ok(Scan {
            segment: table.segment,
            columns,
            domains,
            view,
            source,
            rows: Vec::new().into_iter(),
            _reading: reading,
        })
    }

    pub(super) fn count(&mut self, table: &Table) -> Result<u64> {
        let (_reading, newest) = self.read(table)?;
        let segment = newest.as_deref().unwrap_or(table).segment;
        let (core, context) = (&**self.core, self.context);
        let View { view, .. } = &self.view();
        let page = |id| PageScan { core, context, segment: &segment, id, view };
        let (mut count, mut blocks) = (0, 0);
        match Source::open(self, &segment)? {
            Source::Cached { mut runs, mut window, window_max } => {
                while let Some(id) = next_cached(self, &mut runs, &mut window, window_max)? {
                    blocks += 1;
                    count += page(id).count(PageSource::Cache)?;
                }
            }
            Source::Direct(mut read) => {
                let mut each = |id: PageId, bytes: &[u8]| {
                    blocks += 1;
                    count += page(id).count(PageSource::Bytes(bytes))?;
                    Ok(())
                };
                while read.next(context, &mut each)? {}
            }
        }
        context.count(Statistic::TableScanBlocksGotten, blocks);
        context.count(Statistic::TableScanRowsGotten, count);
        Ok(count)
    }
}
