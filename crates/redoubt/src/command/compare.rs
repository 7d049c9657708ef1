//! `redoubt compare`

use super::{command_line, measured};
use crate::cli::Compare;
use anyhow::{Result, bail};
use lab::target::Target;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use units::Seed;

/// The directory to work in, links resolved.
fn directory(typed: &Path) -> Result<PathBuf> {
    match Target::resolve(typed, None)? {
        Target::Directory(path) => Ok(path),
        Target::File(path) | Target::Device { path, .. } => bail!(
            "{} is not a directory. compare makes files of its own: give a directory on that storage with --dir. To only read \
             an existing file or device: redoubt calibrate {}",
            typed.display(),
            path.display()
        ),
    }
}

pub fn run(options: Compare) -> Result<ExitCode> {
    let asked = lab::compare::Options {
        directory: directory(&options.dir)?,
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
