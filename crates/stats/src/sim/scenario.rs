//! Eight histories of throughput over 15 minutes, each with its mechanism counters (section 2.3).

use crate::steady::Mechanism;
use units::{Rng, Seed};

/// Length of a history, seconds; one value per second.
const SECONDS: usize = 900;

/// A history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// Nothing happens.
    Flat,
    /// A page cache fills: 20 s.
    WarmFast,
    /// A storage cache fills: 90 s.
    WarmSlow,
    /// Pass 1 misses, pass 2 hits but fights with the filling and looks flat, then fast.
    FlashFill,
    /// A fresh SSD: 240 s fast, then garbage collection.
    SsdCliff,
    /// 2 % slower each minute; never steady.
    Drift,
    /// A checkpoint: 6 s at 55 % every 45 s.
    Periodic,
    /// A neighbour arrives within the first minute and stays.
    BackgroundStep,
}

impl Scenario {
    /// All eight.
    pub const ALL: [Self; 8] = [
        Self::Flat,
        Self::WarmFast,
        Self::WarmSlow,
        Self::FlashFill,
        Self::SsdCliff,
        Self::Drift,
        Self::Periodic,
        Self::BackgroundStep,
    ];
}

/// A history as it was drawn.
#[derive(Clone, Debug)]
pub struct Series {
    /// Operations per second.
    pub rates: Vec<f64>,
    /// What the counters said in the same second.
    pub mechanism: Vec<Mechanism>,
    /// The true rate of the steady state; `None` when there is none.
    pub truth: Option<f64>,
}

/// Two points in time that differ from seed to seed.
struct Dice {
    first: f64,
    second: f64,
}

impl Scenario {
    fn truth(self) -> Option<f64> {
        match self {
            Self::Flat | Self::FlashFill => Some(1_000.0),
            Self::WarmFast | Self::WarmSlow => Some(cached(0.05)),
            Self::SsdCliff => Some(350.0),
            Self::Drift => None,
            Self::Periodic => Some(1_000.0 * (39.0 + 6.0 * 0.55) / 45.0),
            Self::BackgroundStep => Some(880.0),
        }
    }

    /// `(rate, misses per read, share of background writes, share never overwritten)` at second `t`, without noise.
    fn at(self, t: f64, dice: &Dice) -> (f64, f64, f64, Option<f64>) {
        let warm = |seconds: f64| {
            let miss = 0.05 + 0.95 * (-t / seconds).exp();
            (cached(miss), miss, 0.0, None)
        };
        match self {
            Self::Flat => (1_000.0, 0.30, 0.0, None),
            Self::WarmFast => warm(20.0),
            Self::WarmSlow => warm(90.0),
            Self::FlashFill => {
                let (one, two) = (60.0 + 10.0 * dice.first, 230.0 + 30.0 * dice.second);
                match t {
                    t if t < one => (320.0, 0.95, 0.60, None),
                    t if t < two => (410.0, 0.12, 0.60, None),
                    _ => (1_000.0, 0.05, 0.01, None),
                }
            }
            Self::SsdCliff => {
                let cliff = 240.0 + 30.0 * dice.first;
                let rate = 1_000.0 * (0.35 + 0.65 / (1.0 + ((t - cliff) / 8.0).exp()));
                (rate, 0.30, 0.0, Some((1.0 - t / 420.0).max(0.0)))
            }
            Self::Drift => (1_000.0 * (1.0 - 0.02 * t / 60.0), 0.30, 0.0, None),
            Self::Periodic => (if t % 45.0 < 6.0 { 550.0 } else { 1_000.0 }, 0.30, 0.0, None),
            Self::BackgroundStep => {
                let arrives = 32.5 + 17.5 * dice.first;
                (if t < arrives { 1_000.0 } else { 880.0 }, 0.30, 0.0, None)
            }
        }
    }
}

/// Rate of a reader that misses this share of reads: 8 ms for a miss, 0.3 ms for a hit.
fn cached(miss: f64) -> f64 {
    1.0 / (miss * 8e-3 + (1.0 - miss) * 0.3e-3)
}

/// Draws a history with fast noise of standard deviation `sd` and memory `tau` seconds; counters are read with an error of 0.004.
pub fn series(scenario: Scenario, sd: f64, tau: f64, seed: Seed) -> Series {
    const COUNTER_ERROR: f64 = 0.004;
    let mut rng = Rng::new(seed);
    let dice = Dice { first: 2.0 * rng.unit() - 1.0, second: 2.0 * rng.unit() - 1.0 };
    let memory = (-1.0 / tau).exp();
    let mut noise = sd * rng.normal();
    let (mut rates, mut mechanism) = (Vec::with_capacity(SECONDS), Vec::with_capacity(SECONDS));
    for second in 0..SECONDS {
        if second > 0 {
            noise = memory * noise + sd * (1.0 - memory * memory).sqrt() * rng.normal();
        }
        let (rate, miss, fill, unwritten) = scenario.at(second as f64, &dice);
        let mut read = |x: f64| (x + COUNTER_ERROR * rng.normal()).clamp(0.0, 1.0);
        rates.push(rate * (noise - sd * sd / 2.0).exp());
        mechanism.push(Mechanism {
            physical_per_request: Some(read(miss)),
            background_write_share: Some(read(fill)),
            never_overwritten_share: unwritten.map(&mut read),
            ..Mechanism::default()
        });
    }
    Series { rates, mechanism, truth: scenario.truth() }
}
