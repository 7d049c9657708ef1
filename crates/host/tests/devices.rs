//! Real devices: loop devices, throttles, mounts, and the refusals. Needs root, as CI has; without it these tests fail
//! and say so, because a promise that was not tried is not kept.

use host::HostError;
use host::change::{self, Limits, LoopDevice};
use host::facts::{self, DeviceKind, Use};
use host::journal::{CleanupResult, Journal, Undo};
use host::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::{Bytes, Nanos, clock};

/// A folder on a real disk (the target directory's, not a tmpfs), with a journal that undoes when it is dropped.
struct Bench {
    journal: Journal,
    space: Workspace,
    // Dropped last: the workspace must be gone by then.
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut journal = Journal::open_in(&folder.path().join("state"), "test").unwrap();
        let space = Workspace::create(folder.path(), &mut journal).unwrap();
        Self { journal, space, _folder: folder }
    }

    fn file(&self, name: &str, size: Bytes) -> PathBuf {
        let path = self.space.new_file_path(name);
        // Written, not truncated: reads of holes never reach a disk.
        fs::write(&path, vec![0; size.get() as usize]).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        path
    }

    fn device(&mut self, size: Bytes) -> LoopDevice {
        let name = format!("disk{}", fs::read_dir(self.space.path()).unwrap().count());
        let file = self.file(&name, size);
        change::loop_device(&mut self.journal, &file, true, None).unwrap()
    }
}

fn run(words: &[&str]) {
    let out =
        Command::new(words[0]).args(&words[1..]).output().unwrap_or_else(|e| panic!("{}: {e}", words[0]));
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Seconds that `dd` takes behind `prefix`.
fn dd(prefix: &[String], words: &[&str]) -> f64 {
    let all: Vec<&str> =
        prefix.iter().map(String::as_str).chain(["dd", "status=none"]).chain(words.iter().copied()).collect();
    let start = clock::now();
    run(&all);
    (clock::now() - start).as_secs()
}

/// Reads and writes per second of the device while four `dd` work on it, by its own counters over three seconds. Four,
/// because one alone loses a timer tick now and then; counted from the middle, because the kernel gives the first slice
/// of 100 ms in advance.
fn rates(disk: &LoopDevice, prefix: &[String], words: &[&str]) -> (f64, f64) {
    // Each in its own quarter of 64 MiB: neighbours would be merged, and a merged request is counted once.
    let start = |quarter: u32| {
        let all: Vec<&str> =
            prefix.iter().map(String::as_str).chain(["dd", "status=none", "bs=4096"]).collect();
        let place =
            format!("{}={}", if words[0] == "if=/dev/zero" { "seek" } else { "skip" }, quarter * 4096);
        Command::new(all[0]).args(&all[1..]).args(words).arg(place).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut workers: Vec<_> = (0..4).map(start).collect();
    clock::sleep(Nanos::millis(500));
    let watch = host::counters::Watch { disks: vec![disk.name.clone()], flushes: Vec::new() };
    // Outside of both looks: a busy machine may stop us between a look at the clock and one at the counters.
    let began = clock::now();
    let old = host::counters::snapshot(&watch);
    clock::sleep(Nanos::millis(3_000));
    let new = host::counters::snapshot(&watch);
    let seconds = (clock::now() - began).as_secs();
    for worker in &mut workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    let seen = host::counters::rates(&old.disks[&disk.name], &new.disks[&disk.name], seconds);
    (seen.r_s, seen.w_s)
}

/// What a limit promises is that nothing goes beyond it, but for portions of 100 ms that come late, at both edges of three seconds; how
/// near four readers come to it, the machine has a say in.
fn within_the_limit(rate: f64, limit: f64) {
    assert!(rate > 0.0 && rate / limit < 1.1, "{rate} a second under a limit of {limit}");
}

/// Lines of control groups of version 1 that limit the device, of any kind.
fn limits_of(disk: &LoopDevice) -> Vec<String> {
    let (key, folder) =
        (format!("{}:{} ", disk.device().number.0, disk.device().number.1), "/sys/fs/cgroup/blkio");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = files.filter_map(|path| std::fs::read_to_string(path).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    // Statistics of the device have its number too; limits are a number behind it.
    lines.filter(|line| line.strip_prefix(&key).is_some_and(|rest| rest.parse::<u64>().is_ok())).collect()
}

#[test]
fn a_throttle_of_150_gives_150() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(64));
    let limits = Limits { read_iops: Some(150), write_iops: Some(400), ..Limits::default() };
    let throttle = change::throttle(&mut bench.journal, &disk.device(), limits).unwrap();
    let prefix = throttle.command_prefix();
    let (source, target) = (format!("if={}", disk.path.display()), format!("of={}", disk.path.display()));
    let reads = rates(&disk, &prefix, &[&source, "of=/dev/null", "iflag=direct"]).0;
    within_the_limit(reads, 150.0);
    let writes = rates(&disk, &prefix, &["if=/dev/zero", &target, "oflag=direct", "conv=notrunc"]).1;
    within_the_limit(writes, 400.0);
    throttle.change(&disk.device(), Limits { read_iops: Some(1_500), ..Limits::default() }).unwrap();
    let reads = rates(&disk, &prefix, &[&source, "of=/dev/null", "iflag=direct"]).0;
    within_the_limit(reads, 1_500.0);
}

#[test]
fn a_throttle_for_everybody_slows_buffered_writes_too() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(16));
    let limits = Limits { write_bps: Some(8 << 20), ..Limits::default() };
    let steps = change::throttle_everybody(&mut bench.journal, &disk.device(), limits).unwrap();
    let target = format!("of={}", disk.path.display());
    let write = || dd(&[], &["if=/dev/zero", &target, "bs=1M", "count=16", "conv=notrunc,fdatasync"]);
    let seconds = write();
    assert!(seconds > 1.7, "16 MiB at 8 MiB/s took {seconds} s");
    assert!(!limits_of(&disk).is_empty());
    let again = change::throttle_everybody(&mut bench.journal, &disk.device(), limits);
    assert!(
        matches!(again, Err(HostError::AlreadyThere { .. })),
        "a limit of others is never replaced: {again:?}"
    );
    for step in steps {
        assert_eq!(bench.journal.undo(step), Ok(CleanupResult::Undone));
    }
    assert_eq!(limits_of(&disk), Vec::<String>::new());
}

#[test]
fn our_own_limits_are_seen() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(4));
    let device = disk.device();
    let limits = Limits { read_iops: Some(77), write_bps: Some(1 << 20), ..Limits::default() };
    let throttle = change::throttle(&mut bench.journal, &device, limits).unwrap();
    let seen = |name| {
        facts::cgroup_limits(std::slice::from_ref(&device))
            .into_iter()
            .find(|f| f.name == name)
            .and_then(|f| f.value)
    };
    assert_eq!((seen("read_iops"), seen("io_limit").as_deref()), (None, Some("unlimited")));
    throttle.enter_self().unwrap();
    let inside = (seen("read_iops"), seen("write_bps"), seen("io_limit"));
    throttle.leave_self().unwrap();
    assert_eq!(inside, (Some("77".into()), Some("1048576".into()), None));
    assert_eq!(seen("read_iops"), None);
}

#[test]
fn the_stack_goes_through_mount_and_loop_to_the_disk() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(32));
    change::make_file_system(&bench.journal, &disk.path, "ext4", &["-F"]).unwrap();
    let point = bench.space.list("mnt").unwrap();
    fs::create_dir(&point).unwrap();
    let mounted =
        change::mount(&mut bench.journal, &disk.path, &point, "ext4", "noatime,data=writeback").unwrap();
    let seen = facts::storage(&mounted.path.join("not/made/yet"));
    let mount = seen.mount.as_ref().unwrap();
    assert_eq!((mount.fs_type.as_str(), mount.mount_point.as_path()), ("ext4", point.as_path()));
    assert!(mount.option("noatime").is_some() && mount.option("data") == Some("writeback"), "{mount:?}");
    let top = seen.top().unwrap();
    assert_eq!((top.name.as_str(), top.kind, top.is_leaf), (disk.name.as_str(), DeviceKind::Loop, false));
    assert!(top.size_bytes == 32 << 20 && top.backing_file.is_some());
    let below = facts::storage(bench.space.path());
    assert_eq!(seen.counter_devices(), below.counter_devices(), "the disks of the backing file");
    assert!(
        seen.facts.iter().any(|f| f.name == "effective_options"
            && f.value.as_ref().is_some_and(|v| v.contains("data=writeback")))
    );
    let full = change::mount(&mut bench.journal, &disk.path, &point, "ext4", "");
    assert!(matches!(full, Err(HostError::AlreadyThere { .. })), "{full:?}");
    assert_eq!(bench.journal.undo(mounted.step), Ok(CleanupResult::Undone));
    assert_eq!(bench.journal.undo(mounted.step), Ok(CleanupResult::AlreadyGone));
}

#[test]
fn sectors_of_4096_bytes() {
    let mut bench = Bench::new();
    let file = bench.file("disk", Bytes::mib(4));
    let disk = change::loop_device(&mut bench.journal, &file, true, Some(4096)).unwrap();
    assert_eq!(disk.device().queue.logical_block, Some(4096));
}

#[test]
fn queue_settings_change_and_come_back() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(4));
    let path = format!("/sys/block/{}/queue/read_ahead_kb", disk.name);
    let old = change::read_setting(Path::new(&path)).unwrap();
    let step = change::set_queue(&mut bench.journal, &disk.name, "read_ahead_kb", "512").unwrap();
    assert_eq!(change::read_setting(Path::new(&path)).as_deref(), Some("512"));
    bench.journal.undo(step).unwrap();
    assert_eq!(change::read_setting(Path::new(&path)), Some(old.clone()));
    let rounded = change::set_queue(&mut bench.journal, &disk.name, "read_ahead_kb", "5").unwrap_err();
    assert!(rounded.to_string().contains("the kernel made \"4\" of it"), "{rounded}");
    assert_eq!(change::read_setting(Path::new(&path)), Some(old), "a change that is not in force is undone");
    assert!(change::set_queue(&mut bench.journal, &disk.name, "scheduler", "cfq").is_err());
}

/// The kernel resizes a queue when its scheduler changes, and forgets the tuning of the one before.
#[test]
fn a_scheduler_goes_back_with_everything_that_it_changed() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(4));
    let mut set = |name: &str, value: &str| {
        change::set_queue(&mut bench.journal, &disk.name, name, value).unwrap();
    };
    set("scheduler", "mq-deadline");
    set("nr_requests", "64");
    set("iosched/read_expire", "80");
    let shown = || {
        ["scheduler", "nr_requests", "wbt_lat_usec", "iosched/read_expire"]
            .map(|name| change::queue_setting(&disk.name, name).unwrap())
    };
    let before = shown();
    assert_eq!((before[0].as_str(), before[1].as_str(), before[3].as_str()), ("mq-deadline", "64", "80"));
    let step = change::set_queue(&mut bench.journal, &disk.name, "scheduler", "bfq").unwrap();
    assert_ne!(
        change::queue_setting(&disk.name, "nr_requests").as_deref(),
        Some("64"),
        "else this shows nothing"
    );
    assert_eq!(bench.journal.undo(step), Ok(CleanupResult::Undone));
    assert_eq!(shown(), before);
}

#[test]
fn a_scheduler_that_is_not_there_is_named_with_those_that_are() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(4));
    let error =
        change::set_queue(&mut bench.journal, &disk.name, "scheduler", "cfq").unwrap_err().to_string();
    for text in ["\"cfq\"", "[none]", "mq-deadline", "cat /sys/block/"] {
        assert!(error.contains(text), "{text} is not in {error}");
    }
}

/// Options that this kernel takes and then does not follow: dropped, or made into another value.
#[test]
fn mount_options_that_the_kernel_drops_are_found() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(128));
    for (fs_type, options, lost) in [
        ("ext4", "noatime,data=writeback,barrier=0", None),
        ("ext4", "noatime,mblk_io_submit", Some("mount option mblk_io_submit")),
        ("ext4", "commit=0", Some("mount option commit=0")),
        ("btrfs", "compress=zlib:99", Some("compress=zlib:9,")),
        ("btrfs", "compress=zstd,nodatasum", None),
    ] {
        run(&["wipefs", "-qa", &disk.path.display().to_string()]);
        change::make_file_system(&bench.journal, &disk.path, fs_type, &[]).unwrap();
        let point = bench.space.list("mnt").unwrap();
        fs::create_dir_all(&point).unwrap();
        let mounted = change::mount(&mut bench.journal, &disk.path, &point, fs_type, options).unwrap();
        let proof = facts::mount_options_in_force(options, &point).map_err(|e| e.to_string());
        let line = facts::mountinfo_line(&point).unwrap();
        let magic = facts::magic(&point);
        bench.journal.undo(mounted.step).unwrap();
        match lost {
            None => assert_eq!(proof, Ok(())),
            Some(text) => assert!(proof.as_ref().unwrap_err().contains(text), "{options}: {proof:?}"),
        }
        assert!(line.contains(&format!(" - {fs_type} {} ", disk.path.display())), "{line}");
        assert_eq!(magic, Some(if fs_type == "ext4" { 0xef53 } else { 0x9123_683e }));
    }
}

#[test]
fn caps_are_in_force_shown_and_lifted() {
    let mut bench = Bench::new();
    let (slow, other) = (bench.device(Bytes::mib(64)), bench.device(Bytes::mib(64)));
    let mut caps = change::Caps::default();
    let limits = Limits { read_iops: Some(200), ..Limits::default() };
    caps.add(&mut bench.journal, &slow.device(), limits).unwrap();
    caps.add(&mut bench.journal, &other.device(), Limits { write_bps: Some(9 << 20), ..Limits::default() })
        .unwrap();
    let shown = [caps.shown(&slow.device()), caps.shown(&other.device())];
    assert!(shown[0].len() == 1 && shown[0][0].contains("200"), "{shown:?}");
    assert!(shown[1].len() == 1 && shown[1][0].contains("9437184"), "{shown:?}");
    let source = format!("if={}", slow.path.display());
    let reads = rates(&slow, &[], &[&source, "of=/dev/null", "iflag=direct"]).0;
    within_the_limit(reads, 200.0);
    caps.lift(&mut bench.journal).unwrap();
    assert_eq!(change::Caps::default().shown(&slow.device()), Vec::<String>::new());
}

/// Each way to use a device, and the sentence that refuses it.
#[test]
fn a_device_in_use_is_refused() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(32));
    let reasons = |path: &Path| facts::in_use(path).unwrap().reasons().join("; ");
    assert_eq!(reasons(&disk.path), "", "a blank device is free");

    let device = disk.path.display().to_string();
    let mut reader = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::from(fs::File::open(&disk.path).unwrap()))
        .spawn()
        .unwrap();
    let open = facts::in_use(&disk.path).unwrap();
    assert!(
        open.is_busy()
            && open
                .reasons()
                .iter()
                .any(|r| r.starts_with(&format!("process {} (sleep) has it open", reader.id()))),
        "{open:?}"
    );
    reader.kill().unwrap();
    reader.wait().unwrap();

    let upper = change::loop_device(&mut bench.journal, &disk.path, false, None).unwrap();
    assert!(reasons(&disk.path).contains(&format!("{} is made of it", upper.name)));
    bench.journal.undo(upper.step).unwrap();

    run(&["mkswap", &device]);
    assert!(reasons(&disk.path).contains("it holds data: swap"));
    assert!(
        !facts::in_use(&disk.path).unwrap().is_busy(),
        "data alone may be destroyed when the user types it"
    );
    run(&["swapon", &device]);
    let swap = reasons(&disk.path);
    run(&["swapoff", &device]);
    assert!(swap.contains("is used as swap space"), "{swap}");
    run(&["wipefs", "-qa", &device]);

    change::make_file_system(&bench.journal, &disk.path, "ext4", &[]).unwrap();
    let twice = change::make_file_system(&bench.journal, &disk.path, "xfs", &[]).unwrap_err().to_string();
    assert!(twice.contains("it holds data: ext2/3/4 file system at byte 1080"), "{twice}");
    let point = bench.space.list("mnt").unwrap();
    fs::create_dir(&point).unwrap();
    change::mount(&mut bench.journal, &disk.path, &point, "ext4", "").unwrap();
    let mounted = facts::in_use(&disk.path).unwrap();
    let there = Use::Mounted { device: disk.name.clone(), mount_point: point };
    assert!(mounted.is_busy() && mounted.uses.contains(&there), "{mounted:?}");
}

/// One MBR partition from sector 2048 to the end, by hand: no partitioning program is needed.
fn partition_table(sectors: u32) -> Vec<u8> {
    let mut block = vec![0u8; 512];
    block[446 + 4] = 0x83;
    block[446 + 8..446 + 12].copy_from_slice(&2048u32.to_le_bytes());
    block[446 + 12..446 + 16].copy_from_slice(&(sectors - 2048).to_le_bytes());
    block[510..].copy_from_slice(&[0x55, 0xAA]);
    block
}

#[test]
fn a_disk_is_refused_while_its_partition_is_mounted() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(32));
    let device = disk.path.display().to_string();
    let table = bench.space.new_file_path("table");
    fs::write(&table, partition_table(65_536)).unwrap();
    dd(&[], &[&format!("if={}", table.display()), &format!("of={device}"), "conv=notrunc,fsync"]);
    assert!(facts::in_use(&disk.path).unwrap().reasons().iter().any(|r| r.contains("partition table")));
    run(&["partx", "-a", &device]);
    let part = PathBuf::from(format!("{device}p1"));
    let divided = facts::in_use(&disk.path).unwrap();
    assert!(divided.uses.contains(&Use::Partitions(vec![format!("{}p1", disk.name)])), "{divided:?}");
    let stack = facts::storage(&part).stack;
    assert_eq!((stack[0].kind, stack[0].slaves[0].as_str()), (DeviceKind::Partition, disk.name.as_str()));

    change::make_file_system(&bench.journal, &part, "ext4", &[]).unwrap();
    let point = bench.space.list("mnt").unwrap();
    fs::create_dir(&point).unwrap();
    let mounted = change::mount(&mut bench.journal, &part, &point, "ext4", "").unwrap();
    let whole = facts::in_use(&disk.path).unwrap();
    let there = Use::Mounted { device: format!("{}p1", disk.name), mount_point: point };
    assert!(whole.is_busy() && whole.uses.contains(&there), "{whole:?}");
    bench.journal.undo(mounted.step).unwrap();
    run(&["partx", "-d", &device]);
}

#[test]
fn a_loop_number_that_went_to_somebody_else_is_not_detached() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(4));
    let other = bench.space.new_file_path("other");
    bench.journal.will(Undo::DetachLoop { device: disk.path.clone(), backing: other }).unwrap();
    let device = disk.device();
    let Bench { journal, _folder, .. } = bench;
    let lines = journal.undo_all().unwrap();
    assert_eq!(lines[0].result, CleanupResult::AlreadyGone, "not its file: {lines:?}");
    assert!(lines.iter().all(|l| l.result.is_settled()), "{lines:?}");
    clock::sleep(Nanos::millis(1));
    assert_ne!(facts::storage(&disk.path).top().and_then(|d| d.backing_file.clone()), device.backing_file);
}

#[test]
fn a_mount_of_somebody_else_over_ours_is_left_alone() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(16));
    change::make_file_system(&bench.journal, &disk.path, "ext4", &[]).unwrap();
    let point = bench.space.list("mnt").unwrap();
    fs::create_dir(&point).unwrap();
    let mounted = change::mount(&mut bench.journal, &disk.path, &point, "ext4", "").unwrap();
    let place = point.display().to_string();
    run(&["mount", "-t", "tmpfs", "theirs", &place]);
    let covered = bench.journal.undo(mounted.step);
    let above = facts::storage(&point).mount.map(|m| m.source);
    run(&["umount", &place]);
    assert!(matches!(&covered, Ok(CleanupResult::LeftAlone(why)) if why.contains("umount")), "{covered:?}");
    assert_eq!(above.as_deref(), Some("theirs"));
    assert_eq!(bench.journal.undo(mounted.step), Ok(CleanupResult::Undone), "it stayed in the journal");
}

#[test]
fn a_setting_that_somebody_else_changed_stays() {
    let mut bench = Bench::new();
    let disk = bench.device(Bytes::mib(4));
    let path = format!("/sys/block/{}/queue/read_ahead_kb", disk.name);
    let old = change::read_setting(Path::new(&path)).unwrap();
    let step = change::set_queue(&mut bench.journal, &disk.name, "read_ahead_kb", "512").unwrap();
    fs::write(&path, "1024").unwrap();
    let left = bench.journal.undo(step);
    assert!(matches!(left, Ok(CleanupResult::LeftAlone(_))), "{left:?}");
    assert_eq!(change::read_setting(Path::new(&path)).as_deref(), Some("1024"));
    fs::write(&path, old).unwrap();
    assert_eq!(bench.journal.undo(step), Ok(CleanupResult::AlreadyGone));
}
