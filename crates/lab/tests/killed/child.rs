//! The process that is killed: `child DIRECTORY KIND FIRST SESSIONS SEED NAME=VALUE…`.
//!
//! It says `open` when the database is open, then for each transaction `b SESSION NUMBER` before it begins and
//! `a SESSION NUMBER WORDS` after its commit has returned (`r` after a rollback): one write each, so that a line is there whole or not at all.

use crate::{commit, orders};
use engine::{AlterSystem, Background, Environment, Instance, InstanceConfig, Session};
use io::RealStorage;
use std::io::Write as _;
use std::sync::Arc;
use units::{Clock, Nanos, Rng, Seed, clock};

/// Ends by itself after this long, should nobody kill it.
const LIFE: Nanos = Nanos::millis(20_000);

pub fn environment() -> Environment {
    Environment {
        storage: Arc::new(RealStorage),
        clock: Clock::Real,
        background: Background::Threads,
        seed: Seed(1),
    }
}

pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody listens any more: the killer is gone.
    if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

pub fn main(words: &[String]) {
    let [directory, kind, first, sessions, seed, parameters @ ..] = words else {
        panic!("usage: child DIRECTORY KIND FIRST SESSIONS SEED NAME=VALUE…");
    };
    let number = |word: &String| word.parse::<u64>().expect("a number");
    let (first, sessions, seed) = (number(first), number(sessions), Seed(number(seed)));
    let mut config = InstanceConfig::new(directory);
    for (name, value) in parameters.iter().filter_map(|word| word.split_once('=')) {
        config = config.with(name, value);
    }
    let instance = Instance::open(environment(), config).expect("a database");
    say("open");
    std::thread::scope(|scope| {
        let mut admin = instance.session("admin").expect("a session");
        scope.spawn(move || disturb(&mut admin, Rng::new(seed.part(99))));
        match kind.as_str() {
            "commit" => commit::work(scope, &instance, first as i64, sessions as u32),
            _ => orders::work(scope, &instance, first as i64, sessions as u32, seed),
        }
        scope.spawn(|| {
            clock::sleep(LIFE);
            std::process::exit(0);
        });
    });
}

/// Log switches, checkpoints, an emptied cache, tables that come and go.
fn disturb(session: &mut Session, mut rng: Rng) {
    loop {
        clock::sleep(Nanos::millis(2 + rng.below(25)));
        let done = match rng.below(5) {
            0 => session.alter_system(&AlterSystem::SwitchLogfile).map(|_| ()),
            1 => session.alter_system(&AlterSystem::Checkpoint).map(|_| ()),
            2 => session.alter_system(&AlterSystem::FlushBufferCache).map(|_| ()),
            3 => commit::make_scrap(session),
            _ => session.drop_table(commit::SCRAP),
        };
        // A scrap that is there already, or not: as it happens.
        drop(done);
    }
}
