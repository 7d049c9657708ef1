//! Is the tree sound? Everything that the walks rely on, looked at page by page.

use super::descend::Fences;
use super::node::{self, Fence};
use super::pages::{Pages, expect_node};
use crate::page::PageId;
use crate::{EngineError, Result};
use std::collections::BTreeSet;

/// More findings than this are not collected: the tree is damaged, and the first say where.
const PROBLEMS_MAX: usize = 100;

/// What a tree is made of, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Levels, the leaves' included.
    pub height: u32,
    /// Pages above the leaves.
    pub branches: u64,
    /// Leaves.
    pub leaves: u64,
    /// Leaves without entries.
    pub leaves_empty: u64,
    /// Entries in all leaves.
    pub entries: u64,
    /// Bytes of leaves that hold entries and their slots.
    pub leaf_bytes_used: u64,
    /// Bytes of leaves that could.
    pub leaf_bytes: u64,
    /// Findings, in words with the page; empty when the tree is sound.
    pub problems: Vec<String>,
}

/// Walks the whole tree. Each node stays latched for reading until all below it was seen, so sessions may go on meanwhile, but
/// not split or empty what is above the walk.
///
/// # Errors
/// What a read met. A damaged page is a finding, not an error.
pub(super) fn check<P: Pages>(pages: &P) -> Result<Structure> {
    let mut walk = Walk { pages, structure: Structure::default(), seen: BTreeSet::new() };
    walk.visit(pages.root(), None, &Fences::default())?;
    Ok(walk.structure)
}

struct Walk<'p, P> {
    pages: &'p P,
    structure: Structure,
    seen: BTreeSet<PageId>,
}

impl<P: Pages> Walk<'_, P> {
    fn found(&mut self, id: PageId, what: impl Into<String>) {
        if self.structure.problems.len() < PROBLEMS_MAX {
            self.structure.problems.push(format!("{id}: {}", what.into()));
        }
    }

    fn visit(&mut self, id: PageId, level: Option<u8>, fences: &Fences) -> Result<()> {
        if !self.seen.insert(id) {
            self.found(id, "two branches lead here");
            return Ok(());
        }
        let page = match self.pages.read(id) {
            Ok(page) => page,
            Err(error @ EngineError::CorruptBlock { .. }) => {
                self.found(id, error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if let Err(error) = expect_node(self.pages, id, &page, level) {
            self.found(id, error.to_string());
            return Ok(());
        }
        let inside = node::problems(&page);
        if !inside.is_empty() {
            // What the page says cannot be followed.
            inside.into_iter().for_each(|what| self.found(id, what));
            return Ok(());
        }
        self.bounds(id, &page, fences);
        match node::level(&page) {
            0 => self.leaf(&page),
            here => {
                self.structure.branches += 1;
                self.structure.height = self.structure.height.max(u32::from(here) + 1);
                for index in 0..=node::count(&page) {
                    let mut below = fences.clone();
                    below.narrow(&page, index);
                    self.visit(node::child(&page, index), Some(here - 1), &below)?;
                }
            }
        }
        Ok(())
    }

    fn leaf(&mut self, page: &[u8]) {
        let structure = &mut self.structure;
        structure.leaves += 1;
        structure.leaves_empty += u64::from(node::count(page) == 0);
        structure.entries += node::count(page) as u64;
        structure.leaf_bytes += node::capacity(page) as u64;
        structure.leaf_bytes_used += (node::capacity(page) - node::free(page)) as u64;
    }

    /// Entries are in order already, so the first and the last tell.
    fn bounds(&mut self, id: PageId, page: &[u8], fences: &Fences) {
        let Some(last) = node::count(page).checked_sub(1) else { return };
        let (first, last) = (node::position(page, 0), node::position(page, last));
        if fences.low.as_ref().map(Fence::position).is_some_and(|low| first < low) {
            self.found(id, "the first entry lies below the bound that the branches above set");
        }
        if fences.high.as_ref().map(Fence::position).is_some_and(|high| last >= high) {
            self.found(id, "the last entry lies above the bound that the branches above set");
        }
    }
}
