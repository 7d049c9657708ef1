//! Calls of the server over our connection: it may ask at any time, and waits for the answer. Source: RFC 8881, 16.3 and 20.
//!
//! This client takes no delegations and no layouts, so there is nothing to recall; it says so in the words of the protocol.

use super::OPAQUE_BYTES_MAX;
use super::identity::CALLBACK_PROGRAM;
use super::session::SessionId;
use crate::Status;
use crate::rpc::{Procedure, record, reply};
use crate::xdr::{Malformed, Reader, Writer};

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

/// The back channel of a session: one slot, and the reply that it gave last.
#[derive(Clone, Debug, Default)]
pub struct BackChannel {
    session: SessionId,
    sequence: u32,
    last_results: Vec<u8>,
    answered: u64,
}

impl BackChannel {
    /// That of `session`.
    pub fn new(session: SessionId) -> Self {
        Self { session, ..Self::default() }
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
    fn operation(&self, op: u32, r: &mut Reader<'_>) -> Result<Status, Malformed> {
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
            CB_GETATTR | CB_RECALL => Status::BADHANDLE,
            CB_LAYOUTRECALL => Status::NOMATCHING_LAYOUT,
            3..=CB_NOTIFY_DEVICEID => Status::NOTSUPP,
            _ => Status::OP_ILLEGAL,
        })
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
        assert_eq!(ask(&mut back, 1, &compound(2, &[CB_LAYOUTRECALL])).0, Some(Status::NOMATCHING_LAYOUT.0));
        assert_eq!(back.answered(), 5);
    }

    #[test]
    fn what_it_does_not_know_is_refused() {
        let mut back = BackChannel::new(SESSION);
        assert_eq!(ask(&mut back, 1, &compound(1, &[99])).0, Some(Status::OP_ILLEGAL.0));
        assert_eq!(ask(&mut back, 1, &[1, 2, 3]).0, None);
        assert_eq!(ask(&mut BackChannel::default(), 1, &compound(1, &[8])).0, Some(Status::BADSESSION.0));
    }
}
