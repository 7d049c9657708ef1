//! Reading the log back, from the checkpoint to its end.
//!
//! The end is the first chunk that is in no member intact, when no later turn of the log exists. Four things look like an
//! end and are none; each is an error, because ending there would lose commits that were acknowledged:
//! - a group with a later sequence begins elsewhere than where the redo before it ends;
//! - an intact chunk of the same turn lies behind the damaged place. One write is in flight at a time, so a power
//!   cut damages the last chunk only; a chunk is at most an eighth of its group, so that far is looked;
//! - no valid member can be read there;
//! - it lies before the checkpoint.

use super::chunk::{self, Place, padded};
use super::group::{Group, Member};
use crate::page::Lsn;
use crate::{Context, EngineError, Result};
use io::Buffer;
use std::ops::Range;
use std::path::PathBuf;
use waits::Event;

/// Bytes read at once, unless a chunk is larger.
const READ_BYTES: usize = 8 << 20;

/// Chunks that were read together.
pub(super) struct Batch {
    /// LSN of the first byte, and behind the last.
    pub start: Lsn,
    pub end: Lsn,
    /// LSN of the first record of each chunk, and where its records lie in [`LogReader::bytes`].
    pub chunks: Vec<(Lsn, Range<usize>)>,
    /// Bytes of the buffer that it takes.
    bytes: usize,
}

/// Where the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub lsn: Lsn,
    /// Index of its group.
    pub group: usize,
}

/// Reads chunk after chunk.
pub(super) struct LogReader<'a> {
    context: &'a Context,
    database: u64,
    groups: &'a [Group],
    /// Index of the group being read.
    group: usize,
    at: Lsn,
    /// Chunks that end before it are passed over.
    from: Lsn,
    /// The member that was good last.
    member: usize,
    buffer: Buffer,
    /// Up to which the buffer may grow.
    batch_bytes: usize,
    /// The last batch filled the buffer.
    filled: bool,
}

/// What a member has at the current place.
enum Found {
    /// Chunks, now in the batch.
    Chunks,
    /// Readable, and not the chunk that should be there.
    Nothing,
    Unreadable(String),
    /// A chunk that does not fit into what is left of the buffer.
    Full(usize),
}

impl<'a> LogReader<'a> {
    /// From `at` on, which lies in `groups[group]`, in batches of `batch_bytes` but for the first: a short log needs little memory.
    ///
    /// # Errors
    /// No memory.
    pub fn new(
        context: &'a Context,
        database: u64,
        groups: &'a [Group],
        group: usize,
        at: Lsn,
        batch_bytes: usize,
    ) -> Result<Self> {
        let batch_bytes = batch_bytes.next_multiple_of(groups[group].block as usize);
        let buffer = Buffer::new(READ_BYTES.min(batch_bytes))?;
        Ok(Self {
            context,
            database,
            groups,
            group,
            at,
            from: at,
            member: 0,
            buffer,
            batch_bytes,
            filled: false,
        })
    }

    /// Finds the chunk in which reading has to begin. Where none begins at the checkpoint, the position lies inside a chunk,
    /// or it is the end of the log: then the group is read from its first chunk, which also shows that the log reaches the
    /// checkpoint. After a `clean` shutdown the checkpoint is the end, and nothing needs to be shown.
    ///
    /// # Errors
    /// None.
    pub fn find_start(&mut self, clean: bool) -> Result<()> {
        let group = &self.groups[self.group];
        let whole_block = (self.at.0 - group.first.0).is_multiple_of(group.block.into());
        if self.at == group.first || (clean && whole_block) {
            return Ok(());
        }
        let mut begins_here = false;
        if whole_block && self.left() > 0 {
            for member in group.members.iter().filter(|m| m.usable().is_some()) {
                let mut batch = self.batch();
                begins_here |= matches!(self.read_member(member, &mut batch), Found::Chunks | Found::Full(_));
            }
        }
        if !begins_here {
            self.at = group.first;
        }
        Ok(())
    }

    /// An empty one at the current place.
    fn batch(&self) -> Batch {
        Batch { start: self.at, end: self.at, chunks: Vec::new(), bytes: 0 }
    }

    /// What was read.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The next chunks, of as many groups as they lie in; `None` at the end of the log.
    ///
    /// # Errors
    /// [`EngineError::Damaged`]: see above. No memory.
    pub fn next(&mut self) -> Result<Option<Batch>> {
        let mut batch = self.batch();
        // At once, not by and by: each batch may change every page.
        if std::mem::take(&mut self.filled) && self.batch_bytes > self.buffer.len() {
            self.buffer = Buffer::new(self.batch_bytes)?;
        }
        loop {
            match self.read_here(&mut batch)? {
                Found::Chunks => {}
                Found::Full(bytes) if batch.bytes == 0 => self.buffer = Buffer::new(bytes)?,
                Found::Full(_) => {
                    self.filled = true;
                    return Ok(Some(batch));
                }
                Found::Nothing if self.go_on()? => {}
                Found::Nothing if batch.bytes > 0 => return Ok(Some(batch)),
                Found::Nothing => return self.end_here().map(|()| None),
                Found::Unreadable(what) => {
                    return Err(self.damaged(&format!("no member can be read: {what}")));
                }
            }
        }
    }

    /// Reads on from the member that was good last, or from another one.
    fn read_here(&mut self, batch: &mut Batch) -> Result<Found> {
        let members = &self.groups[self.group].members;
        let (mut unreadable, mut nothing) = (Vec::new(), self.left() == 0);
        for turn in 0..members.len() {
            let index = (self.member + turn) % members.len();
            if self.left() == 0 || members[index].usable().is_none() {
                continue;
            }
            match self.read_member(&members[index], batch) {
                Found::Nothing => nothing = true,
                Found::Unreadable(what) => unreadable.push(what),
                found => {
                    (self.member, self.at) = (index, batch.end);
                    return Ok(found);
                }
            }
        }
        Ok(if nothing { Found::Nothing } else { Found::Unreadable(unreadable.join("; ")) })
    }

    /// # Errors
    /// When it is not the end of the log that it looks like.
    fn end_here(&mut self) -> Result<()> {
        self.check_nothing_behind()?;
        if self.at < self.from {
            return Err(self.damaged(&format!("the log ends before the checkpoint at {}", self.from.0)));
        }
        Ok(())
    }

    /// Where it ended; call after [`LogReader::next`] gave `None`.
    pub fn end(&self) -> End {
        End { lsn: self.at, group: self.group }
    }

    /// Bytes of the group from here on.
    fn left(&self) -> u64 {
        let group = &self.groups[self.group];
        group.capacity() - (self.at.0 - group.first.0)
    }

    /// Goes on to the group with the next sequence, if there is one.
    fn go_on(&mut self) -> Result<bool> {
        let sequence = self.groups[self.group].sequence;
        let later = self.groups.iter().map(|g| g.sequence).max().unwrap_or(0);
        if later <= sequence {
            return Ok(false);
        }
        let next = self.groups.iter().position(|g| g.sequence == sequence + 1 && g.first == self.at);
        let Some(next) = next else {
            return Err(self.damaged(&format!(
                "the log goes on to sequence {later}, but the redo of sequence {sequence} breaks off here"
            )));
        };
        (self.group, self.member) = (next, 0);
        Ok(true)
    }

    /// Reads from one member at the current place into what is left of the buffer, and adds the chunks to the batch.
    fn read_member(&mut self, member: &Member, batch: &mut Batch) -> Found {
        let block = self.groups[self.group].block as usize;
        let mut wanted = READ_BYTES;
        loop {
            let room = self.buffer.len() - batch.bytes;
            let length = wanted.min(room).min(self.left() as usize);
            if length < block {
                return Found::Full(wanted);
            }
            let at = batch.bytes;
            if let Some(what) = self.read(member, self.at, at..at + length) {
                return Found::Unreadable(what);
            }
            match self.parse(at..at + length, batch) {
                // Longer than what was read: once more with all of it, if the buffer has room.
                Found::Full(bytes) if bytes <= room => wanted = bytes,
                found => return found,
            }
        }
    }

    /// Reads at `lsn` into a part of the buffer; says what went wrong.
    fn read(&mut self, member: &Member, lsn: Lsn, part: Range<usize>) -> Option<String> {
        let group = &self.groups[self.group];
        let (offset, length) = (group.offset(lsn), part.len());
        let disk = member.usable()?;
        let outcome = {
            let (block, blocks) = (offset / u64::from(group.block), length as u64 / u64::from(group.block));
            let _wait =
                self.context.slot.enter(Event::LogFileSequentialRead, group.number.into(), block, blocks);
            disk.read_at(&mut self.buffer[part], offset)
        };
        outcome.check(&member.path, "pread", offset, length as u32).err().map(|error| error.to_string())
    }

    /// Adds the chunks at the beginning of `part` of the buffer to the batch; they continue it.
    fn parse(&self, part: Range<usize>, batch: &mut Batch) -> Found {
        let group = &self.groups[self.group];
        let (first, left) = (part.start, self.left());
        let mut at = part.start;
        while at < part.end {
            let place = Place { database: self.database, sequence: group.sequence, start: batch.end };
            let rest = &self.buffer[at..part.end];
            let Some(content) = chunk::content(rest, place) else { break };
            let bytes = content.chunk_bytes(group.block);
            if (at - first) as u64 + bytes > left {
                break;
            }
            if bytes > rest.len() as u64 {
                // Cut off by the end of what was read: it comes first next time.
                if at == first {
                    return Found::Full(bytes as usize);
                }
                break;
            }
            if !chunk::is_intact(rest, content) {
                break;
            }
            let records = at + chunk::HEADER_BYTES;
            let start = Lsn(batch.end.0 + chunk::HEADER_BYTES as u64);
            batch.end.0 += bytes;
            if batch.end > self.from {
                batch.chunks.push((start, records..records + content.records as usize));
            }
            at += bytes as usize;
        }
        batch.bytes = at;
        if at == first { Found::Nothing } else { Found::Chunks }
    }

    /// The second of the three: no intact chunk of this turn lies behind the end, in any member.
    fn check_nothing_behind(&mut self) -> Result<()> {
        let group = &self.groups[self.group];
        let block = u64::from(group.block);
        // A chunk that begins this far behind was not in flight together with the one that is missing.
        let far = padded(group.capacity() / 8, group.block).min(self.left());
        for member in group.members.iter() {
            let mut from = block;
            while from < far && member.usable().is_some() {
                let length = READ_BYTES.min(self.buffer.len()).min((self.left() - from) as usize);
                if self.read(member, Lsn(self.at.0 + from), 0..length).is_some() {
                    break;
                }
                if let Some(found) = self.chunk_behind(from, length) {
                    return Err(self.damaged(&format!(
                        "redo is missing here, but there is intact redo behind it, at position {}; the device lost a write that it had acknowledged",
                        found.0
                    )));
                }
                from += length as u64;
            }
        }
        Ok(())
    }

    /// An intact chunk in the buffer, which was read from `from` bytes behind the current place.
    fn chunk_behind(&self, from: u64, length: usize) -> Option<Lsn> {
        let group = &self.groups[self.group];
        (0..length).step_by(group.block as usize).find_map(|at| {
            let start = Lsn(self.at.0 + from + at as u64);
            let place = Place { database: self.database, sequence: group.sequence, start };
            let content = chunk::content(&self.buffer[at..length], place)?;
            chunk::is_intact(&self.buffer[at..length], content).then_some(start)
        })
    }

    fn damaged(&self, what: &str) -> EngineError {
        let group = &self.groups[self.group];
        EngineError::Damaged {
            path: group.members.first().map_or_else(PathBuf::new, |m| m.path.clone()),
            what: format!(
                "redo log sequence {} at position {}: {what}; restore the redo log files, or the whole database from a backup",
                group.sequence, self.at.0
            ),
        }
    }
}
