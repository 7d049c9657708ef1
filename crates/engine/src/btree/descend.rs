//! The ways down the tree, by latch coupling: a node's latch is let go only when the next one's is held, so nobody can take the
//! ground away in between.
//!
//! [`descend`] latches for reading all the way. [`latch`] latches for reading down to a level and for changing from there:
//! only the leaf for most changes, more levels when the tree's shape is to change. Latches are taken top down and, on one
//! level, left to right, so walks cannot wait for each other in a circle. A node that is taken out of the tree is latched for
//! changing together with its parent, so nobody is on the way to it then, and nobody arrives later.

use super::node::{self, Fence, Position};
use super::pages::{Edit, Pages, expect_node};
use crate::change::Handle;
use crate::page::{self, PageId};
use crate::{EngineError, Result};

/// Where a way down leads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal<'a> {
    /// The leftmost leaf.
    First,
    /// The rightmost leaf.
    Last,
    /// The leaf that has this position, or would have it.
    At(Position<'a>),
    /// The leaf that has what comes just before this position, or would have it.
    Before(Position<'a>),
}

impl Goal<'_> {
    /// Which child of a branch leads there.
    pub fn child(self, branch: &[u8]) -> usize {
        match self {
            Self::First => 0,
            Self::Last => node::count(branch),
            Self::At(position) => node::upper_bound(branch, position),
            Self::Before(position) => node::lower_bound(branch, position),
        }
    }
}

/// The bounds of a node: it may hold positions from `low` to below `high`; none is no bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Fences {
    pub low: Option<Fence>,
    pub high: Option<Fence>,
}

impl Fences {
    /// Goes on to child `index` of `branch`.
    pub fn narrow(&mut self, branch: &[u8], index: usize) {
        if index > 0 {
            Fence::set(&mut self.low, node::position(branch, index - 1));
        }
        self.narrow_high(branch, index);
    }

    /// As [`Fences::narrow`], for who needs the upper bound only.
    pub fn narrow_high(&mut self, branch: &[u8], index: usize) {
        if index < node::count(branch) {
            Fence::set(&mut self.high, node::position(branch, index));
        }
    }

    /// Whether no entry of this key can be beyond the upper bound.
    pub fn end_after(&self, key: &[u8]) -> bool {
        self.high.as_ref().is_none_or(|high| high.key.as_slice() > key)
    }
}

/// Goes to a leaf, latching for reading. `passing` is told each branch on the way, with the child that is taken, while the branch
/// is latched.
///
/// # Errors
/// What a read met; [`EngineError::CorruptBlock`] when the way leads to what is no node of this tree.
pub(super) fn descend<P: Pages>(
    pages: &P,
    goal: Goal<'_>,
    mut passing: impl FnMut(PageId, &[u8], usize),
) -> Result<P::Read> {
    let mut id = pages.root();
    let mut branch = pages.read(id)?;
    expect_node(pages, id, &branch, None)?;
    loop {
        let index = goal.child(&branch);
        passing(id, &branch, index);
        let below = node::level(&branch) - 1;
        id = node::child(&branch, index);
        let next = pages.read(id)?;
        expect_node(pages, id, &next, Some(below))?;
        if below == 0 {
            return Ok(next);
        }
        branch = next;
    }
}

/// A leaf latched for changing, and the branches above it as far as they were wanted.
pub(super) struct Latched {
    pub leaf: Handle,
    /// From the level above the leaf upwards: the branch, and which of its children is on the path.
    pub above: Vec<(Handle, usize)>,
}

/// Goes to the leaf of `position`, latching for reading above `level` and for changing from there down; level 0 is the leaf
/// alone. A level above the root's means the root's. `passing` is told each branch on the way.
///
/// # Errors
/// As [`descend`].
pub(super) fn latch<P: Pages>(
    pages: &P,
    change: &mut P::Change,
    position: Position<'_>,
    level: u8,
    mut passing: impl FnMut(&[u8], usize),
) -> Result<Latched> {
    let top = loop {
        let root = pages.read(pages.root())?;
        expect_node(pages, pages.root(), &root, None)?;
        if node::level(&root) > level {
            break latch_below(pages, change, position, level, root, &mut passing)?;
        }
        let root_level = node::level(&root);
        drop(root);
        let root = change.page(pages.root())?;
        // Between the two latches the tree may have grown; then the root is too high for what was wanted.
        if node::level(change.bytes(root)) == root_level {
            break root;
        }
        change.release(root);
    };
    let mut above = Vec::new();
    let mut here = top;
    while node::level(change.bytes(here)) > 0 {
        let branch = change.bytes(here);
        let index = node::upper_bound(branch, position);
        passing(branch, index);
        let (child, below) = (node::child(branch, index), node::level(branch) - 1);
        above.push((here, index));
        here = latch_node(pages, change, child, below)?;
    }
    above.reverse();
    Ok(Latched { leaf: here, above })
}

/// From the root, latched for reading and above `level`, to the node of `level`, latched for changing.
fn latch_below<P: Pages>(
    pages: &P,
    change: &mut P::Change,
    position: Position<'_>,
    level: u8,
    root: P::Read,
    passing: &mut impl FnMut(&[u8], usize),
) -> Result<Handle> {
    let mut branch = root;
    loop {
        let index = node::upper_bound(&branch, position);
        passing(&branch, index);
        let (id, below) = (node::child(&branch, index), node::level(&branch) - 1);
        if below == level {
            return latch_node(pages, change, id, below);
        }
        let next = pages.read(id)?;
        expect_node(pages, id, &next, Some(below))?;
        branch = next;
    }
}

/// Latches a node for changing, and checks that it is what its parent says.
pub(super) fn latch_node<P: Pages>(
    pages: &P,
    change: &mut P::Change,
    id: PageId,
    level: u8,
) -> Result<Handle> {
    let handle = change.page(id)?;
    expect_node(pages, id, change.bytes(handle), Some(level))?;
    Ok(handle)
}

/// Refuses a key that no node can take.
///
/// # Errors
/// [`EngineError::Invalid`] with what to do.
pub(super) fn expect_key_fits(key: &[u8], page: &[u8]) -> Result<()> {
    let max = node::key_bytes_max(page.len());
    if key.len() <= max {
        return Ok(());
    }
    Err(EngineError::Invalid(format!(
        "an index key of {} bytes does not fit a block of {} bytes (at most {max}); index fewer or shorter columns, or use a larger db_block_size",
        key.len(),
        page.len()
    )))
}

/// Where a leaf hangs: its parent as it was, to find the leaf's neighbours without going through the root again.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub parent: PageId,
    pub lsn: page::Lsn,
    pub index: usize,
    /// The parent's own bounds.
    pub fences: Fences,
}
