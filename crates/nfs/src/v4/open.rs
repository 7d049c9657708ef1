//! Opening and closing: a server of version 4 remembers who has which file open. Source: RFC 7530, 16.16; RFC 8881, 18.16.

use super::attributes::{Set, encode_mode};
use super::compound::{Compound, Op, Results, skip_change};
use super::{Minor, OPAQUE_BYTES_MAX};
use crate::xdr::{Malformed, Reader};
use crate::{Fault, Handle};

/// What the server calls an open file of ours: a count of its changes, then what only the server understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StateId(pub [u8; 16]);

const SHARE_READ: u32 = 1;
const SHARE_BOTH: u32 = 3;
/// We want no delegation. RFC 8881, 18.16.1.
const WANT_NO_DELEGATION: u32 = 0x400;
/// OPEN_CONFIRM is asked for. RFC 7530, 16.16.2.
const RESULT_CONFIRM: u32 = 2;
/// Longest name of a user or group in an entry of an access list, bytes.
const WHO_BYTES_MAX: usize = OPAQUE_BYTES_MAX;

/// How a file is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim<'n> {
    /// By its name in the current directory; it must exist.
    Name(&'n str),
    /// The same; made where it does not exist, with these permissions.
    CreateName(&'n str, u32),
    /// The same; it must not exist, and a repetition with the same verifier finds what the first call made.
    CreateNew(&'n str, [u8; 8], u32),
    /// The current file was open before the server was restarted.
    Previous,
}

/// An OPEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open<'n> {
    /// Who we are: of SETCLIENTID or EXCHANGE_ID.
    pub client_id: u64,
    /// Who of us opens it, a name of our own; 4.0 wants calls of one owner one by one.
    pub owner: &'n [u8],
    /// How-manieth call of that owner this is, 0 first; 4.1 does not look at it.
    pub sequence: u32,
    /// Whether to write as well as read.
    pub write: bool,
    /// How it is found.
    pub claim: Claim<'n>,
}

/// What OPEN gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The state, for transfers and CLOSE.
    pub state: StateId,
    /// Whether OPEN_CONFIRM has to follow before anything else (4.0).
    pub confirm: bool,
    /// A delegation that nobody asked for, to be given back with DELEGRETURN.
    pub delegation: Option<StateId>,
}

impl Compound<'_> {
    /// Opens a file, which becomes the current file: [`Results::opened`].
    pub fn open(&mut self, minor: Minor, open: &Open<'_>) {
        let w = self.op(Op::Open);
        let share = if open.write { SHARE_BOTH } else { SHARE_READ };
        w.u32(open.sequence);
        w.u32(if minor == Minor::V1 { share | WANT_NO_DELEGATION } else { share });
        w.u32(0); // Others may do what they like.
        w.u64(open.client_id);
        w.opaque(open.owner);
        match open.claim {
            Claim::Name(_) | Claim::Previous => w.u32(0),
            Claim::CreateName(_, mode) => {
                w.u32(1);
                w.u32(0);
                encode_mode(w, mode);
            }
            Claim::CreateNew(_, verifier, mode) => {
                w.u32(1);
                // EXCLUSIVE4_1 takes the permissions along; in 4.0 they are left to the server.
                w.u32(if minor == Minor::V1 { 3 } else { 2 });
                w.fixed(&verifier);
                if minor == Minor::V1 {
                    encode_mode(w, mode);
                }
            }
        }
        match open.claim {
            Claim::Name(name) | Claim::CreateName(name, _) | Claim::CreateNew(name, ..) => {
                w.u32(0);
                w.opaque(name.as_bytes());
            }
            Claim::Previous => {
                w.u32(1);
                w.u32(0); // It had no delegation.
            }
        }
    }

    /// Confirms an owner's first open of `handle` (4.0): [`Results::confirmed`].
    pub fn open_confirm(&mut self, handle: &Handle, state: StateId, sequence: u32) {
        self.put(handle);
        let w = self.op(Op::OpenConfirm);
        w.fixed(&state.0);
        w.u32(sequence);
    }

    /// Closes `handle`: [`Results::closed`].
    pub fn close(&mut self, handle: &Handle, state: StateId, sequence: u32) {
        self.put(handle);
        let w = self.op(Op::Close);
        w.u32(sequence);
        w.fixed(&state.0);
    }

    /// Gives a delegation of `handle` back: [`Results::returned`].
    pub fn return_delegation(&mut self, handle: &Handle, state: StateId) {
        self.put(handle);
        self.op(Op::DelegReturn).fixed(&state.0);
    }
}

impl Results<'_> {
    /// Result of [`Compound::open`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn opened(&mut self) -> Result<Opened, Fault> {
        let r = self.next_op(Op::Open)?;
        let state = StateId(r.fixed()?);
        skip_change(r)?;
        let flags = r.u32()?;
        Set::skip(r)?;
        Ok(Opened { state, confirm: flags & RESULT_CONFIRM != 0, delegation: delegation(r)? })
    }

    /// Result of [`Compound::open_confirm`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn confirmed(&mut self) -> Result<StateId, Fault> {
        self.done(Op::PutFh)?;
        Ok(StateId(self.next_op(Op::OpenConfirm)?.fixed()?))
    }

    /// Result of [`Compound::close`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn closed(&mut self) -> Result<(), Fault> {
        self.done(Op::PutFh)?;
        Ok(self.next_op(Op::Close)?.skip(16)?)
    }

    /// Result of [`Compound::return_delegation`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn returned(&mut self) -> Result<(), Fault> {
        self.done(Op::PutFh)?;
        self.done(Op::DelegReturn)
    }
}

/// Takes an `open_delegation4`. RFC 8881, 18.16.2.
fn delegation(r: &mut Reader<'_>) -> Result<Option<StateId>, Malformed> {
    let kind = r.u32()?;
    match kind {
        0 => return Ok(None),
        1 | 2 => {}
        3 => {
            // Why there is none; contention and resources say whether it comes later.
            if matches!(r.u32()?, 1 | 2) {
                r.bool()?;
            }
            return Ok(None);
        }
        seen => return Err(Malformed::Unknown { what: "the delegation", seen }),
    }
    let state = StateId(r.fixed()?);
    r.bool()?;
    if kind == 2 {
        r.skip(3 * 4)?; // A limit: a word, then bytes, or blocks and their size.
    }
    r.skip(3 * 4)?;
    r.opaque("a name in an access list", WHO_BYTES_MAX)?;
    Ok(Some(state))
}
