//! One visit: a configuration is put in force, and every workload runs once under it.

use super::configuration::Configuration;
use super::plan::Phases;
pub use super::workloads::Workload;
use crate::LabError;
use crate::export::OpenFiles;
use crate::load::{self, LoadSpec, Pattern};
use crate::verify::{Generations, Verification};
use crate::workload::commit::{self, Log, LogCall, LogFile};
use crate::workload::growth::{Bulk, GENERATION as GROWTH_GENERATION};
use crate::workload::mixed::{self, Mixed};
use crate::workload::{Trial, Window};
use io::{Access, Api, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use units::{Bytes, Nanos, Seed};

/// File number in the stamps of the data file.
pub const DATA_FILE_ID: u64 = 1;
/// File number in the stamps of the growing file.
const GROWTH_FILE_ID: u64 = 3;
/// Request size of bulk writes and scans.
pub const BULK_BYTES: u32 = 1 << 20;
/// Slice of the time lines.
const SLICE: Nanos = Nanos::millis(100);

fn of_a_database() -> LabError {
    LabError::Target("that workload is of a database; type --target engine".into())
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
    /// What was written to each of them, with `--verify`.
    pub notes: Option<Notes>,
}

/// What was written to the files of a comparison.
#[derive(Clone, Debug)]
pub struct Notes {
    data: Arc<Generations>,
    growth: Arc<Generations>,
    /// Made when the first redo is written: only then its block is known.
    redo: Arc<OnceLock<Arc<Generations>>>,
}

impl Notes {
    /// For a data file of so many bytes, which the growing one does not exceed.
    pub fn new(data_bytes: u64, block_bytes: u32) -> Self {
        let notes = |id| Arc::new(Generations::new(id, block_bytes, data_bytes));
        Self { data: notes(DATA_FILE_ID), growth: notes(GROWTH_FILE_ID), redo: Arc::default() }
    }
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
    /// Threads that write one file at once in workload `writers`, and their requests in flight.
    pub writing: (u32, u32),
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
            Workload::ReadColdOne | Workload::ReadCold | Workload::BatchRead | Workload::Mixed => {
                self.open(&self.files.data)?.drop_cache()?;
            }
            Workload::WritersExtend | Workload::BatchExtend => {
                self.remove_growth_file()?;
                File::create_new(&self.files.growth, self.configuration.access())?;
            }
            // The hot region is read once: a page cache then holds it, a direct mode gains nothing by it.
            Workload::ReadCached => {
                let warm = Bulk { total_bytes: self.files.cached_bytes, ..self.bulk(DATA_FILE_ID) };
                warm.scan(&self.open(&self.files.data)?, self.cancel)?;
            }
            Workload::GrowthWrite => self.new_growth_file()?,
            Workload::GrowthScanCold => self.open(&self.files.growth)?.drop_cache()?,
            Workload::GrowthScanWarm
            | Workload::CommitOne
            | Workload::Commit
            | Workload::Writers
            | Workload::BatchOverwrite => {}
            Workload::ScanDirectPath
            | Workload::ScanScattered
            | Workload::ScanCached
            | Workload::FlashPassOne
            | Workload::FlashPassTwo
            | Workload::FlashPassThree
            | Workload::ReadMoved => {
                return Err(of_a_database());
            }
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
            Workload::Writers => self.writers(Pattern::RandomWrite),
            Workload::WritersExtend => self.writers(Pattern::Append),
            Workload::BatchRead => self.batches(Pattern::RandomReadAll),
            Workload::BatchOverwrite => self.batches(Pattern::RandomWrite),
            Workload::BatchExtend => self.batches(Pattern::Append),
            Workload::ScanDirectPath
            | Workload::ScanScattered
            | Workload::ScanCached
            | Workload::FlashPassOne
            | Workload::FlashPassTwo
            | Workload::FlashPassThree
            | Workload::ReadMoved => Err(of_a_database()),
        }
    }

    /// Reads back what was written since the last time; nothing without `--verify`.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn read_back(&self) -> Result<Option<Verification>, LabError> {
        let Some(notes) = &self.files.notes else { return Ok(None) };
        let go_on = || !self.cancel.load(std::sync::atomic::Ordering::Relaxed);
        let mut seen = notes.data.read_back(&self.files.data, &go_on)?;
        if let Some(redo) = notes.redo.get() {
            seen.add(redo.read_back(&self.files.redo, &go_on)?);
        }
        seen.add(notes.growth.read_back(&self.files.growth, &go_on)?);
        Ok(Some(seen))
    }

    fn open(&self, path: &Path) -> Result<Arc<File>, LabError> {
        Ok(Arc::new(File::open(path, self.configuration.access())?))
    }

    fn load(&self, pattern: Pattern, threads: u32, in_flight: u32, measure: Nanos) -> LoadSpec {
        let notes = self.files.notes.as_ref();
        let (path, file_id, notes) = match pattern {
            Pattern::Append => (&self.files.growth, GROWTH_FILE_ID, notes.map(|n| n.growth.clone())),
            _ => (&self.files.data, DATA_FILE_ID, notes.map(|n| n.data.clone())),
        };
        LoadSpec {
            api: self.configuration.api,
            access: self.configuration.access(),
            paths: vec![path.clone()],
            threads,
            in_flight,
            pattern,
            block_bytes: self.block_bytes,
            span: 0..self.files.data_bytes,
            batch_min: 1,
            verify_every: 64,
            notes: notes.filter(|_| pattern.writes()),
            file_id,
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
        self.remove_growth_file()?;
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

    fn remove_growth_file(&self) -> Result<(), LabError> {
        if let Some(notes) = &self.files.notes {
            notes.growth.forget();
        }
        match std::fs::remove_file(&self.files.growth) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(LabError::Target(format!(
                "cannot remove our own {}: {error}",
                self.files.growth.display()
            ))),
            _ => Ok(()),
        }
    }

    fn growth_write(&self) -> Result<Trial, LabError> {
        let file = self.open(&self.files.growth)?;
        let bulk = self.bulk(GROWTH_FILE_ID);
        let trial = bulk.write(&file, self.seed, self.cancel)?;
        if let Some(notes) = &self.files.notes {
            notes.growth.all_written(bulk.total_bytes, GROWTH_GENERATION);
        }
        Ok(trial)
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
            file: OpenFiles::of(file),
            api: self.configuration.api,
            call: LogCall::Dsync,
            block_bytes: self.log_block_bytes,
            write_bytes_max: commit::WRITE_BYTES_MAX,
        };
        let (block, end) = (self.log_block_bytes, log.region.end);
        let new = || Arc::new(Generations::new(commit::REDO_FILE_ID, block, end));
        let notes = self.files.notes.as_ref().map(|notes| notes.redo.get_or_init(new).clone());
        Ok(Log::open(log, self.seed)?.noting(notes))
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
            notes: self.files.notes.as_ref().map(|notes| notes.data.clone()),
            seed: self.seed,
        };
        mixed::run(&mixed, self.log()?, self.window(self.phases.mixed), self.cancel)
    }

    /// One process hands over a batch and waits for all of it, as a database writer does; a blocking mode has no batches.
    fn batches(&self, pattern: Pattern) -> Result<Trial, LabError> {
        let batch = self.configuration.writer_batch();
        let mut spec = self.load(pattern, 1, batch, self.phases.writers);
        spec.batch_min = batch;
        Ok(Trial::of_load(load::run(&spec, self.cancel)?, spec.block_bytes))
    }

    fn writers(&self, pattern: Pattern) -> Result<Trial, LabError> {
        let (threads, in_flight) = self.writing;
        let mut spec = self.load(pattern, threads, in_flight, self.phases.writers);
        spec.verify_every = 0;
        // One submitter with a batch in flight uses blocking threads nowhere; the API stays the configuration's.
        debug_assert!(in_flight == threads || self.configuration.api != Api::Threads);
        Ok(Trial::of_load(load::run(&spec, self.cancel)?, spec.block_bytes))
    }
}
