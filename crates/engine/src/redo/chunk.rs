//! Chunks: what the log writer writes at once. A group of commits is one chunk, a chunk is one write.
//!
//! ```text
//! byte 0      4         8         12       16     20     24         32
//!      magic  database  sequence  records  count  crc32  start LSN  records, then zeroes to a whole log block
//!      u32    u32       u32       u32      u32    u32    u64        `records` bytes, `count` of them
//! ```
//! All numbers little-endian. The CRC-32 covers everything but itself and the zeroes. A chunk belongs to the log only when
//! magic, database, sequence of its group and start LSN are what must come next: blocks of an older turn of the
//! group, of another database on the same device, or of a write that the power cut never are. The first that does not
//! fit is the end of the log.

use crate::page::{Lsn, get_u32, get_u64};

/// Bytes before the first record; the first record of a chunk begins at its start LSN plus this.
pub const HEADER_BYTES: usize = 32;
const MAGIC: u32 = 0x4b48_4352;

/// Where a chunk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The database's id; a chunk holds 32 bits of it.
    pub database: u64,
    /// Sequence number of the group's turn.
    pub sequence: u32,
    /// LSN of its first byte.
    pub start: Lsn,
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Bytes of records.
    pub records: u32,
    /// How many records.
    pub count: u32,
}

impl Content {
    /// Bytes of the chunk in a log of blocks of `block`, padding included.
    pub fn chunk_bytes(&self, block: u32) -> u64 {
        padded(HEADER_BYTES as u64 + u64::from(self.records), block)
    }
}

/// `bytes` rounded up to whole blocks.
pub const fn padded(bytes: u64, block: u32) -> u64 {
    bytes.next_multiple_of(block as u64)
}

/// Completes the chunk whose records lie in `chunk` from [`HEADER_BYTES`] on: header, zeroes behind the records.
/// `chunk` is as long as what will be written.
pub fn seal(chunk: &mut [u8], place: Place, content: Content) {
    let end = HEADER_BYTES + content.records as usize;
    let numbers = [MAGIC, tag(place.database), place.sequence, content.records, content.count, 0];
    for (field, number) in chunk.chunks_exact_mut(4).zip(numbers) {
        field.copy_from_slice(&number.to_le_bytes());
    }
    chunk[24..HEADER_BYTES].copy_from_slice(&place.start.0.to_le_bytes());
    chunk[end..].fill(0);
    let crc = checksum(&chunk[..end]);
    chunk[20..24].copy_from_slice(&crc.to_le_bytes());
}

/// What the chunk at the beginning of `bytes` holds, from its header alone; `None` when it is not the chunk of `place`.
/// [`is_intact`] must follow before a record of it is believed.
pub fn content(bytes: &[u8], place: Place) -> Option<Content> {
    let header = bytes.get(..HEADER_BYTES)?;
    let fits = get_u32(header, 0) == MAGIC
        && get_u32(header, 4) == tag(place.database)
        && get_u32(header, 8) == place.sequence
        && get_u64(header, 24) == place.start.0;
    let content = Content { records: get_u32(header, 12), count: get_u32(header, 16) };
    (fits && content.records > 0).then_some(content)
}

/// Whether the chunk at the beginning of `bytes` arrived whole.
pub fn is_intact(bytes: &[u8], content: Content) -> bool {
    let end = HEADER_BYTES + content.records as usize;
    bytes.get(..end).is_some_and(|chunk| checksum(chunk) == get_u32(chunk, 20))
}

const fn tag(database: u64) -> u32 {
    (database ^ (database >> 32)) as u32
}

fn checksum(chunk: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&chunk[..20]);
    hasher.update(&chunk[24..]);
    hasher.finalize()
}
