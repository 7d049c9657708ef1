//! I/O per file, as `v$iostat_file` shows it.

use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// From here on a transfer is a large one.
pub const LARGE_BYTES: u64 = 128 << 10;

/// What was transferred, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// A read that its caller waited for.
    ReadSync,
    /// A read that was one of many in flight.
    ReadAsync,
    /// A write.
    Write,
}

#[derive(Default)]
struct Counter {
    requests: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
}

impl Counter {
    fn add(&self, bytes: u64, elapsed: Nanos) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.nanos.fetch_add(elapsed.0, Ordering::Relaxed);
    }

    fn look(&self) -> Sum {
        Sum {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            time: Nanos(self.nanos.load(Ordering::Relaxed)),
        }
    }
}

/// Requests, bytes and time of one kind of transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub requests: u64,
    /// How much.
    pub bytes: u64,
    /// From submit to completion, summed; requests in flight together count each for itself.
    pub time: Nanos,
}

/// What `v$iostat_file` shows of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileIo {
    /// Reads below [`LARGE_BYTES`], single waits included.
    pub small_read: Sum,
    /// Of those, the ones that a session waited for: `SMALL_SYNC_READ_REQS`, `SMALL_SYNC_READ_LATENCY`.
    pub small_sync_read: Sum,
    /// Writes below [`LARGE_BYTES`].
    pub small_write: Sum,
    /// Reads from [`LARGE_BYTES`] on.
    pub large_read: Sum,
    /// Writes from [`LARGE_BYTES`] on.
    pub large_write: Sum,
    /// Transfers that failed.
    pub errors: u64,
}

/// Counters of one file, or of one kind of files. Relaxed: each is exact, all together are not one moment.
#[derive(Default)]
pub struct FileStatistics {
    small_read: Counter,
    small_sync_read: Counter,
    small_write: Counter,
    large_read: Counter,
    large_write: Counter,
    errors: AtomicU64,
}

impl FileStatistics {
    /// Notes a transfer of `bytes` that took `elapsed`.
    pub fn note(&self, transfer: Transfer, bytes: u64, elapsed: Nanos) {
        let large = bytes >= LARGE_BYTES;
        let counter = match (transfer, large) {
            (Transfer::Write, false) => &self.small_write,
            (Transfer::Write, true) => &self.large_write,
            (_, false) => &self.small_read,
            (_, true) => &self.large_read,
        };
        counter.add(bytes, elapsed);
        if transfer == Transfer::ReadSync && !large {
            self.small_sync_read.add(bytes, elapsed);
        }
    }

    /// Notes a transfer that failed.
    pub fn note_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// All reads so far.
    pub fn reads(&self) -> Sum {
        let (small, large) = (self.small_read.look(), self.large_read.look());
        Sum {
            requests: small.requests + large.requests,
            bytes: small.bytes + large.bytes,
            time: small.time + large.time,
        }
    }

    /// The counters now.
    pub fn look(&self) -> FileIo {
        FileIo {
            small_read: self.small_read.look(),
            small_sync_read: self.small_sync_read.look(),
            small_write: self.small_write.look(),
            large_read: self.large_read.look(),
            large_write: self.large_write.look(),
            errors: self.errors.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_told_apart_by_size_and_by_who_waits() {
        let file = FileStatistics::default();
        file.note(Transfer::ReadSync, 8192, Nanos(100));
        file.note(Transfer::ReadAsync, 8192, Nanos(50));
        file.note(Transfer::ReadSync, LARGE_BYTES, Nanos(900));
        file.note(Transfer::Write, LARGE_BYTES - 1, Nanos(7));
        file.note(Transfer::Write, 1 << 20, Nanos(8));
        file.note_error();
        let seen = file.look();
        assert_eq!(seen.small_read, Sum { requests: 2, bytes: 16384, time: Nanos(150) });
        assert_eq!(seen.small_sync_read, Sum { requests: 1, bytes: 8192, time: Nanos(100) });
        assert_eq!(seen.large_read, Sum { requests: 1, bytes: LARGE_BYTES, time: Nanos(900) });
        assert_eq!((seen.small_write.requests, seen.large_write.requests, seen.errors), (1, 1, 1));
    }
}
