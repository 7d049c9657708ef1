//! Should I buy one? `redoubt advise flash`: what a flash cache of each size would serve, and how much faster that would be.
//!
//! The journey of [`run`]: block references of a run, or of a trace (`references`, `trace`) → the workload around them, as the run's record has it
//! (`workload`) → both devices, measured for some seconds (`place`) → hit ratio and speed-up of each size (`predict`) → the record. Nothing is
//! bought, nothing of the user's is changed, no flash cache is needed.

mod doubts;
mod place;
mod predict;
pub mod references;
mod trace;
mod workload;

pub use place::Place;
pub use predict::{Point, WARM, points, sizes};
pub use workload::Observed;

use crate::LabError;
use crate::bench::{Bench, Finished, Purpose};
use crate::compare::stop_if_cancelled;
use crate::control::Control;
use predict::Asked;
use record::Reader;
use record::json::json;
use references::Input;
use stats::mrc::gain::{Device, Workload};
use stats::mrc::miniature::Policy;
use std::path::{Path, PathBuf};
use units::{Bytes, Seed};

/// Where block references come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The record of `redoubt run … --references`.
    Run(PathBuf),
    /// A file with one read in each line.
    Trace {
        /// The file.
        path: PathBuf,
        /// Block of the database.
        block: Bytes,
        /// The buffer cache above, if it is known: what was read lately is there, and not yet in a flash cache.
        cache: Bytes,
        /// Sessions that read at once.
        sessions: u32,
    },
}

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where block references come from.
    pub source: Source,
    /// Sizes of the flash cache; none: chosen from the blocks that were read.
    pub sizes: Vec<Bytes>,
    /// `db_flash_cache_policy`.
    pub policy: Policy,
    /// Where the data files are; none: where the run was.
    pub slow: Option<Place>,
    /// Where the flash cache would be; none: hit ratios alone.
    pub fast: Option<Place>,
    /// Where chance comes from.
    pub seed: Seed,
    /// The command as typed.
    pub command: String,
    /// Where the record goes; `None`: the usual place.
    pub record_path: Option<PathBuf>,
}

/// Advises; returns where the record is.
///
/// # Errors
/// No references, a trace that cannot be read, a place that cannot be measured. Ctrl-C is no error.
pub fn run(options: &Options, control: &mut Control<'_>) -> Result<Finished, LabError> {
    let input = match &options.source {
        Source::Run(path) => Input::of_run(&Reader::open(path)?)?,
        Source::Trace { path, block, cache, sessions } => {
            Input::of_trace(path, *block, *cache, *sessions, options.seed)?
        }
    };
    let slow = match (&options.fast, &options.slow) {
        (None, _) => None,
        (Some(_), Some(slow)) => Some(slow.clone()),
        (Some(_), None) => Some(slow_of(&input)?),
    };
    for place in [&slow, &options.fast].into_iter().flatten() {
        place.check()?;
    }
    let target = match slow.as_ref().or(options.fast.as_ref()) {
        Some(Place::Directory(path)) => path.clone(),
        _ => PathBuf::from("."),
    };
    let purpose = Purpose {
        kind: "advise",
        case: Some("flash"),
        command: options.command.clone(),
        seed: options.seed,
        budget_seconds: place::SECONDS * 2.0,
        record_path: options.record_path.clone(),
        workspace_in: None,
        is_server_ours: false,
    };
    let mut bench = Bench::open(&target, purpose)?;
    let result = Advice { options, input, slow }.find(&mut bench, control);
    bench.finish(result)
}

/// The storage that a run was on, if it is still there.
fn slow_of(input: &Input) -> Result<Place, LabError> {
    match &input.directory {
        Some(path) if path.is_dir() => Ok(Place::Directory(path.clone())),
        Some(path) => Err(LabError::Target(format!(
            "the run was in {}, which is not here; say where the data files are: --slow DIR",
            path.display()
        ))),
        None => Err(LabError::Target(
            "a trace does not tell how fast its storage is; say where the data files are, --slow DIR, or how long a read takes, \
             --slow 5ms"
                .into(),
        )),
    }
}

struct Advice<'a> {
    options: &'a Options,
    input: Input,
    slow: Option<Place>,
}

impl Advice<'_> {
    fn find(&self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let (options, input) = (self.options, &self.input);
        let mut sizes = match options.sizes.as_slice() {
            [] => sizes(&input.references, input.block),
            typed => typed.to_vec(),
        };
        sizes.sort_unstable();
        sizes.dedup();
        let observed = &input.observed;
        bench.writer.plan(&json!({
            "source": input.source, "block_bytes": input.block.0, "cache_bytes": input.cache.0,
            "policy": options.policy.name(), "sizes_bytes": sizes.iter().map(|s| s.0).collect::<Vec<_>>(),
            "warm_share": WARM, "reads": input.references.reads, "sampled_share": input.references.rate,
            "read_bytes_distinct": input.references.blocks() * input.block.0 as f64,
            "sessions": observed.sessions, "cores": observed.cores, "reads_per_second": observed.reads_per_second,
            "cpu_seconds_per_read": observed.cpu_seconds, "other_seconds_per_read": observed.other_seconds,
            "slow": self.slow.as_ref().map(Place::name), "fast": options.fast.as_ref().map(Place::name),
        }))?;
        let row = references::row(input.source.clone(), input.block, input.cache, &input.references);
        bench.writer.references(&row)?;
        let devices = match (&self.slow, &options.fast) {
            (Some(slow), Some(fast)) => {
                let measure = |place: &Place, series: &str, bench: &mut Bench, control: &mut Control<'_>| {
                    place.measure(series, input.block, observed.sessions, bench, control)
                };
                let slow = measure(slow, "slow", bench, control)?;
                let fast = measure(fast, "fast", bench, control)?;
                Some((slow, fast))
            }
            _ => None,
        };
        bench.step(control, "simulating flash caches");
        stop_if_cancelled(control)?;
        let around = devices.as_ref().map(|(slow, fast)| observed.around(slow, fast));
        if let Some(around) = &around {
            bench.writer.event("workload", &around.json())?;
        }
        let asked = Asked { input, policy: options.policy, sizes: &sizes };
        asked.store(around.as_ref(), bench)
    }
}

/// A workload between two devices.
pub struct Around {
    /// What sessions do for each read.
    pub workload: Workload,
    /// Where the data files are, held to what the run showed.
    pub slow: Device,
    /// Where the flash cache would be.
    pub fast: Device,
    /// Relative standard error of both devices' rates.
    pub error: f64,
    /// By how much the slow device had to be made faster for that; none where it was not.
    pub fit: Option<f64>,
    /// Why the slow device was not held to the run.
    pub unfitted: Option<String>,
}

impl Around {
    fn json(&self) -> record::json::Value {
        let n = self.workload.sessions;
        json!({
            "slow_read_seconds": self.slow.latency(1), "fast_read_seconds": self.fast.latency(1),
            "slow_read_seconds_loaded": self.slow.latency(n), "fast_read_seconds_loaded": self.fast.latency(n),
            "relative_error": self.error, "fit": self.fit, "unfitted": self.unfitted,
            "reads_per_second_without": self.workload.reads_per_second(&self.slow, &self.fast, 0.0),
        })
    }
}

/// Whether `path` can hold files of ours.
fn must_be_directory(path: &Path) -> Result<(), LabError> {
    if path.is_dir() {
        return Ok(());
    }
    Err(LabError::Target(format!(
        "{} is not a directory; give one on the storage in question, or the time that a read takes, such as 90us",
        path.display()
    )))
}
