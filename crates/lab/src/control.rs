//! What steers a run from outside: cancellation and progress.

use std::sync::atomic::{AtomicBool, Ordering};

/// Where a run tells what it is doing. The binary draws it; tests collect it.
pub trait Progress {
    /// The run is now doing `what`; it has spent `done_seconds` of about `total_seconds`.
    fn step(&mut self, what: &str, done_seconds: f64, total_seconds: f64);
    /// A line worth keeping on the screen: the plan, a decision, a surprise.
    fn say(&mut self, line: &str);
}

/// Collects nothing.
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _: &str, _: f64, _: f64) {}
    fn say(&mut self, _: &str) {}
}

/// Cancellation flag and progress, handed down a run.
pub struct Control<'a> {
    /// Raised by Ctrl-C; noticed within 100 ms everywhere.
    pub cancel: &'a AtomicBool,
    /// Where to tell.
    pub progress: &'a mut dyn Progress,
}

impl Control<'_> {
    /// Whether the user asked to stop.
    pub fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}
