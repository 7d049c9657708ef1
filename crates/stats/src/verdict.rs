//! Better, worse, same or unknown: what may be said of two configurations, and when (sections 4.6, 5.1, 5.2).
//!
//! ```text
//! [L, U]     interval of the log ratio at this look          [L90, U90]  its companion at twice the level
//! 0 outside [L, U]           -> inside (-delta, delta)?  yes: Same (Small)   no: Better or Worse (Material)
//! [L90, U90] inside (-delta, delta)                      -> Same (Equivalent)
//! otherwise                                              -> Unknown, and how many more blocks it would take
//! ```
//! "Not significant" is never "no difference". Looks are planned, because a t test after every block calls 10–20 % of
//! equal pairs different; the planned looks keep 5 % over all of them together.

mod many;

pub(crate) use many::holm;
pub use many::{best_set, decide_all};

use crate::interval::{self, Interval};
use crate::sample;
use crate::special::t_quantile;
use std::fmt;

/// The four words. Better and worse are from the user's side: a lower latency is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The new one is better by a material difference.
    Better,
    /// The new one is worse by a material difference.
    Worse,
    /// Any difference is smaller than the margin; the interval is shown.
    Same,
    /// Not decided; never to be read as "same".
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Unknown => "unknown",
        })
    }
}

/// Why the verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The interval excludes "no difference" and reaches beyond the margin.
    Material,
    /// There is a difference, and it is inside the margin.
    Small,
    /// Shown to be inside the margin, whether or not there is a difference.
    Equivalent,
    /// The interval is too wide to say.
    NotEnough,
    /// Student's t and the sign-flip test disagree: one block makes the verdict, so there is none.
    OutlierDecides,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Material => "a material difference",
            Self::Small => "different, but by less than the margin",
            Self::Equivalent => "equivalent within the margin",
            Self::NotEnough => "not enough blocks to tell",
            Self::OutlierDecides => "one block alone would decide",
        })
    }
}

/// A verdict with everything it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The word.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Ratio new / old with the interval at this look's level.
    pub ratio: Interval,
    /// The same ratio with the interval of the equivalence test (twice the error level, "90 %" for a single look).
    pub ratio90: Interval,
    /// Sign-flip p value: the robust companion.
    pub permutation_p: f64,
    /// Student's two-sided p value.
    pub t_p: f64,
    /// Holm's adjusted p value where several configurations were compared with one baseline.
    pub p_holm: Option<f64>,
    /// For `Unknown`: about how many more blocks would decide, if the noise stays as it is.
    pub blocks_needed: Option<usize>,
    /// The block (from 0) farthest from the median of all, for the evidence when one block decides.
    pub block_farthest: Option<usize>,
}

/// How a verdict is formed; stored with the plan before the first visit.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What is material: 0.03 is 3 %.
    pub delta: f64,
    /// After how many blocks one looks.
    pub looks: Vec<usize>,
    /// Two-sided error level at each look.
    pub level_per_look: f64,
}

/// Nominal two-sided level per look that gives 5 % overall, for 1, 2, 3 … looks. Source: Pocock 1977, Biometrika 64.
const POCOCK: [f64; 10] = [0.05, 0.0294, 0.0221, 0.0182, 0.0158, 0.0142, 0.0130, 0.0120, 0.0112, 0.0106];
/// The looks of section 5.2, and on in the same steps for longer runs.
const LOOKS: [usize; 9] = [4, 6, 8, 12, 16, 24, 36, 54, 81];
const _: () = assert!(LOOKS.len() < POCOCK.len());
/// Overall error level of all looks together.
const ALPHA: f64 = 0.05;

impl Rule {
    /// Looks after 4, 6, 8, 12, 16, 24 … blocks, as far as `max_blocks` allows, and at `max_blocks` itself, with the level
    /// per look that keeps 5 % overall; margin 3 %. Below 4 blocks there is one look, at the end.
    pub fn planned(max_blocks: usize) -> Self {
        let mut looks: Vec<usize> = LOOKS.into_iter().filter(|look| *look < max_blocks).collect();
        looks.push(max_blocks.max(2));
        let level_per_look = POCOCK[looks.len() - 1];
        Self { delta: 0.03, looks, level_per_look }
    }

    /// Is a look planned after `blocks` blocks?
    pub fn is_look(&self, blocks: usize) -> bool {
        self.looks.contains(&blocks)
    }
}

/// Decides between `old` and `new`: per block the geometric mean of that block's visits, same blocks in the same order.
///
/// `higher_is_better`: false for latencies and times. To be called at the planned looks; a run that ends between two looks
/// is decided on what it has, which takes the place of the next look. Below the first look, and when a value is not
/// positive, the verdict is `Unknown`.
///
/// # Panics
/// When the lengths differ: blocks that cannot be paired were mixed up by the caller.
pub fn decide(old: &[f64], new: &[f64], higher_is_better: bool, rule: &Rule) -> Decision {
    assert_eq!(old.len(), new.len(), "a verdict is formed over pairs of blocks");
    match interval::log_ratios(old, new) {
        Ok(d) => judge(&Scatter::own(&d), higher_is_better, rule, interval::t_p(&d)),
        Err(_) => undecided(old, new, rule),
    }
}

/// Nothing can be said: fewer than two pairs, or a visit that measured nothing.
fn undecided(old: &[f64], new: &[f64], rule: &Rule) -> Decision {
    let value = sample::geometric_mean(new) / sample::geometric_mean(old);
    let open = |level| Interval { value, low: 0.0, high: f64::INFINITY, level, n: old.len() };
    Decision {
        verdict: Verdict::Unknown,
        reason: Reason::NotEnough,
        ratio: open(1.0 - rule.level_per_look),
        ratio90: open(1.0 - 2.0 * rule.level_per_look),
        permutation_p: 1.0,
        t_p: 1.0,
        p_holm: None,
        blocks_needed: None,
        block_farthest: None,
    }
}

/// Block log ratios (or other contrasts of logarithms) with the scatter that their mean is held against.
pub(crate) struct Scatter<'d> {
    /// One value per block, two or more.
    pub(crate) d: &'d [f64],
    /// Standard deviation of one of them.
    pub(crate) sd: f64,
    /// Degrees of freedom of `sd`.
    pub(crate) df: f64,
    /// By how much stricter than the look's level a p value must be, where many are tested: the number of tests.
    pub(crate) tests: f64,
}

impl<'d> Scatter<'d> {
    /// A pair on its own: its own spread, n − 1 degrees of freedom.
    fn own(d: &'d [f64]) -> Self {
        Self { d, sd: sample::deviation(d), df: (d.len() - 1) as f64, tests: 1.0 }
    }

    /// Student's two-sided p value that the mean is zero.
    pub(crate) fn p(&self) -> f64 {
        let (mean, error) = (sample::mean(self.d), self.sd / (self.d.len() as f64).sqrt());
        if mean == 0.0 {
            return 1.0;
        }
        crate::special::t_two_sided(mean / error.max(f64::MIN_POSITIVE), self.df)
    }
}

/// The verdict on `scatter`, where `p` is the p value that must pass the level: Student's own, or Holm's where there are
/// many.
pub(crate) fn judge(scatter: &Scatter<'_>, higher_is_better: bool, rule: &Rule, p: f64) -> Decision {
    let d = scatter.d;
    let (n, mean) = (d.len(), sample::mean(d));
    let error = scatter.sd / (n as f64).sqrt();
    let span = |alpha: f64| {
        let half = t_quantile(1.0 - alpha / 2.0, scatter.df) * error;
        Interval {
            value: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            level: 1.0 - alpha,
            n,
        }
    };
    let (ratio, ratio90) = (span(rule.level_per_look), span(2.0 * rule.level_per_look));
    let (t_p, permutation_p) = (scatter.p(), interval::sign_flip_p(d));
    let inside = |i: &Interval| i.low > 1.0 / (1.0 + rule.delta) && i.high < 1.0 + rule.delta;
    let towards = if (mean > 0.0) == higher_is_better { Verdict::Better } else { Verdict::Worse };
    // Four blocks cannot bring the sign-flip test below 2/16: it may only object where it could have agreed.
    let objects = permutation_p > ALPHA.max(2.0 / 2f64.powi(n as i32) + 1e-12);
    let (verdict, reason) = if n < rule.looks[0] {
        (Verdict::Unknown, Reason::NotEnough)
    } else if p <= rule.level_per_look {
        match (objects, inside(&ratio)) {
            (true, _) => (Verdict::Unknown, Reason::OutlierDecides),
            (false, true) => (Verdict::Same, Reason::Small),
            (false, false) => (towards, Reason::Material),
        }
    } else if inside(&ratio90) {
        (Verdict::Same, Reason::Equivalent)
    } else if permutation_p <= rule.level_per_look && t_p > ALPHA {
        (Verdict::Unknown, Reason::OutlierDecides)
    } else {
        (Verdict::Unknown, Reason::NotEnough)
    };
    let blocks_needed = (verdict == Verdict::Unknown).then(|| blocks_to_decide(scatter, rule));
    Decision {
        verdict,
        reason,
        ratio,
        ratio90,
        permutation_p,
        t_p,
        p_holm: None,
        blocks_needed,
        block_farthest: farthest(d),
    }
}

/// Further blocks until the interval either leaves zero or fits into the margin, whichever comes first, if mean and spread
/// stay as they are. The quantile of t shrinks with n, so this walks up instead of scaling the width.
fn blocks_to_decide(scatter: &Scatter<'_>, rule: &Rule) -> usize {
    const FORECAST_MAX: usize = 10_000;
    let blocks = scatter.d.len();
    let (mean, margin) = (sample::mean(scatter.d).abs(), rule.delta.ln_1p());
    let reached = |n: &usize| {
        let error = scatter.sd / (*n as f64).sqrt();
        let df = scatter.df * (*n - 1) as f64 / (blocks - 1) as f64;
        let different = t_quantile(1.0 - rule.level_per_look / scatter.tests / 2.0, df) * error < mean;
        let equivalent = t_quantile(1.0 - rule.level_per_look, df) * error < margin - mean;
        *n >= rule.looks[0] && (different || equivalent)
    };
    // What is reached stays reached, so the first such n is found by halving.
    let (mut below, mut above) = (blocks, blocks + 1);
    while above < FORECAST_MAX && !reached(&above) {
        (below, above) = (above, blocks + 2 * (above - blocks));
    }
    above = above.min(FORECAST_MAX);
    while above - below > 1 {
        let middle = below.midpoint(above);
        *(if reached(&middle) { &mut above } else { &mut below }) = middle;
    }
    above - blocks
}

fn farthest(d: &[f64]) -> Option<usize> {
    let middle = sample::median(d);
    (0..d.len()).max_by(|a, b| (d[*a] - middle).abs().total_cmp(&(d[*b] - middle).abs()))
}

#[cfg(test)]
mod tests;
