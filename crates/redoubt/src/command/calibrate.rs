//! `redoubt calibrate`

use super::{command_line, measured, oranfstab};
use crate::cli::Calibrate;
use anyhow::{Result, bail, ensure};
use lab::calibrate::Options;
use lab::calibrate::effort::Effort;
use lab::target::Target;
use std::process::ExitCode;
use units::{Nanos, Seed};

pub fn run(options: Calibrate) -> Result<ExitCode> {
    ensure!(
        options.max_latency > 0.0 && options.max_latency.is_finite(),
        "--max-latency {} is not a latency; type milliseconds, such as 20 or 0.5",
        options.max_latency
    );
    let effort = match (options.quick, options.thorough) {
        (true, _) => Effort::Quick,
        (_, true) => Effort::Thorough,
        _ => Effort::Standard,
    };
    let target = match oranfstab::export(&options.oranfstab, &options.target)? {
        Some(export) if options.destroy.is_none() => Target::Export(export),
        Some(_) => {
            bail!("--destroy is for block devices, and --oranfstab for exports; leave one of them away")
        }
        None => Target::resolve(&options.target, options.destroy.as_deref())?,
    };
    let asked = Options {
        target,
        effort,
        latency_max: Nanos::secs(options.max_latency / 1e3),
        block: options.block,
        size: options.size,
        sessions: options.sessions,
        seed: options.run.seed.map_or_else(Seed::draw, Seed),
        command: command_line(),
        record_path: options.run.record.clone(),
    };
    measured(&options.run, |control| lab::calibrate::run(&asked, control))
}
