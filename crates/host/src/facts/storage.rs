//! What stands between a path and its disks.

use super::device::{Device, DeviceKind};
use super::mounts::{self, Mount};
use super::{Fact, stack};
use crate::counters::Watch;
use crate::files;
use rustix::fs::{AtFlags, CWD, StatxFlags};
use std::path::{Path, PathBuf};

/// The storage under a directory, file or block device.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The mounted file system; none for a block device.
    pub mount: Option<Mount>,
    /// Top first, down to the disks; empty for memory and network file systems, and where sysfs does not tell (ZFS).
    pub stack: Vec<Device>,
    /// Everything worth storing in a record.
    pub facts: Vec<Fact>,
}

impl Storage {
    /// The disks at the bottom.
    pub fn leaves(&self) -> Vec<&Device> {
        self.stack.iter().filter(|d| d.is_leaf).collect()
    }

    /// The device right under the file system, or the block device itself.
    pub fn top(&self) -> Option<&Device> {
        self.stack.first()
    }

    /// Kernel names of the devices whose `/proc/diskstats` lines count our requests: the disks at the bottom, whole.
    /// Not the partition, because flushes are counted on whole disks only; not the loop device or volume on top,
    /// because what it counts may have been served by the page cache of the file under it.
    pub fn counter_devices(&self) -> Vec<String> {
        self.leaves().iter().map(|d| d.name.clone()).collect()
    }

    /// What to count while we use this storage. Flushes are those of the topmost loop device if there is one, which is
    /// ours alone, and else of the disks, where those of other processes are counted too. Volumes and md arrays are
    /// passed over: they do not count flushes.
    pub fn watch(&self) -> Watch {
        let disks = self.counter_devices();
        let top_loop = self.stack.iter().find(|d| d.kind == DeviceKind::Loop);
        Watch { flushes: top_loop.map_or_else(|| disks.clone(), |d| vec![d.name.clone()]), disks }
    }
}

/// Looks at `path`. For a path that does not exist yet: the nearest directory above it that does.
pub fn storage(path: &Path) -> Storage {
    if let Some(number) = stack::block_number(path) {
        let stack = stack::walk(number);
        let facts = stack.iter().flat_map(device_facts).collect();
        return Storage { mount: None, stack, facts };
    }
    let Some(path) = nearest_existing(path) else {
        return Storage { mount: None, stack: Vec::new(), facts: Vec::new() };
    };
    let mount = mounts::of(&path);
    let mut stack: Vec<Device> = Vec::new();
    for number in mount.as_ref().map_or_else(Vec::new, stack::of_mount) {
        for device in stack::walk(number) {
            if !stack.iter().any(|d| d.number == device.number) {
                stack.push(device);
            }
        }
    }
    let mut facts = mount.as_ref().map_or_else(Vec::new, |m| file_system_facts(&path, m, &stack));
    facts.extend(stack.iter().flat_map(device_facts));
    Storage { mount, stack, facts }
}

/// The number by which the kernel knows the kind of file system at `path` (`statfs(2)`): 0xef53 for ext2 to ext4, 0x58465342
/// for xfs, 0x9123683e for btrfs; none when it cannot be asked.
pub fn magic(path: &Path) -> Option<u64> {
    rustix::fs::statfs(path).ok().map(|s| s.f_type as u64)
}

/// `path` itself or the nearest of its parents that exists, canonical.
pub(super) fn nearest_existing(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|p| std::fs::canonicalize(p).ok())
}

fn file_system_facts(path: &Path, mount: &Mount, stack: &[Device]) -> Vec<Fact> {
    let object = mount.mount_point.to_string_lossy();
    let known = |name, value: &dyn ToString, source| {
        Fact::known("filesystem", &object, name, value.to_string(), source)
    };
    let proc = "/proc/self/mountinfo";
    let mut facts = vec![
        known("type", &mount.fs_type, proc),
        known("source", &mount.source, proc),
        known("mount_options", &mount.options.join(","), proc),
        known("super_options", &mount.super_options.join(","), proc),
    ];
    match rustix::fs::statvfs(path) {
        Ok(v) => facts.extend([
            known("size", &v.f_blocks.saturating_mul(v.f_frsize), "statvfs").unit("B"),
            known("available", &v.f_bavail.saturating_mul(v.f_frsize), "statvfs").unit("B"),
            known("block_size", &v.f_frsize, "statvfs").unit("B"),
        ]),
        Err(e) => facts.push(Fact::unknown("filesystem", &object, "available", "statvfs", &e.to_string())),
    }
    facts.push(direct_alignment(path, &object));
    facts.extend(effective_options(mount, &object, stack));
    facts
}

/// What O_DIRECT needs there. Only regular files answer, so a directory is unknown here; crate `io` asks its own file.
fn direct_alignment(path: &Path, object: &str) -> Fact {
    let source = "statx(STATX_DIOALIGN)";
    match rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN) {
        Ok(s) if s.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            Fact::known("filesystem", object, "direct_io_alignment", s.stx_dio_offset_align, source).unit("B")
        }
        Ok(_) => Fact::unknown(
            "filesystem",
            object,
            "direct_io_alignment",
            source,
            "not told for this kind of file",
        ),
        Err(e) => Fact::unknown("filesystem", object, "direct_io_alignment", source, &e.to_string()),
    }
}

/// ext4 hides defaults in mountinfo (`data=ordered`, `barrier`) and shows them all in /proc.
fn effective_options(mount: &Mount, object: &str, stack: &[Device]) -> Vec<Fact> {
    let (Some(top), "ext4" | "ext3") = (stack.first(), mount.fs_type.as_str()) else { return Vec::new() };
    let path = format!("/proc/fs/{}/{}/options", mount.fs_type, top.name.replace('/', "!"));
    let Some(text) = files::text(&path) else { return Vec::new() };
    vec![Fact::known(
        "filesystem",
        object,
        "effective_options",
        text.lines().collect::<Vec<_>>().join(","),
        &path,
    )]
}

fn device_facts(device: &Device) -> Vec<Fact> {
    let queue = &device.queue;
    let base = format!("/sys/class/block/{}", device.name.replace('/', "!"));
    let disk = format!("/sys/class/block/{}/queue", device.disk_name().replace('/', "!"));
    let fact = |name, value: Option<String>, file: &str| {
        Fact::found("device", &device.name, name, value, &format!("{disk}/{file}"))
    };
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    let flag = |f: Option<bool>| f.map(|f| if f { "yes" } else { "no" }.to_owned());
    let mut facts = vec![
        Fact::known("device", &device.name, "kind", format!("{:?}", device.kind), &base),
        Fact::known("device", &device.name, "size", device.size_bytes, &format!("{base}/size")).unit("B"),
        Fact::known("device", &device.name, "under_it", device.slaves.join(","), &format!("{base}/slaves")),
        fact("scheduler", queue.scheduler.clone(), "scheduler"),
        fact("nr_requests", number(queue.nr_requests), "nr_requests"),
        fact("read_ahead", number(queue.read_ahead_kb), "read_ahead_kb").unit("KiB"),
        fact("max_request", number(queue.max_sectors_kb), "max_sectors_kb").unit("KiB"),
        fact("rotational", flag(queue.rotational), "rotational"),
        fact("write_cache", queue.write_cache.clone(), "write_cache"),
        fact("fua", flag(queue.fua), "fua"),
        fact("logical_block", number(queue.logical_block), "logical_block_size").unit("B"),
        fact("physical_block", number(queue.physical_block), "physical_block_size").unit("B"),
        fact("discard", flag(queue.discard), "discard_max_bytes"),
        fact("write_back_throttling", queue.wbt_us.map(|n| n.to_string()), "wbt_lat_usec").unit("µs"),
        fact("nomerges", number(queue.nomerges), "nomerges"),
        fact("iostats", flag(queue.iostats), "iostats"),
        Fact::found("device", &device.name, "hardware_queues", queue.hardware_queues, &format!("{base}/mq")),
        Fact::found(
            "device",
            &device.name,
            "device_depth",
            queue.device_depth,
            &format!("{base}/device/queue_depth"),
        ),
        Fact::found(
            "device",
            &device.name,
            "wire",
            device.wire_bytes_per_second,
            "PCIe or SATA link in sysfs",
        )
        .unit("B/s"),
        Fact::found(
            "device",
            &device.name,
            "alignment_offset",
            device.alignment_offset,
            &format!("{base}/alignment_offset"),
        )
        .unit("B"),
        Fact::found("device", &device.name, "model", device.model.clone(), &format!("{base}/device/model")),
    ];
    if let Some(file) = &device.backing_file {
        facts.push(Fact::known(
            "device",
            &device.name,
            "backing_file",
            file.display(),
            &format!("{base}/loop/backing_file"),
        ));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_root_file_system_to_a_disk() {
        let s = storage(Path::new("/"));
        assert!(s.mount.as_ref().is_some_and(|m| !m.fs_type.is_empty()));
        assert!(!s.leaves().is_empty() && s.top().is_some_and(|t| t.size_bytes > 0), "{s:?}");
        assert!(s.facts.iter().all(|f| f.value.is_some() || f.source.contains(": ")), "unknown says why");
    }

    #[test]
    fn memory_has_no_disk_and_a_new_path_has_its_directory_s() {
        let s = storage(Path::new("/dev/shm/not/there/yet"));
        assert!(s.mount.is_some_and(|m| m.is_memory()) && s.stack.is_empty());
    }
}
