//! The thread that empties the trace's buffers while the traced ones work, and makes figures of what it finds.

use super::analysis::Analysis;
use crate::LabError;
use host::counters::Thread;
use host::trace::{Lost, Tracer, own_thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use units::{Nanos, clock};

/// How often buffers are emptied: seldom enough to cost little, often enough that descriptors still show their files.
const EVERY: Nanos = Nanos::millis(10);
/// How often names and titles are looked at again.
const REFRESH: Nanos = Nanos::millis(200);

/// At work.
pub(super) struct Collector {
    thread: JoinHandle<Result<Collected, LabError>>,
    stop: Arc<AtomicBool>,
}

/// Whom to follow.
pub(super) enum Follow {
    /// All threads of processes.
    Processes(Vec<u32>),
    /// Threads.
    Threads(Vec<u32>),
}

/// What it brought.
pub(super) struct Collected {
    pub(super) tracer: Tracer,
    pub(super) analysis: Analysis,
    pub(super) lost: Lost,
    pub(super) elapsed: Nanos,
    /// Processor time of the collecting thread.
    pub(super) cpu: Nanos,
}

impl Collector {
    /// Follows whom it is told, and empties the buffers of `tracer` until [`Collector::stop`]. Returns when all are followed.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn start(
        mut tracer: Tracer,
        mut analysis: Analysis,
        follow: Follow,
    ) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = mpsc::channel();
        let work = move || {
            // From here, so that this thread is no child of one that is followed.
            let followed = match &follow {
                Follow::Processes(processes) => tracer.follow(processes),
                Follow::Threads(threads) => tracer.follow_threads(threads),
            };
            let failed = followed.clone().err();
            // Who asked waits for it.
            let _ = tell.send(followed);
            if let Some(error) = failed {
                return Err(error.into());
            }
            analysis.ignore(&[own_thread()]);
            let (began, mut refreshed) = (clock::now(), clock::now());
            while !stopped.load(Ordering::Acquire) {
                let events = tracer.drain()?;
                analysis.take(events);
                if clock::now() - refreshed > REFRESH {
                    analysis.refresh();
                    refreshed = clock::now();
                }
                clock::sleep(EVERY);
            }
            analysis.refresh();
            let elapsed = clock::now() - began;
            let events = tracer.stop()?;
            analysis.take(events);
            analysis.refresh();
            let lost = tracer.lost();
            let cpu = Thread::this().schedule().map_or(Nanos(0), |schedule| schedule.cpu);
            Ok(Collected { tracer, analysis, lost, elapsed, cpu })
        };
        let collector = Self { thread: std::thread::spawn(work), stop };
        match told.recv() {
            Ok(Ok(())) => Ok(collector),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(ended()),
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// The system refused meanwhile.
    pub(super) fn stop(self) -> Result<Collected, LabError> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|_| Err(ended()))
    }
}

fn ended() -> LabError {
    LabError::Workload { workload: "trace", reason: "the collecting thread ended early".into() }
}
