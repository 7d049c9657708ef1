//! Undoes what killed runs left.

use super::identity::{Fate, Identity};
use super::line::{self, Entry};
use super::undo::Undo;
use crate::error::HostError;
use crate::files;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use units::{Nanos, clock};

/// 10 s in steps of 20 ms: longer than a `losetup` or the `mkfs` of a test disk, shorter than a person waits.
const PATIENCE: u32 = 500;

/// One undo, or one journal that was left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanupLine {
    /// The journal's file.
    pub journal: PathBuf,
    /// What was to be undone, in words.
    pub action: String,
    /// How it went.
    pub result: CleanupResult,
}

/// How an undo went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanupResult {
    /// It is undone now.
    Undone,
    /// It was not there (never made, or undone before, or gone with a reboot).
    AlreadyGone,
    /// Dry run: it would be undone.
    WouldUndo,
    /// Not touched, with the reason and what to do; the journal is kept.
    LeftAlone(String),
    /// It is still there, with the reason; the journal is kept, and the next cleanup tries again.
    Failed(String),
}

impl CleanupResult {
    /// Nothing is left to do.
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Undone | Self::AlreadyGone)
    }
}

/// Who removes a directory of ours on an NFS server: given the directory, and how the server is reached.
pub type OnServer<'a> = &'a dyn Fn(&Path, &str) -> CleanupResult;

/// Undoes the changes of every journal whose process is gone, last change first. `dry_run`: only says what it would do.
/// May run at any time, twice, and beside a running Redoubt, which is left alone.
pub fn cleanup(dry_run: bool, on_server: OnServer<'_>) -> Vec<CleanupLine> {
    all_in(&super::folder(), Manner { dry_run, on_server: Some(on_server) })
}

/// As [`cleanup`], for the journals in `folder` ([`super::Journal::open_in`]), and reaching no server.
pub fn cleanup_in(folder: &Path, dry_run: bool) -> Vec<CleanupLine> {
    all_in(folder, Manner { dry_run, on_server: None })
}

/// What cleanup may do.
#[derive(Clone, Copy)]
struct Manner<'a> {
    /// Only look.
    dry_run: bool,
    on_server: Option<OnServer<'a>>,
}

fn all_in(folder: &Path, manner: Manner<'_>) -> Vec<CleanupLine> {
    let names = files::names(folder);
    let journals = names.iter().filter(|n| n.ends_with(".journal"));
    let unborn = names.iter().filter(|n| n.ends_with(".new"));
    journals
        .flat_map(|name| one_journal(&folder.join(name), manner))
        .chain(unborn.filter_map(|name| one_unborn(&folder.join(name), manner.dry_run)))
        .collect()
}

/// Removes a journal that was killed before it got its name: no change followed it. One whose run still starts, or whose
/// writer may run elsewhere, is none of our business.
fn one_unborn(path: &Path, dry_run: bool) -> Option<CleanupLine> {
    let file = OpenOptions::new().read(true).append(true).open(path).ok()?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return None;
    }
    let text = files::text(path)?;
    let gone = match Identity::from_line(text.lines().next().unwrap_or("")) {
        Some((_, identity)) => matches!(identity.fate(), Fate::Gone | Fate::Rebooted),
        // Its name tells the process, as a run has no lock and no line for a moment after it made the file.
        None => Identity::name_is_gone(&path.file_stem()?.to_string_lossy()),
    };
    let result = match (gone, dry_run) {
        (false, _) => return None,
        (true, true) => CleanupResult::WouldUndo,
        (true, false) => super::remove(path)
            .map_or_else(|e| CleanupResult::Failed(e.to_string()), |()| CleanupResult::Undone),
    };
    Some(CleanupLine { journal: path.to_owned(), action: "remove the unfinished journal".into(), result })
}

fn one_journal(path: &Path, manner: Manner<'_>) -> Vec<CleanupLine> {
    let say = |action: &str, result| {
        vec![CleanupLine { journal: path.to_owned(), action: action.to_owned(), result }]
    };
    let mut file = match OpenOptions::new().read(true).append(true).open(path) {
        Ok(file) => file,
        Err(e) => {
            return say(
                "open the journal",
                CleanupResult::Failed(HostError::file("open", path, &e).to_string()),
            );
        }
    };
    if !locked(&file, path) {
        return say(
            "undo its changes",
            CleanupResult::LeftAlone("its run, or a program that it started, is at work".into()),
        );
    }
    // Read through the locked handle: the name may have been removed by another cleanup since it was listed.
    let mut bytes = Vec::new();
    if let Err(e) = file.read_to_end(&mut bytes) {
        return say("read the journal", CleanupResult::Failed(HostError::file("read", path, &e).to_string()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
    let Some((id, identity)) = Identity::from_line(head) else {
        return torn_head(path, &text, manner.dry_run);
    };
    let fate = identity.fate();
    if let Some(reason) = left_alone(fate, &identity) {
        return say("undo its changes", CleanupResult::LeftAlone(reason));
    }
    match line::open_entries(body) {
        Ok(entries) => undo(path, &mut file, &id, fate, &entries, manner),
        Err(number) => say(
            "undo its changes",
            CleanupResult::LeftAlone(format!(
                "line {} cannot be read; undo by hand what the others name",
                number + 1
            )),
        ),
    }
}

/// Takes the journal's lock. A dead run's last program (`mkfs`, `losetup`) or another cleanup may hold it for a moment
/// and is waited for; a living run is not.
fn locked(file: &File, path: &Path) -> bool {
    for _ in 0..PATIENCE {
        match file.try_lock() {
            // File systems without locks: process number and start time decide alone.
            Ok(()) | Err(TryLockError::Error(_)) => return true,
            Err(TryLockError::WouldBlock) => {}
        }
        let head = files::text(path).and_then(|t| Identity::from_line(t.lines().next()?));
        if head.is_some_and(|(_, identity)| identity.fate() == Fate::Running) {
            return false;
        }
        clock::sleep(Nanos::millis(20));
    }
    false
}

/// A head that is not whole means a kill before any change: nothing to undo, if nothing else is in the file.
fn torn_head(path: &Path, text: &str, dry_run: bool) -> Vec<CleanupLine> {
    let alone = text.trim_end().lines().count() <= 1;
    let result = match (alone, dry_run) {
        (false, _) => CleanupResult::LeftAlone(
            "its first line cannot be read; undo by hand what the others name".into(),
        ),
        (true, true) => CleanupResult::WouldUndo,
        (true, false) => super::remove(path)
            .map_or_else(|e| CleanupResult::Failed(e.to_string()), |()| CleanupResult::Undone),
    };
    vec![CleanupLine { journal: path.to_owned(), action: "remove the empty journal".into(), result }]
}

fn left_alone(fate: Fate, identity: &Identity) -> Option<String> {
    match fate {
        Fate::Gone | Fate::Rebooted => None,
        Fate::Running => Some(format!("process {} still runs ({})", identity.pid, identity.purpose)),
        Fate::Elsewhere => {
            Some(format!("it was made on machine {}; run `redoubt cleanup` there", identity.machine))
        }
        Fate::OtherSpace => {
            Some("it was made in another container of this machine; run `redoubt cleanup` there".into())
        }
    }
}

fn undo(
    path: &Path,
    file: &mut File,
    id: &str,
    fate: Fate,
    entries: &[(usize, Entry)],
    manner: Manner<'_>,
) -> Vec<CleanupLine> {
    let mut lines = Vec::new();
    let mut is_cut = false;
    for (step, entry) in entries.iter().rev() {
        let result = one_undo(entry, id, fate, manner);
        if result.is_settled() && !manner.dry_run {
            // A torn end would swallow the note and make a broken line of both. Without the note the next cleanup looks
            // once more and finds it gone.
            is_cut = is_cut || cut_torn_end(file).is_ok();
            if is_cut {
                let _ = file.write_all(format!("{}\n", line::done(*step)).as_bytes());
            }
        }
        lines.push(CleanupLine { journal: path.to_owned(), action: entry.undo.to_string(), result });
    }
    if !manner.dry_run
        && lines.iter().all(|l| l.result.is_settled())
        && let Err(error) = super::remove(path)
    {
        let result = CleanupResult::Failed(error.to_string());
        lines.push(CleanupLine { journal: path.to_owned(), action: "remove the journal".into(), result });
    }
    lines
}

/// Shortens the journal to its last whole line.
fn cut_torn_end(file: &mut File) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
    if whole < bytes.len() { file.set_len(whole as u64) } else { Ok(()) }
}

fn one_undo(entry: &Entry, id: &str, fate: Fate, manner: Manner<'_>) -> CleanupResult {
    if fate == Fate::Rebooted && entry.undo.is_undone_by_a_reboot() {
        // Mounts, loop devices, groups and settings do not survive; what has their names now is somebody else's.
        return CleanupResult::AlreadyGone;
    }
    if !entry.is_reachable() {
        let place = entry.mount_point.as_deref().unwrap_or(Path::new("/")).display();
        return CleanupResult::LeftAlone(format!(
            "{place} is not mounted as it was; mount it and run `redoubt cleanup` again"
        ));
    }
    if manner.dry_run {
        return CleanupResult::WouldUndo;
    }
    if let (Undo::RemoveOnServer { folder, by }, Some(on_server)) = (&entry.undo, manner.on_server) {
        return on_server(folder, by);
    }
    entry.undo.perform(id).unwrap_or_else(|e| CleanupResult::Failed(e.to_string()))
}
