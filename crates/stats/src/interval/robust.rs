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
    let is_extreme = |sum: &&f64| sum.abs() >= observed;
    if d.len() <= EXACT_MAX {
        // All sums with the first sign fixed; the other half are their mirror images.
        let mut sums = vec![d[0]];
        for x in &d[1..] {
            let other: Vec<f64> = sums.iter().map(|sum| sum - x).collect();
            sums.iter_mut().for_each(|sum| *sum += x);
            sums.extend(other);
        }
        return sums.iter().filter(is_extreme).count() as f64 / sums.len() as f64;
    }
    let mut rng = Rng::new(Seed(0x5169_6E66).part(d.len() as u64));
    let sums: Vec<f64> =
        (0..DRAWS).map(|_| d.chunks(64).map(|part| flipped(part, rng.next_u64())).sum()).collect();
    (sums.iter().filter(is_extreme).count() as f64 + 1.0) / (f64::from(DRAWS) + 1.0)
}

/// Sum of at most 64 values, each with the sign of its bit.
fn flipped(values: &[f64], mut signs: u64) -> f64 {
    let mut sum = 0.0;
    for x in values {
        sum += if signs & 1 == 1 { *x } else { -x };
        signs >>= 1;
    }
    sum
}
