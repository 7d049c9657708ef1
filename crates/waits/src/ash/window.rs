//! Average active sessions over a window of time.

use super::{Sample, Tick};
use std::fmt;
use std::sync::Arc;
use units::Nanos;

/// The share of planned ticks that may be missing from a window that has averages.
pub const MISSED_MAX: f64 = 0.05;

/// A window that has no averages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    /// It has no length, or no tick.
    Empty,
    /// More than [`MISSED_MAX`] of its ticks are missing.
    Missed {
        /// Ticks that should be there, and are not.
        missed: f64,
        /// Ticks that should be there.
        planned: f64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no sample was taken in this window"),
            Self::Missed { missed, planned } => write!(
                f,
                "{missed:.0} of {planned:.0} planned samples are missing from this window, more than {:.0} %: the sampler did \
                 not get a processor, or the ring of samples was too small; choose another window or a longer interval",
                MISSED_MAX * 100.0
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// The ticks of a time from `from` to `to`, complete enough for averages.
///
/// A tick stands for the time since the one before; at the edges it counts for as much of that as lies in the window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Each with the part of its weight that lies in the window.
    ticks: Vec<(Arc<Tick>, Nanos)>,
    from: Nanos,
    to: Nanos,
    missed: f64,
}

impl Window {
    /// From `from` to `to`, on the registry's clock; `ticks`: oldest first, as [`super::Sampler::recent`] and readers give them.
    ///
    /// # Errors
    /// [`Refused`] when it is empty or too many ticks are missing.
    pub fn over(ticks: &[Arc<Tick>], from: Nanos, to: Nanos) -> Result<Self, Refused> {
        let inside = |tick: &Arc<Tick>| {
            let part = tick.real.min(to) - (tick.real - tick.weight).max(from);
            (part > Nanos(0)).then(|| (Arc::clone(tick), part))
        };
        let ticks: Vec<_> = ticks.iter().filter_map(inside).collect();
        let Some((last, _)) = ticks.last() else { return Err(Refused::Empty) };
        let interval = last.interval.0 as f64;
        let (mut seen, mut missed, mut covered) = (0.0, 0.0, Nanos(0));
        for (tick, part) in &ticks {
            let share = part.0 as f64 / tick.weight.0 as f64;
            seen += share;
            missed += share * f64::from(tick.missed);
            covered += *part;
        }
        missed += (to - from - covered).0 as f64 / interval;
        let planned = seen + missed;
        if missed > planned * MISSED_MAX {
            return Err(Refused::Missed { missed, planned });
        }
        Ok(Self { ticks, from, to, missed })
    }

    /// All that the ticks cover.
    ///
    /// # Errors
    /// As [`Window::over`].
    pub fn all(ticks: &[Arc<Tick>]) -> Result<Self, Refused> {
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { return Err(Refused::Empty) };
        Self::over(ticks, first.real - first.weight, last.real)
    }

    /// The last `length` that the ticks cover, or less when they do not reach so far back.
    ///
    /// # Errors
    /// As [`Window::over`].
    pub fn last(ticks: &[Arc<Tick>], length: Nanos) -> Result<Self, Refused> {
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { return Err(Refused::Empty) };
        Self::over(ticks, (last.real - length).max(first.real - first.weight), last.real)
    }

    /// Its length.
    pub fn length(&self) -> Nanos {
        self.to - self.from
    }

    /// Ticks that should be there and are not; fewer than 5 % of all.
    pub fn missed(&self) -> f64 {
        self.missed
    }

    /// Average active sessions among the rows that `which` accepts: the sum of their weights over the length.
    pub fn average(&self, which: impl Fn(&Sample) -> bool) -> f64 {
        self.time(which).0 as f64 / self.length().0 as f64
    }

    /// The time that the rows which `which` accepts stand for: of all of them, DB time as sampled.
    pub fn time(&self, which: impl Fn(&Sample) -> bool) -> Nanos {
        let rows = |tick: &Tick| tick.rows.iter().filter(|row| which(row)).count() as u64;
        Nanos(self.ticks.iter().map(|(tick, part)| part.0 * rows(tick)).sum())
    }

    /// Its rows with the time that each stands for.
    pub fn rows(&self) -> impl Iterator<Item = (&Sample, Nanos)> {
        self.ticks.iter().flat_map(|(tick, part)| tick.rows.iter().map(|row| (row, *part)))
    }
}
