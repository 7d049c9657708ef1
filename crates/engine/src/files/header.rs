//! Block 0 of a data or temp file: whose it is.
//!
//! ```text
//! byte 0       32      40           48           52          54    55      56        64
//!      page    magic   database id  block bytes  tablespace  kind  (zero)  made at   zeroes
//!      header  u64     u64          u32          u16         u8            LSN u64
//! ```
//! Written once, when the file is made. It keeps a file of another database, or of another place in this one, from being
//! taken for ours.

use super::control::{FileRecord, TablespaceKind};
use super::damaged;
use crate::Result;
use crate::page::{self, HEADER_BYTES, PageId, PageKind, get_u16, get_u32, get_u64};
use io::Buffer;
use io::sim::Disk;

const MAGIC: u64 = u64::from_le_bytes(*b"RDBTDATA");

/// Writes it, durably.
///
/// # Errors
/// What storage says.
pub fn write(
    disk: &dyn Disk,
    record: &FileRecord,
    kind: TablespaceKind,
    database_id: u64,
    block_bytes: u32,
) -> Result<()> {
    let mut block = Buffer::new(block_bytes as usize)?;
    page::format(&mut block, PageId { file: record.number, block: 0 }, PageKind::FileHeader, 0);
    block[HEADER_BYTES..40].copy_from_slice(&MAGIC.to_le_bytes());
    block[40..48].copy_from_slice(&database_id.to_le_bytes());
    block[48..52].copy_from_slice(&block_bytes.to_le_bytes());
    block[52..54].copy_from_slice(&record.tablespace.to_le_bytes());
    block[54] = kind as u8;
    block[56..64].copy_from_slice(&record.created.0.to_le_bytes());
    page::seal(&mut block);
    Ok(disk.write_at_dsync(&block, 0).check(&record.path, "pwrite", 0, block_bytes)?)
}

/// Whether the file is the one that the control file means.
///
/// # Errors
/// [`crate::EngineError::Damaged`] with what was found; what storage says.
pub fn check(
    disk: &dyn Disk,
    record: &FileRecord,
    kind: TablespaceKind,
    database_id: u64,
    block_bytes: u32,
) -> Result<()> {
    let mut block = Buffer::new(block_bytes as usize)?;
    disk.read_at(&mut block, 0).check(&record.path, "pread", 0, block_bytes)?;
    let id = PageId { file: record.number, block: 0 };
    if let Err((expected, found)) = page::check(&block, id) {
        return Err(damaged(
            &record.path,
            format!("its header is damaged: expected {expected}, found {found}; restore the file"),
        ));
    }
    let wrong = |what: String| Err(damaged(&record.path, what));
    if get_u64(&block, HEADER_BYTES) != MAGIC {
        return wrong("this is no data file; restore the file that was here".into());
    }
    if get_u64(&block, 40) != database_id {
        return wrong("this file belongs to another database; put the right one in its place".into());
    }
    let of = (get_u32(&block, 48), get_u16(&block, 52), block[54]);
    if of != (block_bytes, record.tablespace, kind as u8) {
        return wrong(format!(
            "this file has blocks of {} bytes and belongs to tablespace {}, kind {}; {block_bytes}, {}, {} were expected: put the right one in its place",
            of.0, of.1, of.2, record.tablespace, kind as u8
        ));
    }
    Ok(())
}
