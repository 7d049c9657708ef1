//! `redoubt run`

use super::{command_line, directory, measured};
use crate::cli::{Run, RunTarget, Thinking};
use anyhow::{Context, Result, anyhow, bail};
use io::{Api, IoMode};
use lab::compare::configuration::Configuration;
use lab::database::order_entry::Think;
use lab::factor::{Factor, FileClass, Setup};
use lab::run::Target;
use lab::server::Kind;
use std::path::PathBuf;
use std::process::ExitCode;
use units::Seed;

/// What the case runs on, and the mode that it is usually run in.
fn target(options: &Run) -> (Target, IoMode) {
    let server = |kind, programs: &Option<PathBuf>| Target::Server { kind, programs: programs.clone() };
    match options.target {
        RunTarget::Engine => (Target::Engine, IoMode::Setall),
        RunTarget::Postgres => (server(Kind::Postgres, &options.pg_bin), IoMode::None),
        RunTarget::Mariadb => (server(Kind::Mariadb, &options.mariadb_bin), IoMode::Setall),
    }
}

/// The API that a mode uses: the one that was typed, or the first that works here.
pub(super) fn api(target: RunTarget, mode: IoMode, typed: Option<Api>) -> Result<Api> {
    match (mode.asynchronous(), typed) {
        // Its I/O workers are processes: what they are to it, threads are to us.
        (true, Some(Api::Threads)) if target == RunTarget::Postgres => Ok(Api::Threads),
        (false, None | Some(Api::Threads)) => Ok(Api::Threads),
        (false, Some(api)) => {
            bail!("mode {mode} makes one call at a time and has no --api {api}; leave it out")
        }
        (true, Some(Api::Threads)) => {
            bail!("mode {mode} is asynchronous; type --api io_uring or --api libaio")
        }
        (true, Some(api)) => api.available().map(|()| api).with_context(|| format!("--api {api}")),
        (true, None) => {
            [Api::IoUring, Api::Libaio].into_iter().find(|api| api.available().is_ok()).with_context(|| {
                format!("mode {mode} needs io_uring or libaio, and neither works here; type --io directio")
            })
        }
    }
}

pub(super) fn parameter(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.trim().into())),
        _ => bail!("--set {text:?} is not NAME=VALUE; for example --set db_writer_processes=2"),
    }
}

/// The flash cache, as levels of its factors.
fn flash(options: &Run) -> Result<Setup> {
    let mut setup = Setup::default();
    for (factor, name, typed) in [
        (Factor::Place(FileClass::Flash), "--flash", &options.flash),
        (Factor::FlashSize, "--flash-size", &options.flash_size),
        (Factor::FlashPolicy, "--flash-policy", &options.flash_policy),
    ] {
        if let Some(level) = typed {
            setup.set(factor, level).map_err(|error| anyhow!("{name}: {error}"))?;
        }
    }
    Ok(setup)
}

pub fn run(options: Run) -> Result<ExitCode> {
    let (target, usual) = target(&options);
    let mode = options.io.unwrap_or(usual);
    let asked = lab::run::Options {
        case: options.case,
        target,
        directory: directory("run", &options.dir)?,
        seconds: options.minutes * 60.0,
        sessions: options.sessions,
        configuration: Configuration { mode, api: api(options.target, mode, options.api)? },
        scale: options.scale,
        cache: options.cache,
        block: options.block,
        redo: options.redo,
        rate: options.rate,
        think: match options.think {
            Thinking::None => Think::None,
            Thinking::Light => Think::Light,
            Thinking::Spec => Think::Spec,
        },
        flash: flash(&options)?,
        parameters: options.parameters.iter().map(|text| parameter(text)).collect::<Result<_>>()?,
        verify: options.verify,
        references: options.references,
        seed: options.run.seed.map_or_else(Seed::draw, Seed),
        command: command_line(),
        record_path: options.run.record.clone(),
    };
    measured(&options.run, |control| lab::run::run(&asked, control))
}
