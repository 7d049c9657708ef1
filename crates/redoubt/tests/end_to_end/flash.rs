//! The flash cache as a factor and as a case: planned, refused, put in force, proven, told, and nothing of it left.

use crate::stage::{Done, Stage, measuring};
use crate::stop::{signal, start};
use record::Reader;
use std::fs;
use units::{Nanos, clock};

/// A block of the case takes a minute or two with a debug build.
const PATIENCE: Nanos = Nanos::millis(240_000);

#[test]
fn a_flash_cache_is_planned_and_its_size_is_said() {
    let stage = Stage::new();
    let plan = |arguments: &[&str], words: &[&str]| {
        let done = stage.run(&[&["compare", "--dry-run"], arguments].concat()).ok();
        for word in words {
            assert!(done.stdout.contains(word), "no {word:?} in the plan:\n{}", done.stdout);
        }
    };
    plan(
        &["order-entry", "--vary", "place.flash=none,here", "--vary", "flash_policy=classic,scan_resistant"],
        &[
            "3 configurations",
            "no flash cache",
            "flash on here classic",
            "flash cache: 96 MiB, as large as the data file",
        ],
    );
    plan(
        &["order-entry", "--vary", "place.flash=none,throttled:ssd-sata", "--vary", "flash_size=48m"],
        &["2 configurations", "flash on throttled:ssd-sata", "flash cache: 48 MiB;", "ssd-sata: 88000iops"],
    );
    plan(
        &["flash"],
        &["4 configurations", "slow + flash classic", "slow + flash scan-resistant", "scan, second pass"],
    );
    stage.assert_untouched();
}

#[test]
fn what_makes_no_sense_of_a_flash_cache_is_refused() {
    let stage = Stage::new();
    for (arguments, words) in [
        (&["compare", "--vary", "flash_policy=classic,scan_resistant"][..], &["--vary place.flash=/ssd"][..]),
        (&["compare", "--vary", "place.flash=none,here", "--vary", "flash_policy=lru"], &["lru", "classic"]),
        (&["compare", "--target", "files", "--vary", "place.flash=none,here"], &["flash", "--target engine"]),
        (&["compare", "--vary", "place.flash=none,/no/such/place"], &["mkdir"]),
        (&["compare", "flash", "--vary", "io=none,setall"], &["case flash puts a flash cache"]),
        (&["compare", "flash", "--slow", "here"], &["both here"]),
        (&["run", "commit", "--flash", "ssd"], &["--flash", "./ssd"]),
        (&["run", "commit", "--flash-policy", "classic"], &["--flash <PLACE>"]),
    ] {
        stage.run(arguments).refused(words);
    }
    stage.assert_untouched();
}

/// The case: three passes and order entry under four configurations, the flash cache on a device of our own: proven, counted by itself, and gone
/// afterwards. Ctrl-C after the first block: what was finished is told.
#[test]
fn the_second_pass_is_explained() {
    let _turn = measuring();
    let stage = Stage::new();
    let (slow, fast) = ("throttled:600iops", "throttled:20000iops");
    let places = ["compare", "flash", "--size", "64m", "--minutes", "0.5", "--slow", slow, "--fast", fast];
    let arguments = [&places[..], &["--vary", "redo_size=8m"]].concat();
    let mut child = start(&stage, &arguments);
    let began = clock::now();
    let finished = || {
        let visits = stage.records().pop().and_then(|path| Reader::open(&path).ok()?.visits().ok());
        visits.unwrap_or_default().iter().filter(|(_, visit)| visit.status == "measured").count()
    };
    while finished() < 4
        && child.try_wait().is_ok_and(|ended| ended.is_none())
        && clock::now() - began < PATIENCE
    {
        clock::sleep(Nanos::millis(500));
    }
    // One that has ended says below why.
    if child.try_wait().is_ok_and(|ended| ended.is_none()) {
        signal(&child, "INT");
    }
    let done = Done::of(child.wait_with_output().expect("wait"));
    assert_eq!(done.code, Some(130), "{}\n{}", done.stdout, done.stderr);
    stage.assert_untouched();
    for word in ["The second pass", "from flash", "slow + flash classic", "flashcur"] {
        assert!(done.stdout.contains(word), "no {word:?} in:\n{}", done.stdout);
    }
    let reader = stage.reader();
    let statistics: Vec<(i64, record::StatisticRow)> = reader.of_phases().expect("statistics");
    let sum = |name: &str| {
        statistics.iter().filter(|(_, row)| row.name == name).map(|(_, row)| row.value).sum::<f64>()
    };
    assert!(sum("flash cache inserts") > 0.0 && sum("physical read flash cache hits") > 0.0);
    let proven = reader.events().expect("events").into_iter().filter(|event| event.kind == "proof");
    let shown = proven.filter(|event| event.json["what"] == "flash cache").count();
    assert!(shown >= 2, "v$flashfilestat of each visit with one: {shown}");
    let counters = reader.counters().expect("counters");
    let counted = counters.iter().any(|row| row.layer == "place" && row.object.contains(fast));
    assert!(counted, "its device is counted by itself");
    crate::page::check(&stage, &stage.record().with_extension("html"), &["The second pass", "flashcur"]);
}

/// A device that dies while it is measured costs its configuration: the run says so, goes on with the others, and ends as any other. It dies as one does that
/// is pulled: the file below the loop device loses its blocks.
#[test]
fn a_flash_cache_that_dies_is_left_out_and_the_others_go_on() {
    let _turn = measuring();
    let stage = Stage::new();
    let device = Device::new(&stage, 96 << 20);
    let flash = format!("place.flash=none,here,{}", device.mount_point.display());
    let arguments = [
        "compare",
        "random-read",
        "--size",
        "64m",
        "--minutes",
        "0.6",
        "--vary",
        &flash,
        "--vary",
        "redo_size=8m",
    ];
    let arguments = [&arguments[..], &["--vary", "flash_size=32m"]].concat();
    let mut child = start(&stage, &arguments);
    let began = clock::now();
    let measured = |name: &str| {
        let reader = stage.records().pop().and_then(|path| Reader::open(&path).ok());
        let found = reader.and_then(|reader| {
            let of = reader.configurations().ok()?.into_iter().find(|(_, row)| row.name.contains(name))?.0;
            let visits = reader.visits().ok()?.into_iter();
            Some(visits.filter(|(_, v)| v.status == "measured" && v.configuration_id == Some(of)).count())
        });
        found.unwrap_or(0)
    };
    let name = device.mount_point.display().to_string();
    while measured(&name) < 1
        && child.try_wait().is_ok_and(|ended| ended.is_none())
        && clock::now() - began < PATIENCE
    {
        clock::sleep(Nanos::millis(100));
    }
    device.pull();
    let done = Done::of(child.wait_with_output().expect("wait"));
    let said = format!("{}\n{}", done.stdout, done.stderr);
    // What lies on the dead device may not be removable, and that is said then; the result is told all the same.
    assert!(done.code == Some(0) || said.contains("Not undone"), "{said}");
    for word in ["Left out", "flash cache failed", &name, "Report:"] {
        assert!(said.contains(word), "no {word:?} in:\n{said}");
    }
    stage.assert_untouched();
    assert!(measured("here") > measured(&name), "the others went on");
}

/// A file system on a loop device, for a flash cache, that can be pulled.
struct Device {
    name: String,
    backing: std::path::PathBuf,
    mount_point: std::path::PathBuf,
}

impl Device {
    fn new(stage: &Stage, bytes: u64) -> Self {
        let backing = stage.folder().join("pulled-device");
        fs::File::create(&backing).expect("a file").set_len(bytes).expect("a size");
        let name = output("losetup", &["--show", "-f", backing.to_str().expect("a plain path")]);
        let mount_point = stage.folder().join("pulled");
        fs::create_dir(&mount_point).expect("make it");
        output("mkfs.ext4", &["-q", "-O", "^has_journal", &name]);
        output("mount", &[&name, mount_point.to_str().expect("a plain path")]);
        Self { name, backing, mount_point }
    }

    fn pull(&self) {
        fs::OpenOptions::new().write(true).open(&self.backing).expect("open").set_len(0).expect("cut");
        output("losetup", &["-c", &self.name]);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.mount_point).status();
        let _ = std::process::Command::new("losetup").args(["-d", &self.name]).status();
    }
}

/// What a command prints.
fn output(program: &str, arguments: &[&str]) -> String {
    let done = std::process::Command::new(program).args(arguments).output().expect(program);
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text").trim().to_owned()
}

/// One run above a flash cache in a directory that the user named: its file is ours, and goes with the run.
#[test]
fn a_run_above_a_flash_cache() {
    let _turn = measuring();
    let stage = Stage::new();
    let elsewhere = stage.folder().join("ssd");
    fs::create_dir(&elsewhere).expect("make it");
    let place = elsewhere.to_str().expect("a plain path");
    let arguments = [
        "run",
        "random-read",
        "--minutes",
        "0.05",
        "--scale",
        "0.005",
        "--flash",
        place,
        "--flash-size",
        "64m",
    ];
    stage.run(&arguments).ok();
    stage.assert_untouched();
    assert_eq!(fs::read_dir(&elsewhere).expect("read").count(), 0, "something of ours was left elsewhere");
    let reader = stage.reader();
    let (_, configuration) = reader.configurations().expect("configurations").remove(0);
    assert!(configuration.levels.iter().any(|(factor, level, _)| factor == "flash_size" && level == "64m"));
    let files: Vec<(i64, record::FileStatRow)> = reader.of_phases().expect("files");
    assert!(
        files.iter().any(|(_, row)| row.file_type == "Flash Cache" && row.small_reads > 0),
        "it was read"
    );
}

/// A device that its user may not open is refused before anything is started, with whose it is, who asks, and the rule to add. Needs root, as CI has: for the
/// device, which `nobody` then tries to use.
#[test]
fn a_device_of_somebody_else_is_refused_before_the_instance_starts() {
    let stage = Stage::new();
    let backing = stage.folder().join("flash-device");
    fs::write(&backing, vec![0; 8 << 20]).expect("a file for the device");
    let made =
        std::process::Command::new("losetup").args(["--show", "-f"]).arg(&backing).output().expect("losetup");
    let device = String::from_utf8(made.stdout).expect("a name").trim().to_owned();
    let file = format!("db_flash_cache_file={device}");
    let sql = [
        "sql",
        "db",
        "--create",
        "--set",
        &file,
        "--set",
        "db_flash_cache_size=4m",
        "-c",
        "select 1 from dual",
    ];
    let done = stage.run_unprivileged(&sql);
    std::process::Command::new("losetup").args(["-d", &device]).status().expect("losetup");
    let name = device.trim_start_matches("/dev/");
    done.refused(&[
        &format!("{device} belongs to root, group "),
        "this process runs as nobody",
        &format!("KERNEL==\"{name}\", OWNER=\"nobody\", MODE=\"0660\""),
        "/etc/udev/rules.d/",
        "nothing was started",
    ]);
}
