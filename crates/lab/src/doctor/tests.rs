//! The doctor on this machine.

use super::*;
use std::fs;

fn visit(path: &Path) -> Vec<Finding> {
    examine(path, &AtomicBool::new(false), &mut |_| {})
}

fn topics(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|f| f.topic).collect()
}

#[test]
fn looks_at_everything_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    let findings = examine(folder.path(), &AtomicBool::new(false), &mut |words| heard.push(words.to_owned()));
    let seen = topics(&findings);
    for topic in [
        "pauses",
        "steal",
        "other work",
        "mount options",
        "free space",
        "sync",
        "direct I/O",
        "io_uring",
        "libaio",
        "aio-max-nr",
        "memory",
        "swap",
    ] {
        assert!(seen.contains(&topic), "{topic} is missing in {seen:?}");
    }
    assert_eq!(heard.len(), 5);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "its file is gone");
    for finding in findings {
        let told =
            finding.level == Level::Good || !finding.effect.is_empty() || finding.level == Level::Unknown;
        assert!(told && !finding.seen.is_empty(), "{finding:?}");
    }
}

#[test]
fn memory_is_no_storage() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let findings = visit(folder.path());
    let bad: Vec<&str> = findings.iter().filter(|f| f.level == Level::Bad).map(|f| f.topic).collect();
    assert!(bad.contains(&"storage") && bad.contains(&"sync"), "{findings:#?}");
}

#[test]
fn a_missing_path_is_told_at_once() {
    let findings = visit(Path::new("/no/such/path"));
    assert_eq!((findings.len(), findings[0].level), (1, Level::Bad));
}

#[test]
fn stops_when_told() {
    let start = units::clock::now();
    let findings = examine(Path::new("/"), &AtomicBool::new(true), &mut |_| {});
    assert!(findings.is_empty() && units::clock::now() - start < units::Nanos::millis(500));
}
