//! Waiting for room: reservations before a change, appends after it.
//!
//! Nobody who waits here holds a latch, so the database writers, who need latches and a flushed log, always go on.

use super::RedoLog;
use super::buffer::{Reservation, Shortage, State};
use crate::instance::Core;
use crate::page::Lsn;
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use parking_lot::MutexGuard;
use waits::Event;

/// Makes a checkpoint come to an LSN: posts the checkpointer, or does a piece of its work. Returns whether anything moves.
pub(super) type Urge<'a> = &'a mut dyn FnMut(Lsn) -> Result<bool>;

impl RedoLog {
    /// Reserves room for one record of at most `bytes`. Waits for the log writer (`log buffer space`) or for a checkpoint
    /// (`log file switch (checkpoint incomplete)`). To be called with no latch held.
    ///
    /// # Errors
    /// [`EngineError::Crashed`]; [`EngineError::Invalid`] when the log buffer is too small for such a record.
    pub fn reserve(&self, core: &Core, context: &Context, bytes: usize) -> Result<Reservation> {
        match self.try_reserve(bytes)? {
            Some(reservation) => Ok(reservation),
            None => self
                .reserve_waiting(context, bytes, &mut |lsn| core.cache.urge_checkpoint(core, context, lsn)),
        }
    }

    /// As [`RedoLog::reserve`]; `None` where that would wait.
    ///
    /// # Errors
    /// As there.
    pub fn try_reserve(&self, bytes: usize) -> Result<Option<Reservation>> {
        let mut state = self.state.lock();
        if self.has_failed() {
            return Err(self.crashed_error());
        }
        let charge = state.charge(bytes as u64);
        if charge > state.half {
            return Err(EngineError::Invalid(format!(
                "a change of up to {bytes} bytes of redo does not fit the log buffer; use a log_buffer of at least {} bytes, and log groups of four times that",
                (2 * charge).next_power_of_two()
            )));
        }
        Ok(match state.shortage(charge) {
            None => Some(state.reserve(bytes as u64)),
            Some(_) => None,
        })
    }

    /// # Errors
    /// As [`RedoLog::reserve`].
    pub(super) fn reserve_waiting(
        &self,
        context: &Context,
        bytes: usize,
        urge: Urge<'_>,
    ) -> Result<Reservation> {
        let (mut waited_buffer, mut waited_space) = (false, false);
        loop {
            let mut state = self.state.lock();
            if self.has_failed() {
                return Err(self.crashed_error());
            }
            match state.shortage(state.charge(bytes as u64)) {
                None => return Ok(state.reserve(bytes as u64)),
                Some(Shortage::Buffer) => {
                    let first = !std::mem::replace(&mut waited_buffer, true);
                    context.count(Statistic::RedoBufferAllocationRetries, u64::from(first));
                    self.wait_for_buffer(context, state)?;
                }
                Some(Shortage::Checkpoint) => {
                    drop(state);
                    let first = !std::mem::replace(&mut waited_space, true);
                    context.count(Statistic::RedoLogSpaceRequests, u64::from(first));
                    self.wait_for_checkpoint(context, urge, |state| {
                        state.shortage(state.charge(bytes as u64)) == Some(Shortage::Checkpoint)
                    })?;
                }
            }
        }
    }

    fn wait_for_buffer(&self, context: &Context, mut state: MutexGuard<'_, State>) -> Result<()> {
        let event = if state.switching { Event::LogFileSwitchCompletion } else { Event::LogBufferSpace };
        if !state.writing && state.used > 0 {
            // Nobody is at it: the quickest way to room is to write the log ourselves.
            state.writing = true;
            drop(state);
            let _wait = context.slot.enter(event, 0, 0, 0);
            self.lead(None);
            return Ok(());
        }
        if self.inline {
            return Err(EngineError::Invalid(
                "a change waits for redo space that another change of the same thread holds".into(),
            ));
        }
        let _wait = context.slot.enter(event, 0, 0, 0);
        state.room_waiters += 1;
        self.room.wait(&mut state);
        state.room_waiters -= 1;
        Ok(())
    }

    /// Waits while `blocked`; it is asked again whenever a checkpoint was made.
    ///
    /// # Errors
    /// [`EngineError::Crashed`], what `urge` met, and with no background threads [`EngineError::Invalid`] when nothing moves.
    pub(super) fn wait_for_checkpoint(
        &self,
        context: &Context,
        urge: Urge<'_>,
        blocked: impl Fn(&State) -> bool,
    ) -> Result<()> {
        loop {
            let wanted = {
                let state = self.state.lock();
                if self.has_failed() {
                    return Err(self.crashed_error());
                }
                if !blocked(&state) {
                    return Ok(());
                }
                state.groups.checkpoint_wanted()
            };
            let Some(wanted) = wanted else { return self.no_group_left() };
            // A wait of its own for each turn: in between, the urging itself may wait for I/O, and waits do not nest.
            let moved = urge(wanted)?;
            let mut state = self.state.lock();
            if self.inline && !moved && blocked(&state) {
                return Err(EngineError::Invalid(
                    "the redo log is full, and no checkpoint can free a group of it".into(),
                ));
            }
            if !self.inline && blocked(&state) && !self.has_failed() {
                let _wait = context.slot.enter(Event::LogFileSwitchCheckpointIncomplete, 0, 0, 0);
                state.room_waiters += 1;
                state.checkpoint_waiters += 1;
                self.room.wait(&mut state);
                state.checkpoint_waiters -= 1;
                state.room_waiters -= 1;
            }
        }
    }

    /// All groups but the current one have lost their members.
    fn no_group_left(&self) -> Result<()> {
        Err(EngineError::Invalid(
            "the log cannot be switched: no other log group has a usable member; ALTER DATABASE ADD LOGFILE GROUP n ('…') SIZE 100M"
                .into(),
        ))
    }

    /// Appends the record that was reserved for; returns its end, which becomes the LSN of its pages. Never waits.
    ///
    /// # Panics
    /// When it is longer than what was reserved.
    pub fn append(&self, reservation: Reservation, record: &[u8]) -> Lsn {
        let (end, call) = {
            let mut state = self.state.lock();
            let before = state.used as u64;
            let end = state.append(reservation, record);
            if state.room_waiters > 0 {
                self.room.notify_all();
            }
            // Once for each half: it crosses the mark only once.
            (end, before < self.call_bytes && state.used as u64 >= self.call_bytes && !state.writing)
        };
        if call {
            self.call_lgwr();
        }
        end
    }

    /// Gives a reservation back that is not needed.
    pub fn unreserve(&self, reservation: Reservation) {
        let mut state = self.state.lock();
        state.reserved -= reservation.charge;
        if state.room_waiters > 0 {
            self.room.notify_all();
        }
    }

    /// All changes before `lsn` are in the data files and the control file says so: groups that ended before it may be
    /// written over. To be called after the control file was written, never before: a crash in between would
    /// begin recovery in a group that was overwritten.
    pub fn note_checkpoint(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        state.note_checkpoint(lsn);
        self.room.notify_all();
    }

    /// The position to give to the control file for a checkpoint at `lsn`, which may lie inside a chunk: a beginning of a chunk at
    /// or a little before it, so that recovery need not look for one from the beginning of the group. Not before the
    /// checkpoint before.
    pub fn restart_point(&self, lsn: Lsn) -> Lsn {
        let state = self.state.lock();
        state.chunk_before(lsn).max(state.groups.checkpoint)
    }

    /// How far the checkpoint must come for somebody who waits in `log file switch (checkpoint incomplete)`; `None` when
    /// nobody does.
    pub fn checkpoint_wanted(&self) -> Option<Lsn> {
        let state = self.state.lock();
        if state.checkpoint_waiters == 0 { None } else { state.groups.checkpoint_wanted() }
    }

    /// Bytes of redo that all groups together hold.
    pub fn capacity_bytes(&self) -> u64 {
        self.state.lock().groups.all.iter().map(super::group::Group::capacity).sum()
    }
}
