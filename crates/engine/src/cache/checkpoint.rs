//! Checkpoints: how far the data files are, and the demands to get them further.
//!
//! **The checkpoint position** is the smaller of the end of the redo, read first, and the positions of all dirty frames, read after
//! that. All redo before it is in the data files. Proof: take a record `[s, e)` of a page that is not in its file yet.
//! Its change marked the frame, if it was clean, with the end of the redo of then, which is at most `s`, before it appended
//! the record. A database writer replaces the mark by the LSN it has written, which is at most `s` too, as the record is not in
//! the file; it removes it only when the page's LSN is the one it has written and nobody is changing the page. So from before the append
//! on, the mark is there and at most `s`. If the end of the redo was read after the append, the scan came later still and saw the
//! mark: the position is at most `s`. If it was read before, it is itself at most `s`.
//!
//! **Incremental**: the checkpointer keeps the redo that recovery would read below a target, by asking the writers for what has been dirty for
//! longest, all the time, so that a log switch finds its next group free. **Full**, or **of one object**: everything that is
//! dirty at the call.

use super::BufferCache;
use super::frames::DOOMED;
use super::site::{Site, inline};
use super::victim::FLASH_EVERY;
use crate::instance::Core;
use crate::instance::process::{Process, Role};
use crate::page::{Lsn, PageId};
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use std::time::Duration;
use units::Nanos;
use waits::Event;

/// The position is noted when it has moved by this share of the target …
const NOTE_SHARE: u64 = 16;
/// … but not for less than this.
const NOTE_BYTES_MIN: u64 = 256 << 10;
/// A waiting session looks again after so long even when nobody reports progress.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl BufferCache {
    /// All redo before this is on disk in data files already: where recovery would begin.
    pub fn checkpoint_lsn(&self, core: &dyn Site) -> Lsn {
        let tail = core.redo_tail();
        self.frames.dirty_frames().map(|(_, since)| since).fold(tail, Lsn::min)
    }

    /// One turn of the checkpointer (`ckpt`): aims the database writers at what has been dirty for too long, and notes how far
    /// they have come. False when there was nothing to note.
    ///
    /// # Errors
    /// What the control file met.
    pub fn checkpoint_step(&self, core: &dyn Site, context: &Context) -> Result<bool> {
        core.alive()?;
        let target_bytes = core.checkpoint_target_bytes();
        let wanted = core.checkpoint_wanted();
        let reached = self.checkpoint_lsn(core);
        let target = Lsn(core.redo_tail().0.saturating_sub(target_bytes)).max(wanted.unwrap_or_default());
        let pressing = wanted.is_some_and(|wanted| reached < wanted);
        self.writers.aim(target, pressing);
        if reached < target {
            core.post_writers();
        }
        let noted = *self.checkpoint_noted.lock();
        let step = (target_bytes / NOTE_SHARE).max(NOTE_BYTES_MIN);
        let frees_a_group = wanted.is_some_and(|wanted| noted < wanted && reached >= wanted);
        if frees_a_group || reached.0.saturating_sub(noted.0) >= step {
            return self.note_checkpoint(core, context, reached);
        }
        Ok(false)
    }

    /// Makes the checkpoint come to `lsn`, for somebody who waits for a log group: wakes the checkpointer, or does the work
    /// where there is none. Whether anything moves. To be called with no latch held.
    ///
    /// # Errors
    /// What a write met.
    pub fn urge_checkpoint(&self, core: &dyn Site, context: &Context, lsn: Lsn) -> Result<bool> {
        if core.post_checkpointer() {
            return Ok(true);
        }
        if let Some(last) = lsn.0.checked_sub(1) {
            self.write_upto(core, context, None, Lsn(last))?;
        }
        self.note_checkpoint(core, context, self.checkpoint_lsn(core))
    }

    /// Writes everything that is dirty, and notes it (`ALTER SYSTEM CHECKPOINT`, shutdown).
    ///
    /// # Errors
    /// What a write met.
    pub fn checkpoint(&self, core: &dyn Site, context: &Context) -> Result<()> {
        context.count(Statistic::BackgroundCheckpointsStarted, 1);
        self.write_dirty(core, context, None)?;
        self.note_checkpoint(core, context, self.checkpoint_lsn(core)).map(drop)
    }

    /// Notes how far the checkpoint is, if nobody has noted more already. Whether it moved.
    fn note_checkpoint(&self, site: &dyn Site, context: &Context, reached: Lsn) -> Result<bool> {
        // Held while it is noted: two at once could note the older one last.
        let mut noted = self.checkpoint_noted.lock();
        if reached <= *noted {
            return Ok(false);
        }
        site.checkpoint_reached(context, reached)?;
        *noted = reached;
        context.count(Statistic::BackgroundCheckpointsCompleted, 1);
        Ok(true)
    }

    /// Writes all dirty pages of an object (or of all, with `None`) that were dirty at the call, and waits: what a direct path
    /// read needs first (`enq: KO - fast object checkpoint`), and what a checkpoint is (`checkpoint completed`).
    ///
    /// # Errors
    /// [`EngineError::Crashed`] when writing failed again and again.
    pub fn write_dirty(&self, core: &dyn Site, context: &Context, object: Option<u32>) -> Result<()> {
        self.write_upto(core, context, object, core.redo_tail())
    }

    fn write_upto(&self, core: &dyn Site, context: &Context, object: Option<u32>, upto: Lsn) -> Result<()> {
        let meant = |index: u32| object.is_none_or(|object| self.frames.at(index).object() == object);
        let dirty = self.frames.dirty_frames().filter(|(index, since)| *since <= upto && meant(*index));
        let mut left: Vec<(u32, PageId)> =
            dirty.map(|(index, _)| (index, self.frames.at(index).id())).collect();
        if left.is_empty() {
            return Ok(());
        }
        context.count(Statistic::DbwrCheckpoints, 1);
        let _demand = self.writers.demand(core, object, upto);
        if inline(core) {
            return self.write_inline(core, &mut left, upto);
        }
        let event =
            if object.is_some() { Event::EnqKoFastObjectCheckpoint } else { Event::CheckpointCompleted };
        let _wait = context.slot.enter(event, object.map_or(0, u64::from), 0, 0);
        loop {
            let seen = self.writers.progress();
            self.keep_unwritten(&mut left, upto);
            if left.is_empty() {
                return Ok(());
            }
            core.alive()?;
            self.writers.wait_progress(seen, LOOK_AGAIN);
        }
    }

    fn write_inline(&self, site: &dyn Site, left: &mut Vec<(u32, PageId)>, upto: Lsn) -> Result<()> {
        loop {
            self.keep_unwritten(left, upto);
            let Some((_, id)) = left.first() else { return Ok(()) };
            if !site.step_writers()? {
                return Err(EngineError::Invalid(format!(
                    "{id} cannot be written: the only thread there is holds its latch"
                )));
            }
        }
    }

    fn keep_unwritten(&self, left: &mut Vec<(u32, PageId)>, upto: Lsn) {
        left.retain(|(index, id)| {
            self.frames.at(*index).id() == *id
                && self.frames.dirty_since(*index).is_some_and(|since| since <= upto)
        });
    }

    /// `ALTER SYSTEM FLUSH BUFFER_CACHE`: writes what is dirty, forgets every page that nobody holds.
    ///
    /// # Errors
    /// As [`Self::write_dirty`].
    pub fn flush(&self, core: &dyn Site, context: &Context) -> Result<()> {
        self.write_dirty(core, context, None)?;
        for index in 0..self.frames.count() as u32 {
            // Freed at once: a victim that nobody takes goes to the free list.
            drop(self.evict(core, context, index));
            self.write_flash_inline(core, context, FLASH_EVERY);
        }
        self.write_flash_inline(core, context, 1);
        Ok(())
    }

    /// Forgets the pages of an object that is gone or truncated, without writing them. The caller has made sure that
    /// nobody uses the object.
    pub fn discard(&self, _core: &dyn Site, object: u32) {
        for index in 0..self.frames.count() as u32 {
            let frame = self.frames.at(index);
            if frame.object() != object || !frame.id().is_some() {
                continue;
            }
            let guard = self.latches[index as usize].write();
            if frame.object() != object || !frame.id().is_some() {
                continue;
            }
            if frame.has(super::frames::WRITING) {
                // The page stays in the map until its write has landed: a new page at this address must find the frame,
                // or its write could be overtaken by this one.
                frame.set(DOOMED);
                self.frames.mark_clean(index);
            } else {
                self.frames.release(index);
            }
            drop(guard);
        }
        if let Some(flash) = &self.flash {
            flash.forget(object);
        }
    }
}

/// How often the checkpointer looks when nobody posts it.
const IDLE: Nanos = Nanos::millis(250);
/// How often while somebody waits for a log group.
const IDLE_PRESSING: Nanos = Nanos::millis(5);

/// The checkpointer as a process: `ckpt`.
struct Checkpointer {
    idle: Nanos,
}

impl Process for Checkpointer {
    fn role(&self) -> Role {
        Role::Checkpointer
    }

    fn step(&mut self, core: &Core, context: &Context) -> Result<bool> {
        let noted = core.cache.checkpoint_step(core, context)?;
        self.idle = if core.cache.writers.pressing() { IDLE_PRESSING } else { IDLE };
        Ok(noted)
    }

    fn idle(&self) -> Nanos {
        self.idle
    }
}

/// The process `ckpt`.
///
/// # Errors
/// None yet.
pub fn checkpointer(_core: &Core) -> Result<Box<dyn Process>> {
    Ok(Box::new(Checkpointer { idle: IDLE }))
}
