//! Heap pages: slots and row pieces. Pure: works on any [`Edit`], knows no latch, no undo, no file.
//!
//! ```text
//! byte 24      26          28         30     32        40          42       44      46
//!      slots   free slots  live rows  zero   newest    data start  garbage  slack   zero
//!      u16     u16         u16        u16    u64       u16         u16      u16     u16
//!
//! byte 48      slot directory, 4 bytes each: at u16 (0: free), capacity u16; grows upwards
//!      …       free
//! data start   row pieces, down from the end of the page
//!
//! row piece    byte 0      1           7          15
//!   plain            flags   xid u48     undo u64   content (see `row`)
//!   forward          flags   xid u48     undo u64   target u64, stamp u32       the content has moved to another page
//!   migrated         flags   xid u48     home u64   stamp u32, content          the content of a forward piece
//! ```
//! * *live rows*: not marked as deleted, counted where their address is (not where the content has moved to).
//! * *newest*: no transaction younger than this ever changed the page. When a view sees all up to it, `live rows` is the
//!   answer to `COUNT(*)`.
//! * *garbage*: bytes of holes between pieces; compaction gathers them.
//! * *slack*: bytes of capacity that pieces do not use. A piece never loses capacity while its last writer goes on, so
//!   rollback always finds room where the row is. Compaction takes what ended transactions left.
//! * *undo* of a row's first version is the number of its undo record within the transaction; flag `FIRST`.
//! * *stamp*: changes with each write of a moved content, so a reader who saw the forward piece knows whether the
//!   content that it then finds is the one that belongs to it.
//!
//! Start with [`Head`], [`look`]; changes are in `layout`.

use crate::page::{self, PageKind};
use crate::transaction::edit::Edit;
use crate::transaction::{ReadView, Sight, Xid};
use crate::value::RowId;

/// First slot.
pub(crate) const SLOTS_AT: usize = 48;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 4;
const HEAD_AT: usize = 24;

/// Bytes of a [`RowHeader`].
pub const ROW_HEADER_BYTES: usize = 15;
/// Least capacity of a piece: a forward piece must fit where the row was.
pub(crate) const STUB_BYTES: usize = ROW_HEADER_BYTES + 12;
/// Bytes before the content of a migrated piece.
pub(crate) const MIGRATED_BYTES: usize = ROW_HEADER_BYTES + 4;
/// What a page, and the undo record of a row, need besides its content.
const OVERHEAD: usize = 128;

// An undo page of 64, a record's head of 31, its fields of 31; and here the directory, a slot, a migrated piece's head.
const _: () = assert!(64 + 31 + 31 <= OVERHEAD && SLOTS_AT + SLOT_BYTES + MIGRATED_BYTES <= OVERHEAD);

/// The row is marked as deleted.
pub(crate) const DELETED: u8 = 1;
/// The row's first version: inserted, no predecessor.
pub(crate) const FIRST: u8 = 2;
/// The content is elsewhere.
pub(crate) const FORWARD: u8 = 4;
/// The content of a row that lives elsewhere.
pub(crate) const MIGRATED: u8 = 8;
/// Flags that belong to a version, not to where it lies.
pub(crate) const OF_VERSION: u8 = DELETED | FIRST;

/// Longest content of a row.
pub(crate) const fn content_max(page_bytes: usize) -> usize {
    page_bytes - OVERHEAD
}

/// Who made a version of a row, and where its predecessor lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowHeader {
    /// Deleted, first version, moved.
    pub flags: u8,
    /// Who made it.
    pub xid: Xid,
    /// An [`crate::transaction::UndoPtr`]; the number of the undo record for a first version; the row's home for a migrated
    /// content.
    pub undo: u64,
}

impl RowHeader {
    /// From the beginning of a piece.
    #[inline]
    pub fn read(piece: &[u8]) -> Self {
        let word = page::get_u64(piece, 0);
        Self { flags: word as u8, xid: Xid((word >> 8) & Xid::MASK), undo: page::get_u64(piece, 7) }
    }

    /// As stored.
    #[inline]
    pub fn to_bytes(self) -> [u8; ROW_HEADER_BYTES] {
        let mut bytes = [0; ROW_HEADER_BYTES];
        bytes[..8].copy_from_slice(&(u64::from(self.flags) | (self.xid.0 << 8)).to_le_bytes());
        bytes[7..].copy_from_slice(&self.undo.to_le_bytes());
        bytes
    }

    pub(crate) fn is(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The page's own figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub slots: u16,
    pub free_slots: u16,
    pub live: u16,
    pub newest: Xid,
    pub data_start: u16,
    pub garbage: u16,
    pub slack: u16,
}

impl Head {
    #[inline]
    pub fn read(page: &[u8]) -> Self {
        Self {
            slots: page::get_u16(page, HEAD_AT),
            free_slots: page::get_u16(page, 26),
            live: page::get_u16(page, 28),
            newest: Xid(page::get_u64(page, 32)),
            data_start: page::get_u16(page, 40),
            garbage: page::get_u16(page, 42),
            slack: page::get_u16(page, 44),
        }
    }

    /// Of a page just formatted.
    pub fn empty(page_bytes: usize) -> Self {
        Self {
            slots: 0,
            free_slots: 0,
            live: 0,
            newest: Xid(0),
            data_start: page_bytes as u16,
            garbage: 0,
            slack: 0,
        }
    }

    /// Writes what differs from the page.
    pub fn write(&self, page: &mut impl Edit) {
        if Self::read(page.bytes()) == *self {
            return;
        }
        let mut bytes = [0; SLOTS_AT - HEAD_AT];
        bytes[0..2].copy_from_slice(&self.slots.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.free_slots.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.live.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.newest.0.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.data_start.to_le_bytes());
        bytes[18..20].copy_from_slice(&self.garbage.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.slack.to_le_bytes());
        page.write(HEAD_AT, &bytes);
    }

    /// Free bytes between directory and pieces.
    pub fn contiguous(&self) -> usize {
        usize::from(self.data_start) - SLOTS_AT - SLOT_BYTES * usize::from(self.slots)
    }

    /// Free bytes that compaction would gather.
    pub fn free(&self) -> usize {
        self.contiguous() + usize::from(self.garbage)
    }

    pub fn is_empty(&self) -> bool {
        self.slots == self.free_slots
    }

    pub fn touched_by(&mut self, xid: Xid) {
        self.newest = self.newest.max(xid);
    }
}

/// Where a piece lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub at: usize,
    pub capacity: usize,
}

/// Whether a page holds rows of `object`.
#[inline]
pub(crate) fn is_heap_of(page: &[u8], object: u32) -> bool {
    page[4] == PageKind::Heap as u8 && page::object(page) == object
}

/// Whether it holds rows of anybody.
pub(crate) fn is_heap(page: &[u8]) -> bool {
    page[4] == PageKind::Heap as u8
}

#[inline]
pub(crate) fn slots(page: &[u8]) -> u16 {
    page::get_u16(page, HEAD_AT)
}

/// The piece of a slot; none when the slot is free or beyond the directory.
#[inline]
pub(crate) fn slot(page: &[u8], slot: u16) -> Option<Slot> {
    if slot >= slots(page) {
        return None;
    }
    let entry = page::get_u32(page, SLOTS_AT + SLOT_BYTES * usize::from(slot));
    let at = (entry & 0xffff) as usize;
    (at != 0).then_some(Slot { at, capacity: (entry >> 16) as usize })
}

impl Slot {
    pub fn header(self, page: &[u8]) -> RowHeader {
        RowHeader::read(&page[self.at..])
    }

    /// Of a plain piece; may have bytes behind its end.
    #[inline]
    pub fn content(self, page: &[u8]) -> &[u8] {
        &page[self.at + ROW_HEADER_BYTES..self.at + self.capacity]
    }

    /// Of a forward piece.
    pub fn forward(self, page: &[u8]) -> Forward {
        let at = self.at + ROW_HEADER_BYTES;
        Forward {
            target: RowId::from_i64(page::get_u64(page, at) as i64),
            stamp: page::get_u32(page, at + 8),
        }
    }
}

/// Where the content of a row has moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forward {
    pub target: RowId,
    pub stamp: u32,
}

impl Forward {
    /// The forward piece of a row.
    pub fn piece(self, header: RowHeader) -> [u8; STUB_BYTES] {
        let header = RowHeader { flags: (header.flags & OF_VERSION) | FORWARD, ..header };
        let mut piece = [0; STUB_BYTES];
        piece[..ROW_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        piece[ROW_HEADER_BYTES..STUB_BYTES - 4].copy_from_slice(&self.target.to_i64().to_le_bytes());
        piece[STUB_BYTES - 4..].copy_from_slice(&self.stamp.to_le_bytes());
        piece
    }

    /// The content in the target's page, if it is still the one that belongs to the forward piece seen at `home`.
    pub fn content(self, page: &[u8], home: RowId) -> Option<&[u8]> {
        let slot = migrated(page, self.target.slot, home)?;
        let stamp = page::get_u32(page, slot.at + ROW_HEADER_BYTES);
        (stamp == self.stamp).then(|| &page[slot.at + MIGRATED_BYTES..slot.at + slot.capacity])
    }
}

/// The migrated piece of the row at `home`, whatever its stamp.
pub(crate) fn migrated(page: &[u8], number: u16, home: RowId) -> Option<Slot> {
    let slot = slot(page, number).filter(|_| is_heap(page))?;
    let header = slot.header(page);
    (header.is(MIGRATED) && header.undo == home.to_i64() as u64).then_some(slot)
}

/// A migrated piece.
pub(crate) fn migrated_piece(home: RowId, stamp: u32, xid: Xid, content: &[u8]) -> Vec<u8> {
    let header = RowHeader { flags: MIGRATED, xid, undo: home.to_i64() as u64 };
    [&header.to_bytes()[..], &stamp.to_le_bytes(), content].concat()
}

/// A plain piece.
pub(crate) fn plain_piece(header: RowHeader, content: &[u8]) -> Vec<u8> {
    let header = RowHeader { flags: header.flags & OF_VERSION, ..header };
    [&header.to_bytes()[..], content].concat()
}

/// What a view sees in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen<'a> {
    /// This content (perhaps with bytes behind its end).
    Row(&'a [u8]),
    /// No row.
    Nothing,
    /// Only undo or another page can tell.
    Elsewhere,
}

/// What `view` sees in a slot.
#[inline]
pub(crate) fn look<'a>(page: &'a [u8], number: u16, view: &ReadView) -> Seen<'a> {
    let Some(slot) = slot(page, number) else { return Seen::Nothing };
    let header = slot.header(page);
    if header.is(MIGRATED) {
        return Seen::Nothing;
    }
    match view.sight(header.xid, header.is(FIRST).then_some(header.undo)) {
        Sight::Seen if header.is(DELETED) => Seen::Nothing,
        Sight::Seen if !header.is(FORWARD) => Seen::Row(slot.content(page)),
        Sight::Unseen if header.is(FIRST) => Seen::Nothing,
        _ => Seen::Elsewhere,
    }
}
