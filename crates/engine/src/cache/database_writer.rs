//! A database writer's turn: choose dirty pages, copy a batch, write it, mark clean what nobody has changed meanwhile.
//!
//! ```text
//! 1. claim: flag WRITING            one write of a page at a time: two could land in the wrong order
//! 2. latch shared, if free; copy, seal, note its LSN; release
//!                                   busy pages are left for the next turn: who holds them may wait for this writer
//! 3. redo durable up to the newest of these LSNs
//!                                   else a crash could leave a change in a data file that no redo knows: it could be neither
//!                                   repeated nor rolled back
//! 4. doublewrite, where needed      else a torn page would have no whole copy
//! 5. write home, durable            files are opened O_DSYNC in every mode
//! 6. latch shared, if free; same LSN → clean, else dirty since the copied LSN; unflag
//!                                   before 5, a checkpoint could pass redo that no file has
//! ```
//! A write that fails leaves its pages dirty since when they were: nothing is lost, the checkpoint does not pass them, and
//! they are tried again. After [`FAILURES_MAX`] batches in a row the instance stops itself.
//!
//! What copying buys: a page can be changed while its write is in flight, and `O_DIRECT` reads memory that nobody changes.
//! Its price: a copy of a block, 0.3 µs of the 60 µs that its write takes.

use super::BufferCache;
use super::frames::{COPYING, DOOMED, WRITING};
use super::queues::FileQueue;
use super::site::{Site, check, inline};
use crate::files::iostat::Transfer;
use crate::page::{self, Lsn, PageId, PageKind};
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use io::{Action, Completion, Outcome, Request};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use units::Nanos;
use waits::Event;

/// Batches that may fail in a row.
const FAILURES_MAX: u32 = 5;
/// Pause of a writer thread after a failed batch; doubled after each further one in a row.
const PAUSE_FAILED: Nanos = Nanos::millis(25);
/// Touches up to which a dirty page counts as cold.
const COLD_TOUCHES: u32 = 1;
/// A frame ahead of the hand is wanted clean when it is among the next so many of all.
const AHEAD_SHARE: usize = 4;

/// Why pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Checkpoint,
    FreeBuffers,
}

/// A database writer between its turns.
pub(super) struct Writer {
    number: u32,
    queue: Option<FileQueue>,
    /// Chosen and not tried yet, in the order of addresses.
    chosen: Vec<(PageId, u32)>,
    next: usize,
    purpose: Purpose,
    /// Batches in a row that failed as a whole.
    failures: u32,
    /// Pages whose last write failed, and how often in a row.
    failing: BTreeMap<PageId, u32>,
}

/// A page copied into a slot of the queue.
struct Claim {
    index: u32,
    id: PageId,
    lsn: Lsn,
    /// Recovery can do without the page on disk.
    sufficient: bool,
}

/// What is written together: for each slot the neighbours in it.
#[derive(Default)]
struct Batch {
    slots: Vec<Vec<Claim>>,
    pages: usize,
    /// Of these, the ones that go to the doublewrite file first.
    twice: usize,
    newest: Lsn,
}

/// How a batch went.
#[derive(Default)]
struct Report {
    written: Vec<PageId>,
    requests: u64,
    undo_blocks: u64,
    failed: Vec<PageId>,
    first_error: Option<EngineError>,
}

impl Writer {
    pub fn new(number: u32) -> Self {
        Self {
            number,
            queue: None,
            chosen: Vec::new(),
            next: 0,
            purpose: Purpose::Checkpoint,
            failures: 0,
            failing: BTreeMap::new(),
        }
    }

    /// How often in a row the same thing failed.
    pub fn failures(&self) -> u32 {
        self.failing.values().copied().max().unwrap_or(0).max(self.failures)
    }

    fn note(&mut self, report: &Report) {
        for id in &report.failed {
            *self.failing.entry(*id).or_default() += 1;
        }
        if !self.failing.is_empty() {
            self.failing.retain(|id, _| !report.written.contains(id));
        }
        self.failures = if report.written.is_empty() { self.failures + 1 } else { 0 };
    }

    fn choose(&mut self, pages: impl Iterator<Item = (PageId, u32)>, purpose: Purpose) {
        self.chosen.clear();
        self.chosen.extend(pages);
        self.chosen.sort_unstable();
        self.next = 0;
        self.purpose = purpose;
    }
}

impl BufferCache {
    /// A turn. False when there was nothing that could be written.
    pub(super) fn write_some(&self, site: &dyn Site, context: &Context, writer: &mut Writer) -> Result<bool> {
        self.choose(context, writer);
        while writer.next < writer.chosen.len() {
            let mut queue = match writer.queue.take() {
                Some(queue) if queue.is_current(site) => queue,
                _ => match self.writer_pool.borrow(site, u32::MAX - writer.number) {
                    Ok(queue) => queue,
                    Err(error) => {
                        writer.failures += 1;
                        return self.failed(site, writer, &Report::of(error));
                    }
                },
            };
            let mut batch = self.fill(site, &mut queue, writer);
            if batch.pages == 0 {
                writer.queue = Some(queue);
                continue;
            }
            let report = self.carry_out(site, context, writer.number, &mut queue, &mut batch);
            self.release(&batch);
            self.writers.note_progress();
            let report = report?;
            self.count(context, writer.purpose, &report);
            writer.queue = Some(queue);
            writer.note(&report);
            return if report.first_error.is_some() { self.failed(site, writer, &report) } else { Ok(true) };
        }
        Ok(false)
    }

    /// Fills the writer's list when it is at its end, or when somebody waits for a free frame.
    fn choose(&self, context: &Context, writer: &mut Writer) {
        let number = writer.number as usize;
        let mine = |index: u32| {
            let id = self.frames.at(index).id();
            (id.is_some() && self.writers.of(id) == number).then_some((id, index))
        };
        if self.writers.take_need_free(number) {
            context.count(Statistic::DbwrMakeFreeRequests, 1);
            let ahead = self.ahead_of_hand();
            writer.choose(ahead.into_iter().filter_map(mine), Purpose::FreeBuffers);
        }
        if writer.next < writer.chosen.len() {
            return;
        }
        let wanted = self.writers.wanted();
        if wanted.is_nothing() {
            return writer.choose(std::iter::empty(), Purpose::Checkpoint);
        }
        let dirty = self.frames.dirty_frames();
        let meant = dirty.filter(|(index, since)| wanted.includes(self.frames.at(*index).object(), *since));
        writer.choose(meant.filter_map(|(index, _)| mine(index)), Purpose::Checkpoint);
    }

    /// Dirty frames that the clock hand comes to next: the cold ones; all of them where none is cold.
    fn ahead_of_hand(&self) -> Vec<u32> {
        let count = self.frames.count();
        let hand = self.clock.hand();
        let dirty = |ahead: usize| {
            let index = ((hand + ahead) % count) as u32;
            let frame = self.frames.at(index);
            // What somebody holds cannot be written now; chosen alone, it would leave the others unwritten for ever.
            let writable = || self.latches[index as usize].try_read().is_some();
            (self.frames.dirty_since(index).is_some() && !frame.has(WRITING) && writable()).then_some(index)
        };
        let most = self.writer_pool.depth() as usize * self.blocks_per_write * 2;
        let cold = |index: &u32| self.frames.at(*index).touch.load(Ordering::Relaxed) & 0xFF <= COLD_TOUCHES;
        let near: Vec<u32> = (0..count / AHEAD_SHARE).filter_map(dirty).filter(cold).take(most).collect();
        if !near.is_empty() {
            return near;
        }
        let anywhere: Vec<u32> = (0..count).filter_map(dirty).collect();
        let cold: Vec<u32> = anywhere.iter().copied().filter(cold).take(most).collect();
        if cold.is_empty() { anywhere.into_iter().take(most).collect() } else { cold }
    }

    /// Copies chosen pages into the queue's slots, neighbours into the same, until the slots or the pages are used up.
    fn fill(&self, site: &dyn Site, queue: &mut FileQueue, writer: &mut Writer) -> Batch {
        let mut batch = Batch::default();
        let twice_max = self.doublewrite.as_ref().map_or(usize::MAX, |file| file.blocks_max());
        while writer.next < writer.chosen.len() && batch.twice < twice_max {
            let (id, index) = writer.chosen[writer.next];
            let neighbour = batch.slots.last().is_some_and(|slot| {
                let last = slot[slot.len() - 1].id;
                slot.len() < self.blocks_per_write && last.file == id.file && last.block + 1 == id.block
            });
            if !neighbour && batch.slots.len() == queue.queue.depth() as usize {
                break;
            }
            writer.next += 1;
            if queue.file(id).is_none() {
                self.forget_if_dropped(site, id, index);
                continue;
            }
            let (slot, at) = if neighbour {
                (batch.slots.len() - 1, batch.slots[batch.slots.len() - 1].len())
            } else {
                (batch.slots.len(), 0)
            };
            let to = &mut queue.queue.buffer_mut(slot as u32)[at * self.block_bytes..][..self.block_bytes];
            let Some(claim) = self.copy(index, id, to) else { continue };
            if !neighbour {
                batch.slots.push(Vec::with_capacity(1));
            }
            batch.newest = batch.newest.max(claim.lsn);
            batch.pages += 1;
            batch.twice += usize::from(!claim.sufficient);
            batch.slots[slot].push(claim);
        }
        batch
    }

    /// A page of a file that was dropped will never be wanted on disk.
    fn forget_if_dropped(&self, site: &dyn Site, id: PageId, index: u32) {
        if site.files().get(id.file).is_some_and(|file| file.disk().is_ok()) {
            return;
        }
        if let Some(_guard) = self.latches[index as usize].try_write()
            && self.frames.at(index).id() == id
            && !self.frames.at(index).has(WRITING)
        {
            self.frames.release(index);
        }
    }

    /// Steps 1 and 2. None when the page is latched, in flight, clean or gone.
    fn copy(&self, index: u32, id: PageId, to: &mut [u8]) -> Option<Claim> {
        let frame = self.frames.at(index);
        if frame.set(WRITING) & WRITING != 0 {
            return None;
        }
        frame.set(COPYING);
        let latched = self.latches[index as usize].try_read();
        let content = match latched {
            Some(content) if frame.id() == id && self.frames.dirty_since(index).is_some() => content,
            _ => {
                frame.clear(WRITING | COPYING);
                return None;
            }
        };
        to.copy_from_slice(&content.bytes);
        let sufficient = self.frames.copied(index);
        drop(content);
        page::seal(to);
        Some(Claim { index, id, lsn: page::lsn(to), sufficient })
    }

    /// Steps 3 to 6.
    fn carry_out(
        &self,
        site: &dyn Site,
        context: &Context,
        number: u32,
        queue: &mut FileQueue,
        batch: &mut Batch,
    ) -> Result<Report> {
        site.redo_flush(context, batch.newest)?;
        if let Err(error) = self.write_twice(site, context, number, queue, batch) {
            return Ok(Report::of(error));
        }
        for (slot, claims) in batch.slots.iter().enumerate() {
            let first = claims[0].id;
            let (file, _) = queue.file(first).expect("looked up before it was copied");
            let bytes = (claims.len() * self.block_bytes) as u32;
            let request = Request { file, offset: self.offset(first), bytes, action: Action::Write };
            queue.queue.stage(slot as u32, request);
        }
        self.write_home(site, context, queue, batch).map_err(|error| {
            // The queue itself broke, or a file can no longer be trusted. What is in flight may land at any time, so
            // trying again could put an old page over a newer one.
            site.alert(&format!("database writer {number}: {error}"));
            site.crash(&format!("database writer {number} cannot go on: {error}"));
            site.alive().err().unwrap_or(error)
        })
    }

    /// Step 4.
    fn write_twice(
        &self,
        site: &dyn Site,
        context: &Context,
        number: u32,
        queue: &FileQueue,
        batch: &Batch,
    ) -> Result<()> {
        let Some(file) = &self.doublewrite else { return Ok(()) };
        let pages = batch.slots.iter().enumerate().flat_map(|(slot, claims)| {
            let bytes = queue.queue.buffer(slot as u32);
            let insufficient = claims.iter().enumerate().filter(|(_, claim)| !claim.sufficient);
            insufficient.map(move |(at, _)| &bytes[at * self.block_bytes..][..self.block_bytes])
        });
        file.write(site, context, number, pages)
    }

    /// Steps 5 and 6.
    fn write_home(
        &self,
        site: &dyn Site,
        context: &Context,
        queue: &mut FileQueue,
        batch: &mut Batch,
    ) -> Result<Report> {
        let clock = &site.environment().clock;
        let requests = batch.slots.len() as u64;
        let mut report = Report::default();
        let mut done: Vec<Completion> = Vec::with_capacity(batch.slots.len());
        let (_, file) = queue.file(batch.slots[0][0].id).expect("looked up before it was copied");
        let file = file.clone();
        // One request at a time then, so all of the batch goes to this file.
        let _turn = self.mode.one_writer_per_file().then(|| file.writer.lock());
        let begun = clock.now();
        let wait = context.slot.enter(Event::DbFileParallelWrite, requests, 0, 0);
        queue.queue.submit()?;
        while queue.queue.in_flight() > 0 {
            queue.queue.reap(1, &mut done)?;
            let took = clock.now() - begun;
            for Completion { slot, outcome } in done.drain(..) {
                let claims = std::mem::take(&mut batch.slots[slot as usize]);
                self.complete(queue, slot, outcome, took, &claims, &mut report);
            }
            self.writers.note_progress();
        }
        drop(wait);
        Ok(report)
    }

    /// A request of the batch has ended.
    fn complete(
        &self,
        queue: &FileQueue,
        slot: u32,
        outcome: Outcome,
        took: Nanos,
        claims: &[Claim],
        report: &mut Report,
    ) {
        let first = claims[0].id;
        let (_, file) = queue.file(first).expect("looked up before it was copied");
        let bytes = claims.len() * self.block_bytes;
        report.requests += 1;
        match check(file, "write", self.offset(first), bytes, outcome) {
            Ok(()) => {
                file.statistics.note(Transfer::Write, bytes as u64, took);
                for (claim, page) in
                    claims.iter().zip(queue.queue.buffer(slot).chunks_exact(self.block_bytes))
                {
                    let kind = page::kind(page);
                    report.undo_blocks +=
                        u64::from(matches!(kind, Some(PageKind::Undo | PageKind::UndoHeader)));
                    report.written.push(claim.id);
                    if let Some(notes) = &file.written {
                        notes.written(claim.id.block, page);
                    }
                    self.written(claim);
                }
            }
            Err(error) => {
                if let Some(notes) = &file.written {
                    claims.iter().for_each(|claim| notes.unknown(claim.id.block));
                }
                report.failed.extend(claims.iter().map(|claim| claim.id));
                report.first_error.get_or_insert(error);
                claims.iter().for_each(|claim| self.frames.at(claim.index).clear(WRITING));
            }
        }
    }

    /// Step 6: the disk has the page as it was copied.
    fn written(&self, claim: &Claim) {
        let frame = self.frames.at(claim.index);
        if frame.has(DOOMED) {
            if let Some(guard) = self.latches[claim.index as usize].try_write()
                && frame.has(DOOMED)
            {
                self.frames.release(claim.index);
                return drop(guard);
            }
        } else {
            match self.latches[claim.index as usize].try_read() {
                Some(content) if page::lsn(&content.bytes) == claim.lsn => {
                    self.frames.mark_clean(claim.index)
                }
                // Changed since, or being changed now by somebody who found it dirty and leaves the older mark alone.
                _ if self.frames.dirty_since(claim.index).is_some() => {
                    self.frames.dirty_from(claim.index, claim.lsn);
                }
                _ => {}
            }
        }
        frame.clear(WRITING);
    }

    /// Gives back what was claimed and not completed: it stays dirty.
    fn release(&self, batch: &Batch) {
        batch.slots.iter().flatten().for_each(|claim| self.frames.at(claim.index).clear(WRITING));
    }

    fn count(&self, context: &Context, purpose: Purpose, report: &Report) {
        let blocks = report.written.len() as u64;
        context.count(Statistic::PhysicalWrites, blocks);
        context.count(Statistic::PhysicalWritesFromCache, blocks);
        context.count(Statistic::PhysicalWriteIoRequests, report.requests);
        context.count(Statistic::PhysicalWriteBytes, blocks * self.block_bytes as u64);
        context.count(Statistic::DbwrUndoBlockWrites, report.undo_blocks);
        if purpose == Purpose::Checkpoint {
            context.count(Statistic::DbwrCheckpointBuffersWritten, blocks);
        }
    }

    /// A batch failed, in part or as a whole. With threads the writer then sleeps a little; without, whoever waits comes
    /// back at once.
    #[cold]
    fn failed(&self, site: &dyn Site, writer: &Writer, report: &Report) -> Result<bool> {
        let (number, times, blocks) = (writer.number, writer.failures(), report.failed.len());
        let error = report.first_error.as_ref().map_or_else(String::new, ToString::to_string);
        site.alert(&format!(
            "database writer {number}: writing failed ({times} of at most {FAILURES_MAX} times in a row; {blocks} blocks of the batch refused, {} written); what was not written stays dirty and is tried again: {error}",
            report.written.len()
        ));
        if times >= FAILURES_MAX {
            site.crash(&format!("database writer {number} failed {times} times in a row: {error}"));
            site.alive()?;
        }
        if inline(site) {
            return Ok(true);
        }
        // Not to be woken by posts: what failed needs time.
        let pause = Nanos(PAUSE_FAILED.0 << times.min(5)).duration();
        Condvar::new().wait_for(&mut Mutex::new(()).lock(), pause);
        Ok(false)
    }
}

impl Report {
    /// Of a batch that was not begun.
    fn of(error: EngineError) -> Self {
        Self { first_error: Some(error), ..Self::default() }
    }
}
