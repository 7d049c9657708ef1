//! `redoubt compare`

use super::mix::given;
use super::{command_line, measured, place, print};
use crate::cli::server::patience;
use crate::cli::{Compare, CompareOn, MixOptions};
use anyhow::{Context, Result, anyhow, bail};
use lab::compare::experiment::Experiment;
use lab::compare::{Case, Mix, Options, TargetKind, preview};
use lab::export::Export;
use lab::factor::{Limit, Storage};
use lab::nodes::{Exporter, Named, Nodes, OwnCluster};
use lab::server::find::Named as Programs;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use units::Seed;

pub fn run(options: Compare) -> Result<ExitCode> {
    let (asked, _mounted) = asked(&options)?;
    if options.dry_run {
        for line in preview::preview(&asked)?.lines() {
            print(&line);
        }
        return Ok(ExitCode::SUCCESS);
    }
    measured(&options.run, |control| lab::compare::run(&asked, control))
}

/// What was typed, then what the file says, then the defaults.
fn asked(options: &Compare) -> Result<(Options, Option<Export>)> {
    let written = match &options.experiment {
        Some(path) => read(path)?,
        None => Experiment::default(),
    };
    let file = Written { path: options.experiment.as_deref(), options: &written.options };
    let mut vary = options.vary.clone();
    vary.extend(
        written.vary.iter().filter(|v| !options.vary.iter().any(|typed| typed.factor == v.factor)).cloned(),
    );
    let case = options.case.or(written.case).unwrap_or_default();
    let typed = file.or(options.dir.clone(), "dir")?;
    let (directory, mounted, nodes) = match (case, &typed, &options.oranfstab.oranfstab) {
        (Case::Dnfs, None, None) => own_cluster(&options.node)?,
        _ => {
            let typed = typed.unwrap_or_else(|| PathBuf::from("."));
            let (directory, mounted) = place("compare", &typed, &options.oranfstab)?;
            (directory, mounted, exporters(&options.node)?)
        }
    };
    let asked = Options {
        case,
        directory,
        nodes,
        target: file.or(own(options)?, "target")?.unwrap_or_default(),
        programs: Programs {
            postgres: file.or(options.server.pg_bin.clone(), "pg_bin")?,
            mariadb: file.or(options.server.mariadb_bin.clone(), "mariadb_bin")?,
        },
        patience: patience(file.or(options.server.patience, "patience")?)?,
        vary,
        baseline: file.or(options.baseline.clone(), "baseline")?,
        slow: match file.or(options.slow.clone(), "slow")? {
            Some(slow) => slow,
            None => Storage::Throttled {
                limit: Limit::preset("hdd-7200").context("the preset hdd-7200")?,
                within: None,
            },
        },
        fast: file.or(options.fast.clone(), "fast")?.unwrap_or(Storage::Here),
        minutes: file.or(options.minutes, "minutes")?,
        size: file.or(options.size, "size")?,
        sessions: file.or(options.sessions, "sessions")?.unwrap_or(10),
        block: file.or(options.block, "block")?,
        mix: mix(&options.mix, &file)?,
        modes: options.modes.clone(),
        apis: options.api.clone(),
        verify: options.verify,
        seed: options.run.seed.map_or_else(Seed::draw, Seed),
        command: command_line(),
        record_path: options.run.record.clone(),
    };
    Ok((asked, mounted))
}

/// Nodes A and B in this process, mounted.
fn own_cluster(named: &[Named]) -> Result<(PathBuf, Option<Export>, Nodes)> {
    if let Some(node) = named.first() {
        bail!(
            "--node {}={} is a node of your storage, and without --dir this runs on a cluster of our own. Type: redoubt compare dnfs --dir \
             nfs://server/export/path --node {}={}",
            node.name,
            node.url,
            node.name,
            node.url
        );
    }
    let cluster = Arc::new(OwnCluster::start()?);
    let export = Export::mount(&cluster.url()?, None)?;
    Ok((export.path().to_owned(), Some(export), Nodes::Own(cluster)))
}

/// The nodes that were named; each is asked once.
fn exporters(named: &[Named]) -> Result<Nodes> {
    let exporters: Vec<_> = named.iter().cloned().map(Exporter::open).collect::<Result<_, _>>()?;
    Ok(if exporters.is_empty() { Nodes::Unknown } else { Nodes::Exporters(Arc::new(exporters)) })
}

/// The target that was typed.
fn own(options: &Compare) -> Result<Option<TargetKind>> {
    match options.target {
        None => Ok(None),
        Some(CompareOn::Own(kind)) => Ok(Some(kind)),
        Some(CompareOn::Url) => bail!(
            "compare starts a server anew under each configuration, and a server that is there is not ours to restart. Compare on a private one: \
             --target postgres or mariadb; or measure before and after you changed it, and put the two side by side: redoubt run commit \
             --target URL --allow-writes, twice, then redoubt report RUN RUN"
        ),
    }
}

/// The user's mix: what was typed, then what the file says.
fn mix(typed: &MixOptions, file: &Written<'_>) -> Result<Mix> {
    let given = given(&MixOptions {
        read_share: file.or(typed.read_share, "read_share")?,
        hit_ratio: file.or(typed.hit_ratio, "hit_ratio")?,
        commits_per_tx: file.or(typed.commits_per_tx, "commits_per_tx")?,
        awr: file.or(typed.awr.clone(), "awr")?,
        like: file.or(typed.like.clone(), "like")?,
        mix_from: file.or(typed.mix_from.clone(), "mix_from")?,
    })?;
    Ok(Mix {
        values: given.values().map(|(key, value)| (key.to_owned(), value)).collect(),
        said: given.said.clone(),
    })
}

fn read(path: &Path) -> Result<Experiment> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{} cannot be read; is the name right?", path.display()))?;
    Experiment::read(&text).map_err(|error| anyhow!("{}: {error}", path.display()))
}

/// The options of an experiment's file.
struct Written<'a> {
    path: Option<&'a Path>,
    options: &'a [(String, String)],
}

impl Written<'_> {
    /// What was typed; else the value of `key`, read as if it had been typed.
    fn or<T: FromStr<Err: Display>>(&self, typed: Option<T>, key: &str) -> Result<Option<T>> {
        if typed.is_some() {
            return Ok(typed);
        }
        let Some((_, value)) = self.options.iter().find(|(name, _)| name == key) else { return Ok(None) };
        let path = self.path.unwrap_or(Path::new("experiment.toml"));
        value.parse().map(Some).map_err(|error| anyhow!("{}: {key} = {value:?}: {error}", path.display()))
    }
}
