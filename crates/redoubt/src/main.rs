//! The binary: options → command → exit code. Everything that prints is in this crate.
//!
//! Start with [`cli`] (what can be typed), then `command/` (one file per command).
#![forbid(unsafe_code)]

mod cli;
mod command;
mod loopback;
mod progress;
mod stop;
mod watch;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = cli::Cli::try_parse().unwrap_or_else(|error| {
        let command = std::env::args().nth(1).unwrap_or_default();
        cli::place::told(error, &command).exit()
    });
    match command::run(options) {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("redoubt: {error:#}");
            ExitCode::FAILURE
        }
    }
}
