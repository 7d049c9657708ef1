//! Latency histograms: which belong together, what may be quoted from them, and how they are drawn.

use super::evidence::Evidence;
use stats::histogram::Histogram;

/// Steps of a drawn histogram for each factor of ten of latency.
const STEPS_PER_DECADE: f64 = 16.0;
/// A percentile is quoted only with this many latencies beyond it (docs/method.md, 4.4).
const BEYOND_MIN: f64 = 100.0;

/// The latencies of one kind of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// How many.
    pub count: u64,
    /// Exact mean, nanoseconds.
    pub mean_ns: f64,
    /// Median, nanoseconds.
    pub p50_ns: f64,
    /// 99th percentile, where at least 100 latencies lie beyond it.
    pub p99_ns: Option<f64>,
    /// 99.9th percentile, likewise.
    pub p999_ns: Option<f64>,
    /// The longest.
    pub max_ns: f64,
    /// Share of the latencies in each step of equal ratio: `(low, high, share)`, ascending, gaps left out.
    pub steps: Vec<(f64, f64, f64)>,
}

impl Shape {
    /// From a histogram; `None` when it is empty.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let count = histogram.count();
        if count == 0 {
            return None;
        }
        let quoted = |q: f64| (count as f64 * (1.0 - q) >= BEYOND_MIN).then(|| histogram.quantile(q) as f64);
        Some(Self {
            count,
            mean_ns: histogram.mean(),
            p50_ns: histogram.quantile(0.5) as f64,
            p99_ns: quoted(0.99),
            p999_ns: quoted(0.999),
            max_ns: histogram.max() as f64,
            steps: steps(histogram),
        })
    }

    /// From 0.1 % to 99.9 % of the latencies, nanoseconds: what an axis must show.
    pub fn span(&self) -> (f64, f64) {
        let mut below = 0.0;
        let mut low = None;
        let mut high = self.max_ns;
        for (from, to, share) in &self.steps {
            below += share;
            if low.is_none() && below >= 0.001 {
                low = Some(*from);
            }
            if below >= 0.999 {
                high = *to;
                break;
            }
        }
        (low.unwrap_or(self.p50_ns).max(1.0), high)
    }
}

/// Buckets gathered into steps of equal ratio. A bucket that crosses an edge is divided by its length.
fn steps(histogram: &Histogram) -> Vec<(f64, f64, f64)> {
    let total = histogram.count() as f64;
    let edge = |step: i64| 10f64.powf(step as f64 / STEPS_PER_DECADE);
    let mut shares: std::collections::BTreeMap<i64, f64> = std::collections::BTreeMap::new();
    for (low, high, count) in histogram.buckets() {
        let (low, high) = ((low as f64).max(1.0), (high as f64).max(1.0 + low as f64));
        let first = (low.log10() * STEPS_PER_DECADE).floor() as i64;
        let last = (high.log10() * STEPS_PER_DECADE).ceil() as i64;
        for step in first..last.max(first + 1) {
            let part = (high.min(edge(step + 1)) - low.max(edge(step))).max(0.0) / (high - low);
            if part > 0.0 {
                *shares.entry(step).or_default() += part * count as f64 / total;
            }
        }
    }
    shares.into_iter().map(|(step, share)| (edge(step), edge(step + 1), share)).collect()
}

/// All histograms of the given phases merged, never their percentiles averaged. A histogram that cannot be decoded is
/// left out: the record checks count against count (F4), the report does not guess.
pub fn merged<'e>(evidence: &'e Evidence, phases: impl Iterator<Item = i64> + 'e) -> Histogram {
    let mut sum = Histogram::new();
    for row in phases.filter_map(|phase| evidence.histograms.get(&phase)).flatten() {
        if let Ok(one) = Histogram::decode(&row.encoded) {
            sum.merge(&one);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_keeps_all_its_mass_and_quotes_only_what_it_may() {
        let mut histogram = Histogram::new();
        for i in 0..1_000u64 {
            histogram.record(100_000 + i * 100);
        }
        let shape = Shape::of(&histogram).expect("not empty");
        let mass: f64 = shape.steps.iter().map(|s| s.2).sum();
        assert!((mass - 1.0).abs() < 1e-9, "{mass}");
        assert_eq!(shape.p99_ns, None, "10 latencies beyond are too few");
        assert!((shape.p50_ns / 150_000.0 - 1.0).abs() < 0.02);
        let (low, high) = shape.span();
        assert!(low <= 100_000.0 && high >= 199_000.0, "{low} {high}");
        histogram.record_n(150_000, 99_000);
        assert!(Shape::of(&histogram).expect("not empty").p99_ns.is_some());
        assert_eq!(Shape::of(&Histogram::new()), None);
    }
}
