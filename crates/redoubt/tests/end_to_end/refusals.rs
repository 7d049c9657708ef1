//! What cannot be done is refused before anything is touched, with what to type instead.

use crate::stage::Stage;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Refused with `words`, without a trace.
fn check(arguments: &[&str], words: &[&str]) {
    let stage = Stage::new();
    stage.run(arguments).refused(words);
    stage.assert_untouched();
}

#[test]
fn nonsense_on_the_command_line() {
    check(&["frobnicate"], &["frobnicate", "--help"]);
    check(&["compare", "--frobnicate"], &["--frobnicate", "--help"]);
    check(&["compare", "--size", "8x"], &["8x", "type a number and a unit"]);
    check(&["compare", "--modes", "none,turbo"], &["turbo"]);
    check(&["compare", "--minutes", "soon"], &["soon"]);
    check(&["compare", "commit", "/data"], &["redoubt compare … --dir /data"]);
    check(&["compare", "--patience", "0"], &["--patience", "86400"]);
    check(&["calibrate", "--quick", "--thorough"], &["--quick", "--thorough"]);
}

#[test]
fn values_out_of_range() {
    check(&["compare", "--read-share", "90"], &["--read-share", "0 to 1"]);
    check(&["compare", "--hit-ratio", "1.5"], &["--hit-ratio", "0 to 1"]);
    check(&["compare", "--commits-per-tx", "-1"], &["--commits-per-tx"]);
    check(&["compare", "--commits-per-tx", "nan"], &["--commits-per-tx", "0 to"]);
    check(&["compare", "--awr", "no/such/report.txt"], &["no/such/report.txt", "is the name right?"]);
    check(&["compare", "--awr", crate::stage::OWN_FILE], &["logical reads", "Load Profile"]);
    check(&["compare", "--mix-from", "no-such-run"], &["no-such-run"]);
    check(&["compare", "--awr", "a.txt", "--mix-from", "last"], &["--mix-from"]);
    check(&["compare", "--minutes", "0"], &["--minutes", "out of range"]);
    check(&["compare", "--sessions", "0"], &["--sessions"]);
    check(&["compare", "--block", "5000"], &["--block", "8k"]);
    check(&["calibrate", "--max-latency", "0"], &["--max-latency", "milliseconds"]);
    check(&["calibrate", "--block", "3k"], &["--block", "8k"]);
}

#[test]
fn sizes_that_do_not_fit() {
    check(&["compare", "--size", "900t"], &["free", "smaller --size"]);
    check(&["calibrate", "--size", "900t"], &["free", "smaller --size"]);
    check(&["compare", "--size", "1m"], &["too small", "64 MiB"]);
    check(&["calibrate", "--size", "1m"], &["too small", "64 MiB"]);
}

#[test]
fn targets_that_are_none() {
    check(&["compare", "--dir", "no/such/place"], &["no/such/place"]);
    check(&["calibrate", "no/such/place"], &["no/such/place", "mkdir"]);
    check(&["calibrate", "/dev/null"], &["/dev/null", "neither a directory"]);
    check(&["doctor", "no/such/place"], &["no/such/place"]);
    // The user's file is too small to say anything, and is only read.
    check(&["calibrate", crate::stage::OWN_FILE], &["64 MiB"]);
    check(&["calibrate", ".", "--destroy", "/dev/sda"], &["--destroy is for block devices"]);
    check(&["compare", "--dir", crate::stage::OWN_FILE], &[crate::stage::OWN_FILE]);
}

#[test]
fn records_that_are_none() {
    let stage = Stage::new();
    fs::write(stage.directory.join("x.redoubt"), "not a record at all").expect("write");
    stage.run(&["report", "./x.redoubt"]).refused(&["x.redoubt"]);
    stage.run(&["report", "./absent.redoubt"]).refused(&["absent.redoubt"]);
}

#[test]
fn an_existing_record_is_not_overwritten() {
    let stage = Stage::new();
    let path = stage.folder().join("mine.redoubt");
    fs::write(&path, "mine").expect("write");
    let path_text = path.to_str().expect("a plain path");
    stage
        .run(&["compare", "--minutes", "0.2", "--size", "64m", "--record", path_text])
        .refused(&["mine.redoubt"]);
    assert_eq!(fs::read_to_string(&path).expect("read"), "mine");
    stage.assert_untouched();
}

/// A directory that the user may see but not write to. Root may write everywhere, so there it is tried as `nobody`.
#[test]
fn a_directory_that_one_may_not_write_to() {
    let stage = Stage::new();
    let closed = tempfile::tempdir_in("/tmp").expect("a temporary folder");
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o555)).expect("close it");
    let path = closed.path().to_str().expect("a plain path");
    for arguments in
        [["compare", "--dir", path, "--size", "64m"].as_slice(), &["calibrate", path, "--size", "64m"]]
    {
        stage.run_unprivileged(arguments).refused(&[path, "ermission"]);
        assert_eq!(fs::read_dir(closed.path()).expect("read").count(), 0);
    }
}
