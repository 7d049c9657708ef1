//! What must be true of pages when no transaction goes on and everything is purged: nothing is left over.

use crate::Context;
use crate::btree;
use crate::heap::audit::{PageCounts, count_pieces};
use crate::instance::Core;
use crate::page::PageId;
use crate::session::Session;
use crate::space::Segment;
use crate::transaction::Transactions;
use crate::transaction::undo_page::{self, UndoHeader};
use std::collections::BTreeSet;

/// Of the table `t` and of undo.
pub fn nothing_is_left_over(session: &Session, rows: usize) {
    let (core, context) = (session.core(), session.context());
    assert_eq!(core.transactions.history_length(), 0, "transactions that are not purged");
    let table = session.table("t").unwrap();
    for index in &table.indexes {
        let structure = btree::check(core, context, &index.segment).unwrap();
        assert_eq!(structure.problems, Vec::<String>::new());
        assert_eq!(structure.entries, rows as u64, "entries of {}", index.name);
    }
    let mut counts = PageCounts::default();
    for page in pages(core, context, &table.segment) {
        let bytes = core.cache.read(core, context, page).unwrap();
        count_pieces(&bytes, table.segment.object, &mut counts);
    }
    assert_eq!(counts.live, rows, "live rows by the pages' own count");
    assert_eq!((counts.rows, counts.deleted), (rows, 0), "rows, deleted rows");
    assert_eq!(counts.forwards, counts.migrated, "moved rows and their contents");
    every_undo_page_is_somewhere(core, context, &core.transactions);
}

fn pages(core: &Core, context: &Context, segment: &Segment) -> Vec<PageId> {
    let runs = core.space.runs(core, context, segment).unwrap();
    runs.into_iter()
        .flat_map(|(first, n)| (0..n).map(move |i| PageId { block: first.block + i, ..first }))
        .collect()
}

/// Each page that the space gave is a header, in one chain, or in one free list; and chains are one page long.
fn every_undo_page_is_somewhere(core: &Core, context: &Context, transactions: &Transactions) {
    let segments: Vec<_> = {
        let table = transactions.shared.table();
        table.streams.segments.iter().map(|slots| slots.segment.clone()).collect()
    };
    let mut given = BTreeSet::new();
    let mut found = BTreeSet::new();
    let mut add =
        |page: PageId, what: &str| assert!(found.insert(page), "{page} is {what}, and something else");
    for segment in segments {
        let header = core.cache.read(core, context, segment.header).unwrap().to_vec();
        let fields = UndoHeader::read(&header);
        given.extend(pages(core, context, segment.space()));
        add(segment.header, "a header");
        for slot in 0..undo_page::slots(&header) {
            let entry = undo_page::slot(&header, slot).unwrap();
            if !entry.tail.is_some() {
                continue;
            }
            let mut at = entry.head;
            while at != entry.tail {
                add(at, "in a chain");
                at = undo_page::next(&core.cache.read(core, context, at).unwrap());
            }
            add(at, "a tail");
        }
        let (mut at, mut free) = (fields.free_list, 0);
        while at.is_some() {
            add(at, "free");
            free += 1;
            at = undo_page::next(&core.cache.read(core, context, at).unwrap());
        }
        assert_eq!(free, fields.free, "free pages of a segment");
    }
    assert_eq!(given, found, "pages that the space gave, and pages that undo knows");
}
