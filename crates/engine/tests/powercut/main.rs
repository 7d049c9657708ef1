//! The power is cut, calls fail, the disk lies: the whole engine on a simulated disk, over thousands of seeds.
//!
//! `cargo x powercut [SEEDS] [FIRST]` builds it with optimisation and runs 10,000 seeds; `cargo test` a few. Each seed is a small database
//! of its own shape, several sessions that do what chance says (rows, indexes, savepoints, DDL, log switches, checkpoints), and a model that
//! knows what was acknowledged. Chance cuts the power, or kills the process, during any call, those of recovery included;
//! of the writes that were not durable some arrive, some do not, some by halves, in any order. What is there afterwards must be
//! what was committed, with the transaction that was being committed or without it: every row, every index entry, every extent.
//!
//! `cuts`: the seeds. `faults`: each of the first calls fails once. `flash`: the flash cache's device goes wrong. `lies`: a disk that acknowledges and forgets must be found out, or
//! all of this would prove nothing.

mod cuts;
mod faults;
mod flash;
mod lies;
#[path = "../session/machine.rs"]
#[allow(dead_code, reason = "shared with the session tests")]
mod machine;
#[path = "../session/model.rs"]
mod model;
mod shape;
#[path = "../session/world/mod.rs"]
#[allow(dead_code, reason = "shared with the session tests")]
mod world;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Calls that are made to fail, one after the other.
const CALLS: u64 = 300;

/// How much of each part.
struct Effort {
    seeds: u64,
    first: u64,
    /// Every so manyth of the first [`CALLS`] calls fails once; 0: none.
    every: usize,
    lies: u64,
    /// Seeds with a flash cache that goes wrong.
    flash: std::ops::Range<u64>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).and_then(|word| word.parse::<u64>().ok())
    };
    let effort = match value("--seeds") {
        // `cargo test`: a rehearsal.
        None => Effort { seeds: 16, first: 0, every: 60, lies: 12, flash: 0..12 },
        // One seed is being looked into.
        Some(1) => Effort { seeds: 1, first: value("--first").unwrap_or(0), every: 0, lies: 0, flash: 0..0 },
        Some(seeds) => Effort {
            seeds,
            first: value("--first").unwrap_or(0),
            every: 1,
            lies: 400,
            flash: 0..seeds.div_ceil(10),
        },
    };
    let shapes = shape::all();
    std::panic::set_hook(Box::new(|info| {
        LAST.with_borrow_mut(|last| *last = info.to_string());
    }));
    let mut sound = cuts::run(&shapes, effort.first..effort.first + effort.seeds);
    let calls: Vec<u64> = match value("--fault") {
        Some(nth) => vec![nth],
        None if effort.every == 0 => Vec::new(),
        None => (1..=CALLS).step_by(effort.every).collect(),
    };
    if !calls.is_empty() {
        sound &= faults::run(&shapes, &calls);
    }
    let flash = value("--flash").map_or(effort.flash, |seed| seed..seed + 1);
    if !flash.is_empty() {
        sound &= flash::run(&shapes, flash);
    }
    if effort.lies > 0 {
        sound &= lies::run(&shapes, effort.lies);
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

thread_local! {
    /// What the last panic of this thread said, and where it was.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `work`; what it says when an assertion fails in it.
fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| LAST.with_borrow(String::clone))
}

/// Calls `work` for each number, by as many threads as there are processors.
fn each(numbers: std::ops::Range<u64>, work: impl Fn(u64) + Sync) {
    let next = std::sync::atomic::AtomicU64::new(numbers.start);
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= numbers.end {
                        break;
                    }
                    work(number);
                }
            });
        }
    });
}
