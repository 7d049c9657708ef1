//! The doublewrite file: whole copies of pages whose write home may be torn by a power failure.
//!
//! ```text
//! byte 0                 4096                area_bytes                 2 × area_bytes
//!      ┌──────────────────┬─ … ──────────────┬────────┬─ … ─┬────────┬────────┬─ …
//!      │ header           │ zeroes           │ page   │     │ page   │ page   │      pages sealed, with their address;
//!      └──────────────────┴─ … ──────────────┴────────┴─ … ─┴────────┴────────┴─ …   nothing else in the areas
//!                                             area of dbw0            area of dbw1    128 pages each
//! header: magic u64, database id u64, block bytes u32, CRC-32 of the 20 bytes before u32
//! ```
//! 1. A batch is written to the writer's area, durable.   Before it goes home: else a torn page has no copy.
//! 2. It is written home, durable.
//! 3. The area may be overwritten.                        Not before 2: the next batch starts only then.
//!
//! At open, before redo is applied: a page whose home is not what was written, and which has a copy, gets it back. Of several
//! copies the one with the highest LSN is the one whose write was torn: a page is written by one writer at a time, and
//! older copies are left-overs. A copy is never put over a page that is whole: that one may be newer. A file of another database, left
//! where this one was made, is not looked at. Under another protection the file is removed once it was used: its copies would
//! grow old, and be mistaken for the last ones at some later crash.
//!
//! What it buys: redo stays small. Its price: each page is written twice, though the first time in one large request.

use super::BufferCache;
use super::site::{Site, check};
use crate::files::DataFile;
use crate::files::iostat::Transfer;
use crate::page::{self, Lsn, PageId};
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use io::sim::Disk;
use io::{Access, Buffer, Storage};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use waits::Event;

/// Pages of an area: 1 MiB of 8 KiB pages.
const AREA_BLOCKS: usize = 128;

const MAGIC: u64 = u64::from_le_bytes(*b"RDBTDBLW");
const HEADER_BYTES: usize = 4096;

/// The open file.
pub(super) struct Doublewrite {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    block_bytes: usize,
    /// One for each writer, as long as an area.
    areas: Box<[Mutex<Buffer>]>,
}

/// Where the file is, and whose.
#[derive(Clone, Debug)]
pub struct DoublewriteFile {
    /// Its path.
    pub path: PathBuf,
    /// What tells its database from others.
    pub database_id: u64,
}

impl Doublewrite {
    /// Opens the file. None when there is none, or none of this database.
    pub fn open(
        storage: &dyn Storage,
        file: &DoublewriteFile,
        access: Access,
        block_bytes: usize,
        writers: u32,
    ) -> Result<Option<Self>> {
        let DoublewriteFile { path, database_id } = file;
        if !storage.exists(path) {
            return Ok(None);
        }
        let disk = storage.open(path, access)?;
        let mut header = Buffer::new(HEADER_BYTES)?;
        let whole = disk.bytes() >= HEADER_BYTES as u64;
        if !whole
            || !disk.read_at(&mut header, 0).is_full()
            || header[..24] != header_of(*database_id, block_bytes)
        {
            return Ok(None);
        }
        let (bytes, needed) = (disk.bytes(), file_bytes(block_bytes, writers));
        if bytes < needed {
            storage.extend(path, bytes, needed)?;
        }
        Self::new(disk, path, block_bytes, writers).map(Some)
    }

    /// Makes the file, in the place of one of ours that is no use: of another database, too small to be finished, of other
    /// blocks. Blank is what is left when the power went while it was made.
    ///
    /// # Errors
    /// [`EngineError::Exists`] when somebody else's file is there; what storage says.
    pub fn create(
        storage: &dyn Storage,
        file: &DoublewriteFile,
        access: Access,
        block_bytes: usize,
        writers: u32,
    ) -> Result<Self> {
        let DoublewriteFile { path, database_id } = file;
        if storage.exists(path) {
            let mut header = Buffer::new(HEADER_BYTES)?;
            let old = storage.open(path, Access { write: false, ..access })?;
            let whole = old.bytes() >= HEADER_BYTES as u64 && old.read_at(&mut header, 0).is_full();
            let blank = header.iter().all(|byte| *byte == 0);
            let ours = whole && header[..8] == MAGIC.to_le_bytes();
            if !blank && !ours {
                return Err(EngineError::Exists { kind: "file", name: path.display().to_string() });
            }
            drop(old);
            storage.remove(path)?;
        }
        let disk = storage.create(path, file_bytes(block_bytes, writers), access)?;
        let mut header = Buffer::new(HEADER_BYTES)?;
        header[..24].copy_from_slice(&header_of(*database_id, block_bytes));
        disk.write_at(&header, 0).check(path, "pwrite", 0, HEADER_BYTES as u32)?;
        Self::new(disk, path, block_bytes, writers)
    }

    fn new(disk: Arc<dyn Disk>, path: &Path, block_bytes: usize, writers: u32) -> Result<Self> {
        let area = |_| Ok(Mutex::new(Buffer::new(AREA_BLOCKS * block_bytes)?));
        let areas: Result<_> = (0..writers.max(1)).map(area).collect();
        Ok(Self { disk, path: path.to_path_buf(), block_bytes, areas: areas? })
    }

    /// Pages of a batch at most.
    pub fn blocks_max(&self) -> usize {
        AREA_BLOCKS
    }

    /// Writes copies of a writer's batch, durable when this returns (`doublewrite parallel write`).
    ///
    /// # Errors
    /// What the write met.
    pub fn write<'a>(
        &self,
        site: &dyn Site,
        context: &Context,
        writer: u32,
        pages: impl Iterator<Item = &'a [u8]>,
    ) -> Result<()> {
        let mut area = self.areas[writer as usize].lock();
        let mut bytes = 0;
        for page in pages {
            area[bytes..bytes + page.len()].copy_from_slice(page);
            bytes += page.len();
        }
        if bytes == 0 {
            return Ok(());
        }
        let (blocks, offset) = ((bytes / self.block_bytes) as u64, area.len() as u64 * u64::from(writer + 1));
        let wait = context.slot.enter(Event::DoublewriteParallelWrite, 1, blocks, 0);
        let outcome = self.disk.write_at(&area[..bytes], offset);
        let took = wait.end();
        outcome.check(&self.path, "pwrite", offset, bytes as u32)?;
        site.files().other.note(Transfer::Write, bytes as u64, took);
        context.count(Statistic::DoublewriteBlocks, blocks);
        Ok(())
    }

    /// The newest copy of each page: its LSN and where it lies.
    fn copies(&self) -> Result<BTreeMap<PageId, (Lsn, u64)>> {
        let mut copies = BTreeMap::new();
        let mut area = self.areas[0].lock();
        let area_bytes = area.len() as u64;
        // More areas than writers when there were more writers once.
        for start in (1..self.disk.bytes() / area_bytes).map(|number| number * area_bytes) {
            self.disk.read_at(&mut area, start).check(&self.path, "pread", start, area_bytes as u32)?;
            for (at, page) in (start..).step_by(self.block_bytes).zip(area.chunks_exact(self.block_bytes)) {
                let id = page::page_id(page);
                if id.is_some() && page::check(page, id).is_ok() {
                    let newest = copies.entry(id).or_insert((Lsn(0), at));
                    *newest = (*newest).max((page::lsn(page), at));
                }
            }
        }
        Ok(copies)
    }

    /// Puts the copy at `at` over the page, if the page is not whole. Whether it was not.
    fn restore(&self, file: &DataFile, id: PageId, at: u64, buffer: &mut Buffer) -> Result<bool> {
        let (disk, bytes) = (file.disk()?, self.block_bytes as u32);
        let offset = u64::from(id.block) * u64::from(bytes);
        check(file, "pread", offset, self.block_bytes, disk.read_at(buffer, offset))?;
        if page::check(buffer, id).is_ok() {
            return Ok(false);
        }
        self.disk.read_at(buffer, at).check(&self.path, "pread", at, bytes)?;
        check(file, "pwrite", offset, self.block_bytes, disk.write_at(buffer, offset))?;
        Ok(true)
    }

    fn restore_all(&self, site: &dyn Site) -> Result<u32> {
        let mut buffer = Buffer::new(self.block_bytes)?;
        let mut restored = 0;
        for (id, (lsn, at)) in self.copies()? {
            // Of a file that was dropped since, nothing is to be mended.
            let Some(file) = site.files().get(id.file).filter(|file| file.disk().is_ok()) else { continue };
            if id.block < file.blocks() && self.restore(file, id, at, &mut buffer)? {
                site.alert(&format!(
                    "{} block {} was torn by a crash: restored from {} (LSN {})",
                    file.path.display(),
                    id.block,
                    self.path.display(),
                    lsn.0
                ));
                restored += 1;
            }
        }
        Ok(restored)
    }
}

fn file_bytes(block_bytes: usize, writers: u32) -> u64 {
    (AREA_BLOCKS * block_bytes) as u64 * u64::from(writers.max(1) + 1)
}

fn header_of(database_id: u64, block_bytes: usize) -> [u8; 24] {
    let mut header = [0; 24];
    header[..8].copy_from_slice(&MAGIC.to_le_bytes());
    header[8..16].copy_from_slice(&database_id.to_le_bytes());
    header[16..20].copy_from_slice(&(block_bytes as u32).to_le_bytes());
    let sum = crc32fast::hash(&header[..20]);
    header[20..].copy_from_slice(&sum.to_le_bytes());
    header
}

impl BufferCache {
    /// At open, before redo is applied: puts back what the doublewrite file has whole and its home has torn, whatever
    /// `torn_page_protection` says now (it may have been another when the power went). The result is how many pages.
    ///
    /// # Errors
    /// What storage says.
    pub fn restore_torn(&self, core: &dyn Site, _context: &Context) -> Result<u32> {
        if let Some(doublewrite) = &self.doublewrite {
            return doublewrite.restore_all(core);
        }
        let Some(file) = &self.doublewrite_file else { return Ok(0) };
        let storage = &*core.environment().storage;
        let access = Access::for_mode(self.mode, true);
        let Some(doublewrite) = Doublewrite::open(storage, file, access, self.block_bytes, 1)? else {
            return Ok(0);
        };
        let restored = doublewrite.restore_all(core)?;
        drop(doublewrite);
        storage.remove(&file.path)?;
        Ok(restored)
    }
}
