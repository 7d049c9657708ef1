//! A thread that takes a snapshot every interval.

use super::{Snapshot, Watch, snapshot};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};

/// Background thread `mmnl` (Oracle's name for the process that samples statistics). It keeps an absolute time table:
/// samples do not drift, and one that would come too late is dropped rather than doubled. It costs about 150 µs per
/// sample; the alternative, sampling between the blocks by the measuring thread, would put that into a latency.
#[derive(Debug)]
pub struct Sampler {
    taken: Arc<Mutex<Vec<Snapshot>>>,
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Takes the first snapshot at once, then one every `interval` (at least 1 ms), of what `watch` names.
    pub fn start(watch: Watch, interval: Nanos) -> Self {
        let interval = interval.max(Nanos::millis(1));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = mpsc::channel();
        let shelf = Arc::clone(&taken);
        let work = move || sample(&watch, interval, &shelf, &stopped);
        let thread = std::thread::Builder::new().name("mmnl".into()).spawn(work).ok();
        Self { taken, stop, thread }
    }

    /// The snapshots since the last call, in time order.
    pub fn drain(&self) -> Vec<Snapshot> {
        std::mem::take(&mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes a last snapshot, ends the thread, and returns what was not drained yet.
    pub fn stop(mut self) -> Vec<Snapshot> {
        self.end();
        self.drain()
    }

    fn end(&mut self) {
        // The thread may have ended by itself; then nobody hears, and nothing is missing.
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

fn sample(watch: &Watch, interval: Nanos, shelf: &Mutex<Vec<Snapshot>>, stopped: &mpsc::Receiver<()>) {
    let keep = |s: Snapshot| shelf.lock().unwrap_or_else(PoisonError::into_inner).push(s);
    let mut due = clock::now();
    loop {
        keep(snapshot(watch));
        let now = clock::now();
        while due <= now {
            due += interval;
        }
        match stopped.recv_timeout((due - now).duration()) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return keep(snapshot(watch)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_until_stopped_without_drift() {
        let every = Nanos::millis(10);
        let sampler = Sampler::start(Watch::default(), every);
        let mut all = Vec::new();
        while all.len() < 20 {
            clock::sleep(every);
            all.extend(sampler.drain());
        }
        all.extend(sampler.stop());
        assert!(all.windows(2).all(|w| w[0].t < w[1].t));
        // A machine that is busy makes it late, and nothing makes it early: the last but one is no end, but was due.
        let span = all[all.len() - 2].t - all[0].t;
        let due = span.0 / every.0 + 3;
        assert!(all.len() as u64 <= due, "{} samples in {span}", all.len());
    }

    #[test]
    fn stops_without_waiting_for_the_next_sample() {
        // Else this test would take until tomorrow.
        let sampler = Sampler::start(Watch::default(), Nanos::secs(86_400.0));
        assert!(!sampler.stop().is_empty());
    }
}
