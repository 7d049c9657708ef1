//! Direct path reads: a full scan that goes past the cache, with a few large requests in flight.
//!
//! What it buys: the speed of the device at a few percent of a CPU, and a cache that keeps what others need. Its price: pages
//! that are newer in the cache must be on disk first ([`super::BufferCache::write_dirty`]). A page that a database writer
//! is just overwriting may come half old, half new; its checksum tells, and the scan takes it from the cache, where a page in
//! that state always is, or reads it again.

use super::frames::Frames;
use super::latch::Latch;
use super::queues::{FileQueue, QueuePool};
use super::read::{count_read, verify};
use super::site::{Site, check};
use crate::files::DataFile;
use crate::files::iostat::Transfer;
use crate::page::PageId;
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use io::{Action, Buffer, Completion, Outcome, Request};
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Clock, Nanos};
use waits::Event;

/// How often a page that is not right is read again. Each time it would have to be overwritten at that very moment.
const TRIES_MAX: u32 = 20;

/// Large asynchronous reads that bypass the cache (`direct path read`), in page order, `_direct_read_depth` requests of
/// `db_file_multiblock_read_count` blocks in flight. Call [`super::BufferCache::write_dirty`] for the object first.
pub struct DirectRead {
    /// None only while dropping.
    queue: Option<FileQueue>,
    pool: Arc<QueuePool>,
    /// What is left to ask for.
    runs: VecDeque<(PageId, u32)>,
    /// Asked for, in page order.
    waiting: VecDeque<Chunk>,
    free: Vec<u32>,
    done: Vec<Completion>,
    blocks_max: u32,
    block_bytes: usize,
    clock: Clock,
    frames: Arc<Frames>,
    latches: Arc<[Latch]>,
    spare: Option<Buffer>,
}

/// A request.
struct Chunk {
    slot: u32,
    first: PageId,
    blocks: u32,
    /// When it was asked for; once it has arrived, how long that took.
    time: Nanos,
    outcome: Option<Outcome>,
}

impl DirectRead {
    /// Over runs of pages `(first, blocks)`; each page is verified.
    ///
    /// # Errors
    /// When no queue can be opened.
    pub fn open(core: &dyn Site, context: &Context, runs: Vec<(PageId, u32)>) -> Result<Self> {
        let cache = core.cache();
        let pool = cache.direct_pool(core);
        let queue = pool.borrow(core, context.session)?;
        Ok(Self {
            free: (0..queue.queue.depth()).rev().collect(),
            queue: Some(queue),
            blocks_max: pool.slot_bytes() / cache.block_bytes as u32,
            pool,
            runs: runs.into(),
            waiting: VecDeque::new(),
            done: Vec::new(),
            block_bytes: cache.block_bytes,
            clock: core.environment().clock.clone(),
            frames: cache.frames.clone(),
            latches: cache.latches.clone(),
            spare: None,
        })
    }

    /// Calls `each` for every page of the next request that has arrived; `false` at the end.
    ///
    /// # Errors
    /// What a read met, or what `each` returned. The scan is over then.
    pub fn next(
        &mut self,
        context: &Context,
        each: &mut dyn FnMut(PageId, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        self.stage()?;
        self.await_first(context)?;
        let Some(chunk) = self.waiting.pop_front() else { return Ok(false) };
        self.show(context, &chunk, each)?;
        self.free.push(chunk.slot);
        Ok(true)
    }

    fn queue(&mut self) -> &mut FileQueue {
        self.queue.as_mut().expect("there until dropped")
    }

    /// Puts requests into all free slots.
    fn stage(&mut self) -> Result<()> {
        while let (Some(slot), Some((first, blocks))) = (self.free.last().copied(), self.runs.front_mut()) {
            let now = (*blocks).min(self.blocks_max);
            let chunk = Chunk { slot, first: *first, blocks: now, time: self.clock.now(), outcome: None };
            first.block += now;
            *blocks -= now;
            if *blocks == 0 {
                self.runs.pop_front();
            }
            if now == 0 {
                continue;
            }
            let bytes = now * self.block_bytes as u32;
            let offset = u64::from(chunk.first.block) * self.block_bytes as u64;
            let queue = self.queue();
            let Some((file, _)) = queue.file(chunk.first) else {
                return Err(EngineError::Invalid(format!("file {} of a scan is gone", chunk.first.file)));
            };
            queue.queue.stage(slot, Request { file, offset, bytes, action: Action::Read });
            self.free.pop();
            self.waiting.push_back(chunk);
        }
        Ok(())
    }

    /// Submits what is staged, and waits until the first request is there.
    fn await_first(&mut self, context: &Context) -> Result<()> {
        let Self { queue: Some(FileQueue { queue, .. }), waiting, done, clock, .. } = self else {
            return Ok(());
        };
        if waiting.front().is_none_or(|chunk| chunk.outcome.is_some()) {
            queue.submit()?;
            return Ok(());
        }
        let Chunk { first, blocks, .. } = waiting[0];
        let [p1, p2, p3] = [u64::from(first.file), u64::from(first.block), u64::from(blocks)];
        let wait = context.slot.enter(Event::DirectPathRead, p1, p2, p3);
        while waiting.front().is_some_and(|chunk| chunk.outcome.is_none()) {
            queue.submit_and_reap(1, done)?;
            let now = clock.now();
            for Completion { slot, outcome } in done.drain(..) {
                let chunk = waiting.iter_mut().find(|chunk| chunk.slot == slot).expect("a request of ours");
                chunk.outcome = Some(outcome);
                chunk.time = now - chunk.time;
            }
        }
        drop(wait);
        Ok(())
    }

    fn show(
        &mut self,
        context: &Context,
        chunk: &Chunk,
        each: &mut dyn FnMut(PageId, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Self { queue: Some(queue), block_bytes, .. } = self else { return Ok(()) };
        let bytes = chunk.blocks as usize * *block_bytes;
        let offset = u64::from(chunk.first.block) * *block_bytes as u64;
        let (_, file) = queue.file(chunk.first).expect("it was asked of this file");
        let file = file.clone();
        check(&file, "read", offset, bytes, chunk.outcome.expect("it has arrived"))?;
        file.statistics.note(Transfer::ReadAsync, bytes as u64, chunk.time);
        count_read(context, Statistic::PhysicalReadsDirect, u64::from(chunk.blocks), bytes);
        let pages = queue.queue.buffer(chunk.slot)[..bytes].chunks_exact(*block_bytes);
        for (block, page) in (chunk.first.block..).zip(pages) {
            let id = PageId { block, ..chunk.first };
            if verify(&file, id, page).is_ok() {
                each(id, page)?;
            } else {
                let repair = Repair { frames: &self.frames, latches: &self.latches, file: &file };
                repair.show(id, &mut self.spare, page.len(), each)?;
            }
        }
        Ok(())
    }
}

impl Drop for DirectRead {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take()
            && self.waiting.is_empty()
        {
            self.pool.give_back(queue);
        }
    }
}

/// A page that did not come right.
struct Repair<'a> {
    frames: &'a Frames,
    latches: &'a [Latch],
    file: &'a DataFile,
}

impl Repair<'_> {
    /// From the cache, where every page is that is being written; else from disk again: it was written a moment ago.
    fn show(
        &self,
        id: PageId,
        spare: &mut Option<Buffer>,
        bytes: usize,
        each: &mut dyn FnMut(PageId, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let spare = match spare {
            Some(spare) => spare,
            None => spare.insert(Buffer::new(bytes)?),
        };
        let mut wrong = Ok(());
        for _ in 0..TRIES_MAX {
            if self.copy_cached(id, spare) {
                return each(id, spare);
            }
            let offset = u64::from(id.block) * bytes as u64;
            let outcome = self.file.disk()?.read_at(spare, offset);
            check(self.file, "pread", offset, bytes, outcome)?;
            wrong = verify(self.file, id, spare);
            if wrong.is_ok() {
                return each(id, spare);
            }
        }
        wrong
    }

    fn copy_cached(&self, id: PageId, to: &mut [u8]) -> bool {
        let Some(index) = self.frames.find_surely(id) else { return false };
        let content = self.latches[index as usize].read();
        if self.frames.at(index).id() != id {
            return false;
        }
        to.copy_from_slice(&content.bytes);
        true
    }
}
