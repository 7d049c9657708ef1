//! A file shown as a disk.

use crate::error::HostError;
use crate::facts::{self, Device, mounts};
use crate::journal::{Journal, Step, Undo, loop_backing};
use crate::{command, files};
use std::path::{Path, PathBuf};

/// Another process may take the number between our question and our claim.
const ATTEMPTS: usize = 16;

/// An attached loop device. The journal detaches it; the file stays.
#[derive(Clone, Debug)]
pub struct LoopDevice {
    /// `/dev/loopN`.
    pub path: PathBuf,
    /// `loopN`.
    pub name: String,
    /// (major, minor).
    pub number: (u32, u32),
    /// The undo, to detach it before the run ends.
    pub step: Step,
}

impl LoopDevice {
    /// The device as [`facts::storage`] sees it.
    ///
    /// # Panics
    /// The device is gone although nobody but the journal detaches it.
    pub fn device(&self) -> Device {
        let storage = facts::storage(&self.path);
        storage
            .top()
            .cloned()
            .unwrap_or_else(|| panic!("{} was detached by somebody else", self.path.display()))
    }
}

/// Whether [`loop_device`] can be tried: asked before anything is changed.
///
/// # Errors
/// Not root, no `losetup`, or a kernel without loop devices.
pub fn can_attach() -> Result<(), HostError> {
    if !command::is_installed("losetup") {
        return Err(HostError::NoCommand { command: "losetup".into(), package: "util-linux" });
    }
    if !Path::new("/dev/loop-control").exists() {
        return Err(HostError::Unsupported {
            what: "attaching a loop device".into(),
            why: "there is no /dev/loop-control".into(),
            instead: "load the driver: sudo modprobe loop".into(),
        });
    }
    if files::is_root() { Ok(()) } else { Err(HostError::needs_root("attaching a loop device")) }
}

/// Attaches `backing` (an existing regular file). `direct_io`: requests bypass the page cache of the backing file, so
/// that the device is as honest as the disk below; `sector`: logical block in bytes (512, 4096), the kernel's choice when
/// none.
///
/// # Errors
/// Not root, no `losetup`, no such file, or direct I/O is not possible on the backing file system.
pub fn loop_device(
    journal: &mut Journal,
    backing: &Path,
    direct_io: bool,
    sector: Option<u32>,
) -> Result<LoopDevice, HostError> {
    let backing = std::fs::canonicalize(backing).map_err(|e| HostError::file("find", backing, &e))?;
    if !files::is_root() {
        return Err(HostError::needs_root("attaching a loop device"));
    }
    let mut last = HostError::Unsupported {
        what: "attaching a loop device".into(),
        why: "no number was free".into(),
        instead: "see who holds them: losetup -a".into(),
    };
    for _ in 0..ATTEMPTS {
        let free = command::run("losetup", &["-f"], "util-linux", 10)?.success()?;
        let path = PathBuf::from(free.trim());
        // The number must be in the journal before the device is made, so it is chosen here and not by the kernel.
        let step = journal.will(Undo::DetachLoop { device: path.clone(), backing: backing.clone() })?;
        match attach(journal, &path, &backing, direct_io, sector) {
            Ok(()) => return attached(journal, path, &backing, direct_io, step),
            Err(error) => {
                journal.undo_unless_hung(step, &error)?;
                let taken =
                    matches!(&error, HostError::CommandFailed { stderr, .. } if stderr.contains("busy"));
                if !taken {
                    return Err(error);
                }
                last = error;
            }
        }
    }
    Err(last)
}

fn attach(
    journal: &Journal,
    device: &Path,
    backing: &Path,
    direct_io: bool,
    sector: Option<u32>,
) -> Result<(), HostError> {
    let (device, backing) = (device.to_string_lossy(), backing.to_string_lossy());
    let direct = format!("--direct-io={}", if direct_io { "on" } else { "off" });
    let sector = sector.map(|bytes| format!("--sector-size={bytes}"));
    let mut arguments = vec![direct.as_str()];
    arguments.extend(sector.as_deref());
    arguments.extend([device.as_ref(), backing.as_ref()]);
    journal.run("losetup", &arguments, "util-linux", 20).map(|_| ())
}

/// What was asked for must be in force: `losetup` only warns when direct I/O is refused.
fn attached(
    journal: &mut Journal,
    path: PathBuf,
    backing: &Path,
    direct_io: bool,
    step: Step,
) -> Result<LoopDevice, HostError> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let number = files::text(format!("/sys/block/{name}/dev")).and_then(|t| mounts::parse_number(&t));
    let in_force = files::number::<u8>(format!("/sys/block/{name}/loop/dio")) == Some(1);
    match number {
        Some(number) if in_force == direct_io && loop_backing(&path).as_deref() == Some(backing) => {
            Ok(LoopDevice { path, name, number, step })
        }
        _ => {
            journal.undo(step)?;
            Err(HostError::Unsupported {
                what: format!(
                    "a loop device with direct I/O {} on {}",
                    if direct_io { "on" } else { "off" },
                    backing.display()
                ),
                why: "the kernel did not accept it".into(),
                instead: "put the file on ext4 or xfs".into(),
            })
        }
    }
}
