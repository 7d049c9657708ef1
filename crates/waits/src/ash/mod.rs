//! Active session history: at each tick a row for each session that works or waits, and a heartbeat even when none does.
//!
//! Start with [`Sampler`] (takes the ticks, keeps the last of them), then [`Window`] (average active sessions over a time) and
//! [`Check`] (what the rows say against the exact counters).
//!
//! Rules, so that the numbers can be defended:
//! - A row stands for the time since the tick before ([`Tick::weight`]), not for "one". Average active sessions are the sum
//!   of weights over the length of the window, so a changed interval does not change what was.
//! - A window in which more than 5 % of the ticks are missing has no average ([`Refused`]).
//! - How long a sampled wait took is filled in when it has ended. A wait that several ticks saw has its length in the last
//!   of their rows only, as in Oracle.
//! - A row of length `d` stands for `max(1, weight / d)` waits ("ASH math"): short waits are seen by few ticks.
//!
//! **How a length is learnt without a cost for whoever waits.** A wait has a number that is never used again. The sampler
//! 1. reads a place: wait `n` goes on; 2. stores "`n` is wanted" there; 3. behind a fence, reads once more, and again when it
//!    has been at all places. When the owner ends a wait it publishes number and length, and *then* looks whether that number
//!    is wanted; if so it keeps the length aside, else the next wait would overwrite it. Had the owner looked before the
//!    question arrived, step 3 sees the wait ended, with its length still there. What slips through (another wait began
//!    before step 3, because the first was far below a microsecond, or the sampler lost its processor) is counted in
//!    [`Tick::unresolved`], not guessed.
//!
//! The last tick is open until the next one: then its rows are complete and never change again.

mod check;
mod ring;
mod sampler;
mod window;

pub use check::{Check, EventCheck};
pub use ring::{Drained, Reader};
pub use sampler::Sampler;
pub use window::{MISSED_MAX, Refused, Window};

use crate::{Doing, Event, SessionKind, SessionState, TextId};
use std::sync::Arc;
use units::Nanos;

/// One look at all sessions. Also its own heartbeat: it is there when no session is active.
#[derive(Clone, Debug)]
pub struct Tick {
    /// `sample_id`, from 1, without gaps.
    pub id: u64,
    /// When it should have been, on the registry's clock.
    pub planned: Nanos,
    /// `sample_time`: when it was.
    pub real: Nanos,
    /// The time its rows stand for: since the tick before, or since the start. `usecs_per_row`, in nanoseconds.
    pub weight: Nanos,
    /// The interval in force.
    pub interval: Nanos,
    /// Planned ticks before this one that never came.
    pub missed: u32,
    /// How long the look took.
    pub cost: Nanos,
    /// Sampled waits whose length got lost.
    pub unresolved: u32,
    /// One row per active session, by sid.
    pub rows: Vec<Sample>,
}

/// An active session at a tick, as `v$active_session_history` has it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// `session_id`.
    pub sid: u32,
    /// `session_serial#`.
    pub serial: u32,
    /// `session_type`.
    pub kind: SessionKind,
    /// `program`.
    pub program: Arc<str>,
    /// `session_state` and `event`.
    pub doing: Doing,
    /// `seq#`.
    pub wait_number: u64,
    /// `p1`, `p2`, `p3`.
    pub parameters: [u64; 3],
    /// How long it had been at this when it was seen.
    pub so_far: Nanos,
    /// `time_waited`: how long the wait took in all. `None` on CPU, while the wait goes on, and in all but the last row of a wait.
    pub time_waited: Option<Nanos>,
    /// `sql_id`.
    pub sql: Option<TextId>,
    /// `action`.
    pub action: Option<TextId>,
    /// `xid`; 0: none.
    pub xid: u64,
    /// `blocking_session`.
    pub blocker: Option<u32>,
    /// `current_file#`, `current_block#`.
    pub file_block: Option<(u64, u64)>,
    /// `current_obj#`; 0: not told.
    pub object: u64,
}

impl Sample {
    /// What is waited for, if anything.
    pub fn event(&self) -> Option<Event> {
        self.doing.event()
    }

    fn of(session: SessionState) -> Self {
        let waiting = session.doing != Doing::OnCpu;
        Self {
            sid: session.sid,
            serial: session.serial,
            kind: session.kind,
            program: session.program,
            doing: session.doing,
            wait_number: session.wait_number,
            parameters: if waiting { session.parameters } else { [0; 3] },
            so_far: session.for_now,
            time_waited: None,
            sql: session.sql,
            action: session.action,
            xid: session.xid,
            blocker: session.blocker,
            file_block: session.file_block,
            object: session.object,
        }
    }
}
