//! `redoubt compare`

use super::{command_line, directory, measured};
use crate::cli::Compare;
use anyhow::Result;
use std::process::ExitCode;
use units::Seed;

pub fn run(options: Compare) -> Result<ExitCode> {
    let asked = lab::compare::Options {
        directory: directory("compare", &options.dir)?,
        target: options.target,
        minutes: options.minutes,
        size: options.size,
        sessions: options.sessions,
        block: options.block,
        read_share: options.read_share,
        hit_ratio: options.hit_ratio,
        modes: options.modes,
        apis: options.api,
        seed: options.run.seed.map_or_else(Seed::draw, Seed),
        command: command_line(),
        record_path: options.run.record.clone(),
    };
    measured(&options.run, |control| lab::compare::run(&asked, control))
}
