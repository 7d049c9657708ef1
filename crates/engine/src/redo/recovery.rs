//! Crash recovery, first half: rolling the pages forward. (The second half, taking back what did not commit, is `transaction`'s.)
//!
//! The log is read in batches of some megabytes. The records of a batch are sorted by page, so that each page is latched
//! once and the reads of a batch go to the device together, in the order of their addresses. A page whose redo in
//! the batch has an image or a format needs no read, and nothing before the last of them.
//!
//! A batch is applied in this order:
//!   1. the durable LSN moves to its end: it was read from disk, so database writers may write its pages;
//!   2. its pages are changed, each marked dirty (`RedoLog::apply` says since when);
//!   3. the restart position moves to its end. Before 2, a checkpoint could claim the batch while its pages are still old.
//!
//! A second crash at any moment begins again at the last checkpoint: a page is changed only by records beyond its LSN, and a
//! page that an image takes back in time is brought forward again by the rest of the log.
//!
//! At the end the log goes on in a new group: behind its end may lie parts of a chunk that the crash tore, and a new
//! chunk of the same turn written over the first of them could lend them sense.

use super::RedoLog;
use super::group::Groups;
use super::record::{self, Malformed, Part};
use super::room::Urge;
use super::scan::{Batch, LogReader};
use crate::files::control::State;
use crate::instance::Core;
use crate::page::{self, Lsn, PageId};
use crate::{Context, EngineError, Result};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use units::{Bytes, Nanos};

/// Pages that are read ahead together: enough to keep a device busy, few beside the frames of a cache.
const PAGES_TOGETHER: usize = 256;

/// Where recovery finds pages: the buffer cache, or a test's stand-in.
pub trait Pages {
    /// Whether the page's file is still there: redo of dropped files is passed over.
    fn exists(&self, id: PageId) -> bool;

    /// These will be changed, after having been read.
    ///
    /// # Errors
    /// What a read met.
    fn prefetch(&self, ids: &[PageId]) -> Result<()>;

    /// Latches a page, reading it unless `whole`, hands it to `change`, and when that says that it changed it, marks it dirty since
    /// `since`. With `whole` the page's bytes are of no meaning before, and always changed.
    ///
    /// # Errors
    /// What a read met, or what `change` returned.
    fn change(
        &self,
        id: PageId,
        whole: bool,
        since: Lsn,
        change: &mut dyn FnMut(&mut [u8]) -> Result<bool>,
    ) -> Result<()>;
}

/// What recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Where it began: the checkpoint.
    pub from: Lsn,
    /// The end of the log.
    pub to: Lsn,
    /// Records read.
    pub records: u64,
    /// Pages changed, counted once for each batch.
    pub pages_changed: u64,
    /// Of those, how many had to be read from disk.
    pub pages_read: u64,
    /// How long it took.
    pub elapsed: Nanos,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, records, pages_changed, pages_read, elapsed } = self;
        write!(
            f,
            "rolled forward from {} to {} in {elapsed}: {} of redo, {records} records, {pages_changed} pages changed, {pages_read} of them read",
            from.0,
            to.0,
            Bytes(to.0 - from.0),
        )
    }
}

/// What a record says of a page, with the end of the record.
type Entry<'a> = (PageId, Lsn, Part<'a>);

impl RedoLog {
    /// Rolls forward from the checkpoint to the end of the log, through the cache, and makes the end the tail. To be called
    /// once, before anything is appended, with the database writers at work. After a clean shutdown there is nothing to
    /// apply, and the end is the checkpoint.
    ///
    /// # Errors
    /// [`EngineError::Damaged`] when redo is missing or makes no sense; what a page read or write met.
    pub fn recover(&self, core: &Core, context: &Context) -> Result<Recovered> {
        let pages = CachePages { core, context };
        let clean = core.control.content().state == State::Clean;
        let mut urge = |lsn| core.cache.urge_checkpoint(core, context, lsn);
        let recovered = self.recover_into(context, &pages, clean, &mut urge)?;
        if let Some(error) = core.cache.damaged().into_iter().next() {
            return Err(error);
        }
        if recovered.records > 0 || !clean {
            core.alert.line(&recovered.to_string());
        }
        Ok(recovered)
    }

    /// As [`RedoLog::recover`], into other pages than the cache's.
    ///
    /// # Errors
    /// As there.
    pub(super) fn recover_into(
        &self,
        context: &Context,
        pages: &dyn Pages,
        clean: bool,
        urge: Urge<'_>,
    ) -> Result<Recovered> {
        let began = self.clock.now();
        let (groups, group, from) = {
            let state = self.state.lock();
            (state.groups.all.clone(), state.groups.current, state.base)
        };
        let mut reader = LogReader::new(context, self.database, &groups, group, from)?;
        reader.find_start(clean)?;
        let mut recovered = Recovered { from, to: from, ..Recovered::default() };
        while let Some(batch) = reader.next()? {
            self.durable.store(batch.end.0, Ordering::Release);
            self.apply(&batch, reader.bytes(), pages, &mut recovered)?;
            self.restart.store(batch.end.0, Ordering::Release);
            recovered.to = batch.end;
            // Each batch lies in one group, so the first chunk of each is among these.
            self.state.lock().chunks.push_back(batch.start);
        }
        let end = reader.end();
        {
            let mut state = self.state.lock();
            let position = end.lsn.0 - groups[end.group].first.0;
            let checkpoint = state.groups.checkpoint;
            let mut all = groups;
            all[end.group].end = Lsn(u64::MAX);
            state.groups = Groups::new(all, end.group, position, checkpoint);
            (state.base, state.writing_end) = (end.lsn, end.lsn);
        }
        self.durable.store(end.lsn.0, Ordering::Release);
        self.restart.store(end.lsn.0, Ordering::Release);
        if !clean || recovered.records > 0 {
            self.switch(context, urge)?;
        }
        recovered.elapsed = self.clock.now() - began;
        Ok(recovered)
    }

    fn apply(&self, batch: &Batch, bytes: &[u8], pages: &dyn Pages, recovered: &mut Recovered) -> Result<()> {
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for (first, range) in &batch.chunks {
            recovered.records += decode_chunk(*first, &bytes[range.clone()], pages, &mut entries)
                .map_err(|error| malformed(*first, &error))?;
        }
        // Stable: the redo of a page stays in the order of the log.
        entries.sort_by_key(|(id, ..)| *id);
        let runs: Vec<&[Entry<'_>]> = entries.chunk_by(|a, b| a.0 == b.0).map(from_last_whole).collect();
        for together in runs.chunks(PAGES_TOGETHER) {
            let reads: Vec<PageId> =
                together.iter().filter(|run| !run[0].2.is_whole()).map(|run| run[0].0).collect();
            if !reads.is_empty() {
                pages.prefetch(&reads)?;
            }
            recovered.pages_read += reads.len() as u64;
            for run in together {
                // A page that its image or format makes anew is dirty since this batch, which has it. One that was written
                // after an earlier batch and read again is not: its image lies further back, and should the next write tear it,
                // recovery must find that image. So the checkpoint stays where this recovery began until the page is written.
                let since = if run[0].2.is_whole() { batch.start } else { recovered.from };
                recovered.pages_changed += u64::from(apply_run(run, since, pages)?);
            }
        }
        Ok(())
    }
}

/// Decodes the records of a chunk; `first` is the LSN of the first one. Returns how many.
fn decode_chunk<'a>(
    first: Lsn,
    mut bytes: &'a [u8],
    pages: &dyn Pages,
    entries: &mut Vec<Entry<'a>>,
) -> std::result::Result<u64, Malformed> {
    let (mut end, mut count) = (first, 0);
    while !bytes.is_empty() {
        let (record, length, rest) = record::decode(bytes)?;
        end.0 += length as u64;
        for part in record.parts() {
            let part = part?;
            if pages.exists(part.id) {
                entries.push((part.id, end, part));
            }
        }
        (bytes, count) = (rest, count + 1);
    }
    Ok(count)
}

/// The redo of one page from the last image or format on: what came before it has no effect any more.
fn from_last_whole<'e, 'b>(run: &'e [Entry<'b>]) -> &'e [Entry<'b>] {
    &run[run.iter().rposition(|(.., part)| part.is_whole()).unwrap_or(0)..]
}

/// Brings one page forward; whether it changed.
fn apply_run(run: &[Entry<'_>], since: Lsn, pages: &dyn Pages) -> Result<bool> {
    let (id, _, first) = &run[0];
    let whole = first.is_whole();
    let mut changed = false;
    pages.change(*id, whole, since, &mut |bytes| {
        // Of a page that was not read nothing is known; its LSN is whatever the frame held before.
        let known = if whole { Lsn(0) } else { page::lsn(bytes) };
        for (_, end, part) in run.iter().filter(|(_, end, _)| *end > known) {
            part.apply(bytes).map_err(|error| malformed(*end, &error))?;
            page::set_lsn(bytes, *end);
            changed = true;
        }
        Ok(changed)
    })?;
    Ok(changed)
}

fn malformed(at: Lsn, error: &Malformed) -> EngineError {
    EngineError::Damaged {
        path: PathBuf::from("redo"),
        what: format!(
            "the record at position {} has a right checksum and makes no sense ({}); restore the database from a backup",
            at.0, error.0
        ),
    }
}

/// The buffer cache.
struct CachePages<'a> {
    core: &'a Core,
    context: &'a Context,
}

impl Pages for CachePages<'_> {
    fn exists(&self, id: PageId) -> bool {
        self.core.files.get(id.file).is_some_and(|file| file.disk().is_ok())
    }

    fn prefetch(&self, ids: &[PageId]) -> Result<()> {
        match self.core.cache.prefetch(self.core, self.context, ids) {
            // Torn, and further on in the log comes its image, or none: the end of recovery tells.
            Err(EngineError::CorruptBlock { .. }) => Ok(()),
            result => result,
        }
    }

    fn change(
        &self,
        id: PageId,
        whole: bool,
        since: Lsn,
        change: &mut dyn FnMut(&mut [u8]) -> Result<bool>,
    ) -> Result<()> {
        let cache = &self.core.cache;
        let mut page = match whole {
            true => cache.format_latch(self.core, self.context, id)?,
            false => cache.recovery_latch(self.core, self.context, id)?,
        };
        // A damaged page has nothing to edit. An image of it may follow in a later batch: it was written, whole, since the
        // checkpoint, and torn when it was written once more.
        if !whole && cache.is_damaged(id) {
            return Ok(());
        }
        if change(page.bytes_mut())? {
            if whole {
                cache.mend(id);
                page.note_image();
            }
            page.mark_dirty(since);
        }
        Ok(())
    }
}
