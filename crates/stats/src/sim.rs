//! Simulated storage and simulated environments: where the method is tried before it is trusted.
//!
//! [`SimDevice`] has a known curve, noise like real machines have, and stalls; a policy that cannot find its maximum cannot
//! find a real one. [`NoisyPair`] gives blocks of two configurations with a planted difference, or none. [`series`] gives
//! the eight histories on which the steady-state detector is judged. All seeded, in simulated time, hence free.
//!
//! What this does not show (section 13): the noise is Gaussian with memory and stalls; real interference has heavier tails.

mod device;
mod pair;
mod scenario;

pub use device::{Device, Noise, SimDevice};
pub use pair::{Environment, NoisyPair};
pub use scenario::{Scenario, Series, series};

use crate::search::{self, Plan};
use units::Seed;

/// Share of searches, over the seven devices with `seeds` seeds each, whose operating point gives at least 97 % of the true
/// maximum. Promised (section 11): 0.95 or more with [`Noise::Typical`].
pub fn acceptance(seeds: u32, noise: Noise) -> f64 {
    let shares =
        Device::ALL.map(|device| acceptance_of(device, noise, seeds, &Plan::thorough()).within_3_percent);
    crate::sample::mean(&shares)
}

/// How a plan does on one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acceptance {
    /// Share of searches whose operating point gives at least 97 % of the true maximum.
    pub within_3_percent: f64,
    /// Share whose knee gives at least 93 % of it: one step of the bisection below the level; 0 when no knee was asked for.
    pub knee_holds: f64,
    /// Share that named a collapse.
    pub collapse_named: f64,
    /// Mean of simulated seconds.
    pub seconds: f64,
}

/// Runs `seeds` searches with `plan` on `device`.
pub fn acceptance_of(device: Device, noise: Noise, seeds: u32, plan: &Plan) -> Acceptance {
    let (mut within, mut knees, mut collapses, mut seconds) = (0u32, 0u32, 0u32, 0.0);
    for s in 0..seeds {
        let seed = Seed(u64::from(s)).part(device as u64).part(noise as u64);
        let mut target = SimDevice::new(device, noise, seed);
        let Ok(found) = search::maximum(&mut target, plan, seed.part(1), &mut |_| ());
        let share = |n: u32| target.true_rate(n) / target.true_max().1;
        within += u32::from(share(found.n_best) >= 0.97);
        knees += u32::from(found.n_knee.is_some_and(|n| share(n) >= 0.93));
        collapses += u32::from(found.collapse.is_some());
        seconds += found.seconds;
    }
    let of = |count: u32| f64::from(count) / f64::from(seeds);
    Acceptance {
        within_3_percent: of(within),
        knee_holds: of(knees),
        collapse_named: of(collapses),
        seconds: seconds / f64::from(seeds),
    }
}
