//! A cluster, a mount of it, and blocks that prove where they were written.

use io::stamp::{self, Stamp, Stamper};
use io::{Action, Completion, Outcome, Queue as _, Request};
use nfs::{Mount, MountOptions, Queue, Target, Version};
use nfslab::{Cluster, ClusterOptions};
use units::{Nanos, Seed};

pub const BLOCK: u32 = 8192;

pub fn start(options: ClusterOptions) -> Cluster {
    Cluster::start(options).unwrap_or_else(|error| panic!("{error}"))
}

pub fn options() -> MountOptions {
    MountOptions { limit: Nanos::millis(30_000), ..MountOptions::default() }
}

pub fn mount(cluster: &Cluster, node: usize, export: &str, version: Version) -> Mount {
    mount_with(cluster.target(node, export, version), options())
}

pub fn mount_with(target: Target, options: MountOptions) -> Mount {
    Mount::open(target, options).unwrap_or_else(|error| panic!("{error}"))
}

/// The blocks of one file.
pub struct Blocks {
    stamper: Stamper,
    pub file_id: u64,
    pub count: u64,
}

impl Blocks {
    pub fn new(file_id: u64, count: u64) -> Self {
        Self { stamper: Stamper::new(Seed(5)), file_id, count }
    }

    fn stamp(&self, block: u64, generation: u64) -> Stamp {
        Stamp { file_id: self.file_id, offset: block * u64::from(BLOCK), generation }
    }

    /// Stages block `block`: a write of `generation`.
    pub fn stage_write(&self, queue: &mut Queue, slot: u32, block: u64, generation: u64, action: Action) {
        self.stamper.fill(queue.buffer_mut(slot), self.stamp(block, generation));
        queue.stage(slot, Request { file: 0, offset: block * u64::from(BLOCK), bytes: BLOCK, action });
    }

    pub fn stage_read(&self, queue: &mut Queue, slot: u32, block: u64) {
        let offset = block * u64::from(BLOCK);
        queue.stage(slot, Request { file: 0, offset, bytes: BLOCK, action: Action::Read });
    }

    /// What was read into `slot` is block `block`, of `generation` where that is known.
    pub fn verify(&self, queue: &Queue, slot: u32, block: u64, generation: Option<u64>) {
        let Stamp { file_id, offset, .. } = self.stamp(block, 0);
        let found = stamp::verify(queue.buffer(slot), file_id, offset, generation);
        assert!(found.is_ok(), "block {block}: {}", found.expect_err("it is wrong"));
    }

    /// Writes all blocks as `generation`, as many at once as there are slots, and syncs.
    pub fn write_all(&self, queue: &mut Queue, generation: u64, action: Action) {
        self.each(
            queue,
            |queue, slot, block| self.stage_write(queue, slot, block, generation, action),
            |_, _, _| {},
        );
        sync(queue);
    }

    /// Reads all blocks; each has to be of `generation`.
    pub fn read_all(&self, queue: &mut Queue, generation: u64) {
        let see = |queue: &Queue, slot, block| self.verify(queue, slot, block, Some(generation));
        self.each(queue, |queue, slot, block| self.stage_read(queue, slot, block), see);
    }

    fn each(&self, queue: &mut Queue, stage: impl Fn(&mut Queue, u32, u64), see: impl Fn(&Queue, u32, u64)) {
        let mut of_slot = vec![None; queue.depth() as usize];
        let mut free: Vec<u32> = (0..queue.depth()).collect();
        let (mut next, mut ended, mut done) = (0, 0, Vec::new());
        while ended < self.count {
            while next < self.count
                && let Some(slot) = free.pop()
            {
                stage(queue, slot, next);
                of_slot[slot as usize] = Some(next);
                next += 1;
            }
            queue.submit_and_reap(1, &mut done).expect("a queue that works");
            for Completion { slot, outcome } in done.drain(..) {
                assert_eq!(outcome, Outcome::Full, "slot {slot}: {:?}", queue.trouble());
                see(queue, slot, of_slot[slot as usize].take().expect("it was in flight"));
                free.push(slot);
                ended += 1;
            }
        }
    }
}

pub fn sync(queue: &mut Queue) {
    queue.stage(0, Request { file: 0, offset: 0, bytes: 0, action: Action::Sync });
    let mut done = Vec::new();
    queue.submit_and_reap(1, &mut done).expect("a queue that works");
    assert_eq!(done[0].outcome, Outcome::Full, "{:?}", queue.trouble());
}
