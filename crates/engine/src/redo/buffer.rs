//! The log buffer: where records wait for the log writer, and the promise that a record always finds room.
//!
//! There are two halves. Sessions append to the *active* one under one short mutex; the log writer exchanges it for the
//! one that it has written, and writes all that came meanwhile as one chunk. Every change reserves its largest record before
//! it latches a page. With A the bytes of the active half as they will be written (header and padding counted), R the
//! sum of all reservations (each with a header and a block of padding), the state always satisfies
//!
//! 1. A + R ≤ one half, so an append never waits;
//! 2. no group is free for the log to go on to ⇒ A + R ≤ what is left in the current group.
//!
//! Why they hold: a reservation is granted only when both hold with it. An append turns r of R into at most r of A: the record itself,
//! a header when it is the first, and less than one block of padding. Taking the active half moves A from both sides of 2. When
//! the log goes on to the last free group, 2 begins to matter, and holds: 4 × both halves ≤ the smallest group.
//! When a checkpoint frees a group, or a change gives its reservation back, both only become weaker.
//!
//! So the log writer never waits for a checkpoint, and a database writer that must have the log flushed before it
//! writes a page always gets it: otherwise writers, checkpoint and log would wait for each other in a circle.

use super::chunk::{HEADER_BYTES, padded};
use super::group::Groups;
use super::sync::Waiter;
use crate::page::Lsn;
use io::Buffer;
use std::collections::VecDeque;
use std::sync::Arc;

/// How far apart the remembered beginnings of chunks are: 128 KiB of memory for 1 GiB of redo.
const CHUNKS_APART: u64 = 64 << 10;

/// The right to append one record. Lives from before the first latch to the append.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    /// Most bytes of the record.
    pub(super) bytes: u64,
    /// What it counts for: record, chunk header, padding.
    pub(super) charge: u64,
}

/// Why a reservation must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// Promise 1: the log writer must take the active half.
    Buffer,
    /// Promise 2: a checkpoint must free a group.
    Checkpoint,
}

/// What all sessions share, behind one mutex that nobody holds during I/O.
pub(super) struct State {
    /// The half that records are appended to; bytes from 0 on are a chunk in the making.
    pub active: Buffer,
    /// LSN of its first byte.
    pub base: Lsn,
    /// Bytes in it with the chunk header; 0 when it has no record.
    pub used: usize,
    /// Records in it.
    pub count: u32,
    /// R of the promises.
    pub reserved: u64,
    /// Bytes of one half.
    pub half: u64,
    /// Largest log block that a group may have: the most that padding can cost.
    pub block: u32,
    pub groups: Groups,
    /// Where chunks begin, from the checkpoint on, some way apart.
    pub chunks: VecDeque<Lsn>,
    /// Somebody has the log writer's role; see `writer`.
    pub writing: bool,
    /// End of the chunk being written.
    pub writing_end: Lsn,
    /// The log goes on to the next group at the next occasion.
    pub switch_requested: bool,
    /// Switches made, their header blocks durable.
    pub switches: u64,
    /// A header block is being written: the log is between two groups.
    pub switching: bool,
    /// Who waits for records whose chunk was not taken, or was when they came.
    pub waiting: Vec<Arc<Waiter>>,
    /// How many wait for the condition `RedoLog::room`.
    pub room_waiters: u32,
    /// How many of them wait for a checkpoint.
    pub checkpoint_waiters: u32,
}

impl State {
    /// A of the promises.
    fn active_bytes(&self) -> u64 {
        padded(self.used as u64, self.block)
    }

    /// What a record of at most `bytes` counts for.
    pub fn charge(&self, bytes: u64) -> u64 {
        bytes + HEADER_BYTES as u64 + u64::from(self.block)
    }

    /// Whether a reservation of `charge` keeps the promises.
    pub fn shortage(&self, charge: u64) -> Option<Shortage> {
        let wanted = self.active_bytes() + self.reserved + charge;
        if !self.groups.next_is_free() && wanted > self.groups.left() {
            return Some(Shortage::Checkpoint);
        }
        (wanted > self.half).then_some(Shortage::Buffer)
    }

    /// Grants what [`State::shortage`] has nothing against.
    pub fn reserve(&mut self, bytes: u64) -> Reservation {
        let charge = self.charge(bytes);
        self.reserved += charge;
        Reservation { bytes, charge }
    }

    /// Appends a record; returns its end.
    ///
    /// # Panics
    /// When it is longer than what was reserved: the promises would be void.
    pub fn append(&mut self, reservation: Reservation, record: &[u8]) -> Lsn {
        assert!(
            record.len() as u64 <= reservation.bytes,
            "a record of {} bytes, {} reserved",
            record.len(),
            reservation.bytes
        );
        self.reserved -= reservation.charge;
        let start = self.used.max(HEADER_BYTES);
        self.used = start + record.len();
        self.active[start..self.used].copy_from_slice(record);
        self.count += 1;
        self.tail()
    }

    /// Remembers where a chunk begins, unless one is known a little before it. The first of a group always: rounded down to
    /// a chunk of the group before, a checkpoint that has passed the end of that group would not free it.
    pub fn note_chunk(&mut self, start: Lsn) {
        if start == self.groups.current().first
            || self.chunks.back().is_none_or(|last| start.0 - last.0 >= CHUNKS_APART)
        {
            self.chunks.push_back(start);
        }
    }

    /// The last known beginning of a chunk at or before `lsn`, which is at or beyond the checkpoint.
    pub fn chunk_before(&self, lsn: Lsn) -> Lsn {
        if lsn >= self.base {
            return self.base;
        }
        let after = self.chunks.partition_point(|start| *start <= lsn);
        after.checked_sub(1).map_or(self.groups.checkpoint, |index| self.chunks[index])
    }

    /// Forgets chunks that no checkpoint will come back to.
    pub fn note_checkpoint(&mut self, lsn: Lsn) {
        self.groups.note_checkpoint(lsn);
        let after = self.chunks.partition_point(|start| *start <= lsn);
        self.chunks.drain(..after.saturating_sub(1));
    }

    /// End of the last record, or of the last chunk when no record came since.
    pub fn tail(&self) -> Lsn {
        Lsn(self.base.0 + self.used as u64)
    }
}
