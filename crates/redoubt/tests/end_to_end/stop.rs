//! Ctrl-C and kill -9.

use crate::runs::{CALIBRATE, COMPARE};
use crate::stage::{Done, Stage, measuring};
use std::process::{Child, Command, Stdio};
use units::{Nanos, Rng, Seed, clock};

pub fn start(stage: &Stage, arguments: &[&str]) -> Child {
    // Not through `timeout`, so that the signal meets redoubt itself.
    let mut command = Command::new(env!("CARGO_BIN_EXE_redoubt"));
    command.args(arguments).env("REDOUBT_HOME", &stage.home).current_dir(&stage.directory);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("start redoubt")
}

pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(status.expect("kill is in package procps or a part of the shell").success());
}

/// Ctrl-C while it prepares, while it measures, late: it stops before its end, always clean, always with a record.
#[test]
fn ctrl_c_stops_and_keeps_the_record() {
    let _turn = measuring();
    for (arguments, after) in [
        (&COMPARE[..], Nanos::millis(400)),
        (&COMPARE[..], Nanos::millis(6000)),
        (&CALIBRATE[..], Nanos::millis(1500)),
        (&CALIBRATE[..], Nanos::millis(9000)),
    ] {
        let stage = Stage::new();
        let child = start(&stage, arguments);
        clock::sleep(after);
        signal(&child, "INT");
        let asked = clock::now();
        let done = Done::of(child.wait_with_output().expect("wait"));
        println!("{arguments:?} stopped {} after Ctrl-C at {after}", clock::now() - asked);
        assert_eq!(done.code, Some(130), "{}\n{}", done.stdout, done.stderr);
        stage.assert_untouched();
        assert_eq!(stage.reader().status().expect("status"), "interrupted");
        assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    }
}

/// Killed at any moment, `redoubt cleanup` leaves nothing of ours, and the record opens. Here three moments; the fifty
/// of the promise are `cargo x crash`.
#[test]
fn after_kill_9_cleanup_leaves_nothing() {
    let _turn = measuring();
    let seed = Seed::draw();
    let mut rng = Rng::new(seed);
    for (arguments, within) in [(&COMPARE[..], 0.5), (&COMPARE[..], 8.0), (&CALIBRATE[..], 4.0)] {
        let stage = Stage::new();
        let mut child = start(&stage, arguments);
        let moment = Nanos::secs(within * rng.unit());
        clock::sleep(moment);
        child.kill().expect("kill");
        child.wait().expect("wait");
        stage.run(&["cleanup"]).ok();
        println!("seed {}: killed {arguments:?} after {moment}", seed.0);
        stage.assert_untouched();
        for record in stage.records() {
            stage.run(&["report", record.to_str().expect("a plain path"), "--format", "raw"]).ok();
        }
        assert!(
            stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"),
            "the second time there is nothing left"
        );
    }
}

/// A killed run is not cleaned up while it still lives.
#[test]
fn cleanup_leaves_a_living_run_alone() {
    let _turn = measuring();
    let stage = Stage::new();
    let child = start(&stage, &COMPARE);
    clock::sleep(Nanos::millis(1500));
    stage.run(&["cleanup"]).ok();
    let files = std::fs::read_dir(&stage.directory).expect("read").count();
    signal(&child, "INT");
    let done = Done::of(child.wait_with_output().expect("wait"));
    assert!(files > 1, "the living run's files were removed");
    assert_eq!(done.code, Some(130), "{}\n{}", done.stdout, done.stderr);
    stage.assert_untouched();
}

/// While a file system of ours stands, and while it is made: Ctrl-C takes it down, and the record stays.
#[test]
fn ctrl_c_takes_down_what_stands() {
    let _turn = measuring();
    for after in [Nanos::millis(700), Nanos::millis(5000)] {
        let stage = Stage::new();
        let child = start(&stage, &["compare", "filesystem", "--minutes", "1", "--vary", "fs=ext4,xfs"]);
        clock::sleep(after);
        signal(&child, "INT");
        let done = Done::of(child.wait_with_output().expect("wait"));
        assert_eq!(done.code, Some(130), "{}\n{}", done.stdout, done.stderr);
        stage.assert_untouched();
        assert_eq!(stage.reader().status().expect("status"), "interrupted");
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        assert!(!mounts.contains(stage.folder().to_str().expect("a plain path")), "{mounts}");
        assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    }
}
