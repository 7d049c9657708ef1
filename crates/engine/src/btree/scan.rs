//! Reading entries: all rows of a key, and ranges in both directions.
//!
//! A range scan copies a leaf's part of the range at a time and holds no latch between calls. What is left of the range begins (or
//! ends) at the bound of the leaf that was read last, a position, not an address: however leaves split or vanish meanwhile, the
//! way down to that position finds what comes next. So leaves need no links to their neighbours, a split changes no third
//! leaf, and backwards is as easy as forwards.
//!
//! Going through the root for each leaf is spared by a [`Hook`]: the parent of the last leaf, as long as its LSN says that it is
//! unchanged, knows the next one. It also knows which leaves come after that: a scan that goes on has them read together.

use super::descend::{Fences, Goal, Hook, descend};
use super::node::{self, Fence, Position};
use super::pages::{Pages, expect_node};
use crate::Result;
use crate::page::{self, PageId};
use crate::value::RowId;
use std::ops::{Bound, Range};

/// Leaves that are read ahead at once, at most.
const PREFETCH_MAX: usize = 32;

/// All rows of a key, in the order of their addresses.
pub(super) fn rows_with_key<P: Pages>(pages: &P, key: &[u8]) -> Result<Vec<RowId>> {
    let mut rows = Vec::new();
    let mut from = Fence::from(Position::before(key));
    loop {
        let mut fences = Fences::default();
        let goal = Goal::At(from.position());
        let leaf = descend(pages, goal, |_, branch, index| fences.narrow_high(branch, index))?;
        for index in part(&leaf, Some(&from), fences.high.as_ref()) {
            let position = node::position(&leaf, index);
            if position.key != key {
                return Ok(rows);
            }
            rows.push(node::row_id(position.row));
        }
        match fences.high {
            Some(high) if high.key == key => from = high,
            _ => return Ok(rows),
        }
    }
}

/// What is left of a range, and the entries of one leaf.
pub(super) struct Cursor {
    /// From here; none is the beginning.
    from: Option<Fence>,
    /// Up to here, exclusively; none is the end.
    to: Option<Fence>,
    descending: bool,
    done: bool,
    /// Copied entries, in the order in which they are given: row, key length, key.
    entries: Vec<u8>,
    at: usize,
    hook: Option<Hook>,
    /// Leaves to read ahead next time; grows while the scan goes on.
    ahead: usize,
    /// Leaves that are still to come of those read ahead.
    fetched: usize,
}

impl Cursor {
    pub fn new(from: Bound<Vec<u8>>, to: Bound<Vec<u8>>, descending: bool) -> Self {
        let from = match from {
            Bound::Included(key) => Some(Fence { key, row: 0 }),
            Bound::Excluded(key) => Some(Fence { key, row: Position::LAST_ROW }),
            Bound::Unbounded => None,
        };
        let to = match to {
            Bound::Included(key) => Some(Fence { key, row: Position::LAST_ROW }),
            Bound::Excluded(key) => Some(Fence { key, row: 0 }),
            Bound::Unbounded => None,
        };
        let done = matches!((&from, &to), (Some(from), Some(to)) if from >= to);
        let (entries, hook) = (Vec::new(), None);
        Self { from, to, descending, done, entries, at: 0, hook, ahead: 0, fetched: 0 }
    }

    /// The next entry.
    pub fn next<P: Pages>(&mut self, pages: &P) -> Result<Option<(&[u8], RowId)>> {
        while self.at == self.entries.len() {
            if self.done {
                return Ok(None);
            }
            self.load(pages)?;
        }
        let row = page::get_u64(&self.entries, self.at);
        let key_bytes = usize::from(page::get_u16(&self.entries, self.at + 8));
        let key_at = self.at + 10;
        self.at = key_at + key_bytes;
        Ok(Some((&self.entries[key_at..self.at], node::row_id(row))))
    }

    /// Reads the next leaf.
    fn load<P: Pages>(&mut self, pages: &P) -> Result<()> {
        self.entries.clear();
        self.at = 0;
        let (leaf, fences) = match self.neighbour(pages)? {
            Some(found) => found,
            None => self.seek(pages)?,
        };
        self.copy(&leaf, &fences);
        drop(leaf);
        self.advance(fences);
        Ok(())
    }

    /// The leaf from the root down, and its bounds.
    fn seek<P: Pages>(&mut self, pages: &P) -> Result<(P::Read, Fences)> {
        let goal = match (self.descending, &self.from, &self.to) {
            (false, Some(from), _) => Goal::At(from.position()),
            (false, None, _) => Goal::First,
            (true, _, Some(to)) => Goal::Before(to.position()),
            (true, _, None) => Goal::Last,
        };
        let mut fences = Fences::default();
        let mut hook = None;
        let leaf = descend(pages, goal, |id, branch, index| {
            if node::level(branch) == 1 {
                hook = Some(Hook { parent: id, lsn: page::lsn(branch), index, fences: fences.clone() });
            }
            fences.narrow(branch, index);
        })?;
        self.hook = hook;
        self.fetched = 0;
        Ok((leaf, fences))
    }

    /// The leaf beside the last one, by way of their parent; none when that has changed, or has no more.
    ///
    /// A parent that was taken out of the tree keeps its LSN, but it had one child only, so it has no neighbour to give.
    fn neighbour<P: Pages>(&mut self, pages: &P) -> Result<Option<(P::Read, Fences)>> {
        loop {
            let Some(hook) = &mut self.hook else { return Ok(None) };
            let branch = pages.read(hook.parent)?;
            let next = if self.descending { hook.index.checked_sub(1) } else { Some(hook.index + 1) };
            let changed =
                page::lsn(&branch) != hook.lsn || expect_node(pages, hook.parent, &branch, Some(1)).is_err();
            let Some(index) = next.filter(|index| !changed && *index <= node::count(&branch)) else {
                self.hook = None;
                return Ok(None);
            };
            if self.fetched == 0 {
                let wanted = wanted(&branch, index, self.descending, &self.from, &self.to, self.ahead);
                self.ahead = (self.ahead * 2).clamp(2, PREFETCH_MAX);
                self.fetched = wanted.len().max(1);
                if wanted.len() > 1 {
                    // Reading takes its time, so nothing is held meanwhile; then the parent is looked at again.
                    drop(branch);
                    pages.prefetch(&wanted)?;
                    continue;
                }
            }
            self.fetched -= 1;
            let leaf = pages.read(node::child(&branch, index))?;
            expect_node(pages, node::child(&branch, index), &leaf, Some(0))?;
            let mut fences = hook.fences.clone();
            fences.narrow(&branch, index);
            hook.index = index;
            return Ok(Some((leaf, fences)));
        }
    }

    /// Copies the part of the range that the leaf has.
    fn copy(&mut self, leaf: &[u8], fences: &Fences) {
        let from = self.from.as_ref().max(fences.low.as_ref());
        let to = match (&self.to, &fences.high) {
            (Some(to), Some(high)) => Some(to.min(high)),
            (to, high) => to.as_ref().or(high.as_ref()),
        };
        let mut push = |index: usize| {
            let position = node::position(leaf, index);
            self.entries.extend_from_slice(&position.row.to_le_bytes());
            self.entries.extend_from_slice(&(position.key.len() as u16).to_le_bytes());
            self.entries.extend_from_slice(position.key);
        };
        if self.descending {
            part(leaf, from, to).rev().for_each(&mut push);
        } else {
            part(leaf, from, to).for_each(&mut push);
        }
    }

    /// Takes what the leaf could have had off the range.
    fn advance(&mut self, fences: Fences) {
        let (bound, end) =
            if self.descending { (fences.low, &mut self.to) } else { (fences.high, &mut self.from) };
        match bound {
            Some(bound) => *end = Some(bound),
            None => self.done = true,
        }
        self.done |= matches!((&self.from, &self.to), (Some(from), Some(to)) if from >= to);
    }
}

/// The entries of a leaf from one position to another.
///
/// Also where the leaf's bound is one of them, it is asked for: the leaf may have inherited the range of a neighbour that
/// left the tree after the bound was learnt, and what lies there is still to come.
fn part(leaf: &[u8], from: Option<&Fence>, to: Option<&Fence>) -> Range<usize> {
    let bound = |fence: Option<&Fence>, unbounded| {
        fence.map_or(unbounded, |fence| node::lower_bound(leaf, fence.position()))
    };
    let end = bound(to, node::count(leaf));
    bound(from, 0).min(end)..end
}

/// The leaves that a scan will come to below this parent, from child `index` on, at most `max`.
fn wanted(
    branch: &[u8],
    index: usize,
    descending: bool,
    from: &Option<Fence>,
    to: &Option<Fence>,
    max: usize,
) -> Vec<PageId> {
    let child = |index| node::child(branch, index);
    if descending {
        let last = from.as_ref().map_or(0, |from| node::upper_bound(branch, from.position()));
        (last..=index).rev().take(max).map(child).collect()
    } else {
        let last = to.as_ref().map_or(node::count(branch), |to| node::lower_bound(branch, to.position()));
        (index..=last).take(max).map(child).collect()
    }
}
