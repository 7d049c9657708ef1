//! Stage A, the ramp: 1, 2, 4, 8 … with short samples, until only queueing or a collapse is left.

use super::measure::Probe;
use super::{Collapse, Plan, Point, Stage, Target};

/// The ramp: `(n, rate)`, ascending.
#[derive(Clone, Debug)]
pub(super) struct Ramp {
    pub steps: Vec<(u32, f64)>,
    /// It ended at the largest n while throughput still grew.
    pub still_rising: bool,
    /// It ended because requests failed or waited too long: nothing beyond is tried.
    pub halted: bool,
}

impl Ramp {
    pub fn best(&self) -> (u32, f64) {
        self.steps.iter().copied().fold((1, 0.0), |best, step| if step.1 > best.1 { step } else { best })
    }

    pub fn rate_of(&self, n: u32) -> Option<f64> {
        self.steps.iter().find(|step| step.0 == n).map(|step| step.1)
    }

    /// From points measured earlier.
    pub fn of_points<'p>(points: impl Iterator<Item = &'p super::Point>) -> Self {
        let mut steps: Vec<(u32, f64)> =
            points.filter(|p| p.stage == Stage::Bracket).map(|p| (p.n, p.rate)).collect();
        // Where a point was measured twice, the better one counts, as in the ramp itself.
        steps.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        steps.dedup_by_key(|step| step.0);
        Self { steps, still_rising: false, halted: false }
    }
}

/// Runs the ramp.
pub(super) fn bracket<T: Target>(probe: &mut Probe<'_, T>) -> Result<Ramp, T::Error> {
    /// Before anything is known: a slow disk.
    const GUESS: f64 = 200.0;
    let mut ramp = Ramp { steps: Vec::new(), still_rising: false, halted: false };
    let (mut n, mut flat) = (1u32, 0);
    loop {
        let before = ramp.best().1;
        let guess = if before > 0.0 { before } else { GUESS };
        let seconds = probe.seconds(probe.plan.base_seconds, guess);
        let (mut point, reading) = probe.measure(n, seconds, Stage::Bracket, 0)?;
        if point.rate < probe.plan.collapse * before {
            point = again(probe, point, seconds)?;
        }
        ramp.steps.push((n, point.rate));
        flat = if point.rate < before * (1.0 + probe.plan.plateau) { flat + 1 } else { 0 };
        let queued = point.latency_ns / 1e9 > 10.0 * probe.plan.cap_seconds;
        ramp.halted = reading.errors > 0 || queued;
        ramp.still_rising = flat == 0 && (n >= probe.plan.n_max || ramp.halted);
        if ramp.halted || n >= probe.plan.n_max || finished(&ramp, flat, probe.plan) {
            return Ok(ramp);
        }
        n = ((f64::from(n) * probe.plan.ratio) as u32).clamp(n + 1, probe.plan.n_max);
    }
}

/// A stall of a second looks like a collapse: the same point once more, and the better of the two counts.
fn again<T: Target>(probe: &mut Probe<'_, T>, first: Point, seconds: f64) -> Result<Point, T::Error> {
    let (second, _) = probe.measure(first.n, seconds, first.stage, first.round + 1)?;
    Ok(if second.rate > first.rate { second } else { first })
}

/// Nothing more is to be gained beyond the last step.
fn finished(ramp: &Ramp, flat: u32, plan: &Plan) -> bool {
    let (best_n, best) = ramp.best();
    let (Some((_, one)), Some((n, rate))) = (ramp.steps.first(), ramp.steps.last()) else { return false };
    let collapsed = *rate < plan.collapse * best;
    let falling = flat >= 2 && *n >= 2 * best_n && *rate < plan.stop_drop * best;
    // Beyond four times the saturation point, n × rate(1) = maximum, there is only queueing.
    let queueing = flat >= 2 && f64::from(*n) >= 4.0 * best / one.max(1e-9);
    collapsed || falling || queueing
}

/// The collapse, if there is one: on the ramp itself, or at one look well beyond its end, since the ramp stops where only
/// queueing is left and a host that tramples itself does so later. One look names it; nothing is pushed further.
pub(super) fn beyond<T: Target>(
    probe: &mut Probe<'_, T>,
    ramp: &Ramp,
    maximum: f64,
) -> Result<Option<Collapse>, T::Error> {
    /// How far beyond the ramp's end.
    const FAR: f64 = 4.0;
    /// A request may not wait longer than this for the look to be taken, seconds.
    const WAIT_MAX: f64 = 3.0;
    let best = ramp.best();
    let limit = probe.plan.collapse * maximum.max(best.1);
    let collapse_at = |n: u32, rate: f64| Collapse { n, rate, share_of_max: rate / maximum };
    if let Some((n, rate)) = ramp.steps.iter().find(|(n, rate)| *n > best.0 && *rate < limit) {
        return Ok(Some(collapse_at(*n, *rate)));
    }
    let Some((last, rate)) = ramp.steps.last().copied() else { return Ok(None) };
    let next = ((f64::from(last) * FAR) as u32).min(probe.plan.n_max);
    let waits = f64::from(next) / rate.max(1e-9) > WAIT_MAX;
    if !probe.plan.beyond || ramp.halted || waits || next <= last {
        return Ok(None);
    }
    let seconds = probe.seconds(probe.plan.base_seconds, rate);
    let (mut point, _) = probe.measure(next, seconds, Stage::Beyond, 0)?;
    if point.rate < limit {
        point = again(probe, point, seconds)?;
    }
    Ok((point.rate < limit).then(|| collapse_at(point.n, point.rate)))
}
