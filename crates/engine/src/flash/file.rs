//! A file or device of the flash cache: its layout, its header, and the index that a clean shutdown leaves in it.
//!
//! ```text
//! byte 0        4096                 base
//!      ┌────────┬────────────────────┬────────┬────────┬─ …
//!      │ header │ index, zero padded │ slot 0 │ slot 1 │
//!      └────────┴────────────────────┴────────┴────────┴─ …
//! header: magic u64, state u32 (1 in use, 2 saved), block bytes u32, slots u32, entries' CRC-32 u32, database id u64, opens u64,
//!         checkpoint u64, layout u64, CRC-32 of the 56 bytes before u32
//! entry of the index, one for each slot: address u64, LSN u64, object u32, 1 there + 2 to keep u32
//! ```
//! **After a crash it is empty.** The index is read back only when the control file says that this very database was shut down cleanly
//! at the moment when the index was saved: as many opens, the same checkpoint. Whoever changes the database, with or without this file, opens it,
//! and counts one more. So a block that is older than its home is never found here, whatever the slots hold.
//!
//! 1. At open the header says *in use*, durably, before any slot is written: an index that is older than its slots is not even looked at.
//! 2. At a clean shutdown the index is written, and synced, 3. then the header says *saved*. The other way round a power cut would leave
//!    a header that vouches for half an index (its checksum would tell as well). 4. Then the control file says *clean*.

use super::directory::Entry;
use crate::files::iostat::FileStatistics;
use crate::page::{Lsn, PageId, get_u32, get_u64};
use crate::{EngineError, Result};
use io::sim::Disk;
use io::{Access, Buffer, IoError, Ownership, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: u64 = u64::from_le_bytes(*b"RDBTFLSH");
const HEADER_BYTES: usize = 4096;
const SUMMED: usize = 56;
const ENTRY_BYTES: usize = 24;
/// What has to be blank before a file or device is taken.
const HEAD_BYTES: usize = 1 << 20;
/// Slots begin at a multiple of this.
const BASE_UNIT: u64 = 64 << 10;
/// Bytes of one transfer of the index.
const CHUNK_BYTES: usize = 1 << 20;
const IN_USE: u32 = 1;
const SAVED: u32 = 2;

/// The moment of a clean shutdown, as the control file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which database.
    pub database_id: u64,
    /// How often it had been opened.
    pub opens: u64,
    /// Where its redo ended.
    pub checkpoint: Lsn,
}

/// An open file of the flash cache.
pub(super) struct FlashFile {
    pub path: PathBuf,
    pub disk: Arc<dyn Disk>,
    pub bytes: u64,
    pub slots: u32,
    /// Where slot 0 is.
    pub base: u64,
    pub statistics: FileStatistics,
    block_bytes: usize,
}

/// How many slots fit, and where they begin.
fn layout(bytes: u64, block_bytes: u64) -> (u32, u64) {
    let room = bytes.saturating_sub(HEADER_BYTES as u64 + BASE_UNIT);
    let slots = u32::try_from(room / (block_bytes + ENTRY_BYTES as u64)).unwrap_or(u32::MAX - 1);
    let index = u64::from(slots) * ENTRY_BYTES as u64;
    (slots, (HEADER_BYTES as u64 + index).next_multiple_of(BASE_UNIT))
}

impl FlashFile {
    /// Opens the file, or makes it; one of ours that is too short is made anew. Nothing else is ever overwritten.
    ///
    /// # Errors
    /// [`EngineError::Exists`] when something else is there; what storage says, with what to do.
    pub fn open(
        storage: &dyn Storage,
        path: &Path,
        bytes: u64,
        block_bytes: usize,
        access: Access,
    ) -> Result<Self> {
        let disk = Self::disk(storage, path, bytes, access).map_err(|error| refused(storage, path, error))?;
        let (slots, base) = layout(bytes, block_bytes as u64);
        if slots == 0 {
            return Err(EngineError::Invalid(format!(
                "db_flash_cache_size: {bytes} bytes hold no block; type at least 1m for {}",
                path.display()
            )));
        }
        let statistics = FileStatistics::default();
        Ok(Self { path: path.to_path_buf(), disk, bytes, slots, base, statistics, block_bytes })
    }

    fn disk(storage: &dyn Storage, path: &Path, bytes: u64, access: Access) -> Result<Arc<dyn Disk>> {
        if !storage.exists(path) {
            return Ok(storage.create(path, bytes, access)?);
        }
        let disk = storage.open(path, access)?;
        let mut head = Buffer::new(HEAD_BYTES)?;
        let known = disk.bytes().min(HEAD_BYTES as u64) as usize;
        disk.read_at(&mut head[..known], 0).check(path, "pread", 0, known as u32)?;
        let ours = known >= HEADER_BYTES && get_u64(&head, 0) == MAGIC;
        if ours && disk.bytes() >= bytes {
            return Ok(disk);
        }
        // Blank as the power left it while it was made, then it is no longer than it was to be; or a device before it is taken.
        let blank = head.iter().all(|byte| *byte == 0);
        let device = storage.is_device(path);
        let unfinished = blank && disk.bytes() <= bytes;
        drop(disk);
        match (ours, blank) {
            (true, _) if device => Err(EngineError::Invalid(format!("it is shorter than {bytes} bytes"))),
            (_, true) if device => Ok(storage.create(path, bytes, access)?),
            _ if ours || unfinished => {
                storage.remove(path)?;
                Ok(storage.create(path, bytes, access)?)
            }
            _ => Err(EngineError::Exists { kind: "file", name: path.display().to_string() }),
        }
    }

    /// Where a slot is.
    pub fn offset(&self, slot: u32) -> u64 {
        self.base + u64::from(slot) * self.block_bytes as u64
    }

    fn header(&self, state: u32, stamp: Stamp, layout: u64, sum: u32) -> Result<Buffer> {
        let mut header = Buffer::new(HEADER_BYTES)?;
        let words: [&[u8]; 9] = [
            &MAGIC.to_le_bytes(),
            &state.to_le_bytes(),
            &(self.block_bytes as u32).to_le_bytes(),
            &self.slots.to_le_bytes(),
            &sum.to_le_bytes(),
            &stamp.database_id.to_le_bytes(),
            &stamp.opens.to_le_bytes(),
            &stamp.checkpoint.0.to_le_bytes(),
            &layout.to_le_bytes(),
        ];
        let words = words.concat();
        assert_eq!(words.len(), SUMMED);
        header[..SUMMED].copy_from_slice(&words);
        header[SUMMED..SUMMED + 4].copy_from_slice(&crc32fast::hash(&words).to_le_bytes());
        Ok(header)
    }

    fn write_header(&self, state: u32, stamp: Stamp, layout: u64, sum: u32) -> Result<()> {
        let header = self.header(state, stamp, layout, sum)?;
        Ok(self.disk.write_at_dsync(&header, 0).check(&self.path, "pwrite", 0, HEADER_BYTES as u32)?)
    }

    /// Step 1.
    ///
    /// # Errors
    /// What storage says.
    pub fn mark_in_use(&self, database_id: u64) -> Result<()> {
        let nothing = Stamp { database_id, opens: 0, checkpoint: Lsn(0) };
        self.write_header(IN_USE, nothing, 0, 0)
    }

    /// Steps 2 and 3. `entries` by slot; `layout` tells one division into slots from another.
    ///
    /// # Errors
    /// What storage says.
    pub fn save(&self, stamp: Stamp, layout: u64, entries: &[Entry]) -> Result<()> {
        let mut index = vec![0; self.slots as usize * ENTRY_BYTES];
        for entry in entries {
            let at = &mut index[entry.slot as usize * ENTRY_BYTES..][..ENTRY_BYTES];
            at[..8].copy_from_slice(&entry.id.to_u64().to_le_bytes());
            at[8..16].copy_from_slice(&entry.lsn.0.to_le_bytes());
            at[16..20].copy_from_slice(&entry.object.to_le_bytes());
            at[20..].copy_from_slice(&(1 + 2 * u32::from(entry.keep)).to_le_bytes());
        }
        let mut chunk = Buffer::new(CHUNK_BYTES)?;
        for (piece, offset) in index.chunks(CHUNK_BYTES).zip((HEADER_BYTES as u64..).step_by(CHUNK_BYTES)) {
            let bytes = piece.len().next_multiple_of(HEADER_BYTES);
            chunk[..piece.len()].copy_from_slice(piece);
            chunk[piece.len()..bytes].fill(0);
            self.disk.write_at(&chunk[..bytes], offset).check(&self.path, "pwrite", offset, bytes as u32)?;
        }
        self.disk.sync().check(&self.path, "fdatasync", 0, 0)?;
        self.write_header(SAVED, stamp, layout, crc32fast::hash(&index))
    }

    /// What was saved at the moment of `stamp`; nothing when anything else is there.
    ///
    /// # Errors
    /// What storage says.
    pub fn saved(&self, stamp: Stamp, layout: u64) -> Result<Vec<Entry>> {
        let mut header = Buffer::new(HEADER_BYTES)?;
        self.disk.read_at(&mut header, 0).check(&self.path, "pread", 0, HEADER_BYTES as u32)?;
        let sum = get_u32(&header, 20);
        if header[..] != self.header(SAVED, stamp, layout, sum)?[..] {
            return Ok(Vec::new());
        }
        let mut index = Vec::with_capacity(self.slots as usize * ENTRY_BYTES);
        let mut chunk = Buffer::new(CHUNK_BYTES)?;
        while index.len() < self.slots as usize * ENTRY_BYTES {
            let offset = (HEADER_BYTES + index.len()) as u64;
            let piece = (self.slots as usize * ENTRY_BYTES - index.len()).min(CHUNK_BYTES);
            let bytes = piece.next_multiple_of(HEADER_BYTES);
            let outcome = self.disk.read_at(&mut chunk[..bytes], offset);
            outcome.check(&self.path, "pread", offset, bytes as u32)?;
            index.extend_from_slice(&chunk[..piece]);
        }
        if crc32fast::hash(&index) != sum {
            return Ok(Vec::new());
        }
        let entry = |(slot, at): (u32, &[u8])| {
            let flags = get_u32(at, 20);
            (flags != 0).then(|| Entry {
                slot,
                id: PageId::from_u64(get_u64(at, 0)),
                lsn: Lsn(get_u64(at, 8)),
                object: get_u32(at, 16),
                keep: flags & 2 != 0,
            })
        };
        Ok((0..).zip(index.chunks_exact(ENTRY_BYTES)).filter_map(entry).collect())
    }
}

/// Said before the instance starts, so that nobody finds a dead one.
pub(super) fn refused(storage: &dyn Storage, path: &Path, error: EngineError) -> EngineError {
    let what = match &error {
        EngineError::Io(io) if matches!(**io, IoError::Permission { .. }) => denied(storage, path, &error),
        EngineError::Exists { .. } => format!(
            "{} is there and is no flash cache; name another file, or remove it if nobody needs it",
            path.display()
        ),
        _ => error.to_string(),
    };
    EngineError::FlashCache(what)
}

/// Whose it is, who asks, and for a device the rule that gives it to him: a changed mode alone is gone after the next boot.
fn denied(storage: &dyn Storage, path: &Path, error: &EngineError) -> String {
    let Some(Ownership { said, user }) = storage.ownership(path) else { return error.to_string() };
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    match storage.is_device(path) {
        true => format!(
            "{said}, who may not use it; give it to him: echo 'KERNEL==\"{name}\", OWNER=\"{user}\", MODE=\"0660\"' | sudo tee \
             /etc/udev/rules.d/99-flash-cache.rules, then sudo udevadm control --reload, sudo udevadm trigger --name-match={name}"
        ),
        false => format!("{error}; {said}"),
    }
}
