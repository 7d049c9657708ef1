//! Index entries of rows, and whether a unique index may take them.

use super::Call;
use crate::btree::{self, Judgement};
use crate::heap;
use crate::instance::Core;
use crate::space::Index;
use crate::transaction::Xid;
use crate::value::{Row, RowId};
use crate::{Context, EngineError, Result};

impl Call<'_> {
    /// Adds the entry of a row. In a unique index it waits for whoever has put in, or taken out, the same key and has not ended.
    ///
    /// # Errors
    /// [`EngineError::DuplicateKey`], [`EngineError::Deadlock`], what storage says.
    pub(super) fn add_entry(&mut self, index: &Index, row: &Row, address: RowId) -> Result<()> {
        let (core, context) = (self.core, self.context);
        let key = index.key(row);
        let transaction = self.transaction()?;
        if !index.is_exclusive(row) {
            return btree::insert(core, context, &index.segment, Some(transaction), &key, address);
        }
        loop {
            let asker = Asker { core, context, index, key: &key, own: transaction.xid };
            let judgement = btree::insert_unique(
                core,
                context,
                &index.segment,
                Some(transaction),
                &key,
                address,
                &mut |others| asker.judge(others),
            )?;
            match judgement {
                Judgement::Proceed => return Ok(()),
                Judgement::Duplicate => {
                    return Err(EngineError::DuplicateKey { index: index.name.clone() });
                }
                Judgement::WaitFor(holder) => {
                    core.transactions.wait_for(core, context, transaction.xid, holder)?;
                }
            }
        }
    }
}

/// Who wants to add an entry.
struct Asker<'a> {
    core: &'a Core,
    context: &'a Context,
    index: &'a Index,
    key: &'a [u8],
    own: Xid,
}

impl Asker<'_> {
    fn judge(&self, others: &[RowId]) -> Result<Judgement> {
        let mut judgement = Judgement::Proceed;
        for other in others {
            match self.judge_one(*other)? {
                Judgement::Proceed => {}
                Judgement::Duplicate => return Ok(Judgement::Duplicate),
                wait => judgement = wait,
            }
        }
        Ok(judgement)
    }

    /// An entry says only that some version of the row had the key; that version may be deleted, changed, or never committed.
    fn judge_one(&self, other: RowId) -> Result<Judgement> {
        loop {
            // Before the look at the row: what the view sees then has ended, and was not rolled back, or it would not be there.
            let guard = self.core.transactions.view(self.own);
            let Some(newest) = heap::newest(self.core, self.context, other)? else {
                return Ok(Judgement::Proceed);
            };
            let has_key = |row: &Option<Row>| row.as_ref().is_some_and(|row| self.index.key(row) == self.key);
            if guard.view.sees(newest.xid) {
                return Ok(if has_key(&newest.row) { Judgement::Duplicate } else { Judgement::Proceed });
            }
            if !self.core.transactions.is_active(newest.xid) {
                // It has ended since the view was made: one way or the other, the next look tells.
                continue;
            }
            let before = heap::get(self.core, self.context, other, &guard.view)?;
            let matters = has_key(&newest.row) || has_key(&before);
            return Ok(if matters { Judgement::WaitFor(newest.xid) } else { Judgement::Proceed });
        }
    }
}
