//! `redoubt run`

use super::{command_line, measured, place};
use crate::cli::server::patience;
use crate::cli::{Run, RunOn, RunTarget, Thinking};
use anyhow::{Context, Result, anyhow, bail};
use io::{Api, IoMode};
use lab::compare::configuration::Configuration;
use lab::database::order_entry::Think;
use lab::factor::{Factor, FileClass, Setup};
use lab::run::Target;
use lab::server::Kind;
use lab::server::url::{Address, without_password};
use std::path::PathBuf;
use std::process::ExitCode;
use units::Seed;

/// What the case runs on, and the mode that it is usually run in.
fn target(options: &Run, own: RunTarget) -> (Target, IoMode) {
    let server = |kind, programs: &Option<PathBuf>| Target::Server { kind, programs: programs.clone() };
    match own {
        RunTarget::Engine => (Target::Engine, IoMode::Setall),
        RunTarget::Postgres => (server(Kind::Postgres, &options.server.pg_bin), IoMode::None),
        RunTarget::Mariadb => (server(Kind::Mariadb, &options.server.mariadb_bin), IoMode::Setall),
    }
}

/// The server that a URL names; how it does I/O is not ours to choose.
fn existing(options: &Run, url: &str) -> Result<(Target, Configuration)> {
    let address = Box::new(Address::parse(url)?);
    if options.io.is_some() || options.api.is_some() {
        bail!(
            "--io and --api are chosen when a server is started, and {address} was; leave them out, or use a private server: --target {}",
            address.kind.name()
        );
    }
    if without_password(url) != url {
        anstream::eprintln!(
            "The password in the URL can be read in this machine's list of processes while this runs; PGPASSWORD, ~/.pgpass, MYSQL_PWD and \
             ~/.my.cnf keep it out of there."
        );
    }
    let configuration = Configuration { mode: IoMode::None, api: Api::Threads };
    Ok((Target::Existing { address, allow_writes: options.allow_writes }, configuration))
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
        // As it comes from 18 on; not every package of it was built with io_uring.
        (true, None) if target == RunTarget::Postgres => Ok(Api::Threads),
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
    let (target, configuration) = match &options.target {
        RunOn::Url(url) => existing(&options, url)?,
        RunOn::Own(own) => {
            if options.allow_writes {
                bail!("--allow-writes is for a server that is there: --target postgres://user@host/database");
            }
            let (target, usual) = target(&options, *own);
            let on_export = lab::export::is_export(&options.dir) || options.oranfstab.oranfstab.is_some();
            if on_export && (options.io.is_some() || options.api.is_some()) {
                bail!(
                    "--io and --api say how the kernel does I/O, and on {} our own NFS client does it; leave them out",
                    options.dir.display()
                );
            }
            let mode = options.io.unwrap_or(usual);
            (target, Configuration { mode, api: api(*own, mode, options.api)? })
        }
    };
    let (directory, _mounted) = place("run", &options.dir, &options.oranfstab)?;
    let asked = lab::run::Options {
        case: options.case,
        target,
        directory,
        seconds: options.minutes * 60.0,
        sessions: options.sessions,
        configuration,
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
        patience: patience(options.server.patience)?,
        verify: options.verify,
        references: options.references,
        seed: options.run.seed.map_or_else(Seed::draw, Seed),
        command: command_line(),
        record_path: options.run.record.clone(),
    };
    measured(&options.run, |control| lab::run::run(&asked, control))
}
