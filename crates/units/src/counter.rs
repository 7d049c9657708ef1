//! Time from the processor's own counter: half the price of asking the system, and held to what the system says.
//!
//! ```text
//! time = offset + counts since the calibration × rate
//! ```
//! The rate is set once, half a thousandth too slow; every two milliseconds somebody asks the system, and the offset moves up by
//! what is missing, a microsecond at most. So an offset that another thread has not seen yet gives a smaller time, never a
//! greater one, and no thread sees time run backwards; with a rate that were corrected up and down it could. When the
//! system's clock is so slow that the counter overtakes it, or the counter was reset, the counter is given up for good.

use crate::{Nanos, clock};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long the counter runs against the system's clock before its rate is known.
const CALIBRATION: Nanos = Nanos::millis(5);
/// How often the system is asked.
const LOOK_EVERY: Nanos = Nanos::millis(2);
/// The rate is too slow by this, parts in a million: as much as the kernel lets time servers slow its clock down.
const SLOW_PPM: u128 = 500;
/// So far ahead of the system the counter is given up.
const AHEAD_MAX: Nanos = Nanos::micros(20);
/// Pairs of counter and clock of which the closest is taken.
const PAIRS: usize = 16;
/// A rate is nanoseconds per 2³² counts.
const RATE_BITS: u32 = 32;

/// A counter that runs at one rate on all cores, and what its counts mean.
pub struct Counter {
    read: fn() -> u64,
    /// The count from which on it is counted.
    first: u64,
    rate: u64,
    /// Nanoseconds at `first`; only grows.
    offset: AtomicU64,
    /// Counts since `first` from which on the system is asked; 0: always, for the counter was given up.
    due: AtomicU64,
    /// Counts between two looks.
    interval: u64,
    /// What the last look has seen.
    seen: AtomicU64,
}

impl Counter {
    /// Finds out the rate of the counter that `read` reads; takes five milliseconds. None when it does not move.
    ///
    /// `read` must give rising counts, of one rate, the same on all cores: nothing here can tell.
    pub fn calibrate(read: fn() -> u64) -> Option<Self> {
        let (first, began) = pair(read);
        clock::sleep(CALIBRATION);
        let (last, ended) = pair(read);
        let (counts, nanos) = (last.checked_sub(first)?, (ended - began).0);
        let exact = (u128::from(nanos) << RATE_BITS).checked_div(u128::from(counts))?;
        let rate = u64::try_from(exact * (1_000_000 - SLOW_PPM) / 1_000_000).ok().filter(|rate| *rate > 0)?;
        let interval = u64::try_from((u128::from(LOOK_EVERY.0) << RATE_BITS) / u128::from(rate)).ok()?;
        Some(Self {
            read,
            first,
            rate,
            offset: AtomicU64::new(began.0),
            due: AtomicU64::new(1),
            interval: interval.max(1),
            seen: AtomicU64::new(ended.0),
        })
    }

    /// As [`clock::now`]: never ahead of it by more than 20 µs, behind by a microsecond when it is asked often.
    #[inline]
    pub fn now(&self) -> Nanos {
        let counts = (self.read)().wrapping_sub(self.first);
        if counts >= self.due.load(Relaxed) { self.look() } else { self.at(counts) }
    }

    #[inline]
    fn at(&self, counts: u64) -> Nanos {
        Nanos(self.offset.load(Relaxed).wrapping_add(self.counted(counts)))
    }

    #[inline]
    fn counted(&self, counts: u64) -> u64 {
        ((u128::from(counts) * u128::from(self.rate)) >> RATE_BITS) as u64
    }

    /// Asks the system what time it is, and moves up to it.
    #[cold]
    fn look(&self) -> Nanos {
        let before = (self.read)().wrapping_sub(self.first);
        let truth = clock::now();
        let after = (self.read)().wrapping_sub(self.first);
        let given_up = self.due.load(Relaxed) == 0;
        if given_up || self.at(before) > truth + AHEAD_MAX || after < before {
            self.due.store(0, Relaxed);
            // What others were told since the last look.
            return truth.max(Nanos(self.seen.load(Relaxed)) + LOOK_EVERY + AHEAD_MAX);
        }
        // At `after` it is later than `truth` already, so this is never ahead, also when the thread lost its core in between.
        self.offset.fetch_max(truth.0.saturating_sub(self.counted(after)), Relaxed);
        self.seen.fetch_max(truth.0, Relaxed);
        // Not over a 0 that another thread has just put there.
        let _ = self
            .due
            .fetch_update(Relaxed, Relaxed, |due| (due > 0).then(|| after.saturating_add(self.interval)));
        self.at(after)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counter({:.3} ns a count)", self.rate as f64 / (1u64 << RATE_BITS) as f64)
    }
}

/// A count and the time at which it was read, with as little as possible in between.
fn pair(read: fn() -> u64) -> (u64, Nanos) {
    let pairs = (0..PAIRS).map(|_| {
        let (before, now, after) = (read(), clock::now(), read());
        (after.wrapping_sub(before), before, now)
    });
    let (_, count, now) = pairs.min().expect("there are some pairs");
    (count, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// A counter of 3 GHz that agrees with the system's clock until it is told not to.
    fn true_counter() -> u64 {
        clock::now().0 * 3 + 1_000_000
    }

    #[test]
    fn agrees_with_the_system() {
        let counter = Counter::calibrate(true_counter).expect("it moves");
        for _ in 0..200 {
            let (before, now, after) = (clock::now(), counter.now(), clock::now());
            assert!(now <= after + AHEAD_MAX, "{now:?} is ahead of {after:?}");
            // Behind by half a thousandth of the time between two looks.
            assert!(now + Nanos::micros(5) >= before, "{now:?} is behind {before:?}");
            clock::sleep(Nanos::micros(300));
        }
    }

    #[test]
    fn no_thread_sees_it_run_backwards() {
        let counter = Counter::calibrate(true_counter).expect("it moves");
        let newest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..200_000 {
                        let seen = newest.load(std::sync::atomic::Ordering::Acquire);
                        let now = counter.now().0;
                        assert!(now >= seen, "{now} after {seen}");
                        newest.fetch_max(now, std::sync::atomic::Ordering::AcqRel);
                    }
                });
            }
        });
    }

    #[test]
    fn a_counter_that_stands_still_is_none() {
        assert!(Counter::calibrate(|| 7).is_none());
    }

    /// A machine wakes up with its counter at zero, or with a counter that runs faster: the system's clock is used from then on.
    #[test]
    fn a_counter_that_lies_is_given_up() {
        static FAST: AtomicBool = AtomicBool::new(false);
        static RESET: AtomicBool = AtomicBool::new(false);
        fn fast() -> u64 {
            true_counter() + if FAST.load(Relaxed) { 3_000_000_000 } else { 0 }
        }
        fn reset() -> u64 {
            if RESET.load(Relaxed) { 5 } else { true_counter() }
        }
        for (read, lie) in [(fast as fn() -> u64, &FAST), (reset, &RESET)] {
            let counter = Counter::calibrate(read).expect("it moves");
            let before = counter.now();
            lie.store(true, Relaxed);
            let first = counter.now();
            assert!(
                first >= before && first <= clock::now() + Nanos::millis(5),
                "{first:?} after {before:?}"
            );
            lie.store(false, Relaxed);
            clock::sleep(Nanos::millis(5));
            let (low, now, high) = (clock::now(), counter.now(), clock::now());
            assert!(now >= low && now <= high, "{now:?} is the system's, between {low:?} and {high:?}");
        }
    }
}
