//! Waits by length in powers of two of a microsecond, as `v$event_histogram_micro` counts them.

use waits::BUCKETS;

/// A percentile is quoted only with this many waits beyond it (docs/method.md, 4.4).
const BEYOND_MIN: f64 = 100.0;

/// Number k counts waits shorter than 2^k µs that fit no smaller one; the last counts all longer ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets([u64; BUCKETS]);

impl Default for Buckets {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Buckets {
    /// Adds the counts of a record's row; what lies beyond the last bucket belongs to the last.
    pub fn add(&mut self, counts: &[u64]) {
        for (index, count) in counts.iter().enumerate() {
            self.0[index.min(BUCKETS - 1)] += count;
        }
    }

    /// How many waits.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Every wait of bucket `index` is shorter, nanoseconds; infinite for the last.
    pub fn bound_ns(index: usize) -> f64 {
        if index + 1 < BUCKETS { 1e3 * 2f64.powi(index as i32) } else { f64::INFINITY }
    }

    /// The length below which the share `q` of the waits lies: the bound of a bucket, nanoseconds. None without waits.
    fn below(&self, q: f64) -> Option<f64> {
        let wanted = (q * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            *count > 0 && seen >= wanted
        };
        self.0.iter().position(reached).map(Self::bound_ns)
    }

    /// Half of the waits were shorter than this, nanoseconds.
    pub fn p50_ns(&self) -> Option<f64> {
        self.below(0.5)
    }

    /// 99 of 100 waits were shorter than this, nanoseconds, where at least 100 lie beyond.
    pub fn p99_ns(&self) -> Option<f64> {
        if self.count() as f64 * 0.01 >= BEYOND_MIN { self.below(0.99) } else { None }
    }

    /// All waits were shorter than this, nanoseconds.
    pub fn longest_ns(&self) -> Option<f64> {
        self.below(1.0)
    }

    /// First and last bucket that is not empty.
    pub fn span(&self) -> Option<(usize, usize)> {
        let first = self.0.iter().position(|count| *count > 0)?;
        Some((first, self.0.iter().rposition(|count| *count > 0)?))
    }

    /// Share of the waits in each bucket, 0–1.
    pub fn shares(&self) -> Vec<f64> {
        let all = self.count().max(1) as f64;
        self.0.iter().map(|count| *count as f64 / all).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_bounds_that_hold() {
        let mut buckets = Buckets::default();
        assert_eq!((buckets.p50_ns(), buckets.span()), (None, None));
        let mut counts = vec![0; 40];
        (counts[7], counts[10], counts[39]) = (9_000, 950, 50);
        buckets.add(&counts);
        assert_eq!(buckets.p50_ns(), Some(128e3));
        assert_eq!(buckets.p99_ns(), Some(1_024e3));
        assert_eq!(buckets.longest_ns(), Some(f64::INFINITY));
        assert_eq!(buckets.span(), Some((7, BUCKETS - 1)));
        let mut few = Buckets::default();
        few.add(&[0, 50]);
        assert_eq!((few.p50_ns(), few.p99_ns(), few.longest_ns()), (Some(2e3), None, Some(2e3)));
        assert!((buckets.shares().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
