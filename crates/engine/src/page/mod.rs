//! Pages: address, header, checksum. A page is `db_block_size` bytes, 2 to 32 KiB.
//!
//! ```text
//! byte 0        4     5     6      8        12         16              24        32
//!      checksum  kind  flags file   block    object     lsn             (kind's)  …
//!      u32       u8    u8    u16    u32      u32        u64             8 bytes   content
//! ```
//! All numbers little-endian. The checksum (CRC-32 of bytes 4 to the end) is set when the page is written to disk and
//! checked whenever it is read from there; in memory it is meaningless.

use std::fmt;

/// Bytes of the header that every page has; content begins here.
pub const HEADER_BYTES: usize = 32;

/// Address of a page: absolute file number and block number in it. Block 0 of a data file is its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId {
    /// Absolute file number, from 1; 0 is no page.
    pub file: u16,
    /// Block in the file, from 0.
    pub block: u32,
}

impl PageId {
    /// No page.
    pub const NONE: Self = Self { file: 0, block: 0 };

    /// Whether it is a page at all.
    pub const fn is_some(self) -> bool {
        self.file != 0
    }

    /// As one number, as stored in pages: file in the upper, block in the lower 32 bits.
    pub const fn to_u64(self) -> u64 {
        ((self.file as u64) << 32) | self.block as u64
    }

    /// Back.
    pub const fn from_u64(n: u64) -> Self {
        Self { file: (n >> 32) as u16, block: n as u32 }
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} block {}", self.file, self.block)
    }
}

/// Position in the redo stream, bytes since the database was created. Grows for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Never used: all zero.
    Free = 0,
    /// Block 0 of a data file.
    FileHeader = 1,
    /// Which extents of a file are used.
    SpaceMap = 2,
    /// First page of a segment.
    SegmentHeader = 3,
    /// Rows.
    Heap = 4,
    /// Keys with row addresses.
    BtreeLeaf = 5,
    /// Keys with child pages.
    BtreeBranch = 6,
    /// Transaction table of an undo segment.
    UndoHeader = 7,
    /// Undo records.
    Undo = 8,
    /// Sort runs.
    Temp = 9,
    /// How full the pages of a segment are.
    FreeSpace = 10,
    /// Next object number, and segments that DDL is at work on.
    Dictionary = 11,
}

/// Reads numbers out of a page.
#[inline]
pub fn get_u16(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

/// See [`get_u16`].
#[inline]
pub fn get_u32(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"))
}

/// See [`get_u16`].
#[inline]
pub fn get_u64(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"))
}

/// The page's kind; none for a number that is no kind.
pub fn kind(page: &[u8]) -> Option<PageKind> {
    use PageKind::*;
    [
        Free,
        FileHeader,
        SpaceMap,
        SegmentHeader,
        Heap,
        BtreeLeaf,
        BtreeBranch,
        UndoHeader,
        Undo,
        Temp,
        FreeSpace,
        Dictionary,
    ]
    .into_iter()
    .find(|k| *k as u8 == page[4])
}

/// Address that the page says it has.
pub fn page_id(page: &[u8]) -> PageId {
    PageId { file: get_u16(page, 6), block: get_u32(page, 8) }
}

/// Object (segment) that the page belongs to.
pub fn object(page: &[u8]) -> u32 {
    get_u32(page, 12)
}

/// End of the last redo record that changed the page.
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(get_u64(page, 16))
}

/// Writes the header of a fresh page and zeroes everything else.
pub fn format(page: &mut [u8], id: PageId, kind: PageKind, object: u32) {
    page.fill(0);
    page[4] = kind as u8;
    page[6..8].copy_from_slice(&id.file.to_le_bytes());
    page[8..12].copy_from_slice(&id.block.to_le_bytes());
    page[12..16].copy_from_slice(&object.to_le_bytes());
}

/// Notes the redo position.
pub fn set_lsn(page: &mut [u8], lsn: Lsn) {
    page[16..24].copy_from_slice(&lsn.0.to_le_bytes());
}

/// The checksum that a sealed page carries.
pub fn checksum(page: &[u8]) -> u32 {
    get_u32(page, 0)
}

/// The checksum that it should carry.
pub fn sum(page: &[u8]) -> u32 {
    crc32fast::hash(&page[4..])
}

/// Sets the checksum; the last thing before the page goes to disk.
pub fn seal(page: &mut [u8]) {
    let sum = sum(page);
    page[..4].copy_from_slice(&sum.to_le_bytes());
}

/// What is wrong with a page just read from disk as `id`: (expected, found). A page of zeroes is fine: never written.
pub fn check(page: &[u8], id: PageId) -> std::result::Result<(), (String, String)> {
    let (sum, said) = (sum(page), checksum(page));
    if sum != said {
        if said == 0 && page.iter().all(|b| *b == 0) {
            return Ok(());
        }
        return Err((format!("checksum {said:#010x}"), format!("{sum:#010x} of its {} bytes", page.len())));
    }
    let found = page_id(page);
    if found == id { Ok(()) } else { Err((id.to_string(), found.to_string())) }
}
