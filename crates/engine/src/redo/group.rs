//! Log groups: their members, their states, and which one comes next.
//!
//! ```text
//! UNUSED ──┐
//!          ├─> CURRENT ──> ACTIVE ──> INACTIVE ──> CURRENT …
//! UNUSED -> CURRENT    [Groups::advance]  the log came to it
//! CURRENT -> ACTIVE    [Groups::advance]  the log went on; crash recovery still needs it
//! ACTIVE -> INACTIVE   [Groups::note_checkpoint]  all its changes are in the data files, and the control file says so
//! ```
//! The state is no field: it follows from sequence, end and checkpoint, so nothing can disagree with it.

use super::chunk::padded;
use crate::files::control::{FileState, GroupRecord, MemberRecord};
use crate::files::iostat::FileStatistics;
use crate::page::Lsn;
use io::sim::Disk;
use std::path::PathBuf;
use std::sync::Arc;

/// `STATUS` of `v$log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupStatus {
    /// Never written.
    Unused,
    /// Being written.
    Current,
    /// Full, and crash recovery needs it.
    Active,
    /// May be written over.
    Inactive,
}

impl GroupStatus {
    /// As `v$log` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unused => "UNUSED",
            Self::Current => "CURRENT",
            Self::Active => "ACTIVE",
            Self::Inactive => "INACTIVE",
        }
    }
}

/// One file of a group.
#[derive(Clone)]
pub(super) struct Member {
    pub path: PathBuf,
    /// Not there when it could not be opened.
    pub disk: Option<Arc<dyn Disk>>,
    pub state: FileState,
    /// What was written to it since it was opened; shared by all copies of this.
    pub statistics: Arc<FileStatistics>,
}

impl Member {
    /// Nothing was written to it yet.
    pub fn new(path: PathBuf, disk: Option<Arc<dyn Disk>>, state: FileState) -> Self {
        Self { path, disk, state, statistics: Arc::default() }
    }

    /// The disk to read and write.
    pub fn usable(&self) -> Option<&Arc<dyn Disk>> {
        self.disk.as_ref().filter(|_| self.state == FileState::Online)
    }
}

/// One group.
#[derive(Clone)]
pub(super) struct Group {
    pub number: u32,
    /// Size of a member.
    pub bytes: u64,
    pub block: u32,
    /// Shared with the log writer while it writes.
    pub members: Arc<Vec<Member>>,
    /// 0: never used.
    pub sequence: u32,
    pub first: Lsn,
    /// When the log came to it, seconds since 1970.
    pub first_time: u64,
    /// End of its redo; for the current group the greatest LSN.
    pub end: Lsn,
}

impl Group {
    /// Bytes of redo that it holds: whole log blocks behind the header block.
    pub fn capacity(&self) -> u64 {
        (self.bytes - u64::from(self.block)) / u64::from(self.block) * u64::from(self.block)
    }

    /// Where in the file the redo of `lsn` lies.
    pub fn offset(&self, lsn: Lsn) -> u64 {
        u64::from(self.block) + (lsn.0 - self.first.0)
    }

    /// What the control file keeps.
    pub fn record(&self) -> GroupRecord {
        let member = |m: &Member| MemberRecord { state: m.state, path: m.path.clone() };
        GroupRecord {
            number: self.number,
            bytes: self.bytes,
            members: self.members.iter().map(member).collect(),
        }
    }
}

/// All groups, with the place where the log stands.
pub(super) struct Groups {
    pub all: Vec<Group>,
    /// Index of the current one.
    pub current: usize,
    /// Bytes of the current group that chunks have taken.
    pub position: u64,
    /// Everything before it is in the data files, and the control file says so.
    pub checkpoint: Lsn,
    /// The group that the log can go on to without waiting. Kept, because each reservation asks.
    next: Option<usize>,
}

impl Groups {
    /// `current` has redo up to `position`.
    pub fn new(all: Vec<Group>, current: usize, position: u64, checkpoint: Lsn) -> Self {
        let mut groups = Self { all, current, position, checkpoint, next: None };
        groups.find_next();
        groups
    }

    pub fn current(&self) -> &Group {
        &self.all[self.current]
    }

    /// What is left in the current group, bytes.
    pub fn left(&self) -> u64 {
        self.current().capacity() - self.position
    }

    /// # Panics
    /// When there is none.
    pub fn by_number(&self, number: u32) -> &Group {
        self.all.iter().find(|g| g.number == number).expect("a group of the log")
    }

    /// # Panics
    /// When there is none.
    pub fn by_number_mut(&mut self, number: u32) -> &mut Group {
        self.all.iter_mut().find(|g| g.number == number).expect("a group of the log")
    }

    /// Takes a group that is not the current one out of the log.
    pub fn take_out(&mut self, index: usize) -> Group {
        debug_assert!(index != self.current);
        let group = self.all.remove(index);
        self.current -= usize::from(index < self.current);
        self.find_next();
        group
    }

    pub fn put_back(&mut self, group: Group) {
        self.all.push(group);
        self.find_next();
    }

    /// What the control file keeps.
    pub fn records(&self) -> Vec<GroupRecord> {
        self.all.iter().map(Group::record).collect()
    }

    pub fn status(&self, index: usize) -> GroupStatus {
        let group = &self.all[index];
        match () {
            () if index == self.current => GroupStatus::Current,
            () if group.sequence == 0 => GroupStatus::Unused,
            () if group.end > self.checkpoint => GroupStatus::Active,
            () => GroupStatus::Inactive,
        }
    }

    /// Whether the log can go on to another group without waiting for a checkpoint.
    pub fn next_is_free(&self) -> bool {
        self.next.is_some()
    }

    /// How far the checkpoint must come to free a group; `None` when one is free.
    pub fn checkpoint_wanted(&self) -> Option<Lsn> {
        let ends =
            (0..self.all.len()).filter(|&n| self.status(n) == GroupStatus::Active).map(|n| self.all[n].end);
        if self.next_is_free() { None } else { ends.min() }
    }

    /// The least recently used of those that may be written over: UNUSED (sequence 0) first.
    pub fn find_next(&mut self) {
        let free = (0..self.all.len())
            .filter(|&n| matches!(self.status(n), GroupStatus::Unused | GroupStatus::Inactive))
            .filter(|&n| self.all[n].members.iter().any(|m| m.usable().is_some()));
        self.next = free.min_by_key(|&n| (self.all[n].sequence, self.all[n].number));
    }

    /// # Panics
    /// Never backwards: a group could be written over that is needed.
    pub fn note_checkpoint(&mut self, lsn: Lsn) {
        assert!(lsn >= self.checkpoint, "checkpoint went back from {:?} to {lsn:?}", self.checkpoint);
        self.checkpoint = lsn;
        self.find_next();
    }

    /// The log goes on to the next group; its first byte is `at`.
    ///
    /// # Panics
    /// When no group is free: the reservations promise that this does not happen.
    pub fn advance(&mut self, at: Lsn, now: u64) {
        let next = self.next.expect("a reservation let the log run into a group that is still needed");
        let sequence = self.current().sequence + 1;
        self.all[self.current].end = at;
        self.current = next;
        self.position = 0;
        let group = &mut self.all[next];
        (group.sequence, group.first, group.end) = (sequence, at, Lsn(u64::MAX));
        group.first_time = now;
        self.find_next();
    }

    /// A chunk of `content` bytes (header included) begins at `start`: goes on to the next group when it does not fit.
    /// Returns its bytes with padding, and whether the group is a new one.
    pub fn place(&mut self, start: Lsn, content: u64, now: u64) -> (u64, bool) {
        let advance = padded(content, self.current().block) > self.left();
        if advance {
            self.advance(start, now);
        }
        let bytes = padded(content, self.current().block);
        assert!(bytes <= self.left(), "a chunk of {bytes} bytes is larger than what a group holds");
        self.position += bytes;
        (bytes, advance)
    }
}
