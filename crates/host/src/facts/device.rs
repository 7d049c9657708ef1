//! One block device as sysfs describes it.

use super::mounts::parse_number;
use super::wire;
use crate::files;
use std::path::{Path, PathBuf};

/// What a block device is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A part of a disk.
    Partition,
    /// A file shown as a disk.
    Loop,
    /// Device mapper: LVM, encryption, multipath.
    DeviceMapper,
    /// Software RAID (md).
    Raid,
    /// NVMe namespace.
    Nvme,
    /// SCSI, SATA or USB disk (sd).
    Scsi,
    /// Virtual disk of KVM, QEMU or Firecracker.
    Virtio,
    /// Virtual disk of Xen.
    Xen,
    /// Memory shown as a disk (ram, zram, pmem).
    Memory,
    /// A disk on another machine (nbd, rbd, drbd).
    Network,
    /// None of these.
    Other,
}

impl DeviceKind {
    /// From the kernel's name and sysfs directory of a device.
    fn of(name: &str, directory: &Path) -> Self {
        if directory.join("partition").exists() {
            return Self::Partition;
        }
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        match stem {
            "loop" => Self::Loop,
            "dm-" => Self::DeviceMapper,
            "md" | "md_d" => Self::Raid,
            "ram" | "zram" | "pmem" => Self::Memory,
            "nbd" | "rbd" | "drbd" => Self::Network,
            _ if name.starts_with("nvme") => Self::Nvme,
            _ if name.starts_with("sd") => Self::Scsi,
            _ if name.starts_with("vd") => Self::Virtio,
            _ if name.starts_with("xvd") => Self::Xen,
            _ => Self::Other,
        }
    }
}

/// Settings of a request queue (`/sys/block/NAME/queue`); a partition has those of its disk. None is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The scheduler in force: `none`, `mq-deadline`, `bfq`, `kyber`.
    pub scheduler: Option<String>,
    /// Schedulers that could be chosen.
    pub schedulers: Vec<String>,
    /// Requests that the queue holds.
    pub nr_requests: Option<u64>,
    /// Read-ahead, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Largest request that is sent, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Says that it rotates; virtual disks often say so untruly.
    pub rotational: Option<bool>,
    /// `write back` (volatile cache: flushes needed) or `write through`.
    pub write_cache: Option<String>,
    /// Smallest addressable unit, bytes.
    pub logical_block: Option<u64>,
    /// Smallest unit written without read-modify-write, bytes.
    pub physical_block: Option<u64>,
    /// Discards are possible.
    pub discard: Option<bool>,
    /// Write-back throttling target, microseconds; 0 is off.
    pub wbt_us: Option<i64>,
    /// Counters are kept.
    pub iostats: Option<bool>,
    /// Device can write with force-unit-access.
    pub fua: Option<bool>,
    /// 0 merges all, 1 simple merges only, 2 none.
    pub nomerges: Option<u64>,
    /// Hardware queues.
    pub hardware_queues: Option<u64>,
    /// Depth of the device's own queue, where it tells.
    pub device_depth: Option<u64>,
}

/// A block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Kernel name: `vda`, `loop0`, `dm-3`.
    pub name: String,
    /// (major, minor).
    pub number: (u32, u32),
    /// What it is made of.
    pub kind: DeviceKind,
    /// Capacity, bytes.
    pub size_bytes: u64,
    /// Settings of its request queue.
    pub queue: Queue,
    /// Kernel names of the devices right under it: a partition's disk, a RAID's members, a loop device's backing disk.
    pub slaves: Vec<String>,
    /// Nothing known is under it.
    pub is_leaf: bool,
    /// Model or name as the device tells: `Samsung SSD 980`, an LVM volume's name.
    pub model: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// A loop device reads and writes that file past the page cache; none for other devices.
    pub backing_direct: Option<bool>,
    /// What the link to the disk can carry, bytes per second (PCIe, SATA).
    pub wire_bytes_per_second: Option<u64>,
    /// How far the device's first byte is off the physical blocks below, bytes; 0 is aligned.
    pub alignment_offset: Option<u64>,
}

impl Device {
    /// `/dev/NAME`.
    pub fn path(&self) -> PathBuf {
        // The kernel writes a slash in a name (cciss/c0d0) as an exclamation mark.
        Path::new("/dev").join(self.name.replace('!', "/"))
    }

    /// The disk that a partition is on, or the device itself.
    pub fn disk_name(&self) -> &str {
        match self.kind {
            DeviceKind::Partition => self.slaves.first().map_or(&self.name, |s| s),
            _ => &self.name,
        }
    }
}

/// The sysfs directory of a device by number.
pub(crate) fn directory_of(number: (u32, u32)) -> Option<PathBuf> {
    std::fs::canonicalize(format!("/sys/dev/block/{}:{}", number.0, number.1)).ok()
}

/// The number of a device by kernel name.
pub(crate) fn number_of(name: &str) -> Option<(u32, u32)> {
    parse_number(&files::text(format!("/sys/class/block/{}/dev", name.replace('/', "!")))?)
}

/// Reads the device in sysfs directory `directory`; slaves of loop devices are the caller's task.
pub(super) fn read(directory: &Path) -> Option<Device> {
    let name = directory.file_name()?.to_string_lossy().into_owned();
    let number = parse_number(&files::text(directory.join("dev"))?)?;
    let kind = DeviceKind::of(&name, directory);
    let disk = if kind == DeviceKind::Partition { directory.parent()? } else { directory };
    let slaves = match kind {
        DeviceKind::Partition => vec![disk.file_name()?.to_string_lossy().into_owned()],
        _ => files::names(directory.join("slaves")),
    };
    let backing_file =
        files::text(directory.join("loop/backing_file")).filter(|b| !b.is_empty()).map(PathBuf::from);
    Some(Device {
        number,
        kind,
        size_bytes: files::number::<u64>(directory.join("size"))?.saturating_mul(512),
        queue: queue(disk),
        is_leaf: slaves.is_empty(),
        slaves,
        model: model(disk),
        backing_file,
        wire_bytes_per_second: wire::bytes_per_second(disk),
        alignment_offset: files::number(directory.join("alignment_offset")),
        backing_direct: files::number::<u8>(directory.join("loop/dio")).map(|n| n != 0),
        name: name.replace('!', "/"),
    })
}

fn queue(disk: &Path) -> Queue {
    let queue = disk.join("queue");
    let number = |name: &str| files::number::<u64>(queue.join(name));
    let flag = |name: &str| number(name).map(|n| n != 0);
    let (scheduler, schedulers) =
        files::text(queue.join("scheduler")).map_or((None, Vec::new()), |t| parse_scheduler(&t));
    let hardware_queues = files::names(disk.join("mq")).len() as u64;
    Queue {
        scheduler,
        schedulers,
        nr_requests: number("nr_requests"),
        read_ahead_kb: number("read_ahead_kb"),
        max_sectors_kb: number("max_sectors_kb"),
        rotational: flag("rotational"),
        write_cache: files::text(queue.join("write_cache")),
        logical_block: number("logical_block_size"),
        physical_block: number("physical_block_size"),
        discard: number("discard_max_bytes").map(|n| n > 0),
        wbt_us: files::number(queue.join("wbt_lat_usec")),
        iostats: flag("iostats"),
        fua: flag("fua"),
        nomerges: number("nomerges"),
        hardware_queues: (hardware_queues > 0).then_some(hardware_queues),
        device_depth: files::number(disk.join("device/queue_depth")),
    }
}

/// `none [mq-deadline] kyber` as (`mq-deadline`, all three). A lone `none` without brackets is in force.
fn parse_scheduler(text: &str) -> (Option<String>, Vec<String>) {
    let all: Vec<String> = text.split_whitespace().map(|w| w.trim_matches(['[', ']']).to_owned()).collect();
    let chosen =
        text.split_whitespace().find(|w| w.starts_with('[')).map(|w| w.trim_matches(['[', ']']).to_owned());
    (chosen.or_else(|| all.first().filter(|_| all.len() == 1).cloned()), all)
}

fn model(disk: &Path) -> Option<String> {
    ["dm/name", "device/model", "md/level"]
        .iter()
        .find_map(|name| files::text(disk.join(name)))
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind() {
        let nowhere = Path::new("/no/such/directory");
        for (name, kind) in [
            ("loop7", DeviceKind::Loop),
            ("dm-12", DeviceKind::DeviceMapper),
            ("md127", DeviceKind::Raid),
            ("nvme0n1", DeviceKind::Nvme),
            ("sdab", DeviceKind::Scsi),
            ("vda", DeviceKind::Virtio),
            ("xvdf", DeviceKind::Xen),
            ("zram0", DeviceKind::Memory),
            ("nbd3", DeviceKind::Network),
            ("mmcblk0", DeviceKind::Other),
        ] {
            assert_eq!(DeviceKind::of(name, nowhere), kind, "{name}");
        }
    }

    #[test]
    fn the_scheduler_in_brackets_is_in_force() {
        let check = |text, chosen: Option<&str>, count| {
            let (scheduler, all) = parse_scheduler(text);
            assert_eq!((scheduler.as_deref(), all.len()), (chosen, count), "{text}");
        };
        check("none [mq-deadline] kyber bfq", Some("mq-deadline"), 4);
        check("[none]", Some("none"), 1);
        check("none", Some("none"), 1);
        check("", None, 0);
    }
}
