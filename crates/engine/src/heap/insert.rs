//! Insert: as many rows in one change as fit a page, with one undo record.

use super::page::{FIRST, Head, RowHeader, is_heap_of};
use super::pieces::Pieces;
use super::target::{self, Target};
use super::{damaged, layout};
use crate::change::{Change, Handle};
use crate::instance::Core;
use crate::page::PageKind;
use crate::space::Segment;
use crate::transaction::edit::Latched;
use crate::transaction::{Runs, Transaction, Undo, UndoPages, Xid};
use crate::value::RowId;
use crate::{Context, Result};
use layout::{Plan, RUNS_MAX};

/// Inserts all the pieces that are left, as many in one change as fit a page. `inserted` is told each row's address, in
/// order.
///
/// # Errors
/// [`crate::EngineError::TablespaceFull`], what storage says. Rows told to `inserted` are there.
pub fn insert(
    core: &Core,
    context: &Context,
    segment: &Segment,
    transaction: &mut Transaction,
    pieces: &mut Pieces,
    inserted: &mut dyn FnMut(RowId),
) -> Result<()> {
    while !pieces.left().is_empty() {
        let (target, plan) = insert_into_page(core, context, segment, transaction, pieces)?;
        plan.slots().for_each(|slot| inserted(RowId { page: target.page, slot }));
    }
    Ok(())
}

/// Inserts the first of the pieces into one page.
fn insert_into_page(
    core: &Core,
    context: &Context,
    segment: &Segment,
    transaction: &mut Transaction,
    pieces: &mut Pieces,
) -> Result<(Target, Plan)> {
    let page_bytes = transaction.stream().segment().page_bytes();
    let undo = Undo::Insert { object: segment.object, page: segment.header, runs: Runs(&[0; 4 * RUNS_MAX]) };
    let undo_bytes = undo.bytes();
    // The pieces, and at worst a compacted page: its directory, and a move for each piece.
    let bytes =
        pieces.left_bytes().min(page_bytes) + page_bytes + 256 + Transaction::change_bytes(undo_bytes);
    loop {
        let target = target::get(core, context, segment, transaction, pieces.left()[0])?;
        transaction.reserve(core, context, undo_bytes)?;
        let mut change = Change::begin(core, context, 1 + Transaction::CHANGE_PAGES, bytes)?;
        let (page, plan, pages) = if target.fresh {
            let pages = transaction.latch(&mut change)?;
            // After undo: nobody else latches this page, see `target`.
            let page = change.new_page(target.page, PageKind::Heap, segment.object)?;
            layout::init(&mut Latched::new(&mut change, page));
            (page, plan(&change, page, pieces), pages)
        } else {
            let page = change.page(target.page)?;
            if !is_heap_of(change.bytes(page), segment.object) {
                if target.was_used() {
                    return Err(damaged(core, target.page, format!("rows of object {}", segment.object)));
                }
                target::is_fresh(transaction, target);
                continue;
            }
            let plan = plan(&change, page, pieces);
            if plan.rows == 0 {
                let free = Head::read(change.bytes(page)).free();
                drop(change);
                target::leave(core, segment, transaction, target, free);
                continue;
            }
            (page, plan, transaction.latch(&mut change)?)
        };
        assert!(plan.rows > 0, "a row of at most the longest content fits an empty page");
        let free = write(core, segment, transaction, change, (page, pages), &plan, pieces);
        target::took(transaction, target, free);
        return Ok((target, plan));
    }
}

fn plan(change: &Change<'_>, page: Handle, pieces: &Pieces) -> Plan {
    let page = change.bytes(page);
    layout::plan(page, pieces.left().iter().copied(), target::spare(page.len()))
}

/// Undo record and rows, in one redo record. Returns what is free in the page then.
fn write(
    core: &Core,
    segment: &Segment,
    transaction: &mut Transaction,
    mut change: Change<'_>,
    (page, pages): (Handle, UndoPages),
    plan: &Plan,
    pieces: &mut Pieces,
) -> usize {
    let is_active = |xid: Xid| core.transactions.is_active(xid);
    let header = RowHeader { flags: FIRST, xid: transaction.xid, undo: transaction.next_number() };
    let runs = Runs::encode(&plan.runs);
    let undo = Undo::Insert { object: segment.object, page: change.id(page), runs: Runs(&runs) };
    transaction.write(&mut change, pages, &undo);
    let (bytes, capacities) = pieces.take(plan.rows, header);
    let mut latched = Latched::new(&mut change, page);
    layout::insert(&mut latched, plan, bytes, capacities, header.xid, &is_active);
    let free = Head::read(change.bytes(page)).free();
    change.finish();
    free
}
