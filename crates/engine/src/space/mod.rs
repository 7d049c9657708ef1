//! Space: segments, extents, free space in pages, and the catalog of tables and indexes.
//!
//! Bottom up: `layout` (bytes of all pages here), `map` (bits of a space map), `extents` (taking and giving back runs of blocks,
//! making files longer), `segment` (a segment at run time), `create` (made and dropped without leaks), `grow` (pages for it),
//! `hints` and `free_space` (room for rows). Above them the `catalog`, which describes [`Table`]s and [`Index`]es, with `lock`
//! (`enq: TM`). The space of temp files is `sort`'s.

pub(crate) mod catalog;
mod check;
mod create;
mod extents;
mod free_space;
mod grow;
mod hints;
mod layout;
pub(crate) mod lock;
mod map;
mod segment;
mod table;
mod wait;

pub use create::FIRST_USER_OBJECT;
pub use extents::Extent;
pub use table::{Column, ColumnKind, Index, IndexDef, Table, TableDef};

pub(crate) use table::Domain;

use crate::instance::{Core, Foundation};
use crate::page::PageId;
use crate::transaction::Purgeable;
use crate::{Context, EngineError, Result};
use catalog::Catalog;
use extents::Extents;
use parking_lot::RwLock;
use segment::SegmentState;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// How long smon leaves changed hints in memory only.
const HINTS_EVERY: Nanos = Nanos::millis(10_000);

/// Objects from here on are undo segments, which have numbers of their own.
const FIRST_UNDO_OBJECT: u32 = 0x8000_0000;

/// Number of the tablespace SYSTEM.
pub const SYSTEM: u16 = 0;

/// Space of one object: a table, an index, an undo segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Object number of this space; never used again, not even for the same table after a truncate (`DATA_OBJECT_ID`).
    pub object: u32,
    /// Its header page.
    pub header: PageId,
    /// Number of its tablespace.
    pub tablespace: u16,
}

/// What a segment takes: a row of `dba_segments`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSize {
    /// Number of extents.
    pub extents: u32,
    /// Blocks in them.
    pub blocks: u32,
    /// Blocks below the high-water mark: those that a full scan reads.
    pub high_water: u32,
}

/// Segments and catalog of an instance.
pub struct Space {
    block_bytes: usize,
    extents: Extents,
    states: RwLock<BTreeMap<u32, Arc<SegmentState>>>,
    pub(crate) catalog: Catalog,
    /// When smon last wrote the hints, on the instance's clock.
    hints_written: AtomicU64,
}

impl Space {
    /// Nothing known yet.
    ///
    /// # Errors
    /// None: nothing is read before [`Space::open`].
    pub fn new(foundation: &Foundation) -> Result<Self> {
        Ok(Self {
            block_bytes: foundation.files.block_bytes() as usize,
            extents: Extents::default(),
            states: RwLock::default(),
            catalog: Catalog::default(),
            hints_written: AtomicU64::new(0),
        })
    }

    /// Makes the dictionary page and the catalog's tables of a new database. The first segments of SYSTEM, made before any other,
    /// so that they lie at fixed pages.
    ///
    /// # Errors
    /// What storage says.
    pub fn create(&self, core: &Core, context: &Context) -> Result<()> {
        self.create_dictionary_page(core, context)?;
        for table in catalog::dictionary::tables() {
            let segment = self.create_segment(core, context, table.segment.object, SYSTEM)?;
            assert_eq!(segment, table.segment, "{} must lie at its fixed page", table.name);
            self.catalog.publish(table, []);
        }
        Ok(())
    }

    /// Makes the first space map of a new data file, by redo. Temp files need nothing: their space is known in memory only, and a file's
    /// further maps are made when they are first needed.
    ///
    /// # Errors
    /// What storage says.
    pub fn add_file(&self, core: &Core, context: &Context, file: u16) -> Result<()> {
        extents::create_map(core, context, file)
    }

    /// Reads the catalog, as committed, and finishes the DDL that a crash interrupted. After redo was applied and the transactions
    /// that the crash cut off are known (they need not be rolled back yet).
    ///
    /// # Errors
    /// What storage says; [`crate::EngineError::CorruptBlock`].
    pub fn open(&self, core: &Core, context: &Context) -> Result<()> {
        catalog::load::load(core, context)?;
        self.resolve_pending(core, context, &|object| self.catalog.owner(object).is_some())
    }

    /// The segment of an object; none when it was dropped.
    pub fn segment(&self, object: u32) -> Option<Segment> {
        let known = self.known_state(object).map(|state| state.segment);
        known.or_else(|| self.catalog.owner(object).map(|(segment, _)| segment))
    }

    /// The table that a segment belongs to, be it the table's own or one of its indexes': purge finds the indexes of a row here.
    pub fn table_of(&self, object: u32) -> Option<Arc<Table>> {
        self.catalog.owner(object).and_then(|(_, table)| self.catalog.by_object(table))
    }

    /// All pages of a segment below its high-water mark, in order, as runs of neighbours. Some may be blank, and some hold no
    /// rows; pages that nobody was given yet are left out.
    ///
    /// # Errors
    /// What storage says.
    pub fn runs(&self, core: &Core, context: &Context, segment: &Segment) -> Result<Vec<(PageId, u32)>> {
        Ok(self.state(core, context, segment)?.runs())
    }

    /// Whether a page is one of the segment's, below its high-water mark.
    ///
    /// # Errors
    /// What storage says.
    pub fn contains(&self, core: &Core, context: &Context, segment: &Segment, page: PageId) -> Result<bool> {
        let state = self.state(core, context, segment)?;
        let shape = state.shape.read();
        Ok(shape.number(page).is_some_and(|number| number < shape.high_water))
    }

    /// How large a segment is.
    ///
    /// # Errors
    /// What storage says.
    pub fn size(&self, core: &Core, context: &Context, segment: &Segment) -> Result<SegmentSize> {
        let state = self.state(core, context, segment)?;
        let shape = state.shape.read();
        Ok(SegmentSize {
            extents: shape.extents.len() as u32,
            blocks: shape.blocks,
            high_water: shape.high_water,
        })
    }

    /// What `smon` does for space, a bit at a time; whether there was anything.
    ///
    /// # Errors
    /// What storage says; stops the instance.
    pub fn monitor_step(&self, core: &Core, context: &Context) -> Result<bool> {
        let now = core.environment.clock.now();
        let last = Nanos(self.hints_written.load(Ordering::Relaxed));
        if now - last < HINTS_EVERY {
            return Ok(false);
        }
        self.hints_written.store(now.0, Ordering::Relaxed);
        match self.write_hints(core, context) {
            // A free-space page more would have been nice to have.
            Err(EngineError::TablespaceFull { .. }) => Ok(false),
            wrote => wrote,
        }
    }

    /// What purge needs to know of the table whose rows are in the segment `object`; none when it was dropped or truncated.
    pub fn purgeable(&self, object: u32) -> Option<Purgeable> {
        let table = self.table_of(object).filter(|table| table.segment.object == object)?;
        let indexes = table.indexes.iter().map(|index| (index.segment, index.columns.clone())).collect();
        Some(Purgeable { segment: table.segment, indexes })
    }

    /// Wakes everybody who waits for a table, so that they look whether the instance goes on.
    pub fn wake_all(&self) {
        for table in self.catalog.all() {
            table.lock.wake_all();
        }
    }

    fn state(&self, core: &Core, context: &Context, segment: &Segment) -> Result<Arc<SegmentState>> {
        if let Some(state) = self.known_state(segment.object) {
            return Ok(state);
        }
        // Two that come at once both read it; the first one's copy stays.
        let loaded = SegmentState::load(core, context, *segment)?;
        let mut states = self.states.write();
        Ok(states.entry(segment.object).or_insert_with(|| Arc::new(loaded)).clone())
    }

    fn known_state(&self, object: u32) -> Option<Arc<SegmentState>> {
        self.states.read().get(&object).cloned()
    }

    fn all_states(&self) -> Vec<Arc<SegmentState>> {
        self.states.read().values().cloned().collect()
    }

    fn insert_state(&self, state: SegmentState) {
        self.states.write().insert(state.segment.object, Arc::new(state));
    }

    fn forget_state(&self, object: u32) {
        self.states.write().remove(&object);
    }

    /// Whether a table or an index lives in a tablespace, or is just being made or dropped there.
    pub(crate) fn has_segments(&self, core: &Core, context: &Context, tablespace: u16) -> Result<bool> {
        let files = core.files.of_tablespace(tablespace);
        let in_it = |header: PageId| files.iter().any(|file| file.number == header.file);
        let pending = self.pending(core, context)?;
        Ok(self.catalog.has_segments(tablespace) || pending.into_iter().any(|(_, header)| in_it(header)))
    }

    /// The tablespace is gone: so are its undo segments.
    pub(crate) fn forget_tablespace(&self, tablespace: u16) {
        self.states.write().retain(|_, state| state.segment.tablespace != tablespace);
    }

    /// Undo segments, as far as they are in use.
    pub(crate) fn undo_segments(&self) -> Vec<Segment> {
        let states = self.states.read();
        states.range(FIRST_UNDO_OBJECT..).map(|(_, state)| state.segment).collect()
    }

    pub(crate) fn tablespace_name(&self, core: &Core, number: u16) -> String {
        let content = core.control.content();
        content.tablespace(number).map_or_else(|| number.to_string(), |tablespace| tablespace.name.clone())
    }

    /// For an error's words.
    fn object_name(&self, object: u32) -> String {
        let named = self.catalog.name_of_segment(object);
        named.unwrap_or_else(|| match object {
            0 => "(new)".into(),
            FIRST_UNDO_OBJECT.. => format!("undo segment {}", object & 0xff),
            _ => object.to_string(),
        })
    }
}
