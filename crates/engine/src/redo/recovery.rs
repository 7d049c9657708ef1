//! Crash recovery, first half: rolling the pages forward. (The second half, taking back what did not commit, is `transaction`'s.)
//!
//! The log is read in large batches. The records of a batch are sorted by page, so that each page is latched once and the
//! reads of a batch go to the device together, in the order of their addresses. A page whose redo in the batch has an
//! image or a format needs no read, and nothing before the last of them. Trade-off: a batch takes as much memory again as the
//! cache, up to [`BATCH_BYTES`]. In small batches, pages that are changed all the time would be read and written
//! once for each batch when they do not fit the cache: 1 GiB of small edits in batches of 16 MiB took minutes.
//!
//! A batch is applied in this order:
//!   1. the durable LSN moves to its end: it was read from disk, so database writers may write its pages;
//!   2. its pages are changed, each marked dirty (`RedoLog::apply` says since when).
//!
//! The tail moves only when the end of the log is reached. Moved before 2, a checkpoint could claim a batch while its pages
//! are still old.
//!
//! A second crash at any moment begins again at the last checkpoint: a page is changed only by records beyond its LSN, and a
//! page that an image takes back in time is brought forward again by the rest of the log.
//!
//! At the end the log goes on in a new group: behind its end may lie parts of a chunk that the crash tore, and a new
//! chunk of the same turn written over the first of them could lend them sense.

use super::RedoLog;
use super::group::{Group, Groups};
use super::record::{self, Malformed};
use super::room::Urge;
use super::scan::{Batch, LogReader};
use crate::files::control::State;
use crate::instance::Core;
use crate::page::{self, Lsn, PageId};
use crate::{Context, EngineError, Result};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use units::{Bytes, Nanos};

/// Pages that are read ahead together: enough to keep a device busy, few beside the frames of a cache.
const PAGES_TOGETHER: usize = 256;

/// Largest batch. Small in tests, so that a short log has several.
const BATCH_BYTES: usize = if cfg!(test) { 16 << 10 } else { 256 << 20 };

/// Where recovery finds pages: the buffer cache, or a test's stand-in.
pub trait Pages {
    /// How much redo to take together, bytes.
    fn batch_bytes(&self) -> usize;

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
    /// Pages whose redo was edits alone: read from disk unless they were cached.
    pub pages_looked_up: u64,
    /// How long it took.
    pub elapsed: Nanos,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, records, pages_changed, pages_looked_up, elapsed } = self;
        write!(
            f,
            "rolled forward from {} to {} in {elapsed}: {} of redo, {records} records, {pages_changed} pages changed, {pages_looked_up} pages looked up",
            from.0,
            to.0,
            Bytes(to.0 - from.0),
        )
    }
}

/// What a record says of a page. Small, because a batch has millions of them.
#[derive(Clone, Copy)]
struct Entry {
    id: PageId,
    /// End of the record.
    end: Lsn,
    /// Where the part lies in the batch's bytes.
    at: u32,
    whole: bool,
}

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
        let mut reader = LogReader::new(context, self.database, &groups, group, from, pages.batch_bytes())?;
        reader.find_start(clean)?;
        let mut recovered = Recovered { from, to: from, ..Recovered::default() };
        while let Some(batch) = reader.next()? {
            self.durable.store(batch.end.0, Ordering::Release);
            self.apply(&batch, reader.bytes(), pages, &mut recovered)?;
            recovered.to = batch.end;
            note_chunks(&mut self.state.lock().chunks, &batch, &groups);
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
        let mut entries: Vec<Entry> = Vec::new();
        for (first, range) in &batch.chunks {
            let records = decode_chunk(*first, bytes, range.clone(), pages, &mut entries);
            recovered.records += records.map_err(|error| malformed(*first, &error))?;
        }
        // Along the log within a page.
        entries.sort_unstable_by_key(|entry| (entry.id, entry.end, entry.at));
        let runs: Vec<&[Entry]> = entries.chunk_by(|a, b| a.id == b.id).map(from_last_whole).collect();
        for together in runs.chunks(PAGES_TOGETHER) {
            let reads: Vec<PageId> =
                together.iter().filter(|run| !run[0].whole).map(|run| run[0].id).collect();
            if !reads.is_empty() {
                pages.prefetch(&reads)?;
            }
            recovered.pages_looked_up += reads.len() as u64;
            for run in together {
                // A page that its image or format makes anew is dirty since this batch, which has it. One that was written
                // after an earlier batch and read again is not: its image lies further back, and should the next write tear it,
                // recovery must find that image. So the checkpoint stays where this recovery began until the page is written.
                let since = if run[0].whole { batch.start } else { recovered.from };
                recovered.pages_changed += u64::from(apply_run(run, bytes, since, pages)?);
            }
        }
        Ok(())
    }
}

/// Remembers beginnings of chunks, as [`super::buffer::State::note_chunk`] does: the batch's, and those of groups.
fn note_chunks(chunks: &mut VecDeque<Lsn>, batch: &Batch, groups: &[Group]) {
    let inside = |lsn: Lsn| batch.start < lsn && lsn < batch.end;
    let mut starts: Vec<Lsn> = groups.iter().map(|g| g.first).filter(|first| inside(*first)).collect();
    starts.push(batch.start);
    starts.sort_unstable();
    chunks.extend(starts);
}

/// Decodes the records of a chunk, which lie in `range` of `bytes`; `first` is the LSN of the first one. Returns how many.
fn decode_chunk(
    first: Lsn,
    bytes: &[u8],
    range: Range<usize>,
    pages: &dyn Pages,
    entries: &mut Vec<Entry>,
) -> std::result::Result<u64, Malformed> {
    let (mut at, mut count) = (range.start, 0);
    while at < range.end {
        let (record, length) = record::decode(&bytes[at..range.end])?;
        let end = Lsn(first.0 + (at + length - range.start) as u64);
        for part in record.parts() {
            let (offset, part) = part?;
            if pages.exists(part.id) {
                entries.push(Entry { id: part.id, end, at: (at + offset) as u32, whole: part.is_whole() });
            }
        }
        (at, count) = (at + length, count + 1);
    }
    Ok(count)
}

/// The redo of one page from the last image or format on: what came before it has no effect any more.
fn from_last_whole(run: &[Entry]) -> &[Entry] {
    &run[run.iter().rposition(|entry| entry.whole).unwrap_or(0)..]
}

/// Brings one page forward; whether it changed.
fn apply_run(run: &[Entry], bytes: &[u8], since: Lsn, pages: &dyn Pages) -> Result<bool> {
    let Entry { id, whole, .. } = run[0];
    let mut changed = false;
    pages.change(id, whole, since, &mut |page| {
        // Of a page that was not read nothing is known; its LSN is whatever the frame held before.
        let known = if whole { Lsn(0) } else { page::lsn(page) };
        for entry in run.iter().filter(|entry| entry.end > known) {
            let applied = record::part(&bytes[entry.at as usize..]).and_then(|part| part.apply(page));
            applied.map_err(|error| malformed(entry.end, &error))?;
            page::set_lsn(page, entry.end);
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
    fn batch_bytes(&self) -> usize {
        let cache = &self.core.cache;
        (cache.frame_count() * cache.block_bytes()).min(BATCH_BYTES)
    }

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
