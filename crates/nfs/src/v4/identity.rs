//! Who we are to a server: client ids of 4.0 and 4.1, sessions, leases. Source: RFC 7530, 16.33 f.; RFC 8881, 18.34 ff.

use super::OPAQUE_BYTES_MAX;
use super::compound::{Compound, Op, Results};
use super::session::SessionId;
use crate::Fault;
use crate::transfer::SlotCall;
use crate::xdr::{Malformed, Reader, Writer};

/// The program that callbacks call: any of the transient ones.
pub const CALLBACK_PROGRAM: u32 = 0x4000_0000;
/// What 4.0 is told: nothing listens there, so no delegation is given. RFC 7530, 10.2.
const NO_CALLBACK_ADDRESS: &str = "127.0.0.1.0.0";
/// What a client wants of a server: `EXCHGID4_FLAG_USE_…`. RFC 8881, 18.35.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No pNFS.
    Plain = 0x1_0000,
    /// Layouts.
    Metadata = 0x2_0000,
    /// Parts of files, by layouts of another server.
    Data = 0x4_0000,
}
/// Callbacks come over the connection that the session was made on. RFC 8881, 18.36.1.
const BACK_CHANNEL: u32 = 2;
/// Callbacks may be this long, bytes, with so many operations, one at a time.
const BACK: Channel = Channel { request_bytes: 4096, response_bytes: 4096, operations: 8, slots: 1 };

/// A client of a server: what stays the same over its restarts, and what tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Unlike that of every other client.
    pub name: Vec<u8>,
    /// Of this start of the client; another one ends what the last left behind.
    pub verifier: [u8; 8],
}

/// Limits of one direction of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Longest call, bytes, with its head.
    pub request_bytes: u32,
    /// Longest reply, bytes.
    pub response_bytes: u32,
    /// Most operations in a compound.
    pub operations: u32,
    /// Most calls at once.
    pub slots: u32,
}

/// What EXCHANGE_ID gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchanged {
    /// Who we are.
    pub client_id: u64,
    /// For the first CREATE_SESSION.
    pub sequence: u32,
    /// `EXCHGID4_FLAG_…`.
    pub flags: u32,
}

/// What CREATE_SESSION gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    /// The session.
    pub session: SessionId,
    /// What our calls may be.
    pub fore: Channel,
    /// Whether callbacks come over this connection.
    pub back_channel: bool,
}

/// What SEQUENCE gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequenced {
    /// The call that it is for.
    pub call: SlotCall,
    /// Highest slot that the server would like us to use.
    pub target_highest_slot: u32,
    /// `SEQ4_STATUS_…`: what the server lost or wants, 0 for nothing. RFC 8881, 18.46.3.
    pub flags: u32,
}

impl Channel {
    fn encode(&self, w: &mut Writer) {
        // No padding of headers; what is kept of replies for repetitions; no RDMA.
        for word in [0, self.request_bytes, self.response_bytes, 4096, self.operations, self.slots, 0] {
            w.u32(word);
        }
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.u32()?;
        let (request_bytes, response_bytes) = (r.u32()?, r.u32()?);
        r.u32()?;
        let (operations, slots) = (r.u32()?, r.u32()?);
        let rdma = r.count("RDMA limits", 1)?;
        r.skip(4 * rdma)?;
        Ok(Self { request_bytes, response_bytes, operations, slots })
    }
}

impl Compound<'_> {
    /// Tells a 4.0 server who we are: [`Results::client_id_set`].
    pub fn set_client_id(&mut self, owner: &Owner) {
        let w = self.op(Op::SetClientId);
        w.fixed(&owner.verifier);
        w.opaque(&owner.name);
        w.u32(CALLBACK_PROGRAM);
        w.opaque(b"tcp");
        w.opaque(NO_CALLBACK_ADDRESS.as_bytes());
        w.u32(1);
    }

    /// Confirms what [`Results::client_id_set`] gave.
    pub fn confirm_client_id(&mut self, client_id: u64, verifier: [u8; 8]) {
        let w = self.op(Op::SetClientIdConfirm);
        w.u64(client_id);
        w.fixed(&verifier);
    }

    /// Says that we are alive (4.0).
    pub fn renew(&mut self, client_id: u64) {
        self.op(Op::Renew).u64(client_id);
    }

    /// Tells a 4.1 server who we are: [`Results::exchanged`].
    pub fn exchange_id(&mut self, owner: &Owner, role: Role) {
        let w = self.op(Op::ExchangeId);
        w.fixed(&owner.verifier);
        w.opaque(&owner.name);
        w.u32(role as u32);
        w.u32(0); // State is not protected.
        w.u32(0); // What we are built of is nobody's business.
    }

    /// Makes a session: [`Results::created`]. `sequence` counts those of the client id, from what EXCHANGE_ID gave.
    pub fn create_session(&mut self, client_id: u64, sequence: u32, fore: Channel, back_channel: bool) {
        let w = self.op(Op::CreateSession);
        w.u64(client_id);
        w.u32(sequence);
        w.u32(if back_channel { BACK_CHANNEL } else { 0 });
        fore.encode(w);
        BACK.encode(w);
        w.u32(CALLBACK_PROGRAM);
        w.u32(1); // Callbacks come with
        w.u32(0); // AUTH_NONE.
    }

    /// Puts the compound into a slot of a session: [`Results::sequenced`]. With `keep`, the server keeps the reply for a repetition.
    /// Result: where the sequence id lies.
    pub fn sequence(&mut self, session: SessionId, call: SlotCall, highest_slot: u32, keep: bool) -> usize {
        let w = self.op(Op::Sequence);
        w.fixed(&session.0);
        let at = w.len();
        w.u32(call.sequence);
        w.u32(call.slot);
        w.u32(highest_slot);
        w.bool(keep);
        at
    }

    /// Gives a new connection to the session, for both directions where `back_channel`: [`Results::bound`].
    pub fn bind_connection(&mut self, session: SessionId, back_channel: bool) {
        let w = self.op(Op::BindConnToSession);
        w.fixed(&session.0);
        w.u32(if back_channel { 3 } else { 1 });
        w.bool(false); // No RDMA.
    }

    /// Says that all that was open before a restart is reclaimed.
    pub fn reclaim_complete(&mut self) {
        self.op(Op::ReclaimComplete).bool(false);
    }

    /// Ends a session.
    pub fn destroy_session(&mut self, session: SessionId) {
        self.op(Op::DestroySession).fixed(&session.0);
    }

    /// Ends the client id; it has no session any more.
    pub fn destroy_client_id(&mut self, client_id: u64) {
        self.op(Op::DestroyClientId).u64(client_id);
    }
}

impl Results<'_> {
    /// Result of [`Compound::set_client_id`]: client id and verifier.
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn client_id_set(&mut self) -> Result<(u64, [u8; 8]), Fault> {
        let r = self.next_op(Op::SetClientId)?;
        Ok((r.u64()?, r.fixed()?))
    }

    /// Result of [`Compound::exchange_id`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn exchanged(&mut self) -> Result<Exchanged, Fault> {
        let r = self.next_op(Op::ExchangeId)?;
        let exchanged = Exchanged { client_id: r.u64()?, sequence: r.u32()?, flags: r.u32()? };
        match r.u32()? {
            0 => {}
            seen => return Err(Malformed::Unknown { what: "the protection of state", seen }.into()),
        }
        r.skip(8)?;
        r.opaque("a server's name", OPAQUE_BYTES_MAX)?;
        r.opaque("a server's scope", OPAQUE_BYTES_MAX)?;
        for _ in 0..r.count("what a server is built of", 1)? {
            r.opaque("a domain", OPAQUE_BYTES_MAX)?;
            r.opaque("a product", OPAQUE_BYTES_MAX)?;
            r.skip(12)?;
        }
        Ok(exchanged)
    }

    /// Result of [`Compound::create_session`].
    ///
    /// # Errors
    /// As [`Results::next_op`]; a session without a slot is malformed.
    pub fn created(&mut self) -> Result<Created, Fault> {
        let r = self.next_op(Op::CreateSession)?;
        let session = SessionId(r.fixed()?);
        r.u32()?;
        let back_channel = r.u32()? & BACK_CHANNEL != 0;
        let fore = Channel::decode(r)?;
        Channel::decode(r)?;
        if fore.slots == 0 {
            return Err(Malformed::Unknown { what: "the number of slots", seen: 0 }.into());
        }
        Ok(Created { session, fore, back_channel })
    }

    /// Result of [`Compound::sequence`].
    ///
    /// # Errors
    /// As [`Results::next_op`]; refused by `SEQUENCE`, the compound was not begun.
    pub fn sequenced(&mut self) -> Result<Sequenced, Fault> {
        let r = self.next_op(Op::Sequence)?;
        r.skip(16)?;
        let (sequence, slot) = (r.u32()?, r.u32()?);
        r.u32()?;
        Ok(Sequenced { call: SlotCall { slot, sequence }, target_highest_slot: r.u32()?, flags: r.u32()? })
    }

    /// Result of [`Compound::bind_connection`]: whether callbacks come over it.
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn bound(&mut self) -> Result<bool, Fault> {
        let r = self.next_op(Op::BindConnToSession)?;
        r.skip(16)?;
        let direction = r.u32()?;
        r.bool()?;
        Ok(direction & 2 != 0)
    }
}
