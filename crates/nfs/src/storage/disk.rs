//! An open file by plain calls: each takes one of the storage's depth-one queues, so that callers do not wait for each other.

use super::refused;
use crate::client::{File, Mount, NfsError, Queue, QueueOptions};
use crate::transfer::Stability;
use io::sim::Disk;
use io::{Access, Action, IoError, Outcome, Queue as _, Request};
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Longest transfer of one call; a longer one is several.
const CALL_BYTES: u32 = 1 << 20;
/// Idle queues that are kept.
const IDLE_MAX: usize = 8;
const EBADF: i32 = 9;
const EIO: i32 = 5;

/// Queues of depth one: made when all are in use, kept for the next caller, whatever file that is about. Where there are as many as the mount
/// allows (`channels`), callers wait for one.
pub(super) struct Callers {
    mount: Mount,
    queues: Mutex<Queues>,
    /// One is idle, or there is room for another.
    free: Condvar,
    made: AtomicUsize,
}

#[derive(Default)]
struct Queues {
    idle: Vec<Queue>,
    busy: usize,
}

impl Callers {
    pub(super) fn new(mount: Mount) -> Self {
        Self { mount, queues: Mutex::default(), free: Condvar::new(), made: AtomicUsize::new(0) }
    }

    /// Connections are spread over the paths.
    pub(super) fn next_path(&self) -> usize {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that nobody has, or a new one.
    fn take(&self) -> Result<Taken<'_>, NfsError> {
        let most = self.mount.channels_max();
        let mut queues = self.queues();
        while queues.idle.is_empty() && queues.busy >= most {
            queues = self.free.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
        queues.busy += 1;
        let mut taken = Taken { callers: self, queue: queues.idle.pop() };
        drop(queues);
        if taken.queue.is_none() {
            let options = QueueOptions { path: self.next_path(), ..QueueOptions::new(1, CALL_BYTES) };
            taken.queue = Some(self.mount.queue(options, &[])?);
        }
        Ok(taken)
    }

    /// One request about `file`; `fill` and `look` see the buffer before and after.
    fn call(
        &self,
        file: &File,
        request: Request,
        fill: impl FnOnce(&mut [u8]),
        look: impl FnOnce(&[u8], Outcome),
    ) -> Result<Outcome, NfsError> {
        let mut taken = self.take()?;
        let Some(queue) = &mut taken.queue else { return Ok(Outcome::Errno(EIO)) };
        queue.serve(Some(file));
        fill(queue.buffer_mut(0));
        queue.stage(0, request);
        let mut done = Vec::with_capacity(1);
        // A queue of this crate reports its own end as that of its requests.
        let ended = queue.submit_and_reap(1, &mut done);
        let outcome = match (ended, done.pop()) {
            (Ok(()), Some(completion)) => completion.outcome,
            _ => Outcome::Errno(EIO),
        };
        look(queue.buffer(0), outcome);
        if let (Outcome::Errno(_), Some(trouble)) = (outcome, queue.trouble()) {
            let trouble = trouble.clone();
            taken.queue = None;
            return Err(trouble);
        }
        queue.serve(None);
        Ok(outcome)
    }
}

/// A queue that a caller has; it is the next one's when this is dropped.
struct Taken<'c> {
    callers: &'c Callers,
    queue: Option<Queue>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut queues = self.callers.queues();
        queues.busy -= 1;
        let kept = self.queue.take();
        let spare = match kept {
            Some(queue) if queues.idle.len() < IDLE_MAX => {
                queues.idle.push(queue);
                None
            }
            spare => spare,
        };
        drop(queues);
        self.callers.free.notify_one();
        // Its end is told to the server, which takes a while.
        drop(spare);
    }
}

/// An open file.
pub(super) struct NfsDisk {
    path: PathBuf,
    file: File,
    access: Access,
    callers: Arc<Callers>,
    /// Error of a failed sync: what was written since the last good one is not known from then on.
    poisoned: AtomicI32,
}

impl NfsDisk {
    pub(super) fn new(path: &Path, file: File, access: Access, callers: Arc<Callers>) -> Self {
        Self { path: path.to_path_buf(), file, access, callers, poisoned: AtomicI32::new(0) }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// How far a plain write has to be.
    pub(super) fn stability(&self) -> Stability {
        if self.access.dsync { Stability::Data } else { Stability::Unstable }
    }

    /// As a result, with this file's name.
    pub(super) fn checked(
        &self,
        call: &'static str,
        offset: u64,
        bytes: usize,
        outcome: Outcome,
    ) -> Result<(), IoError> {
        outcome.check(&self.path, call, offset, bytes.try_into().unwrap_or(u32::MAX))
    }

    /// Requests of one kind, one after the other, until `bytes` are done or one ends early.
    fn transfer(
        &self,
        action: Action,
        offset: u64,
        bytes: usize,
        mut fill: impl FnMut(usize, &mut [u8]),
        mut look: impl FnMut(usize, &[u8]),
    ) -> Outcome {
        let mut done = 0;
        while done < bytes {
            let length = (bytes - done).min(CALL_BYTES as usize);
            let request = Request { file: 0, offset: offset + done as u64, bytes: length as u32, action };
            let outcome = self.callers.call(
                &self.file,
                request,
                |buffer| fill(done, &mut buffer[..length]),
                |buffer, outcome| match outcome {
                    Outcome::Full => look(done, &buffer[..length]),
                    Outcome::Short(part) => look(done, &buffer[..part as usize]),
                    Outcome::Errno(_) => {}
                },
            );
            match outcome {
                Ok(Outcome::Full) => done += length,
                Ok(Outcome::Short(part)) => return Outcome::Short((done + part as usize) as u32),
                Ok(Outcome::Errno(errno)) => return Outcome::Errno(errno),
                Err(error) => return Outcome::Errno(error.errno()),
            }
        }
        Outcome::Full
    }

    fn write(&self, action: Action, data: &[u8], offset: u64) -> Outcome {
        match self.poisoned.load(Ordering::Acquire) {
            0 if !self.access.write => Outcome::Errno(EBADF),
            0 => self.transfer(
                action,
                offset,
                data.len(),
                |done, buffer| buffer.copy_from_slice(&data[done..done + buffer.len()]),
                |_, _| {},
            ),
            errno => Outcome::Errno(errno),
        }
    }
}

impl Disk for NfsDisk {
    fn bytes(&self) -> u64 {
        self.callers.mount.attributes(&self.file).map_or(0, |attributes| attributes.size)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome {
        let bytes = buffer.len();
        let look = |done: usize, data: &[u8]| buffer[done..done + data.len()].copy_from_slice(data);
        self.transfer(Action::Read, offset, bytes, |_, _| {}, look)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Outcome {
        let action = if self.access.dsync { Action::WriteDsync } else { Action::Write };
        self.write(action, data, offset)
    }

    fn write_at_dsync(&self, data: &[u8], offset: u64) -> Outcome {
        self.write(Action::WriteDsync, data, offset)
    }

    fn sync(&self) -> Outcome {
        let before = self.poisoned.load(Ordering::Acquire);
        if before != 0 {
            return Outcome::Errno(before);
        }
        let request = Request { file: 0, offset: 0, bytes: 0, action: Action::Sync };
        let outcome = self.callers.call(&self.file, request, |_| {}, |_, _| {});
        let outcome = outcome.unwrap_or_else(|error| Outcome::Errno(error.errno()));
        if let Outcome::Errno(errno) = outcome {
            self.poisoned.store(errno, Ordering::Release);
        }
        outcome
    }

    fn as_any(self: Arc<Self>) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self)
    }
}

/// How a request ended, as a result; where nobody could be reached, with what was tried.
pub(super) fn check(
    path: &Path,
    call: &'static str,
    offset: u64,
    bytes: u32,
    outcome: Outcome,
    trouble: Option<&NfsError>,
) -> Result<(), IoError> {
    match (outcome, trouble) {
        (Outcome::Errno(_), Some(trouble)) => Err(refused(path, call, trouble)),
        _ => outcome.check(path, call, offset, bytes),
    }
}
