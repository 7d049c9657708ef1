//! What `v$datafile`, `v$tempfile`, `v$tablespace`, `v$iostat_file`, `v$sysstat` and `v$parameter` show.

use super::Core;
use crate::files::control::{FileState, TablespaceKind};
use crate::files::iostat::FileIo;
use crate::files::{DataFile, FileType};
use crate::page::Lsn;
use crate::parameter::ParameterRow;
use crate::statistics::Statistic;
use std::path::PathBuf;

/// A row of `v$datafile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatafileRow {
    /// `FILE#`.
    pub number: u16,
    /// `TS#`.
    pub tablespace: u16,
    /// `STATUS`: `SYSTEM` or `ONLINE`.
    pub status: &'static str,
    /// `CREATION_CHANGE#`.
    pub created: Lsn,
    /// `CHECKPOINT_CHANGE#`.
    pub checkpoint: Lsn,
    /// `BYTES`.
    pub bytes: u64,
    /// `BLOCKS`.
    pub blocks: u32,
    /// `BLOCK_SIZE`.
    pub block_bytes: u32,
    /// `NAME`.
    pub name: PathBuf,
    /// How it grows: blocks of a step (0 is never) and at most.
    pub autoextend: (u32, u32),
}

/// A row of `v$tempfile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TempfileRow {
    /// `FILE#`.
    pub number: u16,
    /// `TS#`.
    pub tablespace: u16,
    /// `BYTES`.
    pub bytes: u64,
    /// `BLOCKS`.
    pub blocks: u32,
    /// `BLOCK_SIZE`.
    pub block_bytes: u32,
    /// `NAME`.
    pub name: PathBuf,
}

/// A row of `v$tablespace`, with `contents` of `dba_tablespaces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablespaceRow {
    /// `TS#`.
    pub number: u16,
    /// `NAME`.
    pub name: String,
    /// `CONTENTS`: `PERMANENT`, `UNDO` or `TEMPORARY`.
    pub contents: &'static str,
}

/// A row of `v$iostat_file`: one for each data and temp file, one for each other type. Times are in nanoseconds here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IostatRow {
    /// `FILE_NO`; 0 for types without a row per file.
    pub number: u16,
    /// `FILETYPE_ID` and `FILETYPE_NAME`.
    pub file_type: FileType,
    /// The counters.
    pub io: FileIo,
    /// `ASYNCH_IO`.
    pub asynchronous: bool,
    /// `ACCESS_METHOD`, as the engine opens its files.
    pub access_method: &'static str,
}

/// I/O of one file. `v$iostat_file` has one row for all redo files and one for all copies of the control file; here each
/// stands by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIoRow {
    /// Number of a data or temp file; 0 for others.
    pub number: u16,
    /// Where it is; none where the kind has no file of its own.
    pub path: Option<PathBuf>,
    /// Its kind.
    pub file_type: FileType,
    /// The counters.
    pub io: FileIo,
}

/// A row of `v$sysstat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysstatRow {
    /// `STATISTIC#`.
    pub number: u32,
    /// `NAME`.
    pub name: &'static str,
    /// `CLASS`.
    pub class: u8,
    /// `VALUE`.
    pub value: u64,
}

impl Core {
    /// `v$datafile`.
    pub fn datafile(&self) -> Vec<DatafileRow> {
        let core = self;
        let content = core.control.content();
        let block_bytes = core.files.block_bytes();
        let online = content.files.iter().filter(|file| file.state == FileState::Online && !file.temporary);
        online
            .map(|file| DatafileRow {
                number: file.number,
                tablespace: file.tablespace,
                status: if file.tablespace == 0 { "SYSTEM" } else { "ONLINE" },
                created: file.created,
                checkpoint: content.checkpoint,
                bytes: u64::from(file.blocks) * u64::from(block_bytes),
                blocks: file.blocks,
                block_bytes,
                name: file.path.clone(),
                autoextend: (file.next_blocks, file.max_blocks),
            })
            .collect()
    }

    /// `v$tempfile`.
    pub fn tempfile(&self) -> Vec<TempfileRow> {
        let core = self;
        let content = core.control.content();
        let block_bytes = core.files.block_bytes();
        let online = content.files.iter().filter(|file| file.state == FileState::Online && file.temporary);
        online
            .map(|file| TempfileRow {
                number: file.number,
                tablespace: file.tablespace,
                bytes: u64::from(file.blocks) * u64::from(block_bytes),
                blocks: file.blocks,
                block_bytes,
                name: file.path.clone(),
            })
            .collect()
    }

    /// `v$tablespace`.
    pub fn tablespace(&self) -> Vec<TablespaceRow> {
        let content = self.control.content();
        let row = |tablespace: &crate::files::control::TablespaceRecord| TablespaceRow {
            number: tablespace.number,
            name: tablespace.name.clone(),
            contents: match tablespace.kind {
                TablespaceKind::Permanent => "PERMANENT",
                TablespaceKind::Undo => "UNDO",
                TablespaceKind::Temporary => "TEMPORARY",
            },
        };
        content.tablespaces.iter().map(row).collect()
    }

    /// `v$iostat_file`.
    pub fn iostat_file(&self) -> Vec<IostatRow> {
        let core = self;
        let mode = core.parameters.io_mode();
        let row = |number: u16, file_type: FileType, io: FileIo| IostatRow {
            number,
            file_type,
            io,
            // Redo and control file writes are one call at a time in every mode.
            asynchronous: mode.asynchronous() && matches!(file_type, FileType::Data | FileType::Temp),
            access_method: if mode.direct() { "O_DIRECT|O_DSYNC" } else { "O_DSYNC" },
        };
        let files = core.files.all();
        let of = |file: &std::sync::Arc<DataFile>| row(file.number, file.file_type(), file.statistics.look());
        let mut rows = vec![
            row(0, FileType::Other, core.files.other.look()),
            row(0, FileType::Control, core.control.statistics().look()),
            row(0, FileType::Log, core.files.log.look()),
        ];
        rows.extend(files.iter().map(of));
        rows
    }

    /// I/O of each file.
    pub fn file_io(&self) -> Vec<FileIoRow> {
        let row = |file_type| move |(path, io)| FileIoRow { number: 0, path: Some(path), file_type, io };
        let mut rows: Vec<_> = self.redo.member_io().into_iter().map(row(FileType::Log)).collect();
        rows.extend(self.control.copy_io().into_iter().map(row(FileType::Control)));
        rows.extend(self.files.all().iter().map(|file| FileIoRow {
            number: file.number,
            path: Some(file.path.clone()),
            file_type: file.file_type(),
            io: file.statistics.look(),
        }));
        let flash = self.cache.flash().map(|flash| flash.file_rows()).unwrap_or_default();
        rows.extend(flash.into_iter().map(|file| row(FileType::Flash)((file.name, file.io))));
        let other = self.files.other.look();
        rows.push(FileIoRow { number: 0, path: None, file_type: FileType::Other, io: other });
        rows
    }

    /// `v$sysstat`.
    pub fn sysstat(&self) -> Vec<SysstatRow> {
        let row = |(index, (statistic, value)): (usize, (Statistic, u64))| SysstatRow {
            number: index as u32,
            name: statistic.name(),
            class: statistic.class() as u8,
            value,
        };
        self.statistics.snapshot().into_iter().enumerate().map(row).collect()
    }

    /// `v$parameter`.
    pub fn parameters(&self) -> Vec<ParameterRow> {
        self.parameters.rows()
    }
}
