//! A handle to a file of a simulated storage: what the kernel would do, but for the device behind.

use super::super::{Call, Disk, Trouble};
use super::state::Write;
use super::{CallInfo, Shared};
use crate::file::refused_beforehand;
use crate::mode::Access;
use crate::outcome::Outcome;
use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// What direct transfers must be aligned to: offset, length and memory.
const DIRECT_ALIGNMENT: u64 = 512;

pub(crate) struct SimDisk {
    pub(super) shared: Arc<Shared>,
    pub(super) file: usize,
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) epoch: u64,
    pub(super) poison: AtomicI32,
}

impl SimDisk {
    /// Counts the call, lets the observer look, and says what trouble it meets. A write is on its way meanwhile: a crash
    /// now may lose it, tear it, or let it arrive. `Err` is how the call ends without reaching the file.
    fn begin(
        &self,
        call: Call,
        offset: u64,
        bytes: usize,
        write: Option<&[u8]>,
    ) -> Result<Option<Trouble>, Outcome> {
        if self.poison.load(Ordering::Acquire) != 0 {
            return Err(Outcome::Errno(libc::EIO));
        }
        let (number, trouble, flight) = {
            let mut state = self.shared.state();
            if state.epoch != self.epoch {
                return Err(Outcome::Errno(libc::EIO));
            }
            let trouble = state.begin_call(call, &self.path);
            let flight = write.filter(|_| trouble.is_none_or(reaches_medium)).map(|data| {
                let number = state.next_flight;
                state.next_flight += 1;
                state
                    .in_flight
                    .insert(number, Write { file: self.file, offset, data: data.to_vec(), failed: false });
                number
            });
            (state.calls, trouble, flight)
        };
        self.shared.observe(&CallInfo { number, call, path: &self.path, offset, bytes: bytes as u64 });
        let mut state = self.shared.state();
        if let Some(flight) = flight {
            state.in_flight.remove(&flight);
        }
        // The observer may have cut the power: this call never came back then.
        if state.epoch == self.epoch { Ok(trouble) } else { Err(Outcome::Errno(libc::EIO)) }
    }

    fn write(&self, data: &[u8], offset: u64, durable: bool) -> Outcome {
        if let Some(errno) = self.refusal(data.as_ptr(), data.len(), offset, self.access.write) {
            return Outcome::Errno(errno);
        }
        let outcome = match self.begin(Call::Write, offset, data.len(), Some(data)) {
            Err(outcome) => return outcome,
            Ok(None) => self.store(data, offset, durable, data.len()),
            Ok(Some(Trouble::Short(bytes))) => {
                self.store(&data[..data.len().min(bytes as usize)], offset, durable, data.len())
            }
            Ok(Some(Trouble::Lost)) => Outcome::Full,
            Ok(Some(Trouble::Torn)) => {
                let half = data.len() / 2;
                self.store(&data[..half], offset, durable, half)
            }
            Ok(Some(Trouble::Misdirected(by))) => self.store(data, offset + by, durable, data.len()),
            Ok(Some(Trouble::Errno(errno))) => {
                if reaches_medium(Trouble::Errno(errno)) {
                    // Nobody knows what the medium has of it.
                    let data = data.to_vec();
                    self.shared.state().pending.push(Write { file: self.file, offset, data, failed: true });
                }
                Outcome::Errno(errno)
            }
        };
        if let Outcome::Errno(errno) = outcome
            && durable
            && !refused_beforehand(errno)
        {
            self.poison.store(errno, Ordering::Release);
        }
        outcome
    }

    fn store(&self, data: &[u8], offset: u64, durable: bool, wanted: usize) -> Outcome {
        let mut state = self.shared.state();
        let room = state.files[self.file].now.bytes().saturating_sub(offset) as usize;
        let length = data.len().min(room);
        if length == 0 && !data.is_empty() {
            return Outcome::Errno(libc::ENOSPC);
        }
        let data = data[..length].to_vec();
        state.complete(Write { file: self.file, offset, data, failed: false }, durable);
        Outcome::from_result(length as i64, wanted as u32)
    }

    /// What the kernel says before it does anything.
    fn refusal(&self, memory: *const u8, length: usize, offset: u64, allowed: bool) -> Option<i32> {
        if !allowed {
            return Some(libc::EBADF);
        }
        let aligned = (memory as u64 | length as u64 | offset).is_multiple_of(DIRECT_ALIGNMENT);
        (self.access.direct && !aligned).then_some(libc::EINVAL)
    }

    /// A write that a queue has handed over and not carried out yet; the result is for [`SimDisk::retract`].
    pub(crate) fn announce(&self, data: &[u8], offset: u64) -> u64 {
        let mut state = self.shared.state();
        let number = state.next_flight;
        state.next_flight += 1;
        if state.epoch == self.epoch && self.poison.load(Ordering::Acquire) == 0 {
            let data = data.to_vec();
            state.in_flight.insert(number, Write { file: self.file, offset, data, failed: false });
        }
        number
    }

    pub(crate) fn retract(&self, number: u64) {
        self.shared.state().in_flight.remove(&number);
    }
}

/// Whether bytes of a failed write may be on the medium nevertheless.
fn reaches_medium(trouble: Trouble) -> bool {
    match trouble {
        Trouble::Errno(errno) => !refused_beforehand(errno),
        Trouble::Lost | Trouble::Misdirected(_) => false,
        Trouble::Short(_) | Trouble::Torn => true,
    }
}

impl Disk for SimDisk {
    fn bytes(&self) -> u64 {
        self.shared.state().files[self.file].now.bytes()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        self.read_vectored_at(&mut [buffer], offset)
    }

    /// One call, whatever the number of pieces; each of them has to be aligned.
    fn read_vectored_at(&self, pieces: &mut [&mut [u8]], offset: u64) -> Outcome {
        let refusals = pieces.iter().map(|p| self.refusal(p.as_ptr(), p.len(), offset, self.access.read));
        if let Some(errno) = refusals.flatten().next() {
            return Outcome::Errno(errno);
        }
        let wanted = pieces.iter().map(|piece| piece.len()).sum();
        let part = match self.begin(Call::Read, offset, wanted, None) {
            Err(outcome) => return outcome,
            Ok(None | Some(Trouble::Lost | Trouble::Torn | Trouble::Misdirected(_))) => wanted,
            Ok(Some(Trouble::Short(bytes))) => wanted.min(bytes as usize),
            Ok(Some(Trouble::Errno(errno))) => return Outcome::Errno(errno),
        };
        let state = self.shared.state();
        let mut done = 0;
        for piece in pieces {
            let length = piece.len().min(part - done);
            let read = state.files[self.file].now.read(&mut piece[..length], offset + done as u64);
            done += read;
            if read < length {
                break;
            }
        }
        Outcome::from_result(done as i64, wanted as u32)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        self.write(data, offset, self.access.dsync)
    }

    fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        self.write(data, offset, true)
    }

    fn sync(&self) -> Outcome {
        match self.begin(Call::Sync, 0, 0, None) {
            Err(outcome) => outcome,
            Ok(None | Some(Trouble::Lost | Trouble::Torn | Trouble::Misdirected(_))) => {
                self.shared.state().sync(self.file);
                Outcome::Full
            }
            Ok(Some(trouble)) => {
                let errno = if let Trouble::Errno(errno) = trouble { errno } else { libc::EIO };
                self.poison.store(errno, Ordering::Release);
                Outcome::Errno(errno)
            }
        }
    }

    fn as_any(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self)
    }
}
