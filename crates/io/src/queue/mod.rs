//! Many requests in flight: one trait, three APIs of the kernel behind it.
//!
//! The road of a request: `buffer_mut` (fill) → `stage` → `submit` → `reap` → `buffer` (look). A slot owns its buffer and
//! its request from stage to reap, so memory outlives the operation by ownership ([`slots`]). The APIs: [`inline`] and
//! [`pool`] (pread/pwrite), [`libaio`], [`uring`].

mod inline;
mod libaio;
mod pool;
pub(crate) mod slots;
mod uring;

pub(crate) use inline::execute;

use crate::error::IoError;
use crate::file::File;
use crate::mode::Api;
use crate::outcome::Outcome;
use std::sync::Arc;
use units::Nanos;

/// What a request does with its slot's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read into the buffer.
    Read,
    /// Read into the buffer as consecutive pieces, each its own iovec: a multi-block read of a buffer cache.
    ReadVectored {
        /// Size of a piece; the last may be shorter. At most 1024 pieces.
        piece_bytes: u32,
    },
    /// Write from the buffer.
    Write,
    /// Write from the buffer, durable when complete whatever the open flags (`RWF_DSYNC`).
    WriteDsync,
    /// `fdatasync`; offset and bytes are ignored.
    Sync,
}

/// One request, for one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index into [`QueueOptions::files`].
    pub file: u32,
    /// Where, in bytes.
    pub offset: u64,
    /// How much; at most the queue's `buffer_bytes`.
    pub bytes: u32,
    /// What.
    pub action: Action,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which slot is free again; its buffer may be looked at.
    pub slot: u32,
    /// How it ended. From io_uring and libaio, `EINTR` and `EAGAIN` mean that the queue handed it over up to 64 times more
    /// in vain, or that a file of the queue was poisoned meanwhile. Threads repeat `EINTR` for ever and pass `EAGAIN` on.
    pub outcome: Outcome,
}

/// What a queue is made of.
#[derive(Clone, Debug)]
pub struct QueueOptions {
    /// Slots, which is the greatest number of requests in flight; at least 1.
    pub depth: u32,
    /// Size of each slot's buffer.
    pub buffer_bytes: u32,
    /// The files that requests name by index.
    pub files: Vec<Arc<File>>,
}

impl QueueOptions {
    /// `depth` slots of `buffer_bytes` for requests to `files`.
    pub fn new(depth: u32, buffer_bytes: u32, files: Vec<Arc<File>>) -> Self {
        Self { depth, buffer_bytes, files }
    }
}

/// What a queue has seen so far.
///
/// Looking at the clock and at the completion ring around each submit would cost more than a cached read's share of a
/// system call, so every 17th submit is observed, and shares are of the observed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Times requests were handed over.
    pub submit_calls: u64,
    /// Requests handed over.
    pub submitted: u64,
    /// Times completions were asked for.
    pub reap_calls: u64,
    /// Submits that were observed.
    pub observed_calls: u64,
    /// Requests in the observed submits.
    pub observed_requests: u64,
    /// Of `observed_requests`: complete already when submit returned, so not really asynchronous.
    pub completed_at_submit: u64,
    /// Time inside the observed submits, nanoseconds.
    pub submit_ns: u64,
}

/// One submit in so many is observed; a prime, so that it does not march in step with a workload's own rhythm.
pub const OBSERVE_EVERY: u64 = 17;

/// How often, a millisecond apart, a submit that found no memory in the kernel is tried again with nothing in flight.
const NAPS_MAX: u32 = 5000;

impl QueueCounters {
    /// Share of the requests that were complete when submit returned: 1 is a synchronous call in disguise, 0 is truly
    /// asynchronous. 0 when nothing was submitted.
    pub fn completed_at_submit_share(&self) -> f64 {
        if self.observed_requests == 0 {
            0.0
        } else {
            self.completed_at_submit as f64 / self.observed_requests as f64
        }
    }

    /// Time inside all submits, nanoseconds, estimated from the observed ones.
    pub fn submit_ns_total(&self) -> f64 {
        if self.observed_calls == 0 {
            return 0.0;
        }
        self.submit_ns as f64 * self.submit_calls as f64 / self.observed_calls as f64
    }

    /// What happened after `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            submit_calls: self.submit_calls - earlier.submit_calls,
            submitted: self.submitted - earlier.submitted,
            reap_calls: self.reap_calls - earlier.reap_calls,
            observed_calls: self.observed_calls - earlier.observed_calls,
            observed_requests: self.observed_requests - earlier.observed_requests,
            completed_at_submit: self.completed_at_submit - earlier.completed_at_submit,
            submit_ns: self.submit_ns - earlier.submit_ns,
        }
    }

    pub(crate) fn count_submit(&mut self, requests: u32) {
        self.submit_calls += 1;
        self.submitted += u64::from(requests);
    }

    /// Whether the next submit is one of the observed.
    fn observes_next(&self) -> bool {
        self.submit_calls.is_multiple_of(OBSERVE_EVERY)
    }

    fn observe(&mut self, requests: u32, completed: u32, spent: Nanos) {
        self.observed_calls += 1;
        self.observed_requests += u64::from(requests);
        self.completed_at_submit += u64::from(completed.min(requests));
        self.submit_ns += spent.0;
    }
}

/// A queue of requests. It owns `depth` slots, each with an aligned buffer. Not shared: one thread drives it; it may be
/// moved to another thread while nothing is staged or in flight. Dropping it cancels what can be cancelled, waits for
/// the rest, then frees the buffers.
pub trait Queue: Send {
    /// Slots.
    fn depth(&self) -> u32;

    /// Requests handed over and not reaped yet.
    fn in_flight(&self) -> u32;

    /// The buffer of a slot.
    ///
    /// # Panics
    /// While the slot is in flight: the kernel may be writing to it.
    fn buffer(&self, slot: u32) -> &[u8];

    /// The buffer of a slot, to fill it.
    ///
    /// # Panics
    /// While the slot is in flight.
    fn buffer_mut(&mut self, slot: u32) -> &mut [u8];

    /// Puts a request into a slot; nothing happens before [`Queue::submit`].
    ///
    /// # Panics
    /// When the slot is busy, the file unknown or the request longer than the buffer: bugs of the caller.
    fn stage(&mut self, slot: u32, request: Request);

    /// Hands all staged requests to the kernel; the result is how many. `EINTR` and `EAGAIN` are handled inside. What the
    /// kernel refuses for itself ends as a [`Completion`] with its error.
    ///
    /// # Errors
    /// [`IoError::Poisoned`] when a file of the queue is; [`IoError::ApiUnavailable`] or [`IoError::Os`] when the queue
    /// itself broke. Staged requests stay staged then.
    fn submit(&mut self) -> Result<u32, IoError>;

    /// Waits (sleeping, never spinning) for at least `min` completions, lowered to what is in flight, and appends all that
    /// are there to `done`. With `min` 0 it does not wait.
    ///
    /// # Errors
    /// [`IoError::Os`] when the queue itself broke.
    fn reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError>;

    /// [`Queue::submit`], then [`Queue::reap`], in one system call where the API can.
    ///
    /// # Errors
    /// As both.
    fn submit_and_reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.submit()?;
        self.reap(min, done)
    }

    /// What was seen so far.
    fn counters(&self) -> QueueCounters;

    /// What is in force, for the record: `io_uring single_issuer|defer_taskrun, registered files, registered buffers`.
    fn describe(&self) -> String;
}

/// Opens a queue. `Threads` with depth 1 runs each request inside `submit` on the calling thread; with more, `depth`
/// workers do. io_uring falls back to what the kernel has; [`Queue::describe`] says what that is.
///
/// # Errors
/// [`IoError::ApiUnavailable`], [`IoError::NoMemory`].
///
/// # Panics
/// With depth 0 or no file.
pub fn open_queue(api: Api, options: QueueOptions) -> Result<Box<dyn Queue>, IoError> {
    assert!(options.depth > 0, "a queue needs a slot");
    assert!(!options.files.is_empty(), "a queue needs a file");
    Ok(match api {
        Api::Threads if options.depth == 1 => Box::new(inline::InlineQueue::new(options)?),
        Api::Threads => Box::new(pool::PoolQueue::new(options)?),
        Api::Libaio => Box::new(libaio::LibaioQueue::new(options)?),
        Api::IoUring => Box::new(uring::UringQueue::new(options)?),
    })
}

pub(crate) fn probe(api: Api) -> Result<(), IoError> {
    match api {
        Api::Threads => Ok(()),
        Api::Libaio => libaio::probe(),
        Api::IoUring => uring::probe(),
    }
}

#[cfg(test)]
mod tests;
