//! Many threads in one tree.

use super::*;
use crate::btree::insert::{Judgement, insert, insert_unique};
use crate::btree::remove::remove;
use crate::btree::scan::{Cursor, rows_with_key};
use std::ops::Bound;
use std::sync::Barrier;
use std::thread;
use units::{Rng, Seed};

pub(super) const THREADS: u64 = 6;
const STEPS: u64 = 6_000;

/// Each thread has rows of its own among keys that all share, and knows what must be there.
#[test]
fn each_thread_finds_what_it_put_there() {
    let store = Store::with_tree(2048, true);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = store.clone();
            scope.spawn(move || one_thread(&store, thread));
        }
        for descending in [false, true] {
            let store = store.clone();
            scope.spawn(move || (0..30).for_each(|_| one_scan(&store, descending)));
        }
    });
    store.assert_sound();
}

pub(super) fn one_thread<P: Pages>(store: &P, thread: u64) {
    let mut rng = Rng::new(Seed(thread));
    let mine = row(thread + 1);
    let mut there = BTreeSet::new();
    for step in 0..STEPS {
        let key = rng.below(3000);
        let removing = if (step / 1000) % 2 == 1 { 9 } else { 3 };
        if rng.below(10) < removing {
            let near = there.range(key..).next().copied().unwrap_or(key);
            remove(store, &near.to_be_bytes(), mine).expect("nothing fails");
            there.remove(&near);
        } else {
            insert(store, &key.to_be_bytes(), mine).expect("nothing fails");
            there.insert(key);
        }
        if step % 64 == 0 {
            let rows = rows_with_key(store, &key.to_be_bytes()).expect("nothing fails");
            assert_eq!(rows.contains(&mine), there.contains(&key));
            assert!(rows.is_sorted_by(|a, b| a < b));
        }
    }
    let mut cursor = Cursor::new(Bound::Unbounded, Bound::Unbounded, thread.is_multiple_of(2));
    let mut found = BTreeSet::new();
    while let Some((key, row)) = cursor.next(store).expect("nothing fails") {
        if row == mine {
            assert!(found.insert(u64::from_be_bytes(key.try_into().expect("8 bytes"))), "given twice");
        }
    }
    assert_eq!(found, there);
}

pub(super) fn one_scan<P: Pages>(store: &P, descending: bool) {
    let mut cursor = Cursor::new(Bound::Unbounded, Bound::Unbounded, descending);
    let mut before: Option<Vec<u8>> = None;
    while let Some((key, row)) = cursor.next(store).expect("nothing fails") {
        let mut here = key.to_vec();
        here.extend_from_slice(&node::row_number(row).to_be_bytes());
        if let Some(before) = before {
            assert!(if descending { before > here } else { before < here });
        }
        before = Some(here);
    }
}

/// Of many who want a key at once, one gets it; also when its dead rows fill several leaves.
#[test]
fn a_unique_key_is_given_once() {
    const KEYS: u64 = 400;
    let crowded = |key: u64| key.is_multiple_of(8);
    let store = Store::with_tree(2048, false);
    for key in 0..KEYS {
        // A leaf has room for some hundred.
        for dead in 0..if crowded(key) { 130 } else { key % 3 } {
            insert(&store, &key.to_be_bytes(), row(10_000 + dead)).expect("nothing fails");
        }
    }
    let together = Barrier::new(THREADS as usize);
    let wins: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (store, together) = (store.clone(), &together);
                scope.spawn(move || {
                    let wins = |key: &u64| {
                        together.wait();
                        wants(&store, *key, thread)
                    };
                    (0..KEYS).filter(wins).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut all: Vec<u64> = wins.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..KEYS));
    store.assert_sound();
}

/// Rows from 10 000 on are dead; any other is alive.
fn wants(store: &Arc<Store>, key: u64, thread: u64) -> bool {
    let mine = row(100 + thread);
    let alive = |rows: &[RowId]| rows.iter().any(|other| *other < row(10_000));
    let verdict = insert_unique(store, &key.to_be_bytes(), mine, &mut |rows| {
        Ok(if alive(rows) { Judgement::Duplicate } else { Judgement::Proceed })
    });
    verdict.expect("nothing fails") == Judgement::Proceed
}
