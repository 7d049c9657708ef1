//! A lock that is a file: whoever makes it has it, and its content says who that is.
//!
//! A process that was killed leaves it behind. The next one on the same machine sees that its owner is gone (the process number and
//! when it began, or another boot) and takes it; of another machine nobody here can tell, so a person has to. The alternative, a share
//! reservation that ends with its lease, exists in version 4 alone, and would keep a restart waiting for a lease's time.

use super::disk::{Callers, NfsDisk};
use super::{FILE_MODE, WRITING, refused};
use crate::Status;
use crate::client::{Mount, Open};
use io::sim::Disk;
use io::{IoError, StorageLock};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use units::{Rng, Seed};

/// Longest content that is looked at.
const CONTENT_BYTES_MAX: u64 = 1024;
/// How often a lock is tried whose owner was gone.
const TRIES: u32 = 3;

/// Locks of this process: the number of a process alone does not tell whether one of its locks was given back.
static OURS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Who has a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    machine: String,
    boot: String,
    process: u32,
    /// When it began, in the kernel's ticks since the boot.
    began: u64,
    /// This lock among those of the process.
    lock: u64,
}

impl Owner {
    fn me() -> Self {
        let process = std::process::id();
        let text = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
        let machine = text("/etc/machine-id").filter(|id| !id.is_empty());
        Self {
            machine: machine
                .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned()),
            boot: text("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            process,
            began: began(process).unwrap_or(0),
            lock: Rng::new(Seed::draw()).next_u64(),
        }
    }

    /// One line: `process 12 of machine …, boot …, begun 34, lock 56`.
    fn line(&self) -> String {
        let Self { machine, boot, process, began, lock } = self;
        format!("process {process} of machine {machine}, boot {boot}, begun {began}, lock {lock}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix("process ")?;
        let (process, rest) = rest.split_once(" of machine ")?;
        let (machine, rest) = rest.split_once(", boot ")?;
        let (boot, rest) = rest.split_once(", begun ")?;
        let (began, lock) = rest.split_once(", lock ")?;
        Some(Self {
            machine: machine.to_owned(),
            boot: boot.to_owned(),
            process: process.parse().ok()?,
            began: began.parse().ok()?,
            lock: lock.parse().ok()?,
        })
    }

    /// Whether nobody holds this one any more, as far as `me` can know.
    fn is_gone(&self, me: &Self) -> bool {
        if self.machine != me.machine {
            return false;
        }
        if self.boot != me.boot {
            return true;
        }
        if self.process == me.process && self.began == me.began {
            let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
            return !ours.contains(&self.lock);
        }
        began(self.process) != Some(self.began)
    }
}

/// When a process began: field 22 of its `stat`, behind a name that may contain anything. None when it is gone.
fn began(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(19)?.parse().ok()
}

/// Gives the lock back when it is dropped.
struct Held {
    mount: Mount,
    name: String,
    lock: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        OURS.lock().unwrap_or_else(PoisonError::into_inner).retain(|lock| *lock != self.lock);
        let _ = self.mount.remove(&self.name);
    }
}

/// Takes the lock `name` of the export, called `path` in messages.
pub(super) fn take(
    mount: &Mount,
    path: &Path,
    name: &str,
    callers: &Arc<Callers>,
) -> Result<StorageLock, IoError> {
    let me = Owner::me();
    for _ in 0..TRIES {
        match mount.file(name, Open::New { mode: FILE_MODE }) {
            Ok(file) => {
                OURS.lock().unwrap_or_else(PoisonError::into_inner).push(me.lock);
                let held = Held { mount: mount.clone(), name: name.to_owned(), lock: me.lock };
                let disk = NfsDisk::new(path, file, WRITING, callers.clone());
                let line = me.line();
                disk.checked("write", 0, line.len(), disk.write_at_dsync(line.as_bytes(), 0))?;
                return Ok(StorageLock::new(held));
            }
            Err(error) if error.status() == Some(Status::EXIST) => {}
            Err(error) => return Err(refused(path, "create", &error)),
        }
        match owner(mount, path, name, callers)? {
            Some(owner) if owner.is_gone(&me) => clear(mount, path, name, &owner, callers)?,
            owner => return Err(locked(path, owner.as_ref(), &me)),
        }
    }
    Err(locked(path, None, &me))
}

/// Who is named in the lock; none when it says nothing (yet), or is gone by now.
fn owner(mount: &Mount, path: &Path, name: &str, callers: &Arc<Callers>) -> Result<Option<Owner>, IoError> {
    let file = match mount.file(name, Open::Read) {
        Ok(file) => file,
        Err(error) if error.status() == Some(Status::NOENT) => return Ok(None),
        Err(error) => return Err(refused(path, "open", &error)),
    };
    let disk = NfsDisk::new(path, file, WRITING, callers.clone());
    let mut content = vec![0; disk.bytes().min(CONTENT_BYTES_MAX) as usize];
    disk.checked("read", 0, content.len(), disk.read_at(&mut content, 0))?;
    Ok(Owner::parse(&String::from_utf8_lossy(&content)))
}

/// Takes a lock away whose owner is gone. 1. it gets a name of our own, which one of several can do; 2. it is still the one that was
/// looked at: another process may have cleared it and made its own in between, which then gets its name back; 3. it is removed.
fn clear(
    mount: &Mount,
    path: &Path,
    name: &str,
    gone: &Owner,
    callers: &Arc<Callers>,
) -> Result<(), IoError> {
    let aside = format!("{name}.{:016x}", Rng::new(Seed::draw()).next_u64());
    match mount.rename(name, &aside) {
        Ok(()) => {}
        Err(error) if error.status() == Some(Status::NOENT) => return Ok(()),
        Err(error) => return Err(refused(path, "rename", &error)),
    }
    if owner(mount, path, &aside, callers)?.as_ref() == Some(gone) {
        return mount.remove(&aside).map_err(|error| refused(path, "remove", &error));
    }
    mount.rename(&aside, name).map_err(|error| refused(path, "rename", &error))
}

fn locked(path: &Path, owner: Option<&Owner>, me: &Owner) -> IoError {
    match owner {
        Some(owner) if owner.machine == me.machine => {
            IoError::Locked { path: path.to_path_buf(), holder: Some(owner.process) }
        }
        owner => IoError::Elsewhere {
            path: path.to_path_buf(),
            call: "lock",
            errno: 11,
            said: format!(
                "{} is locked by {}; stop that one first, or use another directory; if it is gone for good, remove the file {}",
                path.display(),
                owner.map_or_else(
                    || "somebody who is not named in it".to_owned(),
                    |owner| format!("process {} of another machine, {}", owner.process, owner.machine)
                ),
                path.display()
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_owner_is_gone() {
        let me = Owner::me();
        assert_eq!(Owner::parse(&me.line()), Some(me.clone()));
        assert_eq!(Owner::parse(""), None);
        assert!(me.began > 0 && me.is_gone(&me), "it is not among those that are held");
        OURS.lock().expect("no panic").push(me.lock);
        assert!(!me.is_gone(&me));
        let parent = std::os::unix::process::parent_id();
        let other = |process, began| Owner { process, began, ..me.clone() };
        assert!(!other(parent, began(parent).expect("it runs")).is_gone(&me));
        assert!(other(parent, 1).is_gone(&me), "the number was given to another process since");
        assert!(Owner { boot: "before".into(), ..other(parent, 1) }.is_gone(&me));
        let far = Owner { machine: "far".into(), ..other(parent, 1) };
        assert!(!far.is_gone(&me), "nobody here can tell");
        let said = locked(Path::new("nfs://here/vol/lock"), Some(&far), &me).to_string();
        assert!(said.contains("of another machine, far") && said.contains("remove the file"), "{said}");
    }
}
