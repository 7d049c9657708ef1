//! Transactions: undo in its own tablespace, row locks with deadlock detection, read views, rollback, purge.
//!
//! Every row and every row version carries the transaction that made it ([`Xid`]) and where its predecessor lies
//! ([`UndoPtr`]), so a reader walks back to the version that its [`ReadView`] may see. A row is locked by being changed:
//! an unfinished transaction's id in a row is the lock, and who finds it waits for that transaction
//! (`enq: TX - row lock contention`).

use crate::change::{Change, Handle};
use crate::instance::{Core, Foundation};
use crate::value::RowId;
use crate::{Context, Result};

/// A transaction, in the order of their beginnings. 0 is none. 48 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid(pub u64);

/// Where an undo record lies: page (48 bits: file 16, block 32) and byte offset in it (16 bits). 0 is none: the row was inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UndoPtr(pub u64);

/// What a statement may see: everything committed before it began, and its own transaction's work.
#[derive(Clone, Debug)]
pub struct ReadView {
    /// Its own transaction.
    pub own: Xid,
    /// Transactions from here on had not begun.
    pub next: Xid,
    /// Transactions before this one had all ended.
    pub oldest_active: Xid,
    /// Those between that were active, sorted.
    pub active: std::sync::Arc<[Xid]>,
}

impl ReadView {
    /// Whether what `xid` made may be seen.
    #[inline]
    pub fn sees(&self, xid: Xid) -> bool {
        xid == self.own
            || xid < self.oldest_active
            || (xid < self.next && self.active.binary_search(&xid).is_err())
    }
}

/// What an undo record takes back. Written before the change that it takes back, in the same redo record.
#[derive(Clone, Debug, PartialEq)]
pub enum Undo<'a> {
    /// A row was inserted: take it out. Index entries have records of their own.
    Insert {
        /// Segment of the table.
        object: u32,
        /// Where.
        row: RowId,
    },
    /// A row was changed or marked as deleted: put `before`, the whole row piece with its header, back.
    Change {
        /// Segment of the table.
        object: u32,
        /// Where.
        row: RowId,
        /// The row piece as it was, header (xid, undo pointer, flags) included.
        before: &'a [u8],
    },
    /// An index entry was added: take it out.
    IndexInsert {
        /// Segment of the index.
        object: u32,
        /// The key.
        key: &'a [u8],
        /// The row it points to.
        row: RowId,
    },
}

/// All transactions of an instance.
pub struct Transactions {}

/// A transaction that goes on; belongs to a session. Does nothing on drop: the session commits or rolls back.
pub struct Transaction {
    /// Its id, drawn at its first change.
    pub xid: Xid,
}

/// A moment in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoMark(pub u64);

/// The pages of a change that an undo record goes to, latched by [`Transaction::latch`].
#[derive(Clone, Copy, Debug)]
pub struct UndoPages {
    _page: Handle,
    _header: Option<Handle>,
}

impl Undo<'_> {
    /// Bytes of the record, at most.
    pub fn bytes(&self) -> usize {
        unimplemented!()
    }
}

/// How a change carries an undo record, for `heap` and `btree`:
/// 1. [`Transaction::reserve`], before [`Change::begin`], which is then told [`Transaction::CHANGE_PAGES`] and
///    [`Transaction::change_bytes`] more;
/// 2. [`Transaction::latch`], after all index and heap pages are latched; the last thing that may fail;
/// 3. [`Transaction::write`], then the edits that it takes back, then [`Change::finish`].
impl Transaction {
    /// Pages that an undo record adds to a change.
    pub const CHANGE_PAGES: usize = 2;

    /// Bytes of edits that an undo record of at most `bytes` adds to a change.
    pub fn change_bytes(_bytes: usize) -> usize {
        unimplemented!()
    }

    /// Makes room for an undo record of at most `bytes` (see [`Undo::bytes`]); no latch may be held. May take a new undo page,
    /// which is a change of its own.
    ///
    /// # Errors
    /// [`crate::EngineError::TablespaceFull`] for the undo tablespace.
    pub fn reserve(&mut self, _core: &Core, _context: &Context, _bytes: usize) -> Result<()> {
        unimplemented!()
    }

    /// Latches where the record goes. Dropping the change afterwards, unedited, is fine.
    ///
    /// # Errors
    /// What storage says.
    pub fn latch(&mut self, _change: &mut Change<'_>) -> Result<UndoPages> {
        unimplemented!()
    }

    /// Writes the record. The transaction has begun on disk with its first one.
    pub fn write(&mut self, _change: &mut Change<'_>, _pages: UndoPages, _undo: &Undo<'_>) -> UndoPtr {
        unimplemented!()
    }

    /// This moment, to come back to with [`Transactions::rollback_to`]. Costs nothing.
    pub fn mark(&self) -> UndoMark {
        unimplemented!()
    }
}

impl Transactions {
    /// No transactions yet.
    ///
    /// # Errors
    /// None yet.
    pub fn new(_foundation: &Foundation) -> Result<Self> {
        unimplemented!()
    }

    /// Makes the undo segments of a new undo tablespace: of a new database, or of `CREATE UNDO TABLESPACE`. Its space maps are
    /// there.
    ///
    /// # Errors
    /// What storage says.
    pub fn create(&self, _core: &Core, _context: &Context, _tablespace: u16) -> Result<()> {
        unimplemented!()
    }

    /// At open, after roll forward: reads the transaction tables of all undo tablespaces; what they show as active is active
    /// from here on, so its rows are locked.
    ///
    /// # Errors
    /// [`crate::EngineError::Damaged`], what storage says.
    pub fn open(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// Rolls back every transaction that goes on: at open those of before the crash, at shutdown those that sessions left
    /// (no session is in a call then, and none comes back).
    ///
    /// # Errors
    /// What storage says.
    pub fn recover(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// What `smon` does for transactions (purge), a bit at a time; whether there was anything.
    ///
    /// # Errors
    /// What storage says; stops the instance.
    pub fn monitor_step(&self, _core: &Core, _context: &Context) -> Result<bool> {
        Ok(false)
    }

    /// Wakes everybody who waits for a row, so that they look at `core.health` and `core.gate` again (a shutdown gives
    /// [`crate::EngineError::ShuttingDown`]). Called from any thread.
    pub fn wake_all(&self) {}

    /// Begins one: draws its id and a slot in an undo segment of the current undo tablespace.
    ///
    /// # Errors
    /// No space in the undo tablespace.
    pub fn begin(&self, _core: &Core, _context: &Context) -> Result<Transaction> {
        unimplemented!()
    }

    /// Commits: writes the commit record, waits until it is durable, ends the transaction, wakes who waits for it.
    ///
    /// # Errors
    /// As [`crate::redo::RedoLog::wait_durable`].
    pub fn commit(&self, _core: &Core, _context: &Context, _transaction: Transaction) -> Result<()> {
        unimplemented!()
    }

    /// Takes back everything since `mark`; the transaction goes on. Rows locked since then are free again.
    ///
    /// # Errors
    /// What storage says; the transaction must then be rolled back as a whole.
    pub fn rollback_to(
        &self,
        _core: &Core,
        _context: &Context,
        _transaction: &mut Transaction,
        _mark: UndoMark,
    ) -> Result<()> {
        unimplemented!()
    }

    /// Takes back everything and ends the transaction.
    ///
    /// # Errors
    /// What storage says; the transaction is then rolled back at the next open.
    pub fn rollback(&self, _core: &Core, _context: &Context, _transaction: Transaction) -> Result<()> {
        unimplemented!()
    }

    /// A view of this moment for a statement of `own`. Registered until dropped, so that nothing it needs is purged.
    pub fn view(&self, _own: Xid) -> ReadViewGuard {
        unimplemented!()
    }

    /// Whether it goes on.
    pub fn is_active(&self, _xid: Xid) -> bool {
        unimplemented!()
    }

    /// Waits until `holder` has ended (`enq: TX - row lock contention`).
    ///
    /// # Errors
    /// [`crate::EngineError::Deadlock`]; with [`crate::Background::Inline`] [`crate::EngineError::RowLocked`] at once.
    pub fn wait_for(&self, _core: &Core, _context: &Context, _waiter: Xid, _holder: Xid) -> Result<()> {
        unimplemented!()
    }
}

/// A registered view.
pub struct ReadViewGuard {
    /// What may be seen.
    pub view: ReadView,
}
