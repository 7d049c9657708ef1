//! Case `scan`: a table by direct path reads and by scattered reads into the cache, and another one, which the cache holds
//! whole, from the cache.

use super::{inconsistent, segment_bytes, set, source, stop_if};
use crate::LabError;
use engine::{AlterSystem, Session};
use std::fmt;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed, clock};

/// How a full scan gets its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Past the cache, in large asynchronous requests.
    DirectPath,
    /// Into an empty cache, many blocks with one request.
    Scattered,
    /// From the cache alone: of a table of its own, that fits.
    Cached,
    /// As scattered, through the caches as they are; not a way of case `scan`.
    Again,
}

impl Way {
    /// Those of case `scan`, in the order in which they are run.
    pub const ALL: [Self; 3] = [Self::DirectPath, Self::Scattered, Self::Cached];

    const fn table(self) -> &'static str {
        match self {
            Self::DirectPath | Self::Scattered | Self::Again => TABLE,
            Self::Cached => CACHED_TABLE,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::DirectPath => "direct path",
            Self::Scattered => "scattered",
            Self::Cached => "cached",
            Self::Again => "again",
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

/// The table that need not fit the cache.
const TABLE: &str = "SCANNED";
/// The one that must.
const CACHED_TABLE: &str = "CACHED";

/// Rows of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    all: u64,
    cached: u64,
}

impl Rows {
    /// Of a table of about `bytes`, and one of half the cache at most.
    pub fn of(bytes: u64, cache: Bytes) -> Self {
        let rows_in = |bytes: u64| (bytes / source::ROW_BYTES).max(100);
        Self { all: rows_in(bytes), cached: rows_in(cached_bytes(bytes, cache)) }
    }

    /// Of the table that is scanned this way.
    pub fn of_way(self, way: Way) -> u64 {
        if way == Way::Cached { self.cached } else { self.all }
    }
}

/// Bytes of the table that the cache holds, beside another one of `bytes`.
pub fn cached_bytes(bytes: u64, cache: Bytes) -> u64 {
    bytes.min(cache.0 / 2)
}

/// Makes a table of about `bytes`, and one of half the cache at most.
///
/// # Errors
/// What the engine says.
pub fn prepare(
    session: &mut Session,
    bytes: u64,
    cache: Bytes,
    seed: Seed,
    cancel: &AtomicBool,
) -> Result<Rows, LabError> {
    let rows = Rows::of(bytes, cache);
    source::create(session, TABLE, rows.all, seed, cancel)?;
    source::create(session, CACHED_TABLE, rows.cached, seed, cancel)?;
    Ok(rows)
}

/// Makes the large table alone, of about `bytes`: for [`Way::Again`].
///
/// # Errors
/// What the engine says.
pub fn prepare_large(
    session: &mut Session,
    bytes: u64,
    seed: Seed,
    cancel: &AtomicBool,
) -> Result<Rows, LabError> {
    let rows = Rows { cached: 0, ..Rows::of(bytes, Bytes(0)) };
    source::create(session, TABLE, rows.all, seed, cancel)?;
    Ok(rows)
}

/// Before the scans of one way, not measured: the cache is to hold the table of [`Way::Cached`].
///
/// # Errors
/// As [`run`].
pub fn warm(session: &mut Session, way: Way, rows: Rows, cancel: &AtomicBool) -> Result<(), LabError> {
    if way == Way::Cached {
        // Otherwise the other table's blocks would stand in the way.
        session.alter_system(&AlterSystem::FlushBufferCache)?;
        run(session, way, rows, cancel)?;
    }
    Ok(())
}

/// Scans once.
///
/// # Errors
/// What the engine says; a count that is not that of `rows`; [`LabError::Cancelled`].
pub fn run(session: &mut Session, way: Way, rows: Rows, cancel: &AtomicBool) -> Result<Scanned, LabError> {
    stop_if(cancel, session)?;
    let expected = rows.of_way(way);
    let table = session.table(way.table())?;
    let direct = if way == Way::DirectPath { "always" } else { "never" };
    session.alter_system(&set("_serial_direct_read", direct))?;
    if matches!(way, Way::DirectPath | Way::Scattered) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Background, Environment, Instance, InstanceConfig};
    use io::Storage;
    use io::sim::{Promises, SimStorage};
    use std::path::Path;
    use units::Clock;

    fn blocks_read(session: &Session) -> u64 {
        let rows = session.core().sysstat();
        rows.iter().find(|row| row.name == "physical reads").expect("a statistic").value
    }

    /// Each way does what its name says, with a cache that does not hold the table: the first two read all of it each time, the
    /// last one nothing.
    #[test]
    fn cached_scans_read_nothing() {
        let storage = SimStorage::new(Promises::default(), Seed(1));
        storage.create_directory(Path::new("/db")).expect("a directory");
        let environment = Environment {
            storage: storage.handle(),
            clock: Clock::steps(),
            background: Background::Inline,
            seed: Seed(1),
        };
        let cache = Bytes::mib(2);
        let config = InstanceConfig::new("/db").with("db_cache_size", &cache.0.to_string());
        let instance = Instance::create(environment, config).expect("a database");
        let mut session = instance.session("test").expect("a session");
        let go_on = AtomicBool::new(false);
        let rows = prepare(&mut session, 6 << 20, cache, Seed(1), &go_on).expect("tables");
        for way in Way::ALL {
            warm(&mut session, way, rows, &go_on).expect("a scan");
            for pass in 1..=3 {
                let before = blocks_read(&session);
                let scanned = run(&mut session, way, rows, &go_on).expect("a scan");
                let bytes = (blocks_read(&session) - before) * 8192;
                match way {
                    Way::Cached => assert_eq!(bytes, 0, "pass {pass}"),
                    _ => assert!(bytes * 10 > scanned.bytes * 9, "{way}, pass {pass}: {bytes} bytes"),
                }
            }
        }
    }
}
