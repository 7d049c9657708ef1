//! What went over each connection: counted in cells of its own by the one thread that drives it, read by whoever looks. No lock is on the road of a
//! request, and no two workers write to the same place.
//!
//! A channel is what one worker has to one address: a path to the server that was mounted, or a data server. It stays the same one when its connection is
//! made anew.

use super::file::lock;
use io::Action;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use units::Nanos;

/// Channels of workers that have ended which are remembered one by one, so that whoever looks now and then sees their last figures.
const CLOSED_MAX: usize = 256;

/// Whether calls go over a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelState {
    /// It is connected.
    #[default]
    Up,
    /// Its connection was lost, and is not made anew yet.
    Down,
    /// It works, and its worker has gone to another path.
    Idle,
    /// Its worker has ended.
    Closed,
}

impl ChannelState {
    const ALL: [Self; 4] = [Self::Up, Self::Down, Self::Idle, Self::Closed];

    /// `UP`, `DOWN`, `IDLE`, `CLOSED`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "UP",
            Self::Down => "DOWN",
            Self::Idle => "IDLE",
            Self::Closed => "CLOSED",
        }
    }
}

/// How long something took: how often, together, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How often.
    pub count: u64,
    /// All of them together.
    pub sum: Nanos,
    /// The longest.
    pub max: Nanos,
}

/// What went over one channel since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Which worker of the mount has it, 1 first.
    pub worker: u32,
    /// The name of the thread that made it.
    pub worker_name: String,
    /// Which channel of the mount it is, 0 first.
    pub id: u32,
    /// Where it leads.
    pub address: SocketAddr,
    /// Our own address; none before the first connection.
    pub local: Option<SocketAddr>,
    /// Whether by a layout; else it is the server that was mounted.
    pub data_server: bool,
    /// Whether it works.
    pub state: ChannelState,
    /// READs that were sent.
    pub reads: u64,
    /// WRITEs that were sent.
    pub writes: u64,
    /// COMMITs that were sent.
    pub commits: u64,
    /// Replies.
    pub receives: u64,
    /// Calls that were sent again because their reply did not come: those that were lost here.
    pub replays: u64,
    /// Connections made after the first: from another port of ours.
    pub reconnects: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// From the sending of a READ, the last time that it was sent, to its reply.
    pub read_times: Times,
    /// The same of WRITEs.
    pub write_times: Times,
    /// Times that requests had to wait because the connection was gone, or a layout was recalled.
    pub stalls: Times,
}

impl ChannelCounters {
    /// Calls that were sent, repetitions included.
    pub const fn sends(&self) -> u64 {
        self.reads + self.writes + self.commits
    }

    /// Bytes of reads and writes that were done.
    pub const fn bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes
    }
}

/// Written by one thread at a time: no need to hold the bus for it.
#[derive(Debug, Default)]
struct Cell(AtomicU64);

impl Cell {
    fn add(&self, more: u64) {
        self.0.store(self.get() + more, Ordering::Relaxed);
    }

    fn raise(&self, to: u64) {
        if to > self.get() {
            self.0.store(to, Ordering::Relaxed);
        }
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct TimeCells {
    count: Cell,
    sum: Cell,
    max: Cell,
}

impl TimeCells {
    fn add(&self, took: Nanos) {
        self.count.add(1);
        self.sum.add(took.0);
        self.max.raise(took.0);
    }

    fn times(&self) -> Times {
        Times { count: self.count.get(), sum: Nanos(self.sum.get()), max: Nanos(self.max.get()) }
    }
}

/// The cells of a channel. They begin a line of the processor's cache, so that no neighbour is in it.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Cells {
    worker: u32,
    worker_name: String,
    pub(super) id: u32,
    data_server: bool,
    pub(super) address: SocketAddr,
    /// Touched when a connection is made.
    local: Mutex<Option<SocketAddr>>,
    state: AtomicU32,
    reads: Cell,
    writes: Cell,
    commits: Cell,
    receives: Cell,
    replays: Cell,
    connections: Cell,
    read_bytes: Cell,
    written_bytes: Cell,
    read_times: TimeCells,
    write_times: TimeCells,
    stalls: TimeCells,
}

impl Cells {
    pub(super) fn sent(&self, action: Action) {
        match action {
            Action::Read | Action::ReadVectored { .. } => &self.reads,
            Action::Write | Action::WriteDsync => &self.writes,
            Action::Sync => &self.commits,
        }
        .add(1);
    }

    /// A reply came `took` after its call was sent, and `bytes` were done.
    pub(super) fn received(&self, action: Action, bytes: u32, took: Nanos) {
        self.receives.add(1);
        let (done, times) = match action {
            Action::Read | Action::ReadVectored { .. } => (&self.read_bytes, &self.read_times),
            Action::Write | Action::WriteDsync => (&self.written_bytes, &self.write_times),
            Action::Sync => return,
        };
        done.add(bytes.into());
        times.add(took);
    }

    /// A call that went by it is sent again, here or elsewhere.
    pub(super) fn replayed(&self) {
        self.replays.add(1);
    }

    pub(super) fn stalled(&self, took: Nanos) {
        self.stalls.add(took);
    }

    /// It has a connection, from `local`.
    pub(super) fn connected(&self, local: Option<SocketAddr>) {
        *lock(&self.local) = local;
        self.connections.add(1);
        self.set(ChannelState::Up);
    }

    pub(super) fn set(&self, state: ChannelState) {
        self.state.store(state as u32, Ordering::Relaxed);
    }

    /// Its worker has gone to another path.
    pub(super) fn left(&self) {
        let (up, idle) = (ChannelState::Up as u32, ChannelState::Idle as u32);
        let _ = self.state.compare_exchange(up, idle, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn is_closed(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ChannelState::Closed as u32
    }

    pub(super) fn counters(&self) -> ChannelCounters {
        ChannelCounters {
            worker: self.worker,
            worker_name: self.worker_name.clone(),
            id: self.id,
            address: self.address,
            local: *lock(&self.local),
            data_server: self.data_server,
            state: ChannelState::ALL[self.state.load(Ordering::Relaxed) as usize],
            reads: self.reads.get(),
            writes: self.writes.get(),
            commits: self.commits.get(),
            receives: self.receives.get(),
            replays: self.replays.get(),
            reconnects: self.connections.get().saturating_sub(1),
            read_bytes: self.read_bytes.get(),
            written_bytes: self.written_bytes.get(),
            read_times: self.read_times.times(),
            write_times: self.write_times.times(),
            stalls: self.stalls.times(),
        }
    }
}

impl std::fmt::Display for Cells {
    /// As Oracle's alert log names it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "id [{}] path [{}] local [", self.id, self.address)?;
        lock(&self.local).map_or(Ok(()), |local| write!(f, "{local}"))?;
        f.write_str("]")
    }
}

/// Calls by channels that are no longer remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gone {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) commits: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
}

impl Gone {
    pub(super) fn add(&mut self, channel: &ChannelCounters) {
        self.reads += channel.reads;
        self.writes += channel.writes;
        self.commits += channel.commits;
        self.read_bytes += channel.read_bytes;
        self.written_bytes += channel.written_bytes;
    }
}

/// All channels of a mount.
#[derive(Debug, Default)]
pub(super) struct Channels {
    workers: AtomicU32,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    made: u32,
    all: Vec<Arc<Cells>>,
    gone: Gone,
}

impl Channels {
    /// The number of another worker.
    pub(super) fn next_worker(&self) -> u32 {
        self.workers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A new one of `worker`, not connected yet.
    pub(super) fn add(&self, worker: u32, address: SocketAddr, data_server: bool) -> Arc<Cells> {
        let mut list = lock(&self.list);
        let cells = Arc::new(Cells {
            worker,
            worker_name: std::thread::current().name().unwrap_or_default().to_owned(),
            id: list.made,
            data_server,
            address,
            local: Mutex::default(),
            state: (ChannelState::Down as u32).into(),
            reads: Cell::default(),
            writes: Cell::default(),
            commits: Cell::default(),
            receives: Cell::default(),
            replays: Cell::default(),
            connections: Cell::default(),
            read_bytes: Cell::default(),
            written_bytes: Cell::default(),
            read_times: TimeCells::default(),
            write_times: TimeCells::default(),
            stalls: TimeCells::default(),
        });
        list.made += 1;
        if list.all.iter().filter(|channel| channel.is_closed()).count() > CLOSED_MAX
            && let Some(oldest) = list.all.iter().position(|channel| channel.is_closed())
        {
            let counters = list.all.remove(oldest).counters();
            list.gone.add(&counters);
        }
        list.all.push(cells.clone());
        cells
    }

    /// What went over each, in the order in which they were made; those of workers that have ended are the last few hundred.
    pub(super) fn counters(&self) -> Vec<ChannelCounters> {
        lock(&self.list).all.iter().map(|cells| cells.counters()).collect()
    }

    /// What those did that are not remembered.
    pub(super) fn gone(&self) -> Gone {
        lock(&self.list).gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_closed_channels_did_is_not_forgotten() {
        let channels = Channels::default();
        let address = SocketAddr::new([192, 0, 2, 1].into(), 2049);
        let count = CLOSED_MAX as u64 + 40;
        for _ in 0..count {
            let cells = channels.add(channels.next_worker(), address, false);
            cells.connected(None);
            cells.sent(Action::Read);
            cells.received(Action::Read, 8192, Nanos(10));
            cells.set(ChannelState::Closed);
        }
        let open = channels.add(channels.next_worker(), address, true);
        let all = channels.counters();
        assert!(all.len() <= CLOSED_MAX + 2, "{}", all.len());
        let mut sum = channels.gone();
        all.iter().for_each(|channel| sum.add(channel));
        assert_eq!((sum.reads, sum.read_bytes), (count, count * 8192));
        let last = all.last().expect("the open one");
        assert_eq!((last.id, last.worker, last.state), (open.id, count as u32 + 1, ChannelState::Down));
        open.connected(None);
        open.connected(None);
        open.received(Action::Write, 100, Nanos(7));
        open.received(Action::Write, 100, Nanos(3));
        let last = open.counters();
        assert_eq!((last.state, last.reconnects, last.bytes()), (ChannelState::Up, 1, 200));
        assert_eq!(last.write_times, Times { count: 2, sum: Nanos(10), max: Nanos(7) });
    }
}
