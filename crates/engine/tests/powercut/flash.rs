//! The flash cache's device goes wrong while sessions work: nobody is told of it, every answer is right, nothing is lost.

use crate::shape::Shape;
use crate::world::{Life, World};
use crate::{attempt, each};
use io::sim::{Call, Fault, Trouble};
use std::sync::Mutex;

const STEPS: u32 = 120;
const CALM: Life = Life { cut_one_in: usize::MAX, recovery_cut_one_in: usize::MAX, kill_one_in: 5 };
const EIO: i32 = 5;

#[derive(Clone, Copy, Default)]
struct Tally {
    struck: u64,
    off: u64,
    read: u64,
    wrong: u64,
}

/// What happens to the device; none is blocks that rot one after the other.
fn trouble(seed: u64) -> Option<Fault> {
    let nth = 1 + seed / 6 % 23;
    let fault = |on, trouble, for_ever| Some(Fault { on, nth, for_ever, trouble });
    match seed % 6 {
        0 => fault(Call::Read, Trouble::Errno(EIO), true),
        1 => fault(Call::Write, Trouble::Errno(EIO), true),
        2 => fault(Call::Any, Trouble::Errno(EIO), false),
        3 => fault(Call::Any, Trouble::Short(512), false),
        _ => None,
    }
}

/// Whether every answer was right.
pub fn run(shapes: &[Shape], seeds: std::ops::Range<u64>) -> bool {
    let shapes: Vec<&Shape> = shapes.iter().filter(|shape| shape.flash).collect();
    let (tally, count) = (Mutex::new(Tally::default()), seeds.end - seeds.start);
    each(seeds, |seed| {
        let shape = shapes[(seed / 6) as usize % shapes.len()];
        let mut world = World::over(shape.storage(), CALM, seed);
        let result = attempt(|| world.suffer_flash(trouble(seed), STEPS));
        let mut tally = tally.lock().expect("nobody panics here");
        match result {
            Ok(suffered) => {
                tally.struck += u64::from(suffered.struck);
                tally.off += u64::from(suffered.off);
                tally.read += world.flash[1];
            }
            Err(said) => {
                tally.wrong += 1;
                println!("flash cache, {:?}, seed {seed} ({}): {said}", trouble(seed), shape.words);
                println!("    again: cargo x powercut 1 0 --flash {seed}");
                std::mem::forget(world);
            }
        }
    });
    let t = tally.into_inner().expect("nobody panics here");
    println!(
        "a flash cache that goes wrong, {count} seeds: the device failed or rotted in {}, the cache was switched off in {}, {} blocks read from it; wrong answers, errors told or losses {} (goal: 0)",
        t.struck, t.off, t.read, t.wrong
    );
    t.wrong == 0
}
