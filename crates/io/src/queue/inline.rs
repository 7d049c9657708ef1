//! One request at a time, inside `submit`, on the calling thread: how a database without asynchronous I/O works.

use super::slots::Slots;
use super::{Action, Completion, Queue, QueueCounters, QueueOptions, Request};
use crate::error::IoError;
use crate::outcome::Outcome;
use crate::sim::Disk;
use units::{Nanos, clock};

pub(super) struct InlineQueue {
    slots: Slots,
    finished: Option<(u64, i64)>,
    counters: QueueCounters,
}

impl InlineQueue {
    pub(super) fn new(options: QueueOptions) -> Result<Self, IoError> {
        Ok(Self { slots: Slots::new(&options)?, finished: None, counters: QueueCounters::default() })
    }

    fn run(&mut self, slot: u32) -> i64 {
        let request = self.slots.request(slot);
        let file = self.slots.files()[request.file as usize].clone();
        let bytes = request.bytes as usize;
        execute(&*file, request, &mut self.slots.buffer_mut(slot)[..bytes])
    }
}

/// Does `request` on `disk` by plain calls; the result is what the kernel would return: bytes or a negative errno.
pub(crate) fn execute<D: Disk + ?Sized>(disk: &D, request: Request, buffer: &mut [u8]) -> i64 {
    let outcome = match request.action {
        Action::Read => disk.read_at(buffer, request.offset),
        Action::ReadVectored { piece_bytes } => {
            let mut pieces: Vec<&mut [u8]> = buffer.chunks_mut(piece_bytes as usize).collect();
            disk.read_vectored_at(&mut pieces, request.offset)
        }
        Action::Write => disk.write_at(buffer, request.offset),
        Action::WriteDsync => disk.write_at_dsync(buffer, request.offset),
        Action::Sync => disk.sync(),
    };
    match (outcome, request.action) {
        (Outcome::Full, Action::Sync) => 0,
        (Outcome::Full, _) => i64::from(request.bytes),
        (Outcome::Short(done), _) => i64::from(done),
        (Outcome::Errno(errno), _) => -i64::from(errno),
    }
}

impl Queue for InlineQueue {
    fn depth(&self) -> u32 {
        1
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
        let Some(&slot) = self.slots.staged().first() else { return Ok(0) };
        self.slots.check_poison()?;
        let observed = self.counters.observes_next();
        let begin = if observed { clock::now() } else { Nanos(0) };
        let result = self.run(slot);
        self.counters.count_submit(1);
        if observed {
            self.counters.observe(1, 1, clock::now() - begin);
        }
        self.finished = Some((self.slots.user_data(slot), result));
        self.slots.launch(1);
        Ok(1)
    }

    fn reap(&mut self, _min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.counters.reap_calls += 1;
        if let Some((user_data, result)) = self.finished.take() {
            done.push(self.slots.complete(user_data, result));
        }
        Ok(())
    }

    fn counters(&self) -> QueueCounters {
        self.counters
    }
    fn describe(&self) -> String {
        "threads, pread/pwrite by the caller".into()
    }
}
