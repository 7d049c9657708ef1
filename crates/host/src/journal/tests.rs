//! Kills at every step, and what cleanup finds then. `tests/kill.rs` does the same with real processes and devices.

use super::*;
use crate::workspace::Workspace;
use std::fs;

/// Two workspaces with two files each, every one after its undo, as a run makes them. After each step that reaches the disk,
/// `seen` gets the journal's bytes so far.
fn story(parent: &Path, journal: &mut Journal, seen: &mut dyn FnMut()) {
    for _ in 0..2 {
        let space = Workspace::create(parent, journal).unwrap();
        seen();
        for name in ["data.0", "data.1"] {
            fs::write(space.new_file_path(name), "ours").unwrap();
            seen();
        }
    }
}

/// A journal as a killed process leaves it: its lock is free, its process number names nobody.
fn leave_as_killed(journal: Journal, folder: &Path, bytes: &[u8]) -> PathBuf {
    let text = String::from_utf8_lossy(bytes);
    let killed = text.replacen(&format!("\"pid\":{}", std::process::id()), "\"pid\":4294967295", 1);
    let path = folder.join("killed.journal");
    fs::write(&path, killed.as_bytes()).unwrap();
    let own = journal.path.clone();
    let mut journal = journal;
    journal.finished = true;
    drop(journal);
    fs::remove_file(own).unwrap();
    path
}

/// The n-th kill for n = 0, 1, 2 … until the story is told to its end.
#[test]
fn a_kill_after_any_step_leaves_nothing() {
    for kill_at in 0.. {
        let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(data.path().join("theirs"), "precious").unwrap();
        let mut journal = Journal::open_in(state.path(), "test").unwrap();
        let path = journal.path.clone();
        let mut steps = 0;
        // A kill is a panic that unwinds the story, with the journal forgotten by its owner.
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            story(data.path(), &mut journal, &mut || {
                steps += 1;
                if steps > kill_at {
                    std::panic::resume_unwind(Box::new("killed"));
                }
            });
        }));
        let bytes = fs::read(path).unwrap();
        leave_as_killed(journal, state.path(), &bytes);
        let dry = cleanup_in(state.path(), true);
        assert!(dry.iter().all(|l| matches!(l.result, CleanupResult::WouldUndo)), "{dry:?}");
        let lines = cleanup_in(state.path(), false);
        assert!(lines.iter().all(|l| l.result.is_settled()), "{lines:?}");
        assert_eq!(files::names(data.path()), ["theirs"], "killed after step {kill_at}");
        assert!(files::names(state.path()).is_empty() && cleanup_in(state.path(), false).is_empty());
        if told.is_ok() {
            assert_eq!(kill_at, 6);
            return;
        }
    }
}

/// A power cut may leave any prefix of the last line.
#[test]
fn a_journal_torn_at_any_byte_is_read() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    let first = Workspace::create(data.path(), &mut journal).unwrap();
    let before = fs::read(&journal.path).unwrap().len();
    journal.will(Undo::RemoveDir(data.path().join("redoubt-never-made"))).unwrap();
    let bytes = fs::read(&journal.path).unwrap();
    leave_as_killed(journal, state.path(), &bytes);
    for end in (0..=bytes.len()).rev() {
        let text = String::from_utf8_lossy(&bytes[..end]).replacen(
            &format!("\"pid\":{}", std::process::id()),
            "\"pid\":4294967295",
            1,
        );
        fs::write(state.path().join("killed.journal"), text).unwrap();
        let lines = cleanup_in(state.path(), true);
        if end >= before {
            let expected = if end == bytes.len() { 2 } else { 1 };
            assert_eq!(lines.len(), expected, "torn at {end}: {lines:?}");
        } else {
            assert!(lines.len() <= 1, "torn at {end}: {lines:?}");
        }
        assert!(first.path().exists(), "a dry run removes nothing");
    }
}

#[test]
fn a_running_journal_is_left_alone() {
    let state = tempfile::tempdir().unwrap();
    let journal = Journal::open_in(state.path(), "compare in /data").unwrap();
    let lines = cleanup_in(state.path(), false);
    assert!(matches!(&lines[..], [CleanupLine { result: CleanupResult::LeftAlone(_), .. }]), "{lines:?}");
    assert!(journal.path.exists());
    assert_eq!(journal.undo_all(), Ok(vec![]));
    assert!(files::names(state.path()).is_empty());
}

#[test]
fn undo_all_goes_backwards_and_past_a_failure() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    for name in ["redoubt-a", "redoubt-b", "redoubt-c"] {
        journal.will(Undo::RemoveDir(data.path().join(name))).unwrap();
    }
    fs::create_dir(data.path().join("redoubt-a")).unwrap();
    fs::write(data.path().join("redoubt-b"), "").unwrap();
    let kept = journal.path.clone();
    let lines = journal.undo_all().unwrap();
    let results: Vec<_> = lines.iter().map(|l| &l.result).collect();
    assert!(
        matches!(results[..], [CleanupResult::AlreadyGone, CleanupResult::Failed(_), CleanupResult::Undone]),
        "{results:?}"
    );
    assert!(!data.path().join("redoubt-a").exists() && kept.exists(), "the journal is kept for cleanup");
}

#[test]
fn a_dropped_journal_undoes() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    story(data.path(), &mut journal, &mut || {});
    assert_eq!(files::names(data.path()).len(), 2);
    drop(journal);
    assert!(files::names(data.path()).is_empty() && files::names(state.path()).is_empty());
}

#[test]
fn nothing_that_exists_can_be_noted_for_removal() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let theirs = data.path().join("theirs");
    fs::write(&theirs, "precious").unwrap();
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    assert!(matches!(journal.will(Undo::RemoveDir(theirs.clone())), Err(HostError::AlreadyThere { .. })));
    drop(journal);
    assert!(theirs.exists());
}

#[test]
fn a_line_that_cannot_be_written_changes_nothing() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    let before = fs::read(&journal.path).unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let good = std::mem::replace(&mut journal.file, full);
    let refused = journal.will(Undo::RemoveDir(data.path().join("redoubt-a")));
    assert!(matches!(refused, Err(HostError::File { errno: 28, .. })), "{refused:?}");
    journal.file = good;
    // The piece of a line that a really full disk would have left.
    journal.file.write_all(b"{\"step\":0,\"un").unwrap();
    journal.file.set_len(journal.bytes).unwrap();
    assert_eq!(fs::read(&journal.path).unwrap(), before);
    assert_eq!(journal.will(Undo::RemoveDir(data.path().join("redoubt-b"))), Ok(Step(0)));
    assert_eq!(journal.undo_all().unwrap().len(), 1);
}

/// A settled step is noted behind the torn end, and the next cleanup must still be able to read the journal.
#[test]
fn a_torn_end_and_a_failing_step_are_cleaned_twice() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    let first = Workspace::create(data.path(), &mut journal).unwrap().path().to_owned();
    let second = Workspace::create(data.path(), &mut journal).unwrap().path().to_owned();
    fs::write(first.join("theirs"), "precious").unwrap();
    let mut bytes = fs::read(&journal.path).unwrap();
    bytes.extend(b"{\"step\":2,\"un");
    let killed = leave_as_killed(journal, state.path(), &bytes);
    let before = fs::read(&killed).unwrap();
    cleanup_in(state.path(), true);
    assert_eq!(fs::read(&killed).unwrap(), before, "a dry run writes nothing");
    let lines = cleanup_in(state.path(), false);
    assert!(
        matches!(&lines[..], [a, b] if a.result == CleanupResult::Undone && matches!(b.result, CleanupResult::Failed(_))),
        "{lines:?}"
    );
    assert!(!second.exists());
    let lines = cleanup_in(state.path(), false);
    assert!(matches!(&lines[..], [a] if matches!(a.result, CleanupResult::Failed(_))), "{lines:?}");
    fs::remove_file(first.join("theirs")).unwrap();
    let lines = cleanup_in(state.path(), false);
    assert!(matches!(&lines[..], [a] if a.result == CleanupResult::Undone), "{lines:?}");
    assert!(files::names(state.path()).is_empty() && files::names(data.path()).is_empty());
}

#[test]
fn a_step_whose_program_hangs_is_left_to_cleanup() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    let path = data.path().join("redoubt-x");
    let step = journal.will(Undo::RemoveDir(path.clone())).unwrap();
    let hung = journal.run("sleep", &["30"], "coreutils", 1).unwrap_err();
    assert_eq!(journal.undo_unless_hung(step, &hung), Ok(()));
    // The change of a program that finished late.
    fs::create_dir(&path).unwrap();
    let bytes = fs::read(&journal.path).unwrap();
    let kept = journal.path.clone();
    let lines = journal.undo_all().unwrap();
    assert!(matches!(&lines[..], [a] if matches!(a.result, CleanupResult::LeftAlone(_))), "{lines:?}");
    assert!(path.exists() && fs::read(&kept).unwrap() == bytes, "neither undone nor noted so");
}

#[test]
fn journals_killed_before_their_first_line_are_removed() {
    let state = tempfile::tempdir().unwrap();
    let own = Identity::own("test");
    let starting = format!("{}-{}-0000000a.new", own.pid, own.start_ticks);
    let torn = format!("{}-{}-0000000b.new", own.pid, own.start_ticks + 1);
    let killed = Identity { pid: u32::MAX, ..own.clone() }.to_line("c");
    for (name, text) in [(starting.as_str(), ""), (torn.as_str(), "{\"redou"), ("c.new", killed.as_str())] {
        fs::write(state.path().join(name), text).unwrap();
    }
    assert_eq!(cleanup_in(state.path(), true).len(), 2);
    let lines = cleanup_in(state.path(), false);
    assert!(lines.len() == 2 && lines.iter().all(|l| l.result == CleanupResult::Undone), "{lines:?}");
    assert_eq!(files::names(state.path()), [starting]);
}

#[test]
fn a_workspace_whose_parent_is_gone_is_settled() {
    let (data, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let parent = data.path().join("parent/deeper");
    fs::create_dir_all(&parent).unwrap();
    let mut journal = Journal::open_in(state.path(), "test").unwrap();
    Workspace::create(&parent, &mut journal).unwrap();
    let bytes = fs::read(&journal.path).unwrap();
    leave_as_killed(journal, state.path(), &bytes);
    fs::remove_dir_all(data.path().join("parent")).unwrap();
    let lines = cleanup_in(state.path(), false);
    assert!(matches!(&lines[..], [a] if a.result == CleanupResult::AlreadyGone), "{lines:?}");
    assert!(files::names(state.path()).is_empty());
}
