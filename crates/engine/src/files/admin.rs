//! Files come, grow and go while sessions run.
//!
//! A file that is made or removed is announced in the control file first, so that a crash in between leaves nothing that
//! nobody knows of: the next open removes what was being made and what was being removed (`finish_interrupted`).

use super::control::{Content, ControlFile, FileRecord, FileState, TablespaceKind, TablespaceRecord};
use super::{DataFile, FileSet};
use crate::instance::{AlertLog, Core};
use crate::page::Lsn;
use crate::parameter::Parameter;
use crate::{Context, EngineError, Result};
use io::{IoError, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::Bytes;
use waits::Event;

/// A file to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// Where; absolute.
    pub path: PathBuf,
    /// How large; rounded up to whole blocks, at least [`BLOCKS_MIN`].
    pub bytes: u64,
    /// By how much it grows when it is full; 0 is never.
    pub next_bytes: u64,
    /// Up to where.
    pub max_bytes: u64,
}

/// The smallest file: header, space map, one extent of each of the first sizes.
pub const BLOCKS_MIN: u32 = 32;

/// What came of the wish for a larger file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It has so many blocks now.
    Grown(u32),
    /// It cannot grow, and why, in words: its limit, or the disk is full.
    Stuck(String),
}

impl Core {
    /// Makes a tablespace with its files. The result is its number.
    ///
    /// # Errors
    /// [`EngineError::Exists`], [`EngineError::Invalid`], what storage says; nothing is left behind then.
    pub fn create_tablespace(
        &self,
        context: &Context,
        name: &str,
        kind: TablespaceKind,
        files: &[FileSpec],
    ) -> Result<u16> {
        let limit = self.files_max();
        let created = self.redo.tail_lsn();
        let records = self.control.update(context, |content| {
            let tablespace = announce_tablespace(content, name, kind)?;
            announce_files(content, tablespace, kind, files, created, self.files.block_bytes(), limit)
        })?;
        self.make_files(context, kind, &records)?;
        self.alert.line(&format!("tablespace {} created", name.to_ascii_uppercase()));
        Ok(records[0].tablespace)
    }

    /// Adds a file to a tablespace. The result is its number.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`], [`EngineError::Exists`], [`EngineError::Invalid`], what storage says; nothing is left
    /// behind then.
    pub fn add_file(&self, context: &Context, tablespace: &str, spec: &FileSpec) -> Result<u16> {
        let limit = self.files_max();
        let created = self.redo.tail_lsn();
        let (kind, records) = self.control.update(context, |content| {
            let TablespaceRecord { number, kind, .. } = *find(content, tablespace)?;
            let specs = std::slice::from_ref(spec);
            let block_bytes = self.files.block_bytes();
            Ok((kind, announce_files(content, number, kind, specs, created, block_bytes, limit)?))
        })?;
        self.make_files(context, kind, &records)?;
        self.alert.line(&format!("file {} added to tablespace {tablespace}", spec.path.display()));
        Ok(records[0].number)
    }

    fn files_max(&self) -> usize {
        self.parameters.number(Parameter::Files) as usize
    }

    /// Takes announced files from nothing to online.
    ///
    /// 1. make each file: zeroes and a header, durable. A crash here: the file is removed at the next open.
    /// 2. its space map, by redo; durable before 3, or an online file could lack its map after a crash.
    /// 3. online in the control file: from here on it stays.
    fn make_files(&self, context: &Context, kind: TablespaceKind, records: &[FileRecord]) -> Result<()> {
        let database_id = self.control.content().database_id;
        let made = records.iter().try_for_each(|record| {
            self.files.create(record, kind, database_id)?;
            self.space.add_file(self, context, record.number)
        });
        let made = made.and_then(|()| self.redo.wait_durable(self, context, self.redo.tail_lsn()));
        if let Err(error) = made {
            // What cannot be taken back now is taken back at the next open.
            let _ = self.remove_files(context, records);
            return Err(error);
        }
        self.control.update(context, |content| {
            for record in records {
                content.file_mut(record.number).expect("announced above").state = FileState::Online;
            }
            Ok(())
        })
    }

    fn remove_files(&self, context: &Context, records: &[FileRecord]) -> Result<()> {
        for record in records {
            if let Some(file) = self.files.get(record.number) {
                file.disk.write().take();
                remove_if_there(&**self.files.storage(), &record.path)?;
            }
        }
        self.control.update(context, |content| {
            content.files.retain(|file| records.iter().all(|record| record.number != file.number));
            forget_empty_tablespaces(content);
            Ok(())
        })
    }

    /// Removes a tablespace and its files. The caller has made sure that no segment is left in it.
    ///
    /// 1. make all redo durable, commits that did not wait for it included (`commit_wait`): that nothing is left in it must
    ///    not be taken back by a crash.
    /// 2. write its dirty blocks (space maps), so that no database writer comes back to its files.
    /// 3. announce: from here on the files are as good as gone, and a crash removes them at the next open.
    /// 4. close and remove them. 5. forget them.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`], [`EngineError::Invalid`] for SYSTEM, what storage says.
    pub fn drop_tablespace(&self, context: &Context, name: &str) -> Result<()> {
        let number = find(&self.control.content(), name)?.number;
        if number == 0 {
            return Err(EngineError::Invalid(
                "tablespace SYSTEM holds the catalog and cannot be dropped".into(),
            ));
        }
        self.redo.wait_durable(self, context, self.redo.tail_lsn())?;
        self.cache.write_dirty(self, context, None)?;
        let records = self.control.update(context, |content| {
            let files = content.files.iter_mut().filter(|file| file.tablespace == number);
            Ok(files
                .map(|file| {
                    file.state = FileState::Dropping;
                    file.clone()
                })
                .collect::<Vec<_>>())
        })?;
        self.remove_files(context, &records)?;
        self.alert.line(&format!("tablespace {} dropped", name.to_ascii_uppercase()));
        Ok(())
    }

    /// Makes a file at least `blocks_min` blocks long, by its own step where there is space for it. Holds no latch of the
    /// caller's: this writes zeroes and waits for them (`Data file init write`).
    ///
    /// # Errors
    /// What storage says, but for a full disk: that is [`Growth::Stuck`].
    pub fn grow_file(&self, context: &Context, number: u16, blocks_min: u32) -> Result<Growth> {
        let file = self.files.get(number).ok_or_else(|| EngineError::NoSuch {
            kind: "file",
            name: number.to_string(),
            hint: String::new(),
        })?;
        let _one_at_a_time = file.growth.lock();
        let blocks = file.blocks();
        if blocks >= blocks_min {
            return Ok(Growth::Grown(blocks));
        }
        let content = self.control.content();
        let record =
            content.files.iter().find(|record| record.number == number).expect("an open file is known");
        if record.next_blocks == 0 {
            return Ok(Growth::Stuck(format!("{} does not autoextend", file.path.display())));
        }
        if blocks_min > record.max_blocks {
            let limit = Bytes(u64::from(record.max_blocks) * u64::from(self.files.block_bytes));
            return Ok(Growth::Stuck(format!("{} is at its limit of {limit}", file.path.display())));
        }
        let step = blocks.saturating_add(record.next_blocks).clamp(blocks_min, record.max_blocks);
        for goal in [step, blocks_min] {
            match self.extend(context, file, goal) {
                Ok(()) => return Ok(Growth::Grown(goal)),
                Err(EngineError::Io(error)) if matches!(*error, IoError::NoSpace { .. }) => {
                    if goal == blocks_min {
                        return Ok(Growth::Stuck(error.to_string()));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        unreachable!("the last goal returns")
    }

    /// 1. zeroes at the end of the file, durable. 2. the new size in the control file: from here on the blocks exist. 3. the
    ///    size that everybody sees: no block is used, and so none is in redo, before the control file knows it.
    fn extend(&self, context: &Context, file: &DataFile, goal: u32) -> Result<()> {
        let block_bytes = u64::from(self.files.block_bytes);
        let (from, to) = (u64::from(file.blocks()) * block_bytes, u64::from(goal) * block_bytes);
        {
            let writes = (to - from).div_ceil(1 << 20);
            let _wait = context.slot.enter(Event::DataFileInitWrite, writes, 0, 0);
            self.files.storage.extend(&file.path, from, to)?;
        }
        self.control.update(context, |content| {
            content.file_mut(file.number).expect("an open file is known").blocks = goal;
            Ok(())
        })?;
        file.blocks.store(goal, Ordering::Release);
        Ok(())
    }
}

fn find<'c>(content: &'c Content, name: &str) -> Result<&'c TablespaceRecord> {
    content.tablespace_named(name).ok_or_else(|| {
        let names: Vec<_> = content.tablespaces.iter().map(|t| t.name.as_str()).collect();
        EngineError::NoSuch {
            kind: "tablespace",
            name: name.to_ascii_uppercase(),
            hint: format!("; there are {}", names.join(", ")),
        }
    })
}

/// Puts a tablespace into the control file; the result is its number.
pub(crate) fn announce_tablespace(content: &mut Content, name: &str, kind: TablespaceKind) -> Result<u16> {
    let name = name.to_ascii_uppercase();
    if content.tablespace_named(&name).is_some() {
        return Err(EngineError::Exists { kind: "tablespace", name });
    }
    let number = content.next_tablespace;
    content.next_tablespace = number
        .checked_add(1)
        .ok_or_else(|| EngineError::Invalid("65535 tablespaces were made: make a new database".into()))?;
    content.tablespaces.push(TablespaceRecord { number, name, kind });
    Ok(number)
}

/// Puts files into the control file, as being made.
pub(crate) fn announce_files(
    content: &mut Content,
    tablespace: u16,
    kind: TablespaceKind,
    specs: &[FileSpec],
    created: Lsn,
    block_bytes: u32,
    files_max: usize,
) -> Result<Vec<FileRecord>> {
    if specs.is_empty() {
        return Err(EngineError::Invalid("a tablespace needs a file".into()));
    }
    let mut records = Vec::new();
    for spec in specs {
        if content.files.iter().any(|file| file.path == spec.path) {
            return Err(EngineError::Exists { kind: "file", name: spec.path.display().to_string() });
        }
        if content.files.len() >= files_max {
            return Err(EngineError::Invalid(format!(
                "the database has {files_max} files, as many as parameter db_files allows; raise it and start again"
            )));
        }
        let number = content.next_file;
        content.next_file = number
            .checked_add(1)
            .ok_or_else(|| EngineError::Invalid("65535 files were made: make a new database".into()))?;
        let in_blocks = |bytes: u64| bytes.div_ceil(block_bytes.into()).min(u32::MAX.into()) as u32;
        let blocks = in_blocks(spec.bytes).max(BLOCKS_MIN);
        let record = FileRecord {
            number,
            tablespace,
            temporary: kind == TablespaceKind::Temporary,
            state: FileState::Creating,
            blocks,
            next_blocks: in_blocks(spec.next_bytes),
            max_blocks: in_blocks(spec.max_bytes).max(blocks),
            created,
            path: spec.path.clone(),
        };
        content.files.push(record.clone());
        records.push(record);
    }
    Ok(records)
}

fn forget_empty_tablespaces(content: &mut Content) {
    let files = &content.files;
    content.tablespaces.retain(|t| files.iter().any(|file| file.tablespace == t.number));
}

/// Removes a file; fine when there is none.
pub(crate) fn remove_if_there(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.remove(path) {
        Ok(()) | Err(IoError::NoSuchFile { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes what a crash left between announcement and end: files that were being made or removed. Before any file is
/// opened.
///
/// A file that was being made is removed only when it is ours or blank: its maker announces it before it looks
/// whether somebody else's file is at that place.
///
/// # Errors
/// What storage says.
pub(crate) fn finish_interrupted(
    storage: &dyn Storage,
    control: &ControlFile,
    alert: &AlertLog,
    context: &Context,
) -> Result<()> {
    let content = control.content();
    let unfinished: Vec<_> = content.files.iter().filter(|file| file.state != FileState::Online).collect();
    if unfinished.is_empty() {
        return Ok(());
    }
    for file in unfinished {
        let ours = file.state == FileState::Dropping || is_blank_or_ours(storage, file, &content);
        if ours && storage.exists(&file.path) {
            remove_if_there(storage, &file.path)?;
            alert
                .line(&format!("removed {}: it was being made or dropped at the crash", file.path.display()));
        }
    }
    control.update(context, |content| {
        content.files.retain(|file| file.state == FileState::Online);
        forget_empty_tablespaces(content);
        Ok(())
    })
}

/// Whether what is at a file's place was put there for it: blank as it is made, or with our header.
pub(crate) fn is_blank_or_ours(storage: &dyn Storage, record: &FileRecord, content: &Content) -> bool {
    let access = io::Access { read: true, write: false, direct: false, dsync: false };
    let Ok(disk) = storage.open(&record.path, access) else { return false };
    let mut block = vec![0; content.block_bytes as usize];
    let length = disk.bytes().min(block.len() as u64) as usize;
    if !disk.read_at(&mut block[..length], 0).is_full() {
        return false;
    }
    let kind = content.tablespace(record.tablespace).map(|t| t.kind);
    block.iter().all(|byte| *byte == 0)
        || kind.is_some_and(|kind| {
            super::header::check(&*disk, record, kind, content.database_id, content.block_bytes).is_ok()
        })
}

/// Opens all files that the control file knows as online.
///
/// # Errors
/// [`EngineError::Damaged`], what storage says. A temp file that is gone or damaged is made again.
pub(crate) fn open_all(
    files: &FileSet,
    control: &ControlFile,
    alert: &AlertLog,
) -> Result<Vec<Arc<DataFile>>> {
    let content = control.content();
    let mut opened = Vec::new();
    for record in &content.files {
        let Some(tablespace) = content.tablespace(record.tablespace) else {
            return Err(super::damaged(
                &record.path,
                "the control file knows no tablespace for this file".into(),
            ));
        };
        let result = files.open(record, tablespace.kind, content.database_id);
        opened.push(match result {
            Err(error) if record.temporary => {
                alert.line(&format!("temp file made again: {error}"));
                remove_if_there(&**files.storage(), &record.path)?;
                files.create(record, tablespace.kind, content.database_id)?
            }
            result => result?,
        });
    }
    Ok(opened)
}
