//! Pages that will be asked for soon are read together: neighbours in one vectored read straight into their frames (`db file
//! scattered read`), the others with many requests in flight (`db file parallel read`).
//!
//! A help, not a promise: pages for which no frame is free at once are left for [`BufferCache::read`].

use super::BufferCache;
use super::latch::PageWrite;
use super::queues::FileQueue;
use super::read::{file_of, verify};
use super::site::{Site, check};
use super::victim::COLD_SHARE;
use crate::files::iostat::Transfer;
use crate::flash::{Fetched, FlashCache, Hit};
use crate::page::PageId;
use crate::statistics::Statistic;
use crate::{Context, Result};
use io::{Action, Completion, Outcome, Request};
use units::Nanos;
use waits::Event;

/// Fewer neighbours than this are asked for one by one where many requests can be in flight: reading them in one call would hold
/// up all the others for so little.
const RUN_MIN: usize = 4;

/// What came of asking for a frame.
enum Reserved {
    /// Published and latched; its content is to be read.
    Page(PageWrite),
    /// The page is there by now.
    Cached,
    /// None can be reused at once.
    NoFrame,
}

impl BufferCache {
    /// Makes sure that the pages are cached, reading what is missing with many requests in flight (`db file parallel
    /// read`) or, where neighbours are missing, in runs of `db_file_multiblock_read_count` (`db file scattered read`).
    ///
    /// # Errors
    /// As [`BufferCache::read`].
    pub fn prefetch(&self, core: &dyn Site, context: &Context, ids: &[PageId]) -> Result<()> {
        let mut missing: Vec<PageId> = ids.iter().copied().filter(|id| !self.spare(*id)).collect();
        missing.sort_unstable();
        missing.dedup();
        // More would push out what the call itself has just read.
        missing.truncate((self.frames.count() / COLD_SHARE).max(1));
        let mut single = Vec::new();
        let mut rest = missing.as_slice();
        while !rest.is_empty() {
            let (run, later) = rest.split_at(run_length(rest, core.multiblock_read_count() as usize));
            rest = later;
            match run {
                [id] => single.push(*id),
                few if few.len() < RUN_MIN && self.mode.asynchronous() => single.extend(few),
                run => self.read_scattered(core, context, run)?,
            }
        }
        if single.len() > 1 && self.mode.asynchronous() {
            return self.read_parallel(core, context, &single);
        }
        single.iter().try_for_each(|id| self.read_ahead_one(core, context, *id))
    }

    /// Whether the page is cached; touched then, so that the frames for the others are not taken from it.
    fn spare(&self, id: PageId) -> bool {
        let found = self.frames.find(id);
        if let Some(index) = found {
            self.clock.touch(self.frames.at(index));
        }
        found.is_some()
    }

    fn read_ahead_one(&self, site: &dyn Site, context: &Context, id: PageId) -> Result<()> {
        let Reserved::Page(mut page) = self.reserve(site, context, id) else { return Ok(()) };
        self.read_block(site, context, id, page.bytes_mut())?;
        context.count(Statistic::PhysicalReadsCachePrefetch, 1);
        self.content_arrived(&mut page, true);
        Ok(())
    }

    fn reserve(&self, site: &dyn Site, context: &Context, id: PageId) -> Reserved {
        match self.try_victim(site, context) {
            None => Reserved::NoFrame,
            Some(victim) => match self.publish(victim, id) {
                None => Reserved::Cached,
                Some(page) => {
                    self.frames.references.read(id);
                    Reserved::Page(page)
                }
            },
        }
    }

    /// Reads neighbours. Where one of them turns up meanwhile, the run is cut in two there.
    fn read_scattered(&self, site: &dyn Site, context: &Context, run: &[PageId]) -> Result<()> {
        let mut pages: Vec<PageWrite> = Vec::with_capacity(run.len());
        for id in run {
            match self.reserve(site, context, *id) {
                Reserved::Page(page) => pages.push(page),
                Reserved::Cached => self.read_run(site, context, std::mem::take(&mut pages))?,
                Reserved::NoFrame => break,
            }
        }
        self.read_run(site, context, pages)
    }

    /// What the flash cache has comes from there, the rest in runs of neighbours from the data files.
    fn read_run(&self, site: &dyn Site, context: &Context, mut pages: Vec<PageWrite>) -> Result<()> {
        if let Some(flash) = self.flash() {
            pages = self.read_flash(flash, site, context, pages);
        }
        let mut read = Ok(());
        while !pages.is_empty() && read.is_ok() {
            let ids: Vec<PageId> = pages.iter().map(PageWrite::id).collect();
            let rest = pages.split_off(run_length(&ids, ids.len()));
            read = self.read_neighbours(site, context, std::mem::replace(&mut pages, rest));
        }
        read
    }

    /// The pages that the flash cache does not have, in order.
    fn read_flash(
        &self,
        flash: &FlashCache,
        site: &dyn Site,
        context: &Context,
        pages: Vec<PageWrite>,
    ) -> Vec<PageWrite> {
        let (mut home, mut group) = (Vec::new(), Vec::<(PageWrite, Hit)>::new());
        let read = |group: &mut Vec<(PageWrite, Hit)>, home: &mut Vec<PageWrite>| {
            if group.is_empty() {
                return;
            }
            let run: Vec<(PageId, Hit)> = group.iter().map(|(page, hit)| (page.id(), *hit)).collect();
            let mut pieces: Vec<&mut [u8]> = group.iter_mut().map(|(page, _)| page.bytes_mut()).collect();
            let right = flash.read_run(site, context, &run, &mut pieces);
            for (index, (mut page, _)) in group.drain(..).enumerate() {
                if index < right {
                    self.content_arrived(&mut page, false);
                } else {
                    home.push(page);
                }
            }
        };
        for mut page in pages {
            let hit = match flash.fetch(context, page.id(), page.bytes_mut()) {
                Fetched::Hit(hit) => hit,
                Fetched::Copied => {
                    self.content_arrived(&mut page, false);
                    continue;
                }
                Fetched::Nothing => {
                    home.push(page);
                    continue;
                }
            };
            if group.first().is_some_and(|(_, first)| !flash.is_behind(*first, hit, group.len())) {
                read(&mut group, &mut home);
            }
            group.push((page, hit));
        }
        read(&mut group, &mut home);
        home.sort_by_key(PageWrite::id);
        home
    }

    fn read_neighbours(&self, site: &dyn Site, context: &Context, mut pages: Vec<PageWrite>) -> Result<()> {
        let Some(first) = pages.first().map(PageWrite::id) else { return Ok(()) };
        let (file, offset) = (file_of(site, first), self.offset(first));
        let disk = file.disk()?;
        let bytes = pages.len() * self.block_bytes;
        let event = if pages.len() > 1 { Event::DbFileScatteredRead } else { Event::DbFileSequentialRead };
        let mut pieces: Vec<&mut [u8]> = pages.iter_mut().map(PageWrite::bytes_mut).collect();
        let wait =
            context.slot.enter(event, u64::from(first.file), u64::from(first.block), pieces.len() as u64);
        let outcome = disk.read_vectored_at(&mut pieces, offset);
        let took = wait.end();
        check(file, "preadv", offset, bytes, outcome)?;
        self.note_home_read(context, file, Transfer::ReadSync, bytes, took);
        context.count(Statistic::PhysicalReadsCachePrefetch, pages.len() as u64);
        let mut arrived = Ok(());
        for mut page in pages {
            match verify(file, page.id(), page.bytes()) {
                Ok(()) => self.content_arrived(&mut page, false),
                Err(error) => arrived = arrived.and(Err(error)),
            }
        }
        arrived
    }

    /// Keeps the queue full until all have been asked for. When that fails the queue is dropped, which waits for what is in
    /// flight; the frames are freed.
    fn read_parallel(&self, site: &dyn Site, context: &Context, ids: &[PageId]) -> Result<()> {
        let mut queue = self.prefetch_pool.borrow(site, context.session)?;
        let mut flight = Flight::new(queue.queue.depth());
        let (mut ids_left, mut arrived) = (ids, Ok(()));
        let files = ids.chunk_by(|a, b| a.file == b.file).count() as u64;
        let wait = context.slot.enter(Event::DbFileParallelRead, files, ids.len() as u64, ids.len() as u64);
        let mut done = Vec::with_capacity(queue.queue.depth() as usize);
        loop {
            self.stage_reads(site, context, &mut queue, &mut flight, &mut ids_left);
            let count = flight.count();
            if count == 0 {
                break;
            }
            // Woken for several at once: waking up costs more than what the first of them could do meanwhile.
            let min = if ids_left.is_empty() { count / 2 } else { count / 4 };
            queue.queue.submit_and_reap(min.max(1), &mut done)?;
            let now = site.environment().clock.now();
            for Completion { slot, outcome } in done.drain(..) {
                let landing = flight.land(slot);
                let result = self.land(site, context, &queue, slot, landing, outcome, now);
                arrived = arrived.and(result);
            }
        }
        drop(wait);
        self.prefetch_pool.give_back(queue);
        arrived
    }

    /// Asks for as many of the next pages as there are free slots.
    fn stage_reads(
        &self,
        site: &dyn Site,
        context: &Context,
        queue: &mut FileQueue,
        flight: &mut Flight,
        ids: &mut &[PageId],
    ) {
        let began = site.environment().clock.now();
        while let (Some(slot), Some((id, rest))) = (flight.free.last().copied(), ids.split_first()) {
            *ids = rest;
            let mut page = match self.reserve(site, context, *id) {
                Reserved::Page(page) => page,
                Reserved::Cached => continue,
                Reserved::NoFrame => {
                    *ids = &[];
                    return;
                }
            };
            let hit = match self.flash().map(|flash| (flash, flash.fetch(context, *id, page.bytes_mut()))) {
                Some((flash, Fetched::Hit(hit))) => Some((flash, hit)),
                Some((_, Fetched::Copied)) => {
                    self.content_arrived(&mut page, true);
                    continue;
                }
                Some((_, Fetched::Nothing)) | None => None,
            };
            let (file, offset) = match (hit, queue.file(*id)) {
                (Some((flash, hit)), _) => {
                    let (number, offset) = flash.target(hit);
                    (queue.flash_file(number), offset)
                }
                (None, Some((file, _))) => (file, self.offset(*id)),
                (None, None) => continue,
            };
            let bytes = self.block_bytes as u32;
            queue.queue.stage(slot, Request { file, offset, bytes, action: Action::Read });
            flight.free.pop();
            flight.pages[slot as usize] = Some(Landing { page, began, hit: hit.map(|(_, hit)| hit) });
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the ends of one request")]
    fn land(
        &self,
        site: &dyn Site,
        context: &Context,
        queue: &FileQueue,
        slot: u32,
        Landing { mut page, began, hit }: Landing,
        outcome: Outcome,
        now: Nanos,
    ) -> Result<()> {
        let (id, bytes, took) = (page.id(), queue.queue.buffer(slot), now - began);
        if let (Some(flash), Some(hit)) = (self.flash(), hit) {
            if flash.landed(site, context, (id, hit), bytes, outcome, took) {
                page.bytes_mut().copy_from_slice(bytes);
            } else {
                self.read_home(site, context, id, page.bytes_mut())?;
            }
            self.content_arrived(&mut page, true);
            return Ok(());
        }
        let (_, file) = queue.file(id).expect("looked up before it was asked for");
        check(file, "read", self.offset(id), bytes.len(), outcome)?;
        self.note_home_read(context, file, Transfer::ReadAsync, bytes.len(), took);
        context.count(Statistic::PhysicalReadsCachePrefetch, 1);
        verify(file, id, bytes)?;
        page.bytes_mut().copy_from_slice(bytes);
        self.content_arrived(&mut page, true);
        Ok(())
    }
}

/// Reads that are under way: for each slot of the queue the frame that waits for it, and since when.
struct Flight {
    pages: Vec<Option<Landing>>,
    free: Vec<u32>,
}

/// A frame that waits for its block, since when, and where in the flash cache that is.
struct Landing {
    page: PageWrite,
    began: Nanos,
    hit: Option<Hit>,
}

impl Flight {
    fn new(depth: u32) -> Self {
        Self { pages: (0..depth).map(|_| None).collect(), free: (0..depth).rev().collect() }
    }

    fn count(&self) -> u32 {
        (self.pages.len() - self.free.len()) as u32
    }

    fn land(&mut self, slot: u32) -> Landing {
        self.free.push(slot);
        self.pages[slot as usize].take().expect("a request of ours")
    }
}

/// How many of the first pages are neighbours, at most `most`.
fn run_length(ids: &[PageId], most: usize) -> usize {
    let pairs =
        ids.windows(2).take_while(|pair| pair[0].file == pair[1].file && pair[0].block + 1 == pair[1].block);
    (pairs.count() + 1).min(most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::tests::world::{config, page, world};
    use crate::context::Background;

    /// What a session asked for must still be there when it comes for it, also what was there before it asked.
    #[test]
    fn cached_pages_outlive_the_reading_of_the_others() {
        let world = world(&config(64), Background::Inline, &[200]);
        let context = world.context();
        for block in 1..=80 {
            world.get(&context, page(block)).unwrap();
        }
        for round in 0..8 {
            // The hand would come to it soon.
            let soon = (world.cache.clock.hand() + 3) % 64;
            let old = world.cache.frames.at(soon as u32).id();
            let ids: Vec<PageId> =
                std::iter::once(old).chain((0..7).map(|n| page(100 + round * 7 + n))).collect();
            world.cache.prefetch(&*world, &context, &ids).unwrap();
            assert!(ids.iter().all(|id| world.cache.is_cached(*id)), "round {round}: {old} is gone");
        }
    }

    #[test]
    fn runs_end_at_gaps_files_and_the_limit() {
        let ids: Vec<PageId> =
            [(1, 3), (1, 4), (1, 5), (1, 7), (2, 8)].map(|(file, block)| PageId { file, block }).to_vec();
        assert_eq!(run_length(&ids, 128), 3);
        assert_eq!(run_length(&ids, 2), 2);
        assert_eq!(run_length(&ids[2..], 128), 1);
        assert_eq!(run_length(&ids[3..], 128), 1, "another file");
        assert_eq!(run_length(&ids[4..], 0), 1);
    }
}
