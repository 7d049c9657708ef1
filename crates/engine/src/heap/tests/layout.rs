//! Random changes of one heap page beside a model; after each, the page's own figures must be what its pieces say.

use crate::heap::layout::{self, capacity_for, fits, fits_new, plan};
use crate::heap::page::{
    self, DELETED, FIRST, FORWARD, Forward, Head, MIGRATED, MIGRATED_BYTES, ROW_HEADER_BYTES, RowHeader,
    SLOT_BYTES, SLOTS_AT, STUB_BYTES, Seen, migrated_piece, plain_piece,
};
use crate::page::{PageId, PageKind, format};
use crate::row;
use crate::transaction::edit::{Edit, Plain};
use crate::transaction::{ReadView, Xid};
use crate::value::{RowId, Value};
use std::collections::BTreeMap;
use units::{Rng, Seed};

const PAGE: PageId = PageId { file: 4, block: 17 };
const HOME: RowId = RowId { page: PageId { file: 4, block: 3 }, slot: 2 };

fn fresh(bytes: usize) -> Plain {
    let mut page = vec![0; bytes];
    format(&mut page, PAGE, PageKind::Heap, 7);
    let mut page = Plain(page);
    layout::init(&mut page);
    page
}

/// What a slot should hold.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    header: RowHeader,
    /// After header (and forward address, stamp).
    body: Vec<u8>,
}

struct Model {
    page: Plain,
    pieces: BTreeMap<u16, Piece>,
    rng: Rng,
    /// Transactions below this have ended.
    active_from: u64,
    next_xid: u64,
}

fn body_at(header: RowHeader) -> usize {
    if header.is(MIGRATED) { MIGRATED_BYTES } else { ROW_HEADER_BYTES }
}

impl Model {
    fn content(&mut self, longest: u64) -> Vec<u8> {
        let mut content = Vec::new();
        let text = "x".repeat(self.rng.below(longest) as usize);
        row::encode(&[Value::Integer(self.rng.below(1000) as i64), Value::Text(text)], &mut content);
        content
    }

    fn xid(&mut self) -> Xid {
        self.next_xid += self.rng.below(2);
        Xid(self.next_xid)
    }

    fn any(&mut self, wanted: impl Fn(&Piece) -> bool) -> Option<u16> {
        let slots: Vec<u16> = self.pieces.iter().filter(|(_, p)| wanted(p)).map(|(slot, _)| *slot).collect();
        (!slots.is_empty()).then(|| slots[self.rng.below(slots.len() as u64) as usize])
    }

    fn insert(&mut self) {
        let header = RowHeader { flags: FIRST, xid: self.xid(), undo: self.rng.below(9) };
        let rows: Vec<Vec<u8>> = (0..1 + self.rng.below(4)).map(|_| self.content(90)).collect();
        let capacities: Vec<usize> =
            rows.iter().map(|row| capacity_for(ROW_HEADER_BYTES + row.len())).collect();
        let spare = self.page.0.len() / 10;
        let plan = plan(&self.page.0, capacities.iter().copied(), spare);
        let mut bytes = Vec::new();
        for (row, capacity) in rows.iter().zip(&capacities).take(plan.rows) {
            let end = bytes.len() + capacity;
            bytes.extend_from_slice(&plain_piece(header, row));
            bytes.resize(end, 0);
        }
        if plan.rows == 0 {
            assert!(!self.pieces.is_empty(), "an empty page takes a row");
            return;
        }
        let from = self.active_from;
        layout::insert(&mut self.page, &plan, &bytes, &capacities, header.xid, &|xid| xid.0 >= from);
        assert_eq!(plan.slots().count(), plan.rows);
        for (slot, body) in plan.slots().zip(rows) {
            let before = self.pieces.insert(slot, Piece { header, body });
            assert_eq!(before, None, "slot {slot} was taken");
        }
    }

    fn add_migrated(&mut self) {
        let (xid, content, stamp) = (self.xid(), self.content(90), self.rng.below(99) as u32);
        let bytes = migrated_piece(HOME, stamp, xid, &content);
        if fits_new(&self.page.0, bytes.len()) {
            let from = self.active_from;
            let slot = layout::add(&mut self.page, &bytes, xid, &|xid| xid.0 >= from);
            let header = RowHeader::read(&bytes);
            assert_eq!(self.pieces.insert(slot, Piece { header, body: content }), None);
        }
    }

    /// A row or a migrated content gets another content.
    fn replace(&mut self) {
        let Some(slot) = self.any(|piece| !piece.header.is(FORWARD) && !piece.header.is(DELETED)) else {
            return;
        };
        let old = self.pieces[&slot].header;
        let body = self.content(140);
        let xid = self.xid();
        let (header, bytes) = if old.is(MIGRATED) {
            (RowHeader { xid, ..old }, migrated_piece(HOME, 5, xid, &body))
        } else {
            let header = RowHeader { flags: 0, xid, undo: self.rng.next_u64() };
            (header, plain_piece(header, &body))
        };
        let from = self.active_from;
        let is_active = |xid: Xid| xid.0 >= from;
        if fits(&self.page.0, slot, bytes.len(), &is_active) {
            layout::replace(&mut self.page, slot, &bytes, xid, &is_active);
            self.pieces.insert(slot, Piece { header, body });
        }
    }

    /// The content of a row moves away. That always fits.
    fn forward(&mut self) {
        let Some(slot) = self.any(|piece| piece.header.flags & (MIGRATED | DELETED) == 0) else { return };
        let header = RowHeader { flags: FORWARD, xid: self.xid(), undo: 1 };
        let forward = Forward { target: HOME, stamp: self.rng.next_u64() as u32 };
        let bytes = forward.piece(header);
        layout::replace(&mut self.page, slot, &bytes, header.xid, &|_| panic!("nothing is compacted"));
        assert_eq!(page::slot(&self.page.0, slot).unwrap().forward(&self.page.0), forward);
        self.pieces.insert(slot, Piece { header, body: bytes[ROW_HEADER_BYTES..].to_vec() });
    }

    fn set_header(&mut self) {
        let Some(slot) = self.any(|piece| !piece.header.is(MIGRATED)) else { return };
        let xid = self.xid();
        let piece = self.pieces.get_mut(&slot).unwrap();
        let (was, is) = (piece.header.is(DELETED), self.rng.below(2) == 0);
        let keep = piece.header.flags & FORWARD;
        piece.header = RowHeader { flags: keep | if is { DELETED } else { 0 }, xid, undo: 77 };
        let live = i32::from(was) - i32::from(is);
        layout::set_header(&mut self.page, slot, piece.header, live);
    }

    fn remove(&mut self) {
        let Some(slot) = self.any(|_| true) else { return };
        let piece = self.pieces.remove(&slot).unwrap();
        let live = piece.header.flags & (DELETED | MIGRATED) == 0;
        layout::remove(&mut self.page, slot, live);
    }

    /// Every piece is where it should be, none overlaps another, and the figures are right.
    fn check(&self) {
        let page = self.page.bytes();
        let head = Head::read(page);
        let mut taken = Vec::new();
        let (mut live, mut slack) = (0, 0);
        for number in 0..head.slots {
            let (slot, piece) = match (page::slot(page, number), self.pieces.get(&number)) {
                (None, None) => continue,
                (Some(slot), Some(piece)) => (slot, piece),
                other => panic!("slot {number}: {other:?}"),
            };
            assert_eq!(slot.header(page), piece.header, "slot {number}");
            let body = &page[slot.at + body_at(piece.header)..slot.at + slot.capacity];
            assert!(body.starts_with(&piece.body), "slot {number}");
            let least = if piece.header.is(MIGRATED) { 0 } else { STUB_BYTES };
            slack += slot.capacity - (body_at(piece.header) + piece.body.len()).max(least);
            live += usize::from(piece.header.flags & (DELETED | MIGRATED) == 0);
            taken.push((slot.at, slot.capacity));
        }
        assert!(self.pieces.keys().all(|slot| *slot < head.slots));
        taken.sort_unstable();
        let mut end = usize::from(head.data_start);
        let mut holes = 0;
        for (at, capacity) in &taken {
            assert!(*at >= end, "pieces overlap at {at}");
            holes += at - end;
            end = at + capacity;
        }
        holes += page.len() - end;
        assert_eq!(
            (holes, live, slack),
            (head.garbage.into(), head.live.into(), head.slack.into()),
            "{head:?}"
        );
        assert_eq!(usize::from(head.slots - head.free_slots), self.pieces.len());
        let directory = SLOTS_AT + SLOT_BYTES * usize::from(head.slots);
        let used: usize = taken.iter().map(|(_, capacity)| capacity).sum();
        assert_eq!(head.free(), page.len() - directory - used);
        assert!(self.pieces.values().all(|piece| piece.header.xid <= head.newest));
    }
}

#[test]
fn a_page_is_what_was_done_to_it() {
    for seed in 0..30 {
        let page = fresh([2048, 8192, 32768][seed as usize % 3]);
        let rng = Rng::new(Seed(seed));
        let mut model = Model { page, pieces: BTreeMap::new(), rng, active_from: 0, next_xid: 1 };
        for _ in 0..400 {
            match model.rng.below(12) {
                0..4 => model.insert(),
                4 => model.add_migrated(),
                5..8 => model.replace(),
                8 => model.forward(),
                9 => model.set_header(),
                10 => model.remove(),
                _ => model.active_from = model.rng.below(model.next_xid + 1),
            }
            model.check();
        }
    }
}

#[test]
fn an_older_content_always_fits_where_its_writer_left_the_row() {
    let never_ended = |_: Xid| true;
    for seed in 0..40 {
        let page = fresh(2048);
        let rng = Rng::new(Seed(seed));
        let mut model = Model { page, pieces: BTreeMap::new(), rng, active_from: 0, next_xid: 1 };
        for _ in 0..40 {
            model.insert();
        }
        // One transaction changes rows again and again while others use whatever becomes free; then it goes back.
        let mut history: Vec<(u16, Piece)> = Vec::new();
        for _ in 0..100 {
            let before = model.pieces.clone();
            model.replace();
            for (slot, piece) in &before {
                if model.pieces[slot] != *piece {
                    history.push((*slot, piece.clone()));
                }
            }
            model.insert();
        }
        assert!(!history.is_empty());
        for (slot, piece) in history.into_iter().rev() {
            let bytes = plain_piece(piece.header, &piece.body);
            assert!(bytes.len() <= page::slot(&model.page.0, slot).unwrap().capacity, "seed {seed}");
            layout::replace(&mut model.page, slot, &bytes, piece.header.xid, &never_ended);
            model.pieces.insert(slot, piece);
            model.check();
        }
    }
}

#[test]
fn a_view_sees_what_the_header_says() {
    let view = |own: u64, own_before| ReadView {
        own: Xid(own),
        own_before,
        next: Xid(20),
        oldest_active: Xid(10),
        active: [Xid(10), Xid(15)].into(),
    };
    let cases = [
        // flags, xid, undo, own, own before: seen row (1), nothing (0), elsewhere (2)
        (0, 5, 1, 0, u64::MAX, 1),
        (0, 0, 0, 0, u64::MAX, 1),
        (DELETED, 5, 1, 0, u64::MAX, 0),
        (0, 10, 1, 0, u64::MAX, 2),
        (DELETED, 10, 1, 0, u64::MAX, 2),
        (FIRST, 10, 1, 0, u64::MAX, 0),
        (0, 12, 1, 0, u64::MAX, 1),
        (FIRST, 20, 1, 0, u64::MAX, 0),
        (0, 20, 1, 0, u64::MAX, 2),
        (FIRST, 15, 1, 15, u64::MAX, 1),
        (DELETED, 15, 1, 15, u64::MAX, 0),
        (FIRST, 15, 3, 15, 4, 1),
        (FIRST, 15, 4, 15, 4, 0),
        (0, 15, 4, 15, 4, 2),
        (FORWARD, 5, 1, 0, u64::MAX, 2),
        (FORWARD | DELETED, 5, 1, 0, u64::MAX, 0),
        (MIGRATED, 5, 1, 0, u64::MAX, 0),
    ];
    for case @ (flags, xid, undo, own, own_before, expected) in cases {
        let mut page = fresh(2048);
        let header = RowHeader { flags, xid: Xid(xid), undo };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&[0; 20]);
        layout::add(&mut page, &bytes, Xid(xid), &|_| false);
        let seen = match page::look(&page.0, 0, &view(own, own_before)) {
            Seen::Row(content) => {
                assert_eq!(content, [0; 20]);
                1
            }
            Seen::Nothing => 0,
            Seen::Elsewhere => 2,
        };
        assert_eq!(seen, expected, "{case:?}");
        assert_eq!(page::look(&page.0, 1, &view(own, own_before)), Seen::Nothing);
    }
}

#[test]
fn row_headers_come_back() {
    let header = RowHeader { flags: 5, xid: Xid(0xfedc_ba98_7654), undo: 0x0123_4567_89ab_cdef };
    assert_eq!(RowHeader::read(&header.to_bytes()), header);
    assert_eq!(header.to_bytes()[..8], [5, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0xef]);
}
