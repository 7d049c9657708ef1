//! Trees on floors of the tests' own: pages in memory with latches, a redo that is played back, calls that fail on purpose.

mod failing;
mod live;
mod model;
mod threads;

use super::node;
use super::pages::{Edit, Pages};
use crate::change::Handle;
use crate::page::{self, Lsn, PageId, PageKind};
use crate::statistics::Statistic;
use crate::value::RowId;
use crate::{EngineError, Result};
use parking_lot::lock_api::{ArcRwLockReadGuard, ArcRwLockWriteGuard};
use parking_lot::{Mutex, RawRwLock, RwLock};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

const OBJECT: u32 = 42;
const HEADER: PageId = PageId { file: 1, block: 8 };
/// Longer than any walk takes: who waits so long waits for ever.
const STUCK: Duration = Duration::from_secs(60);

thread_local! {
    /// Latches that the thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

fn assert_no_latch(what: &str) {
    assert_eq!(HELD.get(), 0, "{what} with a latch held");
}

type Frame = Arc<RwLock<Vec<u8>>>;

/// A redo record: what each page was given.
type Record = Vec<(PageId, Change)>;

#[derive(Clone, Debug)]
enum Change {
    Format(PageKind),
    Write(usize, Vec<u8>),
    Move(Range<usize>, usize),
}

/// A segment in memory.
struct Store {
    page_bytes: usize,
    frames: Mutex<BTreeMap<PageId, Frame>>,
    unused: Mutex<Vec<PageId>>,
    in_use: Mutex<BTreeSet<PageId>>,
    next_block: AtomicU64,
    lsn: AtomicU64,
    log: Option<Mutex<Vec<Record>>>,
    /// What the log had made of the pages when it was last looked at.
    replica: Mutex<BTreeMap<PageId, Vec<u8>>>,
    /// Calls that may fail until one does; negative is never.
    fail_in: AtomicI64,
    reads: AtomicU64,
    undo: Mutex<Vec<(Vec<u8>, RowId)>>,
}

impl Store {
    fn new(page_bytes: usize, log: bool) -> Arc<Self> {
        Arc::new(Self {
            page_bytes,
            frames: Mutex::default(),
            unused: Mutex::default(),
            in_use: Mutex::default(),
            next_block: AtomicU64::new(u64::from(HEADER.block) + 1),
            lsn: AtomicU64::new(1),
            log: log.then(Mutex::default),
            replica: Mutex::default(),
            fail_in: AtomicI64::new(-1),
            reads: AtomicU64::new(0),
            undo: Mutex::default(),
        })
    }

    fn with_tree(page_bytes: usize, log: bool) -> Arc<Self> {
        let store = Self::new(page_bytes, log);
        super::build::build(&store, page_bytes, &mut std::iter::empty()).expect("nothing fails");
        store
    }

    fn may_fail(&self) -> Result<()> {
        if self.fail_in.load(Ordering::Relaxed) >= 0 && self.fail_in.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(EngineError::Invalid("on purpose".into()));
        }
        Ok(())
    }

    fn frame(&self, id: PageId) -> Frame {
        self.frames.lock().get(&id).unwrap_or_else(|| panic!("{id} was never formatted")).clone()
    }

    /// Plays what is new in the log back.
    fn replay(&self, log: &Mutex<Vec<Record>>) {
        let mut pages = self.replica.lock();
        for (id, change) in log.lock().drain(..).flatten() {
            let page = pages.entry(id).or_insert_with(|| vec![0; self.page_bytes]);
            match change {
                Change::Format(kind) => page::format(page, id, kind, OBJECT),
                Change::Write(at, data) => page[at..at + data.len()].copy_from_slice(&data),
                Change::Move(from, to) => page.copy_within(from, to),
            }
        }
    }

    /// The tree is sound, its redo makes the same pages, and every page in use belongs to it.
    fn assert_sound(self: &Arc<Self>) -> super::Structure {
        let structure = super::check::check(self).expect("nothing fails");
        assert_eq!(structure.problems, Vec::<String>::new());
        let pages = structure.branches + structure.leaves;
        assert_eq!(pages, self.in_use.lock().len() as u64, "pages were lost");
        if let Some(log) = &self.log {
            self.replay(log);
            let replica = self.replica.lock();
            for id in &*self.in_use.lock() {
                assert_eq!(self.frame(*id).read()[24..], replica[id][24..], "{id}");
            }
        }
        structure
    }
}

struct ReadLatch(ArcRwLockReadGuard<RawRwLock, Vec<u8>>);

impl Deref for ReadLatch {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for ReadLatch {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

struct Latched {
    id: PageId,
    page: ArcRwLockWriteGuard<RawRwLock, Vec<u8>>,
    edited: bool,
}

struct StoreChange {
    store: Arc<Store>,
    pages: Vec<Option<Latched>>,
    pages_max: usize,
    edit_bytes_left: usize,
    record: Record,
    edited: bool,
}

impl StoreChange {
    fn latch(&mut self, id: PageId) -> Handle {
        let latched = |slot: &Option<Latched>| slot.as_ref().is_some_and(|page| page.id == id);
        if let Some(index) = self.pages.iter().position(latched) {
            return Handle(index as u16);
        }
        let page = self.store.frame(id).try_write_arc_for(STUCK).unwrap_or_else(|| panic!("{id}: stuck"));
        HELD.set(HELD.get() + 1);
        self.pages.push(Some(Latched { id, page, edited: false }));
        Handle(self.pages.len() as u16 - 1)
    }

    fn latched(&self, page: Handle) -> &Latched {
        self.pages[usize::from(page.0)].as_ref().expect("the page was released")
    }

    fn edit(&mut self, page: Handle, bytes: usize, change: Change) -> &mut Vec<u8> {
        self.edited = true;
        self.edit_bytes_left =
            self.edit_bytes_left.checked_sub(8 + bytes).expect("more edits than were reserved");
        let latched = self.pages[usize::from(page.0)].as_mut().expect("the page was released");
        latched.edited = true;
        self.record.push((latched.id, change));
        &mut latched.page
    }
}

impl Drop for StoreChange {
    fn drop(&mut self) {
        HELD.set(HELD.get() - self.pages.iter().flatten().count());
        assert!(!self.edited || std::thread::panicking(), "a change was dropped after an edit");
    }
}

impl Edit for StoreChange {
    fn page(&mut self, id: PageId) -> Result<Handle> {
        self.store.may_fail()?;
        Ok(self.latch(id))
    }
    fn new_page(&mut self, id: PageId, kind: PageKind, object: u32) -> Result<Handle> {
        self.store.may_fail()?;
        assert_eq!(object, OBJECT);
        let fresh = || Arc::new(RwLock::new(vec![0; self.store.page_bytes]));
        self.store.frames.lock().entry(id).or_insert_with(fresh);
        let handle = self.latch(id);
        let latched = self.pages[usize::from(handle.0)].as_mut().expect("latched");
        page::format(&mut latched.page, id, kind, object);
        latched.edited = true;
        self.record.push((id, Change::Format(kind)));
        Ok(handle)
    }
    fn bytes(&self, page: Handle) -> &[u8] {
        &self.latched(page).page
    }
    fn id(&self, page: Handle) -> PageId {
        self.latched(page).id
    }
    fn release(&mut self, page: Handle) {
        let gone = self.pages[usize::from(page.0)].take().expect("the page was released");
        assert!(!gone.edited);
        HELD.set(HELD.get() - 1);
    }
    fn write(&mut self, page: Handle, at: usize, data: &[u8]) {
        self.edit(page, data.len(), Change::Write(at, data.to_vec()))[at..at + data.len()]
            .copy_from_slice(data);
    }
    fn copy_within(&mut self, page: Handle, from: Range<usize>, to: usize) {
        self.edit(page, 0, Change::Move(from.clone(), to)).copy_within(from, to);
    }
    fn finish(mut self) -> Lsn {
        self.edited = false;
        assert!(self.pages.iter().flatten().filter(|page| page.edited).count() <= self.pages_max);
        // Under the log's lock, so that its order is the order of the LSNs.
        let log = self.store.log.as_ref().map(|log| log.lock());
        let lsn = Lsn(self.store.lsn.fetch_add(1, Ordering::Relaxed) + 1);
        for latched in self.pages.iter_mut().flatten().filter(|page| page.edited) {
            page::set_lsn(&mut latched.page, lsn);
        }
        if let Some(mut log) = log {
            log.push(std::mem::take(&mut self.record));
        }
        lsn
    }
}

impl Pages for Arc<Store> {
    type Read = ReadLatch;
    type Change = StoreChange;
    type Undo = ();

    fn root(&self) -> PageId {
        PageId { block: HEADER.block + 1, ..HEADER }
    }
    fn object(&self) -> u32 {
        OBJECT
    }
    fn read(&self, id: PageId) -> Result<ReadLatch> {
        self.may_fail()?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        let guard = self.frame(id).try_read_arc_for(STUCK).unwrap_or_else(|| panic!("{id}: stuck"));
        HELD.set(HELD.get() + 1);
        Ok(ReadLatch(guard))
    }
    fn prefetch(&self, ids: &[PageId]) -> Result<()> {
        assert_no_latch("prefetch");
        assert!(ids.len() > 1);
        self.may_fail()
    }
    fn begin(&self, pages_max: usize, edit_bytes_max: usize) -> Result<StoreChange> {
        assert_no_latch("begin");
        self.may_fail()?;
        Ok(StoreChange {
            store: self.clone(),
            pages: Vec::new(),
            pages_max,
            edit_bytes_left: edit_bytes_max,
            record: Vec::new(),
            edited: false,
        })
    }
    fn reserve_undo(&self, _: &[u8], _: RowId) -> Result<(usize, usize)> {
        assert_no_latch("reserve_undo");
        self.may_fail()?;
        Ok((1, 0))
    }
    fn latch_undo(&self, _: &mut StoreChange) -> Result<()> {
        self.may_fail()
    }
    fn write_undo(&self, change: &mut StoreChange, (): (), key: &[u8], row: RowId) {
        assert!(!change.edited, "undo comes first");
        self.undo.lock().push((key.to_vec(), row));
    }
    fn allocate(&self) -> Result<PageId> {
        assert_no_latch("allocate");
        self.may_fail()?;
        let id = self.unused.lock().pop().unwrap_or_else(|| PageId {
            block: self.next_block.fetch_add(1, Ordering::Relaxed) as u32,
            ..HEADER
        });
        assert!(self.in_use.lock().insert(id), "{id} is given twice");
        Ok(id)
    }
    fn free(&self, id: PageId) -> Result<()> {
        assert_no_latch("free");
        self.may_fail()?;
        assert!(self.in_use.lock().remove(&id), "{id} is freed twice");
        self.unused.lock().push(id);
        Ok(())
    }
    fn count(&self, _: Statistic) {}
    fn corrupt(&self, id: PageId, expected: String, found: String) -> EngineError {
        EngineError::CorruptBlock { id, path: "/store".into(), expected, found }
    }
}

fn row(n: u64) -> RowId {
    node::row_id((1 << 48) + n)
}
