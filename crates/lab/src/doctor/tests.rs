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
    // Whoever went on would have found something.
    let findings = examine(Path::new("/"), &AtomicBool::new(true), &mut |_| {});
    assert!(findings.is_empty(), "{findings:?}");
}

/// A file system that never flushes, on a real device. Needs root, as CI has.
#[test]
fn syncs_without_barriers_are_not_called_honest() {
    use host::change;
    use host::journal::Journal;
    use host::workspace::Workspace;
    // Beside the test program: a real disk, where /tmp may be memory.
    let program = std::env::current_exe().unwrap();
    let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let mut journal = Journal::open_in(&folder.path().join("state"), "test").unwrap();
    let space = Workspace::create(folder.path(), &mut journal).unwrap();
    let disk = space.new_file_path("disk");
    fs::write(&disk, vec![0; 32 << 20]).unwrap();
    let device = change::loop_device(&mut journal, &disk, true, None).unwrap();
    change::make_file_system(&journal, &device.path, "ext4", &[]).unwrap();
    let point = space.list("mnt").unwrap();
    fs::create_dir(&point).unwrap();
    change::mount(&mut journal, &device.path, &point, "ext4", "barrier=0").unwrap();
    let patient = Patient::meet(&point);
    let told = |part: Part, topic| {
        let all = part(&patient, &AtomicBool::new(false));
        all.into_iter().find(|f| f.topic == topic).unwrap_or_else(|| panic!("nothing about {topic}"))
    };
    // Unknown when others flush the disk meanwhile; what must never be said is that it is honest.
    let sync = told(sync::examine, "sync");
    assert!(matches!(sync.level, Level::Bad | Level::Unknown), "{sync:?}");
    let option = told(storage::examine, "mount options");
    assert!(option.level == Level::Bad && option.seen.contains("no barriers"), "{option:?}");
    drop(patient);
    let lines = journal.undo_all().unwrap();
    assert!(lines.iter().all(|l| l.result.is_settled()), "{lines:?}");
}
