//! Making the redo files of a new database, and opening those of an existing one.

use super::buffer::State;
use super::chunk::padded;
use super::files::{FIRST_LSN, check_size, create_members, group_of, open_member, unused, write_header};
use super::group::{Group, Groups, Member};
use super::header::Header;
use super::writer::Writer;
use super::{Keeper, RedoLog};
use crate::context::{Background, Environment};
use crate::files::control::{FileState, GroupRecord};
use crate::files::iostat::FileStatistics;
use crate::page::Lsn;
use crate::{Context, EngineError, Result};
use io::{Access, Buffer, Storage};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

/// How the log of a database is opened.
pub struct RedoOptions {
    /// The database's id: redo of another one is never believed.
    pub database: u64,
    /// `log_buffer`, bytes. A quarter of the smallest group is used at most.
    pub buffer_bytes: u64,
    /// How redo files are opened. Always with `dsync`.
    pub access: Access,
    /// Everything before it is in the data files, says the control file.
    pub checkpoint: Lsn,
    /// `log_block_size`, bytes; chosen when the database was created.
    pub block: u32,
    /// The groups, as the control file has them; none that is being made or dropped.
    pub groups: Vec<GroupRecord>,
    /// Where the I/O is counted.
    pub statistics: Arc<FileStatistics>,
}

/// Makes the redo files of a new database, the first group CURRENT from [`FIRST_LSN`] on.
///
/// # Errors
/// Fewer than two groups, sizes that make no sense, what storage says.
pub fn create_files(
    storage: &dyn Storage,
    access: Access,
    database: u64,
    block: u32,
    groups: &[GroupRecord],
) -> Result<()> {
    if groups.len() < 2 {
        return Err(EngineError::Invalid("a redo log needs at least two groups".into()));
    }
    for record in groups {
        check_size(record, block, 0)?;
        let members = create_members(storage, access, database, block, record)?;
        if record.number == groups[0].number {
            let header = Header { sequence: 1, first: FIRST_LSN, ..unused(database, block, record) };
            for member in &members {
                let disk = member.usable().expect("just made");
                write_header(&**disk, &member.path, &header)?;
            }
        }
    }
    Ok(())
}

impl RedoLog {
    /// Opens the log over existing files. [`RedoLog::recover`] (or, in a new database, nothing) must follow before anything is appended. `helper` is the
    /// context of whoever does the log writer's work in its place.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] when a group has no usable member, or none holds the checkpoint.
    pub fn over(
        environment: &Environment,
        options: RedoOptions,
        keeper: Arc<dyn Keeper>,
        helper: Context,
    ) -> Result<Self> {
        let access = Access { dsync: true, ..options.access };
        let mut all = Vec::new();
        let block = options.block;
        for record in &options.groups {
            check_size(record, block, 0)?;
            let expected = unused(options.database, block, record);
            all.push(open_group(&*environment.storage, access, &expected, record, &*keeper)?);
        }
        let current = arrange(&mut all, options.checkpoint)?;
        let records: Vec<GroupRecord> = all.iter().map(Group::record).collect();
        if records != options.groups {
            // Before the first write, which these members will lack.
            keeper.keep(&helper, &records)?;
        }
        let smallest = all.iter().map(Group::capacity).min().unwrap_or(0);
        let half = half_bytes(options.buffer_bytes, smallest, block)?;
        let first = options.checkpoint;
        let state = State {
            active: Buffer::new(half as usize)?,
            base: first,
            used: 0,
            count: 0,
            reserved: 0,
            half,
            block,
            groups: Groups::new(all, current, 0, first),
            chunks: VecDeque::new(),
            writing: false,
            writing_end: first,
            switch_requested: false,
            switching: false,
            switches: 0,
            waiting: Vec::new(),
            room_waiters: 0,
            checkpoint_waiters: 0,
        };
        let writer = Writer {
            context: helper,
            spare: Buffer::new(half as usize)?,
            header: Buffer::new(block as usize)?,
            in_write: Vec::new(),
        };
        Ok(Self {
            state: Mutex::new(state),
            writer: Mutex::new(writer),
            room: Condvar::new(),
            durable: AtomicU64::new(first.0),
            restart: AtomicU64::new(first.0),
            wake_list: super::sync::WakeList::default(),
            lgwr: OnceLock::new(),
            posted: AtomicBool::new(false),
            flushed: AtomicU64::new(0),
            failure: OnceLock::new(),
            admin: Mutex::new(()),
            keeping: Mutex::new(()),
            keeper,
            storage: environment.storage.clone(),
            access,
            clock: environment.clock.clone(),
            database: options.database,
            block,
            statistics: options.statistics,
            inline: environment.background == Background::Inline,
            call_bytes: Self::call_bytes(half),
        })
    }
}

/// Bytes of one half of the buffer: the parameter's, or what the smallest group allows.
fn half_bytes(buffer: u64, smallest: u64, block: u32) -> Result<u64> {
    let wanted = padded(buffer / 2, block);
    let allowed = smallest / 8 / u64::from(block) * u64::from(block);
    let half = wanted.min(allowed);
    if half < 2 * u64::from(block) {
        return Err(EngineError::Invalid(format!(
            "redo groups of {smallest} bytes are too small; use at least {} bytes",
            32 * u64::from(block)
        )));
    }
    Ok(half)
}

/// Opens what can be opened of a group; the newest header of its members says which turn it holds.
fn open_group(
    storage: &dyn Storage,
    access: Access,
    expected: &Header,
    record: &GroupRecord,
    keeper: &dyn Keeper,
) -> Result<Group> {
    let mut group = group_of(record, expected.block, Vec::new());
    let (mut complaints, mut members) = (Vec::new(), Vec::new());
    for member in &record.members {
        let opened = match member.state {
            FileState::Online => open_member(storage, access, expected, &member.path),
            _ => Err("a write to it failed earlier".to_owned()),
        };
        let disk = match opened {
            Ok((disk, header)) => {
                if header.sequence > group.sequence {
                    (group.sequence, group.first, group.first_time) =
                        (header.sequence, header.first, header.first_time);
                }
                Some(disk)
            }
            Err(what) => {
                complaints.push(format!("{}: {what}", member.path.display()));
                None
            }
        };
        // One that is not there now lacks what is written from now on: should it come back, it must not be believed.
        let state = if disk.is_some() { member.state } else { FileState::Invalid };
        members.push(Member::new(member.path.clone(), disk, state));
    }
    group.members = Arc::new(members);
    if group.members.iter().any(|m| m.usable().is_some()) {
        for complaint in complaints {
            keeper.alert(&format!("log group {}: member not used: {complaint}", record.number));
        }
        return Ok(group);
    }
    Err(EngineError::Damaged {
        path: record.members[0].path.clone(),
        what: format!(
            "redo log group {} has no usable member ({}); bring one back: without it, commits would be lost",
            record.number,
            complaints.join("; ")
        ),
    })
}

/// Gives each used group its end (where the next sequence begins), and finds the group that holds the checkpoint: the last
/// one that begins at or before it.
fn arrange(all: &mut [Group], checkpoint: Lsn) -> Result<usize> {
    let begins: Vec<(u32, Lsn)> = all.iter().map(|g| (g.sequence, g.first)).collect();
    for group in all.iter_mut().filter(|g| g.sequence > 0) {
        let next = begins.iter().find(|(sequence, _)| *sequence == group.sequence + 1);
        group.end = next.map_or(Lsn(u64::MAX), |(_, first)| *first);
    }
    let holds = (0..all.len())
        .filter(|&n| all[n].sequence > 0 && all[n].first <= checkpoint && all[n].end >= checkpoint)
        .max_by_key(|&n| all[n].sequence);
    let holds = holds.filter(|&n| checkpoint.0 - all[n].first.0 <= all[n].capacity());
    holds.ok_or_else(|| EngineError::Damaged {
        path: all.first().and_then(|g| g.members.first()).map_or_else(PathBuf::new, |m| m.path.clone()),
        what: format!(
            "no redo log group holds position {} where recovery has to begin; restore control file and redo logs of the same time",
            checkpoint.0
        ),
    })
}
