//! A run with a loop device, a file system, a queue setting and a throttle is killed with SIGKILL, again and again, after
//! each of its acts and at random moments in between; then `cleanup` must restore the machine. Needs root.
//!
//! The program is its own victim: with an argument `story FOLDER` it is the run, without one it is the test.

use host::change::{self, Limits};
use host::facts;
use host::journal::{self, CleanupResult, Journal};
use host::workspace::Workspace;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use units::{Nanos, Rng, Seed, clock};

/// Acts that the story tells; each prints a line when it is done.
const ACTS: u64 = 9;
const KILLS: u64 = 24;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, story, folder] = &arguments[..]
        && story == "story"
    {
        return tell(Path::new(folder));
    }
    let seed = Seed::draw();
    println!("\nseed {}", seed.0);
    let mut rng = Rng::new(seed);
    let before = machine();
    for number in 0..KILLS {
        let (act, pause) = (number % ACTS, Nanos(rng.below(if number < ACTS { 1 } else { 40_000_000 })));
        kill_and_clean(act, pause);
        assert_eq!(machine(), before, "after a kill {pause} behind act {act}");
    }
    println!("test killed_{KILLS}_times_nothing_is_left ... ok\n");
}

/// Everything that the story changes outside its folder, as the kernel tells it.
fn machine() -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let setting = entry.path().join("queue/nr_requests");
        seen.insert(setting.display().to_string(), fs::read_to_string(&setting).unwrap_or_default());
    }
    let ours =
        |text: &str| text.lines().filter(|l| l.contains("redoubt-kill-")).collect::<Vec<_>>().join("\n");
    seen.insert("mounts".into(), ours(&fs::read_to_string("/proc/self/mountinfo").unwrap()));
    let backing = fs::read_dir("/sys/block")
        .unwrap()
        .flatten()
        .map(|e| fs::read_to_string(e.path().join("loop/backing_file")).unwrap_or_default());
    seen.insert("loops".into(), ours(&backing.collect::<String>()));
    seen
}

/// The run: every kind of change, told line by line.
fn tell(folder: &Path) {
    let told = |act: &str| {
        println!("{act}");
        std::io::stdout().flush().unwrap();
    };
    let mut journal = Journal::open_in(&folder.join("state"), "a run to be killed").unwrap();
    told("journal");
    let space = Workspace::create(&folder.join("data"), &mut journal).unwrap();
    told("workspace");
    let disk = space.new_file_path("disk");
    fs::write(&disk, vec![0; 16 << 20]).unwrap();
    told("file");
    let device = change::loop_device(&mut journal, &disk, true, None).unwrap();
    told("loop device");
    change::set_queue(&mut journal, &device.name, "nr_requests", "64").unwrap();
    told("queue");
    change::make_file_system(&journal, &device.path, "ext4", &[]).unwrap();
    let point = space.list("mnt").unwrap();
    fs::create_dir(&point).unwrap();
    change::mount(&mut journal, &device.path, &point, "ext4", "").unwrap();
    told("mount");
    let inner = Workspace::create(&point, &mut journal).unwrap();
    let data = inner.new_file_path("data");
    fs::write(&data, "ours").unwrap();
    told("inner files");
    let limits = Limits { write_iops: Some(500), ..Limits::default() };
    let throttle = change::throttle(&mut journal, &facts::storage(&device.path).stack[0], limits).unwrap();
    throttle.enter_self().unwrap();
    told(&format!("throttle {}", throttle.group.display()));
    for _ in 0..20 {
        let file = fs::File::create(&data).unwrap();
        (&file).write_all(&[1; 8192]).unwrap();
        file.sync_all().unwrap();
    }
    told("writes");
    std::mem::forget(journal);
    loop {
        std::thread::park();
    }
}

fn kill_and_clean(act: u64, pause: Nanos) {
    let folder =
        tempfile::Builder::new().prefix("redoubt-kill-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (state, data) = (folder.path().join("state"), folder.path().join("data"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join("theirs"), "precious").unwrap();
    let mut run = Command::new(std::env::current_exe().unwrap())
        .arg("story")
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    let mut group = None;
    for _ in 0..=act {
        let line = lines.next().and_then(Result::ok);
        assert!(line.is_some(), "the run ended by itself: {:?}", run.wait());
        group = group.or(line.and_then(|l| l.strip_prefix("throttle ").map(str::to_owned)));
    }
    let running = journal::cleanup_in(&state, false);
    assert!(
        running.iter().all(|l| matches!(l.result, CleanupResult::LeftAlone(_))),
        "a running run is left alone: {running:?}"
    );
    clock::sleep(pause);
    run.kill().unwrap();
    run.wait().unwrap();
    let dry = journal::cleanup_in(&state, true);
    assert!(dry.iter().all(|l| l.result == CleanupResult::WouldUndo), "{dry:?}");
    let lines = journal::cleanup_in(&state, false);
    assert!(lines.iter().all(|l| l.result.is_settled()), "behind act {act}: {lines:#?}");
    assert!(journal::cleanup_in(&state, false).is_empty(), "a second cleanup finds nothing");
    assert!(group.is_none_or(|g| !Path::new(&g).exists()), "the control group is gone");
    let left: Vec<_> = fs::read_dir(&data).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["theirs"], "behind act {act}");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "no journal is left, not even an unfinished one");
}
