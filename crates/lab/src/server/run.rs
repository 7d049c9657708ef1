//! One case on a private server: `redoubt run CASE --target postgres|mariadb`.
//!
//! The journey of [`measure`]: make the server in the run's workspace → start it with what the factors say → fill it (not
//! measured) → play the case while its sessions are sampled from outside → take down what it counted → stop it; the journal
//! removes it. The words of workloads, classes and metrics are those of the embedded database, so that reports stand side by side.

use super::cases::commit::{self, CommitTimes};
use super::cases::{growth, order_entry, random_read, scan};
use super::durability::{commits_wait, promise};
use super::possible::SPARE_CONNECTIONS;
use super::sampler::Sampler;
use super::site::Site;
use super::{Kind, Server, Settings};
use crate::bench::Bench;
use crate::control::Control;
use crate::database::drive::{self, Pace, Performance};
use crate::database::random_read::Shape;
use crate::database::{self, scan::Way};
use crate::evidence::{Delta, check_row, interval_row, machine_checks, trial_row};
use crate::run::{Case, Options, Plan, SCANS_MIN, SETTLE, SLICE};
use crate::workload::Trial;
use crate::{LabError, compare};
use engine::Placement;
use record::json::json;
use record::{ConfigurationRow, FactRow, PhaseRow, VisitRow};
use stats::check::CommitTime;
use std::path::Path;
use units::{Nanos, clock};

/// Runs the case on a new server of `kind`; `programs`: where it is, when the user says so.
///
/// # Errors
/// What the server or the system says; [`LabError::Cancelled`].
pub(crate) fn measure(
    options: &Options,
    kind: Kind,
    programs: Option<&Path>,
    plan: &Plan,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(), LabError> {
    bench.step(control, &format!("making a private {kind} server"));
    let settings = Settings {
        cache: plan.sizes.cache,
        redo: units::Bytes(plan.sizes.redo.0 * u64::from(plan.sizes.redo_groups)),
        mode: options.configuration.mode,
        api: options.configuration.api,
        block: None,
        connections: options.sessions + SPARE_CONNECTIONS,
        parameters: options.parameters.clone(),
    };
    let workspace = bench.workspace();
    let journal = bench.journal();
    let at = (workspace.path(), &Placement::default());
    let mut server = Server::create(kind, programs, at, &settings, journal, control.cancel)?;
    server.set_patience(options.patience);
    server.start(control.cancel)?;
    control.progress.say(&format!(
        "{kind} {}, a private server on a socket of its own; durable: {}.",
        server.version(),
        promise(kind, &settings.parameters)
    ));
    let promise = promise(kind, &options.parameters);
    let result = Stay { options, plan, site: &mut server, promise, local: true }.visit(bench, control);
    // After an error nothing is put in order: its files go anyway.
    if result.is_ok() { server.stop() } else { result }
}

/// The case's stay on a server.
pub(super) struct Stay<'a> {
    pub(super) options: &'a Options,
    pub(super) plan: &'a Plan,
    pub(super) site: &'a mut dyn Site,
    /// What a commit promises there.
    pub(super) promise: String,
    /// Whether our devices and processors are its own.
    pub(super) local: bool,
}

impl Stay<'_> {
    pub(super) fn visit(&mut self, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let configuration = self.introduce(bench)?;
        bench.step(control, "filling the database");
        let prepared = self.prepare(control)?;
        compare::stop_if_cancelled(control)?;
        if let Some(server) = self.site.private() {
            server.empty_caches(control.cancel)?;
        }
        let visit = bench.writer.visit(&VisitRow {
            block_id: None,
            position: 0,
            configuration_id: Some(configuration),
            started_utc: clock::utc(),
            start_ns: clock::now().0,
        })?;
        let mut sampler = Sampler::start(self.site)?;
        let result = self.play(prepared, visit, &sampler, bench, control);
        sampler.store(visit, &mut bench.writer)?;
        drop(sampler);
        match &result {
            Ok(()) => bench.end_visit(visit, "measured", None)?,
            Err(LabError::Cancelled) => bench.end_visit(visit, "dropped", Some("stopped on request"))?,
            Err(error) => bench.end_visit(visit, "failed", Some(&error.to_string()))?,
        }
        result.map_err(|error| match error {
            LabError::Server(error) => self.site.explain(error).into(),
            other => other,
        })
    }

    /// Plan, configuration and facts.
    fn introduce(&mut self, bench: &mut Bench) -> Result<i64, LabError> {
        let (options, plan, kind) = (self.options, self.plan, self.site.kind());
        let command_line = self.site.private().map(|server| server.command_line());
        bench.writer.plan(&json!({
            "case": options.case.name(), "target": kind.name(), "configuration": options.configuration.name(),
            "sessions": options.sessions, "seconds": options.seconds, "scale": options.scale, "data_bytes": plan.data.0,
            "cache_bytes": plan.sizes.cache.0, "redo_bytes": plan.sizes.redo.0, "redo_groups": plan.sizes.redo_groups,
            "rate": options.rate, "think": format!("{:?}", options.think).to_lowercase(), "parameters": options.parameters,
            "durability": self.promise, "command_line": command_line,
        }))?;
        let fact = |name: &str, value: String| FactRow {
            layer: "target".into(),
            object: kind.name().into(),
            name: name.into(),
            value: Some(value),
            unit: String::new(),
            source: "the server".into(),
        };
        let said = self.site.connect("facts")?.rows("select version()")?;
        let said = said.into_iter().flatten().flatten().next().unwrap_or_default();
        bench.writer.facts(&[fact("version", said), fact("durability", self.promise.clone())])?;
        let mut levels = vec![("target".into(), kind.name().into(), "hard".into())];
        // How a server does I/O that somebody else has started is his business.
        let how = if self.site.private().is_some() {
            levels.push(("io".into(), options.configuration.mode.to_string(), "easy".into()));
            levels.push(("api".into(), options.configuration.api.to_string(), "easy".into()));
            options.configuration.name()
        } else {
            "as it is".to_owned()
        };
        let name = format!("{kind} {}, {how}", self.site.version());
        Ok(bench.writer.configuration(&ConfigurationRow { name, is_baseline: true, levels })?)
    }

    fn prepare(&mut self, control: &Control<'_>) -> Result<Prepared, LabError> {
        let plan = self.plan;
        Ok(match self.options.case {
            Case::Growth => {
                growth::prepare(self.server()?, plan.data.0)?;
                Prepared::Nothing
            }
            Case::Commit => Prepared::Nothing,
            Case::OrderEntry => {
                order_entry::prepare(self.site, plan.order_entry, control.cancel)?;
                Prepared::Nothing
            }
            Case::Scan => Prepared::Scan(scan::prepare(self.server()?, plan.data.0, plan.sizes.cache)?),
            Case::RandomRead => Prepared::Rows(random_read::prepare(self.site, plan.data.0)?),
        })
    }

    /// The private server, which alone may be stopped and emptied.
    fn server(&mut self) -> Result<&mut Server, LabError> {
        let case = self.options.case;
        let refused = || LabError::Target(format!("{case} restarts the server, which is not ours"));
        self.site.private().ok_or_else(refused)
    }

    fn play(
        &mut self,
        prepared: Prepared,
        visit: i64,
        sampler: &Sampler,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        match (self.options.case, prepared) {
            (Case::Growth, _) => self.growth(visit, bench, control),
            (Case::Scan, Prepared::Scan(rows)) => {
                scan::WAYS.into_iter().try_for_each(|way| self.scan(way, rows, visit, bench, control))
            }
            (case, prepared) => self.timed((case, &prepared), visit, sampler, bench, control),
        }
    }

    fn timed(
        &self,
        (case, prepared): (Case, &Prepared),
        visit: i64,
        sampler: &Sampler,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        let options = self.options;
        bench.set_forecast(bench.elapsed_seconds() + options.seconds + 2.0);
        bench.step(control, &format!("{case}, {} sessions", options.sessions));
        let watch = bench.watch();
        let terms = drive::Terms {
            settle: SETTLE,
            measure: Nanos::secs(options.seconds),
            slice: SLICE,
            pace: options.rate.map_or(Pace::Closed, |rate| Pace::Open { rate }),
            seed: options.seed.part(8),
            cancel: control.cancel,
            watch: &watch,
        };
        let performance = match (case, prepared) {
            (Case::OrderEntry, _) => order_entry::run(
                self.site,
                self.plan.order_entry,
                options.sessions,
                options.think,
                true,
                terms,
            ),
            (Case::RandomRead, Prepared::Rows(rows)) => {
                let shape = Shape { sessions: options.sessions, batch: 1, span: 0..*rows };
                random_read::run(self.site, *rows, &shape, terms)
            }
            _ => {
                let (performance, times) = commit::run_timed(self.site, options.sessions, terms)?;
                let phase = self.store_performance(case, visit, &performance, bench)?;
                let waits = commits_wait(self.site.kind(), &mut *self.site.connect("commit")?)?;
                return store_commit_time((phase, waits), &performance.trial, &times, sampler, bench);
            }
        }?;
        self.store_performance(case, visit, &performance, bench).map(|_| ())
    }

    fn store_performance(
        &self,
        case: Case,
        visit: i64,
        performance: &Performance,
        bench: &mut Bench,
    ) -> Result<i64, LabError> {
        let (classes, metric): (&[&str], &str) = match case {
            Case::OrderEntry => (&database::order_entry::CLASSES, "tx/min"),
            Case::RandomRead => (&database::random_read::CLASSES, "reads/s"),
            _ => (&database::commit::CLASSES, "commits/s"),
        };
        let trial = &performance.trial;
        let rate = if metric == "tx/min" { trial.rate() * 60.0 } else { trial.rate() };
        let measured = Measured { name: case.name(), trial, rate, metric, sessions: self.options.sessions };
        let phase = self.phase(visit, &measured, &performance.interval.machine(), bench)?;
        let intervals: Vec<_> = trial.slices.iter().map(|slice| interval_row(case.name(), slice)).collect();
        bench.writer.intervals(phase, &intervals)?;
        for (class, trial) in classes.iter().zip(&performance.classes) {
            bench.writer.histogram(phase, class, &trial.histogram.encode())?;
            if classes.len() > 1 {
                let rows: Vec<_> = trial.slices.iter().map(|s| interval_row(class, s)).collect();
                bench.writer.intervals(phase, &rows)?;
            }
        }
        performance.interval.store(phase, &mut bench.writer)?;
        Ok(phase)
    }

    fn growth(&mut self, visit: i64, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
        let (at, before) = (clock::now(), bench.snapshot());
        let progress = &mut *control.progress;
        let elapsed = bench.elapsed_seconds();
        let rounds = database::growth::ROUNDS;
        let grown = growth::run(self.server()?, rounds, control.cancel, &mut |what| {
            progress.step(what, elapsed, 0.0);
        })?;
        let last = grown.rounds.last().map_or(grown.first_bytes, |round| round.segment_bytes);
        let inserts: Vec<_> = grown.rounds.iter().map(|round| round.insert).collect();
        let inserting = inserts.iter().fold(Nanos(0), |sum, n| sum + *n);
        let bytes = last - grown.first_bytes;
        let trial = Trial::whole(at..clock::now(), &inserts, bytes);
        crate::run::store_rounds(&grown, bench)?;
        let rate = bytes as f64 / 1e6 / inserting.as_secs().max(1e-9);
        let measured = Measured { name: "growth", trial: &trial, rate, metric: "MB/s", sessions: 1 };
        let phase = self.phase(visit, &measured, &bench.since(&before), bench)?;
        bench.writer.histogram(phase, "insert", &trial.histogram.encode())?;
        Ok(())
    }

    fn scan(
        &mut self,
        way: Way,
        rows: database::scan::Rows,
        visit: i64,
        bench: &mut Bench,
        control: &mut Control<'_>,
    ) -> Result<(), LabError> {
        if way == Way::Cached {
            // The first one warms.
            self.pass(way, rows, control)?;
        }
        let (at, before) = (clock::now(), bench.snapshot());
        let until = at + Nanos::secs(self.options.seconds / scan::WAYS.len() as f64);
        let mut scans: Vec<database::scan::Scanned> = Vec::new();
        while scans.len() < SCANS_MIN || clock::now() < until {
            let pass = scans.len() + 1;
            bench.step(control, &format!("scan {way}, {pass}"));
            let scanned = self.pass(way, rows, control)?;
            bench.writer.event(
                "scan",
                &json!({ "way": way.to_string(), "pass": pass, "seconds": scanned.elapsed.as_secs(),
                         "bytes": scanned.bytes, "rows": scanned.rows }),
            )?;
            scans.push(scanned);
        }
        let bytes: u64 = scans.iter().map(|s| s.bytes).sum();
        let elapsed = scans.iter().fold(Nanos(0), |sum, s| sum + s.elapsed);
        let latencies: Vec<_> = scans.iter().map(|scan| scan.elapsed).collect();
        let trial = Trial::whole(at..clock::now(), &latencies, bytes);
        let rate = bytes as f64 / 1e6 / elapsed.as_secs().max(1e-9);
        let name = format!("scan {way}");
        let measured = Measured { name: &name, trial: &trial, rate, metric: "MB/s", sessions: 1 };
        let phase = self.phase(visit, &measured, &bench.since(&before), bench)?;
        bench.writer.histogram(phase, "scan", &trial.histogram.encode())?;
        Ok(())
    }

    /// One scan; cold where the way is.
    fn pass(
        &mut self,
        way: Way,
        rows: database::scan::Rows,
        control: &Control<'_>,
    ) -> Result<database::scan::Scanned, LabError> {
        if way != Way::Cached {
            self.server()?.empty_caches(control.cancel)?;
        }
        let server = self.server()?;
        scan::scan(server, &mut *server.connect("scan")?, way, rows, control.cancel)
    }

    /// The row of what was measured, with the machine's side and its doubts.
    fn phase(
        &self,
        visit: i64,
        measured: &Measured<'_>,
        delta: &Delta,
        bench: &mut Bench,
    ) -> Result<i64, LabError> {
        let elsewhere = Delta::default();
        let delta = if self.local { delta } else { &elsewhere };
        let Measured { name, trial, rate, metric, sessions } = *measured;
        let about = json!({ "title": name, "question": self.options.case.question(), "metric": metric,
                            "higher_is_better": true, "sessions": sessions, "headline": true });
        let workload = bench.writer.workload(name, &about)?;
        let steady = (trial.slices.len() >= 4)
            .then(|| stats::steady::assess(&trial.slice_rates(), 0.1, crate::DELTA).class.to_string());
        let phase = bench.writer.phase(&PhaseRow {
            threads: sessions,
            in_flight: sessions,
            rate,
            metric: metric.into(),
            steady_class: steady,
            device_ops: delta.device_reads.zip(delta.device_writes).map(|(r, w)| r + w),
            device_bytes: delta.device_read_bytes.zip(delta.device_write_bytes).map(|(r, w)| r + w),
            ..trial_row(visit, workload, trial)
        })?;
        for check in machine_checks(delta) {
            bench.writer.check(&check_row("phase", Some(phase), name, &check))?;
        }
        Ok(phase)
    }
}

/// Commits as the client times them beside commits as the samples show them.
fn store_commit_time(
    (phase, waits): (i64, bool),
    trial: &Trial,
    times: &CommitTimes,
    sampler: &Sampler,
    bench: &mut Bench,
) -> Result<(), LabError> {
    let seen = sampler.seen(&trial.window);
    let each = |ns: f64| ns / trial.ops.max(1) as f64;
    let check = stats::check::commit_time(&CommitTime {
        sampled_ns: each(seen.committing.0 as f64),
        elsewhere_ns: each(seen.committing_elsewhere.0 as f64),
        client_ns: times.commit_ns(),
        statement_ns: times.whole.mean_ns().unwrap_or_default(),
        commits: trial.ops,
        ticks: seen.ticks,
        waits,
    });
    bench.writer.event(
        "commit-time",
        &json!({ "sampled_ns": each(seen.committing.0 as f64), "elsewhere_ns": each(seen.committing_elsewhere.0 as f64),
                 "active_ns": each(seen.active.0 as f64), "ticks": seen.ticks,
                 "commits": trial.ops, "client_ns": times.commit_ns(), "statement_ns": times.whole.mean_ns(),
                 "insert_ns": times.insert.mean_ns(), "commit_statement_ns": times.commit.mean_ns(),
                 "timed_apart": times.commit.count }),
    )?;
    bench.writer.check(&check_row("phase", Some(phase), "commit", &check))?;
    Ok(())
}

/// What a phase says of itself.
struct Measured<'a> {
    name: &'a str,
    trial: &'a Trial,
    rate: f64,
    metric: &'a str,
    sessions: u32,
}

/// What [`Stay::prepare`] left for the case.
enum Prepared {
    Nothing,
    Scan(database::scan::Rows),
    Rows(u64),
}
