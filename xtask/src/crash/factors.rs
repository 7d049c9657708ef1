//! `cargo x crash factors`: comparisons and stages that make file systems, mounts, caps and schedulers, killed with -9.

use super::{Victim, kill_many};
use crate::Failure;

const ROUNDS: usize = 100;

/// What varies. Together: every factor that changes the machine.
const VARIED: [(&str, &[&str]); 6] = [
    ("fs", &["compare", "--vary", "fs=ext4,xfs,btrfs"]),
    ("raw", &["compare", "--vary", "fs=raw,ext3:data=journal", "--vary", "scheduler=kyber,bfq"]),
    ("throttle", &["compare", "--vary", "throttle=off,2000iops,80MB/s", "--vary", "fs=ext4"]),
    (
        "place",
        &[
            "compare",
            "--vary",
            "place.redo=here,throttled:2000iops",
            "--vary",
            "place.undo=here,throttled:aws-gp3",
        ],
    ),
    (
        "queue",
        &[
            "compare",
            "--vary",
            "fs=ext4",
            "--vary",
            "scheduler=none,mq-deadline,bfq",
            "--vary",
            "nr_requests=32,64",
            "--vary",
            "read_ahead_kb=64",
        ],
    ),
    (
        "mount",
        &[
            "compare",
            "--vary",
            "fs=ext4",
            "--vary",
            "mount=defaults,noatime+data=writeback",
            "--vary",
            "wbt_lat_usec=0",
        ],
    ),
];

/// Kills fall into so many seconds.
const WHOLE: u64 = 12;
/// Short and small.
const SMALL: [&str; 4] = ["--minutes", "0.3", "--size", "64m"];

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    kill_many(arguments, ROUNDS, "factors ", &|round| {
        // Every second one does nothing but raise stages and strike them: more kills meet a change.
        if round.is_multiple_of(2) {
            return Victim { name: "stages", example: Some("stages"), arguments: &["."], whole: WHOLE };
        }
        let (name, words) = VARIED[round / 2 % VARIED.len()];
        let all: Vec<&str> = words.iter().chain(&SMALL).copied().collect();
        Victim { name, example: None, arguments: all.leak(), whole: WHOLE }
    })
}
