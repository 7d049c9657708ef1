//! How much can this storage do?
//!
//! The journey of [`run`]: make or open the subject → pick API and threads → search the maximum of single-block reads
//! (bracket, race, confirm, knee) → look beyond the knee → search large reads and writes → measure every figure again on
//! fresh data → doubt each figure. The maximum is at the knee, never at the end of a ramp.

mod beyond;
pub mod effort;
mod figures;
mod prepare;
pub mod subject;

use crate::LabError;
use crate::bench::{Bench, Finished, Purpose};
use crate::control::Control;
use crate::evidence::check_row;
use crate::target::Target;
use crate::workload::commit::LogCall;
use effort::{Effort, Schedule};
use figures::{Figure, Unit};
use io::Api;
use record::CurvePointRow;
use record::json::json;
use stats::check;
use stats::search::{Found, LatencyBound, Plan, Point};
use std::path::PathBuf;
use subject::{Curve, LARGE_BYTES, Shape, Subject, Via, Work};
use units::{Bytes, Nanos, Seed, clock};

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory, file or block device, looked at before.
    pub target: Target,
    /// Time budget.
    pub effort: Effort,
    /// Limit for `read_iops_within_latency`, as Oracle's `max_latency`.
    pub latency_max: Nanos,
    /// Database block.
    pub block: Bytes,
    /// Size of our own file; `None`: chosen here and said.
    pub size: Option<Bytes>,
    /// Sessions of the group commit figures.
    pub sessions: u32,
    /// Where chance comes from.
    pub seed: Seed,
    /// The command as typed.
    pub command: String,
    /// Where the record goes; `None`: the usual place.
    pub record_path: Option<PathBuf>,
}

/// Calibrates; returns where the record is.
///
/// # Errors
/// What made the run impossible; its record, if one was begun, says the same. Ctrl-C is no error.
pub fn run(options: &Options, control: &mut Control<'_>) -> Result<Finished, LabError> {
    crate::workload::commit::check_sessions(options.sessions)?;
    let schedule = options.effort.schedule();
    let size = prepare::choose_size(options)?;
    let purpose = Purpose {
        kind: "calibrate",
        case: None,
        command: options.command.clone(),
        seed: options.seed,
        budget_seconds: schedule.forecast_seconds,
        record_path: options.record_path.clone(),
        workspace_in: match &options.target {
            Target::Directory(path) => Some(path.clone()),
            Target::Export(export) => Some(export.path().to_owned()),
            _ => None,
        },
        is_server_ours: false,
    };
    let mut bench = Bench::open(options.target.path(), purpose)?;
    let result = prepare::subject(options, size, &mut bench, control)
        .and_then(|subject| Calibration { options, schedule, subject }.measure(&mut bench, control));
    bench.finish(result)
}

/// Name of the main curve in the record.
pub fn series_reads(block_bytes: u32) -> String {
    format!("random reads of {}", Bytes(u64::from(block_bytes)))
}
const SERIES_LARGE: &str = "random reads of 1 MiB";
const SERIES_WRITES: &str = "random writes";
const SERIES_PROBE: &str = "probe of API and threads";
/// In flight during the probe that picks API and threads.
const PROBE_IN_FLIGHT: u32 = 32;
/// A simpler shape is kept unless another is faster by this much.
const PROBE_GAIN: f64 = 1.02;

struct Calibration<'o> {
    options: &'o Options,
    schedule: Schedule,
    subject: Subject,
}

impl Calibration<'_> {
    fn measure(&self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        self.store_plan(bench, control)?;
        let shape = self.pick_shape(bench, control)?;
        let block = self.subject.block_bytes;
        let read = move |n| Work::Read { bytes: block, in_flight: n, shape };
        let found = self.search(
            &series_reads(block),
            &read,
            shape,
            &self.schedule.search,
            "single-block reads",
            bench,
            control,
        )?;
        let beyond = beyond::visit(&self.subject, found.n_best, self.schedule.beyond, bench, control)?;
        let within = self.within_latency(&found, &read, shape, bench, control)?;
        let large = move |n| Work::Read { bytes: LARGE_BYTES, in_flight: n, shape };
        let large_found = self.search(
            SERIES_LARGE,
            &large,
            shape,
            &self.schedule.search_short,
            "1 MiB reads",
            bench,
            control,
        )?;
        let write_found = if self.subject.redo.is_some() {
            let write = move |n| Work::Write { in_flight: n, shape };
            Some(self.search(
                SERIES_WRITES,
                &write,
                shape,
                &self.schedule.search_short,
                "writes",
                bench,
                control,
            )?)
        } else {
            None
        };
        let mut figures = self.figures(shape, &found, &within, &large_found, write_found.as_ref());
        let confirmed = figures::confirm(&mut figures, &self.subject, &self.schedule, bench, control);
        // Also after Ctrl-C: what was finished is shown, so it is doubted too.
        self.conclude(&figures, &found, &beyond, bench)?;
        confirmed
    }

    fn store_plan(&self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let s = &self.subject;
        bench.writer.plan(&json!({
            "effort": format!("{:?}", self.options.effort).to_lowercase(),
            "target": self.options.target.path().display().to_string(),
            "data_bytes": s.span.end - s.span.start, "block_bytes": s.block_bytes, "direct": s.direct,
            "stamped": s.stamped, "writes": s.redo.is_some(), "latency_max_ns": self.options.latency_max.0,
            "rounds": self.schedule.rounds, "sessions": self.options.sessions, "seed": bench.seed.0,
            "delta": crate::DELTA, "forecast_seconds": self.schedule.forecast_seconds,
        }))?;
        let ram = host::facts::memory_total()
            .map_or("RAM of unknown size".into(), |b| format!("{} of RAM", Bytes(b)));
        let path = if s.is_remote() {
            "No cache of this machine is between; the server's memory may hold it all"
        } else if s.direct {
            "O_DIRECT bypasses the page cache; a cache inside the storage may still hold it all"
        } else {
            "O_DIRECT is refused here, so the page cache takes part in every figure"
        };
        control.progress.say(&format!("{} of data beside {ram}. {path}.", Bytes(s.span.end - s.span.start)));
        if s.redo.is_none() {
            control.progress.say(
                "Read only: write and redo figures are left out. Give a directory for them, or --destroy DEVICE.",
            );
        }
        Ok(())
    }

    /// The same reads through each API with few and many threads, alternating: the first that nobody beats clearly.
    fn pick_shape(&self, bench: &mut Bench, control: &mut Control<'_>) -> Result<Shape, LabError> {
        let cores = host::facts::cores_allowed() as u32;
        let mut shapes = Vec::new();
        if self.subject.is_remote() {
            shapes.extend([cores, 1, cores * 2].map(|threads| Shape { via: Via::Connections, threads }));
            control.progress.say(
                "The kernel has no part in these transfers: no I/O API to choose, no scheduler, no device counters of this machine.",
            );
            return self.probe(shapes, bench, control);
        }
        for api in [Api::IoUring, Api::Libaio] {
            match api.available() {
                Ok(()) => {
                    let via = Via::Api(api);
                    shapes.extend([cores, 1, cores * 2].map(|threads| Shape { via, threads }));
                }
                Err(error) => control.progress.say(&format!("Left out: {api}. {error}")),
            }
        }
        shapes.push(Shape { via: Via::Api(Api::Threads), threads: PROBE_IN_FLIGHT });
        self.probe(shapes, bench, control)
    }

    fn probe(
        &self,
        mut shapes: Vec<Shape>,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Shape, LabError> {
        shapes.dedup();
        let mut logs = vec![0.0; shapes.len()];
        for round in 0..self.schedule.probe_rounds {
            for (index, &shape) in shapes.iter().enumerate() {
                bench.step(control, &format!("probing {} with {} threads", shape.via, shape.threads));
                let work = Work::Read { bytes: self.subject.block_bytes, in_flight: PROBE_IN_FLIGHT, shape };
                let seed = bench.seed.part(20 + u64::from(round) * 100 + index as u64);
                let settle = Nanos::millis(100);
                let trial = self.subject.run(work, settle, self.schedule.probe, seed, control.cancel)?;
                if control.cancelled() {
                    return Err(LabError::Cancelled);
                }
                logs[index] += trial.rate().max(1e-9).ln() / f64::from(self.schedule.probe_rounds);
                let threads = shape.threads_for(PROBE_IN_FLIGHT);
                let series = format!("{SERIES_PROBE}: {}", shape.via);
                bench.writer.curve_point(&CurvePointRow {
                    series,
                    n: PROBE_IN_FLIGHT,
                    threads,
                    depth: PROBE_IN_FLIGHT / threads,
                    stage: "probe".into(),
                    round,
                    rate: trial.rate(),
                    latency_mean_ns: trial.histogram.mean(),
                    sd: 0.0,
                    seconds: trial.seconds(),
                })?;
            }
        }
        let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let index = logs.iter().position(|&log| log + PROBE_GAIN.ln() >= best).unwrap_or(0);
        Ok(shapes[index])
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one search: its name, its work, its plan, and where to tell"
    )]
    fn search(
        &self,
        series: &str,
        work: &dyn Fn(u32) -> Work,
        shape: Shape,
        plan: &Plan,
        what: &str,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<Found, LabError> {
        let mut curve = self.curve(work, bench.seed.part(30), control.cancel);
        let mut stored = Ok(());
        let bench_ref = &mut *bench;
        let progress = &mut *control.progress;
        let found = stats::search::maximum(&mut curve, plan, bench_ref.seed.part(31), &mut |point| {
            let (done, total) = (bench_ref.elapsed_seconds(), self.schedule.forecast_seconds);
            let doing =
                format!("searching the maximum of {what}: {} in flight, {:.0}/s", point.n, point.rate);
            progress.step(&doing, done, total);
            if stored.is_ok() {
                stored = bench_ref.writer.curve_point(&point_row(series, shape, point));
            }
        })?;
        stored?;
        Ok(found)
    }

    fn curve<'c>(
        &'c self,
        work: &'c dyn Fn(u32) -> Work,
        seed: Seed,
        cancel: &'c std::sync::atomic::AtomicBool,
    ) -> Curve<'c> {
        Curve { subject: &self.subject, work, seed, cancel, started: clock::now(), readings: 0 }
    }

    /// The most requests in flight whose mean latency stays below the limit. When the maximum itself does, that is it.
    fn within_latency(
        &self,
        found: &Found,
        read: &dyn Fn(u32) -> Work,
        shape: Shape,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<LatencyBound, LabError> {
        let limit_ns = self.options.latency_max.0 as f64;
        if found.latency_ns <= limit_ns {
            return Ok(LatencyBound::Met {
                n: found.n_best,
                rate: found.rate_confirmed,
                latency_ns: found.latency_ns,
            });
        }
        bench.step(control, "searching the maximum within the latency limit");
        let mut curve = self.curve(read, bench.seed.part(40), control.cancel);
        let series = series_reads(self.subject.block_bytes);
        let mut stored = Ok(());
        let writer = &mut bench.writer;
        let seed = bench.seed.part(41);
        let bound = stats::search::within_latency(
            &mut curve,
            &self.schedule.search_short,
            limit_ns,
            &found.points,
            seed,
            &mut |point| {
                if stored.is_ok() {
                    stored = writer.curve_point(&point_row(&series, shape, point));
                }
            },
        )?;
        stored?;
        Ok(bound)
    }

    /// Every figure at its operating point.
    fn figures(
        &self,
        shape: Shape,
        found: &Found,
        within: &LatencyBound,
        large: &Found,
        write: Option<&Found>,
    ) -> Vec<Figure> {
        let bytes = self.subject.block_bytes;
        let block = Bytes(u64::from(bytes));
        let read = |in_flight| Work::Read { bytes, in_flight, shape };
        let reads = Unit::PerSecond("reads/s");
        let mut figures = vec![
            Figure::new("read_iops_1", format!("random {block} reads, one in flight"), reads, read(1)),
            Figure::new("read_iops_max", format!("max random {block} reads"), reads, read(found.n_best)),
        ];
        if found.lower_bound_only {
            figures[1].note = Some("lower bound: --quick stops at the bracket".into());
        }
        if let Some(n) = found.n_knee.filter(|&n| n != found.n_best) {
            let label = format!("random {block} reads at the knee");
            figures.push(Figure::new("read_iops_knee", label, reads, read(n)));
        }
        let limit = self.options.latency_max;
        match *within {
            LatencyBound::Met { n, .. } if n != found.n_best => {
                let label = format!("max random {block} reads within {limit}");
                let mut figure = Figure::new("read_iops_within_latency", label, reads, read(n));
                figure.held_to_limit = true;
                figures.push(figure);
            }
            LatencyBound::Met { .. } => figures[1].held_to_limit = true,
            LatencyBound::NotMetByOne { .. } => {
                figures[0].note =
                    Some(format!("even one read in flight takes longer than the limit of {limit}"));
            }
        }
        let large_work = Work::Read { bytes: LARGE_BYTES, in_flight: large.n_best, shape };
        figures.push(Figure::new("read_mbps_max", "max 1 MiB reads", Unit::Megabytes, large_work));
        figures.push(Figure::new(
            "read_mbps_stream",
            "one stream of 1 MiB reads",
            Unit::Megabytes,
            Work::Stream,
        ));
        if let Some(write) = write {
            figures.push(Figure::new(
                "write_iops_max",
                format!("max random {block} writes, not synced"),
                Unit::PerSecond("writes/s"),
                Work::Write { in_flight: write.n_best, shape },
            ));
            figures.extend(self.redo_figures());
        }
        figures
    }

    fn redo_figures(&self) -> Vec<Figure> {
        let path = if self.subject.direct { "O_DIRECT" } else { "cached" };
        if self.subject.is_remote() {
            return self.remote_redo_figures();
        }
        let calls = [
            (LogCall::Dsync, "dsync", format!("{path} + O_DSYNC")),
            (LogCall::Fdatasync, "fdatasync", "cached + fdatasync".to_owned()),
            (LogCall::Fua, "fua", format!("{path} + RWF_DSYNC")),
        ];
        let smallest = self.subject.log_block_bytes;
        let mut figures = Vec::new();
        for bytes in [smallest, smallest * 4, smallest * 16] {
            for (call, key, name) in &calls {
                let size = Bytes(u64::from(bytes));
                figures.push(Figure::new(
                    format!("redo_{key}_{bytes}"),
                    format!("redo write {size}, {name}"),
                    Unit::PerSecond("writes/s"),
                    Work::Redo { bytes, call: *call },
                ));
            }
        }
        let sessions = self.options.sessions;
        for (call, key, name) in &calls[..2] {
            figures.push(Figure::new(
                format!("commit_{key}"),
                format!("group commit, {sessions} sessions, {name}"),
                Unit::PerSecond("commits/s"),
                Work::Commit { sessions, call: *call },
            ));
        }
        figures
    }

    /// What of the three calls there is in NFS.
    fn remote_redo_figures(&self) -> Vec<Figure> {
        let calls =
            [(LogCall::Dsync, "dsync", "stable WRITE"), (LogCall::Fdatasync, "fdatasync", "WRITE + COMMIT")];
        let (smallest, sessions) = (self.subject.log_block_bytes, self.options.sessions);
        let redo = [smallest, smallest * 4, smallest * 16].into_iter().flat_map(|bytes| {
            calls.map(|(call, key, name)| {
                let size = Bytes(u64::from(bytes));
                let label = format!("redo write {size}, {name}");
                let work = Work::Redo { bytes, call };
                Figure::new(format!("redo_{key}_{bytes}"), label, Unit::PerSecond("writes/s"), work)
            })
        });
        let commits = calls.map(|(call, key, name)| {
            let label = format!("group commit, {sessions} sessions, {name}");
            let work = Work::Commit { sessions, call };
            Figure::new(format!("commit_{key}"), label, Unit::PerSecond("commits/s"), work)
        });
        redo.chain(commits).collect()
    }

    fn conclude(
        &self,
        figures: &[Figure],
        found: &Found,
        beyond: &[beyond::Oversubscribed],
        bench: &mut Bench,
    ) -> Result<(), LabError> {
        let mut maximum = found.rate_confirmed;
        let mut one_ns = None;
        for figure in figures {
            let Some(summary) = figures::conclude(figure, self.options.latency_max, bench)? else { continue };
            match figure.key.as_str() {
                "read_iops_max" => {
                    maximum = summary.estimate.value;
                    let beyond_best = found.points.iter().filter(|p| p.n >= found.n_best);
                    let curve: Vec<_> = beyond_best.map(|p| (p.n, p.latency_ns)).collect();
                    let check = check::throttle_cap(&summary.rates, &curve);
                    bench.writer.check(&check_row("figure", None, &figure.key, &check))?;
                }
                // The median, as of the cached page that it is held against: a busy machine moves means.
                "read_iops_1" => one_ns = Some(summary.merged.trial.histogram.quantile(0.5) as f64),
                _ if matches!(figure.work, Work::Redo { call: LogCall::Fdatasync, bytes } if bytes == self.subject.log_block_bytes) =>
                {
                    let check = self.flush_check(&summary, bench);
                    bench.writer.check(&check_row("figure", None, &figure.key, &check))?;
                }
                _ => {}
            }
        }
        let shape = figures.iter().find_map(|figure| match figure.work {
            Work::Read { shape, .. } => Some(shape),
            _ => None,
        });
        bench.writer.event(
            "knee",
            &json!({ "series": series_reads(self.subject.block_bytes), "n_best": found.n_best, "n_knee": found.n_knee,
                     "api": shape.map(|s| s.via.to_string()), "threads": shape.map(|s| s.threads),
                     "n_saturation": found.n_saturation, "n_power": found.n_power,
                     "lower_bound_only": found.lower_bound_only, "unstable": found.environment_unstable }),
        )?;
        beyond::name(beyond, found.collapse.as_ref(), maximum, found.n_best, bench)?;
        let span = self.subject.span.end - self.subject.span.start;
        let mut checks = crate::evidence::run_checks(bench, &self.subject.data, span);
        if let Some(one_ns) = one_ns {
            checks.push(check::near_memory(one_ns, prepare::page_cache_read_ns(&self.subject)));
        }
        checks.push(self.anchor(figures));
        for check in checks {
            bench.writer.check(&check_row("run", None, "", &check))?;
        }
        Ok(())
    }

    /// Did one read at a time take as long in the last round as in the first?
    fn anchor(&self, figures: &[Figure]) -> check::Check {
        let one = figures.iter().find(|f| f.key == "read_iops_1").map(Figure::first_and_last_latency_ns);
        let (first, last) = one.unwrap_or((None, None));
        check::anchor(first, last)
    }

    /// Does the device flush when it is told to?
    fn flush_check(&self, summary: &figures::Summary, bench: &Bench) -> check::Check {
        let trial = &summary.merged.trial;
        let leaf = bench.storage.leaves().into_iter().next().cloned();
        let queue = leaf.map(|d| d.queue);
        check::volatile_cache(
            queue.as_ref().and_then(|q| q.write_cache.as_deref()),
            summary.merged.delta.device_flushes,
            trial.requests,
            trial.histogram.quantile(0.5) as f64,
            None,
        )
    }
}

fn point_row(series: &str, shape: Shape, point: &Point) -> CurvePointRow {
    let threads = shape.threads_for(point.n);
    CurvePointRow {
        series: series.into(),
        n: point.n,
        threads,
        depth: point.n.div_ceil(threads),
        stage: point.stage.to_string(),
        round: point.round,
        rate: point.rate,
        latency_mean_ns: point.latency_ns,
        sd: point.sd,
        seconds: point.seconds,
    }
}
