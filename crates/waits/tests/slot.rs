//! What slots count and what others see of it, on a simulation's clock where lengths are exact, and under threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Clock, Nanos};
use waits::{Doing, Event, Part, Registry, SessionKind, Slot, bucket};

/// A clock that moves by a microsecond per look, and as far as a test says.
struct World {
    time: Arc<AtomicU64>,
    registry: Arc<Registry>,
}

impl World {
    fn new() -> Self {
        let time = Arc::new(AtomicU64::new(0));
        let registry = Registry::new(Clock::Steps(Arc::clone(&time)), 4);
        Self { time, registry }
    }

    fn foreground(&self) -> Slot {
        self.registry.register(SessionKind::Foreground, "user")
    }

    fn background(&self) -> Slot {
        self.registry.register(SessionKind::Background, "lgwr")
    }

    fn pass(&self, us: u64) {
        self.time.fetch_add(us * 1_000, Ordering::Relaxed);
    }

    fn wait(&self, slot: &Slot, event: Event, us: u64) -> Nanos {
        let wait = slot.enter(event, 0, 0, 0);
        // The look at the clock at the end takes the last microsecond.
        self.pass(us - 1);
        wait.end()
    }
}

#[test]
fn every_wait_is_counted_with_its_length() {
    let world = World::new();
    let slot = world.foreground();
    let call = slot.call();
    for us in [1, 2, 3, 100, 1_000_000] {
        assert_eq!(world.wait(&slot, Event::DbFileSequentialRead, us), Nanos::micros(us));
    }
    let wait = slot.enter(Event::RdbmsIpcReply, 0, 0, 0);
    wait.end_timed_out();
    drop(call);
    let totals = world.registry.totals();
    let reads = totals.foreground.event(Event::DbFileSequentialRead);
    assert_eq!(
        (reads.waits, reads.waited, reads.longest),
        (5, Nanos::micros(1_000_106), Nanos::micros(1_000_000))
    );
    assert_eq!(reads.histogram.iter().sum::<u64>(), 5);
    for (us, count) in [(1, 1), (2, 2), (100, 1), (1_000_000, 1)] {
        assert_eq!(reads.histogram[bucket(Nanos::micros(us))], count, "{us}");
    }
    let replies = totals.foreground.event(Event::RdbmsIpcReply);
    assert_eq!((replies.waits, replies.timeouts), (1, 1));
    assert_eq!(totals.background.seen().count(), 0);
}

#[test]
fn db_time_is_waits_and_cpu() {
    let world = World::new();
    let slot = world.foreground();
    world.pass(1_000);
    {
        let _call = slot.call();
        world.pass(500);
        world.wait(&slot, Event::DbFileSequentialRead, 200);
        {
            // A call inside a call is a part of it.
            let _inner = slot.call();
            world.wait(&slot, Event::LogFileSync, 100);
        }
        // Nothing to do inside a call is no DB time.
        world.wait(&slot, Event::PlsqlLockTimer, 10_000);
    }
    world.pass(2_000);
    let time = world.registry.time_model(SessionKind::Foreground);
    assert_eq!((time.calls, time.waited), (1, Nanos::micros(300)));
    // One microsecond per look: beginning of each of the three waits and the end of the call.
    assert_eq!((time.elapsed, time.cpu()), (Nanos::micros(500 + 300 + 4), Nanos::micros(504)));
    let totals = world.registry.totals();
    assert_eq!(totals.foreground.waited(), time.waited);
    let idle = totals.foreground.event(Event::SqlNetMessageFromClient);
    assert_eq!((idle.waits, idle.waited), (1, Nanos::micros(1_001)));
}

#[test]
fn what_goes_on_is_in_the_time_model() {
    let world = World::new();
    let slot = world.foreground();
    let _call = slot.call();
    world.pass(100);
    let _wait = slot.enter(Event::LogFileSync, 0, 0, 0);
    world.pass(900);
    let time = world.registry.time_model(SessionKind::Foreground);
    assert_eq!((time.elapsed, time.waited), (Nanos::micros(1_002), Nanos::micros(901)));
    let session = &world.registry.sessions()[0];
    assert!(session.active && session.doing == Doing::Waiting(Event::LogFileSync));
    assert_eq!((session.for_now, session.call_for), (Nanos::micros(902), Some(Nanos::micros(1_003))));
}

#[test]
fn a_wait_outside_a_call_is_a_call() {
    let world = World::new();
    let slot = world.foreground();
    world.pass(1_000);
    world.wait(&slot, Event::DbFileSequentialRead, 200);
    // Idle outside a call stays outside.
    world.wait(&slot, Event::PlsqlLockTimer, 5_000);
    world.pass(1_000);
    let time = world.registry.time_model(SessionKind::Foreground);
    assert_eq!((time.calls, time.elapsed, time.waited), (1, Nanos::micros(200), Nanos::micros(200)));
    drop(slot);
    let idle = *world.registry.totals().foreground.event(Event::SqlNetMessageFromClient);
    assert_eq!(idle.waits, 3, "before, between and after");
}

#[test]
fn a_process_works_unless_it_is_idle() {
    let world = World::new();
    let slot = world.background();
    world.wait(&slot, Event::RdbmsIpcMessage, 3_000_000);
    world.pass(50);
    world.wait(&slot, Event::LogFileParallelWrite, 100);
    assert!(world.registry.sessions()[0].active);
    let time = world.registry.time_model(SessionKind::Background);
    assert_eq!(time.waited, Nanos::micros(100));
    // Looks: two beginnings, the session's, and the model's own.
    assert_eq!(time.cpu(), Nanos::micros(50 + 4));
    let _idle = slot.enter(Event::RdbmsIpcMessage, 300, 0, 0);
    assert!(!world.registry.sessions()[0].active);
    assert_eq!(world.registry.time_model(SessionKind::Foreground).elapsed, Nanos(0));
}

/// Others wait in its name; between that it is idle, whoever looks.
#[test]
fn a_process_without_a_thread_rests_between_waits() {
    let world = World::new();
    let slot = world.background();
    slot.rest();
    world.pass(1_000);
    let session = &world.registry.sessions()[0];
    assert!(!session.active && session.doing == Doing::Waiting(Event::RdbmsIpcMessage));
    world.wait(&slot, Event::LogFileParallelWrite, 100);
    world.pass(1_000);
    let time = world.registry.time_model(SessionKind::Background);
    assert_eq!(time.waited, Nanos::micros(100));
    // Between its coming and its rest a look at the clock was taken.
    assert!(time.elapsed <= Nanos::micros(102), "{time:?}");
    assert!(!world.registry.sessions()[0].active);
}

#[test]
fn what_goes_on_is_in_the_totals_so_far() {
    let world = World::new();
    let slot = world.foreground();
    let _call = slot.call();
    world.wait(&slot, Event::LogFileSync, 50);
    let wait = slot.enter(Event::LogFileSync, 0, 0, 0);
    world.pass(400);
    let before = world.registry.totals_so_far();
    world.pass(700);
    drop(wait);
    world.pass(1_000);
    let between = world.registry.totals_so_far().since(&before);
    let sync = between.foreground.event(Event::LogFileSync);
    // The first half was before; the look at the clock in between takes a microsecond itself.
    assert_eq!((sync.waits, sync.waited), (1, Nanos::micros(701)));
    assert_eq!(world.registry.totals().foreground, world.registry.totals_so_far().foreground);
}

#[test]
fn totals_stay_when_a_session_goes() {
    let world = World::new();
    for n in 1..=10u32 {
        let slot = world.foreground();
        assert_eq!((slot.sid(), slot.serial()), (1, n));
        let _call = slot.call();
        world.wait(&slot, Event::LogFileSync, 10);
        slot.sync_parts(3_000, 5_000, 2_000);
        assert_eq!(world.registry.session_totals(1).unwrap().event(Event::LogFileSync).waits, 1);
    }
    assert!(world.registry.session_totals(1).is_none());
    let totals = world.registry.totals();
    let sync = totals.foreground.event(Event::LogFileSync);
    assert_eq!((sync.waits, sync.waited), (10, Nanos::micros(100)));
    for (part, ns) in [(Part::Queue, 30_000), (Part::Write, 50_000), (Part::WakeUp, 20_000)] {
        let part = totals.foreground.part(part);
        assert_eq!((part.waits, part.waited), (10, Nanos(ns)));
    }
    let earlier = totals;
    let slot = world.foreground();
    let call = slot.call();
    world.wait(&slot, Event::LogFileSync, 7);
    drop(call);
    assert_eq!(world.registry.totals().since(&earlier).event(Event::LogFileSync).waited, Nanos::micros(7));
    let time = world.registry.time_model(SessionKind::Foreground);
    assert_eq!((time.calls, time.waited), (11, Nanos::micros(107)));
}

#[test]
fn foreground_and_background_are_apart() {
    let world = World::new();
    let (user, lgwr) = (world.foreground(), world.background());
    assert_eq!((user.sid(), lgwr.sid()), (1, 2));
    world.wait(&user, Event::ControlFileSequentialRead, 5);
    world.wait(&lgwr, Event::ControlFileSequentialRead, 9);
    let totals = world.registry.totals();
    let waited = |kind| totals.of(kind).event(Event::ControlFileSequentialRead).waited;
    assert_eq!(waited(SessionKind::Foreground), Nanos::micros(5));
    assert_eq!(waited(SessionKind::Background), Nanos::micros(9));
    assert_eq!(totals.event(Event::ControlFileSequentialRead).waits, 2);
}

#[test]
fn a_session_tells_what_it_is_at() {
    let world = World::new();
    let slot = world.foreground();
    let idle = &world.registry.sessions()[0];
    assert!(!idle.active && idle.doing == Doing::Waiting(Event::SqlNetMessageFromClient));
    let _call = slot.call();
    let sql = world.registry.keep_text("UPDATE t SET a = 1");
    slot.set_sql(Some(sql));
    slot.set_action(Some(world.registry.keep_text("payment")));
    slot.set_xid(42);
    world.wait(&slot, Event::DbFileScatteredRead, 10);
    let working = &world.registry.sessions()[0];
    assert!(working.active && working.doing == Doing::OnCpu);
    assert_eq!(
        (working.last_event, working.last_waited),
        (Some(Event::DbFileScatteredRead), Nanos::micros(10))
    );
    let wait = slot.enter(Event::EnqTxRowLockContention, 7, 8, 9);
    slot.set_blocker(3);
    slot.set_file(4, 1_234);
    slot.set_object(77);
    let waiting = &world.registry.sessions()[0];
    assert_eq!(waiting.parameters, [7, 8, 9]);
    assert_eq!((waiting.blocker, waiting.file_block, waiting.object), (Some(3), Some((4, 1_234)), 77));
    assert_eq!((waiting.sql, waiting.xid), (Some(sql), 42));
    assert_eq!(waiting.sql.and_then(|id| world.registry.text(id)).as_deref(), Some("UPDATE t SET a = 1"));
    assert_eq!(waiting.wait_number, working.wait_number + 1);
    assert_eq!((&*waiting.program, waiting.sid), ("user", 1));
    drop(wait);
    // What was told of one wait does not stick to the next; where p1 is file#, nothing needs to be told.
    let _wait = slot.enter(Event::BufferBusyWaits, 5, 6, 1);
    let next = &world.registry.sessions()[0];
    assert_eq!((next.blocker, next.file_block, next.object), (None, Some((5, 6)), 0));
    drop(_wait);
    slot.set_blocker(2);
    let _wait = slot.enter(Event::EnqTxRowLockContention, 0, 0, 0);
    assert_eq!(world.registry.sessions()[0].blocker, Some(2), "told before the wait began");
}

#[test]
fn sessions_have_a_limit_and_processes_have_none() {
    let world = World::new();
    let slots: Vec<_> = (0..4)
        .map(|_| world.registry.try_register(SessionKind::Foreground, "user").expect("there is room"))
        .collect();
    assert!(world.registry.try_register(SessionKind::Foreground, "user").is_none());
    assert_eq!(world.background().sid(), 5);
    drop(slots);
    assert_eq!(world.registry.try_register(SessionKind::Foreground, "user").unwrap().sid(), 1);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "waits do not nest: db file sequential read begins inside log file sync")]
fn waits_do_not_nest() {
    let world = World::new();
    let slot = world.foreground();
    let _call = slot.call();
    let _outer = slot.enter(Event::LogFileSync, 0, 0, 0);
    let _inner = slot.enter(Event::DbFileSequentialRead, 0, 0, 0);
}

#[test]
fn readers_see_one_moment() {
    const WAITS: u64 = 200_000;
    let registry = Registry::new(Clock::Real, 2);
    let (done, started) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (registry, done, started) = (&registry, &done, &started);
        scope.spawn(move || {
            let slot = registry.register(SessionKind::Background, "writer");
            started.store(true, Ordering::Release);
            for n in 0..WAITS {
                let event = if n % 2 == 0 { Event::DbFileSequentialRead } else { Event::LogFileSync };
                drop(slot.enter(event, n, n, n));
            }
            done.store(true, Ordering::Release);
        });
        while !started.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let mut last = 0;
        while !done.load(Ordering::Acquire) {
            for session in registry.sessions() {
                let [a, b, c] = session.parameters;
                assert!(a == b && b == c, "torn: {:?}", session.parameters);
                assert!(session.wait_number >= last, "time runs backwards");
                last = session.wait_number;
                if let Some(event) = session.doing.event().or(session.last_event) {
                    assert_eq!(session.wait_number, a + 1);
                    assert_eq!(event == Event::DbFileSequentialRead, a % 2 == 0, "{event} with {a}");
                }
            }
            let totals = registry.totals();
            for (event, totals) in totals.background.seen() {
                assert_eq!(totals.histogram.iter().sum::<u64>(), totals.waits, "{event}");
            }
        }
    });
    let totals = registry.totals();
    let counted = |event| totals.background.event(event).waits;
    assert_eq!(counted(Event::DbFileSequentialRead) + counted(Event::LogFileSync), WAITS);
}

#[test]
fn nothing_is_counted_twice_or_lost_while_sessions_come_and_go() {
    const SESSIONS: u64 = 2_000;
    let registry = Registry::new(Clock::Real, 4);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..SESSIONS {
                let slot = registry.register(SessionKind::Foreground, "short");
                for _ in 0..3 {
                    drop(slot.enter(Event::DbFileSequentialRead, 0, 0, 0));
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut last = 0;
        while !done.load(Ordering::Acquire) {
            let waits = registry.totals().foreground.event(Event::DbFileSequentialRead).waits;
            assert!(waits >= last, "{waits} after {last}");
            last = waits;
        }
    });
    assert_eq!(registry.totals().foreground.event(Event::DbFileSequentialRead).waits, 3 * SESSIONS);
}
