//! Table locks (`enq: TM`): transactions that write to a table, cursors that read it, and DDL that must be alone.
//!
//! Writers stay inside until their transaction ends, cursors until they are closed. DDL shuts the table, to writers (index
//! build) or to all (drop, truncate), and waits until nobody is inside whom it shuts out.
//!
//! ```text
//! Open -> Closing [TableLock::shut: somebody is inside]           newcomers wait; who holds something already passes
//! Open, Closing -> Closed [TableLock::shut: nobody is inside]     all whom it shuts out wait for the end of the DDL
//! Closing, Closed -> Open [drop of Shut, or giving up]
//! ```
//! No deadlock: who has a table closed waits for no transaction and no cursor. Who waits for it to empty (DDL) has committed
//! and so holds no row, and should it have open cursors of its own it gives up rather than wait. A session that holds something
//! passes a closing table, because the DDL may be waiting for the very session that waits for this one.
//!
//! Entering and leaving is one uncontended mutex, as each session has a shard of its own (of sixteen).

use super::wait::{EXCLUSIVE, ROW_EXCLUSIVE, enqueue};
use crate::context::Background;
use crate::instance::Core;
use crate::{Context, EngineError, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use waits::Event;

const SHARDS: usize = 16;

/// Whom DDL shuts out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(crate) enum To {
    /// Transactions that write.
    Writers = 1,
    /// Those and cursors.
    All = 2,
}

/// Values of `TableLock::state`: open, or one of these plus a [`To`].
const OPEN: u8 = 0;
const CLOSING: u8 = 10;
const CLOSED: u8 = 20;

/// Whether a session that comes to a closing table passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Its transaction has no lock and it has no open cursor: it waits.
    Nothing,
    /// Others may be waiting for it: it passes.
    Something,
}

/// What somebody inside is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
}

/// One session's stays.
struct Guest {
    session: u32,
    reads: u32,
    writes: u32,
}

impl Guest {
    fn count(&mut self, purpose: Purpose) -> &mut u32 {
        match purpose {
            Purpose::Read => &mut self.reads,
            Purpose::Write => &mut self.writes,
        }
    }
}

#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Vec<Guest>>);

/// Who asks for a lock.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub core: &'a Core,
    pub context: &'a Context,
    /// The table, for the wait's parameters.
    pub object: u32,
    /// Cursors that the session has open.
    pub cursors: u32,
    /// What the session holds.
    pub holds: Holds,
}

impl Asker<'_> {
    fn must_not_wait(&self) -> bool {
        self.is_inline() || self.cursors > 0
    }

    fn is_inline(&self) -> bool {
        self.core.environment.background == Background::Inline
    }

    /// Whoever is woken looks whether there is anything left to wait for.
    fn check(&self) -> Result<()> {
        self.core.health.check()?;
        if self.core.gate.is_closed() { Err(EngineError::ShuttingDown) } else { Ok(()) }
    }
}

/// The lock of one table; shared by all its descriptions.
pub(crate) struct TableLock {
    state: AtomicU8,
    shards: [Shard; SHARDS],
    /// Session that has the table closed; 0 is none. `state` changes under this mutex only.
    owner: Mutex<u32>,
    changed: Condvar,
}

impl TableLock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(OPEN),
            shards: Default::default(),
            owner: Mutex::new(0),
            changed: Condvar::new(),
        })
    }

    /// Enters as a transaction that writes; stays until the result is dropped.
    ///
    /// # Errors
    /// With [`Background::Inline`] [`EngineError::RowLocked`] when DDL is at work.
    pub fn write(self: &Arc<Self>, by: Asker<'_>) -> Result<Writing> {
        self.enter(by, Purpose::Write)?;
        Ok(Writing { lock: self.clone(), session: by.context.session })
    }

    /// Enters as a cursor; counted in `cursors` until the result is dropped.
    ///
    /// # Errors
    /// As [`TableLock::write`].
    pub fn read(self: &Arc<Self>, by: Asker<'_>, cursors: &Arc<AtomicU32>) -> Result<Reading> {
        self.enter(by, Purpose::Read)?;
        cursors.fetch_add(1, Ordering::Relaxed);
        Ok(Reading { lock: self.clone(), session: by.context.session, cursors: cursors.clone() })
    }

    /// Waits until nobody is inside whom `to` names, and keeps them out until the result is dropped.
    ///
    /// # Errors
    /// [`EngineError::RowLocked`] when it must not wait; [`EngineError::Invalid`] when it would wait for itself.
    pub fn shut(self: &Arc<Self>, by: Asker<'_>, to: To) -> Result<Shut> {
        let mut owner = self.owner.lock();
        loop {
            let blocker = if *owner == 0 {
                // Closed before the look inside: whoever is not seen there finds the door closed.
                self.set_state(CLOSED + to as u8);
                let Some(blocker) = self.inside(by.context.session, to) else {
                    *owner = by.context.session;
                    return Ok(Shut { lock: self.clone() });
                };
                let gives_up = blocker == by.context.session || by.must_not_wait();
                self.set_state(if gives_up { OPEN } else { CLOSING + to as u8 });
                blocker
            } else {
                *owner
            };
            if blocker == by.context.session {
                return Err(EngineError::Invalid(
                    "the table is being read by an open cursor of this session; end that statement first"
                        .into(),
                ));
            }
            if by.must_not_wait() {
                return Err(EngineError::RowLocked { blocker });
            }
            let _wait = by.context.slot.enter(
                Event::EnqTmContention,
                enqueue(*b"TM", EXCLUSIVE),
                by.object.into(),
                0,
            );
            by.context.slot.set_blocker(blocker);
            self.changed.wait(&mut owner);
            by.check()?;
        }
    }

    /// Wakes everybody who waits, to look whether the instance goes on.
    pub fn wake_all(&self) {
        let _owner = self.owner.lock();
        self.changed.notify_all();
    }

    fn set_state(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
        self.changed.notify_all();
    }

    fn admits(&self, purpose: Purpose, holds: Holds) -> bool {
        let state = self.state.load(Ordering::SeqCst);
        let to_writers_only = state % 10 == To::Writers as u8;
        state == OPEN
            || (to_writers_only && purpose == Purpose::Read)
            || (state < CLOSED && holds == Holds::Something)
    }

    /// The state is looked at under the shard's mutex, which [`TableLock::inside`] takes after the state was set: so the closer
    /// sees the newcomer, or the newcomer sees the closed door.
    fn try_enter(&self, by: Asker<'_>, purpose: Purpose) -> bool {
        let session = by.context.session;
        let mut guests = self.shards[session as usize % SHARDS].0.lock();
        if !self.admits(purpose, by.holds) {
            return false;
        }
        if !guests.iter().any(|guest| guest.session == session) {
            guests.push(Guest { session, reads: 0, writes: 0 });
        }
        let guest = guests.iter_mut().find(|guest| guest.session == session).expect("put in above");
        *guest.count(purpose) += 1;
        true
    }

    fn enter(&self, by: Asker<'_>, purpose: Purpose) -> Result<()> {
        while !self.try_enter(by, purpose) {
            let mut owner = self.owner.lock();
            if self.admits(purpose, by.holds) {
                continue;
            }
            if by.is_inline() {
                return Err(EngineError::RowLocked { blocker: *owner });
            }
            let _wait = by.context.slot.enter(
                Event::EnqTmContention,
                enqueue(*b"TM", ROW_EXCLUSIVE),
                by.object.into(),
                0,
            );
            by.context.slot.set_blocker(*owner);
            self.changed.wait(&mut owner);
            by.check()?;
        }
        Ok(())
    }

    fn leave(&self, session: u32, purpose: Purpose) {
        let mut guests = self.shards[session as usize % SHARDS].0.lock();
        let at = guests.iter().position(|guest| guest.session == session).expect("who leaves has entered");
        *guests[at].count(purpose) -= 1;
        if guests[at].reads + guests[at].writes == 0 {
            guests.swap_remove(at);
        }
        drop(guests);
        // A closer looks inside and falls asleep under this mutex, so it cannot miss the call.
        if self.state.load(Ordering::SeqCst) != OPEN {
            let _owner = self.owner.lock();
            self.changed.notify_all();
        }
    }

    /// Somebody inside whom `to` names, a session other than the asker first.
    fn inside(&self, asker: u32, to: To) -> Option<u32> {
        let mut own = None;
        for shard in &self.shards {
            for guest in shard.0.lock().iter() {
                if guest.writes == 0 && to == To::Writers {
                    continue;
                }
                if guest.session != asker {
                    return Some(guest.session);
                }
                own = Some(asker);
            }
        }
        own
    }
}

/// A transaction's stay at a table.
pub(crate) struct Writing {
    lock: Arc<TableLock>,
    session: u32,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.lock.leave(self.session, Purpose::Write);
    }
}

/// A cursor's stay at a table.
pub(crate) struct Reading {
    lock: Arc<TableLock>,
    session: u32,
    cursors: Arc<AtomicU32>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.cursors.fetch_sub(1, Ordering::Relaxed);
        self.lock.leave(self.session, Purpose::Read);
    }
}

/// A table that DDL has to itself.
pub(crate) struct Shut {
    lock: Arc<TableLock>,
}

impl Drop for Shut {
    fn drop(&mut self) {
        let mut owner = self.lock.owner.lock();
        *owner = 0;
        self.lock.set_state(OPEN);
    }
}
