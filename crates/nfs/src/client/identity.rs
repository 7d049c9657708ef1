//! Who a mount is to a server of version 4: client id, control session, lease; and what is done when the server has forgotten them.

use super::caller::{Caller, Trouble};
use super::control::{Control, Way};
use super::file::lock;
use super::target::Version;
use crate::transfer::SlotCall;
use crate::v4::callback::BackChannel;
use crate::v4::compound::{Compound, Op, Results};
use crate::v4::identity::{Channel, Created, Owner, Role};
use crate::v4::recovery::{Lease, Remedy};
use crate::v4::session::{SessionId, Slots};
use crate::v4::{COMPOUND, Minor};
use crate::xdr::{Reader, Writer};
use crate::{Fault, Status};
use std::sync::{Arc, Mutex};
use units::{Nanos, clock};

/// Head of a call or reply beside its payload, bytes.
pub(super) const HEAD_BYTES: u32 = 4096;
/// Operations in our longest compound, and a few more.
const OPERATIONS: u32 = 16;

/// Who we are to the server, and what it made of us.
pub(super) struct Identity {
    pub(super) minor: Minor,
    role: Role,
    /// `SEQ4_STATUS_…` of replies that nobody has looked at.
    pub(super) flags: u32,
    owner: Owner,
    pub(super) client_id: Option<u64>,
    /// Of the next CREATE_SESSION of the client id.
    create_sequence: u32,
    session: Option<Session>,
    /// Goes up with each new client id.
    pub(super) generation: u64,
    pub(super) lease: Lease,
    /// Names of owners that opened something.
    owners: u64,
    must_bind: bool,
    /// The generation for which files were reclaimed.
    settled: u64,
    settling: bool,
    /// Of the control session; it outlives its connection.
    pub(super) back: Arc<Mutex<BackChannel>>,
}

/// In place of a call's place in the session, until it is known.
const NOWHERE: SlotCall = SlotCall { slot: 0, sequence: 0 };

struct Session {
    id: SessionId,
    slots: Slots,
    /// The slot's call that was sent and has no reply: its arguments, without its place.
    pending: Option<Vec<u8>>,
}

impl Identity {
    pub(super) fn new(version: Version, owner: Owner) -> Self {
        let minor = if version.has_sessions() { Minor::V1 } else { Minor::V0 };
        let role = if version == Version::Pnfs { Role::Metadata } else { Role::Plain };
        Self {
            minor,
            role,
            flags: 0,
            owner,
            client_id: None,
            create_sequence: 0,
            session: None,
            generation: 0,
            lease: Lease::new(None, clock::now()),
            owners: 0,
            must_bind: false,
            settled: 0,
            settling: false,
            back: Arc::default(),
        }
    }

    pub(super) fn connection_is_new(&mut self) {
        self.must_bind = self.session.is_some();
    }

    /// Forgets what a status says is gone.
    pub(super) fn lose(&mut self, remedy: Remedy) {
        match remedy {
            Remedy::Bind => self.must_bind = true,
            Remedy::Session => self.session = None,
            Remedy::Client => (self.session, self.client_id) = (None, None),
            Remedy::None | Remedy::Again | Remedy::Later | Remedy::Open => {}
        }
    }

    /// A call was given up on: what its slot knows is no longer sure.
    pub(super) fn give_up(&mut self) {
        if self.session.as_ref().is_some_and(|session| session.pending.is_some()) {
            self.session = None;
        }
        self.next_owner();
    }

    /// Of the next OPEN: the same until it is answered, so that a repeated one is the same call.
    pub(super) fn owner(&self) -> [u8; 8] {
        self.owners.to_be_bytes()
    }

    pub(super) fn next_owner(&mut self) {
        self.owners += 1;
    }
}

/// One compound outside of a session.
fn bare<T>(
    caller: &mut Caller,
    way: &Way,
    minor: Minor,
    deadline: Nanos,
    build: impl FnOnce(&mut Compound<'_>),
    read: impl FnOnce(&mut Results<'_>) -> Result<T, Fault>,
) -> Result<T, Trouble> {
    let mut arguments = Writer::new();
    let mut compound = Compound::new(&mut arguments, minor);
    build(&mut compound);
    way.seen.compound(compound.ops());
    let deadline = deadline.min(clock::now() + way.silence);
    let results = caller.call(COMPOUND, &way.credential, arguments.bytes(), deadline)?;
    Ok(read(&mut Results::new(Reader::new(&results))?)?)
}

impl Control {
    /// One compound, with client id and session made where they are missing. In 4.1, a call whose reply was lost is the same call
    /// when it is tried again: the server does it once.
    pub(super) fn compound<T>(
        &mut self,
        deadline: Nanos,
        build: impl FnOnce(&mut Compound<'_>),
        read: impl FnOnce(&mut Results<'_>) -> Result<T, Fault>,
    ) -> Result<T, Trouble> {
        self.introduce(deadline)?;
        let sent = clock::now();
        let mut arguments = Writer::new();
        let mut compound = Compound::new(&mut arguments, self.identity.minor);
        let session = self.identity.session.as_ref().map(|session| session.id);
        let place_at = session.map(|id| compound.sequence(id, NOWHERE, 0, true));
        build(&mut compound);
        self.way.seen.compound(compound.ops());
        let repeated = self.take_slot(&mut arguments, place_at, deadline)?;
        let way = self.way.clone();
        let answer_by = deadline.min(sent + way.silence);
        let results = self.caller(deadline)?.call(COMPOUND, &way.credential, arguments.bytes(), answer_by)?;
        let mut results = Results::new(Reader::new(&results))?;
        if let Some(session) = &mut self.identity.session {
            let sequenced = results.sequenced();
            match &sequenced {
                Ok(_) => session.slots.answered(0),
                // It is at it; the same call is asked for again.
                Err(fault) if repeated && fault.status() == Some(Status::DELAY) => {
                    return Err((*fault).into());
                }
                // It was done, and its results are gone.
                Err(fault) if fault.status() == Some(Status::RETRY_UNCACHED_REP) => session.slots.answered(0),
                Err(_) => session.slots.not_begun(0),
            }
            session.pending = None;
            self.identity.flags |= sequenced?.flags;
            self.identity.lease.renew(sent);
            // The keeper may not see what came while we waited.
            if lock(&self.identity.back).is_asked() {
                self.bell.iter().for_each(|bell| bell.ring());
            }
        }
        Ok(read(&mut results)?)
    }

    /// Writes the place in the session into a call, at byte `at`; whether it is the call that was there before, once more.
    fn take_slot(
        &mut self,
        arguments: &mut Writer,
        at: Option<usize>,
        deadline: Nanos,
    ) -> Result<bool, Trouble> {
        let pending = self.identity.session.as_ref().and_then(|session| session.pending.as_deref());
        let repeated = pending.is_some_and(|pending| pending == arguments.bytes());
        if pending.is_some() && !repeated {
            self.settle(deadline)?;
        }
        let (Some(session), Some(at)) = (&mut self.identity.session, at) else { return Ok(false) };
        let place = if repeated { session.slots.repeat(0) } else { session.slots.call(0) };
        session.pending = Some(arguments.bytes().to_vec());
        arguments.set_u32(at, place.sequence);
        Ok(repeated)
    }

    /// A call without a reply was given up, and another one wants its slot. The server is asked for that place with nothing in it: whether it had the call
    /// or not, the place is used up then.
    fn settle(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        let Some(session) = &mut self.identity.session else { return Ok(()) };
        let (id, place) = (session.id, session.slots.repeat(0));
        let build = |c: &mut Compound<'_>| {
            c.sequence(id, place, 0, true);
        };
        match self.bare(deadline, build, |results| results.sequenced()) {
            Ok(_) => {}
            Err(Trouble::Fault(Fault::Refused {
                status: Status::RETRY_UNCACHED_REP | Status::SEQ_FALSE_RETRY,
                ..
            })) => {}
            Err(other) => return Err(other),
        }
        if let Some(session) = &mut self.identity.session {
            session.slots.answered(0);
            session.pending = None;
        }
        Ok(())
    }

    /// Makes client id and session, and reclaims files, as far as that is needed: 1. the client id, which a restarted server has forgotten,
    /// 2. the session, 3. files: a server in its grace takes nothing else before.
    pub(super) fn introduce(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        self.caller(deadline)?;
        if self.identity.client_id.is_none() {
            match self.identity.minor {
                Minor::V0 => self.set_client_id(deadline)?,
                Minor::V1 => self.exchange_id(deadline)?,
            }
            self.identity.generation += 1;
            self.forget_layouts();
        }
        if self.identity.minor == Minor::V1 {
            if self.identity.session.is_none() {
                self.make_control_session(deadline)?;
            } else if self.identity.must_bind {
                self.bind(deadline)?;
            }
        }
        self.identity.must_bind = false;
        if self.identity.settled != self.identity.generation && !self.identity.settling {
            self.identity.settling = true;
            let result = self.reopen_all(deadline);
            self.identity.settling = false;
            result?;
            self.identity.settled = self.identity.generation;
        }
        Ok(())
    }

    /// To a new client id, the server has given no layout.
    fn forget_layouts(&mut self) {
        if self.identity.generation > 1 {
            let (server, files) = (&self.way.target.server, self.files.len());
            self.way.alerts.say(format!(
                "{server} did not know this client any more: it was restarted, or our lease was over; {files} files are opened again"
            ));
        }
        lock(&self.identity.back).forget();
        self.files.iter().for_each(|file| file.layouts.forget());
        self.bell.iter().for_each(|bell| bell.ring());
    }

    fn bare<T>(
        &mut self,
        deadline: Nanos,
        build: impl FnOnce(&mut Compound<'_>),
        read: impl FnOnce(&mut Results<'_>) -> Result<T, Fault>,
    ) -> Result<T, Trouble> {
        let (way, minor) = (self.way.clone(), self.identity.minor);
        bare(self.caller(deadline)?, &way, minor, deadline, build, read)
    }

    fn set_client_id(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        let owner = self.identity.owner.clone();
        let (id, verifier) =
            self.bare(deadline, |c| c.set_client_id(&owner), |results| results.client_id_set())?;
        let build = |c: &mut Compound<'_>| c.confirm_client_id(id, verifier);
        self.bare(deadline, build, |results| results.done(Op::SetClientIdConfirm))?;
        self.identity.client_id = Some(id);
        Ok(())
    }

    fn exchange_id(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        let (owner, role) = (self.identity.owner.clone(), self.identity.role);
        let given = self.bare(deadline, |c| c.exchange_id(&owner, role), |results| results.exchanged())?;
        self.identity.client_id = Some(given.client_id);
        self.identity.create_sequence = given.sequence;
        Ok(())
    }

    fn make_control_session(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        let mut caller = self.caller.take().ok_or_else(|| Trouble::Lost("no connection".into()))?;
        let made = self.make_session(&mut caller, 1, true, deadline);
        if let Ok(created) = &made {
            let mut back = lock(&self.identity.back);
            back.renew(created.session);
            let held = self.files.iter().filter(|file| file.layouts.held().is_some());
            held.for_each(|file| back.hold(file.handle));
        }
        self.caller = Some(caller);
        let created = made?;
        self.identity.session = Some(Session { id: created.session, slots: Slots::new(1), pending: None });
        Ok(())
    }

    /// A session of `slots` slots on the connection of `caller`. Sessions of a client id are counted, so this is behind the lock.
    pub(super) fn make_session(
        &mut self,
        caller: &mut Caller,
        slots: u32,
        back_channel: bool,
        deadline: Nanos,
    ) -> Result<Created, Trouble> {
        let longest = self.way.payload_bytes_max + HEAD_BYTES;
        let fore = Channel { request_bytes: longest, response_bytes: longest, operations: OPERATIONS, slots };
        let client_id = self
            .identity
            .client_id
            .ok_or(Fault::Refused { status: Status::STALE_CLIENTID, call: "CREATE_SESSION" })?;
        let sequence = self.identity.create_sequence;
        let build = |c: &mut Compound<'_>| c.create_session(client_id, sequence, fore, back_channel);
        let made = bare(caller, &self.way, Minor::V1, deadline, build, |results| results.created());
        match &made {
            Ok(_) => self.identity.create_sequence = sequence.wrapping_add(1),
            // Not known whether it was made: EXCHANGE_ID says how many were.
            Err(Trouble::Lost(_) | Trouble::Fault(Fault::Refused { status: Status::SEQ_MISORDERED, .. })) => {
                self.exchange_id(deadline)?;
            }
            Err(_) => {}
        }
        made
    }

    fn bind(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        let Some(id) = self.identity.session.as_ref().map(|session| session.id) else { return Ok(()) };
        self.bare(deadline, |c| c.bind_connection(id, true), |results| results.bound()).map(drop)
    }

    /// `caller` as a connection of the control session, where there is one. What the server refuses now is seen to by the next call.
    pub(super) fn bound(&mut self, mut caller: Caller, deadline: Nanos) -> Result<Caller, Trouble> {
        if let Some(id) = self.identity.session.as_ref().map(|session| session.id) {
            let build = |c: &mut Compound<'_>| c.bind_connection(id, true);
            match bare(&mut caller, &self.way, self.identity.minor, deadline, build, |results| {
                results.bound()
            }) {
                Ok(_) => self.identity.must_bind = false,
                Err(Trouble::Fault(_)) => self.identity.must_bind = true,
                Err(other) => return Err(other),
            }
        }
        Ok(caller)
    }

    /// Renews the lease.
    pub(super) fn renew(&mut self, deadline: Nanos) -> Result<(), Trouble> {
        let sent = clock::now();
        match (self.identity.minor, self.identity.client_id) {
            (Minor::V0, Some(id)) => {
                self.compound(deadline, |c| c.renew(id), |results| results.done(Op::Renew))?;
            }
            // SEQUENCE alone.
            _ => self.compound(deadline, |_| {}, |_| Ok(()))?,
        }
        self.identity.lease.renew(sent);
        Ok(())
    }

    /// Ends session and client id, as far as the server still listens.
    pub(super) fn detach_v4(&mut self, deadline: Nanos) {
        if self.caller.is_none() {
            return;
        }
        self.return_delegations(deadline);
        if let Some(session) = self.identity.session.take() {
            let build = |c: &mut Compound<'_>| c.destroy_session(session.id);
            let _ = self.bare(deadline, build, |results| results.done(Op::DestroySession));
            if let Some(id) = self.identity.client_id.take() {
                let build = |c: &mut Compound<'_>| c.destroy_client_id(id);
                let _ = self.bare(deadline, build, |results| results.done(Op::DestroyClientId));
            }
        }
    }
}

/// Tells the server that the connection of `caller` belongs to a worker's session; whether it still knows that.
pub(super) fn bind_session(
    caller: &mut Caller,
    way: &Way,
    id: SessionId,
    deadline: Nanos,
) -> Result<(), Trouble> {
    let build = |c: &mut Compound<'_>| c.bind_connection(id, false);
    bare(caller, way, Minor::V1, deadline, build, |results| results.bound()).map(drop)
}

/// Introduces a worker to a data server, as a client of its own: nothing there is shared with others. Result: the client id, and the session.
pub(super) fn data_session(
    caller: &mut Caller,
    way: &Way,
    owner: &Owner,
    slots: u32,
    deadline: Nanos,
) -> Result<(u64, Created), Trouble> {
    let build = |c: &mut Compound<'_>| c.exchange_id(owner, Role::Data);
    let given = bare(caller, way, Minor::V1, deadline, build, |results| results.exchanged())?;
    let longest = way.payload_bytes_max + HEAD_BYTES;
    let fore = Channel { request_bytes: longest, response_bytes: longest, operations: OPERATIONS, slots };
    let build = |c: &mut Compound<'_>| c.create_session(given.client_id, given.sequence, fore, false);
    let created = bare(caller, way, Minor::V1, deadline, build, |results| results.created())?;
    Ok((given.client_id, created))
}

/// Ends a worker's session, over its own connection: servers take it from no other; and `client`, where that was the worker's alone.
pub(super) fn end_session(
    caller: &mut Caller,
    way: &Way,
    id: SessionId,
    client: Option<u64>,
    deadline: Nanos,
) {
    let build = |c: &mut Compound<'_>| c.destroy_session(id);
    let done = |results: &mut Results<'_>| results.done(Op::DestroySession);
    let ended = bare(caller, way, Minor::V1, deadline, build, done);
    if let (Ok(()), Some(client)) = (ended, client) {
        let build = |c: &mut Compound<'_>| c.destroy_client_id(client);
        let _ = bare(caller, way, Minor::V1, deadline, build, |results| results.done(Op::DestroyClientId));
    }
}
