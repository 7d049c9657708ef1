//! What is being calibrated, and how one reading of it is taken.

use crate::LabError;
use crate::bench::Bench;
use crate::evidence::Observed;
use crate::export::{OpenFiles, is_export};
use crate::load::{self, LoadSpec, Pattern};
use crate::workload::commit::{self, Log, LogCall, LogFile};
use crate::workload::{Trial, Window};
use io::{Access, Api};
use stats::search::{Reading, Target};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use units::{Nanos, Seed, clock};

/// Slices of a confirming visit.
pub const SLICE: Nanos = Nanos::millis(250);
/// Request size for MB/s figures, as Oracle's calibration.
pub const LARGE_BYTES: u32 = 1 << 20;
/// File number in the stamps of the data.
pub const DATA_FILE_ID: u64 = 1;

/// How requests reach storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By the kernel's API for files.
    Api(Api),
    /// Our own NFS client: a connection for each thread.
    Connections,
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(api) => write!(f, "{api}"),
            Self::Connections => f.write_str("NFS connections"),
        }
    }
}

impl Via {
    /// The API, for a load; where the kernel has no part in it, any will do.
    pub const fn api(self) -> Api {
        match self {
            Self::Api(api) => api,
            Self::Connections => Api::Threads,
        }
    }
}

/// By which way and how many threads requests are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The way.
    pub via: Via,
    /// Threads at most; fewer requests than threads use fewer threads.
    pub threads: u32,
}

impl Shape {
    /// Threads for `in_flight` requests.
    pub fn threads_for(self, in_flight: u32) -> u32 {
        if self.via == Via::Api(Api::Threads) { in_flight } else { self.threads.min(in_flight) }
    }
}

/// The file or device under calibration.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Data: read, and written when `writable`.
    pub data: PathBuf,
    /// The part of it that is used.
    pub span: Range<u64>,
    /// Redo file or device, and its region; `None`: read only.
    pub redo: Option<(PathBuf, Range<u64>)>,
    /// Whether the blocks carry our stamps.
    pub stamped: bool,
    /// Whether O_DIRECT is in force; when not, caches serve what they can and the figures say so.
    pub direct: bool,
    /// Database block.
    pub block_bytes: u32,
    /// Log block: the alignment that direct redo writes need.
    pub log_block_bytes: u32,
}

/// One kind of work, ready to be measured for any length of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Random reads.
    Read {
        /// Of this size.
        bytes: u32,
        /// So many at once.
        in_flight: u32,
        /// Through this API and these threads.
        shape: Shape,
    },
    /// One stream of sequential 1 MiB reads.
    Stream,
    /// Random writes of single blocks, not synced.
    Write {
        /// So many at once.
        in_flight: u32,
        /// Through this API and these threads.
        shape: Shape,
    },
    /// One log writer alone.
    Redo {
        /// Appends so much at a time.
        bytes: u32,
        /// And makes it durable so.
        call: LogCall,
    },
    /// Group commit.
    Commit {
        /// By so many sessions.
        sessions: u32,
        /// Made durable so.
        call: LogCall,
    },
}

impl Work {
    /// Requests in flight.
    pub fn in_flight(&self) -> u32 {
        match *self {
            Self::Read { in_flight, .. } | Self::Write { in_flight, .. } => in_flight,
            Self::Stream | Self::Redo { .. } => 1,
            Self::Commit { sessions, .. } => sessions,
        }
    }
    /// Threads that issue them.
    pub fn threads(&self) -> u32 {
        match *self {
            Self::Read { in_flight, shape, .. } | Self::Write { in_flight, shape } => {
                shape.threads_for(in_flight)
            }
            Self::Stream | Self::Redo { .. } => 1,
            Self::Commit { sessions, .. } => sessions,
        }
    }
}

impl Subject {
    /// Whether it is on an NFS server.
    pub fn is_remote(&self) -> bool {
        is_export(&self.data)
    }

    /// One request in flight for each of `threads`.
    pub fn each_its_thread(&self, threads: u32) -> Shape {
        let via = if self.is_remote() { Via::Connections } else { Via::Api(Api::Threads) };
        Shape { via, threads }
    }

    /// Does `work` for `measure` after `settle`.
    ///
    /// # Errors
    /// What spoiled the trial.
    pub fn run(
        &self,
        work: Work,
        settle: Nanos,
        measure: Nanos,
        seed: Seed,
        cancel: &AtomicBool,
    ) -> Result<Trial, LabError> {
        match work {
            Work::Read { bytes, in_flight, shape } => {
                let spec = self.spec(Pattern::RandomRead, bytes, in_flight, shape, settle, measure, seed);
                Ok(Trial::of_load(load::run(&spec, cancel)?, spec.block_bytes))
            }
            Work::Stream => {
                let shape = self.each_its_thread(1);
                let spec = self.spec(Pattern::SequentialRead, LARGE_BYTES, 1, shape, settle, measure, seed);
                Ok(Trial::of_load(load::run(&spec, cancel)?, spec.block_bytes))
            }
            Work::Write { in_flight, shape } => {
                let bytes = self.block_bytes;
                let spec = self.spec(Pattern::RandomWrite, bytes, in_flight, shape, settle, measure, seed);
                Ok(Trial::of_load(load::run(&spec, cancel)?, spec.block_bytes))
            }
            Work::Redo { bytes, call } => {
                commit::alone(self.log(call, seed)?, bytes, Window::after(settle, measure, SLICE), cancel)
            }
            Work::Commit { sessions, call } => {
                commit::run(sessions, self.log(call, seed)?, Window::after(settle, measure, SLICE), cancel)
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a constructor: each argument is one field")]
    fn spec(
        &self,
        pattern: Pattern,
        block_bytes: u32,
        in_flight: u32,
        shape: Shape,
        settle: Nanos,
        measure: Nanos,
        seed: Seed,
    ) -> LoadSpec {
        let write = matches!(pattern, Pattern::RandomWrite);
        LoadSpec {
            api: shape.via.api(),
            access: Access { read: true, write, direct: self.direct, dsync: false },
            paths: vec![self.data.clone()],
            threads: shape.threads_for(in_flight),
            in_flight,
            pattern,
            block_bytes,
            span: self.span.clone(),
            batch_min: 0,
            verify_every: if self.stamped && block_bytes == self.block_bytes { 64 } else { 0 },
            notes: None,
            file_id: DATA_FILE_ID,
            seed,
            interval: SLICE,
            pin_cores: false,
            settle,
            measure,
            lock_writes: false,
        }
    }

    /// The redo file as each way of making it durable wants it: O_DSYNC and FUA on direct files as a database with direct
    /// I/O opens them, fdatasync on a cached file as PostgreSQL does by default.
    fn log(&self, call: LogCall, seed: Seed) -> Result<Log, LabError> {
        let (path, region) = self.redo.clone().expect("redo figures are only planned on writable targets");
        let direct = self.direct && call != LogCall::Fdatasync;
        let access = Access { read: true, write: true, direct, dsync: call == LogCall::Dsync };
        let file = OpenFiles::open(std::slice::from_ref(&path), access)?;
        let block_bytes = self.log_block_bytes;
        Log::open(
            LogFile {
                file,
                api: Api::Threads,
                call,
                region,
                block_bytes,
                write_bytes_max: commit::WRITE_BYTES_MAX,
            },
            seed,
        )
    }
}

/// The load→latency curve of one kind of read or write, for the search.
pub struct Curve<'a> {
    /// What is calibrated.
    pub subject: &'a Subject,
    /// The work with `n` requests in flight.
    pub work: &'a dyn Fn(u32) -> Work,
    /// Chance.
    pub seed: Seed,
    /// Ctrl-C.
    pub cancel: &'a AtomicBool,
    /// When the search began.
    pub started: Nanos,
    /// Readings so far.
    pub readings: u64,
}

impl Target for Curve<'_> {
    type Error = LabError;

    fn read(&mut self, n: u32, settle_seconds: f64, seconds: f64) -> Result<Reading, LabError> {
        let began = clock::now();
        self.readings += 1;
        let (settle, measure) = (Nanos::secs(settle_seconds), Nanos::secs(seconds));
        let trial =
            self.subject.run((self.work)(n), settle, measure, self.seed.part(self.readings), self.cancel)?;
        if self.cancel.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        Ok(Reading {
            rates: trial.slice_rates(),
            latency_mean_ns: trial.histogram.mean(),
            seconds: (clock::now() - began).as_secs(),
            errors: trial.errors,
        })
    }

    fn elapsed_seconds(&self) -> f64 {
        (clock::now() - self.started).as_secs()
    }
}

/// One observed trial: our side and the device's.
///
/// # Errors
/// As [`Subject::run`], and [`LabError::Cancelled`].
pub fn observe(
    subject: &Subject,
    work: Work,
    settle: Nanos,
    measure: Nanos,
    seed: Seed,
    bench: &Bench,
    cancel: &AtomicBool,
) -> Result<Observed, LabError> {
    let before = bench.snapshot();
    let trial = subject.run(work, settle, measure, seed, cancel)?;
    if cancel.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    Ok(Observed { delta: bench.since(&before), trial })
}
