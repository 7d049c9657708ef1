//! `redoubt trace`

use super::run::{api, parameter};
use super::{command_line, directory, measured};
use crate::cli::{RunTarget, Trace};
use anyhow::{Result, anyhow, bail};
use io::IoMode;
use lab::compare::configuration::Configuration;
use lab::run::Case;
use lab::server::Kind;
use lab::trace::Subject;
use std::process::ExitCode;
use units::Seed;

/// A private database, and what it plays.
fn database(target: RunTarget, options: &Trace) -> Result<Subject> {
    let case = match options.words.as_slice() {
        [] => Case::Commit,
        [one] => one.to_string_lossy().parse().map_err(|why: String| anyhow!(why))?,
        _ => bail!("with --target a single case is played: commit, order-entry or random-read"),
    };
    let (kind, programs, usual) = match target {
        RunTarget::Engine => (None, None, IoMode::Setall),
        RunTarget::Postgres => (Some(Kind::Postgres), options.pg_bin.clone(), IoMode::None),
        RunTarget::Mariadb => (Some(Kind::Mariadb), options.mariadb_bin.clone(), IoMode::Setall),
    };
    let mode = options.io.unwrap_or(usual);
    Ok(Subject::Database {
        kind,
        programs,
        case,
        configuration: Configuration { mode, api: api(target, mode, options.api)? },
        sessions: options.sessions,
        parameters: options.parameters.iter().map(|text| parameter(text)).collect::<Result<_>>()?,
    })
}

pub fn run(options: Trace) -> Result<ExitCode> {
    let subject = match (options.pid, options.target) {
        (Some(pid), _) => Subject::Process(pid),
        (None, Some(target)) => database(target, &options)?,
        (None, None) if options.words.is_empty() => bail!(
            "who is to be traced? A process: redoubt trace --pid 1234; a private database: redoubt trace --target postgres; a \
             command: redoubt trace -- CMD"
        ),
        (None, None) => Subject::Command(options.words.clone()),
    };
    let asked = lab::trace::Options {
        subject,
        seconds: options.seconds,
        directory: directory("trace", &options.dir)?,
        strace: options.strace,
        seed: options.run.seed.map_or_else(Seed::draw, Seed),
        command: command_line(),
        record_path: options.run.record.clone(),
    };
    measured(&options.run, |control| lab::trace::run(&asked, control))
}
