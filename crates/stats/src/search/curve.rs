//! The whole curve from single points: for the chart, for the power point, and as a station of the user's workload.

use super::{Point, Stage};
use crate::sample;

/// Rate per measured n: the confirmation where there is one, otherwise the geometric mean of all its points; ascending n.
fn per_n(points: &[Point]) -> Vec<(u32, f64)> {
    let mut ns: Vec<u32> = points.iter().filter(|p| p.rate > 0.0).map(|p| p.n).collect();
    ns.sort_unstable();
    ns.dedup();
    ns.into_iter()
        .map(|n| {
            let of = |fits: &dyn Fn(&Point) -> bool| -> Vec<f64> {
                points.iter().filter(|p| p.n == n && p.rate > 0.0 && fits(p)).map(|p| p.rate).collect()
            };
            let confirmed = of(&|p| p.stage == Stage::Confirm);
            let rates = if confirmed.is_empty() { of(&|_| true) } else { confirmed };
            (n, sample::geometric_mean(&rates))
        })
        .collect()
}

/// Operations per second for n = 1 ..= `n_max` by log-log interpolation between the measured points: index 0 is n = 1.
///
/// Below the first point the rate is proportional to n; beyond the last it stays. Empty when there are no points. This is
/// the flow-equivalent server of section 8.
pub fn curve(points: &[Point], n_max: u32) -> Vec<f64> {
    let known = per_n(points);
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return Vec::new() };
    (1..=n_max)
        .map(|n| {
            let above = known.partition_point(|(m, _)| *m < n);
            match (above, known.get(above)) {
                (0, _) => first.1 * f64::from(n) / f64::from(first.0),
                (_, None) => last.1,
                (i, Some((n1, x1))) => {
                    let (n0, x0) = known[i - 1];
                    let part = (f64::from(n) / f64::from(n0)).ln() / (f64::from(*n1) / f64::from(n0)).ln();
                    (x0.ln() + part * (x1 / x0).ln()).exp()
                }
            }
        })
        .collect()
}

/// The n with the greatest rate² / n among those measured: throughput over latency. 1 when nothing was measured.
pub(super) fn power(points: &[Point]) -> u32 {
    let value = |(n, rate): &(u32, f64)| rate * rate / f64::from(*n);
    per_n(points).iter().max_by(|a, b| value(a).total_cmp(&value(b))).map_or(1, |best| best.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(n: u32, rate: f64, stage: Stage) -> Point {
        Point { n, rate, latency_ns: 0.0, sd: 0.0, seconds: 1.0, stage, round: 0 }
    }

    #[test]
    fn goes_through_its_points() {
        let points = [
            point(2, 100.0, Stage::Bracket),
            point(8, 400.0, Stage::Bracket),
            point(8, 300.0, Stage::Confirm),
        ];
        let x = curve(&points, 16);
        assert!((x[0] - 50.0).abs() < 1e-9, "proportional below the first");
        assert!((x[1] - 100.0).abs() < 1e-9 && (x[7] - 300.0).abs() < 1e-9, "the confirmation decides");
        assert!((x[3] - (100.0f64 * 300.0).sqrt()).abs() < 1e-9, "4 lies half-way between 2 and 8");
        assert!((x[15] - 300.0).abs() < 1e-9 && x.len() == 16);
        assert!(curve(&[], 4).is_empty());
    }

    #[test]
    fn power_balances_rate_and_latency() {
        let points = [
            point(1, 100.0, Stage::Bracket),
            point(4, 390.0, Stage::Bracket),
            point(16, 420.0, Stage::Bracket),
        ];
        assert_eq!(power(&points), 4);
        assert_eq!(power(&[]), 1);
    }
}
