//! What a run might have changed on the machine, read before and after.

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// Settings and objects by name.
pub struct World(BTreeMap<String, String>);

impl World {
    /// As it is now.
    pub fn now() -> Self {
        let mut world = BTreeMap::new();
        for line in read_to_string("/proc/self/mountinfo").unwrap_or_default().lines() {
            world.insert(
                format!("mount {}", line.split(' ').nth(4).unwrap_or_default()),
                "is mounted".to_owned(),
            );
        }
        for device in names("/sys/block") {
            if let Ok(file) = read_to_string(format!("/sys/block/{device}/loop/backing_file")) {
                world.insert(format!("loop device {device}"), format!("over {}", file.trim()));
            }
            let queue = format!("/sys/block/{device}/queue");
            let tuning = names(&format!("{queue}/iosched")).into_iter().map(|name| format!("iosched/{name}"));
            for setting in names(&queue).into_iter().chain(tuning) {
                if let Ok(value) = read_to_string(format!("{queue}/{setting}")) {
                    world.insert(format!("{device} {setting}"), value.trim().to_owned());
                }
            }
        }
        control_groups(Path::new("/sys/fs/cgroup"), 0, &mut world);
        limits(Path::new("/sys/fs/cgroup/blkio"), &mut world);
        Self(world)
    }

    /// What is new, gone or changed in `after`, one sentence each. Others may come and go on a living machine: new mounts, loop
    /// devices and groups count when `mark` is in them; whatever is said of a loop device that somebody else holds is theirs.
    /// `groups`: how the killed run's control groups begin.
    pub fn differences(&self, after: &Self, mark: &str, groups: &str) -> Vec<String> {
        let theirs = |name: &str| {
            let device =
                name.split(' ').find(|word| word.starts_with("loop") && *word != "loop").unwrap_or("");
            let held = [self, after].map(|world| world.0.get(&format!("loop device {device}")));
            held.into_iter().flatten().any(|backing| !backing.contains(mark))
        };
        let is_ours = |name: &str, value: &str| {
            name.contains(mark) || value.contains(mark) || name.starts_with("limit") || name.contains(groups)
        };
        let mut found = Vec::new();
        for (name, value) in after.0.iter().filter(|(name, _)| !theirs(name)) {
            match self.0.get(name) {
                None if is_ours(name, value) => found.push(format!("{name}: left ({value})")),
                Some(old) if old != value => found.push(format!("{name}: was {old:?}, is {value:?}")),
                _ => {}
            }
        }
        // A scratch mount of somebody else may end at any time.
        let passing = |name: &str| name.contains("/tmp/") || name.contains("redoubt");
        for (name, value) in self.0.iter().filter(|(name, _)| !theirs(name) && !passing(name)) {
            if !after.0.contains_key(name) {
                found.push(format!("{name}: gone (was {value})"));
            }
        }
        found
    }
}

/// Limits of version 1 on devices, one entry each; those of version 2 go with their group.
fn limits(folder: &Path, world: &mut BTreeMap<String, String>) {
    for file in
        names(&folder.to_string_lossy()).into_iter().filter(|name| name.starts_with("blkio.throttle."))
    {
        for line in read_to_string(folder.join(&file)).unwrap_or_default().lines() {
            if let Some((device, value)) = line.split_once(' ').filter(|_| file.ends_with("_device")) {
                let device =
                    device.strip_prefix("7:").map_or(device.to_owned(), |minor| format!("loop{minor}"));
                world.insert(format!("limit {file} {device}"), value.to_owned());
            }
        }
    }
}

/// Control groups with our name, v1 and v2, a few levels deep.
fn control_groups(folder: &Path, depth: u32, world: &mut BTreeMap<String, String>) {
    if depth > 4 {
        return;
    }
    for entry in read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            if entry.file_name().to_string_lossy().contains("redoubt") {
                world.insert(format!("control group {}", path.display()), "exists".to_owned());
            }
            control_groups(&path, depth + 1, world);
        }
    }
}

fn names(folder: &str) -> Vec<String> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

/// Files and folders below `folder`, at any depth.
pub fn files_below(folder: &Path) -> usize {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| 1 + if e.path().is_dir() { files_below(&e.path()) } else { 0 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(pairs: &[(&str, &str)]) -> World {
        World(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn sees_what_is_left_and_what_changed() {
        let before = world(&[("vda scheduler", "[none] bfq"), ("mount /", "is mounted")]);
        let after = world(&[
            ("vda scheduler", "none [bfq]"),
            ("mount /", "is mounted"),
            ("mount /mnt/redoubt-x", "is mounted"),
            ("mount /y", "is mounted"),
        ]);
        assert_eq!(before.differences(&after, "redoubt", "redoubt-7-").len(), 2);
        assert!(before.differences(&before, "redoubt", "redoubt-7-").is_empty());
        let gone = world(&[("mount /", "is mounted")]);
        assert_eq!(before.differences(&gone, "redoubt", "redoubt-7-").len(), 1, "a setting is gone");
    }

    #[test]
    fn a_loop_device_of_somebody_else_is_theirs() {
        let held =
            |value: &str| world(&[("loop device loop3", "over /data/disk"), ("loop3 scheduler", value)]);
        assert!(held("none").differences(&held("bfq"), "/tmp/redoubt-crash-1", "redoubt-7-").is_empty());
        let free = |value: &str| world(&[("loop3 scheduler", value)]);
        assert_eq!(free("none").differences(&free("bfq"), "/tmp/redoubt-crash-1", "redoubt-7-").len(), 1);
        let left = world(&[("limit blkio.throttle.read_iops_device loop3", "500")]);
        assert_eq!(world(&[]).differences(&left, "/tmp/redoubt-crash-1", "redoubt-7-").len(), 1);
    }
}
