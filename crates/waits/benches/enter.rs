//! What a wait costs who waits, also while others look: our own part is 25 ns at most, the clock left out.
//!
//! Two looks at the clock are most of a wait. Here it is the system's; with the clock that the database uses, and against the
//! promise of 60 ns for the whole, `cargo x bench engine --only waits` measures it. *watched*: a thread reads all sessions and
//! totals in a loop meanwhile, hundreds of times as often as a sampler does.
//!
//! `cargo x bench enter --rounds 15 --waits 500000`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use flags::Flags;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Clock, Nanos};
use waits::{Event, Registry, SessionKind, Slot};

/// The promise for our own part, in nanoseconds.
const NS_MAX: f64 = 25.0;
const CHUNK: u64 = 1_000;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 15 } else { 1 });
    let waits =
        (flags.number("waits", if measured { 500_000 } else { 1_000 }) as u64).next_multiple_of(CHUNK);

    let registry = Registry::new(Clock::Real, 16);
    let slot = registry.register(SessionKind::Foreground, "bench");
    // The sides take turns within a round, so what the machine does meanwhile befalls all of them.
    let sides: [(&str, &dyn Fn() -> f64); 4] = [
        ("two looks at the clock", &|| clock(waits, &registry)),
        ("enter and leave", &|| enter(waits, &slot)),
        ("enter and leave, watched", &|| watched(waits, &registry, &slot)),
        ("call, enter, leave, end of call", &|| call(waits, &slot)),
    ];
    let mut values = [const { Vec::new() }; 4];
    for _ in 0..rounds {
        for (values, (_, side)) in values.iter_mut().zip(sides) {
            values.push(side());
        }
    }
    let counted = registry.totals().foreground.event(Event::DbFileSequentialRead).waits;
    assert_eq!(counted, 3 * waits * rounds as u64, "every wait is counted");

    let mut missed = false;
    let mut tell = |name: &str, values: &mut Vec<f64>, judged: bool| {
        values.sort_by(f64::total_cmp);
        let (median, low, high) = (values[rounds / 2], values[0], values[rounds - 1]);
        missed |= judged && median > NS_MAX;
        let verdict = match (judged, median > NS_MAX) {
            (false, _) => "",
            (true, false) => "  goal <= 25 ns: met",
            (true, true) => "  goal <= 25 ns: MISSED",
        };
        println!("{name:<42} {median:>6.1} ns  (min {low:.1}, max {high:.1}){verdict}");
    };
    for (at, name) in [(1, "enter and leave without the clock"), (2, "the same, watched")] {
        let mut own: Vec<f64> =
            values[at].iter().zip(&values[0]).map(|(enter, clock)| enter - clock).collect();
        tell(name, &mut own, measured);
    }
    for ((name, _), values) in sides.iter().zip(&mut values) {
        tell(name, values, false);
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Nanoseconds of one act: the median over chunks of a fraction of a millisecond, so that what else runs on the machine spoils
/// some chunks and not the result.
fn nanos_each(count: u64, mut act: impl FnMut(u64)) -> f64 {
    let mut chunks = Vec::new();
    for first in (0..count).step_by(CHUNK as usize) {
        let start = units::clock::now();
        for n in first..first + CHUNK {
            act(n);
        }
        let took: Nanos = units::clock::now() - start;
        chunks.push(took.0 as f64 / CHUNK as f64);
    }
    chunks.sort_by(f64::total_cmp);
    chunks[chunks.len() / 2]
}

fn clock(count: u64, registry: &Arc<Registry>) -> f64 {
    let clock = registry.clock();
    nanos_each(count, |_| {
        black_box(clock.now());
        black_box(clock.now());
    })
}

fn enter(count: u64, slot: &Slot) -> f64 {
    let _call = slot.call();
    nanos_each(count, |n| drop(slot.enter(Event::DbFileSequentialRead, 4, black_box(n), 1)))
}

fn watched(count: u64, registry: &Arc<Registry>, slot: &Slot) -> f64 {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                black_box((registry.sessions(), registry.totals()));
                units::clock::sleep(Nanos::micros(200));
            }
        });
        let each = enter(count, slot);
        stop.store(true, Ordering::Relaxed);
        each
    })
}

fn call(count: u64, slot: &Slot) -> f64 {
    nanos_each(count, |n| {
        let _call = slot.call();
        drop(slot.enter(Event::DbFileSequentialRead, 4, black_box(n), 1));
    })
}
