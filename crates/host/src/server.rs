//! A private database server's folder: it belongs to an unprivileged user, the server's processes work in it, and both go together.
//!
//! Everything that the server writes lies in the folder, and each of its processes has its working directory there. So one undo,
//! noted before the folder is made, ends the processes and removes the files, also after a `kill -9` of ours or of theirs.

use crate::command;
use crate::error::{HostError, shell_word};
use crate::files;
use crate::journal::{CleanupResult, Journal, Step, Undo};
use crate::workspace::{MARKER, head};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

/// The only processes that are ever ended: a shell that somebody left in the folder is not ours.
const PROGRAMS: [&str; 5] = ["postgres", "initdb", "pg_ctl", "mariadbd", "mysqld"];
/// A killed process takes this many looks, 50 ms apart, to be gone.
const LOOKS: u32 = 100;

/// Whether this process has made a server.
static MADE: AtomicBool = AtomicBool::new(false);

/// Whether this process has made a server: its processes' work is ours then.
pub(crate) fn any() -> bool {
    MADE.load(Ordering::Relaxed)
}

/// Who runs a server: database servers refuse root, and should be nobody who owns anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// As `/etc/passwd` has it.
    pub name: String,
    uid: u32,
    gid: u32,
}

impl User {
    /// The first of `names` that this machine has, else `nobody`; none when we are not root, and servers are started as we are.
    ///
    /// # Errors
    /// Root, and none of them exists.
    pub fn unprivileged(names: &[&str]) -> Result<Option<Self>, HostError> {
        if !files::is_root() {
            return Ok(None);
        }
        let passwd = files::text("/etc/passwd").unwrap_or_default();
        let named = names.iter().chain(&["nobody"]).find_map(|name| Self::find(&passwd, name));
        named.map(Some).ok_or_else(|| HostError::Unsupported {
            what: "running a database server".into(),
            why: format!("it refuses to run as root, and there is no user {}", names.join(" or ")),
            instead: format!("make one: useradd --system {}", names.first().unwrap_or(&"nobody")),
        })
    }

    /// `name:password:uid:gid:…`
    fn find(passwd: &str, name: &str) -> Option<Self> {
        let mut fields = passwd
            .lines()
            .map(|line| line.split(':'))
            .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { name: name.to_owned(), uid, gid })
    }
}

/// How a server is asked to end in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `SIGINT`.
    Interrupt,
    /// `SIGTERM`.
    Terminate,
}

/// A folder in which a private server lives.
#[derive(Debug)]
pub struct ServerFolder {
    path: PathBuf,
    user: Option<User>,
    step: Step,
}

impl ServerFolder {
    /// Makes `parent/name`, which must not exist, for `user` (none: ourselves).
    ///
    /// 1. the journal notes how to end what works in it and to remove it; 2. the folder is made; 3. its marker is written. A kill
    ///    between 2 and 3 leaves an empty folder, which the removal may take without a marker. `parent` and what it lies in, as far
    ///    as they are ours, let others pass through.
    ///
    /// # Errors
    /// `user` cannot reach it; it exists; the system refuses.
    pub fn create(
        parent: &Path,
        name: &str,
        user: Option<User>,
        journal: &mut Journal,
    ) -> Result<Self, HostError> {
        let parent = std::fs::canonicalize(parent).map_err(|e| HostError::file("find", parent, &e))?;
        if let Some(user) = &user {
            let ours = |folder: &&Path| folder.join(MARKER).exists();
            for folder in parent.ancestors().filter(ours) {
                let passable = std::fs::Permissions::from_mode(0o711);
                std::fs::set_permissions(folder, passable)
                    .map_err(|e| HostError::file("open", folder, &e))?;
            }
            reachable(&parent, user)?;
        }
        MADE.store(true, Ordering::Relaxed);
        let path = parent.join(name);
        let step = journal.will(Undo::RemoveServer(path.clone()))?;
        let made = |act, e: std::io::Error| HostError::file(act, &path, &e);
        std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(|e| made("create", e))?;
        std::fs::write(path.join(MARKER), head(journal.id())).map_err(|e| made("mark", e))?;
        files::sync_directory(&path)?;
        if let Some(user) = &user {
            std::os::unix::fs::chown(&path, Some(user.uid), Some(user.gid))
                .map_err(|e| made("give away", e))?;
        }
        Ok(Self { path, user, step })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal's step, to remove the server before the run ends.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Makes a directory in it that belongs to the server's user alone.
    ///
    /// # Errors
    /// The system refuses.
    pub fn directory(&self, name: &str) -> Result<PathBuf, HostError> {
        let path = self.path.join(name);
        let make = || -> std::io::Result<()> {
            std::fs::DirBuilder::new().mode(0o700).create(&path)?;
            match &self.user {
                Some(user) => std::os::unix::fs::lchown(&path, Some(user.uid), Some(user.gid)),
                None => Ok(()),
            }
        };
        make().map_err(|e| HostError::file("create", &path, &e))?;
        Ok(path)
    }

    /// Processes of database servers that work in it.
    pub fn processes(&self) -> Vec<i32> {
        processes_of(&self.path)
    }

    /// Writes a file of settings that the server may read.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, HostError> {
        let path = self.path.join(name);
        let write = || -> std::io::Result<()> {
            let mut options = std::fs::OpenOptions::new();
            // The folder is not ours alone: a link in the file's place is not followed.
            options.write(true).create(true).truncate(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
            let mut file = options.mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())?;
            match &self.user {
                Some(user) => std::os::unix::fs::fchown(&file, Some(user.uid), Some(user.gid)),
                None => Ok(()),
            }
        };
        write().map_err(|e| HostError::file("write", &path, &e))?;
        Ok(path)
    }

    /// Starts the server, or a program of its package, as its user, in the folder; what it says goes to the file `log` there. The
    /// caller waits for the process; whoever does not leaves it to the undo.
    ///
    /// # Errors
    /// The system cannot start it.
    pub fn start(&self, program: &Path, arguments: &[&str], log: &str) -> Result<Child, HostError> {
        let log = self.write(log, "")?;
        let open = || -> std::io::Result<Child> {
            let mut options = std::fs::OpenOptions::new();
            let out = options.append(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(&log)?;
            let err = out.try_clone()?;
            self.command(program, arguments).stdout(out).stderr(err).spawn()
        };
        open().map_err(|e| HostError::CommandFailed {
            command: text(program, arguments),
            status: None,
            stderr: e.to_string(),
        })
    }

    /// Asks the server to end: PostgreSQL's fast shutdown is an interrupt, MariaDB's orderly one a termination.
    ///
    /// # Errors
    /// The system refuses.
    pub fn ask_to_end(&self, server: &Child, by: Ending) -> Result<(), HostError> {
        let signal = match by {
            Ending::Interrupt => Signal::INT,
            Ending::Terminate => Signal::TERM,
        };
        kill_process(Pid::from_child(server), signal)
            .map_err(|e| HostError::call("end the server in", &self.path, e))
    }

    /// In a process group of its own: Ctrl-C in the terminal is for us, and we stop the server in order.
    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.path)
            .env("LC_ALL", "C")
            .env("HOME", &self.path)
            .env("TMPDIR", &self.path)
            .stdin(Stdio::null())
            .process_group(0);
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    }
}

fn text(program: &Path, arguments: &[&str]) -> String {
    let words = std::iter::once(program.to_string_lossy()).chain(arguments.iter().map(|a| (*a).into()));
    words.map(|word| shell_word(&word)).collect::<Vec<_>>().join(" ")
}

/// Whether `user` may pass through every directory down to `folder`.
fn reachable(folder: &Path, user: &User) -> Result<(), HostError> {
    for directory in folder.ancestors() {
        let meta = std::fs::metadata(directory).map_err(|e| HostError::file("look at", directory, &e))?;
        let bit = match (meta.uid() == user.uid, meta.gid() == user.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        if meta.mode() & bit == 0 {
            let shown = directory.display();
            return Err(HostError::Unsupported {
                what: format!("a private server in {}", folder.display()),
                why: format!("it runs as user {}, who may not pass through {shown}", user.name),
                instead: format!(
                    "name another directory with --dir, or let users pass: chmod o+x {}",
                    shell_word(&directory.to_string_lossy())
                ),
            });
        }
    }
    Ok(())
}

/// Ends the server in the folder at `path`, if its marker names `journal`, and removes the folder with all that is in it.
pub(crate) fn remove(path: &Path, journal: &str) -> Result<CleanupResult, HostError> {
    let entries = match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(CleanupResult::AlreadyGone),
        Ok(meta) if meta.is_dir() => files::names(path),
        _ => Vec::new(),
    };
    // A kill before or inside the marker: nothing else was put there yet.
    let unmarked = entries.is_empty() || entries == [MARKER];
    if !unmarked && files::text(path.join(MARKER)).as_deref() != Some(head(journal).trim_end()) {
        return Err(HostError::NotOurs { path: path.to_owned(), why: "it has no marker of this run".into() });
    }
    end_processes(path)?;
    remove_shared_memory(path);
    // The marker goes last: a kill in between leaves a folder that is still known as ours.
    for name in entries.iter().filter(|name| *name != MARKER) {
        let entry = path.join(name);
        let is_folder = std::fs::symlink_metadata(&entry).is_ok_and(|meta| meta.is_dir());
        let removed = if is_folder { std::fs::remove_dir_all(&entry) } else { std::fs::remove_file(&entry) };
        match removed {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(HostError::file("remove", &entry, &e));
            }
            _ => {}
        }
    }
    std::fs::remove_dir_all(path).map_err(|e| HostError::file("remove", path, &e))?;
    files::sync_directory(&files::parent(path))?;
    Ok(CleanupResult::Undone)
}

/// Kills until nobody works in the folder: who dies may just have started another.
fn end_processes(folder: &Path) -> Result<(), HostError> {
    for _ in 0..LOOKS {
        let left = processes_in(folder);
        if left.is_empty() {
            return Ok(());
        }
        for pid in left {
            // One that ended just now need not be killed.
            let _ = kill_process(pid, Signal::KILL);
        }
        clock::sleep(Nanos::millis(50));
    }
    Err(HostError::call("end the server in", folder, rustix::io::Errno::BUSY))
}

/// Processes of database servers that work in `folder`.
pub fn processes_of(folder: &Path) -> Vec<i32> {
    processes_in(folder).into_iter().map(|pid| pid.as_raw_nonzero().get()).collect()
}

fn processes_in(folder: &Path) -> Vec<Pid> {
    let is_server = |process: &Path| {
        std::fs::read_link(process.join("exe")).is_ok_and(|exe| {
            let name = exe.file_name().unwrap_or_default().to_string_lossy().into_owned();
            PROGRAMS.contains(&name.trim_end_matches(" (deleted)"))
        })
    };
    let works_there =
        |process: &Path| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    let processes = files::names("/proc").into_iter().filter_map(|name| name.parse::<i32>().ok());
    processes
        .filter(|pid| {
            let process = PathBuf::from(format!("/proc/{pid}"));
            works_there(&process) && is_server(&process)
        })
        .filter_map(Pid::from_raw)
        .collect()
}

/// PostgreSQL keeps a few bytes in System V shared memory, which outlive it after a kill: line 7 of its `postmaster.pid` names
/// them. They go only if its own process made them and nobody is attached.
fn remove_shared_memory(folder: &Path) {
    for data in files::names(folder) {
        let Some(text) = files::text(folder.join(data).join("postmaster.pid")) else { continue };
        let mut lines = text.lines();
        let pid = lines.next().map(str::trim).unwrap_or_default().to_owned();
        let Some(id) = lines.nth(5).and_then(|line| line.split_whitespace().nth(1)) else { continue };
        let table = files::text("/proc/sysvipc/shm").unwrap_or_default();
        // key shmid perms size cpid lpid nattch …
        let is_left = table.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(1) == Some(&id) && fields.get(4) == Some(&pid.as_str()) && fields.get(6) == Some(&"0")
        });
        if is_left {
            // Fifty-six bytes that stay until the next boot are no reason to keep the journal.
            let _ = command::run("ipcrm", &["-m", id], "util-linux", 10);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgres:x:107:115::/var/lib/postgresql:/bin/bash\n";
        assert_eq!(
            User::find(passwd, "postgres"),
            Some(User { name: "postgres".into(), uid: 107, gid: 115 })
        );
        assert_eq!(User::find(passwd, "post"), None);
    }

    #[test]
    fn who_may_not_pass_is_told_what_to_type() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let user = User { name: "somebody".into(), uid: 4_000_000, gid: 4_000_000 };
        let refused = reachable(folder.path(), &user).unwrap_err().to_string();
        assert!(refused.contains("user somebody") && refused.contains("chmod o+x"), "{refused}");
    }

    #[test]
    fn removes_a_folder_with_all_that_is_in_it_and_no_other() {
        let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut journal = Journal::open_in(state.path(), "test").unwrap();
        let server = ServerFolder::create(data.path(), "server", None, &mut journal).unwrap();
        std::fs::create_dir_all(server.path().join("data/base/1")).unwrap();
        std::fs::write(server.path().join("data/base/1/2619"), "rows").unwrap();
        std::os::unix::fs::symlink(data.path(), server.path().join("data/pg_wal")).unwrap();
        std::fs::write(data.path().join("theirs"), "precious").unwrap();
        assert!(matches!(remove(server.path(), "another"), Err(HostError::NotOurs { .. })));
        assert!(remove(server.path(), "").is_err() && server.path().join("data").exists());
        assert_eq!(journal.undo(server.step()), Ok(CleanupResult::Undone));
        assert_eq!(files::names(data.path()), ["theirs"]);
        assert_eq!(remove(server.path(), journal.id()), Ok(CleanupResult::AlreadyGone));
    }

    #[test]
    fn a_shell_in_the_folder_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sleep").arg("30").current_dir(folder.path()).spawn().unwrap();
        assert!(processes_in(folder.path()).is_empty());
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
