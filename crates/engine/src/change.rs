//! The one way to change pages: a change latches pages, edits them, and becomes one redo record, all or nothing.
//!
//! 1. [`Change::begin`] reserves redo space; this is the only step that may wait for the log writer, and it holds no latch yet.
//! 2. [`Change::page`] and [`Change::new_page`] latch pages exclusively; this may read, wait, and fail.
//! 3. The edits ([`Change::write`], [`Change::copy_within`], [`Change::fill`]) cannot fail. They are applied to the latched
//!    bytes at once and collected as redo: a redo record is a list of byte edits of pages, so recovery knows no row and no key.
//! 4. [`Change::finish`] marks the pages dirty, appends the record to the log buffer, notes its end as the pages' LSN, and
//!    releases the latches.
//!
//! Dropping a change before its first edit releases the latches and the reservation. Dropping it after an edit is a bug
//! and panics: all that can fail belongs before the first edit.

use crate::cache::PageWrite;
use crate::instance::Core;
use crate::page::{self, HEADER_BYTES, Lsn, PageId, PageKind};
use crate::redo::Reservation;
use crate::redo::record::{self, Form};
use crate::statistics::Statistic;
use crate::{Context, Result};

/// Pages being changed together.
pub struct Change<'a> {
    core: &'a Core,
    context: &'a Context,
    reservation: Option<Reservation>,
    pages: Vec<Latched>,
    /// All edits in the order they were made.
    edits: Vec<u8>,
    /// Which stretch of `edits` belongs to which page.
    runs: Vec<Run>,
    pages_left: usize,
    bytes_left: usize,
    edited: bool,
}

/// A page latched by a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub(crate) u16);

struct Latched {
    /// None after [`Change::release`].
    page: Option<PageWrite>,
    id: PageId,
    form: Form,
    changed: bool,
}

/// Edits of one page that follow each other in [`Change::edits`].
struct Run {
    page: u16,
    start: usize,
    end: usize,
}

impl<'a> Change<'a> {
    /// Begins a change of at most `pages_max` changed pages (pages only looked at do not count) and `edit_bytes_max` bytes of
    /// edits (data plus 8 for each edit).
    ///
    /// # Errors
    /// [`crate::EngineError::Crashed`] when redo can no longer be written.
    pub fn begin(
        core: &'a Core,
        context: &'a Context,
        pages_max: usize,
        edit_bytes_max: usize,
    ) -> Result<Self> {
        // Any page may turn out to need its full image.
        let page_bytes = record::PART_HEADER + core.cache.block_bytes() + record::IMAGE_OVERHEAD;
        let most = record::RECORD_HEADER + pages_max * page_bytes + edit_bytes_max;
        let reservation = core.redo.reserve(core, context, most)?;
        Ok(Self {
            core,
            context,
            reservation: Some(reservation),
            pages: Vec::with_capacity(pages_max),
            edits: Vec::new(),
            runs: Vec::new(),
            pages_left: pages_max,
            bytes_left: edit_bytes_max,
            edited: false,
        })
    }

    /// Latches a page exclusively, reading it when it is not cached. The same page twice gives the same handle.
    ///
    /// Latches are taken in this order, or with [`Change::try_page`]: index pages top down and left to right, then heap
    /// pages by address, then undo pages, then space pages (segment header, free space, space map).
    ///
    /// # Errors
    /// What the read met.
    pub fn page(&mut self, id: PageId) -> Result<Handle> {
        if let Some(handle) = self.find(id) {
            return Ok(handle);
        }
        let page = self.core.cache.write_latch(self.core, self.context, id)?;
        Ok(self.keep(id, page, Form::Edits))
    }

    /// As [`Change::page`], but `None` when somebody else holds the latch.
    ///
    /// # Errors
    /// What the read met.
    pub fn try_page(&mut self, id: PageId) -> Result<Option<Handle>> {
        if let Some(handle) = self.find(id) {
            return Ok(Some(handle));
        }
        let page = self.core.cache.try_write_latch(self.core, self.context, id)?;
        Ok(page.map(|page| self.keep(id, page, Form::Edits)))
    }

    /// A page whose old content does not matter, formatted: not read, and recovery does not read it either. Formatting is
    /// no edit yet: a change that is dropped afterwards leaves the page uncached, or formatted in the cache alone.
    ///
    /// # Errors
    /// No free buffer.
    ///
    /// # Panics
    /// When the change holds the page already.
    pub fn new_page(&mut self, id: PageId, kind: PageKind, object: u32) -> Result<Handle> {
        assert!(self.find(id).is_none(), "{id} is latched by this change already");
        let mut page = self.core.cache.format_latch(self.core, self.context, id)?;
        page::format(page.bytes_mut(), id, kind, object);
        let handle = self.keep(id, page, Form::Format);
        self.count_page(handle);
        Ok(handle)
    }

    /// The page as it is now, edits so far included.
    ///
    /// # Panics
    /// After [`Change::release`].
    pub fn bytes(&self, page: Handle) -> &[u8] {
        self.latched(page).bytes()
    }

    /// Its address.
    pub fn id(&self, page: Handle) -> PageId {
        self.pages[usize::from(page.0)].id
    }

    /// Gives a page back before it was edited; lets others at it while this change goes on.
    ///
    /// # Panics
    /// When it was edited.
    pub fn release(&mut self, page: Handle) {
        let latched = &mut self.pages[usize::from(page.0)];
        assert!(!latched.changed, "{} was changed and is released before the change is finished", latched.id);
        latched.page = None;
    }

    /// Writes `data` at byte `at` (from [`crate::page::HEADER_BYTES`] on; also bytes 24 to 32, which are the kind's).
    ///
    /// # Panics
    /// Outside of the page, or beyond what [`Change::begin`] was told.
    pub fn write(&mut self, page: Handle, at: usize, data: &[u8]) {
        let bytes = self.begin_edit(page, at, data.len(), data.len());
        bytes[at..at + data.len()].copy_from_slice(data);
        let start = self.edits.len();
        record::push_write(&mut self.edits, at, data);
        self.end_edit(page, start);
    }

    /// `memmove` inside the page.
    ///
    /// # Panics
    /// As [`Change::write`].
    pub fn copy_within(&mut self, page: Handle, from: std::ops::Range<usize>, to: usize) {
        let length = from.len();
        let bytes = self.begin_edit(page, from.start.min(to), length, 0);
        bytes.copy_within(from.clone(), to);
        let start = self.edits.len();
        record::push_copy(&mut self.edits, from.start, length, to);
        self.end_edit(page, start);
    }

    /// Fills `length` bytes.
    ///
    /// # Panics
    /// As [`Change::write`].
    pub fn fill(&mut self, page: Handle, at: usize, length: usize, byte: u8) {
        let bytes = self.begin_edit(page, at, length, 0);
        bytes[at..at + length].fill(byte);
        let start = self.edits.len();
        record::push_fill(&mut self.edits, at, length, byte);
        self.end_edit(page, start);
    }

    /// Everything happens now. The LSN is the end of the record: durable once the log is flushed up to it. Of a change
    /// without edits it is the end of the log so far.
    ///
    /// In this order:
    ///   1. the pages are marked dirty since the chunk that the next record goes to, which begins before the record;
    ///   2. the record is appended. Before 1, its chunk could be written, and a checkpoint could read the position behind it,
    ///      find the pages clean, and claim a change that is in no data file;
    ///   3. the pages get the record's end as their LSN;
    ///   4. the latches go. Before 3, a database writer could write a page without flushing the log up to the change.
    pub fn finish(mut self) -> Lsn {
        if !self.pages.iter().any(|latched| latched.changed) {
            return self.core.redo.tail_lsn();
        }
        let since = self.core.redo.restart_lsn();
        let mut record = Vec::with_capacity(self.record_bytes());
        let images = self.encode(&mut record);
        for latched in self.pages.iter_mut().filter(|latched| latched.changed) {
            let page = latched.page.as_mut().expect("a changed page is not released");
            if latched.form != Form::Edits {
                page.note_image();
            }
            page.mark_dirty(since);
        }
        let reservation = self.reservation.take().expect("a change is finished once");
        let end = self.core.redo.append(reservation, &record);
        for page in self.pages.iter_mut().filter(|l| l.changed).filter_map(|l| l.page.as_mut()) {
            page.set_lsn(end);
        }
        self.context.count(Statistic::RedoEntries, 1);
        self.context.count(Statistic::RedoSize, record.len() as u64);
        self.context.count(Statistic::RedoPageImages, images);
        self.context.count(Statistic::DbBlockChanges, self.pages.iter().filter(|l| l.changed).count() as u64);
        self.edited = false;
        #[cfg(test)]
        crate::testing::changed(self.core, self.context, end);
        end
    }

    /// Bytes of the record when no page needs its image.
    fn record_bytes(&self) -> usize {
        record::RECORD_HEADER + self.pages.len() * record::PART_HEADER + self.edits.len()
    }

    /// Writes the record; how many full pages it has.
    fn encode(&mut self, out: &mut Vec<u8>) -> u64 {
        let mut images = 0;
        record::begin_record(out);
        for (index, latched) in self.pages.iter_mut().enumerate().filter(|(_, latched)| latched.changed) {
            let page = latched.page.as_ref().expect("a changed page is not released");
            let edits = || self.runs.iter().filter(|run| usize::from(run.page) == index);
            let edit_bytes: usize = edits().map(|run| run.end - run.start).sum();
            // An image as well where it is shorter than the edits.
            let image = latched.form == Form::Edits && page.image_due() || edit_bytes > page.bytes().len();
            if image {
                latched.form = Form::Image;
                record::push_image(out, latched.id, page.bytes());
                images += 1;
                continue;
            }
            let pieces = edits().map(|run| &self.edits[run.start..run.end]);
            let (kind, object) = (page.bytes()[4], page::object(page.bytes()));
            record::push_part(out, latched.id, latched.form, kind, object, pieces);
        }
        record::end_record(out);
        images
    }

    fn find(&self, id: PageId) -> Option<Handle> {
        let index = self.pages.iter().position(|latched| latched.id == id && latched.page.is_some())?;
        Some(Handle(index as u16))
    }

    fn keep(&mut self, id: PageId, page: PageWrite, form: Form) -> Handle {
        let index = u16::try_from(self.pages.len()).expect("a change of fewer than 65,536 pages");
        self.pages.push(Latched { page: Some(page), id, form, changed: false });
        Handle(index)
    }

    fn latched(&self, page: Handle) -> &PageWrite {
        let latched = &self.pages[usize::from(page.0)];
        latched.page.as_ref().unwrap_or_else(|| panic!("{} was released", latched.id))
    }

    /// A page becomes a changed one.
    fn count_page(&mut self, page: Handle) {
        let latched = &mut self.pages[usize::from(page.0)];
        if !latched.changed {
            assert!(
                self.pages_left > 0,
                "{}: more pages are changed than the change was begun for",
                latched.id
            );
            self.pages_left -= 1;
            latched.changed = true;
        }
    }

    /// Holds an edit against what was reserved and against the page's bounds (its upper end the slice sees to).
    fn begin_edit(&mut self, page: Handle, at: usize, length: usize, data: usize) -> &mut [u8] {
        let cost = data + record::EDIT_OVERHEAD;
        assert!(cost <= self.bytes_left, "more edits than the change was begun for");
        assert!(at >= record::EDITABLE_FROM, "byte {at} of a page is not editable");
        debug_assert!(at + length <= usize::from(u16::MAX));
        self.bytes_left -= cost;
        self.edited = true;
        self.count_page(page);
        let latched = &mut self.pages[usize::from(page.0)];
        latched.page.as_mut().unwrap_or_else(|| panic!("{} was released", latched.id)).bytes_mut()
    }

    fn end_edit(&mut self, page: Handle, start: usize) {
        let end = self.edits.len();
        match self.runs.last_mut() {
            Some(run) if run.page == page.0 => run.end = end,
            _ => self.runs.push(Run { page: page.0, start, end }),
        }
    }
}

const _: () = assert!(record::EDITABLE_FROM < HEADER_BYTES);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.core.redo.unreserve(reservation);
        }
        if self.edited && !std::thread::panicking() {
            panic!("a change was dropped after its first edit");
        }
    }
}
