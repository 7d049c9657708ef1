//! Blocks that wait to be written to the flash cache.
//!
//! A session that evicts a block does not copy it: it leaves the frame's memory here and takes other memory of the same size for the frame.
//! So there are as many places as spare buffers, and when none is left the database writer is behind: the block is not cached.

use crate::Result;
use io::Buffer;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where a block is going: shard and slot in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub shard: u16,
    pub slot: u32,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Place, Buffer)>,
    spares: Vec<Buffer>,
}

/// The places.
pub(super) struct Staging {
    queue: Mutex<Queue>,
    spare_count: AtomicUsize,
    waiting_count: AtomicUsize,
}

impl Staging {
    /// # Errors
    /// No memory.
    pub fn new(count: usize, block_bytes: usize) -> Result<Self> {
        let spares = Buffer::many(count, block_bytes)?;
        let queue = Mutex::new(Queue { waiting: VecDeque::with_capacity(count), spares });
        Ok(Self { queue, spare_count: AtomicUsize::new(count), waiting_count: AtomicUsize::new(0) })
    }

    /// Whether there may be a place.
    pub fn has_room(&self) -> bool {
        self.spare_count.load(Ordering::Relaxed) > 0
    }

    /// How many blocks wait.
    pub fn waiting(&self) -> usize {
        self.waiting_count.load(Ordering::Relaxed)
    }

    fn note(&self, queue: &Queue) {
        self.spare_count.store(queue.spares.len(), Ordering::Relaxed);
        self.waiting_count.store(queue.waiting.len(), Ordering::Relaxed);
    }

    /// Takes a block, and leaves a spare buffer in its stead. How many wait now; none when there was no spare.
    pub fn swap(&self, place: Place, bytes: &mut Buffer) -> Option<usize> {
        let mut queue = self.queue.lock();
        let spare = queue.spares.pop()?;
        queue.waiting.push_back((place, std::mem::replace(bytes, spare)));
        self.note(&queue);
        Some(queue.waiting.len())
    }

    /// Memory that is not needed any more.
    pub fn give_spare(&self, buffer: Buffer) {
        let mut queue = self.queue.lock();
        queue.spares.push(buffer);
        self.note(&queue);
    }

    /// The block that has waited longest.
    pub fn pop(&self) -> Option<(Place, Buffer)> {
        if self.waiting() == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let first = queue.waiting.pop_front();
        self.note(&queue);
        first
    }
}
