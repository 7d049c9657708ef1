//! Requests in flight by worker threads: `depth` of them, each in one `pread` or `pwrite` at a time.
//!
//! What it buys: works everywhere and is truly asynchronous for the submitter even where a call blocks. Its price: two
//! context switches and two locks per request; that is the cost of this API, and it is there to be measured.

use super::inline::execute;
use super::slots::Slots;
use super::{Completion, Queue, QueueCounters, QueueOptions, Request};
use crate::error::IoError;
use crate::file::File;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};

/// A request on its way to a worker: the worker owns the buffer at `address` until it has reported `user_data`.
struct Job {
    user_data: u64,
    address: *mut u8,
    request: Request,
}

// SAFETY: the pointer is into the slot's buffer, which the slot table lends to exactly one job at a time and which
// lives until the workers are joined.
unsafe impl Send for Job {}

#[derive(Default)]
struct Inbox {
    jobs: VecDeque<Job>,
    closing: bool,
}

struct Shared {
    inbox: Mutex<Inbox>,
    inbox_filled: Condvar,
    outbox: Mutex<Vec<(u64, i64)>>,
    outbox_filled: Condvar,
    files: Arc<[Arc<File>]>,
}

pub(super) struct PoolQueue {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    collected: Vec<(u64, i64)>,
    counters: QueueCounters,
    slots: Slots,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PoolQueue {
    pub(super) fn new(options: QueueOptions) -> Result<Self, IoError> {
        let slots = Slots::new(&options)?;
        let shared = Arc::new(Shared {
            inbox: Mutex::default(),
            inbox_filled: Condvar::new(),
            outbox: Mutex::new(Vec::with_capacity(options.depth as usize)),
            outbox_filled: Condvar::new(),
            files: slots.files().clone(),
        });
        let mut queue = Self {
            shared,
            workers: Vec::new(),
            collected: Vec::with_capacity(options.depth as usize),
            counters: QueueCounters::default(),
            slots,
        };
        for index in 0..options.depth {
            let shared = queue.shared.clone();
            let worker =
                std::thread::Builder::new().name(format!("io{index:02}")).spawn(move || work(&shared));
            queue.workers.push(worker.map_err(|e| IoError::ApiUnavailable {
                api: crate::mode::Api::Threads,
                errno: e.raw_os_error().unwrap_or(libc::EAGAIN),
                reason: "no more threads; see `ulimit -u` and the cgroup's pids.max, or use fewer requests in flight",
            })?);
        }
        Ok(queue)
    }
}

fn work(shared: &Shared) {
    loop {
        let mut inbox = lock(&shared.inbox);
        let job = loop {
            if let Some(job) = inbox.jobs.pop_front() {
                break job;
            }
            if inbox.closing {
                return;
            }
            inbox = shared.inbox_filled.wait(inbox).unwrap_or_else(PoisonError::into_inner);
        };
        drop(inbox);
        // SAFETY: this job alone owns the slot's buffer of at least `bytes` bytes until it is reported below; the queue
        // frees the memory only after joining this thread.
        let buffer = unsafe { std::slice::from_raw_parts_mut(job.address, job.request.bytes as usize) };
        let result = execute(&*shared.files[job.request.file as usize], job.request, buffer);
        lock(&shared.outbox).push((job.user_data, result));
        shared.outbox_filled.notify_one();
    }
}

impl Queue for PoolQueue {
    fn depth(&self) -> u32 {
        self.slots.depth()
    }
    fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }
    fn buffer(&self, slot: u32) -> &[u8] {
        self.slots.buffer(slot)
    }
    fn buffer_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.buffer_mut(slot)
    }
    fn stage(&mut self, slot: u32, request: Request) {
        self.slots.stage(slot, request);
    }

    fn submit(&mut self) -> Result<u32, IoError> {
        let count = self.slots.staged().len() as u32;
        if count == 0 {
            return Ok(0);
        }
        self.slots.check_poison()?;
        let observed = self.counters.observes_next();
        let (begin, before) =
            if observed { (clock::now(), lock(&self.shared.outbox).len()) } else { (Nanos(0), 0) };
        {
            let mut inbox = lock(&self.shared.inbox);
            for &slot in self.slots.staged() {
                inbox.jobs.push_back(Job {
                    user_data: self.slots.user_data(slot),
                    address: self.slots.address(slot),
                    request: self.slots.request(slot),
                });
            }
        }
        self.slots.launch(count);
        if count == 1 {
            self.shared.inbox_filled.notify_one();
        } else {
            self.shared.inbox_filled.notify_all();
        }
        self.counters.count_submit(count);
        if observed {
            let completed = lock(&self.shared.outbox).len() - before;
            self.counters.observe(count, completed as u32, clock::now() - begin);
        }
        Ok(count)
    }

    fn reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.counters.reap_calls += 1;
        let min = self.slots.reachable(min) as usize;
        let mut outbox = lock(&self.shared.outbox);
        while outbox.len() < min {
            outbox = self.shared.outbox_filled.wait(outbox).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut *outbox, &mut self.collected);
        drop(outbox);
        for (user_data, result) in self.collected.drain(..) {
            done.push(self.slots.complete(user_data, result));
        }
        Ok(())
    }

    fn counters(&self) -> QueueCounters {
        self.counters
    }
    fn describe(&self) -> String {
        format!("threads, pread/pwrite by {} workers", self.workers.len())
    }
}

impl Drop for PoolQueue {
    /// Jobs that no worker has taken are dropped; the others are waited for. Only then may the buffers go.
    fn drop(&mut self) {
        {
            let mut inbox = lock(&self.shared.inbox);
            inbox.jobs.clear();
            inbox.closing = true;
        }
        self.shared.inbox_filled.notify_all();
        for worker in self.workers.drain(..) {
            // A worker cannot panic but by a bug in this crate; dropping must go on to the others.
            let _ = worker.join();
        }
    }
}
