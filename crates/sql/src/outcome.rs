//! What a statement gives: rows to a [`Sink`], and an [`Outcome`].

use std::ops::ControlFlow;

/// A value of a result, as long as its row is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating point number.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

impl Cell<'_> {
    /// To keep.
    pub fn to_value(self) -> engine::Value {
        match self {
            Self::Null => engine::Value::Null,
            Self::Integer(number) => engine::Value::Integer(number),
            Self::Real(number) => engine::Value::Real(number),
            Self::Text(text) => engine::Value::Text(text.to_owned()),
            Self::Blob(bytes) => engine::Value::Blob(bytes.to_owned()),
        }
    }
}

/// Takes a result as it comes.
pub trait Sink {
    /// Names of the result's columns; once, before the first row.
    fn columns(&mut self, names: &[String]);
    /// A row. `Break`: no more of them.
    fn row(&mut self, row: &[Cell<'_>]) -> ControlFlow<()>;
}

/// Lets everything fall.
pub struct Nowhere;

impl Sink for Nowhere {
    fn columns(&mut self, _names: &[String]) {}

    fn row(&mut self, _row: &[Cell<'_>]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Keeps a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// All rows.
    pub rows: Vec<engine::Row>,
}

impl Sink for Kept {
    fn columns(&mut self, names: &[String]) {
        self.columns = names.to_vec();
    }

    fn row(&mut self, row: &[Cell<'_>]) -> ControlFlow<()> {
        self.rows.push(row.iter().map(|cell| cell.to_value()).collect());
        ControlFlow::Continue(())
    }
}

/// A column of a table or view, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Refuses NULL.
    pub not_null: bool,
    /// Its type as declared; empty where there is none.
    pub declared: String,
}

/// What a statement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gave so many rows.
    Rows(u64),
    /// It changed so many rows; what it did to them (`inserted`, `updated`, `deleted`).
    Changed(&'static str, u64),
    /// It was done; a sentence.
    Done(&'static str),
    /// Understood, but there was nothing to do; a sentence that says why.
    Nothing(&'static str),
}
