//! One call at a time over a connection, and answers to what the server asks meanwhile.

use super::connection::{Connection, Wait, broken};
use super::file::lock;
use crate::Fault;
use crate::rpc::Procedure;
use crate::rpc::call::{self, Credential};
use crate::rpc::record;
use crate::rpc::reply::{self, Message, Refusal};
use crate::rpc::xid::Xids;
use crate::v4::callback::BackChannel;
use crate::xdr::{Malformed, Writer};
use std::sync::{Arc, Mutex};
use units::{Nanos, Seed, clock};

/// Why an attempt came to nothing.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// The connection is gone, or silent; whether the server did it is unknown.
    Lost(String),
    /// The server answered, and not with a result.
    Fault(Fault),
    /// The server did not take the call.
    Rpc(Refusal),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Lost(why) => f.write_str(why),
            Self::Fault(fault) => fault.fmt(f),
            Self::Rpc(refusal) => refusal.fmt(f),
        }
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Malformed> for Trouble {
    fn from(malformed: Malformed) -> Self {
        Self::Fault(malformed.into())
    }
}

pub(super) struct Caller {
    pub(super) connection: Connection,
    /// What it is asked; of one who is asked nothing, its own.
    back: Arc<Mutex<BackChannel>>,
    xids: Xids,
}

impl Caller {
    pub(super) fn new(connection: Connection) -> Self {
        Self::with(connection, Arc::default())
    }

    /// What the server asks is answered by `back`.
    pub(super) fn with(connection: Connection, back: Arc<Mutex<BackChannel>>) -> Self {
        Self { connection, back, xids: Xids::new(1, Seed::draw()) }
    }

    /// Calls `procedure` with encoded `arguments`; the result is its encoded results, which are there before `deadline`.
    pub(super) fn call(
        &mut self,
        procedure: Procedure,
        credential: &Credential,
        arguments: &[u8],
        deadline: Nanos,
    ) -> Result<Vec<u8>, Trouble> {
        let xid = self.xids.draw(0);
        self.connection.send(|w| {
            let at = call::begin(w, xid, procedure, credential);
            w.raw(arguments);
            record::seal(w, at, 0);
        });
        loop {
            self.connection.flush(|_| &[])?;
            if let Some(results) = self.take(xid)? {
                return results.map_err(Trouble::Rpc);
            }
            if clock::now() >= deadline {
                return Err(Trouble::Lost(format!("{} gave no answer", self.connection.peer)));
            }
            self.connection.wait(deadline)?;
            self.connection.fill(Wait::No, |_| &mut [])?;
        }
    }

    /// Answers what the server asks, without waiting.
    pub(super) fn tend(&mut self) -> Result<(), Trouble> {
        while self.connection.fill(Wait::No, |_| &mut [])? {
            self.take(0)?;
        }
        Ok(self.connection.flush(|_| &[])?)
    }

    /// Goes through what has arrived; the reply to call `xid`, where it is among that.
    fn take(&mut self, xid: u32) -> Result<Option<Result<Vec<u8>, Refusal>>, Trouble> {
        let (mut found, mut answers) = (None, Writer::new());
        while let Some(message) = self.connection.records.message().map_err(broken)? {
            match reply::decode(message).map_err(broken)? {
                Message::Reply { xid: of, result } if of == xid => {
                    found = Some(result.map(|r| r.rest().to_vec()))
                }
                // To a call that was given up.
                Message::Reply { .. } => {}
                Message::Call { xid, procedure, arguments } => {
                    lock(&self.back).answer(&mut answers, xid, procedure, arguments);
                }
            }
        }
        if !answers.is_empty() {
            self.connection.send(|w| w.raw(answers.bytes()));
            self.connection.flush(|_| &[])?;
        }
        Ok(found)
    }
}
