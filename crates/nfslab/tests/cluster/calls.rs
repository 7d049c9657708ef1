//! Calls of a mount whose replies are lost are done once; and what a queue says, and does, when no path leads anywhere.

use crate::stand::{BLOCK, Blocks, mount_with, start, sync};
use io::{Action, Outcome, Queue as _};
use nfs::{Mount, MountOptions, Open, Queue, QueueOptions, Status, Target, Version};
use nfslab::{Cluster, ClusterOptions, Layouts};
use std::net::TcpStream;
use units::{Nanos, clock};

const VERSIONS: [Version; 4] = [Version::V3, Version::V40, Version::V41, Version::Pnfs];
const SILENCE: Nanos = Nanos::millis(150);

fn options(limit_ms: u64) -> MountOptions {
    MountOptions { limit: Nanos::millis(limit_ms), silence: SILENCE, ..MountOptions::default() }
}

/// Does `call` while replies are lost: it is carried out, its reply does not come, and it is repeated.
fn unanswered<T>(cluster: &Cluster, call: impl FnOnce() -> T) -> T {
    cluster.lose_replies(0, true).expect("they are");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            clock::sleep(SILENCE + Nanos::millis(30));
            cluster.lose_replies(0, false).expect("no more");
        });
        call()
    })
}

#[test]
fn a_call_without_a_reply_is_done_once() {
    for version in VERSIONS {
        let cluster = start(ClusterOptions::default());
        let mount = mount_with(cluster.target(0, "/a", version), options(20_000));
        let new = |name: &str| mount.file(name, Open::New { mode: 0o640 });
        let data = |name: &str, bytes| {
            let file = new(name).expect("a new file");
            mount.set_size(&file, bytes).expect("a size");
        };
        let size = |name: &str| {
            let file = mount.file(name, Open::Read)?;
            mount.attributes(&file).map(|attributes| attributes.size)
        };
        data("one", 1);
        data("two", 2);
        unanswered(&cluster, || mount.remove("one")).unwrap_or_else(|e| panic!("{version}: {e}"));
        assert_eq!(mount.remove("one").expect_err("it is gone").status(), Some(Status::NOENT), "{version}");
        unanswered(&cluster, || mount.rename("two", "three")).unwrap_or_else(|e| panic!("{version}: {e}"));
        assert_eq!(size("two").expect_err("it is gone").status(), Some(Status::NOENT), "{version}");
        assert_eq!(size("three").expect("it is there"), 2, "{version}");
        unanswered(&cluster, || mount.make_directory("folder", 0o750))
            .unwrap_or_else(|e| panic!("{version}: {e}"));
        unanswered(&cluster, || mount.remove_directory("folder"))
            .unwrap_or_else(|e| panic!("{version}: {e}"));
        assert!(!mount.exists("folder").expect("an answer"), "{version}");
        let file = unanswered(&cluster, || new("four")).unwrap_or_else(|e| panic!("{version}: {e}"));
        assert_eq!(new("four").expect_err("it is there").status(), Some(Status::EXIST), "{version}");
        unanswered(&cluster, || mount.set_size(&file, 4)).unwrap_or_else(|e| panic!("{version}: {e}"));
        assert_eq!(size("four").expect("it is there"), 4, "{version}");
        drop(file);
        // A call that is given up leaves its place to another one.
        let hasty = mount_with(cluster.target(0, "/a", version), options(100));
        cluster.lose_replies(0, true).expect("they are");
        assert!(hasty.exists("three").is_err(), "{version}");
        cluster.lose_replies(0, false).expect("no more");
        assert!(hasty.exists("three").expect("an answer") && !hasty.exists("two").expect("an answer"));
    }
}

/// Two writes are at a server when it is restarted, the second behind the first: neither it nor an answer to it that was kept outlives that.
#[test]
fn what_a_server_was_at_when_it_was_restarted_is_not_taken_for_done() {
    for version in [Version::V3, Version::V40, Version::V41] {
        let cluster = start(ClusterOptions::default());
        let mount = mount_with(cluster.target(0, "/a", version), MountOptions::default());
        let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
        let mut queue = mount.queue(QueueOptions::new(2, BLOCK), &[&file]).expect("a queue");
        let blocks = Blocks::new(9, 2);
        blocks.write_all(&mut queue, 1, Action::Write);
        cluster.delay(0, Nanos::millis(80)).expect("it is slow");
        (0..2).for_each(|slot| blocks.stage_write(&mut queue, slot, slot.into(), 2, Action::Write));
        let mut done = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                clock::sleep(Nanos::millis(40));
                cluster.restart(0).expect("a restart");
                cluster.delay(0, Nanos(0)).expect("and fast again");
            });
            while done.len() < 2 {
                queue.submit_and_reap(1, &mut done).expect("a queue that works");
            }
        });
        assert!(done.iter().all(|it| it.outcome == Outcome::Full), "{version}: {done:?}");
        blocks.read_all(&mut queue, 2);
        sync(&mut queue);
        blocks.read_all(&mut queue, 2);
    }
}

/// The mount's target with these addresses as its paths.
fn by(cluster: &Cluster, paths: &[[u8; 4]]) -> Target {
    // Its data is at the node that comes back.
    let target = cluster.target(0, "/b", Version::V3);
    let path = |&address: &[u8; 4]| nfs::Path { remote: address.into(), local: None };
    Target { paths: paths.iter().map(path).collect(), ..target }
}

fn queue(mount: &Mount) -> Queue {
    let file = mount.file("data", Open::Create { mode: 0o640 }).expect("a file");
    mount.queue(QueueOptions::new(4, BLOCK), &[&file]).expect("a queue")
}

/// How one write ends.
fn write(blocks: &Blocks, queue: &mut Queue, generation: u64) -> Outcome {
    blocks.stage_write(queue, 0, 0, generation, Action::WriteDsync);
    let mut done = Vec::new();
    queue.submit_and_reap(1, &mut done).expect("a queue that works");
    done[0].outcome
}

#[test]
fn with_all_paths_gone_the_error_names_them_and_later_requests_are_worth_a_try() {
    let cluster = start(ClusterOptions::default());
    let mount = mount_with(by(&cluster, &[[127, 0, 0, 1], [127, 0, 0, 2]]), options(300));
    let (mut queue, blocks) = (queue(&mount), Blocks::new(9, 4));
    blocks.write_all(&mut queue, 1, Action::Write);
    for node in 0..2 {
        cluster.cut(node).expect("a cut");
    }
    for _ in 0..3 {
        let began = clock::now();
        assert_eq!(write(&blocks, &mut queue, 2), Outcome::Errno(113));
        assert!(clock::now() - began < Nanos::millis(5_000));
        let said = queue.trouble().expect("a reason").to_string();
        assert!(said.contains("127.0.0.1 port") && said.contains("127.0.0.2 port"), "{said}");
    }
    let alerts = mount.alerts();
    assert!(alerts.iter().any(|alert| alert.text.contains("given up")), "{alerts:?}");
    cluster.restore(1).expect("one is back");
    assert_eq!(write(&blocks, &mut queue, 3), Outcome::Full, "{:?}", queue.trouble());
    sync(&mut queue);
}

#[test]
fn a_path_that_swallows_everything_does_not_keep_us_from_the_others() {
    let cluster = start(ClusterOptions::default());
    // Nobody takes connections there, and there is no room for more.
    let port = cluster.address(0).port();
    let hole = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)
        .expect("a socket");
    let address = std::net::SocketAddr::from(([127, 0, 0, 40], port));
    rustix::net::bind(&hole, &address).expect("an address");
    rustix::net::listen(&hole, 0).expect("a listener");
    let full: Vec<_> =
        (0..4).map(|_| TcpStream::connect_timeout(&address, std::time::Duration::from_millis(50))).collect();
    assert!(full.iter().any(Result::is_err), "it is full");
    let paths = [[127, 0, 0, 1], [127, 0, 0, 40], [127, 0, 0, 2]];
    let mount = mount_with(by(&cluster, &paths), options(20_000));
    let (mut queue, blocks) = (queue(&mount), Blocks::new(9, 4));
    cluster.cut(0).expect("a cut");
    assert_eq!(write(&blocks, &mut queue, 1), Outcome::Full, "{:?}", queue.trouble());
    assert!(queue.describe().contains("by 127.0.0.2"), "{}", queue.describe());
}

#[test]
fn without_its_server_of_metadata_a_client_finds_its_way_back() {
    let cluster = start(ClusterOptions { layouts: Layouts::Files, ..ClusterOptions::default() });
    let mount = mount_with(cluster.target(0, "/b", Version::Pnfs), options(300));
    let (mut queue, blocks) = (queue(&mount), Blocks::new(9, 4));
    blocks.write_all(&mut queue, 1, Action::Write);
    cluster.cut(0).expect("a cut");
    // Whatever the first ones say: nothing hangs, and all is well when it is back.
    for generation in 2..4 {
        let _ = write(&blocks, &mut queue, generation);
    }
    cluster.restore(0).expect("it is back");
    assert_eq!(write(&blocks, &mut queue, 9), Outcome::Full, "{:?}", queue.trouble());
    sync(&mut queue);
}
