//! Every reason not to write to a device.
//!
//! Two kinds: *busy* (mounted, held, swapped on, open) is never overridden; *data* (a signature, partitions) is refused
//! unless the user types `--destroy DEV` in full. Absence of evidence is checked from several sides: the kernel's own
//! exclusive open, mounts, holders, swap, loop devices and open files of all processes, and what is written there.

use super::device::{self, DeviceKind};
use super::{mounts, signature, stack};
use crate::error::{HostError, shell_word};
use crate::{command, files};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// One use of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// Something is written on it.
    Signature(String),
    /// It is divided; the names of the parts.
    Partitions(Vec<String>),
    /// A file system on `device` (this one, a part of it, or its whole disk) is mounted.
    Mounted {
        /// Kernel name.
        device: String,
        /// Where.
        mount_point: PathBuf,
    },
    /// `device` belongs to a volume or RAID.
    Held {
        /// Kernel name.
        device: String,
        /// Kernel name of what is built on it.
        holder: String,
    },
    /// `device` is swap space in use.
    Swap {
        /// Kernel name.
        device: String,
    },
    /// A loop device is made of it.
    LoopBacking {
        /// Kernel name of the loop device.
        loop_device: String,
    },
    /// A process has it open (raw devices of databases are open without any mark).
    Open {
        /// Process number.
        pid: u32,
        /// Its command name.
        command: String,
    },
    /// The kernel refuses exclusive use; somebody out of our sight (another namespace) holds it.
    Exclusive,
    /// It cannot be written.
    ReadOnly,
    /// Part of the machine could not be looked at; the text says which, why and what to do.
    Unseen(String),
}

impl Use {
    /// True for what nobody may override: writing would corrupt something that is in use now, or might be.
    pub fn is_busy(&self) -> bool {
        !matches!(self, Self::Signature(_) | Self::Partitions(_))
    }

    /// What to type to end this use of `device`.
    fn advice(&self, device: &Path) -> String {
        let device = shell_word(&device.to_string_lossy());
        match self {
            Self::Signature(_) | Self::Partitions(_) => {
                format!("this is what --destroy {device}, typed in full, overrides")
            }
            Self::Mounted { mount_point, .. } => {
                format!("type: umount {}", shell_word(&mount_point.to_string_lossy()))
            }
            Self::Held { holder, .. } if holder.starts_with("md") => {
                format!("type: mdadm --stop /dev/{holder}")
            }
            Self::Held { .. } => {
                format!("type: vgchange -an GROUP, or dmsetup remove NAME; see which: lsblk {device}")
            }
            Self::Swap { device } => format!("type: swapoff /dev/{device}"),
            Self::LoopBacking { loop_device } => format!("type: losetup -d /dev/{loop_device}"),
            Self::Open { pid, .. } => format!("end it; see what it is: ps {pid}"),
            Self::Exclusive => format!("see by whom: lsblk {device}, lsof {device}"),
            Self::ReadOnly => format!("type: blockdev --setrw {device}"),
            Self::Unseen(_) => String::new(),
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature(what) => write!(f, "it holds data: {what}"),
            Self::Partitions(names) => write!(f, "it has partitions: {}", names.join(", ")),
            Self::Mounted { device, mount_point } => {
                write!(f, "{device} is mounted at {}", mount_point.display())
            }
            Self::Held { device, holder } => write!(f, "{device} is part of {holder}"),
            Self::Swap { device } => write!(f, "{device} is used as swap space"),
            Self::LoopBacking { loop_device } => write!(f, "{loop_device} is made of it"),
            Self::Open { pid, command } => write!(f, "process {pid} ({command}) has it open"),
            Self::Exclusive => write!(f, "the kernel says that it is in use"),
            Self::ReadOnly => write!(f, "it is read-only"),
            Self::Unseen(what) => write!(f, "{what}"),
        }
    }
}

/// What was found about a device; empty `uses` means that writing destroys nothing that could be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// The device, symlinks resolved.
    pub device: PathBuf,
    /// Every use found.
    pub uses: Vec<Use>,
}

impl InUse {
    /// Nothing was found.
    pub fn is_free(&self) -> bool {
        self.uses.is_empty()
    }

    /// Something uses it now: refused whatever was typed.
    pub fn is_busy(&self) -> bool {
        self.uses.iter().any(Use::is_busy)
    }

    /// The sentences of all uses, each with what to type.
    pub fn reasons(&self) -> Vec<String> {
        let sentence = |u: &Use| match u.advice(&self.device) {
            advice if advice.is_empty() => u.to_string(),
            advice => format!("{u} ({advice})"),
        };
        self.uses.iter().map(sentence).collect()
    }

    /// Passes only a device without any use.
    ///
    /// # Errors
    /// [`HostError::InUse`] with every reason.
    pub fn must_be_free(&self) -> Result<(), HostError> {
        if self.is_free() {
            Ok(())
        } else {
            Err(HostError::InUse { device: self.device.clone(), reasons: self.reasons() })
        }
    }
}

/// Looks for every use of block device `path`. Reads it, writes nothing.
///
/// # Errors
/// Not a block device, or it cannot be read (root or group `disk` needed): without a look there is no answer.
pub fn in_use(path: &Path) -> Result<InUse, HostError> {
    let device = std::fs::canonicalize(path).map_err(|e| HostError::file("find", path, &e))?;
    let number =
        stack::block_number(&device).ok_or_else(|| HostError::NotABlockDevice { path: path.to_owned() })?;
    let directory =
        device::directory_of(number).ok_or_else(|| HostError::NotABlockDevice { path: path.to_owned() })?;
    let family = Family::of(&directory);
    let mut uses = Vec::new();
    uses.extend(family.mounts());
    uses.extend(family.holders());
    uses.extend(family.swaps());
    uses.extend(family.loops());
    let (open, unseen) = open_files(&family);
    uses.extend(open);
    if files::number::<u32>(directory.join("ro")).is_some_and(|ro| ro != 0) {
        uses.push(Use::ReadOnly);
    }
    let exclusive = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::open(&device, exclusive, Mode::empty()) {
        Ok(_) => {}
        Err(Errno::BUSY) if uses.iter().any(Use::is_busy) => {}
        Err(Errno::BUSY) => uses.push(Use::Exclusive),
        // Some sandboxes hide the disk they run on even from root. What is known to be busy needs no look inside.
        Err(Errno::ACCESS | Errno::PERM) if uses.iter().any(Use::is_busy) => {
            return Ok(InUse { device, uses });
        }
        Err(Errno::ACCESS | Errno::PERM) if !files::is_root() => {
            return Err(HostError::needs_root(format!("looking at {}", device.display())));
        }
        Err(errno) => return Err(HostError::call("open", &device, errno)),
    }
    if !family.parts.is_empty() {
        uses.push(Use::Partitions(family.parts.clone()));
    }
    let written = signature::scan(&device).map_err(|e| HostError::file("read", &device, &e))?;
    uses.extend(written.into_iter().map(Use::Signature));
    uses.extend(probed(&device));
    // Last: what could not be seen must not stand for a use that the kernel's answers above would explain.
    uses.extend(unseen);
    uses.extend(unread_tables());
    Ok(InUse { device, uses })
}

/// The device, its partitions, and its whole disk: using any of them is using the device. Sibling partitions are not.
struct Family {
    names: Vec<String>,
    parts: Vec<String>,
    numbers: Vec<(u32, u32)>,
}

impl Family {
    fn of(directory: &Path) -> Self {
        let name = |d: &Path| d.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let own = name(directory);
        let parts: Vec<String> = files::names(directory)
            .into_iter()
            .filter(|n| directory.join(n).join("partition").exists())
            .collect();
        let mut names = vec![own];
        names.extend(parts.iter().cloned());
        if device::read(directory).is_some_and(|d| d.kind == DeviceKind::Partition) {
            names.extend(directory.parent().map(name));
        }
        let numbers = names.iter().filter_map(|n| device::number_of(n)).collect();
        Self { names, parts, numbers }
    }

    fn mounts(&self) -> Vec<Use> {
        let member = |m: &mounts::Mount| {
            let number = if m.device.0 == 0 { stack::block_number(Path::new(&m.source))? } else { m.device };
            let index = self.numbers.iter().position(|n| *n == number)?;
            Some(Use::Mounted { device: self.names[index].clone(), mount_point: m.mount_point.clone() })
        };
        mounts::all().iter().filter_map(member).collect()
    }

    fn holders(&self) -> Vec<Use> {
        let of = |device: &String| {
            let holders = files::names(format!("/sys/class/block/{device}/holders"));
            // Partitions of a loop device list no holders; a partition is not a holder of its disk either.
            holders.into_iter().map(|holder| Use::Held { device: device.clone(), holder }).collect::<Vec<_>>()
        };
        self.names.iter().flat_map(of).collect()
    }

    fn swaps(&self) -> Vec<Use> {
        let text = files::text("/proc/swaps").unwrap_or_default();
        let numbers =
            text.lines().skip(1).filter_map(|l| stack::block_number(Path::new(l.split_whitespace().next()?)));
        let index = |number| self.numbers.iter().position(|n| *n == number);
        numbers.filter_map(index).map(|i| Use::Swap { device: self.names[i].clone() }).collect()
    }

    fn loops(&self) -> Vec<Use> {
        let loops = files::names("/sys/block").into_iter().filter(|n| n.starts_with("loop"));
        let backed = |name: &String| {
            let file = files::text(format!("/sys/block/{name}/loop/backing_file"))?;
            self.numbers.contains(&stack::block_number(Path::new(&file))?).then_some(())
        };
        loops.filter(|n| backed(n).is_some()).map(|loop_device| Use::LoopBacking { loop_device }).collect()
    }
}

/// Processes that have a member of the family open, and the note that not all could be looked at: only root sees those
/// of others.
fn open_files(family: &Family) -> (Vec<Use>, Option<Use>) {
    let own = std::process::id();
    let mut unseen = !files::is_root();
    let mut open = Vec::new();
    let pids = files::names("/proc").into_iter().filter_map(|n| n.parse::<u32>().ok());
    for pid in pids.filter(|pid| *pid != own) {
        let handles = match std::fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(handles) => handles.flatten(),
            Err(error) => {
                // A process that ended meanwhile has nothing open.
                unseen |= error.kind() == ErrorKind::PermissionDenied;
                continue;
            }
        };
        let targets =
            handles.filter_map(|h| std::fs::read_link(h.path()).ok()).filter(|t| t.starts_with("/dev"));
        let mut numbers = targets.filter_map(|t| stack::block_number(&t));
        if numbers.any(|n| family.numbers.contains(&n)) {
            let command = files::text(format!("/proc/{pid}/comm")).unwrap_or_default();
            open.push(Use::Open { pid, command });
        }
    }
    let note = || Use::Unseen("open files of other users cannot be seen; run as root".into());
    (open, unseen.then(note))
}

/// Tables of the kernel that could not be read. A kernel without swap has no table of it.
fn unread_tables() -> Vec<Use> {
    let unread = |(table, what): (&str, &str)| {
        let error = std::fs::read(table).err()?;
        let absent = error.kind() == ErrorKind::NotFound && what == "swap space";
        (!absent).then(|| Use::Unseen(format!("{what} cannot be seen: {table}: {error}")))
    };
    [("/proc/self/mountinfo", "mounts"), ("/proc/swaps", "swap space")]
        .into_iter()
        .filter_map(unread)
        .collect()
}

/// What `blkid` finds, where it is installed: it knows formats that [`signature`] does not.
fn probed(device: &Path) -> Vec<Use> {
    let Ok(output) =
        command::run("blkid", &["-p", "-o", "export", &device.to_string_lossy()], "util-linux", 20)
    else {
        return Vec::new();
    };
    let found = parse_blkid(&output.stdout);
    found.map(|what| Use::Signature(format!("{what} (blkid)"))).into_iter().collect()
}

/// `TYPE=` or `PTTYPE=` of `blkid -o export`; an ambivalent result (exit status 8) prints nothing and is then left to
/// our own scan.
fn parse_blkid(text: &str) -> Option<String> {
    let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)).map(str::to_owned);
    value("TYPE=").or_else(|| value("PTTYPE=").map(|t| format!("partition table {t}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_blkid() {
        assert_eq!(
            parse_blkid("DEVNAME=/dev/loop0\nUUID=x\nTYPE=ext4\nUSAGE=filesystem\n"),
            Some("ext4".into())
        );
        assert_eq!(parse_blkid("DEVNAME=/dev/sda\nPTTYPE=gpt\n"), Some("partition table gpt".into()));
        assert_eq!(parse_blkid(""), None);
    }

    #[test]
    fn refuses_what_is_no_block_device() {
        let refused = in_use(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(refused, HostError::NotABlockDevice { .. }), "{refused}");
        assert!(matches!(in_use(Path::new("/dev/no-such")), Err(HostError::File { errno: 2, .. })));
    }

    #[test]
    fn the_disk_we_run_on_is_busy() {
        let storage = crate::facts::storage(Path::new("/"));
        let found = in_use(&storage.top().unwrap().path()).unwrap();
        assert!(found.is_busy() && found.must_be_free().is_err(), "{found:?}");
        assert!(
            found
                .uses
                .iter()
                .any(|u| matches!(u, Use::Mounted { mount_point, .. } if mount_point == Path::new("/"))),
            "{found:?}"
        );
    }

    #[test]
    fn says_per_reason_what_to_type() {
        let uses = vec![
            Use::Mounted { device: "sdb1".into(), mount_point: "/my data".into() },
            Use::Swap { device: "sdb2".into() },
            Use::Held { device: "sdb".into(), holder: "dm-0".into() },
            Use::LoopBacking { loop_device: "loop3".into() },
            Use::Signature("ext4".into()),
            Use::Unseen("open files of other users cannot be seen; run as root".into()),
        ];
        assert!(uses[5].is_busy() && !uses[4].is_busy());
        let error = InUse { device: "/dev/sdb".into(), uses }.must_be_free().unwrap_err().to_string();
        for text in [
            "sdb1 is mounted at /my data (type: umount '/my data'); sdb2",
            "(type: swapoff /dev/sdb2)",
            "vgchange -an",
            "(type: losetup -d /dev/loop3)",
            "it holds data: ext4 (this is what --destroy /dev/sdb, typed in full, overrides)",
            "; open files of other users cannot be seen; run as root",
        ] {
            assert!(error.contains(text), "{text} is not in {error}");
        }
    }
}
