//! Chance, from a seed that the record keeps.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Where a run's chance comes from. Printed, stored, and accepted again by `--seed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// A fresh seed from the operating system's randomness; small enough (< 2⁵³) to survive JSON.
    pub fn draw() -> Self {
        Self(RandomState::new().build_hasher().finish() >> 11)
    }

    /// An independent seed for part `index` of the run: `Seed(s).part(0)` and `.part(1)` share no stream.
    pub const fn part(self, index: u64) -> Self {
        let mut state = self.0 ^ index.wrapping_add(1).wrapping_mul(0xA076_1D64_78BD_642F);
        Self(split_mix(&mut state))
    }
}

/// SplitMix64 step. Source: S. Vigna, `splitmix64.c` (public domain).
const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// xoshiro256++: fast, 256 bits of state, not for secrets. Source: Blackman & Vigna 2019, `xoshiro256plusplus.c`.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of `seed`.
    pub const fn new(seed: Seed) -> Self {
        let mut s = seed.0;
        Self { state: [split_mix(&mut s), split_mix(&mut s), split_mix(&mut s), split_mix(&mut s)] }
    }

    /// 64 uniform bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound`; `bound` ≥ 1. Bias below 2⁻⁶⁴ × bound (multiply-shift, Lemire 2019).
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box & Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A uniform permutation in place (Fisher & Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_stream_and_parts_differ() {
        let draw = |seed: Seed| {
            let mut rng = Rng::new(seed);
            [rng.next_u64(), rng.next_u64(), rng.next_u64()]
        };
        assert_eq!(draw(Seed(7)), draw(Seed(7)));
        assert_ne!(draw(Seed(7).part(0)), draw(Seed(7).part(1)));
    }

    #[test]
    fn moments_hold() {
        let mut rng = Rng::new(Seed(1));
        let n = 200_000;
        let (mut normal, mut square, mut exponential, mut uniform) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            let z = rng.normal();
            normal += z;
            square += z * z;
            exponential += rng.exponential(3.0);
            uniform += rng.below(10) as f64;
        }
        let mean = |sum: f64| sum / f64::from(n);
        assert!(mean(normal).abs() < 0.01 && (mean(square) - 1.0).abs() < 0.02);
        assert!((mean(exponential) - 3.0).abs() < 0.05 && (mean(uniform) - 4.5).abs() < 0.03);
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(Seed(3)).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
