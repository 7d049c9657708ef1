//! How nodes pass requests on to each other: a program of our own, over connections of their own to the port where clients come, too.
//!
//! ```text
//! 1 READ   | file (8) | offset (8) | bytes (4) |           → | data, opaque |
//! 2 WRITE  | file (8) | offset (8) | data, opaque |        → | status (4) |
//! ```

use crate::counters::count;
use crate::node::Node;
use crate::store::lock;
use crate::wire::{FILE_BYTES_MAX, MESSAGE_BYTES_MAX, Stop, TRANSFER_BYTES_MAX};
use nfs::Status;
use nfs::rpc::Procedure;
use nfs::rpc::call::{self, Credential};
use nfs::rpc::record::{self, Records};
use nfs::rpc::reply::{self, Message};
use nfs::xdr::{Reader, Writer};
use std::io::{Error, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// One of those that nobody owns.
pub(crate) const PROGRAM: u32 = 0x2000_4E4C;
const READ: Procedure = Procedure { program: PROGRAM, version: 1, number: 1 };
const WRITE: Procedure = Procedure { program: PROGRAM, version: 1, number: 2 };
/// Longest that another node is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A node's connections to the others, those that are not in use.
#[derive(Default)]
pub(crate) struct Interconnect {
    idle: Mutex<Vec<(usize, Peer)>>,
    xid: AtomicU32,
}

struct Peer {
    stream: TcpStream,
    records: Records,
}

impl Interconnect {
    /// Reads at the node that keeps the data.
    pub(crate) fn read(
        &self,
        owner: &Node,
        file: u64,
        offset: u64,
        bytes: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Status> {
        let encode = |w: &mut Writer| {
            w.u64(file);
            w.u64(offset);
            w.u32(bytes);
        };
        self.call(owner, READ, encode, |r| {
            out.extend_from_slice(r.opaque("data", bytes as usize).map_err(|_| Status::IO)?);
            Ok(())
        })
    }

    /// Writes there.
    pub(crate) fn write(&self, owner: &Node, file: u64, offset: u64, data: &[u8]) -> Result<(), Status> {
        let encode = |w: &mut Writer| {
            w.u64(file);
            w.u64(offset);
            w.opaque(data);
        };
        self.call(owner, WRITE, encode, |r| match r.u32() {
            Ok(0) => Ok(()),
            Ok(status) => Err(Status(status)),
            Err(_) => Err(Status::IO),
        })
    }

    fn call(
        &self,
        owner: &Node,
        procedure: Procedure,
        encode: impl Fn(&mut Writer),
        mut read: impl FnMut(&mut Reader<'_>) -> Result<(), Status>,
    ) -> Result<(), Status> {
        loop {
            let idle = {
                let mut idle = lock(&self.idle);
                let at = idle.iter().position(|(node, _)| *node == owner.index);
                at.map(|at| idle.swap_remove(at).1)
            };
            let fresh = idle.is_none();
            let xid = self.xid.fetch_add(1, Ordering::Relaxed);
            let attempt = idle.map_or_else(|| Peer::connect(owner), Ok).and_then(|mut peer| {
                let results = peer.call(xid, procedure, &encode)?;
                Ok((peer, results))
            });
            match attempt {
                Ok((peer, results)) => {
                    lock(&self.idle).push((owner.index, peer));
                    return read(&mut Reader::new(&results));
                }
                // One that lay idle may be of before a restart.
                Err(_) if !fresh => {}
                // A node that is away is asked again by the client.
                Err(_) => return Err(Status::DELAY),
            }
        }
    }
}

impl Peer {
    fn connect(owner: &Node) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&owner.address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, records: Records::new(MESSAGE_BYTES_MAX) })
    }

    fn call(
        &mut self,
        xid: u32,
        procedure: Procedure,
        encode: impl Fn(&mut Writer),
    ) -> std::io::Result<Vec<u8>> {
        let mut w = Writer::new();
        let at = call::begin(&mut w, xid, procedure, &Credential::sys("node", 0, 0, &[]));
        encode(&mut w);
        record::seal(&mut w, at, 0);
        self.stream.write_all(w.bytes())?;
        loop {
            if let Some(message) = self.records.message().map_err(Error::other)? {
                return match reply::decode(message).map_err(Error::other)? {
                    Message::Reply { xid: of, result: Ok(results) } if of == xid => {
                        Ok(results.rest().to_vec())
                    }
                    _ => Err(Error::other("no reply to the call")),
                };
            }
            match self.stream.read(self.records.room())? {
                0 => return Err(Error::other("the node closed the connection")),
                bytes => self.records.received(bytes),
            }
        }
    }
}

/// Serves another node.
pub(crate) fn serve(node: &Node, number: u32, r: &mut Reader<'_>, w: &mut Writer) -> Result<(), Stop> {
    let (file, offset) = (r.u64()?, r.u64()?);
    if offset > FILE_BYTES_MAX {
        return Err(Stop::Malformed);
    }
    count(&node.counters.served);
    match number {
        1 => {
            let bytes = r.count("the bytes of a part", TRANSFER_BYTES_MAX as usize)?;
            let mut data = Vec::with_capacity(bytes);
            node.store.read(file, offset, bytes, &mut data);
            w.opaque(&data);
        }
        _ => {
            let data = r.opaque("the data of a part", TRANSFER_BYTES_MAX as usize)?;
            w.u32(node.store.write(file, offset, data, true).err().map_or(0, |status| status.0));
        }
    }
    Ok(())
}
