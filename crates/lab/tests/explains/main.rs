//! A slow disk explains itself: what the sessions wait for says what to change.
//!
//! Each test makes a disk slow in one way, runs a case on it as a user would, and asks the record where DB time went. Shares are
//! judged, never speed. Needs root (loop device, mount, control groups), as the tests of crate host do.
#![forbid(unsafe_code)]

mod slow_disk;

use lab::run::Case;
use slow_disk::{Explained, SlowDisk};
use units::Bytes;

/// Waits and CPU may miss DB time by this share.
const TOLERANCE: f64 = 0.05;

/// Time of `event` is at least `share` of DB time, and every moment is accounted for.
fn seen(explained: &Explained, event: &str, share: f64) {
    println!("{explained}");
    let found = explained.waits.iter().find(|(name, _)| name == event).map_or(0.0, |(_, share)| *share);
    assert!(found >= share, "{event} was to have {share}: {explained}");
    let accounted = explained.accounted();
    assert!((accounted - 1.0).abs() <= TOLERANCE, "{accounted} of DB time is accounted for: {explained}");
}

/// As [`seen`], and nothing took longer.
fn top(explained: &Explained, event: &str, share: f64) {
    seen(explained, event, share);
    assert_eq!(explained.waits[0].0, event, "{explained}");
}

/// Each commit waits for its redo: a disk with few writes a second is seen there and nowhere else.
#[test]
fn commits_on_a_slow_disk_wait_for_log_file_sync() {
    let disk = SlowDisk { write_iops: Some(200), ..SlowDisk::default() };
    let explained = disk.run(Case::Commit, "none", |_| {});
    top(&explained, "log file sync", 0.5);
}

/// Redo groups so small that the log comes round before the database writers have written what it protects.
#[test]
fn small_redo_groups_wait_for_the_checkpoint() {
    let disk = SlowDisk { write_iops: Some(200), ..SlowDisk::default() };
    let explained = disk.run(Case::Commit, "none", |options| {
        // Many rows in each write of the log: more dirty blocks than the writers get rid of in that time.
        options.sessions = 40;
        options.redo = Bytes::kib(640);
        options.parameters.push(("log_buffer".into(), (128 << 10).to_string()));
    });
    // The writes of the log share the slow disk with those of the checkpoint, so `log file sync` takes as long or longer: a
    // half of DB time on an idle machine, a fifth beside compilers. With large groups there is none of it.
    seen(&explained, "log file switch (checkpoint incomplete)", 0.1);
}

/// A cache so small that every buffer is dirty: who reads waits until one is written.
#[test]
fn a_small_cache_waits_for_free_buffers() {
    let disk = SlowDisk { write_iops: Some(200), ..SlowDisk::default() };
    let explained = disk.run(Case::OrderEntry, "none", |options| {
        options.cache = Some(Bytes::mib(1));
    });
    top(&explained, "free buffer waits", 0.3);
}

/// With asynchronous direct I/O the writers keep up, and what is left is reading single blocks.
#[test]
fn with_asynchronous_io_the_reads_are_left() {
    let disk = SlowDisk { write_iops: Some(300), read_iops: Some(300) };
    let explained = disk.run(Case::OrderEntry, "setall", |options| {
        options.scale = 0.002;
        // More would wait for each other's rows: each holds them as long as its reads take.
        options.sessions = 3;
        options.cache = Some(Bytes::mib(2));
    });
    top(&explained, "db file sequential read", 0.3);
}
