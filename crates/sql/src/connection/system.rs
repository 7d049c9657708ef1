//! What changes the instance: ALTER SYSTEM, redo groups, tablespaces.

use super::Connection;
use crate::Error;
use crate::outcome::Outcome;
use crate::statement::{DataFile, Statement, TablespaceKind};
use engine::files::admin::FileSpec;
use engine::redo::GroupSpec;
use engine::{Applied, Core};
use std::path::{Path, PathBuf};

/// A data file's size and step, where none is said.
const FILE_BYTES: u64 = 100 << 20;
const NEXT_BYTES: u64 = 16 << 20;

impl Connection {
    pub(super) fn change_system(&mut self, statement: &Statement) -> Result<Outcome, Error> {
        use Statement as S;
        let session = &mut self.link.lock().session;
        Ok(match statement {
            S::AlterSystem(what) => match session.alter_system(what)? {
                Applied::Now => Outcome::Done("System altered."),
                Applied::AtNextStart => Outcome::Done("System altered, from the next start on."),
            },
            S::AddLogfile { group, members, bytes } => {
                let spec = group_spec(session.core(), *group, members, *bytes);
                session.add_logfile_group(*group, &spec)?;
                Outcome::Done("Database altered.")
            }
            S::DropLogfile { group } => {
                session.drop_logfile_group(*group)?;
                Outcome::Done("Database altered.")
            }
            S::CreateTablespace { name, kind, files } => {
                let specs = file_specs(session.core(), name, *kind, files);
                session.create_tablespace(name, *kind, &specs)?;
                Outcome::Done("Tablespace created.")
            }
            S::AddDatafile { tablespace, files } => {
                let content = session.core().control.content();
                let kind = content.tablespace_named(tablespace).map(|tablespace| tablespace.kind);
                // When there is no such tablespace, the engine says so.
                let kind = kind.unwrap_or(TablespaceKind::Permanent);
                for spec in file_specs(session.core(), tablespace, kind, files) {
                    session.add_datafile(tablespace, &spec)?;
                }
                Outcome::Done("Tablespace altered.")
            }
            S::DropTablespace { name, including_contents, and_datafiles: _ } => {
                session.drop_tablespace(name, *including_contents)?;
                Outcome::Done("Tablespace dropped.")
            }
            other => unreachable!("{other:?} is done elsewhere"),
        })
    }
}

/// Without a size, as large as the largest group; without files, one beside the first group's.
fn group_spec(core: &Core, group: Option<u32>, members: &[String], bytes: Option<u64>) -> GroupSpec {
    let (groups, files) = (core.redo.log(), core.redo.logfile());
    let bytes = bytes.or_else(|| groups.iter().map(|group| group.bytes).max());
    let mut members: Vec<_> = members.iter().map(|member| absolute(core, member)).collect();
    if members.is_empty() {
        let last = groups.iter().map(|group| group.group).max().unwrap_or(0);
        let directory = files.first().and_then(|file| file.path.parent()).unwrap_or(&core.directory);
        members.push(directory.join(format!("redo{:02}.log", group.unwrap_or(last + 1))));
    }
    GroupSpec { members, bytes: bytes.unwrap_or(FILE_BYTES) }
}

fn file_specs(core: &Core, tablespace: &str, kind: TablespaceKind, files: &[DataFile]) -> Vec<FileSpec> {
    let content = core.control.content();
    let mut taken: Vec<PathBuf> = content.files.iter().map(|file| file.path.clone()).collect();
    let mut spec = |file: &DataFile| {
        let path = match &file.path {
            Some(path) => absolute(core, path),
            None => free_name(&core.directory, tablespace, &taken),
        };
        taken.push(path.clone());
        // As in Oracle: a file that the user places grows only when told to, one that we place grows. Sorts come and go, so
        // a temp file always may.
        let grows = file.autoextend.unwrap_or(file.path.is_none() || kind == TablespaceKind::Temporary);
        FileSpec {
            path,
            bytes: file.bytes.unwrap_or(FILE_BYTES),
            next_bytes: if grows { file.bytes_next.unwrap_or(NEXT_BYTES) } else { 0 },
            max_bytes: file.bytes_max.unwrap_or(u64::MAX),
        }
    };
    files.iter().map(&mut spec).collect()
}

/// `users02.dbf` when there is a `users01.dbf`.
fn free_name(directory: &Path, tablespace: &str, taken: &[PathBuf]) -> PathBuf {
    let stem = tablespace.to_ascii_lowercase();
    let name = |number: u32| directory.join(format!("{stem}{number:02}.dbf"));
    (1..).map(name).find(|path| !taken.contains(path)).unwrap_or_else(|| name(0))
}

/// A path without a directory is in the database's.
fn absolute(core: &Core, path: &str) -> PathBuf {
    core.directory.join(path)
}
