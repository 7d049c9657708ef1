//! Entries go, and pages that have none left.

use super::descend::{Goal, Latched, descend, latch};
use super::node::{self, Position};
use super::pages::{Edit, Pages, edit};
use crate::Result;
use crate::page::PageId;
use crate::value::RowId;

/// Bytes of edits of taking an entry out: shift of the slots, header, a branch's first child.
const REMOVE_BYTES: usize = 64;

/// Takes an entry out; fine when it is not there. A leaf that has none left leaves the tree, by a change of its own.
pub(super) fn remove<P: Pages>(pages: &P, key: &[u8], row: RowId) -> Result<()> {
    let position = Position::of(key, row);
    let mut change = pages.begin(1, REMOVE_BYTES)?;
    let leaf = latch(pages, &mut change, position, 0, |_, _| {})?.leaf;
    let bytes = change.bytes(leaf);
    let index = node::lower_bound(bytes, position);
    if index == node::count(bytes) || node::position(bytes, index) != position {
        return Ok(());
    }
    let last = node::count(bytes) == 1;
    node::remove(&mut edit(&mut change, leaf), index);
    change.finish();
    if last { unlink(pages, position) } else { Ok(()) }
}

/// Takes the leaf of `position` out of the tree when it is empty, with the branches above it that lead to nothing else.
///
/// 1. Look how far up that goes. The last leaf of the tree stays, empty.
/// 2. Latch, from the branch that keeps other children downwards; look again, and leave everything as it is when somebody
///    came meanwhile.
/// 3. Take the child out of that branch: a neighbour inherits its range. That is the only page that changes.
/// 4. Give the pages back, one by one. They may not be taken by others before 3 is in redo: then recovery could find another's
///    content in a page of the tree. A crash before 4 is done: the pages stay the segment's, unused.
///
/// Nobody is on the way to the pages in 4: who goes down holds the latch of the branch until it has the next one, and 2 had
/// both exclusively.
fn unlink<P: Pages>(pages: &P, position: Position<'_>) -> Result<()> {
    let Some(level) = empty_levels(pages, position)? else { return Ok(()) };
    let mut change = pages.begin(1, REMOVE_BYTES)?;
    let path = latch(pages, &mut change, position, level, |_, _| {})?;
    if !leads_nowhere(&change, &path, level) {
        return Ok(());
    }
    let (branch, index) = path.above[usize::from(level) - 1];
    let below = path.above[..usize::from(level) - 1].iter().map(|(node, _)| *node);
    let gone: Vec<PageId> = std::iter::once(path.leaf).chain(below).map(|node| change.id(node)).collect();
    node::remove_child(&mut edit(&mut change, branch), index);
    change.finish();
    gone.into_iter().try_for_each(|page| pages.free(page))
}

/// The level of the lowest branch above the position's leaf that has other children; none when the leaf has entries, or is the
/// last.
fn empty_levels<P: Pages>(pages: &P, position: Position<'_>) -> Result<Option<u8>> {
    let mut keeper = None;
    let leaf = descend(pages, Goal::At(position), |_, branch, _| {
        if node::count(branch) > 0 {
            keeper = Some(node::level(branch));
        }
    })?;
    Ok(keeper.filter(|_| node::count(&leaf) == 0))
}

/// Whether the latched path is still so: an empty leaf, branches with one child, and on top, at `level`, one with more.
fn leads_nowhere<C: Edit>(change: &C, path: &Latched, level: u8) -> bool {
    let entries = |index: usize| node::count(change.bytes(path.above[index].0));
    let top = usize::from(level) - 1;
    node::count(change.bytes(path.leaf)) == 0
        && path.above.len() == top + 1
        && entries(top) > 0
        && (0..top).all(|index| entries(index) == 0)
}
