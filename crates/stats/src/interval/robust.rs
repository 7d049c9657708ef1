//! Companions of Student's t that one wild block cannot lead astray (section 4.3).

use crate::sample;
use units::{Rng, Seed};

/// Up to here every choice of signs is tried.
const EXACT_MAX: usize = 14;
const DRAWS: u32 = 10_000;

/// Hodges and Lehmann's location: the median of the means of all pairs, each value with itself included. NaN when empty.
pub fn hodges_lehmann(values: &[f64]) -> f64 {
    let walsh: Vec<f64> =
        values.iter().enumerate().flat_map(|(i, a)| values[i..].iter().map(move |b| (a + b) / 2.0)).collect();
    sample::median(&walsh)
}

/// Two-sided p value of the sign-flip test that block differences `d` are symmetric about zero; 1 when empty.
///
/// Exact for up to 14 blocks, above that 10,000 draws from a fixed seed, so that the same blocks give the same p. It
/// cannot go below `2 / 2ⁿ`: four blocks can never say less than 0.125.
pub fn sign_flip_p(d: &[f64]) -> f64 {
    if d.is_empty() {
        return 1.0;
    }
    let scale: f64 = d.iter().map(|x| x.abs()).sum();
    let observed = d.iter().sum::<f64>().abs() - 1e-12 * scale;
    let flipped = |signs: u64| -> f64 {
        d.iter().enumerate().map(|(i, x)| if signs >> (i % 64) & 1 == 1 { *x } else { -x }).sum::<f64>().abs()
    };
    if d.len() <= EXACT_MAX {
        let all = 1u64 << d.len();
        let extreme = (0..all).filter(|signs| flipped(*signs) >= observed).count();
        return extreme as f64 / all as f64;
    }
    let mut rng = Rng::new(Seed(0x5169_6E66).part(d.len() as u64));
    let extreme = (0..DRAWS)
        .filter(|_| {
            let sum: f64 = d.iter().map(|x| if rng.next_u64() >> 63 == 1 { *x } else { -x }).sum();
            sum.abs() >= observed
        })
        .count();
    (extreme as f64 + 1.0) / (f64::from(DRAWS) + 1.0)
}
