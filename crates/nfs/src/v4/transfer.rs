//! READ, WRITE and COMMIT of NFSv4: templates of their compounds, and their results. Source: RFC 8881, 18.3, 18.22, 18.32.

use super::compound::{Compound, Op, Results};
use super::open::StateId;
use super::session::SessionId;
use super::{COMPOUND, Minor};
use crate::rpc::call::{self, Credential};
use crate::transfer::{ReadResult, SlotCall, Stability, Template, Verifier, WriteResult};
use crate::xdr::{Malformed, Writer};
use crate::{Fault, Handle};

/// A session of 4.1 and its highest slot; none is 4.0.
pub type InSession = Option<(SessionId, u32)>;

/// A READ of `file`, open as `state`.
pub fn read(file: &Handle, state: StateId, session: InSession, credential: &Credential) -> Template {
    template(file, session, credential, |compound| {
        let w = compound.op(Op::Read);
        w.fixed(&state.0);
        (offset_and_length(w), false)
    })
}

/// A WRITE to `file`, open as `state`.
pub fn write(
    file: &Handle,
    state: StateId,
    stability: Stability,
    session: InSession,
    credential: &Credential,
) -> Template {
    template(file, session, credential, |compound| {
        let w = compound.op(Op::Write);
        w.fixed(&state.0);
        let offset_at = w.len();
        w.u64(0);
        w.u32(stability as u32);
        w.u32(0);
        ((offset_at, offset_at + 12), true)
    })
}

/// A COMMIT of `file`; offset 0 and 0 bytes mean all of it.
pub fn commit(file: &Handle, session: InSession, credential: &Credential) -> Template {
    template(file, session, credential, |compound| (offset_and_length(compound.op(Op::Commit)), false))
}

fn offset_and_length(w: &mut Writer) -> (usize, usize) {
    let offset_at = w.len();
    w.u64(0);
    w.u32(0);
    (offset_at, offset_at + 8)
}

/// `last` appends the last operation; it says where offset and length lie, and whether a payload follows.
fn template(
    file: &Handle,
    session: InSession,
    credential: &Credential,
    last: impl FnOnce(&mut Compound<'_>) -> ((usize, usize), bool),
) -> Template {
    let mut w = Writer::new();
    call::begin(&mut w, 0, COMPOUND, credential);
    let minor = if session.is_some() { Minor::V1 } else { Minor::V0 };
    let mut compound = Compound::new(&mut w, minor);
    let nobody = SlotCall { slot: 0, sequence: 0 };
    // The reply is not kept: who repeats a block's read or write gets the same.
    let sequence_at = session.map(|(id, highest)| compound.sequence(id, nobody, highest, false));
    compound.put(file);
    let ((offset_at, length_at), payload) = last(&mut compound);
    let mut template = Template::new(&w, offset_at, length_at);
    if payload {
        template = template.with_payload(length_at);
    }
    match sequence_at {
        Some(at) => template.with_sequence(at),
        None => template,
    }
}

impl<'m> Results<'m> {
    /// Results of a READ of at most `bytes_max` bytes, its PUTFH included.
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn read(&mut self, bytes_max: u32) -> Result<ReadResult<'m>, Fault> {
        self.done(Op::PutFh)?;
        let r = self.next_op(Op::Read)?;
        let end_of_file = r.bool()?;
        let bytes = r.count("the data of a READ", bytes_max as usize)? as u32;
        Ok(ReadResult { bytes, end_of_file, behind: *r })
    }

    /// Results of a WRITE of `bytes_max` bytes, its PUTFH included.
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn written(&mut self, bytes_max: u32) -> Result<WriteResult, Fault> {
        self.done(Op::PutFh)?;
        let r = self.next_op(Op::Write)?;
        let bytes = r.count("the count of a WRITE", bytes_max as usize)? as u32;
        let seen = r.u32()?;
        let stability = Stability::from_wire(seen)
            .ok_or(Malformed::Unknown { what: "the stability of a WRITE", seen })?;
        Ok(WriteResult { bytes, stability, verifier: Verifier(r.fixed()?) })
    }

    /// Results of a COMMIT, its PUTFH included.
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn committed(&mut self) -> Result<Verifier, Fault> {
        self.done(Op::PutFh)?;
        Ok(Verifier(self.next_op(Op::Commit)?.fixed()?))
    }
}
