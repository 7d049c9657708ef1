//! Read views: what a statement may see.
//!
//! ```text
//!   oldest_active          next
//! ───────┬──────────────────┬──────────▶ transactions, in the order of their beginnings
//!  seen  │ seen, unless in  │ not begun:
//!        │ `active`         │ unseen          and one's own: seen up to `own_before`
//! ```

use super::Xid;
use super::table::Shared;
use std::sync::Arc;

/// What a statement may see: everything committed before it began, and its own transaction's earlier work.
#[derive(Clone, Debug)]
pub struct ReadView {
    /// Its own transaction; none (0) when it had not begun.
    pub own: Xid,
    /// Undo records of its own transaction from this number on take back work that the view does not see, so that a
    /// statement does not meet the rows that it writes itself. [`u64::MAX`]: it sees all of its own.
    pub own_before: u64,
    /// Transactions from here on had not begun.
    pub next: Xid,
    /// Transactions before this one had all ended.
    pub oldest_active: Xid,
    /// Those between that were active, sorted.
    pub active: Arc<[Xid]>,
}

/// Whether a version is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Yes.
    Seen,
    /// No.
    Unseen,
    /// One's own, and only the number of its undo record can tell.
    Own,
}

impl ReadView {
    /// Whether what `xid` made may be seen; for one's own, as a whole.
    #[inline]
    pub fn sees(&self, xid: Xid) -> bool {
        xid < self.oldest_active
            || xid == self.own
            || (xid < self.next && self.active.binary_search(&xid).is_err())
    }

    /// Whether it sees all transactions up to and including `newest`.
    #[inline]
    pub fn sees_all_up_to(&self, newest: Xid) -> bool {
        newest < self.oldest_active
    }

    /// Whether a version by `xid` is seen. `first`: for the first version of a row, the number of its undo record.
    #[inline]
    pub(crate) fn sight(&self, xid: Xid, first: Option<u64>) -> Sight {
        if xid != self.own || xid == Xid(0) || self.own_before == u64::MAX {
            return if self.sees(xid) { Sight::Seen } else { Sight::Unseen };
        }
        match first {
            None => Sight::Own,
            Some(number) if number < self.own_before => Sight::Seen,
            Some(_) => Sight::Unseen,
        }
    }
}

/// A registered view: what it may need is not purged until this is dropped.
pub struct ReadViewGuard {
    /// What may be seen.
    pub view: ReadView,
    /// Transactions ended before it, see `table`.
    pub(super) ended: u64,
    pub(super) shared: Arc<Shared>,
}

impl Drop for ReadViewGuard {
    fn drop(&mut self) {
        self.shared.table().unregister(self.ended);
    }
}
