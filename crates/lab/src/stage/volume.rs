//! A device for files: a loop device of ours or one that the user named, with or without a file system.

use super::{SYSTEM_BYTES, TEMP_BYTES, undo};
use crate::LabError;
use crate::bench::Bench;
use crate::database::Sizes;
use crate::factor::{FileClass, Fs, Limit, Setup, Storage};
use host::change::{self, MountedAt};
use host::facts::{self, Device};
use host::journal::Step;
use host::workspace::Workspace;
use io::{Access, RealStorage, Storage as _};
use std::path::{Path, PathBuf};
use units::{Bytes, Nanos, clock};

/// File systems are made on no less: mkfs.xfs refuses below 300 MiB, and all get the same for the sake of fairness.
const FILE_SYSTEM_MIN: Bytes = Bytes::mib(320);
/// The file system of a device whose file system nobody named.
const FILE_SYSTEM: &str = "ext4";

/// A volume to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Its name among our files.
    pub(super) role: String,
    /// What lies on it.
    pub(super) classes: Vec<FileClass>,
    /// Its size; of a device that the user named: what is needed.
    pub(super) bytes: Bytes,
    kind: Option<String>,
    storage: Storage,
}

impl Plan {
    /// File system on it; none: raw.
    pub(super) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Stands on a loop file of ours.
    pub(super) fn is_ours(&self) -> bool {
        !matches!(self.storage, Storage::Device(_))
    }

    /// The directory of its loop file, when it is not the run's own.
    pub(super) fn within(&self) -> Option<&Path> {
        match &self.storage {
            Storage::Throttled { within, .. } => within.as_deref(),
            _ => None,
        }
    }
}

/// Needed by one class.
fn room(class: FileClass, sizes: &Sizes) -> Bytes {
    match class {
        FileClass::Data => sizes.data,
        FileClass::Undo => sizes.undo,
        FileClass::Temp => TEMP_BYTES,
        FileClass::Redo => Bytes(sizes.redo.0 * u64::from(sizes.redo_groups)),
        FileClass::Control => Bytes::mib(4),
        FileClass::Flash => sizes.flash,
    }
}

/// Everything that has to be made for `setup`. Equal places are one volume.
pub(super) fn plans(setup: &Setup, sizes: &Sizes) -> Vec<Plan> {
    let made = match &setup.fs {
        Fs::Made { kind, .. } => kind.clone(),
        Fs::Here | Fs::Raw => FILE_SYSTEM.to_owned(),
    };
    let mut plans = here(setup, sizes, &made);
    for class in setup.classes() {
        let storage = setup.storage(class);
        if matches!(storage, Storage::Here | Storage::Directory(_)) {
            continue;
        }
        match plans.iter_mut().find(|plan| plan.storage == *storage) {
            Some(plan) => plan.classes.push(class),
            None => {
                let raw = matches!(storage, Storage::Device(_)) && setup.fs == Fs::Raw;
                plans.push(Plan {
                    role: class.to_string(),
                    classes: vec![class],
                    bytes: Bytes(0),
                    kind: (!raw).then(|| made.clone()),
                    storage: storage.clone(),
                });
            }
        }
    }
    for plan in plans.iter_mut().filter(|plan| plan.bytes.0 == 0) {
        let files = plan.classes.iter().map(|class| room(*class, sizes).0).sum();
        plan.bytes = if plan.kind.is_some() { with_file_system(files) } else { Bytes(files) };
    }
    plans
}

/// What stands for the place that nobody named.
fn here(setup: &Setup, sizes: &Sizes, made: &str) -> Vec<Plan> {
    let left = || setup.classes().filter(|class| *setup.storage(*class) == Storage::Here);
    let plan =
        |role: String, classes, bytes, kind| Plan { role, classes, bytes, kind, storage: Storage::Here };
    match setup.fs {
        Fs::Here => Vec::new(),
        Fs::Made { .. } => {
            let bytes = with_file_system(left().map(|class| room(class, sizes).0).sum());
            vec![plan("all".into(), Vec::new(), bytes, Some(made.to_owned()))]
        }
        Fs::Raw => left()
            .flat_map(|class| {
                let devices = match class {
                    FileClass::Redo => sizes.redo_groups,
                    // The control file, SYSTEM and the alert log need names: they stay in the directory.
                    FileClass::Control => 0,
                    FileClass::Data | FileClass::Undo | FileClass::Temp | FileClass::Flash => 1,
                };
                let bytes =
                    Bytes::mib((room(class, sizes).0 / u64::from(devices.max(1))).div_ceil(1 << 20) + 1);
                let role = move |n| if devices > 1 { format!("{class}-{n}") } else { class.to_string() };
                (1..=devices).map(move |n| plan(format!("raw-{}", role(n)), vec![class], bytes, None))
            })
            .collect(),
    }
}

/// Room for files of so many bytes with what a file system keeps for itself and a copy-on-write one needs to move in.
fn with_file_system(bytes: u64) -> Bytes {
    let wanted = (bytes + bytes / 4 + SYSTEM_BYTES.0 + (64 << 20)).max(FILE_SYSTEM_MIN.0);
    Bytes::mib(wanted.div_ceil(1 << 20))
}

/// A volume that stands.
pub(super) struct Volume {
    plan: Plan,
    node: PathBuf,
    /// The loop file and the undo of its device; none for a device that the user named.
    ours: Option<(PathBuf, Step)>,
    /// The undo of the file system on a device that the user named.
    labelled: Option<Step>,
    /// Mount point; none without a file system.
    point: Option<PathBuf>,
    mounted: Option<MountedAt>,
    /// Options that were asked for.
    pub(super) options: String,
    /// What writing the loop file took, which the next stage finds there.
    pub(super) lasting: Nanos,
}

impl Volume {
    /// Makes the device, and the file system on it; [`Volume::mount`] follows.
    pub(super) fn make(plan: Plan, workspace: &Workspace, bench: &mut Bench) -> Result<Self, LabError> {
        let mut lasting = Nanos(0);
        let (node, ours) = match &plan.storage {
            Storage::Device(device) => (named(device, plan.bytes)?, None),
            _ => {
                let file = workspace.list(&format!("{}.disk", plan.role))?;
                let (new, began) = (!file.exists(), clock::now());
                loop_file(&file, plan.bytes)?;
                if new {
                    lasting = clock::now() - began;
                }
                let device = change::loop_device(bench.journal(), &file, true, None)?;
                (device.path, Some((file, device.step)))
            }
        };
        let mut labelled = None;
        let point = match &plan.kind {
            None => None,
            Some(kind) => {
                if ours.is_some() {
                    change::make_file_system(bench.journal(), &node, kind, mkfs_options(kind))?;
                } else {
                    let step =
                        change::make_file_system_labelled(bench.journal(), &node, kind, mkfs_options(kind))?;
                    labelled = Some(step);
                }
                let point = workspace.list(&format!("{}.mnt", plan.role))?;
                std::fs::create_dir_all(&point).map_err(|e| failed("make", &point, &e))?;
                Some(point)
            }
        };
        Ok(Self { plan, node, ours, labelled, point, mounted: None, options: String::new(), lasting })
    }

    /// Mounts it as `setup` says; nothing to do without a file system.
    pub(super) fn mount(&mut self, setup: &Setup, bench: &mut Bench) -> Result<(), LabError> {
        let (Some(point), Some(kind)) = (&self.point, &self.plan.kind) else { return Ok(()) };
        self.options = setup.mount_options();
        self.mounted = Some(change::mount(bench.journal(), &self.node, point, kind, &self.options)?);
        Ok(())
    }

    pub(super) fn unmount(&mut self, bench: &mut Bench) -> Result<(), LabError> {
        match self.mounted.take() {
            Some(mounted) => undo(bench, mounted.step),
            None => Ok(()),
        }
    }

    /// Detaches the device, or blanks the one that the user named.
    pub(super) fn dismantle(self, bench: &mut Bench) -> Result<(), LabError> {
        match (&self.ours, self.labelled) {
            (Some((_, step)), _) => undo(bench, *step),
            (None, Some(step)) => undo(bench, step),
            (None, None) => Ok(change::blank(&self.node)?),
        }
    }

    /// Where files go: the mount point or the device itself.
    pub(super) fn place(&self) -> &Path {
        self.point.as_deref().unwrap_or(&self.node)
    }

    /// What has no place of its own lies here.
    pub(super) fn holds_the_rest(&self) -> bool {
        self.is_here() && self.point.is_some()
    }

    /// Stands for the place that nobody named: what is said of `the device` is said of this one.
    pub(super) fn is_here(&self) -> bool {
        self.plan.storage == Storage::Here
    }

    /// Stands for `storage`.
    pub(super) fn stands_for(&self, storage: &Storage) -> bool {
        self.plan.storage == *storage
    }

    /// The cap on it under `setup`.
    pub(super) fn limit(&self, setup: &Setup) -> Option<Limit> {
        match self.plan.storage {
            Storage::Throttled { limit, .. } => Some(limit),
            Storage::Here => setup.throttle,
            Storage::Directory(_) | Storage::Device(_) => None,
        }
    }

    /// The device as the kernel describes it now.
    ///
    /// # Panics
    /// It is gone, although nobody but us detaches it.
    pub(super) fn device(&self) -> Device {
        let gone = || panic!("{} was detached by somebody else", self.node.display());
        facts::storage(&self.node).top().cloned().unwrap_or_else(gone)
    }

    pub(super) fn node(&self) -> &Path {
        &self.node
    }

    pub(super) fn loop_file(&self) -> Option<&Path> {
        self.ours.as_ref().map(|(file, _)| file.as_path())
    }

    pub(super) fn kind(&self) -> Option<&str> {
        self.plan.kind.as_deref()
    }

    pub(super) fn classes(&self) -> &[FileClass] {
        &self.plan.classes
    }
}

/// No discards: they would punch holes into the loop file, whose blocks were all written for a reason.
fn mkfs_options(kind: &str) -> &'static [&'static str] {
    match kind {
        "ext2" | "ext3" | "ext4" => &["-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
        "xfs" | "btrfs" => &["-K"],
        _ => &[],
    }
}

/// A file of that size whose every block was written: a hole would be filled at the first write, by the file system below. One
/// that is left of an earlier stage is used again.
fn loop_file(file: &Path, bytes: Bytes) -> Result<(), LabError> {
    match std::fs::metadata(file) {
        Ok(there) if there.len() == bytes.0 => return Ok(change::blank(file)?),
        Ok(_) => std::fs::remove_file(file).map_err(|e| failed("remove", file, &e))?,
        Err(_) => {}
    }
    let access = Access { read: true, write: true, direct: true, dsync: false };
    RealStorage.create(file, bytes.0, access)?;
    Ok(())
}

/// The device that the user named, which must be free and large enough; what was on it has no name, and its ends are blanked.
fn named(device: &Path, bytes: Bytes) -> Result<PathBuf, LabError> {
    let checked = facts::in_use(device)?;
    checked.must_be_free()?;
    let size = facts::storage(&checked.device).top().map_or(0, |d| d.size_bytes);
    if size < bytes.0 {
        return Err(LabError::Target(format!(
            "{} has {}, and {bytes} are needed on it. Name a larger device, or type a smaller --size.",
            device.display(),
            Bytes(size)
        )));
    }
    change::blank(&checked.device)?;
    Ok(checked.device)
}

pub(super) fn failed(what: &str, path: &Path, error: &std::io::Error) -> LabError {
    LabError::Target(format!("cannot {what} {}: {error}. Is the disk full? See: df -h", path.display()))
}
