//! SQLite as the SQL front end of the engine.
//!
//! What is here: [`script`] cuts a text into statements, [`statement`] understands those that SQLite does not know,
//! [`rewrite`] turns Oracle's spelling into SQLite's for the rest, [`plan`] decides how a table is reached, [`column`]
//! says what a declared type means, [`view`] names the columns of v$ and dba_ views, [`function`] computes what Oracle's
//! functions compute. All of this is pure: text and values in, text and values out. No storage of its own, no clock.
#![forbid(unsafe_code)]

pub mod column;
mod error;
pub mod function;
pub mod plan;
pub mod rewrite;
pub mod script;
pub mod sqlite;
pub mod statement;
pub mod token;
pub mod view;

pub use error::SqlError;
