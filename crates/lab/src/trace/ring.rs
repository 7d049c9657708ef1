//! Requests of io_uring between their submission and their completion.

use super::analysis::Key;
use super::figures::{Act, Figures};
use super::files::PlaceId;
use host::trace::Request;
use std::collections::BTreeMap;
use units::Nanos;

/// All rings of all threads.
#[derive(Debug, Default)]
pub(super) struct Rings {
    waiting: BTreeMap<Request, InFlight>,
    threads: BTreeMap<u32, Inside>,
    /// By thread and number of its call, until all is completed.
    batches: BTreeMap<(u32, u64), Batch>,
}

/// A request that is not completed.
#[derive(Debug)]
struct InFlight {
    tid: u32,
    at: Nanos,
    opcode: u8,
    place: Option<PlaceId>,
    worker: bool,
    /// Number of the call that submitted it.
    enter: u64,
}

/// A thread in `io_uring_enter`, or the last time that it was there.
#[derive(Debug, Default)]
struct Inside {
    ring: Option<i32>,
    since: Nanos,
    /// Since when it does no longer submit.
    waits: Option<Nanos>,
    /// It is inside, and still submits.
    submits: bool,
    enter: u64,
    /// What it submitted this time: operation and place.
    batch: Vec<(Request, u8, Option<PlaceId>)>,
    /// What was completed while it submitted: by the call itself, unless [`Rings::work_run`] says otherwise.
    done: Vec<Key>,
}

/// What one call handed over.
#[derive(Debug, Default)]
struct Batch {
    since: Nanos,
    submit: Nanos,
    keys: Vec<Key>,
    completed: usize,
    last: Nanos,
    /// The call has returned.
    ended: bool,
}

impl Batch {
    /// Whether everything is there; then its times are shared out.
    fn close(&self, figures: &mut BTreeMap<Key, Figures>) -> bool {
        let whole = self.ended && self.completed >= self.keys.len();
        if whole {
            let end = self.last.max(self.since + self.submit);
            for key in &self.keys {
                let own = figures.entry(*key).or_default();
                own.submit_ns += self.submit.0 / self.keys.len() as u64;
                own.span_ns += (end - self.since).0 / self.keys.len() as u64;
            }
        }
        whole
    }
}

impl Rings {
    pub(super) fn enter(&mut self, tid: u32, ring: i32, at: Nanos) {
        let inside = self.threads.entry(tid).or_default();
        inside.enter += 1;
        (inside.ring, inside.since, inside.waits, inside.submits) = (Some(ring), at, None, true);
        inside.batch.clear();
        inside.done.clear();
    }

    /// The ring that a thread is in.
    pub(super) fn descriptor(&self, tid: u32) -> Option<i32> {
        self.threads.get(&tid)?.ring
    }

    pub(super) fn submitted(
        &mut self,
        tid: u32,
        request: Request,
        opcode: u8,
        place: Option<PlaceId>,
        at: Nanos,
    ) {
        let inside = self.threads.entry(tid).or_default();
        inside.batch.push((request, opcode, place));
        let in_flight = InFlight { tid, at, opcode, place, worker: false, enter: inside.enter };
        self.waiting.insert(request, in_flight);
    }

    pub(super) fn file_taken(&mut self, tid: u32, request: Request, place: Option<PlaceId>) {
        if let Some(in_flight) = self.waiting.get_mut(&request) {
            in_flight.place = place;
        }
        let batch = self.threads.get_mut(&tid).map(|inside| &mut inside.batch);
        if let Some(last) = batch.and_then(|batch| batch.iter_mut().rev().find(|(of, ..)| *of == request)) {
            last.2 = place;
        }
    }

    pub(super) fn handed_to_worker(&mut self, request: Request) {
        if let Some(in_flight) = self.waiting.get_mut(&request) {
            in_flight.worker = true;
        }
    }

    pub(super) fn completed(
        &mut self,
        tid: u32,
        request: Request,
        result: i64,
        at: Nanos,
        figures: &mut BTreeMap<Key, Figures>,
    ) {
        // Submitted before the trace began, or a completion that has no request.
        let Some(done) = self.waiting.remove(&request) else { return };
        let Some(place) = done.place else { return };
        let key = (done.tid, place, Act::Ring(done.opcode));
        let own = figures.entry(key).or_default();
        own.requests += 1;
        own.latency.record((at - done.at).0);
        own.end(result, key.2.direction());
        own.to_workers += u64::from(done.worker);
        let inside = self.threads.get_mut(&tid).filter(|inside| inside.submits && inside.enter == done.enter);
        if let Some(inside) = inside.filter(|_| done.tid == tid && !done.worker) {
            inside.done.push(key);
        }
        let name = (done.tid, done.enter);
        let batch = self.batches.entry(name).or_default();
        (batch.completed, batch.last) = (batch.completed + 1, at);
        if batch.close(figures) {
            self.batches.remove(&name);
        }
    }

    /// It submits no more.
    pub(super) fn wait_begun(&mut self, tid: u32, at: Nanos) {
        if let Some(inside) = self.threads.get_mut(&tid) {
            inside.waits = inside.waits.or(Some(at));
            inside.submits = false;
        }
    }

    /// Of its last completions `count` had come back by themselves.
    pub(super) fn work_run(&mut self, tid: u32, count: u32, at: Nanos) {
        if let Some(inside) = self.threads.get_mut(&tid).filter(|inside| inside.submits) {
            let left = inside.done.len().saturating_sub(count as usize);
            inside.done.truncate(left);
            // What comes first in a call is submitting: this is after it.
            if !inside.batch.is_empty() {
                self.wait_begun(tid, at);
            }
        }
    }

    /// The call returned.
    pub(super) fn exit(&mut self, tid: u32, at: Nanos, figures: &mut BTreeMap<Key, Figures>) {
        let Some(inside) = self.threads.get_mut(&tid) else { return };
        for key in inside.done.drain(..) {
            figures.entry(key).or_default().done_at_return += 1;
        }
        inside.submits = false;
        let told =
            |(_, opcode, place): &(Request, u8, Option<PlaceId>)| Some((tid, (*place)?, Act::Ring(*opcode)));
        let keys: Vec<Key> = inside.batch.iter().filter_map(told).collect();
        inside.batch.clear();
        let name = (tid, inside.enter);
        if keys.is_empty() {
            self.batches.remove(&name);
            return;
        }
        let mut kinds = keys.clone();
        kinds.sort_unstable();
        kinds.dedup();
        for key in kinds {
            let own = figures.entry(key).or_default();
            own.calls += 1;
            own.batches.add(keys.len() as u64, 1);
        }
        let batch = self.batches.entry(name).or_default();
        (batch.since, batch.submit) = (inside.since, inside.waits.unwrap_or(at) - inside.since);
        (batch.keys, batch.ended) = (keys, true);
        if batch.close(figures) {
            self.batches.remove(&name);
        }
    }
}
