//! Disks that crash, lie and fail on purpose, for tests: in memory, seeded, without a clock.
//!
//! [`Disk`] is what code under test talks to: [`crate::File`] is one, and so are [`CrashDisk`], [`LyingDisk`] and
//! [`FaultyDisk`]. [`SimQueue`] drives any of them as a [`crate::Queue`]. [`SimStorage`] is a whole [`crate::Storage`] of such
//! files.

mod crash;
mod faulty;
mod lying;
mod queue;
mod storage;

pub use crash::{CrashDisk, Promises};
pub use faulty::{Call, Fault, FaultyDisk, Trouble};
pub use lying::LyingDisk;
pub use queue::SimQueue;
pub use storage::{CallInfo, Observer, SimStorage};

use crate::file::File;
use crate::outcome::Outcome;
use std::any::Any;
use std::sync::Arc;

/// Storage by plain calls. Shared by reference; each call is one transfer.
pub trait Disk: Send + Sync {
    /// Size, bytes.
    fn bytes(&self) -> u64;
    /// Reads `buffer.len()` bytes at `offset`.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome;
    /// Writes `data` at `offset`; durable only after [`Disk::sync`].
    fn write_at(&self, data: &[u8], offset: u64) -> Outcome;
    /// Makes all completed writes durable.
    fn sync(&self) -> Outcome;

    /// Writes, durable when it returns.
    fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        match self.write_at(data, offset) {
            Outcome::Full => self.sync(),
            other => other,
        }
    }

    /// Reads consecutive bytes into `pieces`, one after the other, as one transfer.
    fn read_vectored_at(&self, pieces: &mut [&mut [u8]], offset: u64) -> Outcome {
        let mut whole = vec![0; pieces.iter().map(|piece| piece.len()).sum()];
        let outcome = self.read_at(&mut whole, offset);
        let mut rest = whole.as_slice();
        for piece in pieces {
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            rest = later;
        }
        outcome
    }

    /// The thing itself, for the storage that made it; none for what is no storage's.
    fn as_any(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }
}

impl Disk for File {
    fn as_any(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self)
    }
    fn bytes(&self) -> u64 {
        self.size().unwrap_or(0)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        Self::read_at(self, buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        Self::write_at(self, data, offset)
    }
    fn sync(&self) -> Outcome {
        match self.fdatasync() {
            Ok(()) => Outcome::Full,
            Err(error) => Outcome::Errno(error.errno().unwrap_or(libc::EIO)),
        }
    }
    fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        Self::write_at_dsync(self, data, offset)
    }
    fn read_vectored_at(&self, pieces: &mut [&mut [u8]], offset: u64) -> Outcome {
        Self::read_vectored_at(self, pieces, offset)
    }
}

impl<D: Disk + ?Sized> Disk for Arc<D> {
    fn as_any(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        D::as_any(Self::clone(&self))
    }
    fn bytes(&self) -> u64 {
        (**self).bytes()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        (**self).read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        (**self).write_at(data, offset)
    }
    fn sync(&self) -> Outcome {
        (**self).sync()
    }
    fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        (**self).write_at_dsync(data, offset)
    }
    fn read_vectored_at(&self, pieces: &mut [&mut [u8]], offset: u64) -> Outcome {
        (**self).read_vectored_at(pieces, offset)
    }
}

#[cfg(test)]
mod tests;
