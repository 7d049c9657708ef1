//! Traces of programs whose calls are known: counted by the kernel's tracer, by strace, and as they were asked for.

use crate::stage::{Done, Stage, is_root, measuring};
use crate::stop::start;
use record::json::Value;
use std::process::Command;
use units::{Nanos, clock};

const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Blocks that dd writes.
const BLOCKS: u64 = 200;

fn trace(done: &Done) -> Value {
    // What the command itself said comes before.
    let begin = done.stdout.find('{').expect("an object");
    let json: Value = record::json::from_str(&done.stdout[begin..]).expect("JSON");
    json["trace"].clone()
}

/// The files of a class that a role used.
fn files<'t>(trace: &'t Value, role: &str, class: &str) -> &'t Value {
    let all = trace["roles"].as_array().expect("roles");
    let role =
        all.iter().find(|known| known["role"] == role).unwrap_or_else(|| panic!("no {role} in {trace:#}"));
    let files = role["files"].as_array().expect("files");
    let of = files.iter().find(|of| of["class"].as_str().is_some_and(|name| name.ends_with(class)));
    of.unwrap_or_else(|| panic!("no {class} in {role:#}"))
}

fn call<'t>(files: &'t Value, name: &str) -> &'t Value {
    let calls = files["calls"].as_array().expect("calls");
    calls.iter().find(|call| call["call"] == name).unwrap_or_else(|| panic!("no {name} in {files:#}"))
}

fn verdict<'t>(files: &'t Value, direction: &str) -> &'t Value {
    let all = files["verdicts"].as_array().expect("verdicts");
    all.iter()
        .find(|of| of["direction"] == direction)
        .unwrap_or_else(|| panic!("no {direction} in {files:#}"))
}

fn dd() -> Vec<String> {
    let count = format!("count={BLOCKS}");
    ["dd", "if=/dev/zero", "of=traced", "bs=8k", &count, "oflag=direct,dsync"].map(str::to_owned).to_vec()
}

/// Calls of one name, as `strace -c` counts them.
fn counted_by_strace(stage: &Stage, name: &str) -> u64 {
    let only = format!("trace={name}");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o", "counts", "-e", &only]).args(dd()).current_dir(&stage.directory);
    let done = strace.output().expect("strace is in package strace: sudo apt install strace");
    assert!(done.status.success(), "{done:?}");
    let text = std::fs::read_to_string(stage.directory.join("counts")).expect("counts");
    let line = text.lines().find(|line| line.split_whitespace().last() == Some(name)).expect("a line");
    line.split_whitespace().nth(3).and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn a_known_program_is_counted_alike_by_tracer_and_strace() {
    let _turn = measuring();
    let ways: &[&str] = if is_root() { &["ftrace", "strace"] } else { &["strace"] };
    let counted = counted_by_strace(&Stage::new(), "write");
    for by in ways {
        let stage = Stage::new();
        let mut words = vec!["trace".to_owned(), "--json".into()];
        words.extend((*by == "strace").then(|| "--strace".to_owned()));
        words.push("--".into());
        words.extend(dd());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let seen = trace(&stage.run(&words).ok());
        assert_eq!(seen["by"], *by);
        assert_eq!(seen["events_lost"], 0);
        assert_eq!(seen["counts"]["write"], counted, "{by}");
        let file = files(&seen, "dd", "traced");
        let write = call(file, "write");
        assert_eq!((&write["requests"], &write["errors"]), (&BLOCKS.into(), &0.into()), "{by}");
        assert_eq!((&write["size_min"], &write["size_max"]), (&8192.into(), &8192.into()), "{by}");
        let verdict = verdict(file, "write");
        assert_eq!(verdict["direct"], true, "{by}");
        assert_eq!(
            (&verdict["durable"], &verdict["manner"]),
            (&"on_return".into(), &"blocking".into()),
            "{by}"
        );
        crate::page::check(
            &stage,
            &stage.record().with_extension("html"),
            &["dd", "durable when they return"],
        );
        assert!(stage.run(&["cleanup"]).ok().stdout.contains("Nothing to undo"));
    }
}

/// What the engine's modes are by definition: the tracer must find it out from outside.
#[test]
fn modes_of_the_engine_as_the_kernel_sees_them() {
    let _turn = measuring();
    assert!(is_root(), "the kernel's tracer needs root");
    for (mode, api, direct, queued) in [
        ("none", None, false, None),
        ("directio", None, true, None),
        ("setall", Some("io_uring"), true, Some("io_uring write")),
        ("asynch", Some("libaio"), false, Some("io_submit write")),
    ] {
        let stage = Stage::new();
        let mut words =
            vec!["trace", "--target", "engine", "--io", mode, "--seconds", "2", "--sessions", "3", "--json"];
        words.extend(api.iter().flat_map(|api| ["--api", api]));
        let seen = trace(&stage.run(&words).ok());
        assert_eq!(seen["events_lost"], 0, "{mode}");
        let redo = files(&seen, "log writer", "redo");
        let log = verdict(redo, "write");
        assert_eq!(log["direct"], direct, "{mode}: {redo:#}");
        assert_eq!(log["durable"], "on_return", "{mode}: {redo:#}");
        let calls: Vec<&Value> = seen["roles"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|role| role["files"].as_array().into_iter().flatten())
            .flat_map(|of| of["calls"].as_array().into_iter().flatten())
            .collect();
        let found =
            calls.iter().any(|call| call["call"].as_str() == queued && call["requests"].as_u64() > Some(0));
        assert_eq!(found, queued.is_some(), "{mode}: {seen:#}");
        stage.assert_untouched();
    }
}

#[test]
fn a_killed_trace_leaves_an_instance_that_cleanup_removes() {
    let _turn = measuring();
    assert!(is_root(), "the kernel's tracer needs root");
    let stage = Stage::new();
    let mut sleeper = Command::new("sleep").arg("60").spawn().expect("start sleep");
    let pid = sleeper.id().to_string();
    let mut child = start(&stage, &["trace", "--pid", &pid, "--seconds", "60"]);
    let own = format!("redoubt-{}-", child.id());
    let there = || {
        let names = std::fs::read_dir(INSTANCES).into_iter().flatten().flatten();
        names.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(&own))
    };
    let until = clock::now() + Nanos::secs(20.0);
    while !there() && clock::now() < until {
        clock::sleep(Nanos::millis(20));
    }
    assert!(there(), "the instance was never made");
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(there(), "a kill leaves it");
    let said = stage.run(&["cleanup"]).ok().stdout;
    assert!(said.contains("remove the trace instance") && said.contains("undone"), "{said}");
    assert!(!there());
    sleeper.kill().expect("kill");
    sleeper.wait().expect("wait");
}

#[test]
fn says_what_is_missing_and_what_to_type() {
    let stage = Stage::new();
    stage.run(&["trace"]).refused(&["--pid", "--target", "-- CMD"]);
    stage.run(&["trace", "--pid", "4194303"]).refused(&["there is no process 4194303"]);
    stage.run(&["trace", "--", "redoubt-no-such-program"]).refused(&["not found"]);
    stage.run(&["trace", "--target", "engine", "scan"]).refused(&["commit, order-entry or random-read"]);
    let done = stage.run_unprivileged(&["trace", "--", "cat", "/dev/null"]);
    assert!(done.stderr.contains("needs root") || !is_root(), "{}", done.stderr);
}
