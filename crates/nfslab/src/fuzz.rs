//! Where fuzzers enter: calls, one after the other, to a node that nobody else knows.
//!
//! Not for users: built for tests, and with the feature `fuzz` for the programs in `fuzz/` (`cargo x fuzz`).

use crate::cluster::{Cluster, ClusterOptions, Layouts};
use crate::connection::{Context, Line, answer};
use crate::interconnect;
use crate::tree::ROOT;
use crate::wire::{MESSAGE_BYTES_MAX, Place};
use nfs::Handle;
use nfs::fuzz::Target;
use nfs::rpc::Procedure;
use nfs::rpc::reply::{self, Message};
use nfs::transfer::SlotCall;
use nfs::v4::attributes::Set;
use nfs::v4::compound::{Compound, Op, Results};
use nfs::v4::identity::{Channel, Owner, Role};
use nfs::v4::layout::LayoutKind;
use nfs::v4::open::{Claim, Open, StateId};
use nfs::v4::session::SessionId;
use nfs::v4::{COMPOUND, Minor};
use nfs::xdr::{Reader, Writer};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// All of this crate.
pub const TARGETS: &[Target] = &[Target {
    name: "server",
    seeds: conversations,
    run: |message| converse(message, Layouts::Files),
    // A few answers of a MiB, each in the making and made, and what the node keeps.
    memory: |bytes| (16 << 20) + 4096 * bytes,
}];

pub(crate) const BYTES_MAX: u64 = 8 << 20;
const PORT: u16 = 2049;

/// A node, and a connection that nothing is sent over. Its numbers are the same each time.
pub(crate) struct Stand {
    pub(crate) cluster: Cluster,
    line: Arc<Line>,
}

impl Stand {
    /// # Panics
    /// When the machine has no port or connection left.
    pub(crate) fn new(layouts: Layouts) -> Self {
        static ENDS: OnceLock<(TcpStream, TcpListener)> = OnceLock::new();
        let (stream, _) = ENDS.get_or_init(|| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            (TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection"), listener)
        });
        let options = ClusterOptions {
            nodes: 1,
            layouts,
            bytes_max: BYTES_MAX,
            probe: false,
            ..ClusterOptions::default()
        };
        let volumes = vec![("a".to_owned(), vec![0])];
        let cluster = Cluster::unserved(ClusterOptions { volumes, ..options }, PORT).expect("a cluster");
        cluster.shared.nodes[0].v4.set_boot(7);
        Self { cluster, line: Arc::new(Line::new(stream.try_clone().expect("a descriptor"))) }
    }

    /// The answer to a call, from the status of the call on.
    pub(crate) fn call(&self, procedure: Procedure, arguments: &[u8]) -> Vec<u8> {
        let (shared, mut scratch, mut w) = (&self.cluster.shared, Vec::new(), Writer::new());
        let context = Context { shared, node: &shared.nodes[0], line: &self.line, scratch: &mut scratch };
        answer(context, &mut w, 7, procedure, Reader::new(arguments));
        assert!(w.len() <= MESSAGE_BYTES_MAX + 1024, "an answer of {} bytes", w.len());
        assert!(shared.budget.used.load(Ordering::Relaxed) <= BYTES_MAX);
        match reply::decode(&w.bytes()[4..]) {
            Ok(Message::Reply { xid: 7, result: Ok(results) }) => results.rest().to_vec(),
            Ok(Message::Reply { xid: 7, .. }) => Vec::new(),
            other => panic!("no answer: {other:?}"),
        }
    }

    pub(crate) fn results<T>(&self, arguments: &Writer, read: impl FnOnce(&mut Results<'_>) -> T) -> T {
        let results = self.call(COMPOUND, arguments.bytes());
        read(&mut Results::new(Reader::new(&results)).expect("results"))
    }

    /// A new session.
    pub(crate) fn session(&self, number: u64) -> SessionId {
        let owner = Owner { name: number.to_be_bytes().to_vec(), verifier: [1; 8] };
        let bare = |build: &dyn Fn(&mut Compound<'_>)| {
            let mut w = Writer::new();
            build(&mut Compound::new(&mut w, Minor::V1));
            w
        };
        let given = self
            .results(&bare(&|c| c.exchange_id(&owner, Role::Metadata)), |all| all.exchanged())
            .expect("a client id");
        let fore = Channel { request_bytes: 1 << 20, response_bytes: 1 << 20, operations: 16, slots: 1 };
        let call = bare(&|c| c.create_session(given.client_id, given.sequence, fore, true));
        self.results(&call, |all| all.created()).expect("a session").session
    }
}

/// What a call of a conversation is: procedures of v3, of MOUNT, of other nodes; a COMPOUND; operations behind a SEQUENCE that is right.
const V3_FROM: u8 = 0;
const MOUNT_FROM: u8 = 24;
const NODES_FROM: u8 = 30;
const ANY_COMPOUND: u8 = 34;
const IN_SESSION: u8 = 35;

/// `| what (1) | bytes (2) | arguments … |`, again and again. In a session, the arguments are the operations behind a byte with their number.
fn converse(message: &[u8], layouts: Layouts) {
    let stand = Stand::new(layouts);
    let session = stand.session(1);
    let (mut rest, mut sequence) = (message, 0);
    while let [what, high, low, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(behind.len());
        let (arguments, next) = behind.split_at(length);
        rest = next;
        let program = |program, version, number| Procedure { program, version, number };
        let procedure = match *what {
            what @ V3_FROM..MOUNT_FROM => program(100_003, 3, u32::from(what - V3_FROM)),
            what @ MOUNT_FROM..NODES_FROM => program(100_005, 3, u32::from(what - MOUNT_FROM)),
            what @ NODES_FROM..ANY_COMPOUND => {
                program(interconnect::PROGRAM, 1, u32::from(what - NODES_FROM))
            }
            ANY_COMPOUND => COMPOUND,
            _ => {
                let [count, operations @ ..] = arguments else { continue };
                sequence += 1;
                let mut w = Writer::new();
                Compound::new(&mut w, Minor::V1).sequence(
                    session,
                    SlotCall { slot: 0, sequence },
                    0,
                    count & 0x80 != 0,
                );
                w.set_u32(8, 1 + u32::from(count & 0x1f));
                w.raw(operations);
                stand.call(COMPOUND, w.bytes());
                continue;
            }
        };
        stand.call(procedure, arguments);
    }
}

/// A conversation in the making, on a node of its own.
struct Script {
    stand: Stand,
    session: SessionId,
    sequence: u32,
    bytes: Vec<u8>,
}

impl Script {
    fn new() -> Self {
        let stand = Stand::new(Layouts::Files);
        let session = stand.session(1);
        Self { stand, session, sequence: 0, bytes: Vec::new() }
    }

    fn say(&mut self, what: u8, arguments: &[u8]) {
        self.bytes.push(what);
        self.bytes.extend_from_slice(&(arguments.len() as u16).to_be_bytes());
        self.bytes.extend_from_slice(arguments);
    }

    /// Any call; its results.
    fn call(&mut self, what: u8, procedure: Procedure, encode: impl FnOnce(&mut Writer)) -> Vec<u8> {
        let mut w = Writer::new();
        encode(&mut w);
        self.say(what, w.bytes());
        self.stand.call(procedure, w.bytes())
    }

    fn v3(&mut self, number: u8, encode: impl FnOnce(&mut Writer)) {
        let procedure = Procedure { program: 100_003, version: 3, number: u32::from(number) };
        let results = self.call(V3_FROM + number, procedure, encode);
        assert!(number == 0 || results.starts_with(&[0; 4]), "procedure {number} of v3: {results:?}");
    }

    /// Operations in the session; what `read` takes of their results.
    fn ops<T>(
        &mut self,
        build: impl FnOnce(&mut Compound<'_>),
        read: impl FnOnce(&mut Results<'_>) -> Result<T, nfs::Fault>,
    ) -> T {
        self.sequence += 1;
        let mut w = Writer::new();
        let mut compound = Compound::new(&mut w, Minor::V1);
        compound.sequence(self.session, SlotCall { slot: 0, sequence: self.sequence }, 0, true);
        build(&mut compound);
        // Behind the empty tag, the minor version, the number, and SEQUENCE.
        let (count, operations) = (w.bytes()[11] - 1, &w.bytes()[12 + 36..]);
        self.say(IN_SESSION, &[&[count | 0x80], operations].concat());
        self.stand
            .results(&w, |all| {
                all.sequenced()?;
                read(all)
            })
            .expect("results")
    }
}

fn handle(id: u64) -> Handle {
    let mut w = Writer::new();
    Place::of(id).encode(&mut w);
    Handle::new(&w.bytes()[4..]).expect("it is short")
}

/// Conversations as clients have them.
fn conversations() -> Vec<Vec<u8>> {
    vec![in_v3(), in_v40(), in_v41(), between_nodes()]
}

fn in_v3() -> Vec<u8> {
    let (root, directory, file) = (handle(ROOT), handle(ROOT + 1), handle(ROOT + 2));
    let mut script = Script::new();
    let mount = Procedure { program: 100_005, version: 3, number: 1 };
    script.call(MOUNT_FROM + 1, mount, |w| w.opaque(b"/a"));
    script.v3(0, |_| ());
    script.v3(3, |w| nfs::v3::named(w, &root, "a"));
    script.v3(8, |w| nfs::v3::create(w, &directory, "f", nfs::v3::Create::Unchecked { mode: 0o644 }));
    script.v3(8, |w| nfs::v3::create(w, &directory, "g", nfs::v3::Create::Exclusive { verifier: [3; 8] }));
    script.v3(2, |w| nfs::v3::setattr(w, &file, Some(0o600), Some(70_000)));
    script.v3(7, |w| {
        file.encode(w);
        w.u64(8);
        w.u32(4);
        w.u32(0);
        w.opaque(b"data");
    });
    script.v3(6, |w| {
        file.encode(w);
        w.u64(0);
        w.u32(64);
    });
    script.v3(21, |w| {
        file.encode(w);
        w.u64(0);
        w.u32(0);
    });
    script.v3(1, |w| nfs::v3::of(w, &file));
    script.v3(4, |w| nfs::v3::access(w, &file));
    script.v3(9, |w| nfs::v3::directory::mkdir(w, &directory, "d", 0o755));
    let place = nfs::Place { cookie: 0, verifier: [0; 8] };
    script.v3(16, |w| nfs::v3::directory::readdir(w, &directory, place, 4096));
    script.v3(14, |w| nfs::v3::directory::rename(w, (&directory, "f"), (&directory, "h")));
    script.v3(12, |w| nfs::v3::named(w, &directory, "h"));
    script.v3(13, |w| nfs::v3::named(w, &directory, "d"));
    for number in 18..21 {
        script.v3(number, |w| nfs::v3::of(w, &root));
    }
    script.bytes
}

fn in_v40() -> Vec<u8> {
    let directory = handle(ROOT + 1);
    let mut script = Script::new();
    let owner = Owner { name: b"us".to_vec(), verifier: [2; 8] };
    let bare = |build: &dyn Fn(&mut Compound<'_>)| {
        let mut w = Writer::new();
        build(&mut Compound::new(&mut w, Minor::V0));
        w
    };
    let mut ask = |w: &Writer| script.call(ANY_COMPOUND, COMPOUND, |all| all.raw(w.bytes()));
    let set = ask(&bare(&|c| c.set_client_id(&owner)));
    let (id, verifier) =
        Results::new(Reader::new(&set)).expect("results").client_id_set().expect("a client id");
    ask(&bare(&|c| c.confirm_client_id(id, verifier)));
    let claim = Claim::CreateName("f", 0o644);
    let open = Open { client_id: id, owner: b"o", sequence: 0, write: true, claim };
    ask(&bare(&|c| {
        c.put(&directory);
        c.open(Minor::V0, &open);
        c.get_handle();
    }));
    ask(&bare(&|c| c.renew(id)));
    ask(&bare(&|c| {
        c.put(&directory);
        c.remove("f");
    }));
    script.bytes
}

fn in_v41() -> Vec<u8> {
    let (root, directory, file) = (handle(ROOT), handle(ROOT + 1), handle(ROOT + 2));
    let mut script = Script::new();
    script.ops(|c| c.reclaim_complete(), |all| all.done(Op::ReclaimComplete));
    let claim = Claim::CreateName("f", 0o644);
    let open = Open { client_id: 0, owner: b"o", sequence: 0, write: true, claim };
    let state = script.ops(
        |c| {
            c.put(&directory);
            c.open(Minor::V1, &open);
        },
        |all| {
            all.done(Op::PutFh)?;
            all.opened().map(|opened| opened.state)
        },
    );
    let layout = script.ops(|c| c.layout_get(&file, LayoutKind::Files, true, state), |all| all.layout_got());
    let device = layout.stripes[0].device;
    script.ops(|c| c.device_info(device, LayoutKind::Files), |all| all.device());
    for number in [38, 25, 5] {
        script.ops(
            |c| {
                c.put(&file);
                let w = c.op(match number {
                    38 => Op::Write,
                    25 => Op::Read,
                    _ => Op::Commit,
                });
                if number != 5 {
                    w.fixed(&state.0);
                }
                w.u64(0);
                match number {
                    38 => {
                        w.u32(2);
                        w.opaque(b"data");
                    }
                    _ => w.u32(64),
                }
            },
            |all| all.done(Op::PutFh),
        );
    }
    script
        .ops(|c| c.layout_commit(&file, LayoutKind::Files, layout.state, 100_000), |all| all.done(Op::PutFh));
    let gave = layout.state;
    script.ops(|c| c.layout_return(&file, LayoutKind::Files, gave, &[]), |all| all.layout_returned());
    script.ops(|c| c.set_size(&file, state, 5), |all| all.size_set());
    script.ops(
        |c| {
            c.put(&file);
            c.get_attributes(Set::FILE);
            c.access(0x1f);
        },
        |all| all.done(Op::PutFh),
    );
    script.ops(
        |c| {
            c.put_root();
            c.lookup("a");
            c.get_handle();
            c.get_attributes(Set::LAYOUT_SERVER);
        },
        |all| all.done(Op::PutRootFh),
    );
    let place = nfs::Place { cookie: 0, verifier: [0; 8] };
    script.ops(|c| c.make_directory(&directory, "d", 0o755), |all| all.directory_made());
    script.ops(|c| c.list(&directory, place, 4096), |all| all.listed());
    script.ops(|c| c.rename((&directory, "d"), (&root, "e")), |all| all.renamed());
    script.ops(|c| c.close(&file, state, 0), |all| all.closed());
    script.ops(|c| c.open_confirm(&file, StateId([0; 16]), 0), |_| Ok(()));
    let session = script.session;
    script.ops(|c| c.bind_connection(session, true), |_| Ok(()));
    script.ops(|c| c.destroy_session(session), |_| Ok(()));
    script.bytes
}

fn between_nodes() -> Vec<u8> {
    let mut script = Script::new();
    for number in [2, 1] {
        let procedure = Procedure { program: interconnect::PROGRAM, version: 1, number };
        script.call(NODES_FROM + number as u8, procedure, |w| {
            w.u64(3);
            w.u64(65_530);
            match number {
                1 => w.u32(20),
                _ => w.opaque(b"a part of a file"),
            }
        });
    }
    script.bytes
}
