//! How a row struct becomes a table: one description serves schema, writing, reading and export.
//!
//! `table!` declares a struct and implements [`Table`] for it; [`Cell`] says how one Rust type is kept in a column.
//! Every table starts with `id`, the order of writing. A table `of "phase_id"` has that column next: its rows belong to
//! a row of another table, and the caller hands the owner over beside the row.

use rusqlite::types::{FromSqlError, FromSqlResult, Value, ValueRef};
use rusqlite::{Connection, Params, Row};

/// What a column holds, beyond SQLite's own type; the exports need it to give booleans, JSON and bytes their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer,
    /// A `u64`, kept as the `i64` of the same bits: SQLite has no unsigned type.
    Unsigned,
    Real,
    /// 0 or 1.
    Boolean,
    /// Text that is a JSON value.
    Json,
    Blob,
}

#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub nullable: bool,
}

/// A table, free of its row type.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub name: &'static str,
    pub owner: Option<&'static str>,
    pub columns: &'static [Column],
}

impl Description {
    /// Every column with its kind, in the order of the file: `id`, the owner if any, the row.
    pub fn all_columns(&self) -> impl Iterator<Item = Column> {
        let key = |name| Column { name, kind: Kind::Integer, nullable: false };
        [Some("id"), self.owner].into_iter().flatten().map(key).chain(self.columns.iter().copied())
    }

    /// `SELECT` of every column; names are quoted because `case` is a word of SQL.
    pub fn select(&self, rest: &str) -> String {
        let names: Vec<String> = self.all_columns().map(|c| format!("\"{}\"", c.name)).collect();
        format!("SELECT {} FROM {} {rest}", names.join(", "), self.name)
    }

    fn insert(&self) -> String {
        let names: Vec<String> = self.all_columns().skip(1).map(|c| format!("\"{}\"", c.name)).collect();
        let marks = vec!["?"; names.len()].join(", ");
        format!("INSERT INTO {} ({}) VALUES ({marks})", self.name, names.join(", "))
    }
}

/// A row struct and its table. Implemented by `table!` alone.
pub trait Table: Sized {
    const TABLE: Description;
    fn store(&self) -> Vec<Value>;
    /// `first` is the index of the row's first column, after `id` and owner.
    fn load(row: &Row, first: usize) -> rusqlite::Result<Self>;
}

/// Adds one row; answers its id. `owner` is given exactly when the table has one.
pub(crate) fn insert<T: Table>(db: &Connection, owner: Option<i64>, row: &T) -> rusqlite::Result<i64> {
    assert_eq!(owner.is_some(), T::TABLE.owner.is_some(), "table {}: owner missing or extra", T::TABLE.name);
    let values = owner.map(Value::Integer).into_iter().chain(row.store());
    db.prepare_cached(&T::TABLE.insert())?.insert(rusqlite::params_from_iter(values))
}

/// One row as it was read: the row, and the ids that stand beside it.
pub(crate) struct Stored<T> {
    pub id: i64,
    pub owner: Option<i64>,
    pub row: T,
}

/// The rows for which `rest` (a WHERE clause, or nothing) holds, in the order of writing.
pub(crate) fn select<T: Table>(
    db: &Connection,
    rest: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<Stored<T>>> {
    let mut statement = db.prepare(&T::TABLE.select(&format!("{rest} ORDER BY id")))?;
    let first = 1 + usize::from(T::TABLE.owner.is_some());
    let owner = |row: &Row| T::TABLE.owner.map(|_| row.get(1)).transpose();
    statement
        .query_map(params, |row| {
            Ok(Stored { id: row.get(0)?, owner: owner(row)?, row: T::load(row, first)? })
        })?
        .collect()
}

/// How one Rust type is kept in one column.
pub(crate) trait Cell: Sized {
    const KIND: Kind;
    const NULLABLE: bool = false;
    fn store(&self) -> Value;
    fn load(value: ValueRef) -> FromSqlResult<Self>;
}

impl Cell for String {
    const KIND: Kind = Kind::Text;
    fn store(&self) -> Value {
        Value::Text(self.clone())
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Cell for i64 {
    const KIND: Kind = Kind::Integer;
    fn store(&self) -> Value {
        Value::Integer(*self)
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        value.as_i64()
    }
}

impl Cell for u32 {
    const KIND: Kind = Kind::Integer;
    fn store(&self) -> Value {
        Value::Integer(i64::from(*self))
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        let wide = value.as_i64()?;
        Self::try_from(wide).map_err(|_| FromSqlError::OutOfRange(wide))
    }
}

impl Cell for u64 {
    const KIND: Kind = Kind::Unsigned;
    fn store(&self) -> Value {
        Value::Integer(self.cast_signed())
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        value.as_i64().map(i64::cast_unsigned)
    }
}

impl Cell for bool {
    const KIND: Kind = Kind::Boolean;
    fn store(&self) -> Value {
        Value::Integer(i64::from(*self))
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        value.as_i64().map(|n| n != 0)
    }
}

/// Not-a-number is NULL in the file: SQLite keeps no NaN, and a run must not die of a 0/0.
impl Cell for f64 {
    const KIND: Kind = Kind::Real;
    const NULLABLE: bool = true;
    fn store(&self) -> Value {
        if self.is_nan() { Value::Null } else { Value::Real(*self) }
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        if value == ValueRef::Null { Ok(Self::NAN) } else { value.as_f64() }
    }
}

impl Cell for Vec<u8> {
    const KIND: Kind = Kind::Blob;
    fn store(&self) -> Value {
        Value::Blob(self.clone())
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        value.as_blob().map(<[u8]>::to_vec)
    }
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const NULLABLE: bool = true;
    fn store(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::store)
    }
    fn load(value: ValueRef) -> FromSqlResult<Self> {
        if value == ValueRef::Null { Ok(None) } else { T::load(value).map(Some) }
    }
}

/// Types kept as JSON text, which SQLite's own `json_each` and `->>` take apart.
macro_rules! json_cell {
    ($($type:ty),*) => {$(
        impl Cell for $type {
            const KIND: Kind = Kind::Json;
            fn store(&self) -> Value {
                Value::Text(serde_json::json!(self).to_string())
            }
            fn load(value: ValueRef) -> FromSqlResult<Self> {
                serde_json::from_str(value.as_str()?).map_err(FromSqlError::other)
            }
        }
    )*};
}
json_cell!(serde_json::Value, Vec<usize>, Vec<u64>, Vec<(String, String, String)>);

/// Declares a row struct with public fields, and its table with one column for each field.
macro_rules! table {
    (
        $(#[$about:meta])*
        struct $row:ident in $name:literal $(of $owner:literal)? {
            $( $(#[$meaning:meta])* $field:ident: $type:ty, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            $( $(#[$meaning])* pub $field: $type, )*
        }

        impl $crate::table::Table for $row {
            const TABLE: $crate::table::Description = $crate::table::Description {
                name: $name,
                owner: [$(Some($owner),)? None][0],
                columns: &[$( $crate::table::Column {
                    name: stringify!($field),
                    kind: <$type as $crate::table::Cell>::KIND,
                    nullable: <$type as $crate::table::Cell>::NULLABLE,
                } ),*],
            };
            fn store(&self) -> Vec<rusqlite::types::Value> {
                vec![$( $crate::table::Cell::store(&self.$field) ),*]
            }
            fn load(row: &rusqlite::Row, first: usize) -> rusqlite::Result<Self> {
                let mut columns = first..;
                let mut next = || columns.next().expect("column numbers do not end");
                Ok(Self { $( $field: $crate::table::cell(row, next())? ),* })
            }
        }
    };
}
pub(crate) use table;

/// One cell of `row`; the error names the column.
pub(crate) fn cell<T: Cell>(row: &Row, index: usize) -> rusqlite::Result<T> {
    let value = row.get_ref(index)?;
    T::load(value)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(index, value.data_type(), Box::new(e)))
}
