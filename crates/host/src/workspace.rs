//! The only directory in which files are created, and its careful removal.

use crate::error::HostError;
use crate::files;
use crate::journal::{CleanupResult, Journal, Step, Undo};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use units::{Rng, Seed};

/// The file that says a directory is ours.
pub const MARKER: &str = ".redoubt-owned";
const NAME_PREFIX: &str = "redoubt-";

/// A directory `redoubt-XXXXXX` that holds everything a run creates. Its marker `.redoubt-owned` names the journal and
/// lists every file before it is made; only listed files are ever removed, so whatever somebody else puts there stays,
/// and the directory with it.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    marker: File,
    step: Step,
}

/// Whether [`Workspace::create`] may make its directory inside `parent`: asked before anything is changed.
///
/// # Errors
/// `parent` is missing, read-only or not ours to write.
pub fn can_create(parent: &Path) -> Result<(), HostError> {
    rustix::fs::accessat(
        CWD,
        parent,
        rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK,
        AtFlags::EACCESS,
    )
    .map_err(|errno| HostError::call("create files in", parent, errno))
}

impl Workspace {
    /// Makes the directory inside `parent`, readable by its owner only.
    ///
    /// 1. the journal notes the removal; 2. the directory is made; 3. the marker is written and synced; 4. both names
    ///    are synced. A kill between 2 and 3 leaves an empty directory, which the removal may take without a marker.
    ///
    /// # Errors
    /// `parent` is missing, read-only or not ours to write.
    pub fn create(parent: &Path, journal: &mut Journal) -> Result<Self, HostError> {
        let parent = std::fs::canonicalize(parent).map_err(|e| HostError::file("find", parent, &e))?;
        let path = parent.join(random_name());
        let step = journal.will(Undo::RemoveDir(path.clone()))?;
        rustix::fs::mkdir(&path, Mode::RWXU).map_err(|e| HostError::call("create", &path, e))?;
        let file = path.join(MARKER);
        let create = || -> std::io::Result<File> {
            let mut marker = std::fs::OpenOptions::new().append(true).create_new(true).open(&file)?;
            marker.write_all(head(journal.id()).as_bytes())?;
            marker.sync_all()?;
            Ok(marker)
        };
        let marker = create().map_err(|e| HostError::file("create", &file, &e))?;
        files::sync_directory(&path)?;
        files::sync_directory(&parent)?;
        Ok(Self { path, marker, step })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal's step, to remove the workspace before the run ends.
    pub fn step(&self) -> Step {
        self.step
    }

    /// The path of a file that the caller is about to create. `name`: one plain name.
    ///
    /// # Panics
    /// `name` holds a slash or a newline, or is the marker's: a mistake in the program. Also when the marker cannot be
    /// written although it just was; see [`Workspace::list`] for the form that returns the error.
    pub fn new_file_path(&self, name: &str) -> PathBuf {
        self.list(name).unwrap_or_else(|e| panic!("the workspace's marker cannot be extended: {e}"))
    }

    /// As [`Workspace::new_file_path`], with the error as a value; also for directories (mount points), which are removed
    /// when empty.
    ///
    /// # Errors
    /// The marker cannot be written (disk full).
    ///
    /// # Panics
    /// `name` is not one plain name.
    pub fn list(&self, name: &str) -> Result<PathBuf, HostError> {
        let parts: Vec<Component<'_>> = Path::new(name).components().collect();
        assert!(
            matches!(parts[..], [Component::Normal(_)]) && !name.contains(['/', '\n']) && name != MARKER,
            "{name:?} is not a plain file name"
        );
        let mut marker = &self.marker;
        // The first newline ends what a failed write may have left: it must not swallow this name.
        let listed = marker.write_all(format!("\n{name}\n").as_bytes()).and_then(|()| marker.sync_data());
        listed.map_err(|e| HostError::file("extend", &self.path.join(MARKER), &e))?;
        Ok(self.path.join(name))
    }
}

fn random_name() -> String {
    let mut rng = Rng::new(Seed::draw());
    let letter = |_| char::from(b"abcdefghijkmnpqrstuvwxyz23456789"[rng.below(32) as usize]);
    format!("{NAME_PREFIX}{}", (0..6).map(letter).collect::<String>())
}

pub(crate) fn head(journal: &str) -> String {
    format!("Files of redoubt, journal {journal}; remove them with: redoubt cleanup\n")
}

/// Removes the workspace at `path` if its marker names `journal`. Everything goes through one handle of the directory,
/// so that a path swapped meanwhile for a symlink leads nowhere.
pub(crate) fn remove(path: &Path, journal: &str) -> Result<CleanupResult, HostError> {
    let not_ours = |why: &str| HostError::NotOurs { path: path.to_owned(), why: why.to_owned() };
    if !path.file_name().is_some_and(|n| n.as_bytes().starts_with(NAME_PREFIX.as_bytes())) {
        return Err(not_ours("its name does not begin with redoubt-"));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(CleanupResult::AlreadyGone),
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(not_ours("it is no longer a directory")),
        Err(errno) => return Err(HostError::call("open", path, errno)),
    };
    // Without a marker (killed before it was made) only an empty directory goes.
    if let Some(text) = marker_text(&directory, path)? {
        remove_listed(path, &directory, &text, journal)?;
    }
    match rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Ok(()) => files::sync_directory(&files::parent(path)).map(|()| CleanupResult::Undone),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(not_ours(&strangers(path))),
        Err(errno) => Err(HostError::call("remove", path, errno)),
    }
}

fn marker_text(directory: &OwnedFd, path: &Path) -> Result<Option<String>, HostError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, MARKER, flags, Mode::empty()) {
        Ok(marker) => {
            let mut bytes = Vec::new();
            File::from(marker)
                .read_to_end(&mut bytes)
                .map_err(|e| HostError::file("read", &path.join(MARKER), &e))?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(HostError::call("read", &path.join(MARKER), errno)),
    }
}

/// Unlinks the listed names, the marker last: a kill in between leaves a directory that is still known as ours.
fn remove_listed(path: &Path, directory: &OwnedFd, text: &str, journal: &str) -> Result<(), HostError> {
    let head = head(journal);
    let Some(list) = text.strip_prefix(&head) else {
        if !head.starts_with(text) {
            return Err(HostError::NotOurs {
                path: path.to_owned(),
                why: "its marker belongs to another run".into(),
            });
        }
        // Killed while the marker was written: nothing was listed, so nothing was made.
        return unlink(path, directory, MARKER);
    };
    // A torn last name was never handed out.
    let whole = list.rfind('\n').map_or("", |end| &list[..end]);
    for name in
        whole.lines().filter(|n| !n.is_empty() && !n.contains('/') && !matches!(*n, "." | ".." | MARKER))
    {
        unlink(path, directory, name)?;
    }
    if strangers(path).is_empty() { unlink(path, directory, MARKER) } else { Ok(()) }
}

fn unlink(path: &Path, directory: &OwnedFd, name: &str) -> Result<(), HostError> {
    let directory = directory.as_fd();
    let first = rustix::fs::unlinkat(directory, name, AtFlags::empty());
    let done = match first {
        Err(Errno::ISDIR | Errno::PERM) => {
            rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR).map_err(|second| {
                // Unlink of a directory is EISDIR on Linux, EPERM by POSIX; a file of a foreign owner is EPERM as well.
                if second == Errno::NOTDIR { Errno::PERM } else { second }
            })
        }
        other => other,
    };
    match done {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(HostError::call("remove", &path.join(name), errno)),
    }
}

/// Names in the directory that are not the marker, as a sentence; empty when there is none.
fn strangers(path: &Path) -> String {
    let others: Vec<String> =
        files::names(path).into_iter().filter(|n| OsStr::new(n) != OsStr::new(MARKER)).collect();
    if others.is_empty() {
        String::new()
    } else {
        format!("it holds what redoubt did not make: {}", others.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(folder: &Path, journal: &str, listed: &str) -> PathBuf {
        let path = folder.join("redoubt-abcdef");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join(MARKER), format!("{}{listed}", head(journal))).unwrap();
        path
    }

    #[test]
    fn removes_what_is_listed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path(), "j1", "data.0\nnever-made\nmount\n");
        std::fs::write(path.join("data.0"), "x").unwrap();
        std::fs::create_dir(path.join("mount")).unwrap();
        std::fs::write(path.join("theirs"), "precious").unwrap();
        let refused = remove(&path, "j1").unwrap_err().to_string();
        assert!(refused.contains("did not make: theirs"), "{refused}");
        assert!(!path.join("data.0").exists() && !path.join("mount").exists() && path.join(MARKER).exists());
        std::fs::remove_file(path.join("theirs")).unwrap();
        assert_eq!(remove(&path, "j1"), Ok(CleanupResult::Undone));
        assert_eq!(remove(&path, "j1"), Ok(CleanupResult::AlreadyGone));
    }

    #[test]
    fn refuses_what_is_not_marked_as_this_run_s() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path(), "j1", "data.0\n");
        std::fs::write(path.join("data.0"), "x").unwrap();
        assert!(matches!(remove(&path, "j2"), Err(HostError::NotOurs { .. })));
        std::fs::remove_file(path.join(MARKER)).unwrap();
        assert!(matches!(remove(&path, "j1"), Err(HostError::NotOurs { .. })), "no marker, not empty");
        assert!(path.join("data.0").exists());
        let link = folder.path().join("redoubt-link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(remove(&link, "j1"), Err(HostError::NotOurs { .. })));
        assert!(matches!(remove(folder.path(), "j1"), Err(HostError::NotOurs { .. })), "wrong name");
    }

    #[test]
    fn a_kill_before_or_inside_the_marker_leaves_nothing() {
        for marker in [None, Some(""), Some("Files of red")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("redoubt-abcdef");
            std::fs::create_dir(&path).unwrap();
            if let Some(text) = marker {
                std::fs::write(path.join(MARKER), text).unwrap();
            }
            assert_eq!(remove(&path, "j1"), Ok(CleanupResult::Undone), "{marker:?}");
        }
    }

    #[test]
    fn names_that_climb_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("outside"), "precious").unwrap();
        let path = made(folder.path(), "j1", "../outside\n");
        assert_eq!(remove(&path, "j1"), Ok(CleanupResult::Undone));
        assert!(folder.path().join("outside").exists());
    }

    #[test]
    fn a_half_written_name_does_not_swallow_the_next() {
        let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut journal = Journal::open_in(state.path(), "test").unwrap();
        let space = Workspace::create(data.path(), &mut journal).unwrap();
        // What a full disk leaves of a name that was then never handed out.
        (&space.marker).write_all(b"\ndat").unwrap();
        std::fs::write(space.new_file_path("next"), "ours").unwrap();
        let lines = journal.undo_all().unwrap();
        assert!(lines.iter().all(|l| l.result == CleanupResult::Undone), "{lines:?}");
        assert_eq!(files::names(data.path()), Vec::<String>::new());
    }
}
