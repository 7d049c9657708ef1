//! Rollback: a transaction's undo records are taken back one by one, the newest first.
//!
//! Each record is taken back by an ordinary change that also marks the record as undone. So a crash at any moment resumes
//! where it was and repeats nothing: the mark and the row are in the same redo record. Index entries are taken out by
//! a change of their own, marked after that: repeated, it does nothing, because the row is still locked and nobody
//! else can have put the entry there. (Marked before, a crash in between would leave the entry for ever.)
//!
//! Rollback writes no undo and takes no new page, so it always has the room it needs.

use super::edit::Latched;
use super::record::Undo;
use super::undo_page::{self, State};
use super::{RecordHead, Transaction, Transactions, UndoMark, UndoPtr};
use crate::change::Change;
use crate::instance::Core;
use crate::statistics::Statistic;
use crate::{Context, Result};
use crate::{btree, heap};

impl Transactions {
    /// Takes back everything since `mark`; the transaction goes on. Rows locked since then are free again.
    ///
    /// # Errors
    /// What storage says; the transaction must then be rolled back as a whole.
    pub fn rollback_to(
        &self,
        core: &Core,
        context: &Context,
        transaction: &mut Transaction,
        mark: UndoMark,
    ) -> Result<()> {
        take_back(core, context, transaction, mark)
    }

    /// Takes back everything and ends the transaction.
    ///
    /// # Errors
    /// What storage says; the rest is then rolled back in the background, or at the next open.
    pub fn rollback(&self, core: &Core, context: &Context, mut transaction: Transaction) -> Result<()> {
        if !transaction.has_begun() {
            self.leave(context, transaction, None);
            return Ok(());
        }
        let done = take_back(core, context, &mut transaction, UndoMark::BEGINNING)
            .and_then(|()| self.write_end(core, context, &transaction, State::RolledBack));
        match done {
            Ok((_, end)) => {
                context.count(Statistic::TransactionRollbacks, 1);
                self.leave(context, transaction, Some((end, State::RolledBack)));
                Ok(())
            }
            Err(error) => {
                self.give_up(transaction);
                Err(error)
            }
        }
    }

    /// Rolls back one transaction that a crash left behind, or that its session had to give up; false when there is none.
    ///
    /// # Errors
    /// What storage says; the transaction stays for another try.
    pub(super) fn recover_step(&self, core: &Core, context: &Context) -> Result<bool> {
        let Some(dead) = self.shared.table().dead.pop() else { return Ok(false) };
        self.rollback(core, context, dead)?;
        Ok(true)
    }
}

/// Takes back the transaction's records from the newest down to that with number `mark`.
fn take_back(core: &Core, context: &Context, transaction: &mut Transaction, mark: UndoMark) -> Result<()> {
    while transaction.last != UndoPtr(0) {
        let at = transaction.last;
        let bytes = super::read_record(core, context, at, transaction.xid)?;
        let (head, undo) = super::decode_record(core, at, &bytes)?;
        if head.number < mark.0 {
            break;
        }
        if !head.undone {
            take_back_one(core, context, at, &head, &undo)?;
            context.count(Statistic::RollbackUndoRecordsApplied, 1);
        }
        transaction.last = head.previous;
    }
    Ok(())
}

fn take_back_one(
    core: &Core,
    context: &Context,
    at: UndoPtr,
    head: &RecordHead,
    undo: &Undo<'_>,
) -> Result<()> {
    let Undo::IndexInsert { object, key, row } = undo else {
        return heap::take_back(core, context, at, head, undo);
    };
    // An index that was dropped has no entries.
    if let Some(segment) = core.space.segment(*object) {
        btree::remove(core, context, &segment, key, *row)?;
    }
    let mut change = Change::begin(core, context, 1, MARK_EDIT_BYTES)?;
    let page = change.page(at.page())?;
    undo_page::mark_undone(&mut Latched::new(&mut change, page), at.at());
    change.finish();
    Ok(())
}

/// Bytes of edits that marking a record costs.
pub(crate) const MARK_EDIT_BYTES: usize = 1 + 8;
