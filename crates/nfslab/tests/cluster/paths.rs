//! Several paths to one server: workers are spread over them, take another when theirs is cut, and come back, and so does the control connection; no block is
//! lost or done late, no call is done twice, and the alerts say so.

use crate::stand::{BLOCK, mount_with, options, start};
use crate::storm::storm;
use io::{Action, Outcome, Queue as _, Request};
use nfs::{ChannelState, Mount, MountOptions, Open, QueueOptions, Version};
use nfslab::{Cluster, ClusterOptions, Delegations, Tell};
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

/// Ends those who look at it, also when a test fails meanwhile.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Calls of a mount one after the other, each with its answer, until `is_over`; how many.
fn calls(mount: &Mount, is_over: impl Fn() -> bool) -> u64 {
    let mut number = 0;
    while !is_over() {
        let (one, two) = (format!("one{number}"), format!("two{number}"));
        let file = mount.file(&one, Open::New { mode: 0o640 }).expect("a new file");
        mount.set_size(&file, number).expect("a size");
        drop(file);
        mount.rename(&one, &two).expect("a new name");
        let file = mount.file(&two, Open::Read).expect("it is there");
        assert_eq!(mount.attributes(&file).expect("attributes").size, number);
        drop(file);
        mount.remove(&two).expect("it goes");
        assert!(!mount.exists(&two).expect("an answer"));
        number += 1;
    }
    number
}

/// The server can call back over the connection that there is now: a delegation is recalled, and so are layouts, where there are some.
fn is_called_back(cluster: &Cluster, mount: &Mount, node: usize) {
    let before = cluster.counters(0);
    cluster.delegate(0, Delegations::Recalled).expect("it gives them");
    let file = mount.file("delegated", Open::Create { mode: 0o640 }).expect("a file");
    cluster.delegate(0, Delegations::None).expect("no more");
    until("it is asked for, and goes back", || {
        let it = cluster.counters(0).since(&before);
        it.recalled > 0 && it.undelegated > 0
    });
    drop(file);
    let layouts = || mount.files().into_iter().filter_map(|file| file.layout).collect::<Vec<_>>();
    if !layouts().is_empty() {
        assert!(!cluster.move_to("/a", &[node], Tell::Recall).expect("a move").revoked);
        let is_there = || layouts().iter().any(|layout| layout.nodes == [cluster.address(node)]);
        until("the data is followed", is_there);
    }
}

/// Under load, with calls of the mount all the time: each path is left when it is cut, and the first that works is gone back to.
#[test]
fn the_control_connection_comes_home() {
    for version in VERSIONS {
        let cluster = cluster(3);
        let target = cluster.target(0, "/a", version);
        let addresses: Vec<_> = target.paths.iter().map(|path| path.remote).collect();
        // A call that is at work when its path is cut is not answered: the next attempt is soon.
        let mount = mount_with(target, MountOptions { silence: Nanos::millis(1_000), ..options() });
        let at = |path: usize| {
            until(&format!("{version}: it goes by path {path}"), || {
                mount.facts().control.is_some_and(|address| address.ip() == addresses[path])
            });
        };
        at(0);
        let over = AtomicBool::new(false);
        let is_over = || over.load(Ordering::Acquire);
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| calls(&mount, is_over));
            let over = Over(&over);
            scope.spawn(|| {
                let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
                let mut queue = mount.queue(QueueOptions::new(8, BLOCK), &[&file]).expect("a queue");
                storm(&mut queue, is_over).verify(&cluster, "/a", "data");
            });
            for round in 0..2 {
                cluster.cut_path(0, 0).expect("a cut");
                at(1);
                cluster.cut_path(0, 1).expect("a cut");
                at(2);
                cluster.restore_path(0, 1).expect("it is back");
                at(1);
                cluster.restore_path(0, 0).expect("it is back");
                at(0);
                if version >= Version::V41 {
                    is_called_back(&cluster, &mount, (round + 1) % 2);
                }
            }
            drop(over);
            assert!(busy.join().expect("they end well") > 0);
        });
        let lines: Vec<_> = mount.alerts().into_iter().map(|alert| alert.text).collect();
        let back = format!("is back at path {}", addresses[0]);
        assert!(lines.iter().any(|line| line.contains(&back)), "{version} {back}: {lines:#?}");
        assert_eq!(mount.facts().reconnects, 8, "{version}: four in each round: {lines:#?}");
    }
}

/// Nobody calls: it comes home by itself, also where the first path was away from the beginning.
#[test]
fn an_idle_control_connection_comes_home() {
    for version in VERSIONS {
        let cluster = cluster(2);
        cluster.cut_path(0, 0).expect("a cut");
        let target = cluster.target(0, "/a", version);
        let addresses: Vec<_> = target.paths.iter().map(|path| path.remote).collect();
        let mount = mount_with(target, options());
        let at = || mount.facts().control.map(|address| address.ip());
        assert_eq!(at(), Some(addresses[1]), "{version}");
        cluster.restore_path(0, 0).expect("it is back");
        until("it comes home", || at() == Some(addresses[0]));
        if version >= Version::V41 {
            is_called_back(&cluster, &mount, 0);
        }
        assert!(!mount.exists("nothing").expect("an answer"), "{version}");
    }
}
