//! Takes the ticks: by a thread of its own, or step by step for a simulation.

use super::check::{Check, Sums};
use super::ring::{Drained, Reader, Ring};
use super::{Sample, Tick};
use crate::place::{Ended, Place};
use crate::registry::Registry;
use crate::session::{self, SessionState};
use crate::totals::{BothTotals, TimeModel};
use crate::{Doing, SessionKind};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use units::{Clock, Nanos};

/// Looks at all sessions once per interval. One per registry: a second one would take away the answers of the first.
///
/// It looks from outside, so what it costs the sessions is a shared cache line now and then; what it costs the machine is in
/// each tick ([`Tick::cost`]).
pub struct Sampler {
    shared: Arc<Shared>,
    /// None when stepped.
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    registry: Arc<Registry>,
    state: Mutex<State>,
    stop: AtomicBool,
}

struct State {
    interval: Nanos,
    /// When the next tick should be.
    planned: Nanos,
    /// When the last one was.
    last: Nanos,
    started: Start,
    open: Option<Open>,
    /// Number of the next tick.
    next: u64,
    ring: Ring,
    sums: Sums,
}

/// What the counters said when sampling began.
pub(super) struct Start {
    pub totals: BothTotals,
    pub foreground: TimeModel,
}

impl Start {
    pub fn now(registry: &Registry) -> Self {
        Self { totals: registry.totals(), foreground: registry.time_model(SessionKind::Foreground) }
    }
}

/// The last tick, with the places of its waits whose length is not known yet.
struct Open {
    tick: Tick,
    /// Row and place.
    waits: Vec<(usize, Arc<Place>)>,
}

impl Sampler {
    /// Samples with a thread named `ash` (Oracle's `MMNL`), which ends when the sampler is dropped.
    ///
    /// `interval`: 1 s as in Oracle, or 100 ms for short runs; at least 1 ms. `rows_max`: how many rows are kept, counting
    /// one more per tick; the oldest are overwritten.
    ///
    /// # Panics
    /// When the registry's clock is a simulation's, which no thread can sleep by ([`Sampler::stepped`]), or the system gives
    /// no thread.
    pub fn start(registry: &Arc<Registry>, interval: Nanos, rows_max: usize) -> Self {
        assert!(matches!(registry.clock(), Clock::Real), "a simulation has no thread to sample it");
        let mut sampler = Self::stepped(registry, interval, rows_max);
        let shared = Arc::clone(&sampler.shared);
        let thread = std::thread::Builder::new().name("ash".into()).spawn(move || shared.run());
        sampler.thread = Some(thread.expect("the system gives no thread for the ASH sampler"));
        sampler
    }

    /// Samples only when [`Sampler::step`] is called: no thread, so a simulation with a seed runs the same way always.
    pub fn stepped(registry: &Arc<Registry>, interval: Nanos, rows_max: usize) -> Self {
        let interval = interval.max(Nanos::millis(1));
        let now = registry.clock().now();
        let state = State {
            interval,
            planned: now + interval,
            last: now,
            started: Start::now(registry),
            open: None,
            next: 1,
            ring: Ring::new(rows_max),
            sums: Sums::default(),
        };
        let shared =
            Shared { registry: Arc::clone(registry), state: Mutex::new(state), stop: AtomicBool::new(false) };
        Self { shared: Arc::new(shared), thread: None }
    }

    /// Takes a tick when one is due; whether it did.
    pub fn step(&self) -> bool {
        self.shared.step()
    }

    /// Changes the interval from now on. What was sampled keeps its weight.
    pub fn set_interval(&self, interval: Nanos) {
        let mut state = self.shared.lock();
        state.interval = interval.max(Nanos::millis(1));
        state.planned = self.shared.registry.clock().now() + state.interval;
        drop(state);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// The ticks that are still kept, the open one included: what `v$active_session_history` shows.
    pub fn recent(&self) -> Vec<Arc<Tick>> {
        let mut state = self.shared.lock();
        if let Some(open) = &mut state.open {
            open.resolve();
        }
        let mut ticks = state.ring.all();
        ticks.extend(state.open.as_ref().map(|open| Arc::new(open.tick.clone())));
        ticks
    }

    /// Closes the open tick at once, for the end of a run: a wait that still goes on keeps no length.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        let last = state.open.take();
        state.complete(last);
    }

    /// A reader that begins with the first tick.
    pub fn reader(&self) -> Reader {
        Reader { next: 1 }
    }

    /// The complete ticks that this reader has not had yet.
    pub fn drain(&self, reader: &mut Reader) -> Drained {
        let drained = self.shared.lock().ring.from(reader.next);
        reader.next = drained.ticks.last().map_or(reader.next, |tick| tick.id + 1);
        drained
    }

    /// All complete ticks, those that left the ring included, against the exact counters since the start.
    pub fn check(&self) -> Check {
        let now = Start::now(&self.shared.registry);
        let state = self.shared.lock();
        state.sums.check(&state.started, &now)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.stop.store(true, Ordering::Release);
            thread.thread().unpark();
            // A panic of the sampler is its own: whoever drops it has nothing to do about that.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        while !self.stop.load(Ordering::Acquire) {
            if !self.step() {
                let planned = self.lock().planned;
                std::thread::park_timeout((planned - self.registry.clock().now()).duration());
            }
        }
    }

    fn step(&self) -> bool {
        let mut state = self.lock();
        let now = self.registry.clock().now();
        let due = now >= state.planned;
        if due {
            let last = state.open.take();
            state.tick(&self.registry, now);
            state.complete(last);
        }
        due
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Looks at all, and asks for the lengths of what they wait for (the steps are those of the head of `ash`).
    fn tick(&mut self, registry: &Registry, now: Nanos) {
        let mut waits = Vec::new();
        let mut row = 0;
        let rows = registry.observe(|place, identity, seen, at| {
            let identity = identity.filter(|who| session::active(who.kind, seen))?;
            // Before anything else: each nanosecond in between is one in which a short wait can slip through.
            let mut time_waited = None;
            if seen.waiting {
                place.want(seen.number);
                fence(Ordering::SeqCst);
                match place.observed().ended(seen.number) {
                    Ended::After(waited) => time_waited = Some(Nanos(waited)),
                    Ended::NotYet | Ended::Unknown => waits.push((row, Arc::clone(place))),
                }
            }
            row += 1;
            Some(Sample { time_waited, ..Sample::of(SessionState::of(identity, seen, at)) })
        });
        let late = now - self.planned;
        let missed = late.0 / self.interval.0;
        let tick = Tick {
            id: self.next,
            planned: self.planned,
            real: now,
            weight: now - self.last,
            interval: self.interval,
            missed: u32::try_from(missed).unwrap_or(u32::MAX),
            cost: Nanos(0),
            unresolved: 0,
            rows,
        };
        let mut open = Open { tick, waits };
        open.resolve();
        open.tick.cost = registry.clock().now() - now;
        self.open = Some(open);
        self.next += 1;
        self.last = now;
        self.planned += Nanos((missed + 1) * self.interval.0);
    }

    /// The tick before the open one gets its last lengths, and is closed. A wait that the open tick saw too has its length
    /// there: asking here again could find it ended by now, and would count it twice.
    fn complete(&mut self, last: Option<Open>) {
        let Some(mut last) = last else { return };
        if let Some(open) = &self.open {
            let rows = &last.tick.rows;
            last.waits.retain(|(row, _)| !open.saw(&rows[*row]));
        }
        last.resolve();
        self.sums.add(&last.tick);
        self.ring.push(last.tick);
    }
}

impl Open {
    /// Fills in the lengths of those waits that have ended meanwhile.
    fn resolve(&mut self) {
        let Self { tick, waits } = self;
        waits.retain(|(row, place)| {
            let sample = &mut tick.rows[*row];
            match place.observed().ended(sample.wait_number) {
                Ended::NotYet => return true,
                Ended::After(waited) => sample.time_waited = Some(Nanos(waited)),
                Ended::Unknown => tick.unresolved += 1,
            }
            false
        });
    }

    fn saw(&self, wait: &Sample) -> bool {
        let who = |sample: &Sample| (sample.sid, sample.serial, sample.wait_number);
        self.tick.rows.iter().any(|row| row.doing != Doing::OnCpu && who(row) == who(wait))
    }
}
