//! Rows: inserted, updated, deleted, read by address; indexes follow.

use super::transaction::View;
use super::{Call, Scan};
use crate::heap::{self, Locator, Pieces};
use crate::space::Table;
use crate::statistics::Statistic;
use crate::value::{Row, RowId, Value};
use crate::{EngineError, Result};

/// Rows of one batch of an insert of many: enough to fill some pages in one change each.
const BATCH_ROWS: usize = 256;
/// Values of one batch take about so much memory at most.
const BATCH_BYTES: usize = 256 << 10;

impl Call<'_> {
    pub(super) fn insert(&mut self, table: &Table, values: &[Value]) -> Result<RowId> {
        let newest = self.enter(table)?;
        let table = newest.as_deref().unwrap_or(table);
        let row = [table.store(values.to_vec())?];
        self.atomically(|call| {
            let mut address = None;
            call.insert_rows(table, &row, &mut |at| address = Some(at))?;
            Ok(address.expect("one row was inserted"))
        })
    }

    pub(super) fn insert_many(&mut self, table: &Table, rows: &mut dyn Iterator<Item = Row>) -> Result<u64> {
        let newest = self.enter(table)?;
        let table = newest.as_deref().unwrap_or(table);
        self.atomically(|call| {
            let mut count = 0;
            let mut batch = Batch::default();
            loop {
                batch.fill(table, rows)?;
                if batch.rows.is_empty() {
                    return Ok(count);
                }
                count += call.insert_batch(table, &mut batch)?;
            }
        })
    }

    pub(super) fn insert_select(&mut self, table: &Table, scan: &mut Scan) -> Result<u64> {
        let newest = self.enter(table)?;
        let table = newest.as_deref().unwrap_or(table);
        // Keys of indexes are made of values.
        let copies = table.indexes.is_empty() && scan.suits(table);
        self.atomically(|call| {
            let mut count = 0;
            let mut batch = Batch::default();
            loop {
                batch.fill(table, &mut std::iter::from_fn(|| scan.take_buffered().map(|(_, row)| row)))?;
                // A batch that is not full goes on with the rows of the next pages.
                if !batch.is_full() && !copies && scan.fill(call)? {
                    continue;
                }
                if batch.rows.is_empty() {
                    break;
                }
                count += call.insert_batch(table, &mut batch)?;
            }
            if copies { Ok(count + call.copy_rows(table, scan)?) } else { Ok(count) }
        })
    }

    /// The rows that the scan has not read yet, from page to page as they are stored.
    fn copy_rows(&mut self, table: &Table, scan: &mut Scan) -> Result<u64> {
        let (core, context) = (self.core, self.context);
        let mut pieces = Pieces::new(core.cache.block_bytes());
        let mut count = 0;
        loop {
            pieces.clear();
            while pieces.bytes() < BATCH_BYTES && scan.copy(self, &mut pieces)? {}
            if pieces.count() == 0 {
                return Ok(count);
            }
            count += pieces.count() as u64;
            heap::insert(core, context, &table.segment, self.transaction()?, &mut pieces, &mut |_| {})?;
        }
    }

    fn insert_batch(&mut self, table: &Table, batch: &mut Batch) -> Result<u64> {
        self.insert_rows(table, &batch.rows, &mut |_| {})?;
        let count = batch.rows.len() as u64;
        *batch = Batch::default();
        Ok(count)
    }

    fn insert_rows(&mut self, table: &Table, rows: &[Row], inserted: &mut dyn FnMut(RowId)) -> Result<()> {
        let (core, context) = (self.core, self.context);
        let mut pieces = Pieces::new(core.cache.block_bytes());
        rows.iter().try_for_each(|row| pieces.push(row))?;
        let transaction = self.transaction()?;
        if table.indexes.is_empty() {
            return heap::insert(core, context, &table.segment, transaction, &mut pieces, inserted);
        }
        let mut addresses = Vec::with_capacity(rows.len());
        heap::insert(core, context, &table.segment, transaction, &mut pieces, &mut |address| {
            addresses.push(address);
            inserted(address);
        })?;
        for index in &table.indexes {
            for (row, address) in rows.iter().zip(&addresses) {
                self.add_entry(index, row, *address)?;
            }
        }
        Ok(())
    }

    pub(super) fn update(&mut self, table: &Table, row: RowId, values: &[Value]) -> Result<()> {
        let newest = self.enter(table)?;
        let table = newest.as_deref().unwrap_or(table);
        self.check_address(table, row)?;
        let new = table.store(values.to_vec())?;
        self.atomically(|call| {
            let view = call.chosen_by();
            let old = {
                let (core, context) = (call.core, call.context);
                let locator = Locator { keys: Some(&table.key_columns), ..locator(row, &view) };
                heap::update(core, context, &table.segment, call.transaction()?, locator, &new)
            };
            let old = call.or_restart(row, &view, old)?;
            for index in table.indexes.iter().filter(|index| !index.same_key(&old, &new)) {
                call.add_entry(index, &new, row)?;
            }
            Ok(())
        })
    }

    /// Index entries stay until purge: older views may still look for them.
    pub(super) fn delete(&mut self, table: &Table, row: RowId) -> Result<()> {
        let newest = self.enter(table)?;
        let table = newest.as_deref().unwrap_or(table);
        self.check_address(table, row)?;
        self.atomically(|call| {
            let view = call.chosen_by();
            let old = {
                let (core, context) = (call.core, call.context);
                heap::delete(core, context, &table.segment, call.transaction()?, locator(row, &view))
            };
            call.or_restart(row, &view, old).map(|_| ())
        })
    }

    pub(super) fn get(&mut self, table: &Table, row: RowId) -> Result<Option<Row>> {
        let _reading = table.lock.read(self.asker(table.object), self.cursors)?;
        let newest = self.newest(table)?;
        let table = newest.as_deref().unwrap_or(table);
        if !self.is_of(table, row)? {
            return Ok(None);
        }
        self.context.count(Statistic::TableFetchByRowid, 1);
        heap::get(self.core, self.context, row, &self.view().view)
    }

    pub(super) fn get_for_update(&mut self, table: &Table, row: RowId) -> Result<Option<Row>> {
        let newest = self.enter(table)?;
        let table = newest.as_deref().unwrap_or(table);
        if !self.is_of(table, row)? {
            return Ok(None);
        }
        self.atomically(|call| {
            let (core, context) = (call.core, call.context);
            heap::lock(core, context, &table.segment, call.transaction()?, row)
        })
    }

    /// An address may come from anywhere; what is on no page of the table is no row.
    fn is_of(&self, table: &Table, row: RowId) -> Result<bool> {
        self.core.space.contains(self.core, self.context, &table.segment, row.page)
    }

    fn check_address(&self, table: &Table, row: RowId) -> Result<()> {
        if self.is_of(table, row)? { Ok(()) } else { Err(EngineError::NoSuchRow(row)) }
    }

    /// The view by which the open statement has chosen a row, its own changes included. Without a statement the newest version of the
    /// row will do.
    fn chosen_by(&self) -> Option<View> {
        self.in_statement().then(|| self.view_with_own())
    }

    /// The heap says that there is no such row when somebody else has changed it and committed since the view was made. Then the
    /// statement must look again, and may find that the row is none of its business any more.
    fn or_restart(&self, row: RowId, view: &Option<View>, done: Result<Row>) -> Result<Row> {
        match (done, view) {
            (Err(EngineError::NoSuchRow(at)), Some(view)) => {
                let was_there = heap::get(self.core, self.context, row, &view.view)?.is_some();
                Err(if was_there { EngineError::StatementRestart } else { EngineError::NoSuchRow(at) })
            }
            (done, _) => done,
        }
    }
}

fn locator(row: RowId, view: &Option<View>) -> Locator<'_> {
    Locator { seen_by: view.as_ref().map(|view| &view.view), ..Locator::from(row) }
}

/// Rows on their way into a table.
#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    bytes: usize,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Takes rows until it is full or there are none.
    fn fill(&mut self, table: &Table, rows: &mut dyn Iterator<Item = Row>) -> Result<()> {
        while !self.is_full() {
            let Some(row) = rows.next() else { break };
            let row = table.store(row)?;
            self.bytes += row.iter().map(size_of_value).sum::<usize>();
            self.rows.push(row);
        }
        Ok(())
    }
}

fn size_of_value(value: &Value) -> usize {
    let content = match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value>() + content
}
