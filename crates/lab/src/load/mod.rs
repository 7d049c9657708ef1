//! The load generator: keeps a fixed number of requests in flight and looks at every one of them.
//!
//! A closed loop: each thread has its slots always full, and takes a new request the moment one is done. Start with
//! [`run`]. The hot loop is in `worker`; where requests go in `places`; when to count in `tally`.
//!
//! What it costs, and how it stays small: two clock reads per batch instead of per request; no lock, no allocation and
//! no cache line that another thread writes in the loop (each worker sorts its completions into time slices by itself,
//! and all are merged at the end); submit and reap in one system call.

mod gate;
mod kernel_workers;
mod places;
mod tally;
mod worker;

use crate::export::OpenFiles;
use crate::verify::Generations;
use gate::Gate;
use io::{Access, Api, IoError, Queue, QueueCounters};
use stats::histogram::Histogram;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tally::{Tally, Timeline};
use units::{Nanos, Seed, clock};
use worker::Worker;

/// Where requests go, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Any block at any time.
    RandomRead,
    /// In random order, each block once until all were read, then again in the same order.
    RandomReadOnce,
    /// In random order, each block once; the run ends when all were read.
    RandomReadAll,
    /// Each thread reads its own contiguous part of the span from its start, and again.
    SequentialRead,
    /// In random order, each block once until all were written, then again; stamped with a rising generation.
    RandomWrite,
    /// Each thread writes its own contiguous part of the span from its start, and again, stamped.
    SequentialWrite,
    /// From the beginning of the span, each thread the next block that none has written, stamped: on a new file each write makes
    /// it longer. The run ends when the span is full.
    Append,
}

impl Pattern {
    /// Whether it changes the files.
    pub const fn writes(self) -> bool {
        matches!(self, Self::RandomWrite | Self::SequentialWrite | Self::Append)
    }
}

/// What to do, for how long.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// How requests reach the kernel; to an export each thread has a connection of its own.
    pub api: Api,
    /// How files are opened.
    pub access: Access,
    /// The files; usually one. File number i carries stamps of `file_id + i`.
    pub paths: Vec<PathBuf>,
    /// Threads; fewer are used when `in_flight` is smaller.
    pub threads: u32,
    /// Requests in flight over all threads.
    pub in_flight: u32,
    /// Where requests go.
    pub pattern: Pattern,
    /// Size of a request.
    pub block_bytes: u32,
    /// The part of each file that is used, bytes; rounded down to whole blocks.
    pub span: Range<u64>,
    /// How many completions a thread waits for before it goes on, at most its share of `in_flight`. 1: goes on at once.
    /// 0: a quarter of its share. More completions per system call cost less processor time; waiting for k of n that
    /// come evenly adds (k − 1) / 2n to the latencies, so 0 adds up to 12 %, and nothing where the device answers in bursts.
    pub batch_min: u32,
    /// One read in so many is verified by its stamp; 0: none.
    pub verify_every: u32,
    /// Where it is noted what was written to each block, with `--verify`; of a single file.
    pub notes: Option<Arc<Generations>>,
    /// Stamp of the first file.
    pub file_id: u64,
    /// Where chance comes from.
    pub seed: Seed,
    /// Length of a [`Slice`].
    pub interval: Nanos,
    /// Keep thread i on the i-th allowed core.
    pub pin_cores: bool,
    /// Time to run before counting.
    pub settle: Nanos,
    /// Time to count.
    pub measure: Nanos,
    /// One writer per file at a time: a thread holds the file from submit until all its requests are done.
    pub lock_writes: bool,
}

/// What all threads did in one interval of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slice {
    /// When it began.
    pub t: Nanos,
    /// How long it was; the last may be shorter.
    pub seconds: f64,
    /// Requests completed in it.
    pub ops: u64,
    /// Bytes they transferred.
    pub bytes: u64,
    /// Sum of their latencies.
    pub latency_sum_ns: u64,
    /// The greatest of them.
    pub latency_max_ns: u64,
    /// Requests that failed.
    pub errors: u64,
}

/// What was seen in the measured window, all threads together.
#[derive(Clone, Debug)]
pub struct Measured {
    /// When counting began.
    pub started: Nanos,
    /// When it ended; before its time when storage kept failing, or the pattern came to its end.
    pub ended: Nanos,
    /// One per interval.
    pub slices: Vec<Slice>,
    /// Latency of each successful request from submit to reap, nanoseconds.
    pub histogram: Histogram,
    /// Successful requests.
    pub ops: u64,
    /// Bytes of the successful requests.
    pub bytes: u64,
    /// Failed requests: errors and short transfers.
    pub errors: u64,
    /// The first of them in words.
    pub first_error: Option<String>,
    /// Reads whose stamp was checked.
    pub verified: u64,
    /// The first few that were wrong, in words.
    pub wrong: Vec<String>,
    /// How many were wrong.
    pub wrong_count: u64,
    /// Requests handed to storage from the first to the last, before and after the window too: what the device's counters
    /// around the run are held against.
    pub requests_total: u64,
    /// Requests in flight, averaged over time by the generator itself.
    pub in_flight_mean: f64,
    /// Share of the threads' time spent inside submit, estimated from one submit in 17; near 1 with blocking calls.
    pub submit_share: f64,
    /// Share of requests that were complete when submit returned, estimated likewise: 0 is truly asynchronous.
    pub completed_at_submit_share: f64,
    /// Processor time of the threads and of the kernel's and our own I/O workers, in the program.
    pub cpu_user_ns: u64,
    /// The same in the kernel. What interrupts and the file system's own workqueues used is not in it.
    pub cpu_system_ns: u64,
    /// The kernel's io_uring workers that worked in the window: 0 where requests went to the device without one.
    pub kernel_threads: u32,
    /// Open flags read back from the kernel: `O_RDWR|O_DIRECT|O_DSYNC`.
    pub flags_in_force: String,
    /// What the queue is made of, from [`io::Queue::describe`].
    pub queue: String,
}

/// Why no measurement came about.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The specification contradicts itself.
    #[error("this load cannot be run: {0}")]
    Spec(String),
    /// A file or queue refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A thread could not be started.
    #[error(
        "thread {index} of {threads} could not be started ({reason}); see `ulimit -u` and the cgroup's pids.max"
    )]
    Thread {
        /// Which.
        index: u32,
        /// Of how many.
        threads: u32,
        /// The system's words.
        reason: String,
    },
    /// The cancel flag was raised.
    #[error("stopped on request")]
    Cancelled,
}

/// What all workers see.
struct Shared<'a> {
    spec: &'a LoadSpec,
    files: OpenFiles,
    /// One per file, for `lock_writes`.
    turns: Vec<Mutex<()>>,
    stop: AtomicBool,
    gate: Gate<Timeline>,
}

/// How often the controller looks at the cancel flag.
const LOOK: Nanos = Nanos::millis(20);

/// Runs the load and waits for its end: `settle` + `measure`, plus the time until the last requests are done. Noticing
/// `cancel` takes less than 100 ms, unless a request hangs in the kernel.
///
/// # Errors
/// [`LoadError::Spec`], [`LoadError::Io`], [`LoadError::Thread`], [`LoadError::Cancelled`]. Failing requests are counted,
/// not returned; after a thousand in a row the run ends early.
pub fn run(spec: &LoadSpec, cancel: &AtomicBool) -> Result<Measured, LoadError> {
    run_with(spec, cancel, &|queue| queue)
}

/// [`run`] with something between each worker and its queue.
fn run_with<'q>(
    spec: &LoadSpec,
    cancel: &AtomicBool,
    wrap: &dyn Fn(Box<dyn Queue>) -> Box<dyn Queue + 'q>,
) -> Result<Measured, LoadError> {
    check(spec)?;
    let files = OpenFiles::open(&spec.paths, spec.access)?;
    if matches!(spec.pattern, Pattern::RandomRead | Pattern::RandomReadOnce | Pattern::RandomReadAll) {
        // Read-ahead would fetch what nobody asked for. The advice belongs to the open file, so it is given here.
        files.advise_random()?;
    }
    let flags_in_force = files.flags()?;
    let queues = open_queues(spec, &files)?;
    let queue = queues[0].describe();
    let mut places = places::split(spec, files.count() as u64, queues.len() as u64);
    let turns = spec.paths.iter().map(|_| Mutex::new(())).collect();
    let shared = Shared { spec, files, turns, stop: AtomicBool::new(false), gate: Gate::new() };

    let mut extra = kernel_workers::Usage::default();
    let (timeline, tallies) = std::thread::scope(|scope| {
        let threads = queues.len() as u32;
        let mut handles = Vec::with_capacity(queues.len());
        for (index, queue) in queues.into_iter().enumerate() {
            let worker = Worker::new(&shared, index as u32, wrap(queue), places.remove(0));
            let builder = std::thread::Builder::new().name(format!("fg{index:02}"));
            match builder.spawn_scoped(scope, move || worker.run()) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    shared.gate.abandon();
                    return Err(LoadError::Thread {
                        index: index as u32,
                        threads,
                        reason: error.to_string(),
                    });
                }
            }
        }
        shared.gate.wait_for(handles.len());
        let timeline = Timeline::from_now(spec);
        shared.gate.open(timeline);
        extra = watch(&shared, timeline, cancel);
        let results: Vec<_> =
            handles.into_iter().map(|handle| handle.join().expect("a worker panicked")).collect();
        Ok((timeline, results.into_iter().collect::<Result<Vec<_>, _>>()?))
    })?;
    if cancel.load(Ordering::Relaxed) {
        return Err(LoadError::Cancelled);
    }
    Ok(merge(timeline, tallies, extra, flags_in_force, queue))
}

fn check(spec: &LoadSpec) -> Result<(), LoadError> {
    let wrong = |what: &str| Err(LoadError::Spec(what.into()));
    let blocks = spec.span.end.saturating_sub(spec.span.start) / u64::from(spec.block_bytes.max(1));
    match spec {
        _ if spec.paths.is_empty() => wrong("no file is named"),
        _ if spec.threads == 0 || spec.in_flight == 0 => wrong("nothing would be in flight"),
        _ if spec.block_bytes == 0 || blocks == 0 => wrong("the span does not hold a single block"),
        _ if spec.interval.0 == 0 || spec.measure.0 == 0 => {
            wrong("the measured window or its interval is empty")
        }
        _ if spec.lock_writes && !spec.pattern.writes() => wrong("it locks writers out, but only reads"),
        _ if spec.pattern.writes() && !spec.access.write => {
            wrong("it writes, but files are opened for reading")
        }
        _ if spec.pattern.writes() && (spec.block_bytes as usize) < io::stamp::HEADER_BYTES => {
            wrong("blocks are too small for a stamp")
        }
        _ if spec.verify_every > 0 && (spec.block_bytes as usize) < io::stamp::HEADER_BYTES => {
            wrong("blocks are too small to be verified")
        }
        _ => Ok(()),
    }
}

/// One queue per thread, the requests in flight dealt out evenly.
fn open_queues(spec: &LoadSpec, files: &OpenFiles) -> Result<Vec<Box<dyn Queue>>, LoadError> {
    let threads = spec.threads.min(spec.in_flight);
    let queue = |index| {
        let depth = spec.in_flight / threads + u32::from(index < spec.in_flight % threads);
        Ok(files.queue(spec.api, depth, spec.block_bytes)?)
    };
    (0..threads).map(queue).collect()
}

/// Waits until the window is over or something stops the run; the result is what the kernel's and our own I/O workers
/// used in the window.
fn watch(shared: &Shared<'_>, timeline: Timeline, cancel: &AtomicBool) -> kernel_workers::Usage {
    let wait_until = |instant: Nanos| {
        while clock::now() < instant && !shared.stop.load(Ordering::Relaxed) {
            if cancel.load(Ordering::Relaxed) {
                shared.stop.store(true, Ordering::Relaxed);
            }
            clock::sleep(LOOK.min(instant - clock::now()));
        }
    };
    wait_until(timeline.begin);
    let before = kernel_workers::usage();
    wait_until(timeline.end);
    kernel_workers::usage().since(&before)
}

fn merge(
    timeline: Timeline,
    tallies: Vec<Tally>,
    extra: kernel_workers::Usage,
    flags_in_force: String,
    queue: String,
) -> Measured {
    let ended = tallies.iter().map(|tally| tally.ended).min().unwrap_or(timeline.end);
    let mut measured = Measured {
        started: timeline.begin,
        ended,
        slices: timeline.slices_until(ended),
        histogram: Histogram::new(),
        ops: 0,
        bytes: 0,
        errors: 0,
        first_error: None,
        verified: 0,
        wrong: Vec::new(),
        wrong_count: 0,
        requests_total: 0,
        in_flight_mean: 0.0,
        submit_share: 0.0,
        completed_at_submit_share: 0.0,
        cpu_user_ns: extra.user_ns,
        cpu_system_ns: extra.system_ns,
        kernel_threads: extra.kernel_threads,
        flags_in_force,
        queue,
    };
    let mut counters = Vec::with_capacity(tallies.len());
    for tally in tallies {
        measured.requests_total += tally.requests_total;
        counters.push(tally.counters);
        tally.add_to(&mut measured);
    }
    measured.ops = measured.slices.iter().map(|slice| slice.ops).sum();
    measured.bytes = measured.slices.iter().map(|slice| slice.bytes).sum();
    measured.errors = measured.slices.iter().map(|slice| slice.errors).sum();
    let total = |value: fn(&QueueCounters) -> f64| counters.iter().map(value).sum::<f64>();
    let wall_ns = (ended - timeline.begin).0 as f64 * counters.len() as f64;
    measured.submit_share = (total(QueueCounters::submit_ns_total) / wall_ns.max(1.0)).min(1.0);
    measured.completed_at_submit_share =
        total(|c| c.completed_at_submit as f64) / total(|c| c.observed_requests as f64).max(1.0);
    measured
}

#[cfg(test)]
mod tests;
