//! What a mount does with names: directories made, listed and removed, files renamed. One call at a time, as everything of a mount.

use super::caller::Trouble;
use super::control::Control;
use super::error::NfsError;
use super::mount::{Mount, refused};
use super::target::Version;
use crate::listing::{Listing, Place};
use crate::v3::{self, Space, directory};
use crate::v4::compound::Compound;
use crate::xdr::Malformed;
use crate::{Fault, Handle, Status};
use units::Nanos;

/// Bytes of names that are asked for at once.
const PART_BYTES: u32 = 32 << 10;
/// More names than this are not what this client is for, or a server that never ends.
const NAMES_MAX: usize = 1 << 17;
/// How often a listing begins anew because the directory changed below it.
const RESTARTS_MAX: u32 = 8;

impl Mount {
    /// Whether something is at `path`.
    ///
    /// # Errors
    /// [`NfsError`]; that there is nothing is none.
    pub fn exists(&self, path: &str) -> Result<bool, NfsError> {
        match self.directory(path) {
            Ok(_) => Ok(true),
            Err(error) if error.status() == Some(Status::NOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the directory `path` with permissions `mode`.
    ///
    /// # Errors
    /// [`NfsError`]; status `EXIST` where the name is taken.
    pub fn make_directory(&self, path: &str, mode: u32) -> Result<(), NfsError> {
        let (parent, name) = self.shared.control().walk(&self.shared.root, path)?;
        self.once(path, "MKDIR", Status::EXIST, |control, deadline| match control.way.target.version {
            Version::V3 => control.call(
                directory::MKDIR,
                |w| directory::mkdir(w, &parent, name, mode),
                directory::read_mkdir,
                deadline,
            ),
            _ => {
                let build = |c: &mut Compound<'_>| c.make_directory(&parent, name, mode);
                control.compound(deadline, build, |results| results.directory_made())
            }
        })
    }

    /// Removes the empty directory `path`.
    ///
    /// # Errors
    /// [`NfsError`]; status `NOTEMPTY` where something is in it.
    pub fn remove_directory(&self, path: &str) -> Result<(), NfsError> {
        let (parent, name) = self.shared.control().walk(&self.shared.root, path)?;
        self.once(path, "RMDIR", Status::NOENT, |control, deadline| match control.way.target.version {
            Version::V3 => control.call(
                directory::RMDIR,
                |w| v3::named(w, &parent, name),
                directory::read_rmdir,
                deadline,
            ),
            _ => control.remove_v4(&parent, name, deadline),
        })
    }

    /// Gives the file at `old` the name `new`, at once and over whatever file had it.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn rename(&self, old: &str, new: &str) -> Result<(), NfsError> {
        let mut control = self.shared.control();
        let (from, old_name) = control.walk(&self.shared.root, old)?;
        let (to, new_name) = control.walk(&self.shared.root, new)?;
        drop(control);
        let (from, to) = ((&from, old_name), (&to, new_name));
        self.once(old, "RENAME", Status::NOENT, |control, deadline| match control.way.target.version {
            Version::V3 => control.call(
                directory::RENAME,
                |w| directory::rename(w, from, to),
                directory::read_rename,
                deadline,
            ),
            _ => control.compound(deadline, |c| c.rename(from, to), |results| results.renamed()),
        })
    }

    /// Space of the export's file system.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn space(&self) -> Result<Space, NfsError> {
        let root = self.shared.root.handle;
        self.on("", "FSSTAT", |control, deadline| match control.way.target.version {
            Version::V3 => control.call(v3::FSSTAT, |w| v3::of(w, &root), v3::read_fsstat, deadline),
            _ => control.space_v4(&root, deadline),
        })
    }

    /// The names in the directory `path`, in the server's order; `""` is the export itself.
    ///
    /// # Errors
    /// [`NfsError`].
    pub fn list(&self, path: &str) -> Result<Vec<String>, NfsError> {
        let handle = self.directory(path)?;
        let (mut names, mut place, mut restarts) = (Vec::new(), Place::default(), 0);
        loop {
            match self.on(path, "READDIR", |control, deadline| control.part(&handle, place, deadline)) {
                Ok(part) => {
                    let stuck = part.next == place && !part.end;
                    names.extend(part.names);
                    if part.end {
                        return Ok(names);
                    }
                    if stuck || names.len() > NAMES_MAX {
                        let malformed = Malformed::TooLong {
                            what: "a directory",
                            seen: names.len() as u64,
                            max: NAMES_MAX as u64,
                        };
                        let server = self.shared.way.target.server.clone();
                        return Err(NfsError::Malformed { server, malformed });
                    }
                    place = part.next;
                }
                // Its places have lost their meaning: it was changed.
                Err(error)
                    if matches!(error.status(), Some(Status::BAD_COOKIE | Status::NOT_SAME))
                        && restarts < RESTARTS_MAX =>
                {
                    restarts += 1;
                    names.clear();
                    place = Place::default();
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The handle of whatever is at `path`.
    fn directory(&self, path: &str) -> Result<Handle, NfsError> {
        let root = &self.shared.root;
        if path.trim_matches('/').is_empty() {
            return Ok(root.handle);
        }
        let (parent, name) = self.shared.control().walk(root, path)?;
        self.on(path, "LOOKUP", |control, deadline| control.find(&parent, name, deadline))
    }

    /// What a call does that must not be done twice. Where its reply was lost and it is repeated, `done` says that the first one did it.
    pub(super) fn once(
        &self,
        path: &str,
        what: &'static str,
        done: Status,
        mut attempt: impl FnMut(&mut Control, Nanos) -> Result<(), Trouble>,
    ) -> Result<(), NfsError> {
        let mut unsure = false;
        let limit = self.shared.way.limit;
        let result = self.shared.control().perform(what, limit, |control, deadline| {
            match attempt(control, deadline) {
                Err(Trouble::Fault(Fault::Refused { status, .. })) if unsure && status == done => Ok(()),
                other => {
                    unsure |= matches!(other, Err(Trouble::Lost(_)));
                    other
                }
            }
        })?;
        result.map_err(|fault| refused(path, fault))
    }
}

impl Control {
    pub(super) fn find(
        &mut self,
        directory: &Handle,
        name: &str,
        deadline: Nanos,
    ) -> Result<Handle, Trouble> {
        match self.way.target.version {
            Version::V3 => self.lookup_v3(directory, name, deadline),
            _ => self.lookup_v4(Some(directory), name, deadline),
        }
    }

    fn part(&mut self, handle: &Handle, place: Place, deadline: Nanos) -> Result<Listing, Trouble> {
        match self.way.target.version {
            Version::V3 => self.call(
                directory::READDIR,
                |w| directory::readdir(w, handle, place, PART_BYTES),
                directory::read_readdir,
                deadline,
            ),
            _ => self.compound(deadline, |c| c.list(handle, place, PART_BYTES), |results| results.listed()),
        }
    }
}
