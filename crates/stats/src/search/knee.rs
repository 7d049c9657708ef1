//! Stage D, the knee: the smallest number in flight that gives 97 % of the maximum.
//!
//! Each step compares a number with the winner in mirrored pairs, so that drift cancels, against ln 0.97. Kneedle is not used:
//! it normalises by how far one happened to sweep (78 or 121 on the same device), where this hardly moves.

use super::bracket::Ramp;
use super::measure::Probe;
use super::{Plan, Point, Stage, Target};
use crate::sample;
use units::Seed;

/// Ramp points this far below the level are failures without being measured again.
const CLEAR: f64 = 0.08;
/// What was raced is known this much better, log scale.
const CLEAR_RACED: f64 = 0.015;

/// Finds the knee below `n_best` on its own. `bracket`: points of an earlier [`super::maximum`]; its ramp spares steps.
///
/// # Errors
/// Those of the target.
pub fn knee<T: Target>(
    target: &mut T,
    plan: &Plan,
    n_best: u32,
    bracket: &[Point],
    seed: Seed,
    on_point: &mut dyn FnMut(&Point),
) -> Result<u32, T::Error> {
    let mut probe = Probe::new(target, plan, seed, on_point);
    walk(&mut probe, n_best, &Ramp::of_points(bracket.iter()), &[])
}

/// Log-bisection between the largest number known to fail and the smallest known to hold. What the ramp and the race (`raced`:
/// log rate relative to the winner's) showed clearly is not measured again. When its time is out, the smallest number known to
/// hold is the answer.
pub(super) fn walk<T: Target>(
    probe: &mut Probe<'_, T>,
    n_best: u32,
    ramp: &Ramp,
    raced: &[(u32, f64)],
) -> Result<u32, T::Error> {
    let (best, level, started) = (ramp.best().1, probe.plan.knee_level, probe.spent());
    let holds = |seen: &&(u32, f64)| seen.0 < n_best && seen.1 > level.ln() + CLEAR_RACED;
    let mut high = raced.iter().filter(holds).map(|seen| seen.0).min().unwrap_or(n_best);
    let slow = ramp.steps.iter().filter(|step| step.1 < (level - CLEAR) * best).map(|step| step.0);
    let behind = raced.iter().filter(|seen| seen.1 < level.ln() - CLEAR_RACED).map(|seen| seen.0);
    let mut low = slow.chain(behind).filter(|n| *n < high).max().unwrap_or(0);
    if low == 0 {
        if high == 1 || passes(probe, 1, n_best, best)? {
            return Ok(1);
        }
        low = 1;
    }
    while high - low > 1
        && f64::from(high) / f64::from(low) > probe.plan.knee_ratio
        && probe.spent() - started < probe.plan.knee_seconds_max
    {
        let middle = (f64::from(low) * f64::from(high)).sqrt().round() as u32;
        let middle = middle.clamp(low + 1, high - 1);
        if passes(probe, middle, n_best, best)? { high = middle } else { low = middle }
    }
    Ok(high)
}

/// Does `n` reach the level? Two pairs at least, more while it is within two standard errors.
fn passes<T: Target>(probe: &mut Probe<'_, T>, n: u32, n_best: u32, best: f64) -> Result<bool, T::Error> {
    let seconds = probe.seconds(probe.plan.race_seconds, best);
    let level = probe.plan.knee_level.ln();
    let mut ratios: Vec<f64> = Vec::new();
    for round in 0..probe.plan.knee_rounds.1 {
        let pair = if round % 2 == 0 { [n, n_best] } else { [n_best, n] };
        let first = probe.measure(pair[0], seconds, Stage::Knee, round)?.0.rate.max(1e-9).ln();
        let second = probe.measure(pair[1], seconds, Stage::Knee, round)?.0.rate.max(1e-9).ln();
        ratios.push(if round % 2 == 0 { first - second } else { second - first });
        let error = sample::deviation(&ratios) / (ratios.len() as f64).sqrt();
        if round + 1 >= probe.plan.knee_rounds.0 && (sample::mean(&ratios) - level).abs() >= 2.0 * error {
            break;
        }
    }
    Ok(sample::mean(&ratios) >= level)
}
