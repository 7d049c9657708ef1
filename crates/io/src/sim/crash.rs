//! A disk in memory that loses power on demand.
//!
//! It is a list of writes plus the promises of a device (SQLite's `test6.c` works so): what was synced survives; of what
//! was not, each write may survive, vanish, tear at sector boundaries, and arrive in another order.

use super::Disk;
use crate::outcome::Outcome;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Rng, Seed};

/// What the device promises about writes that were not synced when the power went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// The unit that is written whole or not at all.
    pub sector_bytes: u32,
    /// A write of several sectors arrives whole or not at all.
    pub whole_writes: bool,
    /// Writes arrive in the order they were made: a later one only when all earlier ones did.
    pub in_order: bool,
}

impl Default for Promises {
    /// A plain disk: whole sectors, nothing else.
    fn default() -> Self {
        Self { sector_bytes: 512, whole_writes: false, in_order: false }
    }
}

#[derive(Clone)]
struct Write {
    offset: usize,
    data: Vec<u8>,
}

struct State {
    /// What a reader sees.
    now: Vec<u8>,
    /// What is on the medium.
    durable: Vec<u8>,
    /// Completed and not synced, in order.
    pending: Vec<Write>,
    syncs: u64,
}

impl State {
    fn write(&mut self, data: &[u8], offset: u64) -> Outcome {
        let start = (offset as usize).min(self.now.len());
        let length = data.len().min(self.now.len() - start);
        if length == 0 && !data.is_empty() {
            return Outcome::Errno(libc::ENOSPC);
        }
        self.now[start..start + length].copy_from_slice(&data[..length]);
        self.pending.push(Write { offset: start, data: data[..length].to_vec() });
        Outcome::from_result(length as i64, data.len() as u32)
    }

    /// The last write goes to the medium, and older ones can no longer undo it: where they overlap they carry its bytes
    /// from now on. (Cut in pieces, a write that is promised to arrive whole would meet two fates.)
    fn make_last_durable(&mut self) {
        let Some(last) = self.pending.pop() else { return };
        let end = last.offset + last.data.len();
        self.durable[last.offset..end].copy_from_slice(&last.data);
        for older in &mut self.pending {
            let from = last.offset.max(older.offset);
            let to = end.min(older.offset + older.data.len());
            if from < to {
                older.data[from - older.offset..to - older.offset]
                    .copy_from_slice(&last.data[from - last.offset..to - last.offset]);
            }
        }
    }
}

/// A disk whose unsynced writes are at the mercy of [`CrashDisk::crash`].
pub struct CrashDisk {
    state: Mutex<State>,
    promises: Promises,
}

impl CrashDisk {
    /// A disk of `bytes` zeroes.
    pub fn new(bytes: u64, promises: Promises) -> Self {
        let image = vec![0; bytes as usize];
        let state = State { durable: image.clone(), now: image, pending: Vec::new(), syncs: 0 };
        Self { state: Mutex::new(state), promises }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The power goes and comes back. Chance from `seed` decides what happened to each unsynced write, within the
    /// promises. Afterwards readers see the medium, and nothing is pending.
    pub fn crash(&self, seed: Seed) {
        let mut rng = Rng::new(seed);
        let mut state = self.state();
        let mut pending = std::mem::take(&mut state.pending);
        if self.promises.in_order {
            pending.truncate(rng.below(pending.len() as u64 + 1) as usize);
        } else {
            rng.shuffle(&mut pending);
        }
        let last = pending.len().saturating_sub(1);
        for (index, write) in pending.iter().enumerate() {
            // In order, only the write that the power failed in can be incomplete.
            let intact = self.promises.in_order && index < last;
            self.land(&mut state.durable, write, intact, &mut rng);
        }
        state.now = state.durable.clone();
    }

    /// One write reaches the medium: whole, not at all, or torn.
    fn land(&self, durable: &mut [u8], write: &Write, intact: bool, rng: &mut Rng) {
        let fate = if intact { 0 } else { rng.below(3) };
        let keep_sector = |rng: &mut Rng| match fate {
            0 => true,
            1 => false,
            _ => rng.below(2) == 0,
        };
        if self.promises.whole_writes && fate == 2 {
            return;
        }
        let sector = self.promises.sector_bytes as usize;
        let mut at = 0;
        while at < write.data.len() {
            let to_boundary = sector - (write.offset + at) % sector;
            let length = to_boundary.min(write.data.len() - at);
            if keep_sector(rng) {
                let start = write.offset + at;
                durable[start..start + length].copy_from_slice(&write.data[at..at + length]);
            }
            at += length;
        }
    }

    /// Writes completed and not synced.
    pub fn pending(&self) -> usize {
        self.state().pending.len()
    }

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }
}

impl Disk for CrashDisk {
    fn bytes(&self) -> u64 {
        self.state().now.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        let state = self.state();
        let start = (offset as usize).min(state.now.len());
        let length = buffer.len().min(state.now.len() - start);
        buffer[..length].copy_from_slice(&state.now[start..start + length]);
        Outcome::from_result(length as i64, buffer.len() as u32)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        self.state().write(data, offset)
    }

    fn sync(&self) -> Outcome {
        let mut state = self.state();
        let State { durable, pending, syncs, .. } = &mut *state;
        for write in pending.drain(..) {
            durable[write.offset..write.offset + write.data.len()].copy_from_slice(&write.data);
        }
        *syncs += 1;
        Outcome::Full
    }

    /// Only this write becomes durable; others stay at risk, as with `RWF_DSYNC` on a device with FUA.
    fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        let mut state = self.state();
        let outcome = state.write(data, offset);
        if outcome.is_full() {
            state.make_last_durable();
        }
        outcome
    }
}
