//! Linux native asynchronous I/O by raw system calls: `io_setup`, `io_submit`, `io_getevents`, `io_destroy`.
//!
//! Truly asynchronous only with `O_DIRECT`: through the page cache `io_submit` does the transfer before it returns, which
//! the counters show.

use super::slots::{Slots, cut};
use super::{Action, Completion, NAPS_MAX, Queue, QueueCounters, QueueOptions, Request};
use crate::error::{IoError, last_errno};
use crate::mode::Api;
use rustix::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use units::{Nanos, clock};

// linux/aio_abi.h
const CMD_PREAD: u16 = 0;
const CMD_PWRITE: u16 = 1;
const CMD_FDSYNC: u16 = 3;
const CMD_PREADV: u16 = 7;
const RING_MAGIC: u32 = 0xa10a_10a1;

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// Head of `struct aio_ring` of fs/aio.c, which the context id points to: stable since 2.6, fio reads it too.
#[repr(C)]
struct RingHead {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
}

struct Context(libc::c_ulong);

impl Context {
    fn new(depth: u32) -> Result<Self, IoError> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `id`.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut id) };
        if result == 0 { Ok(Self(id)) } else { Err(unavailable(last_errno())) }
    }

    /// Completions waiting in the ring; 0 where the ring is not as this code knows it.
    fn waiting(&self) -> u32 {
        // SAFETY: the id is the address of the ring's header, mapped readable into this process until io_destroy.
        let ring = unsafe { &*(self.0 as *const RingHead) };
        if ring.magic != RING_MAGIC || ring.entries == 0 {
            return 0;
        }
        let (head, tail) = (ring.head.load(Ordering::Relaxed), ring.tail.load(Ordering::Acquire));
        (tail + ring.entries - head) % ring.entries
    }
}

impl Drop for Context {
    /// Cancels what can be cancelled and waits for the rest (fs/aio.c: io_destroy waits for `ctx->rq_wait`).
    fn drop(&mut self) {
        // SAFETY: the context was made by io_setup and is destroyed once.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

fn unavailable(errno: i32) -> IoError {
    let reason = match errno {
        libc::EAGAIN => {
            "the system's contexts are used up; compare /proc/sys/fs/aio-nr with aio-max-nr and type `sysctl fs.aio-max-nr=1048576`"
        }
        libc::ENOSYS => "this kernel was built without it, or a sandbox hides it; use io_uring or threads",
        libc::EPERM => "a seccomp profile forbids it (containers); allow io_setup, or use threads",
        _ => "its set-up failed; use io_uring or threads",
    };
    IoError::ApiUnavailable { api: Api::Libaio, errno, reason }
}

pub(super) fn probe() -> Result<(), IoError> {
    Context::new(1).map(drop)
}

pub(super) struct LibaioQueue {
    // Declared first: dropped, and so drained, before the buffers in `slots`.
    context: Context,
    slots: Slots,
    blocks: Box<[libc::iocb]>,
    pieces: Box<[Vec<libc::iovec>]>,
    pointers: Vec<*mut libc::iocb>,
    events: Box<[Event]>,
    /// Completions that came while `submit` had to make room, or that the kernel refused at submit.
    early: Vec<(u64, i64)>,
    counters: QueueCounters,
}

// SAFETY: the raw pointers are into boxes that this value owns; nothing is shared.
unsafe impl Send for LibaioQueue {}

impl LibaioQueue {
    pub(super) fn new(options: QueueOptions) -> Result<Self, IoError> {
        let depth = options.depth as usize;
        // SAFETY: iocb is plain numbers, for which all zeroes is a value.
        let blank: libc::iocb = unsafe { std::mem::zeroed() };
        Ok(Self {
            context: Context::new(options.depth)?,
            slots: Slots::new(&options)?,
            blocks: (0..depth).map(|_| blank).collect(),
            pieces: vec![Vec::new(); depth].into(),
            pointers: Vec::with_capacity(depth),
            events: vec![Event::default(); depth].into(),
            early: Vec::with_capacity(depth),
            counters: QueueCounters::default(),
        })
    }

    fn fill(&mut self, slot: u32) {
        let Request { file, offset, bytes, action } = self.slots.request(slot);
        let address = self.slots.address(slot);
        let block = &mut self.blocks[slot as usize];
        block.aio_data = self.slots.user_data(slot);
        block.aio_fildes = self.slots.files()[file as usize].as_fd().as_raw_fd() as u32;
        block.aio_offset = offset as i64;
        block.aio_buf = address as u64;
        block.aio_nbytes = u64::from(bytes);
        block.aio_rw_flags = 0;
        block.aio_lio_opcode = match action {
            Action::Read => CMD_PREAD,
            Action::Write => CMD_PWRITE,
            Action::WriteDsync => {
                block.aio_rw_flags = libc::RWF_DSYNC as _;
                CMD_PWRITE
            }
            Action::Sync => {
                (block.aio_buf, block.aio_nbytes, block.aio_offset) = (0, 0, 0);
                CMD_FDSYNC
            }
            Action::ReadVectored { piece_bytes } => {
                let pieces = &mut self.pieces[slot as usize];
                cut(address, bytes, piece_bytes, pieces);
                block.aio_buf = pieces.as_ptr() as u64;
                block.aio_nbytes = pieces.len() as u64;
                CMD_PREADV
            }
        };
    }

    /// Hands over all staged; what the kernel refuses one by one is completed with its error.
    fn submit_all(&mut self) -> Result<(), IoError> {
        let mut naps = 0;
        loop {
            let left = self.slots.staged().len();
            if left == 0 {
                return Ok(());
            }
            self.pointers.clear();
            for &slot in self.slots.staged() {
                self.pointers.push(&raw mut self.blocks[slot as usize]);
            }
            // SAFETY: the control blocks and the buffers they name are owned by `self`; a slot's block and buffer are
            // not touched until its completion, and dropping destroys the context before freeing them.
            let result = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context.0, left, self.pointers.as_mut_ptr())
            };
            if result > 0 {
                self.slots.launch(result as u32);
                continue;
            }
            match if result == 0 { libc::EAGAIN } else { last_errno() } {
                libc::EINTR => {}
                libc::EAGAIN if self.waited_for() < self.slots.in_flight() => self.collect_early()?,
                libc::EAGAIN if naps < NAPS_MAX => {
                    naps += 1;
                    clock::sleep(Nanos::millis(1));
                }
                errno @ (libc::EAGAIN | libc::EFAULT | libc::ENOSYS) => {
                    return Err(broken("io_submit", errno));
                }
                errno => self.refuse_first(errno),
            }
        }
    }

    /// Completions known and not given out yet; these slots count as in flight, but nothing more will come for them.
    fn waited_for(&self) -> u32 {
        self.early.len() as u32
    }

    fn refuse_first(&mut self, errno: i32) {
        let slot = self.slots.staged()[0];
        self.early.push((self.slots.user_data(slot), -i64::from(errno)));
        self.slots.launch(1);
    }

    /// Completes a request, or hands it over once more when the kernel gave it back undone.
    #[inline]
    fn finish(&mut self, user_data: u64, result: i64, done: &mut Vec<Completion>) {
        let again =
            result < 0 && self.slots.tries_again(user_data, result) && self.hand_over_again(user_data as u32);
        if !again {
            done.push(self.slots.complete(user_data, result));
        }
    }

    /// False when the kernel does not take it: then it ends with the error that it had.
    #[cold]
    fn hand_over_again(&mut self, slot: u32) -> bool {
        let mut block = &raw mut self.blocks[slot as usize];
        // SAFETY: as in `submit_all`; the slot is in flight, its control block and buffer are untouched.
        unsafe { libc::syscall(libc::SYS_io_submit, self.context.0, 1, &raw mut block) == 1 }
    }

    fn collect_early(&mut self) -> Result<(), IoError> {
        let count = self.get_events(1)?;
        self.early.extend(self.events[..count].iter().map(|event| (event.data, event.result)));
        Ok(())
    }

    /// Waits for `min` events and takes all that are there into `self.events`; an interrupted call may bring fewer.
    fn get_events(&mut self, min: u32) -> Result<usize, IoError> {
        loop {
            // SAFETY: `events` has room for its length; without a timeout the call waits for `min`, which may be 0.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context.0,
                    libc::c_long::from(min),
                    self.events.len() as libc::c_long,
                    self.events.as_mut_ptr(),
                    std::ptr::null::<libc::timespec>(),
                )
            };
            match result {
                0.. => return Ok(result as usize),
                _ if last_errno() == libc::EINTR => {}
                _ => return Err(broken("io_getevents", last_errno())),
            }
        }
    }
}

fn broken(call: &'static str, errno: i32) -> IoError {
    IoError::from_errno(Path::new("libaio queue"), call, 0, errno)
}

impl Queue for LibaioQueue {
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
        self.fill(slot);
    }

    fn submit(&mut self) -> Result<u32, IoError> {
        let count = self.slots.staged().len() as u32;
        if count == 0 {
            return Ok(0);
        }
        self.slots.check_poison()?;
        let observed = self.counters.observes_next();
        let (begin, before) = if observed { (clock::now(), self.context.waiting()) } else { (Nanos(0), 0) };
        self.submit_all()?;
        self.counters.count_submit(count);
        if observed {
            let spent = clock::now() - begin;
            self.counters.observe(count, self.context.waiting().saturating_sub(before), spent);
        }
        Ok(count)
    }

    fn reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.counters.reap_calls += 1;
        let goal = done.len() + self.slots.reachable(min) as usize;
        let mut early = std::mem::take(&mut self.early);
        for (user_data, result) in early.drain(..) {
            self.finish(user_data, result, done);
        }
        self.early = early;
        loop {
            let count = self.get_events(goal.saturating_sub(done.len()) as u32)?;
            for index in 0..count {
                let event = self.events[index];
                self.finish(event.data, event.result, done);
            }
            if done.len() >= goal {
                return Ok(());
            }
        }
    }

    fn counters(&self) -> QueueCounters {
        self.counters
    }
    fn describe(&self) -> String {
        "libaio".into()
    }
}
