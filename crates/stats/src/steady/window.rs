//! One look at a window: change point, drift, halves.

use super::Class;
use crate::sample;
use crate::special::t_quantile;

/// Confidence of the one-sided bounds; two of them make the 90 % interval of an equivalence test.
const LEVEL: f64 = 0.95;
/// 5 % point of the largest |CUSUM| (Kolmogorov).
const CUSUM_LIMIT: f64 = 1.36;
/// Noise is never taken to be less than this on the log scale.
const NOISE_FLOOR: f64 = 0.002;
/// Batches are doubled while they still remember each other this much.
const MEMORY_MAX: f64 = 0.35;
/// No correction for memory beyond this.
const MEMORY_CLIP: f64 = 0.8;

/// A window of log rates and how to look at it; lengths in intervals.
pub(super) struct Window<'a> {
    /// Natural logarithms of the rates, from the very first.
    pub log: &'a [f64],
    /// Base length of a batch.
    pub batch: usize,
    /// Length of a rhythm; it then is the batch.
    pub period: Option<usize>,
    /// The drift over at least this many intervals must fit into the margin.
    pub projection: usize,
    /// Margin on the log scale.
    pub delta: f64,
    /// Batches are not doubled beyond this.
    pub batch_double_max: usize,
}

/// What a look says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Too few batches.
    Short,
    /// Shown to stay inside the margin.
    Steady,
    /// Too noisy to show it; nothing speaks against it.
    Plausible,
    /// Neither.
    Moving,
}

/// A line through the batches of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    /// ln of the mean rate.
    pub mean: f64,
    /// Change of ln rate per interval.
    slope: f64,
    /// Drift over the projection, log scale, and its one-sided bound.
    total: f64,
    total_bound: f64,
}

impl Fit {
    /// The drift is more than noise and more than half of the margin.
    pub fn drifts(&self, delta: f64) -> bool {
        self.total.abs() > self.total_bound && self.total.abs() > delta / 2.0
    }

    pub fn percent_per_minute(&self, interval_seconds: f64) -> f64 {
        100.0 * (self.slope * 60.0 / interval_seconds).exp_m1()
    }
}

/// The result of [`Window::look`].
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub look: Look,
    /// Where the window begins now.
    pub start: usize,
    /// Jumps at which it was restarted, log scale, in order.
    pub jumps: Vec<f64>,
    pub fit: Option<Fit>,
}

impl Found {
    /// The history of a steady series by its jumps.
    pub fn history(&self) -> Class {
        history(&self.jumps)
    }
}

/// Up only is a warm-up, down only a slowdown, both two stages.
pub(super) fn history(jumps: &[f64]) -> Class {
    match (jumps.iter().any(|j| *j > 0.0), jumps.iter().any(|j| *j < 0.0)) {
        (false, false) => Class::Flat,
        (true, false) => Class::WarmUp,
        (false, true) => Class::Slowdown,
        (true, true) => Class::TwoStage,
    }
}

impl Window<'_> {
    /// Looks at everything from `start` on, restarting behind each change point.
    pub fn look(&self, start: usize) -> Found {
        const RESTARTS_MAX: usize = 20;
        let mut found = Found { look: Look::Short, start, jumps: Vec::new(), fit: None };
        let mut batches = self.batches(found.start);
        for _ in 0..RESTARTS_MAX {
            let Some((means, batch)) = &batches else { return found };
            let Some((at, jump)) = change_point(means, self.delta / 2.0) else { break };
            found.start = self.log.len() - means.len() * batch + (at + 1) * batch;
            found.jumps.push(jump);
            batches = self.batches(found.start);
        }
        let Some((means, batch)) = batches else { return found };
        let length = self.log.len() - found.start;
        let enough = match self.period {
            Some(period) => means.len() >= 4 && length >= 3 * period,
            None => means.len() >= 6,
        };
        if enough {
            let (look, fit) = self.judge(&means, batch, length);
            (found.look, found.fit) = (look, Some(fit));
        }
        found
    }

    /// Batch means of the window, aligned to its end, and their length; `None` below four batches.
    fn batches(&self, start: usize) -> Option<(Vec<f64>, usize)> {
        let values = &self.log[start.min(self.log.len())..];
        let mut batch = self.period.map_or(self.batch, |p| p.max(self.batch));
        loop {
            let count = values.len() / batch;
            if count < 4 {
                return None;
            }
            let means: Vec<f64> =
                values[values.len() - count * batch..].chunks(batch).map(sample::mean).collect();
            let independent = self.period.is_some() || count < 12 || batch >= self.batch_double_max;
            if independent || sample::lag1(&means) < MEMORY_MAX {
                return Some((means, batch));
            }
            batch *= 2;
        }
    }

    /// The two equivalence tests: drift, and second half against first.
    fn judge(&self, means: &[f64], batch: usize, length: usize) -> (Look, Fit) {
        let k = means.len();
        let line = sample::line(means);
        let memory = sample::lag1(means).clamp(0.0, MEMORY_CLIP);
        let inflation = ((1.0 + memory) / (1.0 - memory)).sqrt();
        let reach = length.max(self.projection) as f64 / batch as f64;
        let total = line.slope * reach;
        let total_bound = t_quantile(LEVEL, (k - 2) as f64) * line.slope_error * reach * inflation;
        let half = k / 2;
        let (first, second) = (&means[..half], &means[k - half..]);
        let halves = sample::mean(second) - sample::mean(first);
        let halves_error =
            ((sample::variance(first) + sample::variance(second)) / half as f64).sqrt() * inflation;
        let halves_bound = t_quantile(LEVEL, (2 * half - 2).max(1) as f64) * halves_error;
        let mean = sample::mean(&means.iter().map(|m| m.exp()).collect::<Vec<_>>()).ln();
        let fit = Fit { mean, slope: line.slope / batch as f64, total, total_bound };
        let shown = total.abs() + total_bound < self.delta && halves.abs() + halves_bound < self.delta;
        let plausible = total.abs() < self.delta.min(total_bound) && halves.abs() < self.delta;
        let look = match (shown, plausible) {
            (true, _) => Look::Steady,
            (false, true) => Look::Plausible,
            (false, false) => Look::Moving,
        };
        (look, fit)
    }
}

/// The most likely change point of the batch means by CUSUM: `(index of the last batch before it, jump)`, if it is larger than
/// chance and larger than `jump_min`. The scale is the median step, which a shift hardly moves.
fn change_point(means: &[f64], jump_min: f64) -> Option<(usize, f64)> {
    /// Median of |difference| of two standard normals.
    const MEDIAN_STEP: f64 = 0.954;
    let k = means.len();
    if k < 6 {
        return None;
    }
    let steps: Vec<f64> = means.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    let scale = (sample::median(&steps) / MEDIAN_STEP).max(NOISE_FLOOR) * (k as f64).sqrt();
    let mean = sample::mean(means);
    let mut sum = 0.0;
    let (mut at, mut most) = (0, 0.0);
    for (i, value) in means[..k - 1].iter().enumerate() {
        sum += value - mean;
        if sum.abs() / scale > most {
            (at, most) = (i, sum.abs() / scale);
        }
    }
    let jump = sample::mean(&means[at + 1..]) - sample::mean(&means[..=at]);
    (most > CUSUM_LIMIT && jump.abs() > jump_min).then_some((at, jump))
}
