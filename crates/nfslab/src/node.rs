//! One node: where it listens, what it keeps, what is wrong with it.

use crate::cluster::{Delegations, LabError, Shared, name};
use crate::connection;
use crate::counters::Counting;
use crate::interconnect::Interconnect;
use crate::replies::Replies;
use crate::store::{Budget, Store, lock};
use crate::v4::state::States;
use nfs::Status;
use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use units::{Nanos, Seed, clock};

/// Longest that a restart waits for calls that are carried out.
const STRAGGLERS_MAX: Nanos = Nanos::millis(1_000);
/// Most connections at once.
const CONNECTIONS_MAX: usize = 1024;

pub(crate) struct Node {
    pub(crate) index: usize,
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    pub(crate) interconnect: Interconnect,
    pub(crate) counters: Counting,
    pub(crate) v4: States,
    /// To calls without a session.
    pub(crate) replies: Replies,
    /// What WRITE and COMMIT say: another one after each restart.
    pub(crate) verifier: AtomicU64,
    /// Replies are lost.
    pub(crate) mute: AtomicBool,
    pub(crate) delegations: Mutex<Delegations>,
    fault: Mutex<Fault>,
    faulty: AtomicBool,
    /// By path.
    doors: Vec<Door>,
    /// Each with the path that it came by.
    connections: Mutex<HashMap<u64, (usize, TcpStream)>>,
    next_connection: AtomicU64,
}

/// An address that a node listens at.
struct Door {
    address: SocketAddr,
    /// Nobody is let in.
    closed: AtomicBool,
    accepting: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// What goes wrong with transfers.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) status: Status,
    pub(crate) times: u32,
    pub(crate) delay: Nanos,
}

impl Node {
    pub(crate) fn new(index: usize, addresses: &[SocketAddr], budget: Arc<Budget>) -> Self {
        let door = |&address| Door { address, closed: true.into(), accepting: Mutex::default() };
        Self {
            index,
            address: addresses[0],
            doors: addresses.iter().map(door).collect(),
            store: Store::new(budget),
            interconnect: Interconnect::default(),
            counters: Counting::default(),
            v4: States::new(index),
            replies: Replies::default(),
            verifier: AtomicU64::new(Seed::draw().0),
            mute: false.into(),
            delegations: Mutex::new(Delegations::None),
            fault: Mutex::new(Fault { status: Status::IO, times: 0, delay: Nanos(0) }),
            faulty: false.into(),
            connections: Mutex::default(),
            next_connection: 0.into(),
        }
    }

    /// Takes connections from `listener`, which is at the address of `path`, each with a thread of its own.
    pub(crate) fn serve(
        &self,
        shared: &Arc<Shared>,
        path: usize,
        listener: TcpListener,
    ) -> Result<(), LabError> {
        let door = &self.doors[path];
        door.closed.store(false, Ordering::Release);
        let (weak, index) = (Arc::downgrade(shared), self.index);
        let thread = std::thread::Builder::new()
            .name(format!("node {}", name(index)))
            .spawn(move || accept(&weak, index, path, &listener))
            .map_err(|error| LabError::Machine { what: "a thread".into(), error })?;
        *lock(&door.accepting) = Some(thread);
        Ok(())
    }

    /// Its addresses, by path.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.doors.iter().map(|door| door.address)
    }

    /// Closes all listeners and connections.
    pub(crate) fn cut(&self) {
        (0..self.doors.len()).for_each(|path| self.cut_path(path));
    }

    /// Closes one, and the connections that came by it.
    pub(crate) fn cut_path(&self, path: usize) {
        let door = &self.doors[path];
        if door.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // Whoever accepts looks up.
        let _ = TcpStream::connect(door.address);
        if let Some(thread) = lock(&door.accepting).take() {
            let _ = thread.join();
        }
        for (_, stream) in lock(&self.connections).values().filter(|(by, _)| *by == path) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn restore(&self, shared: &Arc<Shared>) -> Result<(), LabError> {
        (0..self.doors.len()).try_for_each(|path| self.restore_path(shared, path))
    }

    pub(crate) fn restore_path(&self, shared: &Arc<Shared>, path: usize) -> Result<(), LabError> {
        let door = &self.doors[path];
        if !door.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let what = || format!("listening at {}", door.address);
        let listener =
            TcpListener::bind(door.address).map_err(|error| LabError::Machine { what: what(), error })?;
        self.serve(shared, path, listener)
    }

    /// What a restart takes away.
    pub(crate) fn forget(&self) {
        // Nobody begins anything any more by a connection of before.
        self.v4.forget();
        // Those who are still at something have nobody to answer any more; what they do has to be over before.
        let patience = clock::now() + STRAGGLERS_MAX;
        while !lock(&self.connections).is_empty() && clock::now() < patience {
            clock::sleep(Nanos::millis(1));
        }
        // What they did is lost now: a reply that said so and was kept would be the answer to the same call after the restart.
        self.replies.forget();
        self.store.lose();
        self.verifier.store(Seed::draw().0, Ordering::Release);
    }

    pub(crate) fn set_fault(&self, change: impl FnOnce(&mut Fault)) {
        let mut fault = lock(&self.fault);
        change(&mut fault);
        self.faulty.store(fault.times > 0 || fault.delay > Nanos(0), Ordering::Release);
    }

    /// What is wrong happens to a transfer.
    pub(crate) fn suffer(&self) -> Result<(), Status> {
        if !self.faulty.load(Ordering::Acquire) {
            return Ok(());
        }
        let (mut failed, mut delay) = (None, Nanos(0));
        self.set_fault(|fault| {
            delay = fault.delay;
            if fault.times > 0 {
                fault.times -= 1;
                failed = Some(fault.status);
            }
        });
        if delay > Nanos(0) {
            let boot = self.v4.boot();
            clock::sleep(delay);
            // What was asked of a node before its restart is not done after it.
            if self.v4.boot() != boot {
                return Err(Status::IO);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Gone with its thread.
    pub(crate) fn forget_connection(&self, id: u64) {
        lock(&self.connections).remove(&id);
    }
}

fn accept(shared: &Weak<Shared>, index: usize, path: usize, listener: &TcpListener) {
    while let Ok((stream, _)) = listener.accept() {
        let Some(shared) = shared.upgrade() else { return };
        let node = &shared.nodes[index];
        if node.doors[path].closed.load(Ordering::Acquire) {
            return;
        }
        let mut connections = lock(&node.connections);
        let Ok(copy) = stream.try_clone() else { continue };
        if connections.len() >= CONNECTIONS_MAX {
            continue;
        }
        let id = node.next_connection.fetch_add(1, Ordering::Relaxed);
        connections.insert(id, (path, copy));
        drop(connections);
        let thread = std::thread::Builder::new().name(format!("node {} {id}", name(index)));
        let weak = Arc::downgrade(&shared);
        // Without a thread the stream is closed again, and the client comes back.
        if thread.spawn(move || connection::run(&weak, index, id, stream)).is_err() {
            node.forget_connection(id);
        }
    }
}
