//! A queue over simulated disks: requests complete late and out of order, as chance wants it.

use super::Disk;
use super::storage::SimDisk;
use crate::error::IoError;
use crate::queue::slots::Slots;
use crate::queue::{Action, Completion, Queue, QueueCounters, Request, execute};
use std::sync::Arc;
use units::{Rng, Seed};

/// A queue of requests to `disks`, which take the place of files. A request is carried out at some moment between its
/// submit and its reap, in an order drawn from the seed; `reap` gives at least what was asked and at random some more.
pub struct SimQueue {
    slots: Slots,
    disks: Vec<Arc<dyn Disk>>,
    /// The same files as `disks` when they are a storage's: they are told of writes that are on their way.
    files: Vec<Arc<SimDisk>>,
    /// For each slot, what its file calls the write that is on its way.
    flights: Vec<Option<u64>>,
    waiting: Vec<u32>,
    rng: Rng,
    counters: QueueCounters,
}

impl SimQueue {
    /// `depth` slots of `buffer_bytes` over `disks`.
    ///
    /// # Errors
    /// [`IoError::NoMemory`].
    pub fn new(
        depth: u32,
        buffer_bytes: u32,
        disks: Vec<Arc<dyn Disk>>,
        seed: Seed,
    ) -> Result<Self, IoError> {
        Ok(Self {
            slots: Slots::without_files(depth, buffer_bytes, disks.len())?,
            disks,
            files: Vec::new(),
            flights: vec![None; depth as usize],
            waiting: Vec::new(),
            rng: Rng::new(seed),
            counters: QueueCounters::default(),
        })
    }

    /// Over files of a storage.
    pub(super) fn over(
        depth: u32,
        buffer_bytes: u32,
        files: Vec<Arc<SimDisk>>,
        seed: Seed,
    ) -> Result<Self, IoError> {
        let disks = files.iter().map(|file| file.clone() as Arc<dyn Disk>).collect();
        Ok(Self { files, ..Self::new(depth, buffer_bytes, disks, seed)? })
    }

    /// Tells the storage of the writes that were just submitted.
    fn announce(&mut self) {
        for slot in self.slots.staged().to_vec() {
            let request = self.slots.request(slot);
            let writes = matches!(request.action, Action::Write | Action::WriteDsync);
            if let Some(file) = self.files.get(request.file as usize).filter(|_| writes) {
                let data = &self.slots.buffer(slot)[..request.bytes as usize];
                self.flights[slot as usize] = Some(file.announce(data, request.offset));
            }
        }
    }

    fn finish_one(&mut self, done: &mut Vec<Completion>) {
        let slot = self.waiting.swap_remove(self.rng.below(self.waiting.len() as u64) as usize);
        let request = self.slots.request(slot);
        let user_data = self.slots.user_data(slot);
        if let Some(flight) = self.flights[slot as usize].take() {
            self.files[request.file as usize].retract(flight);
        }
        let disk = self.disks[request.file as usize].clone();
        let result = execute(&*disk, request, self.slots.lent_buffer(slot));
        done.push(self.slots.complete(user_data, result));
    }
}

impl Queue for SimQueue {
    fn depth(&self) -> u32 {
        self.slots.depth()
    }
    fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }
    fn buffer(&self, slot: u32) -> &[u8] {
        self.slots.buffer(slot)
    }
    fn buffer_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.buffer_mut(slot)
    }
    fn stage(&mut self, slot: u32, request: Request) {
        self.slots.stage(slot, request);
    }

    fn submit(&mut self) -> Result<u32, IoError> {
        let count = self.slots.staged().len() as u32;
        if count > 0 {
            self.announce();
            self.waiting.extend_from_slice(self.slots.staged());
            self.slots.launch(count);
            self.counters.count_submit(count);
        }
        Ok(count)
    }

    fn reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.counters.reap_calls += 1;
        let least = u64::from(self.slots.reachable(min));
        let count = least + self.rng.below(self.waiting.len() as u64 - least + 1);
        for _ in 0..count {
            self.finish_one(done);
        }
        Ok(())
    }

    fn counters(&self) -> QueueCounters {
        self.counters
    }
    fn describe(&self) -> String {
        "simulated".into()
    }
}
