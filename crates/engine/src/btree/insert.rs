//! Entries come in.

use super::descend::{Fences, expect_key_fits, latch, latch_node};
use super::node::{self, Position};
use super::pages::{Edit, Pages, edit, expect_node};
use super::split::make_room;
use crate::Result;
use crate::change::Handle;
use crate::page::PageId;
use crate::transaction::Xid;
use crate::value::RowId;

/// What to do about the rows that an index has for a key already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// None of them stands in the way.
    Proceed,
    /// One of them may, when this transaction ends one way and not the other.
    WaitFor(Xid),
    /// One of them has the key.
    Duplicate,
}

/// Edits of an entry beside its own bytes: slot, shift of the slots, header, with 8 bytes for each edit.
const INSERT_BYTES: usize = 64;

/// Adds an entry where there is none.
///
/// First the leaf alone is latched for changing; when it is full, room is made by a change of its own ([`make_room`]) and the
/// way begins anew. So a split and the entry that caused it are two redo records: a crash between them leaves a tree with
/// a little more room.
pub(super) fn insert<P: Pages>(pages: &P, key: &[u8], row: RowId) -> Result<()> {
    let position = Position::of(key, row);
    loop {
        let mut change = begin(pages, key, row)?;
        let leaf = latch(pages, &mut change, position, 0, |_, _| {})?.leaf;
        if insert_here(pages, change, leaf, position)? {
            return Ok(());
        }
        make_room(pages, position)?;
    }
}

fn begin<P: Pages>(pages: &P, key: &[u8], row: RowId) -> Result<P::Change> {
    let (undo_pages, undo_bytes) = pages.reserve_undo(key, row)?;
    pages.begin(1 + undo_pages, INSERT_BYTES + node::leaf_entry_bytes(key) + undo_bytes)
}

/// Ends the change with the entry in the leaf; `false` when there is no room, and nothing was done.
fn insert_here<P: Pages>(
    pages: &P,
    mut change: P::Change,
    leaf: Handle,
    position: Position<'_>,
) -> Result<bool> {
    let bytes = change.bytes(leaf);
    expect_key_fits(position.key, bytes)?;
    let index = node::lower_bound(bytes, position);
    if index < node::count(bytes) && node::position(bytes, index) == position {
        return Ok(true);
    }
    if node::gap(bytes) < node::room_for(node::leaf_entry_bytes(position.key)) {
        return Ok(false);
    }
    // 1. latch the undo pages: the last thing that may fail, and nothing is edited yet. 2. the undo record. 3. the entry. Both
    // are one redo record, so after a crash there is the entry with what takes it back, or neither.
    let undo = pages.latch_undo(&mut change)?;
    pages.write_undo(&mut change, undo, position.key, node::row_id(position.row));
    node::insert(&mut edit(&mut change, leaf), index, &node::leaf_entry(position));
    change.finish();
    Ok(true)
}

/// Asks `judge` about the other rows that the index has for the key (not when there are none), and adds the entry when it says
/// so. Nobody else adds an entry with this key between the question and the entry.
///
/// What makes it atomic: all entries of a key lie in one leaf, but for very many of them, and it is latched for changing from
/// before the question until after the entry. Where they go beyond the leaf, [`insert_unique_spanning`] is asked.
pub(super) fn insert_unique<P: Pages>(
    pages: &P,
    key: &[u8],
    row: RowId,
    judge: &mut dyn FnMut(&[RowId]) -> Result<Judgement>,
) -> Result<Judgement> {
    loop {
        let mut change = begin(pages, key, row)?;
        let mut fences = Fences::default();
        let first = Position::before(key);
        let leaf =
            latch(pages, &mut change, first, 0, |branch, index| fences.narrow_high(branch, index))?.leaf;
        if !fences.end_after(key) {
            drop(change);
            return insert_unique_spanning(pages, key, row, judge);
        }
        let mut rows = Vec::new();
        collect(change.bytes(leaf), key, row, &mut rows);
        let verdict = if rows.is_empty() { Judgement::Proceed } else { judge(&rows)? };
        if verdict != Judgement::Proceed || insert_here(pages, change, leaf, Position::of(key, row))? {
            return Ok(verdict);
        }
        make_room(pages, Position::of(key, row))?;
    }
}

/// The rows of `key` in a leaf, but for `own`.
fn collect(leaf: &[u8], key: &[u8], own: RowId, rows: &mut Vec<RowId>) {
    for index in node::lower_bound(leaf, Position::before(key))..node::count(leaf) {
        let position = node::position(leaf, index);
        if position.key != key {
            break;
        }
        let row = node::row_id(position.row);
        if row != own {
            rows.push(row);
        }
    }
}

/// As [`insert_unique`], when entries of the key fill more than a leaf: a row that was deleted and inserted hundreds of times
/// before purge came by.
///
/// The root stays latched for changing, so nobody new enters the tree. Those who are inside already are waited for: each node
/// that may hold the key, or lead to it, is latched for changing once, top down; who was on the way there has done its
/// work by then. So the tree's entries of this key are ours alone until the end. It stops everybody for some pages' time,
/// which is bearable because it is rare.
fn insert_unique_spanning<P: Pages>(
    pages: &P,
    key: &[u8],
    row: RowId,
    judge: &mut dyn FnMut(&[RowId]) -> Result<Judgement>,
) -> Result<Judgement> {
    let position = Position::of(key, row);
    loop {
        let mut change = begin(pages, key, row)?;
        let root = change.page(pages.root())?;
        expect_node(pages, pages.root(), change.bytes(root), None)?;
        let mut rows = Vec::new();
        collect_below(pages, &mut change, root, key, row, &mut rows)?;
        let verdict = judge(&rows)?;
        if verdict != Judgement::Proceed {
            return Ok(verdict);
        }
        let mut here = root;
        while let level @ 1.. = node::level(change.bytes(here)) {
            let branch = change.bytes(here);
            let child = node::child(branch, node::upper_bound(branch, position));
            here = latch_node(pages, &mut change, child, level - 1)?;
        }
        if insert_here(pages, change, here, position)? {
            return Ok(verdict);
        }
        make_room(pages, position)?;
    }
}

/// Latches what may hold the key below `node`, one after the other, and collects its rows.
fn collect_below<P: Pages>(
    pages: &P,
    change: &mut P::Change,
    node: Handle,
    key: &[u8],
    own: RowId,
    rows: &mut Vec<RowId>,
) -> Result<()> {
    let branch = change.bytes(node);
    let below = node::level(branch) - 1;
    let first = node::upper_bound(branch, Position::before(key));
    let last = node::upper_bound(branch, Position::after(key));
    let children: Vec<PageId> = (first..=last).map(|index| node::child(branch, index)).collect();
    for child in children {
        let handle = latch_node(pages, change, child, below)?;
        if below == 0 {
            collect(change.bytes(handle), key, own, rows);
        } else {
            collect_below(pages, change, handle, key, own, rows)?;
        }
        change.release(handle);
    }
    Ok(())
}
