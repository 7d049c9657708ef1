//! `--verify`: what was written is read back from the disk; a block that somebody damages meanwhile is named.

use crate::stage::{Done, Stage, measuring};
use crate::stop::{signal, start};
use record::Reader;
use record::json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use units::{Nanos, clock};

const BLOCK: usize = 8192;
/// Byte of a page that says what it holds, and what it says of rows.
const KIND_AT: usize = 4;
const ROWS: u8 = 4;

fn status(reader: &Reader, check: &str) -> String {
    let checks = reader.checks().expect("checks");
    checks.iter().find(|row| row.check_id == check).map_or_else(String::new, |row| row.status.clone())
}

fn events(reader: &Reader, kind: &str) -> Vec<Value> {
    let events = reader.events().expect("events").into_iter();
    events.filter(|event| event.kind == kind).map(|event| event.json).collect()
}

#[test]
fn an_honest_disk_has_what_was_written() {
    let _turn = measuring();
    let stage = Stage::new();
    let run = ["run", "order-entry", "--minutes", "0.05", "--scale", "0.0005", "--redo", "16m", "--verify"];
    let done = stage.run(&run).ok();
    stage.assert_untouched();
    assert!(
        done.stdout.contains("blocks written were read back from the device, all as written"),
        "{}",
        done.stdout
    );
    let reader = stage.reader();
    assert_eq!(status(&reader, "D5"), "pass");
    let read_back = events(&reader, "read_back");
    assert!(read_back.len() == 1 && read_back[0]["blocks"].as_u64() > Some(100), "{read_back:?}");
    crate::page::check(&stage, &stage.record().with_extension("html"), &["Verified: "]);
}

#[test]
fn a_comparison_reads_back_after_each_visit() {
    let _turn = measuring();
    let stage = Stage::new();
    stage.run(&[&crate::runs::COMPARE[..], &["--verify"]].concat()).ok();
    let reader = stage.reader();
    assert_eq!(status(&reader, "D5"), "pass");
    let visits = reader.visits().expect("visits").len();
    assert!(events(&reader, "read_back").len() > visits, "each visit, the filling, and the pilot");
    stage.assert_untouched();
}

#[test]
fn plain_files_are_read_back_too() {
    let _turn = measuring();
    let stage = Stage::new();
    stage.run(&[&crate::runs::COMPARE[..], &["--target", "files", "--verify"]].concat()).ok();
    let reader = stage.reader();
    assert_eq!(status(&reader, "D5"), "pass");
    let blocks = |event: &Value| event["blocks"].as_u64().unwrap_or(0);
    assert!(events(&reader, "read_back").iter().map(blocks).sum::<u64>() > 1000);
    stage.assert_untouched();
}

#[test]
fn who_cannot_say_what_it_wrote_refuses() {
    let stage = Stage::new();
    stage
        .run(&["run", "commit", "--target", "postgres", "--verify"])
        .refused(&["--verify", "leave --target out"]);
    let compare = ["compare", "commit", "--target", "postgres", "--vary", "sessions=1,2", "--verify"];
    stage.run(&compare).refused(&["--verify", "leave --target out"]);
    let plan = stage.run(&["compare", "--dry-run", "--verify"]).ok().stdout;
    assert!(plan.contains("--verify: after each visit") && plan.contains("at most"), "{plan}");
    stage.assert_untouched();
}

/// The data file of the run in `directory`, once it is there.
fn data_file(directory: &Path) -> Option<PathBuf> {
    let folders =
        fs::read_dir(directory).expect("read").flatten().map(|entry| entry.path().join("users01.dbf"));
    folders.into_iter().find(|path| path.is_file())
}

fn read(file: &File, block: u64) -> Vec<u8> {
    let mut page = vec![0; BLOCK];
    let _ = file.read_exact_at(&mut page, block * BLOCK as u64);
    page
}

/// The first block of rows that is on disk and has not changed for a while: nobody will write it again.
fn settled(file: &File) -> Option<u64> {
    let rows = |block: &u64| read(file, *block)[KIND_AT] == ROWS;
    let block = (1..256).find(rows)?;
    let before = read(file, block);
    clock::sleep(Nanos::millis(700));
    (read(file, block) == before).then_some(block)
}

/// A block that was written early is damaged on the disk after the database has read everything for the last time: when it begins to shut down
/// it is stopped for a moment, and another program (this one) flips a bit.
#[test]
fn a_block_that_is_damaged_beneath_is_named() {
    let _turn = measuring();
    let stage = Stage::new();
    let run = ["run", "commit", "--minutes", "0.1", "--sessions", "4", "--redo", "16m", "--verify"];
    // Written soon, not at the end.
    let child = start(&stage, &[&run[..], &["--set", "fast_start_redo_target=64k"]].concat());
    let until = clock::now() + Nanos::millis(60_000);
    let wait_for = |what: &str, look: &dyn Fn() -> Option<u64>| loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock::now() < until, "no {what}");
        clock::sleep(Nanos::millis(1));
    };
    let open = || File::options().read(true).write(true).open(data_file(&stage.directory)?).ok();
    let block = wait_for("block that is written once", &|| settled(&open()?));
    let log = data_file(&stage.directory).expect("the data file").with_file_name("alert.log");
    // The first time it is shut down is when it was made.
    wait_for("end", &|| {
        let text = fs::read_to_string(&log).unwrap_or_default();
        (text.matches("shutdown immediate").count() == 2).then_some(0)
    });
    signal(&child, "STOP");
    let file = open().expect("the data file");
    let byte = read(&file, block)[5000];
    let at = block * BLOCK as u64 + 5000;
    file.write_all_at(&[byte ^ 4], at).and_then(|()| file.sync_all()).expect("damage the file");
    signal(&child, "CONT");
    let done = Done::of(child.wait_with_output().expect("wait"));
    assert_eq!(done.code, Some(1), "{}\n{}", done.stdout, done.stderr);
    let block = format!("users01.dbf block {block}");
    done.refused(&[&block, ": torn: expected checksum 0x", "found 0x", "redoubt doctor", "redoubt report"]);
    stage.assert_untouched();
    let reader = stage.reader();
    assert_eq!(status(&reader, "D5"), "fail");
    let wrong = events(&reader, "wrong_block");
    assert!(wrong.len() == 1 && wrong[0]["kind"] == "torn", "{wrong:?}");
    let text = stage.run(&["report", "last"]).ok().stdout;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("D5") && flat.contains(&block), "{text}");
}
