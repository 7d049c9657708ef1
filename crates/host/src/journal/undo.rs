//! How each kind of change is taken back. Each looks first whether its change is there: undoing twice does nothing.

use super::cleanup::CleanupResult;
use crate::command;
use crate::error::{HostError, shell_word};
use crate::facts::{mounts, stack};
use crate::files;
use crate::{server, trace, workspace};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use serde_json::{Value, json};
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use units::{Nanos, clock};

/// A change to take back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Remove a workspace that we are about to create: only with our marker in it, only the files that it lists.
    RemoveDir(PathBuf),
    /// End the private server in a folder that we are about to create, and remove it with all that is in it: only with our marker.
    RemoveServer(PathBuf),
    /// Detach a loop device, if it still shows that file.
    DetachLoop {
        /// `/dev/loopN`.
        device: PathBuf,
        /// The file behind it.
        backing: PathBuf,
    },
    /// Unmount, if the mount on top is still of that source.
    Unmount {
        /// The mount point.
        path: PathBuf,
        /// The device, symlinks resolved.
        source: PathBuf,
    },
    /// Write the old value back into a setting of `/sys` or `/proc/sys`, if it still has ours.
    WriteSysfs {
        /// The setting.
        path: PathBuf,
        /// What it was, as written (`none`, not `[none] mq-deadline`).
        old: String,
        /// What we are about to write.
        new: String,
        /// Settings that the kernel changes along with it, and what they were: a change of scheduler resets the queue's size
        /// and forgets the tuning of the scheduler before it.
        beside: Vec<(PathBuf, String)>,
    },
    /// Write a line that clears a limit (`7:0 0`, `8:0 riops=max`) into a control group's file.
    ClearLimit {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// Take a controller back from the groups below (version 2).
    DisableController {
        /// A `cgroup.subtree_control`.
        path: PathBuf,
        /// `io`.
        controller: String,
    },
    /// Remove a control group that we are about to create; processes in it go to the group above.
    RemoveCgroup(PathBuf),
    /// Remove an instance of the kernel's tracer that we are about to make, with its buffers and events.
    RemoveTraceInstance(PathBuf),
    /// Drop a schema that we are about to make in a server of somebody else's, by that server's client program.
    DropSchema {
        /// `redoubt_` and eight digits.
        schema: String,
        /// `psql` or `mariadb`, with the words that get it there; no password is among them.
        client: Vec<String>,
    },
    /// Remove a directory that we are about to create on an NFS server, where our own client put it.
    RemoveOnServer {
        /// Beginning with `nfs://`.
        folder: PathBuf,
        /// How that server is reached, for whoever speaks with it ([`super::OnServer`]).
        by: String,
    },
    /// Blank a device that the user named and that was free, if the file system on it still has our label.
    Blank {
        /// The device, symlinks resolved.
        device: PathBuf,
        /// The label that no other file system has.
        label: String,
    },
}

impl Undo {
    /// The file or directory on disk that would be removed; none for what a reboot undoes by itself.
    pub(super) fn path_on_disk(&self) -> Option<&Path> {
        match self {
            Self::RemoveDir(path) | Self::RemoveServer(path) => Some(path),
            _ => None,
        }
    }

    /// Whether nothing of it is left after this machine was started again.
    pub(super) fn is_undone_by_a_reboot(&self) -> bool {
        self.path_on_disk().is_none()
            && !matches!(self, Self::DropSchema { .. } | Self::RemoveOnServer { .. })
    }

    /// Refuses a removal of what exists already: it is not ours.
    pub(super) fn refuse_foreign(&self) -> Result<(), HostError> {
        let (Self::RemoveDir(path)
        | Self::RemoveServer(path)
        | Self::RemoveCgroup(path)
        | Self::RemoveTraceInstance(path)) = self
        else {
            return Ok(());
        };
        if !path.is_absolute() {
            return Err(HostError::NotOurs {
                path: path.clone(),
                why: "a journal holds absolute paths only".into(),
            });
        }
        match std::fs::symlink_metadata(path) {
            Ok(_) => Err(HostError::AlreadyThere { path: path.clone() }),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(HostError::file("look for", path, &e)),
        }
    }

    /// Takes the change back. `journal`: id that a workspace's marker must carry.
    ///
    /// # Errors
    /// It is still there, and why.
    pub(super) fn perform(&self, journal: &str) -> Result<CleanupResult, HostError> {
        match self {
            Self::RemoveDir(path) => workspace::remove(path, journal),
            Self::RemoveServer(path) => server::remove(path, journal),
            Self::DetachLoop { device, backing } => detach_loop(device, backing),
            Self::Unmount { path, source } => unmount(path, source),
            Self::WriteSysfs { path, old, new, beside } => write_back(path, old, new, beside),
            Self::ClearLimit { path, line } => clear_limit(path, line),
            Self::DisableController { path, controller } => disable_controller(path, controller),
            Self::RemoveCgroup(path) => remove_cgroup(path),
            Self::RemoveTraceInstance(path) => remove_trace_instance(path),
            Self::DropSchema { schema, client } => drop_schema(schema, client),
            Self::RemoveOnServer { .. } => Ok(CleanupResult::LeftAlone(
                "it is on a server; `redoubt cleanup` asks it to remove the directory".into(),
            )),
            Self::Blank { device, label } => blank_labelled(device, label),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::RemoveDir(path) => json!({"remove_dir": path_json(path)}),
            Self::RemoveServer(path) => json!({"remove_server": path_json(path)}),
            Self::DetachLoop { device, backing } => {
                json!({"detach_loop": path_json(device), "backing": path_json(backing)})
            }
            Self::Unmount { path, source } => {
                json!({"unmount": path_json(path), "source": path_json(source)})
            }
            Self::WriteSysfs { path, old, new, beside } => {
                let beside: Vec<Value> =
                    beside.iter().map(|(path, old)| json!([path_json(path), old])).collect();
                json!({"write": path_json(path), "old": old, "new": new, "beside": beside})
            }
            Self::ClearLimit { path, line } => json!({"clear_limit": path_json(path), "line": line}),
            Self::DisableController { path, controller } => {
                json!({"disable_controller": path_json(path), "line": controller})
            }
            Self::RemoveCgroup(path) => json!({"remove_cgroup": path_json(path)}),
            Self::RemoveTraceInstance(path) => json!({"remove_trace_instance": path_json(path)}),
            Self::DropSchema { schema, client } => json!({"drop_schema": schema, "client": client}),
            Self::RemoveOnServer { folder, by } => {
                json!({"remove_on_server": path_json(folder), "by": by})
            }
            Self::Blank { device, label } => json!({"blank": path_json(device), "label": label}),
        }
    }

    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let path = |name: &str| json.get(name).and_then(json_path);
        let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
        let detail = ["backing", "source", "old", "new", "line", "beside", "label", "client", "by"];
        let kind = json.as_object()?.keys().find(|k| !detail.contains(&k.as_str()))?;
        let first = path(kind)?;
        match kind.as_str() {
            "remove_dir" => Some(Self::RemoveDir(first)),
            "remove_server" => Some(Self::RemoveServer(first)),
            "detach_loop" => Some(Self::DetachLoop { device: first, backing: path("backing")? }),
            "unmount" => Some(Self::Unmount { path: first, source: path("source")? }),
            "write" => Some(Self::WriteSysfs {
                path: first,
                old: text("old")?,
                new: text("new")?,
                beside: beside_json(json.get("beside")?)?,
            }),
            "clear_limit" => Some(Self::ClearLimit { path: first, line: text("line")? }),
            "disable_controller" => Some(Self::DisableController { path: first, controller: text("line")? }),
            "remove_cgroup" => Some(Self::RemoveCgroup(first)),
            "remove_trace_instance" => Some(Self::RemoveTraceInstance(first)),
            "drop_schema" => {
                let words =
                    json.get("client")?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
                Some(Self::DropSchema { schema: text("drop_schema")?, client: words.collect::<Option<_>>()? })
            }
            "remove_on_server" => Some(Self::RemoveOnServer { folder: first, by: text("by")? }),
            "blank" => Some(Self::Blank { device: first, label: text("label")? }),
            _ => None,
        }
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveDir(path) => write!(f, "remove directory {}", path.display()),
            Self::RemoveServer(path) => write!(f, "end the server in {} and remove it", path.display()),
            Self::DetachLoop { device, backing } => {
                write!(f, "detach {} from {}", device.display(), backing.display())
            }
            Self::Unmount { path, source } => {
                write!(f, "unmount {} from {}", source.display(), path.display())
            }
            Self::WriteSysfs { path, old, .. } => write!(f, "set {} back to {old}", path.display()),
            Self::ClearLimit { path, line } => write!(f, "clear the limit in {} ({line})", path.display()),
            Self::DisableController { path, controller } => {
                write!(f, "take {controller} back from {}", path.display())
            }
            Self::RemoveCgroup(path) => write!(f, "remove control group {}", path.display()),
            Self::RemoveTraceInstance(path) => write!(f, "remove the trace instance {}", path.display()),
            Self::DropSchema { schema, client } => {
                let program = client.first().map_or("the server's client", String::as_str);
                write!(f, "drop the schema {schema} with {program}")
            }
            Self::RemoveOnServer { folder, .. } => write!(f, "remove directory {}", folder.display()),
            Self::Blank { device, label } => {
                write!(f, "remove the file system {label} from {}", device.display())
            }
        }
    }
}

/// A path as JSON: text, or its bytes when it is no UTF-8.
pub(super) fn path_json(path: &Path) -> Value {
    path.to_str().map_or_else(|| json!(path.as_os_str().as_bytes()), |text| json!(text))
}

/// Pairs of path and value.
fn beside_json(json: &Value) -> Option<Vec<(PathBuf, String)>> {
    let pair = |v: &Value| Some((json_path(v.get(0)?)?, v.get(1)?.as_str()?.to_owned()));
    json.as_array()?.iter().map(pair).collect()
}

/// The reverse of [`path_json`].
pub(super) fn json_path(json: &Value) -> Option<PathBuf> {
    if let Some(text) = json.as_str() {
        return Some(PathBuf::from(text));
    }
    let byte = |v: &Value| v.as_u64().and_then(|n| u8::try_from(n).ok());
    let bytes: Option<Vec<u8>> = json.as_array()?.iter().map(byte).collect();
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes?)))
}

/// The file that a loop device shows, as its maker named it.
pub(crate) fn loop_backing(device: &Path) -> Option<PathBuf> {
    let name = device.file_name()?.to_string_lossy().into_owned();
    let shown = files::text(format!("/sys/block/{name}/loop/backing_file"))?;
    Some(PathBuf::from(shown.trim_end_matches(" (deleted)")))
}

fn detach_loop(device: &Path, backing: &Path) -> Result<CleanupResult, HostError> {
    // The number may have been given to somebody else's file meanwhile.
    if loop_backing(device).as_deref() != Some(backing) {
        return Ok(CleanupResult::AlreadyGone);
    }
    command::run("losetup", &["-d", &device.to_string_lossy()], "util-linux", 20)?.success()?;
    // A detach of a device that is still open is only noted by the kernel and happens at the last close.
    let gone = || loop_backing(device).as_deref() != Some(backing);
    if patiently(gone) {
        Ok(CleanupResult::Undone)
    } else {
        Err(HostError::call("detach", device, Errno::BUSY))
    }
}

/// Drops a schema that carries our name, by the server's own client, which finds its password where it always does.
fn drop_schema(schema: &str, client: &[String]) -> Result<CleanupResult, HostError> {
    let ours = schema.strip_prefix("redoubt_").is_some_and(|id| id.chars().all(|c| c.is_ascii_hexdigit()));
    let (program, statement, package) = match client.first().map(String::as_str) {
        Some("psql") if ours => {
            ("psql", format!("drop schema if exists {schema} cascade"), "postgresql-client")
        }
        Some("mariadb") if ours => ("mariadb", format!("drop database if exists {schema}"), "mariadb-client"),
        _ => {
            return Ok(CleanupResult::LeftAlone(format!(
                "{schema} is no schema of ours, or its client is not known"
            )));
        }
    };
    let option = if program == "psql" { "-c" } else { "-e" };
    let mut arguments: Vec<&str> = client[1..].iter().map(String::as_str).collect();
    arguments.extend([option, &statement]);
    match command::run(program, &arguments, package, 30).and_then(|done| done.success()) {
        Ok(_) => Ok(CleanupResult::Undone),
        Err(error) => Ok(CleanupResult::Failed(format!(
            "{error}. Where it asks for a password, give it one (PGPASSWORD or ~/.pgpass, MYSQL_PWD or ~/.my.cnf) and run \
             `redoubt cleanup` again; or drop it there: {statement}"
        ))),
    }
}

/// Unmounts only what we mounted: the mount on top must still be of `source`.
fn unmount(path: &Path, source: &Path) -> Result<CleanupResult, HostError> {
    let is_ours = |m: &mounts::Mount| {
        let number = stack::block_number(source);
        Path::new(&m.source) == source
            || number.is_some_and(|n| stack::block_number(Path::new(&m.source)) == Some(n))
    };
    let there = || mounts::all().into_iter().filter(|m| m.mount_point == path).collect::<Vec<_>>();
    let mounted = there();
    let ours = mounted.iter().filter(|m| is_ours(m)).count();
    if ours == 0 {
        return Ok(CleanupResult::AlreadyGone);
    }
    if let Some(top) = mounted.last().filter(|m| !is_ours(m)) {
        return Ok(CleanupResult::LeftAlone(format!(
            "{} was mounted over it by somebody else; unmount that first: umount {}",
            top.source,
            shell_word(&path.to_string_lossy())
        )));
    }
    let mut last = Errno::BUSY;
    let done = patiently(|| match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
        Ok(()) => true,
        Err(errno) => {
            last = errno;
            errno != Errno::BUSY
        }
    });
    if done && there().iter().filter(|m| is_ours(m)).count() < ours {
        Ok(CleanupResult::Undone)
    } else {
        Err(HostError::call("unmount", path, last))
    }
}

/// Tries for up to ten seconds: children of a killed run take a moment to die, and where processors are scarce the kernel takes seconds
/// to let go of the files of a ring that was closed.
fn patiently(mut attempt: impl FnMut() -> bool) -> bool {
    for _ in 0..200 {
        if attempt() {
            return true;
        }
        clock::sleep(Nanos::millis(50));
    }
    attempt()
}

/// Writes the old value only over our own: what somebody else chose since is theirs. What changed along with it follows.
fn write_back(
    path: &Path,
    old: &str,
    new: &str,
    beside: &[(PathBuf, String)],
) -> Result<CleanupResult, HostError> {
    let mut result = match crate::change::read_setting(path) {
        None => return Ok(CleanupResult::AlreadyGone),
        Some(now) if now == old => CleanupResult::AlreadyGone,
        Some(now) if now == new => files::write_setting(path, old).map(|()| CleanupResult::Undone)?,
        Some(now) => {
            return Ok(CleanupResult::LeftAlone(format!(
                "changed by somebody else: it was {old}, we set {new}, now it is {now}; to have the old value back: \
                 echo {} | sudo tee {}",
                shell_word(old),
                shell_word(&path.to_string_lossy())
            )));
        }
    };
    for (path, old) in beside {
        if crate::change::read_setting(path).is_some_and(|now| now != *old) {
            files::write_setting(path, old)?;
            result = CleanupResult::Undone;
        }
    }
    Ok(result)
}

fn clear_limit(path: &Path, line: &str) -> Result<CleanupResult, HostError> {
    let number = line.split(' ').next().unwrap_or(line);
    let limited = files::text(path).is_some_and(|t| t.lines().any(|l| l.split(' ').next() == Some(number)));
    if !limited {
        return Ok(CleanupResult::AlreadyGone);
    }
    match files::write_setting(path, line) {
        // The device is gone, and its limits with it.
        Err(HostError::File { errno: 6 | 19, .. }) => Ok(CleanupResult::AlreadyGone),
        done => done.map(|()| CleanupResult::Undone),
    }
}

fn disable_controller(path: &Path, controller: &str) -> Result<CleanupResult, HostError> {
    if !files::text(path).is_some_and(|t| t.split_whitespace().any(|c| c == controller)) {
        return Ok(CleanupResult::AlreadyGone);
    }
    match files::write_setting(path, &format!("-{controller}")) {
        // Somebody else's group uses it by now; then it is theirs to keep.
        Err(HostError::File { errno: 16, .. }) => Ok(CleanupResult::AlreadyGone),
        done => done.map(|()| CleanupResult::Undone),
    }
}

/// What has another label, or none, is not the file system that we made.
fn blank_labelled(device: &Path, label: &str) -> Result<CleanupResult, HostError> {
    let arguments = ["-p", "-s", "LABEL", "-o", "value", &device.to_string_lossy()];
    let found = command::run("blkid", &arguments, "util-linux", 20)?;
    if found.stdout.trim() != label {
        return Ok(CleanupResult::AlreadyGone);
    }
    crate::change::blank(device).map(|()| CleanupResult::Undone)
}

fn remove_trace_instance(path: &Path) -> Result<CleanupResult, HostError> {
    let mut last = Ok(false);
    // Who reads its buffers still, holds it for a moment.
    patiently(|| {
        last = trace::instance::remove(path);
        !matches!(last, Err(HostError::File { errno: 16, .. }))
    });
    last.map(|removed| if removed { CleanupResult::Undone } else { CleanupResult::AlreadyGone })
}

fn remove_cgroup(path: &Path) -> Result<CleanupResult, HostError> {
    if !path.exists() {
        return Ok(CleanupResult::AlreadyGone);
    }
    let named = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("redoubt-"));
    if !named {
        return Err(HostError::NotOurs {
            path: path.to_owned(),
            why: "its name does not begin with redoubt-".into(),
        });
    }
    let above = files::parent(path).join("cgroup.procs");
    let removed = patiently(|| {
        for pid in files::text(path.join("cgroup.procs")).unwrap_or_default().lines() {
            // A process that ends just now cannot be moved and need not be.
            let _ = files::write_setting(&above, pid);
        }
        std::fs::remove_dir(path).is_ok()
    });
    if removed { Ok(CleanupResult::Undone) } else { Err(HostError::call("remove", path, Errno::BUSY)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_comes_back_from_json() {
        let odd = PathBuf::from(std::ffi::OsString::from_vec(vec![b'/', 0xff, b'x']));
        for undo in [
            Undo::RemoveDir(odd),
            Undo::RemoveDir("/data/redoubt-abc".into()),
            Undo::RemoveServer("/data/redoubt-abc/postgres".into()),
            Undo::DetachLoop { device: "/dev/loop3".into(), backing: "/data/my \"disk\"".into() },
            Undo::Unmount { path: "/mnt/x".into(), source: "/dev/loop3".into() },
            Undo::WriteSysfs {
                path: "/sys/block/vda/queue/scheduler".into(),
                old: "none".into(),
                new: "kyber".into(),
                beside: vec![("/sys/block/vda/queue/nr_requests".into(), "64".into())],
            },
            Undo::ClearLimit {
                path: "/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device".into(),
                line: "7:0 0".into(),
            },
            Undo::DisableController {
                path: "/sys/fs/cgroup/cgroup.subtree_control".into(),
                controller: "io".into(),
            },
            Undo::RemoveCgroup("/sys/fs/cgroup/blkio/redoubt-x".into()),
            Undo::RemoveTraceInstance("/sys/kernel/tracing/instances/redoubt-x".into()),
            Undo::RemoveOnServer {
                folder: "nfs://filer/vol/redoubt-nfs-x".into(),
                by: "server: filer\npath: 192.0.2.1\n".into(),
            },
            Undo::Blank { device: "/dev/sdb".into(), label: "redoubt0a1b2".into() },
        ] {
            assert_eq!(Undo::from_json(&undo.to_json()), Some(undo));
        }
        assert_eq!(Undo::from_json(&json!({"format_disk": "/dev/vda"})), None);
    }

    #[test]
    fn never_removes_what_we_did_not_make() {
        let folder = tempfile::tempdir().unwrap();
        let refused = Undo::RemoveDir(folder.path().into()).refuse_foreign();
        assert!(matches!(refused, Err(HostError::AlreadyThere { .. })), "{refused:?}");
        let relative = Undo::RemoveDir("relative".into()).refuse_foreign();
        assert!(matches!(relative, Err(HostError::NotOurs { .. })), "{relative:?}");
        let group = Undo::RemoveCgroup(folder.path().into()).perform("");
        assert!(matches!(group, Err(HostError::NotOurs { .. })), "{group:?}");
        assert!(folder.path().exists());
    }

    #[test]
    fn a_setting_goes_back_only_from_our_own_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("setting");
        let undo = Undo::WriteSysfs {
            path: path.clone(),
            old: "none".into(),
            new: "slow".into(),
            beside: Vec::new(),
        };
        std::fs::write(&path, "none mq-deadline [bfq]").unwrap();
        let left = undo.perform("").unwrap();
        assert!(
            matches!(&left, CleanupResult::LeftAlone(why) if why.contains("changed by somebody else")),
            "{left:?}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "none mq-deadline [bfq]");
        // As long as the old value: a plain file, unlike a setting, keeps what is not overwritten.
        std::fs::write(&path, "slow").unwrap();
        assert_eq!(undo.perform(""), Ok(CleanupResult::Undone));
        assert_eq!(undo.perform(""), Ok(CleanupResult::AlreadyGone));
    }

    #[test]
    fn a_mount_of_somebody_else_stays() {
        let undo = Undo::Unmount { path: "/proc".into(), source: "/dev/redoubt-none".into() };
        assert_eq!(undo.perform(""), Ok(CleanupResult::AlreadyGone));
        assert!(Path::new("/proc/self").exists());
    }
}
