//! The books of the frames: which page is in which, what is known about it, which frames are free.
//!
//! Here: the map from page to frame, the flags, and the position that makes a frame dirty. Not here: the bytes and their
//! latches (`latch`), who is replaced (`victim`). Start with [`Frames::find`].
//!
//! **The map** is a hash table of chains through the frames. Looking is free of locks: a walker may be led astray by a
//! frame that moves to another chain under it, and then at worst overlooks a page that is there (a miss looks again under the
//! lock before it publishes) or names a frame that holds another page by now (whoever gets the latch compares the page's address
//! again). What it buys: a hit writes to no shared memory but the latch itself. Its price: the second look in both cases.
//!
//! ```text
//! free -> read    [publish]    by the owner of the exclusive latch; in the map from now on, content not there yet
//! read -> xcur    [flags]      content there; the latch may be released
//! any  -> free    [release]    by the owner of the exclusive latch; out of the map
//! clean -> dirty  [mark_dirty] by the owner of the exclusive latch
//! dirty -> clean  [mark_clean] by a database writer that holds the latch shared: nobody is changing the page then
//! ```

use super::Pool;
use super::references::ReferenceLog;
use crate::flash::FlashCache;
use crate::page::{Lsn, PageId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Content is on its way from disk.
pub(super) const READING: u32 = 1;
/// A database writer has a copy of it and has not completed its write yet. Never evicted, never written twice at once.
pub(super) const WRITING: u32 = 1 << 1;
/// A database writer holds the latch and copies.
pub(super) const COPYING: u32 = 1 << 2;
/// The next change must log the whole page, because the page on disk may be torn from now on.
pub(super) const IMAGE_DUE: u32 = 1 << 3;
/// The redo since it became dirty begins with a format or an image: recovery need not read it.
pub(super) const SELF_SUFFICIENT: u32 = 1 << 4;
/// Its object was dropped while a write was in flight.
pub(super) const DOOMED: u32 = 1 << 5;
/// See [`Pool::Keep`].
pub(super) const KEEP: u32 = 1 << 6;
/// See [`Pool::Recycle`].
pub(super) const RECYCLE: u32 = 1 << 7;
/// Was latched to be formatted and not marked dirty since: memory and disk may differ although it is clean.
pub(super) const ALTERED: u32 = 1 << 8;

/// Longest chain that is walked without a lock; longer ones, and walks led in a circle, end as "not found".
const STEPS_MAX: u32 = 32;
/// Locks over the chains; a power of two.
const STRIPES: usize = 256;

/// What is known about a frame, in a cache line of its own.
#[repr(align(64))]
#[derive(Default)]
pub(super) struct Frame {
    /// [`PageId::to_u64`]; 0 when free.
    id: AtomicU64,
    /// Next frame of the chain, plus 1.
    next: AtomicU32,
    /// Touch count in the lower 8 bits, the epoch of the last touch above.
    pub touch: AtomicU32,
    pub flags: AtomicU32,
    object: AtomicU32,
}

impl Frame {
    #[inline]
    pub fn id(&self) -> PageId {
        PageId::from_u64(self.id.load(Ordering::Acquire))
    }

    pub fn object(&self) -> u32 {
        self.object.load(Ordering::Relaxed)
    }

    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Acquire) & flag != 0
    }

    /// Sets flags; the result is what was set before.
    pub fn set(&self, flags: u32) -> u32 {
        self.flags.fetch_or(flags, Ordering::AcqRel)
    }

    pub fn clear(&self, flags: u32) {
        self.flags.fetch_and(!flags, Ordering::AcqRel);
    }
}

#[repr(align(64))]
#[derive(Default)]
struct Stripe(Mutex<()>);

/// The books of all frames.
pub(super) struct Frames {
    frames: Box<[Frame]>,
    /// For each frame: 0 when clean, else 1 + a position before the first redo that the disk does not have. Apart from
    /// [`Frame`], so that a checkpoint scans 8 bytes a frame.
    dirty: Box<[AtomicU64]>,
    /// First frame of each chain, plus 1.
    heads: Box<[AtomicU32]>,
    shift: u32,
    stripes: Box<[Stripe]>,
    free: Mutex<Vec<u32>>,
    free_count: AtomicUsize,
    /// Objects that are not in the default pool.
    pools: Mutex<BTreeMap<u32, Pool>>,
    pools_count: AtomicUsize,
    /// Whether redo carries full images ([`super::TornPageProtection::Redo`]).
    images: bool,
    /// The second level, which has to hear of every block that changes.
    flash: Option<Arc<FlashCache>>,
    pub references: ReferenceLog,
}

impl Frames {
    /// `count` free frames.
    pub fn new(count: usize, images: bool) -> Self {
        let buckets = (count * 2).next_power_of_two().max(2);
        Self {
            frames: (0..count).map(|_| Frame::default()).collect(),
            dirty: (0..count).map(|_| AtomicU64::new(0)).collect(),
            heads: (0..buckets).map(|_| AtomicU32::new(0)).collect(),
            shift: 64 - buckets.ilog2(),
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            free: Mutex::new((0..count as u32).rev().collect()),
            free_count: AtomicUsize::new(count),
            pools: Mutex::default(),
            pools_count: AtomicUsize::new(0),
            images,
            flash: None,
            references: ReferenceLog::default(),
        }
    }

    /// The same with a second level.
    pub fn with_flash(self, flash: Option<Arc<FlashCache>>) -> Self {
        Self { flash, ..self }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.frames.len()
    }

    #[inline]
    pub fn at(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    /// All frames, by index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Frame)> {
        self.frames.iter().enumerate().map(|(index, frame)| (index as u32, frame))
    }

    #[inline]
    fn bucket(&self, id: u64) -> usize {
        // Fibonacci hashing: neighbours land far apart.
        (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// The frame that has the page, or had it a moment ago; none when it is not there, or was overlooked.
    #[inline]
    pub fn find(&self, id: PageId) -> Option<u32> {
        let id = id.to_u64();
        let mut at = self.heads[self.bucket(id)].load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            let index = at.checked_sub(1)?;
            let frame = &self.frames[index as usize];
            if frame.id.load(Ordering::Acquire) == id {
                return Some(index);
            }
            at = frame.next.load(Ordering::Acquire);
        }
        None
    }

    /// As [`Self::find`], under the lock: sure at that moment.
    pub fn find_surely(&self, id: PageId) -> Option<u32> {
        let bucket = self.bucket(id.to_u64());
        let _lock = self.stripes[bucket % STRIPES].0.lock();
        self.walk(bucket, id.to_u64())
    }

    /// The lock of the chain is held.
    fn walk(&self, bucket: usize, id: u64) -> Option<u32> {
        let mut at = self.heads[bucket].load(Ordering::Relaxed);
        while at != 0 {
            let frame = &self.frames[at as usize - 1];
            if frame.id.load(Ordering::Relaxed) == id {
                return Some(at - 1);
            }
            at = frame.next.load(Ordering::Relaxed);
        }
        None
    }

    /// Puts a page into the map. The caller owns the exclusive latch of the frame, which is in no chain.
    ///
    /// # Errors
    /// The frame that has the page already.
    pub fn publish(&self, index: u32, id: PageId) -> Result<(), u32> {
        assert!(id.is_some(), "a page of no file");
        let frame = self.at(index);
        let bucket = self.bucket(id.to_u64());
        let _lock = self.stripes[bucket % STRIPES].0.lock();
        if let Some(other) = self.walk(bucket, id.to_u64()) {
            return Err(other);
        }
        let head = self.heads[bucket].load(Ordering::Relaxed);
        assert!(frame.id.load(Ordering::Relaxed) == 0, "a frame is published twice");
        frame.object.store(0, Ordering::Relaxed);
        frame.flags.store(READING, Ordering::Release);
        frame.next.store(head, Ordering::Release);
        frame.id.store(id.to_u64(), Ordering::Release);
        self.heads[bucket].store(index + 1, Ordering::Release);
        Ok(())
    }

    /// Takes the page of a frame out of the map. The caller owns the exclusive latch. The frame is on no list then.
    pub fn unpublish(&self, index: u32) {
        let frame = self.at(index);
        let id = frame.id.load(Ordering::Relaxed);
        if id == 0 {
            return;
        }
        let bucket = self.bucket(id);
        let _lock = self.stripes[bucket % STRIPES].0.lock();
        let mut link = &self.heads[bucket];
        loop {
            let at = link.load(Ordering::Relaxed);
            assert!(at != 0, "a published frame is in its chain");
            let found = &self.frames[at as usize - 1];
            if at == index + 1 {
                // `next` stays as it is, so that who walks here now goes on to the rest of the chain.
                link.store(found.next.load(Ordering::Relaxed), Ordering::Release);
                break;
            }
            link = &found.next;
        }
        frame.id.store(0, Ordering::Release);
        frame.object.store(0, Ordering::Relaxed);
        frame.flags.store(0, Ordering::Release);
        frame.touch.store(0, Ordering::Relaxed);
        self.dirty[index as usize].store(0, Ordering::Release);
    }

    /// Frees a frame: out of the map, onto the free list. The caller owns the exclusive latch and gives it back next.
    pub fn release(&self, index: u32) {
        self.unpublish(index);
        self.give_back(index);
    }

    /// Puts a frame that is in no chain onto the free list.
    pub fn give_back(&self, index: u32) {
        let mut free = self.free.lock();
        free.push(index);
        self.free_count.store(free.len(), Ordering::Release);
    }

    /// Takes a frame off the free list. Its latch may be held for a moment by somebody who looked for an older page.
    pub fn take_free(&self) -> Option<u32> {
        if self.free_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut free = self.free.lock();
        let index = free.pop();
        self.free_count.store(free.len(), Ordering::Release);
        index
    }

    /// Frames on the free list.
    #[cfg(test)]
    pub fn free_count(&self) -> usize {
        self.free_count.load(Ordering::Acquire)
    }

    /// Where the redo begins that the disk does not have; none when the frame is clean.
    #[inline]
    pub fn dirty_since(&self, index: u32) -> Option<Lsn> {
        self.dirty[index as usize].load(Ordering::Acquire).checked_sub(1).map(Lsn)
    }

    /// Notes that the page will be newer than the disk, from redo at or after `since` on. Keeps an older position. The caller
    /// owns the exclusive latch.
    #[inline]
    pub fn mark_dirty(&self, index: u32, since: Lsn) {
        let dirty = &self.dirty[index as usize];
        if dirty.load(Ordering::Relaxed) == 0 {
            dirty.store(since.0 + 1, Ordering::Release);
            let frame = self.at(index);
            frame.clear(ALTERED);
            self.references.changed(frame.id());
            if let Some(flash) = &self.flash {
                flash.invalidate(frame.id());
            }
        }
    }

    /// The disk has everything up to `lsn`, the page something newer.
    pub fn dirty_from(&self, index: u32, lsn: Lsn) {
        self.dirty[index as usize].store(lsn.0 + 1, Ordering::Release);
    }

    /// The disk has the page as it is. The caller holds the latch, or nobody will ever want the page again.
    pub fn mark_clean(&self, index: u32) {
        self.dirty[index as usize].store(0, Ordering::Release);
    }

    /// All dirty frames with their positions.
    pub fn dirty_frames(&self) -> impl Iterator<Item = (u32, Lsn)> {
        self.dirty.iter().enumerate().filter_map(|(index, since)| {
            since.load(Ordering::Acquire).checked_sub(1).map(|since| (index as u32, Lsn(since)))
        })
    }

    /// Notes whose page it is, and so how it is treated. The caller owns the exclusive latch.
    #[inline]
    pub fn set_object(&self, index: u32, object: u32) {
        let frame = self.at(index);
        if frame.object.load(Ordering::Relaxed) != object {
            frame.object.store(object, Ordering::Relaxed);
            self.set_frame_pool(frame, self.pool(object));
        }
    }

    fn pool(&self, object: u32) -> Pool {
        if self.pools_count.load(Ordering::Acquire) == 0 {
            return Pool::Default;
        }
        self.pools.lock().get(&object).copied().unwrap_or_default()
    }

    fn set_frame_pool(&self, frame: &Frame, pool: Pool) {
        let flag = match pool {
            Pool::Default => 0,
            Pool::Keep => KEEP,
            Pool::Recycle => RECYCLE,
        };
        if frame.flags.load(Ordering::Relaxed) & (KEEP | RECYCLE) != flag {
            frame.clear(KEEP | RECYCLE);
            frame.set(flag);
        }
    }

    /// See [`super::BufferCache::set_pool`].
    pub fn set_pool(&self, object: u32, pool: Pool) {
        let mut pools = self.pools.lock();
        match pool {
            Pool::Default => pools.remove(&object),
            pool => pools.insert(object, pool),
        };
        self.pools_count.store(pools.len(), Ordering::Release);
        drop(pools);
        for frame in self.frames.iter().filter(|frame| frame.object() == object) {
            self.set_frame_pool(frame, pool);
        }
    }

    /// What becomes of the flags when the page has just come from disk.
    pub fn content_arrived(&self, index: u32) {
        let frame = self.at(index);
        if self.images {
            frame.set(IMAGE_DUE);
        }
        frame.clear(READING);
    }

    /// What becomes of the flags when a database writer has copied the page; the result is whether recovery could do
    /// without the page on disk if this write is torn. The caller holds the latch.
    pub fn copied(&self, index: u32) -> bool {
        let frame = self.at(index);
        if self.images {
            frame.set(IMAGE_DUE);
        }
        let sufficient = frame.has(SELF_SUFFICIENT);
        frame.clear(SELF_SUFFICIENT | COPYING);
        sufficient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(block: u32) -> PageId {
        PageId { file: 1, block }
    }

    #[test]
    fn what_is_published_is_found_until_released() {
        let frames = Frames::new(100, false);
        for block in 0..100 {
            let index = frames.take_free().unwrap();
            assert_eq!(frames.publish(index, page(block)), Ok(()));
            assert_eq!(frames.publish(index, page(block)), Err(index));
        }
        assert_eq!((frames.take_free(), frames.free_count()), (None, 0));
        for block in 0..100 {
            let index = frames.find(page(block)).unwrap();
            assert_eq!(frames.at(index).id(), page(block));
            frames.release(index);
            assert_eq!(frames.find(page(block)), None);
            assert!((block + 1..100).all(|later| frames.find(page(later)).is_some()), "{block}");
        }
        assert_eq!(frames.free_count(), 100);
    }

    #[test]
    fn the_oldest_position_stays_until_the_page_is_clean() {
        let frames = Frames::new(2, false);
        assert_eq!(frames.dirty_since(1), None);
        frames.mark_dirty(1, Lsn(0));
        frames.mark_dirty(1, Lsn(7));
        assert_eq!(frames.dirty_frames().collect::<Vec<_>>(), [(1, Lsn(0))], "position 0 is dirty, too");
        frames.dirty_from(1, Lsn(5));
        assert_eq!(frames.dirty_since(1), Some(Lsn(5)));
        frames.mark_clean(1);
        assert_eq!(frames.dirty_frames().count(), 0);
    }

    #[test]
    fn pools_follow_the_object() {
        let frames = Frames::new(2, false);
        frames.set_pool(7, Pool::Keep);
        frames.set_object(0, 7);
        assert!(frames.at(0).has(KEEP));
        frames.set_pool(7, Pool::Recycle);
        assert!(frames.at(0).has(RECYCLE) && !frames.at(0).has(KEEP));
        frames.set_object(0, 8);
        assert!(!frames.at(0).has(KEEP | RECYCLE));
        frames.set_pool(7, Pool::Default);
        frames.set_object(1, 7);
        assert!(!frames.at(1).has(KEEP | RECYCLE));
    }
}
