//! Values, rows, and where a row lives.

use crate::page::PageId;
use std::fmt;

/// One value of a row: SQLite's five kinds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating point number, never NaN.
    Real(f64),
    /// UTF-8.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// One value per column, in the table's order.
pub type Row = Vec<Value>;

/// Where a row lives; stays the same for the row's whole life, also when an update moves its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// The page that has its slot.
    pub page: PageId,
    /// The slot.
    pub slot: u16,
}

impl RowId {
    /// As one number for SQLite: file 15 bits, block 32 bits, slot 16 bits; never negative.
    pub const fn to_i64(self) -> i64 {
        ((self.page.file as i64) << 48) | ((self.page.block as i64) << 16) | self.slot as i64
    }

    /// Back.
    pub const fn from_i64(n: i64) -> Self {
        Self { page: PageId { file: (n >> 48) as u16, block: (n >> 16) as u32 }, slot: n as u16 }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} block {} slot {}", self.page.file, self.page.block, self.slot)
    }
}
