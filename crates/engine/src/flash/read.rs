//! A miss of the buffer cache that the flash cache can serve.

use super::directory::Found;
use super::staging::Place;
use super::{FlashCache, FlashFile, Reader};
use crate::Context;
use crate::cache::Site;
use crate::files::iostat::Transfer;
use crate::page::{self, PageId};
use crate::statistics::Statistic;
use io::Outcome;
use io::sim::Disk;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::Nanos;
use waits::Event;

/// A block that is here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    part: u16,
    found: Found,
}

/// What became of a block that was looked for.
pub(crate) enum Fetched {
    /// It is not here.
    Nothing,
    /// It waited to be written, and was copied from memory.
    Copied,
    /// It is in one of the files.
    Hit(Hit),
}

/// How a transfer ended.
struct Came<'a> {
    file: &'a FlashFile,
    offset: u64,
    outcome: Outcome,
    took: Nanos,
    transfer: Transfer,
}

impl FlashCache {
    fn reader(&self, context: &Context) -> &Reader {
        &self.readers[context.session as usize % self.readers.len()]
    }

    /// Blocks that were not here came from their data file: what hits would have spared.
    pub(crate) fn note_miss(&self, context: &Context, blocks: u64, took: Nanos) {
        let reader = self.reader(context);
        reader.missed.fetch_add(took.0, Ordering::Relaxed);
        reader.missed_blocks.fetch_add(blocks, Ordering::Relaxed);
    }

    /// Looks a block up; one that waits to be written is copied to `bytes` at once. The caller holds the exclusive latch of its published frame.
    pub(crate) fn fetch(&self, context: &Context, id: PageId, bytes: &mut [u8]) -> Fetched {
        if !self.is_on() {
            return Fetched::Nothing;
        }
        let part = self.part_of(id);
        let found = self.parts[part].shard.lock().find(id);
        let Some(found) = found else { return Fetched::Nothing };
        let part = part as u16;
        if !found.pending {
            return Fetched::Hit(Hit { part, found });
        }
        // What was taken to be written is neither here nor there for a moment.
        if !self.staging.copy(Place { shard: part, slot: found.slot }, id, bytes) {
            return Fetched::Nothing;
        }
        context.count(Statistic::FlashHits, 1);
        context.count(Statistic::PhysicalReadRequestsOptimized, 1);
        Fetched::Copied
    }

    /// Reads the block (`db flash cache single block physical read`), if it is here. False when it is not, or when what is here is not the
    /// block: then the data file has it, and the bytes may be anything.
    pub(crate) fn read(&self, site: &dyn Site, context: &Context, id: PageId, bytes: &mut [u8]) -> bool {
        match self.fetch(context, id, bytes) {
            Fetched::Nothing => false,
            Fetched::Copied => true,
            Fetched::Hit(hit) => self.read_run(site, context, &[(id, hit)], &mut [bytes]) == 1,
        }
    }

    /// Whether `next` lies right behind `hit`, `count` slots on.
    pub(crate) fn is_behind(&self, hit: Hit, next: Hit, count: usize) -> bool {
        hit.part == next.part && hit.found.slot + count as u32 == next.found.slot
    }

    /// Reads blocks whose slots lie side by side by one request. How many of the first came right; the others are to be read from
    /// the data files.
    pub(crate) fn read_run(
        &self,
        site: &dyn Site,
        context: &Context,
        run: &[(PageId, Hit)],
        pieces: &mut [&mut [u8]],
    ) -> usize {
        let (id, hit) = run[0];
        let (file, offset) = self.place(hit.part.into(), hit.found.slot);
        let event = if run.len() == 1 {
            Event::DbFlashCacheSingleBlockPhysicalRead
        } else {
            Event::DbFlashCacheMultiblockPhysicalRead
        };
        let reader = self.reader(context);
        reader.since.store(site.environment().clock.now().0.max(1), Ordering::Relaxed);
        let wait = context.slot.enter(event, u64::from(id.file), u64::from(id.block), run.len() as u64);
        let outcome = match &mut *pieces {
            [one] => file.disk.read_at(one, offset),
            many => file.disk.read_vectored_at(many, offset),
        };
        let took = wait.end();
        reader.since.store(0, Ordering::Relaxed);
        let came = Came { file, offset, outcome, took, transfer: Transfer::ReadSync };
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
        self.arrived(site, context, run, &pieces, came)
    }

    fn arrived(
        &self,
        site: &dyn Site,
        context: &Context,
        run: &[(PageId, Hit)],
        pieces: &[&[u8]],
        Came { file, offset, outcome, took, transfer }: Came<'_>,
    ) -> usize {
        let bytes = run.len() * self.block_bytes;
        if let Err(error) = outcome.check(&file.path, "pread", offset, bytes as u32) {
            file.statistics.note_error();
            self.switch_off(site, error.to_string());
            return 0;
        }
        file.statistics.note(transfer, bytes as u64, took);
        if took > self.timeout {
            self.switch_off(site, hangs(file, took));
        }
        let mut right = 0;
        for ((id, hit), bytes) in run.iter().zip(pieces) {
            if !self.is_right(site, file, *id, *hit, bytes) {
                break;
            }
            right += 1;
        }
        context.count(Statistic::FlashHits, right as u64);
        context.count(Statistic::PhysicalReadRequestsOptimized, u64::from(right > 0));
        right
    }

    /// The disks, for a queue over data files and these.
    pub(crate) fn disks(&self) -> impl Iterator<Item = Arc<dyn Disk>> + '_ {
        self.files.iter().map(|file| file.disk.clone())
    }

    /// Which of [`Self::disks`] a block is on, and where.
    pub(crate) fn target(&self, hit: Hit) -> (u32, u64) {
        let (_, offset) = self.place(hit.part.into(), hit.found.slot);
        (self.parts[usize::from(hit.part)].file.into(), offset)
    }

    /// A read of one block that was one of many in flight has ended. Whether the bytes are the block.
    pub(crate) fn landed(
        &self,
        site: &dyn Site,
        context: &Context,
        (id, hit): (PageId, Hit),
        bytes: &[u8],
        outcome: Outcome,
        took: Nanos,
    ) -> bool {
        let (file, offset) = self.place(hit.part.into(), hit.found.slot);
        let came = Came { file, offset, outcome, took, transfer: Transfer::ReadAsync };
        self.arrived(site, context, &[(id, hit)], &[bytes], came) == 1
    }

    /// Whether the bytes are the block. When they are not, although it is still supposed to be there, the device is to blame.
    fn is_right(&self, site: &dyn Site, file: &FlashFile, id: PageId, hit: Hit, bytes: &[u8]) -> bool {
        let wrong = match page::check(bytes, id) {
            Ok(()) if page::page_id(bytes) != id => (id.to_string(), "zeroes".to_owned()),
            Ok(()) if page::lsn(bytes) == hit.found.lsn => return true,
            Ok(()) => (format!("LSN {}", hit.found.lsn.0), format!("LSN {}", page::lsn(bytes).0)),
            Err(wrong) => wrong,
        };
        if self.parts[usize::from(hit.part)].shard.lock().is_still(id, hit.found) {
            file.statistics.note_error();
            let (path, slot) = (file.path.display(), hit.found.slot);
            self.switch_off(
                site,
                format!("{path} slot {slot}: wrong data for {id}: expected {}, found {}", wrong.0, wrong.1),
            );
        }
        false
    }

    /// Whether somebody has been reading for too long.
    pub(super) fn look_for_hanging_reads(&self, site: &dyn Site, now: Nanos) {
        for reader in &self.readers {
            let since = reader.since.load(Ordering::Relaxed);
            if since != 0 && now.0.saturating_sub(since) > self.timeout.0 {
                let took = now - Nanos(since);
                return self.switch_off(site, format!("a read hangs for {:.1} s", took.as_secs()));
            }
        }
    }
}

pub(super) fn hangs(file: &FlashFile, took: Nanos) -> String {
    format!("{}: a transfer took {:.1} s (_flash_cache_timeout is less)", file.path.display(), took.as_secs())
}
