//! Case `scan`: the same table by direct path reads, by scattered reads into the cache, and from the cache.

use super::{inconsistent, segment_bytes, set, source};
use crate::LabError;
use engine::{AlterSystem, Session};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, Seed, clock};

/// How a full scan gets its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Past the cache, in large asynchronous requests.
    DirectPath,
    /// Into an empty cache, many blocks with one request.
    Scattered,
    /// A second time, when the cache holds what it could.
    Cached,
}

impl Way {
    /// All, in the order in which they are run.
    pub const ALL: [Self; 3] = [Self::DirectPath, Self::Scattered, Self::Cached];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DirectPath => "direct path",
            Self::Scattered => "scattered",
            Self::Cached => "cached",
        })
    }
}

/// One scan.
#[derive(Clone, Copy, Debug)]
pub struct Scanned {
    /// How.
    pub way: Way,
    /// How long.
    pub elapsed: Nanos,
    /// Rows counted.
    pub rows: u64,
    /// Bytes of the segment.
    pub bytes: u64,
}

/// The table.
pub const TABLE: &str = "SCANNED";

/// Makes the table of about `bytes`; its number of rows is the result.
///
/// # Errors
/// What the engine says.
pub fn prepare(session: &mut Session, bytes: u64, seed: Seed, cancel: &AtomicBool) -> Result<u64, LabError> {
    let rows = (bytes / source::ROW_BYTES).max(100);
    source::create(session, TABLE, rows, seed, cancel)?;
    Ok(rows)
}

/// Scans once.
///
/// # Errors
/// What the engine says; a count that is not `expected`; [`LabError::Cancelled`].
pub fn run(session: &mut Session, way: Way, expected: u64, cancel: &AtomicBool) -> Result<Scanned, LabError> {
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    let table = session.table(TABLE)?;
    let direct = if way == Way::DirectPath { "always" } else { "never" };
    session.alter_system(&set("_serial_direct_read", direct))?;
    if way != Way::Cached {
        session.alter_system(&AlterSystem::FlushBufferCache)?;
    }
    let began = clock::now();
    let rows = session.count(&table)?;
    let elapsed = clock::now() - began;
    if rows != expected {
        return Err(inconsistent("scan", format!("{expected} rows are {rows} by COUNT(*), {way}")));
    }
    Ok(Scanned { way, elapsed, rows, bytes: segment_bytes(session, &table)? })
}
