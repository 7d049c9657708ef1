//! Opening: what the undo segments say after the redo has been rolled forward.
//!
//! A slot that says *active* belongs to a transaction that a crash cut off: it is active again, with no session, until it
//! is rolled back. Until then its rows are locked and no view sees them, so the database may be read before. What ended and
//! is not purged is found by walking the chains; the end numbers put it into the order in which it must be purged.

use super::segment::{UndoSegment, undo_object};
use super::stream::Stream;
use super::table::{Ended, Restored, SegmentSlots};
use super::undo_page::{self, RECORDS_AT, SlotEntry, State, UndoHeader};
use super::{Transaction, Transactions, UndoPtr, Xid, damaged};
use crate::files::control::TablespaceKind;
use crate::instance::Core;
use crate::page::{self, PageId, PageKind};
use crate::parameter::Parameter;
use crate::space::Segment;
use crate::{Context, EngineError, Result};
use std::sync::Arc;

/// The records of one transaction in a chain.
struct Found {
    xid: Xid,
    first: UndoPtr,
    last: UndoPtr,
    /// Begins in a page that is still there.
    whole: bool,
    work: bool,
    /// When it ended; the next one in the chain, or the slot, says so.
    end: u64,
}

/// Blocks at the beginning of an undo tablespace among which its first undo segment is looked for.
const SEARCH_BLOCKS: u32 = 1024;

impl Transactions {
    /// At open, after roll forward: reads the transaction tables of all undo tablespaces; what they show as active is
    /// active from here on, so its rows are locked and no view sees them.
    ///
    /// # Errors
    /// [`EngineError::NoSuch`] when the tablespace of `undo_tablespace` has no undo segments,
    /// [`EngineError::CorruptBlock`], what storage says.
    pub fn open(&self, core: &Core, context: &Context) -> Result<()> {
        let content = core.control.content();
        for tablespace in content.tablespaces.iter().filter(|t| t.kind == TablespaceKind::Undo) {
            self.attach(core, context, tablespace.number)?;
        }
        let name = core.parameters.text(Parameter::UndoTablespace);
        let current = content.tablespace_named(&name).filter(|t| t.kind == TablespaceKind::Undo);
        let current = current.ok_or_else(|| EngineError::NoSuch {
            kind: "undo tablespace",
            name,
            hint: "; start with parameter undo_tablespace set to one that exists".into(),
        })?;
        self.use_tablespace(current.number)
    }

    /// Makes the undo segments of a tablespace usable. One whose making a crash cut short has none.
    pub(super) fn attach(&self, core: &Core, context: &Context, tablespace: u16) -> Result<()> {
        let Some(first) = find_first(core, context, tablespace)? else { return Ok(()) };
        let headers = undo_page::segments(&core.cache.read(core, context, first)?);
        for header in headers {
            self.attach_segment(core, context, header, tablespace)?;
        }
        let mut table = self.shared.table();
        if !table.streams.has_current() {
            table.streams.current = tablespace;
        }
        Ok(())
    }

    fn attach_segment(&self, core: &Core, context: &Context, header: PageId, tablespace: u16) -> Result<()> {
        let page = core.cache.read(core, context, header)?.to_vec();
        if page[4] != PageKind::UndoHeader as u8 {
            return Err(damaged(core, UndoPtr::new(header, 0), "an undo header"));
        }
        let object = page::object(&page);
        let segment_header = PageId { block: header.block - 1, ..header };
        let segment = Segment { object, header: segment_header, tablespace };
        let segment = Arc::new(UndoSegment::new(segment, self.next_number(), &page));
        let fields = UndoHeader::read(&page);
        let mut restored = Restored {
            next_xid: fields.xid_floor.0,
            next_end: fields.horizon + 1,
            horizon: fields.horizon,
            ..Restored::default()
        };
        let mut used = 0;
        for slot in 0..segment.slots() {
            let entry = undo_page::slot(&page, slot)
                .ok_or_else(|| damaged(core, UndoPtr::new(header, 0), "a transaction table"))?;
            if entry.tail.is_some() {
                used = slot + 1;
                restore_slot(core, context, &segment, slot, &entry, &mut restored)?;
            }
        }
        self.shared.restore(restored);
        segment.adopt_lost(core, context)?;
        self.shared.table().streams.segments.push(SegmentSlots { segment, used });
        Ok(())
    }

    fn next_number(&self) -> u16 {
        let table = self.shared.table();
        table.streams.segments.iter().map(|slots| slots.segment.number + 1).max().unwrap_or(0)
    }

    /// Rolls back every transaction that goes on: at open those of before the crash, at shutdown those that sessions left
    /// (no session is in a call then, and none comes back). Needs the catalog: index entries are found through it.
    ///
    /// # Errors
    /// What storage says.
    pub fn recover(&self, core: &Core, context: &Context) -> Result<()> {
        self.adopt_abandoned(core, context)?;
        while self.recover_step(core, context)? {}
        Ok(())
    }

    /// What sessions left: their transactions are found on disk, as after a crash.
    fn adopt_abandoned(&self, core: &Core, context: &Context) -> Result<()> {
        let abandoned: Vec<(Xid, Arc<UndoSegment>, u16)> = {
            let table = self.shared.table();
            let is_dead = |xid: Xid| table.dead.iter().any(|dead| dead.xid == xid);
            let segment = |slot: u32| {
                let number = (slot >> 16) as u16;
                let found = table.streams.segments.iter().find(|slots| slots.segment.number == number);
                found.expect("segments of active transactions are attached").segment.clone()
            };
            let active = table.active.iter().filter(|active| !is_dead(active.xid));
            active.map(|active| (active.xid, segment(active.slot), active.slot as u16)).collect()
        };
        for (xid, segment, slot) in abandoned {
            let entry = undo_page::slot(&core.cache.read(core, context, segment.header)?, slot);
            let entry = entry.filter(|entry| entry.state == State::Active && entry.xid == xid);
            let mut restored = Restored::default();
            if let Some(entry) = entry {
                restore_slot(core, context, &segment, slot, &entry, &mut restored)?;
            }
            match restored.active.pop() {
                Some(transaction) => self.shared.table().dead.push(transaction),
                // It had written nothing.
                None => self.shared.end(xid, None, None),
            }
        }
        Ok(())
    }
}

/// The header of a tablespace's first undo segment.
fn find_first(core: &Core, context: &Context, tablespace: u16) -> Result<Option<PageId>> {
    let Some(file) = core.files.of_tablespace(tablespace).into_iter().next() else { return Ok(None) };
    for block in 1..file.blocks().min(SEARCH_BLOCKS) {
        let id = PageId { file: file.number, block };
        let page = core.cache.read(core, context, id)?;
        if page[4] == PageKind::UndoHeader as u8 && page::object(&page) == undo_object(tablespace, 0) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn restore_slot(
    core: &Core,
    context: &Context,
    segment: &Arc<UndoSegment>,
    slot: u16,
    entry: &SlotEntry,
    restored: &mut Restored,
) -> Result<()> {
    let mut stream = Stream::new(segment.clone(), slot);
    let mut found = walk(core, context, entry, &mut stream)?;
    restored.next_xid = restored.next_xid.max(entry.xid.0 + 1);
    restored.next_end = restored.next_end.max(entry.end + 1);
    stream.previous_end = entry.end;
    let active = if entry.state == State::Active {
        // Its first record was written together with the slot.
        let last = found.pop().filter(|found| found.xid == entry.xid);
        Some(last.ok_or_else(|| {
            damaged(core, UndoPtr::new(entry.tail, RECORDS_AT), "the records of a transaction")
        })?)
    } else {
        if let Some(last) = found.last_mut() {
            last.end = entry.end;
        }
        None
    };
    for found in found {
        let tail = found.last.page();
        if found.whole && (found.work || found.first.page() != tail) {
            let ended = Ended {
                xid: found.xid,
                count: 0,
                segment: segment.clone(),
                slot,
                first: found.first,
                tail,
                work: found.work,
            };
            restored.history.insert(found.end, ended);
        }
    }
    match active {
        Some(found) => restored.active.push(Transaction::found(found.xid, stream, found.first, found.last)),
        None => restored.idle.push(stream),
    }
    Ok(())
}

/// Walks a slot's chain: which transactions have records in it, in order. Sets the stream to its end.
fn walk(core: &Core, context: &Context, entry: &SlotEntry, stream: &mut Stream) -> Result<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    let mut at = entry.head;
    loop {
        let page = core.cache.read(core, context, at)?;
        if page[4] != PageKind::Undo as u8 {
            return Err(damaged(core, UndoPtr::new(at, 0), "an undo page"));
        }
        for (offset, head) in undo_page::records(&page, RECORDS_AT) {
            let record = UndoPtr::new(at, offset);
            if let (Some(end), Some(before)) = (head.previous_end, found.last_mut()) {
                before.end = end;
            }
            if found.last().is_none_or(|last| last.xid != head.xid) {
                let whole = head.previous_end.is_some();
                found.push(Found { xid: head.xid, first: record, last: record, whole, work: false, end: 0 });
            }
            let last = found.last_mut().expect("pushed above");
            last.last = record;
            last.work |= !head.undone && super::record::needs_purge(&page[offset..]);
        }
        if at == entry.tail {
            stream.tail = at;
            stream.used = undo_page::used(&page);
            stream.sequence = undo_page::sequence(&page);
            return Ok(found);
        }
        at = match undo_page::next(&page) {
            PageId::NONE => return Err(damaged(core, UndoPtr::new(at, 0), "the next undo page")),
            next => next,
        };
    }
}
