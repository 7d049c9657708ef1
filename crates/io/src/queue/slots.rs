//! The slot table that every queue has: buffers, requests, and who owns them now.
//!
//! ```text
//! free -> staged      [stage]      the caller filled the buffer
//! staged -> in flight [launch]     the kernel owns the buffer
//! in flight -> free   [complete]   the caller may look at the buffer
//! ```

use super::{Action, Completion, QueueOptions, Request};
use crate::buffer::Buffer;
use crate::error::IoError;
use crate::file::File;
use crate::outcome::Outcome;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Free,
    Staged,
    InFlight,
}

#[derive(Clone, Copy)]
struct Slot {
    phase: Phase,
    generation: u32,
    /// How often the kernel gave this request back undone.
    tries: u32,
    request: Request,
}

/// Slots with their buffers in one mapping.
pub(crate) struct Slots {
    memory: Buffer,
    stride: usize,
    buffer_bytes: u32,
    slots: Box<[Slot]>,
    staged: Vec<u32>,
    in_flight: u32,
    files: Arc<[Arc<File>]>,
    file_count: u32,
}

const EMPTY: Request = Request { file: 0, offset: 0, bytes: 0, action: Action::Sync };

/// How often a request that the kernel gave back undone is handed over once more.
pub(crate) const TRIES_MAX: u32 = 64;

/// The kernel's limit on pieces of a vectored read.
const PIECES_MAX: u32 = 1024;

impl Slots {
    pub(crate) fn new(options: &QueueOptions) -> Result<Self, IoError> {
        let mut slots = Self::without_files(options.depth, options.buffer_bytes, options.files.len())?;
        slots.files = options.files.as_slice().into();
        Ok(slots)
    }

    /// For queues that have something else in the place of files.
    pub(crate) fn without_files(depth: u32, buffer_bytes: u32, file_count: usize) -> Result<Self, IoError> {
        let stride = (buffer_bytes as usize).max(1).next_multiple_of(4096);
        let empty = Slot { phase: Phase::Free, generation: 0, tries: 0, request: EMPTY };
        Ok(Self {
            memory: Buffer::new(stride * depth as usize)?,
            stride,
            buffer_bytes,
            slots: vec![empty; depth as usize].into(),
            staged: Vec::with_capacity(depth as usize),
            in_flight: 0,
            files: Arc::new([]),
            file_count: file_count as u32,
        })
    }

    pub(crate) fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(crate) fn buffer_bytes(&self) -> u32 {
        self.buffer_bytes
    }

    pub(crate) fn files(&self) -> &Arc<[Arc<File>]> {
        &self.files
    }

    #[inline]
    pub(crate) fn buffer(&self, slot: u32) -> &[u8] {
        self.assert_ours(slot);
        // SAFETY: the slot is not in flight, so nobody else writes to its buffer while `self` is borrowed. Built from the
        // address: a slice of the whole memory would also cover the buffers that the kernel or a worker owns now.
        unsafe { std::slice::from_raw_parts(self.address(slot), self.buffer_bytes as usize) }
    }

    #[inline]
    pub(crate) fn buffer_mut(&mut self, slot: u32) -> &mut [u8] {
        self.assert_ours(slot);
        // SAFETY: as in `buffer`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), self.buffer_bytes as usize) }
    }

    #[inline]
    fn assert_ours(&self, slot: u32) {
        assert!(self.slots[slot as usize].phase != Phase::InFlight, "slot {slot} is in flight");
    }

    /// The buffer of a slot in flight, for a queue that carries requests out itself, on the thread that owns it.
    pub(crate) fn lent_buffer(&mut self, slot: u32) -> &mut [u8] {
        let bytes = self.request(slot).bytes as usize;
        // SAFETY: `bytes` is at most the size of the buffer (`stage`), and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), bytes) }
    }

    /// Start of a slot's buffer, whoever owns it now. What is done with it is up to the unsafe code that asks.
    #[inline]
    pub(crate) fn address(&self, slot: u32) -> *mut u8 {
        assert!((slot as usize) < self.slots.len());
        // SAFETY: slot < depth, so the result lies inside the mapping of depth × stride bytes.
        unsafe { self.memory.as_ptr().add(slot as usize * self.stride) }
    }

    #[inline]
    pub(crate) fn stage(&mut self, slot: u32, request: Request) {
        assert!(request.file < self.file_count, "file {} of {}", request.file, self.file_count);
        assert!(
            request.bytes <= self.buffer_bytes,
            "{} bytes into a buffer of {}",
            request.bytes,
            self.buffer_bytes
        );
        if let Action::ReadVectored { piece_bytes } = request.action {
            assert!(
                piece_bytes > 0 && request.bytes.div_ceil(piece_bytes) <= PIECES_MAX,
                "more than {PIECES_MAX} pieces"
            );
        }
        let entry = &mut self.slots[slot as usize];
        assert!(entry.phase == Phase::Free, "slot {slot} is busy");
        entry.phase = Phase::Staged;
        entry.request = request;
        entry.tries = 0;
        self.staged.push(slot);
    }

    /// Slots staged and not launched yet, in the order of staging.
    #[inline]
    pub(crate) fn staged(&self) -> &[u32] {
        &self.staged
    }

    #[inline]
    pub(crate) fn request(&self, slot: u32) -> Request {
        self.slots[slot as usize].request
    }

    /// What travels with the request through the kernel: slot and generation.
    #[inline]
    pub(crate) fn user_data(&self, slot: u32) -> u64 {
        u64::from(slot) | u64::from(self.slots[slot as usize].generation) << 32
    }

    /// The first `count` staged slots are the kernel's from now on.
    #[inline]
    pub(crate) fn launch(&mut self, count: u32) {
        for &slot in &self.staged[..count as usize] {
            self.slots[slot as usize].phase = Phase::InFlight;
        }
        if count as usize == self.staged.len() {
            self.staged.clear();
        } else {
            self.staged.drain(..count as usize);
        }
        self.in_flight += count;
    }

    /// Whether the queue should hand this request over once more instead of completing it: the kernel was interrupted or
    /// short of something, and did nothing. The slot stays in flight. Not for ever, and not to a poisoned file.
    #[cold]
    pub(crate) fn tries_again(&mut self, user_data: u64, result: i64) -> bool {
        let undone = result == -i64::from(libc::EINTR) || result == -i64::from(libc::EAGAIN);
        if !undone || self.check_poison().is_err() {
            return false;
        }
        let entry = &mut self.slots[user_data as u32 as usize];
        entry.tries += 1;
        entry.tries <= TRIES_MAX
    }

    /// The kernel gives the slot of `user_data` back with `result`: bytes done, or a negative error number.
    ///
    /// # Panics
    /// When this request is not in flight: the kernel completed something twice, or something else.
    #[inline]
    pub(crate) fn complete(&mut self, user_data: u64, result: i64) -> Completion {
        let (slot, generation) = (user_data as u32, (user_data >> 32) as u32);
        let entry = &mut self.slots[slot as usize];
        assert!(
            entry.phase == Phase::InFlight && entry.generation == generation,
            "completion of slot {slot} generation {generation}, which is {:?} in generation {}",
            entry.phase,
            entry.generation
        );
        entry.phase = Phase::Free;
        entry.generation = generation.wrapping_add(1);
        self.in_flight -= 1;
        let request = entry.request;
        let wanted = if request.action == Action::Sync { 0 } else { request.bytes };
        let mut outcome = Outcome::from_result(result, wanted);
        if let Outcome::Errno(_) = outcome {
            outcome = self.judge(request, outcome);
        }
        Completion { slot, outcome }
    }

    #[cold]
    fn judge(&self, request: Request, outcome: Outcome) -> Outcome {
        let Some(file) = self.files.get(request.file as usize) else { return outcome };
        match request.action {
            Action::Read | Action::ReadVectored { .. } => outcome,
            Action::Write => file.judge_write(outcome, file.access().dsync),
            Action::WriteDsync => file.judge_write(outcome, true),
            Action::Sync => file.judge_sync(outcome),
        }
    }

    /// # Errors
    /// [`IoError::Poisoned`] when any file is.
    #[inline]
    pub(crate) fn check_poison(&self) -> Result<(), IoError> {
        self.files.iter().try_for_each(|file| if file.poisoned() { file.check_poison() } else { Ok(()) })
    }

    /// Never frees the buffers: for a queue that cannot know when the kernel is done with them.
    pub(crate) fn leak_memory(&mut self) {
        self.memory.leak();
    }

    /// How many completions a caller who wants `min` can wait for.
    #[inline]
    pub(crate) fn reachable(&self, min: u32) -> u32 {
        min.min(self.in_flight)
    }
}

/// The iovecs of a vectored read of `bytes` at `address`, into `pieces`, which is emptied first.
pub(crate) fn cut(address: *mut u8, bytes: u32, piece_bytes: u32, pieces: &mut Vec<libc::iovec>) {
    pieces.clear();
    for start in (0..bytes).step_by(piece_bytes as usize) {
        pieces.push(libc::iovec {
            iov_base: address.wrapping_add(start as usize).cast(),
            iov_len: (bytes - start).min(piece_bytes) as usize,
        });
    }
}
