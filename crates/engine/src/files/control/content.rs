//! What the control file says, and how it becomes bytes.
//!
//! ```text
//! u32 version   u64 database id   u64 created (unix seconds)   u8 state   u32 block bytes   u32 log block bytes
//! u64 checkpoint LSN   u64 opens
//! u16 next file   u16 next tablespace   u32 next group
//! list of paths       copies of the control file
//! list of tablespaces u16 number, u8 kind, text name
//! list of files       u16 number, u16 tablespace, u8 kind, u8 state, u32 blocks, u32 next blocks, u32 max blocks, u64 LSN, path
//! list of groups      u32 number, u64 bytes, list of members (u8 state, path)
//! list of parameters  text name, text value
//! list of logs        u64 sequence, u64 first LSN, u64 next LSN, u64 first time
//! ```
//! Numbers are little-endian; a text or path is `u16 length` and bytes; a list is `u32 count` and its items.

use super::codec::{Reader, Writer};
use crate::page::Lsn;
use std::collections::BTreeMap;
use std::path::PathBuf;

const VERSION: u32 = 1;

/// Where the database stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Being made: nothing in it counts yet.
    Creating = 1,
    /// In use, or was when the power went: recovery is due.
    Open = 2,
    /// Shut down cleanly: everything is in the data files.
    Clean = 3,
}

/// What a tablespace is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TablespaceKind {
    /// Tables and indexes.
    Permanent = 1,
    /// Undo segments.
    Undo = 2,
    /// Sorts; nothing in it outlives the instance.
    Temporary = 3,
}

/// A tablespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablespaceRecord {
    /// Its number, from 0 (SYSTEM).
    pub number: u16,
    /// Its name, in upper case.
    pub name: String,
    /// What for.
    pub kind: TablespaceKind,
}

/// Where a data file is in its life. Creating and dropping are finished or undone at the next open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileState {
    /// Being made: a crash leaves something to remove.
    Creating = 1,
    /// In use.
    Online = 2,
    /// Being removed.
    Dropping = 3,
    /// A write to it failed while another member of its redo group was written: it lacks redo, and is never read again.
    Invalid = 4,
}

/// A data or temp file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Absolute file number, never used twice.
    pub number: u16,
    /// Its tablespace.
    pub tablespace: u16,
    /// A temp file.
    pub temporary: bool,
    /// Where in its life.
    pub state: FileState,
    /// Its size, header block included.
    pub blocks: u32,
    /// By how much it grows when it is full; 0 is never.
    pub next_blocks: u32,
    /// Up to where.
    pub max_blocks: u32,
    /// End of redo when it was made.
    pub created: Lsn,
    /// Where it is.
    pub path: PathBuf,
}

/// A member of a redo group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// Being made, in use, or being removed.
    pub state: FileState,
    /// Where it is.
    pub path: PathBuf,
}

/// A redo group. Sequence and first LSN are in the header block of each member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    /// Its number, from 1.
    pub number: u32,
    /// Size of each member.
    pub bytes: u64,
    /// Its files, all alike.
    pub members: Vec<MemberRecord>,
}

/// A log that was filled: a row of `v$log_history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its sequence number.
    pub sequence: u64,
    /// Where it began.
    pub first_lsn: Lsn,
    /// Where the next one began.
    pub next_lsn: Lsn,
    /// When it began, seconds since 1970.
    pub first_time: u64,
}

/// How many filled logs are remembered.
pub const LOGS_MAX: usize = 200;

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Tells one database's files from another's.
    pub database_id: u64,
    /// When the database was created, seconds since 1970.
    pub created: u64,
    /// Where it stands.
    pub state: State,
    /// `db_block_size`.
    pub block_bytes: u32,
    /// `log_block_size`.
    pub log_block_bytes: u32,
    /// All redo before this is in the data files: where recovery begins.
    pub checkpoint: Lsn,
    /// How often it was opened.
    pub opens: u64,
    /// The number of the next data file.
    pub next_file: u16,
    /// The number of the next tablespace.
    pub next_tablespace: u16,
    /// The number of the next redo group.
    pub next_group: u32,
    /// Copies of this file, the first one in the database's directory.
    pub copies: Vec<PathBuf>,
    /// By number.
    pub tablespaces: Vec<TablespaceRecord>,
    /// By number.
    pub files: Vec<FileRecord>,
    /// By number.
    pub groups: Vec<GroupRecord>,
    /// What `ALTER SYSTEM SET` left.
    pub parameters: BTreeMap<String, String>,
    /// Filled logs, the newest last, at most [`LOGS_MAX`].
    pub logs: Vec<LogRecord>,
}

impl Content {
    /// Of a database that is about to be made.
    pub fn new(database_id: u64, created: u64, block_bytes: u32, log_block_bytes: u32) -> Self {
        Self {
            database_id,
            created,
            state: State::Creating,
            block_bytes,
            log_block_bytes,
            checkpoint: Lsn(0),
            opens: 0,
            next_file: 1,
            next_tablespace: 0,
            next_group: 1,
            copies: Vec::new(),
            tablespaces: Vec::new(),
            files: Vec::new(),
            groups: Vec::new(),
            parameters: BTreeMap::new(),
            logs: Vec::new(),
        }
    }

    /// A tablespace by its name, in any case.
    pub fn tablespace_named(&self, name: &str) -> Option<&TablespaceRecord> {
        self.tablespaces.iter().find(|t| t.name.eq_ignore_ascii_case(name))
    }

    /// A tablespace by its number.
    pub fn tablespace(&self, number: u16) -> Option<&TablespaceRecord> {
        self.tablespaces.iter().find(|t| t.number == number)
    }

    /// A file by its number.
    pub fn file_mut(&mut self, number: u16) -> Option<&mut FileRecord> {
        self.files.iter_mut().find(|f| f.number == number)
    }

    /// Notes a filled log; forgets the oldest when there are too many.
    pub fn push_log(&mut self, log: LogRecord) {
        self.logs.push(log);
        let surplus = self.logs.len().saturating_sub(LOGS_MAX);
        self.logs.drain(..surplus);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u32(VERSION);
        w.u64(self.database_id);
        w.u64(self.created);
        w.u8(self.state as u8);
        w.u32(self.block_bytes);
        w.u32(self.log_block_bytes);
        w.u64(self.checkpoint.0);
        w.u64(self.opens);
        w.u16(self.next_file);
        w.u16(self.next_tablespace);
        w.u32(self.next_group);
        w.list(&self.copies, |w, path| w.path(path));
        w.list(&self.tablespaces, |w, t| {
            w.u16(t.number);
            w.u8(t.kind as u8);
            w.text(&t.name);
        });
        w.list(&self.files, encode_file);
        w.list(&self.groups, encode_group);
        w.u32(self.parameters.len() as u32);
        for (name, value) in &self.parameters {
            w.text(name);
            w.text(value);
        }
        w.list(&self.logs, |w, log| {
            w.u64(log.sequence);
            w.u64(log.first_lsn.0);
            w.u64(log.next_lsn.0);
            w.u64(log.first_time);
        });
        w.bytes
    }

    /// `Err` with what is wrong, in words.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut r = Reader::new(bytes);
        match r.u32() {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "written by another version (format {other}, this one knows {VERSION}); use the version that made it"
                ));
            }
            None => return Err("empty".into()),
        }
        Self::decode_rest(&mut r).ok_or_else(|| "its checksum is right and its content makes no sense".into())
    }

    fn decode_rest(r: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            database_id: r.u64()?,
            created: r.u64()?,
            state: match r.u8()? {
                1 => State::Creating,
                2 => State::Open,
                3 => State::Clean,
                _ => return None,
            },
            block_bytes: r.u32()?,
            log_block_bytes: r.u32()?,
            checkpoint: Lsn(r.u64()?),
            opens: r.u64()?,
            next_file: r.u16()?,
            next_tablespace: r.u16()?,
            next_group: r.u32()?,
            copies: r.list(Reader::path)?,
            tablespaces: r.list(|r| {
                let number = r.u16()?;
                let kind = match r.u8()? {
                    1 => TablespaceKind::Permanent,
                    2 => TablespaceKind::Undo,
                    3 => TablespaceKind::Temporary,
                    _ => return None,
                };
                Some(TablespaceRecord { number, kind, name: r.text()? })
            })?,
            files: r.list(decode_file)?,
            groups: r.list(decode_group)?,
            parameters: r.list(|r| Some((r.text()?, r.text()?)))?.into_iter().collect(),
            logs: r.list(|r| {
                Some(LogRecord {
                    sequence: r.u64()?,
                    first_lsn: Lsn(r.u64()?),
                    next_lsn: Lsn(r.u64()?),
                    first_time: r.u64()?,
                })
            })?,
        })
    }
}

fn encode_file(w: &mut Writer, file: &FileRecord) {
    w.u16(file.number);
    w.u16(file.tablespace);
    w.u8(u8::from(file.temporary));
    w.u8(file.state as u8);
    w.u32(file.blocks);
    w.u32(file.next_blocks);
    w.u32(file.max_blocks);
    w.u64(file.created.0);
    w.path(&file.path);
}

fn decode_file(r: &mut Reader<'_>) -> Option<FileRecord> {
    Some(FileRecord {
        number: r.u16()?,
        tablespace: r.u16()?,
        temporary: r.u8()? != 0,
        state: decode_state(r)?,
        blocks: r.u32()?,
        next_blocks: r.u32()?,
        max_blocks: r.u32()?,
        created: Lsn(r.u64()?),
        path: r.path()?,
    })
}

fn encode_group(w: &mut Writer, group: &GroupRecord) {
    w.u32(group.number);
    w.u64(group.bytes);
    w.list(&group.members, |w, member| {
        w.u8(member.state as u8);
        w.path(&member.path);
    });
}

fn decode_group(r: &mut Reader<'_>) -> Option<GroupRecord> {
    Some(GroupRecord {
        number: r.u32()?,
        bytes: r.u64()?,
        members: r.list(|r| Some(MemberRecord { state: decode_state(r)?, path: r.path()? }))?,
    })
}

fn decode_state(r: &mut Reader<'_>) -> Option<FileState> {
    match r.u8()? {
        1 => Some(FileState::Creating),
        2 => Some(FileState::Online),
        3 => Some(FileState::Dropping),
        4 => Some(FileState::Invalid),
        _ => None,
    }
}
