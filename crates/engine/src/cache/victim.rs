//! Which frame is reused: free ones first, then cold blocks in the order they came, then the clock hand's choice.
//!
//! **Second chance with touch counts.** A hand goes round; a frame that was touched since is spared, its count halved; one that
//! was not is taken. A page counts a touch at most once per epoch, which is a sixteenth of the cache's frames replaced:
//! a statement that comes back to a page a hundred times in a row has touched it once. What it buys over a list in order
//! of use: a hit writes nothing when its page was touched in this epoch already. Dirty and latched frames are passed over; the
//! database writers clean what lies ahead of the hand.
//!
//! **Cold blocks**: what a scan brought, and what belongs to recycle objects, begins with no touch and stands in a queue of its
//! own. Beyond an eighth of the cache the queue replaces itself, so a scan does not wash the cache out. A block of a scan
//! that is touched in a later epoch has left the queue.

use super::BufferCache;
use super::frames::{ALTERED, DOOMED, Frame, KEEP, RECYCLE, WRITING};
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
/// A search gives up after this share of the cache was dirty …
const DIRTY_SHARE: usize = 8;
/// … but not after fewer.
const DIRTY_MIN: usize = 64;
/// The share of the cache that cold blocks have to themselves before they replace each other.
pub(super) const COLD_SHARE: usize = 8;
/// Blocks for the flash cache that may wait where there are no threads.
pub(super) const FLASH_EVERY: usize = 4;
/// Entries of the queue looked at in one search.
const COLD_LOOKS: usize = 8;
/// How often, ten milliseconds apart, a session asks for a free buffer before it gives up: two minutes.
const TRIES_MAX: u32 = 12_000;

/// The hand, and what moves with it.
pub(super) struct Clock {
    frames: usize,
    hand: AtomicUsize,
    /// Lower 24 bits count.
    epoch: AtomicU32,
    taken: AtomicUsize,
    /// Frames with cold blocks, in the order they came, with the page they had then.
    cold: Mutex<VecDeque<(u32, PageId)>>,
    cold_count: AtomicUsize,
}

impl Clock {
    pub fn new(frames: usize) -> Self {
        Self {
            frames,
            hand: AtomicUsize::new(0),
            epoch: AtomicU32::new(0),
            taken: AtomicUsize::new(0),
            cold: Mutex::default(),
            cold_count: AtomicUsize::new(0),
        }
    }

    /// Where the hand is.
    pub fn hand(&self) -> usize {
        self.hand.load(Ordering::Relaxed) % self.frames
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

    /// A page comes into a frame: with a touch, or cold.
    pub fn begin(&self, index: u32, frame: &Frame, warm: bool) {
        let warm = warm && !frame.has(RECYCLE);
        frame.touch.store(self.epoch.load(Ordering::Relaxed) << 8 | u32::from(warm), Ordering::Relaxed);
        if !warm {
            let mut cold = self.cold.lock();
            if cold.len() >= self.frames {
                // Mostly left-overs of pages that are gone.
                cold.pop_front();
            }
            cold.push_back((index, frame.id()));
            self.cold_count.store(cold.len(), Ordering::Relaxed);
        }
    }

    /// Takes the oldest entry of the cold queue, if there are more than `least`.
    fn next_cold(&self, least: usize) -> Option<(u32, PageId)> {
        if self.cold_count.load(Ordering::Relaxed) <= least {
            return None;
        }
        let mut cold = self.cold.lock();
        let entry = if cold.len() > least { cold.pop_front() } else { None };
        self.cold_count.store(cold.len(), Ordering::Relaxed);
        entry
    }

    fn is_cold(&self, frame: &Frame) -> bool {
        frame.touch.load(Ordering::Relaxed) & 0xFF == 0
    }

    /// The hand passes: halves the count. False when there was none left.
    fn spare(&self, frame: &Frame) -> bool {
        let touch = frame.touch.load(Ordering::Relaxed);
        frame.touch.store((touch & !0xFF) | ((touch & 0xFF) / 2), Ordering::Relaxed);
        touch & 0xFF != 0
    }

    fn count_taken(&self) {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        if taken.is_multiple_of(self.frames / EPOCH_SHARE + 1) {
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a search has passed over.
#[derive(Default)]
struct Sweep {
    dirty_max: u64,
    passed: u64,
    dirty: u64,
    /// Some because they are of the keep pool.
    spared: bool,
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
        self.search(site, context, self.frames.count() / DIRTY_SHARE + DIRTY_MIN)
    }

    fn search(&self, site: &dyn Site, context: &Context, dirty_max: usize) -> Option<PageWrite> {
        context.count(Statistic::FreeBufferRequested, 1);
        let victim = self.free_frame().or_else(|| self.cold_frame(site, context));
        let victim = victim.or_else(|| self.sweep(site, context, dirty_max))?;
        self.clock.count_taken();
        self.write_flash_inline(site, context, FLASH_EVERY);
        Some(victim)
    }

    /// Where there are no threads, whoever evicts writes to the flash cache too.
    pub(super) fn write_flash_inline(&self, site: &dyn Site, context: &Context, least: usize) {
        if let Some(flash) = &self.flash
            && inline(site)
            && flash.waiting() >= least
        {
            flash.turn(site, context);
        }
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

    fn cold_frame(&self, site: &dyn Site, context: &Context) -> Option<PageWrite> {
        let least = (self.frames.count() / COLD_SHARE).max(1);
        for _ in 0..COLD_LOOKS {
            let (index, id) = self.clock.next_cold(least)?;
            let frame = self.frames.at(index);
            // Another page's by now, or touched: the hand's business.
            if frame.id() != id || !self.clock.is_cold(frame) {
                continue;
            }
            match self.evict(site, context, index) {
                Some(victim) => return Some(victim),
                None => self.clock.begin(index, frame, false),
            }
        }
        None
    }

    /// Goes round with the hand. What only the keep pool would have to give is taken in a second search. Gives up after
    /// `dirty_max` dirty frames: the writers clean faster than one finds.
    fn sweep(&self, site: &dyn Site, context: &Context, dirty_max: usize) -> Option<PageWrite> {
        let mut sweep = Sweep { dirty_max: dirty_max as u64, ..Sweep::default() };
        let mut found = self.round(site, context, &mut sweep, KEEP);
        if found.is_none() && sweep.spared {
            found = self.round(site, context, &mut sweep, 0);
        }
        context.count(Statistic::FreeBufferInspected, sweep.passed);
        context.count(Statistic::DirtyBuffersInspected, sweep.dirty);
        if sweep.dirty >= DIRTY_PASSED_MAX || (found.is_none() && sweep.dirty > 0) {
            self.writers.want_free(site);
        }
        found
    }

    fn round(&self, site: &dyn Site, context: &Context, sweep: &mut Sweep, spared: u32) -> Option<PageWrite> {
        let count = self.frames.count();
        let mut hopeless = 0;
        for _ in 0..count * ROUNDS {
            let index = (self.clock.hand.fetch_add(1, Ordering::Relaxed) % count) as u32;
            let frame = self.frames.at(index);
            hopeless += 1;
            if self.frames.dirty_since(index).is_some() {
                // It grows cold meanwhile: the writers take cold ones first.
                self.clock.spare(frame);
                sweep.dirty += 1;
            } else if frame.has(spared | WRITING) || !frame.id().is_some() {
                sweep.spared |= frame.has(spared);
            } else if self.clock.spare(frame) {
                hopeless = 0;
            } else if let Some(victim) = self.evict(site, context, index) {
                return Some(victim);
            }
            sweep.passed += 1;
            if hopeless >= count || sweep.dirty > sweep.dirty_max {
                return None;
            }
        }
        None
    }

    /// Takes the page out of a frame, if nobody holds it and the disk has it. It is offered to the flash cache before
    /// it leaves the map, or somebody could change it in between (`flash`, rule 1).
    pub(super) fn evict(&self, site: &dyn Site, context: &Context, index: u32) -> Option<PageWrite> {
        let mut guard = self.latches[index as usize].try_write_arc()?;
        let frame = self.frames.at(index);
        // Looked at again: it may have changed before the latch was ours. A frame without a page is on the free list, and
        // whoever pops it there owns it.
        if self.frames.dirty_since(index).is_some() || frame.has(WRITING) || !frame.id().is_some() {
            return None;
        }
        let altered = frame.has(ALTERED | DOOMED);
        self.frames.references.offered(frame.id(), &guard.bytes, altered);
        if let Some(flash) = &self.flash {
            flash.offer(site, context, frame.id(), &mut guard.bytes, altered);
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
                    return self.search(site, context, usize::MAX).ok_or_else(|| self.no_buffer());
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
        let (clock, frame) = (Clock::new(10), Frame::default());
        clock.begin(0, &frame, true);
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
