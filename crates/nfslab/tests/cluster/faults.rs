//! What goes wrong between client and cluster, under load: the load goes on, no write is lost or done late, and the alerts say what happened.

use crate::stand::{BLOCK, mount_with, start};
use crate::storm::{Written, storm};
use nfs::{Mount, MountOptions, Open, QueueOptions, Status, Version};
use nfslab::{Cluster, ClusterOptions, DataServer, Layouts};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

/// Version, and layouts of the cluster.
pub type Form = (Version, Layouts);
pub const FORMS: [Form; 7] = [
    (Version::V3, Layouts::None),
    (Version::V40, Layouts::None),
    (Version::V41, Layouts::None),
    (Version::Pnfs, Layouts::Files),
    (Version::Pnfs, Layouts::Dense),
    (Version::Pnfs, Layouts::Flexible(DataServer::V41)),
    (Version::Pnfs, Layouts::Flexible(DataServer::V3)),
];
/// The node that is mounted, and the one that has the data where there are layouts.
pub const MOUNTED: usize = 0;
pub const DATA: usize = 1;
pub const SILENCE: Nanos = Nanos::millis(300);

/// Each node at which a fault matters: without layouts, the data is where the mount is.
fn places((version, _): Form) -> &'static [usize] {
    if version == Version::Pnfs { &[MOUNTED, DATA] } else { &[MOUNTED] }
}

fn rest() {
    clock::sleep(Nanos::millis(60));
}

/// A storm on a file of node B (of A, without layouts), during which `fault` happens.
fn under(form: Form, fault: impl Fn(&Cluster) + Sync) -> (Cluster, Mount, Written) {
    let (version, layouts) = form;
    let cluster = start(ClusterOptions { layouts, lease_seconds: 3, ..ClusterOptions::default() });
    let options = MountOptions { limit: Nanos::millis(20_000), silence: SILENCE, ..MountOptions::default() };
    let export = if version == Version::Pnfs { "/b" } else { "/a" };
    let mount = mount_with(cluster.target(MOUNTED, export, version), options);
    let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
    let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[&file]).expect("a queue");
    let over = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        scope.spawn(|| {
            rest();
            fault(&cluster);
            rest();
            over.store(true, Ordering::Release);
        });
        storm(&mut queue, || over.load(Ordering::Acquire))
    });
    written.verify(&cluster, export, "data");
    drop(queue);
    (cluster, mount, written)
}

/// In each form and at each place; `alert`: words of a line that has to be there where requests went to that node.
fn everywhere(alert: Option<&str>, fault: impl Fn(&Cluster, usize) + Sync) {
    for form in FORMS {
        for &node in places(form) {
            let began = clock::now();
            let (_cluster, mount, written) = under(form, |cluster| fault(cluster, node));
            let lines: Vec<_> = mount.alerts().into_iter().map(|alert| alert.text).collect();
            println!(
                "{form:?} at {node}: {} requests in {}, {} slow, longest {}, {lines:#?}",
                written.requests,
                clock::now() - began,
                written.slow.len(),
                written.longest
            );
            let is_told = node != *places(form).last().expect("one at least")
                || alert.is_none_or(|words| lines.iter().any(|line| line.contains(words)));
            assert!(is_told, "{form:?} at {node}: {lines:?}");
        }
    }
}

#[test]
fn a_path_is_cut_and_comes_back() {
    everywhere(Some("is DOWN"), |cluster, node| {
        for _ in 0..2 {
            cluster.cut(node).expect("a cut");
            rest();
            cluster.restore(node).expect("it is back");
            rest();
        }
    });
}

#[test]
fn a_server_is_restarted_and_what_it_lost_is_written_again() {
    everywhere(Some("is DOWN"), |cluster, node| {
        for _ in 0..4 {
            cluster.restart(node).expect("a restart");
            rest();
        }
    });
}

#[test]
fn leases_expire() {
    everywhere(None, |cluster, node| {
        for _ in 0..3 {
            cluster.expire(node).expect("they expire");
            rest();
        }
    });
}

#[test]
fn a_server_asks_to_wait() {
    everywhere(None, |cluster, node| cluster.fail(node, Status::DELAY, 30).expect("it fails"));
}

#[test]
fn a_data_server_refuses() {
    for form in FORMS.into_iter().filter(|&(version, _)| version == Version::Pnfs) {
        for status in [Status::IO, Status::STALE, Status::NXIO, Status::ACCESS, Status::BAD_STATEID] {
            let (cluster, mount, _) = under(form, |cluster| {
                for _ in 0..4 {
                    cluster.fail(DATA, status, 3).expect("it fails");
                    rest();
                }
            });
            assert!(mount.pnfs().data_server_errors > 0, "{form:?} {status}: {:?}", mount.pnfs());
            // Layouts of files have no words for it.
            let told = cluster.counters(MOUNTED).reported;
            assert_eq!(told > 0, matches!(form.1, Layouts::Flexible(_)), "{form:?} {status}: {told}");
        }
    }
}

#[test]
fn a_server_is_slow() {
    everywhere(None, |cluster, node| {
        cluster.delay(node, Nanos::millis(5)).expect("it is slow");
        clock::sleep(Nanos::millis(300));
        cluster.delay(node, Nanos(0)).expect("and fast again");
    });
}

#[test]
fn a_server_is_slower_than_we_wait() {
    everywhere(Some("no answer within"), |cluster, node| {
        cluster.delay(node, SILENCE + Nanos::millis(200)).expect("it is slow");
        clock::sleep(Nanos::millis(100));
        cluster.delay(node, Nanos(0)).expect("and fast again");
        clock::sleep(SILENCE + SILENCE);
    });
}

#[test]
fn replies_are_lost() {
    everywhere(Some("no answer within"), |cluster, node| {
        cluster.lose_replies(node, true).expect("they are");
        clock::sleep(SILENCE + Nanos::millis(100));
        cluster.lose_replies(node, false).expect("no more");
        clock::sleep(SILENCE);
    });
}
