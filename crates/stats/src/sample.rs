//! The arithmetic of a sample: mean, spread, median, line, memory. Everything above is built from these.

/// Arithmetic mean; NaN for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Unbiased variance (divisor n − 1), two passes; zero below two values.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let m = mean(values);
    values.iter().map(|v| (v - m).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// Standard deviation, the root of [`variance`].
pub fn deviation(values: &[f64]) -> f64 {
    variance(values).sqrt()
}

/// Standard deviation that one wild value of four, or nearly half of many, cannot move: Qₙ, the quartile of the distances of all
/// pairs, scaled so that it is right on average for normal values; zero below two values. Source: Rousseeuw & Croux 1993, J. Am. Stat.
/// Assoc. 88; the factors for few values are those of R's `robustbase::Qn`.
pub fn robust_deviation(values: &[f64]) -> f64 {
    const NORMAL: f64 = 2.2219;
    const FEW: [f64; 8] = [0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872];
    let n = values.len();
    let mut distances: Vec<f64> =
        (0..n).flat_map(|i| (0..i).map(move |j| (values[i] - values[j]).abs())).collect();
    distances.sort_by(f64::total_cmp);
    let half = n / 2 + 1;
    let Some(quartile) = distances.get((half * (half - 1) / 2).saturating_sub(1)) else { return 0.0 };
    let many = n as f64 / (n as f64 + if n.is_multiple_of(2) { 3.8 } else { 1.4 });
    quartile * NORMAL * FEW.get(n - 2).copied().unwrap_or(many)
}

/// Median; the mean of the middle two for an even count; NaN for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The `q`-quantile by linear interpolation between order statistics (R's type 7, NumPy's default).
pub fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// Geometric mean of positive values; NaN when empty or when one is not positive.
pub fn geometric_mean(values: &[f64]) -> f64 {
    let log: f64 = values.iter().map(|v| if *v > 0.0 { v.ln() } else { f64::NAN }).sum();
    (log / values.len() as f64).exp()
}

/// Lag-1 autocorrelation; zero for a constant.
pub fn lag1(values: &[f64]) -> f64 {
    let m = mean(values);
    let total: f64 = values.iter().map(|v| (v - m).powi(2)).sum();
    if total <= 0.0 {
        return 0.0;
    }
    values.windows(2).map(|w| (w[0] - m) * (w[1] - m)).sum::<f64>() / total
}

/// A straight line by least squares through `(0, y₀), (1, y₁), …`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Value at index 0.
    pub intercept: f64,
    /// Change per index.
    pub slope: f64,
    /// Standard error of the slope, residuals taken as independent; zero below three points.
    pub slope_error: f64,
}

/// Least squares through `values` against their index. A constant for fewer than two values.
pub fn line(values: &[f64]) -> Line {
    let n = values.len() as f64;
    let (x_mean, y_mean) = ((n - 1.0) / 2.0, mean(values));
    let xx = n * (n * n - 1.0) / 12.0;
    if values.len() < 2 {
        return Line { intercept: y_mean, slope: 0.0, slope_error: 0.0 };
    }
    let xy: f64 = values.iter().enumerate().map(|(i, y)| (i as f64 - x_mean) * (y - y_mean)).sum();
    let slope = xy / xx;
    let intercept = y_mean - slope * x_mean;
    let residual: f64 =
        values.iter().enumerate().map(|(i, y)| (y - intercept - slope * i as f64).powi(2)).sum();
    let slope_error = if values.len() > 2 { (residual / (n - 2.0) / xx).sqrt() } else { 0.0 };
    Line { intercept, slope, slope_error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_scipy() {
        // scipy.stats.linregress(range(6), y), numpy.var(ddof=1), numpy.quantile
        let y = [2.0, 3.5, 3.0, 5.0, 4.5, 7.0];
        let l = line(&y);
        assert!((l.slope - 0.857_142_857_142_857_2).abs() < 1e-14);
        assert!((l.intercept - 2.023_809_523_809_523_7).abs() < 1e-14);
        assert!((l.slope_error - 0.188_080_168_172_680_94).abs() < 1e-14);
        assert!((variance(&y) - 3.066_666_666_666_666_4).abs() < 1e-14);
        assert!((quantile(&y, 0.9) - 6.0).abs() < 1e-12 && (median(&y) - 4.0).abs() < 1e-14);
    }

    #[test]
    fn the_robust_deviation_is_right_on_average_and_deaf_to_one_wild_value() {
        let mut rng = units::Rng::new(units::Seed(7));
        for n in [2, 4, 7, 20, 33] {
            let draws = (0..4000).map(|_| {
                let values: Vec<f64> = (0..n).map(|_| 3.0 + 0.5 * rng.normal()).collect();
                robust_deviation(&values)
            });
            let average = draws.sum::<f64>() / 4000.0;
            assert!((average / 0.5 - 1.0).abs() < 0.05, "{n} values: {average}");
        }
        assert!(robust_deviation(&[1.0, 1.1, 90.0, 0.9]) < 0.5);
        assert_eq!((robust_deviation(&[]), robust_deviation(&[4.0])), (0.0, 0.0));
    }

    #[test]
    fn small_samples_do_not_divide_by_zero() {
        assert_eq!(variance(&[4.0]), 0.0);
        assert_eq!(line(&[4.0]).slope, 0.0);
        assert_eq!(lag1(&[1.0, 1.0, 1.0]), 0.0);
        assert!(mean(&[]).is_nan() && median(&[]).is_nan() && geometric_mean(&[1.0, 0.0]).is_nan());
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
    }
}
