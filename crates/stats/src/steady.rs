//! Is a series of rates steady, from where on, and does the machine underneath agree? (section 2)
//!
//! ```text
//! DETECT   window since the last change point: change point?  -> the window restarts behind it
//!          drift and halves shown to lie inside the margin, mechanism counters at rest
//!    |
//! MEASURE  some more seconds
//!    |
//! RE-VALIDATE the whole window: accepted, or back to DETECT
//! ```
//! Steady is *shown* (an equivalence test of the drift), never concluded from "no significant slope". Throughput alone falls
//! for the flash that fills in the background (pass 2 is slower than pass 1 and perfectly flat) in 88 % of cases; with
//! the mechanism counters in none. "Discard the first run" is right in 38 % of the scenarios of section 2.3.
//!
//! [`Detector`] decides while a run goes on; [`assess`] says what can be said of a finished series of any length.

mod detector;
mod mechanism;
mod period;
mod window;

pub use detector::{Detector, Settings, State};
pub use mechanism::{Hold, Mechanism};

use std::fmt;
use window::{Look, Window};

/// What kind of series it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Steady from the start.
    Flat,
    /// Slower first, then steady: caches filled.
    WarmUp,
    /// Faster first, then steady: a burst, a cliff, or heat. The later figure is the one to use.
    Slowdown,
    /// Up and down before it was steady, or steady to look at while a cache filled in the background.
    TwoStage,
    /// Steady with a rhythm.
    Periodic,
    /// Keeps moving in one direction.
    Drift,
    /// Nothing steady was found.
    NotSteady,
    /// Too short, or too noisy for its length, to say.
    TooShort,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Flat => "flat",
            Self::WarmUp => "warm-up",
            Self::Slowdown => "slowdown",
            Self::TwoStage => "two stages",
            Self::Periodic => "periodic",
            Self::Drift => "drift",
            Self::NotSteady => "not steady",
            Self::TooShort => "too short to say",
        })
    }
}

/// What can be said about a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// Its kind.
    pub class: Class,
    /// Was it shown to be steady, rather than merely not shown to be otherwise?
    pub proven: bool,
    /// Slope inside the window, percent per minute.
    pub drift_percent_per_minute: f64,
    /// First interval of the window that counts.
    pub window_start: usize,
    /// Mean rate over the window, in the unit of the series.
    pub mean: f64,
    /// Length of the rhythm in intervals, when there is one.
    pub period: Option<usize>,
}

/// Below this length a window is held against its own drift only, not against two minutes of it, seconds.
const SHORT_SECONDS: f64 = 60.0;
/// Two minutes of drift must fit into the margin.
const PROJECTION_SECONDS: f64 = 120.0;

/// Judges a finished series of `rates` per second, one value per interval of `interval_seconds`; `delta`: the margin, 0.03 is 3 %.
///
/// A series below a minute is judged on its own length: "flat" then means that it did not move *while it was watched*. Below
/// eight intervals, and where the noise hides a drift as large as the margin, the class is [`Class::TooShort`].
pub fn assess(rates: &[f64], interval_seconds: f64, delta: f64) -> Assessment {
    const INTERVALS_MIN: usize = 8;
    let plain_mean = if rates.is_empty() { 0.0 } else { crate::sample::mean(rates) };
    let short = Assessment {
        class: Class::TooShort,
        proven: false,
        drift_percent_per_minute: 0.0,
        window_start: 0,
        mean: plain_mean,
        period: None,
    };
    if rates.len() < INTERVALS_MIN || rates.iter().any(|r| !r.is_finite()) || plain_mean <= 0.0 {
        return short;
    }
    let log: Vec<f64> = rates.iter().map(|r| r.max(1e-9).ln()).collect();
    let seconds = rates.len() as f64 * interval_seconds;
    let window = Window {
        log: &log,
        // Batches of five seconds where there is time for it, else as long as leaves a dozen of them.
        batch: ((5.0 / interval_seconds).round() as usize).min(rates.len() / 12).max(1),
        period: period::dominant(&log, (120.0 / interval_seconds) as usize),
        projection: if seconds < SHORT_SECONDS {
            0
        } else {
            (PROJECTION_SECONDS / interval_seconds).round() as usize
        },
        delta: delta.ln_1p(),
        batch_double_max: (20.0 / interval_seconds).round() as usize,
    };
    let found = window.look(0);
    let Some(fit) = found.fit else { return short };
    let class = match found.look {
        Look::Short => Class::TooShort,
        Look::Steady | Look::Plausible if window.period.is_some() => Class::Periodic,
        Look::Steady | Look::Plausible => found.history(),
        // It moved by more than the noise explains, or by too little to matter and too noisily to tell.
        Look::Moving if fit.drifts(window.delta) => Class::Drift,
        Look::Moving if seconds < SHORT_SECONDS => Class::TooShort,
        Look::Moving => Class::NotSteady,
    };
    Assessment {
        class,
        proven: found.look == Look::Steady,
        drift_percent_per_minute: fit.percent_per_minute(interval_seconds),
        window_start: found.start,
        mean: fit.mean.exp(),
        period: window.period,
    }
}

#[cfg(test)]
mod tests;
