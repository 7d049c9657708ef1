//! The workloads of a comparison, done by sessions of the embedded database.

use super::plan::Phases;
use super::stay::Terms;
use super::visit::Workload;
use crate::LabError;
use crate::database::drive::{self, Pace, Performance};
use crate::database::interval::{Interval, Moment};
use crate::database::order_entry::{self, Scale, Think};
use crate::database::random_read::{self, Rows, Shape};
use crate::database::{Database, Places, Sizes, commit, inconsistent, scan, segment_bytes, source};
use crate::factor::Setup;
use crate::workload::Trial;
use engine::{AlterSystem, Instance, Session, Shutdown};
use host::counters::{Snapshot, Thread, Watch};
use io::{Access, File};
use record::Writer;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed, clock};

/// Slice of the time lines.
const SLICE: Nanos = Nanos::millis(100);
/// The cache is a small part of the data on purpose: storage is under test.
const CACHE_SHARE: u64 = 32;
/// A hot region is this many times the cache: the database misses it, a page cache holds it.
const HOT_CACHES: u64 = 4;
/// Rounds of counting in `growth-scan-warm`.
const WARM_COUNTS: u32 = 4;
/// What the transactions of `mixed` work on.
const ORDERS: Scale = Scale::small(2);
/// Transactions that bring it into a cache that holds it, before it is measured.
const WARMING: Nanos = Nanos::millis(1_000);
/// The table that grows.
const GROWING: &str = "T";

/// A database with its tables.
pub struct Embedded {
    database: Database,
    /// The file of USERS.
    pub data_file: PathBuf,
    /// Size of the table that is read at random.
    pub data_bytes: u64,
    /// Rows of the tables of case `scan`, where they were made.
    scanned: Option<scan::Rows>,
    /// Whether the table of rows to read is there.
    reads: bool,
    seed: Seed,
}

/// Whether a workload reads from the table of rows.
fn reads_rows(workload: Workload) -> bool {
    matches!(workload, Workload::ReadColdOne | Workload::ReadCold | Workload::ReadCached)
}

impl Embedded {
    /// Bytes of its files under `setup` for `data` of each table that is read, and as much growth as a comparison plans.
    pub fn sizes(data: Bytes, setup: &Setup) -> Sizes {
        let quarter = Bytes((data.0 / 4).clamp(16 << 20, 64 << 20));
        Sizes {
            block: setup.block,
            cache: setup.cache.unwrap_or(Bytes((data.0 / CACHE_SHARE).max(8 << 20))),
            data: Bytes(data.0 + data.0 / 2),
            undo: quarter,
            redo: setup.redo.unwrap_or(quarter),
            redo_groups: 3,
        }
    }

    /// Makes the database for `setup` and fills it with what `workloads` need.
    ///
    /// # Errors
    /// What the engine says.
    pub fn create(
        places: Places,
        data: Bytes,
        setup: &Setup,
        workloads: &[Workload],
        seed: Seed,
        cancel: &AtomicBool,
    ) -> Result<Self, LabError> {
        let data_file = places.data_file();
        let database = Database::create(places, &Self::sizes(data, setup), &[], seed)?;
        let instance = database.open(&setup.configuration())?;
        let mut session = instance.session("prepare")?;
        let wanted = |of: fn(Workload) -> bool| workloads.iter().any(|w| of(*w));
        if wanted(reads_rows) {
            random_read::prepare(&mut session, data.0 / setup.block.0, setup.block, seed, cancel)?;
        }
        if workloads.contains(&Workload::Mixed) {
            order_entry::prepare(&mut session, ORDERS, seed, cancel)?;
        }
        let cache = Self::sizes(data, setup).cache;
        let scanned = wanted(Workload::scans)
            .then(|| scan::prepare(&mut session, data.0, cache, seed, cancel))
            .transpose()?;
        drop(session);
        instance.shutdown(Shutdown::Immediate)?;
        Ok(Self { database, data_file, data_bytes: data.0, scanned, reads: wanted(reads_rows), seed })
    }

    /// Opens the database as `setup` says.
    ///
    /// # Errors
    /// What the engine says.
    pub(super) fn enter<'v>(&'v self, setup: &Setup, terms: Terms<'v>) -> Result<EmbeddedStay<'v>, LabError> {
        let writers = setup.writers.map(|n| ("db_writer_processes".to_owned(), n.to_string()));
        let cache = setup.cache.map(|bytes| ("db_cache_size".to_owned(), bytes.0.to_string()));
        let parameters: Vec<_> = writers.into_iter().chain(cache).collect();
        let instance = self.database.open_with(&setup.configuration(), &parameters)?;
        let mut session = instance.session("compare")?;
        let rows = self.reads.then(|| random_read::open(&mut session)).transpose()?;
        Ok(EmbeddedStay {
            embedded: self,
            terms,
            instance,
            session,
            rows,
            grown: 0,
            before: None,
            interval: None,
            watch: Watch::default(),
        })
    }
}

/// The database while a configuration is in force.
pub struct EmbeddedStay<'v> {
    embedded: &'v Embedded,
    terms: Terms<'v>,
    instance: Instance,
    session: Session,
    rows: Option<Rows>,
    /// Rows of the growing table.
    grown: u64,
    /// When the last preparation was over.
    before: Option<Moment>,
    /// What was counted during the last workload: over its window, or over all of it where it has none.
    interval: Option<Interval>,
    /// The devices below, read with everything else.
    watch: Watch,
}

impl EmbeddedStay<'_> {
    /// Brings about what the workload begins with: caches emptied where it is cold, the growing table made anew.
    pub(super) fn prepare(&mut self, workload: Workload, seed: Seed) -> Result<(), LabError> {
        match workload {
            Workload::ReadColdOne | Workload::ReadCold => self.empty_caches()?,
            Workload::Mixed if self.holds_orders() => {
                let terms = self.playing(WARMING, seed);
                order_entry::run(&self.instance, self.terms.sessions, Think::None, false, terms)?;
            }
            Workload::Mixed => self.empty_caches()?,
            Workload::ReadCached => {
                self.empty_caches()?;
                // Read once: a page cache then holds it, the database's own cache cannot.
                for id in 0..self.hot_rows()? {
                    rows(&self.rows)?.read(&mut self.session, id)?;
                }
            }
            Workload::GrowthWrite => {
                self.drop_growing()?;
                let count = (self.terms.growth.0 / 2 / source::ROW_BYTES).max(100);
                source::create(&mut self.session, GROWING, count, self.embedded.seed, self.terms.cancel)?;
                self.grown = count;
                self.empty_caches()?;
            }
            Workload::GrowthScanCold | Workload::ScanDirectPath | Workload::ScanScattered => {
                self.empty_caches()?;
            }
            Workload::CommitOne | Workload::Commit => self.drop_growing()?,
            Workload::ScanCached => {
                let rows = self.scanned()?;
                scan::warm(&mut self.session, scan::Way::Cached, rows, self.terms.cancel)?;
            }
            Workload::GrowthScanWarm
            | Workload::Writers
            | Workload::WritersExtend
            | Workload::BatchRead
            | Workload::BatchOverwrite
            | Workload::BatchExtend => {}
        }
        self.session.alter_system(&AlterSystem::Checkpoint)?;
        self.before = Some(Moment::of(&self.instance, &[Thread::this()], &self.watch));
        Ok(())
    }

    /// Runs it.
    pub(super) fn run(&mut self, workload: Workload, seed: Seed) -> Result<Trial, LabError> {
        let phases = self.terms.phases;
        self.interval = None;
        let reads = workload.reads_only();
        let mut trial = match workload {
            Workload::ReadColdOne => self.random(1, rows(&self.rows)?.count(), phases.read_cold_one, seed)?,
            Workload::ReadCold => {
                self.random(self.terms.sessions, rows(&self.rows)?.count(), phases.read_cold, seed)?
            }
            Workload::ReadCached => {
                self.random(self.terms.sessions, self.hot_rows()?, phases.read_cached, seed)?
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
        // Requests before and after the window count too: so do the device's counters that they are held against.
        let before = self.before.take().expect("a workload is prepared before it runs");
        let whole = before.until_now(&self.instance, &[Thread::this()], &self.watch);
        let files = whole.files();
        self.interval.get_or_insert(whole);
        (trial.requests, trial.request_bytes) =
            if reads { (files.reads, files.read_bytes) } else { (files.writes, files.write_bytes) };
        trial.flags = self.flags()?;
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

    /// The machine at the edges of the last run's window.
    pub(super) fn machine(&self) -> Option<(&Snapshot, &Snapshot)> {
        self.interval.as_ref().map(Interval::snapshots)
    }

    /// Writes waits, statistics and files of the last run.
    pub(super) fn store(&self, phase: i64, writer: &mut Writer) -> Result<(), LabError> {
        self.interval.as_ref().map_or(Ok(()), |interval| interval.store(phase, writer))
    }

    /// Shuts the database down.
    pub(super) fn leave(self) -> Result<(), LabError> {
        drop(self.session);
        self.instance.shutdown(Shutdown::Immediate)?;
        Ok(())
    }

    /// Ends it after an error; what is not written yet is left to recovery, or goes with the database.
    pub(super) fn abandon(self) {
        self.session.shutdown_abort();
        drop(self.session);
        // The error that led here is the one to tell.
        let _ = self.instance.shutdown(Shutdown::Abort);
    }

    fn hot_rows(&self) -> Result<u64, LabError> {
        let frames = self.instance.core.cache.frame_count() as u64;
        Ok((frames * HOT_CACHES).min(rows(&self.rows)?.count() / 2).max(1))
    }

    /// Whether the cache holds all that `mixed` works on, as that of a database does that has been open for a while.
    fn holds_orders(&self) -> bool {
        let frames = self.instance.core.cache.frame_count() as u64;
        frames * u64::from(self.terms.block_bytes) >= 2 * ORDERS.bytes()
    }

    /// Nothing of the data is in the database's cache or the page cache afterwards.
    fn empty_caches(&mut self) -> Result<(), LabError> {
        self.session.alter_system(&AlterSystem::Checkpoint)?;
        self.session.alter_system(&AlterSystem::FlushBufferCache)?;
        let plain = Access { read: true, write: false, direct: false, dsync: false };
        for file in self.instance.datafile() {
            File::open(&file.name, plain)?.drop_cache()?;
        }
        Ok(())
    }

    fn drop_growing(&mut self) -> Result<(), LabError> {
        if self.session.tables().iter().any(|table| table.name == GROWING) {
            self.session.drop_table(GROWING)?;
        }
        Ok(())
    }

    /// The open flags of the data file, as the kernel shows them.
    fn flags(&self) -> Result<String, LabError> {
        let name = &self.embedded.data_file;
        let open = self.instance.core.files.all().into_iter().find(|file| file.path == *name);
        let file =
            open.and_then(|file| file.disk().ok()?.as_any()).and_then(|any| any.downcast::<File>().ok());
        match file {
            Some(file) => Ok(file.flags_in_force()?.text),
            None => Ok(String::new()),
        }
    }

    fn playing(&self, measure: Nanos, seed: Seed) -> drive::Terms<'_> {
        drive::Terms {
            settle: self.terms.phases.settle,
            measure,
            slice: SLICE,
            pace: Pace::Closed,
            seed,
            cancel: self.terms.cancel,
            watch: &self.watch,
        }
    }

    fn random(&mut self, sessions: u32, span: u64, measure: Nanos, seed: Seed) -> Result<Trial, LabError> {
        let shape = Shape { sessions, batch: 1, span: 0..span };
        let terms = self.playing(measure, seed);
        let all = random_read::run(&self.instance, rows(&self.rows)?, &shape, terms)?;
        let trial = self.counted(all);
        // Every row that was read was compared with what it should be.
        Ok(Trial { verified: trial.ops, ..trial })
    }

    fn commit(&mut self, sessions: u32, measure: Nanos, seed: Seed) -> Result<Trial, LabError> {
        let all = commit::run(&self.instance, sessions, self.playing(measure, seed))?;
        Ok(self.counted(all))
    }

    fn order_entry(&mut self, seed: Seed) -> Result<Trial, LabError> {
        let terms = self.playing(self.terms.phases.mixed, seed);
        // Audited once, at the end of a run of the case itself; here it would take longer than the workload.
        let all = order_entry::run(&self.instance, self.terms.sessions, Think::None, false, terms)?;
        Ok(self.counted(all))
    }

    fn counted(&mut self, all: Performance) -> Trial {
        self.interval = Some(all.interval);
        all.trial
    }

    /// `INSERT INTO t SELECT * FROM t; COMMIT;`
    fn grow(&mut self) -> Result<Trial, LabError> {
        let table = self.session.table(GROWING)?;
        let before = segment_bytes(&mut self.session, &table)?;
        let began = clock::now();
        let mut scan = self.session.scan(&table)?;
        let added = self.session.insert_select(&table, &mut scan)?;
        drop(scan);
        self.session.commit()?;
        let ended = clock::now();
        if added != self.grown {
            return Err(inconsistent("growth", format!("{} rows doubled by {added}", self.grown)));
        }
        self.grown += added;
        let bytes = segment_bytes(&mut self.session, &table)? - before;
        Ok(Trial::whole(began..ended, &[ended - began], bytes))
    }

    /// The rows to scan; a workload that scans them was announced when the database was made.
    fn scanned(&self) -> Result<scan::Rows, LabError> {
        self.embedded.scanned.ok_or_else(|| inconsistent("scan", "the tables were not made".into()))
    }

    /// One pass over the table of case `scan`.
    fn scan(&mut self, way: scan::Way) -> Result<Trial, LabError> {
        let began = clock::now();
        let rows = self.scanned()?;
        let scanned = scan::run(&mut self.session, way, rows, self.terms.cancel)?;
        Ok(Trial::whole(began..began + scanned.elapsed, &[scanned.elapsed], scanned.bytes))
    }

    fn count(&mut self, times: u32) -> Result<Trial, LabError> {
        let table = self.session.table(GROWING)?;
        let bytes = segment_bytes(&mut self.session, &table)?;
        let (began, mut latencies) = (clock::now(), Vec::new());
        for _ in 0..times {
            let start = clock::now();
            let counted = self.session.count(&table)?;
            latencies.push(clock::now() - start);
            if counted != self.grown {
                return Err(inconsistent("growth", format!("{} rows are {counted} by COUNT(*)", self.grown)));
            }
        }
        Ok(Trial::whole(began..clock::now(), &latencies, u64::from(times) * bytes))
    }
}

/// The rows to read; a workload that reads them was announced when the database was made.
fn rows(rows: &Option<Rows>) -> Result<&Rows, LabError> {
    rows.as_ref().ok_or_else(|| inconsistent("random-read", "the table was not made".into()))
}
