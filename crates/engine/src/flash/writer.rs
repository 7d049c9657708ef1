//! A turn of the flash cache's writer: takes what waits, writes neighbours together, never waits for the device itself.
//!
//! ```text
//! 1. take what waits, unless it has changed already; copy, seal     into a slot of the queue; the memory is free for the next block
//! 2. submit                                                         many at once; where sessions live on hits, one, then a pause
//! 3. reap what has ended                                            by a later turn: a device that hangs does not hold up a shutdown
//! 4. settle                                                         from now on sessions find the block
//! ```
//! In its slot a block is found only after 4: before, half of it might be read. Until 1 it is served from memory.

use super::balance::{Balance, Spent};
use super::read::hangs;
use super::staging::Place;
use super::{FlashCache, POST_EVERY, Policy, Reader};
use crate::cache::{Site, inline};
use crate::files::iostat::Transfer;
use crate::instance::Core;
use crate::instance::process::{Process, Role};
use crate::page;
use crate::statistics::Statistic;
use crate::{Context, Result};
use io::sim::Disk;
use io::{Action, Completion, Queue, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// Neighbours are written together up to so many bytes.
const WRITE_BYTES_MAX: usize = 128 << 10;
/// Writes in flight.
const DEPTH: u32 = 16;
/// Where writes should give way wholly, the writer pauses so many times as long as its last write took.
const PAUSE_SHARE: f64 = 9.0;
/// How long it sleeps when nothing came for as long …
const SLEEP: Nanos = Nanos::millis(100);
/// … and when something did: who evicts wakes it for many blocks only.
const SLEEP_BUSY: Nanos = Nanos::millis(2);
/// A write in flight is not looked after more often.
const LOOK_MIN: Nanos = Nanos::micros(50);

/// A write in flight.
struct Flight {
    places: Vec<Place>,
    since: Nanos,
}

/// What the writer keeps between its turns.
#[derive(Default)]
pub(super) struct FlashWriter {
    queue: Option<Box<dyn Queue>>,
    flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    done: Vec<Completion>,
    /// Taken, not written: it was no neighbour of the last.
    left: Option<(Place, io::Buffer)>,
    /// Nothing is written before.
    pause_until: Nanos,
    /// When something moved last.
    moved_at: Nanos,
    /// What its writes took so far, those in flight together once.
    spent: Spent,
    balance: Balance,
    looked_at: Nanos,
}

impl FlashCache {
    /// Blocks that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.staging.waiting()
    }

    /// A turn. Whether anything moved.
    pub(crate) fn turn(&self, site: &dyn Site, context: &Context) -> bool {
        let invalidated = self.invalidated.load(Ordering::Relaxed);
        if invalidated > 0 {
            self.invalidated.fetch_sub(invalidated, Ordering::Relaxed);
            context.count(Statistic::FlashEvictionInvalidated, invalidated);
        }
        if !self.is_on() {
            return false;
        }
        let Some(mut writer) = self.writer.try_lock() else { return false };
        let now = site.environment().clock.now();
        self.look_for_hanging_reads(site, now);
        if writer.queue.is_none() && self.staging.waiting() > 0 && !self.open_queue(site, &mut writer) {
            return false;
        }
        if writer.is_flying() {
            let since = writer.looked_at;
            writer.spent.time += now - since;
        }
        writer.looked_at = now;
        let spent = [self.read_spent(), self.missed(), writer.spent];
        writer.balance.note(now, spent);
        let mut moved = self.reap(site, context, &mut writer, 0);
        moved |= self.submit(site, context, &mut writer);
        while inline(site) && self.is_on() && writer.is_flying() {
            self.reap(site, context, &mut writer, 1);
        }
        if moved {
            writer.moved_at = now;
        }
        // A shutdown that comes between waits for what is in flight, when the queue is dropped; a device that failed may never answer.
        if self.off().is_some() {
            writer.abandon();
        }
        moved
    }

    /// Whether so many blocks wait that none should be waited for: written a few at a time they cost more.
    fn is_pressed(&self) -> bool {
        self.staging.waiting() >= POST_EVERY
    }

    /// How long the writer may sleep after a turn, unless it is posted.
    fn rest(&self, now: Nanos) -> Nanos {
        let Some(writer) = self.writer.try_lock().filter(|_| self.is_on()) else { return SLEEP };
        let oldest = writer.flights.iter().flatten().map(|flight| flight.since).min();
        let rest = match oldest {
            // What takes long may take a little longer.
            Some(since) if self.is_pressed() => Nanos((now - since).0 / 4),
            None if self.is_pressed() => writer.pause_until - now,
            None if self.staging.waiting() == 0 && now - writer.moved_at >= SLEEP => return SLEEP,
            _ => SLEEP_BUSY,
        };
        rest.clamp(LOOK_MIN, SLEEP_BUSY)
    }

    fn open_queue(&self, site: &dyn Site, writer: &mut FlashWriter) -> bool {
        let disks: Vec<Arc<dyn Disk>> = self.files.iter().map(|file| file.disk.clone()).collect();
        let blocks = (WRITE_BYTES_MAX / self.block_bytes).max(1);
        let bytes = (blocks * self.block_bytes) as u32;
        match site.environment().storage.open_queue(self.api, DEPTH, bytes, &disks) {
            Ok(queue) => {
                writer.free = (0..queue.depth()).rev().collect();
                writer.flights = (0..queue.depth()).map(|_| None).collect();
                writer.queue = Some(queue);
                true
            }
            Err(error) => {
                self.switch_off(site, format!("no queue for its writes: {error}"));
                false
            }
        }
    }

    /// Steps 3 and 4.
    fn reap(&self, site: &dyn Site, context: &Context, writer: &mut FlashWriter, min: u32) -> bool {
        let Some(queue) = writer.queue.as_mut().filter(|queue| queue.in_flight() > 0) else { return false };
        if let Err(error) = queue.reap(min, &mut writer.done) {
            self.switch_off(site, error.to_string());
            return false;
        }
        let now = site.environment().clock.now();
        let moved = !writer.done.is_empty();
        for Completion { slot, outcome } in std::mem::take(&mut writer.done) {
            let Some(Flight { places, since }) = writer.flights[slot as usize].take() else { continue };
            writer.free.push(slot);
            let first = places[0];
            let (file, offset) = self.place(first.shard.into(), first.slot);
            let (bytes, took) = (places.len() * self.block_bytes, now - since);
            if let Err(error) = outcome.check(&file.path, "write", offset, bytes as u32) {
                file.statistics.note_error();
                self.switch_off(site, error.to_string());
                continue;
            }
            file.statistics.note(Transfer::Write, bytes as u64, took);
            let mut shard = self.parts[usize::from(first.shard)].shard.lock();
            let settled = places.iter().filter(|place| shard.settle(place.slot)).count();
            drop(shard);
            context.count(Statistic::FlashInserts, settled as u64);
            writer.spent.blocks += places.len() as u64;
            if took > self.timeout {
                self.switch_off(site, hangs(file, took));
            }
            writer.pause_until =
                now + Nanos((took.0 as f64 * writer.balance.yielding() * PAUSE_SHARE) as u64);
        }
        let oldest = writer.flights.iter().flatten().map(|flight| flight.since).min();
        if let Some(took) = oldest.map(|since| now - since).filter(|took| *took > self.timeout) {
            self.switch_off(site, format!("a write hangs for {:.1} s", took.as_secs()));
        }
        moved
    }

    /// Steps 1 and 2.
    fn submit(&self, site: &dyn Site, context: &Context, writer: &mut FlashWriter) -> bool {
        let now = site.environment().clock.now();
        // A pause shorter than the write spares sessions nothing.
        let yields = self.policy == Policy::ScanResistant && writer.balance.yielding() * PAUSE_SHARE >= 1.0;
        if yields && (now < writer.pause_until || writer.is_flying()) {
            return false;
        }
        let mut moved = false;
        while let Some(slot) = writer.free.pop() {
            let places = self.fill(context, writer, slot);
            if places.is_empty() {
                writer.free.push(slot);
                break;
            }
            let (first, bytes) = (places[0], (places.len() * self.block_bytes) as u32);
            let (_, offset) = self.place(first.shard.into(), first.slot);
            let file = u32::from(self.parts[usize::from(first.shard)].file);
            let Some(queue) = &mut writer.queue else { break };
            queue.stage(slot, Request { file, offset, bytes, action: Action::Write });
            writer.flights[slot as usize] = Some(Flight { places, since: now });
            moved = true;
            if yields {
                break;
            }
        }
        if moved && let Some(Err(error)) = writer.queue.as_mut().map(|queue| queue.submit()) {
            self.switch_off(site, error.to_string());
        }
        moved
    }

    /// Reads from here so far.
    fn read_spent(&self) -> Spent {
        self.files.iter().fold(Spent::default(), |sum, file| {
            let read = file.statistics.reads();
            Spent { time: sum.time + read.time, blocks: sum.blocks + read.bytes / self.block_bytes as u64 }
        })
    }

    /// Reads of data files that hits would have spared, so far.
    fn missed(&self) -> Spent {
        let sum = |of: fn(&Reader) -> &AtomicU64| {
            self.readers.iter().map(|reader| of(reader).load(Ordering::Relaxed)).sum::<u64>()
        };
        Spent { time: Nanos(sum(|reader| &reader.missed)), blocks: sum(|reader| &reader.missed_blocks) }
    }

    /// Copies blocks whose slots lie side by side into a slot of the queue.
    fn fill(&self, context: &Context, writer: &mut FlashWriter, slot: u32) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        let Some(queue) = &mut writer.queue else { return places };
        let to = queue.buffer_mut(slot);
        while (places.len() + 1) * self.block_bytes <= to.len() {
            let Some((place, block)) = writer.left.take().or_else(|| self.staging.pop()) else { break };
            if !self.parts[usize::from(place.shard)].shard.lock().is_wanted(place.slot) {
                context.count(Statistic::FlashSkipModification, 1);
                self.staging.give_spare(block);
                continue;
            }
            let behind = |last: &Place| last.shard == place.shard && last.slot + 1 == place.slot;
            if !places.last().is_none_or(behind) {
                writer.left = Some((place, block));
                break;
            }
            let to = &mut to[places.len() * self.block_bytes..][..self.block_bytes];
            to.copy_from_slice(&block);
            page::seal(to);
            self.staging.give_spare(block);
            places.push(place);
        }
        places
    }
}

impl FlashWriter {
    fn is_flying(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.in_flight() > 0)
    }

    /// A queue whose writes may never end is left to the process: closing it would wait for them.
    fn abandon(&mut self) {
        if let Some(queue) = self.queue.take()
            && queue.in_flight() > 0
        {
            std::mem::forget(queue);
        }
    }
}

/// The flash cache's writer as a process: `fcw0`. A database writer waits for redo and data files, and what left the buffer cache meanwhile would
/// find no place.
struct FlashProcess {
    rest: Nanos,
}

impl Process for FlashProcess {
    fn role(&self) -> Role {
        Role::FlashWriter
    }

    fn step(&mut self, core: &Core, context: &Context) -> Result<bool> {
        let Some(flash) = core.cache.flash() else { return Ok(false) };
        let moved = flash.turn(core, context);
        self.rest = flash.rest(core.environment.clock.now());
        Ok(moved && (flash.is_pressed() || inline(core)))
    }

    fn idle(&self) -> Nanos {
        self.rest
    }
}

/// `fcw0`.
pub(crate) fn process() -> Box<dyn Process> {
    Box::new(FlashProcess { rest: SLEEP })
}
