//! One connection: calls are answered one after the other, and what comes back of our own calls goes to whoever waits for it.

use crate::cluster::Shared;
use crate::counters::count;
use crate::node::Node;
use crate::replies::{Call, Seen};
use crate::store::lock;
use crate::wire::{MESSAGE_BYTES_MAX, Stop};
use crate::{interconnect, v3, v4};
use nfs::rpc::Procedure;
use nfs::rpc::call::{self, Credential};
use nfs::rpc::record::{self, Records};
use nfs::rpc::reply::{self, Message};
use nfs::xdr::{Malformed, Reader, Writer};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use units::Nanos;

/// Answers are sent when so much of them is there, bytes, or nothing is left to answer.
const ANSWERS_BYTES: usize = 256 << 10;

/// The end of a connection that calls of ours go to.
pub(crate) struct Line {
    stream: Mutex<TcpStream>,
    next: AtomicU32,
    /// None: the connection has ended.
    waiting: Mutex<Option<HashMap<u32, SyncSender<Vec<u8>>>>>,
}

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream: Mutex::new(stream), next: 1.into(), waiting: Mutex::new(Some(HashMap::new())) }
    }

    fn send(&self, bytes: &[u8]) -> std::io::Result<()> {
        lock(&self.stream).write_all(bytes)
    }

    /// Calls the client; the results, unless they take longer than `patience`, or the connection ends before.
    pub(crate) fn call(
        &self,
        procedure: Procedure,
        encode: impl FnOnce(&mut Writer),
        patience: Nanos,
    ) -> Option<Vec<u8>> {
        let xid = self.next.fetch_add(1, Ordering::Relaxed);
        let mut w = Writer::new();
        let at = call::begin(&mut w, xid, procedure, &Credential::sys("nfslab", 0, 0, &[]));
        encode(&mut w);
        record::seal(&mut w, at, 0);
        let (send, receive) = sync_channel(1);
        lock(&self.waiting).as_mut()?.insert(xid, send);
        let sent = self.send(w.bytes());
        let results = sent.ok().and_then(|()| receive.recv_timeout(patience.duration()).ok());
        self.take(xid);
        results
    }

    /// Whether the connection is there.
    pub(crate) fn is_up(&self) -> bool {
        lock(&self.waiting).is_some()
    }

    fn take(&self, xid: u32) -> Option<SyncSender<Vec<u8>>> {
        lock(&self.waiting).as_mut()?.remove(&xid)
    }
}

/// Serves `stream` until it ends.
pub(crate) fn run(shared: &Weak<Shared>, node: usize, id: u64, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    if let (Ok(copy), Ok(client)) = (stream.try_clone(), stream.peer_addr()) {
        let line = Arc::new(Line::new(copy));
        let mut server = Server {
            shared,
            node,
            boot: shared.upgrade().map_or(0, |shared| shared.nodes[node].v4.boot()),
            client: client.ip(),
            is_node: false,
            line,
            records: Records::new(MESSAGE_BYTES_MAX),
            answers: Writer::new(),
            scratch: Vec::new(),
        };
        // An end of the stream is an end; what the client was, it will say again.
        let _ = server.serve(stream);
        // Nothing comes back any more to whoever waits.
        *lock(&server.line.waiting) = None;
    }
    if let Some(shared) = shared.upgrade() {
        shared.nodes[node].forget_connection(id);
    }
}

struct Server<'a> {
    shared: &'a Weak<Shared>,
    node: usize,
    /// The start of the node that the connection was made to.
    boot: u32,
    client: IpAddr,
    /// It is another node that asks.
    is_node: bool,
    line: Arc<Line>,
    records: Records,
    answers: Writer,
    /// Data of a READ on its way from the store to the answer.
    scratch: Vec<u8>,
}

impl Server<'_> {
    fn serve(&mut self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut cpu_before = cpu_ns();
        loop {
            match stream.read(self.records.room())? {
                0 => return Ok(()),
                bytes => self.records.received(bytes),
            }
            // Nothing outlives the cluster but a read that waits, and that ends with its stream.
            let Some(shared) = self.shared.upgrade() else { return Ok(()) };
            let node = &shared.nodes[self.node];
            let result = self.answer_all(&shared, node);
            let cpu = cpu_ns();
            node.counters.cpu_ns.fetch_add(cpu.saturating_sub(cpu_before), Ordering::Relaxed);
            cpu_before = cpu;
            if let Err(error) = result {
                if error.kind() == std::io::ErrorKind::InvalidData {
                    count(&node.counters.malformed);
                }
                return Err(error);
            }
        }
    }

    fn answer_all(&mut self, shared: &Arc<Shared>, node: &Node) -> std::io::Result<()> {
        while let Some(message) = self.records.message().map_err(broken)? {
            if node.v4.boot() != self.boot {
                return Err(std::io::ErrorKind::ConnectionReset.into());
            }
            match reply::decode(message).map_err(broken)? {
                Message::Reply { xid, result } => {
                    if let (Ok(results), Some(waiting)) = (result, self.line.take(xid)) {
                        let _ = waiting.try_send(results.rest().to_vec());
                    }
                }
                Message::Call { xid, procedure, arguments } => {
                    let call =
                        changes(procedure, arguments).then(|| Call::new(self.client, xid, arguments.rest()));
                    self.is_node |= procedure.program == interconnect::PROGRAM;
                    let start = self.answers.len();
                    match call.map_or(Seen::New, |call| node.replies.begin(call)) {
                        Seen::New => {
                            let context =
                                Context { shared, node, line: &self.line, scratch: &mut self.scratch };
                            answer(context, &mut self.answers, xid, procedure, arguments);
                            let reply = &self.answers.bytes()[start..];
                            call.into_iter().for_each(|call| node.replies.end(call, reply));
                        }
                        // It is answered where it came first.
                        Seen::AtWork => count(&node.counters.replayed),
                        Seen::Done(reply) => {
                            count(&node.counters.replayed);
                            self.answers.raw(&reply);
                        }
                    }
                }
            }
            if self.answers.len() >= ANSWERS_BYTES {
                self.flush(node)?;
            }
        }
        self.flush(node)
    }

    fn flush(&mut self, node: &Node) -> std::io::Result<()> {
        if !self.answers.is_empty() && (self.is_node || !node.mute.load(Ordering::Acquire)) {
            self.line.send(self.answers.bytes())?;
        }
        self.answers.clear();
        Ok(())
    }
}

fn broken(malformed: Malformed) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, malformed.to_string())
}

/// Whether a call without a session changes something: then it is done once.
fn changes(procedure: Procedure, mut arguments: Reader<'_>) -> bool {
    match (procedure.program, procedure.version, procedure.number) {
        (100_003, 3, number) => matches!(number, 2 | 7..=15),
        (100_003, 4, 1) => arguments.opaque("a tag", 1024).is_ok() && arguments.u32() == Ok(0),
        _ => false,
    }
}

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

/// Where a call is carried out.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) node: &'a Node,
    pub(crate) line: &'a Arc<Line>,
    pub(crate) scratch: &'a mut Vec<u8>,
}

/// Appends the answer to a call, a whole record.
pub(crate) fn answer(
    context: Context<'_>,
    w: &mut Writer,
    xid: u32,
    procedure: Procedure,
    mut arguments: Reader<'_>,
) {
    let at = reply::begin(w, xid);
    let body = w.len();
    let accepted = body - 4;
    let result = match (procedure.program, procedure.version, procedure.number) {
        (100_003, 3, number) => v3::call(context, number, &mut arguments, w),
        (100_003, 4, 0) => Ok(()),
        (100_003, 4, 1) => v4::compound(context, &mut arguments, w),
        (100_003, 4, _) => Err(Refused::NoProcedure),
        (100_003, ..) => Err(Refused::Versions(3, 4)),
        (100_005, 3, number) => v3::mount(context, number, &mut arguments, w),
        (100_005, ..) => Err(Refused::Versions(3, 3)),
        (interconnect::PROGRAM, 1, number @ (1 | 2)) => {
            interconnect::serve(context.node, number, &mut arguments, w).map_err(|_: Stop| Refused::Garbage)
        }
        _ => Err(Refused::NoProgram),
    };
    let Err(refused) = result else { return record::seal(w, at, 0) };
    // What was appended of a result that was not to be stays behind nothing: refusals come before results.
    debug_assert_eq!(w.len(), body, "a refusal after a result");
    let number = match refused {
        Refused::NoProgram => 1,
        Refused::Versions(..) => 2,
        Refused::NoProcedure => 3,
        Refused::Garbage => 4,
    };
    w.set_u32(accepted, number);
    if let Refused::Versions(low, high) = refused {
        w.u32(low);
        w.u32(high);
    }
    record::seal(w, at, 0);
}

/// Why a call is not carried out at all.
pub(crate) enum Refused {
    NoProgram,
    Versions(u32, u32),
    NoProcedure,
    Garbage,
}

impl From<Malformed> for Refused {
    fn from(_: Malformed) -> Self {
        Self::Garbage
    }
}
