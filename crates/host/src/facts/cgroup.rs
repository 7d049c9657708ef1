//! Limits of our control groups: of our own group and of all groups above it, in hierarchies of version 1 and 2.

use super::machine::count_list;
use super::mounts::{self, Mount};
use super::{Device, Fact};
use crate::files;
use std::path::{Path, PathBuf};

/// A limit on the I/O of one device that applies to this process. None is no limit of that kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoLimit {
    /// Kernel name of the device.
    pub device: String,
    /// Reads per second.
    pub read_iops: Option<u64>,
    /// Writes per second.
    pub write_iops: Option<u64>,
    /// Bytes read per second.
    pub read_bps: Option<u64>,
    /// Bytes written per second.
    pub write_bps: Option<u64>,
    /// The group's directory.
    pub source: String,
}

/// One hierarchy as this process sees it: its own directory first, then those above, up to the root of the mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Version 2 (unified).
    pub(crate) unified: bool,
    /// Own directory first.
    pub(crate) directories: Vec<PathBuf>,
}

/// Our group in the hierarchy that has `controller` (`cpu`, `blkio`/`io`, `memory`, `cpuset`): version 1 when mounted
/// with it, else version 2 when it offers it.
pub(crate) fn group(controller: &str) -> Option<Group> {
    let memberships = files::text("/proc/self/cgroup")?;
    find(&mounts::all(), &memberships, controller, &|path| files::text(path))
}

/// Our own directory for `controller`.
pub(crate) fn own_directory(controller: &str) -> Option<PathBuf> {
    group(controller).map(|g| g.directories[0].clone())
}

fn find(
    mounts: &[Mount],
    memberships: &str,
    controller: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<Group> {
    let v1 = mounts.iter().find(|m| m.fs_type == "cgroup" && m.super_options.iter().any(|o| o == controller));
    if let Some(mount) = v1 {
        let path = membership(memberships, |controllers| controllers.split(',').any(|c| c == controller))?;
        return Some(Group { unified: false, directories: directories(mount, path) });
    }
    let mount = mounts.iter().find(|m| m.fs_type == "cgroup2")?;
    let name = if controller == "blkio" { "io" } else { controller };
    let offered = read(&mount.mount_point.join("cgroup.controllers"))?;
    let path = membership(memberships, str::is_empty)?;
    offered
        .split_whitespace()
        .any(|c| c == name)
        .then(|| Group { unified: true, directories: directories(mount, path) })
}

/// The path of our group on the line `id:controllers:path` whose controllers fit.
pub(crate) fn membership(text: &str, fits: impl Fn(&str) -> bool) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        fits(controllers).then_some(path)
    })
}

/// Our directory and those above it, inside `mount`. In a container without its own cgroup namespace, `path` is the
/// host's and the mount shows a part of it (`root`); a path outside that part means that the mount's top is ours.
fn directories(mount: &Mount, path: &str) -> Vec<PathBuf> {
    let path = Path::new(path);
    let inside =
        path.strip_prefix(&mount.root).ok().filter(|p| !p.components().any(|c| c.as_os_str() == ".."));
    // Collected anew, because joining an empty path leaves a slash at the end.
    let own: PathBuf = mount.mount_point.join(inside.unwrap_or(Path::new(""))).components().collect();
    let above = own.ancestors().take_while(|a| a.starts_with(&mount.mount_point));
    above.map(Path::to_owned).collect()
}

/// CPUs' worth of time that the tightest quota above us allows; none without quota or when unknown.
pub(crate) fn cpu_quota() -> Option<f64> {
    let group = group("cpu")?;
    let quota = |d: &PathBuf| {
        if group.unified {
            return files::text(d.join("cpu.max")).and_then(|t| parse_cpu_max(&t));
        }
        let quota: f64 = files::number(d.join("cpu.cfs_quota_us"))?;
        let period: f64 = files::number(d.join("cpu.cfs_period_us"))?;
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    group.directories.iter().filter_map(quota).min_by(f64::total_cmp)
}

/// `50000 100000` is 0.5 CPUs, `max 100000` no limit.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (period > 0.0).then(|| quota / period)
}

/// The smallest memory limit above us, bytes.
fn memory_limit(group: &Group) -> Option<(u64, PathBuf)> {
    // Version 1 writes "no limit" as the largest number of pages; anything of an exabyte is none.
    const NONE: u64 = 1 << 60;
    let file = if group.unified { "memory.max" } else { "memory.limit_in_bytes" };
    let limits =
        group.directories.iter().filter_map(|d| Some((files::number::<u64>(d.join(file))?, d.join(file))));
    limits.filter(|(bytes, _)| *bytes < NONE).min()
}

/// The I/O limits on `devices` that apply to this process, tightest group or not: each group with a limit is one entry.
pub fn io_limits(devices: &[Device]) -> Vec<IoLimit> {
    let Some(group) = group("blkio") else { return Vec::new() };
    let mut limits = Vec::new();
    for directory in &group.directories {
        for device in devices {
            let source = directory.display().to_string();
            let limit = IoLimit { device: device.name.clone(), source, ..IoLimit::default() };
            let read = |name: &str| files::text(directory.join(name)).unwrap_or_default();
            let limit = if group.unified {
                parse_io_max(&read("io.max"), device.number, limit)
            } else {
                let one = |name: &str| {
                    parse_throttle(&read(&format!("blkio.throttle.{name}_device")), device.number)
                };
                let (read_iops, write_iops) = (one("read_iops"), one("write_iops"));
                IoLimit {
                    read_iops,
                    write_iops,
                    read_bps: one("read_bps"),
                    write_bps: one("write_bps"),
                    ..limit
                }
            };
            if limit.read_iops.or(limit.write_iops).or(limit.read_bps).or(limit.write_bps).is_some() {
                limits.push(limit);
            }
        }
    }
    limits
}

/// The number after `8:16 ` in a version 1 throttle file.
fn parse_throttle(text: &str, number: (u32, u32)) -> Option<u64> {
    let key = format!("{}:{}", number.0, number.1);
    text.lines()
        .find_map(|l| l.trim().split_once(' ').filter(|(k, _)| *k == key))
        .and_then(|(_, v)| v.trim().parse().ok())
}

/// The line `8:16 rbps=2097152 wbps=max riops=max wiops=120` of version 2.
fn parse_io_max(text: &str, number: (u32, u32), mut limit: IoLimit) -> IoLimit {
    let key = format!("{}:{} ", number.0, number.1);
    for word in text.lines().filter_map(|l| l.strip_prefix(&key)).flat_map(str::split_whitespace) {
        let Some((name, value)) = word.split_once('=') else { continue };
        let value = value.parse().ok();
        match name {
            "rbps" => limit.read_bps = value,
            "wbps" => limit.write_bps = value,
            "riops" => limit.read_iops = value,
            "wiops" => limit.write_iops = value,
            _ => {}
        }
    }
    limit
}

/// The limits that apply to this process: CPU quota, CPU set, memory, and I/O on each of `devices` (usually the whole
/// stack). `unlimited` was read and is so; none could not be read.
pub fn cgroup_limits(devices: &[Device]) -> Vec<Fact> {
    let mut facts = vec![cpu_fact(), cpuset_fact(), memory_fact()];
    let Some(group) = group("blkio") else {
        facts.push(Fact::unknown(
            "cgroup",
            "",
            "io_limit",
            "/proc/self/cgroup",
            "no blkio or io controller is mounted",
        ));
        return facts;
    };
    let limits = io_limits(devices);
    for limit in &limits {
        let all = [
            ("read_iops", limit.read_iops, "1/s"),
            ("write_iops", limit.write_iops, "1/s"),
            ("read_bps", limit.read_bps, "B/s"),
            ("write_bps", limit.write_bps, "B/s"),
        ];
        let set = all.into_iter().filter_map(|(name, value, unit)| Some((name, value?, unit)));
        facts.extend(set.map(|(name, value, unit)| {
            Fact::known("cgroup", &limit.device, name, value, &limit.source).unit(unit)
        }));
    }
    if limits.is_empty() {
        facts.push(Fact::known(
            "cgroup",
            "",
            "io_limit",
            "unlimited",
            &group.directories[0].display().to_string(),
        ));
    }
    facts
}

fn cpu_fact() -> Fact {
    match (group("cpu"), cpu_quota()) {
        (None, _) => {
            Fact::unknown("cgroup", "", "cpu_quota", "/proc/self/cgroup", "no cpu controller is mounted")
        }
        (Some(g), Some(cores)) => Fact::known("cgroup", "", "cpu_quota", cores, &source(&g)).unit("CPUs"),
        (Some(g), None) => Fact::known("cgroup", "", "cpu_quota", "unlimited", &source(&g)),
    }
}

fn cpuset_fact() -> Fact {
    let Some(group) = group("cpuset") else {
        return Fact::unknown("cgroup", "", "cpuset", "/proc/self/cgroup", "no cpuset controller is mounted");
    };
    let file = if group.unified { "cpuset.cpus.effective" } else { "cpuset.effective_cpus" };
    let read =
        group.directories.iter().find_map(|d| files::text(d.join(file)).filter(|t| count_list(t) > Some(0)));
    Fact::found("cgroup", "", "cpuset", read, &group.directories[0].join(file).display().to_string())
}

fn memory_fact() -> Fact {
    let Some(group) = group("memory") else {
        return Fact::unknown(
            "cgroup",
            "",
            "memory_limit",
            "/proc/self/cgroup",
            "no memory controller is mounted",
        );
    };
    match memory_limit(&group) {
        Some((bytes, file)) => {
            Fact::known("cgroup", "", "memory_limit", bytes, &file.display().to_string()).unit("B")
        }
        None => Fact::known("cgroup", "", "memory_limit", "unlimited", &source(&group)),
    }
}

fn source(group: &Group) -> String {
    group.directories[0].display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2: &str = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    fn directories_for(
        mountinfo: &str,
        memberships: &str,
        controller: &str,
        offered: &str,
    ) -> Option<(bool, Vec<String>)> {
        let read = |_: &Path| Some(offered.to_owned());
        let found = find(&mounts::parse(mountinfo), memberships, controller, &read)?;
        Some((found.unified, found.directories.iter().map(|d| d.display().to_string()).collect()))
    }

    #[test]
    fn finds_our_groups_in_both_versions() {
        let v1 = directories_for(V1, "7:blkio:/db\n1:cpu,cpuacct:/\n0::/x\n", "blkio", "");
        assert_eq!(v1, Some((false, vec!["/sys/fs/cgroup/blkio/db".into(), "/sys/fs/cgroup/blkio".into()])));
        let cpu = directories_for(V1, "7:blkio:/db\n1:cpu,cpuacct:/\n0::/x\n", "cpu", "");
        assert_eq!(cpu, Some((false, vec!["/sys/fs/cgroup/cpu".into()])));
        let v2 = directories_for(V2, "0::/system.slice/db.service\n", "blkio", "cpuset cpu io memory pids");
        let expected =
            ["/sys/fs/cgroup/system.slice/db.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"];
        assert_eq!(v2, Some((true, expected.map(String::from).to_vec())));
        assert_eq!(
            directories_for(V2, "0::/\n", "blkio", "cpu memory"),
            None,
            "io is not offered: unknown, not unlimited"
        );
        assert_eq!(directories_for(V1, "0::/x\n", "memory", ""), None);
    }

    #[test]
    fn a_container_sees_a_part_of_the_tree() {
        let shown = "38 31 0:35 /docker/abc /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
        let inside = directories_for(shown, "7:blkio:/docker/abc/db\n", "blkio", "").unwrap().1;
        assert_eq!(inside, ["/sys/fs/cgroup/blkio/db", "/sys/fs/cgroup/blkio"]);
        let outside = directories_for(shown, "7:blkio:/../other\n", "blkio", "").unwrap().1;
        assert_eq!(outside, ["/sys/fs/cgroup/blkio"]);
    }

    #[test]
    fn reads_limits_of_both_versions() {
        assert_eq!(parse_throttle("8:0 100\n7:0 150\n", (7, 0)), Some(150));
        assert_eq!(parse_throttle("17:0 150\n", (7, 0)), None);
        let text = "8:16 rbps=2097152 wbps=max riops=max wiops=120\n8:160 riops=7\n";
        let limit = parse_io_max(text, (8, 16), IoLimit::default());
        assert_eq!(
            (limit.read_bps, limit.write_bps, limit.read_iops, limit.write_iops),
            (Some(2_097_152), None, None, Some(120))
        );
        assert_eq!((parse_cpu_max("50000 100000"), parse_cpu_max("max 100000")), (Some(0.5), None));
    }

    #[test]
    fn every_limit_here_is_known_or_says_why_not() {
        let facts = cgroup_limits(&crate::facts::storage(Path::new("/")).stack);
        for name in ["cpu_quota", "cpuset", "memory_limit"] {
            let fact = facts.iter().find(|f| f.name == name).unwrap();
            assert!(fact.value.is_some() || fact.source.contains(": "), "{fact:?}");
        }
    }
}
