//! Wait events: what a session waits for, counted exactly and sampled.
//!
//! Start with [`Event`] (the catalogue, made from `events.txt`), then [`Registry`] (all sessions), [`Slot`] (one of them, the
//! side that writes) and [`ash`] (active session history, the side that looks). Exact and sampled figures come from the
//! same places in memory by different ways, so each checks the other ([`ash::Check`]).
//!
//! ```
//! # use waits::{Event, Registry, SessionKind};
//! let registry = Registry::new(units::Clock::Real, 10);
//! let slot = registry.register(SessionKind::Foreground, "doctest");
//! {
//!     let _call = slot.call();
//!     let _wait = slot.enter(Event::DbFileSequentialRead, 4, 131, 1);
//! }
//! assert_eq!(registry.totals().foreground.event(Event::DbFileSequentialRead).waits, 1);
//! ```
//!
//! What the words mean. *DB time*: the time users' sessions spend inside calls, without idle waits. *On CPU*: DB time
//! without waits. It is what no wait accounts for: processor time, and also time in which a processor was wanted and not had.
//!
//! Not here: what is waited for (the engine), and how it is drawn (crate `report`).
#![forbid(unsafe_code)]

pub mod ash;
mod event;
mod place;
mod registry;
mod session;
mod slot;
mod text;
mod totals;

pub use event::{Event, EventInfo, Grade, Mapping, WaitClass};
pub use registry::Registry;
pub use session::{Doing, SessionState};
pub use slot::{CallGuard, Guard, Slot};
pub use text::TextId;
pub use totals::{BUCKETS, BothTotals, EventTotals, TimeModel, Totals, bucket, bucket_micros};

/// Whose session it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionKind {
    /// A user's.
    Foreground,
    /// A process of the database.
    Background,
}

impl SessionKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Foreground, Self::Background];

    /// As `v$active_session_history.session_type` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Foreground => "FOREGROUND",
            Self::Background => "BACKGROUND",
        }
    }
}

/// A part of a `log file sync`, from the commit's point of view. Each has its own histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Until the log writer took the redo into a write.
    Queue,
    /// Until that write was durable.
    Write,
    /// Until the session ran again.
    WakeUp,
}

impl Part {
    /// In the order in which they happen.
    pub const ALL: [Self; 3] = [Self::Queue, Self::Write, Self::WakeUp];

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Write => "write",
            Self::WakeUp => "wake-up",
        }
    }

    /// Its row among a place's counters.
    pub(crate) const fn row(self) -> usize {
        Event::COUNT + self as usize
    }
}
