//! Active session history: what ticks see, how lengths are filled in, what windows refuse, and samples against counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Clock, Nanos, Rng, Seed};
use waits::ash::{Refused, Sampler, Tick, Window};
use waits::{Doing, Event, Guard, Registry, SessionKind, Slot};

const TICK: Nanos = Nanos::millis(100);

/// A simulation whose time a test sets.
struct World {
    time: Arc<AtomicU64>,
    registry: Arc<Registry>,
    sampler: Sampler,
}

impl World {
    fn new(rows_max: usize) -> Self {
        Self::with_interval(TICK, rows_max)
    }

    fn with_interval(interval: Nanos, rows_max: usize) -> Self {
        let time = Arc::new(AtomicU64::new(0));
        let registry = Registry::new(Clock::Steps(Arc::clone(&time)), 100);
        let sampler = Sampler::stepped(&registry, interval, rows_max);
        Self { time, registry, sampler }
    }

    fn user(&self) -> Slot {
        self.registry.register(SessionKind::Foreground, "user")
    }

    /// Sets the clock, unless it is there already.
    fn at(&self, time: Nanos) {
        self.time.fetch_max(time.0, Ordering::Relaxed);
    }

    /// Ticks `count` times, each when it is due.
    fn ticks(&self, count: usize) {
        for _ in 0..count {
            self.time.fetch_add(TICK.0, Ordering::Relaxed);
            assert!(self.sampler.step());
        }
    }

    fn closed(&self) -> Vec<Arc<Tick>> {
        self.sampler.close();
        self.sampler.recent()
    }
}

#[test]
fn a_tick_beats_even_when_nobody_is_there() {
    let world = World::new(100);
    let idle = world.user();
    assert!(!world.sampler.step(), "not due yet");
    world.ticks(5);
    let ticks = world.closed();
    assert_eq!(ticks.iter().map(|tick| tick.id).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    for tick in &ticks {
        assert!(tick.rows.is_empty() && tick.missed == 0 && tick.cost > Nanos(0), "{tick:?}");
        assert!(tick.real >= tick.planned && tick.interval == TICK);
    }
    let weights = ticks.iter().fold(Nanos(0), |sum, tick| sum + tick.weight);
    let window = Window::all(&ticks).unwrap();
    assert_eq!(window.length(), weights);
    assert_eq!(window.average(|_| true), 0.0);
    drop(idle);
}

#[test]
fn rows_say_what_sessions_are_at() {
    let world = World::new(100);
    let (user, other) = (world.user(), world.user());
    let lgwr = world.registry.register(SessionKind::Background, "lgwr");
    let _idle = lgwr.enter(Event::RdbmsIpcMessage, 0, 0, 0);
    let _other_call = other.call();
    let _call = user.call();
    user.set_sql(Some(world.registry.keep_text("COMMIT")));
    let _wait = user.enter(Event::LogFileSync, 1, 2, 3);
    world.ticks(1);
    let ticks = world.closed();
    let [waiting, working] = &ticks[0].rows[..] else { panic!("{ticks:?}") };
    assert_eq!((waiting.sid, waiting.doing), (1, Doing::Waiting(Event::LogFileSync)));
    assert_eq!((waiting.parameters, waiting.time_waited), ([1, 2, 3], None));
    assert_eq!(waiting.sql.and_then(|id| world.registry.text(id)).as_deref(), Some("COMMIT"));
    assert!(waiting.so_far > TICK);
    assert_eq!((working.sid, working.doing, working.event()), (2, Doing::OnCpu, None));
    // 100 ms of one waiting and one working session.
    let window = Window::all(&ticks).unwrap();
    assert_eq!(window.average(|_| true), 2.0);
    assert_eq!(window.average(|row| row.event() == Some(Event::LogFileSync)), 1.0);
}

#[test]
fn a_wait_has_its_length_once_and_in_its_last_row() {
    let world = World::new(100);
    let user = world.user();
    let _call = user.call();
    let wait = user.enter(Event::DbFileSequentialRead, 4, 1, 1);
    world.ticks(3);
    let length = wait.end();
    // Others follow before the sampler looks again, so the place itself has forgotten the first.
    for _ in 0..5 {
        drop(user.enter(Event::DbFileSequentialRead, 4, 2, 1));
    }
    world.ticks(1);
    let ticks = world.closed();
    let known: Vec<_> = ticks.iter().map(|tick| tick.rows[0].time_waited).collect();
    assert_eq!(known, [None, None, Some(length), None], "the last row is on CPU");
    assert_eq!(ticks.iter().map(|tick| tick.unresolved).sum::<u32>(), 0);
    let check = world.sampler.check();
    let reads = check.event(SessionKind::Foreground, Event::DbFileSequentialRead).unwrap();
    assert_eq!((reads.rows, reads.waits_estimated, reads.waits_exact), (3, 1.0, 6));
}

#[test]
fn a_wait_that_outlives_its_session_is_resolved() {
    let world = World::new(100);
    let user = world.user();
    let wait = user.enter(Event::DbFileSequentialRead, 4, 1, 1);
    world.ticks(1);
    let length = wait.end();
    drop(user);
    let next = world.user();
    drop(next.enter(Event::LogFileSync, 0, 0, 0));
    world.ticks(1);
    assert_eq!(world.closed()[0].rows[0].time_waited, Some(length));
}

#[test]
fn missed_ticks_are_counted_and_too_many_refused() {
    let world = World::new(1_000);
    let user = world.user();
    let _call = user.call();
    world.ticks(20);
    let late = Nanos(TICK.0 * 4);
    world.time.fetch_add(late.0, Ordering::Relaxed);
    assert!(world.sampler.step());
    let ticks = world.closed();
    assert_eq!((ticks[20].missed, ticks[20].weight.0 / TICK.0), (3, 4));
    assert_eq!(Window::all(&ticks[..20]).unwrap().average(|_| true), 1.0);
    match Window::all(&ticks) {
        Err(Refused::Missed { missed, planned }) => assert_eq!((missed, planned), (3.0, 24.0)),
        other => panic!("{other:?}"),
    }
    world.ticks(60);
    let ticks = world.closed();
    assert_eq!(ticks[21].planned, ticks[20].planned + Nanos(TICK.0 * 4), "the plan is kept");
    let whole = Window::all(&ticks).unwrap();
    assert_eq!((whole.missed(), whole.average(|_| true)), (3.0, 1.0));
    // A window that reaches beyond the ticks misses those that are not there.
    let end = ticks.last().unwrap().real;
    assert!(Window::over(&ticks, end - Nanos::secs(5.0), end + Nanos::millis(200)).is_ok());
    assert!(Window::over(&ticks, end - Nanos::secs(5.0), end + Nanos::secs(1.0)).is_err());
    assert_eq!(Window::over(&ticks, end, end + TICK).unwrap_err(), Refused::Empty);
    assert_eq!(Window::all(&[]).unwrap_err(), Refused::Empty);
}

#[test]
fn edges_of_a_window_count_in_part() {
    let world = World::new(1_000);
    let user = world.user();
    world.ticks(10);
    let call = user.call();
    world.ticks(10);
    drop(call);
    world.ticks(10);
    let ticks = world.closed();
    let (from, to) = (ticks[4].real + Nanos(TICK.0 / 4), ticks[14].real + Nanos(TICK.0 / 4));
    let average = Window::over(&ticks, from, to).unwrap().average(|_| true);
    let expected = (to - ticks[9].real).0 as f64 / (to - from).0 as f64;
    assert!((average - expected).abs() < 1e-9, "{average} {expected}");
}

#[test]
fn a_new_interval_leaves_what_was() {
    let world = World::new(1_000);
    let user = world.user();
    let _call = user.call();
    world.ticks(50);
    let before = Window::all(&world.sampler.recent()).unwrap().average(|_| true);
    world.sampler.set_interval(Nanos(TICK.0 / 10));
    for _ in 0..100 {
        world.time.fetch_add(TICK.0 / 10, Ordering::Relaxed);
        assert!(world.sampler.step());
    }
    let ticks = world.closed();
    assert_eq!(Window::all(&ticks[..50]).unwrap().average(|_| true), before);
    assert_eq!(Window::all(&ticks).unwrap().average(|_| true), 1.0);
}

#[test]
fn the_ring_is_bounded_and_readers_know_what_they_lost() {
    let world = World::new(20);
    let user = world.user();
    let _call = user.call();
    let (mut diligent, mut lazy) = (world.sampler.reader(), world.sampler.reader());
    let mut read = Vec::new();
    for _ in 0..10 {
        world.ticks(3);
        let drained = world.sampler.drain(&mut diligent);
        assert_eq!(drained.overwritten, 0);
        read.extend(drained.ticks.iter().map(|tick| tick.id));
    }
    world.sampler.close();
    read.extend(world.sampler.drain(&mut diligent).ticks.iter().map(|tick| tick.id));
    assert_eq!(read, (1..=30).collect::<Vec<_>>());
    // A heartbeat and a row per tick: ten ticks in twenty places.
    let drained = world.sampler.drain(&mut lazy);
    assert_eq!((drained.ticks.len(), drained.overwritten), (10, 20));
    assert_eq!(world.sampler.drain(&mut lazy).ticks.len(), 0);
}

/// One session of the simulation below: works, reads, works, commits …
struct Actor<'a> {
    slot: &'a Slot,
    guard: Option<Guard<'a>>,
    next: Nanos,
    step: u64,
}

impl Actor<'_> {
    fn act(&mut self, rng: &mut Rng) {
        let micros = |rng: &mut Rng, low: u64, high: u64| Nanos::micros(low + rng.below(high - low));
        self.guard = None;
        let span = match self.step % 4 {
            0 => {
                self.guard = Some(self.slot.enter(Event::DbFileSequentialRead, 4, self.step, 1));
                micros(rng, 100, 1_000)
            }
            2 => {
                self.guard = Some(self.slot.enter(Event::LogFileSync, 0, 0, 0));
                micros(rng, 1_000, 30_000)
            }
            _ => micros(rng, 200, 800),
        };
        self.step += 1;
        self.next += span;
    }
}

/// Eight sessions for 100 s of a simulation, sampled each 10 ms: most reads are never seen, and yet their number comes out.
#[test]
fn samples_and_counters_agree() {
    let world = World::with_interval(Nanos::millis(10), 1_000_000);
    let mut rng = Rng::new(Seed(5));
    let slots: Vec<Slot> = (0..8).map(|_| world.user()).collect();
    let calls: Vec<_> = slots.iter().map(Slot::call).collect();
    let mut actors: Vec<_> = slots
        .iter()
        .map(|slot| Actor { slot, guard: None, next: Nanos::micros(rng.below(1_000)), step: 0 })
        .collect();
    let mut planned = Nanos::millis(10);
    while planned < Nanos::secs(100.0) {
        let actor = actors.iter_mut().min_by_key(|actor| actor.next).unwrap();
        if actor.next < planned {
            world.at(actor.next);
            actor.act(&mut rng);
        } else {
            world.at(planned);
            planned += Nanos(if world.sampler.step() { 10_000_000 } else { 0 });
        }
    }
    drop(actors);
    world.sampler.close();
    let check = world.sampler.check();
    assert_eq!(check.unresolved, 0);
    let near = |what: &str, ratio: f64, error: f64| assert!((ratio - 1.0).abs() < error, "{what}: {ratio}");
    near("DB time", check.db_time_sampled.as_secs() / check.db_time_exact.as_secs(), 0.01);
    near("CPU", check.cpu_sampled.as_secs() / check.cpu_exact.as_secs(), 0.05);
    for (event, error) in [(Event::DbFileSequentialRead, 0.08), (Event::LogFileSync, 0.05)] {
        let line = check.event(SessionKind::Foreground, event).unwrap();
        assert!(line.rows > 1_000, "{line:?}");
        near(event.name(), line.waits_ratio().unwrap(), error);
        near(event.name(), line.time_ratio().unwrap(), error);
    }
    drop(calls);
}

/// The same over threads: each waiting row has its length, or its wait went on into the next tick, or it is counted as lost.
#[test]
fn under_threads_no_length_vanishes_silently() {
    let registry = Registry::new(Clock::Real, 4);
    let sampler = Sampler::start(&registry, Nanos::millis(1), 100_000);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (program, pause) in [("spins", 0), ("short", 50), ("long", 2_500)] {
            let (registry, stop) = (&registry, &stop);
            scope.spawn(move || {
                let slot = registry.register(SessionKind::Foreground, program);
                let _call = slot.call();
                while !stop.load(Ordering::Relaxed) {
                    let _wait = slot.enter(Event::DbFileSequentialRead, 0, 0, 0);
                    if pause > 0 {
                        units::clock::sleep(Nanos::micros(pause));
                    }
                }
            });
        }
        while sampler.recent().len() < 100 {
            units::clock::sleep(Nanos::millis(5));
        }
        stop.store(true, Ordering::Relaxed);
    });
    sampler.close();
    let ticks = sampler.recent();
    let (mut lengths, mut lost) = (0, 0u32);
    for (at, tick) in ticks.iter().enumerate() {
        for row in tick.rows.iter().filter(|row| row.event().is_some()) {
            let goes_on = ticks.get(at + 1).is_some_and(|next| {
                next.rows
                    .iter()
                    .any(|r| (r.sid, r.wait_number) == (row.sid, row.wait_number) && r.event().is_some())
            });
            assert!(!(goes_on && row.time_waited.is_some()), "a length twice: {row:?}");
            lengths += u32::from(row.time_waited.is_some());
            lost += u32::from(row.time_waited.is_none() && !goes_on);
        }
    }
    assert_eq!(lost, ticks.iter().map(|tick| tick.unresolved).sum::<u32>());
    // How many get lost depends on how often the sampler loses its processor; that most are there does not.
    assert!(lengths > lost, "{lengths} lengths, {lost} lost");
}

#[test]
fn a_stopped_sampler_stops_at_once() {
    let registry = Registry::new(Clock::Real, 4);
    let begun = units::clock::now();
    drop(Sampler::start(&registry, Nanos::secs(3_600.0), 10));
    assert!(units::clock::now() - begun < Nanos::secs(60.0), "it slept its interval out");
}
