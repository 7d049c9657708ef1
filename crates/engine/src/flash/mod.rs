//! The flash cache: a second level behind the buffer cache, on files or devices that are faster than the data files'.
//!
//! A victim cache of clean blocks: what a session evicts waits in memory (`staging`), a background process writes it (`writer`), and a
//! later miss reads it back (`read`). Start with `FlashCache::offer`, `FlashCache::invalidate`, and `read`; which block is where says `directory`, what is let in
//! `policy`, what the files look like `file`. Why it is so: `docs/decisions/0009-flash-cache.md`.
//!
//! **A block found here is what its data file has.** Three rules:
//! 1. A block comes in while its frame is latched exclusively, clean, and still in the buffer cache's map: whoever changes it later must read it
//!    first, and finds the entry.
//! 2. A block goes out when its frame turns from clean to dirty, under the frame's exclusive latch. While it is cached in
//!    memory nobody reads it here, and it comes in again only by rule 1.
//! 3. Whoever looks a block up has published its frame and holds its latch, so rule 2 cannot happen between look-up and use. What is then read
//!    must have the right checksum, address and LSN: a slot that was written over meanwhile is found out by what it holds.
//!
//! What it buys: a hit costs a read of the fast device. Its price: memory ([`BYTES_PER_BLOCK_MAX`] for each block that fits, and
//! the places of blocks that wait), and writes to the device. A block that was here when it changed has to be written again.
//!
//! A device that fails, answers with something else, or hangs, switches the cache off until the next start: the data files have everything.

mod balance;
mod directory;
mod file;
mod head;
mod policy;
mod read;
mod staging;
#[cfg(test)]
mod tests;
mod writer;

pub use directory::BYTES_PER_BLOCK_MAX;
pub use file::Stamp;
pub use policy::Policy;
pub(crate) use read::{Fetched, Hit};
pub(crate) use writer::process as writer;

use crate::cache::Site;
use crate::page::{self, PageId, PageKind};
use crate::statistics::Statistic;
use crate::{Context, Result};
use directory::{Candidate, Shard};
use file::FlashFile;
use io::{Access, Api, Buffer, Storage};
use parking_lot::{Mutex, RwLock};
use staging::{Place, Staging};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use units::Nanos;
use writer::FlashWriter;

/// Neighbours within so many blocks are in one shard, so that they can be written and read together.
const NEIGHBOURHOOD_BITS: u32 = 6;
/// Slots of a shard, roughly.
const SHARD_SLOTS: u32 = 16_384;
/// Shards of a file at most.
const SHARDS_MAX: u32 = 512;
/// The writer is called when so many blocks wait.
const POST_EVERY: usize = 32;

/// How the blocks of an object are treated: `FLASH_CACHE DEFAULT | KEEP | NONE` of its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlashUse {
    /// As the policy wants it.
    #[default]
    Default,
    /// Let in always, given up last.
    Keep,
    /// Never let in.
    None,
}

/// What a flash cache is made with.
#[derive(Clone, Debug)]
pub struct FlashConfig {
    /// `db_flash_cache_file` with `db_flash_cache_size`: paths and bytes.
    pub files: Vec<(PathBuf, u64)>,
    /// `db_flash_cache_policy`.
    pub policy: Policy,
    /// Which database.
    pub database_id: u64,
    /// The clean shutdown that this start follows; none after a crash.
    pub clean: Option<Stamp>,
    /// `_flash_cache_timeout`: a transfer that takes longer hangs.
    pub timeout: Nanos,
    /// Blocks that may wait to be written.
    pub staged: usize,
    /// Who carries writes.
    pub api: Api,
}

/// A row of `v$flashfilestat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlashFileRow {
    /// `FLASHFILE#`, from 1.
    pub number: u32,
    /// `NAME`.
    pub name: PathBuf,
    /// `BYTES`.
    pub bytes: u64,
    /// `ENABLED`.
    pub enabled: bool,
    /// `SINGLEBLKRDS`.
    pub single_block_reads: u64,
    /// `SINGLEBLKRDTIM_MICRO`, here in nanoseconds.
    pub single_block_time: Nanos,
    /// All its I/O.
    pub io: crate::files::iostat::FileIo,
}

/// A shard, and which slots of which file are its.
struct Part {
    shard: Mutex<Shard>,
    file: u16,
    /// Its first slot in the file.
    first: u32,
    /// Its slots end here, counted over all files.
    end: u64,
}

/// What a session does: line by line, so that sessions do not write to the same.
#[repr(align(64))]
#[derive(Default)]
struct Reader {
    /// Since when it reads here; 0 when it does not.
    since: AtomicU64,
    /// Its time in reads of blocks that were not here, so far, and how many.
    missed: AtomicU64,
    missed_blocks: AtomicU64,
}

/// The end of a flash cache until the next start.
#[derive(Clone, Debug)]
pub struct SwitchedOff {
    /// By the clock of the instance.
    pub at: Nanos,
    /// What its device did.
    pub cause: String,
}

/// The second level.
pub struct FlashCache {
    block_bytes: usize,
    policy: Policy,
    timeout: Nanos,
    api: Api,
    files: Vec<FlashFile>,
    parts: Vec<Part>,
    staging: Staging,
    writer: Mutex<FlashWriter>,
    on: AtomicBool,
    off: OnceLock<SwitchedOff>,
    uses: RwLock<BTreeMap<u32, FlashUse>>,
    uses_count: AtomicUsize,
    /// Blocks that changed; the writer counts them in `v$sysstat`.
    invalidated: AtomicU64,
    readers: Box<[Reader]>,
}

impl FlashCache {
    /// Opens or makes the files, and takes over what the last clean shutdown left in them.
    ///
    /// # Errors
    /// What the files met, with what to do: the instance is not started then.
    pub fn open(
        storage: &dyn Storage,
        config: &FlashConfig,
        block_bytes: usize,
        access: Access,
    ) -> Result<Self> {
        let open =
            |(path, bytes): &(PathBuf, u64)| FlashFile::open(storage, path, *bytes, block_bytes, access);
        let files = config.files.iter().map(open).collect::<Result<Vec<_>>>()?;
        let parts = divide(&files, config.policy);
        let flash = Self {
            block_bytes,
            policy: config.policy,
            timeout: config.timeout,
            api: config.api,
            files,
            parts,
            staging: Staging::new(config.staged, config.policy.resume_at(config.staged), block_bytes)?,
            writer: Mutex::default(),
            on: AtomicBool::new(true),
            off: OnceLock::new(),
            uses: RwLock::default(),
            uses_count: AtomicUsize::new(0),
            invalidated: AtomicU64::new(0),
            readers: (0..64).map(|_| Reader::default()).collect(),
        };
        flash.restore(storage, config)?;
        Ok(flash)
    }

    fn restore(&self, storage: &dyn Storage, config: &FlashConfig) -> Result<()> {
        let layout = self.layout();
        for (number, file) in self.files.iter().enumerate() {
            let refuse = |error| file::refused(storage, &file.path, error);
            if let Some(stamp) = config.clean {
                let mut entries = file.saved(stamp, layout).map_err(refuse)?;
                for part in self.parts.iter().filter(|part| usize::from(part.file) == number) {
                    let mut shard = part.shard.lock();
                    let slots = part.first..part.first + shard.free_count();
                    let mut mine: Vec<_> =
                        entries.extract_if(.., |entry| slots.contains(&entry.slot)).collect();
                    mine.iter_mut().for_each(|entry| entry.slot -= part.first);
                    shard.restore(&mine);
                }
            }
            file.mark_in_use(config.database_id).map_err(refuse)?;
        }
        Ok(())
    }

    /// What tells one division into slots from another.
    fn layout(&self) -> u64 {
        let slots: Vec<u8> = self.files.iter().flat_map(|file| file.slots.to_le_bytes()).collect();
        (u64::from(crc32fast::hash(&slots)) << 32) | self.block_bytes as u64
    }

    /// Leaves the index in the files, for a start after a clean shutdown at `stamp`. Nobody may change a page any more. A
    /// device that fails now is empty at the next start.
    pub fn save(&self, site: &dyn Site, stamp: Stamp) {
        if !self.on.swap(false, Ordering::AcqRel) {
            return;
        }
        let layout = self.layout();
        for (number, file) in self.files.iter().enumerate() {
            let mut entries = Vec::new();
            for part in self.parts.iter().filter(|part| usize::from(part.file) == number) {
                let moved = |mut entry: directory::Entry| {
                    entry.slot += part.first;
                    entry
                };
                entries.extend(part.shard.lock().entries().map(moved));
            }
            if let Err(error) = file.save(stamp, layout, &entries) {
                site.alert(&format!(
                    "the index of the flash cache was not saved, it will be empty at the next start: {error}"
                ));
            }
        }
    }

    /// Whether it works.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// When and why it was switched off, if it was.
    pub fn off(&self) -> Option<&SwitchedOff> {
        self.off.get()
    }

    /// Switches it off until the next start.
    #[cold]
    fn switch_off(&self, site: &dyn Site, cause: String) {
        let line = format!(
            "the flash cache is switched off: {cause}; blocks come from the data files from now on, nothing is lost; look at `dmesg` and `smartctl -a`, then start again"
        );
        if self.off.set(SwitchedOff { at: site.environment().clock.now(), cause }).is_ok() {
            self.on.store(false, Ordering::Release);
            site.alert(&line);
        }
    }

    fn part_of(&self, id: PageId) -> usize {
        let key = id.to_u64() >> NEIGHBOURHOOD_BITS;
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let total = self.parts[self.parts.len() - 1].end;
        let position = ((u128::from(hash) * u128::from(total)) >> 64) as u64;
        self.parts.partition_point(|part| part.end <= position)
    }

    fn place(&self, part: usize, slot: u32) -> (&FlashFile, u64) {
        let Part { file, first, .. } = &self.parts[part];
        let file = &self.files[usize::from(*file)];
        (file, file.offset(first + slot))
    }

    /// Sets how the blocks of an object are treated; those that are here stay.
    pub fn set_use(&self, object: u32, usage: FlashUse) {
        let mut uses = self.uses.write();
        match usage {
            FlashUse::Default => uses.remove(&object),
            usage => uses.insert(object, usage),
        };
        self.uses_count.store(uses.len(), Ordering::Release);
        drop(uses);
        if usage == FlashUse::None {
            self.forget(object);
        }
    }

    fn usage(&self, object: u32) -> FlashUse {
        if self.uses_count.load(Ordering::Acquire) == 0 {
            return FlashUse::Default;
        }
        self.uses.read().get(&object).copied().unwrap_or_default()
    }

    /// A block leaves the buffer cache: the caller holds its frame's exclusive latch, the frame is clean and still in the map.
    /// `altered`: memory and disk may differ although it is clean. The frame gets other memory when the block is taken.
    pub(crate) fn offer(
        &self,
        site: &dyn Site,
        context: &Context,
        id: PageId,
        bytes: &mut Buffer,
        altered: bool,
    ) {
        if !self.is_on() {
            return;
        }
        match self.consider(context, id, bytes, altered) {
            Err(skipped) => context.count(skipped, 1),
            Ok(waiting) if waiting.is_multiple_of(POST_EVERY) => site.post_flash_writer(),
            Ok(_) => {}
        }
    }

    /// How many blocks wait now, or why this one does not.
    fn consider(
        &self,
        context: &Context,
        id: PageId,
        bytes: &mut Buffer,
        altered: bool,
    ) -> std::result::Result<usize, Statistic> {
        if altered {
            return Err(Statistic::FlashSkipNotCurrent);
        }
        let part = self.part_of(id);
        let mut shard = self.parts[part].shard.lock();
        // The directory and the page's header are both far from the processor: it fetches them at once when the lock lies before both.
        let exists = shard.has(id);
        let object = page::object(bytes);
        let usage = self.usage(object);
        // A page of zeroes has no address, one of sorts no second reader.
        let blank = page::page_id(bytes) == PageId::NONE;
        if blank || usage == FlashUse::None || page::kind(bytes) == Some(PageKind::Temp) {
            return Err(Statistic::FlashSkipNotUseful);
        }
        if page::page_id(bytes) != id {
            return Err(Statistic::FlashSkipCorrupt);
        }
        if exists {
            return Err(Statistic::FlashSkipExists);
        }
        if !self.staging.has_room() {
            return Err(Statistic::FlashSkipOverloaded);
        }
        let candidate = Candidate { id, lsn: page::lsn(bytes), object, keep: usage == FlashUse::Keep };
        let (slot, given) = shard.offer(candidate);
        context.count(Statistic::FlashEvictionAgedOut, u64::from(given.aged_out));
        context.count(Statistic::FlashEvictionPinned, given.pinned);
        let Some(slot) = slot else { return Err(Statistic::FlashSkipNotUseful) };
        match self.staging.swap(Place { shard: part as u16, slot }, bytes) {
            Some(waiting) => Ok(waiting),
            None => {
                shard.cancel(id, slot);
                Err(Statistic::FlashSkipOverloaded)
            }
        }
    }

    /// The block changes: the caller holds its frame's exclusive latch, and the frame was clean.
    pub(crate) fn invalidate(&self, id: PageId) {
        if self.is_on() && self.parts[self.part_of(id)].shard.lock().remove(id) {
            self.invalidated.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// `ALTER SYSTEM FLUSH FLASH_CACHE`: gives up all blocks.
    pub fn flush(&self) {
        for part in &self.parts {
            let mut shard = part.shard.lock();
            let ids: Vec<PageId> = shard.entries().map(|entry| entry.id).collect();
            // Slots are taken again from the last that was freed: in their order, so that they are written side by side.
            for id in ids.into_iter().rev() {
                shard.remove(id);
            }
        }
    }

    /// Gives up the blocks of an object.
    pub(crate) fn forget(&self, object: u32) {
        for part in &self.parts {
            let count = part.shard.lock().remove_object(object);
            self.invalidated.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Blocks that can be read here, and slots that hold nothing: `flashcur` and `flashfree`.
    pub fn states(&self) -> (u64, u64) {
        if !self.is_on() {
            return (0, 0);
        }
        self.parts.iter().fold((0, 0), |(current, free), part| {
            let shard = part.shard.lock();
            (current + u64::from(shard.valid_count()), free + u64::from(shard.free_count()))
        })
    }

    /// The blocks that can be read here, with their objects; each shard as it is when it is looked at.
    pub fn blocks(&self) -> Vec<(PageId, u32)> {
        if !self.is_on() {
            return Vec::new();
        }
        let of = |part: &Part| part.shard.lock().entries().map(|e| (e.id, e.object)).collect::<Vec<_>>();
        self.parts.iter().flat_map(of).collect()
    }

    /// `v$flashfilestat`.
    pub fn file_rows(&self) -> Vec<FlashFileRow> {
        let row = |(number, file): (u32, &FlashFile)| {
            let io = file.statistics.look();
            FlashFileRow {
                number,
                name: file.path.clone(),
                bytes: file.bytes,
                enabled: self.is_on(),
                single_block_reads: io.small_sync_read.requests,
                single_block_time: io.small_sync_read.time,
                io,
            }
        };
        (1..).zip(&self.files).map(row).collect()
    }
}

/// Each file's slots among shards of nearly the same size.
fn divide(files: &[FlashFile], policy: Policy) -> Vec<Part> {
    let (mut parts, mut end) = (Vec::new(), 0);
    for (file, number) in files.iter().zip(0..) {
        let count = file.slots.div_ceil(SHARD_SLOTS).min(SHARDS_MAX);
        let mut first = 0;
        for left in (1..=count).rev() {
            let slots = (file.slots - first) / left;
            end += u64::from(slots);
            parts.push(Part { shard: Mutex::new(Shard::new(slots, policy)), file: number, first, end });
            first += slots;
        }
    }
    parts
}
