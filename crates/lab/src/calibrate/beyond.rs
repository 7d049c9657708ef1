//! Beyond the knee: what happens when more threads than cores each keep one read in flight.
//!
//! The case that this is for: a calibration ramped up to 80 processes on 4 cores, reported 5,058 IOPS where 219,893 were
//! to be had, and nobody said why. So the place beyond the knee is visited on purpose, and what is found there is named.

use super::subject::{Subject, Work, observe};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::load::LoadError;
use record::CurvePointRow;
use record::json::json;
use units::Nanos;

/// Name of the curve with one thread per request.
pub const SERIES_THREADS: &str = "one thread per read";
/// Below this share of the maximum it is a collapse (docs/method.md, 6.1).
const COLLAPSE_SHARE: f64 = 0.5;
/// Below this share it is worth a sentence.
const LOSS_SHARE: f64 = 0.9;

/// A point of the oversubscribed curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oversubscribed {
    /// Threads, each with one read in flight.
    pub threads: u32,
    /// Reads per second.
    pub rate: f64,
    /// Their mean latency.
    pub latency_ns: f64,
    /// Share of CPU time that was busy.
    pub cpu_busy_share: Option<f64>,
    /// Load average at the end.
    pub load_average: Option<f64>,
}

/// Most threads that are started.
const THREADS_MAX: u32 = 512;

/// Numbers of threads to visit: from twice the cores to far too many, and in any case well beyond `n_best` requests.
pub fn steps(cores: u32, n_best: u32) -> Vec<u32> {
    let mut steps: Vec<u32> =
        [cores * 2, cores * 8, cores * 20, cores * 64, n_best * 2].map(|n| n.min(THREADS_MAX)).into();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Measures the oversubscribed points.
///
/// # Errors
/// A spoiled trial; [`LabError::Cancelled`].
pub fn visit(
    subject: &Subject,
    n_best: u32,
    measure: Nanos,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<Vec<Oversubscribed>, LabError> {
    let mut points = Vec::new();
    for threads in steps(host::facts::cores_allowed() as u32, n_best) {
        bench.step(control, &format!("beyond the knee: {threads} threads, one read each"));
        let shape = subject.each_its_thread(threads);
        let work = Work::Read { bytes: subject.block_bytes, in_flight: threads, shape };
        let seed = bench.seed.part(5_000 + u64::from(threads));
        let observed = match observe(subject, work, Nanos::millis(200), measure, seed, bench, control.cancel)
        {
            // More threads than this machine allows is an answer, not a failure: go on with what was seen.
            Err(LabError::Load(error @ LoadError::Thread { .. })) => {
                control.progress.say(&error.to_string());
                break;
            }
            // So is a server that takes no more connections, or no more sessions.
            Err(LabError::Load(LoadError::Io(error))) if subject.is_remote() => {
                control.progress.say(&format!("{threads} connections cannot be had: {error}"));
                break;
            }
            other => other?,
        };
        let point = Oversubscribed {
            threads,
            rate: observed.trial.rate(),
            latency_ns: observed.trial.histogram.mean(),
            cpu_busy_share: observed.delta.cpu_busy_share,
            load_average: host::counters::load_average().map(|l| l[0]),
        };
        bench.writer.curve_point(&CurvePointRow {
            series: SERIES_THREADS.into(),
            n: threads,
            threads,
            depth: 1,
            stage: "beyond".into(),
            round: 0,
            rate: point.rate,
            latency_mean_ns: point.latency_ns,
            sd: 0.0,
            seconds: observed.trial.seconds(),
        })?;
        points.push(point);
    }
    Ok(points)
}

/// Records what was found beyond the knee against `rate_max`, the confirmed maximum at `n_best`.
///
/// Only points with at least `n_best` requests in flight count: fewer threads than that are not beyond anything, they
/// simply do not ask for more.
///
/// # Errors
/// When the record cannot be written.
pub fn name(
    points: &[Oversubscribed],
    found: Option<&stats::search::Collapse>,
    rate_max: f64,
    n_best: u32,
    bench: &mut Bench,
) -> Result<(), LabError> {
    let worst_thread = points.iter().filter(|p| p.threads >= n_best).min_by(|a, b| a.rate.total_cmp(&b.rate));
    let beyond = found
        .map(|c| (c.n, None, c.rate, None, None))
        .into_iter()
        .chain(worst_thread.map(|p| (p.threads, Some(p.threads), p.rate, p.cpu_busy_share, p.load_average)))
        .min_by(|a, b| a.2.total_cmp(&b.2));
    let Some((n, threads, rate, busy, load)) = beyond else { return Ok(()) };
    let share = rate / rate_max.max(1e-9);
    if share >= LOSS_SHARE {
        return Ok(());
    }
    let kind = if share < COLLAPSE_SHARE { "collapse" } else { "loss_beyond_knee" };
    bench.writer.event(
        kind,
        &json!({ "n": n, "threads": threads, "rate": rate, "share_of_max": share, "rate_max": rate_max,
                 "n_best": n_best, "cpu_busy_share": busy, "load_average": load,
                 "cores": host::facts::cores_allowed() }),
    )?;
    Ok(())
}
