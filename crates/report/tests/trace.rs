//! A trace: the sentence, the tables by role, what it cost.

mod support;

use record::json::{Value, json};
use record::{Reader, Writer};
use std::path::Path;
use support::{experiment, facts, place};

fn row(role: &str, class: &str, flags: &str, call: &str, more: Value) -> Value {
    let mut row = json!({
        "role": role, "threads": 1, "class": class, "flags": [flags], "files": [format!("{class}01.dbf"), format!("{class}02.dbf")],
        "files_seen": 5, "call": call, "calls": 1200, "requests": 1200, "errors": 0, "bytes": 1200 * 8192, "size_min": 8192,
        "size_p50": 8192, "size_max": 8192, "batch_p50": null, "batch_max": null, "p50_ns": 210_000, "p99_ns": 4_300_000,
        "total_ns": 260_000_000u64, "submit_ns": 0, "span_ns": 0, "done_at_return": 0, "to_workers": 0,
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        row[name] = value.clone();
    }
    row
}

fn record(directory: &Path) -> Reader {
    let path = place(directory, "trace");
    let mut writer = Writer::create(&path, &experiment("trace", "/data")).expect("create");
    facts(&mut writer, "vda", "ext4");
    let mut event = |kind: &str, json: Value| writer.event(kind, &json).expect("event");
    event(
        "traced",
        json!({ "about": { "what": "database", "product": "MariaDB 10.11.19", "configuration": "setall io_uring", "case": "commit",
                           "sessions": 10 },
                "by": "ftrace", "seconds": 10.2, "events": 812_345, "events_lost": 0, "calls": 405_000, "call_cost_ns": 620,
                "collector_cpu_seconds": 0.41, "processors": 2, "counts": { "pwrite64": 1200, "recvfrom": 4000 } }),
    );
    event(
        "trace_row",
        row(
            "foreground",
            "redo",
            "O_RDWR O_DIRECT",
            "pwrite64",
            json!({ "threads": 10, "size_min": 512, "size_max": 49_152 }),
        ),
    );
    event(
        "trace_row",
        row(
            "foreground",
            "redo",
            "O_RDWR O_DIRECT",
            "fdatasync",
            json!({ "size_min": null, "size_p50": null,
        "size_max": null, "p50_ns": 1_900_000 }),
        ),
    );
    event(
        "trace_row",
        row(
            "database writer",
            "data",
            "O_RDWR O_DIRECT",
            "io_uring write",
            json!({ "requests": 9000, "calls": 310,
        "batch_p50": 28, "batch_max": 58, "submit_ns": 21_000_000, "span_ns": 423_000_000, "to_workers": 90 }),
        ),
    );
    event(
        "trace_verdict",
        json!({ "role": "foreground", "class": "redo", "direction": "write", "direct": true, "durable": "by_sync",
        "manner": "blocking", "done_at_return": 0.0, "inside": 0.0, "workers": 0.0 }),
    );
    event(
        "trace_verdict",
        json!({ "role": "database writer", "class": "data", "direction": "write", "direct": true,
        "durable": "later", "manner": "really", "done_at_return": 0.01, "inside": 0.05, "workers": 0.01 }),
    );
    writer.finish("finished").expect("finish");
    Reader::open(&path).expect("open")
}

#[test]
fn tells_who_does_what() {
    let folder = tempfile::tempdir().expect("a folder");
    let reader = [record(folder.path())];
    insta::assert_snapshot!("trace", report::terminal(&reader, 80, false).expect("text"));
}

#[test]
fn every_line_fits_and_the_page_says_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let reader = [record(folder.path())];
    let text = report::terminal(&reader, 80, false).expect("text");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let html = report::html(&reader).expect("page");
    for words in ["truly asynchronous", "O_RDWR O_DIRECT", "made durable by a sync of the same role", "<svg"]
    {
        assert!(html.contains(words), "{words}");
    }
    let json: Value = record::json::from_str(&report::json(&reader).expect("json")).expect("json");
    let roles = json["trace"]["roles"].as_array().expect("roles");
    assert_eq!((roles.len(), &roles[0]["role"]), (2, &json!("database writer")));
    assert_eq!(roles[0]["files"][0]["calls"][0]["to_workers"], 90);
}
