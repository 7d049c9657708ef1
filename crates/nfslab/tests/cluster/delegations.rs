//! Delegations that nobody asked for: they go back, and what is written and read meanwhile is right.

use crate::stand::{BLOCK, mount_with, start};
use crate::storm::storm;
use io::Queue as _;
use nfs::{Mount, MountOptions, Open, QueueOptions, Version};
use nfslab::{Cluster, ClusterOptions, Delegations};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

const VERSIONS: [Version; 3] = [Version::V40, Version::V41, Version::Pnfs];
const SILENCE: Nanos = Nanos::millis(150);

fn cluster(what: Delegations) -> Cluster {
    // What is counted as a callback is a recall.
    let cluster = start(ClusterOptions { lease_seconds: 3, probe: false, ..ClusterOptions::default() });
    cluster.delegate(0, what).expect("it gives them");
    cluster
}

fn mount(cluster: &Cluster, version: Version) -> Mount {
    let options = MountOptions { limit: Nanos::millis(20_000), silence: SILENCE, ..MountOptions::default() };
    mount_with(cluster.target(0, "/a", version), options)
}

/// Waits until all that was delegated is back: how many there were, and of how many the holder agreed to a recall.
fn all_back(cluster: &Cluster) -> (u64, u64) {
    let begin = clock::now();
    loop {
        let it = cluster.counters(0);
        if it.delegated == it.undelegated {
            return (it.delegated, it.recalled);
        }
        assert!(clock::now() < begin + Nanos::millis(10_000), "{it:?}");
        clock::sleep(Nanos::millis(5));
    }
}

/// Files are opened by two mounts under load; the server delegates each, and wants it back at once, before the opener knows of it, or when the other one comes.
#[test]
fn what_is_delegated_goes_back_and_data_is_right() {
    for version in VERSIONS {
        for what in [Delegations::Given, Delegations::Recalled] {
            let cluster = cluster(what);
            let (ours, theirs) = (mount(&cluster, version), mount(&cluster, version));
            let file = ours.file("data", Open::New { mode: 0o640 }).expect("a new file");
            let mut queue = ours.queue(QueueOptions::new(8, BLOCK), &[&file]).expect("a queue");
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0..20 {
                        let name = format!("other{}", number / 2);
                        let mount = if number % 2 == 0 { &ours } else { &theirs };
                        let other = mount.file(&name, Open::Create { mode: 0o640 }).expect("a file");
                        mount.set_size(&other, number).expect("a size");
                        assert_eq!(mount.attributes(&other).expect("attributes").size, number);
                    }
                    over.store(true, Ordering::Release);
                });
                storm(&mut queue, || over.load(Ordering::Acquire)).verify(&cluster, "/a", "data");
            });
            assert_eq!(queue.in_flight(), 0);
            let (given, recalled) = all_back(&cluster);
            assert!(given > 10, "{version} {what:?}: {given}");
            // To a client of 4.0 there is no way back.
            let expected = if what == Delegations::Recalled && version != Version::V40 { given } else { 0 };
            assert!(recalled >= expected, "{version} {what:?}: {recalled} of {given}");
        }
    }
}

/// A delegation whose OPEN was not answered is in somebody else's way: it is recalled from one who does not know of it yet, and goes back when the OPEN is repeated.
#[test]
fn a_delegation_that_has_not_arrived_is_recalled() {
    for version in [Version::V41, Version::Pnfs] {
        let cluster = cluster(Delegations::Given);
        let (ours, theirs) = (mount(&cluster, version), mount(&cluster, version));
        ours.file("data", Open::New { mode: 0o640 }).expect("a new file");
        all_back(&cluster);
        let (before, answered) = (cluster.counters(0), ours.facts().callbacks);
        cluster.lose_replies(0, true).expect("they are");
        let both = std::thread::scope(|scope| {
            let open =
                |mount| scope.spawn(move || Mount::file(mount, "data", Open::Write).expect("it opens"));
            let first = open(&ours);
            while cluster.counters(0).delegated == before.delegated {
                clock::sleep(Nanos::millis(1));
            }
            let second = open(&theirs);
            while cluster.counters(0).callbacks == before.callbacks {
                clock::sleep(Nanos::millis(1));
            }
            cluster.lose_replies(0, false).expect("no more");
            [first, second].map(|open| open.join().expect("a file"))
        });
        assert!(all_back(&cluster).0 > before.delegated, "{version}");
        assert!(ours.facts().callbacks > answered, "{version}: it was asked meanwhile");
        let [first, second] = &both;
        ours.set_size(first, 77).expect("a size");
        assert_eq!(theirs.attributes(second).expect("attributes").size, 77);
    }
}
