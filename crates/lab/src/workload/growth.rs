//! Case `growth`: a table grows by bulk writes, then is scanned, cold and warm.
//!
//! A fixed amount of work, so that every configuration writes and reads equal bytes (docs/method.md, 3.4).

use super::Trial;
use crate::LabError;
use crate::load::Slice;
use io::stamp::{Stamp, Stamper, verify};
use io::{Action, Completion, File, Outcome, Queue, Request};
use stats::histogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, Seed, clock};

/// One sequential pass over a file.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Through which API.
    pub api: io::Api,
    /// Requests in flight: 1 for blocking modes.
    pub depth: u32,
    /// Size of a request: `db_file_multiblock_read_count` blocks.
    pub request_bytes: u32,
    /// Stamp size: the database block.
    pub block_bytes: u32,
    /// How much to move; a multiple of `request_bytes`.
    pub total_bytes: u64,
    /// File number in the stamps.
    pub file_id: u64,
}

/// What its blocks are stamped with.
pub const GENERATION: u64 = 1;

impl Bulk {
    /// Writes the file from its beginning, stamped, and ends with the commit's fdatasync, which counts.
    ///
    /// # Errors
    /// The first transfer that is not full.
    pub fn write(&self, file: &Arc<File>, seed: Seed, cancel: &AtomicBool) -> Result<Trial, LabError> {
        let stamper = Stamper::new(seed);
        let block = self.block_bytes as usize;
        self.pass(file, Action::Write, cancel, &mut |queue, slot, offset| {
            for (i, part) in queue.buffer_mut(slot).chunks_exact_mut(block).enumerate() {
                let offset = offset + (i * block) as u64;
                stamper.fill(part, Stamp { file_id: self.file_id, offset, generation: GENERATION });
            }
        })
    }

    /// Reads the file from its beginning; the first block of each request is verified by its stamp.
    ///
    /// # Errors
    /// The first transfer that is not full.
    pub fn scan(&self, file: &Arc<File>, cancel: &AtomicBool) -> Result<Trial, LabError> {
        self.pass(file, Action::Read, cancel, &mut |_, _, _| {})
    }

    fn pass(
        &self,
        file: &Arc<File>,
        action: Action,
        cancel: &AtomicBool,
        fill: &mut dyn FnMut(&mut dyn Queue, u32, u64),
    ) -> Result<Trial, LabError> {
        let options = io::QueueOptions::new(self.depth, self.request_bytes, vec![file.clone()]);
        let mut queue = io::open_queue(self.api, options)?;
        let mut pass = Pass::new(self, clock::now());
        let mut free: Vec<u32> = (0..self.depth).collect();
        let mut done: Vec<Completion> = Vec::with_capacity(self.depth as usize);
        let count = self.total_bytes / u64::from(self.request_bytes);
        let mut next = 0;
        while pass.completed < count && !cancel.load(Ordering::Relaxed) {
            while next < count
                && let Some(slot) = free.pop()
            {
                let offset = next * u64::from(self.request_bytes);
                fill(queue.as_mut(), slot, offset);
                pass.began[slot as usize] = (clock::now(), offset);
                queue.stage(slot, Request { file: 0, offset, bytes: self.request_bytes, action });
                next += 1;
            }
            done.clear();
            queue.submit_and_reap(1, &mut done)?;
            let now = clock::now();
            for completion in &done {
                pass.complete(queue.as_ref(), completion, action, now)?;
                free.push(completion.slot);
            }
        }
        if action == Action::Write {
            file.fdatasync()?;
        }
        let counters = queue.counters();
        Ok(pass.into_trial(file.flags_in_force()?.text, counters.submit_ns_total()))
    }
}

/// State of one pass.
struct Pass<'a> {
    bulk: &'a Bulk,
    started: Nanos,
    began: Vec<(Nanos, u64)>,
    completed: u64,
    histogram: Histogram,
    latency_max_ns: u64,
    verified: u64,
    wrong: u64,
}

impl<'a> Pass<'a> {
    fn new(bulk: &'a Bulk, started: Nanos) -> Self {
        Self {
            bulk,
            started,
            began: vec![(started, 0); bulk.depth as usize],
            completed: 0,
            histogram: Histogram::new(),
            latency_max_ns: 0,
            verified: 0,
            wrong: 0,
        }
    }

    fn complete(
        &mut self,
        queue: &dyn Queue,
        completion: &Completion,
        action: Action,
        now: Nanos,
    ) -> Result<(), LabError> {
        let (began, offset) = self.began[completion.slot as usize];
        if completion.outcome != Outcome::Full {
            return Err(LabError::Workload {
                workload: "growth",
                reason: format!(
                    "{action:?} of {} bytes at offset {offset}: {:?}",
                    self.bulk.request_bytes, completion.outcome
                ),
            });
        }
        let latency = (now - began).0;
        self.histogram.record(latency);
        self.latency_max_ns = self.latency_max_ns.max(latency);
        self.completed += 1;
        if action == Action::Read {
            let block = &queue.buffer(completion.slot)[..self.bulk.block_bytes as usize];
            self.verified += 1;
            self.wrong += u64::from(verify(block, self.bulk.file_id, offset, None).is_err());
        }
        Ok(())
    }

    fn into_trial(self, flags: String, submit_ns: f64) -> Trial {
        let ended = clock::now();
        let span = (ended - self.started).0.max(1);
        let bytes = self.completed * u64::from(self.bulk.request_bytes);
        let latency_sum_ns = self.histogram.sum();
        let slice = Slice {
            t: self.started,
            seconds: span as f64 / 1e9,
            ops: self.completed,
            bytes,
            latency_sum_ns,
            latency_max_ns: self.latency_max_ns,
            errors: 0,
        };
        Trial {
            window: self.started..ended,
            ops: self.completed,
            bytes,
            errors: 0,
            first_error: None,
            requests: self.completed,
            request_bytes: bytes,
            histogram: self.histogram,
            slices: vec![slice],
            in_flight_mean: Some(latency_sum_ns as f64 / span as f64),
            submit_share: Some(submit_ns / span as f64),
            completed_at_submit_share: None,
            kernel_threads: None,
            cpu_ns: None,
            flags,
            verified: self.verified,
            wrong: self.wrong,
        }
    }
}
