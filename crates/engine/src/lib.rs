//! The embedded database: real commits, real cache, real waits, with the I/O anatomy of Oracle.
//!
//! Start with [`Instance`] (create, open, shut down) and [`Session`] (tables, rows, transactions). Below them, top down:
//! `heap` and `btree` (rows and keys in pages), `transaction` (undo, locks, read views), `space` (segments, extents,
//! catalog), `change` (the one way to change a page), `cache` (buffers, database writers, checkpoint), `redo` (log
//! buffer, log writer, groups, recovery), `files` (control file, data files), `page` (layout, checksum). `instance` holds
//! them together.
//!
//! No file, socket or clock is touched here: all I/O goes through [`io::Storage`], all time through [`units::Clock`].
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as engine;

pub mod btree;
pub mod cache;
pub mod change;
mod context;
mod error;
pub mod files;
pub mod flash;
pub mod heap;
pub mod instance;
pub mod page;
pub mod parameter;
pub mod redo;
mod row;
mod session;
pub mod sort;
pub mod space;
pub mod statistics;
#[cfg(test)]
mod testing;
pub mod transaction;
mod value;

pub use context::{Background, Context, Environment};
pub use error::EngineError;
pub use instance::{Applied, Core, Foundation, Instance, InstanceConfig, Placement, Shutdown};
pub use page::{Lsn, PageId};
pub use session::{AlterSystem, Cursor, Savepoint, Scan, SegmentRow, Session};
pub use space::{Column, ColumnKind, Index, IndexDef, Table, TableDef};
pub use value::{Row, RowId, Value};

/// What every act of the engine returns.
pub type Result<T> = std::result::Result<T, EngineError>;
