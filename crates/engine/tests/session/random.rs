//! Random calls against the model, over many seeds; over more of them with
//! `REDOUBT_SEEDS=500 cargo test -p engine --release --test session random`.

use crate::machine::number;
use crate::world::World;

fn run(seeds: std::ops::Range<u64>, steps: u32) {
    for seed in seeds {
        // The seed is on the screen when an assertion fails.
        println!("seed {seed}");
        let mut world = World::new(seed);
        for _ in 0..steps {
            world.step();
        }
        world.finish();
    }
}

#[test]
fn the_database_says_what_the_model_says() {
    run(0..number("REDOUBT_SEEDS", 8), 400);
}
