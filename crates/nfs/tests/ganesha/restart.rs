//! A server that is killed under load, and comes back: nothing that was acknowledged is lost, nothing old comes back.

use crate::stand::{Conf, Server, alone, mount};
use io::stamp::{self, Stamp, Stamper};
use io::{Action, Completion, Outcome, Queue as _, Request};
use nfs::{Mount, NetworkCounters, Open, QueueOptions, Version};
use units::{Nanos, Rng, Seed, clock};

const BLOCK: u32 = 8192;
const BLOCKS: u64 = 64;
const DEPTH: u32 = 8;

/// Writes blocks at random, each with a rising generation, over path `path`, while `disturb` is called `times` times; then reads what
/// was acknowledged last.
pub fn storm(
    mount: &Mount,
    version: Version,
    path: usize,
    times: u32,
    disturb: &mut dyn FnMut(),
) -> NetworkCounters {
    let file = mount.file(&format!("storm {version}"), Open::Create { mode: 0o600 }).expect("a file");
    let options = QueueOptions { silence: Nanos::millis(1_000), path, ..QueueOptions::new(DEPTH, BLOCK) };
    let mut queue = mount.queue(options, &[&file]).expect("a queue");
    let (stamper, mut rng) = (Stamper::new(Seed(1)), Rng::new(Seed(2)));
    let mut acknowledged = vec![0u64; BLOCKS as usize];
    let mut of_slot: Vec<Option<(u64, u64)>> = vec![None; DEPTH as usize];
    let (mut written, mut done, mut disturbed) = (0u64, Vec::new(), 0);
    let target = 400 * u64::from(times + 1);
    while written < target || queue.in_flight() > 0 {
        for slot in 0..DEPTH {
            if of_slot[slot as usize].is_some() || written >= target {
                continue;
            }
            let block = rng.below(BLOCKS);
            // Two writes of one block at once may end in any order.
            if of_slot.iter().flatten().any(|(other, _)| *other == block) {
                continue;
            }
            written += 1;
            let (offset, generation) = (block * u64::from(BLOCK), written);
            stamper.fill(queue.buffer_mut(slot), Stamp { file_id: 1, offset, generation });
            queue.stage(slot, Request { file: 0, offset, bytes: BLOCK, action: Action::WriteDsync });
            of_slot[slot as usize] = Some((block, generation));
        }
        queue.submit().expect("a queue that works");
        if disturbed < times && written > 400 * u64::from(disturbed + 1) {
            disturbed += 1;
            disturb();
        }
        queue.reap(1, &mut done).expect("a queue that works");
        for Completion { slot, outcome } in done.drain(..) {
            assert_eq!(outcome, Outcome::Full, "{version}: {:?}, {:?}", queue.network(), queue.trouble());
            let (block, generation) = of_slot[slot as usize].take().expect("it was in flight");
            acknowledged[block as usize] = generation;
        }
    }
    let network = queue.network();
    assert!(network.reconnects >= u64::from(times) && network.replays > 0, "{version}: {network:?}");
    for (block, &generation) in acknowledged.iter().enumerate().filter(|(_, generation)| **generation > 0) {
        let offset = block as u64 * u64::from(BLOCK);
        queue.stage(0, Request { file: 0, offset, bytes: BLOCK, action: Action::Read });
        queue.submit_and_reap(1, &mut done).expect("a queue that works");
        assert_eq!(done.pop().map(|c| c.outcome), Some(Outcome::Full), "{version}");
        let found = stamp::verify(queue.buffer(0), 1, offset, Some(generation));
        assert_eq!(
            found,
            Ok(Stamp { file_id: 1, offset, generation }),
            "{version}, block {block}: {network:?}"
        );
    }
    network
}

#[test]
fn a_killed_server_loses_nothing_v3() {
    alone("restart::a_killed_server_loses_nothing_v3", || {
        let mut server = Server::start(&Conf::default());
        storm(&mount(Version::V3), Version::V3, 0, 2, &mut || server.restart());
    });
}

/// With a grace period: the client reclaims what it has open.
fn with_grace(version: Version) {
    let grace = "Graceless = false; Grace_Period = 3; Lease_Lifetime = 3;";
    let mut server = Server::start(&Conf { grace, ..Conf::default() });
    let mount = mount(version);
    storm(&mount, version, 0, 2, &mut || server.restart());
}

#[test]
fn a_killed_server_loses_nothing_v40() {
    alone("restart::a_killed_server_loses_nothing_v40", || with_grace(Version::V40));
}

#[test]
fn a_killed_server_loses_nothing_v41() {
    alone("restart::a_killed_server_loses_nothing_v41", || with_grace(Version::V41));
}

/// Longer than a lease, nobody transfers anything: the keeper holds the state.
#[test]
fn an_idle_mount_keeps_its_lease() {
    alone("restart::an_idle_mount_keeps_its_lease", || {
        let _server =
            Server::start(&Conf { grace: "Graceless = true; Lease_Lifetime = 2;", ..Conf::default() });
        for version in [Version::V40, Version::V41] {
            let mount = mount(version);
            let file = mount.file("idle", Open::Create { mode: 0o600 }).expect("a file");
            clock::sleep(Nanos::millis(5_000));
            let mut queue = mount.queue(QueueOptions::new(1, BLOCK), &[&file]).expect("a queue");
            queue.stage(0, Request { file: 0, offset: 0, bytes: BLOCK, action: Action::WriteDsync });
            let mut done = Vec::new();
            queue.submit_and_reap(1, &mut done).expect("a queue that works");
            assert_eq!(done[0].outcome, Outcome::Full, "{version}");
            let network = queue.network();
            assert_eq!((network.replays, network.reconnects), (0, 0), "{version}: {network:?}");
        }
    });
}
