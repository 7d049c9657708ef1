//! Factors: what is planned, what is refused, and real configurations brought about, proven and taken away. Needs root, as CI
//! has, for what is made; what an ordinary user gets is tried as `nobody`.

use crate::stage::{Done, Stage, measuring};
use std::fs;

/// Plans, and has changed nothing.
fn plan(arguments: &[&str], words: &[&str]) {
    let stage = Stage::new();
    let done = stage.run(&[&["compare", "--dry-run"], arguments].concat()).ok();
    for word in words {
        assert!(done.stdout.contains(word), "no {word:?} in the plan:\n{}", done.stdout);
    }
    assert!(stage.records().is_empty(), "a plan leaves no record");
    stage.assert_untouched();
}

fn refused(arguments: &[&str], words: &[&str]) {
    let stage = Stage::new();
    stage.run(&[&["compare"], arguments].concat()).refused(words);
    stage.assert_untouched();
}

#[test]
fn a_dry_run_says_what_would_be_compared_and_changes_nothing() {
    plan(&[], &["8 configurations", "none", "concurrent", "blocks", "disk:", "Nothing was changed"]);
    plan(
        &["filesystem"],
        &["7 configurations", "ext4:data=ordered", "btrfs", "made anew for each visit", "min"],
    );
    plan(&["scheduler"], &["mq-deadline", "kyber", "bfq", "fs=ext4"]);
    plan(&["placement"], &["all slow", "redo fast", "all fast", "place.redo"]);
    plan(&["async"], &["slow directio", "fast setall"]);
    plan(
        &["--vary", "fs=ext4,xfs", "--vary", "io=none,setall", "--vary", "sessions=1,4"],
        &["8 configurations", "xfs setall sessions 4", "varied: fs"],
    );
    plan(&["commit", "--vary", "place.redo=here,./", "--baseline", "redo on ./"], &["2 configurations"]);
}

#[test]
fn an_experiment_says_what_the_command_line_says() {
    let stage = Stage::new();
    let file = stage.folder().join("experiment.toml");
    let path = file.to_str().expect("a plain path");
    fs::write(
        &file,
        "case = \"commit\"\nminutes = 7\n[vary]\nio = [\"none\", \"setall\"]\nsessions = [1, 4]\n",
    )
    .expect("write");
    let done = stage.run(&["compare", "--experiment", path, "--dry-run"]).ok();
    for word in ["Case commit", "4 configurations", "setall sessions 4"] {
        assert!(done.stdout.contains(word), "{word}:\n{}", done.stdout);
    }
    // What is typed beside goes before.
    let typed = stage.run(&["compare", "--experiment", path, "--vary", "sessions=2", "--dry-run"]).ok();
    assert!(typed.stdout.contains("2 configurations"), "{}", typed.stdout);
    for (text, words) in [
        ("minuts = 3", &["minuts", "did you mean minutes?"][..]),
        ("[vary]\nsesions = [1]", &["Did you mean sessions?"]),
        ("minutes = \"soon\"", &["minutes", "soon"]),
        ("case = ", &["experiment.toml", "line 1"]),
    ] {
        fs::write(&file, text).expect("write");
        stage.run(&["compare", "--experiment", path]).refused(words);
    }
    stage.run(&["compare", "--experiment", "absent.toml"]).refused(&["absent.toml"]);
    stage.assert_untouched();
}

#[test]
fn nonsense_is_refused_with_what_to_type() {
    refused(&["filesytem"], &["Did you mean filesystem?"]);
    refused(&["--vary", "sheduler=none,bfq"], &["Did you mean scheduler?"]);
    refused(&["--vary", "io=none,turbo"], &["turbo", "setall"]);
    refused(&["--vary", "io=none"], &["nothing to compare it with"]);
    refused(&["--vary", "sessions"], &["sessions needs levels"]);
    refused(&["--vary", "mount=noatime,discard"], &["--vary fs=ext4"]);
    refused(&["--modes", "none", "--vary", "io=none,setall"], &["leave --modes out"]);
    refused(&["--vary", "io=none,setall", "--baseline", "setal"], &["did you mean \"setall\"?"]);
    refused(&["placement", "--slow", "here"], &["both here"]);
    refused(&["placement", "--vary", "io=none,setall"], &["one class of files after the other"]);
    refused(&["--vary", "fs=nosuchfs,nosuchfs2"], &["mkfs.nosuchfs"]);
    refused(&["--vary", "place.redo=here,/no/such/place"], &["mkdir"]);
}

/// What needs root is said, with the command; what does not is planned.
#[test]
fn without_root_what_can_be_varied_is_and_the_rest_is_explained() {
    let stage = Stage::new();
    stage.run_unprivileged(&["compare", "filesystem", "--dry-run"]).refused(&[
        "fewer than two",
        "needs root",
        "sudo",
    ]);
    let done = stage
        .run_unprivileged(&["compare", "--vary", "fs=here,xfs", "--vary", "io=none,setall", "--dry-run"])
        .ok();
    assert!(done.stdout.contains("2 configurations"), "{}", done.stdout);
    assert!(done.stdout.contains("left out: xfs none, xfs setall: "), "{}", done.stdout);
    assert!(!done.stdout.contains("varied: fs"), "one file system is left:\n{}", done.stdout);
    assert!(done.stdout.contains("sudo"), "{}", done.stdout);
    stage.assert_untouched();
}

/// No mount and no loop device of the stage is left.
fn assert_nothing_stands(stage: &Stage) {
    let folder = stage.folder().to_str().expect("a plain path");
    for file in ["/proc/self/mountinfo", "/proc/mounts"] {
        let text = fs::read_to_string(file).expect("mounts");
        assert!(!text.contains(folder), "still mounted:\n{text}");
    }
    for entry in fs::read_dir("/sys/block").expect("devices").flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        assert!(!backing.contains(folder), "{} is still attached: {backing}", entry.path().display());
    }
}

fn finished(done: Done, stage: &Stage) -> Done {
    let done = done.ok();
    stage.assert_untouched();
    assert_nothing_stands(stage);
    assert_eq!(stage.reader().status().expect("status"), "finished");
    done
}

#[test]
fn file_systems_modes_and_sessions_crossed() {
    let _turn = measuring();
    let stage = Stage::new();
    let arguments = [
        "compare",
        "commit",
        "--minutes",
        "0.3",
        "--vary",
        "fs=ext4,xfs",
        "--vary",
        "io=none,setall",
        "--vary",
        "sessions=1,4",
    ];
    finished(stage.run(&arguments), &stage);
    let reader = stage.reader();
    let configurations = reader.configurations().expect("configurations");
    assert_eq!(configurations.len(), 8);
    let (_, last) = configurations.last().expect("the eighth");
    let levels: Vec<_> = last.levels.iter().map(|(f, l, c)| format!("{f}={l} {c}")).collect();
    assert_eq!(levels, ["fs=xfs hard", "io=setall easy", "sessions=4 easy"]);
    let events = reader.events().expect("events");
    let proofs: Vec<String> =
        events.iter().filter(|event| event.kind == "proof").map(|event| event.json.to_string()).collect();
    for word in ["ext4", "xfs", "loop/dio: 1", "visit"] {
        assert!(proofs.iter().any(|proof| proof.contains(word)), "no {word:?} among the proofs");
    }
    let time =
        events.iter().find(|event| event.kind == "time").expect("the forecast, held against the clock");
    assert!(time.json["forecast_seconds"].as_f64().is_some_and(|s| s > 0.0), "{}", time.json);
}

#[test]
fn a_scheduler_on_a_device_of_our_own() {
    let _turn = measuring();
    let stage = Stage::new();
    let arguments = ["compare", "commit", "--minutes", "0.2", "--vary", "scheduler=none,mq-deadline"];
    let done = finished(stage.run(&arguments), &stage);
    assert!(done.stderr.contains("loop device"), "it is said where:\n{}", done.stderr);
    let events = stage.reader().events().expect("events");
    assert!(
        events.iter().any(|e| e.kind == "proof" && e.json.to_string().contains("scheduler: mq-deadline"))
    );
}

/// A slow and a fast device: each is counted by itself in every window, and what is slow is not faster than its cap.
#[test]
fn every_device_beneath_is_counted_by_itself() {
    let _turn = measuring();
    let stage = Stage::new();
    let redo = "place.redo=throttled:60iops,here";
    finished(stage.run(&["compare", "commit", "--minutes", "0.2", "--vary", redo]), &stage);
    let reader = stage.reader();
    let counters = reader.counters().expect("counters");
    let of_places: Vec<_> = counters.iter().filter(|row| row.layer == "place").collect();
    assert!(of_places.iter().any(|row| row.object == "here"), "the fast one");
    let phases = reader.phases().expect("phases");
    let mut slow = 0;
    for (id, phase) in &phases {
        let mut writes: Vec<(u64, f64)> = of_places
            .iter()
            .filter(|row| {
                row.phase_id == Some(*id) && row.object == "throttled:60iops" && row.metric == "writes"
            })
            .map(|row| (row.t_ns, row.value))
            .collect();
        writes.sort_by_key(|(t_ns, _)| *t_ns);
        let [before, after] = writes[..] else { continue };
        slow += 1;
        let seconds = (phase.end_ns - phase.start_ns) as f64 / 1e9;
        // What a cap saved up before the window may come on top: no more than a second's.
        assert!(after.1 - before.1 <= 60.0 * (seconds + 1.0), "{} in {seconds} s", after.1 - before.1);
    }
    assert_eq!(2 * slow, phases.len(), "the slow device has redo in half of the visits");
    let places = reader.events().expect("events").into_iter().filter(|event| event.kind == "place");
    assert!(places.into_iter().any(|event| event.json["iops_max"] == 60), "the cap is noted");
}

/// Redo elsewhere, block size and cache: what is made anew in directories leaves nothing between visits.
#[test]
fn places_and_block_sizes_in_directories() {
    let _turn = measuring();
    let stage = Stage::new();
    let elsewhere = stage.folder().join("elsewhere");
    fs::create_dir(&elsewhere).expect("make it");
    let redo = format!("place.redo=here,{}", elsewhere.display());
    finished(stage.run(&["compare", "commit", "--minutes", "0.2", "--vary", &redo]), &stage);
    assert_eq!(fs::read_dir(&elsewhere).expect("read").count(), 0, "something of ours was left elsewhere");
}
