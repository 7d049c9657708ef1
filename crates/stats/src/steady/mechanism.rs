//! What moves underneath while throughput looks flat: caches that fill, flash never written before, heat, burst credit.

use crate::sample;
use std::fmt;

/// The counters of one interval; `None` where there is no such counter. Every one that exists must be at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mechanism {
    /// M1: physical reads per logical read.
    pub physical_per_request: Option<f64>,
    /// M2: share of the device's bytes that are writes nobody asked for, while the workload only reads.
    pub background_write_share: Option<f64>,
    /// M3: dirty and writeback pages, bytes.
    pub dirty_bytes: Option<f64>,
    /// M3: share of the target never overwritten since it was prepared (write tests).
    pub never_overwritten_share: Option<f64>,
    /// M4: share of the target's blocks touched so far (cached read tests).
    pub coverage: Option<f64>,
    /// M5: temperature of the device, °C.
    pub temperature_celsius: Option<f64>,
    /// M5: throttle events so far.
    pub throttle_events: Option<f64>,
    /// M6: share of the burst budget that is left.
    pub burst_left: Option<f64>,
}

/// Why a window that looks steady is not accepted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hold {
    /// M1: a cache is still warming.
    CacheFilling,
    /// M2: the device writes on its own account: it fills a cache or collects garbage.
    BackgroundWrites,
    /// M3: dirty pages are piling up or draining.
    DirtyPages,
    /// M3: a part of the flash has never been overwritten, and is faster than it will be.
    NeverOverwritten,
    /// M4: not every block has been read yet.
    NotCovered,
    /// M5: it is still warming up, or was throttled.
    Heat,
    /// M6: it lives on credit.
    BurstBudget,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::CacheFilling => "a cache is still filling",
            Self::BackgroundWrites => "the device writes in the background",
            Self::DirtyPages => "dirty pages have not settled",
            Self::NeverOverwritten => "a part of the flash was never overwritten",
            Self::NotCovered => "not every block was read yet",
            Self::Heat => "the device is still growing warmer, or was throttled",
            Self::BurstBudget => "the burst budget is being used up",
        })
    }
}

/// Means of the first and of the last third.
struct Thirds {
    first: f64,
    last: f64,
}

/// The values of one counter over a window, and its thirds; `None` when the counter is absent or the window empty.
fn counter(window: &[Mechanism], field: fn(&Mechanism) -> Option<f64>) -> Option<(Vec<f64>, Thirds)> {
    /// A third is at least this long.
    const THIRD_MIN: usize = 10;
    let values: Vec<f64> = window.iter().filter_map(field).collect();
    let third = (values.len() / 3).max(THIRD_MIN).min(values.len());
    if values.is_empty() {
        return None;
    }
    let thirds =
        Thirds { first: sample::mean(&values[..third]), last: sample::mean(&values[values.len() - third..]) };
    Some((values, thirds))
}

/// The first mechanism that is not at rest over `window`, if any (section 2.2, M1–M6).
pub(super) fn hold(window: &[Mechanism]) -> Option<Hold> {
    let moved = |t: &Thirds, floor: f64| ((t.last + floor) / (t.first + floor)).ln().abs();
    let checks: [(Hold, bool); 7] = [
        (
            Hold::CacheFilling,
            counter(window, |m| m.physical_per_request)
                .is_some_and(|(_, t)| moved(&t, 0.005) > 0.10 && (t.last - t.first).abs() > 0.002),
        ),
        (
            Hold::BackgroundWrites,
            counter(window, |m| m.background_write_share).is_some_and(|(_, t)| t.last > 0.05),
        ),
        (
            Hold::DirtyPages,
            counter(window, |m| m.dirty_bytes).is_some_and(|(_, t)| {
                moved(&t, 1.0) > 0.10 && (t.last - t.first).abs() > f64::from(16 << 20)
            }),
        ),
        (
            Hold::NeverOverwritten,
            latest(window, |m| m.never_overwritten_share).is_some_and(|share| share > 0.02),
        ),
        (Hold::NotCovered, latest(window, |m| m.coverage).is_some_and(|share| share < 0.95)),
        (Hold::Heat, heats(window)),
        (Hold::BurstBudget, counter(window, |m| m.burst_left).is_some_and(|(_, t)| t.last < t.first - 0.002)),
    ];
    checks.into_iter().find(|(_, holds)| *holds).map(|(hold, _)| hold)
}

fn latest(window: &[Mechanism], field: fn(&Mechanism) -> Option<f64>) -> Option<f64> {
    window.iter().rev().find_map(field)
}

fn heats(window: &[Mechanism]) -> bool {
    const KELVIN_MAX: f64 = 3.0;
    let span = |field| {
        counter(window, field).map_or(0.0, |(values, _): (Vec<f64>, Thirds)| {
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            most - values.iter().copied().fold(f64::INFINITY, f64::min)
        })
    };
    span(|m: &Mechanism| m.temperature_celsius) >= KELVIN_MAX || span(|m: &Mechanism| m.throttle_events) > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(make: impl Fn(f64) -> Mechanism, expected: Option<Hold>) {
        let window: Vec<Mechanism> = (0..90).map(|i| make(f64::from(i) / 89.0)).collect();
        assert_eq!(hold(&window), expected, "{:?} … {:?}", window[0], window[89]);
    }

    #[test]
    fn each_mechanism_holds_on_its_own() {
        let none = Mechanism::default();
        check(|_| none, None);
        check(|t| Mechanism { physical_per_request: Some(0.5 - 0.3 * t), ..none }, Some(Hold::CacheFilling));
        check(|t| Mechanism { physical_per_request: Some(0.001 * t), ..none }, None);
        check(|_| Mechanism { background_write_share: Some(0.3), ..none }, Some(Hold::BackgroundWrites));
        check(|t| Mechanism { background_write_share: Some(0.3 * (1.0 - 2.0 * t).max(0.0)), ..none }, None);
        check(|t| Mechanism { dirty_bytes: Some(1e9 * (1.0 + t)), ..none }, Some(Hold::DirtyPages));
        check(|t| Mechanism { dirty_bytes: Some(1e6 * (1.0 + t)), ..none }, None);
        check(
            |t| Mechanism { never_overwritten_share: Some(1.0 - 0.9 * t), ..none },
            Some(Hold::NeverOverwritten),
        );
        check(|t| Mechanism { never_overwritten_share: Some(1.0 - t), ..none }, None);
        check(|t| Mechanism { coverage: Some(0.9 * t), ..none }, Some(Hold::NotCovered));
        check(|t| Mechanism { coverage: Some(t), ..none }, None);
        check(|t| Mechanism { temperature_celsius: Some(40.0 + 5.0 * t), ..none }, Some(Hold::Heat));
        check(|t| Mechanism { throttle_events: Some(t.round()), ..none }, Some(Hold::Heat));
        check(|t| Mechanism { burst_left: Some(0.9 - 0.1 * t), ..none }, Some(Hold::BurstBudget));
        assert_eq!(hold(&[]), None);
    }
}
