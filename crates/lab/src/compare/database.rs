//! The workloads of a comparison, done by sessions of a database: ours ([`Embedded`]) or a server ([`Served`]).

use super::embedded::Embedded;
use super::plan::Phases;
use super::served::Served;
use super::stay::Terms;
use super::visit::Workload;
use crate::LabError;
use crate::database::drive::{self, Pace, Performance};
use crate::database::evidence::Observer;
use crate::database::interval::{Interval, Moment};
use crate::database::open::OpenDatabase;
use crate::database::order_entry::{Scale, Think};
use crate::database::random_read::Shape;
use crate::database::{inconsistent, scan, source};
use crate::factor::Setup;
use crate::server::sampled::Sampled;
use crate::server::sampler::Sampler;
use crate::stage::Proof;
use crate::verify::Verification;
use crate::workload::Trial;
use host::counters::{Snapshot, Watch};
use record::Writer;
use std::path::{Path, PathBuf};
use units::{Bytes, Nanos, Seed, clock};

/// Slice of the time lines.
const SLICE: Nanos = Nanos::millis(100);
/// The cache is a small part of the data on purpose: storage is under test.
pub const CACHE_SHARE: u64 = 32;
/// A hot region is this many times the cache: the database misses it, a page cache holds it.
const HOT_CACHES: u64 = 4;
/// Rounds of counting in `growth-scan-warm`.
const WARM_COUNTS: u32 = 4;
/// What the transactions of `mixed` work on.
pub const ORDERS: Scale = Scale::small(2);
/// Transactions that bring it into a cache that holds it, before it is measured.
const WARMING: Nanos = Nanos::millis(1_000);
/// The same, where some configuration has a flash cache: that is filled by what leaves the buffer cache.
const WARMING_FLASH: Nanos = Nanos::millis(5_000);
/// The table that grows.
const GROWING: &str = "T";

/// A database with its tables, shut down.
pub struct Filled {
    /// Which.
    pub database: Kind,
    /// The file or directory of its data.
    pub data_file: PathBuf,
    /// Size of the table that is read at random.
    pub data_bytes: u64,
    /// Rows of the tables of case `scan`, where they were made.
    pub scanned: Option<scan::Rows>,
    /// Where the growing table's rows come from.
    pub seed: Seed,
    /// What was read back of the filling.
    pub seen: Option<Verification>,
}

/// Whose database it is.
pub enum Kind {
    /// Ours.
    Embedded(Embedded),
    /// A server.
    Served(Served),
}

impl Filled {
    /// Opens it as `setup` says.
    ///
    /// # Errors
    /// What the database says.
    pub(super) fn enter<'v>(&'v self, setup: &Setup, terms: Terms<'v>) -> Result<DatabaseStay<'v>, LabError> {
        let open: Box<dyn OpenDatabase + 'v> = match &self.database {
            Kind::Embedded(embedded) => Box::new(embedded.open(Bytes(self.data_bytes), setup)?),
            Kind::Served(served) => Box::new(served.open(setup, self.data_bytes, terms.cancel)?),
        };
        let sampler = open.sample()?;
        Ok(DatabaseStay {
            open,
            sampler,
            sampled: Sampled::default(),
            seed: self.seed,
            scanned: self.scanned,
            terms,
            grown: 0,
            before: None,
            interval: None,
            watch: Watch::default(),
        })
    }

    /// The file or directory of its data, and its size.
    pub fn data(&self) -> (&Path, u64) {
        (&self.data_file, self.data_bytes)
    }
}

/// The database while a configuration is in force.
pub struct DatabaseStay<'v> {
    open: Box<dyn OpenDatabase + 'v>,
    /// Looks at the sessions of a database that does not count their waits itself.
    sampler: Option<Sampler>,
    /// What it saw of the last workload.
    sampled: Sampled,
    seed: Seed,
    scanned: Option<scan::Rows>,
    terms: Terms<'v>,
    /// Rows of the growing table.
    grown: u64,
    /// When the last preparation was over.
    before: Option<Moment>,
    /// What was counted during the last workload: over its window, or over all of it where it has none.
    interval: Option<Interval>,
    /// The devices below, read with everything else.
    watch: Watch,
}

impl DatabaseStay<'_> {
    /// Brings about what the workload begins with: caches emptied where it is cold, the growing table made anew.
    pub(super) fn prepare(&mut self, workload: Workload, seed: Seed) -> Result<(), LabError> {
        match workload {
            Workload::ReadColdOne | Workload::ReadCold | Workload::ReadMoved => self.empty_caches()?,
            // A cache that holds it all, or one beside which a flash cache is filled, is as that of a database that has been open for a while.
            Workload::Mixed if self.holds_orders() || self.terms.filled_caches => {
                if self.terms.filled_caches {
                    self.empty_caches()?;
                }
                let warming = if self.terms.filled_caches { WARMING_FLASH } else { WARMING };
                let terms = playing(&self.terms, &self.watch, warming, seed);
                self.open.order_entry(self.terms.sessions, Think::None, false, terms)?;
            }
            Workload::Mixed => self.empty_caches()?,
            Workload::ReadCached => {
                self.empty_caches()?;
                // Read once: a page cache then holds it, the database's own cache cannot.
                let hot = self.hot_rows()?;
                self.open.touch(hot)?;
            }
            Workload::GrowthWrite => {
                self.open.drop_table(GROWING)?;
                let count = (self.terms.growth.0 / 2 / source::ROW_BYTES).max(100);
                self.open.create_source(GROWING, count, self.seed, self.terms.cancel)?;
                self.grown = count;
                self.empty_caches()?;
            }
            Workload::GrowthScanCold
            | Workload::ScanDirectPath
            | Workload::ScanScattered
            | Workload::FlashPassOne => {
                self.empty_caches()?;
            }
            Workload::CommitOne | Workload::Commit => self.open.drop_table(GROWING)?,
            Workload::ScanCached => {
                // Otherwise the other table's blocks would stand in the way.
                self.empty_caches()?;
                self.open.scan(scan::Way::Cached, self.scanned()?, self.terms.cancel)?;
            }
            Workload::FlashPassTwo | Workload::FlashPassThree => {
                self.before = Some(self.open.moment(&self.watch));
                return Ok(());
            }
            Workload::GrowthScanWarm
            | Workload::Writers
            | Workload::WritersExtend
            | Workload::BatchRead
            | Workload::BatchOverwrite
            | Workload::BatchExtend => {}
        }
        self.open.checkpoint()?;
        self.before = Some(self.open.moment(&self.watch));
        Ok(())
    }

    /// Runs it.
    pub(super) fn run(&mut self, workload: Workload, seed: Seed) -> Result<Trial, LabError> {
        let phases = self.terms.phases;
        self.interval = None;
        let done = match workload {
            Workload::ReadColdOne => self.random(1, None, phases.read_cold_one, seed)?,
            Workload::ReadCold | Workload::ReadMoved => {
                self.random(self.terms.sessions, None, phases.read_cold, seed)?
            }
            Workload::ReadCached => {
                let hot = self.hot_rows()?;
                self.random(self.terms.sessions, Some(hot), phases.read_cached, seed)?
            }
            Workload::GrowthWrite => self.grow()?,
            Workload::GrowthScanCold => self.count(1)?,
            Workload::GrowthScanWarm => self.count(WARM_COUNTS)?,
            Workload::CommitOne => self.commit(1, phases.commit_one, seed)?,
            Workload::Commit => self.commit(self.terms.sessions, phases.commit, seed)?,
            Workload::Mixed => self.order_entry(seed)?,
            Workload::ScanDirectPath => self.scan(scan::Way::DirectPath)?,
            Workload::ScanScattered => self.scan(scan::Way::Scattered)?,
            Workload::ScanCached => self.scan(scan::Way::Cached)?,
            Workload::FlashPassOne | Workload::FlashPassTwo | Workload::FlashPassThree => {
                self.scan(scan::Way::Again)?
            }
            Workload::Writers
            | Workload::WritersExtend
            | Workload::BatchRead
            | Workload::BatchOverwrite
            | Workload::BatchExtend => {
                return Err(LabError::Target(format!(
                    "{} is a workload of --target files",
                    workload.about().name
                )));
            }
        };
        let Done { mut trial, least_bytes } = done;
        // Requests before and after the window count too: so do the device's counters that they are held against.
        let before = self.before.take().expect("a workload is prepared before it runs");
        let whole = Interval { before, after: self.open.moment(&self.watch) };
        (trial.requests, trial.request_bytes) = match whole.files() {
            Some(files) if workload.reads_only() => (files.reads, files.read_bytes),
            Some(files) => (files.writes, files.write_bytes),
            None => (0, least_bytes),
        };
        self.interval.get_or_insert(whole);
        self.sampled = self.sampler.as_mut().map(|s| s.take(&trial.window)).unwrap_or_default();
        trial.flags = self.open.flags()?;
        Ok(trial)
    }

    /// How long its workloads are measured.
    pub(super) fn phases(&mut self) -> &mut Phases {
        &mut self.terms.phases
    }

    /// Names the devices that are read at the edges of each window.
    pub(super) fn watch(&mut self, watch: Watch) {
        self.watch = watch;
    }

    /// What the database itself says is in force.
    pub(super) fn proof(&mut self) -> Result<Vec<Proof>, LabError> {
        self.open.proof()
    }

    /// Looks at the database's buffers from now on, where it shows them.
    pub(super) fn observe(&self) -> Option<Observer> {
        self.open.observe()
    }

    /// The machine at the edges of the last run's window.
    pub(super) fn machine(&self) -> Option<(&Snapshot, &Snapshot)> {
        self.interval.as_ref().map(Interval::snapshots)
    }

    /// Writes waits, statistics and files of the last run.
    pub(super) fn store(&self, phase: i64, writer: &mut Writer) -> Result<(), LabError> {
        self.interval.as_ref().map_or(Ok(()), |interval| interval.store(phase, writer))?;
        self.sampled.store(phase, writer)
    }

    /// Shuts the database down.
    pub(super) fn leave(self) -> Result<Option<Verification>, LabError> {
        drop(self.sampler);
        self.open.shut_down(self.terms.cancel)
    }

    /// Ends it after an error.
    pub(super) fn abandon(self) {
        drop(self.sampler);
        self.open.abandon();
    }

    fn empty_caches(&mut self) -> Result<(), LabError> {
        self.open.empty_caches(self.terms.cancel)
    }

    fn hot_rows(&self) -> Result<u64, LabError> {
        let (blocks, _) = self.open.cache();
        Ok((blocks * HOT_CACHES).min(self.open.rows()? / 2).max(1))
    }

    /// Whether the cache holds all that `mixed` works on, as that of a database does that has been open for a while.
    fn holds_orders(&self) -> bool {
        let (blocks, bytes) = self.open.cache();
        blocks * bytes >= 2 * ORDERS.bytes()
    }

    /// Of the first `hot` rows, or of all of them, each once.
    fn random(
        &mut self,
        sessions: u32,
        hot: Option<u64>,
        measure: Nanos,
        seed: Seed,
    ) -> Result<Done, LabError> {
        let rows = self.open.rows()?;
        let shape = Shape { sessions, batch: 1, span: 0..hot.unwrap_or(rows) };
        let all = self.open.read(&shape, playing(&self.terms, &self.watch, measure, seed))?;
        let (_, block) = self.open.cache();
        // A hot row may be in the cache.
        let least = if hot.is_some() { 0 } else { all.played[0] * block };
        let done = self.counted(all, least);
        // Every row that was read was compared with what it should be.
        Ok(Done { trial: Trial { verified: done.trial.ops, ..done.trial }, ..done })
    }

    fn commit(&mut self, sessions: u32, measure: Nanos, seed: Seed) -> Result<Done, LabError> {
        let all = self.open.commit(sessions, playing(&self.terms, &self.watch, measure, seed))?;
        let least = all.trial.bytes;
        Ok(self.counted(all, least))
    }

    fn order_entry(&mut self, seed: Seed) -> Result<Done, LabError> {
        let terms = playing(&self.terms, &self.watch, self.terms.phases.mixed, seed);
        // Audited once, at the end of a run of the case itself; here it would take longer than the workload.
        let all = self.open.order_entry(self.terms.sessions, Think::None, false, terms)?;
        Ok(self.counted(all, 0))
    }

    fn counted(&mut self, all: Performance, least_bytes: u64) -> Done {
        self.interval = Some(all.interval);
        Done { trial: all.trial, least_bytes }
    }

    /// `INSERT INTO t SELECT * FROM t; COMMIT;`
    fn grow(&mut self) -> Result<Done, LabError> {
        let before = self.open.table_bytes(GROWING)?;
        let began = clock::now();
        self.open.double(GROWING)?;
        let ended = clock::now();
        self.grown *= 2;
        let bytes = self.open.table_bytes(GROWING)? - before;
        Ok(Done { trial: Trial::whole(began..ended, &[ended - began], bytes), least_bytes: bytes })
    }

    /// The rows to scan; a workload that scans them was announced when the database was made.
    fn scanned(&self) -> Result<scan::Rows, LabError> {
        self.scanned.ok_or_else(|| inconsistent("scan", "the tables were not made".into()))
    }

    /// One pass over the table of case `scan`.
    fn scan(&mut self, way: scan::Way) -> Result<Done, LabError> {
        let began = clock::now();
        let rows = self.scanned()?;
        let scanned = self.open.scan(way, rows, self.terms.cancel)?;
        let cached = matches!(way, scan::Way::Cached | scan::Way::Again);
        let least_bytes = if cached { 0 } else { scanned.bytes };
        let trial = Trial::whole(began..began + scanned.elapsed, &[scanned.elapsed], scanned.bytes);
        Ok(Done { trial, least_bytes })
    }

    fn count(&mut self, times: u32) -> Result<Done, LabError> {
        let bytes = self.open.table_bytes(GROWING)?;
        let (began, mut latencies) = (clock::now(), Vec::new());
        for _ in 0..times {
            let start = clock::now();
            let counted = self.open.count(GROWING)?;
            latencies.push(clock::now() - start);
            if counted != self.grown {
                return Err(inconsistent("growth", format!("{} rows are {counted} by COUNT(*)", self.grown)));
            }
        }
        let trial = Trial::whole(began..clock::now(), &latencies, u64::from(times) * bytes);
        Ok(Done { trial, least_bytes: if times == 1 { bytes } else { 0 } })
    }
}

/// A workload that was run.
struct Done {
    trial: Trial,
    /// Bytes that the device must have moved at the least; zero where a cache may have had them. Of a database that does not count its
    /// own requests this is what the device is held against.
    least_bytes: u64,
}

fn playing<'t>(terms: &Terms<'t>, watch: &'t Watch, measure: Nanos, seed: Seed) -> drive::Terms<'t> {
    drive::Terms {
        settle: terms.phases.settle,
        measure,
        slice: SLICE,
        pace: Pace::Closed,
        seed,
        cancel: terms.cancel,
        watch,
    }
}

/// The size of a cache beside `data`, where none was asked for.
pub fn cache(data: Bytes, setup: &Setup) -> Bytes {
    setup.cache.unwrap_or(Bytes((data.0 / CACHE_SHARE).max(8 << 20)))
}
