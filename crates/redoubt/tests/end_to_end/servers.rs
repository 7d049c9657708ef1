//! Cases on real servers: the same words, record and page as of the embedded database; nothing left behind.

use crate::stage::{Stage, measuring};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A stage through which the server's user may pass.
pub fn passable() -> Stage {
    let stage = Stage::new();
    for folder in [stage.folder(), &stage.directory] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711)).expect("permissions");
    }
    stage
}

const CASES: [&str; 5] = ["commit", "order-entry", "random-read", "scan", "growth"];

fn every_case_on(target: &str, shown: &str) {
    let _turn = measuring();
    for case in CASES {
        let stage = passable();
        let done = stage
            .run(&[
                "run",
                case,
                "--target",
                target,
                "--minutes",
                "0.03",
                "--scale",
                "0.0005",
                "--sessions",
                "3",
            ])
            .ok();
        stage.assert_untouched();
        assert!(done.stdout.contains("Report: "), "{case}:\n{}", done.stdout);
        assert!(done.stderr.contains("durable: "), "what a commit promises is told:\n{}", done.stderr);
        let reader = stage.reader();
        assert_eq!(reader.status().expect("status"), "finished", "{case}");
        let visit = reader.visits().expect("visits")[0].0;
        let ticks = reader.of_visit::<record::AshTickRow>(visit).expect("ticks");
        assert!(!ticks.is_empty(), "{case}: nobody looked");
        if case == "commit" {
            let rows = reader.of_visit::<record::AshRow>(visit).expect("samples");
            let syncs = rows.iter().filter(|row| row.event.as_deref() == Some("log file sync")).count();
            assert!(syncs > 0, "sessions that commit wait for their redo: {} samples", rows.len());
            let native = reader.of_visit::<record::NativeWaitRow>(visit).expect("native waits");
            assert!(
                native.iter().any(|row| row.event.as_deref() == Some("log file sync") && row.grade != "none")
            );
        }
        crate::page::check(&stage, &stage.record().with_extension("html"), &[shown]);
        assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    }
}

#[test]
fn every_case_runs_on_postgresql() {
    every_case_on("postgres", "PostgreSQL");
}

#[test]
fn every_case_runs_on_mariadb() {
    every_case_on("mariadb", "MariaDB");
}

/// Samples of users' sessions in `log file sync`, and all of them.
fn committing(stage: &Stage) -> (usize, usize) {
    let reader = stage.reader();
    let visit = reader.visits().expect("visits")[0].0;
    let rows = reader.of_visit::<record::AshRow>(visit).expect("samples");
    let users: Vec<_> = rows.iter().filter(|row| row.foreground).collect();
    (users.iter().filter(|row| row.event.as_deref() == Some("log file sync")).count(), users.len())
}

/// Commits that wait for nothing show no `log file sync`; those that wait show little else, and the client's clock is held against it.
#[test]
fn a_commit_that_does_not_wait_shows_no_log_file_sync() {
    let _turn = measuring();
    for (target, durable) in
        [("postgres", "synchronous_commit=off"), ("mariadb", "innodb_flush_log_at_trx_commit=0")]
    {
        let [waiting, not] = [None, Some(durable)].map(|set| {
            let stage = passable();
            let mut arguments =
                vec!["run", "commit", "--target", target, "--minutes", "0.04", "--sessions", "8"];
            arguments.extend(set.map(|set| ["--set", set]).into_iter().flatten());
            stage.run(&arguments).ok();
            let checks = stage.reader().checks().expect("checks");
            assert!(
                checks.iter().any(|check| check.check_id == "J6"),
                "nobody held it against the client's clock"
            );
            committing(&stage)
        });
        let share = |(committing, all): (usize, usize)| committing as f64 / all.max(1) as f64;
        assert!(share(waiting) > 0.3, "{target}: {waiting:?}");
        assert!(share(not) < 0.05, "{target}, {durable}: {not:?}");
    }
}

#[test]
fn what_a_server_cannot_do_is_said_before_anything_is_made() {
    let stage = passable();
    stage.run(&["run", "commit", "--target", "postgres", "--io", "concurrent"]).refused(&["--io setall"]);
    let empty = stage.folder().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let empty = empty.to_str().expect("a plain path");
    stage
        .run(&["run", "commit", "--target", "postgres", "--pg-bin", empty])
        .refused(&["not installed", "apt install"]);
    stage
        .run(&["run", "commit", "--target", "mariadb", "--mariadb-bin", empty])
        .refused(&["not installed", "apt install"]);
    stage.assert_untouched();
}

/// Flags of a configuration's files, and what the server said of its settings.
fn shown(stage: &Stage, configuration: &str) -> (Vec<String>, Vec<String>) {
    let reader = stage.reader();
    let all = reader.configurations().expect("configurations");
    let id = all.iter().find(|(_, row)| row.name == configuration).expect("it was compared").0;
    let visits = reader.visits().expect("visits");
    let visits: Vec<i64> =
        visits.iter().filter(|(_, v)| v.configuration_id == Some(id)).map(|(id, _)| *id).collect();
    let phases = reader.phases().expect("phases");
    let flags =
        phases.iter().filter(|(_, p)| visits.contains(&p.visit_id)).filter_map(|(_, p)| p.proof.clone());
    let events = reader.events().expect("events");
    let proofs = events.iter().filter(|e| e.kind == "proof" && e.json["configuration"] == configuration);
    let proofs = proofs.map(|e| format!("{}={}", e.json["what"], e.json["value"]).replace('"', ""));
    (flags.collect(), proofs.collect())
}

/// A short comparison on a server: it ends, says what is in force, and leaves nothing.
fn compared(stage: &Stage, arguments: &[&str], words: &[&str]) {
    let _turn = measuring();
    let short = ["--minutes", "0.2", "--size", "64m", "--sessions", "3"];
    let done = stage.run(&[&["compare"], arguments, &short].concat()).ok();
    stage.assert_untouched();
    for word in words {
        assert!(done.stdout.contains(word), "no {word:?}:\n{}", done.stdout);
    }
    let reader = stage.reader();
    assert_eq!(reader.status().expect("status"), "finished");
    assert!(reader.visits().expect("visits").len() >= 8, "two configurations in at least four blocks");
    crate::page::check(stage, &stage.record().with_extension("html"), words);
    assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
}

#[test]
fn settings_of_postgresql_are_compared_and_proven() {
    let stage = passable();
    let (old, new) = ("wal_sync_method fdatasync", "wal_sync_method open_datasync");
    compared(&stage, &["commit", "--target", "postgres"], &[old, new, "log file sync"]);
    for (configuration, synced, method) in [(old, false, "=fdatasync"), (new, true, "=open_datasync")] {
        let (flags, proofs) = shown(&stage, configuration);
        assert!(!flags.is_empty());
        let redo = |flags: &String| flags.contains("redo O_RDWR|O_DSYNC");
        assert!(flags.iter().all(|flags| redo(flags) == synced), "{configuration}: {flags:?}");
        let says = |word: &str| proofs.iter().any(|proof| proof.contains(word));
        assert!(says(&format!("wal_sync_method{method}")) && says("fsync=on"), "{proofs:?}");
    }
}

#[test]
fn modes_of_mariadb_are_flags_of_its_files() {
    let stage = passable();
    compared(
        &stage,
        &["commit", "--target", "mariadb", "--vary", "io=none,directio"],
        &["none", "directio", "commit", "log file sync"],
    );
    for (configuration, direct) in [("none", false), ("directio", true)] {
        let (flags, proofs) = shown(&stage, configuration);
        let data = |flags: &&String| {
            flags.split("; ").any(|part| part.starts_with("data") && part.contains("O_DIRECT"))
        };
        assert!(flags.iter().all(|flags| data(&flags) == direct), "{configuration}: {flags:?}");
        assert!(proofs.iter().any(|proof| proof.contains("innodb_flush_log_at_trx_commit=1")), "{proofs:?}");
    }
}

/// Redo elsewhere and file systems of ours, on a stage that is made anew for each visit: the server is gone before what it stands on
/// is taken down.
#[test]
fn redo_of_a_server_is_placed() {
    let stage = passable();
    let place = stage.folder().join("fast");
    fs::create_dir(&place).expect("a folder");
    fs::set_permissions(&place, fs::Permissions::from_mode(0o711)).expect("permissions");
    let place = place.to_str().expect("a plain path");
    let vary = format!("place.redo=here,{place}");
    let elsewhere = format!("redo on {place}");
    let arguments = ["commit", "--target", "postgres", "--vary", "fs=xfs", "--vary", &vary];
    compared(&stage, &arguments, &["redo on here", &elsewhere]);
    assert_eq!(fs::read_dir(place).expect("the place").count(), 0, "something of ours was left");
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(stage.folder().to_str().expect("a plain path")), "{mounts}");
}

/// What promises something else than the baseline is not ranked, and what a server does not have is not made.
#[test]
fn what_cannot_be_compared_is_left_out_with_the_reason() {
    let stage = passable();
    let refused = |arguments: &[&str], words: &[&str]| {
        stage.run(&[&["compare"], arguments].concat()).refused(words);
    };
    refused(
        &["commit", "--target", "postgres", "--vary", "set.synchronous_commit=on,off"],
        &["lose the last commits", "not ranked", "redoubt run"],
    );
    refused(
        &["commit", "--target", "mariadb", "--vary", "set.innodb_flush_log_at_trx_commit=1,2"],
        &["lose the last commits", "not ranked"],
    );
    refused(&["--target", "postgres", "--vary", "place.undo=here,/tmp"], &["no undo"]);
    refused(&["--target", "mariadb", "--vary", "place.control=here,/tmp"], &["no control file"]);
    refused(&["commit", "--target", "postgres", "--vary", "block_size=8k,16k"], &["8 KiB"]);
    refused(&["writers", "--target", "postgres", "--vary", "set.fsync=on,off"], &["plain files"]);
    let done = stage.run(&["compare", "placement", "--target", "postgres", "--dry-run"]).ok();
    assert!(
        done.stdout.contains("redo fast") && done.stdout.contains("left out: undo fast"),
        "{}",
        done.stdout
    );
    stage.assert_untouched();
}

/// Ctrl-C and kill -9 while a server stands on a file system of ours, its redo on another one: nothing stays, neither files nor
/// processes nor mounts.
#[test]
fn an_interrupted_comparison_on_a_server_leaves_nothing() {
    use units::{Nanos, clock};
    let _turn = measuring();
    let arguments = |target| {
        [
            "compare",
            "commit",
            "--target",
            target,
            "--vary",
            "fs=ext4",
            "--vary",
            "place.redo=here,throttled:900iops",
            "--minutes",
            "1",
            "--size",
            "64m",
        ]
    };
    for (target, after, kill) in [
        ("postgres", Nanos::millis(2500), false),
        ("postgres", Nanos::millis(9000), true),
        ("mariadb", Nanos::millis(5000), true),
        ("mariadb", Nanos::millis(14_000), false),
    ] {
        let stage = passable();
        let mut child = crate::stop::start(&stage, &arguments(target));
        clock::sleep(after);
        if kill {
            child.kill().expect("kill");
            child.wait().expect("wait");
            stage.run(&["cleanup"]).ok();
        } else {
            crate::stop::signal(&child, "INT");
            let done = crate::stage::Done::of(child.wait_with_output().expect("wait"));
            assert_eq!(done.code, Some(130), "{target}: {}\n{}", done.stdout, done.stderr);
            assert_eq!(stage.reader().status().expect("status"), "interrupted");
        }
        stage.assert_untouched();
        let folder = stage.folder().to_str().expect("a plain path").to_owned();
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        assert!(!mounts.contains(&folder), "{target}: {mounts}");
        let working = fs::read_dir("/proc").expect("/proc").flatten().filter(|process| {
            fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder))
        });
        assert_eq!(working.count(), 0, "{target}: somebody still works there");
        assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"), "{target}");
    }
}
