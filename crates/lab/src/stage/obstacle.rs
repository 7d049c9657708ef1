//! What stands in the way of a configuration, said before anything is changed.

use super::settings;
use super::volume::{self};
use crate::compare::TargetKind;
use crate::database::Sizes;
use crate::factor::{FileClass, Fs, Setup, Storage};
use host::{HostError, change, facts};
use std::fmt;
use std::path::Path;
use units::Bytes;

/// Why a configuration cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What was seen.
    pub reason: String,
    /// What to type; may be empty.
    pub command: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command.as_str() {
            "" => f.write_str(&self.reason),
            command => write!(f, "{}; type: {command}", self.reason),
        }
    }
}

impl From<HostError> for Obstacle {
    fn from(error: HostError) -> Self {
        match error {
            HostError::NeedsRoot { what, command } => Self { reason: format!("{what} needs root"), command },
            HostError::NoCommand { command, package } => Self {
                reason: format!("{command} is not installed"),
                command: format!("sudo apt install {package}"),
            },
            other => Self { reason: other.to_string(), command: String::new() },
        }
    }
}

/// Whether `setup` can be brought about here.
///
/// # Errors
/// The reason, and what to type.
pub fn possible(setup: &Setup) -> Result<(), Obstacle> {
    let refuse = |reason: String, command: &str| Err(Obstacle { reason, command: command.into() });
    // The sizes do not matter: only what has to be made is asked for.
    let nothing = Bytes(1 << 20);
    let sizes = Sizes {
        block: nothing,
        cache: nothing,
        data: nothing,
        undo: nothing,
        redo: nothing,
        redo_groups: 3,
        flash: nothing,
    };
    if setup.target == TargetKind::Files && setup.fs == Fs::Raw {
        return refuse("plain files need a file system, and fs is raw".into(), "--target engine");
    }
    for plan in volume::plans(setup, &sizes) {
        match plan.kind() {
            Some(kind) => change::can_make(kind)?,
            None => change::can_attach()?,
        }
    }
    for class in setup.classes() {
        place(setup, class, sizes.redo_groups)?;
    }
    let capped = setup.throttle.is_some()
        || setup.place.values().any(|storage| matches!(storage, Storage::Throttled { .. }));
    if capped && !change::can_throttle() {
        return refuse(
            "no control group hierarchy with blkio or io is there, and a cap needs one".into(),
            "",
        );
    }
    if setup.throttle.is_some() && setup.fs == Fs::Here {
        return refuse(
            "a cap is given only to a device that Redoubt makes, and with fs=here there is none".into(),
            "--vary fs=ext4",
        );
    }
    settings::asked(setup).into_iter().try_for_each(|(name, level)| setting(setup, name, level))
}

fn place(setup: &Setup, class: FileClass, redo_groups: u32) -> Result<(), Obstacle> {
    match setup.storage(class) {
        Storage::Here => Ok(()),
        Storage::Directory(path) | Storage::Throttled { within: Some(path), .. } => directory(path),
        Storage::Throttled { within: None, .. } => Ok(()),
        Storage::Device(device) => {
            facts::in_use(device)?.must_be_free()?;
            if setup.fs == Fs::Raw && class == FileClass::Redo {
                return Err(Obstacle {
                    reason: format!(
                        "redo has {redo_groups} groups, and {} without a file system takes one",
                        device.display()
                    ),
                    command: "--vary fs=ext4".into(),
                });
            }
            Ok(())
        }
    }
}

fn directory(path: &Path) -> Result<(), Obstacle> {
    let command = match (path.is_dir(), path.exists()) {
        (true, _) => return Ok(host::workspace::can_create(path)?),
        (false, true) => String::new(),
        (false, false) => format!("mkdir {}", path.display()),
    };
    Err(Obstacle { reason: format!("{} is not a directory", path.display()), command })
}

fn setting(setup: &Setup, name: &str, level: &str) -> Result<(), Obstacle> {
    let (value, named) = settings::split(level);
    // Every loop device of a machine knows the same schedulers.
    let disk = match named {
        Some(disk) => disk,
        None if setup.fs == Fs::Here => {
            return Err(Obstacle {
                reason: format!(
                    "{name} is only changed on a device that Redoubt makes, or on a disk that you name in full"
                ),
                command: format!("--vary fs=ext4, or --vary {name}={value}@/dev/DISK"),
            });
        }
        None => "loop0",
    };
    if named.is_some() && !Path::new("/sys/block").join(disk.replace('/', "!")).exists() {
        return Err(Obstacle {
            reason: format!("/dev/{disk} is not a whole disk"),
            command: "lsblk -d".into(),
        });
    }
    let queue = change::queue_choices(disk, name);
    match queue {
        Some(choices) if name == "scheduler" && !choices.iter().any(|choice| choice == value) => {
            Err(Obstacle {
                reason: format!(
                    "this kernel has no scheduler {value} for {disk}; it has {}",
                    choices.join(", ")
                ),
                command: format!("sudo modprobe {value}-iosched, or just {value}"),
            })
        }
        None if named.is_some() => {
            Err(Obstacle { reason: format!("/dev/{disk} has no setting {name}"), command: String::new() })
        }
        _ => named.map_or(Ok(()), |disk| Ok(change::can_set_queue(disk, name)?)),
    }
}

/// What one configuration needs, all get: where any asks for a cap, a scheduler or a queue setting without naming a disk, those in
/// the directory as it is move to a loop device with ext4, so that nothing but the factor differs. Returns what to tell people.
pub fn level_field(setups: &mut [Setup]) -> Option<String> {
    let needs_device = |setup: &Setup| {
        let unnamed = settings::asked(setup).iter().any(|(_, level)| settings::split(level).1.is_none());
        setup.fs == Fs::Here && (setup.throttle.is_some() || unnamed)
    };
    if !setups.iter().any(needs_device) {
        return None;
    }
    for setup in setups.iter_mut().filter(|setup| setup.fs == Fs::Here) {
        setup.fs = Fs::Made { kind: "ext4".into(), options: String::new() };
    }
    Some(
        "Caps, schedulers and queue settings are given to a device of Redoubt's own only: all configurations run on a loop device \
         with ext4 in the directory. Name another with --vary fs=…, or a disk in full with --vary scheduler=…@/dev/DISK."
            .into(),
    )
}
