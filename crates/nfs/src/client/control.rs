//! What a mount does one call at a time: find, open, close, make, remove; and what it knows of the server. Behind a lock; transfers do
//! not come here.

use super::alerts::Alerts;
use super::caller::{Caller, Trouble};
use super::connection::Connection;
use super::error::NfsError;
use super::file::FileState;
use super::identity::Identity;
use super::keeper::Bell;
use super::mount::Shared;
use super::seen::Seen;
use super::target::{Target, Version};
use crate::rpc::Procedure;
use crate::rpc::call::Credential;
use crate::rpc::reply::Refusal;
use crate::v4::layout::LayoutKind;
use crate::v4::recovery::{Remedy, remedy};
use crate::xdr::{Reader, Writer};
use crate::{Fault, Handle, Status, v3};
use std::sync::{Arc, Weak};
use units::{Nanos, clock};

/// Longest that one path may take to connect.
pub(super) const CONNECT_MAX: Nanos = Nanos::millis(3_000);
/// Pauses before the next attempt: the first, and the longest.
const PAUSE_MIN: Nanos = Nanos::millis(20);
const PAUSE_MAX: Nanos = Nanos::millis(500);

/// How to reach a server, as whom, and for how long to try.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) target: Target,
    pub(super) credential: Credential,
    /// Longest that a call is tried before it is an error.
    pub(super) limit: Nanos,
    /// Longest that one answer is waited for before the connection is given up.
    pub(super) silence: Nanos,
    /// Longest payload, bytes.
    pub(super) payload_bytes_max: u32,
    /// Whether packets leave by the peer's own network alone.
    pub(super) dont_route: bool,
    pub(super) alerts: Alerts,
    pub(super) seen: Seen,
}

/// What the server allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) handle: Handle,
    pub(super) read_max: u32,
    pub(super) write_max: u32,
    /// Which layouts it gives; none where none are wanted.
    pub(super) layouts: Option<LayoutKind>,
}

pub(super) struct Control {
    pub(super) way: Arc<Way>,
    pub(super) caller: Option<Caller>,
    /// The path that it goes by.
    pub(super) path: usize,
    /// Whose it is; until that is made, nobody's.
    pub(super) shared: Weak<Shared>,
    /// Of version 4.
    pub(super) identity: Identity,
    pub(super) root: Option<Root>,
    /// Open files, for reclaiming.
    pub(super) files: Vec<Arc<FileState>>,
    /// Times that the connection was made anew.
    pub(super) reconnects: u64,
    /// Whom to tell of another connection.
    pub(super) bell: Option<Arc<Bell>>,
}

impl Way {
    /// Connects by the first path that answers, `first` before the others. Result: the path's index, too.
    pub(super) fn connect(
        &self,
        first: usize,
        port: u16,
        deadline: Nanos,
    ) -> Result<(usize, Connection), String> {
        let paths = &self.target.paths;
        let mut tried = Vec::new();
        for index in (0..paths.len()).map(|n| (first + n) % paths.len()) {
            let limit = deadline.min(clock::now() + CONNECT_MAX);
            match Connection::open(&paths[index], port, limit, self) {
                Ok(connection) => return Ok((index, connection)),
                Err(error) => tried.push(format!("{} port {port}: {error}", paths[index])),
            }
        }
        Err(tried.join("; "))
    }

    pub(super) fn unreachable(&self, tried: String) -> NfsError {
        NfsError::Unreachable { server: self.target.server.clone(), tried }
    }

    /// What a refused call means: of NFS itself, that the version is not there.
    pub(super) fn refused(&self, refusal: Refusal) -> NfsError {
        let server = self.target.server.clone();
        match refusal {
            Refusal::NoProgram | Refusal::Versions { .. } => {
                NfsError::Version { server, wanted: self.target.version, said: refusal.to_string() }
            }
            _ => NfsError::Rpc { server, refusal },
        }
    }

    /// What a fault of something that concerns the whole export means.
    pub(super) fn of_export(&self, fault: Fault) -> NfsError {
        let (server, export) = (self.target.server.clone(), self.target.export.clone());
        let (uid, gid) = self.credential.ids();
        match fault {
            Fault::Malformed(malformed) => NfsError::Malformed { server, malformed },
            Fault::Refused { status: Status::MINOR_VERS_MISMATCH, .. } => {
                NfsError::Version { server, wanted: self.target.version, said: fault.to_string() }
            }
            Fault::Refused { status: Status::NOENT | Status::NOTDIR | Status::INVAL, .. } => {
                NfsError::NoExport { server, export, fault }
            }
            Fault::Refused { .. } => NfsError::Denied { server, export, fault, uid, gid },
        }
    }
}

/// The pause before attempt number `attempt` is repeated: it doubles.
pub(super) fn pause(attempt: u32) -> Nanos {
    Nanos(PAUSE_MIN.0 << attempt.min(10)).min(PAUSE_MAX)
}

impl Control {
    pub(super) fn new(way: Arc<Way>, identity: Identity) -> Self {
        Self {
            way,
            caller: None,
            path: 0,
            shared: Weak::new(),
            identity,
            root: None,
            files: Vec::new(),
            reconnects: 0,
            bell: None,
        }
    }

    /// The connection, made where there is none.
    pub(super) fn caller(&mut self, deadline: Nanos) -> Result<&mut Caller, Trouble> {
        if self.caller.is_none() {
            let (port, count) = (self.way.target.port, self.way.target.paths.len());
            let first = self.shared.upgrade().map_or(0, |shared| shared.paths.first());
            let (path, connection) = self.way.connect(first, port, deadline).map_err(Trouble::Lost)?;
            let tried = (path + count - first) % count;
            (0..tried).for_each(|n| self.broke((first + n) % count));
            let caller = Caller::with(connection, self.identity.back.clone());
            self.identity.connection_is_new();
            self.go_by(path, caller, "is UP again by path");
        }
        self.caller.as_mut().ok_or_else(|| Trouble::Lost("no connection".into()))
    }

    fn go_by(&mut self, path: usize, caller: Caller, how: &str) {
        self.reconnects += 1;
        let (server, it) = (&self.way.target.server, self.way.target.paths[path]);
        self.way.alerts.say(format!("control channel to {server} {how} {it}"));
        (self.caller, self.path) = (Some(caller), path);
        self.bell.iter().for_each(|bell| bell.ring());
    }

    fn broke(&self, path: usize) {
        if let Some(shared) = self.shared.upgrade() {
            shared.paths.broke(&shared, path);
        }
    }

    /// Goes back to the first path that works, where it is on another: between two calls, so that none is disturbed. 1. the new connection, 2. in 4.1 it gets the
    /// session's way back, 3. what the server asked over the old one is answered: what comes there later, it asks again. Whether it is there.
    pub(super) fn come_home(&mut self, shared: &Arc<Shared>) -> bool {
        let (way, home) = (self.way.clone(), shared.paths.first());
        // Without a connection, the next call makes one there.
        if self.caller.is_none() || home >= self.path {
            return true;
        }
        let deadline = clock::now() + CONNECT_MAX;
        let came = Connection::open(&way.target.paths[home], way.target.port, deadline, &way)
            .map_err(Trouble::from)
            .and_then(|connection| {
                self.bound(Caller::with(connection, self.identity.back.clone()), deadline)
            });
        let Ok(caller) = came else {
            shared.paths.broke(shared, home);
            return false;
        };
        let _ = self.caller.as_mut().map(Caller::tend);
        self.go_by(home, caller, "is back at path");
        true
    }

    /// Drops the connection, for this reason.
    pub(super) fn hang_up(&mut self, why: &str) {
        if let Some(caller) = self.caller.take() {
            self.broke(self.path);
            let peer = caller.connection.peer;
            self.way
                .alerts
                .say(format!("control channel to {}, {peer}, is DOWN: {why}", self.way.target.server));
        }
    }

    /// One plain call: encode, send, wait, take apart.
    pub(super) fn call<T>(
        &mut self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer),
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Fault>,
        deadline: Nanos,
    ) -> Result<T, Trouble> {
        let mut arguments = Writer::new();
        encode(&mut arguments);
        let way = self.way.clone();
        let caller = self.caller(deadline)?;
        way.seen.called(v3::name(procedure));
        let deadline = deadline.min(clock::now() + way.silence);
        let results = caller.call(procedure, &way.credential, arguments.bytes(), deadline)?;
        Ok(read(&mut Reader::new(&results))?)
    }

    /// Tries `attempt` until it succeeds, until the server gives an answer that no remedy changes (the inner result), or until the
    /// limit is over. What was lost is made anew in between.
    pub(super) fn perform<T>(
        &mut self,
        what: &'static str,
        limit: Nanos,
        mut attempt: impl FnMut(&mut Self, Nanos) -> Result<T, Trouble>,
    ) -> Result<Result<T, Fault>, NfsError> {
        let deadline = clock::now() + limit;
        // Who takes the connection home beside the calls finds no room between them when they are many.
        if self.path > 0
            && let Some(shared) = self.shared.upgrade()
        {
            self.come_home(&shared);
        }
        let mut tries = 0;
        loop {
            let last = match attempt(self, deadline) {
                Ok(value) => return Ok(Ok(value)),
                Err(Trouble::Rpc(refusal)) => return Err(self.way.refused(refusal)),
                Err(Trouble::Lost(why)) => {
                    self.hang_up(&why);
                    why
                }
                Err(Trouble::Fault(fault)) => match fault.status().map(remedy) {
                    None | Some(Remedy::None | Remedy::Open) => return Ok(Err(fault)),
                    Some(remedy) => {
                        self.identity.lose(remedy);
                        if remedy != Remedy::Later && tries == 0 {
                            tries = 1;
                            continue;
                        }
                        fault.to_string()
                    }
                },
            };
            let now = clock::now();
            if now >= deadline {
                self.identity.give_up();
                let server = self.way.target.server.clone();
                return Err(NfsError::TimedOut { server, what, limit, last });
            }
            clock::sleep(pause(tries).min(deadline - now));
            tries += 1;
        }
    }

    /// Connects, introduces us, and finds the export. What is not there now is an error at once.
    pub(super) fn attach(&mut self) -> Result<Root, NfsError> {
        let port = self.way.target.port;
        let (path, connection) = self
            .way
            .connect(0, port, clock::now() + self.way.limit)
            .map_err(|tried| self.way.unreachable(tried))?;
        (self.caller, self.path) = (Some(Caller::with(connection, self.identity.back.clone())), path);
        let root = match self.way.target.version {
            Version::V3 => self.attach_v3(),
            Version::V40 | Version::V41 | Version::Pnfs => self.attach_v4(),
        }?;
        self.root = Some(root);
        Ok(root)
    }
}
