//! Which frame is reused: free ones first, then blocks of recycle objects, then the clock hand's choice.
//!
//! **Second chance with touch counts.** A hand goes round; a frame that was touched since is spared, its count halved; one that
//! was not is taken. A page counts a touch at most once per epoch, which is a sixteenth of the cache's frames replaced:
//! a statement that comes back to a page a hundred times in a row has touched it once. What it buys over a list in order
//! of use: a hit writes nothing when its page was touched in this epoch already. Pages that a scan brought begin with no
//! touch and go first, so a scan does not wash the cache out. Dirty and latched frames are passed over; the database writers clean
//! what lies ahead of the hand.

use super::BufferCache;
use super::frames::{Frame, KEEP, RECYCLE, WRITING};
use super::latch::PageWrite;
use super::site::{Site, inline};
use crate::page::PageId;
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use waits::Event;

/// More touches than this count for nothing: after so many rounds halved, every page is cold.
const TOUCHES_MAX: u32 = 4;
/// Rounds that bring any count to zero: 4, 2, 1, 0.
const ROUNDS: usize = 4;
/// The replaced sixteenth part of the cache is an epoch.
const EPOCH_SHARE: usize = 16;
/// Dirty frames passed over in one search from which the writers are told.
const DIRTY_PASSED_MAX: u64 = 4;
/// Blocks of recycle objects that may stay before they are taken first.
const RECYCLE_MIN: usize = 16;
/// How often, ten milliseconds apart, a session asks for a free buffer before it gives up: two minutes.
const TRIES_MAX: u32 = 12_000;

/// The hand, and what moves with it.
#[derive(Default)]
pub(super) struct Clock {
    hand: AtomicUsize,
    /// Lower 24 bits count.
    epoch: AtomicU32,
    taken: AtomicUsize,
    /// Frames with blocks of recycle objects, in the order they came, with the page they had then.
    recycle: Mutex<VecDeque<(u32, PageId)>>,
}

impl Clock {
    /// Where the hand is.
    pub fn hand(&self, frames: usize) -> usize {
        self.hand.load(Ordering::Relaxed) % frames
    }

    /// Counts a touch.
    #[inline]
    pub fn touch(&self, frame: &Frame) {
        let touch = frame.touch.load(Ordering::Relaxed);
        let epoch = self.epoch.load(Ordering::Relaxed) & 0x00FF_FFFF;
        let count = touch & 0xFF;
        // Two at once may count as one: it is a hint.
        if touch >> 8 != epoch && count < TOUCHES_MAX && !frame.has(RECYCLE) {
            frame.touch.store(epoch << 8 | (count + 1), Ordering::Relaxed);
        }
    }

    /// What a page begins with.
    pub fn begin(&self, frame: &Frame, touches: u32) {
        let touches = if frame.has(RECYCLE) { 0 } else { touches };
        frame.touch.store(self.epoch.load(Ordering::Relaxed) << 8 | touches, Ordering::Relaxed);
    }

    /// The hand passes: halves the count. False when there was none left.
    fn spare(&self, frame: &Frame) -> bool {
        let touch = frame.touch.load(Ordering::Relaxed);
        frame.touch.store(touch & !0xFF | (touch & 0xFF) / 2, Ordering::Relaxed);
        touch & 0xFF != 0
    }

    fn count_taken(&self, frames: usize) {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        if taken.is_multiple_of(frames / EPOCH_SHARE + 1) {
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A block of a recycle object came into the cache.
    pub fn recycle(&self, index: u32, id: PageId) {
        self.recycle.lock().push_back((index, id));
    }
}

impl BufferCache {
    /// A frame for `id`, latched and out of the map; waits for one when none can be reused (`free buffer waits`).
    ///
    /// # Errors
    /// The instance stopped; or every frame stayed in use.
    pub(super) fn take_victim(&self, site: &dyn Site, context: &Context, id: PageId) -> Result<PageWrite> {
        match self.try_victim(site, context) {
            Some(victim) => Ok(victim),
            None => self.wait_for_victim(site, context, id),
        }
    }

    /// As [`Self::take_victim`], but none instead of waiting.
    pub(super) fn try_victim(&self, site: &dyn Site, context: &Context) -> Option<PageWrite> {
        context.count(Statistic::FreeBufferRequested, 1);
        let victim = self.free_frame().or_else(|| self.recycled()).or_else(|| self.sweep(site, context))?;
        self.clock.count_taken(self.frames.count());
        Some(victim)
    }

    fn free_frame(&self) -> Option<PageWrite> {
        let index = self.frames.take_free()?;
        match self.latches[index as usize].try_write_arc() {
            Some(guard) => Some(PageWrite::vacant(guard)),
            None => {
                // Somebody came for the page that it had before, and is about to notice.
                self.frames.give_back(index);
                None
            }
        }
    }

    fn recycled(&self) -> Option<PageWrite> {
        let mut recycle = self.clock.recycle.lock();
        for _ in 0..recycle.len().saturating_sub(RECYCLE_MIN).min(4) {
            let (index, id) = recycle.pop_front()?;
            let frame = self.frames.at(index);
            if frame.id() != id || !frame.has(RECYCLE) {
                continue;
            }
            match self.evict(index) {
                Some(victim) => return Some(victim),
                None => recycle.push_back((index, id)),
            }
        }
        None
    }

    /// Goes round with the hand. What only the keep pool would have to give is taken in a second search.
    fn sweep(&self, site: &dyn Site, context: &Context) -> Option<PageWrite> {
        let (mut passed, mut dirty) = (0, 0);
        let found =
            self.round(&mut passed, &mut dirty, KEEP).or_else(|| self.round(&mut passed, &mut dirty, 0));
        context.count(Statistic::FreeBufferInspected, passed);
        context.count(Statistic::DirtyBuffersInspected, dirty);
        if dirty >= DIRTY_PASSED_MAX || (found.is_none() && dirty > 0) {
            self.writers.want_free(site);
        }
        found
    }

    fn round(&self, passed: &mut u64, dirty: &mut u64, spared: u32) -> Option<PageWrite> {
        let count = self.frames.count();
        let mut hopeless = 0;
        for _ in 0..count * ROUNDS {
            let index = (self.clock.hand.fetch_add(1, Ordering::Relaxed) % count) as u32;
            let frame = self.frames.at(index);
            let taken = if self.frames.dirty_since(index).is_some() {
                *dirty += 1;
                hopeless += 1;
                None
            } else if frame.has(spared | WRITING) || !frame.id().is_some() {
                hopeless += 1;
                None
            } else if self.clock.spare(frame) {
                hopeless = 0;
                None
            } else {
                self.evict(index)
            };
            if taken.is_some() {
                return taken;
            }
            *passed += 1;
            if hopeless >= count {
                return None;
            }
        }
        None
    }

    /// Takes the page out of a frame, if nobody holds it and the disk has it.
    pub(super) fn evict(&self, index: u32) -> Option<PageWrite> {
        let guard = self.latches[index as usize].try_write_arc()?;
        let frame = self.frames.at(index);
        // Looked at again: it may have changed before the latch was ours. A frame without a page is on the free list, and
        // whoever pops it there owns it.
        if self.frames.dirty_since(index).is_some() || frame.has(WRITING) || !frame.id().is_some() {
            return None;
        }
        self.frames.unpublish(index);
        Some(PageWrite::vacant(guard))
    }

    #[cold]
    fn wait_for_victim(&self, site: &dyn Site, context: &Context, id: PageId) -> Result<PageWrite> {
        if inline(site) {
            loop {
                self.writers.want_free(site);
                let moved = site.step_writers()?;
                if let Some(victim) = self.try_victim(site, context) {
                    return Ok(victim);
                }
                if !moved {
                    return Err(self.no_buffer());
                }
            }
        }
        let wait = context.slot.enter(Event::FreeBufferWaits, u64::from(id.file), u64::from(id.block), 0);
        for _ in 0..TRIES_MAX {
            let seen = self.writers.progress();
            self.writers.want_free(site);
            if let Some(victim) = self.try_victim(site, context) {
                return Ok(victim);
            }
            site.alive()?;
            self.writers.wait_progress(seen, Duration::from_millis(10));
        }
        drop(wait);
        Err(self.no_buffer())
    }

    fn no_buffer(&self) -> EngineError {
        EngineError::Invalid(format!(
            "no buffer of the cache can be reused: all {} are in use at once; use a larger db_cache_size",
            self.frames.count()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_count_once_an_epoch_and_fade_by_halves() {
        let (clock, frame) = (Clock::default(), Frame::default());
        clock.begin(&frame, 1);
        for _ in 0..10 {
            clock.touch(&frame);
        }
        assert_eq!(frame.touch.load(Ordering::Relaxed) & 0xFF, 1, "it came in this epoch");
        for _ in 0..10 {
            clock.epoch.fetch_add(1, Ordering::Relaxed);
            clock.touch(&frame);
            clock.touch(&frame);
        }
        assert_eq!(frame.touch.load(Ordering::Relaxed) & 0xFF, TOUCHES_MAX);
        let rounds = (0..).take_while(|_| clock.spare(&frame)).count();
        assert_eq!(rounds, ROUNDS - 1);
        frame.set(RECYCLE);
        clock.epoch.fetch_add(1, Ordering::Relaxed);
        clock.touch(&frame);
        assert_eq!(frame.touch.load(Ordering::Relaxed) & 0xFF, 0, "recycle blocks never grow hot");
    }
}
