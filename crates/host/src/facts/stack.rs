//! From a device number down to the disks.

use super::device::{self, Device, DeviceKind};
use super::{mounts, storage};
use std::collections::HashSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A loop on a loop on a loop … ends here; sysfs itself has no circles.
const LEVELS_MAX: usize = 32;

/// All devices from `number` down, top first, each once, a device always before what is under it.
pub(super) fn walk(number: (u32, u32)) -> Vec<Device> {
    let mut stack = Vec::new();
    descend(number, &mut stack, &mut HashSet::new(), 0);
    stack
}

fn descend(number: (u32, u32), stack: &mut Vec<Device>, seen: &mut HashSet<(u32, u32)>, level: usize) {
    if level > LEVELS_MAX || !seen.insert(number) {
        return;
    }
    let Some(mut device) = device::directory_of(number).and_then(|d| device::read(&d)) else { return };
    if device.kind == DeviceKind::Loop {
        let under = device.backing_file.as_deref().map_or_else(Vec::new, devices_under_file);
        device.slaves = under.iter().map(|n| name_of(*n)).collect();
        device.is_leaf = under.is_empty();
    }
    let below: Vec<(u32, u32)> = device.slaves.iter().filter_map(|name| device::number_of(name)).collect();
    stack.push(device);
    below.into_iter().for_each(|n| descend(n, stack, seen, level + 1));
}

fn name_of(number: (u32, u32)) -> String {
    let name = device::directory_of(number)
        .and_then(|d| d.file_name().map(|n| n.to_string_lossy().replace('!', "/")));
    name.unwrap_or_else(|| format!("{}:{}", number.0, number.1))
}

/// The devices that hold `file`: its file system's, or itself when it is a device.
fn devices_under_file(file: &Path) -> Vec<(u32, u32)> {
    if let Some(number) = block_number(file) {
        return vec![number];
    }
    // A backing file that was deleted is shown with this suffix; its directory is usually still there.
    let shown = file.to_string_lossy();
    let file = PathBuf::from(shown.trim_end_matches(" (deleted)"));
    storage::nearest_existing(&file).and_then(|p| mounts::of(&p)).map_or_else(Vec::new, |m| of_mount(&m))
}

/// The devices right under a mounted file system: one for most, several for btrfs, none for memory and network.
pub(super) fn of_mount(mount: &mounts::Mount) -> Vec<(u32, u32)> {
    if mount.device.0 != 0 && device::directory_of(mount.device).is_some() {
        return vec![mount.device];
    }
    if mount.fs_type == "overlay" {
        // Writes go to the upper directory; what was never written is read from the lower ones, usually the same disk.
        let upper = mount.option("upperdir").map(PathBuf::from).filter(|u| u.exists());
        return upper
            .and_then(|u| mounts::of(&u))
            .filter(|m| m.fs_type != "overlay")
            .map_or_else(Vec::new, |m| of_mount(&m));
    }
    let Some(number) = block_number(Path::new(&mount.source)) else { return Vec::new() };
    if mount.fs_type == "btrfs" { btrfs_members(number) } else { vec![number] }
}

/// All devices of the btrfs file system that has `number` as a member.
fn btrfs_members(number: (u32, u32)) -> Vec<(u32, u32)> {
    let members = |uuid: &String| -> Vec<(u32, u32)> {
        let folder = format!("/sys/fs/btrfs/{uuid}/devices");
        crate::files::names(folder).iter().filter_map(|name| device::number_of(name)).collect()
    };
    let all = crate::files::names("/sys/fs/btrfs").iter().map(members).find(|m| m.contains(&number));
    all.unwrap_or_else(|| vec![number])
}

/// The number of the block device at `path`, symlinks followed; none for anything else.
pub(crate) fn block_number(path: &Path) -> Option<(u32, u32)> {
    let data = std::fs::metadata(path).ok()?;
    data.file_type()
        .is_block_device()
        .then(|| (rustix::fs::major(data.rdev()), rustix::fs::minor(data.rdev())))
}
