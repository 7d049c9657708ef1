//! The one file of this crate with `unsafe`: rusqlite's traits of virtual tables are unsafe to implement, because SQLite
//! reads the begin of what they return as its own structs.
//!
//! Nothing is decided here: each call is handed to safe code behind [`Shape`], [`Writable`] and [`Rows`]. Why it is done so,
//! and how to undo it, is in `docs/decisions/0006-virtual-tables-unsafe.md`.

use super::{Rows, Shape, Writable};
use crate::link::Link;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, CreateVTab, Filters, IndexInfo, Inserts, UpdateVTab, Updates, VTab, VTabConnection, VTabCursor,
    VTabKind, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Error, Result};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

/// A virtual table as SQLite holds it.
#[repr(C)]
pub struct Table<T> {
    base: sqlite3_vtab,
    table: T,
}

/// A cursor on one as SQLite holds it.
#[repr(C)]
pub struct Cursor<R> {
    base: sqlite3_vtab_cursor,
    rows: R,
}

// SAFETY: the trait asks that the struct is `repr(C)` and begins with a `sqlite3_vtab`, which only SQLite and rusqlite touch
// after the default value was put there: `base` is private and never named again. Nothing in `table` points into SQLite, and
// cursors own what they need (`Shape::rows` gives a value without a borrow), so the order in which SQLite closes cursors and
// tables does not matter here. A panic ends the process at the border: the callers are `extern "C"`.
unsafe impl<T: Shape> VTab<'_> for Table<T> {
    type Aux = Arc<Link>;
    type Cursor = Cursor<T::Rows>;

    fn connect(
        _db: &mut VTabConnection,
        link: Option<&Arc<Link>>,
        _module: &[u8],
        _database: &[u8],
        name: &[u8],
        _arguments: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let link = link.ok_or_else(|| Error::ModuleError("registered without its connection".into()))?;
        let table = T::connect(link, std::str::from_utf8(name)?)?;
        let declaration = CString::new(table.declaration())?;
        Ok((Cow::Owned(declaration), Self { base: sqlite3_vtab::default(), table }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        self.table.plan(info).map(|()| true)
    }

    fn open(&mut self) -> Result<Cursor<T::Rows>> {
        Ok(Cursor { base: sqlite3_vtab_cursor::default(), rows: self.table.rows() })
    }
}

// SAFETY: as above, with `sqlite3_vtab_cursor` as the first field.
unsafe impl<R: Rows> VTabCursor for Cursor<R> {
    fn filter(&mut self, _number: c_int, plan: Option<&str>, arguments: &Filters<'_>) -> Result<()> {
        self.rows.begin(plan.unwrap_or_default(), &mut arguments.iter())
    }

    fn next(&mut self) -> Result<()> {
        self.rows.next()
    }

    fn eof(&self) -> bool {
        self.rows.is_at_end()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let value: ValueRef<'_> = self.rows.value(usize::try_from(column).unwrap_or(usize::MAX));
        context.set_result(ToSqlOutput::Borrowed(value))
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.rows.address())
    }
}

impl<T: Shape> CreateVTab<'_> for Table<T> {
    const KIND: VTabKind = VTabKind::Default;
}

impl<T: Writable> UpdateVTab<'_> for Table<T> {
    fn delete(&mut self, address: ValueRef<'_>) -> Result<()> {
        self.table.delete(address.as_i64()?)
    }

    fn insert(&mut self, values: &Inserts<'_>) -> Result<i64> {
        let mut values = values.iter().skip(1);
        let address = values.next().unwrap_or(ValueRef::Null);
        self.table.insert(address, &mut values)
    }

    fn update(&mut self, values: &Updates<'_>) -> Result<()> {
        let mut values = values.iter();
        let (old, new) = (values.next().unwrap_or(ValueRef::Null), values.next().unwrap_or(ValueRef::Null));
        self.table.update(old.as_i64()?, new, &mut values)
    }
}
