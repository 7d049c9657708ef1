//! Short runs to their end: verdict on the terminal, record and page beside each other, nothing left in the directory.

use crate::stage::{Stage, measuring};
use record::json::{self, Value};
use std::fs;

/// The shortest comparison that says something.
pub const COMPARE: [&str; 7] = ["compare", "--minutes", "0.3", "--size", "64m", "--modes", "none,directio"];
/// The shortest calibration.
pub const CALIBRATE: [&str; 4] = ["calibrate", "--quick", "--size", "64m"];

#[test]
fn compare_prints_a_verdict_and_leaves_record_and_page() {
    let _turn = measuring();
    let stage = Stage::new();
    let done = stage.run(&COMPARE).ok();
    stage.assert_untouched();
    for word in ["none", "directio", "Record: ", "Report: "] {
        assert!(done.stdout.contains(word), "{word:?} is missing:\n{}", done.stdout);
    }
    assert!(
        ["better", "worse", "same", "unknown"].iter().any(|verdict| done.stdout.contains(verdict)),
        "one of four words:\n{}",
        done.stdout
    );
    assert!(done.stderr.contains("Plan:"), "the plan is told beforehand:\n{}", done.stderr);

    let reader = stage.reader();
    assert_eq!(reader.status().expect("status"), "finished");
    assert_eq!(reader.experiment().expect("experiment").kind, "compare");
    assert_eq!(reader.configurations().expect("configurations").len(), 2);
    assert!(reader.visits().expect("visits").len() >= 8, "two configurations in at least four blocks");

    crate::page::check(&stage, &stage.record().with_extension("html"), &["directio", "none"]);
    the_same_run_again(&stage);
}

/// Everything that `report` makes of a run.
fn the_same_run_again(stage: &Stage) {
    let text = stage.run(&["report", "last"]).ok().stdout;
    assert!(text.contains("directio"), "{text}");
    let parsed: Value =
        json::from_str(&stage.run(&["report", "last", "--format", "json"]).ok().stdout).expect("JSON");
    assert!(parsed.is_object() || parsed.is_array());
    let raw: Value =
        json::from_str(&stage.run(&["report", "last", "--format", "raw"]).ok().stdout).expect("JSON");
    assert!(raw.is_object());
    let asked = stage
        .run(&["sql", "last", "-c", "select e.kind, count(p.id) > 0 phases from experiment e, phase p"])
        .ok();
    assert!(asked.stdout.contains("compare       1"), "{}", asked.stdout);
    let list = stage.run(&["report"]).ok().stdout;
    assert!(list.contains("compare") && list.contains("finished"), "{list}");

    let tables = stage.folder().join("tables");
    let names = stage.run(&["report", "last", "--csv", tables.to_str().expect("a plain path")]).ok().stdout;
    assert!(names.lines().count() > 5, "one file per table:\n{names}");
    for name in names.lines() {
        assert!(
            fs::read_to_string(name)
                .expect("a table")
                .lines()
                .next()
                .is_some_and(|header| header.contains(',')),
            "{name}"
        );
    }

    let page = stage.folder().join("again.html");
    let page_text = page.to_str().expect("a plain path");
    stage.run(&["report", "last", "last", "--html", page_text]).ok();
    assert!(fs::read_to_string(&page).expect("the page").contains("</html>"));
    stage.run(&["report", "last", "--html", page_text]).refused(&["again.html", "not overwritten"]);
}

#[test]
fn calibrate_prints_json_and_leaves_record_and_page() {
    let _turn = measuring();
    let stage = Stage::new();
    let done = stage.run(&[&CALIBRATE[..], &["--json"]].concat()).ok();
    stage.assert_untouched();
    let parsed: Value = json::from_str(&done.stdout).expect("--json prints nothing but JSON");
    let text = parsed.to_string();
    for key in ["read_iops_max", "read_mbps_max", "write_iops_max"] {
        assert!(text.contains(key), "{key} is missing:\n{text}");
    }
    let reader = stage.reader();
    assert_eq!(reader.status().expect("status"), "finished");
    for estimate in reader.estimates().expect("estimates") {
        let (low, high) = (estimate.low.expect("an interval"), estimate.high.expect("an interval"));
        assert!(low <= estimate.value && estimate.value <= high && low > 0.0, "{estimate:?}");
    }
    assert!(reader.curve_points().expect("the curve").len() > 5);
    assert!(!reader.checks().expect("doubts").is_empty());
    crate::page::check(&stage, &stage.record().with_extension("html"), &["reads"]);
    let text = stage.run(&["report", "last"]).ok().stdout;
    assert!(text.contains("reads"), "{text}");
}

/// Every case by itself, as small as it gets: the report says what was done, and what the database saw is in the record.
#[test]
fn run_plays_every_case_and_keeps_what_the_database_saw() {
    let _turn = measuring();
    for case in ["growth", "commit", "order-entry", "scan", "random-read"] {
        let stage = Stage::new();
        let arguments =
            ["run", case, "--minutes", "0.02", "--scale", "0.0005", "--sessions", "3", "--redo", "16m"];
        let done = stage.run(&arguments).ok();
        stage.assert_untouched();
        assert!(done.stdout.contains("Report: "), "{case}:\n{}", done.stdout);
        let reader = stage.reader();
        assert_eq!(reader.status().expect("status"), "finished", "{case}");
        assert_eq!(reader.experiment().expect("experiment").case.as_deref(), Some(case));
        let waits = reader.of_phases::<record::WaitEventRow>().expect("waits");
        assert!(
            waits.iter().any(|(_, row)| !row.foreground && row.waits > Some(0)),
            "{case}: no process waited"
        );
        let files = reader.of_phases::<record::FileStatRow>().expect("files");
        // What only reads writes nothing, unless a checkpoint falls into its window, and reads nothing that the cache has.
        let requests = |row: &record::FileStatRow| {
            let writes = row.small_writes + row.large_writes;
            let reads = row.small_reads + row.large_reads;
            if matches!(case, "scan" | "random-read") { reads + writes } else { writes }
        };
        assert!(files.iter().any(|(_, row)| requests(row) > 0), "{case}: no file was used");
        crate::page::check(&stage, &stage.record().with_extension("html"), &["setall"]);
    }
    let stage = Stage::new();
    stage.run(&["run", "growht"]).refused(&["growht", "growth, commit"]);
    stage.run(&["run", "commit", "--set", "db_cache_sise=1m"]).refused(&["db_cache_sise", "db_cache_size"]);
    stage
        .run(&["run", "commit", "--io", "directio", "--api", "libaio"])
        .refused(&["directio", "leave it out"]);
    stage.assert_untouched();
}
