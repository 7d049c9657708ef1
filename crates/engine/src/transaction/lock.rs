//! Row locks as waits: who finds a row with an unfinished transaction's id waits for that transaction.
//!
//! A transaction waits for at most one other, so the graph of waits is a set of chains. Who is about to close one to a
//! circle gets the deadlock: it looks before it waits, under the mutex that every change of the graph needs, so no circle
//! ever comes to be and no timer has to look for one.

use super::table::Table;
use super::{Transactions, Xid};
use crate::context::Background;
use crate::instance::Core;
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use parking_lot::{Condvar, MutexGuard};
use std::sync::Arc;
use waits::Event;

/// `name|mode`: the letters in the upper half, mode 6 (exclusive) below.
const TX_EXCLUSIVE: u64 = ((b'T' as u64) << 24) | ((b'X' as u64) << 16) | 6;

/// Those who wait for one transaction.
#[derive(Default)]
pub(crate) struct Waiters(Condvar);

impl Waiters {
    pub fn wake(&self) {
        self.0.notify_all();
    }
}

impl Table {
    /// Whether `waiter` would wait for itself if it waited for `holder`.
    pub(super) fn closes_circle(&self, waiter: Xid, holder: Xid) -> bool {
        let mut at = holder;
        while let Some(next) = self.find(at).and_then(|active| active.waits_for) {
            if next == waiter {
                return true;
            }
            at = next;
        }
        false
    }
}

impl Transactions {
    /// Waits until `holder` has ended (`enq: TX - row lock contention`); at once when it has.
    ///
    /// # Errors
    /// [`EngineError::Deadlock`]; with [`Background::Inline`] [`EngineError::RowLocked`] at once, unless a session had to give
    /// `holder` up: then it is rolled back here, and what storage says;
    /// [`EngineError::Crashed`], [`EngineError::ShuttingDown`].
    pub fn wait_for(&self, core: &Core, context: &Context, waiter: Xid, holder: Xid) -> Result<()> {
        let mut table = self.shared.table();
        let Some((blocker, slot)) = table.find(holder).map(|active| (active.session, active.slot)) else {
            return Ok(());
        };
        context.count(Statistic::EnqueueRequests, 1);
        if table.closes_circle(waiter, holder) {
            context.count(Statistic::EnqueueDeadlocks, 1);
            return Err(EngineError::Deadlock { blocker });
        }
        if core.environment.background == Background::Inline {
            drop(table);
            // Nobody else would: no session will ever end what was given up.
            while self.recover_step(core, context)? {}
            return self.blocker(holder).map_or(Ok(()), |blocker| Err(EngineError::RowLocked { blocker }));
        }
        context.count(Statistic::EnqueueWaits, 1);
        context.slot.set_blocker(blocker);
        let wait = context.slot.enter(Event::EnqTxRowLockContention, TX_EXCLUSIVE, slot.into(), holder.0);
        let result = wait_in(core, &mut table, waiter, holder);
        drop(table);
        drop(wait);
        result
    }

    /// Session of a transaction that goes on.
    pub(crate) fn blocker(&self, holder: Xid) -> Option<u32> {
        self.shared.table().find(holder).map(|active| active.session)
    }

    /// Wakes everybody who waits for a row, so that they look at `core.health` and `core.gate` again (a shutdown gives
    /// [`EngineError::ShuttingDown`]). Called from any thread.
    pub fn wake_all(&self) {
        for active in &self.shared.table().active {
            if let Some(waiters) = &active.waiters {
                waiters.wake();
            }
        }
    }
}

fn wait_in(core: &Core, table: &mut MutexGuard<'_, Table>, waiter: Xid, holder: Xid) -> Result<()> {
    let waiters: Arc<Waiters> = match table.find_mut(holder) {
        Some(active) => active.waiters.get_or_insert_default().clone(),
        None => return Ok(()),
    };
    set_waits_for(table, waiter, Some(holder));
    let mut result = Ok(());
    while result.is_ok() && table.find(holder).is_some() {
        result = may_wait(core);
        if result.is_ok() {
            waiters.0.wait(table);
        }
    }
    set_waits_for(table, waiter, None);
    result
}

fn may_wait(core: &Core) -> Result<()> {
    core.health.check()?;
    if core.gate.is_closed() { Err(EngineError::ShuttingDown) } else { Ok(()) }
}

fn set_waits_for(table: &mut Table, waiter: Xid, holder: Option<Xid>) {
    if let Some(active) = table.find_mut(waiter) {
        active.waits_for = holder;
    }
}
