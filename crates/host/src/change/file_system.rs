//! File systems on devices that nobody uses.

use crate::error::HostError;
use crate::facts::{in_use, mounts};
use crate::journal::{Journal, Step, Undo};
use crate::{command, files};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use units::Seed;

/// A file system that this run mounted. The journal unmounts it.
#[derive(Clone, Debug)]
pub struct MountedAt {
    /// The mount point.
    pub path: PathBuf,
    /// The undo, to unmount it before the run ends.
    pub step: Step,
}

/// Makes a file system on `device`, which must be free of every use ([`in_use`]): a signature is a refusal too, so that
/// a second call on the same device is one. `fs_type`: `ext4`, `xfs`, `btrfs` …; `options`: for `mkfs.TYPE`.
///
/// There is no undo: what was on a free device had no name. Journal what made the device instead.
///
/// # Errors
/// [`HostError::InUse`], not root, or `mkfs.TYPE` is missing or fails.
pub fn make_file_system(
    journal: &Journal,
    device: &Path,
    fs_type: &str,
    options: &[&str],
) -> Result<(), HostError> {
    assert!(fs_type.chars().all(|c| c.is_ascii_alphanumeric()), "{fs_type:?} is the name of a file system");
    if !files::is_root() {
        return Err(HostError::needs_root(format!("making a file system on {}", device.display())));
    }
    let checked = in_use(device)?;
    checked.must_be_free()?;
    let package = package_of(fs_type).unwrap_or("util-linux");
    let target = checked.device.to_string_lossy();
    let quiet: &[&str] = match fs_type {
        "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" | "jfs" | "nilfs2" | "bcachefs" => &["-q"],
        _ => &[],
    };
    let arguments: Vec<&str> = quiet.iter().chain(options).copied().chain([target.as_ref()]).collect();
    journal.run(&format!("mkfs.{fs_type}"), &arguments, package, 600).map(|_| ())
}

/// As [`make_file_system`], on a device that the user named in full: the file system has a label of its own, and the journal blanks
/// the device as long as it has that label.
///
/// # Errors
/// As [`make_file_system`]; also a type whose `mkfs` is not known to take a label.
pub fn make_file_system_labelled(
    journal: &mut Journal,
    device: &Path,
    fs_type: &str,
    options: &[&str],
) -> Result<Step, HostError> {
    if !matches!(fs_type, "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" | "jfs" | "nilfs2") {
        return Err(HostError::Unsupported {
            what: format!("making {fs_type} on {}", device.display()),
            why: "Redoubt would not know its own file system again".into(),
            instead: "choose ext4, xfs or btrfs".into(),
        });
    }
    let device = std::fs::canonicalize(device).map_err(|e| HostError::file("find", device, &e))?;
    // 12 characters: no more fit xfs.
    let label = format!("redoubt{:05x}", Seed::draw().0 & 0xf_ffff);
    let step = journal.will(Undo::Blank { device: device.clone(), label: label.clone() })?;
    let all: Vec<&str> = options.iter().copied().chain(["-L", &label]).collect();
    match make_file_system(journal, &device, fs_type, &all) {
        Ok(()) => Ok(step),
        Err(error) => {
            journal.undo_unless_hung(step, &error)?;
            Err(error)
        }
    }
}

/// Zeroes at both ends of a device or file, where every signature lies; durable.
///
/// # Errors
/// It cannot be written.
pub fn blank(path: &Path) -> Result<(), HostError> {
    const BYTES: u64 = 2 << 20;
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
        let size = file.seek(SeekFrom::End(0))?;
        let zeroes = vec![0; BYTES.min(size) as usize];
        file.write_all_at(&zeroes, 0)?;
        file.write_all_at(&zeroes, size - zeroes.len() as u64)?;
        file.sync_all()
    };
    write().map_err(|e| HostError::file("blank", path, &e))
}

/// The Debian package that holds `mkfs.TYPE`; none for a type that nobody has heard of.
fn package_of(fs_type: &str) -> Option<&'static str> {
    Some(match fs_type {
        "ext2" | "ext3" | "ext4" => "e2fsprogs",
        "xfs" => "xfsprogs",
        "btrfs" => "btrfs-progs",
        "f2fs" => "f2fs-tools",
        "jfs" => "jfsutils",
        "nilfs2" => "nilfs-tools",
        "bcachefs" => "bcachefs-tools",
        "minix" | "cramfs" | "bfs" => "util-linux",
        _ => return None,
    })
}

/// Whether [`make_file_system`] and [`mount`] can be tried with `fs_type`: asked before anything is changed.
///
/// # Errors
/// Not root, no `mkfs.TYPE`, or the kernel does not know the type.
pub fn can_make(fs_type: &str) -> Result<(), HostError> {
    let program = format!("mkfs.{fs_type}");
    if !command::is_installed(&program) {
        return Err(match package_of(fs_type) {
            Some(package) => HostError::NoCommand { command: program, package },
            None => HostError::Unsupported {
                what: format!("making a file system {fs_type}"),
                why: format!("there is no {program}"),
                instead: "choose one that is installed: ls /sbin/mkfs.*".into(),
            },
        });
    }
    let known = files::text("/proc/filesystems").unwrap_or_default();
    let built_in = known.split_whitespace().any(|word| word == fs_type);
    // A module is loaded by the mount itself.
    let module =
        || command::run("modprobe", &["-n", "-q", fs_type], "kmod", 10).is_ok_and(|o| o.status == Some(0));
    if !built_in && !module() {
        return Err(HostError::Unsupported {
            what: format!("mounting {fs_type}"),
            why: "this kernel does not know it".into(),
            instead: "choose one that it knows: cat /proc/filesystems".into(),
        });
    }
    if !files::is_root() {
        return Err(HostError::needs_root("making a file system"));
    }
    Ok(())
}

/// Mounts `device` on the empty directory `mount_point` with `options` (`noatime,data=writeback`; may be empty).
///
/// # Errors
/// Not root, the directory is not empty or a mount already, or the kernel refuses the options.
pub fn mount(
    journal: &mut Journal,
    device: &Path,
    mount_point: &Path,
    fs_type: &str,
    options: &str,
) -> Result<MountedAt, HostError> {
    if !files::is_root() {
        return Err(HostError::needs_root(format!("mounting {}", device.display())));
    }
    let path = std::fs::canonicalize(mount_point).map_err(|e| HostError::file("find", mount_point, &e))?;
    let covered = !files::names(&path).is_empty() || mounts::all().iter().any(|m| m.mount_point == path);
    if covered {
        return Err(HostError::AlreadyThere { path });
    }
    // As `mount` names it: without symlinks. What is no path (`tmpfs`) stays as it is.
    let named = std::fs::canonicalize(device).unwrap_or_else(|_| device.to_owned());
    let step = journal.will(Undo::Unmount { path: path.clone(), source: named })?;
    let (source, target) = (device.to_string_lossy(), path.to_string_lossy());
    let mut arguments = vec!["-t", fs_type];
    if !options.is_empty() {
        arguments.extend(["-o", options]);
    }
    arguments.extend([source.as_ref(), target.as_ref()]);
    match journal.run("mount", &arguments, "mount", 60) {
        Ok(_) => Ok(MountedAt { path, step }),
        Err(error) => {
            journal.undo_unless_hung(step, &error)?;
            Err(error)
        }
    }
}
