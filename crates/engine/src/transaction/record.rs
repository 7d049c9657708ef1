//! Undo records: what takes a change back, and what older versions of a row are made from. Pure.
//!
//! ```text
//! record       byte 0        2     3         9          17        [23]
//!                   length   kind  xid u48   previous   number    [previous end u64, with BEGIN]   body
//!                   u16      u8              u64        u48
//!
//! body  1 insert        object u32  page u48   runs: (first slot u16, count u16) …
//!       2 update        object u32  row u64    header 15   prefix u16   suffix u16   middle
//!       3 delete        object u32  row u64    header 15
//!       4 lock          object u32  row u64    header 15
//!       5 index insert  object u32  row u64    key
//! ```
//! * *previous*: the transaction's record before this one ([`UndoPtr`]); after a rollback to a savepoint the records that
//!   were taken back are no longer in this chain.
//! * *number*: counts the transaction's records, from 1; never the same twice in a transaction.
//! * *previous end*: on the first record of a transaction, when the transaction before it in the same slot ended. So the
//!   order of commits is known after a restart, too.
//! * *header*: the row's header before the change. The content before an update is that of the next newer version with
//!   everything between its first `prefix` and its last `suffix` bytes replaced by `middle`.
//!
//! Flags in the kind: `UNDONE` (0x80) when the change was taken back, set together with that; `BEGIN` (0x40); `KEYS` (0x20)
//! when an update changed a column of an index, so that old index entries must be purged.

use super::{UndoPtr, Xid};
use crate::heap::{ROW_HEADER_BYTES, RowHeader};
use crate::page::{self, PageId};
use crate::row;
use crate::value::RowId;

/// Bytes before the body, without the previous end.
const HEAD_BYTES: usize = 23;
const BEGIN_BYTES: usize = 8;

const UNDONE: u8 = 0x80;
const BEGIN: u8 = 0x40;
const KEYS: u8 = 0x20;
const KIND: u8 = 0x1f;

/// Where in a record its kind is: the one byte that ever changes.
pub(crate) const KIND_AT: usize = 2;

/// What an undo record takes back. Written before the change that it takes back, in the same redo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo<'a> {
    /// Rows were inserted into a page: take them out. Index entries have records of their own.
    Insert {
        /// Segment of the table.
        object: u32,
        /// Where.
        page: PageId,
        /// Runs of slots, see [`Runs`].
        runs: Runs<'a>,
    },
    /// A row was changed: give it its old content and header.
    Update {
        /// Segment of the table.
        object: u32,
        /// Where.
        row: RowId,
        /// Its header before.
        before: RowHeader,
        /// How its content was.
        delta: Delta<'a>,
        /// A column of an index was among those that changed.
        keys: bool,
    },
    /// A row was marked as deleted: give it its old header.
    Delete {
        /// Segment of the table.
        object: u32,
        /// Where.
        row: RowId,
        /// Its header before.
        before: RowHeader,
    },
    /// A row was locked: give it its old header.
    Lock {
        /// Segment of the table.
        object: u32,
        /// Where.
        row: RowId,
        /// Its header before.
        before: RowHeader,
    },
    /// An index entry was added: take it out.
    IndexInsert {
        /// Segment of the index.
        object: u32,
        /// The key.
        key: &'a [u8],
        /// The row it points to.
        row: RowId,
    },
}

/// Runs of neighbouring slots: pairs of first slot and count, each two bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs<'a>(pub &'a [u8]);

impl Runs<'_> {
    /// As stored.
    pub fn encode(runs: &[(u16, u16)]) -> Vec<u8> {
        runs.iter()
            .flat_map(|&(first, count)| (u32::from(first) | (u32::from(count) << 16)).to_le_bytes())
            .collect()
    }

    /// The slots, in order.
    pub fn slots(self) -> impl Iterator<Item = u16> {
        self.0.chunks_exact(4).flat_map(|run| {
            let first = page::get_u16(run, 0);
            first..first + page::get_u16(run, 2)
        })
    }
}

/// An older content in terms of the next newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta<'a> {
    /// Bytes at the beginning that are the same.
    pub prefix: u16,
    /// Bytes at the end that are the same.
    pub suffix: u16,
    /// What is between them in the older content.
    pub middle: &'a [u8],
}

impl<'a> Delta<'a> {
    /// How `older` differs from `newer`.
    pub fn between(older: &'a [u8], newer: &[u8]) -> Self {
        let shorter = older.len().min(newer.len());
        let prefix = row::common_prefix(older, newer);
        let suffix = row::common_suffix(older, newer).min(shorter - prefix);
        Self { prefix: prefix as u16, suffix: suffix as u16, middle: &older[prefix..older.len() - suffix] }
    }

    /// The older content; none when `newer` cannot be the one that this was made with.
    pub fn apply(self, newer: &[u8]) -> Option<Vec<u8>> {
        let (prefix, suffix) = (usize::from(self.prefix), usize::from(self.suffix));
        let tail = newer.len().checked_sub(suffix).filter(|&tail| tail >= prefix)?;
        Some([&newer[..prefix], self.middle, &newer[tail..]].concat())
    }
}

/// What every record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead {
    /// Bytes of the whole record.
    pub length: usize,
    /// It was taken back.
    pub undone: bool,
    /// Whose.
    pub xid: Xid,
    /// The transaction's record before; 0 for the first.
    pub previous: UndoPtr,
    /// Its number in the transaction.
    pub number: u64,
    /// On the first record of a transaction: when the slot's transaction before it ended, 0 for never.
    pub previous_end: Option<u64>,
}

impl Undo<'_> {
    /// Bytes of the record, at most.
    pub fn bytes(&self) -> usize {
        let row = 4 + 8;
        let body = match self {
            Self::Insert { runs, .. } => 4 + 6 + runs.0.len(),
            Self::Update { delta, .. } => row + ROW_HEADER_BYTES + 4 + delta.middle.len(),
            Self::Delete { .. } | Self::Lock { .. } => row + ROW_HEADER_BYTES,
            Self::IndexInsert { key, .. } => row + key.len(),
        };
        HEAD_BYTES + BEGIN_BYTES + body
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Insert { .. } => 1,
            Self::Update { keys, .. } => 2 | if *keys { KEYS } else { 0 },
            Self::Delete { .. } => 3,
            Self::Lock { .. } => 4,
            Self::IndexInsert { .. } => 5,
        }
    }
}

/// The record as bytes, in place of what `out` holds. `head.length` is found out, not asked for.
pub(crate) fn encode(out: &mut Vec<u8>, head: &RecordHead, undo: &Undo<'_>) {
    out.clear();
    let begin = if head.previous_end.is_some() { BEGIN } else { 0 };
    out.extend_from_slice(&[0, 0, undo.kind() | begin]);
    out.extend_from_slice(&head.xid.0.to_le_bytes()[..6]);
    out.extend_from_slice(&head.previous.0.to_le_bytes());
    out.extend_from_slice(&head.number.to_le_bytes()[..6]);
    if let Some(end) = head.previous_end {
        out.extend_from_slice(&end.to_le_bytes());
    }
    match undo {
        Undo::Insert { object, page, runs } => {
            out.extend_from_slice(&object.to_le_bytes());
            out.extend_from_slice(&page.to_u64().to_le_bytes()[..6]);
            out.extend_from_slice(runs.0);
        }
        Undo::Update { object, row, before, delta, .. } => {
            push_row(out, *object, *row);
            out.extend_from_slice(&before.to_bytes());
            out.extend_from_slice(&delta.prefix.to_le_bytes());
            out.extend_from_slice(&delta.suffix.to_le_bytes());
            out.extend_from_slice(delta.middle);
        }
        Undo::Delete { object, row, before } | Undo::Lock { object, row, before } => {
            push_row(out, *object, *row);
            out.extend_from_slice(&before.to_bytes());
        }
        Undo::IndexInsert { object, key, row } => {
            push_row(out, *object, *row);
            out.extend_from_slice(key);
        }
    }
    let length = out.len() as u16;
    out[..2].copy_from_slice(&length.to_le_bytes());
}

fn push_row(out: &mut Vec<u8>, object: u32, row: RowId) {
    out.extend_from_slice(&object.to_le_bytes());
    out.extend_from_slice(&row.to_i64().to_le_bytes());
}

fn get_u48(bytes: &[u8], at: usize) -> u64 {
    u64::from(page::get_u32(bytes, at)) | (u64::from(page::get_u16(bytes, at + 4)) << 32)
}

/// The head of the record at the beginning of `bytes`; none when it is no record.
pub(crate) fn decode_head(bytes: &[u8]) -> Option<RecordHead> {
    if bytes.len() < HEAD_BYTES {
        return None;
    }
    let length = usize::from(page::get_u16(bytes, 0));
    let flags = bytes[KIND_AT];
    let head_bytes = if flags & BEGIN != 0 { HEAD_BYTES + BEGIN_BYTES } else { HEAD_BYTES };
    if length < head_bytes || length > bytes.len() {
        return None;
    }
    Some(RecordHead {
        length,
        undone: flags & UNDONE != 0,
        xid: Xid(get_u48(bytes, 3)),
        previous: UndoPtr(page::get_u64(bytes, 9)),
        number: get_u48(bytes, 17),
        previous_end: (flags & BEGIN != 0).then(|| page::get_u64(bytes, HEAD_BYTES)),
    })
}

/// The record at the beginning of `bytes`; none when it is no record.
pub(crate) fn decode(bytes: &[u8]) -> Option<(RecordHead, Undo<'_>)> {
    let head = decode_head(bytes)?;
    let begin = if head.previous_end.is_some() { BEGIN_BYTES } else { 0 };
    let body = &bytes[HEAD_BYTES + begin..head.length];
    let (object, place) = (body.get(..4)?, body.get(4..12)?);
    let object = page::get_u32(object, 0);
    let row = RowId::from_i64(page::get_u64(place, 0) as i64);
    let rest = body.get(12..)?;
    let before = |rest: &[u8]| rest.get(..ROW_HEADER_BYTES).map(RowHeader::read);
    let undo = match bytes[KIND_AT] & KIND {
        1 => Undo::Insert { object, page: PageId::from_u64(get_u48(body, 4)), runs: Runs(&body[10..]) },
        2 => {
            let delta = rest.get(ROW_HEADER_BYTES..).filter(|delta| delta.len() >= 4)?;
            let (prefix, suffix) = (page::get_u16(delta, 0), page::get_u16(delta, 2));
            let delta = Delta { prefix, suffix, middle: &delta[4..] };
            Undo::Update { object, row, before: before(rest)?, delta, keys: bytes[KIND_AT] & KEYS != 0 }
        }
        3 => Undo::Delete { object, row, before: before(rest)? },
        4 => Undo::Lock { object, row, before: before(rest)? },
        5 => Undo::IndexInsert { object, key: rest, row },
        _ => return None,
    };
    Some((head, undo))
}

/// Whether purge has something to do about the record at the beginning of `bytes`, if it was not taken back: a row was
/// deleted, or columns of an index were changed.
pub(crate) fn needs_purge(bytes: &[u8]) -> bool {
    let kind = bytes[KIND_AT];
    kind & KIND == 3 || (kind & KIND == 2 && kind & KEYS != 0)
}

/// The kind byte of a record whose change was taken back.
pub(crate) fn undone(kind: u8) -> u8 {
    kind | UNDONE
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Rng, Seed};

    const ROW: RowId = RowId { page: PageId { file: 3, block: 70_000 }, slot: 9 };
    const HEADER: RowHeader = RowHeader { flags: 1, xid: Xid(0xffff_1234_5678), undo: 0x0003_0001_1170_0040 };

    fn examples() -> Vec<Undo<'static>> {
        let (object, row, before) = (77, ROW, HEADER);
        let delta = Delta { prefix: 3, suffix: 500, middle: b"old" };
        vec![
            Undo::Insert { object, page: ROW.page, runs: Runs(&[1, 0, 2, 0, 9, 0, 1, 0]) },
            Undo::Update { object, row, before, delta, keys: true },
            Undo::Update { object, row, before, delta: Delta { middle: b"", ..delta }, keys: false },
            Undo::Delete { object, row, before },
            Undo::Lock { object, row, before },
            Undo::IndexInsert { object, key: b"key", row },
        ]
    }

    #[test]
    fn every_record_comes_back() {
        let mut bytes = Vec::new();
        for undo in examples() {
            for previous_end in [None, Some(0), Some(u64::MAX)] {
                let mut head = RecordHead {
                    length: 0,
                    undone: false,
                    xid: Xid(0xfedc_ba98_7654),
                    previous: UndoPtr(0x0002_0000_0007_1000),
                    number: 0x0102_0304_0506,
                    previous_end,
                };
                encode(&mut bytes, &head, &undo);
                assert!(bytes.len() <= undo.bytes());
                head.length = bytes.len();
                bytes.push(0xee);
                assert_eq!(decode(&bytes), Some((head, undo)));
                bytes[KIND_AT] = undone(bytes[KIND_AT]);
                head.undone = true;
                assert_eq!(decode(&bytes), Some((head, undo)));
                assert_eq!(decode(&bytes[..head.length - 1]), None, "cut off");
            }
        }
    }

    #[test]
    fn runs_are_slots() {
        let runs = Runs::encode(&[(1, 2), (9, 1)]);
        assert_eq!(Runs(&runs).slots().collect::<Vec<_>>(), [1, 2, 9]);
    }

    #[test]
    fn a_delta_gives_the_older_content() {
        let mut rng = Rng::new(Seed(5));
        for _ in 0..5_000 {
            let longest = [12, 200][rng.below(2) as usize];
            let rare = 1 + rng.below(40);
            let mut text = || -> Vec<u8> {
                (0..rng.below(longest)).map(|_| b'a' + u8::from(rng.below(rare) == 0)).collect()
            };
            let (older, newer) = (text(), text());
            let delta = Delta::between(&older, &newer);
            assert_eq!(delta.apply(&newer).unwrap(), older, "{delta:?}");
        }
        let delta = Delta::between(b"count 1 of many", b"count 22 of many");
        assert_eq!(delta, Delta { prefix: 6, suffix: 8, middle: b"1" });
        assert_eq!(delta.apply(b"short"), None);
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let mut rng = Rng::new(Seed(6));
        for _ in 0..20_000 {
            let mut bytes: Vec<u8> = (0..rng.below(80)).map(|_| rng.next_u64() as u8).collect();
            if bytes.len() > 2 {
                bytes[1] = 0;
            }
            let _ = decode(&bytes);
        }
    }
}
