//! Moves money between accounts until it is killed: `transfers DIRECTORY FIRST SESSIONS`. Opens the database there, and tells
//! each acknowledged transfer by a line with its number, those of session `n` from `FIRST + n × 100000` on. For
//! `tests/life/real.rs`, which kills it.

#[path = "../accounts.rs"]
#[allow(dead_code)]
mod accounts;
#[path = "../machine.rs"]
#[allow(dead_code)]
mod machine;

use engine::{Background, EngineError, Environment, Instance, InstanceConfig};
use io::RealStorage;
use std::io::Write as _;
use std::sync::Arc;
use units::{Clock, Seed};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, first, sessions] = &arguments[..] else {
        panic!("usage: transfers DIRECTORY FIRST SESSIONS");
    };
    let (first, sessions): (i64, i64) = (first.parse().unwrap(), sessions.parse().unwrap());
    let environment = Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(1),
    };
    let instance = Instance::open(environment, InstanceConfig::new(directory)).unwrap();
    std::thread::scope(|scope| {
        for n in 0..sessions {
            let mut session = instance.session("transfers").unwrap();
            scope.spawn(move || {
                let mut next = first + n * 100_000;
                loop {
                    // One write each, so that a line is there whole or not at all.
                    let tell = |number| {
                        std::io::stdout().write_all(format!("{number}\n").as_bytes()).unwrap();
                        std::io::stdout().flush().unwrap();
                    };
                    match accounts::run(&mut session, next..next + 10, Seed(next as u64), &tell) {
                        Err(EngineError::Deadlock { .. }) => session.rollback().unwrap(),
                        result => result.unwrap(),
                    }
                    next += 10;
                }
            });
        }
    });
}
