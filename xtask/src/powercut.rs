//! `cargo x powercut`: the power cut under the whole engine, on a simulated disk, over thousands of seeds; calls that fail; a disk
//! that lies.
//!
//! What happens is in `crates/engine/tests/powercut/`; here it is built with optimisation and given its numbers.

use crate::Failure;
use crate::shell::{cargo, run as sh};

const SEEDS: &str = "10000";

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let (numbers, rest) = arguments.split_at(arguments.iter().take_while(|w| !w.starts_with("--")).count());
    if let Some(wrong) = numbers.iter().find(|word| word.parse::<u64>().is_err()) {
        return Err(format!("{wrong:?} is no number; type `cargo x powercut [SEEDS] [FIRST]`"));
    }
    let seeds = numbers.first().map_or(SEEDS, String::as_str);
    let mut command = cargo();
    command.args(["test", "--quiet", "--release", "--package", "engine", "--test", "powercut", "--"]);
    command.args(["--seeds", seeds]);
    if let Some(first) = numbers.get(1) {
        command.args(["--first", first]);
    }
    sh(command.args(rest))
}
