//! How long does this machine keep a ready thread waiting?

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};

const NAP: Nanos = Nanos::millis(1);
/// Eight steps per power of two: a percentile is at most 12.5 % above the truth.
const STEPS: usize = 8;
const BUCKETS: usize = STEPS * 62;

/// A thread that sleeps 1 ms again and again and keeps by how much it overslept. Whatever stops it (another virtual
/// machine, a quota, a busy neighbour, a slow timer) stops the measuring threads too, and then shows in latencies that
/// are not the storage's (check H2, `docs/method.md` section 7). It costs 1,000 wake-ups a second, about 0.5 % of a CPU.
#[derive(Debug)]
pub struct PauseDetector {
    seen: Arc<Mutex<Overshoots>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Overshoot of a 1 ms sleep, nanoseconds. All none-like zero when `naps` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseResult {
    /// Sleeps observed.
    pub naps: u64,
    /// Median; at most 12.5 % too high.
    pub p50_ns: u64,
    /// 99.9th percentile; at most 12.5 % too high.
    pub p999_ns: u64,
    /// Longest, exact.
    pub max_ns: u64,
}

impl PauseDetector {
    /// Starts the thread.
    pub fn start() -> Self {
        let seen = Arc::new(Mutex::new(Overshoots::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (shelf, flag) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("pause".into()).spawn(move || nap(&shelf, &flag)).ok();
        Self { seen, stop, thread }
    }

    /// The result since the start or the last call, and begins anew: one result per visit.
    pub fn take(&self) -> PauseResult {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner)).result()
    }

    /// Ends the thread; the result since the start or the last [`PauseDetector::take`].
    pub fn stop(mut self) -> PauseResult {
        self.end();
        self.take()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panicked sleeper leaves what it saw; its result is still good.
            let _ = thread.join();
        }
    }
}

impl Drop for PauseDetector {
    fn drop(&mut self) {
        self.end();
    }
}

fn nap(shelf: &Mutex<Overshoots>, stop: &AtomicBool) {
    // The kernel rounds wake-ups of ordinary threads by 50 µs to save energy; that is not a pause. Where the setting is
    // refused, results are 50 µs higher, far below the limits of H2.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
    while !stop.load(Ordering::Relaxed) {
        let start = clock::now();
        clock::sleep(NAP);
        let over = clock::now() - start - NAP;
        shelf.lock().unwrap_or_else(PoisonError::into_inner).add(over.0);
    }
}

/// Log-linear histogram of nanoseconds.
#[derive(Debug)]
struct Overshoots {
    counts: Box<[u32; BUCKETS]>,
    naps: u64,
    max: u64,
}

impl Default for Overshoots {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), naps: 0, max: 0 }
    }
}

impl Overshoots {
    fn add(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.naps += 1;
        self.max = self.max.max(ns);
    }

    fn result(&self) -> PauseResult {
        PauseResult {
            naps: self.naps,
            p50_ns: self.quantile(0.5),
            p999_ns: self.quantile(0.999),
            max_ns: self.max,
        }
    }

    fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.naps as f64 * q).ceil() as u64).max(1);
        let mut below = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            below += u64::from(count);
            if below >= rank {
                return upper(index).min(self.max);
            }
        }
        self.max
    }
}

/// 0–15 have a bucket each; above, eight per power of two.
fn bucket(ns: u64) -> usize {
    if ns < 2 * STEPS as u64 {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEPS.ilog2();
    (shift as usize * STEPS + (ns >> shift) as usize).min(BUCKETS - 1)
}

/// The largest value in bucket `index`.
fn upper(index: usize) -> u64 {
    if index < 2 * STEPS {
        return index as u64;
    }
    let shift = index / STEPS - 1;
    (((index - shift * STEPS + 1) as u64) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_without_gap_and_within_an_eighth() {
        for ns in (0..5_000).chain([1 << 20, (1 << 33) + 12345, 1 << 40]) {
            let top = upper(bucket(ns));
            assert!(top >= ns && top - ns <= ns / 8, "{ns} is in a bucket that ends at {top}");
        }
    }

    #[test]
    fn quantiles_of_known_pauses() {
        let mut seen = Overshoots::default();
        (0..998).for_each(|_| seen.add(10_000));
        seen.add(5_000_000);
        seen.add(9_000_000);
        let r = seen.result();
        assert_eq!((r.naps, r.max_ns), (1_000, 9_000_000));
        assert!(
            (10_000..=11_250).contains(&r.p50_ns) && (5_000_000..=5_625_000).contains(&r.p999_ns),
            "{r:?}"
        );
        assert_eq!(Overshoots::default().result(), PauseResult::default());
    }

    #[test]
    fn watches_this_machine() {
        let detector = PauseDetector::start();
        clock::sleep(Nanos::millis(100));
        let first = detector.take();
        clock::sleep(Nanos::millis(50));
        let second = detector.stop();
        assert!(first.naps >= 5 && first.max_ns > 0 && first.p50_ns <= first.p999_ns, "{first:?}");
        assert!(second.naps < first.naps, "take begins anew: {first:?}, then {second:?}");
    }
}
