//! Pages of an undo segment: its header with the transaction table, and the pages with undo records. Pure.
//!
//! ```text
//! undo header   byte 24     32          40      44     48          56        64           192
//!                    slots  free list   taken   free   xid floor   horizon   segments     slots, 32 bytes each
//!                    u16    page u64    u32     u32    u64         u64       page u64 …
//!
//! slot          byte 0        6       8            16         24
//!                    xid u48  state   end number   tail       head
//!                             u8, 0   u64          page u64   page u64
//!
//! undo page     byte 24     26     28         32         40             64
//!                    used   zero   sequence   next       previous       records, see `record`
//!                    u16    u16    u32        page u64   page u64
//! ```
//! * A slot has one transaction at a time, and a chain of undo pages of its own, from *head* (the oldest that is not
//!   purged) to *tail* (where the next record goes). A transaction's records lie one after the other in that chain;
//!   the next transaction of the slot goes on where it ended, so a small one touches no new page.
//! * *state*: 0 never used, 1 active, 2 committed, 3 rolled back. *end number*: transactions in the order of their
//!   ends, over all segments.
//! * *free list*: purged pages, linked by *next*. *taken*: pages that this segment got from its space, header included;
//!   what the segment has beyond that was lost in a crash between getting and noting.
//! * *xid floor*: transaction ids below were given out (also by undo segments that are gone). *horizon*: everything that
//!   ended up to this number is purged.
//! * *segments*: in the tablespace's first undo segment, the header pages of all of them, up to 16; 0 ends the list.
//! * *used*: where the next record goes. *sequence*: position in the chain, so that distances are known.

use super::Xid;
use super::edit::Edit;
use super::record::{self, KIND_AT, RecordHead};
use crate::page::{self, PageId};

/// First record of an undo page.
pub(crate) const RECORDS_AT: usize = 64;
const SEGMENTS_AT: usize = 64;
const SLOTS_AT: usize = 192;
const SLOT_BYTES: usize = 32;
/// Most undo segments of a tablespace.
pub(crate) const SEGMENTS_MAX: usize = (SLOTS_AT - SEGMENTS_AT) / 8;

/// Longest record that an undo page holds.
pub(crate) const fn record_max(page_bytes: usize) -> usize {
    page_bytes - RECORDS_AT
}

/// Slots of a transaction table.
pub(crate) const fn slots_of(page_bytes: usize) -> u16 {
    ((page_bytes - SLOTS_AT) / SLOT_BYTES) as u16
}

/// How a slot's last transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Unused = 0,
    Active = 1,
    Committed = 2,
    RolledBack = 3,
}

/// A slot of the transaction table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotEntry {
    pub xid: Xid,
    pub state: State,
    pub end: u64,
    pub tail: PageId,
    pub head: PageId,
}

/// The header's own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoHeader {
    pub free_list: PageId,
    pub taken: u32,
    pub free: u32,
    pub xid_floor: Xid,
    pub horizon: u64,
}

impl UndoHeader {
    pub fn read(page: &[u8]) -> Self {
        Self {
            free_list: PageId::from_u64(page::get_u64(page, 32)),
            taken: page::get_u32(page, 40),
            free: page::get_u32(page, 44),
            xid_floor: Xid(page::get_u64(page, 48)),
            horizon: page::get_u64(page, 56),
        }
    }

    pub fn write(&self, page: &mut impl Edit) {
        let mut bytes = [0; SEGMENTS_AT - 32];
        bytes[0..8].copy_from_slice(&self.free_list.to_u64().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.taken.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.free.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.xid_floor.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.horizon.to_le_bytes());
        page.write(32, &bytes);
    }

    /// Makes a page just formatted an empty transaction table.
    pub fn init(&self, page: &mut impl Edit) {
        let slots = slots_of(page.bytes().len());
        page.write(24, &slots.to_le_bytes());
        self.write(page);
    }
}

/// The list of the tablespace's undo segments.
pub(crate) fn segments(header: &[u8]) -> Vec<PageId> {
    let all = (0..SEGMENTS_MAX).map(|n| PageId::from_u64(page::get_u64(header, SEGMENTS_AT + 8 * n)));
    all.take_while(|page| page.is_some()).collect()
}

/// Writes that list.
pub(crate) fn set_segments(header: &mut impl Edit, segments: &[PageId]) {
    let bytes: Vec<u8> = segments.iter().flat_map(|page| page.to_u64().to_le_bytes()).collect();
    header.write(SEGMENTS_AT, &bytes);
}

/// Slots of the transaction table in a page.
pub(crate) fn slots(header: &[u8]) -> u16 {
    page::get_u16(header, 24)
}

fn slot_at(slot: u16) -> usize {
    SLOTS_AT + SLOT_BYTES * usize::from(slot)
}

/// Reads a slot; none when its state is no state.
pub(crate) fn slot(header: &[u8], slot: u16) -> Option<SlotEntry> {
    let at = slot_at(slot);
    let word = page::get_u64(header, at);
    let state = match (word >> 48) as u8 {
        0 => State::Unused,
        1 => State::Active,
        2 => State::Committed,
        3 => State::RolledBack,
        _ => return None,
    };
    Some(SlotEntry {
        xid: Xid(word & Xid::MASK),
        state,
        end: page::get_u64(header, at + 8),
        tail: PageId::from_u64(page::get_u64(header, at + 16)),
        head: PageId::from_u64(page::get_u64(header, at + 24)),
    })
}

fn word(xid: Xid, state: State) -> [u8; 8] {
    (xid.0 | ((state as u64) << 48)).to_le_bytes()
}

/// The slot has this transaction now.
pub(crate) fn begin(header: &mut impl Edit, slot: u16, xid: Xid) {
    header.write(slot_at(slot), &word(xid, State::Active));
}

/// The slot's transaction has ended so.
pub(crate) fn end(header: &mut impl Edit, slot: u16, xid: Xid, state: State, number: u64) {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&word(xid, state));
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    header.write(slot_at(slot), &bytes);
}

/// Records go to `tail` from now on.
pub(crate) fn set_tail(header: &mut impl Edit, slot: u16, tail: PageId) {
    header.write(slot_at(slot) + 16, &tail.to_u64().to_le_bytes());
}

/// The slot's pages before `head` are no longer its.
pub(crate) fn set_head(header: &mut impl Edit, slot: u16, head: PageId) {
    header.write(slot_at(slot) + 24, &head.to_u64().to_le_bytes());
}

/// Makes a page just formatted the next one of a chain.
pub(crate) fn init(page: &mut impl Edit, sequence: u32, previous: PageId) {
    let mut bytes = [0; RECORDS_AT - 24];
    bytes[..2].copy_from_slice(&(RECORDS_AT as u16).to_le_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[16..24].copy_from_slice(&previous.to_u64().to_le_bytes());
    page.write(24, &bytes);
}

/// Where the next record goes.
pub(crate) fn used(page: &[u8]) -> usize {
    page::get_u16(page, 24).into()
}

/// Position in its chain.
pub(crate) fn sequence(page: &[u8]) -> u32 {
    page::get_u32(page, 28)
}

/// The next page of the chain, or of the free list.
pub(crate) fn next(page: &[u8]) -> PageId {
    PageId::from_u64(page::get_u64(page, 32))
}

/// See [`next`].
pub(crate) fn set_next(page: &mut impl Edit, next: PageId) {
    page.write(32, &next.to_u64().to_le_bytes());
}

/// The page before in the chain; may be purged meanwhile, when no active transaction has records there.
pub(crate) fn previous(page: &[u8]) -> PageId {
    PageId::from_u64(page::get_u64(page, 40))
}

/// Adds a record at `at`, which is [`used`].
pub(crate) fn append(page: &mut impl Edit, at: usize, record: &[u8]) {
    debug_assert_eq!(at, used(page.bytes()));
    page.write(at, record);
    page.write(24, &((at + record.len()) as u16).to_le_bytes());
}

/// Notes that the change of the record at `at` was taken back.
pub(crate) fn mark_undone(page: &mut impl Edit, at: usize) {
    let kind = record::undone(page.bytes()[at + KIND_AT]);
    page.write(at + KIND_AT, &[kind]);
}

/// The records of a page from `at` on: offset and head. Ends early at bytes that are none.
pub(crate) fn records(page: &[u8], mut at: usize) -> impl Iterator<Item = (usize, RecordHead)> + '_ {
    std::iter::from_fn(move || {
        let head = page.get(at..used(page)).and_then(record::decode_head)?;
        let found = (at, head);
        at += head.length;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::super::edit::Plain;
    use super::super::{Undo, UndoPtr};
    use super::*;
    use crate::page::PageKind;
    use crate::value::RowId;

    fn fresh(kind: PageKind) -> Plain {
        let mut bytes = vec![0; 2048];
        page::format(&mut bytes, PageId { file: 2, block: 9 }, kind, 5);
        Plain(bytes)
    }

    #[test]
    fn a_slot_lives_through_its_states() {
        let mut page = fresh(PageKind::UndoHeader);
        let header = UndoHeader {
            free_list: PageId { file: 2, block: 70 },
            taken: 3,
            free: 1,
            xid_floor: Xid(12),
            horizon: 99,
        };
        header.init(&mut page);
        assert_eq!((UndoHeader::read(&page.0), slots(&page.0)), (header, 58));
        let all: Vec<PageId> = (1..=SEGMENTS_MAX as u32).map(|block| PageId { file: 2, block }).collect();
        assert_eq!(segments(&page.0), []);
        set_segments(&mut page, &all);
        assert_eq!(segments(&page.0), all);
        let last = slots(&page.0) - 1;
        assert_eq!(slot(&page.0, last).unwrap().state, State::Unused);
        begin(&mut page, last, Xid(Xid::MASK));
        let tail = PageId { file: 2, block: 11 };
        set_tail(&mut page, last, tail);
        set_head(&mut page, last, PageId { file: 2, block: 10 });
        end(&mut page, last, Xid(Xid::MASK), State::Committed, 1 << 60);
        let expected = SlotEntry {
            xid: Xid(Xid::MASK),
            state: State::Committed,
            end: 1 << 60,
            tail,
            head: PageId { file: 2, block: 10 },
        };
        assert_eq!(slot(&page.0, last), Some(expected));
        assert_eq!(slot(&page.0, 0).unwrap().state, State::Unused);
        assert_eq!(UndoHeader::read(&page.0), header);
    }

    #[test]
    fn records_are_found_again() {
        let mut page = fresh(PageKind::Undo);
        init(&mut page, 7, PageId { file: 2, block: 8 });
        assert_eq!((sequence(&page.0), previous(&page.0)), (7, PageId { file: 2, block: 8 }));
        assert_eq!((used(&page.0), next(&page.0)), (RECORDS_AT, PageId::NONE));
        let mut record = Vec::new();
        let mut offsets = Vec::new();
        for number in 1..=4u64 {
            let key = vec![b'k'; number as usize * 10];
            let undo = Undo::IndexInsert { object: 1, key: &key, row: RowId::from_i64(77) };
            let head = RecordHead {
                length: 0,
                undone: false,
                xid: Xid(3),
                previous: UndoPtr(0),
                number,
                previous_end: (number == 1).then_some(5),
            };
            record::encode(&mut record, &head, &undo);
            let at = used(&page.0);
            append(&mut page, at, &record);
            offsets.push(at);
        }
        mark_undone(&mut page, offsets[2]);
        let found: Vec<_> =
            records(&page.0, RECORDS_AT).map(|(at, head)| (at, head.number, head.undone)).collect();
        let expected: Vec<_> =
            offsets.iter().zip(1..).map(|(&at, number)| (at, number, number == 3)).collect();
        assert_eq!(found, expected);
    }
}
