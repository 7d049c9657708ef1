//! A small FUSE file system with one large file, whose workers trample each other.
//!
//! What it imitates is what a database's calibration met: storage that serves a few processes well, and comes to a
//! standstill when there are many more than cores. Each read sleeps as long as a device would need, side by side with the
//! others, and then passes a ticket lock on which the workers spin. While there are cores for all who spin, the lock costs
//! nothing; with more, the one whose turn it is waits for a core while others spin on it. Kernel, threads and cores are
//! real; only the file's content is made up.
//!
//! The protocol is spoken on `/dev/fuse` directly (kernel `include/uapi/linux/fuse.h`, version 7.31), as little of it as one
//! file needs. `mount` inherits the descriptor as its standard input, so no unsafe call is needed; it takes root.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Nanos, clock};

/// More than any load keeps in flight, so that the file system is never the one that queues.
const WORKERS: usize = 160;
/// What the device under it would take.
const DEVICE: Nanos = Nanos::micros(400);
/// Time under the lock.
const LOCKED: Nanos = Nanos::micros(25);
/// How long a worker spins before it lets others run.
const PATIENCE: Nanos = Nanos::micros(100);
const FILE_NAME: &[u8] = b"users01.dbf\0";
const ROOT: u64 = 1;
const FILE: u64 = 2;
const REQUEST_BYTES_MAX: usize = 256 << 10;
const READ_BYTES_MAX: usize = 2 << 20;

/// A mounted file system; unmounted at the end.
pub struct Trampling {
    mount_point: PathBuf,
}

impl Trampling {
    /// Mounts it on the empty directory `mount_point`, with a file of `bytes`.
    ///
    /// # Panics
    /// Not root, or no FUSE in this kernel.
    pub fn mount(mount_point: &Path, bytes: u64) -> Self {
        let device =
            File::options().read(true).write(true).open("/dev/fuse").expect("/dev/fuse: modprobe fuse");
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other";
        let mounted = Command::new("mount")
            .args(["-i", "-t", "fuse", "-o", options, "redoubt-test"])
            .arg(mount_point)
            .stdin(Stdio::from(device.try_clone().expect("a second descriptor")))
            .status();
        assert!(mounted.expect("mount").success(), "mounting FUSE takes root: sudo cargo x test");
        let server = Arc::new(Server { device, bytes, next: AtomicU64::new(0), serving: AtomicU64::new(0) });
        for worker in 0..WORKERS {
            let server = server.clone();
            let builder = std::thread::Builder::new().name(format!("fuse{worker:03}"));
            builder.spawn(move || server.serve()).expect("start a worker");
        }
        Self { mount_point: mount_point.to_owned() }
    }

    /// The one file.
    pub fn file(&self) -> PathBuf {
        self.mount_point.join(String::from_utf8_lossy(&FILE_NAME[..FILE_NAME.len() - 1]).as_ref())
    }
}

impl Drop for Trampling {
    fn drop(&mut self) {
        // Lazily, so that a test that panicked with the file open leaves no mount. The workers end when the device says so.
        let _ = Command::new("umount").arg("-l").arg(&self.mount_point).status();
    }
}

struct Server {
    device: File,
    bytes: u64,
    /// The ticket lock.
    next: AtomicU64,
    serving: AtomicU64,
}

/// The part of a request that matters here.
struct Request<'a> {
    opcode: u32,
    unique: u64,
    node: u64,
    body: &'a [u8],
}

mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const RELEASEDIR: u32 = 29;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
}

const NO_SUCH_ENTRY: i32 = -2;
const NOT_IMPLEMENTED: i32 = -38;

impl Server {
    /// One worker: a request, its answer, the next, until the file system is unmounted.
    fn serve(&self) {
        let mut request = vec![0; REQUEST_BYTES_MAX];
        let mut answer = Vec::with_capacity(READ_BYTES_MAX + 16);
        loop {
            let length = match (&self.device).read(&mut request) {
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                // A request that was taken back.
                Err(error) if error.raw_os_error() == Some(2) => continue,
                Err(_) => return,
            };
            let request = Request {
                opcode: u32_at(&request, 4),
                unique: u64_at(&request, 8),
                node: u64_at(&request, 16),
                body: &request[40..length],
            };
            if matches!(request.opcode, opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT) {
                continue;
            }
            answer.clear();
            answer.resize(16, 0);
            let error = self.answer(&request, &mut answer);
            let length = answer.len() as u32;
            answer[0..4].copy_from_slice(&length.to_ne_bytes());
            answer[4..8].copy_from_slice(&error.to_ne_bytes());
            answer[8..16].copy_from_slice(&request.unique.to_ne_bytes());
            // Fails only when the request was taken back or the mount is gone; the next read will tell.
            let _ = (&self.device).write(&answer);
        }
    }

    /// Appends the body of the answer; the result is its error code, 0 for none.
    fn answer(&self, request: &Request<'_>, out: &mut Vec<u8>) -> i32 {
        match request.opcode {
            opcode::INIT => self.init(out),
            opcode::LOOKUP if request.node == ROOT && request.body == FILE_NAME => {
                // nodeid, generation, then how long entry and attributes hold: for ever.
                put64(out, &[FILE, 0, u64::from(u32::MAX), u64::from(u32::MAX)]);
                put32(out, &[0, 0]);
                self.attributes(FILE, out);
            }
            opcode::LOOKUP => return NO_SUCH_ENTRY,
            opcode::GETATTR => {
                put64(out, &[u64::from(u32::MAX)]);
                put32(out, &[0, 0]);
                self.attributes(request.node, out);
            }
            opcode::OPEN | opcode::OPENDIR => put64(out, &[0, 0]),
            opcode::READ => self.read(request.body, out),
            opcode::STATFS => {
                put64(out, &[1 << 20, 1 << 19, 1 << 19, 2, 1]);
                put32(out, &[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0]);
            }
            opcode::RELEASE | opcode::RELEASEDIR | opcode::FLUSH => {}
            _ => return NOT_IMPLEMENTED,
        }
        0
    }

    fn init(&self, out: &mut Vec<u8>) {
        const ASYNC_READ: u32 = 1;
        const ASYNC_DIRECT: u32 = 1 << 15;
        const MAX_PAGES: u32 = 1 << 22;
        put32(out, &[7, 31, 0, ASYNC_READ | ASYNC_DIRECT | MAX_PAGES]);
        // Requests in the background and when the kernel calls it congested, then the largest write.
        put16(out, &[1024, 1024]);
        put32(out, &[128 << 10, 1]);
        put16(out, &[256, 0]);
        put32(out, &[0; 8]);
    }

    fn attributes(&self, node: u64, out: &mut Vec<u8>) {
        let (mode, bytes) = if node == ROOT { (0o040_755, 4096) } else { (0o100_644, self.bytes) };
        // inode, size, blocks, three times; their nanoseconds, mode, links, owner, group, device, block size, flags
        put64(out, &[node, bytes, bytes / 512, 0, 0, 0]);
        put32(out, &[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]);
    }

    fn read(&self, body: &[u8], out: &mut Vec<u8>) {
        let (offset, bytes) = (u64_at(body, 8), u64::from(u32_at(body, 16)));
        clock::sleep(DEVICE);
        self.trample();
        let length = bytes.min(self.bytes.saturating_sub(offset)) as usize;
        out.resize(16 + length, 0xA5);
    }

    /// Everybody through one door, in the order of arrival, spinning.
    fn trample(&self) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        let mut patience = clock::now() + PATIENCE;
        while self.serving.load(Ordering::Acquire) != ticket {
            std::hint::spin_loop();
            if clock::now() > patience {
                std::thread::yield_now();
                patience = clock::now() + PATIENCE;
            }
        }
        let end = clock::now() + LOCKED;
        while clock::now() < end {
            std::hint::spin_loop();
        }
        self.serving.store(ticket + 1, Ordering::Release);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn put16(out: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|v| out.extend_from_slice(&v.to_ne_bytes()));
}

fn put32(out: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|v| out.extend_from_slice(&v.to_ne_bytes()));
}

fn put64(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|v| out.extend_from_slice(&v.to_ne_bytes()));
}
