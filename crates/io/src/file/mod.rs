//! One open file or block device: opened as a database opens it, one system call per transfer.
//!
//! Here: opening, transfers, syncs, and the poison that a failed sync leaves. Facts read back from the kernel are in
//! [`alignment`], [`extents`] and [`residency`]; opening is in [`open`].

mod alignment;
mod extents;
mod flags;
mod open;
mod residency;

pub use alignment::Alignment;
pub use extents::Extents;
pub use flags::FlagsInForce;
pub(crate) use open::is_at;
pub use residency::Residency;

use crate::error::IoError;
use crate::mode::Access;
use crate::outcome::Outcome;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::{IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};

/// Block sizes of a block device, in bytes.
#[derive(Clone, Copy, Debug)]
struct BlockSizes {
    logical: u32,
    physical: u32,
}

/// An open regular file or block device. Shared between threads and queues as `Arc<File>`; transfers name their own
/// offset, so there is no position to fight over.
///
/// After a failed sync the file is *poisoned*: the kernel may have dropped the pages that it could not write and marked
/// them clean, so a second sync would succeed and lie. Every later transfer ends as `Errno(EIO)`, every later call
/// that returns a [`Result`] as [`IoError::Poisoned`].
pub struct File {
    fd: OwnedFd,
    path: PathBuf,
    access: Access,
    block: Option<BlockSizes>,
    poison: AtomicI32,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("path", &self.path).field("access", &self.access).finish_non_exhaustive()
    }
}

impl File {
    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was opened for; [`File::flags_in_force`] says what the kernel made of it.
    pub fn access(&self) -> Access {
        self.access
    }

    /// The descriptor, for calls that this crate does not make.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether this is a block device rather than a regular file.
    pub fn is_block_device(&self) -> bool {
        self.block.is_some()
    }

    /// Logical block size of a block device, bytes; `None` for a file.
    pub fn logical_block(&self) -> Option<u32> {
        self.block.map(|b| b.logical)
    }

    /// Physical block size of a block device, bytes; `None` for a file.
    pub fn physical_block(&self) -> Option<u32> {
        self.block.map(|b| b.physical)
    }

    /// Size now, bytes; for a block device its capacity.
    ///
    /// # Errors
    /// What `fstat` or `lseek` returned.
    pub fn size(&self) -> Result<u64, IoError> {
        if self.is_block_device() {
            return rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::End(0))
                .map_err(|e| self.error("lseek", e));
        }
        rustix::fs::fstat(&self.fd).map(|stat| stat.st_size as u64).map_err(|e| self.error("fstat", e))
    }

    /// One `pread` into `buffer` from byte `offset`.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        let wanted = length(buffer.len());
        self.transfer(wanted, || rustix::io::pread(&self.fd, &mut *buffer, offset))
    }

    /// One `pwrite` of `data` at byte `offset`. On a file opened with `dsync`, a failure poisons it.
    pub fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        let outcome = self.transfer(length(data.len()), || rustix::io::pwrite(&self.fd, data, offset));
        self.judge_write(outcome, self.access.dsync)
    }

    /// One `pwritev2` with `RWF_DSYNC`: durable when it returns, whatever the open flags. A failure poisons the file.
    pub fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        let outcome = self.transfer(length(data.len()), || {
            rustix::io::pwritev2(&self.fd, &[IoSlice::new(data)], offset, ReadWriteFlags::DSYNC)
        });
        self.judge_write(outcome, true)
    }

    /// One `preadv` that scatters consecutive bytes from `offset` on into `pieces`, in order.
    pub fn read_vectored_at(&self, pieces: &mut [&mut [u8]], offset: u64) -> Outcome {
        let wanted = length(pieces.iter().map(|piece| piece.len()).sum());
        let mut slices: Vec<IoSliceMut<'_>> = pieces.iter_mut().map(|piece| IoSliceMut::new(piece)).collect();
        self.transfer(wanted, || rustix::io::preadv(&self.fd, &mut slices, offset))
    }

    /// Waits until all data written so far is durable, with the metadata needed to read it.
    ///
    /// # Errors
    /// [`IoError::Medium`], [`IoError::NoSpace`], …: the file is poisoned from then on. [`IoError::Poisoned`] when it
    /// was before.
    pub fn fdatasync(&self) -> Result<(), IoError> {
        self.check_poison()?;
        loop {
            match rustix::fs::fdatasync(&self.fd) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    self.note_failed_sync(errno.raw_os_error());
                    return Err(self.error("fdatasync", errno));
                }
            }
        }
    }

    /// Turns an outcome into a result: `Full` is `Ok`, everything else an error with path, call and offset.
    ///
    /// # Errors
    /// [`IoError::Poisoned`], [`IoError::ShortTransfer`], [`IoError::Misaligned`], or what fits the error number.
    pub fn check(
        &self,
        call: &'static str,
        offset: u64,
        wanted: u32,
        outcome: Outcome,
    ) -> Result<(), IoError> {
        match outcome {
            Outcome::Full => Ok(()),
            Outcome::Short(done) => {
                Err(IoError::ShortTransfer { path: self.path.clone(), call, offset, wanted, done })
            }
            Outcome::Errno(errno) => {
                self.check_poison()?;
                Err(self.transfer_error(call, offset, wanted, errno))
            }
        }
    }

    /// # Errors
    /// [`IoError::Poisoned`] after a failed sync.
    pub fn check_poison(&self) -> Result<(), IoError> {
        match self.poison.load(Ordering::Acquire) {
            0 => Ok(()),
            errno => Err(IoError::Poisoned { path: self.path.clone(), errno }),
        }
    }

    pub(crate) fn poisoned(&self) -> bool {
        self.poison.load(Ordering::Relaxed) != 0
    }

    /// Called by whoever saw a sync or a durable write fail. The first error stays.
    pub(crate) fn note_failed_sync(&self, errno: i32) {
        let _ = self.poison.compare_exchange(0, errno, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// A write that should have been durable and failed leaves the medium unknown. Refusals that the kernel makes
    /// before it touches anything (alignment, permission, space) do not.
    pub(crate) fn judge_write(&self, outcome: Outcome, durable: bool) -> Outcome {
        if durable
            && let Outcome::Errno(errno) = outcome
            && !refused_beforehand(errno)
        {
            self.note_failed_sync(errno);
        }
        outcome
    }

    /// A sync that was carried out and failed leaves the medium unknown, whatever the error: with delayed allocation, even
    /// no space means pages dropped. Only what kept it from starting does not.
    pub(crate) fn judge_sync(&self, outcome: Outcome) -> Outcome {
        if let Outcome::Errno(errno) = outcome
            && !matches!(
                errno,
                libc::EINVAL | libc::EBADF | libc::EOPNOTSUPP | libc::ECANCELED | libc::EAGAIN | libc::EINTR
            )
        {
            self.note_failed_sync(errno);
        }
        outcome
    }

    fn transfer(&self, wanted: u32, mut call: impl FnMut() -> rustix::io::Result<usize>) -> Outcome {
        if self.poisoned() {
            return Outcome::Errno(libc::EIO);
        }
        loop {
            match call() {
                Ok(done) => return Outcome::from_result(done as i64, wanted),
                Err(Errno::INTR) => {}
                Err(errno) => return Outcome::Errno(errno.raw_os_error()),
            }
        }
    }

    fn transfer_error(&self, call: &'static str, offset: u64, bytes: u32, errno: i32) -> IoError {
        if errno == libc::EINVAL && self.access.direct {
            let needed = self.alignment();
            if !needed.fits(offset, bytes) {
                return IoError::Misaligned { path: self.path.clone(), offset, bytes, needed };
            }
        }
        IoError::from_errno(&self.path, call, offset, errno)
    }

    fn error(&self, call: &'static str, errno: Errno) -> IoError {
        IoError::from_errno(&self.path, call, 0, errno.raw_os_error())
    }
}

/// Whether the kernel says this before it touches anything, so that a durable write that ends so has changed nothing and
/// does not poison its file.
pub const fn refused_beforehand(errno: i32) -> bool {
    matches!(
        errno,
        libc::EINVAL
            | libc::EBADF
            | libc::EPERM
            | libc::EACCES
            | libc::EFAULT
            | libc::EAGAIN
            | libc::EOPNOTSUPP
            | libc::ENOSPC
            | libc::EDQUOT
            | libc::EFBIG
            | libc::ECANCELED
    )
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("one transfer is below 4 GiB")
}

#[cfg(test)]
mod tests;
