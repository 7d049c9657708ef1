//! Every refusal is a sentence that says what was seen and what to do.

use crate::sample;
use record::{PhaseRow, Reader, RecordError, VisitRow, Writer};
use std::fs;
use std::path::Path;

/// Opening `path` fails, and the sentence has `words`.
fn refused(path: &Path, words: &[&str]) {
    let error = Reader::open(path).expect_err("must be refused").to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

/// A finished record with one pragma changed, as another program or another version would have written it.
fn with_pragma(folder: &Path, pragma: &str) -> std::path::PathBuf {
    let path = folder.join("changed.redoubt");
    Writer::create(&path, &sample::experiment()).unwrap().finish("finished").unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("PRAGMA {pragma}")).unwrap();
    path
}

#[test]
fn what_is_not_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    refused(&folder.path().join("none.redoubt"), &["no record at", "none.redoubt", "redoubt report last"]);
    refused(folder.path(), &["not a record", "it is a folder", ".redoubt file"]);
    refused(&file("empty.redoubt", b""), &["not a record", "empty"]);
    refused(&file("text.redoubt", b"just a text\n"), &["not a record", "no SQLite file"]);
    refused(&file("long.redoubt", &[b'x'; 10_000]), &["not a record", "no SQLite file"]);
    refused(&file("magic.redoubt", b"SQLite format 3\0"), &["not a record", "no SQLite file"]);
    refused(&with_pragma(folder.path(), "application_id = 0"), &["not a record", "another program"]);
}

#[test]
fn a_newer_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = with_pragma(folder.path(), "user_version = 99");
    refused(&path, &["schema 99", "reads up to 2", "newer"]);
    assert!(matches!(Reader::open(&path), Err(RecordError::NewerSchema { found: 99, .. })));
}

#[test]
fn a_torn_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("torn.redoubt");
    Writer::create(&path, &sample::experiment()).unwrap().finish("finished").unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(6_000).unwrap();
    refused(&path, &["torn.redoubt", "malformed", ".recover"]);
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.redoubt");
    let refused = |path: &Path| {
        let error = Writer::create(path, &sample::experiment()).expect_err("must be refused");
        assert!(matches!(error, RecordError::Exists(_)), "{error}");
        assert!(error.to_string().contains("never overwritten; choose another name"), "{error}");
    };
    fs::write(&path, "a letter").unwrap();
    refused(&path);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a letter");

    let link = folder.path().join("link.redoubt");
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).unwrap();
    refused(&link);
    assert!(!folder.path().join("elsewhere").exists(), "nothing is created through a symlink");

    fs::write(folder.path().join("stale.redoubt-wal"), "the log of another file").unwrap();
    refused(&folder.path().join("stale.redoubt"));
}

#[test]
fn a_place_that_takes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let error = Writer::create(&folder.path().join("file/run.redoubt"), &sample::experiment()).unwrap_err();
    assert!(error.to_string().contains("could not be created"), "{error}");
}

#[test]
fn rows_for_what_is_not_open() {
    let (_folder, _path, mut writer) = sample::unfinished();
    let late = |error: RecordError| assert!(error.to_string().contains("is not open"), "{error}");
    late(writer.phase(&sample::phase(1, 1)).unwrap_err());
    late(writer.intervals(1, &sample::intervals()).unwrap_err());
    late(writer.histogram(1, "write", &[]).unwrap_err());
    late(writer.end_visit(1, "measured", None).unwrap_err());
    late(writer.end_visit(99, "measured", None).unwrap_err());
    late(writer.intervals(99, &[]).unwrap_err());
    writer
        .phase(&PhaseRow { visit_id: 2, workload_id: 99, ..PhaseRow::default() })
        .expect_err("no workload 99");
    writer.visit(&VisitRow { block_id: Some(99), ..VisitRow::default() }).expect_err("no block 99");
    writer.phase(&sample::phase(2, 1)).expect("visit 2 is open");
}

#[test]
fn a_batch_is_written_whole_or_not_at_all() {
    let (_folder, path, mut writer) = sample::unfinished();
    let before = Reader::open(&path).unwrap().counters().unwrap();
    let mut batch = sample::counters(1);
    batch[1].phase_id = Some(99);
    writer.counters(&batch).expect_err("no phase 99");
    assert_eq!(Reader::open(&path).unwrap().counters().unwrap(), before);
}

#[test]
fn a_writer_may_move_to_another_thread() {
    fn moves<T: Send>() {}
    moves::<Writer>();
    moves::<Reader>();
}
