//! Full scans: the rows of a page that a view sees, as values or as they are stored, and how many there are.
//!
//! When the view sees everybody who ever changed the page, the page's own count answers `COUNT(*)` without a look at
//! the rows. Rows that only undo or another page can tell are looked up one by one, after the page's latch was released.

use super::page::{self, Head, Seen};
use super::pieces::Pieces;
use super::{malformed, read};
use crate::instance::Core;
use crate::page::PageId;
use crate::row;
use crate::space::Segment;
use crate::transaction::ReadView;
use crate::value::{Row, RowId};
use crate::{Context, Result};

/// The rows of one page that the view sees, in slot order, for full scans. `page` is the page as it was read past the
/// cache, or a copy (it may be older than the cache's, but has all that the view sees); never a page that the caller
/// has latched, because the same page and others are read through the cache. A page that is not a heap page of
/// `segment` (never used, or of another kind) has none. With `columns`, each row has just these values, in this order.
///
/// # Errors
/// What storage says (undo and migrated rows are read through the cache).
#[expect(clippy::too_many_arguments, reason = "what is scanned, by whom, and what is wanted")]
pub fn rows_in_page(
    core: &Core,
    context: &Context,
    segment: &Segment,
    id: PageId,
    page: &[u8],
    view: &ReadView,
    columns: Option<&[usize]>,
    rows: &mut Vec<(RowId, Row)>,
) -> Result<()> {
    let mut found = Found { core, id, columns, rows, elsewhere: Vec::new() };
    found.look(segment, page, view)?;
    found.fetch(context, view)
}

/// As [`rows_in_page`], for a page in the cache: latches it for as long as it takes to decode what is there.
///
/// # Errors
/// What storage says.
pub fn rows_cached(
    core: &Core,
    context: &Context,
    segment: &Segment,
    id: PageId,
    view: &ReadView,
    columns: Option<&[usize]>,
    rows: &mut Vec<(RowId, Row)>,
) -> Result<()> {
    let mut found = Found { core, id, columns, rows, elsewhere: Vec::new() };
    found.look(segment, &core.cache.read(core, context, id)?, view)?;
    found.fetch(context, view)
}

/// The rows that [`rows_in_page`] would give, as they are stored; those that only undo or another page can tell come last.
///
/// # Errors
/// As [`rows_in_page`]; [`crate::EngineError::RowTooLong`] when `columns` names long ones several times.
#[expect(clippy::too_many_arguments, reason = "what is scanned, by whom, and what is wanted")]
pub fn copy_in_page(
    core: &Core,
    context: &Context,
    segment: &Segment,
    id: PageId,
    page: &[u8],
    view: &ReadView,
    columns: Option<&[usize]>,
    pieces: &mut Pieces,
) -> Result<()> {
    let mut copy = Copy { core, id, columns, pieces, elsewhere: Vec::new() };
    copy.look(segment, page, view)?;
    copy.fetch(context, view)
}

/// As [`copy_in_page`], for a page in the cache.
///
/// # Errors
/// As [`copy_in_page`].
pub fn copy_cached(
    core: &Core,
    context: &Context,
    segment: &Segment,
    id: PageId,
    view: &ReadView,
    columns: Option<&[usize]>,
    pieces: &mut Pieces,
) -> Result<()> {
    let mut copy = Copy { core, id, columns, pieces, elsewhere: Vec::new() };
    copy.look(segment, &core.cache.read(core, context, id)?, view)?;
    copy.fetch(context, view)
}

/// How many rows [`rows_in_page`] would give.
///
/// # Errors
/// As [`rows_in_page`].
pub fn count_in_page(
    core: &Core,
    context: &Context,
    segment: &Segment,
    id: PageId,
    page: &[u8],
    view: &ReadView,
) -> Result<u64> {
    let mut elsewhere = Vec::new();
    let count = count(segment, page, view, &mut elsewhere);
    count_elsewhere(core, context, id, view, count, &elsewhere)
}

/// As [`count_in_page`], for a page in the cache.
///
/// # Errors
/// What storage says.
pub fn count_cached(
    core: &Core,
    context: &Context,
    segment: &Segment,
    id: PageId,
    view: &ReadView,
) -> Result<u64> {
    let mut elsewhere = Vec::new();
    let count = count(segment, &core.cache.read(core, context, id)?, view, &mut elsewhere);
    count_elsewhere(core, context, id, view, count, &elsewhere)
}

/// Rows of one page on their way out.
struct Found<'a> {
    core: &'a Core,
    id: PageId,
    columns: Option<&'a [usize]>,
    rows: &'a mut Vec<(RowId, Row)>,
    /// Positions in `rows` that are still to be fetched.
    elsewhere: Vec<usize>,
}

impl Found<'_> {
    fn decode(&self, row: RowId, content: &[u8]) -> Result<Row> {
        match self.columns {
            None => row::decode(content),
            Some(columns) => row::decode_columns(content, columns),
        }
        .map_err(malformed(self.core, row))
    }

    /// What the page itself says. Leaves a place for each row that it cannot tell.
    fn look(&mut self, segment: &Segment, page: &[u8], view: &ReadView) -> Result<()> {
        if !page::is_heap_of(page, segment.object) {
            return Ok(());
        }
        for slot in 0..page::slots(page) {
            let id = RowId { page: self.id, slot };
            match page::look(page, slot, view) {
                Seen::Nothing => {}
                Seen::Row(content) => self.rows.push((id, self.decode(id, content)?)),
                Seen::Elsewhere => {
                    self.elsewhere.push(self.rows.len());
                    self.rows.push((id, Row::new()));
                }
            }
        }
        Ok(())
    }

    /// Fills the places that [`Found::look`] left.
    fn fetch(self, context: &Context, view: &ReadView) -> Result<()> {
        if self.elsewhere.is_empty() {
            return Ok(());
        }
        let mut unseen = Vec::new();
        for at in &self.elsewhere {
            let id = self.rows[*at].0;
            match read::seen_version(self.core, context, id, view)? {
                Some(version) => self.rows[*at].1 = self.decode(id, &version.content)?,
                None => unseen.push(*at),
            }
        }
        let mut at = 0;
        let mut unseen = unseen.into_iter().peekable();
        self.rows.retain(|_| {
            at += 1;
            unseen.next_if_eq(&(at - 1)).is_none()
        });
        Ok(())
    }
}

/// Rows of one page on their way into another.
struct Copy<'a> {
    core: &'a Core,
    id: PageId,
    columns: Option<&'a [usize]>,
    pieces: &'a mut Pieces,
    /// Rows that the page itself cannot tell.
    elsewhere: Vec<RowId>,
}

impl Copy<'_> {
    fn look(&mut self, segment: &Segment, page: &[u8], view: &ReadView) -> Result<()> {
        if !page::is_heap_of(page, segment.object) {
            return Ok(());
        }
        for slot in 0..page::slots(page) {
            let row = RowId { page: self.id, slot };
            match page::look(page, slot, view) {
                Seen::Nothing => {}
                Seen::Row(content) => self.pieces.push_content(self.core, row, content, self.columns)?,
                Seen::Elsewhere => self.elsewhere.push(row),
            }
        }
        Ok(())
    }

    fn fetch(self, context: &Context, view: &ReadView) -> Result<()> {
        for row in self.elsewhere {
            if let Some(version) = read::seen_version(self.core, context, row, view)? {
                self.pieces.push_content(self.core, row, &version.content, self.columns)?;
            }
        }
        Ok(())
    }
}

/// Rows that the page itself shows; `elsewhere` gets the slots that it cannot tell.
fn count(segment: &Segment, page: &[u8], view: &ReadView, elsewhere: &mut Vec<u16>) -> u64 {
    if !page::is_heap_of(page, segment.object) {
        return 0;
    }
    let head = Head::read(page);
    if view.sees_all_up_to(head.newest) {
        return head.live.into();
    }
    let mut count = 0;
    for slot in 0..head.slots {
        match page::look(page, slot, view) {
            Seen::Row(_) => count += 1,
            Seen::Nothing => {}
            Seen::Elsewhere => elsewhere.push(slot),
        }
    }
    count
}

fn count_elsewhere(
    core: &Core,
    context: &Context,
    page: PageId,
    view: &ReadView,
    mut count: u64,
    elsewhere: &[u16],
) -> Result<u64> {
    for &slot in elsewhere {
        let version = read::seen_version(core, context, RowId { page, slot }, view)?;
        count += u64::from(version.is_some());
    }
    Ok(count)
}
