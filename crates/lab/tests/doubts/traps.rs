//! Real storage that deceives, calibrated as a user would: the record must name each deceit.
//!
//! Two calibrations of 40 seconds hold all traps, because each takes its time. Both need root (loop device, mount, control
//! groups), as the tests of crate host do.

use host::change::{Limits, loop_device, make_file_system, mount, throttle};
use host::journal::{Journal, Undo};
use lab::calibrate::effort::Effort;
use lab::calibrate::{Options, run};
use lab::control::{Control, Silent};
use lab::target::Target;
use record::{CheckRow, Reader};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use units::{Bytes, Nanos, Seed};

/// One calibration at a time: they share two cores, and one of them moves this process into a control group.
static MEASURING: Mutex<()> = Mutex::new(());

/// Calibrates `target` for 40 seconds; all doubts of its record.
fn doubts_of(target: &Path, size: Bytes, folder: &Path) -> Vec<CheckRow> {
    let options = Options {
        target: Target::resolve(target, None).expect("a target"),
        effort: Effort::Quick,
        latency_max: Nanos::millis(20),
        block: Bytes::kib(8),
        size: Some(size),
        sessions: 10,
        seed: Seed::draw(),
        command: "redoubt calibrate".into(),
        record_path: Some(folder.join("doubts.redoubt")),
    };
    let mut control = Control { cancel: &AtomicBool::new(false), progress: &mut Silent };
    let finished = run(&options, &mut control).expect("the calibration runs through");
    Reader::open(&finished.record).and_then(|reader| reader.checks()).expect("its doubts")
}

/// The doubt `id` about `subject` has `status`, for a reason that contains all `words`.
fn caught(doubts: &[CheckRow], id: &str, subject: &str, status: &str, words: &[&str]) {
    let found = doubts.iter().find(|d| d.check_id == id && d.subject == subject);
    let Some(doubt) = found else {
        let names: Vec<_> = doubts.iter().map(|d| format!("{} {}", d.check_id, d.subject)).collect();
        panic!("no check {id} about {subject:?} among {names:?}");
    };
    assert_eq!(doubt.status, status, "{doubt:?}");
    for word in words {
        assert!(doubt.evidence.contains(word), "no {word:?} in: {}", doubt.evidence);
    }
}

/// Below half a CPU the generator itself would be the trap.
const CPU_QUOTA_US: u32 = 150_000;
const READ_IOPS: u64 = 20_000;

/// A file system that takes O_DIRECT and reads through the page cache all the same (ext4 with data=journal), that
/// acknowledges fsync without a flush (barrier=0), in a control group with limits on I/O and CPU.
#[test]
fn cached_direct_reads_a_lying_fsync_and_a_throttled_group() {
    let _turn = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let backing = folder.path().join("backing");
    fs::File::create(&backing).expect("create").set_len(Bytes::mib(400).0).expect("size");
    let mount_point = folder.path().join("mount");
    fs::create_dir(&mount_point).expect("make the mount point");

    let mut journal = Journal::open("test doubts").expect("a journal");
    let device = loop_device(&mut journal, &backing, true, None).expect("a loop device; needs root");
    make_file_system(&journal, &device.path, "ext4", &[]).expect("a file system");
    mount(&mut journal, &device.path, &mount_point, "ext4", "data=journal,barrier=0").expect("mounted");
    let limits = Limits { read_iops: Some(READ_IOPS), ..Limits::default() };
    let group = throttle(&mut journal, &device.device(), limits).expect("a throttle");
    group.enter_self().expect("enter the group");
    let home = limit_cpu(&mut journal, &group.group);

    let doubts = doubts_of(&mount_point, Bytes::mib(64), folder.path());

    group.leave_self().expect("leave the group");
    fs::write(home.join("cgroup.procs"), std::process::id().to_string()).expect("leave the CPU's group");
    let undone = journal.undo_all().expect("a journal that can be removed");
    assert!(undone.iter().all(|line| line.result.is_settled()), "not as it was: {undone:?}");
    caught(&doubts, "F1", "read_iops_max", "fail", &["cache"]);
    let flush = doubts.iter().find(|d| d.check_id == "W1").expect("the flush was checked");
    caught(&doubts, "W1", &flush.subject.clone(), "fail", &["flush"]);
    caught(&doubts, "Q1-cgroup", "", "warn", &["cpu_quota", "1.5", "read_iops", &READ_IOPS.to_string()]);
}

/// Puts this process under a CPU quota: in a group of its own with version 1, in `group` with version 2. The group that
/// it came from.
fn limit_cpu(journal: &mut Journal, group: &Path) -> PathBuf {
    let period = 100_000;
    let unified = group.join("io.max").exists();
    if unified {
        let top = group.parent().expect("the top of the hierarchy").to_owned();
        let control = top.join("cgroup.subtree_control");
        if !fs::read_to_string(&control).expect("read").split_whitespace().any(|c| c == "cpu") {
            let undo = Undo::DisableController { path: control.clone(), controller: "cpu".into() };
            journal.will(undo).expect("noted");
            fs::write(&control, "+cpu").expect("give the CPU controller to groups");
        }
        fs::write(group.join("cpu.max"), format!("{CPU_QUOTA_US} {period}")).expect("set the quota");
        return top;
    }
    let top = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
        .map(PathBuf::from)
        .into_iter()
        .find(|p| p.is_dir());
    let top = top.expect("a CPU hierarchy of control groups");
    let own = top.join(format!("redoubt-test-{}", std::process::id()));
    journal.will(Undo::RemoveCgroup(own.clone())).expect("noted");
    fs::create_dir(&own).expect("make the group");
    fs::write(own.join("cpu.cfs_period_us"), period.to_string()).expect("set the period");
    fs::write(own.join("cpu.cfs_quota_us"), CPU_QUOTA_US.to_string()).expect("set the quota");
    fs::write(own.join("cgroup.procs"), std::process::id().to_string()).expect("enter");
    top
}

/// A file of nothing, in memory: all of it is answered without any storage.
#[test]
fn a_sparse_file_on_tmpfs() {
    let _turn = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = tempfile::tempdir_in("/dev/shm").expect("/dev/shm is a tmpfs");
    let sparse = memory.path().join("users01.dbf");
    fs::File::create(&sparse).expect("create").set_len(Bytes::mib(64).0).expect("size");
    // P3 compares two moments, which other work on the machine can make differ: then it is asked again.
    let mut doubts = Vec::new();
    for _ in 0..8 {
        let records = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
        doubts = doubts_of(&sparse, Bytes::mib(64), records.path());
        if doubts.iter().any(|d| d.check_id == "P3" && d.status == "fail") {
            break;
        }
    }
    caught(&doubts, "P4", "", "fail", &["tmpfs", "memory"]);
    caught(&doubts, "D1", "", "fail", &["holes"]);
    caught(&doubts, "P3", "", "fail", &["come from memory"]);
    assert!(
        doubts.iter().all(|d| d.check_id != "F1" || d.status != "pass"),
        "no device, so no funnel can pass"
    );
}
