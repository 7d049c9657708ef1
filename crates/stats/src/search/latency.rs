//! The most operations per second with a mean latency within a limit: Oracle's `max_latency` (section 6.4).
//!
//! Log-bisection in which a point counts only when it is clear of the limit; what stays undecided counts as failed. fio's
//! `latency_target` decides on one window, and a single slow request halves its depth for good: −98 % on the NVMe device where
//! this is within 5 % in 97–100 % of runs.

use super::measure::Probe;
use super::{Plan, Point, Stage, Target};
use crate::sample;
use units::Seed;

/// A point is extended by this, seconds, while it is undecided …
const EXTEND: f64 = 2.0;
/// … up to this.
const UNDECIDED_MAX: f64 = 12.0;

/// The answer of [`within_latency`].
#[derive(Clone, Debug, PartialEq)]
pub enum LatencyBound {
    /// The most in flight that stays within the limit, from fresh data.
    Met {
        /// Requests in flight.
        n: u32,
        /// Operations per second.
        rate: f64,
        /// Mean latency, nanoseconds.
        latency_ns: f64,
    },
    /// Even one request at a time takes longer.
    NotMetByOne {
        /// Its mean latency, nanoseconds.
        latency_ns: f64,
    },
}

/// What is known of one number in flight.
#[derive(Clone, Copy)]
struct Tried {
    passes: bool,
    rate: f64,
    latency_ns: f64,
}

/// Finds the most operations per second whose mean latency is at most `limit_ns`.
///
/// `bracket`: points of an earlier [`super::maximum`] on the same target; those clear of the limit need not be measured again.
///
/// # Errors
/// Those of the target.
pub fn within_latency<T: Target>(
    target: &mut T,
    plan: &Plan,
    limit_ns: f64,
    bracket: &[Point],
    seed: Seed,
    on_point: &mut dyn FnMut(&Point),
) -> Result<LatencyBound, T::Error> {
    let mut probe = Probe::new(target, plan, seed, on_point);
    let (mut low, mut high) = known(bracket, limit_ns);
    // Up by doubling until one fails, unless the ramp told already.
    while high.is_none() && low < plan.n_max {
        let next = (low * 2).clamp(1, plan.n_max);
        let tried = test(&mut probe, next, limit_ns)?;
        if tried.passes {
            low = next;
        } else if next == 1 {
            return Ok(LatencyBound::NotMetByOne { latency_ns: tried.latency_ns });
        } else {
            high = Some((next, Some(tried.rate)));
        }
    }
    let start = if low == 0 { 1 } else { low };
    if low == 0 {
        let one = test(&mut probe, 1, limit_ns)?;
        if !one.passes {
            return Ok(LatencyBound::NotMetByOne { latency_ns: one.latency_ns });
        }
    }
    let n = bisect(&mut probe, start, high, limit_ns)?;
    settle_on(&mut probe, n, limit_ns)
}

/// `(most in flight that surely passes or 0, fewest that surely fails)` from earlier points, with a margin for their noise.
fn known(bracket: &[Point], limit_ns: f64) -> (u32, Option<(u32, Option<f64>)>) {
    const CLEAR: f64 = 1.25;
    let high = bracket.iter().filter(|p| p.latency_ns > limit_ns * CLEAR).map(|p| p.n).min();
    let below = |p: &&Point| p.latency_ns < limit_ns / CLEAR && high.is_none_or(|h| p.n < h);
    let low = bracket.iter().filter(below).map(|p| p.n).max().unwrap_or(0);
    (low, high.map(|h| (h, None)))
}

fn bisect<T: Target>(
    probe: &mut Probe<'_, T>,
    mut low: u32,
    high: Option<(u32, Option<f64>)>,
    limit_ns: f64,
) -> Result<u32, T::Error> {
    /// Throughput that changes by less no longer depends on n.
    const FLAT: f64 = 0.015;
    let Some((mut high, mut high_rate)) = high else { return Ok(low) };
    let mut low_rate: Option<f64> = None;
    while high - low > 1
        && f64::from(high) / f64::from(low) > probe.plan.latency_ratio
        && probe.spent() < probe.plan.latency_seconds_max
    {
        let middle = ((f64::from(low) * f64::from(high)).sqrt().round() as u32).clamp(low + 1, high - 1);
        let tried = test(probe, middle, limit_ns)?;
        if tried.passes {
            (low, low_rate) = (middle, Some(tried.rate));
        } else {
            (high, high_rate) = (middle, Some(tried.rate));
        }
        if low_rate.zip(high_rate).is_some_and(|(a, b)| (b / a - 1.0).abs() < FLAT) {
            break;
        }
    }
    Ok(low)
}

/// Mean latency per one-second window by Little's law (requests in flight over rate): a stall weighs as what it cost.
fn windows(rates: &[f64], n: u32, seconds: f64) -> Vec<f64> {
    let per_second = ((rates.len() as f64 / seconds).round() as usize).max(1);
    rates
        .chunks(per_second)
        .filter(|chunk| chunk.len() == per_second)
        .map(|chunk| f64::from(n) / sample::mean(chunk).max(1e-9) * 1e9)
        .collect()
}

/// Is `n` within the limit? Measured until the median window is clear of it by two standard errors.
fn test<T: Target>(probe: &mut Probe<'_, T>, n: u32, limit_ns: f64) -> Result<Tried, T::Error> {
    /// Efficiency of the median against the mean for normal data.
    const MEDIAN_ERROR: f64 = 1.25;
    let base = probe.plan.base_seconds.max(2.0);
    let (point, reading) = probe.measure(n, base, Stage::Latency, 0)?;
    let (mut rates, mut seconds, mut round) = (reading.rates, base, 0);
    // The target's own mean against Little's, so that a generator that loses requests does not hide a broken limit.
    let bias = point.latency_ns / (f64::from(n) / point.rate.max(1e-9) * 1e9);
    loop {
        let latencies: Vec<f64> = windows(&rates, n, seconds).iter().map(|r| r * bias).collect();
        let middle = sample::median(&latencies);
        let error = match latencies.len() {
            0 | 1 => f64::INFINITY,
            k => MEDIAN_ERROR * sample::deviation(&latencies) / (k as f64).sqrt(),
        };
        let clear = (middle - limit_ns).abs() > 2.0 * error;
        if clear || seconds >= UNDECIDED_MAX || probe.spent() > probe.plan.latency_seconds_max {
            let passes = middle <= limit_ns && clear;
            return Ok(Tried { passes, rate: sample::mean(&rates), latency_ns: middle });
        }
        round += 1;
        rates.extend(probe.extend(n, EXTEND, Stage::Latency, round)?.1.rates);
        seconds += EXTEND;
    }
}

/// Fresh data at the answer; down by 6 % until it passes.
fn settle_on<T: Target>(
    probe: &mut Probe<'_, T>,
    mut n: u32,
    limit_ns: f64,
) -> Result<LatencyBound, T::Error> {
    const STEP: f64 = 1.06;
    const TOLERANCE: f64 = 1.01;
    let seconds = probe.plan.confirm_seconds.min(UNDECIDED_MAX);
    loop {
        let (point, reading) = probe.measure(n, seconds, Stage::Confirm, 0)?;
        let bias = point.latency_ns / (f64::from(n) / point.rate.max(1e-9) * 1e9);
        let middle = sample::median(&windows(&reading.rates, n, seconds)) * bias;
        if middle <= limit_ns * TOLERANCE {
            return Ok(LatencyBound::Met { n, rate: point.rate, latency_ns: middle });
        }
        if n == 1 {
            return Ok(LatencyBound::NotMetByOne { latency_ns: middle });
        }
        n = ((f64::from(n) / STEP) as u32).clamp(1, n - 1);
    }
}
