//! A compound: operations in a row on a current file; the server stops at the first that fails. Source: RFC 8881, 16.2.

use super::{HANDLE_BYTES_MAX, Minor, OPAQUE_BYTES_MAX};
use crate::xdr::{Malformed, Reader, Writer};
use crate::{Fault, Handle, Status};

macro_rules! operations {
    ($($variant:ident = $number:literal, $name:literal;)*) => {
        /// An operation, with its number on the wire. RFC 8881, 16.2.3 (`nfs_opnum4`); those of 4.0 are the same.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Op {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl Op {
            /// As the RFC writes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

operations! {
    Access = 3, "ACCESS";
    Close = 4, "CLOSE";
    Commit = 5, "COMMIT";
    Create = 6, "CREATE";
    DelegReturn = 8, "DELEGRETURN";
    GetAttr = 9, "GETATTR";
    GetFh = 10, "GETFH";
    Lookup = 15, "LOOKUP";
    Open = 18, "OPEN";
    OpenConfirm = 20, "OPEN_CONFIRM";
    PutFh = 22, "PUTFH";
    PutRootFh = 24, "PUTROOTFH";
    Read = 25, "READ";
    ReadDir = 26, "READDIR";
    Remove = 28, "REMOVE";
    Rename = 29, "RENAME";
    Renew = 30, "RENEW";
    SaveFh = 32, "SAVEFH";
    SetAttr = 34, "SETATTR";
    SetClientId = 35, "SETCLIENTID";
    SetClientIdConfirm = 36, "SETCLIENTID_CONFIRM";
    Write = 38, "WRITE";
    BindConnToSession = 41, "BIND_CONN_TO_SESSION";
    ExchangeId = 42, "EXCHANGE_ID";
    CreateSession = 43, "CREATE_SESSION";
    DestroySession = 44, "DESTROY_SESSION";
    GetDeviceInfo = 47, "GETDEVICEINFO";
    LayoutCommit = 49, "LAYOUTCOMMIT";
    LayoutGet = 50, "LAYOUTGET";
    LayoutReturn = 51, "LAYOUTRETURN";
    Sequence = 53, "SEQUENCE";
    DestroyClientId = 57, "DESTROY_CLIENTID";
    ReclaimComplete = 58, "RECLAIM_COMPLETE";
}

/// The number that a server gives for one that it does not know.
const ILLEGAL: u32 = 10_044;

/// The arguments of a compound, while they are appended to a message.
#[derive(Debug)]
pub struct Compound<'w> {
    writer: &'w mut Writer,
    count_at: usize,
    ops: Vec<Op>,
}

impl<'w> Compound<'w> {
    /// Begins one of version `minor`.
    pub fn new(writer: &'w mut Writer, minor: Minor) -> Self {
        writer.opaque(&[]);
        writer.u32(minor as u32);
        let count_at = writer.len();
        writer.u32(0);
        Self { writer, count_at, ops: Vec::new() }
    }

    /// Appends an operation; its arguments go to the result.
    pub fn op(&mut self, op: Op) -> &mut Writer {
        self.ops.push(op);
        self.writer.set_u32(self.count_at, self.ops.len() as u32);
        self.writer.u32(op as u32);
        self.writer
    }

    /// What it has so far.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The server's root becomes the current file.
    pub fn put_root(&mut self) {
        self.op(Op::PutRootFh);
    }

    /// `handle` becomes the current file.
    pub fn put(&mut self, handle: &Handle) {
        handle.encode(self.op(Op::PutFh));
    }

    /// The file `name` in the current directory becomes the current file.
    pub fn lookup(&mut self, name: &str) {
        self.op(Op::Lookup).opaque(name.as_bytes());
    }

    /// Asks for the handle of the current file: [`Results::handle`].
    pub fn get_handle(&mut self) {
        self.op(Op::GetFh);
    }

    /// Removes `name` from the current directory: [`Results::removed`].
    pub fn remove(&mut self, name: &str) {
        self.op(Op::Remove).opaque(name.as_bytes());
    }

    /// Asks which of `wanted` the caller may do with the current file (bits as in NFSv3): [`Results::access`].
    pub fn access(&mut self, wanted: u32) {
        self.op(Op::Access).u32(wanted);
    }
}

/// The results of a compound, taken one by one in the order of its operations.
#[derive(Clone, Copy, Debug)]
pub struct Results<'m> {
    reader: Reader<'m>,
    left: u32,
    status: Status,
}

impl<'m> Results<'m> {
    /// Takes what stands before the first result.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn new(mut reader: Reader<'m>) -> Result<Self, Malformed> {
        let status = Status(reader.u32()?);
        reader.opaque("the tag of a compound", OPAQUE_BYTES_MAX)?;
        let left = reader.u32()?;
        Ok(Self { reader, left, status })
    }

    /// Goes to the results of the next operation, which must be `op`, and have succeeded. They are behind in the result.
    ///
    /// # Errors
    /// [`Fault::Refused`] where it failed, or one before it did; [`Fault::Malformed`].
    pub fn next_op(&mut self, op: Op) -> Result<&mut Reader<'m>, Fault> {
        if self.left == 0 {
            return Err(match self.status.0 {
                0 => Malformed::Unknown { what: "the number of results", seen: 0 }.into(),
                _ => Fault::Refused { status: self.status, call: op.name() },
            });
        }
        self.left -= 1;
        let seen = self.reader.u32()?;
        if seen != op as u32 && seen != ILLEGAL {
            return Err(Malformed::Unknown { what: "the operation of a result", seen }.into());
        }
        Status::read(&mut self.reader, op.name())?;
        Ok(&mut self.reader)
    }

    /// Result of an operation that gives nothing, such as PUTFH or LOOKUP.
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn done(&mut self, op: Op) -> Result<(), Fault> {
        self.next_op(op).map(drop)
    }

    /// Result of [`Compound::get_handle`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn handle(&mut self) -> Result<Handle, Fault> {
        Ok(Handle::decode(self.next_op(Op::GetFh)?, HANDLE_BYTES_MAX)?)
    }

    /// Result of [`Compound::remove`].
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn removed(&mut self) -> Result<(), Fault> {
        Ok(skip_change(self.next_op(Op::Remove)?)?)
    }

    /// Result of [`Compound::access`]: those that the server knows of, and those that are granted.
    ///
    /// # Errors
    /// As [`Results::next_op`].
    pub fn access(&mut self) -> Result<u32, Fault> {
        let r = self.next_op(Op::Access)?;
        r.u32()?;
        Ok(r.u32()?)
    }
}

/// A directory before and after. RFC 8881, 3.3.8 (`change_info4`).
pub(super) fn skip_change(r: &mut Reader<'_>) -> Result<(), Malformed> {
    r.bool()?;
    r.skip(2 * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn operations_are_counted() {
        let mut w = Writer::new();
        let mut compound = Compound::new(&mut w, Minor::V1);
        compound.put_root();
        compound.lookup("vfs");
        compound.get_handle();
        assert_eq!(w.bytes(), words(&[0, 1, 3, 24, 15, 3, u32::from_be_bytes(*b"vfs\0"), 10]));
    }

    #[test]
    fn the_operation_that_failed_is_named() {
        let reply = words(&[2, 0, 2, 24, 0, 15, 2]);
        let mut results = Results::new(Reader::new(&reply)).expect("well formed");
        results.done(Op::PutRootFh).expect("this one went well");
        let refused = Fault::Refused { status: Status::NOENT, call: "LOOKUP" };
        assert_eq!(results.done(Op::Lookup), Err(refused));
        assert_eq!(refused.to_string(), "LOOKUP: NFSERR 2 (NOENT)");
        assert_eq!(results.handle(), Err(Fault::Refused { status: Status::NOENT, call: "GETFH" }));
    }

    #[test]
    fn another_operation_than_was_asked_is_malformed() {
        let reply = words(&[0, 0, 1, 22, 0]);
        let mut results = Results::new(Reader::new(&reply)).expect("well formed");
        assert!(matches!(results.done(Op::PutRootFh), Err(Fault::Malformed(_))));
        let empty = words(&[0, 0, 0]);
        let mut results = Results::new(Reader::new(&empty)).expect("well formed");
        assert!(matches!(results.done(Op::PutRootFh), Err(Fault::Malformed(_))));
    }
}
