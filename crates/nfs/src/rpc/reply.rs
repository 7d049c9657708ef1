//! What arrives: replies to our calls, and on some connections calls of the server.

use super::{AUTH_BYTES_MAX, MESSAGE_CALL, MESSAGE_REPLY, Procedure, RPC_VERSION, record};
use crate::xdr::{Malformed, Reader, Writer};
use thiserror::Error;

/// A message.
#[derive(Clone, Debug)]
pub enum Message<'m> {
    /// A reply.
    Reply {
        /// To which call.
        xid: u32,
        /// Its results, or why there are none.
        result: Result<Reader<'m>, Refusal>,
    },
    /// A call of the server: a callback.
    Call {
        /// Its number.
        xid: u32,
        /// What is called.
        procedure: Procedure,
        /// Its arguments.
        arguments: Reader<'m>,
    },
}

/// Why a server did not carry out a call. RFC 5531, 9.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The program does not run there.
    #[error("the server does not have this program")]
    NoProgram,
    /// Another version of it does.
    #[error("the server has versions {low} to {high} of this program")]
    Versions {
        /// Lowest.
        low: u32,
        /// Highest.
        high: u32,
    },
    /// The program has no such procedure.
    #[error("the server does not have this procedure")]
    NoProcedure,
    /// It could not read the arguments.
    #[error("the server could not read the call's arguments")]
    Garbage,
    /// It failed by itself.
    #[error("the server failed to carry out the call")]
    System,
    /// It speaks another version of RPC.
    #[error("the server speaks versions {low} to {high} of RPC")]
    RpcVersions {
        /// Lowest.
        low: u32,
        /// Highest.
        high: u32,
    },
    /// It does not accept who we are (`auth_stat`: 1 bad credential, 5 too weak: often a port below 1024 is asked for).
    #[error("the server does not accept who we say we are (auth_stat {0})")]
    Credential(u32),
}

/// Reads the head of a message.
///
/// # Errors
/// [`Malformed`].
pub fn decode(message: &[u8]) -> Result<Message<'_>, Malformed> {
    let mut r = Reader::new(message);
    let xid = r.u32()?;
    match r.u32()? {
        MESSAGE_REPLY => Ok(Message::Reply { xid, result: result(&mut r)?.map(|()| r) }),
        MESSAGE_CALL => {
            let version = r.u32()?;
            if version != RPC_VERSION {
                return Err(Malformed::Unknown { what: "the version of RPC", seen: version });
            }
            let procedure = Procedure { program: r.u32()?, version: r.u32()?, number: r.u32()? };
            skip_auth(&mut r)?;
            skip_auth(&mut r)?;
            Ok(Message::Call { xid, procedure, arguments: r })
        }
        seen => Err(Malformed::Unknown { what: "the kind of message", seen }),
    }
}

fn skip_auth(r: &mut Reader<'_>) -> Result<(), Malformed> {
    r.u32()?;
    r.opaque("a credential", AUTH_BYTES_MAX).map(drop)
}

fn result(r: &mut Reader<'_>) -> Result<Result<(), Refusal>, Malformed> {
    match r.u32()? {
        0 => {}
        1 => return denial(r).map(Err),
        seen => return Err(Malformed::Unknown { what: "the kind of reply", seen }),
    }
    skip_auth(r)?;
    Ok(match r.u32()? {
        0 => Ok(()),
        1 => Err(Refusal::NoProgram),
        2 => Err(Refusal::Versions { low: r.u32()?, high: r.u32()? }),
        3 => Err(Refusal::NoProcedure),
        4 => Err(Refusal::Garbage),
        5 => Err(Refusal::System),
        seen => return Err(Malformed::Unknown { what: "the result of a call", seen }),
    })
}

fn denial(r: &mut Reader<'_>) -> Result<Refusal, Malformed> {
    match r.u32()? {
        0 => Ok(Refusal::RpcVersions { low: r.u32()?, high: r.u32()? }),
        1 => Ok(Refusal::Credential(r.u32()?)),
        seen => Err(Malformed::Unknown { what: "the kind of denial", seen }),
    }
}

/// Starts a record with the head of a reply to call `xid` that was carried out; its results follow, then [`record::seal`].
/// Result: where the record starts.
pub fn begin(writer: &mut Writer, xid: u32) -> usize {
    accepted(writer, xid, 0)
}

/// A whole record: we do not have the procedure that call `xid` asks for.
pub fn no_procedure(writer: &mut Writer, xid: u32) {
    let at = accepted(writer, xid, 3);
    record::seal(writer, at, 0);
}

/// A whole record: the arguments of call `xid` cannot be read.
pub fn garbage(writer: &mut Writer, xid: u32) {
    let at = accepted(writer, xid, 4);
    record::seal(writer, at, 0);
}

fn accepted(writer: &mut Writer, xid: u32, result: u32) -> usize {
    let at = record::open(writer);
    // Accepted; the verifier is AUTH_NONE and empty.
    for word in [xid, MESSAGE_REPLY, 0, 0, 0, result] {
        writer.u32(word);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::call::{self, Credential};

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn each_way_to_say_no_is_known() {
        for (rest, expected) in [
            (&[0, 0, 0, 1][..], Refusal::NoProgram),
            (&[0, 0, 0, 2, 3, 4], Refusal::Versions { low: 3, high: 4 }),
            (&[0, 0, 0, 3], Refusal::NoProcedure),
            (&[0, 0, 0, 4], Refusal::Garbage),
            (&[0, 0, 0, 5], Refusal::System),
            (&[1, 0, 2, 2], Refusal::RpcVersions { low: 2, high: 2 }),
            (&[1, 1, 5], Refusal::Credential(5)),
        ] {
            let message = words(&[&[9, 1][..], rest].concat());
            let Ok(Message::Reply { xid: 9, result: Err(refusal) }) = decode(&message) else {
                panic!("{rest:?}: {:?}", decode(&message));
            };
            assert_eq!(refusal, expected);
        }
        for rest in [&[9, 2][..], &[9, 1, 2], &[9, 1, 0, 0, 0, 6], &[9, 1, 1, 2], &[9, 1, 0, 0, 401]] {
            assert!(decode(&words(rest)).is_err(), "{rest:?}");
        }
    }

    #[test]
    fn calls_are_read_as_they_were_written() {
        let credential = Credential::sys(&"m".repeat(300), 1, 2, &[3; 20]);
        let procedure = Procedure { program: 100_003, version: 3, number: 6 };
        let mut w = Writer::new();
        let at = call::begin(&mut w, 77, procedure, &credential);
        w.u32(5);
        record::seal(&mut w, at, 0);
        assert_eq!(w.bytes()[call::XID_AT..][..4], [0, 0, 0, 77]);
        let Ok(Message::Call { xid: 77, procedure: read, arguments }) = decode(&w.bytes()[4..]) else {
            panic!("{:?}", decode(&w.bytes()[4..]));
        };
        assert_eq!((read, arguments.rest()), (procedure, &[0, 0, 0, 5][..]));
    }

    #[test]
    fn replies_are_read_as_they_were_written() {
        let mut w = Writer::new();
        let at = begin(&mut w, 7);
        w.u32(1);
        record::seal(&mut w, at, 0);
        let Ok(Message::Reply { xid: 7, result: Ok(results) }) = decode(&w.bytes()[4..]) else {
            panic!("{w:?}")
        };
        assert_eq!(results.rest(), [0, 0, 0, 1]);
        for (write, expected) in
            [(no_procedure as fn(&mut Writer, u32), Refusal::NoProcedure), (garbage, Refusal::Garbage)]
        {
            let mut w = Writer::new();
            write(&mut w, 7);
            let Ok(Message::Reply { result: Err(refusal), .. }) = decode(&w.bytes()[4..]) else {
                panic!("{w:?}")
            };
            assert_eq!(refusal, expected);
        }
    }
}
