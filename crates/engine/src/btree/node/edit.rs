//! Changes of a node. Each is a few edits of a [`Sink`], none of which can fail.

use super::{
    BRANCH_SLOTS_AT, COUNT_AT, FIRST_CHILD_AT, Fence, HEAP_AT, HOLES_AT, LEVEL_AT, SLOT_BYTES, child,
    child_bytes, count, entry, entry_range, gap, heap, holes, level, position, room_for, separator, slots_at,
};
use crate::page::PageId;
use std::ops::Range;

/// Takes edits of one page.
pub(in crate::btree) trait Sink {
    /// The page, edits so far included.
    fn bytes(&self) -> &[u8];
    /// Writes `data` at byte `at`.
    fn write(&mut self, at: usize, data: &[u8]);
    /// `memmove` inside the page.
    fn copy_within(&mut self, from: Range<usize>, to: usize);
}

impl Sink for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn write(&mut self, at: usize, data: &[u8]) {
        self[at..at + data.len()].copy_from_slice(data);
    }
    fn copy_within(&mut self, from: Range<usize>, to: usize) {
        self.as_mut_slice().copy_within(from, to);
    }
}

fn write_head(sink: &mut impl Sink, count: usize, heap: usize, holes: usize) {
    const _: () = assert!(HEAP_AT == COUNT_AT + 2 && HOLES_AT == HEAP_AT + 2);
    // Most edits leave the holes as they are; redo is spared the two bytes.
    let changed = if super::holes(sink.bytes()) == holes { 4 } else { 6 };
    let mut head = [0; 6];
    for (bytes, n) in head.chunks_exact_mut(2).zip([count, heap, holes]) {
        bytes.copy_from_slice(&(n as u16).to_le_bytes());
    }
    sink.write(COUNT_AT, &head[..changed]);
}

/// Makes a node without entries; `first_child` is a branch's only child.
pub(in crate::btree) fn init(sink: &mut impl Sink, level: u8, first_child: Option<PageId>) {
    debug_assert_eq!(level > 0, first_child.is_some());
    let mut head = [0; BRANCH_SLOTS_AT - COUNT_AT];
    let heap = sink.bytes().len() as u16;
    head[HEAP_AT - COUNT_AT..][..2].copy_from_slice(&heap.to_le_bytes());
    head[LEVEL_AT - COUNT_AT] = level;
    if let Some(child) = first_child {
        head[FIRST_CHILD_AT - COUNT_AT..][..6].copy_from_slice(&child_bytes(child));
    }
    sink.write(COUNT_AT, &head[..slots_at(level) - COUNT_AT]);
}

/// Puts an entry at `index`. There must be a gap for it.
pub(in crate::btree) fn insert(sink: &mut impl Sink, index: usize, new: &[u8]) {
    let page = sink.bytes();
    debug_assert!(gap(page) >= room_for(new.len()));
    let (count, holes) = (count(page), holes(page));
    let heap = heap(page) - new.len();
    let slots = slots_at(level(page));
    let slot = slots + SLOT_BYTES * index;
    let slots_end = slots + SLOT_BYTES * count;
    sink.write(heap, new);
    if slot < slots_end {
        sink.copy_within(slot..slots_end, slot + SLOT_BYTES);
    }
    sink.write(slot, &(heap as u16).to_le_bytes());
    write_head(sink, count + 1, heap, holes);
}

/// Puts an entry after all others.
pub(in crate::btree) fn append(sink: &mut impl Sink, new: &[u8]) {
    let count = count(sink.bytes());
    insert(sink, count, new);
}

/// Takes entry `index` out.
pub(in crate::btree) fn remove(sink: &mut impl Sink, index: usize) {
    let page = sink.bytes();
    let (count, page_bytes) = (count(page), page.len());
    let gone = entry_range(page, index);
    let (mut heap, mut holes) = (heap(page), holes(page));
    let slots = slots_at(level(page));
    if count == 1 {
        (heap, holes) = (page_bytes, 0);
    } else if gone.start == heap {
        heap = gone.end;
    } else {
        holes += gone.len();
    }
    let slot = slots + SLOT_BYTES * index;
    let slots_end = slots + SLOT_BYTES * count;
    if slot + SLOT_BYTES < slots_end {
        sink.copy_within(slot + SLOT_BYTES..slots_end, slot);
    }
    write_head(sink, count - 1, heap, holes);
}

/// Takes a child out of a branch that has at least two. Its neighbour to the left inherits its range; of child 0, the one to
/// the right.
pub(in crate::btree) fn remove_child(sink: &mut impl Sink, index: usize) {
    if index == 0 {
        let heir = child(sink.bytes(), 1);
        sink.write(FIRST_CHILD_AT, &child_bytes(heir));
    }
    remove(sink, index.saturating_sub(1));
}

/// Takes all entries from `keep` on out; what they held becomes holes.
pub(in crate::btree) fn truncate(sink: &mut impl Sink, keep: usize) {
    let page = sink.bytes();
    let gone: usize = (keep..count(page)).map(|index| entry_range(page, index).len()).sum();
    let (heap, holes, page_bytes) = (heap(page), holes(page), page.len());
    match keep {
        0 => write_head(sink, 0, page_bytes, 0),
        _ => write_head(sink, keep, heap, holes + gone),
    }
}

/// Moves the entries together, so that all free bytes are one gap.
///
/// Entries move up, highest first, neighbours together: each lands on bytes that nobody needs any more. As redo this costs some
/// bytes for each run of neighbours instead of the entries themselves.
pub(in crate::btree) fn compact(sink: &mut impl Sink) {
    let page = sink.bytes();
    if holes(page) == 0 {
        return;
    }
    let (count, slots) = (count(page), slots_at(level(page)));
    let mut order: Vec<_> = (0..count).map(|index| (entry_range(page, index), index)).collect();
    order.sort_unstable_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut heap = page.len();
    let mut new_slots = vec![0; SLOT_BYTES * count];
    let mut run = heap..heap;
    let mut run_to = heap;
    for (range, index) in order {
        heap -= range.len();
        new_slots[SLOT_BYTES * index..][..SLOT_BYTES].copy_from_slice(&(heap as u16).to_le_bytes());
        if range.end != run.start {
            move_run(sink, run, run_to);
            run = range.end..range.end;
        }
        run.start = range.start;
        run_to = heap;
    }
    move_run(sink, run, run_to);
    sink.write(slots, &new_slots);
    write_head(sink, count, heap, 0);
}

fn move_run(sink: &mut impl Sink, run: Range<usize>, to: usize) {
    if !run.is_empty() && run.start != to {
        sink.copy_within(run, to);
    }
}

/// The right half of a node that is split at `index`, as a page image whose header (bytes 0 to 24) is not set, and the position
/// from which on it takes over. Of a branch, entry `index` itself moves up: its child becomes the first of the right half.
pub(in crate::btree) fn split(page: &[u8], index: usize) -> (Vec<u8>, Fence) {
    let level = level(page);
    let mut right = vec![0; page.len()];
    let (fence, from) = if level == 0 {
        init(&mut right, 0, None);
        (Fence::from(separator(position(page, index - 1), position(page, index))), index)
    } else {
        init(&mut right, level, Some(child(page, index + 1)));
        (Fence::from(position(page, index)), index + 1)
    };
    for index in from..count(page) {
        append(&mut right, entry(page, index));
    }
    (right, fence)
}

/// Writes the node `image` over a formatted page.
pub(in crate::btree) fn copy(image: &[u8], sink: &mut impl Sink) {
    let slots_end = slots_at(level(image)) + SLOT_BYTES * count(image);
    sink.write(COUNT_AT, &image[COUNT_AT..slots_end]);
    let heap = heap(image);
    if heap < image.len() {
        sink.write(heap, &image[heap..]);
    }
}
