//! A slow disk made of a fast one, by control groups.
//!
//! Version 1 (`blkio.throttle.*`) limits what processes of the group submit themselves: direct and synchronous I/O.
//! Buffered writes go out later in the name of the root group and pass unthrottled there; [`throttle_everybody`] limits
//! those too. Version 2 (`io.max`) limits both.

use crate::error::HostError;
use crate::facts::cgroup::{self, Group};
use crate::facts::{Device, mounts};
use crate::files;
use crate::journal::{Journal, Step, Undo};
use std::path::{Path, PathBuf};

/// Limits of one device; none is unlimited. Zero is refused: it would stop a process for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bps: Option<u64>,
    /// Bytes written per second.
    pub write_bps: Option<u64>,
}

impl Limits {
    /// `(version 1 file, version 2 key, value)` of those set.
    fn set(&self) -> Vec<(&'static str, &'static str, u64)> {
        let all = [
            ("blkio.throttle.read_iops_device", "riops", self.read_iops),
            ("blkio.throttle.write_iops_device", "wiops", self.write_iops),
            ("blkio.throttle.read_bps_device", "rbps", self.read_bps),
            ("blkio.throttle.write_bps_device", "wbps", self.write_bps),
        ];
        all.into_iter().filter_map(|(file, key, value)| Some((file, key, value?))).collect()
    }

    fn must_not_be_zero(&self) -> Result<(), HostError> {
        match self.set().into_iter().find(|(.., value)| *value == 0) {
            None => Ok(()),
            Some((file, ..)) => Err(HostError::Unsupported {
                what: format!("a limit of 0 in {file}"),
                why: "it would stop every process in the group for ever".into(),
                instead: "give a number above 0".into(),
            }),
        }
    }
}

/// A control group with limits. It limits the processes that are in it: [`Throttle::enter_self`] or
/// [`Throttle::command_prefix`]. The journal removes it and moves what is in it back up.
#[derive(Clone, Debug)]
pub struct Throttle {
    /// The group's directory.
    pub group: PathBuf,
    /// The undo, to remove it before the run ends.
    pub step: Step,
    home: PathBuf,
}

impl Throttle {
    /// Puts this process, all its threads and its later children under the limits.
    ///
    /// # Errors
    /// The kernel refuses the move.
    pub fn enter_self(&self) -> Result<(), HostError> {
        files::write_setting(&self.group.join("cgroup.procs"), &std::process::id().to_string())
    }

    /// Takes this process back to the group it came from.
    ///
    /// # Errors
    /// The kernel refuses the move.
    pub fn leave_self(&self) -> Result<(), HostError> {
        files::write_setting(&self.home.join("cgroup.procs"), &std::process::id().to_string())
    }

    /// Words to put before a command so that it starts under the limits, and not a moment later.
    pub fn command_prefix(&self) -> Vec<String> {
        let script = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        ["sh", "-c", script]
            .into_iter()
            .map(str::to_owned)
            .chain([self.group.display().to_string()])
            .collect()
    }

    /// Any directory as a group.
    #[cfg(test)]
    pub(super) fn standing(group: PathBuf, home: PathBuf, journal: &mut Journal) -> Result<Self, HostError> {
        let step = journal.will(Undo::RemoveCgroup(group.clone()))?;
        std::fs::create_dir(&group).map_err(|e| HostError::file("create", &group, &e))?;
        Ok(Self { group, step, home })
    }

    /// Changes the limits while it is in use.
    ///
    /// # Errors
    /// The kernel refuses a value.
    pub fn change(&self, device: &Device, limits: Limits) -> Result<(), HostError> {
        write_limits(&self.group, device.number, limits)
    }
}

/// Makes a group that limits I/O on `device` (a whole disk, a volume or a loop device; a partition is limited with its
/// disk) for the processes that enter it.
///
/// # Errors
/// Not root, or no hierarchy with `blkio` (version 1) or `io` (version 2) is there to use.
pub fn throttle(journal: &mut Journal, device: &Device, limits: Limits) -> Result<Throttle, HostError> {
    if !files::is_root() {
        return Err(HostError::needs_root(format!("throttling {}", device.name)));
    }
    let group = cgroup::group("blkio").or_else(unified_root).ok_or_else(no_controller)?;
    let home = group.directories[0].clone();
    let parent = if group.unified { unified_parent(journal, &group)? } else { home.clone() };
    let path = (0..)
        .map(|n| parent.join(format!("redoubt-{}-{n}", journal.id())))
        .find(|p| !p.exists())
        .expect("an endless series");
    let step = journal.will(Undo::RemoveCgroup(path.clone()))?;
    std::fs::create_dir(&path).map_err(|e| HostError::file("create", &path, &e))?;
    write_limits(&path, device.number, limits)?;
    Ok(Throttle { group: path, step, home })
}

/// Limits `device` for every process and for the kernel's write-back, in the top group of version 1: the device itself
/// is slow then, as a slow disk is, and nobody has to enter anything. For devices of our own (loop devices) only.
///
/// # Errors
/// Not root; no version 1 hierarchy, or one that shows only a container's part; limits exist already.
pub fn throttle_everybody(
    journal: &mut Journal,
    device: &Device,
    limits: Limits,
) -> Result<Vec<Step>, HostError> {
    if !files::is_root() {
        return Err(HostError::needs_root(format!("throttling {}", device.name)));
    }
    let top = top_of_version_1().ok_or_else(|| HostError::Unsupported {
        what: "throttling a device for everybody".into(),
        why: "only version 1 of control groups has limits in its top group".into(),
        instead: "throttle the process instead".into(),
    })?;
    let key = format!("{}:{}", device.number.0, device.number.1);
    limits.must_not_be_zero()?;
    let mut steps = Vec::new();
    for (file, _, value) in limits.set() {
        let path = top.join(file);
        if files::text(&path).is_some_and(|t| t.lines().any(|l| l.starts_with(&format!("{key} ")))) {
            return Err(HostError::AlreadyThere { path });
        }
        steps.push(journal.will(Undo::ClearLimit { path: path.clone(), line: format!("{key} 0") })?);
        write_limit(&path, &format!("{key} {value}"))?;
    }
    Ok(steps)
}

/// The top group of version 1, where it is mounted with `blkio`.
pub(super) fn top_of_version_1() -> Option<PathBuf> {
    cgroup::group("blkio").filter(|g| !g.unified)?.directories.pop()
}

/// Whether [`throttle`] has a hierarchy to work with; it needs root besides.
pub fn can_throttle() -> bool {
    cgroup::group("blkio").or_else(unified_root).is_some()
}

fn no_controller() -> HostError {
    HostError::Unsupported {
        what: "throttling".into(),
        why: "no control group hierarchy with blkio or io is mounted".into(),
        instead: "limit a whole unit instead: systemd-run --property=IOReadIOPSMax='/dev/DISK 150' COMMAND"
            .into(),
    }
}

/// Version 2 where `io` is there but not given to our group: it can still be given to a sibling at the top.
fn unified_root() -> Option<Group> {
    let mount = mounts::all().into_iter().find(|m| m.fs_type == "cgroup2")?;
    let offered = files::text(mount.mount_point.join("cgroup.controllers"))?;
    let own = cgroup::membership(&files::text("/proc/self/cgroup")?, str::is_empty)?
        .trim_start_matches('/')
        .to_owned();
    let home = mount.mount_point.join(own);
    offered
        .split_whitespace()
        .any(|c| c == "io")
        .then(|| Group { unified: true, directories: vec![home, mount.mount_point] })
}

/// Version 2 forbids limits on children of a group that has processes of its own, so the new group is made right under
/// the top, which is exempt. `io` is switched on there when it is not yet.
fn unified_parent(journal: &mut Journal, group: &Group) -> Result<PathBuf, HostError> {
    let top = group.directories.last().expect("a group has a directory").clone();
    let control = top.join("cgroup.subtree_control");
    let on = files::text(&control).is_some_and(|t| t.split_whitespace().any(|c| c == "io"));
    if !on {
        journal.will(Undo::DisableController { path: control.clone(), controller: "io".into() })?;
        files::write_setting(&control, "+io").map_err(|error| own_processes(error, &top))?;
    }
    Ok(top)
}

/// The top of a container is no real top: with processes in it, the kernel refuses to give its children a controller.
fn own_processes(error: HostError, top: &Path) -> HostError {
    const EBUSY: i32 = 16;
    match error {
        HostError::File { errno: EBUSY, .. } => HostError::Unsupported {
            what: "throttling".into(),
            why: format!(
                "{} has processes of its own, and no group below it may have limits then",
                top.display()
            ),
            instead: "run on the machine itself, or start the container with --privileged --cgroupns=host"
                .into(),
        },
        other => other,
    }
}

fn write_limits(group: &Path, number: (u32, u32), limits: Limits) -> Result<(), HostError> {
    let key = format!("{}:{}", number.0, number.1);
    limits.must_not_be_zero()?;
    let set = limits.set();
    let unified = group.join("io.max");
    if unified.exists() {
        let words: String = set.iter().map(|(_, key, value)| format!(" {key}={value}")).collect();
        return write_limit(&unified, &format!("{key}{words}"));
    }
    set.iter().try_for_each(|(file, _, value)| write_limit(&group.join(file), &format!("{key} {value}")))
}

/// Writes a limit and reads it back: a limit that is not in force makes every number after it wrong.
fn write_limit(path: &Path, line: &str) -> Result<(), HostError> {
    files::write_setting(path, line)?;
    let words: Vec<&str> = line.split(' ').collect();
    let text = files::text(path).unwrap_or_default();
    let found = text.lines().any(|l| {
        l.split(' ').next() == words.first().copied() && words.iter().all(|w| l.split(' ').any(|x| x == *w))
    });
    if found {
        Ok(())
    } else {
        Err(HostError::Unsupported {
            what: format!("the limit {line:?} in {}", path.display()),
            why: format!("the kernel shows {text:?} instead"),
            instead: "check that the device is a whole disk".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_limits_are_one_line() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("io.max"), "").unwrap();
        let limits = Limits { read_iops: Some(150), write_bps: Some(1 << 20), ..Limits::default() };
        write_limits(folder.path(), (7, 3), limits).unwrap();
        assert_eq!(files::text(folder.path().join("io.max")).unwrap(), "7:3 riops=150 wbps=1048576");
    }

    #[test]
    fn version_2_switches_io_on_only_where_it_is_off_and_notes_so() {
        let (top, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut journal = Journal::open_in(state.path(), "test").unwrap();
        let control = top.path().join("cgroup.subtree_control");
        let group =
            Group { unified: true, directories: vec![top.path().join("db.service"), top.path().to_owned()] };
        let lines = |journal: &Journal| files::text(journal.path()).unwrap().lines().count();
        std::fs::write(&control, "cpu io memory").unwrap();
        assert_eq!(unified_parent(&mut journal, &group), Ok(top.path().to_owned()));
        assert_eq!((files::text(&control).as_deref(), lines(&journal)), (Some("cpu io memory"), 1));
        std::fs::write(&control, "").unwrap();
        unified_parent(&mut journal, &group).unwrap();
        assert_eq!((files::text(&control).as_deref(), lines(&journal)), (Some("+io"), 2));
    }

    #[test]
    fn a_top_with_processes_of_its_own_is_explained() {
        let path = PathBuf::from("/sys/fs/cgroup/cgroup.subtree_control");
        let seen = |errno| {
            let error = HostError::File { act: "write", path: path.clone(), errno };
            own_processes(error, Path::new("/sys/fs/cgroup")).to_string()
        };
        assert!(seen(16).contains("/sys/fs/cgroup has processes of its own"), "{}", seen(16));
        assert!(seen(30).contains("read-only"), "{}", seen(30));
    }

    #[test]
    fn a_limit_of_zero_is_refused() {
        let refused =
            write_limits(Path::new("/nowhere"), (7, 3), Limits { read_iops: Some(0), ..Limits::default() });
        assert!(matches!(refused, Err(HostError::Unsupported { .. })));
    }
}
