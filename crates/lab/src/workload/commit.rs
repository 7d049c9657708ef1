//! Redo commits: sessions, one log writer, group commit.
//!
//! How a commit becomes durable here, in this order:
//!   1. the session appends its redo to the pending group and names itself as a waiter;
//!   2. the log writer takes the whole pending group, so that all who came during the last write share the next one;
//!   3. it writes the group as whole log blocks at the end of the redo file, and makes it durable as [`LogCall`] says;
//!   4. only then it wakes the waiters. Waking before 3 would acknowledge commits that a power cut takes back.
//!
//! Trade-off: waiters are woken one by one with `unpark` rather than by one condition variable; a broadcast made all
//! sessions collide on the mutex just when the next group should form.

use super::{Tally, Trial, Window, join_all};
use crate::LabError;
use crate::export::OpenFiles;
use crate::verify::Generations;
use io::{Action, Completion, Outcome, Queue, Request};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;
use units::{Seed, clock};

/// Redo of one commit, bytes: a row of about 1 KB, as in case `commit`.
pub const REDO_PER_COMMIT_BYTES: u32 = 1024;

/// Most sessions: their group must fit one redo write.
pub const SESSIONS_MAX: u32 = 200;
/// Largest redo write.
pub const WRITE_BYTES_MAX: u32 = 256 << 10;
const _: () = assert!(SESSIONS_MAX * REDO_PER_COMMIT_BYTES <= WRITE_BYTES_MAX);

/// Refuses a number of sessions that cannot run.
///
/// # Errors
/// The range.
pub fn check_sessions(sessions: u32) -> Result<(), LabError> {
    if (1..=SESSIONS_MAX).contains(&sessions) {
        return Ok(());
    }
    Err(LabError::Target(format!("--sessions {sessions} is out of range; type 1 to {SESSIONS_MAX}")))
}

/// How a group is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogCall {
    /// One write on a file opened with O_DSYNC.
    Dsync,
    /// A write, then fdatasync.
    Fdatasync,
    /// One write with RWF_DSYNC: the flag travels with the write (FUA where the device has it).
    Fua,
}

/// The redo file as the log writer sees it: written round and round in whole log blocks.
pub struct Log {
    queue: Box<dyn Queue>,
    call: LogCall,
    region: Range<u64>,
    block_bytes: u32,
    position: u64,
    generation: u64,
    stamper: io::stamp::Stamper,
    done: Vec<Completion>,
    flags: String,
    writes: u64,
    written_bytes: u64,
    notes: Option<Arc<Generations>>,
}

/// What a log needs to know of its file.
pub struct LogFile {
    /// Opened as the I/O mode wants it; preallocated and written before.
    pub file: OpenFiles,
    /// Through which API.
    pub api: io::Api,
    /// How it becomes durable.
    pub call: LogCall,
    /// The part of it that is redo: the whole of a redo file, a region of a raw device.
    pub region: Range<u64>,
    /// Size of a log block: writes are padded to a multiple of it.
    pub block_bytes: u32,
    /// Largest single write.
    pub write_bytes_max: u32,
}

/// File number in the stamps of redo blocks.
pub const REDO_FILE_ID: u64 = 2;

impl Log {
    /// Opens the log over an existing redo file.
    ///
    /// # Errors
    /// When the queue cannot be opened or the flags in force cannot be read.
    ///
    /// # Panics
    /// When the region is smaller than one write: a bug.
    pub fn open(log: LogFile, seed: Seed) -> Result<Self, LabError> {
        let flags = log.file.flags()?;
        let queue = log.file.queue(log.api, 1, log.write_bytes_max)?;
        Ok(Self::over(queue, log.call, log.region, log.block_bytes, flags, seed))
    }

    /// The log over a queue of depth 1 whose only file holds `region`.
    fn over(
        queue: Box<dyn Queue>,
        call: LogCall,
        region: Range<u64>,
        block_bytes: u32,
        flags: String,
        seed: Seed,
    ) -> Self {
        assert!(region.end - region.start >= queue.buffer(0).len() as u64, "region smaller than one write");
        Self {
            queue,
            call,
            position: region.start,
            region,
            block_bytes,
            generation: 1,
            stamper: io::stamp::Stamper::new(seed),
            done: Vec::with_capacity(1),
            flags,
            writes: 0,
            written_bytes: 0,
            notes: None,
        }
    }

    /// Notes from now on what it writes, with `--verify`.
    #[must_use]
    pub fn noting(self, notes: Option<Arc<Generations>>) -> Self {
        Self { notes, ..self }
    }

    /// Open flags read back from the kernel.
    pub fn flags(&self) -> &str {
        &self.flags
    }

    /// Writes so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Bytes written so far, padding included.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Largest group that one write holds.
    fn group_bytes_max(&self) -> u32 {
        self.queue.buffer(0).len() as u32
    }

    /// Appends `redo_bytes` of redo and makes it durable; returns the bytes written, padding included.
    ///
    /// # Errors
    /// Any transfer that is not full, and a failed sync: the log must not be used afterwards.
    pub fn append(&mut self, redo_bytes: u32) -> Result<u64, LabError> {
        let bytes = redo_bytes.next_multiple_of(self.block_bytes);
        assert!(bytes <= self.group_bytes_max(), "a group of {redo_bytes} bytes does not fit one write");
        if self.position + u64::from(bytes) > self.region.end {
            self.position = self.region.start;
            self.generation += 1;
        }
        let block = self.block_bytes as usize;
        for (index, part) in self.queue.buffer_mut(0)[..bytes as usize].chunks_exact_mut(block).enumerate() {
            let offset = self.position + (index * block) as u64;
            let stamp = io::stamp::Stamp { file_id: REDO_FILE_ID, offset, generation: self.generation };
            self.stamper.fill(part, stamp);
        }
        let action = if self.call == LogCall::Fua { Action::WriteDsync } else { Action::Write };
        self.transfer(action, bytes)?;
        if self.call == LogCall::Fdatasync {
            self.transfer(Action::Sync, 0)?;
        }
        if let Some(notes) = &self.notes {
            let blocks = (self.position..self.position + u64::from(bytes)).step_by(block);
            blocks.for_each(|offset| notes.written(offset, self.generation));
        }
        self.position += u64::from(bytes);
        self.writes += 1;
        self.written_bytes += u64::from(bytes);
        Ok(u64::from(bytes))
    }

    fn transfer(&mut self, action: Action, bytes: u32) -> Result<(), LabError> {
        self.queue.stage(0, Request { file: 0, offset: self.position, bytes, action });
        self.done.clear();
        self.queue.submit_and_reap(1, &mut self.done)?;
        match self.done[0].outcome {
            Outcome::Full => Ok(()),
            outcome => Err(LabError::Workload {
                workload: "redo write",
                reason: format!("{action:?} of {bytes} bytes at offset {}: {outcome:?}", self.position),
            }),
        }
    }
}

/// One session's place in the group: set by the log writer when its redo is durable.
struct Waiter {
    durable: AtomicBool,
    thread: Mutex<Option<thread::Thread>>,
}

#[derive(Default)]
struct Pending {
    redo_bytes: u32,
    sessions: Vec<usize>,
    closed: bool,
    failed: bool,
}

/// The meeting point of sessions and log writer.
pub struct GroupCommit {
    pending: Mutex<Pending>,
    work: Condvar,
    waiters: Vec<Waiter>,
}

impl GroupCommit {
    /// For sessions `0..sessions`.
    pub fn new(sessions: usize) -> Self {
        Self {
            pending: Mutex::default(),
            work: Condvar::new(),
            waiters: (0..sessions)
                .map(|_| Waiter { durable: AtomicBool::new(false), thread: Mutex::new(None) })
                .collect(),
        }
    }

    /// To be called by each session's thread before its first commit.
    pub fn join(&self, session: usize) {
        *lock(&self.waiters[session].thread) = Some(thread::current());
    }

    /// Commits `redo_bytes` for `session`; returns when they are durable, or `false` when the log has failed or closed.
    pub fn commit(&self, session: usize, redo_bytes: u32) -> bool {
        {
            let mut pending = lock(&self.pending);
            if pending.closed {
                return false;
            }
            pending.redo_bytes += redo_bytes;
            pending.sessions.push(session);
            if pending.sessions.len() == 1 {
                self.work.notify_one();
            }
        }
        let waiter = &self.waiters[session];
        while !waiter.durable.swap(false, Ordering::Acquire) {
            thread::park_timeout(Duration::from_millis(100));
            if lock(&self.pending).failed {
                return false;
            }
        }
        true
    }

    /// No more commits are coming; the log writer finishes what is pending and returns.
    pub fn close(&self) {
        lock(&self.pending).closed = true;
        self.work.notify_one();
    }

    /// The log writer's loop. Returns the log when closed, so that its counters can be read.
    ///
    /// # Errors
    /// A failed write or sync; every waiting session is released with `false`.
    pub fn log_writer(&self, mut log: Log) -> Result<Log, LabError> {
        let mut group = Vec::new();
        loop {
            let redo_bytes = {
                let mut pending = lock(&self.pending);
                while pending.sessions.is_empty() {
                    if pending.closed {
                        return Ok(log);
                    }
                    pending = self.work.wait(pending).unwrap_or_else(std::sync::PoisonError::into_inner);
                }
                std::mem::swap(&mut group, &mut pending.sessions);
                std::mem::take(&mut pending.redo_bytes)
            };
            if let Err(error) = log.append(redo_bytes) {
                let mut pending = lock(&self.pending);
                pending.failed = true;
                pending.closed = true;
                return Err(error);
            }
            for session in group.drain(..) {
                let waiter = &self.waiters[session];
                waiter.durable.store(true, Ordering::Release);
                if let Some(thread) = lock(&waiter.thread).as_ref() {
                    thread.unpark();
                }
            }
        }
    }
}

/// A poisoned mutex means that a thread panicked; that panic is passed on when it is joined, so go on here.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// `sessions` commit as fast as they can through one log writer, for the length of `window`.
///
/// # Errors
/// The log writer's failure.
pub fn run(sessions: u32, log: Log, window: Window, cancel: &AtomicBool) -> Result<Trial, LabError> {
    let group = GroupCommit::new(sessions as usize);
    let flags = log.flags().to_owned();
    let (tallies, log) = thread::scope(|scope| {
        let writer = thread::Builder::new()
            .name("lgwr".into())
            .spawn_scoped(scope, || group.log_writer(log))
            .expect("spawn lgwr");
        let handles: Vec<_> = (0..sessions as usize)
            .map(|session| {
                let group = &group;
                thread::Builder::new()
                    .name(format!("fg{session:02}"))
                    .spawn_scoped(scope, move || Ok(session_loop(group, session, window, cancel)))
                    .expect("spawn session")
            })
            .collect();
        let tallies = join_all(handles);
        group.close();
        let log = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, LabError>((tallies?, log?))
    })?;
    let mut total = Tally::new(window);
    tallies.iter().for_each(|t| total.merge(t));
    Ok(total.into_trial(flags, log.writes(), log.written_bytes()))
}

/// One log writer alone appends `write_bytes` at a time: the floor of a lone commit.
///
/// # Errors
/// The log's failure.
pub fn alone(mut log: Log, write_bytes: u32, window: Window, cancel: &AtomicBool) -> Result<Trial, LabError> {
    let mut tally = Tally::new(window);
    let mut now = clock::now();
    while window.open(now, cancel) {
        let began = now;
        let bytes = log.append(write_bytes)?;
        now = clock::now();
        tally.count(began, now, bytes);
    }
    Ok(tally.into_trial(log.flags().to_owned(), log.writes(), log.written_bytes()))
}

fn session_loop(group: &GroupCommit, session: usize, window: Window, cancel: &AtomicBool) -> Tally {
    group.join(session);
    let mut tally = Tally::new(window);
    let mut now = clock::now();
    while window.open(now, cancel) {
        let began = now;
        if !group.commit(session, REDO_PER_COMMIT_BYTES) {
            break;
        }
        now = clock::now();
        tally.count(began, now, u64::from(REDO_PER_COMMIT_BYTES));
    }
    tally
}

#[cfg(test)]
mod tests;
