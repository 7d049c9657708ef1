//! A disk that acknowledges syncs and does nothing: a volatile cache that ignores flushes.

use super::{CrashDisk, Disk, Promises};
use crate::outcome::Outcome;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Seed;

/// Every sync succeeds at once; at [`LyingDisk::crash`] all that was ever written may be lost, synced or not.
pub struct LyingDisk {
    disk: CrashDisk,
    syncs_acknowledged: AtomicU64,
}

impl LyingDisk {
    /// A disk of `bytes` zeroes.
    pub fn new(bytes: u64, promises: Promises) -> Self {
        Self { disk: CrashDisk::new(bytes, promises), syncs_acknowledged: AtomicU64::new(0) }
    }

    /// The power goes and comes back; see [`CrashDisk::crash`].
    pub fn crash(&self, seed: Seed) {
        self.disk.crash(seed);
    }

    /// Syncs that were answered with success.
    pub fn syncs_acknowledged(&self) -> u64 {
        self.syncs_acknowledged.load(Ordering::Relaxed)
    }
}

impl Disk for LyingDisk {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        self.disk.read_at(buffer, offset)
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        self.disk.write_at(data, offset)
    }
    fn sync(&self) -> Outcome {
        self.syncs_acknowledged.fetch_add(1, Ordering::Relaxed);
        Outcome::Full
    }
}
