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

/// One end of the search: a number in flight with its mean latency, nanoseconds.
#[derive(Clone, Copy)]
struct End {
    n: u32,
    latency_ns: f64,
    rate: f64,
    /// Measured by this search; what an earlier one saw once may have been a stall.
    sure: bool,
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
    loop {
        (low, high) = climb(&mut probe, low, high, limit_ns)?;
        let Some(from) = low else {
            return Ok(LatencyBound::NotMetByOne { latency_ns: high.map_or(f64::NAN, |end| end.latency_ns) });
        };
        let Some(above) = high else { return settle_on(&mut probe, from.n, limit_ns) };
        let (from, above) = narrow(&mut probe, from, above, limit_ns)?;
        let again = if above.sure { above } else { test(&mut probe, above.n, limit_ns)?.1 };
        if again.latency_ns > limit_ns {
            // Between the ends, where a line through their latencies crosses the limit, on its safe side.
            let n = crossing(&from, &again, 0.99 * limit_ns).clamp(f64::from(from.n), f64::from(again.n - 1));
            return settle_on(&mut probe, n as u32, limit_ns);
        }
        (low, high) = (Some(again), None);
    }
}

/// The largest number in flight of earlier points that is clearly within the limit and the smallest above it that clearly is not.
///
/// Noise adds to latencies more than it takes away, so the lower end is looked for first.
fn known(bracket: &[Point], limit_ns: f64) -> (Option<End>, Option<End>) {
    const CLEAR: f64 = 1.25;
    let end = |p: &Point| End { n: p.n, latency_ns: p.latency_ns, rate: p.rate, sure: false };
    let low = bracket.iter().filter(|p| p.latency_ns * CLEAR < limit_ns).max_by_key(|p| p.n).map(end);
    let from = low.map_or(0, |low| low.n);
    let high =
        bracket.iter().filter(|p| p.n > from && p.latency_ns > limit_ns * CLEAR).min_by_key(|p| p.n).map(end);
    (low, high)
}

/// Doubles until one fails. No lower end at the end: even one request at a time takes longer.
fn climb<T: Target>(
    probe: &mut Probe<'_, T>,
    mut low: Option<End>,
    mut high: Option<End>,
    limit_ns: f64,
) -> Result<(Option<End>, Option<End>), T::Error> {
    while high.is_none() || low.is_none() {
        let next = low.map_or(1, |low| low.n.saturating_mul(2).min(probe.plan.n_max));
        if low.is_some_and(|low| low.n == next) {
            break;
        }
        let (passes, end) = test(probe, next, limit_ns)?;
        // One at a time is all there is below: only a clear failure counts.
        if passes || (next == 1 && end.latency_ns <= limit_ns) {
            low = Some(end);
        } else {
            high = Some(end);
            if next == 1 {
                break;
            }
        }
    }
    Ok((low, high))
}

/// Where the line through both ends, both axes logarithmic, reaches `latency_ns`.
fn crossing(low: &End, high: &End, latency_ns: f64) -> f64 {
    let part = (latency_ns / low.latency_ns).ln() / (high.latency_ns / low.latency_ns).ln();
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.5 };
    f64::from(low.n) * (f64::from(high.n) / f64::from(low.n)).powf(part)
}

/// Brings the ends together, trying where the line between them crosses the limit but well inside, so that both ends move.
fn narrow<T: Target>(
    probe: &mut Probe<'_, T>,
    mut low: End,
    mut high: End,
    limit_ns: f64,
) -> Result<(End, End), T::Error> {
    /// Throughput that changes by less no longer depends on n.
    const FLAT: f64 = 0.015;
    const INSIDE: f64 = 0.2;
    let apart = |low: &End, high: &End| f64::from(high.n) / f64::from(low.n);
    while high.n - low.n > 1
        && apart(&low, &high) > probe.plan.latency_ratio
        && probe.spent() < probe.plan.latency_seconds_max
    {
        let part = (crossing(&low, &high, limit_ns) / f64::from(low.n)).ln() / apart(&low, &high).ln();
        let middle = f64::from(low.n) * apart(&low, &high).powf(part.clamp(INSIDE, 1.0 - INSIDE));
        let middle = (middle.round() as u32).clamp(low.n + 1, high.n - 1);
        let (passes, end) = test(probe, middle, limit_ns)?;
        if passes {
            low = end
        } else {
            high = end
        }
        if low.sure && high.sure && (high.rate / low.rate - 1.0).abs() < FLAT {
            break;
        }
    }
    Ok((low, high))
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

/// Is `n` clearly within the limit? Measured until the median window is clear of it by two standard errors; undecided is no.
fn test<T: Target>(probe: &mut Probe<'_, T>, n: u32, limit_ns: f64) -> Result<(bool, End), T::Error> {
    /// Standard deviation of a normal over its median absolute deviation; a stall must not make every window look noisy.
    const MAD: f64 = 1.4826;
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
        let apart: Vec<f64> = latencies.iter().map(|r| (r - middle).abs()).collect();
        let error = match latencies.len() {
            0 | 1 => f64::INFINITY,
            k => MEDIAN_ERROR * MAD * sample::median(&apart) / (k as f64).sqrt(),
        };
        let clear = (middle - limit_ns).abs() > 2.0 * error;
        if clear || seconds >= UNDECIDED_MAX || probe.spent() > probe.plan.latency_seconds_max {
            let end = End { n, latency_ns: middle, rate: sample::median(&rates), sure: true };
            return Ok((clear && middle <= limit_ns, end));
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
