//! `/proc/self/mountinfo`, and which mount a path is on.

use crate::files;
use rustix::fs::{Mode, OFlags};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Kernel's number of the mount.
    pub id: u64,
    /// Device path, `server:/export`, or a word.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Directory of the file system that is mounted there: `/` but for bind mounts and subvolumes.
    pub root: String,
    /// `ext4`, `xfs`, `nfs4` …
    pub fs_type: String,
    /// Options of this mount: `rw`, `noatime` …
    pub options: Vec<String>,
    /// Options of the file system: `discard`, `data=writeback`, `compress=zstd` …
    pub super_options: Vec<String>,
    /// Device number; major 0 for file systems without a device of their own (btrfs, nfs, tmpfs).
    pub device: (u32, u32),
}

impl Mount {
    /// Value of `name=value`, or an empty text for a bare `name`, among both kinds of options.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().chain(&self.super_options).find_map(|o| match o.split_once('=') {
            Some((key, value)) => (key == name).then_some(value),
            None => (o == name).then_some(""),
        })
    }

    /// True for file systems on another machine.
    pub fn is_network(&self) -> bool {
        matches!(
            self.fs_type.as_str(),
            "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "glusterfs" | "lustre" | "9p" | "afs" | "beegfs"
        ) || self.fs_type.starts_with("fuse.sshfs")
            || self.fs_type.starts_with("fuse.gluster")
    }

    /// True for file systems that live in memory.
    pub fn is_memory(&self) -> bool {
        matches!(self.fs_type.as_str(), "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs")
    }
}

/// All mounts of this process's namespace, in the order of the kernel (a later one covers an earlier one).
pub(crate) fn all() -> Vec<Mount> {
    parse(&files::text("/proc/self/mountinfo").unwrap_or_default())
}

/// The mount that `path` (existing) is on. The kernel's own answer (`mnt_id` of an open file) is exact under bind and
/// covered mounts; the longest mount point that is a prefix is the fallback.
pub(crate) fn of(path: &Path) -> Option<Mount> {
    let mounts = all();
    if let Some(id) = mount_id(path)
        && let Some(mount) = mounts.iter().find(|m| m.id == id)
    {
        return Some(mount.clone());
    }
    let path = std::fs::canonicalize(path).ok()?;
    // max_by_key keeps the last of equals: the mount on top.
    mounts
        .into_iter()
        .filter(|m| path.starts_with(&m.mount_point))
        .max_by_key(|m| m.mount_point.as_os_str().len())
}

fn mount_id(path: &Path) -> Option<u64> {
    let file = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let info = files::text(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    info.lines().find_map(|l| l.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// Source of the format: `proc_pid_mountinfo(5)`. A line: `id parent major:minor root point options [tags] - type source super`.
pub(crate) fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut words = before.split(' ');
    let id = words.next()?.parse().ok()?;
    let device = parse_number(words.nth(1)?)?;
    let root = unescape(words.next()?);
    let mount_point = PathBuf::from(unescape(words.next()?));
    let options = split(words.next()?);
    let mut words = after.split(' ');
    let fs_type = words.next()?.to_owned();
    let source = unescape(words.next()?);
    let super_options = split(words.next().unwrap_or(""));
    Some(Mount { id, source, mount_point, root, fs_type, options, super_options, device })
}

/// `8:16` as (8, 16).
pub(crate) fn parse_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn split(options: &str) -> Vec<String> {
    options.split(',').filter(|o| !o.is_empty()).map(unescape).collect()
}

/// The kernel writes space, tab, newline and backslash as octal `\040`.
fn unescape(word: &str) -> String {
    let bytes = word.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes
            .get(at + 1..at + 4)
            .filter(|o| bytes[at] == b'\\' && o.iter().all(|c| (b'0'..=b'7').contains(c)));
        match octal {
            Some(o) => {
                plain.push(
                    o.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mounts_of_many_kinds() {
        let mounts = parse(include_str!("../../testdata/mountinfo"));
        assert_eq!(mounts.len(), 7, "the torn line is left out");
        let root = &mounts[0];
        assert_eq!(
            (root.id, root.device, root.source.as_str(), root.fs_type.as_str()),
            (27, (254, 0), "/dev/vda", "ext4")
        );
        assert_eq!(root.option("discard"), Some(""));
        assert_eq!(root.option("resuid"), Some("65534"));
        assert_eq!(root.option("data"), None);
        assert_eq!(mounts[1].mount_point, Path::new("/mnt/my disk\\x"), "octal escapes");
        let nfs = mounts.iter().find(|m| m.fs_type == "nfs4").unwrap();
        assert!(nfs.is_network() && nfs.source == "filer:/vol/ora" && nfs.option("nconnect") == Some("8"));
        let btrfs = mounts.iter().find(|m| m.fs_type == "btrfs").unwrap();
        assert_eq!(
            (btrfs.device, btrfs.root.as_str(), btrfs.option("compress")),
            ((0, 42), "/@home", Some("zstd:1"))
        );
        assert!(mounts.iter().any(Mount::is_memory));
    }

    #[test]
    fn finds_our_own_mount() {
        assert_eq!(of(Path::new("/proc/self/status")).unwrap().fs_type, "proc");
        assert_eq!(of(Path::new("/dev/shm")).unwrap().fs_type, "tmpfs");
        assert_eq!(of(Path::new("/no/such/path")), None);
    }
}
