//! Following data that moves: with recall and notification, requests wait at most 100 ms in 99 of 100 moves; no block is lost, none goes by the wrong node afterwards.
//!
//! Each kind of layout and each of the five things that make the client look: a volume goes to the other node and back under load (8 KiB reads, unstable and
//! stable writes, syncs, 16 in flight, each block stamped), while *stall* is the longest that a request took around a move, the move itself
//! included, and *found* how long after the move requests went to the new place. Node counters are the cluster's own.
//!
//! `cargo x bench follow --moves 100`, or one of `recall`, `notification`, `flags`, `refusal`, `refresh`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;
#[path = "../../lab/benches/common/goals.rs"]
mod goals;
#[path = "../tests/cluster/stand.rs"]
#[allow(dead_code, reason = "this benchmark uses its part")]
mod stand;
#[path = "../tests/cluster/storm.rs"]
#[allow(dead_code, reason = "this benchmark uses its part")]
mod storm;

use flags::Flags;
use goals::{Aim, Goals};
use nfs::{Cause, MountOptions, Open, QueueOptions, Status, Version};
use nfslab::{Cluster, ClusterOptions, DataServer, Layouts, NodeCounters, Tell, WrongNode};
use stand::{BLOCK, mount_with, options, start};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use storm::storm;
use units::{Nanos, clock};

const LAYOUTS: [(&str, Layouts); 3] = [
    ("files", Layouts::Files),
    ("flexible files, v4.1", Layouts::Flexible(DataServer::V41)),
    ("flexible files, v3", Layouts::Flexible(DataServer::V3)),
];
/// Longest stall in 99 of 100 moves, ms.
const STALL_MS: f64 = 100.0;
const REFRESH: Nanos = Nanos::millis(100);
/// What a look itself may take, ms.
const LOOK_MS: f64 = 20.0;
/// Load between moves: until what was in flight has ended, and while it is looked where requests go. Longer together than the client waits before it looks
/// again for the same reason.
const SETTLE: Nanos = Nanos::millis(60);
const WATCH: Nanos = Nanos::millis(60);
/// A move that is not followed in this time never is.
const PATIENCE: Nanos = Nanos::millis(20_000);

/// What makes the client look.
struct Trigger {
    name: &'static str,
    tell: Tell,
    wrong: WrongNode,
    refresh: Nanos,
    cause: Cause,
    stall: Aim,
}

const fn trigger(name: &'static str, tell: Tell, cause: Cause) -> Trigger {
    Trigger { name, tell, wrong: WrongNode::Forward, refresh: Nanos(0), cause, stall: Aim::Told }
}

const TRIGGERS: [Trigger; 5] = [
    Trigger { stall: Aim::AtMost(STALL_MS), ..trigger("recall", Tell::Recall, Cause::Recall) },
    Trigger { stall: Aim::AtMost(STALL_MS), ..trigger("notification", Tell::Notify, Cause::Notification) },
    trigger("flags", Tell::Flags, Cause::Flags),
    Trigger {
        wrong: WrongNode::Refuse(Status::PNFS_NO_LAYOUT),
        ..trigger("refusal", Tell::Nobody, Cause::DataServer)
    },
    Trigger { refresh: REFRESH, ..trigger("refresh", Tell::Nobody, Cause::Refresh) },
];

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let moves = flags.number("moves", if measured { 100 } else { 4 });
    let mut goals = Goals::default();
    let chosen = TRIGGERS.iter().any(|trigger| flags.names(trigger.name));
    for trigger in TRIGGERS.iter().filter(|trigger| !chosen || flags.names(trigger.name)) {
        for (name, layouts) in LAYOUTS {
            follow(trigger, name, layouts, moves, &mut goals);
        }
    }
    goals.conclude(measured)
}

/// One move as it was seen from both sides.
struct Seen {
    began: Nanos,
    moved: Nanos,
    /// Parts that were passed on by a wrong node afterwards.
    wrong: u64,
}

fn forwarded(cluster: &Cluster) -> u64 {
    (0..cluster.nodes()).map(|node| cluster.counters(node).forwarded).sum()
}

/// Moves the volume `count` times; each is waited for until the client has followed it.
fn move_around(cluster: &Cluster, mount: &nfs::Mount, trigger: &Trigger, count: u64) -> Vec<Seen> {
    let mut seen = Vec::new();
    for number in 0..count {
        let before = mount.pnfs().moves;
        let began = clock::now();
        let moved = cluster.move_to("/a", &[(number as usize + 1) % 2], trigger.tell).expect("a move");
        assert!(!moved.revoked, "{moved:?}");
        let done = clock::now();
        while mount.pnfs().moves == before {
            assert!(clock::now() < done + PATIENCE, "move {number} was not followed: {:?}", mount.pnfs());
            clock::sleep(Nanos::micros(200));
        }
        clock::sleep(SETTLE);
        let passed_on = forwarded(cluster);
        clock::sleep(WATCH);
        seen.push(Seen { began, moved: done, wrong: forwarded(cluster) - passed_on });
    }
    seen
}

fn follow(trigger: &Trigger, name: &str, layouts: Layouts, moves: u64, goals: &mut Goals) {
    let cluster = start(ClusterOptions { layouts, lease_seconds: 3, ..ClusterOptions::default() });
    cluster.set_wrong_node(trigger.wrong);
    let options = MountOptions { layout_refresh: trigger.refresh, ..options() };
    let mount = mount_with(cluster.target(0, "/a", Version::Pnfs), options);
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    let before: Vec<NodeCounters> = (0..cluster.nodes()).map(|node| cluster.counters(node)).collect();
    let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[&file]).expect("a queue");
    let over = AtomicBool::new(false);
    let (written, seen) = std::thread::scope(|scope| {
        let mover = scope.spawn(|| {
            clock::sleep(Nanos::millis(100));
            let seen = move_around(&cluster, &mount, trigger, moves);
            over.store(true, Ordering::Release);
            seen
        });
        let written = storm(&mut queue, || over.load(Ordering::Acquire) || mover.is_finished());
        (written, mover.join().expect("all moves were followed"))
    });
    for (node, before) in before.iter().enumerate() {
        let its = cluster.counters(node).since(before);
        let channels = queue.channels();
        let to_it = channels.iter().filter(|channel| channel.address == cluster.address(node));
        let ours = to_it.fold([0; 4], |sum, c| {
            [sum[0] + c.reads, sum[1] + c.writes, sum[2] + c.commits, sum[3] + c.bytes()]
        });
        let theirs = [its.reads, its.writes, its.commits, its.bytes_read + its.bytes_written];
        assert_eq!(ours, theirs, "{name}, {}: node {node}, reads, writes, commits, bytes", trigger.name);
    }
    written.verify(&cluster, "/a", "data");
    let followed = mount.followed();
    assert_eq!(followed.len() as u64, moves, "{name}, {}", trigger.name);
    assert!(followed.iter().all(|one| one.cause == trigger.cause), "{name}, {}", trigger.name);
    let stalls = seen.iter().zip(&followed).map(|(seen, followed)| {
        let touches = |&&(from, to): &&(Nanos, Nanos)| from < followed.at + SETTLE && to > seen.began;
        let longest = written.slow.iter().filter(touches).map(|&(from, to)| to - from).max();
        longest.unwrap_or(Nanos(0))
    });
    // A client may have followed before the move's command has returned.
    let found = seen.iter().zip(&followed).map(|(seen, followed)| followed.at.max(seen.moved) - seen.moved);
    let (stall, found) = (shares(stalls), shares(found));
    let what = format!("{}, {name}: ", trigger.name);
    let beside = format!("ms (median {:.3}, max {:.3}; {moves} moves)", stall[0], stall[2]);
    goals.value(&format!("{what}stall, 99 of 100"), stall[1], &beside, trigger.stall);
    let aim = match trigger.refresh {
        Nanos(0) => Aim::Told,
        refresh => Aim::AtMost(refresh.as_secs() * 1e3 + LOOK_MS),
    };
    let beside = format!("ms (median {:.3}, max {:.3})", found[0], found[2]);
    goals.value(&format!("{what}found, 99 of 100"), found[1], &beside, aim);
    let wrong: u64 = seen.iter().map(|seen| seen.wrong).sum();
    let beside = format!("of {} requests; no block wrong, counts equal", written.requests);
    goals.value(
        &format!("{what}parts by the wrong node afterwards"),
        wrong as f64,
        &beside,
        Aim::AtMost(0.0),
    );
}

/// Median, 99th percentile and maximum, ms.
fn shares(values: impl Iterator<Item = Nanos>) -> [f64; 3] {
    let mut sorted: Vec<f64> = values.map(|value| value.as_secs() * 1e3).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    [sorted[last / 2], sorted[(sorted.len() * 99).div_ceil(100) - 1], sorted[last]]
}
