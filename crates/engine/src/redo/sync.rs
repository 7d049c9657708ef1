//! Waiting until redo is durable, and waking those who wait.
//!
//! A session whose commit finds the log writer idle writes the log itself: no other thread need run before its commit is
//! durable, which is what makes a lone commit as fast as a lone write. Who comes during a write queues; the next write
//! carries all of them.
//!
//! Waking costs a system call for each sleeper. When the next chunk is there already, the log writer wakes only one and goes
//! on writing; each one woken wakes two more of the list, so the device does not idle while ten threads are being woken.
//! Why nobody is forgotten: the list is filled before the new durable LSN can be seen, and whoever leaves because of
//! it takes two from the list. The first is woken by the log writer; everybody on the list is entitled to leave, so each
//! one taken off takes two more, before or after it was woken itself, until the list is empty.

use super::RedoLog;
use crate::page::Lsn;
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;
use units::Nanos;
use waits::Event;

/// One who waits for an LSN.
pub(super) struct Waiter {
    pub lsn: Lsn,
    pub thread: Thread,
    /// When its chunk was taken by the log writer, and when that was on disk; nanoseconds.
    pub taken: AtomicU64,
    pub written: AtomicU64,
}

impl Waiter {
    /// The calling thread.
    fn new(lsn: Lsn, taken: u64) -> Self {
        let (taken, written) = (AtomicU64::new(taken), AtomicU64::new(0));
        Self { lsn, thread: std::thread::current(), taken, written }
    }

    fn times(&self) -> Option<(Nanos, Nanos)> {
        let written = self.written.load(Ordering::Acquire);
        (written > 0).then(|| (Nanos(self.taken.load(Ordering::Acquire)), Nanos(written)))
    }
}

/// Those whose redo is durable and who must be woken by others of the list.
#[derive(Default)]
pub(super) struct WakeList {
    list: Mutex<Vec<Arc<Waiter>>>,
    /// Length of the list, to leave the mutex alone when it is empty.
    length: AtomicUsize,
}

impl WakeList {
    pub fn extend(&self, waiters: &mut Vec<Arc<Waiter>>) {
        let mut list = self.list.lock();
        list.append(waiters);
        self.length.store(list.len(), Ordering::Release);
    }

    /// Wakes the next two.
    pub fn wake_two(&self) {
        if self.length.load(Ordering::Acquire) == 0 {
            return;
        }
        let pair = {
            let mut list = self.list.lock();
            let pair = [list.pop(), list.pop()];
            self.length.store(list.len(), Ordering::Release);
            pair
        };
        pair.into_iter().flatten().for_each(|waiter| waiter.thread.unpark());
    }
}

impl RedoLog {
    /// As [`RedoLog::wait_durable`], for callers that have no instance.
    ///
    /// # Errors
    /// [`EngineError::Crashed`].
    pub fn sync(&self, context: &Context, lsn: Lsn) -> Result<()> {
        if self.durable_lsn() >= lsn {
            return Ok(());
        }
        let began = self.clock.now();
        let times = {
            let _wait = context.slot.enter(Event::LogFileSync, lsn.0, 0, 0);
            self.lead_or_wait(lsn)
        };
        let ended = self.clock.now();
        // What was never written (a crash) has no times; its whole wait counts as queue.
        let (taken, written) = times.unwrap_or((ended, ended));
        let (taken, written) = (taken.max(began), written.max(began));
        context.slot.sync_parts((taken - began).0, (written - taken).0, (ended - written).0);
        context.count(Statistic::RedoSynchWrites, 1);
        context.count(Statistic::RedoSynchTime, (ended - began).0 / 1_000);
        if self.durable_lsn() >= lsn { Ok(()) } else { Err(self.crashed_error()) }
    }

    /// Returns when `lsn` is durable or the log has failed: when its chunk was taken, and when it was written.
    fn lead_or_wait(&self, lsn: Lsn) -> Option<(Nanos, Nanos)> {
        let mut waiter: Option<Arc<Waiter>> = None;
        let mut led = None;
        loop {
            if self.durable_lsn() >= lsn || self.has_failed() {
                self.wake_list.wake_two();
                return waiter.and_then(|w| w.times()).or(led);
            }
            let mut state = self.state.lock();
            assert!(lsn <= state.tail(), "waits for {lsn:?}, but the log ends at {:?}", state.tail());
            if self.durable_lsn() >= lsn {
                continue;
            }
            if !state.writing {
                state.writing = true;
                drop(state);
                led = Some(self.lead(None));
                continue;
            }
            if waiter.is_none() {
                // Its chunk may be on its way already: then it has not queued at all.
                let taken = if lsn <= state.writing_end { self.clock.now().0 } else { 0 };
                let new = Arc::new(Waiter::new(lsn, taken));
                state.waiting.push(new.clone());
                waiter = Some(new);
            }
            drop(state);
            std::thread::park();
        }
    }

    pub(super) fn crashed_error(&self) -> EngineError {
        EngineError::Crashed(self.failure().unwrap_or_default())
    }
}
