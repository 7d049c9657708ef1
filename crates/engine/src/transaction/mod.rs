//! Transactions: undo in its own tablespace, row locks with deadlock detection, read views, rollback, purge.
//!
//! Every row and every row version carries the transaction that made it ([`Xid`]) and where its predecessor lies
//! ([`UndoPtr`]), so a reader walks back to the version that its [`ReadView`] may see. A row is locked by being changed:
//! an unfinished transaction's id in a row is the lock, and who finds it waits for that transaction
//! (`enq: TX - row lock contention`).
//!
//! ```text
//!            Transactions::begin       Transaction::write             commit / rollback           purge
//! (nothing) ────────────────────▶ drawn ────────────────▶ active ───────────────────────▶ ended ────────▶ (undo reused)
//!                                 id, slot:              slot says so, with             slot says so
//!                                 memory only            the first undo record
//! ```
//! A commit is one small edit in the undo header, and waiting until that is durable. A crash leaves slots that say
//! *active*: [`Transactions::open`] finds them, [`Transactions::recover`] rolls them back.
//!
//! Where to look: `stream` (how a change carries an undo record), `record` and `undo_page` (what lies on disk),
//! `table` (what is known in memory), `view`, `lock`, `rollback`, `recovery`, `purge`, `segment` (where undo pages
//! come from).

pub(crate) mod edit;
mod lock;
mod purge;
pub(crate) mod record;
mod recovery;
mod rollback;
mod segment;
mod stream;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod undo_page;
mod view;

pub use purge::Purgeable;
pub use record::{Delta, Runs, Undo};
pub use stream::{Transaction, UndoPages};
pub use view::{ReadView, ReadViewGuard};

pub(crate) use record::RecordHead;
pub(crate) use view::Sight;

use crate::change::Change;
use crate::heap::Claims;
use crate::instance::{Core, Foundation};
use crate::page::{Lsn, PageId};
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use edit::Latched;
use purge::{Purge, PurgeMark};
use std::sync::Arc;
use table::{Ended, Shared};
use undo_page::State;

/// A transaction, in the order of their beginnings. 0 is none. 48 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid(pub u64);

impl Xid {
    /// All its bits.
    pub const MASK: u64 = (1 << 48) - 1;
}

/// Where an undo record lies: page (48 bits: file 16, block 32) and byte offset in it (16 bits). 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UndoPtr(pub u64);

impl UndoPtr {
    /// Byte `at` of a page.
    pub fn new(page: PageId, at: usize) -> Self {
        Self((page.to_u64() << 16) | at as u64)
    }

    /// The page.
    pub fn page(self) -> PageId {
        PageId::from_u64(self.0 >> 16)
    }

    /// The byte in it.
    pub fn at(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// A moment in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoMark(pub u64);

impl UndoMark {
    /// Before everything: for a savepoint that was set when the transaction had not begun.
    pub const BEGINNING: Self = Self(0);
}

/// All transactions of an instance.
pub struct Transactions {
    pub(crate) shared: Arc<Shared>,
    purge: parking_lot::Mutex<Purge>,
    pub(crate) purge_mark: PurgeMark,
    pub(crate) claims: Claims,
}

impl Transactions {
    /// None yet; see [`Transactions::create`] and [`Transactions::open`].
    ///
    /// # Errors
    /// None.
    pub fn new(_foundation: &Foundation) -> Result<Self> {
        Ok(Self {
            shared: Arc::new(Shared::new()),
            purge: Default::default(),
            purge_mark: PurgeMark::default(),
            claims: Claims::default(),
        })
    }

    /// Begins one: draws its id and takes a slot in an undo segment of the current undo tablespace. Touches no page:
    /// the slot is written with the first undo record.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] when there is no undo tablespace, or all its slots are taken.
    pub fn begin(&self, _core: &Core, context: &Context) -> Result<Transaction> {
        match self.shared.begin(context.session) {
            Some((xid, stream)) => Ok(Transaction::new(xid, stream)),
            None => Err(EngineError::Invalid(
                "no slot for a new transaction in the undo tablespace; end other transactions, or switch to another with ALTER SYSTEM SET undo_tablespace"
                    .into(),
            )),
        }
    }

    /// Commits, in this order:
    /// 1. the commit record: the slot says *committed* (in memory and in the log buffer)
    /// 2. the log up to there is durable (unless `commit_wait = nowait`)
    /// 3. the transaction is no longer active: views from now on see it, who waits for its rows goes on.
    ///
    /// 3 before 2 would show others what a crash can still take away; `commit_wait = nowait` asks for just that.
    ///
    /// # Errors
    /// As [`crate::redo::RedoLog::wait_durable`]: the commit may or may not be there after a restart. Any other error:
    /// it is rolled back in the background.
    pub fn commit(&self, core: &Core, context: &Context, transaction: Transaction) -> Result<()> {
        if !transaction.has_begun() {
            self.leave(context, transaction, None);
            return Ok(());
        }
        let (lsn, end) = match self.write_end(core, context, &transaction, State::Committed) {
            Ok(done) => done,
            Err(error) => {
                self.give_up(transaction);
                return Err(error);
            }
        };
        core.sync_commit(context, lsn)?;
        self.leave(context, transaction, Some((end, State::Committed)));
        Ok(())
    }

    /// Notes in the slot that the transaction has ended. Returns the end of the redo record and the end number.
    fn write_end(
        &self,
        core: &Core,
        context: &Context,
        transaction: &Transaction,
        state: State,
    ) -> Result<(Lsn, u64)> {
        const EDIT_BYTES: usize = 16 + 8;
        let stream = transaction.stream();
        let mut change = Change::begin(core, context, 1, EDIT_BYTES)?;
        let header = change.page(stream.segment().header)?;
        let end = self.shared.table().draw_end(transaction.xid);
        undo_page::end(&mut Latched::new(&mut change, header), stream.slot, transaction.xid, state, end);
        Ok((change.finish(), end))
    }

    /// The transaction is active no longer. `how`: its end number and state, when it had begun on disk.
    fn leave(&self, context: &Context, transaction: Transaction, how: Option<(u64, State)>) {
        let xid = transaction.xid;
        let (first, work) = (transaction.first, transaction.work);
        context.count(Statistic::UndoChangeVectorSize, transaction.undo_bytes);
        let mut stream = transaction.into_stream();
        let mut ended = None;
        if let Some((end, state)) = how {
            stream.previous_end = end;
            let work = work && state == State::Committed;
            // Whoever left nothing to purge and no page behind need not be remembered.
            if work || first.page() != stream.tail {
                ended = Some(Ended {
                    xid,
                    count: 0,
                    segment: stream.segment().clone(),
                    slot: stream.slot,
                    first,
                    tail: stream.tail,
                    work,
                });
            }
        }
        self.shared.end(xid, Some(stream), ended);
    }

    /// A transaction that cannot end now is rolled back in the background.
    fn give_up(&self, transaction: Transaction) {
        self.shared.table().dead.push(transaction);
    }

    /// A view of this moment for a statement of `own`, which sees all its own work, later one included. Registered
    /// until dropped, so that nothing it needs is purged.
    pub fn view(&self, own: Xid) -> ReadViewGuard {
        self.view_before(own, u64::MAX)
    }

    /// A view of this moment that does not see what `own` does from now on: what a statement reads that also writes,
    /// so that it never meets its own rows. For a session whose transaction has not begun, [`Transactions::view`] of
    /// none does the same.
    pub fn statement_view(&self, own: &Transaction) -> ReadViewGuard {
        self.view_before(own.xid, own.next_number())
    }

    fn view_before(&self, own: Xid, own_before: u64) -> ReadViewGuard {
        let (view, ended) = self.shared.table().view(own, own_before);
        ReadViewGuard { view, ended, shared: self.shared.clone() }
    }

    /// Whether it goes on.
    #[inline]
    pub fn is_active(&self, xid: Xid) -> bool {
        self.shared.is_active(xid)
    }

    /// To be called when the segment `object` was dropped or truncated, while nobody can write to it: sessions forget
    /// the pages of it into which they insert.
    pub fn forget_insert_pages(&self, object: u32) {
        self.claims.forget(object);
    }
}

/// An undo record that is not what a row or a transaction says it is.
fn damaged(core: &Core, at: UndoPtr, expected: &str) -> EngineError {
    EngineError::CorruptBlock {
        id: at.page(),
        path: core.files.of(at.page()).1,
        expected: format!("{expected} at byte {}", at.at()),
        found: "something else".into(),
    }
}

/// What an [`Undo`] is decoded from: a copy of the record at `at`, which must be one of `xid`.
pub(crate) fn read_record(core: &Core, context: &Context, at: UndoPtr, xid: Xid) -> Result<Vec<u8>> {
    let page = core.cache.read(core, context, at.page())?;
    let is_undo = page[4] == crate::page::PageKind::Undo as u8;
    let record = page.get(at.at()..undo_page::used(&page).min(page.len())).filter(|_| is_undo);
    match record.and_then(|bytes| Some((bytes, record::decode_head(bytes)?))) {
        Some((bytes, head)) if head.xid == xid => Ok(bytes[..head.length].to_vec()),
        _ => Err(damaged(core, at, &format!("an undo record of transaction {}", xid.0))),
    }
}

/// What a record says; `bytes` are those of [`read_record`].
pub(crate) fn decode_record<'a>(core: &Core, at: UndoPtr, bytes: &'a [u8]) -> Result<(RecordHead, Undo<'a>)> {
    record::decode(bytes).ok_or_else(|| damaged(core, at, "an undo record"))
}
