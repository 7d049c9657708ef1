//! One session's side: it says what it waits for, and when a call of its user begins and ends.
//!
//! Start with [`Slot::enter`] and [`Slot::call`]. How that becomes visible to others is `place.rs`.

use crate::event::Event;
use crate::place::Place;
use crate::registry::Registry;
use crate::{Part, SessionKind, TextId};
use std::cell::Cell;
use std::sync::Arc;
use units::{Clock, Nanos};

/// One session's place. Written by its own thread only, which the compiler sees to (`Send`, not `Sync`); read by everybody.
///
/// ```text
///            call() [open]                enter() [begin]
///   idle ───────────────────▶ on CPU ───────────────────▶ waiting
///   (SQL*Net message          (DB time     ◀─────────────  (DB time)
///    from client) ◀──────────  runs)        guard dropped
///                 guard dropped
/// ```
///
/// A background process is never in a call; it is on CPU unless it waits, and idle when it enters an idle event. One without a
/// thread of its own ([`Slot::rest`]) is idle unless it waits.
/// A foreground that waits outside a call is in a call for that long, so waits are always a part of DB time.
///
/// ```
/// fn sent<T: Send>() {}
/// sent::<waits::Slot>();
/// ```
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<waits::Slot>();
/// ```
pub struct Slot {
    registry: Arc<Registry>,
    place: Arc<Place>,
    clock: Clock,
    index: usize,
    serial: u32,
    kind: SessionKind,
    /// Calls open within each other; a background process has one for ever.
    calls: Cell<u32>,
    waiting: Cell<Option<Event>>,
}

impl Slot {
    pub(crate) fn new(
        registry: Arc<Registry>,
        place: Arc<Place>,
        index: usize,
        serial: u32,
        kind: SessionKind,
    ) -> Self {
        let clock = registry.clock().clone();
        let foreground = kind == SessionKind::Foreground;
        let slot = Self {
            registry,
            place,
            clock,
            index,
            serial,
            kind,
            calls: Cell::new(u32::from(!foreground)),
            waiting: Cell::new(None),
        };
        let now = slot.clock.now().0;
        slot.place.reset(now);
        if foreground {
            slot.place.begin(slot.idle(), [0; 3], now);
        }
        slot
    }

    /// Begins a wait; it ends when the guard is dropped. What p1 to p3 are says the catalogue, 0 where they say nothing.
    ///
    /// Takes no lock, allocates nothing; entering and leaving cost two looks at the clock and a few stores.
    ///
    /// Waits do not nest: that would count the same time twice. A wait begun inside another is a mistake, which stops a
    /// debug build; a release build lets the outer one have the time.
    #[inline]
    pub fn enter(&self, event: Event, p1: u64, p2: u64, p3: u64) -> Guard<'_> {
        let parameters = [p1, p2, p3];
        if self.calls.get() == 0 || self.waiting.get().is_some() {
            return self.enter_otherwise(event, parameters);
        }
        let since = self.clock.now().0;
        self.begin(event, parameters, since);
        Guard { slot: self, event, since, how: How::InCall }
    }

    /// A user's call begins; it ends when the guard is dropped. A call inside a call is a part of it. Between calls a
    /// foreground waits for `SQL*Net message from client`.
    #[inline]
    pub fn call(&self) -> CallGuard<'_> {
        self.begin_call();
        CallGuard { slot: self }
    }

    /// As [`Slot::call`], for who cannot keep a guard: each needs its [`Slot::end_call`].
    #[inline]
    pub fn begin_call(&self) {
        let open = self.calls.get();
        self.calls.set(open + 1);
        if open == 0 {
            self.place.open_call(self.idle(), self.clock.now().0);
        }
    }

    /// Ends what [`Slot::begin_call`] began.
    #[inline]
    pub fn end_call(&self) {
        debug_assert!(self.waiting.get().is_none() || self.calls.get() > 1, "a wait outlives its call");
        // Only the outermost end needs the time.
        match self.calls.get() {
            1 => self.close_call(self.clock.now().0),
            open => self.calls.set(open - 1),
        }
    }

    /// For a process without a thread of its own, in whose name others wait: from now on it is idle between waits.
    pub fn rest(&self) {
        if self.calls.replace(0) > 0 {
            self.place.begin(self.idle(), [0; 3], self.clock.now().0);
        }
    }

    /// Counts the parts of a `log file sync` that has just ended, in nanoseconds: until the log writer took the redo, until the
    /// write was durable, until the session ran again. The wait itself is counted by [`Slot::enter`], as any other.
    pub fn sync_parts(&self, queue_ns: u64, write_ns: u64, wake_ns: u64) {
        for (part, took) in Part::ALL.into_iter().zip([queue_ns, write_ns, wake_ns]) {
            self.place.count(part.row(), took);
        }
    }

    /// The SQL statement that runs from now on, or none. Keep its text with [`Registry::keep_text`] once.
    pub fn set_sql(&self, sql: Option<TextId>) {
        self.place.set_sql(sql.map_or(0, |id| id.0));
    }

    /// What the application is about, such as its kind of transaction, or nothing.
    pub fn set_action(&self, action: Option<TextId>) {
        self.place.set_action(action.map_or(0, |id| id.0));
    }

    /// The transaction that is open from now on; 0: none.
    pub fn set_xid(&self, xid: u64) {
        self.place.set_transaction(xid);
    }

    /// The session that the current wait waits for, or the next wait if none goes on. Forgotten when that wait ends.
    pub fn set_blocker(&self, sid: u32) {
        self.place.set_blocker(u64::from(sid));
    }

    /// The file and block that the current (or else the next) wait is about. Not needed where p1 is `file#`.
    pub fn set_file(&self, file: u32, block: u32) {
        self.place.set_file(u64::from(file), u64::from(block));
    }

    /// The object that the current (or else the next) wait is about.
    pub fn set_object(&self, object: u32) {
        self.place.set_object(u64::from(object));
    }

    /// Session identifier, from 1; free again when the slot is dropped.
    pub fn sid(&self) -> u32 {
        self.index as u32 + 1
    }

    /// `serial#`: tells sessions with the same sid apart.
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// Whose session it is.
    pub fn kind(&self) -> SessionKind {
        self.kind
    }

    /// Where it belongs.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What it waits for when it has nothing to do.
    #[inline(always)]
    const fn idle(&self) -> Event {
        match self.kind {
            SessionKind::Foreground => Event::SqlNetMessageFromClient,
            SessionKind::Background => Event::RdbmsIpcMessage,
        }
    }

    #[inline(always)]
    fn begin(&self, event: Event, parameters: [u64; 3], now: u64) {
        self.waiting.set(Some(event));
        self.place.begin(event, parameters, now);
    }

    #[inline(always)]
    fn leave(&self, event: Event, since: u64, now: u64, timed_out: bool) {
        self.waiting.set(None);
        self.place.end(event, now.saturating_sub(since), now, timed_out);
    }

    /// Inside another wait, or outside a call.
    #[cold]
    fn enter_otherwise(&self, event: Event, parameters: [u64; 3]) -> Guard<'_> {
        let since = self.clock.now().0;
        if let Some(outer) = self.waiting.get() {
            debug_assert!(self.waiting.get().is_none(), "waits do not nest: {event} begins inside {outer}");
            return Guard { slot: self, event, since, how: How::Nested };
        }
        let how = if event.is_idle() {
            self.place.end(self.idle(), self.idle_for(since), since, false);
            How::Idle
        } else {
            self.calls.set(1);
            self.place.open_call(self.idle(), since);
            How::OwnCall
        };
        self.begin(event, parameters, since);
        Guard { slot: self, event, since, how }
    }

    fn idle_for(&self, now: u64) -> u64 {
        now.saturating_sub(self.place.observed().since)
    }

    /// The rest of a wait that [`Slot::enter_otherwise`] began.
    #[cold]
    fn leave_otherwise(&self, guard: &Guard<'_>, now: u64, timed_out: bool) {
        match guard.how {
            How::InCall => self.leave(guard.event, guard.since, now, timed_out),
            How::Nested => {}
            How::Idle => {
                self.leave(guard.event, guard.since, now, timed_out);
                self.place.begin(self.idle(), [0; 3], now);
            }
            How::OwnCall => {
                self.leave(guard.event, guard.since, now, timed_out);
                self.close_call(now);
            }
        }
    }

    #[inline]
    fn close_call(&self, now: u64) {
        let open = self.calls.get() - 1;
        self.calls.set(open);
        if open == 0 {
            self.place.close_call(self.idle(), now);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let now = self.clock.now().0;
        if self.calls.get() == 0 {
            self.place.end(self.idle(), self.idle_for(now), now, false);
        }
        self.registry.release(self.index, now);
    }
}

/// How a wait was begun, and so what its end must do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    InCall,
    /// Inside another: nothing was begun.
    Nested,
    /// An idle event outside a call, in place of the one that is there anyway.
    Idle,
    /// Outside a call: it is one itself.
    OwnCall,
}

/// A wait that goes on; ends when dropped.
#[must_use = "the wait ends when the guard is dropped"]
pub struct Guard<'a> {
    slot: &'a Slot,
    event: Event,
    since: u64,
    how: How,
}

impl Guard<'_> {
    /// Ends the wait and says how long it was, so that nobody needs to look at the clock again.
    #[inline]
    pub fn end(self) -> Nanos {
        let waited = self.finish(false);
        std::mem::forget(self);
        waited
    }

    /// As [`Guard::end`]; what was waited for did not come, only the time-out.
    pub fn end_timed_out(self) -> Nanos {
        let waited = self.finish(true);
        std::mem::forget(self);
        waited
    }

    #[inline(always)]
    fn finish(&self, timed_out: bool) -> Nanos {
        let now = self.slot.clock.now().0;
        if self.how == How::InCall {
            self.slot.leave(self.event, self.since, now, timed_out);
        } else {
            self.slot.leave_otherwise(self, now, timed_out);
        }
        Nanos(now.saturating_sub(self.since))
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.finish(false);
    }
}

/// A user's call that goes on; ends when dropped.
#[must_use = "the call ends when the guard is dropped"]
pub struct CallGuard<'a> {
    slot: &'a Slot,
}

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.end_call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// While somebody holds the registry's lock, as each reader does, sessions wait and call as ever.
    #[test]
    fn waiting_takes_no_lock() {
        let registry = Registry::new(Clock::Real, 2);
        let slot = registry.register(SessionKind::Foreground, "user");
        let (wait, held) = mpsc::channel();
        let (done, finished) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                held.recv().expect("the lock is held now");
                let call = slot.call();
                let read = slot.enter(Event::DbFileSequentialRead, 1, 2, 1).end();
                slot.set_xid(7);
                drop(call);
                done.send(read).expect("the reader waits for this");
                slot
            });
            let seen = registry.observe(|_, _, _, _| {
                wait.send(()).expect("the session waits for this");
                finished.recv_timeout(Duration::from_secs(30)).ok()
            });
            assert_eq!(seen.len(), 1, "the wait did not end while the lock was held");
        });
    }
}
