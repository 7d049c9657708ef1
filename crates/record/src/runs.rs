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
    /// Which case, where the kind has several.
    pub case: Option<String>,
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

/// All records in a folder, as [`list`] has them.
pub fn list_in(directory: &Path) -> Vec<RunSummary> {
    files(directory).into_iter().map(|(id, path)| summary(id, path)).collect()
}

fn summary(id: String, path: PathBuf) -> RunSummary {
    let read = Reader::open(&path).and_then(|record| Ok((record.experiment()?, record.status()?)));
    let size = Bytes(std::fs::metadata(&path).map_or(0, |meta| meta.len()));
    match read {
        Ok((e, status)) => {
            let (kind, case, target, started_utc) = (e.kind, e.case, e.target, e.started_utc);
            RunSummary { id, path, kind, case, target, started_utc, status, size }
        }
        Err(e) => {
            let unknown = String::new;
            RunSummary {
                id,
                path,
                kind: unknown(),
                case: None,
                target: unknown(),
                started_utc: unknown(),
                status: e.to_string(),
                size,
            }
        }
    }
}

/// `(id, path)` of every `.redoubt` file, newest first; a folder that is not there holds none. None is opened.
pub fn files(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "redoubt") && path.is_file())
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path.clone())))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, Writer};

    const NAMES: [&str; 3] =
        ["20261121-093000-compare-ab12", "20261121-101500-calibrate-00ff", "20261122-080000-compare-ab13"];

    fn runs() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let kind = |name: &str| name.split('-').nth(2).unwrap().to_owned();
        for name in NAMES {
            let experiment = Experiment { kind: kind(name), target: "/data".into(), ..Experiment::default() };
            let mut run =
                Writer::create(&folder.path().join(format!("{name}.redoubt")), &experiment).unwrap();
            run.finish("finished").unwrap();
        }
        std::fs::write(folder.path().join("20261122-080000-compare-ab13.redoubt-wal.txt"), "").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        folder
    }

    fn check(folder: &Path, name: &str, expected: Result<&str, &str>) {
        match (find_in(folder, name), expected) {
            (Ok(path), Ok(id)) => assert_eq!(path.file_stem().unwrap(), id, "{name}"),
            (Err(e), Err(words)) => assert!(e.to_string().contains(words), "{name}: {e}"),
            (found, _) => panic!("{name}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn finds_what_people_type() {
        let folder = runs();
        let [first, second, last] = NAMES;
        let path = folder.path().join(format!("{first}.redoubt"));
        for (name, expected) in [
            ("last", Ok(last)),
            ("20261122", Ok(last)),
            ("20261121-10", Ok(second)),
            (first, Ok(first)),
            (&format!("{first}.redoubt"), Ok(first)),
            ("00ff", Ok(second)),
            ("ab12", Ok(first)),
            (path.to_str().unwrap(), Ok(first)),
            (
                "20261121",
                Err("fits several runs; type more of one of these: 20261121-101500-calibrate-00ff, 2026"),
            ),
            ("2027", Err("no run is called \"2027\"")),
            ("", Err("no run is called")),
            ("./none.redoubt", Err("there is no record at ./none.redoubt")),
        ] {
            check(folder.path(), name, expected);
        }
        check(&folder.path().join("nowhere"), "last", Err("there are none yet"));
    }

    #[test]
    fn lists_newest_first_and_says_what_it_cannot_read() {
        let folder = runs();
        std::fs::write(folder.path().join("20261120-000000-compare-dead.redoubt"), "").unwrap();
        let list = list_in(folder.path());
        let ids: Vec<&str> = list.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(ids, [NAMES[2], NAMES[1], NAMES[0], "20261120-000000-compare-dead"]);
        assert_eq!(
            (list[1].kind.as_str(), list[1].target.as_str(), list[1].status.as_str()),
            ("calibrate", "/data", "finished")
        );
        assert!(list[1].size > Bytes(0) && list[3].size == Bytes(0));
        assert!(list[3].status.contains("it is empty"), "{}", list[3].status);
    }

    #[test]
    fn new_names_sort_by_time() {
        let name = new_path("compare").file_name().unwrap().to_str().unwrap().to_owned();
        let shape: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert!(shape.starts_with("00000000-000000-compare-") && name.ends_with(".redoubt"), "{name}");
        assert_eq!(name.len(), "20261121-093000-compare-ab12.redoubt".len());
        assert_eq!(new_path("x").parent(), Some(directory().as_path()));
    }
}
