//! What a session is doing at one moment: the copy that readers get.

use crate::event::Event;
use crate::place::Observed;
use crate::totals::TimeModel;
use crate::{SessionKind, TextId};
use std::sync::Arc;
use units::Nanos;

/// What a session is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It works, as far as anybody knows.
    OnCpu,
    /// It waits.
    Waiting(Event),
}

impl Doing {
    /// As `v$active_session_history.session_state` spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnCpu => "ON CPU",
            Self::Waiting(_) => "WAITING",
        }
    }

    /// What is waited for, if anything.
    pub const fn event(self) -> Option<Event> {
        match self {
            Self::OnCpu => None,
            Self::Waiting(event) => Some(event),
        }
    }
}

/// Who has a place: set when it is taken.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub sid: u32,
    pub serial: u32,
    pub kind: SessionKind,
    pub program: Arc<str>,
}

/// A session, as `v$session` and `v$session_wait` show it. All of it is of one moment.
#[derive(Clone, Debug)]
pub struct SessionState {
    /// `sid`.
    pub sid: u32,
    /// `serial#`.
    pub serial: u32,
    /// `type`.
    pub kind: SessionKind,
    /// `program`.
    pub program: Arc<str>,
    /// When it came, on the registry's clock.
    pub logon: Nanos,
    /// `status`: inside a call; a background process: not idle.
    pub active: bool,
    /// What it is at.
    pub doing: Doing,
    /// The last event that it waited for, when it does not wait now.
    pub last_event: Option<Event>,
    /// `wait_time` of that one.
    pub last_waited: Nanos,
    /// `seq#`: counts waits; a number names one wait.
    pub wait_number: u64,
    /// `p1`, `p2`, `p3` of this or the last wait.
    pub parameters: [u64; 3],
    /// How long it has been at this.
    pub for_now: Nanos,
    /// `sql_id`.
    pub sql: Option<TextId>,
    /// `action`.
    pub action: Option<TextId>,
    /// Its open transaction; 0: none.
    pub xid: u64,
    /// `blocking_session` of the current wait.
    pub blocker: Option<u32>,
    /// `current_file#` and `current_block#` of the current wait: as told, or p1 and p2 where those are `file#` and `block#`.
    pub file_block: Option<(u64, u64)>,
    /// `current_obj#` of the current wait; 0: not told.
    pub object: u64,
    /// How long the open call takes so far, idle waits left out.
    pub call_for: Option<Nanos>,
    /// Where its time went, what goes on included.
    pub time: TimeModel,
}

impl SessionState {
    pub(crate) fn of(identity: &Identity, seen: &Observed, now: u64) -> Self {
        let doing = match seen.event {
            Some(event) if seen.waiting => Doing::Waiting(event),
            _ => Doing::OnCpu,
        };
        let detail = seen.detail.filter(|_| seen.waiting).unwrap_or_default();
        let [blocker, file, block, object] = detail;
        let told = (file, block) != (0, 0);
        Self {
            sid: identity.sid,
            serial: identity.serial,
            kind: identity.kind,
            program: Arc::clone(&identity.program),
            logon: Nanos(seen.logon),
            active: active(identity.kind, seen),
            doing,
            last_event: seen.event.filter(|_| !seen.waiting),
            last_waited: Nanos(seen.last_waited),
            wait_number: seen.number,
            parameters: seen.parameters,
            for_now: Nanos(now) - Nanos(seen.since),
            sql: text(seen.sql),
            action: text(seen.action),
            xid: seen.transaction,
            blocker: u32::try_from(blocker).ok().filter(|sid| *sid != 0),
            file_block: if told { Some((file, block)) } else { doing.event().and_then(|e| named(e, seen)) },
            object,
            call_for: seen.call_since.map(|since| Nanos(now) - Nanos(since) - idle_now(seen, now)),
            time: time_model(identity.kind, seen, now),
        }
    }
}

fn text(id: u64) -> Option<TextId> {
    (id != 0).then_some(TextId(id))
}

/// File and block where the event's parameters are just these.
fn named(event: Event, seen: &Observed) -> Option<(u64, u64)> {
    let names = event.info().parameters;
    let known = [["file#", "block#"], ["file number", "first dba"]];
    known.iter().any(|pair| names[..2] == *pair).then_some((seen.parameters[0], seen.parameters[1]))
}

/// Whether it works or waits for something, rather than having nothing to do.
pub(crate) fn active(kind: SessionKind, seen: &Observed) -> bool {
    let idle = seen.waiting && seen.event.is_some_and(Event::is_idle);
    !idle && (kind == SessionKind::Background || seen.call_since.is_some())
}

/// How long the current idle wait has been.
fn idle_now(seen: &Observed, now: u64) -> Nanos {
    match seen.event {
        Some(event) if seen.waiting && event.is_idle() => Nanos(now) - Nanos(seen.since),
        _ => Nanos(0),
    }
}

/// Where its time went until `now`, the call and the wait that go on included.
pub(crate) fn time_model(kind: SessionKind, seen: &Observed, now: u64) -> TimeModel {
    let going_on = match seen.event {
        Some(event) if seen.waiting && !event.is_idle() => Nanos(now) - Nanos(seen.since),
        _ => Nanos(0),
    };
    let elapsed = match kind {
        SessionKind::Foreground => {
            let call = seen.call_since.map_or(Nanos(0), |since| Nanos(now) - Nanos(since));
            Nanos(seen.db_time) + (call - idle_now(seen, now))
        }
        SessionKind::Background => Nanos(now) - Nanos(seen.logon) - Nanos(seen.idle) - idle_now(seen, now),
    };
    TimeModel { elapsed, waited: Nanos(seen.waited) + going_on, calls: seen.calls }
}
