//! Whether the instance may go on. Everybody who waits or writes asks; whoever cannot keep a promise says so.

use super::{AlertLog, Core};
use crate::{EngineError, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// One for all parts of an instance.
///
/// ```text
/// fine -> crashed [crash]   for ever: a promise was broken, what is in memory is no longer to be trusted
/// fine -> crashed [abort]   for ever: on request
/// ```
pub struct Health {
    crashed: AtomicBool,
    cause: OnceLock<String>,
    alert: Arc<AlertLog>,
    core: OnceLock<Weak<Core>>,
}

impl Health {
    /// Fine.
    pub fn new(alert: Arc<AlertLog>) -> Arc<Self> {
        Arc::new(Self {
            crashed: AtomicBool::new(false),
            cause: OnceLock::new(),
            alert,
            core: OnceLock::new(),
        })
    }

    /// From now on a crash also wakes everybody who waits in a part of `core`.
    pub(super) fn watch_over(&self, core: &Arc<Core>) {
        let _ = self.core.set(Arc::downgrade(core));
    }

    /// Stops the instance on request: nobody waits for anything or writes anything new from here on.
    pub(crate) fn abort(&self) {
        self.stop("shutdown abort");
    }

    /// Stops the instance: a write that had to succeed did not. The first cause stays. Everybody who waits wakes up and
    /// gets [`EngineError::Crashed`]; nothing more is written. Hold no lock that a part's `wake_all` takes.
    pub fn crash(&self, cause: &str) {
        if self.stop(cause) {
            self.alert.line(&format!("the instance stops itself: {cause}"));
        }
    }

    fn stop(&self, cause: &str) -> bool {
        if self.cause.set(cause.to_owned()).is_err() {
            return false;
        }
        // After the cause, so that whoever sees the flag finds the cause.
        self.crashed.store(true, Ordering::Release);
        if let Some(core) = self.core.get().and_then(Weak::upgrade) {
            core.wake_all();
        }
        true
    }

    /// # Errors
    /// [`EngineError::Crashed`].
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.crashed.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> EngineError {
        EngineError::Crashed(self.cause.get().cloned().unwrap_or_default())
    }

    /// Why, when it did.
    pub fn crashed(&self) -> Option<String> {
        self.crashed.load(Ordering::Acquire).then(|| self.cause.get().cloned().unwrap_or_default())
    }

    /// The alert log.
    pub fn alert(&self) -> &AlertLog {
        &self.alert
    }
}
