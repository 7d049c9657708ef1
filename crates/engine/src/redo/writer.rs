//! The log writer: takes the active half of the buffer, writes it as one chunk, says what is durable.
//!
//! There is one role and many who may have it: the thread `lgwr`, a session whose commit finds the role free, a session that
//! needs room in the buffer, one that switches the log. `State::writing` says that somebody has it; [`Writer`]
//! holds what only its holder touches. One of it is a wait slot (`lg00`, as Oracle calls a log writer's helper), so that
//! `log file parallel write` is always a background's wait, whoever does the work.
//!
//! One write, in this order:
//!   1. take the half, and place its chunk: after this, whoever appends goes into the next chunk;
//!   2. when the log went on to a new group, its header block is made durable before any chunk of it. The other way
//!      round, recovery would find a chunk behind a header of an older turn, and end the log before it;
//!   3. the chunk is made durable in every member. A member that fails is marked invalid in the control file before
//!      step 4: acknowledged first, a crash could make recovery believe the member that lacks it;
//!   4. only now the durable LSN moves and waiters wake. Earlier, a power cut could take back what was acknowledged.
//!
//! The role is left only with nobody waiting, or with `lgwr` called to take over.
//!
//! Trade-off: asynchronous writes of several chunks at once would overlap device flushes, but a chunk may be acknowledged
//! only after all before it, and a group commit fills the next chunk anyway while one is being written. io_uring with
//! O_DSYNC at depth 1 hands the write to a kernel worker and is many times slower than this `pwrite`.

use super::RedoLog;
use super::buffer::State;
use super::chunk::{self, Content, HEADER_BYTES, Place};
use super::header::{self, Header};
use super::sync::Waiter;
use crate::files::control::FileState;
use crate::files::iostat::Transfer;
use crate::page::Lsn;
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use io::Buffer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::Nanos;
use waits::Event;

/// A chunk grows to this many bytes without anybody waiting for it before `lgwr` is called.
const CALL_BYTES: u64 = 1 << 20;
/// How long redo that nobody waits for may stay in memory: what `COMMIT WRITE BATCH NOWAIT` risks.
const FLUSH_EVERY: Nanos = Nanos::millis(1_000);

/// What belongs to the log writer's role.
pub(super) struct Writer {
    /// For whoever does the work and is not `lgwr`: a session waits in `log file sync` meanwhile, and waits do not nest.
    pub context: Context,
    /// The half that is not active.
    pub spare: Buffer,
    /// A log block for headers.
    pub header: Buffer,
    /// Those whose chunk is being written.
    pub in_write: Vec<Arc<Waiter>>,
}

/// A half that was taken, and where it goes.
struct Taken {
    place: Place,
    content: Content,
    bytes: u64,
    /// The number of its group, and whether the log has just come to it. Not the index: groups may be added and dropped
    /// meanwhile, though never this one, which is current.
    group: u32,
    advanced: bool,
    block: u32,
    offset: u64,
    end: Lsn,
}

impl RedoLog {
    /// One piece of the log writer's work, if there is any and nobody else is at it: whether something was written.
    ///
    /// # Errors
    /// [`EngineError::Crashed`].
    pub fn step(&self) -> Result<bool> {
        self.lead_if(None, |state| state.used > 0 || state.switch_requested)
    }

    /// The log writer's own step: writes what is wanted, and every second what nobody waits for. `context` is the log
    /// writer's. Whether it wrote.
    ///
    /// # Errors
    /// [`EngineError::Crashed`].
    pub fn log_writer_step(&self, context: &Context) -> Result<bool> {
        let now = self.clock.now();
        let flushed = Nanos(self.flushed.load(Ordering::Relaxed));
        let all = self.posted.swap(false, Ordering::AcqRel) || now - flushed >= FLUSH_EVERY;
        if all {
            self.flushed.store(now.0, Ordering::Relaxed);
        }
        // A record that nobody waits for yet stays in memory: written now, the commit that follows it would first
        // wait for that write and then for its own.
        self.lead_if(Some(context), |state| self.is_wanted(state) || (all && state.used > 0))
    }

    /// Calls the log writer without waiting for it: `COMMIT WRITE IMMEDIATE NOWAIT`.
    pub fn post(&self) {
        self.posted.store(true, Ordering::Release);
        self.call_lgwr();
    }

    /// Says how the thread that calls [`RedoLog::log_writer_step`] is woken. Until then, those who wait write the log themselves.
    pub fn set_log_writer(&self, wake: Box<dyn Fn() + Send + Sync>) {
        let _ = self.lgwr.set(wake);
    }

    pub(super) fn call_lgwr(&self) {
        if let Some(wake) = self.lgwr.get() {
            wake();
        }
    }

    /// Takes the role if `wanted` and nobody has it.
    fn lead_if(&self, lgwr: Option<&Context>, wanted: impl Fn(&State) -> bool) -> Result<bool> {
        let leads = {
            let mut state = self.state.lock();
            let leads = !self.has_failed() && !state.writing && wanted(&state);
            state.writing |= leads;
            leads
        };
        if leads {
            self.lead(lgwr);
        }
        if self.has_failed() { Err(self.crashed_error()) } else { Ok(leads) }
    }

    /// Whether somebody waits for a write, or the half fills.
    fn is_wanted(&self, state: &State) -> bool {
        !state.waiting.is_empty() || state.switch_requested || state.used as u64 >= self.call_bytes
    }

    /// Called by who has just set `State::writing`: writes one chunk, and as `lgwr` (which brings its context) all that are
    /// wanted; then leaves the role. Returns when the last chunk was taken and when it was written.
    pub(super) fn lead(&self, lgwr: Option<&Context>) -> (Nanos, Nanos) {
        let mut role = Role { log: self, done: false };
        let mut writer = self.writer.lock();
        loop {
            let taken_at = self.clock.now();
            let taken = self.take(&mut writer, taken_at);
            if let Err(error) = taken.as_ref().map_or(Ok(()), |taken| self.write(&mut writer, lgwr, taken)) {
                role.done = true;
                let stranded = std::mem::take(&mut writer.in_write);
                drop(writer);
                self.crash(&error.to_string());
                stranded.iter().for_each(|waiter| waiter.thread.unpark());
                return (taken_at, taken_at);
            }
            let written_at = self.clock.now();
            if !self.publish(&mut writer, taken.as_ref(), (taken_at, written_at), lgwr) {
                role.done = true;
                return (taken_at, written_at);
            }
        }
    }

    /// Step 1. `None` when there is nothing to write and no switch to make.
    fn take(&self, writer: &mut Writer, now: Nanos) -> Option<Taken> {
        let unix = self.clock.unix_seconds();
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let mut advanced = false;
        if std::mem::take(&mut state.switch_requested) && state.groups.next_is_free() {
            state.groups.advance(state.base, unix);
            advanced = true;
        }
        if state.used == 0 && !advanced {
            return None;
        }
        let content = Content { records: state.used.saturating_sub(HEADER_BYTES) as u32, count: state.count };
        let mut bytes = 0;
        if state.used > 0 {
            let placed = state.groups.place(state.base, state.used as u64, unix);
            bytes = placed.0;
            advanced |= placed.1;
        }
        let (start, end) = (state.base, Lsn(state.base.0 + bytes));
        state.note_chunk(start);
        let group = state.groups.current();
        let place = Place { database: self.database, sequence: group.sequence, start };
        let taken = Taken {
            place,
            content,
            bytes,
            group: group.number,
            block: group.block,
            advanced,
            offset: group.offset(start),
            end,
        };
        std::mem::swap(&mut state.active, &mut writer.spare);
        (state.base, state.used, state.count) = (end, 0, 0);
        (state.writing_end, state.switching) = (end, advanced);
        for waiter in &state.waiting {
            waiter.taken.store(now.0, Ordering::Release);
        }
        debug_assert!(writer.in_write.is_empty());
        std::mem::swap(&mut state.waiting, &mut writer.in_write);
        self.restart.store(end.0, Ordering::Release);
        if state.room_waiters > 0 {
            self.room.notify_all();
        }
        Some(taken)
    }

    /// Steps 2 and 3.
    fn write(&self, writer: &mut Writer, lgwr: Option<&Context>, taken: &Taken) -> Result<()> {
        let header = {
            let state = self.state.lock();
            let group = state.groups.by_number(taken.group);
            Header {
                database: self.database,
                group: group.number,
                sequence: group.sequence,
                block: group.block,
                first: group.first,
                bytes: group.bytes,
                first_time: group.first_time,
            }
        };
        let context = lgwr.unwrap_or(&writer.context);
        if taken.advanced {
            let block = &mut writer.header[..header.block as usize];
            header::encode(&header, block);
            self.write_members(context, taken, block, 0)?;
            self.note_switch(context, &header);
        }
        if taken.bytes == 0 {
            return Ok(());
        }
        let chunk = &mut writer.spare[..taken.bytes as usize];
        chunk::seal(chunk, taken.place, taken.content);
        self.write_members(context, taken, chunk, taken.offset)
    }

    /// Writes `data` durably to every member, one after the other.
    fn write_members(&self, context: &Context, taken: &Taken, data: &[u8], offset: u64) -> Result<()> {
        // Each time anew: one that failed at the header block is no member for the chunk. Only the role's holder changes them.
        let members = self.state.lock().groups.by_number(taken.group).members.clone();
        let mut failed = Vec::new();
        let usable = members.iter().filter(|m| m.usable().is_some()).count();
        {
            let (files, blocks) = (usable as u64, data.len() as u64 / u64::from(taken.block));
            // Offset 0 is the header block.
            let _wait = match offset {
                0 => context.slot.enter(Event::LogFileSingleWrite, taken.group.into(), 0, blocks),
                _ => context.slot.enter(Event::LogFileParallelWrite, files, blocks, files),
            };
            for (index, member) in members.iter().enumerate() {
                let Some(disk) = member.usable() else { continue };
                // The file was opened with O_DSYNC: the write is durable when it returns.
                let began = self.clock.now();
                let outcome = disk.write_at(data, offset);
                match outcome.check(&member.path, "pwrite", offset, data.len() as u32) {
                    Ok(()) => {
                        let elapsed = self.clock.now() - began;
                        for statistics in [&self.statistics, &member.statistics] {
                            statistics.note(Transfer::Write, data.len() as u64, elapsed);
                        }
                    }
                    Err(error) => {
                        self.statistics.note_error();
                        member.statistics.note_error();
                        failed.push((index, error.to_string()));
                    }
                }
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        let words = failed.iter().map(|(_, what)| what.as_str()).collect::<Vec<_>>().join("; ");
        if failed.len() >= usable {
            return Err(EngineError::Invalid(format!(
                "no member of the log group could be written: {words}"
            )));
        }
        self.drop_members(context, taken.group, &failed, &words)
    }

    /// Members that failed while another one was written: never written again, never believed again.
    fn drop_members(
        &self,
        context: &Context,
        group: u32,
        failed: &[(usize, String)],
        words: &str,
    ) -> Result<()> {
        let _keeping = self.keeping.lock();
        let records = {
            let mut state = self.state.lock();
            let members = Arc::make_mut(&mut state.groups.by_number_mut(group).members);
            failed.iter().for_each(|(index, _)| members[*index].state = FileState::Invalid);
            state.groups.records()
        };
        self.keeper.alert(&format!("log member dropped: {words}; the group goes on with its other members"));
        self.keeper.keep(context, &records)
    }

    /// Step 4. Whether the caller goes on with the next chunk.
    fn publish(
        &self,
        writer: &mut Writer,
        taken: Option<&Taken>,
        times: (Nanos, Nanos),
        lgwr: Option<&Context>,
    ) -> bool {
        let mut state = self.state.lock();
        if let Some(taken) = taken {
            let end = taken.end;
            state.waiting.retain(|waiter| {
                let late = waiter.lsn <= end;
                if late {
                    writer.in_write.push(waiter.clone());
                }
                !late
            });
            for waiter in &writer.in_write {
                waiter.written.store(times.1.0, Ordering::Release);
            }
            state.switches += u64::from(taken.advanced);
            state.switching = false;
        }
        let wanted = self.is_wanted(&state);
        let goes_on = wanted && lgwr.is_some() && !self.has_failed();
        let chained = goes_on && writer.in_write.len() > 2;
        if chained {
            // Before the durable LSN moves: who sees it moved must find the list filled.
            self.wake_list.extend(&mut writer.in_write);
        }
        if let Some(taken) = taken {
            self.durable.store(taken.end.0, Ordering::Release);
        }
        state.writing = goes_on;
        let call = wanted && !goes_on;
        let heir = if call { state.waiting.first().cloned() } else { None };
        if state.room_waiters > 0 {
            self.room.notify_all();
        }
        drop(state);
        if let Some(taken) = taken {
            count(lgwr.unwrap_or(&writer.context), taken, times);
        }
        if call {
            self.call_lgwr_or(heir);
        }
        if chained {
            self.wake_list.wake_two();
        }
        writer.in_write.drain(..).for_each(|waiter| waiter.thread.unpark());
        goes_on
    }

    /// `lgwr` takes over; where there is no such thread, the first who waits.
    fn call_lgwr_or(&self, heir: Option<Arc<Waiter>>) {
        match (self.lgwr.get(), heir) {
            (Some(wake), _) => wake(),
            (None, Some(waiter)) => waiter.thread.unpark(),
            (None, None) => {}
        }
    }

    /// Half-way full, and nobody waits for it: from this size on an append calls the log writer.
    pub(super) fn call_bytes(half: u64) -> u64 {
        CALL_BYTES.min(half / 3)
    }
}

/// Gives the role back when its holder panics: the log has failed then, nobody must wait for it.
struct Role<'a> {
    log: &'a RedoLog,
    done: bool,
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.log.crash("the log writer met a bug and stopped");
            let stranded = std::mem::take(&mut self.log.writer.lock().in_write);
            stranded.iter().for_each(|waiter| waiter.thread.unpark());
        }
    }
}

fn count(context: &Context, taken: &Taken, times: (Nanos, Nanos)) {
    let padding = taken.bytes - u64::from(taken.content.records);
    context.count(Statistic::RedoWrites, u64::from(taken.bytes > 0));
    context.count(
        Statistic::RedoBlocksWritten,
        taken.bytes / u64::from(taken.block) + u64::from(taken.advanced),
    );
    context.count(Statistic::RedoWastage, padding);
    context.count(Statistic::RedoWriteTime, (times.1 - times.0).0 / 1_000);
}
