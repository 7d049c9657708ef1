//! How a page gets latched: a hit, a wait for its latch, or a miss that reads it.
//!
//! ```text
//! hit    find → try latch → still that page? → touch
//! wait   read by other session (its content is on its way), write complete waits (a database writer copies it),
//!        buffer busy waits (somebody changes it), then: still that page? else from the start
//! miss   1. a victim, latched exclusively     out of the map, clean, nobody's
//!        2. publish it under the new page     who wants the page now waits for the latch; two at once: one goes on, one starts again
//!        3. read, verify                      without any lock but the latch
//!        4. release or downgrade the latch    an error frees the frame first, so a waiter finds nothing and reads itself
//! ```
//! Publishing before reading makes one read of what many want at once. Reading before publishing would read it many times,
//! and the last to finish could publish a copy that a database writer has overtaken.

use super::BufferCache;
use super::frames::{ALTERED, COPYING, READING};
use super::latch::{Content, PageRead, PageWrite, ReadGuard, WriteGuard};
use super::site::{Site, check, inline};
use crate::files::DataFile;
use crate::files::iostat::Transfer;
use crate::page::{self, PageId};
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use std::ops::Deref;
use std::sync::Arc;
use units::Nanos;
use waits::Event;

/// Class of a block in `p3`: data. Others are not told apart before they are read.
const CLASS_DATA: u64 = 1;

impl BufferCache {
    /// Latches a page for reading; reads it from disk when it is not cached (`db file sequential read`; `read by other
    /// session` when someone else is reading it; `buffer busy waits` when someone else is changing it; `free buffer
    /// waits` when no frame can be reused).
    ///
    /// # Errors
    /// What the read met; [`EngineError::CorruptBlock`].
    #[inline]
    pub fn read(&self, core: &dyn Site, context: &Context, id: PageId) -> Result<PageRead> {
        context.count(Statistic::SessionLogicalReads, 1);
        context.count(Statistic::ConsistentGets, 1);
        match self.read_hit(id) {
            Some(page) => Ok(page),
            None => self.read_slowly(core, context, id),
        }
    }

    #[inline]
    fn read_hit(&self, id: PageId) -> Option<PageRead> {
        let index = self.frames.find(id)?;
        self.if_still(id, self.latches[index as usize].try_read_arc()?).map(PageRead::new)
    }

    /// The guard, if its frame has the page now that it is latched. It may have got another one since it was looked up; from
    /// here on it cannot.
    #[inline]
    fn if_still<G: Deref<Target = Content>>(&self, id: PageId, guard: G) -> Option<G> {
        let frame = self.frames.at(guard.index);
        if frame.id() != id {
            return None;
        }
        self.clock.touch(frame);
        Some(guard)
    }

    /// The frame of a page, for those who will compare the page's address under the latch.
    fn lookup(&self, id: PageId) -> Option<u32> {
        self.frames.find(id).or_else(|| self.frames.find_surely(id))
    }

    #[cold]
    fn read_slowly(&self, site: &dyn Site, context: &Context, id: PageId) -> Result<PageRead> {
        loop {
            if let Some(index) = self.lookup(id) {
                if let Some(guard) = self.if_still(id, self.wait_shared(site, context, index, id)) {
                    return Ok(PageRead::new(guard));
                }
            } else if let Some(page) = self.load(site, context, id, false)? {
                return Ok(page.downgrade());
            }
        }
    }

    /// Latches a page exclusively, to change it; reads it when it is not cached. Waits as [`Self::read`] does.
    ///
    /// # Errors
    /// As [`Self::read`].
    #[inline]
    pub fn write_latch(&self, core: &dyn Site, context: &Context, id: PageId) -> Result<PageWrite> {
        count_block_get(context);
        match self.write_hit(id) {
            Some(page) => Ok(page),
            None => self.exclusive(core, context, id, false),
        }
    }

    #[inline]
    fn write_hit(&self, id: PageId) -> Option<PageWrite> {
        let index = self.frames.find(id)?;
        self.if_still(id, self.latches[index as usize].try_write_arc()?).map(PageWrite::new)
    }

    /// As [`Self::write_latch`], for recovery: a page that is not what was written (torn, say) comes as zeroes, and
    /// [`Self::is_damaged`] says so until [`Self::mend`].
    ///
    /// # Errors
    /// What the read met, but not [`EngineError::CorruptBlock`].
    pub fn recovery_latch(&self, core: &dyn Site, context: &Context, id: PageId) -> Result<PageWrite> {
        count_block_get(context);
        self.exclusive(core, context, id, true)
    }

    #[cold]
    fn exclusive(&self, site: &dyn Site, context: &Context, id: PageId, mendable: bool) -> Result<PageWrite> {
        loop {
            if let Some(index) = self.lookup(id) {
                if let Some(guard) = self.if_still(id, self.wait_exclusive(site, context, index, id)) {
                    return Ok(PageWrite::new(guard));
                }
            } else if let Some(page) = self.load(site, context, id, mendable)? {
                return Ok(page);
            }
        }
    }

    /// As [`Self::write_latch`], but none when somebody else holds the latch.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn try_write_latch(
        &self,
        core: &dyn Site,
        context: &Context,
        id: PageId,
    ) -> Result<Option<PageWrite>> {
        count_block_get(context);
        loop {
            if let Some(index) = self.lookup(id) {
                let Some(guard) = self.latches[index as usize].try_write_arc() else { return Ok(None) };
                if let Some(guard) = self.if_still(id, guard) {
                    return Ok(Some(PageWrite::new(guard)));
                }
            } else if let Some(page) = self.load(core, context, id, false)? {
                return Ok(Some(page));
            }
        }
    }

    /// Latches exclusively a page whose old content does not matter; it is not read. The bytes may be anything: format
    /// them ([`page::format`]), then [`PageWrite::note_image`]. Dropped without [`PageWrite::mark_dirty`], the page is as if
    /// it had not been asked for, unless it was cached.
    ///
    /// # Errors
    /// No free buffer.
    pub fn format_latch(&self, core: &dyn Site, context: &Context, id: PageId) -> Result<PageWrite> {
        count_block_get(context);
        loop {
            if let Some(index) = self.lookup(id) {
                if let Some(guard) = self.if_still(id, self.wait_exclusive(core, context, index, id)) {
                    self.frames.at(index).set(ALTERED);
                    return Ok(PageWrite::new(guard));
                }
                continue;
            }
            let victim = self.take_victim(core, context, id)?;
            if let Some(page) = self.publish(victim, id) {
                let frame = self.frames.at(page.index());
                frame.clear(READING);
                self.clock.begin(page.index(), frame, true);
                return Ok(page);
            }
        }
    }

    /// Puts a victim into the map as `id`. None when the page is there by now; the victim is free again then.
    pub(super) fn publish(&self, victim: PageWrite, id: PageId) -> Option<PageWrite> {
        self.frames.publish(victim.index(), id).ok().map(|()| victim)
    }

    /// The miss. None when somebody else has published the page meanwhile.
    fn load(
        &self,
        site: &dyn Site,
        context: &Context,
        id: PageId,
        mendable: bool,
    ) -> Result<Option<PageWrite>> {
        let victim = self.take_victim(site, context, id)?;
        let Some(mut page) = self.publish(victim, id) else { return Ok(None) };
        self.frames.references.read(id);
        match self.read_block(site, context, id, page.bytes_mut()) {
            Ok(()) => {}
            Err(error @ EngineError::CorruptBlock { .. }) if mendable => {
                page.bytes_mut().fill(0);
                self.damaged.lock().insert(id, error);
            }
            Err(error) => return Err(error),
        }
        self.content_arrived(&mut page, true);
        Ok(Some(page))
    }

    /// What follows when the bytes of a published frame are there and verified.
    pub(super) fn content_arrived(&self, page: &mut PageWrite, warm: bool) {
        let index = page.index();
        self.frames.set_object(index, page::object(page.bytes()));
        self.clock.begin(index, self.frames.at(index), warm);
        self.frames.content_arrived(index);
        page.arrived();
    }

    pub(super) fn read_block(
        &self,
        site: &dyn Site,
        context: &Context,
        id: PageId,
        bytes: &mut [u8],
    ) -> Result<()> {
        if let Some(flash) = &self.flash
            && flash.read(site, context, id, bytes)
        {
            return newest(file_of(site, id), id, bytes);
        }
        self.read_home(site, context, id, bytes)
    }

    /// From its data file.
    pub(super) fn read_home(
        &self,
        site: &dyn Site,
        context: &Context,
        id: PageId,
        bytes: &mut [u8],
    ) -> Result<()> {
        let (file, offset) = (file_of(site, id), self.offset(id));
        let disk = file.disk()?;
        let wait =
            context.slot.enter(Event::DbFileSequentialRead, u64::from(id.file), u64::from(id.block), 1);
        let outcome = disk.read_at(bytes, offset);
        let took = wait.end();
        check(file, "pread", offset, bytes.len(), outcome)?;
        self.note_home_read(context, file, Transfer::ReadSync, bytes.len(), took);
        verify(file, id, bytes)
    }

    /// One request brought so many bytes of blocks from a data file.
    pub(super) fn note_home_read(
        &self,
        context: &Context,
        file: &DataFile,
        transfer: Transfer,
        bytes: usize,
        took: Nanos,
    ) {
        let blocks = (bytes / self.block_bytes) as u64;
        file.statistics.note(transfer, bytes as u64, took);
        count_read(context, Statistic::PhysicalReadsCache, blocks, bytes);
        if let Some(flash) = &self.flash {
            flash.note_miss(context, blocks, took);
        }
    }

    /// Byte in its file.
    pub(super) fn offset(&self, id: PageId) -> u64 {
        u64::from(id.block) * self.block_bytes as u64
    }

    fn wait_shared(&self, site: &dyn Site, context: &Context, index: u32, id: PageId) -> ReadGuard {
        let latch = &self.latches[index as usize];
        if let Some(guard) = latch.try_read_arc() {
            return guard;
        }
        let _wait = context.slot.enter(
            self.why(site, index, id),
            u64::from(id.file),
            u64::from(id.block),
            CLASS_DATA,
        );
        latch.read_arc()
    }

    fn wait_exclusive(&self, site: &dyn Site, context: &Context, index: u32, id: PageId) -> WriteGuard {
        let latch = &self.latches[index as usize];
        if let Some(guard) = latch.try_write_arc() {
            return guard;
        }
        let _wait = context.slot.enter(
            self.why(site, index, id),
            u64::from(id.file),
            u64::from(id.block),
            CLASS_DATA,
        );
        latch.write_arc()
    }

    /// What a session waits for whose page is latched.
    fn why(&self, site: &dyn Site, index: u32, id: PageId) -> Event {
        assert!(!inline(site), "{id} is latched by the only thread there is: it would wait for itself");
        let frame = self.frames.at(index);
        if frame.has(READING) {
            Event::ReadByOtherSession
        } else if frame.has(COPYING) {
            Event::WriteCompleteWaits
        } else {
            Event::BufferBusyWaits
        }
    }

    /// Whether the page was damaged when recovery read it, and is not mended yet: edits would be applied to nothing.
    pub fn is_damaged(&self, id: PageId) -> bool {
        self.damaged.lock().contains_key(&id)
    }

    /// Recovery has put a whole page (an image, or a format) over a damaged one.
    pub fn mend(&self, id: PageId) {
        self.damaged.lock().remove(&id);
    }

    /// Pages that recovery met damaged and did not mend, each as an [`EngineError::CorruptBlock`].
    pub fn damaged(&self) -> Vec<EngineError> {
        self.damaged.lock().values().cloned().collect()
    }
}

#[inline]
fn count_block_get(context: &Context) {
    context.count(Statistic::SessionLogicalReads, 1);
    context.count(Statistic::DbBlockGets, 1);
}

/// # Panics
/// When there is no such file: a damaged address, a bug.
pub(super) fn file_of(site: &dyn Site, id: PageId) -> &Arc<DataFile> {
    site.files().get(id.file).unwrap_or_else(|| panic!("{id}: there is no such file"))
}

/// Counts one read request of `blocks` blocks.
pub(super) fn count_read(context: &Context, kind: Statistic, blocks: u64, bytes: usize) {
    context.count(Statistic::PhysicalReads, blocks);
    context.count(kind, blocks);
    context.count(Statistic::PhysicalReadIoRequests, 1);
    context.count(Statistic::PhysicalReadBytes, bytes as u64);
}

/// # Errors
/// [`EngineError::CorruptBlock`].
pub(super) fn verify(file: &DataFile, id: PageId, bytes: &[u8]) -> Result<()> {
    page::check(bytes, id).map_err(|words| corrupt(file, id, words))?;
    newest(file, id, bytes)
}

/// # Errors
/// [`EngineError::CorruptBlock`] when the page is older than what was last written there, as far as that is noted.
fn newest(file: &DataFile, id: PageId, bytes: &[u8]) -> Result<()> {
    let Some(notes) = &file.written else { return Ok(()) };
    notes.check(id.block, bytes).map_err(|words| corrupt(file, id, words))
}

fn corrupt(file: &DataFile, id: PageId, (expected, found): (String, String)) -> EngineError {
    file.statistics.note_error();
    EngineError::CorruptBlock { id, path: file.path.clone(), expected, found }
}

#[cfg(test)]
mod tests {
    use crate::cache::tests::world::{config, page, world};
    use crate::context::Background;

    /// A session finds the frame of a page, and before it has the latch the frame gets another page.
    #[test]
    fn a_frame_that_was_reused_meanwhile_is_not_taken() {
        let world = world(&config(16), Background::Inline, &[100]);
        let context = world.context();
        world.get(&context, page(1)).unwrap();
        let index = world.cache.frames.find(page(1)).unwrap();
        world.cache.flush(&*world, &context).unwrap();
        world.get(&context, page(2)).unwrap();
        assert_eq!(
            world.cache.frames.find(page(2)),
            Some(index),
            "the frame that was freed last is used first"
        );
        let latch = &world.cache.latches[index as usize];
        assert!(world.cache.if_still(page(1), latch.read_arc()).is_none());
        assert!(world.cache.if_still(page(1), latch.write_arc()).is_none());
        assert!(world.cache.if_still(page(2), latch.read_arc()).is_some());
    }
}
