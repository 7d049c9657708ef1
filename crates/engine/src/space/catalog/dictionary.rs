//! The catalog's own tables: what they are, and what their rows mean.
//!
//! ```text
//! obj$    object, name, type (1 table, 2 index), data_object, tablespace, header, pool + 3 × flash cache     one row for each table and index
//! col$    object, position, name, kind, declared, not_null                                 one row for each column
//! ind$    object, table, unique                                                            one row for each index
//! icol$   object, position, column                                                         one row for each of its columns
//! ```
//! `header` is `PageId::to_u64`; `data_object` with `tablespace` and `header` is the segment.

use crate::cache::Pool;
use crate::flash::FlashUse;
use crate::page::PageId;
use crate::space::create::bootstrap_header;
use crate::space::lock::TableLock;
use crate::space::{Column, ColumnKind, SYSTEM, Segment, Table};
use crate::value::{Row, Value};
use std::sync::atomic::AtomicBool;

/// Object numbers of the catalog's tables.
pub const OBJ: u32 = 1;
pub const COL: u32 = 2;
pub const IND: u32 = 3;
pub const ICOL: u32 = 4;

/// Their segments: fixed, as nothing could say where they are.
pub const fn segment(object: u32) -> Segment {
    Segment { object, header: bootstrap_header(object - 1), tablespace: SYSTEM }
}

/// Descriptions of the catalog's tables, in the order of their numbers.
pub fn tables() -> [Table; 4] {
    use ColumnKind::{Integer, Text};
    let table = |object: u32, name: &str, columns: &[(&str, ColumnKind)]| Table {
        object,
        name: name.to_owned(),
        columns: columns.iter().map(|(name, kind)| Column::new(name, *kind)).collect(),
        indexes: Vec::new(),
        segment: segment(object),
        tablespace: "SYSTEM".to_owned(),
        pool: Pool::Default,
        flash: FlashUse::Default,
        dictionary: true,
        key_columns: Vec::new(),
        lock: TableLock::new(),
        stale: AtomicBool::new(false),
    };
    [
        table(
            OBJ,
            "obj$",
            &[
                ("object", Integer),
                ("name", Text),
                ("type", Integer),
                ("data_object", Integer),
                ("tablespace", Integer),
                ("header", Integer),
                ("pool", Integer),
            ],
        ),
        table(
            COL,
            "col$",
            &[
                ("object", Integer),
                ("position", Integer),
                ("name", Text),
                ("kind", Integer),
                ("declared", Text),
                ("not_null", Integer),
            ],
        ),
        table(IND, "ind$", &[("object", Integer), ("table", Integer), ("unique", Integer)]),
        table(ICOL, "icol$", &[("object", Integer), ("position", Integer), ("column", Integer)]),
    ]
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Table = 1,
    Index = 2,
}

/// A row of `obj$`.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectRow {
    pub object: u32,
    pub name: String,
    pub kind: Kind,
    pub segment: Segment,
    pub pool: Pool,
    pub flash: FlashUse,
}

/// A row of `col$`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnRow {
    pub object: u32,
    pub position: usize,
    pub column: Column,
}

/// A row of `ind$`.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexRow {
    pub object: u32,
    pub table: u32,
    pub unique: bool,
}

/// A row of `icol$`.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexColumnRow {
    pub object: u32,
    pub position: usize,
    pub column: usize,
}

const POOLS: [Pool; 3] = [Pool::Default, Pool::Keep, Pool::Recycle];
const FLASH: [FlashUse; 3] = [FlashUse::Default, FlashUse::Keep, FlashUse::None];

fn int(n: impl TryInto<i64>) -> Value {
    Value::Integer(n.try_into().unwrap_or_else(|_| unreachable!("catalog numbers are small")))
}

/// Reads the values of a row in order; none when one is of another kind or out of range.
struct Reader(std::vec::IntoIter<Value>);

impl Reader {
    fn int<T: TryFrom<i64>>(&mut self) -> Option<T> {
        match self.0.next()? {
            Value::Integer(n) => T::try_from(n).ok(),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        match self.0.next()? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn flag(&mut self) -> Option<bool> {
        self.int::<u8>().map(|n| n != 0)
    }
}

/// What is a row of the catalog.
pub trait CatalogRow: Sized {
    /// As it is stored.
    fn to_row(&self) -> Row;
    /// Back; none when it is damaged.
    fn from_row(row: Row) -> Option<Self>;
}

impl CatalogRow for ObjectRow {
    fn to_row(&self) -> Row {
        let pool = POOLS.iter().position(|pool| *pool == self.pool).expect("all pools are listed");
        let flash = FLASH.iter().position(|flash| *flash == self.flash).expect("all are listed");
        vec![
            int(self.object),
            Value::Text(self.name.clone()),
            int(self.kind as u8),
            int(self.segment.object),
            int(self.segment.tablespace),
            // A file number has 16 bits, so the sign may be set.
            Value::Integer(self.segment.header.to_u64() as i64),
            // Both in one number, so that a database of before the flash cache reads as default.
            int((pool + POOLS.len() * flash) as u64),
        ]
    }

    fn from_row(row: Row) -> Option<Self> {
        let mut row = Reader(row.into_iter());
        let (object, name) = (row.int()?, row.text()?);
        let kind = [Kind::Table, Kind::Index].into_iter().nth(row.int::<usize>()?.checked_sub(1)?)?;
        let (data_object, tablespace) = (row.int()?, row.int()?);
        let header = PageId::from_u64(row.int::<i64>()? as u64);
        let both = row.int::<usize>()?;
        let (pool, flash) = (POOLS[both % POOLS.len()], *FLASH.get(both / POOLS.len())?);
        let segment = Segment { object: data_object, header, tablespace };
        Some(Self { object, name, kind, segment, pool, flash })
    }
}

impl CatalogRow for ColumnRow {
    fn to_row(&self) -> Row {
        let kind =
            ColumnKind::ALL.iter().position(|kind| *kind == self.column.kind).expect("all kinds are listed");
        vec![
            int(self.object),
            int(self.position as u64),
            Value::Text(self.column.name.clone()),
            int(kind),
            Value::Text(self.column.declared.clone()),
            int(u8::from(self.column.not_null)),
        ]
    }

    fn from_row(row: Row) -> Option<Self> {
        let mut row = Reader(row.into_iter());
        let (object, position, name) = (row.int()?, row.int()?, row.text()?);
        let kind = *ColumnKind::ALL.get(row.int::<usize>()?)?;
        let column = Column { name, kind, declared: row.text()?, not_null: row.flag()? };
        Some(Self { object, position, column })
    }
}

impl CatalogRow for IndexRow {
    fn to_row(&self) -> Row {
        vec![int(self.object), int(self.table), int(u8::from(self.unique))]
    }

    fn from_row(row: Row) -> Option<Self> {
        let mut row = Reader(row.into_iter());
        Some(Self { object: row.int()?, table: row.int()?, unique: row.flag()? })
    }
}

impl CatalogRow for IndexColumnRow {
    fn to_row(&self) -> Row {
        vec![int(self.object), int(self.position), int(self.column)]
    }

    fn from_row(row: Row) -> Option<Self> {
        let mut row = Reader(row.into_iter());
        Some(Self { object: row.int()?, position: row.int()?, column: row.int()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: CatalogRow + PartialEq + std::fmt::Debug>(row: T) {
        let mut stored = row.to_row();
        assert_eq!(T::from_row(stored.clone()).as_ref(), Some(&row));
        stored.pop();
        assert_eq!(T::from_row(stored), None, "a value is missing");
    }

    #[test]
    fn rows_come_back_as_they_went() {
        let header = PageId { file: u16::MAX, block: u32::MAX };
        let segment = Segment { object: 700, header, tablespace: 3 };
        check(ObjectRow {
            object: 7,
            name: "T".into(),
            kind: Kind::Index,
            segment,
            pool: Pool::Recycle,
            flash: FlashUse::Keep,
        });
        let declared = "VARCHAR2(100)".into();
        let column = Column { name: "c".into(), kind: ColumnKind::Any, declared, not_null: true };
        check(ColumnRow { object: 7, position: 999, column });
        check(IndexRow { object: 8, table: 7, unique: true });
        check(IndexColumnRow { object: 8, position: 0, column: 12 });
    }

    #[test]
    fn the_catalogs_tables_are_where_everybody_expects_them() {
        for (n, table) in tables().iter().enumerate() {
            assert_eq!(table.object, n as u32 + 1);
            assert_eq!(table.segment.header, PageId { file: 1, block: 8 * (n as u32 + 1) });
        }
    }
}
