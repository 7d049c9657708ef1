//! What a run leaves: one SQLite file with all evidence and no opinions.
//!
//! A [`Writer`] fills the file while the run goes; a [`Reader`] opens it afterwards, or beside a run that still goes, or
//! after a `kill -9`. Rows are only ever added, so whatever was written stays. The rows are ordinary structs ([`rows`]);
//! each is described once (`table.rs`), and from that description come the schema, the writing, the reading and the
//! exports. Every table, column and unit is explained in `docs/record.md`; `docs/method.md` section 9 says why these
//! are kept. Nothing here judges or formats for people.
#![forbid(unsafe_code)]

mod chain;
mod error;
mod export;
mod reader;
pub mod rows;
pub mod runs;
mod schema;
mod table;
mod writer;

pub use chain::ChainLink;
pub use error::RecordError;
pub use export::{export_csv, export_json};
pub use reader::{Reader, Visit};
pub use rows::*;
pub use schema::SCHEMA_VERSION;
pub use serde_json as json;
pub use writer::{Beside, Writer};
