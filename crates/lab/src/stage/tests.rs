//! Stages on this machine: loop devices, file systems, caps and settings for real. Needs root, as CI has.

use super::*;
use crate::bench::Purpose;
use crate::compare::configuration::Configuration;
use crate::database::Database;
use crate::factor::Factor;
use engine::Shutdown;
use host::facts;
use io::{Api, IoMode};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::Seed;

/// One at a time: a program that one test starts holds the locked files of another's database until it runs.
static ALONE: Mutex<()> = Mutex::new(());

struct Run {
    _alone: MutexGuard<'static, ()>,
    bench: Option<Bench>,
    folder: tempfile::TempDir,
}

impl Run {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let purpose = Purpose {
            kind: "compare",
            case: None,
            command: "test".into(),
            seed: Seed(1),
            budget_seconds: 1.0,
            record_path: Some(folder.path().join("record.redoubt")),
            workspace_in: Some(folder.path().to_owned()),
            is_server_ours: false,
        };
        Self { _alone: alone, bench: Some(Bench::open(folder.path(), purpose).unwrap()), folder }
    }

    fn bench(&mut self) -> &mut Bench {
        self.bench.as_mut().unwrap()
    }

    /// Everything is undone, and only the record is left.
    fn finish(mut self) {
        assert_eq!(self.bench.take().unwrap().finish(Ok(())).unwrap().left, None);
        let left: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(left.iter().all(|name| name.to_string_lossy().starts_with("record")), "{left:?}");
    }
}

fn setup(levels: &[(&str, &str)]) -> Setup {
    let mut setup = Setup::default();
    for (factor, level) in levels {
        setup.set(factor.parse::<Factor>().unwrap(), level).unwrap();
    }
    setup
}

fn sizes() -> Sizes {
    let small = Bytes::mib(8);
    Sizes {
        block: Bytes::kib(8),
        cache: Bytes::mib(2),
        data: small,
        undo: small,
        redo: small,
        redo_groups: 3,
        flash: small,
    }
}

/// Makes a database on the stage, opens it, shuts it down.
fn live(stage: &Stage) {
    let database = Database::create(stage.places(), &sizes(), &[], Seed(1)).unwrap();
    let instance = database.open(&Configuration { mode: IoMode::Setall, api: Api::IoUring }).unwrap();
    instance.session("test").unwrap();
    instance.shutdown(Shutdown::Immediate).unwrap();
}

fn values(proofs: &[Proof]) -> String {
    proofs.iter().map(|p| format!("{}: {}\n", p.what, p.value)).collect()
}

#[test]
fn a_file_system_with_options_a_scheduler_and_a_cap() {
    let mut run = Run::new();
    let first = setup(&[
        ("fs", "ext4:data=writeback"),
        ("scheduler", "kyber"),
        ("nr_requests", "64"),
        ("throttle", "900iops"),
    ]);
    possible(&first).unwrap();
    let mut stage = Stage::raise(&first, &sizes(), run.bench()).unwrap();
    live(&stage);
    let proof = values(&stage.proof(&first).unwrap());
    for text in
        ["data=writeback", "queue/scheduler: kyber", "nr_requests: 64", " 900", "loop/dio: 1", "0xef53"]
    {
        assert!(proof.contains(text), "{text} is not in\n{proof}");
    }
    let device = stage.volumes[0].device().name;
    let second = Setup { mount: "noatime".into(), scheduler: None, throttle: None, ..first.clone() };
    stage.remount(&second, run.bench()).unwrap();
    let proof = values(&stage.proof(&second).unwrap());
    assert!(proof.contains("noatime") && !proof.contains("cap on"), "{proof}");
    let lost = stage.proof(&Setup { throttle: first.throttle, ..second.clone() }).unwrap_err().to_string();
    assert!(lost.contains("a cap of 900 per second is not in force"), "{lost}");
    stage.strike(run.bench()).unwrap();
    assert_eq!(
        facts::storage(Path::new(&format!("/dev/{device}"))).top().and_then(|d| d.backing_file.clone()),
        None
    );
    run.finish();
}

#[test]
fn block_devices_without_a_file_system() {
    let mut run = Run::new();
    let raw = setup(&[("fs", "raw")]);
    possible(&raw).unwrap();
    for _ in 0..2 {
        // The second time on the loop files of the first.
        let stage = Stage::raise(&raw, &sizes(), run.bench()).unwrap();
        live(&stage);
        assert_eq!(stage.volumes.len(), 6, "data, undo, temp and three redo groups");
        let proof = values(&stage.proof(&raw).unwrap());
        assert!(proof.contains("no file system") && proof.contains("place.redo: /dev/loop"), "{proof}");
        stage.strike(run.bench()).unwrap();
    }
    run.finish();
}

#[test]
fn classes_of_files_in_their_places() {
    let mut run = Run::new();
    let elsewhere = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let directory = elsewhere.path().display().to_string();
    let placed = setup(&[
        ("place.redo", "throttled:5000iops"),
        ("place.undo", "throttled:5000iops"),
        ("place.temp", &directory),
    ]);
    possible(&placed).unwrap();
    let stage = Stage::raise(&placed, &sizes(), run.bench()).unwrap();
    live(&stage);
    assert_eq!(
        stage.path(FileClass::Redo),
        stage.path(FileClass::Undo),
        "equal places share their device and its cap"
    );
    assert!(stage.path(FileClass::Redo).join("redo03.log").exists());
    assert!(stage.path(FileClass::Temp).starts_with(elsewhere.path()));
    assert!(stage.path(FileClass::Data).join("users01.dbf").exists());
    let proof = values(&stage.proof(&placed).unwrap());
    assert!(proof.contains("5000"), "{proof}");
    stage.strike(run.bench()).unwrap();
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    run.finish();
}

/// What lies in the directory as it is goes with the stage too: one visit does not stand in the way of the next.
#[test]
fn a_directory_as_it_is_again_and_again() {
    let mut run = Run::new();
    let elsewhere = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let directory = elsewhere.path().display().to_string();
    for levels in [&[][..], &[("place.redo", directory.as_str())], &[]] {
        let placed = setup(levels);
        let mut stage = Stage::raise(&placed, &sizes(), run.bench()).unwrap();
        stage.relax(run.bench()).unwrap();
        live(&stage);
        stage.change(&placed, run.bench()).unwrap();
        stage.proof(&placed).unwrap();
        stage.strike(run.bench()).unwrap();
    }
    run.finish();
}

#[test]
fn what_did_not_take_effect_is_an_error_and_leaves_nothing() {
    let mut run = Run::new();
    let dropped = setup(&[("fs", "ext4:mblk_io_submit")]);
    let stage = Stage::raise(&dropped, &sizes(), run.bench()).unwrap();
    let error = stage.proof(&dropped).unwrap_err().to_string();
    assert!(error.contains("mount option mblk_io_submit is not in force"), "{error}");
    stage.strike(run.bench()).unwrap();
    let absent = setup(&[("fs", "ext4"), ("scheduler", "cfq")]);
    let said = possible(&absent).unwrap_err().to_string();
    assert!(said.contains("no scheduler cfq") && said.contains("mq-deadline"), "{said}");
    let error = Stage::raise(&absent, &sizes(), run.bench()).err().unwrap().to_string();
    assert!(error.contains("\"cfq\""), "{error}");
    run.finish();
}

#[test]
fn nothing_that_is_not_ours_is_changed_unless_it_is_named() {
    for (levels, words) in [
        (&[("scheduler", "none")][..], "name in full"),
        (&[("throttle", "150iops")], "--vary fs=ext4"),
        (&[("place.redo", "/no/such/directory")], "mkdir"),
        (&[("fs", "nosuchfs")], "mkfs.nosuchfs"),
        (&[("fs", "raw"), ("target", "files")], "--target engine"),
    ] {
        let said = possible(&setup(levels)).unwrap_err().to_string();
        assert!(said.contains(words), "{levels:?}: {said}");
    }
    let root = facts::storage(Path::new("/")).top().unwrap().path().display().to_string();
    let busy = possible(&setup(&[("place.redo", &root)])).unwrap_err().to_string();
    assert!(busy.contains("is mounted at"), "{busy}");
}

#[test]
fn all_configurations_stand_on_what_one_needs() {
    let mut setups =
        [setup(&[("throttle", "off")]), setup(&[("throttle", "150iops")]), setup(&[("fs", "xfs")])];
    assert!(level_field(&mut setups).unwrap().contains("ext4"));
    assert_eq!(setups.each_ref().map(|s| s.fs.to_string()), ["ext4", "ext4", "xfs"]);
    assert_eq!(level_field(&mut [setup(&[("io", "none")])]), None);
}

/// A device of the user's: blank, named in full; used with a file system, and blank again, also when nobody strikes the stage.
#[test]
fn a_device_that_the_user_named_is_blank_again() {
    let mut run = Run::new();
    let backing = run.folder.path().join("record-of-a-device");
    std::fs::write(&backing, vec![0; 400 << 20]).unwrap();
    let output = Command::new("losetup").args(["--show", "-f"]).arg(&backing).output().unwrap();
    let device = Loop(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    let named = setup(&[("place.redo", &device.0)]);
    for is_struck in [true, false] {
        possible(&named).unwrap();
        let stage = Stage::raise(&named, &sizes(), run.bench()).unwrap();
        live(&stage);
        assert!(stage.path(FileClass::Redo).join("redo03.log").exists());
        assert!(values(&stage.proof(&named).unwrap()).contains(&format!("ext4 {}", device.0)));
        assert!(possible(&named).unwrap_err().to_string().contains("is mounted at"));
        if is_struck {
            stage.strike(run.bench()).unwrap();
        }
    }
    run.finish();
    possible(&named).unwrap();
}

struct Loop(String);

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn loop_files_are_counted_once() {
    let made = |text: &str| (setup(&[("fs", text)]), sizes());
    let (ext4, raw) = (disk(&made("ext4").0, &sizes()), disk(&made("raw").0, &sizes()));
    assert_eq!(disk_of_all([made("ext4"), made("xfs"), made("raw")]), Bytes(ext4.0 + raw.0));
    assert!(raw < ext4 && raw > Bytes::mib(40), "{raw} {ext4}");
}
