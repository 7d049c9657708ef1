//! Wait events: what a session waits for, counted exactly and sampled.
//!
//! Start with [`Event`] (the catalogue, made from `events.txt`), then [`Registry`] (all sessions) and [`Slot`] (one).
#![forbid(unsafe_code)]

use std::sync::Arc;
use units::Clock;

/// What is waited for. The names are Oracle's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Event {
    LogFileSync,
    DbFileSequentialRead,
}

/// Whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// A user's.
    Foreground,
    /// A process of the database.
    Background,
}

/// All sessions of an instance.
pub struct Registry {}

impl Registry {
    /// For at most `sessions_max` sessions at once.
    pub fn new(_clock: Clock, _sessions_max: usize) -> Arc<Self> {
        unimplemented!()
    }

    /// Takes a slot; it is given back when dropped, its totals stay in the registry.
    pub fn register(self: &Arc<Self>, _kind: SessionKind, _program: &str) -> Slot {
        unimplemented!()
    }
}

/// One session's place. Written by its own thread only, read by everybody.
pub struct Slot {}

impl Slot {
    /// Begins a wait; it ends when the guard is dropped. Waits do not nest.
    #[inline]
    pub fn enter(&self, _event: Event, _p1: u64, _p2: u64, _p3: u64) -> Guard<'_> {
        unimplemented!()
    }
}

/// A wait that goes on.
pub struct Guard<'a> {
    _slot: &'a Slot,
}
