//! What is known of transactions in memory: who goes on, which views are open, who has ended and is not purged. One mutex.
//!
//! Two counters order the ends:
//! * the *end number* is drawn when a transaction begins to commit and is stored on disk with the commit. A
//!   transaction that changes a row after another one has a greater end number than that, because it found it ended.
//!   Purge goes in this order, so the versions of a row are purged from old to new, also when a restart comes between;
//! * `ended` counts transactions as they leave the active ones, when their commit is durable. A view notes the count
//!   when it is made: it sees exactly those that were counted before. So a transaction is purged when every open view
//!   noted more.
//!
//! ```text
//! active ── draw_end ──▶ ending (commit record written, not durable: still active to all views) ── end ──▶ history ──▶ purged
//! ```

use super::lock::Waiters;
use super::stream::Stream;
use super::view::ReadView;
use super::{Transaction, UndoPtr, Xid};
use crate::page::PageId;
use crate::transaction::segment::UndoSegment;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Streams that a tablespace gets before sessions begin to use those that others used.
const STREAMS_EASY: usize = 32;

/// The table, and what is read without its mutex.
pub(crate) struct Shared {
    table: Mutex<Table>,
    /// Transactions before this one have all ended. May lag behind, never ahead.
    oldest_active: AtomicU64,
}

impl Shared {
    pub fn new() -> Self {
        Self { table: Mutex::new(Table::new()), oldest_active: AtomicU64::new(0) }
    }

    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Whether a transaction goes on; usually without the mutex.
    #[inline]
    pub fn is_active(&self, xid: Xid) -> bool {
        xid.0 >= self.oldest_active.load(Ordering::Acquire) && self.table().find(xid).is_some()
    }

    /// To be called with the mutex held, after each change of the active ones.
    fn publish(&self, table: &Table) {
        self.oldest_active.store(table.oldest_active().0, Ordering::Release);
    }

    /// Draws an id, and takes a stream for it; none when all slots of the current undo tablespace are taken.
    pub fn begin(&self, session: u32) -> Option<(Xid, Stream)> {
        let mut table = self.table();
        let stream = table.streams.take(session)?;
        let xid = Xid(table.next_xid);
        table.next_xid += 1;
        table.active.push(Active {
            xid,
            session,
            slot: stream.number(),
            waits_for: None,
            end: None,
            waiters: None,
        });
        table.snapshot = None;
        self.publish(&table);
        Some((xid, stream))
    }

    /// The transaction no longer goes on. `ended`: what purge must do about it, if anything. Wakes who waits for it.
    pub fn end(&self, xid: Xid, stream: Option<Stream>, ended: Option<Ended>) {
        let mut table = self.table();
        let at = table.active.iter().position(|active| active.xid == xid).expect("who ends is active");
        let active = table.active.remove(at);
        table.snapshot = None;
        if let (Some(end), Some(mut ended)) = (active.end, ended) {
            ended.count = table.ended;
            table.history.insert(end, ended);
        }
        table.ended += 1;
        if let Some(stream) = stream {
            stream.segment().note_end(table.ended);
            table.streams.idle.push(stream);
        }
        self.publish(&table);
        drop(table);
        if let Some(waiters) = active.waiters {
            waiters.wake();
        }
    }

    /// Takes over what recovery found.
    pub fn restore(&self, found: Restored) {
        let mut table = self.table();
        table.next_xid = table.next_xid.max(found.next_xid);
        table.next_end = table.next_end.max(found.next_end);
        table.horizon = table.horizon.max(found.horizon);
        // Everything that ended before is older than any view to come.
        table.ended = table.ended.max(1);
        table.history.extend(found.history);
        table.streams.idle.extend(found.idle);
        for transaction in found.active {
            let at = table.active.partition_point(|active| active.xid < transaction.xid);
            let (xid, slot) = (transaction.xid, transaction.stream().number());
            table
                .active
                .insert(at, Active { xid, session: 0, slot, waits_for: None, end: None, waiters: None });
            table.dead.push(transaction);
        }
        table.snapshot = None;
        self.publish(&table);
    }
}

/// A transaction that goes on.
pub(super) struct Active {
    pub xid: Xid,
    /// Whose; 0 for one that a restart left behind.
    pub session: u32,
    /// For the wait's parameters: undo segment in the upper, slot in the lower 16 bits.
    pub slot: u32,
    /// Whom it waits for.
    pub waits_for: Option<Xid>,
    /// Its end number, once drawn.
    pub end: Option<u64>,
    /// Who waits for it.
    pub waiters: Option<Arc<Waiters>>,
}

/// A transaction that ended, as purge sees it.
pub(crate) struct Ended {
    pub xid: Xid,
    /// Transactions that had ended before it.
    pub count: u64,
    pub segment: Arc<UndoSegment>,
    pub slot: u16,
    /// Its first record.
    pub first: UndoPtr,
    /// Its last page: pages of the slot before that are free when it is purged.
    pub tail: PageId,
    /// Whether there are deleted rows or stale index entries among its records.
    pub work: bool,
}

/// What recovery found in an undo tablespace.
#[derive(Default)]
pub(crate) struct Restored {
    pub next_xid: u64,
    pub next_end: u64,
    pub horizon: u64,
    pub history: BTreeMap<u64, Ended>,
    pub idle: Vec<Stream>,
    pub active: Vec<Transaction>,
}

/// Everything under the mutex.
pub(crate) struct Table {
    next_xid: u64,
    next_end: u64,
    /// Transactions ended since the instance was opened.
    ended: u64,
    /// In the order of their beginnings.
    pub(super) active: Vec<Active>,
    /// The active ones, until they change.
    snapshot: Option<Arc<[Xid]>>,
    /// Open views: how many ended transactions they noted, and how many views noted that.
    views: BTreeMap<u64, u32>,
    /// Ended and not purged, by end number.
    pub(super) history: BTreeMap<u64, Ended>,
    /// All that ended up to this end number is purged.
    pub(super) horizon: u64,
    pub(super) streams: Streams,
    /// To be rolled back in the background: found at open, or given up by their session after an error.
    pub(super) dead: Vec<Transaction>,
}

impl Table {
    fn new() -> Self {
        Self {
            next_xid: 1,
            next_end: 1,
            ended: 0,
            active: Vec::new(),
            snapshot: None,
            views: BTreeMap::new(),
            history: BTreeMap::new(),
            horizon: 0,
            streams: Streams::default(),
            dead: Vec::new(),
        }
    }

    pub fn next_xid(&self) -> Xid {
        Xid(self.next_xid)
    }

    pub fn oldest_active(&self) -> Xid {
        self.active.first().map_or(Xid(self.next_xid), |active| active.xid)
    }

    pub(super) fn find(&self, xid: Xid) -> Option<&Active> {
        self.active.binary_search_by_key(&xid, |active| active.xid).ok().map(|at| &self.active[at])
    }

    pub(super) fn find_mut(&mut self, xid: Xid) -> Option<&mut Active> {
        self.active.binary_search_by_key(&xid, |active| active.xid).ok().map(|at| &mut self.active[at])
    }

    /// The transaction begins to end.
    pub(super) fn draw_end(&mut self, xid: Xid) -> u64 {
        let end = self.next_end;
        self.next_end += 1;
        self.find_mut(xid).expect("who ends is active").end = Some(end);
        end
    }

    /// A view of this moment, registered: give the second part to [`Table::unregister`].
    pub(super) fn view(&mut self, own: Xid, own_before: u64) -> (ReadView, u64) {
        let active = self
            .snapshot
            .get_or_insert_with(|| self.active.iter().map(|active| active.xid).collect())
            .clone();
        *self.views.entry(self.ended).or_insert(0) += 1;
        let oldest_active = self.oldest_active();
        (ReadView { own, own_before, next: Xid(self.next_xid), oldest_active, active }, self.ended)
    }

    pub(super) fn unregister(&mut self, ended: u64) {
        let views = self.views.get_mut(&ended).expect("a registered view");
        *views -= 1;
        if *views == 0 {
            self.views.remove(&ended);
        }
    }

    /// What the oldest open view noted: how many transactions had ended then. Now, when none is open.
    pub(super) fn oldest_view(&self) -> u64 {
        self.views.first_key_value().map_or(self.ended, |(ended, _)| *ended)
    }

    /// The next transaction to purge, in the order of end numbers, when no view may need it any more.
    pub(super) fn next_purgeable(&mut self) -> Option<(u64, Ended)> {
        let (&end, first) = self.history.first_key_value()?;
        let seen_by_all = first.count < self.oldest_view();
        // One with a smaller number that is about to end must be purged before.
        let turn = self.active.iter().all(|active| active.end.is_none_or(|number| number > end));
        if seen_by_all && turn { self.history.pop_first() } else { None }
    }
}

/// The slots of the attached undo segments that no transaction has.
#[derive(Default)]
pub(super) struct Streams {
    /// In the order in which they were given back.
    pub idle: Vec<Stream>,
    pub segments: Vec<SegmentSlots>,
    /// Tablespace for new transactions.
    pub current: u16,
}

/// An undo segment and how many of its slots have ever been used.
pub(super) struct SegmentSlots {
    pub segment: Arc<UndoSegment>,
    pub used: u16,
}

impl Streams {
    /// A stream for a session: the one it had last, so that its undo page and its insert pages are at hand; or a fresh one;
    /// or, when there are many, the one that was idle for longest.
    fn take(&mut self, session: u32) -> Option<Stream> {
        let current = self.current;
        let usable = |stream: &Stream| stream.segment().tablespace() == current;
        let own = self.idle.iter().position(|stream| stream.session == session && usable(stream));
        let used: usize = self.in_current().map(|segment| usize::from(segment.used)).sum();
        let other = || self.idle.iter().position(usable);
        let at = own.or_else(|| if used < STREAMS_EASY { None } else { other() });
        let mut stream = match at {
            Some(at) => self.idle.remove(at),
            None => match self.fresh() {
                Some(stream) => stream,
                None => self.idle.iter().position(usable).map(|at| self.idle.remove(at))?,
            },
        };
        stream.session = session;
        Some(stream)
    }

    /// Whether new transactions have a tablespace to go to.
    pub fn has_current(&self) -> bool {
        self.in_current().next().is_some()
    }

    fn in_current(&self) -> impl Iterator<Item = &SegmentSlots> {
        self.segments.iter().filter(|segment| segment.segment.tablespace() == self.current)
    }

    /// A slot that was never used, in the segment with the fewest.
    fn fresh(&mut self) -> Option<Stream> {
        let current = self.current;
        let segment = self
            .segments
            .iter_mut()
            .filter(|slots| slots.segment.tablespace() == current && slots.used < slots.segment.slots())
            .min_by_key(|slots| slots.used)?;
        let slot = segment.used;
        segment.used += 1;
        Some(Stream::new(segment.segment.clone(), slot))
    }
}
