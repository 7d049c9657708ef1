//! A disk that says yes to every durable write and forgets what chance wants: the tests must see it lose commits.

use crate::shape::Shape;
use crate::world::{LOST, Life, SHUT, World};
use crate::{attempt, each};
use std::sync::Mutex;

const STEPS: u32 = 100;
const LIFE: Life = Life { cut_one_in: 40, recovery_cut_one_in: usize::MAX, kill_one_in: usize::MAX };

#[derive(Clone, Copy, Default)]
struct Tally {
    lost: u64,
    refused: u64,
    noticed: u64,
    unharmed: u64,
}

/// Whether the lies were found out.
pub fn run(shapes: &[Shape], seeds: u64) -> bool {
    let tally = Mutex::new(Tally::default());
    each(0..seeds, |seed| {
        let shape = &shapes[seed as usize % shapes.len()];
        let storage = shape.storage();
        storage.set_lying(true);
        let mut world = World::over(storage, LIFE, seed);
        let result = attempt(|| world.live(STEPS));
        if result.is_err() {
            // Its sessions and files are in a state that nobody knows.
            std::mem::forget(world);
        }
        let mut tally = tally.lock().expect("nobody panics here");
        match result {
            Ok(()) => tally.unharmed += 1,
            Err(said) if said.contains(LOST) => tally.lost += 1,
            Err(said) if said.contains(SHUT) => tally.refused += 1,
            Err(_) => tally.noticed += 1,
        }
    });
    let t = tally.into_inner().expect("nobody panics here");
    println!(
        "a lying disk, {seeds} seeds: {} times commits were missing, {} times the engine refused to open what was left, {} times damage was met later, {} times nothing was lost (goal: found out more than never)",
        t.lost, t.refused, t.noticed, t.unharmed
    );
    t.lost > 0
}
