//! In which order the configurations of one block are visited (section 3.1).
//!
//! Up to four configurations: a random permutation followed by its mirror, `C A B | B A C`. Any linear drift inside the
//! block cancels exactly for each of them, and chance guards against interference with a rhythm and against a
//! configuration that always inherits from the same predecessor. In a fixed `A A A A B B B B` order, 18–56 % of equal
//! pairs are called different under mild drift; with random mirrored blocks 4–6 % (section 3.2).
//!
//! More than four: one visit each per block, and the odd block is the mirror of the even one before it. Drift then
//! cancels over the pair of blocks, at half the cost.

use units::{Rng, Seed};

/// Up to this many configurations are visited twice, mirrored, inside one block.
pub const MIRRORED_MAX: usize = 4;

/// The visits of block `ordinal` (from 0) for `k` configurations: indices `0..k`, in the order to visit them.
///
/// Length `2k` for `k <=` [`MIRRORED_MAX`], otherwise `k`. The same `seed` and `ordinal` give the same order.
pub fn block(k: usize, ordinal: usize, seed: Seed) -> Vec<usize> {
    let drawn = if k <= MIRRORED_MAX { ordinal } else { ordinal / 2 };
    let mut order: Vec<usize> = (0..k).collect();
    Rng::new(seed.part(drawn as u64)).shuffle(&mut order);
    if k <= MIRRORED_MAX {
        order.extend_from_within(..);
        order[k..].reverse();
    } else if ordinal % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean position of each configuration over the given blocks: equal means cancel a linear drift exactly.
    fn mean_positions(k: usize, ordinals: std::ops::Range<usize>, seed: Seed) -> Vec<f64> {
        let visits: Vec<usize> = ordinals.flat_map(|o| block(k, o, seed)).collect();
        (0..k)
            .map(|c| {
                let at: Vec<f64> =
                    visits.iter().enumerate().filter(|(_, v)| **v == c).map(|(i, _)| i as f64).collect();
                crate::sample::mean(&at)
            })
            .collect()
    }

    #[test]
    fn linear_drift_cancels_to_rounding() {
        for s in 0..50 {
            for k in 1..=12 {
                let blocks = if k <= MIRRORED_MAX { s..s + 1 } else { 2 * s..2 * s + 2 };
                let positions = mean_positions(k, blocks, Seed(s as u64));
                assert!(
                    positions.iter().all(|p| (p - positions[0]).abs() < 1e-12),
                    "k {k}, seed {s}: {positions:?}"
                );
            }
        }
    }

    #[test]
    fn both_orders_of_two_occur_equally_often() {
        let first_is_zero = (0..2_000).filter(|o| block(2, *o, Seed(9))[0] == 0).count();
        assert!((900..=1_100).contains(&first_is_zero), "{first_is_zero} of 2000");
    }

    #[test]
    fn the_plan_can_be_replayed() {
        assert_eq!(block(3, 5, Seed(1)), block(3, 5, Seed(1)));
        let mut visits = block(8, 3, Seed(1));
        visits.sort_unstable();
        assert_eq!(visits, (0..8).collect::<Vec<_>>());
        assert!(block(0, 0, Seed(1)).is_empty());
    }
}
