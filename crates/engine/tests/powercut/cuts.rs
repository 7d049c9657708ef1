//! Seeds: a life each, with many ends.

use crate::shape::Shape;
use crate::world::{Cut, Life, World};
use crate::{attempt, each};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use units::{Nanos, clock};

/// Steps of one seed.
const STEPS: u32 = 80;
/// Rough: some five cuts in as many steps, and one recovery in three is cut as well.
const LIFE: Life = Life { cut_one_in: 12, recovery_cut_one_in: 3, kill_one_in: 5 };
/// How often progress is told.
const TELL_EVERY: Nanos = Nanos::millis(5_000);

#[derive(Default)]
struct Tally {
    seeds: u64,
    cuts: u64,
    kills: u64,
    in_recovery: u64,
    doing: BTreeMap<&'static str, u64>,
    call: BTreeMap<&'static str, u64>,
    flash: [u64; 2],
    failures: Vec<u64>,
    told: Nanos,
}

impl Tally {
    fn add(&mut self, cut: &Cut) {
        *(if cut.killed { &mut self.kills } else { &mut self.cuts }) += 1;
        self.in_recovery += u64::from(cut.doing == "recovery");
        *self.doing.entry(cut.doing).or_default() += 1;
        *self.call.entry(cut.call).or_default() += 1;
    }
}

/// Whether nothing was lost.
pub fn run(shapes: &[Shape], seeds: Range<u64>) -> bool {
    let (began, count) = (clock::now(), seeds.end - seeds.start);
    let tally = Mutex::new(Tally { told: began, ..Tally::default() });
    each(seeds, |seed| {
        let shape = &shapes[seed as usize % shapes.len()];
        let mut world = World::over(shape.storage(), LIFE, seed);
        let result = attempt(|| world.live(STEPS));
        let mut tally = tally.lock().expect("nobody panics here");
        tally.seeds += 1;
        world.cuts.iter().for_each(|cut| tally.add(cut));
        tally.flash = [0, 1].map(|at| tally.flash[at] + world.flash[at]);
        if let Err(words) = result {
            tally.failures.push(seed);
            println!("seed {seed} ({}): {}", shape.words, words.chars().take(1500).collect::<String>());
            println!("    again: cargo x powercut 1 {seed}");
            // Its sessions and files are in a state that nobody knows.
            std::mem::forget(world);
        }
        tell(&mut tally, began, count);
    });
    conclude(&tally.into_inner().expect("nobody panics here"), clock::now() - began)
}

fn tell(tally: &mut Tally, began: Nanos, count: u64) {
    let now = clock::now();
    if now < tally.told + TELL_EVERY {
        return;
    }
    tally.told = now;
    let seconds = (now - began).as_secs();
    let left = seconds / tally.seeds as f64 * (count - tally.seeds) as f64;
    println!(
        "{:>6} of {count} seeds, {} cuts, {} failures, {:.0} s, about {left:.0} s left",
        tally.seeds,
        tally.cuts + tally.kills,
        tally.failures.len(),
        seconds,
    );
}

fn conclude(tally: &Tally, took: Nanos) -> bool {
    println!(
        "{} seeds in {:.0} s: the power went {} times, the process was killed {} times, {} of both during recovery",
        tally.seeds,
        took.as_secs(),
        tally.cuts,
        tally.kills,
        tally.in_recovery
    );
    for (what, counts) in [("what went on", &tally.doing), ("what was interrupted", &tally.call)] {
        let words: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("  {what}: {}", words.join(" · "));
    }
    println!("  flash cache: {} blocks written, {} read", tally.flash[0], tally.flash[1]);
    println!("  seeds that lost something: {} (goal: 0)", tally.failures.len());
    tally.failures.is_empty()
}
