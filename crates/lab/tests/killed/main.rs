//! `kill -9` again and again: whether each acknowledged commit is there afterwards, and no half of any other.
//!
//! `cargo x crash engine [ROUNDS] [SEED]` builds it with optimisation and plays 200 rounds; `cargo test` a few. In each round a
//! process of its own opens a database, and its sessions commit rows (`commit`) or play order-entry (`orders`), while one more
//! switches logs, writes checkpoints, makes and drops tables. Each session says on a pipe what it begins, and when its commit has
//! returned, what it did. The process is killed at a moment that chance picks, some recoveries after that are killed as well;
//! then the database is opened and held against what was said. A database lives for some rounds; modes and sizes change.
//!
//! `--lie` lets the processes acknowledge commits before they are durable: then losses must be found. After the last round rows are
//! taken away or changed on purpose, and each time the checks must notice.

mod child;
mod commit;
mod orders;
mod round;
mod trees;

use std::path::PathBuf;
use std::process::ExitCode;
use units::{Seed, clock};

/// What a check says: nothing, or what is wrong.
type Checked = Result<(), String>;

/// Rounds after which a lie must have been found out.
const LIE_ROUNDS: u64 = 12;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "child") {
        child::main(&words[1..]);
        return ExitCode::SUCCESS;
    }
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    let above = value("--directory").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let seed = value("--seed")
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| clock::now().0 ^ clock::unix_seconds());
    let rounds = value("--rounds").and_then(|word| word.parse::<u64>().ok());
    let lie = words.iter().any(|word| word == "--lie");
    let sound = match (rounds, lie) {
        (Some(rounds), false) => honest(rounds, Seed(seed), &above),
        (rounds, true) => lying(rounds.unwrap_or(LIE_ROUNDS), Seed(seed), &above),
        // `cargo test`: a rehearsal of both.
        (None, false) => honest(4, Seed(seed), &above) && lying(LIE_ROUNDS, Seed(seed), &above),
    };
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether nothing was lost, and the checks notice what is lost on purpose.
fn honest(rounds: u64, seed: Seed, above: &std::path::Path) -> bool {
    println!("{rounds} rounds, seed {} (again: cargo x crash engine {rounds} {})", seed.0, seed.0);
    let mut tally = round::Tally::default();
    round::play(rounds, seed, false, above, &mut tally);
    println!(
        "{} kills at work, {} during recovery; {} transactions acknowledged, {} more had been begun",
        tally.kills, tally.in_recovery, tally.acknowledged, tally.uncertain
    );
    println!("blocks that the checks read from a flash cache: {}", tally.from_flash);
    println!("losses planted on purpose that the checks found: {} of {}", tally.noticed, tally.planted);
    println!("rounds that lost something, or left half of something: {} of {rounds} (goal: 0)", tally.wrong);
    tally.wrong == 0 && tally.noticed == tally.planted && tally.acknowledged > 0
}

/// Whether the lie was found out.
fn lying(rounds: u64, seed: Seed, above: &std::path::Path) -> bool {
    println!("commits acknowledged before they are durable, at most {rounds} rounds:");
    let mut tally = round::Tally::default();
    round::play(rounds, seed, true, above, &mut tally);
    println!("rounds in which the loss was found: {} (goal: at least 1)", tally.wrong);
    tally.wrong > 0
}
