//! Two configurations in one environment, block by block: what a comparison sees (section 3.2).

use crate::order;
use crate::sample;
use units::{Rng, Seed};

/// The environment of a comparison: slow drift, a linear trend, fast noise with memory; log scale, one value per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Environment {
    /// Standard deviation of the slow drift.
    pub slow_sd: f64,
    /// Its memory, seconds.
    pub slow_seconds: f64,
    /// Standard deviation of the fast noise.
    pub fast_sd: f64,
    /// Its memory, seconds.
    pub fast_seconds: f64,
    /// Linear trend per minute.
    pub trend_per_minute: f64,
}

impl Environment {
    /// 0.3 % slow, 1 % fast; block log ratios vary by 0.45 %.
    pub const QUIET: Self =
        Self { slow_sd: 0.003, slow_seconds: 300.0, fast_sd: 0.01, fast_seconds: 2.0, trend_per_minute: 0.0 };
    /// 2 % slow, 3 % fast; block log ratios vary by 1.7 %.
    pub const TYPICAL: Self =
        Self { slow_sd: 0.02, slow_seconds: 300.0, fast_sd: 0.03, fast_seconds: 3.0, trend_per_minute: 0.0 };
    /// 5 % slow, 6 % fast; block log ratios vary by 4 %.
    pub const SHARED: Self =
        Self { slow_sd: 0.05, slow_seconds: 240.0, fast_sd: 0.06, fast_seconds: 4.0, trend_per_minute: 0.0 };
    /// 1 % slow, 3 % fast, and 3 % slower each minute.
    pub const TREND: Self = Self {
        slow_sd: 0.01,
        slow_seconds: 300.0,
        fast_sd: 0.03,
        fast_seconds: 3.0,
        trend_per_minute: -0.03,
    };
}

/// An endless experiment with two or more configurations whose true log effects are known.
pub struct NoisyPair {
    environment: Environment,
    effects: Vec<f64>,
    seed: Seed,
    rng: Rng,
    clock: f64,
    slow: f64,
    fast: f64,
    blocks: usize,
    /// The last configuration visited: staying with it costs no switch.
    last: Option<usize>,
}

impl NoisyPair {
    /// Length of a visit, seconds.
    pub const VISIT_SECONDS: usize = 20;
    /// Length of a switch, seconds.
    pub const SWITCH_SECONDS: usize = 10;

    /// Old against new, where new is truly `1 + effect` times as fast: 0.05 is 5 %, 0 is A against A.
    pub fn new(environment: Environment, effect: f64, seed: Seed) -> Self {
        Self::many(environment, &[0.0, effect], seed)
    }

    /// As many configurations as effects.
    pub fn many(environment: Environment, effects: &[f64], seed: Seed) -> Self {
        let mut rng = Rng::new(seed.part(u64::MAX));
        let (slow, fast) = (environment.slow_sd * rng.normal(), environment.fast_sd * rng.normal());
        let effects = effects.iter().map(|e| e.ln_1p()).collect();
        Self { environment, effects, seed, rng, clock: 0.0, slow, fast, blocks: 0, last: None }
    }

    /// The next block in the order of [`order::block`]: per configuration the geometric mean of its visits, operations per
    /// second around 1000.
    pub fn block(&mut self) -> Vec<f64> {
        let order = order::block(self.effects.len(), self.blocks, self.seed);
        self.blocks += 1;
        let mut visits = vec![Vec::new(); self.effects.len()];
        for configuration in order {
            if self.last.is_some_and(|last| last != configuration) {
                self.seconds(Self::SWITCH_SECONDS);
            }
            visits[configuration].push(self.seconds(Self::VISIT_SECONDS));
            self.last = Some(configuration);
        }
        visits
            .iter()
            .zip(&self.effects)
            .map(|(v, effect)| 1_000.0 * (sample::mean(v) + effect).exp())
            .collect()
    }

    /// `count` blocks: `(old, new)`, one value each per block.
    pub fn blocks(&mut self, count: usize) -> (Vec<f64>, Vec<f64>) {
        (0..count)
            .map(|_| {
                let block = self.block();
                (block[0], block[1])
            })
            .unzip()
    }

    /// Mean log rate over the next `seconds`.
    fn seconds(&mut self, seconds: usize) -> f64 {
        let e = self.environment;
        let (a, b) = ((-1.0 / e.slow_seconds).exp(), (-1.0 / e.fast_seconds).exp());
        let mut sum = 0.0;
        for _ in 0..seconds {
            self.slow = a * self.slow + e.slow_sd * (1.0 - a * a).sqrt() * self.rng.normal();
            self.fast = b * self.fast + e.fast_sd * (1.0 - b * b).sqrt() * self.rng.normal();
            sum += self.slow + self.fast + e.trend_per_minute * self.clock / 60.0;
            self.clock += 1.0;
        }
        sum / seconds as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::log_ratios;

    #[test]
    fn block_ratios_vary_as_in_the_method() {
        for (environment, sd) in
            [(Environment::QUIET, 0.0045), (Environment::TYPICAL, 0.0169), (Environment::SHARED, 0.0402)]
        {
            let all: Vec<f64> = (0..40)
                .flat_map(|s| {
                    let (old, new) = NoisyPair::new(environment, 0.0, Seed(s)).blocks(24);
                    log_ratios(&old, &new).unwrap()
                })
                .collect();
            let got = sample::deviation(&all);
            assert!((got / sd - 1.0).abs() < 0.12, "{got} where the method has {sd}");
        }
    }

    #[test]
    fn the_planted_effect_is_there() {
        let (old, new) = NoisyPair::new(Environment::TREND, 0.05, Seed(1)).blocks(400);
        let mean = sample::mean(&log_ratios(&old, &new).unwrap());
        assert!((mean.exp_m1() - 0.05).abs() < 0.004, "{mean}");
    }
}
