//! Full scans: the rows of a page that a view sees, as values or as they are stored, and how many there are.
//!
//! When the view sees everybody who ever changed the page, the page's own count answers `COUNT(*)` without a look at
//! the rows. Rows that only undo or another page can tell are looked up one by one, after the page's latch was released.

use super::malformed;
use super::page::{self, Head, Seen};
use super::pieces::Pieces;
use super::read::{self, Version};
use crate::instance::Core;
use crate::page::PageId;
use crate::row;
use crate::space::Segment;
use crate::transaction::ReadView;
use crate::value::{Row, RowId};
use crate::{Context, Result};

/// Where the bytes of a page come from.
pub enum PageSource<'a> {
    /// The buffer cache; the page is latched for as long as it takes to look at it.
    Cache,
    /// Here they are, as they were read past the cache (they may be older than the cache's, but have all that the view sees);
    /// never those of a page that the caller has latched, because the same page and others are read through the cache.
    Bytes(&'a [u8]),
}

/// A full scan at one page: what a view sees of the rows in it, in slot order. A page that is not a heap page of `segment` (never
/// used, or of another kind) has none.
pub struct PageScan<'a> {
    /// Whose page it is.
    pub core: &'a Core,
    /// Who looks.
    pub context: &'a Context,
    /// What the page belongs to.
    pub segment: &'a Segment,
    /// Where it is.
    pub id: PageId,
    /// What is seen.
    pub view: &'a ReadView,
}

impl PageScan<'_> {
    /// Adds its rows to `rows`. With `columns`, each has just these values, in this order.
    ///
    /// # Errors
    /// What storage says (undo and migrated rows are read through the cache).
    pub fn rows(
        &self,
        source: PageSource<'_>,
        columns: Option<&[usize]>,
        rows: &mut Vec<(RowId, Row)>,
    ) -> Result<()> {
        let decode = |row: RowId, content: &[u8]| {
            match columns {
                None => row::decode(content),
                Some(columns) => row::decode_columns(content, columns),
            }
            .map_err(malformed(self.core, row))
        };
        // Rows that the page cannot tell get a place, so that they stay in order.
        let mut elsewhere = Vec::new();
        self.look(source, |row, content| {
            let content = match content {
                Some(content) => decode(row, content)?,
                None => {
                    elsewhere.push(rows.len());
                    Row::new()
                }
            };
            rows.push((row, content));
            Ok(())
        })?;
        let mut unseen = Vec::new();
        for at in elsewhere {
            let row = rows[at].0;
            match self.seen_version(row)? {
                Some(version) => rows[at].1 = decode(row, &version.content)?,
                None => unseen.push(at),
            }
        }
        if !unseen.is_empty() {
            let mut at = 0;
            let mut unseen = unseen.into_iter().peekable();
            rows.retain(|_| {
                at += 1;
                unseen.next_if_eq(&(at - 1)).is_none()
            });
        }
        Ok(())
    }

    /// Adds its rows to `pieces` as they are stored; those that only undo or another page can tell come last.
    ///
    /// # Errors
    /// As [`PageScan::rows`]; [`crate::EngineError::RowTooLong`] when `columns` names long ones several times.
    pub fn copy(&self, source: PageSource<'_>, columns: Option<&[usize]>, pieces: &mut Pieces) -> Result<()> {
        let mut elsewhere = Vec::new();
        self.look(source, |row, content| match content {
            Some(content) => pieces.push_content(self.core, row, content, columns),
            None => {
                elsewhere.push(row);
                Ok(())
            }
        })?;
        for row in elsewhere {
            if let Some(version) = self.seen_version(row)? {
                pieces.push_content(self.core, row, &version.content, columns)?;
            }
        }
        Ok(())
    }

    /// How many rows it has.
    ///
    /// # Errors
    /// As [`PageScan::rows`].
    pub fn count(&self, source: PageSource<'_>) -> Result<u64> {
        let mut elsewhere = Vec::new();
        let mut count = self.with_page(source, |page| {
            if page::is_heap_of(page, self.segment.object) {
                count(self.id, page, self.view, &mut elsewhere)
            } else {
                0
            }
        })?;
        for row in elsewhere {
            count += u64::from(self.seen_version(row)?.is_some());
        }
        Ok(count)
    }

    /// Shows the rows that the page has for the view: their content, or nothing where the page itself cannot tell.
    fn look(
        &self,
        source: PageSource<'_>,
        mut each: impl FnMut(RowId, Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        self.with_page(source, |page| {
            if !page::is_heap_of(page, self.segment.object) {
                return Ok(());
            }
            for slot in 0..page::slots(page) {
                let row = RowId { page: self.id, slot };
                match page::look(page, slot, self.view) {
                    Seen::Nothing => {}
                    Seen::Row(content) => each(row, Some(content))?,
                    Seen::Elsewhere => each(row, None)?,
                }
            }
            Ok(())
        })?
    }

    fn with_page<R>(&self, source: PageSource<'_>, look: impl FnOnce(&[u8]) -> R) -> Result<R> {
        Ok(match source {
            PageSource::Cache => look(&self.core.cache.read(self.core, self.context, self.id)?),
            PageSource::Bytes(page) => look(page),
        })
    }

    fn seen_version(&self, row: RowId) -> Result<Option<Version>> {
        read::seen_version(self.core, self.context, row, self.view)
    }
}

/// Rows that the heap page itself shows; `elsewhere` gets those that it cannot tell.
fn count(id: PageId, page: &[u8], view: &ReadView, elsewhere: &mut Vec<RowId>) -> u64 {
    let head = Head::read(page);
    if view.sees_all_up_to(head.newest) {
        return head.live.into();
    }
    let mut count = 0;
    for slot in 0..head.slots {
        match page::look(page, slot, view) {
            Seen::Row(_) => count += 1,
            Seen::Nothing => {}
            Seen::Elsewhere => elsewhere.push(RowId { page: id, slot }),
        }
    }
    count
}
