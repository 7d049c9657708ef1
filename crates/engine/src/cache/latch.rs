//! Latched pages: shared ([`PageRead`]) and exclusive ([`PageWrite`]). Latches are held for moments, never across a wait of
//! a user, and a thread never latches a page that it holds already: it would wait for itself.
//!
//! Guards own a reference to their frame's latch, so they have no lifetime and need no `unsafe`.

use super::frames::{DOOMED, Frames, IMAGE_DUE, SELF_SUFFICIENT};
use crate::page::{self, Lsn, PageId};
use io::Buffer;
use parking_lot::lock_api::{ArcRwLockReadGuard, ArcRwLockWriteGuard};
use parking_lot::{RawRwLock, RwLock};
use std::ops::Deref;
use std::sync::Arc;

/// What a latch protects.
pub(super) struct Content {
    pub bytes: Buffer,
    pub frames: Arc<Frames>,
    pub index: u32,
}

pub(super) type Latch = Arc<RwLock<Content>>;
pub(super) type ReadGuard = ArcRwLockReadGuard<RawRwLock, Content>;
pub(super) type WriteGuard = ArcRwLockWriteGuard<RawRwLock, Content>;

/// A page latched for reading, by one or many at a time. Releases on drop.
pub struct PageRead {
    guard: ReadGuard,
}

impl PageRead {
    #[inline]
    pub(super) fn new(guard: ReadGuard) -> Self {
        Self { guard }
    }

    /// Its address.
    pub fn id(&self) -> PageId {
        self.guard.frames.at(self.guard.index).id()
    }
}

impl Deref for PageRead {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.guard.bytes
    }
}

/// Frees a frame when dropped, unless its content has arrived. Dropped before the latch is released.
struct Duty(Option<(Arc<Frames>, u32)>);

impl Drop for Duty {
    #[inline]
    fn drop(&mut self) {
        if let Some((frames, index)) = self.0.take() {
            frames.release(index);
        }
    }
}

/// A page latched exclusively. Releases on drop.
///
/// How a change of pages uses it: edit [`PageWrite::bytes_mut`]; then, for all pages of the change, [`PageWrite::mark_dirty`] with the
/// end of the redo so far; then append the record; then [`PageWrite::set_lsn`] with the record's end; then drop. Marked before the
/// record exists: a checkpoint that does not see the mark has looked at the end of the redo before the record was there, so it
/// does not claim it. Marked afterwards, a checkpoint could read the new end of the redo, overlook the page, and claim
/// redo that no data file has.
pub struct PageWrite {
    // Before the guard: a frame is freed while it is still latched.
    duty: Duty,
    guard: WriteGuard,
}

impl PageWrite {
    /// A page whose content is there.
    #[inline]
    pub(super) fn new(guard: WriteGuard) -> Self {
        Self { duty: Duty(None), guard }
    }

    /// A frame that is freed on drop until [`PageWrite::arrived`].
    pub(super) fn vacant(guard: WriteGuard) -> Self {
        Self { duty: Duty(Some((guard.frames.clone(), guard.index))), guard }
    }

    #[inline]
    pub(super) fn index(&self) -> u32 {
        self.guard.index
    }

    #[inline]
    pub(super) fn frames(&self) -> &Frames {
        &self.guard.frames
    }

    /// The content is there: the frame stays.
    pub(super) fn arrived(&mut self) {
        self.duty.0 = None;
    }

    pub(super) fn downgrade(self) -> PageRead {
        let Self { duty, guard } = self;
        assert!(duty.0.is_none(), "content that has not arrived is not shown");
        PageRead::new(ArcRwLockWriteGuard::downgrade(guard))
    }

    /// Its address.
    #[inline]
    pub fn id(&self) -> PageId {
        self.frames().at(self.index()).id()
    }

    /// The page.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.guard.bytes
    }

    /// The page, to edit it.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.guard.bytes
    }

    /// Whether the next redo record that touches the page must carry it whole (after its edits): what is on disk may be
    /// torn. Never with another `torn_page_protection` than `redo`.
    #[inline]
    pub fn image_due(&self) -> bool {
        self.frames().at(self.index()).has(IMAGE_DUE)
    }

    /// The page was formatted, or its full image is in the record about to be appended: recovery needs nothing older.
    pub fn note_image(&mut self) {
        let frame = self.frames().at(self.index());
        frame.clear(IMAGE_DUE);
        // Only if no older redo needs the page on disk: that is where recovery would begin.
        if self.frames().dirty_since(self.index()).is_none() {
            frame.set(SELF_SUFFICIENT);
        }
        if frame.has(DOOMED) {
            frame.clear(DOOMED);
        }
    }

    /// Marks the page as newer than the disk; `redo_tail` is the end of the redo, read before the record of this change is appended.
    /// Also for changes without redo (hints, temporary pages).
    #[inline]
    pub fn mark_dirty(&mut self, redo_tail: Lsn) {
        self.duty.0 = None;
        let (frames, index) = (self.frames(), self.index());
        frames.set_object(index, page::object(self.bytes()));
        frames.mark_dirty(index, redo_tail);
    }

    /// Notes the end of the record as the page's LSN.
    #[inline]
    pub fn set_lsn(&mut self, lsn: Lsn) {
        page::set_lsn(self.bytes_mut(), lsn);
    }
}
