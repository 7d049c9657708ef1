//! Room is made: a node's free bytes are gathered, or it splits, and with it as many levels above as are full, in one change.
//!
//! 1. Look, latched for reading, how many levels must split.
//! 2. Take that many new pages, without a latch. A crash from here to 3: they are empty pages of the segment.
//! 3. Begin the change, which may wait for redo space, and latch for changing: the nodes that split, and the one above them,
//!    which takes the new child. Look again: meanwhile somebody else may have made room, or taken it.
//! 4. Split, from the leaf upwards. A crash before the record is durable: nothing happened. After it: everything did.
//! 5. Give back what pages were not needed.
//!
//! The root stays where it is: when it is full, its content moves to a new page, which is then split as any other, and the root
//! is left with that child, one level higher.

use super::descend::{Fences, Goal, Latched, latch};
use super::node::{self, Fence, Position, Sink, SplitPoint};
use super::pages::{Edit, Pages, edit, expect_node};
use crate::Result;
use crate::change::Handle;
use crate::page::{PageId, PageKind};
use crate::statistics::Statistic;

/// What has to be done so that an entry fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Nothing: there is room.
    Nothing,
    /// The leaf's free bytes suffice once they are gathered.
    Compact,
    /// So many levels split, the leaf's included.
    Split(usize),
}

/// Sees to it that the leaf of `position` has a gap for an entry of this key. Whoever comes first may still take it.
///
/// # Errors
/// No space in the tablespace, what a read met; nothing is done then.
pub(super) fn make_room<P: Pages>(pages: &P, position: Position<'_>) -> Result<()> {
    let mut spare = Vec::new();
    let done = loop {
        match attempt(pages, position, &mut spare) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    spare.drain(..).try_for_each(|page| pages.free(page)).and(done)
}

/// One round of steps 1 to 4; `false` when more levels turned out to be full than were thought.
fn attempt<P: Pages>(pages: &P, position: Position<'_>, spare: &mut Vec<PageId>) -> Result<bool> {
    let (plan, root_level, page_bytes) = look(pages, position)?;
    let (levels, new_pages) = match plan {
        Plan::Nothing => return Ok(true),
        Plan::Compact => (0, 0),
        // One more when the root splits: its content needs a place too.
        Plan::Split(levels) => (levels, levels + usize::from(levels > usize::from(root_level))),
    };
    while spare.len() < new_pages {
        spare.push(pages.allocate()?);
    }
    // Each split writes a new page and moves together an old one; the node above takes an entry, and may be moved together first.
    let mut change = pages.begin(levels + 1 + new_pages, (levels + 1 + new_pages) * (page_bytes + 64))?;
    let mut fences = Fences::default();
    let path = latch(pages, &mut change, position, levels as u8, |branch, index| {
        fences.narrow_high(branch, index);
    })?;
    let rightmost = fences.high.is_none();
    let plan = plan_for(&nodes(&change, &path), rightmost, position);
    let splits = match plan {
        Plan::Nothing => return Ok(true),
        Plan::Compact => {
            node::compact(&mut edit(&mut change, path.leaf));
            change.finish();
            return Ok(true);
        }
        Plan::Split(splits) if splits > levels => return Ok(false),
        Plan::Split(splits) => splits,
    };
    let points =
        [leaf_split_point(change.bytes(path.leaf), rightmost, position), branch_split_point(rightmost)];
    let root_splits = splits > path.above.len();
    let needed = splits + usize::from(root_splits);
    if needed > spare.len() {
        return Ok(false);
    }
    let fresh = format(pages, &mut change, &path, &spare[..needed], splits)?;
    split_levels(&mut change, &path, &fresh, splits, &points);
    change.finish();
    spare.drain(..needed);
    pages.count(Statistic::LeafNodeSplits);
    if points[0] == SplitPoint::Right {
        pages.count(Statistic::LeafNode9010Splits);
    }
    (1..splits).for_each(|_| pages.count(Statistic::BranchNodeSplits));
    Ok(true)
}

/// Step 1: what has to be done, the root's level, and the size of a page. The whole path stays latched meanwhile.
fn look<P: Pages>(pages: &P, position: Position<'_>) -> Result<(Plan, u8, usize)> {
    let goal = Goal::At(position);
    let mut fences = Fences::default();
    let mut path = Vec::new();
    let mut id = pages.root();
    let mut level = None;
    loop {
        let node = pages.read(id)?;
        expect_node(pages, id, &node, level)?;
        let here = node::level(&node);
        if here == 0 {
            path.push(node);
            break;
        }
        let index = goal.child(&node);
        fences.narrow_high(&node, index);
        id = node::child(&node, index);
        level = Some(here - 1);
        path.push(node);
    }
    let (root_level, page_bytes) = (node::level(&path[0]), path[0].len());
    let nodes: Vec<&[u8]> = path.iter().rev().map(|node| &**node).collect();
    Ok((plan_for(&nodes, fences.high.is_none(), position), root_level, page_bytes))
}

/// The latched part of a path, leaf first.
fn nodes<'c, C: Edit>(change: &'c C, path: &Latched) -> Vec<&'c [u8]> {
    std::iter::once(path.leaf)
        .chain(path.above.iter().map(|(node, _)| *node))
        .map(|node| change.bytes(node))
        .collect()
}

/// What has to be done on a path, leaf first. When it ends below the root and all of it is full, the result is one more than its
/// length would allow to carry out: the caller sees that it latched too little.
fn plan_for(nodes: &[&[u8]], rightmost: bool, position: Position<'_>) -> Plan {
    let leaf = nodes[0];
    let needed = node::room_for(node::leaf_entry_bytes(position.key));
    if node::gap(leaf) >= needed {
        return Plan::Nothing;
    }
    if node::free(leaf) >= needed {
        return Plan::Compact;
    }
    let at = node::split_index(leaf, leaf_split_point(leaf, rightmost, position));
    let first_right = node::position(leaf, at);
    let mut rising = node::branch_entry_bytes(node::separator(node::position(leaf, at - 1), first_right));
    for (level, branch) in nodes.iter().enumerate().skip(1) {
        if node::free(branch) >= node::room_for(rising) {
            return Plan::Split(level);
        }
        let at = node::split_index(branch, branch_split_point(rightmost));
        rising = node::entry(branch, at).len();
    }
    Plan::Split(nodes.len())
}

/// A leaf at the right edge that grows at its end will see no more entries: leave it full.
fn leaf_split_point(leaf: &[u8], rightmost: bool, position: Position<'_>) -> SplitPoint {
    let at_end = node::lower_bound(leaf, position) == node::count(leaf);
    if rightmost && at_end { SplitPoint::Right } else { SplitPoint::Middle }
}

/// Likewise a branch at the right edge: new children come at its end.
const fn branch_split_point(rightmost: bool) -> SplitPoint {
    if rightmost { SplitPoint::Right } else { SplitPoint::Middle }
}

/// Formats the new pages, the last thing that may fail: one for each level that splits, and one for the root's content.
fn format<P: Pages>(
    pages: &P,
    change: &mut P::Change,
    path: &Latched,
    ids: &[PageId],
    splits: usize,
) -> Result<Vec<Handle>> {
    let top = path.above.len();
    let kind_at = |index: usize| if index < splits { node::kind(index as u8) } else { node::kind(top as u8) };
    let kinds = (0..ids.len()).map(kind_at);
    ids.iter()
        .zip(kinds)
        .map(|(id, kind): (_, PageKind)| change.new_page(*id, kind, pages.object()))
        .collect()
}

/// Step 4; cannot fail. `fresh`: a page for each level that splits, and one more when the root does. `points`: where the leaf
/// splits, and where branches do.
fn split_levels<C: Edit>(
    change: &mut C,
    path: &Latched,
    fresh: &[Handle],
    splits: usize,
    points: &[SplitPoint; 2],
) {
    let mut nodes = vec![path.leaf];
    nodes.extend(path.above.iter().map(|(node, _)| *node));
    if let Some(below_root) = fresh.get(splits) {
        let root = nodes.pop().expect("the root is latched");
        push_down(change, root, *below_root);
        nodes.extend([*below_root, root]);
    }
    let mut rising: Option<(Fence, PageId)> = None;
    for (level, right) in fresh.iter().copied().take(splits).enumerate() {
        let (left, point) = (nodes[level], points[level.min(1)]);
        let bytes = change.bytes(left);
        let at = node::split_index(bytes, point);
        let (image, fence) = node::split(bytes, at);
        node::copy(&image, &mut edit(change, right));
        node::truncate(&mut edit(change, left), at);
        if point == SplitPoint::Middle {
            // Both halves will be filled; at the right edge the left one will not, and its holes may stay.
            node::compact(&mut edit(change, left));
        }
        if let Some((below, child)) = rising.replace((fence.clone(), change.id(right))) {
            let half = if below < fence { left } else { right };
            add_child(change, half, &below, child);
        }
    }
    let (fence, child) = rising.expect("at least the leaf splits");
    add_child(change, nodes[splits], &fence, child);
}

/// Moves the root's content to a page of its own, the root's only child from now on.
fn push_down<C: Edit>(change: &mut C, root: Handle, below: Handle) {
    let image = change.bytes(root).to_vec();
    node::copy(&image, &mut edit(change, below));
    let child = change.id(below);
    node::init(&mut edit(change, root), node::level(&image) + 1, Some(child));
}

fn add_child<C: Edit>(change: &mut C, branch: Handle, from: &Fence, child: PageId) {
    let entry = node::branch_entry(from.position(), child);
    let mut branch = edit(change, branch);
    if node::gap(branch.bytes()) < node::room_for(entry.len()) {
        node::compact(&mut branch);
    }
    let index = node::lower_bound(branch.bytes(), from.position());
    node::insert(&mut branch, index, &entry);
}
