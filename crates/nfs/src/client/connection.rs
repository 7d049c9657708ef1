//! One TCP connection: bytes out of many places, whole messages in, never blocking but where it says so.

use super::control::Way;
use super::target::Path;
use crate::rpc::record::Records;
use crate::xdr::{Malformed, Writer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{RecvAncillaryBuffer, SendAncillaryBuffer};
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use units::{Nanos, Rng, Seed, clock};

/// Pieces handed to the kernel at once.
const PIECES_MAX: usize = 64;
/// Ports that servers take for a sign of root, as some ask for; below them are those of well-known services.
const RESERVED: std::ops::Range<u16> = 665..1024;
/// How many of them are tried.
const RESERVED_TRIES: u32 = 8;
/// Longest reply besides its payload, bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long a receive waits at most.
const RECEIVE_MAX: Nanos = Nanos::millis(20);

/// Whether a receive waits until something arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    No,
    /// For a short time. Cheaper than to receive in vain, to poll and to receive again.
    Shortly,
}

/// What is sent, in order.
enum Piece {
    /// So many bytes of the heads.
    Head(usize),
    /// So many bytes from byte `from` of a slot's buffer.
    Payload { slot: u32, from: usize, bytes: usize },
}

pub(super) struct Connection {
    stream: Arc<TcpStream>,
    pub(super) records: Records,
    pub(super) peer: SocketAddr,
    /// Encoded heads that were not sent yet, from `sent_heads` on.
    heads: Writer,
    sent_heads: usize,
    pieces: VecDeque<Piece>,
    landing: Option<Landing>,
    /// Calls without a reply, where its owner counts them.
    pub(super) flying: u32,
}

/// The keeper of a mount waits for a stream beside its owner, and may sleep long: the server is not left with a connection that nobody reads.
impl Drop for Connection {
    fn drop(&mut self) {
        let _ = net::shutdown(&self.stream, net::Shutdown::Both);
    }
}

/// A payload that is received into a slot's buffer: the next byte goes to `at`.
struct Landing {
    slot: u32,
    at: usize,
}

impl Connection {
    /// Connects to `port` by `path` until `deadline`, for payloads of at most those of `way`.
    pub(super) fn open(path: &Path, port: u16, deadline: Nanos, way: &Way) -> std::io::Result<Self> {
        let peer = SocketAddr::new(path.remote, port);
        let stream = connect(peer, path.local, deadline, way.dont_route)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(RECEIVE_MAX.duration()))?;
        Ok(Self {
            stream: Arc::new(stream),
            records: Records::new(way.payload_bytes_max as usize + HEAD_BYTES_MAX),
            peer,
            heads: Writer::new(),
            sent_heads: 0,
            pieces: VecDeque::new(),
            landing: None,
            flying: 0,
        })
    }

    /// Our own address.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.stream.local_addr().ok()
    }

    /// The stream, for somebody who waits for it beside its owner.
    pub(super) fn stream(&self) -> Arc<TcpStream> {
        self.stream.clone()
    }

    /// Encodes something to send; goes out with [`Connection::flush`].
    pub(super) fn send(&mut self, encode: impl FnOnce(&mut Writer)) {
        let before = self.heads.len();
        encode(&mut self.heads);
        let more = self.heads.len() - before;
        match self.pieces.back_mut() {
            Some(Piece::Head(bytes)) => *bytes += more,
            _ => self.pieces.push_back(Piece::Head(more)),
        }
    }

    /// Sends bytes of a slot's buffer behind what was encoded.
    pub(super) fn send_payload(&mut self, slot: u32, from: usize, bytes: usize) {
        self.pieces.push_back(Piece::Payload { slot, from, bytes });
    }

    /// Whether everything went out.
    pub(super) fn is_flushed(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Gives the kernel what it takes. `buffer` is the buffer of a slot.
    pub(super) fn flush<'b>(&mut self, buffer: impl Fn(u32) -> &'b [u8]) -> std::io::Result<()> {
        while !self.pieces.is_empty() {
            let mut head = self.sent_heads;
            let mut slices = Vec::with_capacity(self.pieces.len().min(PIECES_MAX));
            for piece in self.pieces.iter().take(PIECES_MAX) {
                slices.push(IoSlice::new(match *piece {
                    Piece::Head(bytes) => {
                        head += bytes;
                        &self.heads.bytes()[head - bytes..head]
                    }
                    Piece::Payload { slot, from, bytes } => &buffer(slot)[from..from + bytes],
                }));
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let sent = match *slices {
                [ref alone] => net::send(&self.stream, alone, flags),
                _ => net::sendmsg(&self.stream, &slices, &mut SendAncillaryBuffer::default(), flags),
            };
            match sent {
                Ok(sent) => self.sent(sent),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.heads.clear();
        self.sent_heads = 0;
        Ok(())
    }

    fn sent(&mut self, mut bytes: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let left = match piece {
                Piece::Head(left) | Piece::Payload { bytes: left, .. } => left,
            };
            let now = bytes.min(*left);
            *left -= now;
            bytes -= now;
            let done = *left == 0;
            match piece {
                Piece::Head(_) => self.sent_heads += now,
                Piece::Payload { from, .. } => *from += now,
            }
            if !done {
                return;
            }
            self.pieces.pop_front();
        }
    }

    /// The bytes `payload` of the message that has begun to arrive belong to byte `at` of a slot's `buffer`, from where on there is room for them.
    pub(super) fn land(&mut self, payload: Range<usize>, slot: u32, at: usize, buffer: &mut [u8]) {
        let here = self.records.divert(payload);
        let end = at + here.len();
        buffer[at..end].copy_from_slice(here);
        self.landing = Some(Landing { slot, at: end });
    }

    /// Takes what has arrived, or does until [`RECEIVE_MAX`] from now; whether there was anything. `buffer` is the buffer of a slot that has a payload landing.
    pub(super) fn fill<'b>(
        &mut self,
        wait: Wait,
        buffer: impl FnOnce(u32) -> &'b mut [u8],
    ) -> std::io::Result<bool> {
        let flags = if wait == Wait::No { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let missing = self.records.missing();
        let room = self.records.room();
        let received = match &mut self.landing {
            Some(Landing { slot, at }) if missing > 0 => {
                let rest = &mut buffer(*slot)[*at..][..missing];
                let received = if wait == Wait::No {
                    let mut pieces = [IoSliceMut::new(rest), IoSliceMut::new(room)];
                    let nothing = &mut RecvAncillaryBuffer::default();
                    net::recvmsg(&self.stream, &mut pieces, nothing, flags).map(|it| it.bytes)
                } else {
                    // Nothing can be done before the payload has arrived: one sleep, not one for each piece of it.
                    net::recv(&self.stream, rest, RecvFlags::WAITALL).map(|(bytes, _)| bytes)
                };
                *at += received.map_or(0, |bytes| bytes.min(missing));
                received
            }
            _ => net::recv(&self.stream, room, flags).map(|(bytes, _)| bytes),
        };
        match received {
            Ok(0) => Err(std::io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            Ok(bytes) => {
                self.records.received(bytes);
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What to wait for: something arrives, or can be sent where something is left.
    pub(super) fn poll(&self) -> PollFd<'_> {
        let mut events = PollFlags::IN;
        if !self.is_flushed() {
            events |= PollFlags::OUT;
        }
        PollFd::from_borrowed_fd(self.stream.as_fd(), events)
    }

    /// Sleeps until something arrives, or can be sent where something is left to send, or `until`.
    pub(super) fn wait(&self, until: Nanos) -> std::io::Result<()> {
        wait_for(&mut [self.poll()], until)
    }
}

/// Polls until `until`; a signal ends it early.
pub(super) fn wait_for(fds: &mut [PollFd<'_>], until: Nanos) -> std::io::Result<()> {
    let left = (until - clock::now()).duration();
    let timeout = rustix::event::Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// What a stream that cannot be read any further is, to whoever connects anew.
pub(super) fn broken(malformed: Malformed) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, malformed.to_string())
}

fn connect(
    peer: SocketAddr,
    local: Option<IpAddr>,
    deadline: Nanos,
    dont_route: bool,
) -> std::io::Result<TcpStream> {
    let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = local.unwrap_or(any);
    if rustix::process::geteuid().is_root() {
        let mut rng = Rng::new(Seed::draw());
        for _ in 0..RESERVED_TRIES {
            let port = RESERVED.start + rng.below(RESERVED.len() as u64) as u16;
            match connect_from(peer, Some(SocketAddr::new(from, port)), deadline, dont_route) {
                Err(e) if matches!(e.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) => {}
                other => return other,
            }
        }
    }
    connect_from(peer, local.map(|local| SocketAddr::new(local, 0)), deadline, dont_route)
}

fn connect_from(
    peer: SocketAddr,
    from: Option<SocketAddr>,
    deadline: Nanos,
    dont_route: bool,
) -> std::io::Result<TcpStream> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    if dont_route {
        io::descriptor::dont_route(&socket)?;
    }
    if let Some(from) = from {
        net::sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &from)?;
    }
    match net::connect(&socket, &peer) {
        Ok(()) => return Ok(socket.into()),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let stream = TcpStream::from(socket);
    loop {
        wait_for(&mut [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::OUT)], deadline)?;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        if stream.peer_addr().is_ok() {
            return Ok(stream);
        }
        if clock::now() >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}
