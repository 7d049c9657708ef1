//! The control file: what the database consists of and where it stands. Small, always whole, in two copies.
//!
//! ```text
//! byte 0         128 KiB      256 KiB
//!      slot 0    slot 1       end
//!
//! slot: byte 0       8        12       16         24        32
//!            magic   crc32    length   sequence   database  content …, zeroes to the next 4 KiB
//!            u64     u32      u32      u64        u64
//! ```
//! The checksum is of everything from byte 12 to the end of the content; `length` is of the content.
//!
//! An [`ControlFile::update`] writes the whole content, with the next sequence number, to slot `sequence % 2` of each copy in
//! turn, durably. The other slot keeps the state before, so a write that the power failed in leaves one state or the
//! other, never a mixture; whoever opens takes the valid slot with the highest sequence over all copies and brings the
//! others up to it. The first copy is `control01.ctl` in the database's directory: it makes a directory a database, names the
//! other copies, and is written first, so no other copy is ever newer. A copy that cannot be written is left out with a line
//! in the alert log; without the first one the instance stops.

mod codec;
mod content;
#[cfg(test)]
mod tests;

pub use content::{
    Content, FileRecord, FileState, GroupRecord, LOGS_MAX, LogRecord, MemberRecord, State, TablespaceKind,
    TablespaceRecord,
};

use super::iostat::{FileIo, FileStatistics, Transfer};
use crate::instance::Health;
use crate::page::{get_u32, get_u64};
use crate::{Context, EngineError, Result};
use io::sim::Disk;
use io::{Access, Buffer, IoError, Outcome, Storage};
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::Clock;
use waits::Event;

/// Name of the first copy, in the database's directory.
pub const FIRST_COPY: &str = "control01.ctl";

const MAGIC: u64 = u64::from_le_bytes(*b"RDBTCTL1");
const SLOT_BYTES: usize = 128 << 10;
const HEADER_BYTES: usize = 32;
const ALIGNMENT: usize = 4096;
/// The checksum covers everything from here on.
const CHECKED_FROM: usize = 12;

/// One copy.
struct Copy {
    path: PathBuf,
    disk: Arc<dyn Disk>,
    statistics: Arc<FileStatistics>,
}

impl Copy {
    fn new(path: &Path, disk: Arc<dyn Disk>) -> Self {
        Self { path: path.to_path_buf(), disk, statistics: Arc::default() }
    }
}

struct Writer {
    copies: Vec<Copy>,
    sequence: u64,
    buffer: Buffer,
}

/// The control file of an open database.
pub struct ControlFile {
    writer: Mutex<Writer>,
    /// What is on disk, for everybody to look at.
    content: RwLock<Arc<Content>>,
    clock: Clock,
    health: Arc<Health>,
    statistics: FileStatistics,
    /// Of each copy that was there when the database was opened.
    by_copy: Vec<(PathBuf, Arc<FileStatistics>)>,
}

/// What an instance gives to its control file.
pub struct ControlPlan<'a> {
    /// Where files are.
    pub storage: &'a dyn Storage,
    /// For times of writes.
    pub clock: Clock,
    /// Told when the first copy cannot be written.
    pub health: Arc<Health>,
    /// How files are opened.
    pub access: Access,
}

impl ControlFile {
    /// Makes new copies at `content.copies`, the first one first, and writes `content`.
    ///
    /// # Errors
    /// What storage says; copies already made are for the caller to remove.
    pub fn create(plan: ControlPlan<'_>, content: Content) -> Result<Self> {
        let mut copies = Vec::new();
        for path in &content.copies {
            let disk = plan.storage.create(path, 2 * SLOT_BYTES as u64, plan.access)?;
            copies.push(Copy::new(path, disk));
        }
        let control = Self::over(plan, copies, 0, content.clone())?;
        control.write(&mut control.writer.lock(), content)?;
        Ok(control)
    }

    /// Opens the copies that the first one (`first`) names. `None` when `first` is there and holds nothing yet: the power
    /// went while the database was being made.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] with what to do; what storage says.
    pub fn open(plan: ControlPlan<'_>, first: &Path) -> Result<Option<Self>> {
        let disk = plan.storage.open(first, plan.access)?;
        make_durable(first, &*disk)?;
        let mut buffer = buffer()?;
        let Some(guide) = newest(first, &*disk, &mut buffer)? else { return Ok(None) };
        let (paths, database_id) = (guide.content.copies.clone(), guide.content.database_id);
        let mut copies = vec![Copy::new(first, disk)];
        // Not read a second time: a device that fails meanwhile would leave no state at all.
        let mut states = vec![Some(guide)];
        for path in paths.iter().skip(1) {
            let disk = plan.storage.open(path, plan.access).map_err(|error| missing(path, first, &error))?;
            make_durable(path, &*disk)?;
            let found = newest(path, &*disk, &mut buffer).ok().flatten();
            states.push(found.filter(|found| found.content.database_id == database_id));
            copies.push(Copy::new(path, disk));
        }
        let newest = states.iter().flatten().map(|found| found.sequence).max();
        let behind = states.iter().any(|state| state.as_ref().map(|found| found.sequence) != newest);
        let best = states.into_iter().flatten().max_by_key(|found| found.sequence);
        let Found { sequence, mut content } = best.expect("the first copy was read above");
        // The database may have been moved: the directory that it was opened in is where the first copy is.
        content.copies[0] = first.to_path_buf();
        let control = Self::over(plan, copies, sequence, content.clone())?;
        if behind {
            control
                .health
                .alert()
                .line("a copy of the control file was behind; the next write brings it up to date");
        }
        Ok(Some(control))
    }

    fn over(plan: ControlPlan<'_>, copies: Vec<Copy>, sequence: u64, content: Content) -> Result<Self> {
        let by_copy = copies.iter().map(|copy| (copy.path.clone(), copy.statistics.clone())).collect();
        Ok(Self {
            writer: Mutex::new(Writer { copies, sequence, buffer: buffer()? }),
            content: RwLock::new(Arc::new(content)),
            clock: plan.clock,
            health: plan.health,
            statistics: FileStatistics::default(),
            by_copy,
        })
    }

    /// What it says now.
    pub fn content(&self) -> Arc<Content> {
        self.content.read().clone()
    }

    /// I/O so far, over all copies.
    pub fn statistics(&self) -> &FileStatistics {
        &self.statistics
    }

    /// I/O so far of each copy.
    pub fn copy_io(&self) -> Vec<(PathBuf, FileIo)> {
        self.by_copy.iter().map(|(path, statistics)| (path.clone(), statistics.look())).collect()
    }

    /// Changes it; durable in all copies when this returns (`control file parallel write`).
    ///
    /// # Errors
    /// What `edit` returned: nothing was written then. [`EngineError::Invalid`] when it is full. [`EngineError::Io`] when
    /// storage refused; unless it did so before it touched anything, the instance is crashed, because nobody can say which
    /// state the next open will find.
    pub fn update<T>(&self, context: &Context, edit: impl FnOnce(&mut Content) -> Result<T>) -> Result<T> {
        self.health.check()?;
        let mut writer = self.writer.try_lock().unwrap_or_else(|| {
            let _wait = context.slot.enter(Event::EnqCfContention, 0, 0, 0);
            self.writer.lock()
        });
        let mut content = Content::clone(&self.content.read());
        let result = edit(&mut content)?;
        let files = writer.copies.len() as u64;
        let _wait = context.slot.enter(Event::ControlFileParallelWrite, files, files, files);
        self.write(&mut writer, content)?;
        Ok(result)
    }

    fn write(&self, writer: &mut Writer, mut content: Content) -> Result<()> {
        loop {
            let sequence = writer.sequence + 1;
            let bytes = seal(&content, sequence, &mut writer.buffer)?;
            let offset = slot_offset(sequence);
            let mut failed = None;
            for (index, copy) in writer.copies.iter().enumerate() {
                let outcome = self.timed_write(copy, &writer.buffer[..bytes], offset);
                let result = outcome.check(&copy.path, "pwrite", offset, bytes as u32);
                match (result, index) {
                    (Ok(()), _) => {}
                    (Err(error), 0) => return Err(self.first_copy_failed(&copy.path, outcome, error)),
                    (Err(error), _) => failed = Some((index, error)),
                }
            }
            writer.sequence = sequence;
            let Some((index, error)) = failed else { break };
            let lost = writer.copies.remove(index);
            self.health.alert().line(&format!(
                "control file {} cannot be written and is left out from now on: {error}",
                lost.path.display()
            ));
            content.copies.retain(|path| *path != lost.path);
        }
        *self.content.write() = Arc::new(content);
        Ok(())
    }

    fn timed_write(&self, copy: &Copy, data: &[u8], offset: u64) -> Outcome {
        let begin = self.clock.now();
        let outcome = copy.disk.write_at(data, offset);
        let elapsed = self.clock.now() - begin;
        for statistics in [&self.statistics, &*copy.statistics] {
            statistics.note(Transfer::Write, data.len() as u64, elapsed);
        }
        outcome
    }

    fn first_copy_failed(&self, path: &Path, outcome: Outcome, error: IoError) -> EngineError {
        if !matches!(outcome, Outcome::Errno(errno) if io::refused_beforehand(errno)) {
            self.health.crash(&format!("control file {} cannot be written: {error}", path.display()));
        }
        error.into()
    }
}

/// What the copy at `path` says by itself; `None` when it is blank. Changes nothing.
///
/// # Errors
/// [`EngineError::Damaged`], what storage says.
pub fn peek(storage: &dyn Storage, path: &Path) -> Result<Option<Content>> {
    let disk = storage.open(path, Access { read: true, write: false, direct: false, dsync: false })?;
    Ok(newest(path, &*disk, &mut buffer()?)?.map(|found| found.content))
}

/// What a slot held.
struct Found {
    sequence: u64,
    content: Content,
}

fn buffer() -> Result<Buffer> {
    Ok(Buffer::new(SLOT_BYTES)?)
}

fn slot_offset(sequence: u64) -> u64 {
    (sequence % 2) * SLOT_BYTES as u64
}

/// Puts header and content into `buffer`; the result is how many bytes to write.
fn seal(content: &Content, sequence: u64, buffer: &mut Buffer) -> Result<usize> {
    let encoded = content.encode();
    let end = HEADER_BYTES + encoded.len();
    if end > SLOT_BYTES {
        return Err(EngineError::Invalid(format!(
            "the control file is full ({} files, {} redo groups); drop some, or use fewer and larger ones",
            content.files.len(),
            content.groups.len()
        )));
    }
    let bytes = end.next_multiple_of(ALIGNMENT);
    buffer[..8].copy_from_slice(&MAGIC.to_le_bytes());
    buffer[12..16].copy_from_slice(&(encoded.len() as u32).to_le_bytes());
    buffer[16..24].copy_from_slice(&sequence.to_le_bytes());
    buffer[24..32].copy_from_slice(&content.database_id.to_le_bytes());
    buffer[HEADER_BYTES..end].copy_from_slice(&encoded);
    buffer[end..bytes].fill(0);
    let sum = crc32fast::hash(&buffer[CHECKED_FROM..end]);
    buffer[8..12].copy_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

/// What a killed process was writing may be readable and not durable; whatever is done because of it must not outlive it.
fn make_durable(path: &Path, disk: &dyn Disk) -> Result<()> {
    Ok(disk.sync().check(path, "fdatasync", 0, 0)?)
}

/// The valid slot with the higher sequence of one copy; `None` when both are blank.
fn newest(path: &Path, disk: &dyn Disk, buffer: &mut Buffer) -> Result<Option<Found>> {
    let (bytes, whole) = (disk.bytes(), 2 * SLOT_BYTES as u64);
    if bytes < whole {
        return shorter(path, disk, bytes, &mut buffer[..]).map(|()| None);
    }
    let mut best: Option<Found> = None;
    let mut reason = None;
    for slot in 0..2 {
        let offset = slot * SLOT_BYTES as u64;
        disk.read_at(buffer, offset).check(path, "pread", offset, SLOT_BYTES as u32)?;
        match unseal(buffer, slot) {
            Ok(Some(found)) if best.as_ref().is_none_or(|b| b.sequence < found.sequence) => {
                best = Some(found)
            }
            Ok(_) => {}
            Err(what) => reason = Some(what),
        }
    }
    match (best, reason) {
        (Some(found), _) => Ok(Some(found)),
        (None, None) => Ok(None),
        (None, Some(what)) => Err(EngineError::Damaged {
            path: path.to_path_buf(),
            what: format!("{what}; stop every instance and copy another copy of the control file over it"),
        }),
    }
}

/// A file that is not as long as it should be: fine when all of it is blank, then the power went while it was being made.
fn shorter(path: &Path, disk: &dyn Disk, bytes: u64, buffer: &mut [u8]) -> Result<()> {
    let end = bytes - bytes % ALIGNMENT as u64;
    let mut blank = true;
    for offset in (0..end).step_by(buffer.len()) {
        let piece = &mut buffer[..(end - offset).min(SLOT_BYTES as u64) as usize];
        disk.read_at(piece, offset).check(path, "pread", offset, piece.len() as u32)?;
        blank &= piece.iter().all(|byte| *byte == 0);
    }
    let what = format!("it has {bytes} bytes and was cut off; copy another copy of the control file over it");
    if blank { Ok(()) } else { Err(EngineError::Damaged { path: path.to_path_buf(), what }) }
}

/// `None` for a slot that was never written, or not to its end.
fn unseal(bytes: &[u8], slot: u64) -> std::result::Result<Option<Found>, String> {
    if get_u64(bytes, 0) == 0 {
        return Ok(None);
    }
    if get_u64(bytes, 0) != MAGIC {
        return Err("this is no control file".into());
    }
    let end = HEADER_BYTES + get_u32(bytes, 12) as usize;
    let sequence = get_u64(bytes, 16);
    if end > SLOT_BYTES || crc32fast::hash(&bytes[CHECKED_FROM..end]) != get_u32(bytes, 8) {
        return Err("its checksum does not fit".into());
    }
    if sequence % 2 != slot {
        return Err(format!("state {sequence} is in slot {slot}, where it does not belong"));
    }
    let content = Content::decode(&bytes[HEADER_BYTES..end])?;
    Ok(Some(Found { sequence, content }))
}

fn missing(path: &Path, first: &Path, error: &IoError) -> EngineError {
    EngineError::Damaged {
        path: path.to_path_buf(),
        what: format!(
            "this copy of the control file cannot be opened ({error}); copy {} to its place and start again",
            first.display()
        ),
    }
}
