//! How far a number can be trusted: intervals over blocks, never over seconds (sections 4.1–4.3, 5.4).
//!
//! Everything is done on the log scale, so that "twice as fast" and "half as fast" are mirror images and a ratio needs no
//! special formula. One-second samples as replicates called 25–46 % of equal pairs different; Student's t over block
//! values keeps its promise.

mod anytime;
mod robust;

pub use anytime::{confidence_sequence, e_value};
pub use robust::{hodges_lehmann, sign_flip_p};

use crate::sample;
use crate::special::t_quantile;
use std::fmt;

/// A number with its doubt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level, `0.95` for 95 %.
    pub level: f64,
    /// How many blocks or visits it rests on.
    pub n: usize,
}

impl Interval {
    /// Half of the width relative to the value, on the log scale: 0.02 reads "± 2 %".
    pub fn half_width(&self) -> f64 {
        ((self.high.ln() - self.low.ln()) / 2.0).exp_m1()
    }

    /// Does it contain `x`?
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}

/// Why no interval can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooFew {
    /// An interval needs two values that vary.
    Values {
        /// How many there were.
        have: usize,
        /// How many there must be.
        need: usize,
    },
    /// A value that is zero, negative or not a number has no logarithm: that visit measured nothing.
    NotPositive {
        /// Which one.
        index: usize,
    },
    /// Pairs need as many old values as new ones.
    Unpaired {
        /// How many old ones there were.
        old: usize,
        /// How many new ones there were.
        new: usize,
    },
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Values { have, need } => {
                write!(f, "{have} values are too few for an interval: it takes {need}")
            }
            Self::NotPositive { index } => {
                write!(f, "value {index} is not positive: that visit measured nothing")
            }
            Self::Unpaired { old, new } => write!(f, "{old} old values cannot be paired with {new} new ones"),
        }
    }
}

impl std::error::Error for TooFew {}

/// Logarithms of at least two positive values.
fn logs(values: &[f64]) -> Result<Vec<f64>, TooFew> {
    if values.len() < 2 {
        return Err(TooFew::Values { have: values.len(), need: 2 });
    }
    match values.iter().position(|v| !(*v > 0.0 && v.is_finite())) {
        Some(index) => Err(TooFew::NotPositive { index }),
        None => Ok(values.iter().map(|v| v.ln()).collect()),
    }
}

/// Student's interval of log values, brought back by `exp`; `error` is the standard error of their mean.
fn from_logs(logs: &[f64], error: f64, level: f64) -> Interval {
    let (n, mean) = (logs.len(), sample::mean(logs));
    let half = t_quantile(0.5 + level / 2.0, (n - 1) as f64) * error;
    Interval { value: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp(), level, n }
}

/// Standard error of the mean.
fn standard_error(values: &[f64]) -> f64 {
    (sample::variance(values) / values.len() as f64).sqrt()
}

/// Geometric mean of positive `values`, one per visit or block, with Student's interval on the log scale.
///
/// `level`: 0.95 for 95 %. `resolution`: relative resolution of the counting itself (1 / operations counted), added in
/// quadrature to the standard error: a throttled device gives the same count every time, and the interval must not
/// shrink to a point that the counter cannot see. 0 when there is none.
///
/// # Errors
/// [`TooFew`] below two values, or when one is not positive.
pub fn absolute(values: &[f64], level: f64, resolution: f64) -> Result<Interval, TooFew> {
    let logs = logs(values)?;
    Ok(from_logs(&logs, standard_error(&logs).hypot(resolution), level))
}

/// The ratio `new / old` of paired block values with Student's interval over the log ratios of the blocks.
///
/// `old`, `new`: one value per block in the same order. 1.0 means no change. Source: section 4.3; the golden example is in section 5.4.
///
/// # Errors
/// [`TooFew`] below two pairs, when the lengths differ, or when a value is not positive.
pub fn ratio(old: &[f64], new: &[f64], level: f64) -> Result<Interval, TooFew> {
    let logs = log_ratios(old, new)?;
    Ok(from_logs(&logs, standard_error(&logs), level))
}

/// `ln(new / old)` per block.
///
/// # Errors
/// As [`ratio`].
pub fn log_ratios(old: &[f64], new: &[f64]) -> Result<Vec<f64>, TooFew> {
    if old.len() != new.len() {
        return Err(TooFew::Unpaired { old: old.len(), new: new.len() });
    }
    Ok(logs(new)?.iter().zip(logs(old)?).map(|(n, o)| n - o).collect())
}

/// Two-sided p value of Student's one-sample test that the mean of `d` is zero; 1 below two values. Equal values that
/// are not zero give 0.
pub fn t_p(d: &[f64]) -> f64 {
    if d.len() < 2 {
        return 1.0;
    }
    let (mean, error) = (sample::mean(d), standard_error(d));
    if mean == 0.0 {
        return 1.0;
    }
    crate::special::t_two_sided(mean / error.max(f64::MIN_POSITIVE), (d.len() - 1) as f64)
}

/// The ratio `new / old` of values that are not paired: Welch's interval on the log scale.
///
/// `old`, `new`: one value per block of one session each, or one per session, which is what a claim about two machines takes. Degrees of
/// freedom by Satterthwaite; `n` is the smaller count. Source: Welch 1947, Biometrika 34.
///
/// # Errors
/// [`TooFew`] below two values on a side, or when one is not positive.
pub fn unpaired(old: &[f64], new: &[f64], level: f64) -> Result<Interval, TooFew> {
    let (old, new) = (logs(old)?, logs(new)?);
    let part = |values: &[f64]| sample::variance(values) / values.len() as f64;
    let (a, b) = (part(&old), part(&new));
    let spread = a * a / (old.len() - 1) as f64 + b * b / (new.len() - 1) as f64;
    let df = if spread > 0.0 { (a + b).powi(2) / spread } else { (old.len() + new.len() - 2) as f64 };
    let mean = sample::mean(&new) - sample::mean(&old);
    let half = t_quantile(0.5 + level / 2.0, df.max(1.0)) * (a + b).sqrt();
    let n = old.len().min(new.len());
    Ok(Interval { value: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp(), level, n })
}

/// Unpaired ratio of two means with the interval of Fieller, for imported results that have no blocks (section 4.1).
///
/// `a`, `b`: means; `a_error`, `b_error`: their standard errors; `df`: degrees of freedom. `None` when `b` is not clear of
/// zero: the ratio is then unbounded.
pub fn fieller(a: f64, a_error: f64, b: f64, b_error: f64, df: f64, level: f64) -> Option<(f64, f64)> {
    let t = t_quantile(0.5 + level / 2.0, df);
    let (va, vb, r) = (a_error.powi(2), b_error.powi(2), a / b);
    let g = t * t * vb / (b * b);
    (g < 1.0).then(|| {
        let half = t / b.abs() * (va + r * r * vb - g * va).sqrt();
        ((r - half) / (1.0 - g), (r + half) / (1.0 - g))
    })
}

/// How much of a whole a part makes: `mean(part) / mean(whole)` of paired values, with the interval of Fieller.
///
/// `part`, `whole`: one value per block, same blocks, same order; here the gain of one move and that of all together. `None` below two
/// blocks, and when `whole` is not clear of zero: a share of nothing says nothing. Source: Fieller 1954, with the covariance of the pairs.
pub fn share(part: &[f64], whole: &[f64], level: f64) -> Option<Interval> {
    let n = part.len();
    if n < 2 || n != whole.len() {
        return None;
    }
    let (a, b) = (sample::mean(part), sample::mean(whole));
    let count = n as f64;
    let covariance =
        part.iter().zip(whole).map(|(x, y)| (x - a) * (y - b)).sum::<f64>() / (count - 1.0) / count;
    let (va, vb) = (sample::variance(part) / count, sample::variance(whole) / count);
    let t = t_quantile(0.5 + level / 2.0, count - 1.0);
    let (r, g) = (a / b, t * t * vb / (b * b));
    let middle = r - g * covariance / vb.max(f64::MIN_POSITIVE);
    let inner = va - 2.0 * r * covariance + r * r * vb
        - g * (va - covariance * covariance / vb.max(f64::MIN_POSITIVE));
    (b != 0.0 && g < 1.0).then(|| {
        let half = t / b.abs() * inner.max(0.0).sqrt();
        Interval { value: r, low: (middle - half) / (1.0 - g), high: (middle + half) / (1.0 - g), level, n }
    })
}

/// Smallest relative effect that `n` blocks will show with probability `power` (minimum detectable effect).
///
/// `sd_log`: standard deviation of the block log ratios. `level`: 0.95. Result 0.02 reads "2 %"; infinite below two
/// blocks. Source: section 4.3, `(t(.975, n−1) + t(power, n−1)) s / √n`.
pub fn mde(sd_log: f64, n: usize, level: f64, power: f64) -> f64 {
    if n < 2 {
        return f64::INFINITY;
    }
    let df = (n - 1) as f64;
    ((t_quantile(0.5 + level / 2.0, df) + t_quantile(power, df)) * sd_log / (n as f64).sqrt()).exp_m1()
}

/// How many further blocks bring the half width of an interval from `half_width_now`, reached with `n_now` blocks, to
/// `half_width_target`, if the noise stays as it is: `n (now / target)² − n`.
pub fn blocks_needed(half_width_now: f64, n_now: usize, half_width_target: f64) -> usize {
    let total = (n_now as f64 * (half_width_now / half_width_target).powi(2) - 1e-9).ceil();
    (total as usize).saturating_sub(n_now)
}

/// How long a visit should last in seconds (section 3.5, Kalibera & Jones): the length that buys most precision per second
/// when a switch costs `switch_seconds`.
///
/// `long_run_variance`: of the one-second log throughput (batch length × variance of batch means). `between_variance`: of
/// the visits beyond it. Clamped to 10–120 s; 20 s when nothing is known.
pub fn visit_seconds(switch_seconds: f64, long_run_variance: f64, between_variance: f64) -> f64 {
    let seconds = (switch_seconds * long_run_variance / between_variance).sqrt();
    if seconds.is_nan() { 20.0 } else { seconds.clamp(10.0, 120.0) }
}

#[cfg(test)]
mod tests;
