//! What is done to storage: each workload runs for a window (or a fixed amount of work) and leaves a [`Trial`].
//!
//! [`commit`]: sessions and a log writer with group commit. [`growth`]: bulk write, then scans. [`mixed`]: sessions
//! that read, change and commit while a database writer writes what they changed. Single-block reads and many writers
//! are plain closed loops and use [`crate::load`] directly.

pub mod commit;
pub mod growth;
pub mod mixed;

use crate::load::{Measured, Slice};
use stats::histogram::Histogram;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

/// What one run of one workload left behind.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Start and end of the measured window on this process's clock.
    pub window: Range<Nanos>,
    /// Completed operations of the workload (reads, commits, transactions, or requests for bulk work).
    pub ops: u64,
    /// Bytes that the operations moved.
    pub bytes: u64,
    /// Operations that failed; the reason of the first is in `first_error`.
    pub errors: u64,
    /// The first failure in words.
    pub first_error: Option<String>,
    /// Requests that the workload handed to storage from its first to its last, before and after the window too: what
    /// the device's counters around the trial are held against.
    pub requests: u64,
    /// Their bytes.
    pub request_bytes: u64,
    /// Latency of each operation.
    pub histogram: Histogram,
    /// The window in equal intervals.
    pub slices: Vec<Slice>,
    /// Requests really in flight, mean over time, where the generator measures it.
    pub in_flight_mean: Option<f64>,
    /// Share of the threads' time spent inside submit calls.
    pub submit_share: Option<f64>,
    /// Share of requests that were already complete when submit returned: not really asynchronous.
    pub completed_at_submit_share: Option<f64>,
    /// The kernel's io_uring workers that worked in the window.
    pub kernel_threads: Option<u32>,
    /// CPU time of the worker threads.
    pub cpu_ns: Option<u64>,
    /// Open flags read back from the kernel.
    pub flags: String,
    /// Blocks whose stamp was verified, and how many were wrong.
    pub verified: u64,
    /// See `verified`.
    pub wrong: u64,
}

impl Trial {
    /// Length of the window in seconds.
    pub fn seconds(&self) -> f64 {
        (self.window.end - self.window.start).as_secs()
    }
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        self.ops as f64 / self.seconds().max(1e-9)
    }
    /// 10⁶ bytes per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds().max(1e-9)
    }
    /// Rates of the slices, operations per second.
    pub fn slice_rates(&self) -> Vec<f64> {
        self.slices.iter().filter(|s| s.seconds > 0.0).map(|s| s.ops as f64 / s.seconds).collect()
    }
}

impl Trial {
    /// A fixed amount of work in `window`: one operation for each of `latencies`, `bytes` in all; one interval.
    pub fn whole(window: Range<Nanos>, latencies: &[Nanos], bytes: u64) -> Self {
        let slice = Nanos((window.end - window.start).0.max(1));
        let tally = Tally::new(Window { start: window.start, end: window.start + slice, slice });
        let mut trial = tally.into_trial(String::new(), 0, 0);
        (trial.window, trial.ops, trial.bytes) = (window, latencies.len() as u64, bytes);
        latencies.iter().for_each(|latency| trial.histogram.record(latency.0));
        let interval = &mut trial.slices[0];
        (interval.ops, interval.bytes) = (trial.ops, bytes);
        interval.latency_sum_ns = trial.histogram.sum();
        interval.latency_max_ns = trial.histogram.max();
        trial
    }

    /// A closed loop's measurement as a trial; `block_bytes`: size of its requests.
    pub fn of_load(m: Measured, block_bytes: u32) -> Self {
        Self {
            window: m.started..m.ended,
            ops: m.ops,
            bytes: m.bytes,
            errors: m.errors,
            first_error: m.first_error,
            requests: m.requests_total,
            request_bytes: m.requests_total * u64::from(block_bytes),
            histogram: m.histogram,
            slices: m.slices,
            in_flight_mean: Some(m.in_flight_mean),
            submit_share: Some(m.submit_share),
            completed_at_submit_share: Some(m.completed_at_submit_share),
            kernel_threads: Some(m.kernel_threads),
            cpu_ns: Some(m.cpu_user_ns + m.cpu_system_ns),
            flags: m.flags_in_force,
            verified: m.verified,
            wrong: m.wrong_count,
        }
    }
}

/// A measured window: settle first, then equal slices until the end.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    slice: Nanos,
}

impl Window {
    /// Opens `settle` from now, for `measure`, in slices of `slice`.
    pub fn after(settle: Nanos, measure: Nanos, slice: Nanos) -> Self {
        let start = clock::now() + settle;
        Self { start, end: start + measure, slice: Nanos(slice.0.clamp(1, measure.0.max(1))) }
    }

    fn slice_count(&self) -> usize {
        (self.end - self.start).0.div_ceil(self.slice.0) as usize
    }

    /// Whether a thread should go on.
    pub(crate) fn open(&self, now: Nanos, cancel: &AtomicBool) -> bool {
        now < self.end && !cancel.load(Ordering::Relaxed)
    }
}

/// What one session counts in a window: no sharing while it runs, merged afterwards.
pub(crate) struct Tally {
    window: Window,
    histogram: Histogram,
    slices: Vec<Slice>,
    ops: u64,
    bytes: u64,
}

impl Tally {
    pub(crate) fn new(window: Window) -> Self {
        let slices = (0..window.slice_count() as u64)
            .map(|i| {
                let from = window.start + Nanos(i * window.slice.0);
                let seconds = (window.end.min(from + window.slice) - from).as_secs();
                Slice { t: from, seconds, ops: 0, bytes: 0, latency_sum_ns: 0, latency_max_ns: 0, errors: 0 }
            })
            .collect();
        Self { window, histogram: Histogram::new(), slices, ops: 0, bytes: 0 }
    }

    /// Counts an operation that began at `began` and ended at `ended`, when it ended inside the window.
    pub(crate) fn count(&mut self, began: Nanos, ended: Nanos, bytes: u64) {
        if ended < self.window.start || ended >= self.window.end {
            return;
        }
        let latency = (ended - began).0;
        self.ops += 1;
        self.bytes += bytes;
        self.histogram.record(latency);
        let index = ((ended - self.window.start).0 / self.window.slice.0) as usize;
        let slice = &mut self.slices[index];
        slice.ops += 1;
        slice.bytes += bytes;
        slice.latency_sum_ns += latency;
        slice.latency_max_ns = slice.latency_max_ns.max(latency);
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.histogram.merge(&other.histogram);
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            mine.ops += theirs.ops;
            mine.bytes += theirs.bytes;
            mine.latency_sum_ns += theirs.latency_sum_ns;
            mine.latency_max_ns = mine.latency_max_ns.max(theirs.latency_max_ns);
        }
    }

    /// The trial, when the window closed at its planned end (or at `now` after a cancellation).
    pub(crate) fn into_trial(self, flags: String, requests: u64, request_bytes: u64) -> Trial {
        let end = self.window.end.min(clock::now());
        Trial {
            window: self.window.start..end.max(self.window.start),
            ops: self.ops,
            bytes: self.bytes,
            errors: 0,
            first_error: None,
            requests,
            request_bytes,
            histogram: self.histogram,
            slices: self.slices,
            in_flight_mean: None,
            submit_share: None,
            completed_at_submit_share: None,
            kernel_threads: None,
            cpu_ns: None,
            flags,
            verified: 0,
            wrong: 0,
        }
    }
}

/// Joins a workload's threads: the first failure wins, a panic is passed on.
pub(crate) fn join_all<T>(
    handles: Vec<std::thread::ScopedJoinHandle<'_, Result<T, crate::LabError>>>,
) -> Result<Vec<T>, crate::LabError> {
    let results: Vec<_> = handles.into_iter().map(|h| h.join()).collect();
    let mut values = Vec::with_capacity(results.len());
    for result in results {
        values.push(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    Ok(values)
}
