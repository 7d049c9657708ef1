//! The only place that reads a clock; the processor's counter is read by crate `io` for it ([`Clock::Counter`]).

use crate::{Counter, Nanos};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Monotonic time since the first call in this process. About 25 ns (vDSO); the hot loops call it once per batch.
#[inline]
pub fn now() -> Nanos {
    let origin = ORIGIN.get_or_init(Instant::now);
    Nanos(origin.elapsed().as_nanos() as u64)
}

/// Where code gets the time from, so that the same code runs in a simulation.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// [`now`].
    #[default]
    Real,
    /// As [`now`], by the processor's counter.
    Counter(&'static Counter),
    /// A simulation's time: each look at it takes a microsecond, so it always moves, and always the same way.
    Steps(Arc<AtomicU64>),
}

impl Clock {
    /// A simulation's clock at zero.
    pub fn steps() -> Self {
        Self::Steps(Arc::default())
    }

    /// Whether threads can sleep by it; a simulation's is moved by looks alone.
    pub const fn is_real(&self) -> bool {
        !matches!(self, Self::Steps(_))
    }

    /// Monotonic time.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self {
            Self::Real => now(),
            Self::Counter(counter) => counter.now(),
            Self::Steps(at) => Nanos(at.fetch_add(1_000, Ordering::Relaxed)),
        }
    }

    /// Seconds since 1970-01-01 UTC; a simulation begins there and then.
    pub fn unix_seconds(&self) -> u64 {
        match self {
            Self::Real | Self::Counter(_) => unix_seconds(),
            Self::Steps(_) => self.now().0 / 1_000_000_000,
        }
    }

    /// The time of day in UTC, RFC 3339 with seconds.
    pub fn utc(&self) -> String {
        utc_at(self.unix_seconds())
    }
}

/// Sleeps until [`now`] has reached `instant`; returns at once when it has passed.
pub fn sleep_until(instant: Nanos) {
    let left = instant - now();
    if left.0 > 0 {
        std::thread::sleep(left.duration());
    }
}

/// Sleeps for `span`.
pub fn sleep(span: Nanos) {
    std::thread::sleep(span.duration());
}

/// Seconds since 1970-01-01 UTC.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The time of day in UTC, RFC 3339 with seconds: `2026-11-21T09:30:00Z`.
pub fn utc() -> String {
    utc_at(unix_seconds())
}

/// RFC 3339 of `seconds` since 1970-01-01 UTC.
///
/// Source for the calendar: H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
pub fn utc_at(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_253_400, "2026-11-21T09:30:00Z"),
        ] {
            assert_eq!(utc_at(seconds), text);
        }
    }

    #[test]
    fn never_runs_backwards() {
        let a = now();
        assert!(now() >= a);
    }
}
