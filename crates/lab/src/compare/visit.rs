//! One visit: a configuration is put in force, and every workload runs once under it.

use super::configuration::Configuration;
use super::plan::Phases;
use crate::LabError;
use crate::load::{self, LoadSpec, Pattern};
use crate::workload::commit::{self, Log, LogCall, LogFile};
use crate::workload::growth::Bulk;
use crate::workload::mixed::{self, Mixed};
use crate::workload::{Trial, Window};
use io::{Access, Api, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed};

/// File number in the stamps of the data file.
pub const DATA_FILE_ID: u64 = 1;
/// File number in the stamps of the growing file.
const GROWTH_FILE_ID: u64 = 3;
/// Request size of bulk writes and scans.
pub const BULK_BYTES: u32 = 1 << 20;
/// Slice of the time lines.
const SLICE: Nanos = Nanos::millis(100);

/// The workloads of a visit in the order in which they run. The order is fixed: each prepares what it needs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Single-block reads by one session, nothing cached.
    ReadColdOne,
    /// Single-block reads by all sessions, nothing cached.
    ReadCold,
    /// Single-block reads of a region that a page cache would hold.
    ReadCached,
    /// Case `growth`: bulk write.
    GrowthWrite,
    /// Case `growth`: scan after the page cache was dropped.
    GrowthScanCold,
    /// Case `growth`: the same scan again.
    GrowthScanWarm,
    /// One session commits.
    CommitOne,
    /// All sessions commit.
    Commit,
    /// Reads, changes and commits, with dirty-page batches.
    Mixed,
    /// Many writers on one file.
    Writers,
}

/// What a workload is called, asks and measures.
pub struct About {
    /// Key in the record.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Unit of its rate.
    pub metric: &'static str,
    /// Gets a verdict of its own on the first page.
    pub headline: bool,
}

impl Workload {
    /// All, in running order.
    pub const ALL: [Self; 10] = [
        Self::ReadColdOne,
        Self::ReadCold,
        Self::ReadCached,
        Self::GrowthWrite,
        Self::GrowthScanCold,
        Self::GrowthScanWarm,
        Self::CommitOne,
        Self::Commit,
        Self::Mixed,
        Self::Writers,
    ];

    /// Its description.
    pub fn about(self) -> About {
        let about =
            |name, title, question, metric, headline| About { name, title, question, metric, headline };
        match self {
            Self::ReadColdOne => about(
                "read-cold-1",
                "single-block reads, cold, one session",
                "How long does one session wait for a block that no cache holds?",
                "reads/s",
                false,
            ),
            Self::ReadCold => about(
                "read-cold",
                "single-block reads, cold",
                "How many blocks per second do the sessions read that no cache holds?",
                "reads/s",
                true,
            ),
            Self::ReadCached => about(
                "read-cached",
                "single-block reads, hot region",
                "What does the file system's page cache give to blocks that the database's own cache missed?",
                "reads/s",
                true,
            ),
            Self::GrowthWrite => about(
                "growth-write",
                "growth: bulk write",
                "How fast does a table grow, commit included?",
                "MB/s",
                true,
            ),
            Self::GrowthScanCold => about(
                "growth-scan-cold",
                "growth: full scan, cold",
                "How fast is it scanned when no cache holds it?",
                "MB/s",
                true,
            ),
            Self::GrowthScanWarm => about(
                "growth-scan-warm",
                "growth: full scan, second pass",
                "How fast is it scanned again?",
                "MB/s",
                false,
            ),
            Self::CommitOne => about(
                "commit-1",
                "redo commits, one session",
                "How long does a lone commit take?",
                "commits/s",
                false,
            ),
            Self::Commit => about(
                "commit",
                "redo commits",
                "How many commits per second do the sessions get through one log writer?",
                "commits/s",
                true,
            ),
            Self::Mixed => about(
                "mixed",
                "transactions with dirty-page batches",
                "How many transactions (4 reads, 2 changes, 1 commit) per second, while dirty pages are written?",
                "transactions/s",
                true,
            ),
            Self::Writers => about(
                "writers",
                "many writers on one file",
                "How many durable single-block writes per second do many writers bring into one file?",
                "writes/s",
                true,
            ),
        }
    }

    /// Its value in its own metric.
    pub fn rate(self, trial: &Trial) -> f64 {
        match self {
            Self::GrowthWrite | Self::GrowthScanCold | Self::GrowthScanWarm => trial.megabytes_per_second(),
            _ => trial.rate(),
        }
    }

    /// Whether each of its requests must reach the device as one read when the mode bypasses the page cache.
    pub fn reads_only(self) -> bool {
        matches!(
            self,
            Self::ReadColdOne
                | Self::ReadCold
                | Self::ReadCached
                | Self::GrowthScanCold
                | Self::GrowthScanWarm
        )
    }

    /// Whether a page cache may serve it by design.
    pub fn cache_intended(self) -> bool {
        matches!(self, Self::ReadCached | Self::GrowthScanWarm)
    }
}

/// The files of a comparison: made once, used by all configurations, so that all work on the same blocks.
#[derive(Clone, Debug)]
pub struct Files {
    /// Prewritten, stamped.
    pub data: PathBuf,
    /// Its size.
    pub data_bytes: u64,
    /// The part of it that `read-cached` reads.
    pub cached_bytes: u64,
    /// Prewritten redo file.
    pub redo: PathBuf,
    /// Does not exist between visits.
    pub growth: PathBuf,
}

/// What a visit needs to know.
pub struct Visit<'a> {
    /// Put in force for this visit.
    pub configuration: Configuration,
    /// On which files.
    pub files: &'a Files,
    /// For how long.
    pub phases: Phases,
    /// How much growth writes.
    pub growth: Bytes,
    /// Sessions.
    pub sessions: u32,
    /// Database block.
    pub block_bytes: u32,
    /// Redo is written in multiples of this: the largest alignment that any mode needs here, the same for all modes.
    pub log_block_bytes: u32,
    /// Chance of this visit.
    pub seed: Seed,
    /// Ctrl-C.
    pub cancel: &'a AtomicBool,
}

impl Visit<'_> {
    /// Brings caches and files into the state in which the workload begins. Not measured, and not between the snapshots
    /// that the workload's device counters come from.
    ///
    /// # Errors
    /// What cannot be brought about.
    pub fn prepare(&self, workload: Workload) -> Result<(), LabError> {
        match workload {
            Workload::ReadColdOne | Workload::ReadCold | Workload::Mixed => {
                self.open(&self.files.data)?.drop_cache()?;
            }
            // The hot region is read once: a page cache then holds it, a direct mode gains nothing by it.
            Workload::ReadCached => {
                let warm = Bulk { total_bytes: self.files.cached_bytes, ..self.bulk(DATA_FILE_ID) };
                warm.scan(&self.open(&self.files.data)?, self.cancel)?;
            }
            Workload::GrowthWrite => self.new_growth_file()?,
            Workload::GrowthScanCold => self.open(&self.files.growth)?.drop_cache()?,
            Workload::GrowthScanWarm | Workload::CommitOne | Workload::Commit | Workload::Writers => {}
        }
        Ok(())
    }

    /// Runs one workload under the configuration, after [`Visit::prepare`].
    ///
    /// # Errors
    /// What spoiled the trial.
    pub fn run(&self, workload: Workload) -> Result<Trial, LabError> {
        match workload {
            Workload::ReadColdOne => self.read_cold(1, self.phases.read_cold_one),
            Workload::ReadCold => self.read_cold(self.sessions, self.phases.read_cold),
            Workload::ReadCached => self.read_cached(),
            Workload::GrowthWrite => self.growth_write(),
            Workload::GrowthScanCold | Workload::GrowthScanWarm => self.scan(),
            Workload::CommitOne => self.commit(1, self.phases.commit_one),
            Workload::Commit => self.commit(self.sessions, self.phases.commit),
            Workload::Mixed => self.mixed(),
            Workload::Writers => self.writers(),
        }
    }

    fn open(&self, path: &Path) -> Result<Arc<File>, LabError> {
        Ok(Arc::new(File::open(path, self.configuration.access())?))
    }

    fn load(&self, pattern: Pattern, threads: u32, in_flight: u32, measure: Nanos) -> LoadSpec {
        LoadSpec {
            api: self.configuration.api,
            access: self.configuration.access(),
            paths: vec![self.files.data.clone()],
            threads,
            in_flight,
            pattern,
            block_bytes: self.block_bytes,
            span: 0..self.files.data_bytes,
            batch_min: 1,
            verify_every: 64,
            file_id: DATA_FILE_ID,
            seed: self.seed,
            interval: SLICE,
            pin_cores: false,
            settle: self.phases.settle,
            measure,
            // Readers never wait for each other; only writers of one file do.
            lock_writes: pattern.writes() && self.configuration.mode.one_writer_per_file(),
        }
    }

    /// Each session keeps one read in flight, as a database's foreground does. No block is read twice, so the page cache,
    /// dropped before, cannot serve a cached mode from this phase's own reads.
    fn read_cold(&self, sessions: u32, measure: Nanos) -> Result<Trial, LabError> {
        let spec = self.load(Pattern::RandomReadOnce, sessions, sessions, measure);
        Ok(Trial::of_load(load::run(&spec, self.cancel)?, spec.block_bytes))
    }

    fn read_cached(&self) -> Result<Trial, LabError> {
        let mut spec = self.load(Pattern::RandomRead, self.sessions, self.sessions, self.phases.read_cached);
        spec.span = 0..self.files.cached_bytes;
        Ok(Trial::of_load(load::run(&spec, self.cancel)?, spec.block_bytes))
    }

    fn bulk(&self, file_id: u64) -> Bulk {
        Bulk {
            api: self.configuration.api,
            depth: self.configuration.bulk_depth(),
            request_bytes: BULK_BYTES,
            block_bytes: self.block_bytes,
            total_bytes: self.growth.0,
            file_id,
        }
    }

    /// The file is new in each visit. In mode `concurrent` its extents are written before the clock starts, because that
    /// is what the mode means; every other mode extends the file as it writes.
    fn new_growth_file(&self) -> Result<(), LabError> {
        match std::fs::remove_file(&self.files.growth) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::Target(format!(
                    "cannot remove our own {}: {error}",
                    self.files.growth.display()
                )));
            }
            _ => {}
        }
        if self.configuration.mode.prewritten() {
            let plain = File::create_new(
                &self.files.growth,
                Access { read: true, write: true, direct: self.configuration.mode.direct(), dsync: false },
            )?;
            io::prepare::write_stamped(
                &plain,
                self.growth.0,
                self.block_bytes,
                GROWTH_FILE_ID,
                self.seed,
                &mut |_, _| !self.cancel.load(std::sync::atomic::Ordering::Relaxed),
            )?;
        } else {
            File::create_new(&self.files.growth, self.configuration.access())?;
        }
        Ok(())
    }

    fn growth_write(&self) -> Result<Trial, LabError> {
        let file = self.open(&self.files.growth)?;
        self.bulk(GROWTH_FILE_ID).write(&file, self.seed, self.cancel)
    }

    fn scan(&self) -> Result<Trial, LabError> {
        let file = self.open(&self.files.growth)?;
        file.advise_sequential()?;
        self.bulk(GROWTH_FILE_ID).scan(&file, self.cancel)
    }

    fn log(&self) -> Result<Log, LabError> {
        let file = self.open(&self.files.redo)?;
        let log = LogFile {
            region: 0..file.size()?,
            file,
            api: self.configuration.api,
            call: LogCall::Dsync,
            block_bytes: self.log_block_bytes,
            write_bytes_max: commit::WRITE_BYTES_MAX,
        };
        Log::open(log, self.seed)
    }

    fn window(&self, measure: Nanos) -> Window {
        Window::after(self.phases.settle, measure, SLICE)
    }

    fn commit(&self, sessions: u32, measure: Nanos) -> Result<Trial, LabError> {
        commit::run(sessions, self.log()?, self.window(measure), self.cancel)
    }

    fn mixed(&self) -> Result<Trial, LabError> {
        let file = self.open(&self.files.data)?;
        file.advise_random()?;
        let mixed = Mixed {
            file,
            api: self.configuration.api,
            sessions: self.sessions,
            writers: self.configuration.database_writers(),
            batch: self.configuration.writer_batch(),
            block_bytes: self.block_bytes,
            span_bytes: self.files.data_bytes,
            file_id: DATA_FILE_ID,
            seed: self.seed,
        };
        mixed::run(&mixed, self.log()?, self.window(self.phases.mixed), self.cancel)
    }

    fn writers(&self) -> Result<Trial, LabError> {
        let (threads, in_flight) = self.configuration.writers();
        let mut spec = self.load(Pattern::RandomWrite, threads, in_flight, self.phases.writers);
        spec.verify_every = 0;
        // One submitter with a batch in flight uses blocking threads nowhere; the API stays the configuration's.
        debug_assert!(in_flight == threads || self.configuration.api != Api::Threads);
        Ok(Trial::of_load(load::run(&spec, self.cancel)?, spec.block_bytes))
    }
}
