//! What a direct transfer must be aligned to, and whether direct transfers work at all.

use super::File;
use crate::buffer::Buffer;
use crate::error::IoError;
use crate::outcome::Outcome;
use rustix::fd::AsRawFd;

/// Requirements on a transfer, bytes, each a power of two; 1 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Of the offset in the file.
    pub offset: u32,
    /// Of the memory address.
    pub memory: u32,
    /// Of the length.
    pub length: u32,
}

impl Alignment {
    /// No requirement: transfers through the page cache.
    pub const NONE: Self = Self { offset: 1, memory: 1, length: 1 };

    /// Whether a transfer of `bytes` at `offset` meets it; memory is not looked at.
    pub const fn fits(&self, offset: u64, bytes: u32) -> bool {
        offset.is_multiple_of(self.offset as u64) && bytes.is_multiple_of(self.length)
    }
}

/// The largest block that a disk is known to have; what is assumed when nothing else can be found out.
const LARGEST: u32 = 4096;

impl File {
    /// What transfers on this file must be aligned to. Sources, in this order: `statx(STATX_DIOALIGN)`; the logical block
    /// of a block device; trial reads of 512 and 4096 bytes; 4096.
    pub fn alignment(&self) -> Alignment {
        if !self.access.direct {
            return Alignment::NONE;
        }
        if let Some(known) = self.statx_alignment() {
            return known;
        }
        let size = self.logical_block().or_else(|| self.smallest_read()).unwrap_or(LARGEST);
        Alignment { offset: size, memory: size, length: size }
    }

    fn statx_alignment(&self) -> Option<Alignment> {
        // SAFETY: statx is plain numbers, for which all zeroes is a value.
        let mut facts: libc::statx = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open, the path is an empty C string, `facts` outlives the call.
        let result = unsafe {
            libc::statx(
                self.as_fd().as_raw_fd(),
                c"".as_ptr(),
                libc::AT_EMPTY_PATH,
                libc::STATX_DIOALIGN,
                &mut facts,
            )
        };
        let (memory, offset) = (facts.stx_dio_mem_align, facts.stx_dio_offset_align);
        if result != 0 || facts.stx_mask & libc::STATX_DIOALIGN == 0 || memory == 0 || offset == 0 {
            return None;
        }
        Some(Alignment { offset, memory, length: offset })
    }

    fn smallest_read(&self) -> Option<u32> {
        let mut buffer = Buffer::new(LARGEST as usize).ok()?;
        [512, LARGEST]
            .into_iter()
            .find(|&bytes| !matches!(self.read_at(&mut buffer[..bytes as usize], 0), Outcome::Errno(_)))
    }

    /// Really transfers one aligned block, and so finds a refusal of `O_DIRECT` that open did not show. A file with data
    /// is read. An empty one that may be written gets one block of zeroes and is then cut back to nothing; an empty one
    /// that may not cannot be tested and passes. A file that was not opened with `direct` passes.
    ///
    /// # Errors
    /// [`IoError::DirectRefusedAtTransfer`], or why the block could not be transferred.
    pub fn probe_direct(&self) -> Result<(), IoError> {
        if !self.access.direct {
            return Ok(());
        }
        let bytes = self.alignment().length.max(LARGEST);
        let mut buffer = Buffer::new(bytes as usize)?;
        let empty = self.size()? == 0;
        let outcome = match (empty, self.access.read, self.access.write) {
            (false, true, _) => self.read_at(&mut buffer, 0),
            (true, _, true) => self.write_and_cut_back(&buffer)?,
            _ => return Ok(()),
        };
        self.judge_probe(outcome)
    }

    pub(super) fn judge_probe(&self, outcome: Outcome) -> Result<(), IoError> {
        match outcome {
            // A file shorter than the block reads short; that it read at all is what was asked.
            Outcome::Full | Outcome::Short(_) => Ok(()),
            Outcome::Errno(errno @ (libc::EINVAL | libc::EOPNOTSUPP)) => {
                Err(IoError::DirectRefusedAtTransfer { path: self.path.clone(), errno })
            }
            Outcome::Errno(errno) => Err(IoError::from_errno(&self.path, "probe", 0, errno)),
        }
    }

    fn write_and_cut_back(&self, block: &[u8]) -> Result<Outcome, IoError> {
        let outcome = self.write_at(block, 0);
        if !self.is_block_device() {
            rustix::fs::ftruncate(&self.fd, 0).map_err(|e| self.error("ftruncate", e))?;
        }
        Ok(outcome)
    }
}
