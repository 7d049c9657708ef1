//! Redo files: making them, removing them, and telling ours from others'.

use super::group::{Group, Member};
use super::header::{self, Header};
use crate::files::control::{FileState, GroupRecord, MemberRecord};
use crate::page::Lsn;
use crate::{EngineError, Result};
use io::sim::Disk;
use io::{Access, Buffer, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the redo of a new database begins. A multiple of every log block; above 0, which is no position.
pub const FIRST_LSN: Lsn = Lsn(65_536);

/// A redo group to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its files, all alike; absolute.
    pub members: Vec<PathBuf>,
    /// Size of each, bytes; rounded up to whole log blocks.
    pub bytes: u64,
}

/// As the control file announces it.
pub(super) fn announced(number: u32, spec: &GroupSpec, block: u32) -> GroupRecord {
    let member = |path: &PathBuf| MemberRecord { state: FileState::Creating, path: path.clone() };
    GroupRecord {
        number,
        bytes: spec.bytes.next_multiple_of(block.into()),
        members: spec.members.iter().map(member).collect(),
    }
}

/// # Errors
/// [`EngineError::Invalid`] for a group that does not hold four log buffers of `buffer` bytes, has no members, or a log
/// block that is none.
pub(super) fn check_size(record: &GroupRecord, block: u32, buffer: u64) -> Result<()> {
    if !block.is_power_of_two() || !header::BLOCK_BYTES.contains(&block) {
        return Err(EngineError::Invalid(format!(
            "a log block of {block} bytes is out of range; use a power of two from 512 to 65536"
        )));
    }
    let needed = 4 * buffer + 2 * u64::from(block);
    if record.bytes < needed {
        return Err(EngineError::Invalid(format!(
            "log group {} of {} bytes is too small for a log buffer of {buffer}; use at least {needed} bytes, or a smaller log_buffer",
            record.number, record.bytes
        )));
    }
    if record.members.is_empty() {
        return Err(EngineError::Invalid(format!(
            "log group {} has no member; name at least one file",
            record.number
        )));
    }
    Ok(())
}

/// The header of a group that was never used.
pub(super) fn unused(database: u64, block: u32, record: &GroupRecord) -> Header {
    Header {
        database,
        group: record.number,
        sequence: 0,
        block,
        first: Lsn(0),
        bytes: record.bytes,
        first_time: 0,
    }
}

/// Makes the files of a group, with headers that say UNUSED; durable when it returns.
///
/// # Errors
/// What storage says; no file is left behind.
pub(super) fn create_members(
    storage: &dyn Storage,
    access: Access,
    database: u64,
    block: u32,
    record: &GroupRecord,
) -> Result<Vec<Member>> {
    let header = unused(database, block, record);
    let mut members: Vec<Member> = Vec::new();
    for MemberRecord { path, .. } in &record.members {
        let made = storage.create(path, record.bytes, access).map_err(EngineError::from);
        let written = made.and_then(|disk| {
            let member = Member::new(path.clone(), Some(disk.clone()), FileState::Online);
            members.push(member);
            write_header(&*disk, path, &header)
        });
        if let Err(error) = written {
            for member in members.drain(..) {
                let _ = storage.remove(&member.path);
            }
            return Err(error);
        }
    }
    Ok(members)
}

/// Writes one header block, durably.
pub(super) fn write_header(disk: &dyn Disk, path: &Path, header: &Header) -> Result<()> {
    let mut block = Buffer::new(header.block as usize)?;
    header::encode(header, &mut block);
    Ok(disk.write_at(&block, 0).check(path, "pwrite", 0, header.block)?)
}

/// Removes the files of a group that are there and ours; returns those that could not be.
pub(super) fn remove_all(storage: &dyn Storage, record: &GroupRecord, database: u64) -> Vec<PathBuf> {
    let there = record.members.iter().map(|m| &m.path).filter(|path| storage.exists(path));
    let ours = there.filter(|path| is_blank_or_ours(storage, path, database));
    ours.filter(|path| storage.remove(path).is_err()).cloned().collect()
}

/// Whether what is at a member's place was put there for it: blank as it is made, or with our header. A crash between the
/// announcement and the file may be followed by somebody else's file of that name.
fn is_blank_or_ours(storage: &dyn Storage, path: &Path, database: u64) -> bool {
    let access = Access { read: true, write: false, direct: false, dsync: true };
    let Ok(disk) = storage.open(path, access) else { return false };
    let mut block = [0; 512];
    if !disk.read_at(&mut block, 0).is_full() {
        return false;
    }
    block.iter().all(|byte| *byte == 0)
        || header::decode(&block).is_ok_and(|header| header.database == database)
}

/// A group that was never used.
pub(super) fn group_of(record: &GroupRecord, block: u32, members: Vec<Member>) -> Group {
    Group {
        number: record.number,
        bytes: record.bytes,
        block,
        members: Arc::new(members),
        sequence: 0,
        first: Lsn(0),
        first_time: 0,
        end: Lsn(0),
    }
}

/// Opens a member and reads its header; in words what is wrong with it.
pub(super) fn open_member(
    storage: &dyn Storage,
    access: Access,
    expected: &Header,
    path: &Path,
) -> std::result::Result<(Arc<dyn Disk>, Header), String> {
    let disk = storage.open(path, access).map_err(|error| error.to_string())?;
    // What a killed process was writing may be readable and not durable. Recovery goes on behind it, so it must not vanish.
    disk.sync().check(path, "fdatasync", 0, 0).map_err(|error| error.to_string())?;
    let mut block = Buffer::new(expected.block as usize).map_err(|error| error.to_string())?;
    let outcome = disk.read_at(&mut block, 0).check(path, "pread", 0, expected.block);
    outcome.map_err(|error| error.to_string())?;
    let header = header::decode(&block)?;
    let whose = |h: &Header| (h.database, h.group, h.block, h.bytes);
    if whose(&header) != whose(expected) {
        return Err("it belongs to another database or another group".into());
    }
    if disk.bytes() < expected.bytes {
        return Err(format!("it has {} bytes, it should have {}", disk.bytes(), expected.bytes));
    }
    Ok((disk, header))
}
