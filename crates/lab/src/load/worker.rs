//! One thread of the load: the hot loop.

use super::places::{Place, Places};
use super::tally::Tally;
use super::{LoadError, Shared};
use io::stamp::{Stamp, Stamper, verify};
use io::{Action, Completion, IoError, Outcome, Queue, Request};
use std::sync::atomic::Ordering;
use std::sync::{OnceLock, PoisonError};
use units::{Nanos, clock};

/// Failures in a row after which a thread gives up: the storage is gone, and going on would only heat the processor.
const FAILURES_MAX: u32 = 1000;

pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    index: u32,
    queue: Box<dyn Queue + 'a>,
    places: Places,
    /// Where each slot's request went, and when.
    held: Vec<(Place, Nanos)>,
    /// What it wrote there, where that is noted; else empty.
    generations: Vec<u64>,
    /// Slots to fill next.
    free: Vec<u32>,
    done: Vec<Completion>,
    batch_min: u32,
    writing: Option<Writing>,
    until_verify: u32,
    failures_in_a_row: u32,
}

struct Writing {
    stamper: Stamper,
    generation: u64,
}

/// Where the generations of a run begin: near the nanoseconds since 1970, so that they rise from run to run on the same
/// file, within a process and over processes; no device writes a block per nanosecond.
fn first_generation() -> u64 {
    static ORIGIN: OnceLock<u64> = OnceLock::new();
    let origin = ORIGIN.get_or_init(|| clock::unix_seconds() * 1_000_000_000 - clock::now().0);
    origin + clock::now().0
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        index: u32,
        queue: Box<dyn Queue + 'a>,
        places: Places,
    ) -> Self {
        let spec = shared.spec;
        let depth = queue.depth();
        let writing = spec.pattern.writes().then(|| Writing {
            stamper: Stamper::new(spec.seed.part(1 << 32)),
            generation: first_generation(),
        });
        Self {
            shared,
            index,
            queue,
            places,
            held: vec![(Place::default(), Nanos(0)); depth as usize],
            generations: vec![0; if spec.notes.is_some() { depth as usize } else { 0 }],
            free: (0..depth).collect(),
            done: Vec::with_capacity(depth as usize),
            batch_min: match spec.batch_min {
                0 => (depth / 4).max(1),
                asked => asked.min(depth),
            },
            writing,
            until_verify: spec.verify_every,
            failures_in_a_row: 0,
        }
    }

    /// Runs until the window is over or the run is stopped.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        let ready = self.get_ready();
        let Some(timeline) = self.shared.gate.arrive() else { return Err(LoadError::Cancelled) };
        let mut tally = Tally::new(timeline);
        let result = ready.and_then(|()| self.work(&mut tally));
        if result.is_err() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        result?;
        tally.requests_total = self.queue.counters().submitted;
        Ok(tally)
    }

    fn get_ready(&mut self) -> Result<(), IoError> {
        if self.shared.spec.pin_cores {
            io::thread::pin(self.index as usize)?;
        }
        // A queue moves to the thread that drives it at its first call: before the start, not in it.
        self.queue.reap(0, &mut self.done)
    }

    fn work(&mut self, tally: &mut Tally) -> Result<(), IoError> {
        loop {
            self.stage();
            let submitted = clock::now();
            for &slot in &self.free {
                self.held[slot as usize].1 = submitted;
            }
            tally.in_flight(self.queue.in_flight(), submitted);
            self.free.clear();
            self.exchange()?;
            let now = clock::now();
            tally.in_flight(self.queue.depth(), now);
            if now >= tally.edge && tally.cross(now, self.queue.counters()) {
                return self.drain();
            }
            self.look(now, tally);
            if self.places.ended() {
                self.shared.stop.store(true, Ordering::Relaxed);
            }
            if self.shared.stop.load(Ordering::Relaxed) {
                tally.cut_short(now, self.queue.counters());
                return self.drain();
            }
        }
    }

    /// A request for each free slot.
    #[inline]
    fn stage(&mut self) {
        let bytes = self.shared.spec.block_bytes;
        let mut common_file = None;
        for &slot in &self.free {
            let mut place = self.places.next();
            if self.shared.spec.lock_writes {
                // A thread has one file's turn at a time: the first request of a batch says which.
                place.file = *common_file.get_or_insert(place.file);
            }
            self.held[slot as usize].0 = place;
            let action = match &mut self.writing {
                None => Action::Read,
                Some(writing) => {
                    writing.generation += 1;
                    let file_id = self.shared.spec.file_id + u64::from(place.file);
                    let stamp = Stamp { file_id, offset: place.offset, generation: writing.generation };
                    if let Some(noted) = self.generations.get_mut(slot as usize) {
                        *noted = writing.generation;
                    }
                    writing.stamper.fill(&mut self.queue.buffer_mut(slot)[..bytes as usize], stamp);
                    Action::Write
                }
            };
            self.queue.stage(slot, Request { file: place.file, offset: place.offset, bytes, action });
        }
    }

    /// Hands over what is staged and takes what is done, at least a batch. With `lock_writes`, waiting for the file's turn
    /// is part of the latency, and the turn lasts until everything is done.
    #[inline]
    fn exchange(&mut self) -> Result<(), IoError> {
        if !self.shared.spec.lock_writes {
            return self.queue.submit_and_reap(self.batch_min, &mut self.done);
        }
        let file = self.held[0].0.file as usize;
        let _turn = self.shared.turns[file].lock().unwrap_or_else(PoisonError::into_inner);
        while self.done.len() < self.queue.depth() as usize {
            self.queue.submit_and_reap(self.queue.depth(), &mut self.done)?;
        }
        Ok(())
    }

    /// Counts what is done and frees its slots.
    #[inline]
    fn look(&mut self, now: Nanos, tally: &mut Tally) {
        let bytes = self.shared.spec.block_bytes;
        for index in 0..self.done.len() {
            let Completion { slot, outcome } = self.done[index];
            self.free.push(slot);
            if outcome != Outcome::Full {
                self.note_failure(slot, outcome, tally);
                continue;
            }
            self.failures_in_a_row = 0;
            self.note(slot, true);
            tally.success(now - self.held[slot as usize].1, bytes);
            if self.until_verify > 0 {
                self.until_verify -= 1;
                if self.until_verify == 0 {
                    self.verify(slot, tally);
                }
            }
        }
        self.done.clear();
    }

    /// What its write left, where that is noted.
    #[inline]
    fn note(&self, slot: u32, arrived: bool) {
        if let (Some(notes), Some(generation)) =
            (&self.shared.spec.notes, self.generations.get(slot as usize))
        {
            let offset = self.held[slot as usize].0.offset;
            if arrived { notes.written(offset, *generation) } else { notes.unknown(offset) }
        }
    }

    #[cold]
    fn note_failure(&mut self, slot: u32, outcome: Outcome, tally: &mut Tally) {
        self.note(slot, false);
        let place = self.held[slot as usize].0;
        let (call, bytes) =
            (if self.writing.is_some() { "write" } else { "read" }, self.shared.spec.block_bytes);
        tally.failure(|| {
            let files = &self.shared.files;
            files
                .check(place.file, call, place.offset, bytes, outcome)
                .map_or_else(|error| error.to_string(), |()| String::new())
        });
        self.failures_in_a_row += 1;
        if self.failures_in_a_row >= FAILURES_MAX {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
    }

    #[inline(never)]
    fn verify(&mut self, slot: u32, tally: &mut Tally) {
        self.until_verify = self.shared.spec.verify_every;
        if self.writing.is_some() {
            return;
        }
        let place = self.held[slot as usize].0;
        let block = &self.queue.buffer(slot)[..self.shared.spec.block_bytes as usize];
        let file_id = self.shared.spec.file_id + u64::from(place.file);
        tally.verified += 1;
        if let Err(wrong) = verify(block, file_id, place.offset, None) {
            let path = self.shared.files.path(place.file).display();
            tally.wrong(format!("{path} at offset {}: {wrong}", place.offset));
        }
    }

    /// Waits for what is still in flight; it is not counted.
    fn drain(&mut self) -> Result<(), IoError> {
        while self.queue.in_flight() > 0 {
            self.queue.reap(1, &mut self.done)?;
        }
        for Completion { slot, outcome } in self.done.drain(..).collect::<Vec<_>>() {
            self.note(slot, outcome.is_full());
        }
        Ok(())
    }
}
