//! The disk's health, the file system and its options, the request queue: what the system says about itself.

use super::{Finding, Level, Patient};
use host::facts::{self, Device, DeviceKind, Mount, Smart};
use io::{Access, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use units::{Bytes, Nanos};

pub(super) fn examine(patient: &Patient, cancel: &AtomicBool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let leaves = patient.storage.leaves();
    for disk in &leaves {
        findings.extend(ask(disk, cancel).map(|smart| health(disk, &smart)));
    }
    if leaves.is_empty() {
        findings.push(no_disk(patient.storage.mount.as_ref()));
    }
    if let Some(mount) = &patient.storage.mount {
        findings.extend(file_system(mount));
        findings.extend(options(mount, effective(patient)));
        findings.extend(patient.directory.as_deref().map(space));
    }
    findings.extend(extents(&patient.path));
    findings.extend(patient.storage.top().map(read_ahead));
    findings.extend(leaves.iter().flat_map(|d| queue(d)));
    findings.extend(patient.storage.stack.iter().filter_map(loop_device));
    findings.extend(patient.storage.stack.iter().filter_map(alignment));
    findings
}

/// SMART of `disk`; none when cancelled. A dying disk may take 15 s to answer, and Ctrl-C must not wait for it: the thread
/// that asks is left to end by itself.
fn ask(disk: &Device, cancel: &AtomicBool) -> Option<Smart> {
    let (answer, heard) = mpsc::channel();
    let asked = disk.clone();
    // Nobody hears it after Ctrl-C.
    std::thread::spawn(move || drop(answer.send(facts::smart(&asked))));
    while !cancel.load(Ordering::Relaxed) {
        match heard.recv_timeout(Nanos::millis(50).duration()) {
            Ok(smart) => return Some(smart),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

fn health(disk: &Device, smart: &Smart) -> Finding {
    let name = &disk.name;
    match smart {
        Smart::Known { passed, attributes, critical, .. } if critical.is_empty() => {
            let shown: Vec<String> = attributes.iter().take(6).map(|(k, v)| format!("{k} {v}")).collect();
            let verdict = if *passed == Some(true) { "passes its self-test" } else { "reports no trouble" };
            Finding::good("health", format!("{name} {verdict}: {}", shown.join(", ")))
        }
        Smart::Known { critical, .. } => Finding::bad("health", format!("{name}: {}", critical.join("; ")))
            .effect("a failing disk retries for seconds: its tail latencies say nothing about its kind, and the data is at risk")
            .advice(format!("back up now, replace it, then measure; details: sudo smartctl -a {}", disk.path().display())),
        Smart::Unknown { reason } => {
            let own = format!("/dev/{name}: ");
            let finding = Finding::unknown("health", format!("{name}: {}", reason.trim_start_matches(&own)));
            match disk.kind {
                DeviceKind::Virtio | DeviceKind::Xen => finding.effect("a virtual disk hides the health of what is under it").advice("ask the provider, or run this on the host"),
                _ => finding.effect("a failing disk would not be noticed"),
            }
        }
    }
}

fn no_disk(mount: Option<&Mount>) -> Finding {
    match mount {
        Some(m) if m.is_memory() => Finding::bad("storage", format!("{} is {}: memory, no disk", m.mount_point.display(), m.fs_type))
            .effect("every figure is the memory's")
            .advice("give a directory on a disk (see: df -hT)"),
        Some(m) if m.is_network() => Finding::note("storage", format!("{} comes from {} by {}", m.mount_point.display(), m.source, m.fs_type))
            .effect("no device counter of this machine sees the requests: the server's cache cannot be told from its disks")
            .advice("run redoubt doctor on the server too"),
        Some(m) => Finding::unknown("storage", format!("the disks under {} ({}) are not shown by the kernel", m.mount_point.display(), m.fs_type))
            .effect("requests cannot be checked against the device's own counters"),
        None => Finding::unknown("storage", "no disk was found under this path"),
    }
}

fn file_system(mount: &Mount) -> Vec<Finding> {
    let seen = format!("{} on {}", mount.fs_type, mount.mount_point.display());
    match mount.fs_type.as_str() {
        "ext4" | "xfs" => vec![Finding::good("file system", seen)],
        "btrfs" | "bcachefs" => vec![
            Finding::warn("file system", format!("{seen}: copies on write"))
                .effect("every overwrite goes to a new place: a database file falls to pieces, and direct writes may be checksummed through the cache")
                .advice("for database files: chattr +C DIRECTORY   before they are made"),
        ],
        "zfs" => vec![
            Finding::warn("file system", format!("{seen}: has a cache of its own (ARC)"))
                .effect("reads that the page cache does not have may still come from memory; counters of the disks are not linked to it here")
                .advice("zfs set primarycache=metadata recordsize=8k DATASET"),
        ],
        "overlay" => vec![
            Finding::warn("file system", format!("{seen}: a container's layer"))
                .effect("the first write to a file copies it whole; mount options are those of the layer below")
                .advice("put database files on a volume of their own"),
        ],
        kind if kind.starts_with("fuse") => vec![
            Finding::warn("file system", format!("{seen}: runs in a process"))
                .effect("each request wakes another process: its scheduling is in every latency"),
        ],
        _ => vec![Finding::note("file system", seen)],
    }
}

/// ext4 shows its defaults only here.
fn effective(patient: &Patient) -> Option<&str> {
    patient.storage.facts.iter().find(|f| f.name == "effective_options")?.value.as_deref()
}

/// Whether an option is on, its level, its name, what it does to results, what to do.
type Row<'a> = (bool, Level, &'a str, &'static str, &'static str);

fn options(mount: &Mount, effective: Option<&str>) -> Vec<Finding> {
    let has = |name: &str| {
        mount.option(name).is_some() || effective.is_some_and(|e| e.split(',').any(|o| o == name))
    };
    let no_barriers = has("nobarrier") || has("barrier=0") || mount.option("barrier") == Some("0");
    let compress =
        ["compress", "compress-force", "compress_algorithm"].iter().find_map(|name| mount.option(name));
    let compression = format!("compression {}", compress.unwrap_or_default());
    #[rustfmt::skip]
    let rows: [Row<'_>; 9] = [
        (no_barriers, Level::Bad, "no barriers",
         "syncs do not flush the disk's cache: fast, and lost at a power cut",
         "remount with barrier=1"),
        (mount.option("sync").is_some(), Level::Bad, "sync",
         "every write waits for the disk, metadata included: no mode is what its name says",
         "remount without sync"),
        (has("data=journal"), Level::Warn, "data=journal",
         "all data is written twice, and direct I/O goes through the cache",
         "remount with data=ordered"),
        (has("nojournal"), Level::Warn, "no journal",
         "syncs that change metadata are cheaper than on an ordinary ext4, and a crash needs a full fsck",
         "tune2fs -O has_journal DEVICE   (unmounted)"),
        (has("data=writeback"), Level::Note, "data=writeback",
         "after a crash a grown file may show old blocks; rates are a little higher than with ordered",
         ""),
        (has("discard"), Level::Note, "discard",
         "deleting files sends discards at once: on some disks writes stall behind them, and a re-used file starts as if new",
         "remount with nodiscard and run fstrim weekly: systemctl enable fstrim.timer"),
        (has("strictatime"), Level::Warn, "strictatime",
         "every read of a file dirties its inode",
         "remount with relatime or noatime"),
        (compress.is_some(), Level::Warn, &compression,
         "redoubt writes incompressible blocks, a database does not: real files will be smaller, cost more CPU, and bypass direct I/O",
         "chattr +C DIRECTORY, or mount without compress, for database files"),
        (mount.option("ro").is_some(), Level::Warn, "read-only",
         "only reads can be measured",
         "sudo mount -o remount,rw MOUNTPOINT"),
    ];
    let mut found = told(mount, &rows);
    if mount.fs_type.starts_with("nfs") {
        found.extend(nfs(mount));
    }
    if found.is_empty() {
        let all = mount.options.iter().chain(&mount.super_options).cloned().collect::<Vec<_>>().join(",");
        found.push(Finding::good("mount options", all));
    }
    found
}

fn told(mount: &Mount, rows: &[Row<'_>]) -> Vec<Finding> {
    let on = rows.iter().filter(|(on, ..)| *on);
    on.map(|(_, level, option, effect, advice)| {
        Finding::new(*level, "mount options", format!("{option} on {}", mount.mount_point.display()))
            .effect(*effect)
            .advice(*advice)
    })
    .collect()
}

fn nfs(mount: &Mount) -> Vec<Finding> {
    let size = |name| mount.option(name).and_then(|v| v.parse::<u64>().ok());
    let small = |name| size(name).is_some_and(|bytes| bytes < 262_144);
    let words = |name| format!("{name}={}", size(name).unwrap_or(0));
    let (read, write) = (words("rsize"), words("wsize"));
    const CUT: &str = "large transfers are cut into more requests than needed";
    #[rustfmt::skip]
    let rows: [Row<'_>; 4] = [
        (mount.option("soft").is_some(), Level::Bad, "soft",
         "a slow server becomes an I/O error, and a database file is damaged",
         "remount with hard"),
        (mount.option("nconnect").is_none(), Level::Note, "one connection",
         "all requests share one TCP connection, which is often the limit and not the server",
         "remount with nconnect=8"),
        (small("rsize"), Level::Note, &read, CUT, "remount with rsize=1048576"),
        (small("wsize"), Level::Note, &write, CUT, "remount with wsize=1048576"),
    ];
    told(mount, &rows)
}

/// Check D1 of docs/method.md, section 7: what is not on the device is not read from it.
fn extents(path: &Path) -> Option<Finding> {
    if !path.is_file() {
        return None;
    }
    let access = Access { read: true, write: false, direct: false, dsync: false };
    Some(match File::open(path, access).and_then(|file| file.extents()) {
        Ok(extents) => judge_extents(extents.not_on_device(), extents.total_bytes),
        Err(error) => Finding::unknown("file", error.to_string()),
    })
}

fn judge_extents(missing: u64, total: u64) -> Finding {
    let seen = format!("{} of {} were never written (holes, reserved extents)", Bytes(missing), Bytes(total));
    if missing == 0 {
        Finding::good("file", format!("all {} are on the device", Bytes(total)))
    } else if missing as f64 > total as f64 * 1e-3 {
        Finding::bad("file", seen)
            .effect("reads of them never reach the disk: hundreds of thousands a second, of nothing")
            .advice("copy it without holes: cp --sparse=never FILE NEW")
    } else {
        Finding::note("file", seen).effect("too few to matter")
    }
}

fn space(directory: &Path) -> Finding {
    let Ok(free) = io::prepare::free_space(directory) else {
        return Finding::unknown("free space", format!("of {} cannot be read", directory.display()));
    };
    judge_space(free, &directory.display().to_string())
}

fn judge_space(free: u64, place: &str) -> Finding {
    let seen = format!("{} free in {place}", Bytes(free));
    if free < 1 << 30 {
        Finding::bad("free space", seen)
            .effect("no room for a test file that tells anything; a full disk stops a database")
            .advice(format!("du -xh {place} | sort -h | tail"))
    } else if free < 4 << 30 {
        Finding::warn("free space", seen)
            .effect("the test file must be small, so caches serve much of it")
            .advice("free some, or give another place")
    } else {
        Finding::good("free space", seen)
    }
}

fn read_ahead(top: &Device) -> Finding {
    let Some(kib) = top.queue.read_ahead_kb else {
        return Finding::unknown("read-ahead", format!("of {} cannot be read", top.name));
    };
    let seen = format!("{kib} KiB on {}", top.name);
    match kib {
        0..32 => Finding::warn("read-ahead", seen)
            .effect("cached scans read block by block: one stream stays far below what the device can do")
            .advice(format!("echo 256 | sudo tee /sys/block/{}/queue/read_ahead_kb", top.disk_name())),
        32..2048 => Finding::good("read-ahead", seen),
        _ => Finding::note("read-ahead", seen)
            .effect("cached scans look good; cached reads that are only a little sequential fetch megabytes that nobody asked for")
            .advice(format!("for single-block reads: echo 256 | sudo tee /sys/block/{}/queue/read_ahead_kb", top.disk_name())),
    }
}

fn queue(disk: &Device) -> Vec<Finding> {
    let (name, q) = (&disk.name, &disk.queue);
    let file = |setting: &str| format!("/sys/block/{}/queue/{setting}", disk.disk_name());
    let mut found = vec![scheduler(disk)];
    if q.iostats == Some(false) {
        found.push(
            Finding::bad("counters", format!("{name} counts nothing (iostats is off)"))
                .effect("no figure can be checked against the device: a cache could have served it")
                .advice(format!("echo 1 | sudo tee {}", file("iostats"))),
        );
    }
    if q.rotational == Some(true)
        && matches!(disk.kind, DeviceKind::Virtio | DeviceKind::Xen | DeviceKind::Nvme)
    {
        found.push(
            Finding::note(
                "rotational",
                format!("{name} says that it rotates; virtual disks mostly say so without knowing"),
            )
            .effect("file systems and the kernel then choose settings for a spinning disk")
            .advice(format!("if it is flash: echo 0 | sudo tee {}", file("rotational"))),
        );
    }
    if q.wbt_us.is_some_and(|us| us > 0) {
        found.push(
            Finding::note("write-back", format!("{name} holds back buffered writes when reads take longer than {} ms", q.wbt_us.unwrap_or(0) / 1_000))
                .effect("cached writes slow down while reads are measured beside them; direct writes do not: part of the difference between the modes is this"),
        );
    }
    if q.nr_requests.is_some_and(|n| n < 64) {
        found.push(
            Finding::warn(
                "queue depth",
                format!("{name} takes {} requests at once", q.nr_requests.unwrap_or(0)),
            )
            .effect("beyond that, requests wait in this host: the knee is the queue's, not the device's")
            .advice(format!("echo 256 | sudo tee {}", file("nr_requests"))),
        );
    }
    found
}

fn scheduler(disk: &Device) -> Finding {
    let Some(scheduler) = disk.queue.scheduler.as_deref() else {
        return Finding::unknown("scheduler", format!("of {} cannot be read", disk.name));
    };
    let seen = format!("{scheduler} on {}", disk.name);
    let advice = format!("echo none | sudo tee /sys/block/{}/queue/scheduler", disk.disk_name());
    match (scheduler, disk.kind) {
        ("bfq" | "cfq", _) => Finding::warn("scheduler", seen)
            .effect(
                "shares the disk fairly between processes at the price of rate: flash loses a third and more",
            )
            .advice(advice),
        ("none" | "noop", _)
        | (
            "mq-deadline" | "deadline" | "kyber",
            DeviceKind::Scsi | DeviceKind::Virtio | DeviceKind::Xen | DeviceKind::Other,
        ) => Finding::good("scheduler", seen),
        _ => Finding::note("scheduler", seen)
            .effect("costs a lock per request that this kind of device does not need")
            .advice(advice),
    }
}

/// Check A1. Only trouble is told: nearly everything is aligned.
fn alignment(device: &Device) -> Option<Finding> {
    let off = device.alignment_offset.filter(|off| *off != 0)?;
    Some(
        Finding::bad(
            "alignment",
            format!("{} starts {off} bytes off its disk's physical blocks", device.name),
        )
        .effect("each block written touches two physical ones, and the disk reads before it writes")
        .advice("make the partition anew, starting at 1 MiB"),
    )
}

/// A loop device without direct I/O is a cache that looks like a disk.
fn loop_device(device: &Device) -> Option<Finding> {
    let file = device.backing_file.as_ref()?;
    if device.backing_direct? {
        return Some(Finding::good(
            "loop device",
            format!("{} shows {} past the page cache", device.name, file.display()),
        ));
    }
    Some(
        Finding::warn(
            "loop device",
            format!("{} shows {} through the page cache", device.name, file.display()),
        )
        .effect("direct reads of it are served from memory: rates are the cache's")
        .advice(format!("sudo losetup --direct-io=on {}", device.path().display())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::facts::Queue;

    fn mount(fs_type: &str, options: &[&str], super_options: &[&str]) -> Mount {
        let own = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        Mount {
            id: 1,
            source: "/dev/sda1".into(),
            mount_point: "/data".into(),
            root: "/".into(),
            fs_type: fs_type.into(),
            options: own(options),
            super_options: own(super_options),
            device: (8, 1),
        }
    }

    fn disk(name: &str, kind: DeviceKind, queue: Queue) -> Device {
        Device {
            name: name.into(),
            number: (8, 0),
            kind,
            size_bytes: 1 << 40,
            queue,
            slaves: vec![],
            is_leaf: true,
            model: None,
            backing_file: None,
            backing_direct: None,
            wire_bytes_per_second: None,
            alignment_offset: Some(0),
        }
    }

    #[track_caller]
    fn check(findings: &[Finding], level: Level, words: &str) {
        assert!(
            findings.iter().any(|f| f.level == level && f.seen.contains(words)),
            "no {level:?} with {words:?} in {findings:#?}"
        );
    }

    #[test]
    fn options_that_shift_results_are_named() {
        check(&options(&mount("ext4", &["rw", "relatime"], &["rw"]), None), Level::Good, "rw,relatime");
        check(&options(&mount("ext4", &["rw"], &["rw", "nobarrier"]), None), Level::Bad, "no barriers");
        check(
            &options(&mount("ext4", &["rw"], &["rw"]), Some("rw,barrier,data=journal")),
            Level::Warn,
            "data=journal",
        );
        check(
            &options(&mount("ext4", &["rw"], &["rw"]), Some("rw,nojournal,barrier")),
            Level::Warn,
            "no journal",
        );
        check(&options(&mount("ext4", &["rw"], &["rw", "discard"]), None), Level::Note, "discard");
        check(
            &options(&mount("btrfs", &["rw"], &["compress=zstd:1"]), None),
            Level::Warn,
            "compression zstd:1",
        );
        check(&options(&mount("nfs4", &["rw"], &["soft", "rsize=32768"]), None), Level::Bad, "soft");
        check(&options(&mount("nfs4", &["rw"], &["hard", "rsize=32768"]), None), Level::Note, "rsize=32768");
        check(&options(&mount("ext4", &["rw", "sync"], &["rw"]), None), Level::Bad, "sync");
    }

    #[test]
    fn settings_of_the_queue_are_judged_by_the_kind_of_disk() {
        let with = |scheduler: &str| Queue { scheduler: Some(scheduler.into()), ..Queue::default() };
        check(&queue(&disk("sda", DeviceKind::Scsi, with("mq-deadline"))), Level::Good, "mq-deadline");
        check(&queue(&disk("nvme0n1", DeviceKind::Nvme, with("mq-deadline"))), Level::Note, "mq-deadline");
        check(&queue(&disk("nvme0n1", DeviceKind::Nvme, with("bfq"))), Level::Warn, "bfq");
        check(&queue(&disk("sda", DeviceKind::Scsi, Queue::default())), Level::Unknown, "of sda");
        let silent = Queue { iostats: Some(false), nr_requests: Some(32), ..with("none") };
        check(&queue(&disk("sda", DeviceKind::Scsi, silent.clone())), Level::Bad, "counts nothing");
        check(&queue(&disk("sda", DeviceKind::Scsi, silent)), Level::Warn, "32 requests");
        let ahead = |kib| {
            [read_ahead(&disk("sda", DeviceKind::Scsi, Queue { read_ahead_kb: kib, ..Queue::default() }))]
        };
        check(&ahead(Some(128)), Level::Good, "128 KiB");
        check(&ahead(Some(8192)), Level::Note, "8192 KiB");
        check(&ahead(Some(0)), Level::Warn, "0 KiB");
        check(&ahead(None), Level::Unknown, "sda");
    }

    #[test]
    fn a_dying_disk_is_bad_and_a_silent_one_unknown() {
        let sda = disk("sda", DeviceKind::Scsi, Queue::default());
        let sick = Smart::Known {
            passed: Some(false),
            attributes: vec![],
            critical: vec!["24 reallocated sectors".into()],
            failing: vec![],
            errors: vec![],
            celsius: None,
            too_warm_minutes: None,
            raw: String::new(),
        };
        check(&[health(&sda, &sick)], Level::Bad, "24 reallocated");
        let silent = Smart::Unknown { reason: "Unable to detect device type".into() };
        check(&[health(&sda, &silent)], Level::Unknown, "Unable");
        let well = Smart::Known {
            passed: Some(true),
            attributes: vec![("wear".into(), "3 %".into())],
            critical: vec![],
            failing: vec![],
            errors: vec![],
            celsius: None,
            too_warm_minutes: None,
            raw: String::new(),
        };
        check(&[health(&sda, &well)], Level::Good, "wear 3 %");
    }

    #[test]
    fn space_and_kinds_of_file_systems() {
        let off =
            Device { alignment_offset: Some(512), ..disk("sda1", DeviceKind::Partition, Queue::default()) };
        check(&[alignment(&off).unwrap()], Level::Bad, "512 bytes off");
        assert_eq!(alignment(&Device { alignment_offset: Some(0), ..off }), None);
        check(&[judge_extents(1 << 20, 1 << 30)], Level::Note, "1 MiB of 1 GiB");
        check(&[judge_extents(1 << 29, 1 << 30)], Level::Bad, "512 MiB of 1 GiB");
        check(&[judge_space(100 << 20, "/data")], Level::Bad, "100 MiB");
        check(&[judge_space(2 << 30, "/data")], Level::Warn, "2 GiB");
        check(&[judge_space(100 << 30, "/data")], Level::Good, "100 GiB");
        check(&file_system(&mount("btrfs", &[], &[])), Level::Warn, "copies on write");
        check(&[no_disk(Some(&mount("tmpfs", &[], &[])))], Level::Bad, "memory, no disk");
        check(&[no_disk(Some(&mount("zfs", &[], &[])))], Level::Unknown, "not shown");
    }
}
