//! Calls of the server over our connection: it may ask at any time, and waits for the answer. Source: RFC 8881, 16.3 and 20.
//!
//! This client asks for no delegations. One that came unasked is on its way back when it is recalled; of others it says in the words of the protocol that
//! there is none. What is asked of layouts and devices is answered with yes, and kept for whoever follows ([`BackChannel::take_asked`]).

use super::identity::CALLBACK_PROGRAM;
use super::layout::DeviceId;
use super::open::StateId;
use super::session::SessionId;
use super::{HANDLE_BYTES_MAX, OPAQUE_BYTES_MAX};
use crate::rpc::{Procedure, record, reply};
use crate::xdr::{Malformed, Reader, Writer};
use crate::{Handle, Status};

const CB_SEQUENCE: u32 = 11;
const CB_GETATTR: u32 = 3;
const CB_RECALL: u32 = 4;
const CB_LAYOUTRECALL: u32 = 5;
const CB_RECALL_ANY: u32 = 8;
const CB_RECALL_SLOT: u32 = 10;
const CB_NOTIFY_DEVICEID: u32 = 14;
/// What we said in CREATE_SESSION.
const OPERATIONS_MAX: usize = 8;
/// Calls that the server may name as related to one of its own.
const REFERRING_MAX: usize = 1024;
/// Most devices in a notification, and bytes of what is said of each.
const DEVICES_MAX: usize = 256;
const NOTIFICATION_BYTES_MAX: usize = 4096;
/// What was asked and not followed yet; beyond, the server has to wait.
const ASKED_MAX: usize = 4096;

/// What the server asked that does not end with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The layout of a file back; none: all layouts.
    Recall(Option<Handle>),
    /// A device has changed, or is gone.
    Device(DeviceId),
}

/// The back channel of a session: one slot, and the reply that it gave last; and what the server may ask about.
#[derive(Clone, Debug, Default)]
pub struct BackChannel {
    session: SessionId,
    sequence: u32,
    last_results: Vec<u8>,
    answered: u64,
    /// Files whose layouts we have, or have asked for.
    held: Vec<Handle>,
    asked: Vec<Asked>,
    /// An OPEN has no reply yet: the server may recall what we do not know of.
    opening: bool,
    /// Delegations that came unasked and are not back, oldest first.
    delegations: Vec<(Handle, StateId)>,
}

impl BackChannel {
    /// That of `session`.
    pub fn new(session: SessionId) -> Self {
        Self { session, ..Self::default() }
    }

    /// From now on that of `session`, of the same client id: what the client has stays, but for layouts, which are told anew.
    pub fn renew(&mut self, session: SessionId) {
        (self.session, self.sequence) = (session, 0);
        self.last_results.clear();
        self.held.clear();
    }

    /// The client id is another one: to that, the server has given nothing.
    pub fn forget(&mut self) {
        self.held.clear();
        self.asked.clear();
        self.delegations.clear();
    }

    /// Whether an OPEN is on its way.
    pub fn opening(&mut self, is_so: bool) {
        self.opening = is_so;
    }

    /// `state`, a delegation of `file`, came unasked.
    pub fn delegated(&mut self, file: Handle, state: StateId) {
        self.delegations.push((file, state));
    }

    /// A delegation that has to go back.
    pub fn delegation(&self) -> Option<(Handle, StateId)> {
        self.delegations.first().copied()
    }

    /// The delegation `state` is back, or gone.
    pub fn undelegated(&mut self, state: StateId) {
        self.delegations.retain(|&(_, held)| held != state);
    }

    /// A layout of `file` is asked for: it can be recalled from now on.
    pub fn hold(&mut self, file: Handle) {
        if !self.holds(&file) {
            self.held.push(file);
        }
    }

    /// There is no layout of `file`, or no longer.
    pub fn release(&mut self, file: &Handle) {
        self.held.retain(|held| held != file);
    }

    /// Whether there is a layout of `file`.
    pub fn holds(&self, file: &Handle) -> bool {
        self.held.contains(file)
    }

    /// Whether something was asked that nobody has taken.
    pub fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// What was asked since the last time.
    pub fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// Callbacks that were answered, repetitions included.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Answers a call: appends a whole record to `writer`.
    pub fn answer(&mut self, writer: &mut Writer, xid: u32, procedure: Procedure, arguments: Reader<'_>) {
        self.answered += 1;
        match (procedure.program, procedure.number) {
            (CALLBACK_PROGRAM, 0) => {
                let at = reply::begin(writer, xid);
                record::seal(writer, at, 0);
            }
            (CALLBACK_PROGRAM, 1) => match self.compound(arguments) {
                Ok(results) => {
                    let at = reply::begin(writer, xid);
                    writer.raw(&results);
                    record::seal(writer, at, 0);
                }
                Err(_) => reply::garbage(writer, xid),
            },
            _ => reply::no_procedure(writer, xid),
        }
    }

    fn compound(&mut self, mut r: Reader<'_>) -> Result<Vec<u8>, Malformed> {
        let tag = r.opaque("the tag of a callback", OPAQUE_BYTES_MAX)?;
        let minor = r.u32()?;
        r.u32()?;
        let count = r.count("operations of a callback", OPERATIONS_MAX)?;
        let (mut results, mut done, mut status) = (Writer::new(), 0, 0);
        if minor != 1 {
            status = Status::MINOR_VERS_MISMATCH.0;
        }
        let mut sequenced = false;
        while status == 0 && done < count {
            let op = r.u32()?;
            if op == CB_SEQUENCE && done == 0 {
                match self.sequence(&mut r, &mut results)? {
                    Step::New => sequenced = true,
                    Step::Repeated => return Ok(self.last_results.clone()),
                    Step::Refused(refused) => status = refused.0,
                }
            } else {
                status = if sequenced { self.operation(op, &mut r)?.0 } else { Status::OP_NOT_IN_SESSION.0 };
                results.u32(op);
                results.u32(status);
            }
            done += 1;
        }
        let mut whole = Writer::new();
        whole.u32(status);
        whole.opaque(tag);
        whole.u32(done as u32);
        whole.raw(results.bytes());
        if sequenced {
            self.last_results = whole.bytes().to_vec();
        }
        Ok(whole.bytes().to_vec())
    }

    /// RFC 8881, 20.9.
    fn sequence(&mut self, r: &mut Reader<'_>, results: &mut Writer) -> Result<Step, Malformed> {
        let (session, sequence, slot) = (SessionId(r.fixed()?), r.u32()?, r.u32()?);
        r.u32()?;
        r.bool()?;
        for _ in 0..r.count("referring lists", REFERRING_MAX)? {
            r.skip(16)?;
            let calls = r.count("referring calls", REFERRING_MAX)?;
            r.skip(8 * calls)?;
        }
        let refused = if session != self.session {
            Some(Status::BADSESSION)
        } else if slot != 0 {
            Some(Status::BADSLOT)
        } else if sequence == self.sequence && !self.last_results.is_empty() {
            return Ok(Step::Repeated);
        } else if sequence != self.sequence.wrapping_add(1) {
            Some(Status::SEQ_MISORDERED)
        } else {
            None
        };
        results.u32(CB_SEQUENCE);
        results.u32(refused.map_or(0, |status| status.0));
        if let Some(status) = refused {
            return Ok(Step::Refused(status));
        }
        self.sequence = sequence;
        results.fixed(&session.0);
        for word in [sequence, slot, 0, 0] {
            results.u32(word);
        }
        Ok(Step::New)
    }

    /// What else it may ask. Only what may be followed by more is read.
    fn operation(&mut self, op: u32, r: &mut Reader<'_>) -> Result<Status, Malformed> {
        Ok(match op {
            CB_RECALL_ANY => {
                r.u32()?;
                let words = r.count("a set of types", OPERATIONS_MAX)?;
                r.skip(4 * words)?;
                Status(0)
            }
            CB_RECALL_SLOT => {
                r.u32()?;
                Status(0)
            }
            CB_GETATTR => self.getattr(r)?,
            CB_RECALL => self.recall(r)?,
            CB_LAYOUTRECALL => self.layout_recall(r)?,
            CB_NOTIFY_DEVICEID => self.notify_device(r)?,
            6..=CB_NOTIFY_DEVICEID => Status::NOTSUPP,
            _ => Status::OP_ILLEGAL,
        })
    }
}

impl BackChannel {
    /// Of a file that is delegated to us to be written, the server wants to know the size. It has it when the delegation is back. RFC 8881, 20.1.
    fn getattr(&self, r: &mut Reader<'_>) -> Result<Status, Malformed> {
        let file = Handle::decode(r, HANDLE_BYTES_MAX)?;
        Ok(match self.delegation_of(&file) {
            Ok(_) => Status::DELAY,
            Err(status) => status,
        })
    }

    /// A delegation that we have goes back anyway. RFC 8881, 20.2.
    fn recall(&self, r: &mut Reader<'_>) -> Result<Status, Malformed> {
        let state = r.fixed::<16>()?;
        r.bool()?;
        let file = Handle::decode(r, HANDLE_BYTES_MAX)?;
        Ok(match self.delegation_of(&file) {
            // The first word counts changes, and may be 0 for the latest.
            Ok(held) if held.0[4..] == state[4..] => Status(0),
            Ok(_) => Status::BAD_STATEID,
            Err(status) => status,
        })
    }

    /// The delegation of `file`; else what to answer: it may come with the reply to an OPEN that this call has overtaken, or there is none.
    fn delegation_of(&self, file: &Handle) -> Result<StateId, Status> {
        let held = self.delegations.iter().find(|(its, _)| its == file);
        let none = if self.opening { Status::DELAY } else { Status::BADHANDLE };
        held.map(|&(_, state)| state).ok_or(none)
    }

    /// RFC 8881, 20.3.
    fn layout_recall(&mut self, r: &mut Reader<'_>) -> Result<Status, Malformed> {
        r.skip(2 * 4)?;
        r.bool()?;
        let which = match r.u32()? {
            1 => {
                let file = Handle::decode(r, HANDLE_BYTES_MAX)?;
                r.skip(2 * 8 + 16)?;
                Some(file)
            }
            2 => {
                r.skip(2 * 8)?;
                None
            }
            3 => None,
            seen => return Err(Malformed::Unknown { what: "what is recalled", seen }),
        };
        let is_held = which.map_or(!self.held.is_empty(), |file| self.holds(&file));
        Ok(if is_held { self.ask(Asked::Recall(which)) } else { Status::NOMATCHING_LAYOUT })
    }

    /// RFC 8881, 20.12.
    fn notify_device(&mut self, r: &mut Reader<'_>) -> Result<Status, Malformed> {
        for _ in 0..r.count("devices of a notification", DEVICES_MAX)? {
            let words = r.count("a set of notifications", OPERATIONS_MAX)?;
            r.skip(4 * words)?;
            let mut value = Reader::new(r.opaque("a notification", NOTIFICATION_BYTES_MAX)?);
            // Changed or deleted: both begin with the kind of layout and the device.
            value.u32()?;
            if self.ask(Asked::Device(DeviceId(value.fixed()?))) != Status(0) {
                return Ok(Status::DELAY);
            }
        }
        Ok(Status(0))
    }

    fn ask(&mut self, asked: Asked) -> Status {
        if self.asked.len() >= ASKED_MAX {
            return Status::DELAY;
        }
        self.asked.push(asked);
        Status(0)
    }
}

enum Step {
    New,
    Repeated,
    Refused(Status),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::reply::{Message, decode};

    const SESSION: SessionId = SessionId([7; 16]);

    fn compound(sequence: u32, op: &[u32]) -> Vec<u8> {
        let session = [0x0707_0707; 4];
        let head = [&[0, 1, 1, 2, 11][..], &session, &[sequence, 0, 0, 0, 0]].concat();
        [&head, op].concat().iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// The reply's status, and the whole of it.
    fn ask(back: &mut BackChannel, number: u32, arguments: &[u8]) -> (Option<u32>, Vec<u8>) {
        let mut w = Writer::new();
        let procedure = Procedure { program: CALLBACK_PROGRAM, version: 1, number };
        back.answer(&mut w, 3, procedure, Reader::new(arguments));
        let Ok(Message::Reply { xid: 3, result }) = decode(&w.bytes()[4..]) else { panic!("{w:?}") };
        (result.ok().and_then(|mut r| r.u32().ok()), w.bytes().to_vec())
    }

    #[test]
    fn a_repeated_callback_gets_the_same_answer() {
        let mut back = BackChannel::new(SESSION);
        assert_eq!(ask(&mut back, 0, &[]).0, None, "CB_NULL gives nothing");
        let first = ask(&mut back, 1, &compound(1, &[CB_RECALL_ANY, 1, 1, 2]));
        assert_eq!(first.0, Some(0));
        assert_eq!(ask(&mut back, 1, &compound(1, &[CB_RECALL_ANY, 1, 1, 2])), first);
        let misordered = ask(&mut back, 1, &compound(5, &[CB_RECALL_ANY, 1, 1, 2]));
        assert_eq!(misordered.0, Some(Status::SEQ_MISORDERED.0));
        let recall = [CB_LAYOUTRECALL, 1, 3, 1, 1, 4, u32::from_be_bytes(*b"file"), 0, 0, 0, 9, 1, 2, 3, 4];
        assert_eq!(ask(&mut back, 1, &compound(2, &recall)).0, Some(Status::NOMATCHING_LAYOUT.0));
        let file = Handle::new(b"file").expect("short");
        back.hold(file);
        assert_eq!(ask(&mut back, 1, &compound(3, &recall)).0, Some(0));
        let changed = [CB_NOTIFY_DEVICEID, 1, 1, 2, 24, 1, 7, 7, 7, 7, 1];
        assert_eq!(ask(&mut back, 1, &compound(4, &changed)).0, Some(0));
        let device = DeviceId([0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 7]);
        assert_eq!(back.take_asked(), [Asked::Recall(Some(file)), Asked::Device(device)]);
        assert_eq!((back.is_asked(), back.answered()), (false, 7));
    }

    #[test]
    fn a_delegation_is_recalled_while_it_is_here() {
        let mut back = BackChannel::new(SESSION);
        let (file, state) = (Handle::new(b"file").expect("short"), StateId([9; 16]));
        let name = u32::from_be_bytes(*b"file");
        let recall = |state: u32| [CB_RECALL, 0, state, state, state, 0, 4, name];
        let getattr = [CB_GETATTR, 4, name, 1, 8];
        let of_ours = 0x0909_0909;
        let mut sequence = 0;
        let mut status = |back: &mut BackChannel, op: &[u32]| {
            sequence += 1;
            ask(back, 1, &compound(sequence, op)).0.map(Status)
        };
        assert_eq!(status(&mut back, &recall(of_ours)), Some(Status::BADHANDLE));
        back.opening(true);
        assert_eq!(
            status(&mut back, &recall(of_ours)),
            Some(Status::DELAY),
            "it may be in the reply to that"
        );
        assert_eq!(status(&mut back, &getattr), Some(Status::DELAY));
        back.delegated(file, state);
        back.opening(false);
        assert_eq!(status(&mut back, &recall(of_ours)), Some(Status(0)));
        assert_eq!(status(&mut back, &recall(7)), Some(Status::BAD_STATEID));
        assert_eq!(status(&mut back, &getattr), Some(Status::DELAY));
        assert_eq!(back.delegation(), Some((file, state)));
        back.undelegated(state);
        assert_eq!(status(&mut back, &recall(of_ours)), Some(Status::BADHANDLE));
        assert_eq!((back.delegation(), status(&mut back, &getattr)), (None, Some(Status::BADHANDLE)));
    }

    #[test]
    fn another_session_of_the_same_client_has_what_the_client_has() {
        let mut back = BackChannel::new(SessionId([1; 16]));
        let (file, state) = (Handle::new(b"file").expect("short"), StateId([9; 16]));
        back.hold(file);
        back.delegated(file, state);
        back.renew(SESSION);
        assert_eq!(ask(&mut back, 1, &compound(1, &[CB_RECALL_SLOT, 1])).0, Some(0));
        assert_eq!((back.holds(&file), back.delegation()), (false, Some((file, state))));
        back.forget();
        assert_eq!(back.delegation(), None);
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        let mut back = BackChannel::new(SESSION);
        assert_eq!(ask(&mut back, 1, &compound(1, &[99])).0, Some(Status::OP_ILLEGAL.0));
        assert_eq!(ask(&mut back, 1, &[1, 2, 3]).0, None);
        assert_eq!(ask(&mut BackChannel::default(), 1, &compound(1, &[8])).0, Some(Status::BADSESSION.0));
    }
}
