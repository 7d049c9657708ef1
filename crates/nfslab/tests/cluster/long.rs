//! Reads of a megabyte, whose payloads are received where they belong, while connections break in the middle of them.

use crate::faults::{DATA, FORMS, MOUNTED, SILENCE};
use crate::stand::{BLOCK, Blocks, mount_with, start};
use io::{Action, Completion, Outcome, Queue as _, Request, stamp};
use nfs::{MountOptions, Open, Queue, QueueOptions};
use nfslab::ClusterOptions;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Nanos, Rng, Seed, clock};

const LONG: u32 = 1 << 20;
const LONGS: u64 = 8;
const FILE_ID: u64 = 4;

#[test]
fn long_reads_are_whole_whenever_the_connection_broke() {
    for (version, layouts) in FORMS {
        for export in ["/a", "/striped"] {
            let cluster = start(ClusterOptions { layouts, lease_seconds: 3, ..ClusterOptions::default() });
            let limit = Nanos::millis(20_000);
            let options = MountOptions { limit, silence: SILENCE, ..MountOptions::default() };
            let mount = mount_with(cluster.target(MOUNTED, export, version), options);
            let file = mount.file("data", Open::New { mode: 0o640 }).expect("a new file");
            let blocks = Blocks::new(FILE_ID, LONGS * u64::from(LONG / BLOCK));
            let mut queue = mount.queue(QueueOptions::new(16, BLOCK), &[&file]).expect("a queue");
            blocks.write_all(&mut queue, 1, Action::Write);
            let mut queue = mount.queue(QueueOptions::new(4, LONG), &[&file]).expect("a queue");
            let over = AtomicBool::new(false);
            let reads = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut rng = Rng::new(Seed(6));
                    for node in [MOUNTED, DATA].into_iter().cycle().take(12) {
                        clock::sleep(Nanos(rng.below(20_000_000)));
                        cluster.cut(node).expect("a cut");
                        clock::sleep(Nanos(rng.below(3_000_000)));
                        cluster.restore(node).expect("it is back");
                    }
                    over.store(true, Ordering::Release);
                });
                read_until(&mut queue, || over.load(Ordering::Acquire))
            });
            let network = queue.network();
            println!("{version} {layouts:?} {export}: {reads} reads, {network:?}");
            assert!(reads >= 4 && network.reconnects > 0);
        }
    }
}

/// Reads at random, and looks at each block of what was read; how many reads.
fn read_until(queue: &mut Queue, is_over: impl Fn() -> bool) -> u64 {
    let mut rng = Rng::new(Seed(5));
    let (mut free, mut done) = ((0..queue.depth()).collect::<Vec<u32>>(), Vec::new());
    let (mut offsets, mut reads) = (vec![0; free.len()], 0);
    while !is_over() || queue.in_flight() > 0 {
        while !is_over()
            && let Some(slot) = free.pop()
        {
            let offset = rng.below(LONGS) * u64::from(LONG);
            offsets[slot as usize] = offset;
            queue.buffer_mut(slot).fill(0xee);
            queue.stage(slot, Request { file: 0, offset, bytes: LONG, action: Action::Read });
        }
        queue.submit_and_reap(1, &mut done).expect("a queue that works");
        for Completion { slot, outcome } in done.drain(..) {
            assert_eq!(outcome, Outcome::Full, "{:?}", queue.trouble());
            let places = (offsets[slot as usize]..).step_by(BLOCK as usize);
            for (block, offset) in queue.buffer(slot).chunks(BLOCK as usize).zip(places) {
                let found = stamp::verify(block, FILE_ID, offset, Some(1));
                assert!(found.is_ok(), "at {offset}: {}", found.expect_err("it is wrong"));
            }
            reads += 1;
            free.push(slot);
        }
    }
    reads
}
