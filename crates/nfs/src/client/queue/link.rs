//! A worker's connection, and in 4.1 its session: made, lost, made again.

use super::super::caller::{Caller, Trouble};
use super::super::connection::Connection;
use super::super::control::{CONNECT_MAX, Way, pause};
use super::super::error::NfsError;
use super::super::identity::{HEAD_BYTES, bind_session, data_session, end_session};
use super::super::layouts::DataServer;
use super::super::mount::{CLOSE_MAX, Shared};
use super::super::target::{Path, Version};
use crate::rpc::xid::Xids;
use crate::v4::identity::Created;
use crate::v4::recovery::{Remedy, remedy};
use crate::v4::session::{SessionId, Slots};
use crate::v4::transfer::InSession;
use crate::{Fault, Status};
use std::sync::atomic::Ordering;
use units::{Nanos, Seed, clock};

/// Longest that a data server may take to let us in: the server that was mounted has all that it has.
const DATA_CONNECT_MAX: Nanos = Nanos::millis(1_000);

pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) session: Option<Session>,
    /// Which of the target's paths it goes by.
    pub(super) path: usize,
    /// Of the client id that files are open for.
    pub(super) generation: u64,
    /// Whether calls can be repeated in the places that they had before. The name of a session does not tell: a server that was
    /// restarted within the second gives the same one again.
    pub(super) kept: bool,
    /// The client id, where it is this link's alone.
    client: Option<u64>,
}

/// The session of one worker; nobody else uses its slots.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) slots: Slots,
    /// Slots without a call.
    pub(super) free: Vec<u32>,
    /// Longest payloads, bytes.
    pub(super) read_max: u32,
    pub(super) write_max: u32,
}

impl Before {
    /// There was none.
    pub(super) const fn nothing() -> Self {
        Self { session: None, path: 0, lost: Remedy::None, generation: None }
    }
}

/// What was there before a link is made again.
pub(super) struct Before {
    pub(super) session: Option<Session>,
    /// The path to try first.
    pub(super) path: usize,
    /// What the server has forgotten, as far as it said.
    pub(super) lost: Remedy,
    /// Of the client id, as this worker knew it.
    pub(super) generation: Option<u64>,
}

impl Link {
    /// Makes a link for `depth` requests at once; it is tried for `patience`, and once at least by each path. What `before` had is kept as far as the
    /// server still knows it: then calls can be repeated in their slots.
    pub(super) fn make(
        shared: &Shared,
        depth: u32,
        mut before: Before,
        patience: Nanos,
    ) -> Result<Self, NfsError> {
        let way = &shared.way;
        let begin = clock::now();
        let deadline = begin + patience.max(Nanos(CONNECT_MAX.0 * way.target.paths.len() as u64));
        let mut tries = 0;
        loop {
            let last = match attempt(shared, depth, &mut before, deadline) {
                Ok(link) => {
                    shared.era.fetch_add(1, Ordering::AcqRel);
                    return Ok(link);
                }
                Err(Trouble::Rpc(refusal)) => return Err(way.refused(refusal)),
                Err(Trouble::Lost(why)) => why,
                Err(Trouble::Fault(fault)) => match fault.status().map(remedy) {
                    None | Some(Remedy::None | Remedy::Open) => return Err(way.of_export(fault)),
                    Some(remedy) => {
                        before.lost = before.lost.max(remedy);
                        fault.to_string()
                    }
                },
            };
            if clock::now() >= begin + patience {
                return Err(way.unreachable(last));
            }
            clock::sleep(pause(tries));
            tries += 1;
        }
    }
}

impl Link {
    /// Makes a link to a data server: by the first of its addresses that answers, within a second.
    pub(super) fn data(shared: &Shared, server: &DataServer, depth: u32) -> Result<Self, Trouble> {
        let way = &shared.way;
        let deadline = clock::now() + DATA_CONNECT_MAX;
        let mut connected = Err(Trouble::Lost("no address".into()));
        for address in &server.addresses {
            let path = Path { remote: address.ip(), local: None };
            match Connection::open(&path, address.port(), deadline, way) {
                Ok(connection) => {
                    connected = Ok(connection);
                    break;
                }
                Err(error) => connected = Err(error.into()),
            }
        }
        let connection = connected?;
        if server.v3 {
            return Ok(Self { connection, session: None, path: 0, generation: 0, kept: false, client: None });
        }
        let mut caller = Caller::new(connection);
        let mut owner = shared.owner.clone();
        owner.name.extend_from_slice(format!(" {:016x}", shared.draw()).as_bytes());
        let (client, created) = data_session(&mut caller, way, &owner, depth, deadline)?;
        let session = Some(Session::new(shared, &created, depth)?);
        let client = Some(client);
        Ok(Self { connection: caller.connection, session, path: 0, generation: 0, kept: false, client })
    }

    /// For templates.
    pub(super) fn in_session(&self) -> InSession {
        self.session.as_ref().map(|session| (session.id, session.slots.count() - 1))
    }

    /// Gives the session back, as far as the server still listens.
    pub(super) fn end(self, way: &Way) {
        if let Some(session) = self.session {
            let deadline = clock::now() + CLOSE_MAX;
            end_session(&mut Caller::new(self.connection), way, session.id, self.client, deadline);
        }
    }
}

/// 1. the connection, 2. the client id where the server has forgotten it, 3. the session: kept, or a new one.
fn attempt(shared: &Shared, depth: u32, before: &mut Before, deadline: Nanos) -> Result<Link, Trouble> {
    let way = &shared.way;
    let (path, connection) = way.connect(before.path, way.target.port, deadline).map_err(Trouble::Lost)?;
    before.path = path;
    if way.target.version == Version::V3 {
        return Ok(Link { connection, session: None, path, generation: 0, kept: true, client: None });
    }
    if before.lost == Remedy::Client {
        introduce_again(shared, before.generation)?;
        before.lost = Remedy::Session;
    }
    let generation = shared.control().identity.generation;
    before.generation = Some(generation);
    if way.target.version == Version::V40 {
        return Ok(Link { connection, session: None, path, generation, kept: true, client: None });
    }
    let mut caller = Caller::new(connection);
    if let Some(session) = &before.session
        && before.lost < Remedy::Session
    {
        bind_session(&mut caller, way, session.id, deadline)?;
        let session = before.session.take();
        return Ok(Link {
            connection: caller.connection,
            session,
            path,
            generation,
            kept: true,
            client: None,
        });
    }
    before.session = None;
    let session = new_session(shared, &mut caller, depth, deadline)?;
    let session = Some(session);
    Ok(Link { connection: caller.connection, session, path, generation, kept: false, client: None })
}

/// Has the mount make a new client id, unless somebody has done so since `generation`, and reclaim files.
fn introduce_again(shared: &Shared, generation: Option<u64>) -> Result<(), Trouble> {
    let mut control = shared.control();
    if generation.is_none_or(|ours| ours == control.identity.generation) {
        control.identity.lose(Remedy::Client);
    }
    match control.perform("EXCHANGE_ID", shared.way.limit, |control, deadline| control.introduce(deadline)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(fault)) => Err(fault.into()),
        Err(error) => Err(Trouble::Lost(error.to_string())),
    }
}

fn new_session(
    shared: &Shared,
    caller: &mut Caller,
    depth: u32,
    deadline: Nanos,
) -> Result<Session, Trouble> {
    let mut control = shared.control();
    let created = control.make_session(caller, depth, false, deadline)?;
    drop(control);
    Session::new(shared, &created, depth)
}

impl Session {
    fn new(shared: &Shared, created: &Created, depth: u32) -> Result<Self, Trouble> {
        let payload = |bytes: u32, max: u32| bytes.saturating_sub(HEAD_BYTES).min(max);
        let read_max = payload(created.fore.response_bytes, shared.root.read_max);
        let write_max = payload(created.fore.request_bytes, shared.root.write_max);
        if read_max == 0 || write_max == 0 {
            return Err(Fault::Refused { status: Status::TOOSMALL, call: "CREATE_SESSION" }.into());
        }
        let count = created.fore.slots.min(depth);
        Ok(Session {
            id: created.session,
            slots: Slots::new(count),
            free: (0..count).rev().collect(),
            read_max,
            write_max,
        })
    }

    /// The call in `slot` has its reply.
    pub(super) fn ended(&mut self, slot: u32, begun: bool) {
        if begun {
            self.slots.answered(slot);
        } else {
            self.slots.not_begun(slot);
        }
        self.free.push(slot);
    }
}

/// Numbers for the calls of `depth` slots.
pub(super) fn numbers(depth: u32) -> Xids {
    Xids::new(depth, Seed::draw())
}
