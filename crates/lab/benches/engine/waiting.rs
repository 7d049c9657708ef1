//! What waits and sampling cost: entering and leaving one, and their share of the processor time of a commit and of a cached read.
//!
//! The share is computed, not measured by leaving waits out: there is no engine without them. Waits that were counted, times what
//! one costs here, plus what the sampler says that its ticks took, over the processor time that this process used meanwhile. The
//! beginning and end of calls, from which DB time comes, are told beside it: a read by address is a call of its own here, where
//! a statement would be one call for many.

use super::{Bench, NEVER, SESSIONS};
use crate::common::child::cpu_of_self;
use crate::common::goals::{Aim, Goals, median};
use engine::{Instance, Shutdown};
use lab::database::{commit, random_read};
use std::hint::black_box;
use units::{Clock, Seed, clock};
use waits::{Event, Registry, SessionKind};

/// Acts between two looks at the clock.
const CHUNK: u64 = 1_000;
/// Blocks of the table that is read from the cache.
const CACHED_BLOCKS: u64 = 2_000;

/// Nanoseconds of each.
struct Costs {
    clock: f64,
    wait: f64,
    call: f64,
}

impl Bench {
    pub fn waiting(&self, goals: &mut Goals) {
        println!("\nwaits and sampling, {} rounds", self.rounds);
        let (mut fast, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            fast.push(costs(io::clock(), self.acts()));
            plain.push(costs(Clock::Real, self.acts()));
        }
        let of = |all: &[Costs], part: fn(&Costs) -> f64| all.iter().map(part).collect::<Vec<f64>>();
        println!("  with {:?}", io::clock());
        goals.rounds("entering and leaving a wait, ns", &of(&fast, |c| c.wait), Aim::AtMost(60.0));
        goals.rounds("  of which two looks at the clock, ns", &of(&fast, |c| c.clock), Aim::Told);
        goals.rounds("  with the system's clock, ns", &of(&plain, |c| c.wait), Aim::Told);
        goals.rounds("  of which two looks at the system's clock, ns", &of(&plain, |c| c.clock), Aim::Told);
        let each = Costs {
            clock: median(&of(&fast, |c| c.clock)),
            wait: median(&of(&fast, |c| c.wait)),
            call: median(&of(&fast, |c| c.call)),
        };
        let instance = self.open();
        let (mut commits, mut reads) = (Vec::new(), Vec::new());
        let mut admin = instance.session("read").expect("a session");
        random_read::prepare(&mut admin, CACHED_BLOCKS / self.scale, super::BLOCK, Seed(9), &NEVER)
            .expect("a table");
        let rows = random_read::open(&mut admin).expect("its rows");
        for _ in 0..self.rounds {
            commits.push(share(&instance, &each, || {
                commit::run(&instance, SESSIONS, self.terms(Seed(2))).expect("commits");
            }));
            reads.push(share(&instance, &each, || {
                let shape = random_read::Shape { sessions: 2, batch: 1, span: 0..rows.count() };
                random_read::run(&instance, &rows, &shape, self.terms(Seed(10))).expect("reads");
            }));
        }
        for (what, shares) in [("commits", &commits), ("cached reads by address", &reads)] {
            let of = |part: fn(&Share) -> f64| shares.iter().map(part).collect::<Vec<f64>>();
            let name = format!("waits and sampling, percent of the processor time of {what}");
            goals.rounds(&name, &of(|s| s.waits), Aim::AtMost(1.0));
            goals.rounds("  beginning and ending calls, percent", &of(|s| s.calls), Aim::Told);
        }
        admin.drop_table(random_read::TABLE).expect("drop");
        drop(admin);
        instance.shutdown(Shutdown::Immediate).expect("shut down");
    }

    fn acts(&self) -> u64 {
        200_000 / self.scale / CHUNK * CHUNK + CHUNK
    }
}

fn costs(clock: Clock, acts: u64) -> Costs {
    let registry = Registry::new(clock, 2);
    let slot = registry.register(SessionKind::Foreground, "bench");
    let looks = nanos_each(acts, |_| {
        black_box(registry.clock().now());
        black_box(registry.clock().now());
    });
    let call = nanos_each(acts, |_| drop(slot.call()));
    let _call = slot.call();
    let wait = nanos_each(acts, |n| drop(slot.enter(Event::DbFileSequentialRead, 4, black_box(n), 1)));
    Costs { clock: looks, wait, call }
}

/// Nanoseconds of one act: the median over chunks, so that what else runs on the machine spoils some chunks and not the result.
fn nanos_each(count: u64, mut act: impl FnMut(u64)) -> f64 {
    let mut chunks = Vec::new();
    for first in (0..count).step_by(CHUNK as usize) {
        let start = clock::now();
        (first..first + CHUNK).for_each(&mut act);
        chunks.push((clock::now() - start).0 as f64 / CHUNK as f64);
    }
    median(&chunks)
}

/// Percent of this process's processor time.
struct Share {
    waits: f64,
    calls: f64,
}

/// What waits and the sampler took, and calls, while `work` ran.
fn share(instance: &Instance, each: &Costs, work: impl FnOnce()) -> Share {
    let waits = &instance.core.waits;
    let counted = || {
        let totals = waits.totals();
        let events = |kind| totals.of(kind).seen().map(|(_, t)| t.waits).sum::<u64>();
        let calls = waits.time_model(SessionKind::Foreground).calls;
        (events(SessionKind::Foreground) + events(SessionKind::Background), calls)
    };
    let (before, began) = (counted(), cpu_of_self());
    let newest = instance.core.history.recent().last().map_or(0, |tick| tick.id);
    work();
    let (after, used) = (counted(), 1e9 * (cpu_of_self() - began).max(0.01));
    let ticks = instance.core.history.recent();
    let sampling: u64 = ticks.iter().filter(|tick| tick.id > newest).map(|tick| tick.cost.0).sum();
    // The beginning of a call ends the wait for it, which was counted among the waits.
    let calls = after.1 - before.1;
    let ended = (after.0 - before.0).saturating_sub(calls);
    Share {
        waits: 100.0 * (ended as f64 * each.wait + sampling as f64) / used,
        calls: 100.0 * calls as f64 * each.call / used,
    }
}
