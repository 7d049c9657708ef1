//! Stage B, the race: every promising number in flight once per round, in random order; the round's mean is taken out, so
//! that drift cancels; whoever is clearly behind is dropped.
//!
//! The same precision on single points would take 16 s each (AR noise of 2 %, 2 s memory); differences reach it with 2–4
//! rounds of 1.5 s.

use super::bracket::Ramp;
use super::measure::Probe;
use super::{Plan, Stage, Target};
use crate::sample;

/// What the race says.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub n_best: u32,
    /// Rate of the winner as the race saw it; not reported.
    pub rate: f64,
    /// How much the same point moved from round to round, log scale; one stall does not move it.
    pub spread: f64,
    /// There was no time to look at the integers next to the winner.
    pub cut_short: bool,
    /// Every number raced, with its mean log rate relative to the leader's when it was last compared.
    pub seen: Vec<(u32, f64)>,
}

impl Outcome {
    /// Without a race: the smallest step of the ramp on the plateau of its best.
    pub fn of_ramp(ramp: &Ramp) -> Self {
        const PLATEAU: f64 = 0.98;
        let (best_n, best) = ramp.best();
        let (n_best, rate) =
            ramp.steps.iter().copied().find(|(_, rate)| *rate >= PLATEAU * best).unwrap_or((best_n, best));
        Self { n_best, rate, spread: 0.0, cut_short: false, seen: Vec::new() }
    }
}

/// Rounds of log rates; a row per round, a column per number alive.
struct Field {
    alive: Vec<u32>,
    rounds: Vec<Vec<f64>>,
    /// See [`Outcome::seen`].
    seen: Vec<(u32, f64)>,
}

impl Field {
    fn new(mut alive: Vec<u32>) -> Self {
        alive.sort_unstable();
        alive.dedup();
        Self { alive, rounds: Vec::new(), seen: Vec::new() }
    }

    fn column(&self, i: usize) -> Vec<f64> {
        self.rounds.iter().map(|row| row[i]).collect()
    }

    fn means(&self) -> Vec<f64> {
        (0..self.alive.len()).map(|i| sample::mean(&self.column(i))).collect()
    }

    /// Pooled residual standard deviation after taking out round and column means, and its degrees of freedom.
    fn residual(&self) -> (f64, f64) {
        const FLOOR: f64 = 0.002;
        let means = self.means();
        let grand = sample::mean(&means);
        let squares: f64 = self
            .rounds
            .iter()
            .map(|row| {
                let round = sample::mean(row);
                row.iter().zip(&means).map(|(y, m)| (y - round - (m - grand)).powi(2)).sum::<f64>()
            })
            .sum();
        let df = ((self.rounds.len() - 1) * (self.alive.len() - 1)).max(1) as f64;
        ((squares / df).sqrt().max(FLOOR), df)
    }

    /// Typical distance of a point from its own mean over the rounds, round effects included, as a standard deviation: the noise of
    /// the environment. By medians, so that one stall is not called an unstable environment.
    fn spread(&self) -> f64 {
        /// Standard deviation of a normal over its median absolute deviation.
        const MAD: f64 = 1.4826;
        let middles: Vec<f64> = (0..self.alive.len()).map(|i| sample::median(&self.column(i))).collect();
        let apart: Vec<f64> = self
            .rounds
            .iter()
            .flat_map(|row| row.iter().zip(&middles).map(|(y, middle)| (y - middle).abs()))
            .collect();
        if self.rounds.len() < 2 { 0.0 } else { MAD * sample::median(&apart) }
    }

    /// Compares all with the leader and drops those further behind than `margin`.
    fn drop_behind(&mut self, margin: f64) {
        let means = self.means();
        let top = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for (n, mean) in self.alive.iter().zip(&means) {
            self.seen.retain(|seen| seen.0 != *n);
            self.seen.push((*n, mean - top));
        }
        let stays: Vec<bool> = means.iter().map(|mean| top - mean < margin).collect();
        let kept = |row: &Vec<f64>| row.iter().zip(&stays).filter(|(_, s)| **s).map(|(v, _)| *v).collect();
        self.rounds = self.rounds.iter().map(kept).collect();
        self.alive = self.alive.iter().zip(&stays).filter(|(_, s)| **s).map(|(n, _)| *n).collect();
    }

    /// The one with the highest mean.
    fn leader(&self) -> u32 {
        let means = self.means();
        let top = (0..means.len()).max_by(|a, b| means[*a].total_cmp(&means[*b])).unwrap_or(0);
        self.alive[top]
    }

    /// The smallest number in flight within `pick` of the best mean, and its rate.
    fn winner(&self, pick: f64) -> (u32, f64) {
        let means = self.means();
        let top = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let at = means.iter().position(|m| *m >= top - pick).unwrap_or(0);
        (self.alive[at], means[at].exp())
    }
}

/// Integers from `low` to `high` in steps of `ratio`.
fn grid(low: u32, high: u32, ratio: f64) -> Vec<u32> {
    let steps = std::iter::successors(Some(f64::from(low)), |x| Some(x * ratio));
    let mut grid: Vec<u32> =
        steps.take_while(|x| *x <= f64::from(high) * 1.001).map(|x| x.round() as u32).collect();
    grid.dedup();
    grid
}

/// From one ramp step below the first contender to one above the last, geometric, without what is known to be slow.
fn candidates(ramp: &Ramp, plan: &Plan) -> Vec<u32> {
    let (best_n, best) = ramp.best();
    let contender = |step: &(u32, f64)| step.1 >= plan.keep * best;
    let first = ramp.steps.iter().position(contender).unwrap_or(0);
    let last = ramp.steps.iter().rposition(contender).unwrap_or(0);
    let low = ramp.steps[first.saturating_sub(1)].0;
    let high = ramp.steps[(last + 1).min(ramp.steps.len() - 1)].0;
    let ratio = plan.fine.max((f64::from(high) / f64::from(low)).powf(1.0 / f64::from(plan.candidates + 1)));
    let slow = |n: &u32| ramp.rate_of(*n).is_some_and(|rate| rate < plan.keep * best);
    let list: Vec<u32> = grid(low, high, ratio).into_iter().filter(|n| !slow(n)).collect();
    if list.is_empty() { vec![best_n] } else { list }
}

/// Races until one is left, or the winner can be wrong by no more than `eps`, or rounds or time are out.
fn race<T: Target>(
    probe: &mut Probe<'_, T>,
    mut field: Field,
    best: f64,
    rounds_max: u32,
) -> Result<Field, T::Error> {
    let seconds = probe.seconds(probe.plan.race_seconds, best);
    loop {
        let mut order: Vec<usize> = (0..field.alive.len()).collect();
        probe.rng.shuffle(&mut order);
        let mut row = vec![0.0; order.len()];
        for i in order {
            let (point, _) =
                probe.measure(field.alive[i], seconds, Stage::Race, field.rounds.len() as u32)?;
            row[i] = point.rate.max(1e-9).ln();
        }
        field.rounds.push(row);
        let rounds = field.rounds.len() as u32;
        if field.alive.len() == 1 {
            return Ok(field);
        }
        if rounds < probe.plan.rounds_min.min(rounds_max).max(2) {
            continue;
        }
        let (residual, df) = field.residual();
        // The last factor widens for the few degrees of freedom of the first rounds.
        let error = residual * (2.0 / f64::from(rounds)).sqrt() * (1.0 + 1.0 / df);
        field.drop_behind(probe.plan.z * error + probe.plan.pick);
        let decided = field.alive.len() == 1 || probe.plan.z * error <= probe.plan.eps;
        if decided || rounds >= rounds_max || probe.out_of_time() {
            return Ok(field);
        }
    }
}

/// Untried integers half-way from `winner` to its neighbours among the candidates.
fn midpoints(tried: &[u32], winner: u32) -> Vec<u32> {
    let Some(at) = tried.iter().position(|n| *n == winner) else { return Vec::new() };
    let below =
        at.checked_sub(1).map(|i| tried[i]).filter(|low| winner - low > 1).map(|low| (winner + low) / 2);
    let above = tried.get(at + 1).filter(|high| **high - winner > 1).map(|high| (winner + high).div_ceil(2));
    below.into_iter().chain(above).collect()
}

/// The race, and where the curve is sharp a second one among the integers next to the winner.
pub(super) fn search<T: Target>(probe: &mut Probe<'_, T>, ramp: &Ramp) -> Result<Outcome, T::Error> {
    const MIDPOINT_ROUNDS: u32 = 4;
    let best = ramp.best().1;
    let tried = candidates(ramp, probe.plan);
    let mut field = race(probe, Field::new(tried.clone()), best, probe.plan.rounds_max)?;
    let (mut spread, mut seen) = (field.spread(), field.seen.clone());
    let winner = field.leader();
    let mut near = midpoints(&tried, winner);
    let sharp = !near.is_empty() && field.alive.len() <= 2;
    let cut_short = sharp && probe.out_of_time();
    if sharp && !cut_short {
        near.push(winner);
        field = race(probe, Field::new(near), best, MIDPOINT_ROUNDS.min(probe.plan.rounds_max))?;
        spread = spread.max(field.spread());
        seen.retain(|(n, _)| !field.seen.iter().any(|again| again.0 == *n));
        seen.extend(&field.seen);
    }
    let (n_best, rate) = field.winner(probe.plan.pick);
    Ok(Outcome { n_best, rate, spread, cut_short, seen })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_surround_the_contenders() {
        let ramp = |rates: &[f64]| Ramp {
            steps: rates.iter().enumerate().map(|(i, r)| (1 << i, *r)).collect(),
            still_rising: false,
            halted: false,
        };
        let plan = Plan::thorough();
        assert_eq!(candidates(&ramp(&[10.0, 20.0, 40.0, 80.0, 100.0, 20.0]), &plan), [10, 13, 16, 20, 25]);
        assert_eq!(candidates(&ramp(&[100.0, 20.0]), &plan), [1]);
        let plateau = candidates(&ramp(&[10.0, 50.0, 99.0, 100.0, 100.0, 99.0, 98.0]), &plan);
        assert!(plateau.len() <= 7 && plateau[0] >= 2 && plateau[plateau.len() - 1] == 64, "{plateau:?}");
    }

    #[test]
    fn midpoints_are_untried_integers() {
        assert_eq!(midpoints(&[4, 6, 8], 6), [5, 7]);
        assert_eq!(midpoints(&[4, 5, 8], 5), [7]);
        assert_eq!(midpoints(&[4, 5, 6], 5), [0u32; 0]);
        assert_eq!(midpoints(&[4], 4), [0u32; 0]);
    }
}
