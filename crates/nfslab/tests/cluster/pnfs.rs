//! Layouts: each block goes to the node that keeps it, and follows it when it moves.

use crate::stand::{BLOCK, Blocks, mount, mount_with, options, start};
use crate::storm::{BLOCKS, storm};
use io::{Action, Outcome, Queue as _};
use nfs::{Cause, ChannelCounters, Open, QueueOptions, Status, Version};
use nfslab::{Cluster, ClusterOptions, DataServer, Layouts, NodeCounters, Tell, WrongNode};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

const LAYOUTS: [Layouts; 4] =
    [Layouts::Files, Layouts::Dense, Layouts::Flexible(DataServer::V41), Layouts::Flexible(DataServer::V3)];

fn cluster(layouts: Layouts) -> Cluster {
    start(ClusterOptions { layouts, lease_seconds: 3, ..ClusterOptions::default() })
}

fn node_counters(cluster: &Cluster) -> Vec<NodeCounters> {
    (0..cluster.nodes()).map(|node| cluster.counters(node)).collect()
}

/// What the client sent to a node, by any of its connections, is what the node counted.
fn assert_counts(cluster: &Cluster, before: &[NodeCounters], channels: &[ChannelCounters]) {
    for (node, before) in before.iter().enumerate() {
        let served = cluster.counters(node).since(before);
        let to_it: Vec<_> = channels.iter().filter(|c| c.address == cluster.address(node)).collect();
        let sum = |part: fn(&ChannelCounters) -> u64| to_it.iter().map(|c| part(c)).sum::<u64>();
        let ours = (sum(|c| c.reads), sum(|c| c.writes), sum(|c| c.commits), sum(|c| c.bytes()));
        let theirs = (served.reads, served.writes, served.commits, served.bytes_read + served.bytes_written);
        assert_eq!(ours, theirs, "node {node}: {channels:?}, {served:?}");
    }
}

#[test]
fn blocks_go_to_the_node_that_keeps_them() {
    for layouts in LAYOUTS {
        let cluster = cluster(layouts);
        for export in ["/a", "/b", "/striped"] {
            let mount = mount(&cluster, 0, export, Version::Pnfs);
            let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
            let blocks = Blocks::new(7, BLOCKS);
            let before = node_counters(&cluster);
            let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[&file]).expect("a queue");
            blocks.write_all(&mut queue, 1, Action::Write);
            blocks.read_all(&mut queue, 1);
            assert_counts(&cluster, &before, &queue.channels());
            let now = node_counters(&cluster);
            let forwarded: u64 = now.iter().zip(&before).map(|(now, then)| now.since(then).forwarded).sum();
            assert_eq!((forwarded, queue.network().detours), (0, 0), "{layouts:?} {export}");
            let b = now[1].since(&before[1]);
            let expected = [("/a", 0), ("/b", BLOCKS), ("/striped", BLOCKS / 2)];
            let (_, expected) = expected.into_iter().find(|(name, _)| *name == export).expect("one of them");
            assert_eq!((b.reads, b.writes), (expected, expected), "{layouts:?} {export}");
            assert_eq!(mount.attributes(&file).expect("attributes").size, BLOCKS * u64::from(BLOCK));
        }
    }
}

#[test]
fn a_transfer_over_several_stripes_is_divided() {
    for layouts in LAYOUTS {
        let cluster = cluster(layouts);
        let mount = mount(&cluster, 1, "/striped", Version::Pnfs);
        let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
        let bytes = 300_001;
        let mut queue = mount.queue(QueueOptions::new(1, bytes), &[&file]).expect("a queue");
        let data: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8 ^ (n >> 13) as u8).collect();
        queue.buffer_mut(0).copy_from_slice(&data);
        let request = |action| io::Request { file: 0, offset: 777, bytes, action };
        let mut done = Vec::new();
        for action in [Action::WriteDsync, Action::Read] {
            queue.stage(0, request(action));
            queue.submit_and_reap(1, &mut done).expect("a queue that works");
            assert_eq!(done.pop().map(|c| c.outcome), Some(Outcome::Full), "{:?}", queue.trouble());
            if action == Action::WriteDsync {
                queue.buffer_mut(0).fill(0);
            }
        }
        assert!(queue.buffer(0) == data, "{layouts:?}");
    }
}

/// Nodes that have nothing of a file, or nothing behind a place, say that it ends there; the file does not.
#[test]
fn a_file_does_not_end_where_a_node_has_nothing_more() {
    const SIZE: u64 = 64 * BLOCK as u64 + 1000;
    /// A block of the third unit, which the first of two nodes has.
    const WRITTEN: u64 = 20;
    for layouts in LAYOUTS {
        let cluster = cluster(layouts);
        let mount = mount(&cluster, 0, "/striped", Version::Pnfs);
        let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
        mount.set_size(&file, SIZE).expect("a size");
        let mut queue = mount.queue(QueueOptions::new(1, BLOCK), &[&file]).expect("a queue");
        let blocks = Blocks::new(3, 64);
        let mut done = Vec::new();
        let mut one = |queue: &mut nfs::Queue| {
            queue.submit_and_reap(1, &mut done).expect("a queue that works");
            done.pop().map(|it| it.outcome)
        };
        blocks.stage_write(&mut queue, 0, WRITTEN, 1, Action::WriteDsync);
        assert_eq!(one(&mut queue), Some(Outcome::Full), "{layouts:?}: {:?}", queue.trouble());
        for block in 0..blocks.count {
            queue.buffer_mut(0).fill(7);
            blocks.stage_read(&mut queue, 0, block);
            assert_eq!(one(&mut queue), Some(Outcome::Full), "{layouts:?}, block {block}");
            if block == WRITTEN {
                blocks.verify(&queue, 0, block, Some(1));
            } else {
                assert!(queue.buffer(0).iter().all(|&byte| byte == 0), "{layouts:?}, block {block}");
            }
        }
        for (block, left) in [(64, 1000), (65, 0)] {
            blocks.stage_read(&mut queue, 0, block);
            assert_eq!(one(&mut queue), Some(Outcome::Short(left)), "{layouts:?}, block {block}");
        }
        assert!(queue.network().detours > 0, "{layouts:?}");
    }
}

/// Stripes without gaps on three nodes, of which one has two, in an order of their own: each block is where it belongs, before and after moves to more and
/// fewer nodes; who reads without a layout finds it there, too.
#[test]
fn dense_stripes_keep_each_block_once() {
    const NODES: [usize; 4] = [2, 0, 2, 1];
    const STRIPE: u64 = 64 << 10;
    let volumes = vec![("dense".to_owned(), NODES.to_vec())];
    let cluster = start(ClusterOptions {
        nodes: 3,
        volumes,
        layouts: Layouts::Dense,
        lease_seconds: 3,
        ..ClusterOptions::default()
    });
    let mount = mount(&cluster, 0, "/dense", Version::Pnfs);
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[&file]).expect("a queue");
    let blocks = Blocks::new(3, BLOCKS);
    let plain = |generation| {
        let other = crate::stand::mount(&cluster, 1, "/dense", Version::V3);
        let file = other.file("data", Open::Read).expect("it is there");
        let mut queue = other.queue(QueueOptions::new(4, BLOCK), &[&file]).expect("a queue");
        blocks.read_all(&mut queue, generation);
        assert_eq!(other.attributes(&file).expect("attributes").size, BLOCKS * u64::from(BLOCK));
    };
    let moves = [
        (&NODES[..], Tell::Nobody),
        (&[1, 2], Tell::Recall),
        (&[0, 1, 2], Tell::Notify),
        (&[1], Tell::Flags),
    ];
    for (generation, (nodes, tell)) in (1..).zip(moves) {
        let is_there = || {
            let addresses: Vec<_> = nodes.iter().map(|&node| cluster.address(node)).collect();
            let mut at =
                mount.files()[0].layout.as_ref().map_or_else(Vec::new, |layout| layout.nodes.clone());
            // The pattern begins with the second stripe, where there is one.
            let first = 1 % at.len().max(1);
            at.rotate_left(first);
            at == addresses
        };
        if generation > 1 {
            std::thread::scope(|scope| {
                let moved = scope.spawn(|| cluster.move_to("/dense", nodes, tell).expect("a move"));
                let deadline = clock::now() + Nanos::millis(20_000);
                while !is_there() {
                    assert!(clock::now() < deadline, "{tell:?}: {:?}", mount.files());
                    blocks.read_all(&mut queue, generation - 1);
                }
                assert!(!moved.join().expect("a move").revoked);
            });
        }
        assert!(is_there(), "{tell:?}: {:?}", mount.files());
        let before = node_counters(&cluster);
        blocks.write_all(&mut queue, generation, Action::Write);
        blocks.read_all(&mut queue, generation);
        for (node, before) in before.iter().enumerate() {
            let its = cluster.counters(node).since(before);
            let stripe = |block: u64| (block * u64::from(BLOCK) / STRIPE) as usize;
            let expected = (0..BLOCKS).filter(|&block| nodes[stripe(block) % nodes.len()] == node).count();
            assert_eq!(
                (its.reads, its.writes, its.forwarded),
                (expected as u64, expected as u64, 0),
                "{tell:?} {node}"
            );
        }
        plain(generation);
    }
}

/// Moves under load with one way of telling; what the client did about it has to be of that cause.
fn moves(layouts: Layouts, tell: Tell, wrong: WrongNode, cause: Cause, refresh: Nanos) {
    const MOVES: u32 = 6;
    let cluster = cluster(layouts);
    cluster.set_wrong_node(wrong);
    let mount = mount_with(
        cluster.target(0, "/a", Version::Pnfs),
        nfs::MountOptions { layout_refresh: refresh, ..options() },
    );
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[&file]).expect("a queue");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // A recall needs the load to go on: moves are made beside it.
        scope.spawn(|| {
            for number in 0..MOVES {
                let before = mount.pnfs().moves;
                let moved = cluster.move_to("/a", &[(number as usize + 1) % 2], tell).expect("a move");
                assert!(!moved.revoked, "{moved:?}");
                let deadline = clock::now() + Nanos::millis(20_000);
                while mount.pnfs().moves == before && clock::now() < deadline {
                    clock::sleep(Nanos::millis(1));
                }
            }
            over.store(true, Ordering::Release);
        });
        storm(&mut queue, || over.load(Ordering::Acquire)).verify(&cluster, "/a", "data");
    });
    let counters = mount.pnfs();
    assert_eq!(counters.moves, u64::from(MOVES), "{layouts:?} {tell:?} {counters:?}");
    for one in mount.followed() {
        assert_eq!(one.cause, cause, "{layouts:?} {tell:?} {one:?}");
        assert!(one.from != one.to && one.path == "data");
    }
    // From now on nothing goes by the wrong node.
    let before = node_counters(&cluster);
    let blocks = Blocks::new(3, BLOCKS);
    let channels = queue.channels();
    blocks.write_all(&mut queue, 1_000, Action::Write);
    blocks.read_all(&mut queue, 1_000);
    let now = node_counters(&cluster);
    assert!(
        now.iter().zip(&before).all(|(now, then)| now.since(then).forwarded == 0),
        "{layouts:?} {tell:?}"
    );
    assert_eq!(channels.len(), queue.channels().len());
}

#[test]
fn moves_are_followed_by_recall() {
    for layouts in LAYOUTS {
        moves(layouts, Tell::Recall, WrongNode::Forward, Cause::Recall, Nanos(0));
    }
}

#[test]
fn moves_are_followed_by_notification() {
    for layouts in LAYOUTS {
        moves(layouts, Tell::Notify, WrongNode::Forward, Cause::Notification, Nanos(0));
    }
}

#[test]
fn moves_are_followed_by_flags() {
    for layouts in LAYOUTS {
        moves(layouts, Tell::Flags, WrongNode::Forward, Cause::Flags, Nanos(0));
    }
}

#[test]
fn silent_moves_are_followed_at_the_next_refresh() {
    for layouts in LAYOUTS {
        moves(layouts, Tell::Nobody, WrongNode::Forward, Cause::Refresh, Nanos::millis(200));
    }
}

#[test]
fn silent_moves_are_followed_when_the_wrong_node_refuses() {
    for layouts in LAYOUTS {
        for status in [Status::PNFS_NO_LAYOUT, Status::STALE] {
            moves(layouts, Tell::Nobody, WrongNode::Refuse(status), Cause::DataServer, Nanos(0));
        }
    }
}

#[test]
fn oranfstab_says_how_often_layouts_are_looked_at() {
    let cluster = cluster(Layouts::Files);
    let text = format!(
        "server: A path: 127.0.0.1 port: {} nfs_version: pNFS layout_refresh: 1 export: /a mount: /here",
        cluster.address(0).port()
    );
    let servers = nfs::oranfstab::parse(&text).expect("a good file");
    let (server, export, name) = nfs::oranfstab::find(&servers, "/here/data").expect("it is below /here");
    let mount = mount_with(server.target(export).expect("an address"), server.options());
    let file = mount.file(&name, Open::New { mode: 0o640 }).expect("a new file");
    let mut queue = mount.queue(QueueOptions::new(4, BLOCK), &[&file]).expect("a queue");
    let blocks = Blocks::new(3, 16);
    blocks.write_all(&mut queue, 1, Action::Write);
    cluster.move_to("/a", &[1], Tell::Nobody).expect("a move");
    let moved = clock::now();
    while mount.pnfs().moves == 0 {
        assert!(clock::now() < moved + Nanos::millis(10_000), "{:?}", mount.pnfs());
        clock::sleep(Nanos::millis(10));
    }
    let before = node_counters(&cluster);
    blocks.read_all(&mut queue, 1);
    let [a, b] = [0, 1].map(|node| cluster.counters(node).since(&before[node]));
    assert_eq!((a.reads, b.reads), (0, 16));
}
