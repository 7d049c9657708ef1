//! The header block of a redo file: whose it is, and which turn of its group it holds.
//!
//! ```text
//! byte 0          8        12     16        20     24        32         40     48          56
//!      magic      version  group  sequence  block  database  first LSN  bytes  first time  crc32
//!      REDOUBT\n  u32      u32    u32       u32    u64       u64        u64    u64         u32
//! ```
//! All numbers little-endian; the CRC-32 covers the 56 bytes before it; zeroes to a whole log block follow. The header lies
//! in the first 512 bytes, so that no power cut leaves half of it. Sequence 0 is a group that was never used.

use crate::page::{Lsn, get_u32, get_u64};

const MAGIC: &[u8; 8] = b"REDOUBT\n";
const VERSION: u32 = 1;
const END: usize = 56;

/// Smallest and largest log block.
pub const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 512..=65_536;

/// The header of a redo file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The database.
    pub database: u64,
    /// Number of the group.
    pub group: u32,
    /// Which turn of the log it holds; 0 none yet.
    pub sequence: u32,
    /// Bytes of a log block.
    pub block: u32,
    /// LSN of the first byte behind the header block.
    pub first: Lsn,
    /// Bytes of the file that are used, header block included.
    pub bytes: u64,
    /// When the log came to it, seconds since 1970.
    pub first_time: u64,
}

/// Writes the header into the first bytes of `block`, zeroes the rest.
pub fn encode(header: &Header, block: &mut [u8]) {
    block.fill(0);
    block[..8].copy_from_slice(MAGIC);
    let numbers = [VERSION, header.group, header.sequence, header.block];
    for (field, number) in block[8..24].chunks_exact_mut(4).zip(numbers) {
        field.copy_from_slice(&number.to_le_bytes());
    }
    block[24..32].copy_from_slice(&header.database.to_le_bytes());
    block[32..40].copy_from_slice(&header.first.0.to_le_bytes());
    block[40..48].copy_from_slice(&header.bytes.to_le_bytes());
    block[48..END].copy_from_slice(&header.first_time.to_le_bytes());
    let crc = crc32fast::hash(&block[..END]);
    block[END..END + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Reads it back; the words say what is wrong with it. Never panics.
///
/// # Errors
/// When it is no header of ours.
pub fn decode(block: &[u8]) -> Result<Header, &'static str> {
    let bytes = block.get(..END + 4).ok_or("shorter than a header")?;
    if &bytes[..8] != MAGIC {
        return Err("not a redo log file");
    }
    if get_u32(bytes, END) != crc32fast::hash(&bytes[..END]) {
        return Err("its header has a wrong checksum");
    }
    if get_u32(bytes, 8) != VERSION {
        return Err("written by another version");
    }
    let header = Header {
        database: get_u64(bytes, 24),
        group: get_u32(bytes, 12),
        sequence: get_u32(bytes, 16),
        block: get_u32(bytes, 20),
        first: Lsn(get_u64(bytes, 32)),
        bytes: get_u64(bytes, 40),
        first_time: get_u64(bytes, 48),
    };
    let sound = header.block.is_power_of_two()
        && BLOCK_BYTES.contains(&header.block)
        && header.bytes >= 2 * u64::from(header.block)
        && header.first.0.checked_add(header.bytes).is_some();
    if sound { Ok(header) } else { Err("its header makes no sense") }
}
