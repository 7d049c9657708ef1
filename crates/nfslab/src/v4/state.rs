//! What a node remembers of clients of version 4: sessions and their slots, open files, layouts.

use super::delegation::Delegation;
use crate::connection::Line;
use crate::store::lock;
use nfs::Status;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use units::{Nanos, Seed, clock};

/// Most clients, and sessions of all of them.
const CLIENTS_MAX: usize = 1024;
const SESSIONS_MAX: usize = 4096;
/// Most open files.
const OPENS_MAX: usize = 100_000;
/// Most slots of a session.
pub(super) const SLOTS_MAX: u32 = 1024;

/// Those of one node.
pub(crate) struct States {
    node: usize,
    /// Of this start of the node: what was given before is stale.
    boot: AtomicU32,
    next: AtomicU64,
    pub(super) clients: Mutex<HashMap<u64, Arc<Client>>>,
    sessions: RwLock<HashMap<[u8; 16], Arc<Session>>>,
    opens: RwLock<HashMap<u64, Opened>>,
    pub(super) delegations: Mutex<HashMap<u64, Delegation>>,
}

pub(crate) struct Client {
    pub(super) id: u64,
    pub(super) owner: Vec<u8>,
    pub(super) verifier: [u8; 8],
    /// Of the last CREATE_SESSION, and what it gave.
    pub(super) created: Mutex<(u32, Vec<u8>)>,
    seen: AtomicU64,
    /// `SEQ4_STATUS_…` that it is told with each reply.
    pub(super) flags: AtomicU32,
    /// Layouts by file.
    pub(super) layouts: Mutex<HashMap<u64, Held>>,
}

/// A layout that a client holds.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) sequence: u32,
    pub(super) device: u64,
    /// What its handles are known by; they are good as long as this is.
    pub(super) grant: Arc<u64>,
}

#[derive(Clone, Copy)]
struct Opened {
    client: u64,
    file: u64,
}

pub(crate) struct Session {
    pub(super) id: [u8; 16],
    pub(super) client: Arc<Client>,
    slots: Vec<Mutex<Slot>>,
    pub(crate) back: Mutex<Back>,
    /// Held by whoever calls the client.
    pub(super) calling: Mutex<()>,
}

/// The way back to the client.
#[derive(Default)]
pub(crate) struct Back {
    pub(crate) line: Option<Weak<Line>>,
    pub(crate) program: u32,
    pub(crate) sequence: u32,
}

impl Back {
    pub(super) fn line(&self) -> Option<Arc<Line>> {
        self.line.as_ref().and_then(Weak::upgrade)
    }
}

#[derive(Default)]
struct Slot {
    sequence: u32,
    /// The last call is being carried out.
    busy: bool,
    /// Its reply; none where that was not kept.
    reply: Option<Vec<u8>>,
}

/// A call that has its slot.
pub(super) struct Begun {
    session: Arc<Session>,
    slot: usize,
    /// The reply has to be kept.
    pub(super) keep: bool,
}

impl Begun {
    /// The call is carried out; `reply` is kept.
    pub(super) fn end(&self, reply: Option<Vec<u8>>) {
        let mut slot = lock(&self.session.slots[self.slot]);
        (slot.busy, slot.reply) = (false, reply);
    }
}

impl Session {
    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// A call in `slot`: the reply that is kept, when it is the same call again, or the call's begin.
    pub(super) fn begin(
        self: &Arc<Self>,
        slot: u32,
        sequence: u32,
        keep: bool,
    ) -> Result<(Option<Vec<u8>>, Option<Begun>), Status> {
        let mut it = lock(self.slots.get(slot as usize).ok_or(Status::BADSLOT)?);
        if sequence == it.sequence && sequence != 0 {
            return match &it.reply {
                _ if it.busy => Err(Status::DELAY),
                Some(reply) => Ok((Some(reply.clone()), None)),
                None => Err(Status::RETRY_UNCACHED_REP),
            };
        }
        if sequence != it.sequence.wrapping_add(1) {
            return Err(Status::SEQ_MISORDERED);
        }
        *it = Slot { sequence, busy: true, reply: None };
        Ok((None, Some(Begun { session: self.clone(), slot: slot as usize, keep })))
    }
}

impl Client {
    pub(super) fn alive(&self) {
        self.seen.store(clock::now().0, Ordering::Relaxed);
    }

    fn expired(&self, lease_seconds: u32) -> bool {
        let until = Nanos(self.seen.load(Ordering::Relaxed)) + Nanos::millis(u64::from(lease_seconds) * 1000);
        clock::now() > until
    }
}

impl States {
    pub(crate) fn new(node: usize) -> Self {
        Self {
            node,
            boot: AtomicU32::new(Seed::draw().0 as u32),
            next: 1.into(),
            clients: Mutex::default(),
            sessions: RwLock::default(),
            opens: RwLock::default(),
            delegations: Mutex::default(),
        }
    }

    /// As after a restart.
    pub(crate) fn forget(&self) {
        self.boot.fetch_add(1, Ordering::AcqRel);
        self.expire_all();
    }

    pub(crate) fn expire_all(&self) {
        lock(&self.clients).clear();
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.opens.write().unwrap_or_else(PoisonError::into_inner).clear();
        lock(&self.delegations).clear();
    }

    /// From now on it is the start of that number.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn set_boot(&self, boot: u32) {
        self.boot.store(boot, Ordering::Release);
    }

    /// Of this start of the node.
    pub(crate) fn boot(&self) -> u32 {
        self.boot.load(Ordering::Acquire)
    }

    fn number(&self) -> u64 {
        // The start in front: none of before is taken for one of now.
        u64::from(self.boot.load(Ordering::Acquire)) << 32 | self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The client of that name, made anew where it is unknown or was started again.
    pub(super) fn introduce(
        &self,
        owner: &[u8],
        verifier: [u8; 8],
        lease_seconds: u32,
    ) -> Result<(Arc<Client>, bool), Status> {
        let mut clients = lock(&self.clients);
        if let Some(known) = clients.values().find(|client| client.owner == owner) {
            if known.verifier == verifier {
                return Ok((known.clone(), false));
            }
            let old = known.id;
            clients.remove(&old);
            self.drop_of(old);
        }
        if clients.len() >= CLIENTS_MAX {
            let gone: Vec<u64> = clients
                .values()
                .filter(|client| client.expired(lease_seconds))
                .map(|client| client.id)
                .collect();
            for id in gone {
                clients.remove(&id);
                self.drop_of(id);
            }
        }
        if clients.len() >= CLIENTS_MAX {
            return Err(Status::RESOURCE);
        }
        let client = Arc::new(Client {
            id: self.number(),
            owner: owner.to_vec(),
            verifier,
            created: Mutex::default(),
            seen: clock::now().0.into(),
            flags: 0.into(),
            layouts: Mutex::default(),
        });
        clients.insert(client.id, client.clone());
        Ok((client, true))
    }

    fn drop_of(&self, client: u64) {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.client.id != client);
        self.opens.write().unwrap_or_else(PoisonError::into_inner).retain(|_, open| open.client != client);
        lock(&self.delegations).retain(|_, it| it.client.id != client);
    }

    pub(super) fn client(&self, id: u64) -> Result<Arc<Client>, Status> {
        lock(&self.clients).get(&id).cloned().ok_or(Status::STALE_CLIENTID)
    }

    pub(super) fn all_clients(&self) -> Vec<Arc<Client>> {
        lock(&self.clients).values().cloned().collect()
    }

    pub(super) fn end_client(&self, id: u64) -> Result<(), Status> {
        let busy = self.all_sessions().iter().any(|session| session.client.id == id);
        if busy {
            return Err(Status::CLIENTID_BUSY);
        }
        lock(&self.clients).remove(&id).ok_or(Status::STALE_CLIENTID)?;
        self.drop_of(id);
        Ok(())
    }

    pub(super) fn new_session(&self, client: &Arc<Client>, slots: u32) -> Result<Arc<Session>, Status> {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS_MAX {
            return Err(Status::RESOURCE);
        }
        let mut id = [0; 16];
        id[..8].copy_from_slice(&client.id.to_be_bytes());
        id[8..].copy_from_slice(&self.number().to_be_bytes());
        let slots = (0..slots.clamp(1, SLOTS_MAX)).map(|_| Mutex::default()).collect();
        let session = Arc::new(Session {
            id,
            client: client.clone(),
            slots,
            back: Mutex::default(),
            calling: Mutex::default(),
        });
        sessions.insert(id, session.clone());
        Ok(session)
    }

    /// The session, whose client is alive.
    pub(super) fn session(&self, id: &[u8; 16], lease_seconds: u32) -> Result<Arc<Session>, Status> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(id).cloned().ok_or(Status::BADSESSION)?;
        drop(sessions);
        if session.client.expired(lease_seconds) {
            lock(&self.clients).remove(&session.client.id);
            self.drop_of(session.client.id);
            return Err(Status::BADSESSION);
        }
        Ok(session)
    }

    pub(super) fn all_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(super) fn end_session(&self, id: &[u8; 16]) -> Result<(), Status> {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(id).map(drop).ok_or(Status::BADSESSION)
    }

    /// A state for `file`: sequence 1, this node, a number.
    pub(super) fn open(&self, client: u64, file: u64) -> Result<[u8; 16], Status> {
        let mut opens = self.opens.write().unwrap_or_else(PoisonError::into_inner);
        if opens.len() >= OPENS_MAX {
            return Err(Status::RESOURCE);
        }
        let (number, state) = self.new_state();
        opens.insert(number, Opened { client, file });
        Ok(state)
    }

    /// A number, and the state that is known by it.
    pub(super) fn new_state(&self) -> (u64, [u8; 16]) {
        let number = self.number();
        (number, self.state_of(number))
    }

    pub(super) fn state_of(&self, number: u64) -> [u8; 16] {
        let mut state = [0; 16];
        state[..4].copy_from_slice(&1u32.to_be_bytes());
        state[4..8].copy_from_slice(&(self.node as u32).to_be_bytes());
        state[8..].copy_from_slice(&number.to_be_bytes());
        state
    }

    /// Whether somebody else than `client` has `file` open.
    pub(super) fn is_open_elsewhere(&self, file: u64, client: u64) -> bool {
        let opens = self.opens.read().unwrap_or_else(PoisonError::into_inner);
        opens.values().any(|open| open.file == file && open.client != client)
    }

    pub(super) fn close(&self, state: &[u8; 16]) -> Result<(), Status> {
        let mut opens = self.opens.write().unwrap_or_else(PoisonError::into_inner);
        opens.remove(&number_of(state)).map(drop).ok_or(Status::BAD_STATEID)
    }

    /// Whether `state` is one of this node's for `file`.
    pub(super) fn check(&self, state: &[u8; 16], file: u64) -> Result<(), Status> {
        let opens = self.opens.read().unwrap_or_else(PoisonError::into_inner);
        match opens.get(&number_of(state)) {
            Some(open) if open.file == file => Ok(()),
            Some(_) => Err(Status::BAD_STATEID),
            None if (number_of(state) >> 32) as u32 != self.boot.load(Ordering::Acquire) => {
                Err(Status::STALE_STATEID)
            }
            None => Err(Status::BAD_STATEID),
        }
    }
}

pub(super) fn number_of(state: &[u8; 16]) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&state[8..]);
    u64::from_be_bytes(number)
}

/// The node that gave `state`.
pub(super) fn node_of(state: &[u8; 16]) -> usize {
    let mut node = [0; 4];
    node.copy_from_slice(&state[4..8]);
    u32::from_be_bytes(node) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_carried_out_once() {
        let states = States::new(0);
        let (client, new) = states.introduce(b"us", [1; 8], 90).expect("a client");
        assert!(new && !states.introduce(b"us", [1; 8], 90).expect("the same").1);
        let session = states.new_session(&client, 2).expect("a session");
        let (kept, begun) = session.begin(1, 1, true).expect("the first call");
        assert!(kept.is_none());
        assert_eq!(session.begin(1, 1, true).map(|_| ()), Err(Status::DELAY), "still at it");
        begun.expect("it began").end(Some(vec![7]));
        assert_eq!(session.begin(1, 1, true).expect("again").0, Some(vec![7]));
        assert_eq!(session.begin(1, 3, true).map(|_| ()), Err(Status::SEQ_MISORDERED));
        assert_eq!(session.begin(2, 1, true).map(|_| ()), Err(Status::BADSLOT));
    }

    #[test]
    fn states_of_before_a_restart_are_stale() {
        let states = States::new(3);
        let (client, _) = states.introduce(b"us", [1; 8], 90).expect("a client");
        let state = states.open(client.id, 5).expect("a state");
        assert_eq!((node_of(&state), states.check(&state, 5)), (3, Ok(())));
        assert_eq!(states.check(&state, 6), Err(Status::BAD_STATEID));
        states.forget();
        assert_eq!(states.check(&state, 5), Err(Status::STALE_STATEID));
        assert_eq!(states.client(client.id).map(|_| ()), Err(Status::STALE_CLIENTID));
        assert!(states.introduce(b"us", [1; 8], 90).expect("known again").1);
    }
}
