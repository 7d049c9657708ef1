//! Changes of heap pages: where new pieces go, how they grow, compaction. Pure, as `page`, which has the byte ruler.
//!
//! Whether something fits is asked first ([`plan`], [`fits`], [`fits_new`]); what then is done cannot fail.

use super::page::{
    FORWARD, Head, MIGRATED, MIGRATED_BYTES, ROW_HEADER_BYTES, RowHeader, SLOT_BYTES, SLOTS_AT, STUB_BYTES,
    Slot, slot,
};
use crate::page;
use crate::row;
use crate::transaction::Xid;
use crate::transaction::edit::Edit;

/// Most runs of neighbouring slots that the rows of one insert may take: they are listed in its undo record.
pub(crate) const RUNS_MAX: usize = 8;

/// Whether a transaction goes on. What it left behind may become free when it does not.
pub(crate) type IsActive<'a> = &'a dyn Fn(Xid) -> bool;

/// Makes a page just formatted an empty heap page.
pub(crate) fn init(page: &mut impl Edit) {
    Head::empty(page.bytes().len()).write(page);
}

/// Capacity that a new plain piece gets.
pub(crate) fn capacity_for(piece_bytes: usize) -> usize {
    piece_bytes.max(STUB_BYTES)
}

/// Which rows go into a page, and to which slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How many of the rows.
    pub rows: usize,
    /// Runs of slots, first and count, in row order.
    pub runs: Vec<(u16, u16)>,
    /// Bytes of pieces and new slots.
    bytes: usize,
    /// Slots taken that were free.
    reused: u16,
}

impl Plan {
    /// The slots, in row order.
    pub fn slots(&self) -> impl Iterator<Item = u16> + '_ {
        self.runs.iter().flat_map(|&(first, count)| first..first + count)
    }
}

/// As many rows as fit, with pieces of these capacities, and leave `spare` bytes free for later growth. An empty page takes
/// one row whatever is left.
pub(crate) fn plan(page: &[u8], capacities: impl Iterator<Item = usize>, spare: usize) -> Plan {
    let head = Head::read(page);
    let mut plan = Plan::default();
    let mut reusable =
        (0..head.slots).filter(|&n| slot(page, n).is_none()).take(usize::from(head.free_slots)).peekable();
    let mut fresh = head.slots;
    for capacity in capacities {
        let reused = reusable.peek().is_some();
        let number = *reusable.peek().unwrap_or(&fresh);
        let needed = plan.bytes + capacity + if reused { 0 } else { SLOT_BYTES };
        let keep = if head.is_empty() && plan.rows == 0 { 0 } else { spare };
        if needed + keep > head.free() {
            break;
        }
        let full = plan.runs.len() == RUNS_MAX;
        match plan.runs.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ if full => break,
            _ => plan.runs.push((number, 1)),
        }
        if reused {
            reusable.next();
            plan.reused += 1;
        } else {
            fresh += 1;
        }
        plan.bytes = needed;
        plan.rows += 1;
    }
    plan
}

/// Inserts the rows of a plan: `pieces` one after the other, of these capacities.
pub(crate) fn insert(
    page: &mut impl Edit,
    plan: &Plan,
    pieces: &[u8],
    capacities: &[usize],
    xid: Xid,
    is_active: IsActive<'_>,
) {
    if Head::read(page.bytes()).contiguous() < plan.bytes {
        compact(page, is_active);
    }
    let mut head = Head::read(page.bytes());
    let start = usize::from(head.data_start) - pieces.len();
    page.write(start, pieces);
    let mut at = start;
    let mut row = 0;
    let mut entries = Vec::with_capacity(SLOT_BYTES * plan.rows);
    for &(first, count) in &plan.runs {
        entries.clear();
        for &capacity in &capacities[row..row + usize::from(count)] {
            entries.extend_from_slice(&slot_entry(at, capacity));
            at += capacity;
        }
        page.write(slot_at(first), &entries);
        row += usize::from(count);
        head.slots = head.slots.max(first + count);
    }
    debug_assert_eq!(at, start + pieces.len());
    head.free_slots -= plan.reused;
    head.live += plan.rows as u16;
    head.data_start = start as u16;
    head.touched_by(xid);
    head.write(page);
}

fn slot_at(number: u16) -> usize {
    SLOTS_AT + SLOT_BYTES * usize::from(number)
}

fn slot_entry(at: usize, capacity: usize) -> [u8; SLOT_BYTES] {
    ((at as u32) | ((capacity as u32) << 16)).to_le_bytes()
}

/// Bytes of capacity that a piece cannot do without.
fn needed(page: &[u8], slot: Slot) -> usize {
    let header = slot.header(page);
    let (before, least) = match header {
        _ if header.is(FORWARD) => return STUB_BYTES,
        _ if header.is(MIGRATED) => (MIGRATED_BYTES, 0),
        _ => (ROW_HEADER_BYTES, STUB_BYTES),
    };
    let content = &page[slot.at + before..slot.at + slot.capacity];
    row::content_bytes(content).map_or(slot.capacity, |bytes| (before + bytes).max(least))
}

/// Slack that ended transactions left in the pieces of a page, without that of one slot.
fn reclaimable(page: &[u8], except: Option<u16>, is_active: IsActive<'_>) -> usize {
    (0..super::page::slots(page))
        .filter(|&number| Some(number) != except)
        .filter_map(|number| slot(page, number))
        .filter(|slot| !is_active(slot.header(page).xid))
        .map(|slot| slot.capacity - needed(page, slot))
        .sum()
}

/// Whether a piece of `bytes` can take the place of the one in slot `number`.
pub(crate) fn fits(page: &[u8], number: u16, bytes: usize, is_active: IsActive<'_>) -> bool {
    let head = Head::read(page);
    let capacity = slot(page, number).map_or(0, |slot| slot.capacity);
    let free = head.free() + capacity;
    capacity >= bytes
        || free >= bytes
        || (free + usize::from(head.slack) >= bytes
            && free + reclaimable(page, Some(number), is_active) >= bytes)
}

/// Whether one more piece fits.
pub(crate) fn fits_new(page: &[u8], bytes: usize) -> bool {
    let head = Head::read(page);
    head.free() >= bytes + if head.free_slots > 0 { 0 } else { SLOT_BYTES }
}

/// Adds a piece that is not a row of its own (a migrated content); returns its slot.
pub(crate) fn add(page: &mut impl Edit, piece: &[u8], xid: Xid, is_active: IsActive<'_>) -> u16 {
    let head = Head::read(page.bytes());
    let reused = (0..head.slots).find(|&number| head.free_slots > 0 && slot(page.bytes(), number).is_none());
    let number = reused.unwrap_or(head.slots);
    let room = piece.len() + if reused.is_some() { 0 } else { SLOT_BYTES };
    if head.contiguous() < room {
        compact(page, is_active);
    }
    let mut head = Head::read(page.bytes());
    head.free_slots -= u16::from(reused.is_some());
    head.slots = head.slots.max(number + 1);
    head.touched_by(xid);
    put_lowest(page, head, number, piece);
    number
}

/// Writes a piece below all others.
fn put_lowest(page: &mut impl Edit, mut head: Head, number: u16, piece: &[u8]) {
    let capacity = piece.len();
    let at = usize::from(head.data_start) - capacity;
    assert!(
        at >= SLOTS_AT + SLOT_BYTES * usize::from(head.slots),
        "a piece of {capacity} bytes does not fit: {head:?}"
    );
    page.write(at, piece);
    page.write(slot_at(number), &slot_entry(at, capacity));
    head.data_start = at as u16;
    head.write(page);
}

/// Puts `piece` in the place of the one in slot `number`, where it fits ([`fits`]).
pub(crate) fn replace(page: &mut impl Edit, number: u16, piece: &[u8], xid: Xid, is_active: IsActive<'_>) {
    let old = slot(page.bytes(), number).expect("the slot of a row that is being changed");
    let slack_before = old.capacity - needed(page.bytes(), old);
    let mut head = Head::read(page.bytes());
    head.touched_by(xid);
    head.slack -= slack_before as u16;
    if piece.len() <= old.capacity {
        write_differences(page, old.at, piece);
        head.slack += (old.capacity - needed(page.bytes(), old)) as u16;
        head.write(page);
        return;
    }
    head.garbage += old.capacity as u16;
    head.write(page);
    // Nothing of the old piece is needed any more: its bytes are free before the new ones are placed.
    page.write(slot_at(number), &slot_entry(0, 0));
    if head.contiguous() < piece.len() {
        compact(page, is_active);
    }
    put_lowest(page, Head::read(page.bytes()), number, piece);
}

/// Writes a piece over another: the header, and of the rest what differs, so that redo is short.
fn write_differences(page: &mut impl Edit, at: usize, piece: &[u8]) {
    let new = &piece[ROW_HEADER_BYTES..];
    let old = &page.bytes()[at + ROW_HEADER_BYTES..at + piece.len()];
    let first = row::common_prefix(old, new);
    let end = new.len() - row::common_suffix(old, new);
    page.write(at, &piece[..ROW_HEADER_BYTES]);
    if first < end {
        page.write(at + ROW_HEADER_BYTES + first, &new[first..end]);
    }
}

/// Gives a row another header, and the page other figures.
pub(crate) fn set_header(page: &mut impl Edit, number: u16, header: RowHeader, live: i32) {
    let at = slot(page.bytes(), number).expect("the slot of a row that is being changed").at;
    page.write(at, &header.to_bytes());
    let mut head = Head::read(page.bytes());
    head.live = head.live.checked_add_signed(live as i16).expect("live rows are counted");
    head.touched_by(header.xid);
    head.write(page);
}

/// Takes a piece out; `live`: it was a row and not marked as deleted.
pub(crate) fn remove(page: &mut impl Edit, number: u16, live: bool) {
    let old = slot(page.bytes(), number).expect("a piece that is taken out");
    let mut head = Head::read(page.bytes());
    head.slack -= (old.capacity - needed(page.bytes(), old)) as u16;
    if old.at == usize::from(head.data_start) {
        head.data_start += old.capacity as u16;
    } else {
        head.garbage += old.capacity as u16;
    }
    head.live -= u16::from(live);
    head.free_slots += 1;
    page.write(slot_at(number), &slot_entry(0, 0));
    while head.slots > 0 && entry_is_free(page.bytes(), head.slots - 1) {
        head.slots -= 1;
        head.free_slots -= 1;
    }
    if head.slots == 0 {
        head = Head { newest: head.newest, ..Head::empty(page.bytes().len()) };
    }
    head.write(page);
}

fn entry_is_free(page: &[u8], number: u16) -> bool {
    page::get_u16(page, slot_at(number)) == 0
}

/// A piece on its way up.
struct Move {
    number: u16,
    at: usize,
    keep: usize,
    slack: usize,
}

/// Gathers all free bytes between directory and pieces, slack of ended transactions included.
///
/// Pieces move towards the end of the page, the last one first, so none is overwritten before it has moved. Neighbours
/// that move equally far are one edit.
fn compact(page: &mut impl Edit, is_active: IsActive<'_>) {
    let bytes = page.bytes();
    let mut head = Head::read(bytes);
    let mut moves: Vec<Move> = (0..head.slots)
        .filter_map(|number| slot(bytes, number).map(|slot| (number, slot)))
        .map(|(number, slot)| {
            let needed = needed(bytes, slot);
            let keep = if is_active(slot.header(bytes).xid) { slot.capacity } else { needed };
            Move { number, at: slot.at, keep, slack: keep - needed }
        })
        .collect();
    moves.sort_unstable_by_key(|piece| std::cmp::Reverse(piece.at));
    let directory = slot_at(0)..slot_at(head.slots);
    let mut entries = bytes[directory.clone()].to_vec();
    let mut target = bytes.len();
    let mut run = 0..0;
    let mut distance = 0;
    for piece in &moves {
        target -= piece.keep;
        if piece.at + piece.keep != run.start || target - piece.at != distance {
            move_up(page, run, distance);
            run = piece.at..piece.at + piece.keep;
            distance = target - piece.at;
        }
        run.start = piece.at;
        let entry = slot_at(piece.number) - directory.start;
        entries[entry..entry + SLOT_BYTES].copy_from_slice(&slot_entry(target, piece.keep));
    }
    move_up(page, run, distance);
    page.write(directory.start, &entries);
    head.data_start = target as u16;
    head.garbage = 0;
    head.slack = moves.iter().map(|piece| piece.slack).sum::<usize>() as u16;
    head.write(page);
}

fn move_up(page: &mut impl Edit, run: std::ops::Range<usize>, distance: usize) {
    if distance > 0 && !run.is_empty() {
        let to = run.start + distance;
        page.copy_within(run, to);
    }
}
