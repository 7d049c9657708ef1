//! One point: set the number in flight, settle, measure, tell.

use super::{Plan, Point, Reading, Stage, Target, typical};
use crate::sample;
use units::{Rng, Seed};

/// The target together with the plan, the chance and the memory of one search.
pub(super) struct Probe<'a, T: Target> {
    target: &'a mut T,
    pub plan: &'a Plan,
    pub rng: Rng,
    on_point: &'a mut dyn FnMut(&Point),
    /// Everything measured, in order.
    pub points: Vec<Point>,
    started: f64,
}

impl<'a, T: Target> Probe<'a, T> {
    pub fn new(target: &'a mut T, plan: &'a Plan, seed: Seed, on_point: &'a mut dyn FnMut(&Point)) -> Self {
        let started = target.elapsed_seconds();
        Self { target, plan, rng: Rng::new(seed), on_point, points: Vec::new(), started }
    }

    /// Seconds spent by this search.
    pub fn spent(&self) -> f64 {
        self.target.elapsed_seconds() - self.started
    }

    pub fn out_of_time(&self) -> bool {
        self.spent() > self.plan.time_max_seconds
    }

    /// Seconds for a point at about `rate` operations per second: the base, or as long as `ops_min` operations take, capped.
    pub fn seconds(&self, base: f64, rate: f64) -> f64 {
        base.max(self.plan.ops_min / rate.max(1.0)).min(self.plan.cap_seconds.max(base))
    }

    /// Measures `n` in flight for `seconds`.
    ///
    /// Settling is 20 × the last latency seen, at least the plan's: what was queued before must have drained.
    pub fn measure(
        &mut self,
        n: u32,
        seconds: f64,
        stage: Stage,
        round: u32,
    ) -> Result<(Point, Reading), T::Error> {
        const SETTLE_LATENCIES: f64 = 20.0;
        const SETTLE_MAX: f64 = 2.0;
        let latency = self.points.last().map_or(0.0, |p| p.latency_ns / 1e9);
        let settle = self.plan.settle_seconds.max((SETTLE_LATENCIES * latency).min(SETTLE_MAX));
        self.measure_after(n, settle, seconds, stage, round)
    }

    /// Goes on at the same `n` without settling again.
    pub fn extend(
        &mut self,
        n: u32,
        seconds: f64,
        stage: Stage,
        round: u32,
    ) -> Result<(Point, Reading), T::Error> {
        self.measure_after(n, 0.0, seconds, stage, round)
    }

    fn measure_after(
        &mut self,
        n: u32,
        settle: f64,
        seconds: f64,
        stage: Stage,
        round: u32,
    ) -> Result<(Point, Reading), T::Error> {
        let reading = self.target.read(n, settle, seconds)?;
        let robust = matches!(stage, Stage::Race | Stage::Knee);
        let mean = if reading.rates.is_empty() { 0.0 } else { sample::mean(&reading.rates) };
        let rate = if robust && mean > 0.0 { typical(&reading.rates) } else { mean };
        let latency_ns = match reading.latency_mean_ns > 0.0 {
            true => reading.latency_mean_ns,
            false => f64::from(n) / mean.max(1e-9) * 1e9,
        };
        let logs: Vec<f64> = reading.rates.iter().filter(|r| **r > 0.0).map(|r| r.ln()).collect();
        let point = Point {
            n,
            rate,
            latency_ns,
            sd: sample::deviation(&logs),
            seconds: reading.seconds,
            stage,
            round,
        };
        (self.on_point)(&point);
        self.points.push(point.clone());
        Ok((point, reading))
    }
}
