//! `redoubt advise`

use super::{command_line, measured};
use crate::cli::{Advise, Purchase};
use anyhow::{Result, bail, ensure};
use lab::advise::{Options, Source};
use record::Reader;
use std::path::PathBuf;
use std::process::ExitCode;
use units::{Bytes, Seed};

/// The newest run that has block references.
fn newest() -> Result<PathBuf> {
    let has = |path: &PathBuf| {
        Reader::open(path).is_ok_and(|reader| {
            let run = reader.experiment().is_ok_and(|experiment| experiment.kind == "run");
            run && reader.references().is_ok_and(|references| !references.is_empty())
        })
    };
    match record::runs::list().into_iter().map(|run| run.path).find(has) {
        Some(path) => Ok(path),
        None => bail!(
            "no run in {} has block references: they are kept only when they are asked for. Type: redoubt run order-entry --references",
            record::runs::directory().display()
        ),
    }
}

pub fn run(options: Advise) -> Result<ExitCode> {
    let Purchase::Flash = options.what;
    ensure!(options.sessions > 0, "--sessions 0 reads nothing; type 1 or more");
    let least = options.block.0.max(1);
    if let Some(size) = options.sizes.iter().find(|size| size.0 < 64 * least) {
        bail!("--sizes {size} is too small for a flash cache; type 1m or more");
    }
    let source = match (options.trace, &options.run) {
        (Some(path), _) => Source::Trace {
            path,
            block: options.block,
            cache: options.cache.unwrap_or(Bytes(0)),
            sessions: options.sessions,
        },
        (None, Some(name)) => Source::Run(record::runs::find(name)?),
        (None, None) => Source::Run(newest()?),
    };
    let asked = Options {
        source,
        sizes: options.sizes,
        policy: options.policy,
        slow: options.slow,
        fast: options.fast,
        seed: options.options.seed.map_or_else(Seed::draw, Seed),
        command: command_line(),
        record_path: options.options.record.clone(),
    };
    measured(&options.options, |control| lab::advise::run(&asked, control))
}
