//! The same on our own cluster, in each version and with each kind of layout; and while the cluster itself is not well.

use crate::database::{assert_recovered, work, work_and_die};
use nfs::{Mount, MountOptions, Path, Target, Version};
use nfslab::{Cluster, ClusterOptions, DataServer, Layouts, Tell};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, clock};

/// Says to the process that is killed which version, and at which port.
const CHILD: &str = "REDOUBT_TEST_CLUSTER";
/// Pages lie on both nodes.
const EXPORT: &str = "/striped";
const FORMS: [(Version, Layouts); 6] = [
    (Version::V3, Layouts::None),
    (Version::V40, Layouts::None),
    (Version::V41, Layouts::None),
    (Version::Pnfs, Layouts::Files),
    (Version::Pnfs, Layouts::Flexible(DataServer::V41)),
    (Version::Pnfs, Layouts::Flexible(DataServer::V3)),
];

fn mount(version: Version, port: u16) -> Mount {
    let path = Path { remote: [127, 0, 0, 1].into(), local: None };
    let target = Target {
        server: "A".into(),
        paths: vec![path],
        port,
        mount_port: Some(port),
        export: EXPORT.into(),
        version,
    };
    let (limit, silence) = (Nanos::millis(60_000), Nanos::millis(1_000));
    Mount::open(target, MountOptions { limit, silence, ..MountOptions::default() })
        .unwrap_or_else(|error| panic!("{version}: {error}"))
}

fn directory() -> PathBuf {
    PathBuf::from("nfs://here/vfs/db")
}

/// Ends the trouble.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn recovers(trouble: impl Fn(&Cluster) + Sync) {
    for (version, layouts) in FORMS {
        let cluster = Cluster::start(ClusterOptions { layouts, ..ClusterOptions::default() })
            .unwrap_or_else(|error| panic!("{error}"));
        let port = cluster.address(0).port();
        let over = AtomicBool::new(false);
        let acknowledged = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    clock::sleep(Nanos::millis(100));
                    trouble(&cluster);
                }
            });
            // Also when it fails: nobody waits for more trouble then.
            let _over = Over(&over);
            work_and_die("cluster::child", CHILD, &format!("{version} {port}"))
        });
        let what = format!("{version} {layouts:?}");
        assert_recovered(&what, &|| mount(version, port), &directory(), acknowledged);
        // As it came: its pages are at both nodes.
        let both = (0..2).all(|node| {
            let its = cluster.counters(node);
            its.writes + its.served > 0
        });
        assert!(both, "{what}");
    }
}

#[test]
fn a_killed_database_recovers() {
    recovers(|_| {});
}

#[test]
fn a_killed_database_recovers_whose_nodes_were_restarted() {
    recovers(|cluster| {
        for node in 0..2 {
            cluster.restart(node).expect("a restart");
            // On a busy machine, finding all files again takes its time.
            clock::sleep(Nanos::millis(400));
        }
    });
}

#[test]
fn a_killed_database_recovers_that_was_moved_around() {
    recovers(|cluster| {
        for nodes in [[1, 0], [0, 1]] {
            cluster.move_to(EXPORT, &nodes, Tell::Recall).expect("a move");
        }
    });
}

/// The process that is killed.
#[test]
fn child() {
    let Ok(where_to) = std::env::var(CHILD) else { return };
    let (version, port) = where_to.split_once(' ').expect("two words");
    work(mount(version.parse().expect("a version"), port.parse().expect("a port")), directory());
}
