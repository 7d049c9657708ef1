//! The figures of a calibration: measured again on fresh data at their operating points, in rounds.
//!
//! The search knows where the maximum is, but the best of many noisy readings is too high (winner's curse). So each
//! figure is visited once per round, all figures in random order, and its interval comes from the rounds alone.

use super::effort::Schedule;
use super::subject::{Subject, Work, observe};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::evidence::{
    Delta, Observed, check_row, conservation, interval_row, little, read_checks, trial_row,
};
use record::json::json;
use record::{EstimateRow, PhaseRow, VisitRow};
use stats::check::{self, Check};
use stats::histogram::Histogram;
use stats::steady::Assessment;
use units::{Nanos, Rng, clock};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Operations per second.
    PerSecond(&'static str),
    /// 10⁶ bytes per second.
    Megabytes,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::PerSecond(name) => name,
            Self::Megabytes => "MB/s",
        }
    }
}

/// One figure and the visits that it got.
pub struct Figure {
    /// Stable key, such as `read_iops_max`.
    pub key: String,
    /// For people.
    pub label: String,
    /// Unit.
    pub unit: Unit,
    /// Its operating point.
    pub work: Work,
    /// Its mean latency is to be at most `--max-latency`.
    pub held_to_limit: bool,
    /// What people should know beside the number.
    pub note: Option<String>,
    visits: Vec<Observed>,
}

impl Figure {
    /// A figure without visits.
    pub fn new(key: impl Into<String>, label: impl Into<String>, unit: Unit, work: Work) -> Self {
        Self {
            key: key.into(),
            label: label.into(),
            unit,
            work,
            held_to_limit: false,
            note: None,
            visits: Vec::new(),
        }
    }

    /// Mean latency in the first and in the last visit, nanoseconds.
    pub fn first_and_last_latency_ns(&self) -> (Option<f64>, Option<f64>) {
        let mean = |o: &Observed| (o.trial.ops > 0).then(|| o.trial.histogram.mean());
        match self.visits.as_slice() {
            [first, .., last] => (mean(first), mean(last)),
            _ => (None, None),
        }
    }

    fn value(&self, observed: &Observed) -> f64 {
        match self.unit {
            Unit::PerSecond(_) => observed.trial.rate(),
            Unit::Megabytes => observed.trial.megabytes_per_second(),
        }
    }

    fn reads(&self) -> bool {
        matches!(self.work, Work::Read { .. } | Work::Stream)
    }
}

/// Visits every figure once per round, in random order, and records each visit.
///
/// # Errors
/// The first trial that was spoiled; [`LabError::Cancelled`].
pub fn confirm(
    figures: &mut [Figure],
    subject: &Subject,
    schedule: &Schedule,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(), LabError> {
    let mut rng = Rng::new(bench.seed.part(7));
    let mut workloads = Vec::new();
    for figure in figures.iter() {
        let about = json!({ "title": figure.label, "metric": figure.unit.name(), "higher_is_better": true });
        workloads.push(bench.writer.workload(&figure.key, &about)?);
    }
    for round in 0..schedule.rounds {
        let mut order: Vec<usize> = (0..figures.len()).collect();
        rng.shuffle(&mut order);
        let block = bench.writer.block(round, &order, bench.seed.0)?;
        for (position, &index) in order.iter().enumerate() {
            let figure = &mut figures[index];
            bench.step(control, &format!("round {} of {}: {}", round + 1, schedule.rounds, figure.label));
            let visit = bench.writer.visit(&VisitRow {
                block_id: Some(block),
                position: position as u32,
                configuration_id: None,
                started_utc: clock::utc(),
                start_ns: clock::now().0,
            })?;
            let (settle, measure) = visit_length(figure, schedule);
            let seed = bench.seed.part(100 + u64::from(round) * 100 + index as u64);
            match observe(subject, figure.work, settle, measure, seed, bench, control.cancel) {
                Ok(observed) => {
                    store(bench, visit, workloads[index], figure, &observed)?;
                    bench.end_visit(visit, "measured", None)?;
                    figure.visits.push(observed);
                }
                Err(error) => {
                    bench.end_visit(visit, "dropped", Some(&error.to_string()))?;
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Long enough for the operations that the schedule wants, judged by the visits before.
fn visit_length(figure: &Figure, schedule: &Schedule) -> (Nanos, Nanos) {
    let base = match figure.work {
        Work::Redo { .. } => schedule.visit_redo,
        _ => schedule.visit,
    };
    let latency = figure.visits.last().map_or(0.0, |o| o.trial.histogram.mean());
    let rate = figure.visits.last().map_or(f64::INFINITY, |o| o.trial.rate());
    let wanted = Nanos::secs(schedule.ops_min / rate.max(0.1));
    let settle = Nanos((latency * 20.0) as u64).max(Nanos::millis(100)).min(schedule.visit);
    (settle, base.max(wanted).min(schedule.visit_max.max(base)))
}

fn store(
    bench: &mut Bench,
    visit_id: i64,
    workload_id: i64,
    figure: &Figure,
    observed: &Observed,
) -> Result<(), LabError> {
    let Observed { trial, delta } = observed;
    let reads = figure.reads();
    let phase = bench.writer.phase(&PhaseRow {
        threads: figure.work.threads(),
        in_flight: figure.work.in_flight(),
        rate: figure.value(observed),
        metric: figure.unit.name().into(),
        in_flight_mean: trial.in_flight_mean,
        submit_share: trial.submit_share,
        cpu_ns: trial.cpu_ns,
        proof: Some(trial.flags.clone()),
        requests: Some(trial.requests),
        device_ops: if reads { delta.device_reads } else { delta.device_writes },
        device_bytes: if reads { delta.device_read_bytes } else { delta.device_write_bytes },
        ..trial_row(visit_id, workload_id, trial)
    })?;
    let rows: Vec<_> = trial.slices.iter().map(|slice| interval_row(&figure.key, slice)).collect();
    bench.writer.intervals(phase, &rows)?;
    bench.writer.histogram(phase, &figure.key, &trial.histogram.encode())?;
    Ok(())
}

/// What all visits of a figure say together.
pub struct Summary {
    /// All visits as one trial; its window runs over all of them.
    pub merged: Observed,
    /// Estimate for the record.
    pub estimate: EstimateRow,
    /// Its doubts.
    pub checks: Vec<Check>,
    /// Rates of all slices, per second.
    pub rates: Vec<f64>,
}

/// Estimate and checks of one figure; none when it was not visited. Without an interval when it was visited too seldom, or
/// when a visit saw nothing complete: that figure is then shown as it is, and the others are not lost with it.
fn summarise(figure: &Figure, latency_max: Nanos) -> Option<Summary> {
    if figure.visits.is_empty() {
        return None;
    }
    let values: Vec<f64> = figure.visits.iter().map(|o| figure.value(o)).collect();
    let merged = merge(figure);
    let resolution = 1.0 / merged.trial.ops.max(1) as f64;
    let interval = stats::interval::absolute(&values, LEVEL, resolution);
    let rates: Vec<f64> = figure.visits.iter().flat_map(|o| o.trial.slice_rates()).collect();
    // Visits lie far apart: only slices of one visit are a series in time.
    let series = figure.visits.iter().map(|o| o.trial.slice_rates()).max_by_key(Vec::len).unwrap_or_default();
    let steady = stats::steady::assess(&series, super::subject::SLICE.as_secs(), crate::DELTA);
    let histogram = &merged.trial.histogram;
    let p99_known = histogram.count() as f64 * 0.01 >= 100.0;
    let estimate = EstimateRow {
        metric: figure.key.clone(),
        label: figure.label.clone(),
        value: interval
            .as_ref()
            .map_or_else(|_| values.iter().sum::<f64>() / values.len() as f64, |i| i.value),
        low: interval.as_ref().ok().map(|i| i.low),
        high: interval.as_ref().ok().map(|i| i.high),
        level: Some(LEVEL),
        n: values.len() as u64,
        unit: figure.unit.name().into(),
        steady: Some(format!("{}{}", steady.class, if steady.proven { "" } else { ", not proven" })),
        note: note(figure, interval.err(), histogram.mean(), latency_max),
        latency_ns: Some(histogram.mean()),
        latency_p99_ns: p99_known.then(|| histogram.quantile(0.99) as f64),
        configuration_id: None,
        in_flight: Some(figure.work.in_flight()),
        threads: Some(figure.work.threads()),
    };
    Some(Summary { checks: checks(figure, &merged, &steady), merged, estimate, rates })
}

/// Confidence level of the figures.
const LEVEL: f64 = 0.95;

fn note(
    figure: &Figure,
    no_interval: Option<stats::interval::TooFew>,
    latency_ns: f64,
    latency_max: Nanos,
) -> Option<String> {
    let mut notes: Vec<String> = figure.note.iter().cloned().collect();
    if let Some(reason) = no_interval {
        notes.push(format!("no interval: {reason}"));
    }
    if figure.held_to_limit {
        let (word, limit) =
            (if latency_ns <= latency_max.0 as f64 { "within" } else { "ABOVE" }, latency_max);
        notes.push(format!("{word} the limit of {limit}"));
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn checks(figure: &Figure, merged: &Observed, steady: &Assessment) -> Vec<Check> {
    let trial = &merged.trial;
    let in_flight = figure.work.in_flight();
    let cores = host::facts::cores_allowed() as f64;
    let cpu_share = trial
        .cpu_ns
        .map(|cpu| cpu as f64 / (trial.seconds() * 1e9 * cores.min(f64::from(figure.work.threads()))));
    let mut checks = vec![check::steady(steady), check::burst(steady)];
    checks.extend(match figure.work {
        Work::Read { bytes, .. } if bytes <= 64 << 10 => read_checks(merged),
        Work::Read { .. } | Work::Stream => vec![
            check::funnel_bytes(trial.request_bytes, merged.delta.device_read_bytes),
            check::steal(merged.delta.steal_share, None),
            check::errors(trial.errors, trial.first_error.as_deref()),
        ],
        _ => vec![
            check::funnel_bytes(
                trial.request_bytes,
                merged.delta.device_write_bytes.map(|bytes| bytes.min(trial.request_bytes)),
            ),
            check::steal(merged.delta.steal_share, None),
            check::errors(trial.errors, trial.first_error.as_deref()),
        ],
    });
    if figure.reads() {
        let window = trial.seconds() / figure.visits.len() as f64;
        checks.extend(little(trial.rate(), trial.histogram.mean(), in_flight, window));
        let latency = trial.histogram.mean();
        checks.push(conservation(trial));
        checks.push(check::generator_bound(
            cpu_share,
            f64::from(in_flight),
            latency,
            merged.delta.device_view(),
        ));
    }
    checks
}

/// Histograms and counts added; the window becomes the sum of the visits' windows, starting at the first.
fn merge(figure: &Figure) -> Observed {
    let first = &figure.visits[0];
    let mut trial = first.trial.clone();
    let mut delta: Delta = first.delta;
    let mut length = trial.window.end - trial.window.start;
    let mut histogram: Histogram = trial.histogram.clone();
    for observed in &figure.visits[1..] {
        let other = &observed.trial;
        length += other.window.end - other.window.start;
        trial.ops += other.ops;
        trial.slices.extend(other.slices.iter().cloned());
        trial.bytes += other.bytes;
        trial.errors += other.errors;
        trial.requests += other.requests;
        trial.request_bytes += other.request_bytes;
        trial.verified += other.verified;
        trial.wrong += other.wrong;
        trial.first_error = trial.first_error.take().or_else(|| other.first_error.clone());
        trial.cpu_ns = trial.cpu_ns.zip(other.cpu_ns).map(|(a, b)| a + b);
        histogram.merge(&other.histogram);
        delta.add(&observed.delta);
    }
    trial.histogram = histogram;
    trial.window.end = trial.window.start + length;
    Observed { trial, delta }
}

/// Writes a figure's estimate and checks.
///
/// # Errors
/// When the record cannot be written.
pub fn conclude(figure: &Figure, latency_max: Nanos, bench: &mut Bench) -> Result<Option<Summary>, LabError> {
    let Some(summary) = summarise(figure, latency_max) else { return Ok(None) };
    bench.writer.estimate(&summary.estimate)?;
    for check in &summary.checks {
        bench.writer.check(&check_row("figure", None, &figure.key, check))?;
    }
    Ok(Some(summary))
}
