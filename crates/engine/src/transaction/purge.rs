//! Purge: what no view needs any more is taken out: deleted rows with their index entries, index entries of older versions,
//! undo pages. A step of smon with bounded work; also whoever finds the undo tablespace full.
//!
//! Transactions are purged in the order of their end numbers (see `table`), each one's records in the order in which
//! they were written; a row's versions thus go from old to new. A crash forgets how far purge came, up to what the
//! undo headers note ([`UndoSegment::free_before`]): what is done again finds nothing to do.
//!
//! **Why an index entry may go.** An update changed a row's key from `k` to another one. Once every view sees the update,
//! the entry `(k, row)` is needed only if a newer version has the key `k` again.
//! * A newer version of a transaction that has ended has it: the entry stays; when that version is superseded in turn,
//!   its own undo record comes here.
//! * Only a version of an unfinished transaction has it: if that commits, as above; if it rolls back, no record would
//!   ever come here again. So purge waits until it has ended.
//! * None has it: the entry goes. Nobody may meanwhile give the row the key `k` again and find "its" entry there: for
//!   as long, [`PurgeMark`] holds off whoever wants to change this row. (Latching the heap page instead would be
//!   against the latch order, index before heap.)

use super::record::Undo;
use super::segment::UndoSegment;
use super::table::Ended;
use super::undo_page::{self, RECORDS_AT};
use super::{Transactions, UndoPtr, decode_record};
use crate::heap::{self, KeyHistory};
use crate::instance::Core;
use crate::page::PageId;
use crate::space::Segment;
use crate::value::RowId;
use crate::{Context, EngineError, Result};
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicI64, Ordering};

/// Undo records that one step looks at.
const RECORDS_PER_STEP: usize = 256;

/// What purge needs to know of the table whose rows are in a segment.
#[derive(Clone, Debug)]
pub struct Purgeable {
    /// Its rows.
    pub segment: Segment,
    /// Its indexes: entries, and numbers of the key's columns.
    pub indexes: Vec<(Segment, Vec<usize>)>,
}

/// The row whose index entries are being purged: nobody changes it meanwhile.
#[derive(Default)]
pub(crate) struct PurgeMark {
    /// [`RowId::to_i64`]; 0 is none.
    row: AtomicI64,
    gate: Mutex<()>,
}

impl PurgeMark {
    fn set(&self, row: RowId) -> Marked<'_> {
        let gate = self.gate.lock();
        self.row.store(row.to_i64(), Ordering::SeqCst);
        Marked { mark: self, _gate: gate }
    }

    /// Whether the row must not be changed now; then [`PurgeMark::wait`], without a latch. To be asked with the row's page
    /// latched: purge looks at the row after it has set the mark, so either it sees the change, or the changer sees
    /// the mark.
    #[inline]
    pub fn is_on(&self, row: RowId) -> bool {
        self.row.load(Ordering::SeqCst) == row.to_i64()
    }

    pub fn wait(&self) {
        drop(self.gate.lock());
    }
}

struct Marked<'a> {
    mark: &'a PurgeMark,
    _gate: MutexGuard<'a, ()>,
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.mark.row.store(0, Ordering::SeqCst);
    }
}

/// Where purge is.
#[derive(Default)]
pub(super) struct Purge {
    job: Option<Job>,
    history: KeyHistory,
    /// What was last in the way of smon.
    trouble: String,
}

impl Purge {
    /// Whether it has a transaction in hand of an undo segment for which `of_it` holds.
    pub(super) fn is_busy_with(&self, of_it: impl Fn(&UndoSegment) -> bool) -> bool {
        self.job.as_ref().is_some_and(|job| of_it(&job.ended.segment))
    }
}

/// A transaction that is being purged.
struct Job {
    end: u64,
    ended: Ended,
    /// The record to look at next; none when all were.
    at: Option<UndoPtr>,
}

/// How a look at some records ended.
enum Looked {
    /// At the end of the transaction, or of what one step may do.
    Done,
    /// At a row that must be looked at later.
    Deferred,
}

impl Transactions {
    /// What `smon` does for transactions, a bit at a time: rolls back what sessions had to give up, purges. Whether
    /// there was anything.
    ///
    /// What storage refuses (an unreadable block, a full disk) is tried again later and told in the alert log: the
    /// database is whole without it.
    ///
    /// # Errors
    /// [`EngineError::Crashed`].
    pub fn monitor_step(&self, core: &Core, context: &Context) -> Result<bool> {
        let recovered = self.recover_step(core, context);
        let purged = self.purge_step(core, context);
        core.health.check()?;
        let mut did = false;
        for step in [recovered, purged] {
            did |= step.unwrap_or_else(|error| {
                self.complain(core, &error);
                false
            });
        }
        Ok(did)
    }

    /// Tells each trouble once, not at every attempt.
    fn complain(&self, core: &Core, error: &EngineError) {
        let text = error.to_string();
        let mut purge = self.purge.lock();
        if purge.trouble != text {
            core.alert.line(&format!("smon: {text}; tried again later"));
            purge.trouble = text;
        }
    }

    /// Purges some; false when there was nothing that could be.
    ///
    /// # Errors
    /// What storage says; it is tried again with the next step.
    pub fn purge_step(&self, core: &Core, context: &Context) -> Result<bool> {
        let mut purge = self.purge.lock();
        let Purge { job: current, history, .. } = &mut *purge;
        let mut left = RECORDS_PER_STEP;
        while left > 0 {
            if current.is_none() {
                *current = self.next_job();
            }
            let Some(job) = current else { break };
            while left > 0 && job.at.is_some() {
                if let Looked::Deferred = look_at_page(core, context, job, history, &mut left)? {
                    return Ok(left < RECORDS_PER_STEP);
                }
            }
            if job.at.is_none() {
                left = left.saturating_sub(1);
                finish(core, context, job)?;
                let mut table = self.shared.table();
                // After a restart come those first of which only pages are left, and which the horizon is beyond.
                table.horizon = table.horizon.max(job.end);
                *current = None;
            }
        }
        Ok(left < RECORDS_PER_STEP)
    }

    fn next_job(&self) -> Option<Job> {
        let mut table = self.shared.table();
        let (end, ended) = table.next_purgeable()?;
        // Up to the horizon only pages are left to be freed: its records may be of rows that are long gone.
        let at = (ended.work && end > table.horizon).then_some(ended.first);
        Some(Job { end, ended, at })
    }

    /// Transactions that ended and are not purged.
    pub fn history_length(&self) -> usize {
        self.shared.table().history.len()
    }
}

/// The transaction's records are done with; its pages but the last are free, and so are those of who ended before in
/// the slot.
fn finish(core: &Core, context: &Context, job: &Job) -> Result<()> {
    let Ended { segment, slot, tail, .. } = &job.ended;
    segment.free_before(core, context, *slot, *tail, job.end)?;
    Ok(())
}

/// Looks at the job's records in one page.
fn look_at_page(
    core: &Core,
    context: &Context,
    job: &mut Job,
    history: &mut KeyHistory,
    left: &mut usize,
) -> Result<Looked> {
    let at = job.at.expect("a job with records to look at");
    // A copy: what the records of an ended transaction say never changes, and a latch here would be held for long.
    let page = core.cache.read(core, context, at.page())?.to_vec();
    for (offset, head) in undo_page::records(&page, at.at()) {
        let record = UndoPtr::new(at.page(), offset);
        job.at = Some(record);
        if head.xid != job.ended.xid {
            job.at = None;
            return Ok(Looked::Done);
        }
        if *left == 0 {
            return Ok(Looked::Done);
        }
        if !head.undone && super::record::needs_purge(&page[offset..]) {
            let (head, undo) = decode_record(core, record, &page[offset..offset + head.length])?;
            if !purge_one(core, context, history, record, &head, &undo)? {
                return Ok(Looked::Deferred);
            }
        }
        *left -= 1;
    }
    job.at = match undo_page::next(&page) {
        next if at.page() != job.ended.tail && next != PageId::NONE => Some(UndoPtr::new(next, RECORDS_AT)),
        _ => None,
    };
    Ok(Looked::Done)
}

/// Purges what one record left behind; false when it must wait.
fn purge_one(
    core: &Core,
    context: &Context,
    history: &mut KeyHistory,
    at: UndoPtr,
    head: &super::RecordHead,
    undo: &Undo<'_>,
) -> Result<bool> {
    match *undo {
        Undo::Delete { object, row, .. } => {
            if let Some(table) = core.space.purgeable(object) {
                heap::purge_deleted(core, context, &table, row, head.xid, at)?;
            }
            Ok(true)
        }
        Undo::Update { object, row, keys: true, .. } => match core.space.purgeable(object) {
            Some(table) if !table.indexes.is_empty() => {
                let _mark = core.transactions.purge_mark.set(row);
                heap::purge_updated(core, context, history, &table, row, (head.xid, at))
            }
            _ => Ok(true),
        },
        _ => Ok(true),
    }
}
