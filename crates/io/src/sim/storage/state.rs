//! What a simulated storage knows: files, names, and one list of everything that is not durable yet.

use super::super::{Call, Fault, Promises, Trouble};
use super::image::Image;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use units::{Rng, Seed};

/// Bytes on their way to the medium.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) data: Vec<u8>,
    /// Its caller was told that it failed: nobody sees it, but some of it may have reached the medium.
    pub(super) failed: bool,
}

#[derive(Clone)]
pub(super) struct SimFile {
    /// What a reader sees.
    pub(super) now: Image,
    /// What is on the medium.
    pub(super) durable: Image,
}

/// A fault with what it is about and how often its calls came.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) path: Option<PathBuf>,
    pub(super) fault: Fault,
    pub(super) calls: u64,
    pub(super) fired: u64,
}

#[derive(Clone, Default)]
pub(super) struct State {
    /// Never shorter: handles name their file by its place.
    pub(super) files: Vec<SimFile>,
    pub(super) names: BTreeMap<PathBuf, usize>,
    pub(super) directories: BTreeSet<PathBuf>,
    pub(super) texts: BTreeMap<PathBuf, String>,
    /// Completed and not durable, over all files, in order.
    pub(super) pending: Vec<Write>,
    /// Handed over and not completed, by a number of their own.
    pub(super) in_flight: BTreeMap<u64, Write>,
    pub(super) next_flight: u64,
    pub(super) locks: BTreeMap<PathBuf, u64>,
    pub(super) next_lock: u64,
    /// Counts crashes: handles of before are dead.
    pub(super) epoch: u64,
    pub(super) calls: u64,
    pub(super) faults: Vec<Plan>,
    pub(super) lying: bool,
    pub(super) capacity: Option<u64>,
    pub(super) queues: u64,
}

impl State {
    /// Counts a call and says what trouble it meets.
    pub(super) fn begin_call(&mut self, call: Call, path: &Path) -> Option<Trouble> {
        self.calls += 1;
        let mut trouble = None;
        for plan in &mut self.faults {
            let concerned = plan.path.as_deref().is_none_or(|of| of == path)
                && (plan.fault.on == Call::Any || plan.fault.on == call);
            if !concerned {
                continue;
            }
            plan.calls += 1;
            let strikes =
                if plan.fault.for_ever { plan.calls >= plan.fault.nth } else { plan.calls == plan.fault.nth };
            if strikes {
                plan.fired += 1;
                trouble = trouble.or(Some(plan.fault.trouble));
            }
        }
        trouble
    }

    /// Bytes of all files that have a name.
    pub(super) fn used(&self) -> u64 {
        self.names.values().map(|file| self.files[*file].now.bytes()).sum()
    }

    /// A new file of zeroes with a name, durable.
    pub(super) fn make(&mut self, path: &Path, bytes: u64) -> usize {
        let mut image = Image::default();
        image.resize(bytes);
        self.files.push(SimFile { now: image.clone(), durable: image });
        let file = self.files.len() - 1;
        self.names.insert(path.to_path_buf(), file);
        file
    }

    /// Cuts or lengthens a file, durably. What was pending beyond the end is gone.
    pub(super) fn resize(&mut self, file: usize, bytes: u64) {
        self.files[file].now.resize(bytes);
        self.files[file].durable.resize(bytes);
        self.pending.retain(|write| write.file != file || write.offset + write.data.len() as u64 <= bytes);
    }

    /// A write that has arrived as far as readers can see.
    pub(super) fn complete(&mut self, write: Write, durable: bool) {
        self.files[write.file].now.write(&write.data, write.offset);
        if durable && !self.lying {
            self.make_durable(&write);
        } else {
            self.pending.push(write);
        }
    }

    /// The write goes to the medium, and older ones can no longer undo it: where they overlap they carry its bytes from
    /// now on. (Cut in pieces, a write that is promised to arrive whole would meet two fates.)
    fn make_durable(&mut self, write: &Write) {
        self.files[write.file].durable.write(&write.data, write.offset);
        let end = write.offset + write.data.len() as u64;
        for older in self.pending.iter_mut().filter(|older| older.file == write.file) {
            let from = write.offset.max(older.offset);
            let to = end.min(older.offset + older.data.len() as u64);
            if from < to {
                older.data[(from - older.offset) as usize..(to - older.offset) as usize].copy_from_slice(
                    &write.data[(from - write.offset) as usize..(to - write.offset) as usize],
                );
            }
        }
    }

    /// Everything that was written to a file reaches the medium.
    pub(super) fn sync(&mut self, file: usize) {
        if self.lying {
            return;
        }
        let (synced, rest) =
            std::mem::take(&mut self.pending).into_iter().partition(|w| w.file == file && !w.failed);
        self.pending = rest;
        let synced: Vec<Write> = synced;
        for write in synced {
            self.files[file].durable.write(&write.data, write.offset);
        }
    }

    /// The power goes and comes back: of what was not durable, chance decides within the promises.
    pub(super) fn crash(&mut self, seed: Seed, promises: Promises) {
        let mut rng = Rng::new(seed);
        let mut writes = std::mem::take(&mut self.pending);
        writes.extend(std::mem::take(&mut self.in_flight).into_values());
        if promises.in_order {
            writes.truncate(rng.below(writes.len() as u64 + 1) as usize);
        } else {
            rng.shuffle(&mut writes);
        }
        let last = writes.len().saturating_sub(1);
        for (index, write) in writes.iter().enumerate() {
            // In order, only the write that the power failed in can be incomplete.
            let intact = promises.in_order && index < last;
            let durable = &mut self.files[write.file].durable;
            land(durable, write, intact, promises, &mut rng);
        }
        self.restart();
        for file in &mut self.files {
            file.now = file.durable.clone();
        }
    }

    /// The process is killed: what it had written stays with the kernel, not durable still; of what was in flight or failed,
    /// chance decides what the kernel had taken. Who reads it from now on sees what is there for good.
    pub(super) fn kill(&mut self, seed: Seed) {
        let mut rng = Rng::new(seed);
        let (failed, rest) = std::mem::take(&mut self.pending).into_iter().partition(|w: &Write| w.failed);
        self.pending = rest;
        let failed: Vec<Write> = failed;
        for write in failed.into_iter().chain(std::mem::take(&mut self.in_flight).into_values()) {
            if rng.below(2) == 0 {
                self.complete(Write { failed: false, ..write }, false);
            }
        }
        self.restart();
    }

    /// Handles and locks of before are dead; faults stay with the device.
    fn restart(&mut self) {
        self.epoch += 1;
        self.locks.clear();
    }
}

/// One write reaches the medium: whole, not at all, or torn.
fn land(durable: &mut Image, write: &Write, intact: bool, promises: Promises, rng: &mut Rng) {
    let fate = if intact { 0 } else { rng.below(3) };
    if fate == 1 || (fate == 2 && promises.whole_writes) {
        return;
    }
    let sector = u64::from(promises.sector_bytes);
    let mut at = 0;
    while at < write.data.len() {
        let start = write.offset + at as u64;
        let length = ((sector - start % sector) as usize).min(write.data.len() - at);
        if fate == 0 || rng.below(2) == 0 {
            durable.write(&write.data[at..at + length], start);
        }
        at += length;
    }
}
