//! Does the series have a rhythm? Checkpoints do; their batches must be as long as the rhythm.

use crate::sample;

/// Length of the dominant rhythm of `log` in intervals: the first clear peak of its autocorrelation, below `lag_max`.
///
/// The line through the series is taken out first. Direct sums; the series is at most a few hundred long.
pub(super) fn dominant(log: &[f64], lag_max: usize) -> Option<usize> {
    /// A peak must be this high …
    const PEAK_MIN: f64 = 0.25;
    /// … the first lobe must have died out below this …
    const LOBE_END: f64 = 0.05;
    /// … a peak this near to the highest is as good …
    const ABOUT: f64 = 0.85;
    /// … and three rhythms must fit.
    const RHYTHMS: usize = 3;
    let n = log.len();
    let last = lag_max.min(n / RHYTHMS);
    if last < 8 {
        return None;
    }
    let line = sample::line(log);
    let x: Vec<f64> =
        log.iter().enumerate().map(|(i, y)| y - line.intercept - line.slope * i as f64).collect();
    let power: f64 = x.iter().map(|v| v * v).sum();
    if power <= 0.0 {
        return None;
    }
    let correlation: Vec<f64> = (0..last)
        .map(|lag| {
            let products: f64 = x.iter().zip(&x[lag..]).map(|(a, b)| a * b).sum();
            products / power * n as f64 / (n - lag) as f64
        })
        .collect();
    let trough = (1..last).find(|lag| correlation[*lag] < LOBE_END)?;
    let highest = (trough..last).map(|lag| correlation[lag]).fold(f64::NEG_INFINITY, f64::max);
    // Twice the rhythm correlates as well as the rhythm: take the first peak that is about as high.
    let slope_up = (trough..last).find(|lag| correlation[*lag] >= ABOUT * highest)?;
    let peak = (slope_up..last - 1).find(|lag| correlation[lag + 1] <= correlation[*lag]).unwrap_or(last - 1);
    let high = correlation[peak] > PEAK_MIN.max(3.0 / (n as f64).sqrt());
    (high && peak > trough && last > trough + 2 && peak < last - 1).then_some(peak)
}
