//! Are the mount options that were asked for in force? Kernels drop some silently and change the values of others.

use super::mounts::{self, Mount};
use crate::error::HostError;
use crate::files;
use std::path::Path;

/// Options that are shown nowhere when they are in force, because they are how a mount is unless something else is shown: the
/// option and what would stand in its place.
const UNSHOWN: [(&str, &[&str]); 19] = [
    ("defaults", &[]),
    ("auto", &[]),
    ("noauto", &[]),
    ("loop", &[]),
    ("async", &["sync"]),
    ("atime", &["noatime"]),
    ("strictatime", &["noatime", "relatime"]),
    ("diratime", &["nodiratime"]),
    ("dev", &["nodev"]),
    ("exec", &["noexec"]),
    ("suid", &["nosuid"]),
    ("nouser", &["user"]),
    ("nolazytime", &["lazytime"]),
    ("barrier", &["nobarrier"]),
    ("datacow", &["nodatacow"]),
    ("datasum", &["nodatasum"]),
    ("nodiscard", &["discard"]),
    ("nossd", &["ssd"]),
    ("noautodefrag", &["autodefrag"]),
];

/// The line of `/proc/self/mountinfo` for the mount on top at `mount_point`, as the kernel wrote it.
pub fn mountinfo_line(mount_point: &Path) -> Option<String> {
    let text = files::text("/proc/self/mountinfo")?;
    let ours = |line: &&str| mounts::parse(line).first().is_some_and(|m| m.mount_point == mount_point);
    text.lines().rfind(ours).map(str::to_owned)
}

/// All options in force at `mount_point`: those of mountinfo and, for ext2 to ext4, which hide their defaults there, those of
/// `/proc/fs`.
pub fn mount_options(mount_point: &Path) -> Vec<String> {
    let Some(mount) = mounts::all().into_iter().rfind(|m| m.mount_point == mount_point) else {
        return Vec::new();
    };
    let device = Path::new(&mount.source).file_name().map(|n| n.to_string_lossy().into_owned());
    let hidden = device.and_then(|d| files::text(format!("/proc/fs/{}/{d}/options", mount.fs_type)));
    let hidden = hidden.unwrap_or_default();
    let Mount { options, super_options, .. } = mount;
    let mut all = options;
    for option in super_options.into_iter().chain(hidden.lines().map(str::to_owned)) {
        if !all.contains(&option) {
            all.push(option);
        }
    }
    all
}

/// Passes when every option of `asked` (`noatime,data=writeback`; may be empty) is in force at `mount_point`.
///
/// # Errors
/// [`HostError::NotInForce`] with the option that is not, and what is.
pub fn mount_options_in_force(asked: &str, mount_point: &Path) -> Result<(), HostError> {
    let shown = mount_options(mount_point);
    match asked.split(',').filter(|o| !o.is_empty()).find(|option| !is_in_force(option, &shown)) {
        None => Ok(()),
        Some(option) => Err(HostError::NotInForce {
            asked: format!("mount option {option}"),
            place: mount_point.to_owned(),
            shown: shown.join(","),
        }),
    }
}

/// `shown`: what the kernel shows. A value may have become more exact (`compress=zstd` is shown as `compress=zstd:3`).
fn is_in_force(asked: &str, shown: &[String]) -> bool {
    let has = |wanted: &str| shown.iter().any(|s| s == wanted);
    let exact = |wanted: &str| {
        has(wanted) || shown.iter().any(|s| s.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(':')))
    };
    let switch = asked
        .strip_suffix("=1")
        .map(str::to_owned)
        .or_else(|| asked.strip_suffix("=0").map(|name| format!("no{name}")));
    if exact(asked) || switch.is_some_and(|s| has(&s)) {
        return true;
    }
    let named = |name: &str| shown.iter().any(|s| s.split('=').next() == Some(name));
    UNSHOWN.iter().any(|(name, instead)| *name == asked && !instead.iter().any(|other| named(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_dropped_and_changed_options_from_those_in_force() {
        let ext4 = "rw,noatime,data=writeback,nodiscard,delalloc,nobarrier,commit=5";
        let btrfs = "rw,relatime,compress=zlib:9,discard=async,space_cache=v2,subvol=/";
        for (asked, shown, yes) in [
            ("noatime", ext4, true),
            ("data=writeback", ext4, true),
            ("data=journal", ext4, false),
            ("barrier=0", ext4, true),
            ("barrier=1", ext4, false),
            ("barrier", ext4, false),
            ("commit=0", ext4, false),
            ("mblk_io_submit", ext4, false),
            ("defaults", ext4, true),
            ("atime", ext4, false),
            ("nodiscard", ext4, true),
            ("compress=zlib", btrfs, true),
            ("compress=zlib:99", btrfs, false),
            ("nodiscard", btrfs, false),
            ("barrier", btrfs, true),
            ("datacow", btrfs, true),
            ("strictatime", btrfs, false),
        ] {
            let shown: Vec<String> = shown.split(',').map(str::to_owned).collect();
            assert_eq!(is_in_force(asked, &shown), yes, "{asked}");
        }
    }

    #[test]
    fn the_root_mount_has_a_line() {
        let line = mountinfo_line(Path::new("/")).unwrap();
        assert!(line.contains(" / ") && line.contains(" - "), "{line}");
        assert!(mount_options_in_force("", Path::new("/")).is_ok());
        let error = mount_options_in_force("redoubt-none", Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("mount option redoubt-none") && error.contains("rw"), "{error}");
    }
}
