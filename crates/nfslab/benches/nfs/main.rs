//! Reads over NFS against libnfs (Debian's): as many per second, for at most 0.8 × its processor time; long ones against plain TCP.
//!
//! 8 KiB at random places of a file in the memory of the server, over loopback in a network namespace, with 1 and 32 requests in flight on one connection and 32 on each of four.
//! Ganesha and our own cluster's node A take turns, and so do the clients; libnfs speaks no v4.1. Processor time is that of the client's threads alone, the kernel's
//! work for them included. Then 1 MiB in order, beside a thread that only receives the same bytes, into as many buffers in turn as there are reads in flight (the kernel's copy into
//! memory that has left the processor's cache takes longer): what matters is bytes for a second of the receiving thread's processor.
//!
//! `cargo x bench nfs [ganesha] [cluster] [1x1] [1x32] [4x32] [long] --rounds 7 --seconds 1`
#![forbid(unsafe_code)]

#[path = "../../../lab/benches/common/flags.rs"]
mod flags;
#[path = "../../../nfs/tests/ganesha/stand.rs"]
mod ganesha;
#[path = "../../../lab/benches/common/goals.rs"]
mod goals;

use flags::Flags;
use goals::{Aim, Goals};
use io::{Action, Completion, Outcome, Queue as _, Request};
use nfs::{Mount, MountOptions, Open, Queue, QueueOptions, Target, Version};
use nfslab::{Cluster, ClusterOptions};
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use units::{Nanos, Rng, Seed, clock};

const BLOCK: u32 = 8192;
const LONG: u32 = 1 << 20;
/// Long reads in flight.
const LONG_DEPTHS: [u32; 2] = [1, 4];
/// Connections, and requests in flight on each.
const SHAPES: [(u32, u32); 3] = [(1, 1), (1, 32), (4, 32)];
const CPU_MAX: f64 = 0.8;
const V41_MORE_MAX: f64 = 1.1;
const LONG_MIN: f64 = 0.9;

/// A server, and a file of `bytes` in it.
struct Server {
    name: &'static str,
    /// None: Ganesha.
    cluster: Option<Cluster>,
    /// Ends when this is dropped.
    _ganesha: Option<ganesha::Server>,
    bytes: u64,
}

impl Server {
    fn ganesha(bytes: u64) -> Self {
        let server = ganesha::Server::start(&ganesha::Conf::default());
        Self { name: "ganesha", cluster: None, _ganesha: Some(server), bytes }.filled()
    }

    fn cluster(bytes: u64) -> Self {
        let cluster = Cluster::start(ClusterOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        Self { name: "cluster", cluster: Some(cluster), _ganesha: None, bytes }.filled()
    }

    fn target(&self, version: Version) -> Target {
        self.cluster.as_ref().map_or_else(|| ganesha::target(version), |own| own.target(0, "/a", version))
    }

    fn mount(&self, version: Version) -> Mount {
        let options = MountOptions { limit: Nanos::millis(30_000), ..MountOptions::default() };
        Mount::open(self.target(version), options).unwrap_or_else(|error| panic!("{error}"))
    }

    fn filled(self) -> Self {
        let mount = self.mount(Version::V3);
        let file = mount.file("data", Open::New { mode: 0o644 }).expect("a file");
        let mut queue = mount.queue(QueueOptions::new(1, LONG), &[&file]).expect("a queue");
        let mut done = Vec::new();
        for offset in (0..self.bytes).step_by(LONG as usize) {
            queue.buffer_mut(0).fill(7);
            queue.stage(0, Request { file: 0, offset, bytes: LONG, action: Action::WriteDsync });
            queue.submit_and_reap(1, &mut done).expect("a queue that works");
            assert!(done.drain(..).all(|Completion { outcome, .. }| outcome == Outcome::Full));
        }
        drop(queue);
        self
    }
}

/// What a client did: reads (or bytes) for a second, and microseconds of its processor time for each.
#[derive(Clone, Copy)]
struct Done {
    rate: f64,
    cpu: f64,
}

/// Processor time of this thread so far.
fn cpu() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Keeps all slots of `queue` busy for `span` with reads of `bytes` where `next` says; reads, and seconds of processor time.
fn keep_busy(queue: &mut Queue, bytes: u32, span: Nanos, mut next: impl FnMut() -> u64) -> (u64, f64) {
    let mut stage = |queue: &mut Queue, slot| {
        queue.stage(slot, Request { file: 0, offset: next(), bytes, action: Action::Read });
    };
    for slot in 0..queue.depth() {
        stage(queue, slot);
    }
    let (begin, used) = (clock::now(), cpu());
    let (mut count, mut done) = (0, Vec::new());
    while clock::now() < begin + span {
        queue.submit_and_reap(1, &mut done).expect("a queue that works");
        count += done.len() as u64;
        for Completion { slot, outcome } in done.drain(..) {
            assert_eq!(outcome, Outcome::Full);
            stage(queue, slot);
        }
    }
    (count, cpu() - used)
}

fn ours(server: &Server, version: Version, (connections, depth): (u32, u32), span: Nanos) -> Done {
    let mount = server.mount(version);
    let file = mount.file("data", Open::Read).expect("the file");
    let queue = |_| mount.queue(QueueOptions::new(depth, BLOCK), &[&file]).expect("a queue");
    let queues: Vec<Queue> = (0..connections).map(queue).collect();
    let blocks = server.bytes / u64::from(BLOCK);
    let parts: Vec<(u64, f64)> = std::thread::scope(|scope| {
        let work = |(seed, mut queue): (u64, Queue)| {
            scope.spawn(move || {
                let mut rng = Rng::new(Seed(seed));
                keep_busy(&mut queue, BLOCK, span, || rng.below(blocks) * u64::from(BLOCK))
            })
        };
        let threads: Vec<_> = (17..).zip(queues).map(work).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client that works")).collect()
    });
    let reads: u64 = parts.iter().map(|part| part.0).sum();
    let used: f64 = parts.iter().map(|part| part.1).sum();
    Done { rate: reads as f64 / span.as_secs(), cpu: used * 1e6 / reads as f64 }
}

/// The peer's program, made from its source beside this one.
fn peer(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/nfs/read.c");
    let program = folder.join("read");
    let made = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .args(["-lnfs", "-lpthread"])
        .output();
    let made = made.unwrap_or_else(|error| panic!("cc: {error}; type: sudo apt install gcc libnfs-dev"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    program
}

fn libnfs(program: &Path, server: &Server, version: Version, shape: (u32, u32), span: Nanos) -> Done {
    let target = server.target(version);
    let mount_port = if target.mount_port.is_some() { target.port } else { ganesha::MOUNT_PORT };
    let number = if version == Version::V3 { 3 } else { 4 };
    let mut command = Command::new(program);
    command.arg(target.paths[0].remote.to_string()).args([&target.export, "/data"]);
    let numbers = [u32::from(target.port), u32::from(mount_port), number, shape.0, shape.1];
    command
        .args(numbers.map(|n| n.to_string()))
        .arg(span.as_secs().to_string())
        .arg(server.bytes.to_string());
    let output = command.output().expect("the peer's program");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "libnfs, {} {version}: {}",
        server.name,
        String::from_utf8_lossy(&output.stderr)
    );
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Done { rate: numbers[0], cpu: numbers[1] }
}

/// Bytes for a second of the thread that receives them, from `server` or from a thread that only sends.
fn long(server: &Server, version: Version, depth: u32, span: Nanos) -> f64 {
    let mount = server.mount(version);
    let file = mount.file("data", Open::Read).expect("the file");
    let mut queue = mount.queue(QueueOptions::new(depth, LONG), &[&file]).expect("a queue");
    let mut next = 0;
    let (reads, used) = keep_busy(&mut queue, LONG, span, || {
        next = (next + u64::from(LONG)) % server.bytes;
        next
    });
    (reads * u64::from(LONG)) as f64 / used
}

fn plain(buffers: u32, span: Nanos) -> f64 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("a port");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let bytes = vec![7; LONG as usize];
            while stream.write_all(&bytes).is_ok() {}
        });
        let mut stream = TcpStream::connect(address).expect("a connection");
        let buffer = |_| io::Buffer::new(LONG as usize).expect("memory");
        let mut buffers: Vec<io::Buffer> = (0..buffers).map(buffer).collect();
        let (begin, used) = (clock::now(), cpu());
        let mut count = 0;
        while clock::now() < begin + span {
            for buffer in &mut buffers {
                stream.read_exact(buffer).expect("bytes");
                count += buffer.len();
            }
        }
        count as f64 / (cpu() - used)
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(mut command) = ganesha::inside(&arguments) {
        let status = command.status().expect("unshare is in package util-linux");
        return if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds: u64 = flags.number("rounds", if measured { 7 } else { 1 });
    let span = Nanos::secs(flags.number("seconds", if measured { 1.0 } else { 0.05 }));
    let bytes = if measured { 256 << 20 } else { 4 << 20 };
    let folder = tempfile::tempdir().expect("a folder");
    let program = peer(folder.path());
    let among = |name: &str, all: &[&str]| flags.names(name) || !all.iter().any(|other| flags.names(other));
    let shapes = SHAPES.map(|(connections, depth)| format!("{connections}x{depth}"));
    let parts: Vec<&str> = shapes.iter().map(String::as_str).chain(["long"]).collect();
    let mut goals = Goals::default();
    for (name, start) in [("ganesha", Server::ganesha as fn(u64) -> Server), ("cluster", Server::cluster)] {
        if !among(name, &["ganesha", "cluster"]) {
            continue;
        }
        let server = start(bytes);
        for (shape, part) in SHAPES.into_iter().zip(&parts) {
            if among(part, &parts) {
                random(&server, &program, shape, (rounds, span), &mut goals);
            }
        }
        if among("long", &parts) {
            in_order(&server, (rounds, span), &mut goals);
        }
    }
    goals.conclude(measured)
}

fn random(
    server: &Server,
    program: &Path,
    shape: (u32, u32),
    (rounds, span): (u64, Nanos),
    goals: &mut Goals,
) {
    let peers = [Version::V3, Version::V40];
    let mut own = [const { Vec::new() }; ganesha::VERSIONS.len()];
    let mut theirs = [const { Vec::new() }; 2];
    for _ in 0..rounds {
        for (index, version) in ganesha::VERSIONS.into_iter().enumerate() {
            own[index].push(ours(server, version, shape, span));
            if peers.contains(&version) {
                theirs[index].push(libnfs(program, server, version, shape, span));
            }
        }
    }
    let ratios = |a: &[Done], b: &[Done], of: fn(&Done) -> f64| {
        a.iter().zip(b).map(|(a, b)| of(a) / of(b)).collect::<Vec<f64>>()
    };
    let rate = |done: &Done| done.rate;
    let cpu = |done: &Done| done.cpu;
    let told = |done: &[Done], of: fn(&Done) -> f64| done.iter().map(of).collect::<Vec<f64>>();
    let head = |version: Version| format!("{} {version} {} × {}", server.name, shape.0, shape.1);
    let is_pipelined = shape.1 > 1;
    for (index, version) in ganesha::VERSIONS.into_iter().enumerate() {
        let head = head(version);
        goals.rounds(&format!("{head}: reads per second"), &told(&own[index], rate), Aim::Told);
        goals.rounds(&format!("{head}: client's µs of CPU each"), &told(&own[index], cpu), Aim::Told);
        let Some(theirs) = theirs.get(index) else {
            let aim = if is_pipelined { Aim::AtMost(V41_MORE_MAX) } else { Aim::Told };
            goals.rounds(&format!("{head}: CPU / our v3's"), &ratios(&own[index], &own[0], cpu), aim);
            continue;
        };
        goals.rounds(&format!("{head}: libnfs: reads per second"), &told(theirs, rate), Aim::Told);
        goals.rounds(&format!("{head}: libnfs: µs of CPU each"), &told(theirs, cpu), Aim::Told);
        goals.rounds(
            &format!("{head}: reads / libnfs's"),
            &ratios(&own[index], theirs, rate),
            Aim::AtLeast(1.0),
        );
        let aim = if is_pipelined { Aim::AtMost(CPU_MAX) } else { Aim::Told };
        goals.rounds(&format!("{head}: CPU / libnfs's"), &ratios(&own[index], theirs, cpu), aim);
    }
}

fn in_order(server: &Server, (rounds, span): (u64, Nanos), goals: &mut Goals) {
    for (version, depth) in ganesha::VERSIONS.into_iter().flat_map(|v| LONG_DEPTHS.map(|depth| (v, depth))) {
        let (mut own, mut ratios, mut to_one) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let ours = long(server, version, depth, span);
            own.push(ours / 1e6);
            ratios.push(ours / plain(depth, span));
            if depth > 1 {
                to_one.push(ours / plain(1, span));
            }
        }
        let head = format!("{} {version} 1 MiB in order, {depth} in flight", server.name);
        goals.rounds(&format!("{head}: MB for a second of CPU"), &own, Aim::Told);
        goals.rounds(&format!("{head}: / plain TCP's"), &ratios, Aim::AtLeast(LONG_MIN));
        if depth > 1 {
            goals.rounds(&format!("{head}: / plain TCP's into one buffer"), &to_one, Aim::Told);
        }
    }
}
