//! Load that knows what each block has to be: reads, unstable and stable writes, and syncs, at random.

use crate::stand::{BLOCK, Blocks, mount, sync};
use io::{Action, Completion, Outcome, Queue as _, Request};
use nfs::{Open, Queue, QueueOptions, Version};
use nfslab::Cluster;
use units::{Rng, Seed};

pub const BLOCKS: u64 = 256;
/// Longer than a round trip, with 16 in flight.
const SLOW: units::Nanos = units::Nanos(500_000);
/// One request in so many is a sync.
const SYNC_EVERY: u64 = 100;

/// What a slot is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Read(u64),
    Write(u64),
    Sync,
}

/// What the blocks have to be after a storm.
pub struct Written {
    blocks: Blocks,
    generations: Vec<u64>,
    /// Requests that ended.
    pub requests: u64,
    /// Longest that one took.
    pub longest: units::Nanos,
    /// Begin and end of those that took long.
    pub slow: Vec<(units::Nanos, units::Nanos)>,
}

/// Reads, writes and syncs at random until `is_over`; none may fail, and each block that is read has to be of its last write.
pub fn storm(queue: &mut Queue, is_over: impl Fn() -> bool) -> Written {
    let blocks = Blocks::new(3, BLOCKS);
    let mut rng = Rng::new(Seed(11));
    let mut generations = vec![1; BLOCKS as usize];
    blocks.write_all(queue, 1, Action::Write);
    let depth = queue.depth();
    let mut busy: Vec<Option<(Work, units::Nanos)>> = vec![None; depth as usize];
    let (mut done, mut over, mut requests, mut longest) = (Vec::new(), false, 0, units::Nanos(0));
    let mut slow = Vec::new();
    while !over || queue.in_flight() > 0 {
        over = is_over();
        for slot in 0..depth {
            let block = rng.below(BLOCKS);
            let touches = |work: Work| matches!(work, Work::Read(b) | Work::Write(b) if b == block);
            let taken = busy.iter().flatten().any(|&(work, _)| touches(work));
            if busy[slot as usize].is_some() || taken || over {
                continue;
            }
            let work = if rng.below(SYNC_EVERY) == 0 {
                queue.stage(slot, Request { file: 0, offset: 0, bytes: 0, action: Action::Sync });
                Work::Sync
            } else if rng.below(2) == 0 {
                generations[block as usize] += 1;
                let action = if rng.below(2) == 0 { Action::Write } else { Action::WriteDsync };
                blocks.stage_write(queue, slot, block, generations[block as usize], action);
                Work::Write(block)
            } else {
                blocks.stage_read(queue, slot, block);
                Work::Read(block)
            };
            busy[slot as usize] = Some((work, units::clock::now()));
        }
        queue.submit_and_reap(1, &mut done).expect("a queue that works");
        for Completion { slot, outcome } in done.drain(..) {
            assert_eq!(outcome, Outcome::Full, "{:?}", queue.trouble());
            let (work, since) = busy[slot as usize].take().expect("it was in flight");
            if let Work::Read(block) = work {
                blocks.verify(queue, slot, block, Some(generations[block as usize]));
            }
            requests += 1;
            let now = units::clock::now();
            longest = longest.max(now - since);
            if now - since > SLOW {
                slow.push((since, now));
            }
        }
    }
    sync(queue);
    Written { blocks, generations, requests, longest, slow }
}

impl Written {
    /// Reads every block once more, by somebody who knows nothing: nothing was lost.
    pub fn verify(&self, cluster: &Cluster, export: &str, name: &str) {
        let fresh = mount(cluster, 0, export, Version::V3);
        let file = fresh.file(name, Open::Read).expect("the file");
        let mut check = fresh.queue(QueueOptions::new(1, BLOCK), &[&file]).expect("a queue");
        let mut done = Vec::new();
        for block in 0..BLOCKS {
            self.blocks.stage_read(&mut check, 0, block);
            check.submit_and_reap(1, &mut done).expect("a queue that works");
            assert_eq!(done.pop().map(|c| c.outcome), Some(Outcome::Full));
            self.blocks.verify(&check, 0, block, Some(self.generations[block as usize]));
        }
    }
}
