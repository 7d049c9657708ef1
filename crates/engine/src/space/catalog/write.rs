//! Rows of the catalog, written by DDL in its transaction.

use super::dictionary::{self, CatalogRow, ColumnRow, IndexColumnRow, IndexRow, Kind, ObjectRow};
use crate::heap;
use crate::instance::Core;
use crate::space::table::CatalogRows;
use crate::space::{Index, Table};
use crate::transaction::Transaction;
use crate::value::{Row, RowId};
use crate::{Context, Result};

/// A DDL transaction at work on the catalog's tables.
pub struct Writer<'a> {
    /// The instance.
    pub core: &'a Core,
    /// The session.
    pub context: &'a Context,
    /// Its transaction.
    pub transaction: &'a mut Transaction,
}

impl Writer<'_> {
    /// Adds a table's rows, without those of its indexes.
    ///
    /// # Errors
    /// What storage says.
    pub fn add_table(&mut self, table: &Table) -> Result<CatalogRows> {
        let columns = table.columns.iter().enumerate().map(|(position, column)| {
            ColumnRow { object: table.object, position, column: column.clone() }.to_row()
        });
        let columns = self.insert(dictionary::COL, columns.collect())?;
        let object = self.insert(dictionary::OBJ, vec![of_table(table).to_row()])?;
        Ok(CatalogRows { object: object.first().copied(), columns, ..CatalogRows::default() })
    }

    /// Adds an index's rows.
    ///
    /// # Errors
    /// What storage says.
    pub fn add_index(&mut self, index: &Index) -> Result<CatalogRows> {
        let columns = index.columns.iter().enumerate().map(|(position, column)| {
            IndexColumnRow { object: index.object, position, column: *column }.to_row()
        });
        let index_columns = self.insert(dictionary::ICOL, columns.collect())?;
        let row = IndexRow { object: index.object, table: index.table, unique: index.unique };
        let row = self.insert(dictionary::IND, vec![row.to_row()])?;
        let object = self.insert(dictionary::OBJ, vec![of_index(index).to_row()])?;
        let (object, index) = (object.first().copied(), row.first().copied());
        Ok(CatalogRows { object, index, index_columns, columns: Vec::new() })
    }

    /// Deletes all rows of a table or an index.
    ///
    /// # Errors
    /// What storage says.
    pub fn delete(&mut self, rows: &CatalogRows) -> Result<()> {
        for (object, addresses) in [
            (dictionary::OBJ, rows.object.as_slice()),
            (dictionary::COL, &rows.columns),
            (dictionary::IND, rows.index.as_slice()),
            (dictionary::ICOL, &rows.index_columns),
        ] {
            for address in addresses {
                heap::delete(
                    self.core,
                    self.context,
                    &dictionary::segment(object),
                    self.transaction,
                    *address,
                )?;
            }
        }
        Ok(())
    }

    /// Notes the new segment or pool of a table.
    ///
    /// # Errors
    /// What storage says.
    pub fn move_table(&mut self, rows: &CatalogRows, table: &Table) -> Result<()> {
        self.update_object(rows, of_table(table))
    }

    /// Notes the new segment of an index.
    ///
    /// # Errors
    /// What storage says.
    pub fn move_index(&mut self, rows: &CatalogRows, index: &Index) -> Result<()> {
        self.update_object(rows, of_index(index))
    }

    fn update_object(&mut self, rows: &CatalogRows, row: ObjectRow) -> Result<()> {
        let address = rows.object.expect("every object has a row");
        let segment = dictionary::segment(dictionary::OBJ);
        heap::update(self.core, self.context, &segment, self.transaction, address, &row.to_row())?;
        Ok(())
    }

    fn insert(&mut self, object: u32, rows: Vec<Row>) -> Result<Vec<RowId>> {
        let mut pieces = heap::Pieces::new(self.core.cache.block_bytes());
        rows.iter().try_for_each(|row| pieces.push(row))?;
        let mut addresses = Vec::new();
        let segment = dictionary::segment(object);
        heap::insert(self.core, self.context, &segment, self.transaction, &mut pieces, &mut |address| {
            addresses.push(address);
        })?;
        Ok(addresses)
    }
}

fn of_table(table: &Table) -> ObjectRow {
    ObjectRow {
        object: table.object,
        name: table.name.clone(),
        kind: Kind::Table,
        segment: table.segment,
        pool: table.pool,
        flash: table.flash,
    }
}

fn of_index(index: &Index) -> ObjectRow {
    ObjectRow {
        object: index.object,
        name: index.name.clone(),
        kind: Kind::Index,
        segment: index.segment,
        pool: crate::cache::Pool::Default,
        flash: crate::flash::FlashUse::Default,
    }
}
