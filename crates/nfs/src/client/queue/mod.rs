//! A worker's queue of reads, writes and commits: its own connection, its own session, nothing shared with another worker.
//!
//! ```text
//! idle -> staged -> flying -> idle           the reply came
//!                   flying -> held -> flying  no slot of the session is free, or the server asked to wait, or has forgotten us
//!                   flying -> flying          the connection broke: the same call again over another one
//! ```
//! The road of a request is that of [`io::Queue`]; [`flight`] sends and takes replies, [`landing`] receives long payloads where they belong, [`judge`] says what
//! replies mean, [`data`] does all that where a layout leads to data servers, [`link`] makes what was lost anew.

mod data;
mod flight;
mod judge;
pub(crate) mod landing;
mod link;

use self::data::{By, Channel, Roads};
use self::link::{Before, Link};
use super::channel::{Cells, ChannelState};
use super::error::NfsError;
use super::file::{File, OpenFile, Place};
use super::keeper::Bell;
use super::mount::Shared;
use super::target::Version;
use crate::rpc::xid::{SLOTS_MAX, Xids};
use crate::transfer::{Stability, Template};
use crate::v4;
use crate::v4::layout::Spot;
use io::{Action, Buffer, Completion, IoError, Outcome, QueueCounters, Request};
use std::net::SocketAddr;
use std::sync::Arc;
use units::Nanos;

/// What a queue is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Slots: the most requests in flight, 1 to 1024.
    pub depth: u32,
    /// Size of each slot's buffer.
    pub buffer_bytes: u32,
    /// Which of the target's paths to begin with; it is taken modulo their number, so that workers just count.
    pub path: usize,
    /// How far a plain [`Action::Write`] has to be; [`Action::WriteDsync`] is always on stable storage.
    pub stability: Stability,
    /// As [`MountOptions::silence`](super::mount::MountOptions::silence); the shorter one holds.
    pub silence: Nanos,
}

impl QueueOptions {
    /// `depth` slots of `buffer_bytes`; plain writes are committed later, and silence is borne as long as the mount says.
    pub const fn new(depth: u32, buffer_bytes: u32) -> Self {
        Self { depth, buffer_bytes, path: 0, stability: Stability::Unstable, silence: Nanos(u64::MAX) }
    }
}

/// What a queue has seen of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Calls that were sent, repetitions included.
    pub sends: u64,
    /// Replies.
    pub receives: u64,
    /// Calls that were sent again because their reply did not come.
    pub replays: u64,
    /// Connections made after the first.
    pub reconnects: u64,
    /// Sessions made after the first.
    pub sessions: u64,
    /// Calls that the server asked to try later.
    pub delays: u64,
    /// Parts of requests that went by the server that was mounted, though a layout named a data server for them.
    pub detours: u64,
    /// Longest that a request waited because its layout had been recalled.
    pub stall_max: Nanos,
}

/// The queue. Driven by one thread.
pub struct Queue {
    shared: Arc<Shared>,
    options: QueueOptions,
    files: Vec<FileInUse>,
    slots: Vec<Slot>,
    xids: Xids,
    staged: Vec<u32>,
    in_flight: u32,
    /// To the server that was mounted.
    link: Option<Link>,
    server: Arc<Cells>,
    /// By each path that was taken.
    paths: Vec<Option<Arc<Cells>>>,
    /// Its number in the mount.
    worker: u32,
    /// To data servers.
    data: Vec<Channel>,
    /// Of the commit that is about to be sent to one.
    commit: Template,
    /// The server that was mounted, as the keeper of writes.
    home: Arc<Place>,
    /// Rings when a layout has changed.
    bell: Arc<Bell>,
    /// Links that were lost one after the other without a reply in between: how many, since when.
    barren: Option<(u32, Nanos)>,
    counters: QueueCounters,
    network: NetworkCounters,
    trouble: Option<NfsError>,
    /// Nothing is made anew any more.
    closing: bool,
}

struct FileInUse {
    open: Arc<OpenFile>,
    templates: Templates,
    roads: Roads,
}

impl FileInUse {
    fn new(open: Arc<OpenFile>) -> Self {
        Self { open, templates: Templates::default(), roads: Roads::default() }
    }
}

/// Calls of one file.
#[derive(Default)]
struct Templates {
    read: Template,
    write: Template,
    write_durable: Template,
    commit: Template,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Staged,
    Flying,
    /// To be sent, not before this instant.
    Held(Nanos),
}

struct Slot {
    buffer: Buffer,
    phase: Phase,
    request: Request,
    /// Bytes that earlier replies have done.
    done: u32,
    /// Bytes that the call in flight is about.
    asked: u32,
    /// Writes that the commit in flight covers.
    covers: u64,
    sent: Nanos,
    era: u64,
    /// The session's slot that its call is in.
    place: u32,
    /// What it is about begins there.
    spot: Spot,
    /// `SEQ4_STATUS_…` of its last reply.
    flags: u32,
    /// The data server that its call went to; none: the server that was mounted.
    at: Option<usize>,
    /// Of a call by a layout.
    by: Option<By>,
    /// Who keeps what it writes.
    target: Arc<Place>,
    /// It goes by the server that was mounted, whatever the layout says.
    detour: bool,
    /// Not before the layout is back by which it was sent and not answered: how many were back then.
    fence: Option<u64>,
    /// It waits for a layout since then.
    waits: Option<Nanos>,
    /// Of a sync: commits that are left.
    commits: Option<Vec<(Place, u64)>>,
    /// When it was staged.
    since: Nanos,
    /// The payload of its reply is received into its buffer; the message comes without it.
    landed: bool,
    /// Its call was sent again in its place of the session, and the server is still at it: it keeps that place while it is held.
    in_place: bool,
    replayed: bool,
}

impl Slot {
    /// A commit is done with, one way or the other; whether another one is left.
    fn next_commit(&mut self) -> bool {
        self.commits.as_mut().is_some_and(|commits| {
            commits.pop();
            !commits.is_empty()
        })
    }
}

impl Queue {
    pub(super) fn open(
        shared: Arc<Shared>,
        options: QueueOptions,
        files: Vec<Arc<OpenFile>>,
    ) -> Result<Self, NfsError> {
        let refused = |error: IoError| NfsError::Machine { what: "memory", error: error.to_string() };
        let request = Request { file: 0, offset: 0, bytes: 0, action: Action::Sync };
        let bell = Arc::new(Bell::new()?);
        for file in &files {
            shared.first_layout(&file.state)?;
        }
        shared.pnfs.iter().for_each(|pnfs| pnfs.wake(&bell));
        let server = Arc::new(Place::Server);
        let slot = |buffer| Slot {
            buffer,
            phase: Phase::Idle,
            request,
            done: 0,
            asked: 0,
            covers: 0,
            sent: Nanos(0),
            era: 0,
            place: 0,
            spot: Spot { stripe: 0, offset: 0, left: u64::MAX },
            flags: 0,
            at: None,
            by: None,
            target: server.clone(),
            detour: false,
            fence: None,
            waits: None,
            commits: None,
            since: Nanos(0),
            landed: false,
            in_place: false,
            replayed: false,
        };
        let depth = options.depth.clamp(1, SLOTS_MAX);
        let slots = (0..depth)
            .map(|_| Buffer::new(options.buffer_bytes as usize).map(slot))
            .collect::<Result<Vec<_>, _>>()
            .map_err(refused)?;
        let path = options.path % shared.way.target.paths.len();
        let link = Link::make(&shared, depth, Before { path, ..Before::nothing() }, shared.way.limit)?;
        let files = files.into_iter().map(FileInUse::new).collect();
        let worker = shared.channels.next_worker();
        let remote = SocketAddr::new(shared.way.target.paths[link.path].remote, shared.way.target.port);
        let cells = shared.channels.add(worker, remote, false);
        let mut paths = vec![None; shared.way.target.paths.len()];
        paths[link.path] = Some(cells.clone());
        let mut queue = Self {
            options: QueueOptions {
                depth,
                path,
                silence: options.silence.min(shared.way.silence),
                ..options
            },
            shared,
            files,
            slots,
            xids: link::numbers(depth),
            staged: Vec::new(),
            in_flight: 0,
            link: Some(link),
            server: cells,
            paths,
            worker,
            data: Vec::new(),
            commit: Template::default(),
            home: server,
            bell,
            barren: None,
            counters: QueueCounters::default(),
            network: NetworkCounters::default(),
            trouble: None,
            closing: false,
        };
        queue.enter_path();
        if queue.is_away() {
            queue.shared.paths.broke(&queue.shared, queue.options.path);
        }
        queue.make_templates();
        Ok(queue)
    }

    /// Counts from now on what goes by the path of the link, which is new.
    fn enter_path(&mut self) {
        let Some(link) = &self.link else { return };
        let target = &self.shared.way.target;
        let cells = self.paths[link.path].get_or_insert_with(|| {
            let remote = SocketAddr::new(target.paths[link.path].remote, target.port);
            self.shared.channels.add(self.worker, remote, false)
        });
        cells.connected(link.connection.local());
        self.server = cells.clone();
        let others = self.paths.iter().flatten().filter(|other| other.id != self.server.id);
        others.for_each(|other| other.left());
    }

    /// Has this idle queue work on `file` from now on, as its file 0; on none, so that it can be closed.
    pub(crate) fn serve(&mut self, file: Option<&File>) {
        assert!(self.in_flight == 0 && self.staged.is_empty(), "the queue is idle");
        self.files.clear();
        self.trouble = None;
        if let Some(file) = file {
            // One that cannot be had now is asked for later.
            let _ = self.shared.first_layout(&file.open.state);
            self.files.push(FileInUse::new(file.open.clone()));
            self.make_templates();
        }
    }

    /// What was seen of the network.
    pub fn network(&self) -> NetworkCounters {
        self.network
    }

    /// Why the last requests failed that failed for another reason than what the server said of them: nobody could be reached.
    pub fn trouble(&self) -> Option<&NfsError> {
        self.trouble.as_ref()
    }

    /// Encodes the calls of all files for the link and the states that are in force.
    fn make_templates(&mut self) {
        let credential = &self.shared.way.credential;
        let session = self.link.as_ref().and_then(Link::in_session);
        let plain = self.options.stability;
        for FileInUse { open, templates, .. } in &mut self.files {
            let (state, handle) = (&open.state, &open.state.handle);
            *templates = if self.shared.way.target.version == Version::V3 {
                Templates::v3(handle, plain, credential)
            } else {
                use v4::transfer::{commit, read, write};
                let (id, _) = state.state();
                Templates {
                    read: read(handle, id, session, credential),
                    write: write(handle, id, plain, session, credential),
                    write_durable: write(handle, id, plain.max(Stability::Data), session, credential),
                    commit: commit(handle, session, credential),
                }
            };
        }
    }
}

impl io::Queue for Queue {
    fn depth(&self) -> u32 {
        self.options.depth
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn buffer(&self, slot: u32) -> &[u8] {
        let slot = &self.slots[slot as usize];
        assert!(matches!(slot.phase, Phase::Idle | Phase::Staged), "the slot is in flight");
        &slot.buffer
    }

    fn buffer_mut(&mut self, slot: u32) -> &mut [u8] {
        let slot = &mut self.slots[slot as usize];
        assert!(matches!(slot.phase, Phase::Idle | Phase::Staged), "the slot is in flight");
        &mut slot.buffer
    }

    fn stage(&mut self, slot: u32, request: Request) {
        assert!((request.file as usize) < self.files.len(), "file {} is unknown", request.file);
        let it = &mut self.slots[slot as usize];
        assert!(it.phase == Phase::Idle, "slot {slot} is busy");
        assert!(request.action == Action::Sync || request.bytes as usize <= it.buffer.len(), "too long");
        (it.phase, it.request, it.done) = (Phase::Staged, request, 0);
        (it.detour, it.fence, it.waits, it.commits) = (false, None, None, None);
        (it.in_place, it.replayed) = (false, false);
        self.staged.push(slot);
    }

    fn submit(&mut self) -> Result<u32, IoError> {
        let staged = std::mem::take(&mut self.staged);
        let count = staged.len() as u32;
        if count > 0 {
            if self.wants_home() && self.in_flight == 0 {
                self.come_home();
            }
            let now = units::clock::now();
            for &slot in &staged {
                let it = &mut self.slots[slot as usize];
                (it.phase, it.since) = (Phase::Held(Nanos(0)), now);
                self.launch(slot, now);
            }
            self.in_flight += count;
            self.counters.submit_calls += 1;
            self.counters.submitted += u64::from(count);
            // What breaks here is noticed, and mended, by whoever reaps.
            let _ = self.flush();
        }
        self.staged = staged;
        self.staged.clear();
        Ok(count)
    }

    fn reap(&mut self, min: u32, done: &mut Vec<Completion>) -> Result<(), IoError> {
        self.counters.reap_calls += 1;
        let wanted = done.len() + min.min(self.in_flight) as usize;
        loop {
            let only = self.only_road().filter(|_| done.len() < wanted);
            let heard = self.progress(only, done);
            if done.len() >= wanted || self.in_flight == 0 {
                return Ok(());
            }
            if !heard {
                self.wait(done);
            }
        }
    }

    fn counters(&self) -> QueueCounters {
        self.counters
    }

    fn describe(&self) -> String {
        let target = &self.shared.way.target;
        let path = self.link.as_ref().map(|link| link.connection.peer.to_string());
        let session = self.link.as_ref().and_then(|link| link.session.as_ref());
        let slots = session.map(|s| format!(", a session of {} slots", s.slots.count())).unwrap_or_default();
        format!(
            "NFS{} to {} by {}, a connection of its own{slots}, transfers up to {} and {} bytes",
            target.version,
            target.server,
            path.unwrap_or_else(|| "no path".into()),
            self.read_max(),
            self.write_max()
        )
    }
}

impl Drop for Queue {
    /// Waits for what is in flight, as far as the link holds: a write that comes late must not meet what others wrote since.
    fn drop(&mut self) {
        self.closing = true;
        let mut done = Vec::new();
        while self.in_flight > 0 && self.link.is_some() {
            self.progress(None, &mut done);
            if self.in_flight > 0 {
                self.wait(&mut done);
            }
        }
        let links = self.data.iter_mut().map(|channel| channel.link.take()).chain([self.link.take()]);
        links.flatten().for_each(|link| link.end(&self.shared.way));
        let data = self.data.iter().map(|channel| &channel.cells);
        self.paths.iter().flatten().chain(data).for_each(|cells| cells.set(ChannelState::Closed));
    }
}

/// The last word on a request.
fn ended(slot: &mut Slot, index: u32, outcome: Outcome) -> Completion {
    slot.phase = Phase::Idle;
    Completion { slot: index, outcome }
}
