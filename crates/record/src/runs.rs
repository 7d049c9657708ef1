//! Where records are kept, and how people name them.

use crate::{Reader, RecordError};
use std::path::{Path, PathBuf};
use units::{Bytes, Seed, clock};

/// A record at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The file's name without `.redoubt`; what [`find`] takes.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// `calibrate`, `compare`, `doctor`; empty when it cannot be read.
    pub kind: String,
    /// What was measured.
    pub target: String,
    /// When the run began, RFC 3339.
    pub started_utc: String,
    /// As [`Reader::status`], or the reason why it cannot be read.
    pub status: String,
    /// Size of the file.
    pub size: Bytes,
}

/// The folder of records: `$REDOUBT_HOME/runs`, else `~/.local/share/redoubt/runs`, else (a service without a home)
/// `./redoubt-runs`.
pub fn directory() -> PathBuf {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match (var("REDOUBT_HOME"), var("HOME")) {
        (Some(redoubt), _) => redoubt.join("runs"),
        (None, Some(home)) => home.join(".local/share/redoubt/runs"),
        (None, None) => PathBuf::from("redoubt-runs"),
    }
}

/// A path for a new record: `20261121-093000-compare-ab12.redoubt`. The time first, so that names sort by age; four
/// random digits last, so that two runs of one second do not meet. Nothing is created.
pub fn new_path(kind: &str) -> PathBuf {
    let time: String = clock::utc().chars().filter(char::is_ascii_digit).collect();
    let (date, hour) = time.split_at(8);
    directory().join(format!("{date}-{hour}-{kind}-{:04x}.redoubt", Seed::draw().0 & 0xffff))
}

/// The record that a user means: a path; `last`, the newest; or the beginning of a name in [`directory`], or its last
/// four digits.
///
/// # Errors
/// [`RecordError::NoSuchRun`] and [`RecordError::Ambiguous`], with the names there are.
pub fn find(name: &str) -> Result<PathBuf, RecordError> {
    find_in(&directory(), name)
}

fn find_in(directory: &Path, name: &str) -> Result<PathBuf, RecordError> {
    let path = PathBuf::from(name);
    if path.is_file() || name.contains('/') {
        return if path.exists() { Ok(path) } else { Err(RecordError::Missing(path)) };
    }
    let newest_first = files(directory);
    let stem = name.strip_suffix(".redoubt").unwrap_or(name);
    let means = |id: &str| id.starts_with(stem) || (stem.len() == 4 && id.ends_with(&format!("-{stem}")));
    let mut fitting = match name {
        "last" => newest_first.iter().take(1).collect::<Vec<_>>(),
        _ => newest_first.iter().filter(|(id, _)| !stem.is_empty() && means(id)).collect(),
    };
    if let Some(exact) = fitting.iter().position(|(id, _)| id == stem) {
        fitting = vec![fitting[exact]];
    }
    let names = |some: &[&(String, PathBuf)]| some.iter().take(5).map(|(id, _)| id.clone()).collect();
    match fitting[..] {
        [(_, path)] => Ok(path.clone()),
        [] => {
            let names = names(&newest_first.iter().collect::<Vec<_>>());
            Err(RecordError::NoSuchRun { name: name.into(), directory: directory.into(), names })
        }
        _ => Err(RecordError::Ambiguous { name: name.into(), names: names(&fitting) }),
    }
}

/// All records in [`directory`], newest first. One that cannot be read is listed with the reason.
pub fn list() -> Vec<RunSummary> {
    list_in(&directory())
}

fn list_in(directory: &Path) -> Vec<RunSummary> {
    files(directory).into_iter().map(|(id, path)| summary(id, path)).collect()
}

fn summary(id: String, path: PathBuf) -> RunSummary {
    let read = Reader::open(&path).and_then(|record| Ok((record.experiment()?, record.status()?)));
    let size = Bytes(std::fs::metadata(&path).map_or(0, |meta| meta.len()));
    match read {
        Ok((e, status)) => {
            RunSummary { id, path, kind: e.kind, target: e.target, started_utc: e.started_utc, status, size }
        }
        Err(e) => {
            let unknown = String::new;
            RunSummary {
                id,
                path,
                kind: unknown(),
                target: unknown(),
                started_utc: unknown(),
                status: e.to_string(),
                size,
            }
        }
    }
}

/// `(id, path)` of every `.redoubt` file, newest first; a folder that is not there holds none.
fn files(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "redoubt") && path.is_file())
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path.clone())))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}
