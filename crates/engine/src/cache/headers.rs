//! What the frames hold now: `v$bh`, and sums for samples over time.

use super::BufferCache;
use super::Pool;
use super::frames::{KEEP, READING, RECYCLE};
use crate::page::PageId;
use std::sync::atomic::Ordering;

/// State of a frame, `v$bh.status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BufferStatus {
    /// Holds nothing.
    Free,
    /// Holds the current version of a block.
    Xcur,
    /// Its block is being read.
    Read,
    /// The block is in the flash cache, which has the address and no frame.
    Flashcur,
    /// A slot of the flash cache that holds nothing.
    Flashfree,
}

impl BufferStatus {
    /// As `v$bh.status` says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Xcur => "xcur",
            Self::Read => "read",
            Self::Flashcur => "flashcur",
            Self::Flashfree => "flashfree",
        }
    }
}

/// A row of `v$bh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferHeader {
    /// What it holds; [`PageId::NONE`] when free.
    pub id: PageId,
    /// Whose block it is; 0 when free, or while it is being read.
    pub object: u32,
    /// State.
    pub status: BufferStatus,
    /// Newer than the disk.
    pub dirty: bool,
    /// Touch count, `x$bh.tch`.
    pub touches: u32,
    /// How its object is treated.
    pub pool: Pool,
}

/// How many frames are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStates {
    /// Free.
    pub free: u64,
    /// With a block, clean or dirty.
    pub xcur: u64,
    /// Being read.
    pub read: u64,
    /// Of `xcur`, the dirty ones.
    pub dirty: u64,
    /// Blocks in the flash cache.
    pub flashcur: u64,
    /// Slots of the flash cache that hold nothing.
    pub flashfree: u64,
}

impl BufferCache {
    /// All frames, then the slots of the flash cache, each as it is when it is looked at; together they are not one moment.
    pub fn headers(&self) -> impl Iterator<Item = BufferHeader> + '_ {
        let second = self.flash.iter().flat_map(|flash| {
            let row = |status, (id, object)| BufferHeader {
                id,
                object,
                status,
                dirty: false,
                touches: 0,
                pool: Pool::Default,
            };
            let current = flash.blocks().into_iter().map(move |block| row(BufferStatus::Flashcur, block));
            let free = (0..flash.states().1).map(move |_| row(BufferStatus::Flashfree, (PageId::NONE, 0)));
            current.chain(free)
        });
        self.frame_headers().chain(second)
    }

    fn frame_headers(&self) -> impl Iterator<Item = BufferHeader> + '_ {
        self.frames.iter().map(|(index, frame)| {
            let id = frame.id();
            let status = match (id.is_some(), frame.has(READING)) {
                (false, _) => BufferStatus::Free,
                (true, true) => BufferStatus::Read,
                (true, false) => BufferStatus::Xcur,
            };
            let pool = match (frame.has(KEEP), frame.has(RECYCLE)) {
                (true, _) => Pool::Keep,
                (_, true) => Pool::Recycle,
                _ => Pool::Default,
            };
            BufferHeader {
                id,
                object: frame.object(),
                status,
                dirty: self.frames.dirty_since(index).is_some(),
                touches: frame.touch.load(Ordering::Relaxed) & 0xFF,
                pool,
            }
        })
    }

    /// Sums of [`Self::headers`], for samples over time.
    pub fn states(&self) -> BufferStates {
        let (flashcur, flashfree) = self.flash.as_ref().map_or((0, 0), |flash| flash.states());
        let mut states = BufferStates { flashcur, flashfree, ..BufferStates::default() };
        for header in self.frame_headers() {
            match header.status {
                BufferStatus::Free => states.free += 1,
                BufferStatus::Xcur => states.xcur += 1,
                BufferStatus::Read => states.read += 1,
                BufferStatus::Flashcur | BufferStatus::Flashfree => {}
            }
            states.dirty += u64::from(header.dirty);
        }
        states
    }
}
