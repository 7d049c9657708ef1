//! Time by key and class, to which can be added and from which can be taken away.
//!
//! In whole nanoseconds: what came and went leaves nothing behind, and sums kept for hours are the same as sums made anew.

use crate::class::COUNT;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Time of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// In all, nanoseconds.
    pub total: i64,
    /// By class.
    pub classes: [i64; COUNT],
}

/// Sums by key. What has none is not in it.
#[derive(Debug)]
pub struct Tally<K> {
    /// Where a key stands in the three columns.
    places: HashMap<K, u32, BuildHasherDefault<Spread>>,
    keys: Vec<K>,
    /// Apart from the classes: to find the greatest all of them are read, and there may be a million.
    totals: Vec<i64>,
    classes: Vec<[i64; COUNT]>,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { places: HashMap::default(), keys: Vec::new(), totals: Vec::new(), classes: Vec::new() }
    }
}

impl<K: Copy + Ord + Hash> Tally<K> {
    /// Adds `nanos`, or takes them away where they are negative.
    pub fn add(&mut self, key: K, class: usize, nanos: i64) {
        let place = *self.places.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.totals.push(0);
            self.classes.push([0; COUNT]);
            self.keys.len() as u32 - 1
        });
        let at = place as usize;
        self.totals[at] += nanos;
        self.classes[at][class] += nanos;
        if self.totals[at] == 0 {
            self.remove(at);
        }
    }

    /// The last one takes its place.
    fn remove(&mut self, at: usize) {
        self.places.remove(&self.keys[at]);
        self.keys.swap_remove(at);
        self.totals.swap_remove(at);
        self.classes.swap_remove(at);
        if let Some(moved) = self.keys.get(at) {
            self.places.insert(*moved, at as u32);
        }
    }

    /// The `count` keys with the most time, in no order; of equal ones the smaller keys.
    pub fn top(&self, count: usize) -> Vec<(K, Sum)> {
        let mut best = BinaryHeap::with_capacity(count + 1);
        for (at, total) in self.totals.iter().enumerate() {
            let is_better = |Reverse(least): &Reverse<(i64, Reverse<K>, usize)>| {
                *total > least.0 || *total == least.0 && self.keys[at] < least.1.0
            };
            if best.len() < count || best.peek().is_some_and(is_better) {
                best.push(Reverse((*total, Reverse(self.keys[at]), at)));
                if best.len() > count {
                    best.pop();
                }
            }
        }
        let sum = |at: usize| Sum { total: self.totals[at], classes: self.classes[at] };
        best.into_iter().map(|Reverse((_, Reverse(key), at))| (key, sum(at))).collect()
    }
}

/// Keys are small numbers; one multiplication for each part of them spreads them well enough, and is a fraction of the usual hash.
#[derive(Clone, Copy, Debug, Default)]
struct Spread(u64);

impl Spread {
    fn mix(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(25) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.mix(u64::from(*byte)));
    }

    fn write_u16(&mut self, number: u16) {
        self.mix(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(u64::from(number));
    }

    /// The map takes its place from the low bits, to which a product brings nothing of the high ones.
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use units::{Rng, Seed};

    /// What came and went, in any order, is the same as what stayed.
    #[test]
    fn a_tally_is_the_sum_of_what_stayed() {
        let mut rng = Rng::new(Seed(3));
        let mut tally = Tally::default();
        let mut stayed: Vec<((u32, u16), usize, i64)> = Vec::new();
        for step in 0..20_000 {
            // It grows, shrinks, and is empty in between.
            let grows = step % 4_000 < 2_500;
            if stayed.is_empty() || rng.below(10) < if grows { 7 } else { 2 } {
                let key = (rng.below(400) as u32 * 1_000, rng.below(2) as u16);
                let (class, nanos) = (rng.below(COUNT as u64) as usize, 1 + rng.below(1_000) as i64);
                tally.add(key, class, nanos);
                stayed.push((key, class, nanos));
            } else {
                let (key, class, nanos) = stayed.swap_remove(rng.below(stayed.len() as u64) as usize);
                tally.add(key, class, -nanos);
            }
            if step % 97 == 0 {
                let mut sums: BTreeMap<(u32, u16), Sum> = BTreeMap::new();
                for (key, class, nanos) in &stayed {
                    let sum = sums.entry(*key).or_default();
                    sum.total += nanos;
                    sum.classes[*class] += nanos;
                }
                let mut expected: Vec<_> = sums.into_iter().collect();
                expected.sort_by_key(|(key, sum)| (Reverse(sum.total), *key));
                for count in [1, 7, 60, 5_000] {
                    let mut top = tally.top(count);
                    top.sort_by_key(|(key, sum)| (Reverse(sum.total), *key));
                    assert_eq!(top, expected[..count.min(expected.len())], "step {step}, top {count}");
                }
            }
        }
    }

    #[test]
    fn of_equal_ones_the_smaller_keys_are_kept() {
        let mut tally = Tally::default();
        (0u16..100).rev().for_each(|key| tally.add(key, 0, 5));
        tally.add(70, 0, 1);
        let mut keys: Vec<u16> = tally.top(4).into_iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        assert_eq!(keys, [0, 1, 2, 70]);
    }
}
