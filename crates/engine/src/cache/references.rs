//! What a flash cache below would see, kept for some blocks: `lab` asks from it what a flash cache of each size would serve.
//!
//! Off until [`ReferenceLog::start`]: then a miss, an eviction and a first change cost one relaxed load each. On, a hash of the block's address
//! decides whether it is kept, and a lock is taken for those that are. The order of one block's events is right, as all of them happen under
//! its frame's latch; that of different blocks is as good as the order in which sessions come to the lock.

use crate::page::{self, PageId, PageKind};
use parking_lot::Mutex;
use stats::mrc::{Event, Reference, References, Sampler, is_kept};
use std::sync::atomic::{AtomicU64, Ordering};

/// The references of the buffer cache, while they are asked for.
#[derive(Default)]
pub struct ReferenceLog {
    /// Of the sampler; 0: nothing is kept.
    threshold: AtomicU64,
    seed: AtomicU64,
    reads: AtomicU64,
    sampler: Mutex<Option<Sampler>>,
}

impl ReferenceLog {
    /// Begins anew: keeps at most `limit` references, 8 bytes each, of the blocks that `seed` chooses.
    pub fn start(&self, seed: u64, limit: usize) {
        let mut sampler = self.sampler.lock();
        let new = Sampler::new(seed, limit);
        self.seed.store(seed, Ordering::Relaxed);
        self.reads.store(0, Ordering::Relaxed);
        self.threshold.store(new.threshold(), Ordering::Relaxed);
        *sampler = Some(new);
    }

    /// Ends; what was kept since [`Self::start`], none when it was not called.
    pub fn stop(&self) -> Option<References> {
        let sampler = self.sampler.lock().take()?;
        self.threshold.store(0, Ordering::Relaxed);
        Some(sampler.finish_with(self.reads.load(Ordering::Relaxed)))
    }

    #[inline]
    fn is_on(&self) -> bool {
        self.threshold.load(Ordering::Relaxed) != 0
    }

    /// A block was not cached and is about to be read.
    #[inline]
    pub(super) fn read(&self, id: PageId) {
        if self.is_on() {
            self.note(id, Event::Read);
        }
    }

    /// A clean block leaves the cache. `altered`: memory and disk may differ. Left out is what no flash cache takes.
    #[inline]
    pub(super) fn offered(&self, id: PageId, bytes: &[u8], altered: bool) {
        if self.is_on() && !altered && page::page_id(bytes) == id && page::kind(bytes) != Some(PageKind::Temp)
        {
            self.note(id, Event::Offer);
        }
    }

    /// A clean block changes.
    #[inline]
    pub(super) fn changed(&self, id: PageId) {
        if self.is_on() {
            self.note(id, Event::Change);
        }
    }

    fn note(&self, id: PageId, event: Event) {
        self.reads.fetch_add(u64::from(event == Event::Read), Ordering::Relaxed);
        let block = id.to_u64();
        if !is_kept(block, self.seed.load(Ordering::Relaxed), self.threshold.load(Ordering::Relaxed)) {
            return;
        }
        let mut sampler = self.sampler.lock();
        if let Some(sampler) = &mut *sampler {
            sampler.keep(Reference { block, event });
            self.threshold.store(sampler.threshold(), Ordering::Relaxed);
        }
    }
}
