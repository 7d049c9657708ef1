//! Every change has its undo on disk before it is made.
//!
//! A journal is one file of JSON lines in [`state_dir`]`/journal`. The order of [`Journal::will`], then the change, is
//! the whole safety argument:
//!
//! 1. the undo is appended and synced (after the file's name, at opening). A kill before this leaves nothing to undo;
//!    a torn last line is an undo whose change was never made.
//! 2. the change is made. A kill from here on finds the undo; undoing what was not made yet is harmless, because each
//!    undo first looks whether its change is there.
//! 3. [`Journal::undo`] undoes and notes so. A kill between the two undoes twice, which is harmless for the same reason.
//!
//! [`cleanup()`] does the same for journals whose process is gone. A lock on the file, held while the process or a program
//! that it started to make a change lives, and its number, start time and boot say whether it is gone.

mod cleanup;
mod identity;
mod line;
mod undo;

pub use cleanup::{CleanupLine, CleanupResult, OnServer, cleanup, cleanup_in};
pub use undo::Undo;
pub(crate) use undo::loop_backing;

use crate::command;
use crate::error::HostError;
use crate::files;
use identity::Identity;
use line::Entry;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use units::Seed;

/// Where Redoubt keeps what must outlive a run: `$REDOUBT_HOME`, else `$XDG_STATE_HOME/redoubt`, else
/// `~/.local/state/redoubt`, else (no home: a service) `/var/lib/redoubt`.
pub fn state_dir() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(home) = set("REDOUBT_HOME") {
        return std::path::absolute(&home).unwrap_or(home);
    }
    set("XDG_STATE_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| set("HOME").map(|h| h.join(".local/state")))
        .map_or_else(|| PathBuf::from("/var/lib/redoubt"), |base| base.join("redoubt"))
}

/// The folder of the journals.
pub(crate) fn folder() -> PathBuf {
    state_dir().join("journal")
}

/// One undo in a journal; the ticket to have it undone early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(usize);

/// The journal of this process's changes. Dropping it undoes what is left, as well as it can; [`Journal::undo_all`]
/// does the same and says how it went.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    id: String,
    file: File,
    /// Length of the file up to the last whole line.
    bytes: u64,
    open: Vec<Option<Entry>>,
    /// Steps left to cleanup: their program was killed but may still make its change, and cleanup waits for it; or their device does not
    /// answer ([`Journal::leave_files`]).
    hung: Vec<usize>,
    finished: bool,
}

impl Journal {
    /// Starts a journal; `purpose` is shown to people, such as `compare in /data`.
    ///
    /// # Errors
    /// The state directory cannot be written; without a journal nothing may be changed.
    pub fn open(purpose: &str) -> Result<Self, HostError> {
        let folder = folder();
        Self::open_in(&folder, purpose).map_err(|error| match error {
            HostError::File { errno: errno @ (1 | 13 | 30), .. } => HostError::Unsupported {
                what: format!("keeping a journal in {}", folder.display()),
                why: crate::error::errno_text(errno),
                instead: "name a directory that you may write: REDOUBT_HOME=/DIRECTORY redoubt …".into(),
            },
            other => other,
        })
    }

    /// As [`Journal::open`], in another folder, which is made when it is missing; [`cleanup_in`] finds it there.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_in(folder: &Path, purpose: &str) -> Result<Self, HostError> {
        make_folder(folder)?;
        let identity = Identity::own(purpose);
        // The seed tells apart two journals of one process.
        let id = format!("{}-{}-{:08x}", identity.pid, identity.start_ticks, Seed::draw().0 & 0xffff_ffff);
        let (unborn, path) = (folder.join(format!("{id}.new")), folder.join(format!("{id}.journal")));
        let file = OpenOptions::new().append(true).create_new(true).open(&unborn);
        let file = file.map_err(|e| HostError::file("create", &unborn, &e))?;
        Self::begin(&unborn, path, id, file, &identity).inspect_err(|_| {
            // Nothing was changed yet; what even this cannot remove, cleanup does.
            let _ = std::fs::remove_file(&unborn);
        })
    }

    fn begin(
        unborn: &Path,
        path: PathBuf,
        id: String,
        file: File,
        identity: &Identity,
    ) -> Result<Self, HostError> {
        // File systems without locks: process number and start time decide alone.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(HostError::NotOurs {
                path: unborn.to_owned(),
                why: "another process has locked it".into(),
            });
        }
        let mut journal = Self {
            path: unborn.to_owned(),
            id,
            file,
            bytes: 0,
            open: Vec::new(),
            hung: Vec::new(),
            finished: true,
        };
        journal.append(&identity.to_line(&journal.id))?;
        // Only now does it get the name that cleanup looks for: it never sees a journal without lock and first line,
        // and so never takes a starting run for a dead one.
        std::fs::rename(unborn, &path).map_err(|e| HostError::file("rename", unborn, &e))?;
        if let Err(error) = files::sync_directory(&files::parent(&path)) {
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        (journal.path, journal.finished) = (path, false);
        Ok(journal)
    }

    /// The name that markers of our directories carry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes how to undo a change that is about to be made. Returns when that is on disk.
    ///
    /// # Errors
    /// The journal cannot be written, or the change would touch what exists already ([`HostError::AlreadyThere`]): an
    /// undo that removes must never be noted for something that was there before.
    pub fn will(&mut self, undo: Undo) -> Result<Step, HostError> {
        undo.refuse_foreign()?;
        let entry = Entry::new(undo);
        self.append(&entry.to_line(self.open.len()))?;
        self.open.push(Some(entry));
        Ok(Step(self.open.len() - 1))
    }

    /// Undoes one step now; a second time does nothing. What is left alone stays in the journal.
    ///
    /// # Errors
    /// The undo failed; it stays in the journal.
    pub fn undo(&mut self, step: Step) -> Result<CleanupResult, HostError> {
        let Some(entry) = self.open.get(step.0).and_then(Option::as_ref) else {
            return Ok(CleanupResult::AlreadyGone);
        };
        if self.hung.contains(&step.0) {
            return Ok(CleanupResult::LeftAlone(
                "a program or a device that does not answer is in the way; run `redoubt cleanup` later"
                    .into(),
            ));
        }
        let result = entry.undo.perform(&self.id)?;
        if result.is_settled() {
            self.append(&line::done(step.0))?;
            self.open[step.0] = None;
        }
        Ok(result)
    }

    /// Notes that a step is undone, by somebody else than the journal.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn settle(&mut self, step: Step) -> Result<(), HostError> {
        if self.open.get(step.0).is_some_and(Option::is_some) {
            self.append(&line::done(step.0))?;
            self.open[step.0] = None;
        }
        Ok(())
    }

    /// Undoes a step whose program failed. After a time-out the program may still make the change, even though it was
    /// killed: then the step is left to cleanup, which waits for the lock that the program holds ([`Journal::run`]).
    pub(crate) fn undo_unless_hung(&mut self, step: Step, error: &HostError) -> Result<(), HostError> {
        if matches!(error, HostError::CommandHung { .. }) {
            self.hung.push(step.0);
            return Ok(());
        }
        self.undo(step).map(|_| ())
    }

    /// Leaves what lies on disk to cleanup: a removal on a device that does not answer would never return, and could not be ended.
    pub fn leave_files(&mut self) {
        let on_disk = |entry: &Option<Entry>| entry.as_ref().is_some_and(|e| e.undo.path_on_disk().is_some());
        self.hung.extend((0..self.open.len()).filter(|step| on_disk(&self.open[*step])));
    }

    /// Undoes everything, last first, and removes the journal. Goes on after a failure: the rest is undone all the
    /// same, and the journal is kept for `redoubt cleanup`.
    ///
    /// # Errors
    /// The journal file itself could not be removed.
    pub fn undo_all(mut self) -> Result<Vec<CleanupLine>, HostError> {
        self.undo_rest()
    }

    fn undo_rest(&mut self) -> Result<Vec<CleanupLine>, HostError> {
        let mut lines = Vec::new();
        for index in (0..self.open.len()).rev() {
            let Some(entry) = &self.open[index] else { continue };
            let action = entry.undo.to_string();
            let result = self.undo(Step(index)).unwrap_or_else(|e| CleanupResult::Failed(e.to_string()));
            lines.push(CleanupLine { journal: self.path.clone(), action, result });
        }
        self.finished = true;
        if lines.iter().all(|l| l.result.is_settled()) {
            remove(&self.path)?;
        }
        Ok(lines)
    }

    /// Runs a program that changes the system, holding the journal's lock by its standard input. When we are killed
    /// meanwhile, the program lives on and may make its change after us; cleanup then waits for the lock, and so for the
    /// program, and finds the change. (Without this, one kill in ten left a loop device behind.)
    pub(crate) fn run(
        &self,
        program: &str,
        arguments: &[&str],
        package: &'static str,
        seconds: u64,
    ) -> Result<String, HostError> {
        let lock = self.file.try_clone().map_err(|e| HostError::file("share", &self.path, &e))?;
        command::run_with(lock.into(), program, arguments, package, seconds)?.success()
    }

    fn append(&mut self, line: &str) -> Result<(), HostError> {
        // One write call: the line is there whole or torn at its end, never mixed with another.
        let line = format!("{line}\n");
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.bytes += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A full disk leaves a piece of a line. It must not become the start of the next one, or cleanup
                // could read neither. Where even the cut fails, the next line does too, and nothing is changed.
                let _ = self.file.set_len(self.bytes);
                Err(HostError::file("write", &self.path, &error))
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A panic or an early return must not leave a throttled or mounted device behind. What fails stays in the
        // journal and is told by `redoubt cleanup`. After `undo_all`, nothing is left to do.
        if !self.finished {
            let _ = self.undo_rest();
        }
    }
}

fn make_folder(folder: &Path) -> Result<(), HostError> {
    use std::os::unix::fs::DirBuilderExt;
    // Journals name paths that cleanup removes as root: nobody else may write them.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|e| HostError::file("create", folder, &e))?;
    files::sync_directory(&files::parent(folder))
}

/// Removes a settled journal, name and all.
pub(crate) fn remove(path: &Path) -> Result<(), HostError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(HostError::file("remove", path, &e)),
        _ => files::sync_directory(&files::parent(path)),
    }
}

#[cfg(test)]
mod tests;
