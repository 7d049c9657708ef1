//! What a comparison will be able to see, judged by a few short trials of its baseline.
//!
//! Two sources of noise are kept apart, because only one of them shrinks with longer visits: what happens within a window is seen in
//! its slices, what differs between visits in the trials' rates. Of few trials one alone may be far off, and a standard deviation
//! would be made of it: the spread between them is a robust one, and never below what is known of storage at its best.

use crate::workload::Trial;
use stats::sample;
use units::Nanos;

/// Spread between visits that no pilot of one stage can see: of files that stand, and where each visit makes its file system anew
/// (docs/method.md, sections 1 and 4.3).
const BETWEEN_MIN: f64 = 0.01;
const BETWEEN_MIN_FRESH: f64 = 0.02;
/// Fewer slices of a window say nothing of it.
const SLICES_MIN: usize = 4;
/// A pilot that would see nothing below a factor of two was too short, or the machine too busy: its figure would be one too.
const SAID_MAX: f64 = 1.0;

/// Repeated trials of one workload under one configuration.
#[derive(Clone, Debug, Default)]
pub struct Noise {
    /// Logarithms of the rates.
    logs: Vec<f64>,
    /// Variance of each as its own slices show it.
    within: Vec<f64>,
}

/// What a comparison will be.
#[derive(Clone, Copy, Debug)]
pub struct Prospect {
    /// Blocks.
    pub blocks: u32,
    /// Configurations held against the baseline, each corrected for all.
    pub others: usize,
    /// Whether every visit makes its stage anew.
    pub fresh: bool,
    /// Windows of the pilot and as planned; none for a fixed amount of work.
    pub windows: Option<(Nanos, Nanos)>,
}

impl Noise {
    /// Adds a trial with its `rate`.
    pub fn add(&mut self, rate: f64, trial: &Trial) {
        self.logs.push(rate.max(1e-9).ln());
        self.within.extend(within(&trial.slice_rates()));
    }

    /// The smallest ratio − 1 that is found with a power of 80 %; none when the pilot cannot say.
    pub fn detectable(&self, prospect: &Prospect) -> Option<f64> {
        let within = if self.within.is_empty() { 0.0 } else { sample::mean(&self.within) };
        let least = if prospect.fresh { BETWEEN_MIN_FRESH } else { BETWEEN_MIN };
        let between = (sample::robust_deviation(&self.logs).powi(2) - within).max(least.powi(2));
        let shorter = prospect.windows.map_or(1.0, |(pilot, planned)| pilot.as_secs() / planned.as_secs());
        // A ratio carries the noise of both sides.
        let sd = (2.0 * (between + within * shorter)).sqrt();
        let level = 1.0 - 0.05 / prospect.others as f64;
        let seen = stats::interval::mde(sd, prospect.blocks as usize, level, 0.8);
        (self.logs.len() > 1 && seen <= SAID_MAX).then_some(seen)
    }
}

/// Variance of the logarithm of a window's rate, from its slices and what they remember of each other.
fn within(slices: &[f64]) -> Option<f64> {
    let mean = sample::mean(slices);
    let memory = sample::lag1(slices).clamp(0.0, 0.8);
    let variance = sample::variance(slices) / slices.len() as f64 * (1.0 + memory) / (1.0 - memory);
    (slices.len() >= SLICES_MIN && mean > 0.0).then(|| variance / mean.powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(rates: &[f64], within: &[f64], blocks: u32, others: usize) -> Option<f64> {
        let noise = Noise { logs: rates.iter().map(|rate| rate.ln()).collect(), within: within.to_vec() };
        let windows = Some((Nanos::millis(400), Nanos::millis(1600)));
        noise.detectable(&Prospect { blocks, others, fresh: false, windows })
    }

    #[test]
    fn quiet_storage_shows_percents_and_a_wild_one_nothing() {
        let quiet = seen(&[1000.0, 1010.0, 995.0, 1004.0], &[], 8, 1).expect("a figure");
        assert!((0.01..0.03).contains(&quiet), "{quiet}");
        assert_eq!(seen(&[1000.0, 300.0, 2500.0, 90.0], &[], 4, 6), None);
        assert_eq!(seen(&[1000.0], &[], 4, 1), None, "one trial has no spread");
        // Rates that agree to the last digit do not make a device without noise.
        assert!(seen(&[1000.0; 4], &[], 4, 1).is_some_and(|figure| figure > 0.02));
    }

    #[test]
    fn one_trial_alone_does_not_make_the_figure() {
        let figure = seen(&[1000.0, 1020.0, 30.0, 990.0], &[], 8, 1).expect("a figure");
        assert!(figure < 0.1, "{figure}");
    }

    #[test]
    fn only_what_happens_within_a_window_shrinks_with_longer_ones() {
        let rates = [1000.0, 1100.0, 900.0, 1050.0];
        let within = seen(&rates, &[0.01; 4], 8, 1).expect("a figure");
        let between = seen(&rates, &[], 8, 1).expect("a figure");
        assert!(within < 0.8 * between, "{within} {between}");
    }
}
