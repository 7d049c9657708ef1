//! The main job: which I/O mode should this database use, on this storage?
//!
//! The journey of [`run`]: choose the configurations that work here → make the files → pilot (how fast, how noisy) →
//! plan, stored before the first visit → randomised blocks, each visiting every configuration once → checks over all
//! trials of a configuration → inputs of the weighted verdict. The verdict itself is computed from the record.

pub mod configuration;
mod embedded;
pub mod plan;
mod proof;
mod stay;
pub mod visit;

use crate::LabError;
use crate::bench::{Bench, Finished, Purpose};
use crate::control::Control;
use crate::evidence::{Observed, check_row};
use configuration::Configuration;
use embedded::Embedded;
use io::{Access, Api, File};
use plan::Plan;
use record::json::json;
use record::{ConfigurationRow, IntervalRow, PhaseRow, VisitRow};
use stay::{Stay, Subject, Terms};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed, clock};
use visit::{DATA_FILE_ID, Files, Workload};

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory on the storage in question.
    pub directory: PathBuf,
    /// What the workloads run on.
    pub target: TargetKind,
    /// Time budget, minutes.
    pub minutes: f64,
    /// Size of the data file; `None`: chosen here and said.
    pub size: Option<Bytes>,
    /// Concurrent sessions.
    pub sessions: u32,
    /// Database block.
    pub block: Bytes,
    /// Share of reads among the user's logical operations.
    pub read_share: f64,
    /// Buffer cache hit ratio of the user's database.
    pub hit_ratio: f64,
    /// Only these modes; empty: all.
    pub modes: Vec<io::IoMode>,
    /// Only these APIs for asynchronous modes; empty: all that work here.
    pub apis: Vec<Api>,
    /// Where chance comes from.
    pub seed: Seed,
    /// The command as typed.
    pub command: String,
    /// Where the record goes; `None`: the usual place.
    pub record_path: Option<PathBuf>,
}

/// What the workloads run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetKind {
    /// The embedded database.
    #[default]
    Engine,
    /// Plain files: a database's I/O without a database.
    Files,
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Engine => "engine",
            Self::Files => "files",
        })
    }
}

impl FromStr for TargetKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "engine" => Ok(Self::Engine),
            "files" => Ok(Self::Files),
            _ => Err(format!(
                "{text:?} is not a target; type engine (the embedded database) or files (plain files)"
            )),
        }
    }
}

/// Size of the data file when the user names none.
const SIZE_DEFAULT: Bytes = Bytes::gib(1);
/// The same for the embedded database, whose table has to be inserted row by row.
const SIZE_DEFAULT_ENGINE: Bytes = Bytes::mib(256);
/// Smallest data file that says anything: cold reads must not run out of unread blocks at once.
const SIZE_MIN: Bytes = Bytes::mib(64);
const REDO_BYTES: Bytes = Bytes::mib(64);
/// A file to try open flags on.
const PROBE_BYTES: Bytes = Bytes::mib(1);
/// Hot region of `read-cached`.
const CACHED_BYTES: Bytes = Bytes::mib(32);
/// Share of the free space that a run may fill.
const FREE_SHARE_MAX: f64 = 0.8;
/// Share of the data file's blocks that one phase of cold reads may use up, judged by the fastest pilot.
const UNREAD_SHARE_MAX: f64 = 0.6;
/// What growth may write per visit, as a share of the data file.
const GROWTH_SHARE: u64 = 4;

/// Compares the I/O modes; returns where the record is.
///
/// # Errors
/// What made the run impossible; its record, if one was begun, says the same. Ctrl-C is no error.
pub fn run(options: &Options, control: &mut Control<'_>) -> Result<Finished, LabError> {
    check_options(options)?;
    let purpose = Purpose {
        kind: "compare",
        case: (options.target == TargetKind::Engine).then_some("growth"),
        command: options.command.clone(),
        seed: options.seed,
        budget_seconds: options.minutes * 60.0,
        record_path: options.record_path.clone(),
        workspace_in: Some(options.directory.clone()),
    };
    let size = choose_size(options)?;
    control.progress.say(&format!(
        "{} of test data in a directory of our own in {}, removed at the end.",
        disk_needed(options, size),
        options.directory.display()
    ));
    let mut bench = Bench::open(&options.directory, purpose)?;
    let result = Comparison::prepare(options, size, &mut bench, control)
        .and_then(|comparison| comparison.measure(&mut bench, control));
    bench.finish(result)
}

fn check_options(options: &Options) -> Result<(), LabError> {
    let refuse = |text: String| Err(LabError::Target(text));
    if !(0.0..=1.0).contains(&options.read_share) {
        return refuse(format!(
            "--read-share {} is not a share; type a number from 0 to 1",
            options.read_share
        ));
    }
    if !(0.0..=1.0).contains(&options.hit_ratio) {
        return refuse(format!(
            "--hit-ratio {} is not a ratio; type a number from 0 to 1",
            options.hit_ratio
        ));
    }
    if !(0.2..=1440.0).contains(&options.minutes) {
        return refuse(format!("--minutes {} is out of range; type 0.2 to 1440", options.minutes));
    }
    crate::workload::commit::check_sessions(options.sessions)?;
    if options.apis.contains(&Api::Threads) {
        return refuse(
            "--api names the API of the asynchronous modes: io_uring, libaio. The blocking modes need none."
                .into(),
        );
    }
    let apis = if options.apis.is_empty() { Api::ALL.to_vec() } else { options.apis.clone() };
    let asked = Configuration::all(&apis);
    if asked.iter().filter(|c| options.modes.is_empty() || options.modes.contains(&c.mode)).count() < 2 {
        return refuse(
            "that leaves one configuration, and nothing to compare it with; name more --modes or --api"
                .into(),
        );
    }
    let block = options.block.0;
    if !block.is_power_of_two() || !(4096..=32768).contains(&block) {
        return refuse(format!("--block {} is not a database block; type 4k, 8k, 16k or 32k", options.block));
    }
    Ok(())
}

/// The data file's size, foreseen against the free space before anything is written.
fn choose_size(options: &Options) -> Result<Bytes, LabError> {
    let free = io::prepare::free_space(&options.directory)?;
    let room = ((free as f64 * FREE_SHARE_MAX) as u64).saturating_sub(REDO_BYTES.0);
    let needs = |size: u64| disk_needed(options, Bytes(size)).0.saturating_sub(REDO_BYTES.0);
    let size = match options.size {
        Some(size) if size < SIZE_MIN => {
            return Err(LabError::Target(format!(
                "--size {size} is too small: cold reads would run out of unread blocks. Type at least {SIZE_MIN}."
            )));
        }
        Some(size) => size.0,
        None if options.target == TargetKind::Engine => SIZE_DEFAULT_ENGINE.0,
        None => SIZE_DEFAULT.0.min(room * GROWTH_SHARE / (GROWTH_SHARE + 1)).max(SIZE_MIN.0),
    };
    let size = size - size % u64::from(visit::BULK_BYTES);
    if needs(size) > room {
        return Err(LabError::Target(format!(
            "{} has {} free; this run needs {} and leaves at least a fifth of the space alone. Free some space, give another \
             directory, or type a smaller --size.",
            options.directory.display(),
            Bytes(free),
            Bytes(needs(size) + REDO_BYTES.0)
        )));
    }
    Ok(Bytes(size))
}

/// What a comparison runs on, the configurations that work there, and the log block that suits them all, bytes.
type Prepared = (Subject, Vec<Configuration>, u32);

/// A comparison that is ready to measure.
struct Comparison<'o> {
    options: &'o Options,
    configurations: Vec<Configuration>,
    subject: Subject,
    plan: Plan,
    log_block_bytes: u32,
}

/// What the files of a comparison take on disk, at most.
fn disk_needed(options: &Options, size: Bytes) -> Bytes {
    match options.target {
        TargetKind::Files => Bytes(size.0 + size.0 / GROWTH_SHARE + REDO_BYTES.0),
        TargetKind::Engine => Embedded::sizes(size, options.block).total(),
    }
}

impl<'o> Comparison<'o> {
    fn prepare(
        options: &'o Options,
        size: Bytes,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Self, LabError> {
        let (subject, configurations, log_block_bytes) = match options.target {
            TargetKind::Files => Self::prepare_files(options, size, bench, control)?,
            TargetKind::Engine => Self::prepare_engine(options, size, bench, control)?,
        };
        let mut comparison = Self {
            options,
            configurations,
            subject,
            plan: Plan::for_budget(60.0, 1, 64e6, Bytes::mib(16)),
            log_block_bytes,
        };
        comparison.pilot(bench, control)?;
        Ok(comparison)
    }

    fn prepare_files(
        options: &Options,
        size: Bytes,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Prepared, LabError> {
        let files = Files {
            data: bench.new_file("data.dbf")?,
            data_bytes: size.0,
            cached_bytes: CACHED_BYTES.0.min(size.0 / 4),
            redo: bench.new_file("redo.log")?,
            growth: bench.new_file("growth.dbf")?,
        };
        make(bench, control, &files.data, size.0, options.block.0 as u32, DATA_FILE_ID)?;
        make(bench, control, &files.redo, REDO_BYTES.0, 4096, crate::workload::commit::REDO_FILE_ID)?;
        let (configurations, log_block_bytes) = usable(options, &files.data, bench, control)?;
        Ok((Subject::Files(files), configurations, log_block_bytes))
    }

    fn prepare_engine(
        options: &Options,
        size: Bytes,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Prepared, LabError> {
        // Which modes work is asked of a small file first: the database is filled in one that does.
        let probe = bench.new_file("probe.dbf")?;
        make(bench, control, &probe, PROBE_BYTES.0, options.block.0 as u32, DATA_FILE_ID)?;
        let (configurations, log_block_bytes) = usable(options, &probe, bench, control)?;
        bench.step(control, "making and filling the database");
        let loader = *configurations.iter().find(|c| c.mode.asynchronous()).unwrap_or(&configurations[0]);
        let embedded = Embedded::create(
            bench.workspace(),
            size,
            options.block,
            loader,
            bench.seed.part(3),
            control.cancel,
        )?;
        stop_if_cancelled(control)?;
        Ok((Subject::Engine(embedded), configurations, log_block_bytes))
    }

    fn enter<'v>(
        &'v self,
        configuration: Configuration,
        cancel: &'v AtomicBool,
    ) -> Result<Stay<'v>, LabError> {
        let terms = Terms {
            phases: self.plan.phases,
            growth: self.plan.growth,
            sessions: self.options.sessions,
            block_bytes: self.options.block.0 as u32,
            log_block_bytes: self.log_block_bytes,
            cancel,
        };
        self.subject.enter(configuration, terms)
    }

    /// Short trials that are not evidence: how fast are bulk writes in the slowest configuration, and how much does the
    /// baseline differ from itself? From these follow the plan and the difference that it will be able to see.
    fn pilot(&mut self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        bench.step(control, "pilot: how fast, how noisy");
        let seed = bench.seed.part(1);
        self.plan.growth = Bytes::mib(8);
        let mut slowest = f64::INFINITY;
        for &configuration in &self.configurations {
            let mut stay = self.enter(configuration, control.cancel)?;
            stay.prepare(Workload::GrowthWrite, seed)?;
            let trial = stay.run(Workload::GrowthWrite, seed)?;
            stay.leave()?;
            stop_if_cancelled(control)?;
            slowest = slowest.min(trial.bytes as f64 / trial.seconds());
        }
        let mut logs = [Vec::new(), Vec::new()];
        let mut stay = self.enter(self.configurations[0], control.cancel)?;
        for round in 0..4 {
            for (values, workload) in logs.iter_mut().zip([Workload::ReadCold, Workload::Commit]) {
                stay.prepare(workload, seed.part(round))?;
                values.push(stay.run(workload, seed.part(round))?.rate().max(1e-9).ln());
                stop_if_cancelled(control)?;
            }
        }
        stay.leave()?;
        let left = self.options.minutes * 60.0 - bench.elapsed_seconds() - 3.0;
        let growth_max = Bytes(self.subject.data().1 / GROWTH_SHARE);
        let visits = stats::order::block(self.configurations.len(), 0, bench.seed).len() as u32;
        let pilot = self.plan.phases.read_cold;
        self.plan = Plan::for_budget(left, visits, slowest, growth_max);
        // Cold reads must not run out of unread blocks: what is read again comes from the page cache.
        let fastest = logs[0].iter().copied().fold(f64::NEG_INFINITY, f64::max).exp();
        let blocks = self.subject.data().1 / self.options.block.0;
        let longest = Nanos::secs(UNREAD_SHARE_MAX * blocks as f64 / fastest) - self.plan.phases.settle;
        self.plan.phases.read_cold = self.plan.phases.read_cold.min(longest.max(Nanos::millis(50)));
        self.plan.phases.read_cold_one = self.plan.phases.read_cold_one.min(self.plan.phases.read_cold);
        bench.set_forecast(bench.elapsed_seconds() + self.plan.seconds + 2.0);
        let visible = logs.map(|values| {
            // A ratio carries the noise of both sides; shorter visits than the pilot's carry more of it; and a verdict is
            // corrected for all the configurations that are held against the baseline.
            let shorter = (pilot.as_secs() / self.plan.phases.read_cold.as_secs()).max(1.0).sqrt();
            let others = (self.configurations.len() - 1) as f64;
            let sd = sd(&values) * std::f64::consts::SQRT_2 * shorter;
            stats::interval::mde(sd, self.plan.blocks as usize, 1.0 - 0.05 / others, 0.8)
        });
        self.store_plan(bench, control, visible)
    }

    fn store_plan(
        &self,
        bench: &mut Bench,
        control: &mut Control<'_>,
        [read, commit]: [f64; 2],
    ) -> Result<(), LabError> {
        let p = &self.plan;
        let names: Vec<_> = self.configurations.iter().map(Configuration::name).collect();
        bench.writer.plan(&json!({
            "target": self.options.target.to_string(), "configurations": names, "baseline": names[0], "blocks": p.blocks, "seed": bench.seed.0,
            "order": "random permutation, then its mirror in the next block", "delta": crate::DELTA,
            "looks": [p.blocks], "level_per_look": 0.05,
            "sessions": self.options.sessions, "block_bytes": self.options.block.0, "data_bytes": self.subject.data().1,
            "growth_bytes": p.growth.0, "redo_bytes": REDO_BYTES.0, "log_block_bytes": self.log_block_bytes,
            "durability": "every data and redo write is durable before it counts (O_DSYNC)",
            "measure_seconds": {
                "read-cold-1": p.phases.read_cold_one.as_secs(), "read-cold": p.phases.read_cold.as_secs(),
                "read-cached": p.phases.read_cached.as_secs(), "commit-1": p.phases.commit_one.as_secs(),
                "commit": p.phases.commit.as_secs(), "mixed": p.phases.mixed.as_secs(),
                "writers": p.phases.writers.as_secs()
            },
            "mix": { "read_share": self.options.read_share, "hit_ratio": self.options.hit_ratio,
                     "sessions": self.options.sessions },
            "detectable_difference": { "read-cold": read, "commit": commit },
            "forecast_seconds": p.seconds,
        }))?;
        control.progress.say(&format!(
            "Plan: {} configurations × {} randomised blocks, {} sessions, {} data file, {} blocks; about {}.",
            names.len(),
            p.blocks,
            self.options.sessions,
            Bytes(self.subject.data().1),
            self.options.block,
            Nanos::secs(p.seconds),
        ));
        control.progress.say(&format!(
            "It will be able to see differences of about {:.0} % in cold reads and {:.0} % in commits (80 % power, from a \
             pilot); smaller ones come out as unknown. More --minutes see smaller ones.",
            (read * 100.0).max(1.0),
            (commit * 100.0).max(1.0)
        ));
        Ok(())
    }

    fn measure(&self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let mut ids = Vec::new();
        for (index, configuration) in self.configurations.iter().enumerate() {
            ids.push(bench.writer.configuration(&ConfigurationRow {
                name: configuration.name(),
                is_baseline: index == 0,
                levels: vec![
                    ("io".into(), configuration.mode.to_string(), "easy".into()),
                    ("api".into(), configuration.api.to_string(), "easy".into()),
                ],
            })?);
        }
        let mut workloads = Vec::new();
        for workload in self.subject.workloads() {
            let about = workload.about();
            let sessions = match workload {
                Workload::ReadColdOne | Workload::CommitOne => 1,
                Workload::GrowthWrite | Workload::GrowthScanCold | Workload::GrowthScanWarm => 1,
                Workload::Writers => configuration::WRITERS,
                _ => self.options.sessions,
            };
            workloads.push(bench.writer.workload(
                about.name,
                &json!({ "title": about.title, "question": about.question, "metric": about.metric,
                         "higher_is_better": true, "sessions": sessions, "headline": about.headline }),
            )?);
        }
        let mut proof = proof::Proof::new(&self.configurations);
        let measured = (0..self.plan.blocks)
            .try_for_each(|ordinal| self.block(ordinal, &ids, &workloads, &mut proof, bench, control));
        // Also after Ctrl-C: what was finished is shown, so it is doubted too.
        self.conclude(&ids, &proof, bench)?;
        measured
    }

    /// One block: every configuration once, in the order that chance decided.
    fn block(
        &self,
        ordinal: u32,
        ids: &[i64],
        workloads: &[i64],
        proof: &mut proof::Proof,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let order = stats::order::block(self.configurations.len(), ordinal as usize, bench.seed.part(2));
        let block = bench.writer.block(ordinal, &order, bench.seed.0)?;
        for (position, &index) in order.iter().enumerate() {
            let visit_id = bench.writer.visit(&VisitRow {
                block_id: Some(block),
                position: position as u32,
                configuration_id: Some(ids[index]),
                started_utc: clock::utc(),
                start_ns: clock::now().0,
            })?;
            let result = self.visit_all(ordinal, index, visit_id, workloads, proof, bench, control);
            match &result {
                Ok(()) => bench.end_visit(visit_id, "measured", None)?,
                Err(LabError::Cancelled) => {
                    bench.end_visit(visit_id, "dropped", Some("stopped on request"))?;
                }
                Err(error) => bench.end_visit(visit_id, "failed", Some(&error.to_string()))?,
            }
            result?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the whole context of one visit, used once")]
    fn visit_all(
        &self,
        ordinal: u32,
        index: usize,
        visit_id: i64,
        workloads: &[i64],
        proof: &mut proof::Proof,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let configuration = self.configurations[index];
        let seed = bench.seed.part(10_000 + u64::from(ordinal) * 100 + index as u64);
        let mut stay = self.enter(configuration, control.cancel)?;
        for (workload, &workload_id) in self.subject.workloads().into_iter().zip(workloads) {
            let what = format!(
                "block {} of {}: {}, {}",
                ordinal + 1,
                self.plan.blocks,
                configuration.name(),
                workload.about().title
            );
            bench.step(control, &what);
            let seed = seed.part(workload as u64);
            stay.prepare(workload, seed)?;
            let before = bench.snapshot();
            let trial = stay.run(workload, seed)?;
            stop_if_cancelled(control)?;
            let observed = Observed { delta: bench.since(&before), trial };
            let sessions = self.options.sessions;
            let phase = store(bench, visit_id, workload_id, workload, &configuration, sessions, &observed)?;
            stay.store(phase, &mut bench.writer)?;
            proof.add(index, workload, observed);
        }
        stay.leave()
    }

    fn conclude(&self, ids: &[i64], proof: &proof::Proof, bench: &mut Bench) -> Result<(), LabError> {
        for (index, checks) in
            proof.checks(self.options.sessions, self.options.block.0).into_iter().enumerate()
        {
            let name = self.configurations[index].name();
            for (workload, check) in checks {
                let subject = match workload {
                    Some(workload) => format!("{name}: {}", workload.about().name),
                    None => name.clone(),
                };
                bench.writer.check(&check_row("configuration", Some(ids[index]), &subject, &check))?;
            }
        }
        for check in crate::evidence::run_checks(bench, self.subject.data().0, self.subject.data().1) {
            bench.writer.check(&check_row("run", None, "", &check))?;
        }
        Ok(())
    }
}

pub(crate) fn stop_if_cancelled(control: &Control<'_>) -> Result<(), LabError> {
    if control.cancelled() { Err(LabError::Cancelled) } else { Ok(()) }
}

/// Standard deviation with n − 1.
fn sd(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// Makes one file of ours: preallocated, written, stamped, synced.
fn make(
    bench: &mut Bench,
    control: &mut Control<'_>,
    path: &Path,
    bytes: u64,
    block_bytes: u32,
    file_id: u64,
) -> Result<(), LabError> {
    crate::target::make_file(path, bytes, block_bytes, file_id, bench.seed, control, &mut |control, done| {
        let what = format!("writing {} of {} test data", Bytes(done), Bytes(bytes));
        bench.step(control, &what);
    })
}

/// The configurations that work here, and the log block that suits them all. What does not work is said, with the
/// reason, and stands in the record.
fn usable(
    options: &Options,
    data: &Path,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(Vec<Configuration>, u32), LabError> {
    let mut apis = Vec::new();
    for api in Api::ALL {
        if api == Api::Threads || !(options.apis.is_empty() || options.apis.contains(&api)) {
            continue;
        }
        match api.available() {
            Ok(()) => apis.push(api),
            Err(error) => leave_out(bench, control, &format!("{api}"), &error.to_string())?,
        }
    }
    let mut log_block_bytes = 4096;
    let mut usable = Vec::new();
    for configuration in Configuration::all(&apis) {
        if !(options.modes.is_empty() || options.modes.contains(&configuration.mode)) {
            continue;
        }
        let probe = File::open(data, Access::for_mode(configuration.mode, true)).and_then(|file| {
            if configuration.mode.direct() {
                file.probe_direct()?;
                log_block_bytes = log_block_bytes.max(file.alignment().length);
            }
            Ok(())
        });
        match probe {
            Ok(()) => usable.push(configuration),
            Err(error) => leave_out(bench, control, &configuration.name(), &error.to_string())?,
        }
    }
    if usable.len() < 2 {
        return Err(LabError::Target(format!(
            "fewer than two configurations work in {}, so there is nothing to compare; the lines above say why",
            options.directory.display()
        )));
    }
    Ok((usable, log_block_bytes))
}

fn leave_out(bench: &mut Bench, control: &mut Control<'_>, what: &str, why: &str) -> Result<(), LabError> {
    control.progress.say(&format!("Left out: {what}. {why}"));
    bench.writer.event("left_out", &json!({ "configuration": what, "reason": why }))?;
    Ok(())
}

/// One trial into the record.
fn store(
    bench: &mut Bench,
    visit_id: i64,
    workload_id: i64,
    workload: Workload,
    configuration: &Configuration,
    sessions: u32,
    observed: &Observed,
) -> Result<i64, LabError> {
    let Observed { trial, delta } = observed;
    let (threads, in_flight) = match workload {
        Workload::ReadColdOne | Workload::CommitOne => (1, 1),
        Workload::GrowthWrite | Workload::GrowthScanCold | Workload::GrowthScanWarm => {
            (1, configuration.bulk_depth())
        }
        Workload::Writers => configuration.writers(),
        _ => (sessions, sessions),
    };
    let reads = workload.reads_only();
    let steady = (trial.slices.len() >= 4)
        .then(|| stats::steady::assess(&trial.slice_rates(), 0.1, crate::DELTA).class.to_string());
    let phase = bench.writer.phase(&PhaseRow {
        visit_id,
        workload_id,
        kind: "measure".into(),
        threads,
        in_flight,
        start_ns: trial.window.start.0,
        end_ns: trial.window.end.0,
        ops: trial.ops,
        bytes: trial.bytes,
        errors: trial.errors,
        latency_sum_ns: trial.histogram.sum(),
        seconds: trial.seconds(),
        rate: workload.rate(trial),
        metric: workload.about().metric.into(),
        steady_class: steady,
        drift_percent_per_minute: None,
        in_flight_mean: trial.in_flight_mean,
        submit_share: trial.submit_share,
        cpu_ns: trial.cpu_ns,
        proof: Some(trial.flags.clone()),
        requests: Some(trial.requests),
        device_ops: if reads { delta.device_reads } else { delta.device_writes },
        device_bytes: if reads { delta.device_read_bytes } else { delta.device_write_bytes },
    })?;
    let rows: Vec<_> = trial.slices.iter().map(|slice| interval_row(workload.about().name, slice)).collect();
    bench.writer.intervals(phase, &rows)?;
    bench.writer.histogram(phase, workload.about().name, &trial.histogram.encode())?;
    Ok(phase)
}

/// One slice as a row of the record.
pub fn interval_row(op_class: &str, slice: &crate::load::Slice) -> IntervalRow {
    IntervalRow {
        t_ns: slice.t.0,
        op_class: op_class.into(),
        ops: slice.ops,
        bytes: slice.bytes,
        lat_sum_ns: slice.latency_sum_ns,
        lat_max_ns: slice.latency_max_ns,
        errors: slice.errors,
    }
}
