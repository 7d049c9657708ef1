//! One node of a tree: a slotted page of entries in key order, as functions over its bytes.
//!
//! ```text
//! byte 24      26       28       30      31   32
//!      entries heap     holes    level   0    leaf:   slots → … free … ← entries
//!      u16     u16      u16      u8      u8   branch: first child (file u16, block u32), 2 × 0, from 40 slots → … ← entries
//!
//! slot          u16      where its entry begins; the slots are in key order
//! leaf entry    key bytes u16 │ row u64 │ key
//! branch entry  key bytes u16, bit 15: a row follows │ child file u16, block u32 │ [row u64] │ key
//! ```
//! `heap` is where the lowest entry begins, `holes` how many bytes above it belong to no entry any more. Level 0 is a leaf.
//! Leaf entries are strictly ascending by key, then row. A branch with n entries has n + 1 children: entry i is the smallest
//! position that child i + 1 may hold, so child 0 has what is below entry 0.
//!
//! Changes ([`edit`]) go through a [`Sink`]: a latched page whose edits become redo, or plain bytes.

mod edit;

pub(super) use edit::{Sink, append, compact, copy, init, insert, remove, remove_child, split, truncate};

use crate::page::{PageId, PageKind, get_u16, get_u32, get_u64};
use crate::value::RowId;
use std::cmp::Ordering;

pub(super) const COUNT_AT: usize = 24;
const HEAP_AT: usize = 26;
const HOLES_AT: usize = 28;
const LEVEL_AT: usize = 30;
const FIRST_CHILD_AT: usize = 32;
const LEAF_SLOTS_AT: usize = 32;
const BRANCH_SLOTS_AT: usize = 40;

const SLOT_BYTES: usize = 2;
const LEAF_ENTRY_HEAD: usize = 10;
const BRANCH_ENTRY_HEAD: usize = 8;
const HAS_ROW: u16 = 1 << 15;

/// The longest key that a page of this size takes: four entries of the longest fit any node, so a split always helps.
pub(super) const fn key_bytes_max(page_bytes: usize) -> usize {
    (page_bytes - BRANCH_SLOTS_AT) / 4 - SLOT_BYTES - BRANCH_ENTRY_HEAD - 8
}

const _: () = assert!(key_bytes_max(32 << 10) < HAS_ROW as usize && key_bytes_max(2 << 10) > 400);

/// Where in the order something lies: key, then row. Row 0 is no row and comes before all rows of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position<'a> {
    pub key: &'a [u8],
    pub row: u64,
}

impl<'a> Position<'a> {
    /// Greater than every row.
    pub const LAST_ROW: u64 = u64::MAX;

    pub const fn of(key: &'a [u8], row: RowId) -> Self {
        Self { key, row: row_number(row) }
    }

    /// Before all entries with this key.
    pub const fn before(key: &'a [u8]) -> Self {
        Self { key, row: 0 }
    }

    /// After all entries with this key.
    pub const fn after(key: &'a [u8]) -> Self {
        Self { key, row: Self::LAST_ROW }
    }
}

/// A position that owns its key: the bound of a node, learnt on the way down.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fence {
    pub key: Vec<u8>,
    pub row: u64,
}

impl Fence {
    pub fn position(&self) -> Position<'_> {
        Position { key: &self.key, row: self.row }
    }

    /// Takes a new value, in the memory of the old one.
    pub fn set(this: &mut Option<Self>, position: Position<'_>) {
        let fence = this.get_or_insert_default();
        fence.key.clear();
        fence.key.extend_from_slice(position.key);
        fence.row = position.row;
    }
}

impl From<Position<'_>> for Fence {
    fn from(position: Position<'_>) -> Self {
        Self { key: position.key.to_vec(), row: position.row }
    }
}

pub(super) const fn row_number(row: RowId) -> u64 {
    row.to_i64() as u64
}

pub(super) const fn row_id(number: u64) -> RowId {
    RowId::from_i64(number as i64)
}

pub(super) const fn kind(level: u8) -> PageKind {
    if level == 0 { PageKind::BtreeLeaf } else { PageKind::BtreeBranch }
}

#[inline]
pub(super) fn count(page: &[u8]) -> usize {
    usize::from(get_u16(page, COUNT_AT))
}

#[inline]
pub(super) fn level(page: &[u8]) -> u8 {
    page[LEVEL_AT]
}

fn heap(page: &[u8]) -> usize {
    usize::from(get_u16(page, HEAP_AT))
}

fn holes(page: &[u8]) -> usize {
    usize::from(get_u16(page, HOLES_AT))
}

#[inline]
const fn slots_at(level: u8) -> usize {
    if level == 0 { LEAF_SLOTS_AT } else { BRANCH_SLOTS_AT }
}

/// Bytes for entries and their slots in an empty node.
pub(super) fn capacity(page: &[u8]) -> usize {
    page.len() - slots_at(level(page))
}

/// Free bytes in one piece, between the slots and the entries.
pub(super) fn gap(page: &[u8]) -> usize {
    heap(page) - slots_at(level(page)) - SLOT_BYTES * count(page)
}

/// All free bytes.
pub(super) fn free(page: &[u8]) -> usize {
    gap(page) + holes(page)
}

/// What an entry takes with its slot.
pub(super) const fn room_for(entry_bytes: usize) -> usize {
    entry_bytes + SLOT_BYTES
}

#[inline]
fn offset(page: &[u8], slots: usize, index: usize) -> usize {
    usize::from(get_u16(page, slots + SLOT_BYTES * index))
}

/// What an entry at byte `at` has: where its key begins and ends, and its row.
#[derive(Clone, Copy)]
struct Parts {
    key_at: usize,
    key_end: usize,
    row: u64,
}

impl Parts {
    #[inline]
    fn of_leaf(page: &[u8], at: usize) -> Self {
        let key_at = at + LEAF_ENTRY_HEAD;
        Self { key_at, key_end: key_at + usize::from(get_u16(page, at)), row: get_u64(page, at + 2) }
    }

    #[inline]
    fn of_branch(page: &[u8], at: usize) -> Self {
        let head = get_u16(page, at);
        let (key_at, key_bytes) = (at + BRANCH_ENTRY_HEAD, usize::from(head & !HAS_ROW));
        if head & HAS_ROW == 0 {
            Self { key_at, key_end: key_at + key_bytes, row: 0 }
        } else {
            Self { key_at: key_at + 8, key_end: key_at + 8 + key_bytes, row: get_u64(page, key_at) }
        }
    }

    #[inline]
    fn position(self, page: &[u8]) -> Position<'_> {
        Position { key: &page[self.key_at..self.key_end], row: self.row }
    }

    /// The key's first eight bytes as a number; shorter keys are filled up with zeroes.
    #[inline]
    fn head(self, page: &[u8]) -> u64 {
        let Some(wide) = page[self.key_at..].first_chunk() else { return head(self.position(page).key) };
        let bytes = self.key_end - self.key_at;
        let beyond = if bytes < 8 { u64::MAX >> (8 * bytes) } else { 0 };
        u64::from_be_bytes(*wide) & !beyond
    }
}

/// See [`Parts::head`].
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let bytes = key.len().min(8);
    head[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(head)
}

/// The position of entry `index`, of a leaf or a branch.
#[inline]
pub(super) fn position(page: &[u8], index: usize) -> Position<'_> {
    if level(page) == 0 {
        Parts::of_leaf(page, offset(page, LEAF_SLOTS_AT, index)).position(page)
    } else {
        Parts::of_branch(page, offset(page, BRANCH_SLOTS_AT, index)).position(page)
    }
}

fn entry_range(page: &[u8], index: usize) -> std::ops::Range<usize> {
    let level = level(page);
    let at = offset(page, slots_at(level), index);
    let head = get_u16(page, at);
    let bytes = match (level, head & HAS_ROW) {
        (0, _) => LEAF_ENTRY_HEAD + usize::from(head),
        (_, 0) => BRANCH_ENTRY_HEAD + usize::from(head),
        (..) => BRANCH_ENTRY_HEAD + 8 + usize::from(head & !HAS_ROW),
    };
    at..at + bytes
}

/// The bytes of entry `index`.
pub(super) fn entry(page: &[u8], index: usize) -> &[u8] {
    &page[entry_range(page, index)]
}

fn child_at(page: &[u8], at: usize) -> PageId {
    PageId { file: get_u16(page, at), block: get_u32(page, at + 2) }
}

/// Child `index` of a branch, 0 to `count`.
#[inline]
pub(super) fn child(page: &[u8], index: usize) -> PageId {
    match index {
        0 => child_at(page, FIRST_CHILD_AT),
        _ => child_at(page, offset(page, BRANCH_SLOTS_AT, index - 1) + 2),
    }
}

/// How many entries lie before `target`.
#[inline]
pub(super) fn lower_bound(page: &[u8], target: Position<'_>) -> usize {
    partition(page, target, Ordering::Less)
}

/// How many entries do not lie after `target`: in a branch, the child that has it.
#[inline]
pub(super) fn upper_bound(page: &[u8], target: Position<'_>) -> usize {
    partition(page, target, Ordering::Equal)
}

/// How many entries compare to `target` as `most` or less.
fn partition(page: &[u8], target: Position<'_>, most: Ordering) -> usize {
    if level(page) == 0 {
        search(page, LEAF_SLOTS_AT, target, most, Parts::of_leaf)
    } else {
        search(page, BRANCH_SLOTS_AT, target, most, Parts::of_branch)
    }
}

/// Binary search. Chance decides at each step, so the step itself has no branch for the processor to guess wrong; nor does a
/// comparison, where the first eight bytes differ.
#[inline]
fn search(
    page: &[u8],
    slots: usize,
    target: Position<'_>,
    most: Ordering,
    parts: impl Fn(&[u8], usize) -> Parts,
) -> usize {
    let target_head = head(target.key);
    let (mut base, mut size) = (0, count(page));
    while size > 0 {
        let middle = base + size / 2;
        let here = parts(page, offset(page, slots, middle));
        let order = match here.head(page).cmp(&target_head) {
            Ordering::Equal => here.position(page).cmp(&target),
            unequal => unequal,
        };
        let before = order <= most;
        base = if before { middle + 1 } else { base };
        size = if before { size - size / 2 - 1 } else { size / 2 };
    }
    base
}

/// Bytes of a leaf entry.
pub(super) const fn leaf_entry_bytes(key: &[u8]) -> usize {
    LEAF_ENTRY_HEAD + key.len()
}

/// An entry of a leaf.
pub(super) fn leaf_entry(position: Position<'_>) -> Vec<u8> {
    debug_assert!(position.row != 0 && position.row != Position::LAST_ROW);
    let mut entry = Vec::with_capacity(leaf_entry_bytes(position.key));
    entry.extend_from_slice(&(position.key.len() as u16).to_le_bytes());
    entry.extend_from_slice(&position.row.to_le_bytes());
    entry.extend_from_slice(position.key);
    entry
}

/// Bytes of a branch entry.
pub(super) const fn branch_entry_bytes(position: Position<'_>) -> usize {
    BRANCH_ENTRY_HEAD + position.key.len() + if position.row == 0 { 0 } else { 8 }
}

/// An entry of a branch: `child` has what is at `position` or after it.
pub(super) fn branch_entry(position: Position<'_>, child: PageId) -> Vec<u8> {
    let mut entry = Vec::with_capacity(branch_entry_bytes(position));
    let row_mark = if position.row == 0 { 0 } else { HAS_ROW };
    entry.extend_from_slice(&(position.key.len() as u16 | row_mark).to_le_bytes());
    entry.extend_from_slice(&child_bytes(child));
    if position.row != 0 {
        entry.extend_from_slice(&position.row.to_le_bytes());
    }
    entry.extend_from_slice(position.key);
    entry
}

fn child_bytes(child: PageId) -> [u8; 6] {
    let mut bytes = [0; 6];
    bytes[..2].copy_from_slice(&child.file.to_le_bytes());
    bytes[2..].copy_from_slice(&child.block.to_le_bytes());
    bytes
}

/// The shortest position that is after `left` and not after `right`: what a branch keeps between two leaves. Only as much of
/// `right` as tells it from `left`, so branches hold many children even when keys are long.
pub(super) fn separator<'a>(left: Position<'_>, right: Position<'a>) -> Position<'a> {
    debug_assert!(left < right);
    if left.key == right.key {
        return right;
    }
    let same = left.key.iter().zip(right.key).take_while(|(a, b)| a == b).count();
    Position { key: &right.key[..=same], row: 0 }
}

/// Where a split pays most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitPoint {
    /// Half of the bytes each.
    Middle,
    /// Nine tenths stay: for what grows at its right end.
    Right,
}

/// Entries from this index on go to the right half; 1 ≤ index < count. Of two places nearly as good, the one between different
/// keys wins: entries of one key stay together and the separator needs no row.
pub(super) fn split_index(page: &[u8], point: SplitPoint) -> usize {
    let count = count(page);
    debug_assert!(count >= 2);
    let used = capacity(page) - free(page);
    let (wanted, tolerance) = match point {
        SplitPoint::Middle => (used / 2, used / 4),
        SplitPoint::Right => (used / 10 * 9, used / 20),
    };
    let mut best = (usize::MAX, 1);
    let mut before = 0;
    for index in 1..count {
        before += room_for(entry_range(page, index - 1).len());
        let together = level(page) == 0 && position(page, index - 1).key == position(page, index).key;
        let badness = before.abs_diff(wanted) + if together { tolerance } else { 0 };
        if badness < best.0 {
            best = (badness, index);
        }
    }
    best.1
}

/// What is wrong inside one node, in words; nothing when it is sound. Bounds and children are the tree's checker's.
pub(super) fn problems(page: &[u8]) -> Vec<String> {
    let (count, heap, slots) = (count(page), heap(page), slots_at(level(page)));
    let slots_end = slots + SLOT_BYTES * count;
    if heap < slots_end || heap > page.len() {
        return vec![format!("entries begin at byte {heap}, slots end at {slots_end}")];
    }
    let mut found = Vec::new();
    let mut ranges = Vec::with_capacity(count);
    for index in 0..count {
        let at = offset(page, slots, index);
        if at < heap || at + BRANCH_ENTRY_HEAD > page.len() || entry_range(page, index).end > page.len() {
            return vec![format!("entry {index} at byte {at} lies outside of {heap}..{}", page.len())];
        }
        ranges.push(entry_range(page, index));
    }
    ranges.sort_by_key(|range| range.start);
    if let Some(pair) = ranges.windows(2).find(|pair| pair[0].end > pair[1].start) {
        found.push(format!("entries at bytes {} and {} overlap", pair[0].start, pair[1].start));
    }
    let entries: usize = ranges.iter().map(ExactSizeIterator::len).sum();
    if page.len() - heap != entries + holes(page) {
        found.push(format!("{entries} bytes of entries and {} of holes from byte {heap} on", holes(page)));
    }
    for index in 1..count {
        if position(page, index - 1) >= position(page, index) {
            found.push(format!("entry {index} is not after entry {}", index - 1));
        }
    }
    found
}

#[cfg(test)]
mod tests;
