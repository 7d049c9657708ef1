//! The layout of an open file: which data servers workers send its parts to, and whether they may.
//!
//! ```text
//! none -> in force            LAYOUTGET, GETDEVICEINFO                    [super::follow]
//! in force -> stopped         the server wants it back: nothing new is sent by it, what is in flight ends
//! stopped -> in force         LAYOUTRETURN, then as at first
//! in force -> in force        it is looked at again, and has changed: new requests go by the new one
//! ```
//! Workers look at a number, and take the lock only when it has changed.

use super::file::lock;
use super::seen::Looks;
use crate::v4::layout::{DeviceId, IoFault, Layout, Spot, Stripe};
use crate::v4::open::StateId;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use units::Nanos;

/// Refusals that are remembered of a file.
const IO_FAULTS_MAX: usize = 16;
/// How soon a layout is looked at again for the same reason.
const LOOK_AGAIN: Nanos = Nanos::millis(100);

/// Why a layout was looked at, or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The server took it back: CB_LAYOUTRECALL.
    Recall,
    /// The server said that a device has changed: CB_NOTIFY_DEVICEID.
    Notification,
    /// A data server refused, or was gone.
    DataServer,
    /// A flag in a reply of SEQUENCE.
    Flags,
    /// It was time: `layout_refresh`.
    Refresh,
}

/// A server of parts of files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DataServer {
    /// Its addresses, the first is its name, too.
    pub(super) addresses: Vec<SocketAddr>,
    /// Asked in v3; else v4.1.
    pub(super) v3: bool,
}

/// A layout that requests go by.
pub(super) struct InForce {
    pub(super) layout: Layout,
    /// For each stripe, in order.
    pub(super) servers: Vec<DataServer>,
    /// Which of the layout's stripes has its handle.
    handles: Vec<usize>,
    state: Mutex<StateId>,
    in_flight: AtomicU32,
    /// When it was known to be right.
    sure: AtomicU64,
    /// Bytes that went by it since then.
    bytes: AtomicU64,
    /// Until then requests go to the server that was mounted.
    avoid: AtomicU64,
}

impl InForce {
    /// Each server with the index of its handle.
    pub(super) fn new(layout: Layout, servers: Vec<(DataServer, usize)>, now: Nanos) -> Self {
        let (servers, handles) = servers.into_iter().unzip();
        Self {
            state: Mutex::new(layout.state),
            layout,
            servers,
            handles,
            in_flight: 0.into(),
            sure: now.0.into(),
            bytes: 0.into(),
            avoid: 0.into(),
        }
    }

    /// Where the byte at `offset` of the file is.
    pub(super) fn spot(&self, offset: u64) -> Option<Spot> {
        self.layout.spot(offset, self.servers.len())
    }

    /// Handle and state for a stripe.
    pub(super) fn of_stripe(&self, stripe: usize) -> &Stripe {
        &self.layout.stripes[self.handles[stripe]]
    }

    pub(super) fn state(&self) -> StateId {
        *lock(&self.state)
    }

    pub(super) fn uses(&self, device: DeviceId) -> bool {
        self.layout.stripes.iter().any(|stripe| stripe.device == device)
    }

    /// The same servers for the same parts.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let same = |a: &Layout, b: &Layout| {
            (a.kind, a.range, a.unit, a.pattern, a.dense, &a.stripes)
                == (b.kind, b.range, b.unit, b.pattern, b.dense, &b.stripes)
        };
        (&self.servers, &self.handles) == (&other.servers, &other.handles)
            && same(&self.layout, &other.layout)
    }

    pub(super) fn leave(&self) -> bool {
        self.in_flight.fetch_sub(1, Ordering::SeqCst) == 1
    }

    pub(super) fn count(&self, bytes: u32) {
        self.bytes.fetch_add(bytes.into(), Ordering::Relaxed);
    }

    pub(super) fn avoid_until(&self, instant: Nanos) {
        self.avoid.store(instant.0, Ordering::Relaxed);
    }

    pub(super) fn is_avoided(&self, now: Nanos) -> bool {
        now.0 < self.avoid.load(Ordering::Relaxed)
    }

    fn confirm(&self, state: StateId, now: Nanos) {
        *lock(&self.state) = state;
        self.sure.store(now.0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// When it was last known to be right.
    pub(super) fn sure(&self) -> Nanos {
        Nanos(self.sure.load(Ordering::Relaxed))
    }

    /// Bytes that went by it since it was last known to be right.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// What workers do.
#[derive(Clone)]
pub(super) enum View {
    /// They ask the server that was mounted.
    Server,
    /// They wait.
    Held,
    /// They go by it.
    Data(Arc<InForce>),
}

#[derive(Default)]
pub(super) struct Layouts {
    /// Goes up with each change of what workers do, or of the states that they name.
    epoch: AtomicU64,
    inner: Mutex<Inner>,
    /// End of the last write to data servers that the server was not told of.
    dirty_end: AtomicU64,
    /// How often a layout went back, or was given up: what was sent by it is over then.
    returns: AtomicU64,
    /// What data servers refused, to be told when the layout goes back.
    errors: Mutex<Vec<IoFault>>,
    /// And of the last that it was told of.
    told_end: AtomicU64,
}

#[derive(Default)]
struct Inner {
    now: Option<Arc<InForce>>,
    stopped: Option<(Cause, Nanos)>,
    suspect: Option<(Cause, Nanos)>,
    looked: Nanos,
    /// Not asked for before.
    retry: Nanos,
    wanted: bool,
    /// When its data was found where it is.
    since: Nanos,
    looks: Looks,
}

/// What there is to do for a layout.
pub(super) enum Todo {
    Nothing,
    /// It is looked again then.
    Later(Nanos),
    /// Get one.
    Get,
    /// Return it, and get one.
    Return(Arc<InForce>, Cause, Nanos),
    /// Look whether it is right.
    Check(Arc<InForce>, Cause, Nanos),
}

impl Layouts {
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    pub(super) fn view(&self) -> View {
        let inner = lock(&self.inner);
        match &inner.now {
            _ if inner.stopped.is_some() => View::Held,
            Some(now) => View::Data(now.clone()),
            None => View::Server,
        }
    }

    /// Counts a request that goes by `by`, unless that has just changed.
    pub(super) fn enter(&self, by: &InForce, epoch: u64) -> bool {
        by.in_flight.fetch_add(1, Ordering::SeqCst);
        let still = self.epoch() == epoch;
        if !still {
            by.leave();
        }
        still
    }

    /// Something that calls name has changed.
    pub(super) fn changed(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn held(&self) -> Option<Arc<InForce>> {
        lock(&self.inner).now.clone()
    }

    /// How often it was looked at, the one that is held, and since when the data is there.
    pub(super) fn seen(&self) -> (Looks, Option<Arc<InForce>>, Nanos) {
        let inner = lock(&self.inner);
        (inner.looks, inner.now.clone(), inner.since)
    }

    pub(super) fn looked(&self, cause: Cause) {
        lock(&self.inner).looks.count(cause);
    }

    pub(super) fn moved(&self) {
        lock(&self.inner).looks.moves += 1;
    }

    /// A layout is wanted from now on.
    pub(super) fn want(&self) {
        lock(&self.inner).wanted = true;
    }

    pub(super) fn is_wanted(&self) -> bool {
        lock(&self.inner).wanted
    }

    /// It has to go back; whether there is one.
    pub(super) fn stop(&self, cause: Cause, now: Nanos) -> bool {
        let mut inner = lock(&self.inner);
        if inner.now.is_none() {
            return false;
        }
        inner.stopped.get_or_insert((cause, now));
        self.changed();
        true
    }

    /// Goes up when a layout has gone back.
    pub(super) fn returns(&self) -> u64 {
        self.returns.load(Ordering::SeqCst)
    }

    /// It has gone back.
    pub(super) fn returned(&self) {
        self.returns.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes what a data server refused.
    pub(super) fn refused(&self, fault: IoFault) {
        let mut all = lock(&self.errors);
        if all.len() < IO_FAULTS_MAX {
            all.push(fault);
        }
    }

    /// What was refused since the last time.
    pub(super) fn take_refused(&self) -> Vec<IoFault> {
        std::mem::take(&mut lock(&self.errors))
    }

    pub(super) fn has_refused(&self) -> bool {
        !lock(&self.errors).is_empty()
    }

    /// It may be wrong; whether that is new.
    pub(super) fn suspect(&self, cause: Cause, now: Nanos) -> bool {
        let mut inner = lock(&self.inner);
        let new = inner.now.is_some() && inner.stopped.is_none() && inner.suspect.is_none();
        if new {
            inner.suspect = Some((cause, now));
        }
        new
    }

    /// What there is to do at `now`, where layouts are looked at every `refresh`.
    pub(super) fn todo(&self, now: Nanos, refresh: Nanos) -> Todo {
        let mut inner = lock(&self.inner);
        let Some(held) = inner.now.clone() else {
            return match inner.wanted {
                false => Todo::Nothing,
                true if inner.retry <= now => Todo::Get,
                true => Todo::Later(inner.retry),
            };
        };
        if let Some((cause, since)) = inner.stopped {
            return match held.in_flight.load(Ordering::SeqCst) {
                0 if inner.retry <= now => Todo::Return(held, cause, since),
                0 => Todo::Later(inner.retry),
                // Whoever has the last of them wakes us.
                _ => Todo::Nothing,
            };
        }
        let due = Nanos(held.sure.load(Ordering::Relaxed)) + refresh;
        if inner.suspect.is_none() && refresh > Nanos(0) && due <= now {
            inner.suspect = Some((Cause::Refresh, now));
        }
        match inner.suspect {
            Some((cause, since)) => {
                // What the server itself tells is new each time.
                let earliest =
                    if cause == Cause::Notification { Nanos(0) } else { inner.looked + LOOK_AGAIN };
                if earliest > now {
                    return Todo::Later(earliest);
                }
                inner.suspect = None;
                inner.looked = now;
                Todo::Check(held, cause, since)
            }
            None if refresh > Nanos(0) => Todo::Later(due),
            None => Todo::Nothing,
        }
    }

    /// `held` is right, and is called `state` now.
    pub(super) fn confirm(&self, held: &InForce, state: StateId, now: Nanos) {
        held.confirm(state, now);
    }

    /// Puts `new` in force: after the one before went back, or in its place, where it has to go back, too, if that one has.
    pub(super) fn publish(&self, new: InForce, went_back: bool) {
        let mut inner = lock(&self.inner);
        if inner.now.as_ref().is_none_or(|old| old.servers != new.servers) {
            inner.since = new.sure();
        }
        inner.now = Some(Arc::new(new));
        if went_back {
            inner.stopped = None;
        }
        inner.suspect = None;
        self.changed();
    }

    /// There is none, and none is asked for before `retry`.
    pub(super) fn none(&self, retry: Nanos) {
        let mut inner = lock(&self.inner);
        (inner.now, inner.stopped, inner.suspect, inner.retry) = (None, None, None, retry);
        self.returned();
        self.changed();
    }

    /// The server does not know that it gave one; another is wanted at once.
    pub(super) fn forget(&self) {
        self.none(Nanos(0));
    }

    /// It went back, and none is to be had before `retry`; workers wait.
    pub(super) fn wait(&self, retry: Nanos) {
        lock(&self.inner).retry = retry;
    }

    /// A write to data servers ended at `end`.
    pub(super) fn wrote(&self, end: u64) {
        if end > self.told_end.load(Ordering::Acquire) {
            self.dirty_end.fetch_max(end, Ordering::AcqRel);
        }
    }

    /// Whether there were writes that the server was not told of.
    pub(super) fn is_dirty(&self) -> bool {
        self.dirty_end.load(Ordering::Acquire) > 0
    }

    /// End of the last of them, which it is told of now; 0 for none.
    pub(super) fn take_dirty(&self) -> u64 {
        self.dirty_end.swap(0, Ordering::AcqRel)
    }

    /// The server knows that the file reaches to `end`.
    pub(super) fn told(&self, end: u64) {
        self.told_end.fetch_max(end, Ordering::AcqRel);
    }

    /// The file was given another size: what was told does not hold.
    pub(super) fn resized(&self) {
        self.told_end.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v4::layout::LayoutKind;

    fn in_force(unit: u64, servers: usize) -> InForce {
        let address = |port: usize| SocketAddr::new([127, 0, 0, 1].into(), port as u16);
        let server = |index| (DataServer { addresses: vec![address(index)], v3: false }, 0);
        let stripe = Stripe { device: DeviceId([1; 16]), handle: None, state: None };
        let layout = Layout {
            state: StateId([1; 16]),
            kind: LayoutKind::Files,
            range: (0, u64::MAX),
            unit,
            pattern: (0, 1),
            dense: false,
            commit_through_server: false,
            stripes: vec![stripe],
        };
        InForce::new(layout, (0..servers).map(server).collect(), Nanos(0))
    }

    #[test]
    fn stripes_take_turns() {
        let layout = in_force(100, 3);
        for (offset, stripe, left) in [(0, 1, 100), (99, 1, 1), (100, 2, 100), (250, 0, 50), (300, 1, 100)] {
            assert_eq!(layout.spot(offset), Some(Spot { stripe, offset, left }), "byte {offset}");
        }
    }

    #[test]
    fn a_layout_goes_back_when_its_last_request_has_ended() {
        let layouts = Layouts::default();
        layouts.want();
        assert!(matches!(layouts.todo(Nanos(1), Nanos(0)), Todo::Get));
        layouts.publish(in_force(100, 2), true);
        let View::Data(by) = layouts.view() else { panic!("it is in force") };
        let epoch = layouts.epoch();
        assert!(layouts.enter(&by, epoch));
        assert!(layouts.stop(Cause::Recall, Nanos(5)));
        assert!(matches!(layouts.view(), View::Held));
        assert!(!layouts.enter(&by, epoch), "nothing new goes by it");
        assert!(matches!(layouts.todo(Nanos(6), Nanos(0)), Todo::Nothing), "one is in flight");
        assert!(by.leave());
        assert!(matches!(layouts.todo(Nanos(6), Nanos(0)), Todo::Return(_, Cause::Recall, Nanos(5))));
        layouts.publish(in_force(100, 1), true);
        assert!(layouts.suspect(Cause::DataServer, Nanos(7)) && !layouts.suspect(Cause::Flags, Nanos(7)));
        let later = LOOK_AGAIN + Nanos(7);
        assert!(matches!(layouts.todo(later, Nanos(0)), Todo::Check(_, Cause::DataServer, Nanos(7))));
        assert!(matches!(layouts.todo(later, Nanos(1)), Todo::Later(_)), "not twice in a row");
    }
}
