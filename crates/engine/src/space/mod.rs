//! Space: segments, extents, free space in pages, and the catalog of tables and indexes.

use crate::instance::{Core, Foundation};
use crate::page::PageId;
use crate::{Context, Result};

/// Space of one object: a table, an index, an undo segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Object number.
    pub object: u32,
    /// Its header page.
    pub header: PageId,
    /// Number of its tablespace.
    pub tablespace: u16,
}

/// Segments and catalog of an instance.
pub struct Space {}

impl Space {
    /// Nothing known yet.
    ///
    /// # Errors
    /// None yet.
    pub fn new(_foundation: &Foundation) -> Result<Self> {
        unimplemented!()
    }

    /// In a new database, after every file's [`Space::add_file`] and after [`crate::transaction::Transactions::create`]: makes
    /// the catalog in SYSTEM.
    ///
    /// # Errors
    /// What storage says.
    pub fn create(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// At open, after roll forward and [`crate::transaction::Transactions::open`], before anything is rolled back: reads the
    /// catalog.
    ///
    /// # Errors
    /// [`crate::EngineError::Damaged`], what storage says.
    pub fn open(&self, _core: &Core, _context: &Context) -> Result<()> {
        unimplemented!()
    }

    /// Makes the space map of a new data file, by redo; its block 0 (the header) is there, all others are zero. Temp
    /// files too, with whatever they need (no redo, and again after every open).
    ///
    /// # Errors
    /// What storage says.
    pub fn add_file(&self, _core: &Core, _context: &Context, _file: u16) -> Result<()> {
        unimplemented!()
    }

    /// What `smon` does for space, a bit at a time; whether there was anything.
    ///
    /// # Errors
    /// What storage says; stops the instance.
    pub fn monitor_step(&self, _core: &Core, _context: &Context) -> Result<bool> {
        Ok(false)
    }

    /// The segment of an object; none when it was dropped.
    pub fn segment(&self, _object: u32) -> Option<Segment> {
        unimplemented!()
    }

    /// The table whose rows are in the segment `object`, as purge needs it; none when it was dropped or truncated.
    pub fn purgeable(&self, _object: u32) -> Option<crate::transaction::Purgeable> {
        unimplemented!()
    }

    /// Makes a segment (header page and first extent) in a tablespace, in one change.
    ///
    /// # Errors
    /// [`crate::EngineError::TablespaceFull`].
    pub fn create_segment(
        &self,
        _core: &Core,
        _context: &Context,
        _object: u32,
        _tablespace: u16,
    ) -> Result<Segment> {
        unimplemented!()
    }

    /// Gives all extents back, in one change; the caller has made sure that nobody uses them.
    ///
    /// # Errors
    /// What storage says.
    pub fn drop_segment(&self, _core: &Core, _context: &Context, _segment: &Segment) -> Result<()> {
        unimplemented!()
    }

    /// A page of the segment that was never used, or was freed: raises the high-water mark by one page (or reuses), a change of
    /// its own. The caller formats it with [`crate::change::Change::new_page`]. A crash between the two leaves an empty page in
    /// the segment, nothing worse.
    ///
    /// The first page ever given from a fresh (or truncated) segment is the block after its header: that is where the
    /// root of an index lies, so nobody has to look it up.
    ///
    /// # Errors
    /// [`crate::EngineError::TablespaceFull`].
    pub fn allocate_page(&self, _core: &Core, _context: &Context, _segment: &Segment) -> Result<PageId> {
        unimplemented!()
    }

    /// Gives an index or undo page back to its segment.
    ///
    /// # Errors
    /// What storage says.
    pub fn free_page(
        &self,
        _core: &Core,
        _context: &Context,
        _segment: &Segment,
        _page: PageId,
    ) -> Result<()> {
        unimplemented!()
    }

    /// A heap page that had at least `bytes` free when it was last noted; none when only new pages will do.
    pub fn page_with_space(
        &self,
        _core: &Core,
        _context: &Context,
        _segment: &Segment,
        _bytes: usize,
    ) -> Result<Option<PageId>> {
        unimplemented!()
    }

    /// Notes how much is free in a heap page (a hint: coarse, not in redo).
    pub fn note_free(&self, _segment: &Segment, _page: PageId, _bytes: usize) {
        unimplemented!()
    }

    /// All pages of a segment below its high-water mark, in order, as runs of neighbours.
    ///
    /// # Errors
    /// What storage says.
    pub fn runs(&self, _core: &Core, _context: &Context, _segment: &Segment) -> Result<Vec<(PageId, u32)>> {
        unimplemented!()
    }
}
