//! A span or an instant in nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Nanoseconds: a span, or an instant since this process's origin ([`crate::clock::now`]).
/// Subtraction stops at zero: clocks on two cores may differ by a little, and a negative latency helps nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// From microseconds.
    pub const fn micros(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// From milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// From seconds; negative and not-a-number become zero.
    pub fn secs(seconds: f64) -> Self {
        Self((seconds * 1e9) as u64)
    }
    /// In seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// In microseconds.
    pub fn as_micros(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// As the standard library's type.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    /// Microseconds below 10 ms, then milliseconds, then seconds, then minutes: three significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.as_micros();
        match self.0 {
            0..10_000 => write!(f, "{us:.2} µs"),
            10_000..100_000 => write!(f, "{us:.1} µs"),
            100_000..10_000_000 => write!(f, "{us:.0} µs"),
            10_000_000..1_000_000_000 => write!(f, "{:.1} ms", us / 1e3),
            1_000_000_000..120_000_000_000 => write!(f, "{:.1} s", us / 1e6),
            _ => write!(f, "{}:{:02} min", self.0 / 60_000_000_000, self.0 / 1_000_000_000 % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_three_digits() {
        for (ns, text) in [
            (850, "0.85 µs"),
            (12_340, "12.3 µs"),
            (355_000, "355 µs"),
            (3_600_000, "3600 µs"),
            (20_000_000, "20.0 ms"),
            (2_500_000_000, "2.5 s"),
            (185_000_000_000, "3:05 min"),
        ] {
            assert_eq!(Nanos(ns).to_string(), text);
        }
    }

    #[test]
    fn subtraction_stops_at_zero() {
        assert_eq!(Nanos(1) - Nanos(2), Nanos(0));
    }
}
