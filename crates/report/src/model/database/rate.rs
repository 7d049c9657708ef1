//! How fast it was, with an interval: over measurements where there are several, else over stretches of the one.
//!
//! One-second values are no replicates (docs/method.md, 4.1): what disturbs one disturbs the next. They are gathered into
//! stretches that are long against that memory. Such an interval speaks of this run alone.

use crate::model::evidence::Evidence;
use record::PhaseRow;
use stats::{interval, sample};
use std::collections::BTreeMap;

const LEVEL: f64 = 0.95;
/// Fewest intervals from which stretches are made.
const INTERVALS_MIN: usize = 8;
/// A stretch is this long where there is time for it, seconds.
const STRETCH_SECONDS: f64 = 5.0;
/// There are this many of them at least while that leaves any choice.
const STRETCHES_WANTED: usize = 12;
/// Above this correlation of neighbours the stretches are too short.
const MEMORY_MAX: f64 = 0.35;
/// But fewer than this are too few.
const STRETCHES_MIN: usize = 6;

/// A level and how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// Per second, in the unit of the workload.
    pub value: f64,
    /// The 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// What the interval rests on: `12 stretches of 5 s`, `5 measurements`.
    pub basis: Option<String>,
}

impl Rate {
    /// With an interval over repetitions (rounds of growth, passes of a scan), where intervals gave none. Rounds differ in more
    /// than chance, as a larger table grows at another rate; the interval is wider by that.
    pub fn over(self, repetitions: &[f64], what: &str) -> Self {
        const REPETITIONS_MIN: usize = 3;
        if self.interval.is_some() || repetitions.len() < REPETITIONS_MIN {
            return self;
        }
        let Ok(i) = interval::absolute(repetitions, LEVEL, 0.0) else { return self };
        Self {
            interval: Some((self.value * i.low / i.value, self.value * i.high / i.value)),
            basis: Some(crate::words::count(repetitions.len(), what)),
            ..self
        }
    }

    /// Of measured phases of one workload.
    pub fn of(evidence: &Evidence, phases: &[(i64, &PhaseRow)]) -> Self {
        let rates: Vec<f64> = phases.iter().map(|(_, p)| p.rate).collect();
        let ops: u64 = phases.iter().map(|(_, p)| p.ops).sum();
        let resolution = 1.0 / ops.max(1) as f64;
        match phases {
            [(id, phase)] => {
                let found = stretches(evidence, *id, phase);
                let range =
                    found.as_ref().and_then(|(values, _)| interval::absolute(values, LEVEL, resolution).ok());
                // Around the rate of the whole window: the mean of logarithms lies a little beside it.
                let around =
                    |i: interval::Interval| (phase.rate * i.low / i.value, phase.rate * i.high / i.value);
                Self {
                    value: phase.rate,
                    interval: range.map(around),
                    basis: found.map(|f| f.1).filter(|_| range.is_some()),
                }
            }
            _ => match interval::absolute(&rates, LEVEL, resolution) {
                Ok(i) => Self {
                    value: i.value,
                    interval: Some((i.low, i.high)),
                    basis: Some(format!("{} measurements", phases.len())),
                },
                Err(_) => Self { value: sample::mean(&rates), interval: None, basis: None },
            },
        }
    }
}

/// Rates of stretches of one phase, and what to call them.
fn stretches(evidence: &Evidence, id: i64, phase: &PhaseRow) -> Option<(Vec<f64>, String)> {
    let amounts = per_interval(evidence, id, &phase.metric);
    let step = phase.seconds / amounts.len().max(1) as f64;
    if amounts.len() < INTERVALS_MIN || step <= 0.0 {
        return None;
    }
    let (values, each) = forgetting(&amounts, step);
    let long = crate::words::ratio(each as f64 * step);
    let basis = format!("{} stretches of {long}\u{a0}s", values.len());
    Some((values, basis))
}

/// Rates of stretches so long that neighbours forget each other, as far as there are enough of them; and how many
/// intervals of `step` seconds make one.
fn forgetting(amounts: &[f64], step: f64) -> (Vec<f64>, usize) {
    let mut each = ((STRETCH_SECONDS / step).round() as usize).min(amounts.len() / STRETCHES_WANTED).max(1);
    let mut values = means(amounts, each, step);
    while sample::lag1(&values) >= MEMORY_MAX && values.len() / 2 >= STRETCHES_MIN {
        each *= 2;
        values = means(amounts, each, step);
    }
    (values, each)
}

/// What was completed in each interval of a phase, in the unit of its metric.
pub fn per_interval(evidence: &Evidence, phase: i64, metric: &str) -> Vec<f64> {
    let mut by_time: BTreeMap<u64, f64> = BTreeMap::new();
    for row in evidence.whole_intervals(phase) {
        let amount = if metric == "MB/s" { row.bytes as f64 / 1e6 } else { row.ops as f64 };
        *by_time.entry(row.t_ns).or_default() += amount;
    }
    by_time.into_values().collect()
}

/// Rates of stretches of `each` intervals; what is left over at the end is not used.
fn means(amounts: &[f64], each: usize, step: f64) -> Vec<f64> {
    amounts.chunks_exact(each).map(|part| part.iter().sum::<f64>() / (each as f64 * step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_grow_until_neighbours_forget_each_other() {
        assert_eq!(means(&[1.0, 3.0, 5.0, 7.0, 9.0], 2, 0.5), [4.0, 12.0]);
        // Slow waves of 60 intervals: stretches of one interval remember, those of many do not.
        let waves: Vec<f64> =
            (0..240).map(|i| 100.0 + 20.0 * (f64::from(i) / 60.0 * std::f64::consts::TAU).sin()).collect();
        assert!(sample::lag1(&means(&waves, 1, 1.0)) > MEMORY_MAX);
        let (values, each) = forgetting(&waves, 1.0);
        assert!(each >= 10 && values.len() >= STRETCHES_MIN, "{each}");
    }

    /// Seconds that remember the one before (correlation 0.6): the interval must hold about as often as it says. Taking
    /// the seconds for replicates would hold in 67 of 100.
    #[test]
    fn intervals_hold_although_seconds_remember() {
        const RUNS: u32 = 400;
        let mut rng = units::Rng::new(units::Seed(11));
        let mut held = 0;
        for _ in 0..RUNS {
            let mut noise = rng.normal();
            let amounts: Vec<f64> = (0..120)
                .map(|_| {
                    noise = 0.6 * noise + 0.8 * rng.normal();
                    1_000.0 * (1.0 + 0.1 * noise)
                })
                .collect();
            let (values, _) = forgetting(&amounts, 1.0);
            let i = interval::absolute(&values, LEVEL, 0.0).expect("positive rates");
            let around = sample::mean(&amounts) / i.value;
            held += u32::from(i.low * around < 1_000.0 && 1_000.0 < i.high * around);
        }
        assert!(held >= RUNS * 90 / 100, "{held} of {RUNS}");
    }
}
