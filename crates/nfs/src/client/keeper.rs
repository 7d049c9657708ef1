//! The thread of a mount of version 4, `nfsk`: answers what the server asks over the control connection, renews the lease, gives back what nobody asked
//! for, and follows the data. It sleeps until one of them is due.

use super::connection::wait_for;
use super::error::NfsError;
use super::mount::Shared;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use units::{Nanos, clock};

/// Longest that a renewal is tried at once; whoever wants something of the server meanwhile waits.
const RENEW_MAX: Nanos = Nanos::millis(5_000);
/// How soon it is tried again after it failed.
const RENEW_AGAIN: Nanos = Nanos::millis(1_000);
/// How soon a delegation is given back again that the server has no time for.
const RETURN_AGAIN: Nanos = Nanos::millis(20);

pub(super) struct Keeper {
    thread: JoinHandle<()>,
    bell: Arc<Bell>,
    task: Sender<Weak<Shared>>,
}

/// Wakes the keeper: to end, or because there is another connection to look after.
pub(super) struct Bell {
    wake: OwnedFd,
    ends: AtomicBool,
}

impl Bell {
    pub(super) fn new() -> Result<Self, NfsError> {
        let refused = |errno: rustix::io::Errno| NfsError::Machine {
            what: "an event descriptor",
            error: std::io::Error::from(errno).to_string(),
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(refused)?;
        Ok(Self { wake, ends: AtomicBool::new(false) })
    }

    /// Is readable when it has rung.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// It has been heard.
    pub(super) fn still(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }

    pub(super) fn ring(&self) {
        // It is full only when it has rung already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// Tells a keeper what to keep.
pub(super) struct Task(Sender<Weak<Shared>>);

impl Task {
    pub(super) fn keep(self, shared: &Arc<Shared>) {
        // The keeper waits for it; it is gone only when the process ends.
        let _ = self.0.send(Arc::downgrade(shared));
    }
}

impl Keeper {
    pub(super) fn start() -> Result<Self, NfsError> {
        let refused = |what, error: std::io::Error| NfsError::Machine { what, error: error.to_string() };
        let bell = Arc::new(Bell::new()?);
        let (task, tasks) = channel();
        let its = bell.clone();
        let thread = std::thread::Builder::new()
            .name("nfsk".into())
            .spawn(move || run(&tasks, &its))
            .map_err(|error| refused("a thread", error))?;
        Ok(Self { thread, bell, task })
    }

    pub(super) fn bell(&self) -> Arc<Bell> {
        self.bell.clone()
    }

    pub(super) fn task(&self) -> Task {
        Task(self.task.clone())
    }

    /// Ends the thread, and waits for it; called on the thread itself, it ends by itself.
    pub(super) fn stop(self) {
        self.bell.ends.store(true, Ordering::Release);
        self.bell.ring();
        drop(self.task);
        if self.thread.thread().id() != std::thread::current().id() {
            let _ = self.thread.join();
        }
    }
}

fn run(tasks: &Receiver<Weak<Shared>>, bell: &Bell) {
    let Ok(shared) = tasks.recv() else { return };
    let (mut stream, mut due): (Option<Arc<TcpStream>>, Nanos) = (None, clock::now());
    while !bell.ends.load(Ordering::Acquire) {
        let mut fds = vec![PollFd::from_borrowed_fd(bell.wake.as_fd(), PollFlags::IN)];
        if let Some(stream) = &stream {
            fds.push(PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN));
        }
        if wait_for(&mut fds, due).is_err() || bell.ends.load(Ordering::Acquire) {
            return;
        }
        bell.still();
        let Some(shared) = shared.upgrade() else { return };
        (stream, due) = tend(&shared);
    }
}

/// What to wait for next: the stream, and when the lease is due.
fn tend(shared: &Shared) -> (Option<Arc<TcpStream>>, Nanos) {
    let mut control = shared.control();
    if let Some(caller) = &mut control.caller
        && let Err(why) = caller.tend()
    {
        control.hang_up(&why.to_string());
    }
    let now = clock::now();
    let mut due = control.identity.lease.due();
    if due <= now {
        let result = control.perform("RENEW", RENEW_MAX, |control, deadline| control.renew(deadline));
        due = if matches!(result, Ok(Ok(()))) {
            control.identity.lease.due()
        } else {
            clock::now() + RENEW_AGAIN
        };
    }
    if control.caller.is_some() && !control.return_delegations(clock::now() + RENEW_MAX) {
        due = due.min(clock::now() + RETURN_AGAIN);
    }
    if let Some(next) = shared.follow(&mut control) {
        due = due.min(next);
    }
    (control.caller.as_ref().map(|caller| caller.connection.stream()), due)
}
