//! Several paths to one server: workers are spread over them, take another when theirs is cut, and come back; no block is lost or done late, and the alerts say so.

use crate::stand::{BLOCK, mount_with, options, start};
use crate::storm::storm;
use io::{Action, Outcome, Queue as _, Request};
use nfs::{ChannelState, Mount, MountOptions, Open, QueueOptions, Version};
use nfslab::{Cluster, ClusterOptions};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

const VERSIONS: [Version; 4] = [Version::V3, Version::V40, Version::V41, Version::Pnfs];

fn cluster(paths: usize) -> Cluster {
    start(ClusterOptions { paths, lease_seconds: 3, ..ClusterOptions::default() })
}

/// Channels to the server that was mounted that are up, by address.
fn up(mount: &Mount) -> BTreeMap<IpAddr, usize> {
    let mut all = BTreeMap::new();
    for channel in mount.channels().iter().filter(|it| it.state == ChannelState::Up && !it.data_server) {
        *all.entry(channel.address.ip()).or_default() += 1;
    }
    all
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = clock::now();
    while !is_so() {
        assert!(clock::now() < begin + Nanos::millis(20_000), "{what}");
        clock::sleep(Nanos::millis(10));
    }
}

/// Four workers under load, each with a file of its own, while each path is cut and restored, one after the other.
#[test]
fn workers_take_another_path_and_come_back() {
    for (paths, version) in [2, 4].into_iter().flat_map(|paths| VERSIONS.map(|version| (paths, version))) {
        let cluster = cluster(paths);
        let mount = mount_with(cluster.target(0, "/a", version), options());
        let over = AtomicBool::new(false);
        let addresses: Vec<_> =
            cluster.target(0, "/a", version).paths.iter().map(|path| path.remote).collect();
        std::thread::scope(|scope| {
            let worker = |path: usize| {
                let (mount, cluster, over) = (&mount, &cluster, &over);
                move || {
                    let name = format!("data{path}");
                    let file = mount.file(&name, Open::New { mode: 0o640 }).expect("a new file");
                    let queue = QueueOptions { path, ..QueueOptions::new(8, BLOCK) };
                    let mut queue = mount.queue(queue, &[&file]).expect("a queue");
                    storm(&mut queue, || over.load(Ordering::Acquire)).verify(cluster, "/a", &name);
                }
            };
            let workers: Vec<_> = (0..4).map(|path| scope.spawn(worker(path))).collect();
            let each = 4 / paths;
            let all_at_home = |mount: &Mount| up(mount) == addresses.iter().map(|&ip| (ip, each)).collect();
            until("spread over the paths", || all_at_home(&mount));
            for (path, address) in addresses.iter().enumerate() {
                cluster.cut_path(0, path).expect("a cut");
                until("another path is taken", || {
                    let now = up(&mount);
                    !now.contains_key(address) && now.values().sum::<usize>() == 4
                });
                clock::sleep(Nanos::millis(50));
                cluster.restore_path(0, path).expect("it is back");
                until("they come back", || all_at_home(&mount));
            }
            over.store(true, Ordering::Release);
            for worker in workers {
                worker.join().unwrap_or_else(|error| std::panic::resume_unwind(error));
            }
        });
        let lines: Vec<_> = mount.alerts().into_iter().map(|alert| alert.text).collect();
        for address in addresses {
            for words in [format!("path [{address}"), format!("] path [{address}:")] {
                assert!(lines.iter().any(|it| it.contains(&words)), "{paths} {version} {words}: {lines:#?}");
            }
        }
        let channels = mount.channels();
        assert!(channels.iter().all(|it| it.state == ChannelState::Closed));
        let lost: u64 = channels.iter().map(|it| it.replays).sum();
        assert!(
            version == Version::Pnfs || lost > 0,
            "{paths} {version}: something was in flight: {channels:?}"
        );
    }
}

/// A new worker whose path is away takes another, and goes there when it works.
#[test]
fn a_worker_that_begins_on_a_broken_path_comes_to_it_later() {
    let cluster = cluster(2);
    let mount = mount_with(cluster.target(0, "/a", Version::V41), options());
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    cluster.cut_path(0, 1).expect("a cut");
    let mut queue =
        mount.queue(QueueOptions { path: 1, ..QueueOptions::new(1, BLOCK) }, &[&file]).expect("a queue");
    let addresses: Vec<_> =
        cluster.target(0, "/a", Version::V41).paths.iter().map(|path| path.remote).collect();
    assert_eq!(up(&mount), BTreeMap::from([(addresses[0], 1)]));
    cluster.restore_path(0, 1).expect("it is back");
    let mut done = Vec::new();
    until("it comes", || {
        queue.stage(0, Request { file: 0, offset: 0, bytes: BLOCK, action: Action::Write });
        queue.submit_and_reap(1, &mut done).expect("a queue that works");
        assert_eq!(done.pop().map(|it| it.outcome), Some(Outcome::Full), "{:?}", queue.trouble());
        up(&mount) == BTreeMap::from([(addresses[1], 1)])
    });
}

#[test]
fn with_all_paths_gone_the_error_names_each() {
    let cluster = cluster(4);
    let limit = MountOptions { limit: Nanos::millis(500), ..options() };
    let mount = mount_with(cluster.target(0, "/a", Version::V3), limit);
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    let mut queue = mount.queue(QueueOptions::new(1, BLOCK), &[&file]).expect("a queue");
    cluster.cut(0).expect("a cut");
    queue.stage(0, Request { file: 0, offset: 0, bytes: BLOCK, action: Action::Read });
    let mut done = Vec::new();
    queue.submit_and_reap(1, &mut done).expect("an outcome");
    assert!(matches!(done[0].outcome, Outcome::Errno(_)));
    let said = queue.trouble().expect("why").to_string();
    for path in cluster.target(0, "/a", Version::V3).paths {
        assert!(said.contains(&path.remote.to_string()), "{path}: {said}");
    }
}
