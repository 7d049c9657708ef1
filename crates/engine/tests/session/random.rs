//! Random calls against the model, over many seeds; over more of them with
//! `REDOUBT_SEEDS=500 cargo test -p engine --release --test session random`. Many more, and more kinds of databases, are
//! `cargo x powercut`.

use crate::machine::{create, number, storage};
use crate::world::{Life, World};
use engine::Shutdown;
use io::sim::{Call, Fault, Trouble};

const LIFE: Life = Life { cut_one_in: 40, recovery_cut_one_in: 4, kill_one_in: 5 };

fn world(seed: u64) -> World {
    let storage = storage(seed);
    create(&storage).shutdown(Shutdown::Immediate).unwrap();
    World::over(storage, LIFE, seed)
}

#[test]
fn the_database_says_what_the_model_says() {
    for seed in 0..number("REDOUBT_SEEDS", 8) {
        // The seed is on the screen when an assertion fails.
        println!("seed {seed}");
        world(seed).live(400);
    }
}

#[test]
fn a_failing_call_is_told_and_costs_no_commit() {
    for nth in [3, 30, 300] {
        let fault = Fault { on: Call::Any, nth, for_ever: nth == 30, trouble: Trouble::Errno(5) };
        let suffered = world(nth).suffer(fault, 400);
        assert!(suffered.struck, "{nth}: {suffered:?}");
    }
}
