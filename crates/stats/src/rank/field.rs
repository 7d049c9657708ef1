//! A field of configurations over blocks: `ln value = configuration + block + noise`, and any contrast of configurations.

use crate::interval::Interval;
use crate::sample;
use crate::verdict::{Decision, Reason, Rule, Scatter, Verdict, holm, judge};

/// Sweeps of the fit with missing values; with none missing the first is exact.
const SWEEPS: usize = 200;
/// Below this many blocks the spreads of single configurations say too little to guard the pooled one: fewer degrees of freedom
/// are claimed, as many for each block as this.
const FEW_BLOCKS: usize = 4;
const DF_PER_FEW_BLOCKS: f64 = 3.0;

/// Logarithms of values by configuration and block, with the spread that is left when both are taken out.
pub struct Field {
    logs: Vec<Vec<Option<f64>>>,
    /// Fitted level of each configuration; none where it has no value.
    levels: Vec<Option<f64>>,
    /// Residual variance over all configurations, and its degrees of freedom.
    pooled: f64,
    df: f64,
    /// Residual variance of each configuration, where three or more tell them apart.
    own: Vec<f64>,
}

/// A weighted sum of configurations' logarithms in each block: a pair is +1 and −1, a main effect is a mean of pairs.
#[derive(Clone, Debug)]
pub struct Contrast {
    /// One value for each block that holds all it needs.
    pub d: Vec<f64>,
    sd: f64,
    df: f64,
}

impl Field {
    /// `values`: for each configuration one value per block; `None`, and what is not positive, is missing.
    pub fn new(values: &[Vec<Option<f64>>]) -> Self {
        let log = |v: &Option<f64>| v.filter(|v| *v > 0.0 && v.is_finite()).map(f64::ln);
        let logs: Vec<Vec<Option<f64>>> = values.iter().map(|row| row.iter().map(log).collect()).collect();
        let blocks = logs.iter().map(Vec::len).max().unwrap_or(0);
        let (levels, hours) = fit(&logs, blocks);
        let residuals: Vec<Vec<f64>> = logs
            .iter()
            .zip(&levels)
            .map(|(row, level)| {
                let cells = row.iter().zip(&hours);
                cells.filter_map(|(y, hour)| Some((*y)? - (*level)? - (*hour)?)).collect()
            })
            .collect();
        let present = |row: &&Vec<f64>| !row.is_empty();
        let count: usize = residuals.iter().map(Vec::len).sum();
        let k = residuals.iter().filter(present).count();
        let used = hours.iter().flatten().count();
        let df = (count + 1).saturating_sub(k + used) as f64;
        let squares = |row: &[f64]| row.iter().map(|r| r * r).sum::<f64>();
        let all: f64 = residuals.iter().map(|row| squares(row)).sum();
        let pooled = if df > 0.0 { all / df } else { 0.0 };
        // Grubbs 1948: a residual holds its own noise and, through the block's mean, a little of everybody's.
        let share = k as f64;
        let own = residuals
            .iter()
            .map(|row| match row.len() {
                n if n > 1 && k > 2 => {
                    let variance = squares(row) / (n - 1) as f64;
                    ((variance - pooled / share) * share / (share - 2.0)).max(0.0)
                }
                _ => 0.0,
            })
            .collect();
        Self { logs, levels, pooled, df, own }
    }

    /// Configurations that have values, best first.
    pub fn order(&self, higher: bool) -> Vec<usize> {
        let sign = if higher { 1.0 } else { -1.0 };
        let mut order: Vec<(usize, f64)> =
            self.levels.iter().enumerate().filter_map(|(i, level)| Some((i, sign * (*level)?))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.into_iter().map(|(i, _)| i).collect()
    }

    /// `ln(new / old)` per block.
    pub fn pair(&self, old: usize, new: usize) -> Contrast {
        self.contrast(&[(old, -1.0), (new, 1.0)])
    }

    /// `Σ weight · ln value` in each block that holds every configuration of `weights`; weights should sum to zero, else the
    /// block's own level is in it.
    pub fn contrast(&self, weights: &[(usize, f64)]) -> Contrast {
        let blocks = self.logs.iter().map(Vec::len).max().unwrap_or(0);
        let value = |block: usize| -> Option<f64> {
            weights.iter().map(|(i, w)| Some(w * (*self.logs[*i].get(block)?)?)).sum()
        };
        let d: Vec<f64> = (0..blocks).filter_map(value).collect();
        let sum = |variance: &dyn Fn(usize) -> f64| -> f64 {
            weights.iter().map(|(i, w)| w * w * variance(*i)).sum()
        };
        let own_df = d.len().saturating_sub(1) as f64;
        let shared = sum(&|_| self.pooled).max(sum(&|i| self.own[i]));
        let mut df = self.df.max(own_df);
        if d.len() < FEW_BLOCKS {
            df = df.min(DF_PER_FEW_BLOCKS * own_df);
        }
        Contrast { sd: sample::variance(&d).max(shared).sqrt(), df, d }
    }
}

/// Levels of configurations and of blocks (mean zero) by alternating means; exact at once where nothing is missing.
fn fit(logs: &[Vec<Option<f64>>], blocks: usize) -> (Vec<Option<f64>>, Vec<Option<f64>>) {
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (sum, n) = values.fold((0.0, 0usize), |(sum, n), v| (sum + v, n + 1));
        (n > 0).then(|| sum / n as f64)
    };
    let mut hours = vec![Some(0.0); blocks];
    let mut levels: Vec<Option<f64>> = vec![None; logs.len()];
    for _ in 0..SWEEPS {
        levels = logs
            .iter()
            .map(|row| mean(&mut row.iter().zip(&hours).filter_map(|(y, hour)| Some((*y)? - (*hour)?))))
            .collect();
        let next: Vec<Option<f64>> = (0..blocks)
            .map(|b| {
                let cells = logs.iter().zip(&levels);
                mean(&mut cells.filter_map(|(row, level)| Some((*row.get(b)?)? - (*level)?)))
            })
            .collect();
        let moved =
            next.iter().zip(&hours).filter_map(|(a, b)| Some(((*a)? - (*b)?).abs())).fold(0.0, f64::max);
        hours = next;
        if moved < 1e-12 {
            break;
        }
    }
    (levels, hours)
}

/// Decides a family of contrasts with Holm's correction over all of them.
pub(super) fn decide_family(contrasts: &[Contrast], higher: bool, rule: &Rule) -> Vec<Decision> {
    let tests = contrasts.len() as f64;
    let scatter = |c: &Contrast| c.d.len() > 1 && c.df > 0.0;
    let p: Vec<f64> = contrasts.iter().map(|c| if scatter(c) { c.p() } else { 1.0 }).collect();
    contrasts
        .iter()
        .zip(holm(&p))
        .map(|(c, p)| match scatter(c) {
            true => Decision {
                p_holm: Some(p),
                ..judge(&Scatter { d: &c.d, sd: c.sd, df: c.df, tests }, higher, rule, p)
            },
            false => unpaired(c, rule),
        })
        .collect()
}

impl Contrast {
    fn p(&self) -> f64 {
        Scatter { d: &self.d, sd: self.sd, df: self.df, tests: 1.0 }.p()
    }
}

/// Fewer than two blocks hold all that is compared.
fn unpaired(contrast: &Contrast, rule: &Rule) -> Decision {
    let value = contrast.d.first().map_or(f64::NAN, |d| d.exp());
    let open = |level| Interval { value, low: 0.0, high: f64::INFINITY, level, n: contrast.d.len() };
    Decision {
        verdict: Verdict::Unknown,
        reason: Reason::NotEnough,
        ratio: open(1.0 - rule.level_per_look),
        ratio90: open(1.0 - 2.0 * rule.level_per_look),
        permutation_p: 1.0,
        t_p: 1.0,
        p_holm: Some(1.0),
        blocks_needed: None,
        block_farthest: None,
    }
}
