//! Case `scan` on a server: a large table when no cache holds it, and another one, which its cache holds whole.
//!
//! No server has direct path reads that a user could ask for, so that way is left out.

use super::{create_source, table_bytes};
use crate::LabError;
use crate::database::inconsistent;
use crate::database::scan::{Rows, Scanned, Way};
use crate::server::{Connection, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, clock};

/// What a server can do of [`Way::ALL`].
pub const WAYS: [Way; 2] = [Way::Scattered, Way::Cached];

const fn table(way: Way) -> &'static str {
    match way {
        Way::DirectPath | Way::Scattered | Way::Again => "scanned",
        Way::Cached => "cached",
    }
}

/// Makes a table of about `bytes`, and one of half the cache at most.
///
/// # Errors
/// What the server says.
pub fn prepare(server: &Server, bytes: u64, cache: Bytes) -> Result<Rows, LabError> {
    let rows = Rows::of(bytes, cache);
    let mut session = server.connect("prepare")?;
    for way in WAYS {
        create_source(server.kind(), &mut *session, table(way), rows.of_way(way))?;
        if server.kind() == crate::server::Kind::Postgres {
            // Hint bits are written by whoever reads first: no scan shall write.
            session.execute(&format!("vacuum analyze {}", table(way)))?;
        }
    }
    Ok(rows)
}

/// Scans once; caches are as they are.
///
/// # Errors
/// What the server says; a count that is not that of `rows`; [`LabError::Cancelled`].
pub fn scan(
    server: &Server,
    session: &mut dyn Connection,
    way: Way,
    rows: Rows,
    cancel: &AtomicBool,
) -> Result<Scanned, LabError> {
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    let began = clock::now();
    let counted = session.number(&format!("select count(*) from {}", table(way)))? as u64;
    let elapsed = clock::now() - began;
    let expected = rows.of_way(way);
    if counted != expected {
        return Err(inconsistent("scan", format!("{expected} rows are {counted} by COUNT(*), {way}")));
    }
    Ok(Scanned { way, elapsed, rows: counted, bytes: table_bytes(server, session, table(way))? })
}
