//! A disk that fails one chosen call: run the code under test with n = 1, 2, 3 … until nothing fails any more.

use super::Disk;
use crate::outcome::Outcome;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// All of them.
    Any,
    /// Reads.
    Read,
    /// Writes, durable or not.
    Write,
    /// Syncs.
    Sync,
    /// Calls on names, of a [`super::SimStorage`]: create, open, extend, remove, replace, lock …
    Name,
}

/// What happens at the chosen call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The call does nothing and returns this error number.
    Errno(i32),
    /// The transfer stops after so many bytes; one that is no longer is whole. A sync has no bytes and fails with `EIO`.
    Short(u32),
    /// A write is acknowledged and never arrives. Other calls go on as if nothing were.
    Lost,
    /// A write is acknowledged and only its first half arrives. Other calls go on.
    Torn,
    /// A write is acknowledged and arrives so many bytes further on. Other calls go on.
    Misdirected(u64),
}

/// One planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which calls count.
    pub on: Call,
    /// The how manyth fails, from 1.
    pub nth: u64,
    /// Whether all later ones fail too.
    pub for_ever: bool,
    /// How.
    pub trouble: Trouble,
}

/// A disk with one planned failure, in front of another disk.
pub struct FaultyDisk<D> {
    disk: D,
    fault: Fault,
    calls: AtomicU64,
}

impl<D: Disk> FaultyDisk<D> {
    /// `disk`, but for `fault`.
    pub fn new(disk: D, fault: Fault) -> Self {
        Self { disk, fault, calls: AtomicU64::new(0) }
    }

    /// Whether the planned call has come.
    pub fn fired(&self) -> bool {
        self.calls.load(Ordering::Relaxed) >= self.fault.nth
    }

    /// The disk behind.
    pub fn inner(&self) -> &D {
        &self.disk
    }

    fn trouble(&self, call: Call) -> Option<Trouble> {
        if self.fault.on != Call::Any && self.fault.on != call {
            return None;
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let strikes = if self.fault.for_ever { number >= self.fault.nth } else { number == self.fault.nth };
        strikes.then_some(self.fault.trouble)
    }

    fn write(&self, data: &[u8], offset: u64, write: impl Fn(&[u8], u64) -> Outcome) -> Outcome {
        match self.trouble(Call::Write) {
            None => write(data, offset),
            Some(Trouble::Errno(errno)) => Outcome::Errno(errno),
            Some(Trouble::Short(bytes)) => {
                let part = data.len().min(bytes as usize);
                match write(&data[..part], offset) {
                    Outcome::Full => Outcome::from_result(part as i64, data.len() as u32),
                    other => other,
                }
            }
            Some(Trouble::Lost) => Outcome::Full,
            Some(Trouble::Torn) => write(&data[..data.len() / 2], offset),
            Some(Trouble::Misdirected(by)) => write(data, offset + by),
        }
    }
}

impl<D: Disk> Disk for FaultyDisk<D> {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        match self.trouble(Call::Read) {
            None | Some(Trouble::Lost | Trouble::Torn | Trouble::Misdirected(_)) => {
                self.disk.read_at(buffer, offset)
            }
            Some(Trouble::Errno(errno)) => Outcome::Errno(errno),
            Some(Trouble::Short(bytes)) => {
                let part = buffer.len().min(bytes as usize);
                match self.disk.read_at(&mut buffer[..part], offset) {
                    Outcome::Full => Outcome::from_result(part as i64, buffer.len() as u32),
                    other => other,
                }
            }
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        self.write(data, offset, |data, offset| self.disk.write_at(data, offset))
    }

    fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        self.write(data, offset, |data, offset| self.disk.write_at_dsync(data, offset))
    }

    fn sync(&self) -> Outcome {
        match self.trouble(Call::Sync) {
            None | Some(Trouble::Lost | Trouble::Torn | Trouble::Misdirected(_)) => self.disk.sync(),
            Some(Trouble::Errno(errno)) => Outcome::Errno(errno),
            Some(Trouble::Short(_)) => Outcome::Errno(libc::EIO),
        }
    }
}
