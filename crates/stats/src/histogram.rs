//! Latencies, counted: a log-linear histogram with a stated error.
//!
//! ```text
//! value (ns)   0 … 127      128 … 255      256 … 511      …   2³⁶ … 2³⁷−1 (137 s)
//! width        1 (exact)    2              4                  2³⁰
//! buckets      0 … 127      128 … 191      192 … 255      …   1984 … 2047
//! ```
//! 64 buckets per doubling. A quantile is the middle of its bucket, so it is at most half of 1/64 away: 1/128. The
//! table is 16 KiB; two digits more would be 256 KiB and leave the L1 cache that the load generator needs. What lies
//! beyond the last bucket is counted in it; minimum, maximum, sum and mean are exact.
//!
//! Percentiles are never averaged over threads, seconds or visits: [`Histogram::merge`] is how they come together.

mod encoding;

pub use encoding::DecodeError;

/// log₂ of the buckets per doubling.
const SUB_BITS: u32 = 6;
/// Values of this many bits and more share the last doubling.
const VALUE_BITS: u32 = 37;
const BUCKETS: usize = ((VALUE_BITS - SUB_BITS) as usize + 1) << SUB_BITS;
const _: () = assert!(BUCKETS == 2048 && (1u64 << VALUE_BITS) > 60_000_000_000);

/// Counts of latencies in nanoseconds. No allocation after [`Histogram::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
const fn bucket(ns: u64) -> usize {
    const LAST: u64 = (1 << VALUE_BITS) - 1;
    let ns = if ns < LAST { ns } else { LAST };
    // At least SUB_BITS + 1 bits, so that the first two octaves of buckets are one nanosecond wide.
    let bits = u64::BITS - (ns | ((2 << SUB_BITS) - 1)).leading_zeros();
    let shift = bits - SUB_BITS - 1;
    ((shift as usize) << SUB_BITS) + (ns >> shift) as usize
}

/// Lowest value of bucket `index` and the one after its highest.
const fn bounds(index: usize) -> (u64, u64) {
    let shift = (index >> SUB_BITS).saturating_sub(1);
    let low = ((index - (shift << SUB_BITS)) as u64) << shift;
    (low, low + (1 << shift))
}

impl Histogram {
    /// Largest relative error of [`Histogram::quantile`] for values below 137 s.
    pub const ERROR_RELATIVE: f64 = 0.5 / (1 << SUB_BITS) as f64;

    /// Nothing counted yet.
    pub fn new() -> Self {
        let counts: Result<Box<[u64; BUCKETS]>, _> = vec![0; BUCKETS].into_boxed_slice().try_into();
        let counts = counts.unwrap_or_else(|_| unreachable!("the slice was made with BUCKETS elements"));
        Self { counts, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one latency of `ns` nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `n` latencies of `ns` nanoseconds each.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.counts[bucket(ns)] += n;
        self.count += n;
        self.sum = self.sum.saturating_add(ns.saturating_mul(n));
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many latencies were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum in nanoseconds, exact (it stops at `u64::MAX`, 584 years).
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Their mean in nanoseconds, exact; 0 when nothing was counted.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The smallest, exact; 0 when nothing was counted.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The largest, exact; 0 when nothing was counted.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The smallest latency such that a share `q` (0 … 1) of all lies at or below it, in nanoseconds, within
    /// [`Histogram::ERROR_RELATIVE`]; 0 when nothing was counted.
    pub fn quantile(&self, q: f64) -> u64 {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && self.count > 0 {
                let (low, high) = bounds(index);
                return (low + (high - low) / 2).clamp(self.min, self.max);
            }
        }
        0
    }

    /// The buckets that hold something: `(lowest ns, one past the highest ns, count)`, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| {
            let (low, high) = bounds(index);
            (low, high, *count)
        })
    }

    /// May the percentile `q` be printed? Only with at least 100 latencies above it (section 4.4); a p99.9 of a
    /// thousand requests is the story of one of them.
    pub fn supports(&self, q: f64) -> bool {
        self.count as f64 * (1.0 - q) >= 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Rng, Seed};

    #[test]
    fn buckets_tile_the_line() {
        let mut expected = 0;
        for index in 0..BUCKETS {
            let (low, high) = bounds(index);
            assert_eq!(low, expected, "bucket {index}");
            assert_eq!((bucket(low), bucket(high - 1)), (index, index), "bucket {index}");
            assert!(index < 128 || (high - low) as f64 / low as f64 <= 2.0 * Histogram::ERROR_RELATIVE);
            expected = high;
        }
        assert_eq!(expected, 1 << VALUE_BITS);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_stay_within_the_stated_error() {
        let mut rng = Rng::new(Seed(11));
        let mut histogram = Histogram::new();
        let mut exact: Vec<u64> =
            (0..20_000).map(|_| (50_000.0 * (1.5 * rng.normal()).exp()) as u64 + 1).collect();
        exact.iter().for_each(|ns| histogram.record(*ns));
        exact.sort_unstable();
        for q in [0.0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((q * exact.len() as f64).ceil() as usize).max(1);
            let (got, want) = (histogram.quantile(q) as f64, exact[rank - 1] as f64);
            assert!(
                (got / want - 1.0).abs() <= Histogram::ERROR_RELATIVE + 1.0 / want,
                "q {q}: {got}, exact {want}"
            );
        }
        assert_eq!(histogram.min(), exact[0]);
        assert_eq!(histogram.max(), exact[exact.len() - 1]);
        assert_eq!(histogram.sum(), exact.iter().sum::<u64>());
        assert_eq!(histogram.buckets().map(|b| b.2).sum::<u64>(), 20_000);
    }

    #[test]
    fn merge_equals_one_histogram() {
        let mut rng = Rng::new(Seed(12));
        let (mut whole, mut a, mut b) = (Histogram::new(), Histogram::new(), Histogram::new());
        for i in 0..5_000 {
            let ns = rng.below(1 << 30);
            whole.record(ns);
            if i % 3 == 0 { a.record(ns) } else { b.record(ns) }
        }
        a.merge(&b);
        assert_eq!(a, whole);
    }

    #[test]
    fn empty_and_extreme() {
        let mut histogram = Histogram::default();
        assert_eq!(
            (histogram.count(), histogram.min(), histogram.max(), histogram.quantile(0.5)),
            (0, 0, 0, 0)
        );
        histogram.record_n(7, 0);
        assert_eq!(histogram.count(), 0);
        histogram.record(u64::MAX);
        histogram.record(0);
        assert_eq!((histogram.min(), histogram.max(), histogram.sum()), (0, u64::MAX, u64::MAX));
        assert_eq!(histogram.quantile(0.5), 0);
        assert!(histogram.quantile(1.0) > 60_000_000_000);
    }

    #[test]
    fn a_percentile_needs_a_hundred_beyond_it() {
        let mut histogram = Histogram::new();
        histogram.record_n(1_000, 9_999);
        assert!(histogram.supports(0.95) && !histogram.supports(0.99));
        histogram.record(1_000);
        assert!(histogram.supports(0.99) && !histogram.supports(0.999));
    }
}
