//! What a thread of the instance carries along, and what the instance stands on.

use crate::statistics::{Counters, Statistic};
use std::sync::Arc;
use units::{Clock, Seed};

/// What the engine stands on.
#[derive(Clone)]
pub struct Environment {
    /// Files.
    pub storage: Arc<dyn io::Storage>,
    /// Time.
    pub clock: Clock,
    /// Who does the background work.
    pub background: Background,
    /// Where chance comes from.
    pub seed: Seed,
}

/// Who does the work of log writer, database writers and checkpointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of their own, named `lgwr`, `dbw0`, `ckpt`, `smon`.
    Threads,
    /// Whoever would have to wait for them does one step of their work instead, on its own thread. Nothing is
    /// concurrent then, so a simulation with a seed always runs the same way; a row lock held by another session is
    /// [`crate::EngineError::RowLocked`] at once, because nobody could release it meanwhile.
    Inline,
}

/// One thread's companion in every call: its wait slot and its counters. A session has one, each background process has
/// one. Passed by reference down the floors; never shared between threads that work at the same time. Made by
/// the instance for each session and process.
pub struct Context {
    /// Where waits are noted.
    pub slot: waits::Slot,
    /// Number of the session (`sid`), from 1.
    pub session: u32,
    /// Its share of `v$sysstat`.
    pub counters: Counters,
}

impl Context {
    /// Adds to a counter of `v$sysstat`. One plain store: no other thread writes to this context's counters.
    #[inline]
    pub fn count(&self, statistic: Statistic, n: u64) {
        self.counters.add(statistic, n);
    }
}
