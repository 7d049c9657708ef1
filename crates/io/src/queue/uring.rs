//! io_uring: registered files and buffers, batched submit and reap in one system call.
//!
//! How it is set up, and why: `SINGLE_ISSUER` (one thread drives a queue, so the kernel takes no lock), `DEFER_TASKRUN`
//! (completions run when this thread asks for them, not as interruptions, and the thread is woken once per batch),
//! `COOP_TASKRUN` (the weaker form for older kernels), `NO_SQARRAY` (one indirection less). Each is dropped when the kernel
//! does not know it. The ring itself is not registered with its thread: that spares a look-up of the descriptor, but a ring that
//! ends in another thread then stays alive, with the files it holds, for as long as the thread that made it. No `SQPOLL`: a kernel thread that spins on a core would hide its cost from the comparison.
//!
//! Nothing here hides what the kernel does. A read that completes inside submit is counted as such. A direct write with
//! `O_DSYNC` is synced by a workqueue of the file system after the transfer (`iomap_dio_complete_work`), not by the
//! submitter as `pwrite` is: measured alone, 200–300 a second against 9,000. That is what a database gets, so it is shown.

use super::slots::{Slots, cut};
use super::{Action, Completion, NAPS_MAX, Queue, QueueCounters, QueueOptions, Request};
use crate::error::{IoError, last_errno};
use crate::mode::Api;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::fd::AsRawFd;
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Nanos, clock};

// linux/io_uring.h
const ENTER_GETEVENTS: u32 = 1;

/// A number that no other thread of this process has or will have. Thread ids of the system are used again.
fn thread_mark() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static MARK: Cell<u64> = const { Cell::new(0) });
    MARK.with(|mark| {
        if mark.get() == 0 {
            mark.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        mark.get()
    })
}

/// A ring and what could be registered with it. It belongs to the thread that made it, and should end there: another thread cannot take
/// back what was registered, and the kernel closes the files a little later, in its own time.
struct Ring {
    ring: IoUring,
    facts: Facts,
    owner: u64,
    /// Requests may still be in the kernel: what is registered must not be waited for.
    busy: bool,
}

/// What the kernel granted.
#[derive(Clone, Copy)]
struct Facts {
    setup: &'static str,
    fixed_buffers: bool,
}

type Setup = fn(&mut io_uring::Builder) -> &mut io_uring::Builder;

/// From best to oldest; the first that the kernel accepts is taken.
const SETUPS: [(&str, Setup); 4] = [
    ("single_issuer|defer_taskrun|no_sqarray", |b| {
        b.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun().setup_no_sqarray()
    }),
    ("single_issuer|defer_taskrun", |b| b.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun()),
    ("coop_taskrun", |b| b.setup_coop_taskrun()),
    ("plain", |b| b),
];

fn build(entries: u32) -> Result<(IoUring, &'static str), IoError> {
    let mut errno = libc::EINVAL;
    for (name, setup) in SETUPS {
        match setup(IoUring::builder().dontfork()).build(entries) {
            Ok(ring) => return Ok((ring, name)),
            Err(error) => errno = error.raw_os_error().unwrap_or(libc::EIO),
        }
        if errno != libc::EINVAL {
            break;
        }
    }
    Err(unavailable(errno))
}

fn unavailable(errno: i32) -> IoError {
    let reason = match errno {
        libc::EPERM | libc::EACCES => {
            "switched off by `sysctl kernel.io_uring_disabled` or by a seccomp profile (containers); type `sysctl kernel.io_uring_disabled=0`, or use libaio"
        }
        libc::ENOSYS => "this kernel is older than 5.1, or a sandbox hides it; use libaio",
        libc::ENOMEM => "no locked memory left; raise `ulimit -l`, or use libaio",
        libc::EMFILE | libc::ENFILE => "no file descriptors left; raise `ulimit -n`",
        libc::EINVAL => "the kernel refused the queue's size; use fewer requests in flight",
        _ => "its set-up failed; use libaio or threads",
    };
    IoError::ApiUnavailable { api: Api::IoUring, errno, reason }
}

pub(super) fn probe() -> Result<(), IoError> {
    build(1).map(drop)
}

impl Ring {
    fn new(slots: &Slots) -> Result<Self, IoError> {
        let (ring, setup) = build(slots.depth())?;
        let files: Vec<i32> = slots.files().iter().map(|file| file.as_fd().as_raw_fd()).collect();
        let buffers: Vec<libc::iovec> = (0..slots.depth())
            .map(|slot| libc::iovec {
                iov_base: slots.address(slot).cast(),
                iov_len: (slots.buffer_bytes() as usize).max(1),
            })
            .collect();
        ring.submitter()
            .register_files(&files)
            .map_err(|e| unavailable(e.raw_os_error().unwrap_or(libc::EIO)))?;
        // Fails beyond RLIMIT_MEMLOCK, or with more buffers than the kernel takes: then the plain opcodes do.
        // SAFETY: the buffers belong to `slots`, which outlives the ring (see `UringQueue`).
        let fixed_buffers = unsafe { ring.submitter().register_buffers(&buffers) }.is_ok();
        let facts = Facts { setup, fixed_buffers };
        Ok(Self { ring, facts, owner: thread_mark(), busy: false })
    }

    /// One `io_uring_enter`. The result is the number of entries taken, or an error number.
    fn enter(&self, to_submit: u32, min: u32, flags: u32) -> Result<u32, i32> {
        // SAFETY: the ring is ours, and its entries name buffers that the slot table lends to the kernel until their
        // completion; there is no argument.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.ring.as_raw_fd(),
                to_submit,
                min,
                flags,
                std::ptr::null::<libc::c_void>(),
                0,
            )
        };
        if result < 0 { Err(last_errno()) } else { Ok(result as u32) }
    }

    fn waiting(&mut self) -> u32 {
        self.ring.completion().len() as u32
    }
}

impl Drop for Ring {
    /// Gives files and buffers back here and now: after a close, a kernel worker does it at some later time, and until
    /// then a file system cannot be unmounted and a device stays claimed.
    fn drop(&mut self) {
        if self.owner != thread_mark() {
            return;
        }
        if !self.busy {
            let _ = self.ring.submitter().unregister_files();
            if self.facts.fixed_buffers {
                let _ = self.ring.submitter().unregister_buffers();
            }
        }
    }
}

pub(super) struct UringQueue {
    // Declared first: closed before the buffers in `slots` are freed. None until the first call of the thread that drives.
    ring: Option<Ring>,
    /// Of the ring that is, or of the one that was tried when the queue was opened.
    facts: Facts,
    slots: Slots,
    pieces: Box<[Vec<libc::iovec>]>,
    /// Entries pushed into the submission ring and not taken by the kernel yet.
    pushed: u32,
    /// Slots in flight whose request the kernel gave back undone, to be handed over once more.
    again: Vec<u32>,
    /// The ring broke before it took `again`: some slots in flight will never complete.
    lost: bool,
    counters: QueueCounters,
}

// SAFETY: `pieces` points into buffers that `slots` owns; nothing is shared. The ring is replaced when the queue is
// driven by another thread than the one that made it.
unsafe impl Send for UringQueue {}

impl UringQueue {
    /// A ring is made here only to see what the kernel grants, and ends here; the real one is made by the thread that
    /// drives the queue.
    pub(super) fn new(options: QueueOptions) -> Result<Self, IoError> {
        let slots = Slots::new(&options)?;
        Ok(Self {
            ring: None,
            facts: Ring::new(&slots)?.facts,
            pieces: vec![Vec::new(); options.depth as usize].into(),
            slots,
            pushed: 0,
            again: Vec::new(),
            lost: false,
            counters: QueueCounters::default(),
        })
    }

    /// A ring with one issuer obeys only the thread that made it: the first call on a thread makes one there. A queue that
    /// was driven elsewhere before leaves its old ring to that thread's end.
    #[inline]
    fn adopt(&mut self) -> Result<(), IoError> {
        match &self.ring {
            Some(ring) if ring.owner == thread_mark() => Ok(()),
            _ => self.move_here(),
        }
    }

    fn ring(&mut self) -> &mut Ring {
        self.ring.as_mut().expect("adopted before")
    }

    #[cold]
    fn move_here(&mut self) -> Result<(), IoError> {
        assert!(self.slots.in_flight() == 0, "a queue was moved to another thread with requests in flight");
        assert!(self.pushed == 0);
        self.ring = None;
        let ring = Ring::new(&self.slots)?;
        self.facts = ring.facts;
        self.ring = Some(ring);
        Ok(())
    }

    /// Writes an entry for each staged request into the submission ring; the result is how many there are.
    #[inline]
    fn push_staged(&mut self) -> u32 {
        let Self { ring: Some(ring), slots, pieces, .. } = self else { unreachable!("adopted before") };
        let count = slots.staged().len() as u32;
        let mut submission = ring.ring.submission();
        for &slot in &slots.staged()[self.pushed as usize..] {
            let entry = entry(slots, &mut pieces[slot as usize], ring.facts.fixed_buffers, slot);
            // SAFETY: the entry names a slot's buffer and pieces, which stay where they are and are not touched until
            // the slot is completed; dropping drains before it frees.
            unsafe { submission.push(&entry) }.expect("the ring has room for every slot");
        }
        drop(submission);
        self.pushed = count;
        count
    }

    /// Enters until the kernel has taken all pushed entries, waiting for `min` completions with the last.
    #[inline]
    fn hand_over(&mut self, min: u32, flags: u32) -> Result<(), IoError> {
        let mut naps = 0;
        while self.pushed > 0 {
            let pushed = self.pushed;
            match self.ring().enter(pushed, min, flags) {
                Ok(taken) => {
                    self.pushed -= taken;
                    self.slots.launch(taken);
                }
                Err(errno) => self.make_room(errno, self.slots.in_flight(), &mut naps)?,
            }
        }
        Ok(())
    }

    /// The kernel took nothing: out of memory for requests, or interrupted. It holds `taken` requests. Waits for one more completion where one can
    /// come, so that its memory is free again; completions stay in their ring, which has room for twice the slots.
    #[cold]
    fn make_room(&mut self, errno: i32, taken: u32, naps: &mut u32) -> Result<(), IoError> {
        match errno {
            libc::EINTR => return Ok(()),
            libc::EAGAIN | libc::EBUSY if *naps < NAPS_MAX => {}
            _ => return Err(broken(errno)),
        }
        let waiting = self.ring().waiting();
        if taken <= waiting {
            *naps += 1;
            clock::sleep(Nanos::millis(1));
            return Ok(());
        }
        match self.ring().enter(0, waiting + 1, ENTER_GETEVENTS) {
            Ok(_) | Err(libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
            Err(errno) => Err(broken(errno)),
        }
    }

    /// Appends all completions that are in the ring; the result is how many. What the kernel gave back undone is handed
    /// over once more, but not behind entries that a broken submit left.
    #[inline]
    fn drain(&mut self, done: &mut Vec<Completion>) -> Result<u32, IoError> {
        let before = done.len();
        let Self { ring: Some(ring), slots, again, .. } = self else { unreachable!("adopted before") };
        for event in ring.ring.completion() {
            let (user_data, result) = (event.user_data(), i64::from(event.result()));
            if result < 0 && self.pushed == 0 && slots.tries_again(user_data, result) {
                again.push(user_data as u32);
            } else {
                done.push(slots.complete(user_data, result));
            }
        }
        let count = (done.len() - before) as u32;
        if !self.again.is_empty() {
            self.lost = true;
            self.hand_over_again()?;
            self.lost = false;
        }
        Ok(count)
    }

    #[cold]
    fn hand_over_again(&mut self) -> Result<(), IoError> {
        let mut left = self.again.len() as u32;
        let Self { ring: Some(ring), slots, pieces, again, .. } = self else {
            unreachable!("adopted before")
        };
        let mut submission = ring.ring.submission();
        for slot in again.drain(..) {
            let entry = entry(slots, &mut pieces[slot as usize], ring.facts.fixed_buffers, slot);
            // SAFETY: as in `push_staged`; the slot is in flight and its buffer untouched.
            unsafe { submission.push(&entry) }.expect("the ring has room for every slot");
        }
        drop(submission);
        let mut naps = 0;
        while left > 0 {
            match self.ring().enter(left, 0, 0) {
                Ok(taken) => left -= taken,
                Err(errno) => self.make_room(errno, self.slots.in_flight() - left, &mut naps)?,
            }
        }
        Ok(())
    }

    /// Drains, and waits until `goal` have come.
    #[inline]
    fn collect(&mut self, goal: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        let mut got = self.drain(done)?;
        while got < goal {
            match self.ring().enter(0, goal - got, ENTER_GETEVENTS) {
                Ok(_) | Err(libc::EINTR | libc::EAGAIN | libc::EBUSY) => got += self.drain(done)?,
                Err(errno) => return Err(broken(errno)),
            }
        }
        Ok(())
    }
}

fn broken(errno: i32) -> IoError {
    IoError::from_errno(Path::new("io_uring queue"), "io_uring_enter", 0, errno)
}

#[inline]
fn entry(slots: &Slots, pieces: &mut Vec<libc::iovec>, fixed: bool, slot: u32) -> squeue::Entry {
    let Request { file, offset, bytes, action } = slots.request(slot);
    let file = types::Fixed(file);
    let address = slots.address(slot);
    let index = slot as u16;
    let entry = match action {
        Action::Read if fixed => opcode::ReadFixed::new(file, address, bytes, index).offset(offset).build(),
        Action::Read => opcode::Read::new(file, address, bytes).offset(offset).build(),
        Action::ReadVectored { piece_bytes } => {
            cut(address, bytes, piece_bytes, pieces);
            opcode::Readv::new(file, pieces.as_ptr(), pieces.len() as u32).offset(offset).build()
        }
        Action::Write | Action::WriteDsync => {
            let flags = if action == Action::WriteDsync { libc::RWF_DSYNC } else { 0 };
            if fixed {
                opcode::WriteFixed::new(file, address, bytes, index).offset(offset).rw_flags(flags).build()
            } else {
                opcode::Write::new(file, address, bytes).offset(offset).rw_flags(flags).build()
            }
        }
        Action::Sync => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
    };
    entry.user_data(slots.user_data(slot))
}

impl Queue for UringQueue {
    fn depth(&self) -> u32 {
        self.slots.depth()
    }
    fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }
    #[inline]
    fn buffer(&self, slot: u32) -> &[u8] {
        self.slots.buffer(slot)
    }
    #[inline]
    fn buffer_mut(&mut self, slot: u32) -> &mut [u8] {
        self.slots.buffer_mut(slot)
    }
    #[inline]
    fn stage(&mut self, slot: u32, request: Request) {
        self.slots.stage(slot, request);
    }

    fn submit(&mut self) -> Result<u32, IoError> {
        if self.slots.staged().is_empty() {
            return Ok(0);
        }
        self.slots.check_poison()?;
        self.adopt()?;
        let observed = self.counters.observes_next();
        let (begin, before) = if observed { (clock::now(), self.ring().waiting()) } else { (Nanos(0), 0) };
        let count = self.push_staged();
        self.hand_over(0, 0)?;
        self.counters.count_submit(count);
        if observed {
            let spent = clock::now() - begin;
            let completed = self.ring().waiting() - before;
            self.counters.observe(count, completed, spent);
        }
        Ok(count)
    }

    fn reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.counters.reap_calls += 1;
        self.adopt()?;
        if self.slots.in_flight() == 0 {
            return Ok(());
        }
        if min == 0 && self.ring().waiting() == 0 {
            // Deferred completions are posted only when this thread enters and asks for them.
            let _ = self.ring().enter(0, 0, ENTER_GETEVENTS);
        }
        self.collect(self.slots.reachable(min), done)
    }

    fn submit_and_reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        if self.slots.staged().is_empty() || self.counters.observes_next() {
            self.submit()?;
            return self.reap(min, done);
        }
        self.slots.check_poison()?;
        self.adopt()?;
        let count = self.push_staged();
        let min = min.min(self.slots.in_flight() + count);
        self.hand_over(min, ENTER_GETEVENTS)?;
        self.counters.count_submit(count);
        self.counters.reap_calls += 1;
        self.collect(min, done)
    }

    fn counters(&self) -> QueueCounters {
        self.counters
    }

    fn describe(&self) -> String {
        let word = |registered| if registered { "registered" } else { "plain" };
        let Facts { setup, fixed_buffers } = self.facts;
        format!("io_uring {setup}, registered files, {} buffers", word(fixed_buffers))
    }
}

impl UringQueue {
    /// Cancels and waits for the rest. False when that cannot be done.
    fn drain_all(&mut self) -> bool {
        let _ = self.ring().ring.submitter().register_sync_cancel(None, types::CancelBuilder::any());
        let mut done = Vec::with_capacity(self.slots.depth() as usize);
        while self.slots.in_flight() > 0 {
            if self.collect(1, &mut done).is_err() {
                return false;
            }
        }
        true
    }
}

impl Drop for UringQueue {
    /// Only its own thread can wait for a ring, a broken one cannot be waited for, and a panic must not hang on a device
    /// that never answers. The kernel may then go on writing to the buffers: so they are never given back.
    fn drop(&mut self) {
        if self.slots.in_flight() == 0 {
            return;
        }
        let ours = self.ring.as_ref().is_some_and(|ring| ring.owner == thread_mark());
        if !ours || self.lost || std::thread::panicking() || !self.drain_all() {
            self.slots.leak_memory();
            if let Some(ring) = &mut self.ring {
                ring.busy = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! What no real kernel does on demand.

    use super::*;
    use crate::file::File;
    use crate::mode::Access;
    use std::sync::Arc;

    #[test]
    fn a_request_handed_over_again_completes_once() {
        let folder = crate::testing::folder();
        let access = Access { read: true, write: true, direct: false, dsync: false };
        let file = Arc::new(File::create_new(&folder.path().join("file"), access).unwrap());
        assert!(file.write_at(&[7; 4096], 0).is_full());
        let mut queue = UringQueue::new(QueueOptions::new(1, 4096, vec![file])).unwrap();
        queue.stage(0, Request { file: 0, offset: 0, bytes: 4096, action: Action::Read });
        queue.submit().unwrap();
        queue.ring().enter(0, 1, ENTER_GETEVENTS).unwrap();
        // As `drain` does when this completion says EAGAIN.
        assert_eq!(queue.ring().ring.completion().count(), 1);
        queue.again.push(0);
        queue.hand_over_again().unwrap();
        let mut done = Vec::new();
        queue.reap(1, &mut done).unwrap();
        assert_eq!(done.len(), 1);
        assert!(done[0].outcome.is_full() && queue.buffer(0) == [7; 4096]);
        assert_eq!(queue.in_flight(), 0);
    }

    #[test]
    fn a_queue_that_ends_in_another_thread_lets_go_of_its_files() {
        let folder = crate::testing::folder();
        let path = folder.path().join("file");
        let access = Access { read: true, write: true, direct: false, dsync: false };
        let file = Arc::new(File::create_new(&path, access).unwrap());
        assert!(file.write_at(&[7; 4096], 0).is_full());
        let mut queue = UringQueue::new(QueueOptions::new(1, 4096, vec![file])).unwrap();
        queue.stage(0, Request { file: 0, offset: 0, bytes: 4096, action: Action::Read });
        queue.submit().unwrap();
        queue.reap(1, &mut Vec::new()).unwrap();
        std::thread::spawn(move || drop(queue)).join().unwrap();
        // A lease for writing is granted when nobody else has the file open, the kernel itself included.
        let alone = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        // SAFETY: no memory is passed.
        let granted = || unsafe { libc::fcntl(alone.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) } == 0;
        let until = clock::now() + Nanos::secs(20.0);
        while !granted() {
            assert!(
                clock::now() < until,
                "the ring still holds the file: {}",
                std::io::Error::last_os_error()
            );
            clock::sleep(Nanos::millis(20));
        }
    }
}
