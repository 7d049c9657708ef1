//! `cargo x crash engine`: the embedded database killed with -9 at random moments, and held against what it had acknowledged.
//!
//! What happens in a round is in `crates/lab/tests/killed/`; here it is built with optimisation and given its numbers.

use crate::Failure;
use crate::shell::{cargo, run as sh};

const ROUNDS: &str = "200";

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let (flags, numbers): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| word.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--lie") {
        return Err(format!("there is no flag {unknown}; type `cargo x crash engine [N] [SEED] [--lie]`"));
    }
    if let Some(wrong) = numbers.iter().find(|word| word.parse::<u64>().is_err()) {
        return Err(format!("{wrong:?} is no number; type `cargo x crash engine [N] [SEED] [--lie]`"));
    }
    let mut command = cargo();
    command.args(["test", "--quiet", "--release", "--package", "lab", "--test", "killed", "--"]);
    match (numbers.first(), flags.is_empty()) {
        (Some(rounds), _) => _ = command.args(["--rounds", rounds]),
        (None, true) => _ = command.args(["--rounds", ROUNDS]),
        (None, false) => {}
    }
    if let Some(seed) = numbers.get(1) {
        command.args(["--seed", seed]);
    }
    sh(command.args(flags))
}
