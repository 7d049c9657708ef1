//! Reading back what was written: every block with a note ([`super::written`]) from the device, past the caches, once the instance has
//! stopped and nothing moves any more.
//!
//! ```text
//! unreadable    the read itself failed
//! torn          the checksum is wrong: half written, or changed since
//! misdirected   a whole block of another address lies there
//! lost          an older block, or zeroes, twice: the acknowledged write never arrived
//! stale         an older block, and a second reading was right: something in between keeps old data
//! foreign       a whole block of this address that nobody here wrote
//! ```
//! Read by runs of neighbours, up to 1 MiB at once, in the order of addresses: the speed of a scan where much was written, one read for each
//! stretch where little was.

use super::written::{Note, older};
use super::{DataFile, FileSet};
use crate::Result;
use crate::page::{self, PageId};
use io::sim::Disk;
use io::{Access, Buffer, File, Outcome, Storage};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of one read at most.
const READ_BYTES: usize = 1 << 20;
/// Neighbours with so many bytes of others between them are read at once.
const GAP_BYTES: usize = 64 << 10;
/// Blocks that are described one by one; all are counted.
const TOLD_MAX: usize = 100;
/// What a direct read wants to begin and end at, where blocks are smaller.
const ALIGNED_BYTES: u64 = 4096;

/// How a block is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// The read failed.
    Unreadable,
    /// Half written, or changed since.
    Torn,
    /// Another block lies there.
    Misdirected,
    /// The write never arrived.
    Lost,
    /// The first reading was old, the second right.
    Stale,
    /// Nobody here wrote it.
    Foreign,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unreadable => "unreadable",
            Self::Torn => "torn",
            Self::Misdirected => "misdirected",
            Self::Lost => "lost",
            Self::Stale => "stale",
            Self::Foreign => "foreign",
        })
    }
}

/// A block that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongBlock {
    /// The block.
    pub id: PageId,
    /// Its file.
    pub path: PathBuf,
    /// How.
    pub wrong: Wrong,
    /// What should be there.
    pub expected: String,
    /// What is.
    pub found: String,
}

impl fmt::Display for WrongBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, path, wrong, expected, found } = self;
        write!(f, "{} block {}: {wrong}: expected {expected}, found {found}", path.display(), id.block)
    }
}

/// What a reading back saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadBack {
    /// Blocks that were compared.
    pub blocks: u64,
    /// Bytes that were read for that.
    pub bytes: u64,
    /// Blocks that were wrong.
    pub wrong: u64,
    /// The first of them.
    pub told: Vec<WrongBlock>,
    /// Files that could only be read through the page cache.
    pub cached: Vec<PathBuf>,
    /// It was stopped before its end.
    pub stopped: bool,
}

impl ReadBack {
    fn tell(&mut self, wrong: WrongBlock) {
        self.wrong += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(wrong);
        }
    }
}

/// Blocks of the open files that were written since they were opened, and the block's bytes: what [`read_back`] will read.
pub fn noted(files: &FileSet) -> Vec<Arc<DataFile>> {
    files.all().into_iter().filter(|file| file.written.is_some()).collect()
}

/// Reads every noted block of `files`, whose instance has stopped, and compares. `go_on` hears the blocks done and to be done, and may
/// stop it.
///
/// # Errors
/// A file that cannot be opened, no memory. A read that fails is a finding.
pub fn read_back(
    storage: &dyn Storage,
    files: &[Arc<DataFile>],
    block_bytes: u32,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<ReadBack> {
    let mut seen = ReadBack::default();
    let all: u64 = files.iter().filter_map(|file| file.written.as_ref()).map(|notes| notes.count()).sum();
    let mut buffer = Buffer::new(READ_BYTES)?;
    for file in files {
        let Some(notes) = &file.written else { continue };
        if notes.count() == 0 {
            continue;
        }
        let reader = Reader::open(storage, file, block_bytes, &mut seen)?;
        let mut next = Some(0);
        while let Some(first) = next {
            if !go_on(seen.blocks, all) {
                seen.stopped = true;
                return Ok(seen);
            }
            let run = reader.run(notes.blocks(first, READ_BYTES / block_bytes as usize));
            next = run.last().map(|last| last + 1);
            reader.compare(&run, &mut buffer, &mut seen);
        }
    }
    Ok(seen)
}

/// One file, past the caches.
struct Reader<'f> {
    file: &'f DataFile,
    disk: Arc<dyn Disk>,
    block_bytes: u64,
    file_bytes: u64,
}

impl<'f> Reader<'f> {
    fn open(
        storage: &dyn Storage,
        file: &'f DataFile,
        block_bytes: u32,
        seen: &mut ReadBack,
    ) -> Result<Self> {
        let access = Access { read: true, write: false, direct: true, dsync: false };
        let disk = match storage.open(&file.path, access) {
            Ok(disk) => disk,
            Err(_) => {
                let plain = storage.open(&file.path, Access { direct: false, ..access })?;
                let real = plain.clone().as_any().and_then(|any| any.downcast::<File>().ok());
                // What stays in the page cache would answer for the device.
                if real.is_none_or(|real| real.drop_cache().is_err()) {
                    seen.cached.push(file.path.clone());
                }
                plain
            }
        };
        let file_bytes = disk.bytes();
        Ok(Self { file, disk, block_bytes: block_bytes.into(), file_bytes })
    }

    /// The first of `blocks`, as far as they are read at once.
    fn run(&self, mut blocks: Vec<u32>) -> Vec<u32> {
        let Some(&first) = blocks.first() else { return blocks };
        let end = |block: u32| (u64::from(block - first) + 1) * self.block_bytes;
        let room = READ_BYTES as u64 - ALIGNED_BYTES * u64::from(self.block_bytes < ALIGNED_BYTES) * 2;
        let near = |pair: &[u32]| u64::from(pair[1] - pair[0] - 1) * self.block_bytes <= GAP_BYTES as u64;
        let apart = blocks.windows(2).position(|pair| !near(pair) || end(pair[1]) > room);
        blocks.truncate(apart.map_or(blocks.len(), |at| at + 1));
        blocks
    }

    /// Reads a run and holds each of its blocks against its note.
    fn compare(&self, run: &[u32], buffer: &mut Buffer, seen: &mut ReadBack) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return };
        let start = self.offset(first) / ALIGNED_BYTES * ALIGNED_BYTES;
        let end = (self.offset(last) + self.block_bytes).next_multiple_of(ALIGNED_BYTES);
        let bytes = (end.min(self.file_bytes).saturating_sub(start)) as usize;
        let outcome = self.disk.read_at(&mut buffer[..bytes], start);
        seen.bytes += bytes as u64;
        // One bad sector fails the whole read: then each block for itself.
        let whole = outcome.is_full();
        for &block in run {
            seen.blocks += 1;
            let at = (self.offset(block) - start) as usize;
            let page = buffer.get(at..at + self.block_bytes as usize);
            let right = whole && page.is_some_and(|page| self.judge(block, page).is_none());
            if !right {
                self.look_again(block, whole.then(|| page.map(<[u8]>::to_vec)).flatten(), seen);
            }
        }
    }

    /// A second reading of a block that was not right, or not read: tells a stale answer from a lost write.
    fn look_again(&self, block: u32, first: Option<Vec<u8>>, seen: &mut ReadBack) {
        let mut wrong = |wrong, (expected, found)| {
            let id = PageId { file: self.file.number, block };
            seen.tell(WrongBlock { id, path: self.file.path.clone(), wrong, expected, found });
        };
        let before = first.as_deref().and_then(|page| self.judge(block, page));
        let again = self.read_one(block);
        match (before, again) {
            (None, Ok(page)) => {
                if let Some((kind, words)) = self.judge(block, &page) {
                    wrong(kind, words);
                }
            }
            (Some((Wrong::Lost, (expected, found))), Ok(page)) if self.judge(block, &page).is_none() => {
                wrong(Wrong::Stale, (expected, format!("{found}, and the right one on a second reading")));
            }
            (Some((kind, words)), _) => wrong(kind, words),
            (None, Err(outcome)) => {
                let call =
                    outcome.check(&self.file.path, "pread", self.offset(block), self.block_bytes as u32);
                let found = call.err().map_or_else(String::new, |error| error.to_string());
                wrong(Wrong::Unreadable, ("a block that can be read".into(), found));
            }
        }
    }

    fn read_one(&self, block: u32) -> std::result::Result<Vec<u8>, Outcome> {
        let start = self.offset(block) / ALIGNED_BYTES * ALIGNED_BYTES;
        let end = (self.offset(block) + self.block_bytes).next_multiple_of(ALIGNED_BYTES);
        let bytes = (end.min(self.file_bytes).saturating_sub(start)) as usize;
        let mut buffer = Buffer::new(bytes).map_err(|_| Outcome::Errno(NO_MEMORY))?;
        match self.disk.read_at(&mut buffer, start) {
            Outcome::Full => {
                let at = (self.offset(block) - start) as usize;
                let page = buffer.get(at..at + self.block_bytes as usize);
                page.map(<[u8]>::to_vec).ok_or(Outcome::Short(bytes as u32))
            }
            other => Err(other),
        }
    }

    /// How the block is wrong, with expected and found; none when it is what was written.
    fn judge(&self, block: u32, page: &[u8]) -> Option<(Wrong, (String, String))> {
        let note = self.file.written.as_ref()?.of(block)?;
        let id = PageId { file: self.file.number, block };
        if Note::of(page) == note && page::check(page, id).is_ok() {
            return None;
        }
        let (sum, said) = (page::sum(page), page::checksum(page));
        let blank = page.iter().all(|byte| *byte == 0);
        Some(if !blank && sum != said {
            let expected = format!("checksum {:#010x} (LSN {})", note.checksum, note.lsn.0);
            (Wrong::Torn, (expected, format!("{sum:#010x} of its bytes, {said:#010x} in its header")))
        } else if !blank && page::page_id(page) != id {
            (Wrong::Misdirected, (id.to_string(), page::page_id(page).to_string()))
        } else if page::lsn(page) < note.lsn {
            (Wrong::Lost, older(note, page))
        } else {
            let words = |note: Note| format!("LSN {}, checksum {:#010x}", note.lsn.0, note.checksum);
            (Wrong::Foreign, (words(note), words(Note::of(page))))
        })
    }

    fn offset(&self, block: u32) -> u64 {
        u64::from(block) * self.block_bytes
    }
}

/// `ENOMEM`.
const NO_MEMORY: i32 = 12;
