//! Bytes of the pages that keep space: space maps, segment headers, extent lists, free pages, free-space pages, dictionary page.
//!
//! Numbers are little-endian; a page address is `PageId::to_u64`. Every data file is divided into *ranges*, one for each space
//! map page, and a range into *units* of [`UNIT_BLOCKS`] blocks. The first unit of each range is the range's own:
//!
//! ```text
//! block of range   0             1           2                  3 … 7
//! range 0          file header   space map   dictionary (SYSTEM) unused
//! other ranges     unused        space map   unused             unused
//! ```
//!
//! Space map (kind `SpaceMap`; a page of zeroes is one in which only the range's own unit is used):
//! ```text
//! byte 24           28         32 …
//!      units used   (unused)   a bit for each unit, 1 = used
//!      u32          u32
//! ```
//! Segment header (kind `SegmentHeader`), first block of the segment's first extent:
//! ```text
//! byte 24       28           32        36        40           48           52           56           64           72        80 …
//!      blocks   high-water   extents   extents   first free   free pages   tablespace   next extent  first free-  (unused)  extents
//!               mark         in all    here      page         u32          u16, u16 0   list         space page   u64       first page u64
//!      u32      u32          u32       u32       u64                                    u64          u64                    blocks u32
//! ```
//! Extent list (kind `SegmentHeader`), when the header is full; first block of the first extent in it:
//! ```text
//! byte 24             28         32            40 …
//!      extents here   (unused)   next          extents, as in the header
//!      u32            u32        u64
//! ```
//! Free page of an index or undo segment (kind `Free`): byte 24 u64, the next free page.
//!
//! Free-space page (kind `FreeSpace`): how full the pages of a heap segment are; chained, page n for the n-th chunk of pages.
//! ```text
//! byte 24            32       36         40 …
//!      next          chunk    (unused)   4 bits for each page of the chunk, a `Fullness`; lower half first
//!      u64           u32      u32
//! ```
//! Dictionary page (kind `Dictionary`), block 2 of file 1:
//! ```text
//! byte 24            28        32        64 …
//!      next object   version   (unused)  pending segments: object u32, header page u64; object 0 is an empty place
//!      u32           u32
//! ```

use crate::page::{HEADER_BYTES, PageId, get_u32, get_u64};

/// Blocks of the smallest extent.
pub const UNIT_BLOCKS: u32 = 8;

/// The dictionary page.
pub const DICTIONARY: PageId = PageId { file: 1, block: 2 };
/// Version of the dictionary's tables.
pub const DICTIONARY_VERSION: u32 = 1;

pub mod map {
    //! Space map pages.
    use super::*;

    pub const USED: usize = 24;
    pub const BITS: usize = 32;

    /// Units that one map page speaks of.
    pub const fn units(block_bytes: usize) -> u32 {
        ((block_bytes - BITS) * 8) as u32
    }

    /// The map page of a range.
    pub const fn page(file: u16, range: u32, block_bytes: usize) -> PageId {
        PageId { file, block: range * units(block_bytes) * UNIT_BLOCKS + 1 }
    }

    /// Units of a range that a file of so many blocks has.
    pub fn units_in_file(blocks: u32, range: u32, block_bytes: usize) -> u32 {
        let units = units(block_bytes);
        (blocks / UNIT_BLOCKS).saturating_sub(range.saturating_mul(units)).min(units)
    }

    /// Where a block is: range, and unit in it.
    pub const fn place(block: u32, block_bytes: usize) -> (u32, u32) {
        let unit = block / UNIT_BLOCKS;
        (unit / units(block_bytes), unit % units(block_bytes))
    }

    /// The first block of a unit.
    pub const fn block(range: u32, unit: u32, block_bytes: usize) -> u32 {
        (range * units(block_bytes) + unit) * UNIT_BLOCKS
    }
}

pub mod header {
    //! Segment headers and extent lists.
    use super::*;

    pub const BLOCKS: usize = 24;
    pub const HIGH_WATER: usize = 28;
    pub const EXTENTS: usize = 32;
    pub const HERE: usize = 36;
    pub const FREE_FIRST: usize = 40;
    pub const FREE_PAGES: usize = 48;
    pub const TABLESPACE: usize = 52;
    pub const NEXT: usize = 56;
    pub const FREE_SPACE: usize = 64;
    pub const LIST: usize = 80;

    pub const LIST_HERE: usize = 24;
    pub const LIST_NEXT: usize = 32;
    pub const LIST_LIST: usize = 40;

    pub const ENTRY_BYTES: usize = 12;

    /// Bytes of one entry.
    pub fn entry(first: PageId, blocks: u32) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&first.to_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&blocks.to_le_bytes());
        bytes
    }

    /// The n-th entry of a list that begins at byte `list`.
    pub fn read_entry(page: &[u8], list: usize, n: usize) -> (PageId, u32) {
        let at = list + n * ENTRY_BYTES;
        (PageId::from_u64(get_u64(page, at)), get_u32(page, at + 8))
    }

    /// Entries that fit a list that begins at byte `list`.
    pub const fn capacity(list: usize, block_bytes: usize) -> usize {
        (block_bytes - list) / ENTRY_BYTES
    }
}

pub mod free {
    //! Free pages.
    pub const NEXT: usize = 24;
}

pub mod space {
    //! Free-space pages.
    pub const NEXT: usize = 24;
    pub const CHUNK: usize = 32;
    pub const LEVELS: usize = 40;

    /// Pages of a segment that one free-space page speaks of.
    pub const fn chunk_pages(block_bytes: usize) -> usize {
        (block_bytes - LEVELS) * 2
    }
}

pub mod dictionary {
    //! The dictionary page.
    pub const NEXT_OBJECT: usize = 24;
    pub const VERSION: usize = 28;
    pub const PENDING: usize = 64;
    pub const ENTRY_BYTES: usize = 12;

    /// Places for pending segments.
    pub const fn capacity(block_bytes: usize) -> usize {
        (block_bytes - PENDING) / ENTRY_BYTES
    }
}

const _: () =
    assert!(map::BITS >= HEADER_BYTES && header::LIST >= HEADER_BYTES && space::LEVELS >= HEADER_BYTES);
// The smallest page holds enough: 2 KiB.
const _: () = assert!(header::capacity(header::LIST, 2048) >= 100 && dictionary::capacity(2048) >= 100);
