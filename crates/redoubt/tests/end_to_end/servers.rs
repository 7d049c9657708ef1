//! Cases on real servers: the same words, record and page as of the embedded database; nothing left behind.

use crate::stage::{Stage, measuring};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A stage through which the server's user may pass.
fn passable() -> Stage {
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
