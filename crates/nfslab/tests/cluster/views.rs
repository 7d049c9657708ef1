//! What can be asked of a mount while it works: channels, files with their layouts, calls; held against what the nodes counted.

use crate::stand::{BLOCK, Blocks, mount, start};
use crate::storm::BLOCKS;
use io::Action;
use nfs::{ChannelCounters, ChannelState, Open, QueueOptions, Version};
use nfslab::{Cluster, ClusterOptions, Tell};
use units::{Nanos, clock};

fn cluster() -> Cluster {
    start(ClusterOptions { lease_seconds: 3, ..ClusterOptions::default() })
}

#[test]
fn channels_say_what_went_where_and_how_long_it_took() {
    for version in [Version::V3, Version::V40, Version::V41, Version::Pnfs] {
        let cluster = cluster();
        let before: Vec<_> = (0..cluster.nodes()).map(|node| cluster.counters(node)).collect();
        let mount = mount(&cluster, 0, "/striped", version);
        let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
        let began = clock::now();
        for worker in 1..=2 {
            let mut queue = mount.queue(QueueOptions::new(8, BLOCK), &[&file]).expect("a queue");
            let blocks = Blocks::new(3, BLOCKS);
            blocks.write_all(&mut queue, worker, Action::Write);
            blocks.read_all(&mut queue, worker);
            assert_eq!(queue.channels(), of_worker(&mount.channels(), worker), "the same cells");
            assert!(mount.channels().iter().filter(|it| it.worker == worker as u32).all(is_up));
        }
        let took = clock::now() - began;
        let channels = mount.channels();
        assert!(channels.iter().all(|it| it.state == ChannelState::Closed), "{version}: {channels:?}");
        for (node, before) in before.iter().enumerate() {
            let served = cluster.counters(node).since(before);
            let its: Vec<_> = channels.iter().filter(|it| it.address == cluster.address(node)).collect();
            let sum = |part: fn(&ChannelCounters) -> u64| its.iter().map(|it| part(it)).sum::<u64>();
            assert_eq!(
                (sum(|it| it.reads), sum(|it| it.read_bytes), sum(|it| it.written_bytes)),
                (served.reads, served.bytes_read, served.bytes_written),
                "{version}, node {node}: {its:?}"
            );
            assert_eq!(sum(|it| it.sends()), sum(|it| it.receives), "{version}: each has its reply");
            assert_eq!(sum(|it| it.read_times.count), served.reads);
        }
        for it in &channels {
            let (times, local) = (it.read_times, it.local.expect("it was connected"));
            assert!(times.sum >= times.max && times.max <= took, "{version}: {it:?}");
            // Eight at once, no longer than all of it took.
            assert!(times.sum.0 <= 8 * took.0, "{version}: {it:?} in {took}");
            assert!(local.ip().is_loopback() && local.port() > 0 && it.reconnects == 0);
            assert_eq!(it.data_server, version == Version::Pnfs && it.reads > 0, "{version}: {it:?}");
        }
        let calls = mount.calls();
        assert_eq!((calls["READ"], calls["WRITE"]), (2 * BLOCKS, 2 * BLOCKS), "{version}: {calls:?}");
        let own =
            if version == Version::V3 { ["MOUNT", "FSINFO", "CREATE"] } else { ["OPEN", "GETATTR", "PUTFH"] };
        assert!(own.iter().all(|name| calls.contains_key(name)), "{version}: {calls:?}");
        assert_eq!(
            calls.get("SEQUENCE").is_some_and(|&n| n > 4 * BLOCKS),
            version >= Version::V41,
            "{calls:?}"
        );
        assert_eq!(calls.contains_key("LAYOUTGET"), version == Version::Pnfs, "{calls:?}");
    }
}

fn is_up(channel: &ChannelCounters) -> bool {
    channel.state == ChannelState::Up
}

fn of_worker(all: &[ChannelCounters], worker: u64) -> Vec<ChannelCounters> {
    all.iter().filter(|channel| u64::from(channel.worker) == worker).cloned().collect()
}

#[test]
fn files_say_where_their_data_is_and_since_when() {
    let cluster = cluster();
    let began = clock::now();
    let mount = mount(&cluster, 0, "/a", Version::Pnfs);
    assert!(mount.files().is_empty());
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    let mut queue = mount.queue(QueueOptions::new(8, BLOCK), &[&file]).expect("a queue");
    Blocks::new(3, BLOCKS).write_all(&mut queue, 1, Action::Write);
    let [first] = &mount.files()[..] else { panic!("{:?}", mount.files()) };
    let layout = first.layout.as_ref().expect("a layout");
    assert_eq!((first.path.as_str(), first.moves, first.recalls), ("data", 0, 0));
    assert_eq!(layout.nodes, [cluster.address(0)]);
    assert!(layout.since >= began && layout.sure >= layout.since);
    mount.measure();
    assert_eq!(mount.files()[0].size, Some(BLOCKS * u64::from(BLOCK)));
    let moving = clock::now();
    cluster.move_to("/a", &[1], Tell::Recall).expect("a move");
    while mount.pnfs().moves == 0 {
        assert!(clock::now() < moving + Nanos::millis(10_000), "{:?}", mount.pnfs());
        clock::sleep(Nanos::millis(5));
    }
    let [moved] = &mount.files()[..] else { panic!("{:?}", mount.files()) };
    let layout = moved.layout.as_ref().expect("a layout");
    assert_eq!((moved.moves, moved.recalls, &layout.nodes[..]), (1, 1, &[cluster.address(1)][..]));
    assert!(layout.since >= moving);
    drop((queue, file));
    assert!(mount.files().is_empty(), "it is closed");
}
