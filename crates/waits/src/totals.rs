//! Exact totals: how often and how long, and the histogram, of each event.
//!
//! What a session has counted so far is in its place (`place.rs`); these are the copies that readers get.

use crate::event::Event;
use crate::{Part, SessionKind};
use units::Nanos;

/// Buckets of a histogram. Bucket `n` counts waits below 2ⁿ µs that no smaller bucket counts, `n` = 0 to 32; the last one
/// counts those of 2³² µs (71 minutes) and more.
pub const BUCKETS: usize = 34;

/// The bucket of a wait: as `v$event_histogram_micro` has them.
#[inline]
pub const fn bucket(waited: Nanos) -> usize {
    let bits = (u64::BITS - (waited.0 / 1_000).leading_zeros()) as usize;
    if bits < BUCKETS { bits } else { BUCKETS - 1 }
}

/// `wait_time_micro`: the bound of a bucket in microseconds; every wait in it is shorter. `u64::MAX` for the last.
///
/// # Panics
/// When there is no such bucket.
pub const fn bucket_micros(bucket: usize) -> u64 {
    assert!(bucket < BUCKETS, "there is no such bucket");
    if bucket == BUCKETS - 1 { u64::MAX } else { 1 << bucket }
}

/// All waits for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTotals {
    /// How many ended.
    pub waits: u64,
    /// How many of them because of their timeout.
    pub timeouts: u64,
    /// How long they were together.
    pub waited: Nanos,
    /// The longest one, ever: a difference of totals cannot tell that of a period.
    pub longest: Nanos,
    /// Waits per bucket; their sum is `waits`.
    pub histogram: [u64; BUCKETS],
}

impl Default for EventTotals {
    fn default() -> Self {
        Self { waits: 0, timeouts: 0, waited: Nanos(0), longest: Nanos(0), histogram: [0; BUCKETS] }
    }
}

impl EventTotals {
    /// The mean wait; zero when there was none.
    pub fn average(&self) -> Nanos {
        Nanos(self.waited.0.checked_div(self.waits).unwrap_or(0))
    }

    /// The bound in microseconds below which the share `part` (0 to 1) of the waits lies: a power of two. `None` without waits.
    pub fn percentile_micros(&self, part: f64) -> Option<u64> {
        let wanted = (part.clamp(0.0, 1.0) * self.waits as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.histogram.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= wanted {
                return Some(bucket_micros(index));
            }
        }
        None
    }

    /// Both together.
    pub(crate) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.timeouts += other.timeouts;
        self.waited += other.waited;
        self.longest = self.longest.max(other.longest);
        for (sum, more) in self.histogram.iter_mut().zip(&other.histogram) {
            *sum += more;
        }
    }

    /// What came since `earlier`.
    fn since(&self, earlier: &Self) -> Self {
        let mut histogram = self.histogram;
        for (count, before) in histogram.iter_mut().zip(&earlier.histogram) {
            *count = count.saturating_sub(*before);
        }
        Self {
            waits: self.waits.saturating_sub(earlier.waits),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            waited: self.waited - earlier.waited,
            longest: self.longest,
            histogram,
        }
    }
}

/// Rows of counters that a session has: its events, then the parts of `log file sync`.
pub(crate) const ROWS: usize = Event::COUNT + Part::ALL.len();

/// The totals of many sessions, or of one: each event, and the parts of `log file sync`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals(Vec<EventTotals>);

impl Default for Totals {
    fn default() -> Self {
        Self(vec![EventTotals::default(); ROWS])
    }
}

impl Totals {
    /// Of an event.
    pub fn event(&self, event: Event) -> &EventTotals {
        &self.0[event.number()]
    }

    /// Of a part of `log file sync`.
    pub fn part(&self, part: Part) -> &EventTotals {
        &self.0[part.row()]
    }

    /// Events that were waited for, those included whose only wait still goes on ([`crate::Registry::totals_so_far`]), in the
    /// order of the catalogue.
    pub fn seen(&self) -> impl Iterator<Item = (Event, &EventTotals)> {
        Event::ALL.into_iter().zip(&self.0).filter(|(_, totals)| totals.waits > 0 || totals.waited.0 > 0)
    }

    /// Time in all events that are not idle.
    pub fn waited(&self) -> Nanos {
        let busy = self.seen().filter(|(event, _)| !event.is_idle());
        busy.fold(Nanos(0), |sum, (_, totals)| sum + totals.waited)
    }

    /// What came since `earlier`, which was taken from the same registry or session before.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(self.0.iter().zip(&earlier.0).map(|(now, before)| now.since(before)).collect())
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            sum.add(more);
        }
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut EventTotals {
        &mut self.0[row]
    }
}

/// Foreground and background apart: the same write is waited for by both, so their sum would count it twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BothTotals {
    /// Users' sessions.
    pub foreground: Totals,
    /// Processes of the database.
    pub background: Totals,
}

impl BothTotals {
    /// Of one kind.
    pub fn of(&self, kind: SessionKind) -> &Totals {
        match kind {
            SessionKind::Foreground => &self.foreground,
            SessionKind::Background => &self.background,
        }
    }

    pub(crate) fn of_mut(&mut self, kind: SessionKind) -> &mut Totals {
        match kind {
            SessionKind::Foreground => &mut self.foreground,
            SessionKind::Background => &mut self.background,
        }
    }

    /// What `v$system_event` shows in the columns without `_fg`: both together.
    pub fn event(&self, event: Event) -> EventTotals {
        let mut sum = *self.foreground.event(event);
        sum.add(self.background.event(event));
        sum
    }

    /// What came since `earlier`, which was taken from the same registry before.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            foreground: self.foreground.since(&earlier.foreground),
            background: self.background.since(&earlier.background),
        }
    }
}

/// Where time went: of a session, or of all of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeModel {
    /// `DB time` of users' sessions: the time inside their calls, idle waits left out. `background elapsed time` of
    /// processes: since their start, idle waits left out.
    pub elapsed: Nanos,
    /// Of which they waited, for events that are not idle.
    pub waited: Nanos,
    /// Calls that ended; 0 for processes.
    pub calls: u64,
}

impl TimeModel {
    /// `DB CPU`: elapsed without waits. What it really is: time that no wait accounts for, so a processor that was wanted
    /// and not had is in it too.
    pub fn cpu(&self) -> Nanos {
        self.elapsed - self.waited
    }

    /// What came since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            elapsed: self.elapsed - earlier.elapsed,
            waited: self.waited - earlier.waited,
            calls: self.calls.saturating_sub(earlier.calls),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.waited += other.waited;
        self.calls += other.calls;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_event_histogram_micro() {
        for (ns, bound) in [
            (0, 1),
            (999, 1),
            (1_000, 2),
            (1_999, 2),
            (2_000, 4),
            (4_000_000, 4_096),
            (4_095_999, 4_096),
            (4_096_000, 8_192),
            ((1u64 << 32) * 1_000 - 1, 1 << 32),
            ((1u64 << 32) * 1_000, u64::MAX),
            (u64::MAX, u64::MAX),
        ] {
            assert_eq!(bucket_micros(bucket(Nanos(ns))), bound, "{ns} ns");
        }
    }

    #[test]
    fn percentiles_are_bounds_of_buckets() {
        let mut totals = EventTotals::default();
        assert_eq!(totals.percentile_micros(0.5), None);
        totals.waits = 100;
        totals.histogram[7] = 90;
        totals.histogram[10] = 10;
        for (part, bound) in [(0.0, 128), (0.5, 128), (0.9, 128), (0.91, 1_024), (1.0, 1_024)] {
            assert_eq!(totals.percentile_micros(part), Some(bound), "{part}");
        }
    }

    #[test]
    fn a_difference_and_what_was_before_make_the_whole() {
        let (mut earlier, mut later) = (Totals::default(), Totals::default());
        let once = |us: u64| EventTotals {
            waits: 1,
            waited: Nanos::micros(us),
            longest: Nanos::micros(us),
            histogram: std::array::from_fn(|b| u64::from(b == bucket(Nanos::micros(us)))),
            ..EventTotals::default()
        };
        earlier.row_mut(Event::LogFileSync.number()).add(&once(100));
        later.row_mut(Event::LogFileSync.number()).add(earlier.event(Event::LogFileSync));
        later.row_mut(Event::LogFileSync.number()).add(&once(300));
        let between = *later.since(&earlier).event(Event::LogFileSync);
        assert_eq!((between.waits, between.percentile_micros(1.0)), (1, Some(512)));
        let mut sum = between;
        sum.add(earlier.event(Event::LogFileSync));
        assert_eq!(sum, *later.event(Event::LogFileSync));
        assert_eq!(later.waited(), Nanos::micros(400));
    }
}
