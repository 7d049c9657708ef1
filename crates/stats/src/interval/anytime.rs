//! Looking as often as one likes: the time-uniform t confidence sequence (section 5.4).
//!
//! A mixture e-value with effect-size prior N(µ₀, gσ²) and right-Haar prior on σ; an interval that holds at *all* times at once
//! with the stated probability. It buys open-ended "until decided" runs; its price is about 1.65 × the width of a fixed
//! interval at 10–20 blocks. Checking a plain t after every block instead gave 10–20 % false verdicts.
//!
//! Source: Wang & Ramdas 2023, arXiv 2310.03722; Lai 1976.

use crate::sample;

/// Interval of the mean of `d` that holds at every n at once with probability `1 − alpha`; infinite until there are enough
/// values. `g`: prior variance of the effect in units of σ²; 1 is the default of the method.
pub fn confidence_sequence(d: &[f64], alpha: f64, g: f64) -> (f64, f64) {
    let n = d.len() as f64;
    let a = ((1.0 + n * g).sqrt() / alpha).powf(2.0 / n);
    if d.len() < 2 || a >= 1.0 + n * g {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let u = (a - 1.0) / (1.0 - a / (1.0 + n * g));
    let half = ((n - 1.0) * u * sample::variance(d) / n).sqrt();
    let mean = sample::mean(d);
    (mean - half, mean + half)
}

/// Evidence against "the mean of `d` is `mu0`": reject at level alpha when it reaches `1 / alpha`, at any n. 1 below two values.
pub fn e_value(d: &[f64], mu0: f64, g: f64) -> f64 {
    if d.len() < 2 {
        return 1.0;
    }
    let n = d.len() as f64;
    let nu = n - 1.0;
    let t2 = n * (sample::mean(d) - mu0).powi(2) / sample::variance(d).max(f64::MIN_POSITIVE);
    (1.0 + n * g).powf(-0.5) * ((1.0 + t2 / nu) / (1.0 + t2 / (nu * (1.0 + n * g)))).powf(n / 2.0)
}
