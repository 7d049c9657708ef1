//! The buffer cache: frames of pages, second chance with touch counts, database writers, checkpoint.

use crate::files::FileSet;
use crate::instance::process::Process;
use crate::instance::{Core, Foundation};
use crate::page::{Lsn, PageId};
use crate::{Context, Result};
use std::ops::Deref;

/// How the blocks of an object are treated: `BUFFER_POOL DEFAULT | KEEP | RECYCLE` of its table or index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pool {
    /// Second chance with touch counts.
    #[default]
    Default,
    /// Replaced only when nothing else can be.
    Keep,
    /// Replaced first.
    Recycle,
}

/// A page latched for reading, by one or many at a time. Releases on drop.
pub struct PageRead {}

impl Deref for PageRead {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        unimplemented!()
    }
}

/// All frames of the instance.
pub struct BufferCache {}

impl BufferCache {
    /// Frames as the parameters say, all free.
    ///
    /// # Errors
    /// No memory, a parameter that does not fit (`torn_page_protection = atomic` where the device cannot).
    pub fn new(_foundation: &Foundation) -> Result<Self> {
        unimplemented!()
    }

    /// At open, before redo is rolled forward: puts back what the doublewrite file has whole and its home has torn, whatever
    /// `torn_page_protection` says now (it may have been another when the power went). Nothing to do without such a file.
    ///
    /// # Errors
    /// What storage says.
    pub fn restore_torn(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// `ALTER SYSTEM CHECKPOINT`: [`BufferCache::write_dirty`] of everything, then the checkpoint's LSN into the control file.
    ///
    /// # Errors
    /// What a write met.
    pub fn checkpoint(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// Wakes everybody who waits here, so that they look at `core.health` again. Called from any thread.
    pub fn wake_all(&self) {}

    /// Latches a page for reading; reads it from disk when it is not cached (`db file sequential read`; `read by other
    /// session` when someone else is reading it; `buffer busy waits` when someone else is changing it; `free buffer
    /// waits` when no frame can be reused).
    ///
    /// # Errors
    /// What the read met; [`crate::EngineError::CorruptBlock`].
    pub fn read(&self, _core: &Core, _context: &Context, _id: PageId) -> Result<PageRead> {
        unimplemented!()
    }

    /// Makes sure that the pages are cached, reading what is missing with many requests in flight (`db file parallel
    /// read`) or, where neighbours are missing, in runs of `db_file_multiblock_read_count` (`db file scattered read`).
    ///
    /// # Errors
    /// As [`BufferCache::read`].
    pub fn prefetch(&self, _core: &Core, _context: &Context, _ids: &[PageId]) -> Result<()> {
        unimplemented!()
    }

    /// Forgets the pages of an object that is gone or truncated, without writing them.
    pub fn discard(&self, _core: &Core, _object: u32) {
        unimplemented!()
    }

    /// Writes all dirty pages of an object (or of all, with `None`) that were dirty at the call, and waits: what a direct path
    /// read needs first (`enq: KO - fast object checkpoint`), and what a checkpoint is.
    ///
    /// # Errors
    /// What a write met.
    pub fn write_dirty(&self, _core: &Core, _context: &Context, _object: Option<u32>) -> Result<()> {
        unimplemented!()
    }

    /// `ALTER SYSTEM FLUSH BUFFER_CACHE`: writes what is dirty, forgets every page that nobody holds.
    ///
    /// # Errors
    /// What a write met.
    pub fn flush(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// All redo before this is on disk in data files already: where recovery would begin.
    pub fn checkpoint_lsn(&self, _core: &Core) -> Lsn {
        unimplemented!()
    }

    /// Sets how the blocks of an object are treated.
    pub fn set_pool(&self, _object: u32, _pool: Pool) {
        unimplemented!()
    }
}

/// Large asynchronous reads that bypass the cache (`direct path read`), in page order, `depth` requests of
/// `db_file_multiblock_read_count` blocks in flight. Call [`BufferCache::write_dirty`] for the object first.
pub struct DirectRead {}

impl DirectRead {
    /// Over runs of pages `(first, blocks)`; each page is verified.
    ///
    /// # Errors
    /// When no queue can be opened.
    pub fn open(_core: &Core, _files: &FileSet, _runs: Vec<(PageId, u32)>) -> Result<Self> {
        unimplemented!()
    }

    /// Calls `each` for every page of the next request that has arrived; `false` at the end.
    ///
    /// # Errors
    /// What a read met, or what `each` returned.
    pub fn next(
        &mut self,
        _context: &Context,
        _each: &mut dyn FnMut(PageId, &[u8]) -> Result<()>,
    ) -> Result<bool> {
        unimplemented!()
    }
}

/// The processes `dbw0` …, as many as `db_writer_processes`.
///
/// # Errors
/// When a queue cannot be opened.
pub fn database_writers(_core: &Core) -> Result<Vec<Box<dyn Process>>> {
    unimplemented!()
}

/// The process `ckpt`.
///
/// # Errors
/// None yet.
pub fn checkpointer(_core: &Core) -> Result<Box<dyn Process>> {
    unimplemented!()
}
