//! Blocks that wait to be written to the flash cache.
//!
//! A session that evicts a block does not copy it: it leaves the frame's memory here and takes other memory of the same size for the frame.
//! So there are as many places as spare buffers, and when none is left the writer is behind: the block is not cached.
//!
//! Who was behind once is given time to catch up before blocks come again, if so wished: a scan then leaves long stretches in the flash cache
//! and long gaps, not a hole in every read of many blocks, which costs the next scan a read of the slow device each.

use crate::Result;
use crate::page::{self, PageId};
use io::Buffer;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
#[derive(Default)]
pub(super) struct Staging {
    queue: Mutex<Queue>,
    spare_count: AtomicUsize,
    waiting_count: AtomicUsize,
    /// The writer is behind.
    is_behind: AtomicBool,
    /// Once behind, it has caught up when no more than so many wait.
    resume_at: usize,
}

impl Staging {
    /// `count` places; none is given away between the moment when all are taken and the one when no more than `resume_at` blocks wait.
    ///
    /// # Errors
    /// No memory.
    pub fn new(count: usize, resume_at: usize, block_bytes: usize) -> Result<Self> {
        let spares = Buffer::many(count, block_bytes)?;
        let queue = Mutex::new(Queue { waiting: VecDeque::with_capacity(count), spares });
        Ok(Self { queue, spare_count: AtomicUsize::new(count), resume_at, ..Self::default() })
    }

    /// Whether there may be a place.
    pub fn has_room(&self) -> bool {
        let full = self.spare_count.load(Ordering::Relaxed) == 0;
        let behind = full || (self.is_behind.load(Ordering::Relaxed) && self.waiting() > self.resume_at);
        self.is_behind.store(behind, Ordering::Relaxed);
        !behind
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

    /// Copies a block that waits. False when it does not wait any more; another may wait for its place by now.
    pub fn copy(&self, place: Place, id: PageId, to: &mut [u8]) -> bool {
        let queue = self.queue.lock();
        let found = queue.waiting.iter().find(|(waits, block)| *waits == place && page::page_id(block) == id);
        if let Some((_, block)) = found {
            to.copy_from_slice(block);
        }
        found.is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight places for 32 blocks, of which the writer takes one after each second: what is let in.
    fn let_in(resume_at: usize) -> String {
        let staging = Staging::new(8, resume_at, 512).expect("memory");
        let mut letters = String::new();
        for slot in 0..32 {
            let mut block = Buffer::new(512).expect("memory");
            let taken = staging.has_room() && staging.swap(Place { shard: 0, slot }, &mut block).is_some();
            letters.push(if taken { '#' } else { '.' });
            if slot % 2 == 1 {
                staging.pop().into_iter().for_each(|(_, buffer)| staging.give_spare(buffer));
            }
        }
        letters
    }

    #[test]
    fn who_is_behind_catches_up_first() {
        assert_eq!(let_in(8), "###############.#.#.#.#.#.#.#.#.", "as soon as there is a place");
        assert_eq!(let_in(2), "###############...........######", "in stretches");
    }
}
