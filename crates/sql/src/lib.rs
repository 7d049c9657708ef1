//! SQLite as the SQL front end of the engine.
//!
//! Start with [`Connection`]. What is understood before anything is done is pure, text and values in, text and values out:
//! [`script`] cuts a text into statements, [`statement`] understands those that SQLite does not know, [`direct`] those that
//! need no SQLite, [`rewrite`] turns Oracle's spelling into SQLite's for the rest, [`plan`] decides how a table is reached,
//! [`mod@column`] says what a declared type means, [`view`] names the columns of v$ and dba_ views, [`function`] computes what
//! Oracle's functions compute. `virtual_table` is how SQLite reads and changes the engine's tables. A
//! [`RunRecord`] asks what a run has left. No storage of its own, no
//! clock.
#![deny(unsafe_code)]

pub mod column;
mod connection;
pub mod direct;
mod error;
mod explain;
pub mod function;
mod link;
mod outcome;
pub mod plan;
pub mod rewrite;
mod run_record;
pub mod script;
pub mod sqlite;
pub mod statement;
mod step;
pub mod token;
pub mod view;
mod virtual_table;

pub use connection::{Connection, Prepared};
pub use error::{Error, SqlError};
pub use outcome::{Cell, Described, Kept, Nowhere, Outcome, Sink};
pub use run_record::{OpenError, RunRecord};
pub use step::Interrupter;

/// A name in quotes for SQLite.
fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
