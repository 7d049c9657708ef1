//! What is counted of one kind of call, by one thread, on one class of files.

use host::trace::Call;
use stats::histogram::Histogram;
use std::collections::BTreeMap;

/// Different sizes that are kept apart; more fall into the nearest power of two.
const SIZES_MAX: usize = 128;

/// How something is asked of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    /// A system call by itself.
    Call(Call),
    /// Requests handed over by `io_submit`.
    Aio(Direction),
    /// Requests handed over through io_uring, by `IORING_OP_…`.
    Ring(u8),
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Read,
    Write,
    /// What makes writes durable.
    Sync,
    /// Opening, closing, growing.
    Other,
}

impl Direction {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Other => "other",
        }
    }
}

impl Act {
    pub(super) const fn direction(self) -> Direction {
        use Call as C;
        match self {
            Self::Aio(direction) => direction,
            Self::Call(C::Read | C::Readv | C::Pread64 | C::Preadv | C::Preadv2) => Direction::Read,
            Self::Call(C::Write | C::Writev | C::Pwrite64 | C::Pwritev | C::Pwritev2) => Direction::Write,
            Self::Call(C::Fsync | C::Fdatasync) => Direction::Sync,
            Self::Call(_) => Direction::Other,
            Self::Ring(opcode) => match opcode {
                1 | 4 | 22 => Direction::Read,
                2 | 5 | 23 => Direction::Write,
                3 => Direction::Sync,
                _ => Direction::Other,
            },
        }
    }

    /// `pread64`, `io_submit read`, `io_uring write` ….
    pub(super) fn name(self) -> String {
        match self {
            Self::Call(call) => call.name().to_owned(),
            Self::Aio(direction) => format!("io_submit {}", direction.name()),
            // linux/io_uring.h
            Self::Ring(opcode) => match opcode {
                0 => "io_uring nop".into(),
                1 => "io_uring readv".into(),
                2 => "io_uring writev".into(),
                3 => "io_uring fsync".into(),
                4 | 22 => "io_uring read".into(),
                5 | 23 => "io_uring write".into(),
                8 => "io_uring sync_range".into(),
                other => format!("io_uring op {other}"),
            },
        }
    }
}

/// Counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// System calls; for io_uring and libaio those that handed requests over.
    pub(super) calls: u64,
    /// Requests; for plain calls the same.
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) bytes: u64,
    /// Of each request.
    pub(super) sizes: Sizes,
    /// Requests handed over in one call.
    pub(super) batches: Sizes,
    /// From the call, or from the submission of a request, to its end.
    pub(super) latency: Histogram,
    /// Inside calls that hand over.
    pub(super) submit_ns: u64,
    /// From the beginning of such a call to the last completion of what it handed over.
    pub(super) span_ns: u64,
    /// Done when the call that handed it over went on.
    pub(super) done_at_return: u64,
    /// Handed to a worker of the kernel.
    pub(super) to_workers: u64,
}

impl Figures {
    pub(super) fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.requests += other.requests;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.sizes.merge(&other.sizes);
        self.batches.merge(&other.batches);
        self.latency.merge(&other.latency);
        self.submit_ns += other.submit_ns;
        self.span_ns += other.span_ns;
        self.done_at_return += other.done_at_return;
        self.to_workers += other.to_workers;
    }

    /// The end of a request or a call: bytes, or a negative errno.
    pub(super) fn end(&mut self, result: i64, direction: Direction) {
        if result < 0 {
            self.errors += 1;
        } else if matches!(direction, Direction::Read | Direction::Write) {
            self.bytes += result as u64;
            self.sizes.add(result as u64, 1);
        }
    }
}

/// How often each size was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes(BTreeMap<u64, u64>);

impl Sizes {
    pub(super) fn add(&mut self, size: u64, times: u64) {
        let full = self.0.len() >= SIZES_MAX && !self.0.contains_key(&size);
        *self.0.entry(if full { size.next_power_of_two() } else { size }).or_default() += times;
    }

    fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(size, times)| self.add(*size, *times));
    }

    pub(super) fn min(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }

    pub(super) fn max(&self) -> Option<u64> {
        self.0.keys().next_back().copied()
    }

    /// The middle one.
    pub(super) fn median(&self) -> Option<u64> {
        let half = self.0.values().sum::<u64>().div_ceil(2);
        let mut seen = 0;
        self.0.iter().find_map(|(size, times)| {
            seen += times;
            (seen >= half).then_some(*size)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_their_middle() {
        let mut sizes = Sizes::default();
        assert_eq!((sizes.min(), sizes.median(), sizes.max()), (None, None, None));
        sizes.add(512, 3);
        sizes.add(4096, 4);
        assert_eq!((sizes.min(), sizes.median(), sizes.max()), (Some(512), Some(4096), Some(4096)));
        (0..1000).for_each(|n| sizes.add(10_000 + n, 1));
        assert!(sizes.0.len() <= SIZES_MAX + 20);
    }
}
