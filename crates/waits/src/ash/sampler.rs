//! Takes the ticks: by a thread of its own, or step by step for a simulation.

use super::check::{Check, Sums};
use super::ring::{Drained, Reader, Ring};
use super::{Sample, Tick};
use crate::SessionKind;
use crate::place::{Ended, Observed, Place};
use crate::registry::Registry;
use crate::session::{self, Identity, SessionState};
use crate::totals::{BothTotals, TimeModel};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use units::Nanos;

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
        assert!(registry.clock().is_real(), "a simulation has no thread to sample it");
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
        self.shared.lock().close();
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
            state.tick(&self.registry, now);
        }
        due
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tick(&mut self, registry: &Registry, now: Nanos) {
        let mut pass = Pass::new(self.open.take());
        let rows = registry.observe(|place, identity, seen, at| pass.visit(place, identity, seen, at));
        let Pass { last, waits, .. } = pass;
        if let Some(last) = last {
            self.keep(last);
        }
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

    /// Closes the open tick without another one.
    fn close(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.resolve();
            self.keep(open.tick);
        }
    }

    /// A tick is complete.
    fn keep(&mut self, tick: Tick) {
        self.sums.add(&tick);
        self.ring.push(tick);
    }
}

/// A walk over all places.
struct Pass {
    last: Option<Tick>,
    last_waits: std::iter::Peekable<std::vec::IntoIter<(usize, Arc<Place>)>>,
    waits: Vec<(usize, Arc<Place>)>,
    rows: usize,
}

impl Pass {
    fn new(last: Option<Open>) -> Self {
        let (last, last_waits) = last.map_or((None, Vec::new()), |open| (Some(open.tick), open.waits));
        Self { last, last_waits: last_waits.into_iter().peekable(), waits: Vec::new(), rows: 0 }
    }

    /// Takes the answer to the question of the last tick, asks the next one (the steps are those of the head of `ash`), and
    /// makes the row, if the session is active.
    ///
    /// One sight of the place gives both answer and row, and before the next question is asked: the answer to that would
    /// take the place of this one. So a wait either has ended, and its length stands in the last tick's row, or goes on,
    /// and its length will stand in this one's; never both.
    fn visit(
        &mut self,
        place: &Arc<Place>,
        identity: Option<&Identity>,
        seen: &Observed,
        at: u64,
    ) -> Option<Sample> {
        // Places are visited in the same order at each tick.
        let asked = self.last_waits.next_if(|(_, other)| Arc::ptr_eq(other, place));
        if let (Some(last), Some((row, _))) = (&mut self.last, asked) {
            settle(last, row, seen);
        }
        let identity = identity.filter(|who| session::active(who.kind, seen))?;
        let mut time_waited = None;
        if seen.waiting {
            // Before anything else: each nanosecond in between is one in which a short wait can slip through.
            place.want(seen.number);
            fence(Ordering::SeqCst);
            match place.observed().ended(seen.number) {
                Ended::After(waited) => time_waited = Some(Nanos(waited)),
                Ended::NotYet | Ended::Unknown => self.waits.push((self.rows, Arc::clone(place))),
            }
        }
        self.rows += 1;
        Some(Sample { time_waited, ..Sample::of(SessionState::of(identity, seen, at)) })
    }
}

impl Open {
    /// Fills in the lengths of those waits that have ended meanwhile.
    fn resolve(&mut self) {
        let Self { tick, waits } = self;
        waits.retain(|(row, place)| !settle(tick, *row, &place.observed()));
    }
}

/// Fills in the length of a row's wait, if it has ended by what was seen of its place; whether it has.
fn settle(tick: &mut Tick, row: usize, seen: &Observed) -> bool {
    let sample = &mut tick.rows[row];
    match seen.ended(sample.wait_number) {
        Ended::NotYet => return false,
        Ended::After(waited) => sample.time_waited = Some(Nanos(waited)),
        Ended::Unknown => tick.unresolved += 1,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use units::Clock;

    struct World {
        registry: Arc<Registry>,
        sampler: Sampler,
    }

    impl World {
        fn new() -> Self {
            let registry = Registry::new(Clock::steps(), 1);
            let sampler = Sampler::stepped(&registry, Nanos::millis(10), 10);
            Self { registry, sampler }
        }

        /// A second tick in which `meanwhile` happens after a place was looked at and before it is dealt with. The
        /// rows of the first and of the second.
        fn second_tick(&self, mut meanwhile: impl FnMut()) -> (Tick, Sample) {
            let mut state = self.sampler.shared.lock();
            let mut pass = Pass::new(state.open.take());
            let mut rows = self.registry.observe(|place, identity, seen, at| {
                meanwhile();
                pass.visit(place, identity, seen, at)
            });
            (pass.last.expect("there was a first tick"), rows.remove(0))
        }
    }

    #[test]
    fn an_answer_is_taken_before_the_next_question() {
        let world = World::new();
        let slot = world.registry.register(SessionKind::Foreground, "user");
        let _call = slot.call();
        let wait = slot.enter(Event::LogFileSync, 0, 0, 0);
        world.sampler.shared.lock().tick(&world.registry, Nanos::millis(10));
        let first = wait.end();
        let mut wait = Some(slot.enter(Event::DbFileSequentialRead, 0, 0, 0));
        let mut second = None;
        let (tick, row) = world.second_tick(|| second = wait.take().map(crate::Guard::end));
        assert_eq!((tick.rows[0].time_waited, tick.unresolved), (Some(first), 0));
        assert_eq!(row.time_waited, second);
        assert!(second.is_some());
    }

    #[test]
    fn a_wait_that_ends_between_two_looks_has_one_length() {
        let world = World::new();
        let slot = world.registry.register(SessionKind::Foreground, "user");
        let mut wait = Some(slot.enter(Event::LogFileSync, 0, 0, 0));
        world.sampler.shared.lock().tick(&world.registry, Nanos::millis(10));
        let mut length = None;
        let (tick, row) = world.second_tick(|| length = wait.take().map(crate::Guard::end));
        assert_eq!((tick.rows[0].time_waited, tick.unresolved), (None, 0));
        assert_eq!(row.time_waited, length);
        assert!(length.is_some());
    }

    #[test]
    fn what_slips_through_is_counted() {
        let world = World::new();
        let slot = world.registry.register(SessionKind::Foreground, "user");
        let mut wait = Some(slot.enter(Event::LogFileSync, 0, 0, 0));
        let mut state = world.sampler.shared.lock();
        let mut pass = Pass::new(None);
        let rows = world.registry.observe(|place, identity, seen, at| {
            drop(wait.take());
            drop(slot.enter(Event::DbFileSequentialRead, 0, 0, 0));
            pass.visit(place, identity, seen, at)
        });
        let tick = Tick {
            id: 1,
            planned: Nanos(0),
            real: Nanos(0),
            weight: Nanos(0),
            interval: Nanos(0),
            missed: 0,
            cost: Nanos(0),
            unresolved: 0,
            rows,
        };
        state.open = Some(Open { tick, waits: pass.waits });
        state.close();
        let tick = &state.ring.all()[0];
        assert_eq!((tick.rows[0].time_waited, tick.unresolved), (None, 1));
    }
}
