//! Every call to the floors below fails once, at every place: the tree stays sound, and what was there stays.

use super::*;
use crate::btree::insert::{Judgement, insert, insert_unique};
use crate::btree::remove::remove;
use crate::btree::scan::{Cursor, rows_with_key};
use std::ops::Bound;

/// Alike for long, so that branches hold few children and the tree is high.
fn key(n: u64) -> Vec<u8> {
    let mut key = vec![7; 150];
    key.extend_from_slice(&n.to_be_bytes());
    key
}

/// Runs `act` with the first call failing, then the second …, until it ends without meeting a failure. The tree must be sound after
/// each, and free pages must not be lost but for a failure to free them.
fn fail_everywhere(store: &Arc<Store>, what: &str, act: impl Fn() -> Result<()>) -> i64 {
    for place in 0.. {
        store.fail_in.store(place, Ordering::Relaxed);
        let result = act();
        let met = store.fail_in.swap(-1, Ordering::Relaxed) < 0;
        let structure = super::super::check::check(store).expect("nothing fails");
        assert_eq!(structure.problems, Vec::<String>::new(), "{what} {place}");
        assert_eq!(HELD.get(), 0, "{what} {place}: a latch is left");
        if !met {
            assert!(result.is_ok());
            return place;
        }
    }
    unreachable!()
}

fn entries(store: &Arc<Store>) -> Vec<(Vec<u8>, RowId)> {
    let mut cursor = Cursor::new(Bound::Unbounded, Bound::Unbounded, false);
    let mut found = Vec::new();
    while let Some((key, row)) = cursor.next(store).expect("nothing fails") {
        found.push((key.to_vec(), row));
    }
    found
}

#[test]
fn a_failed_insert_leaves_the_tree_as_it_was() {
    let store = Store::with_tree(2048, false);
    let mut places = Vec::new();
    let mut model = BTreeSet::new();
    for n in 0..600 {
        let key = key(n * 7919 % 600);
        places.push(fail_everywhere(&store, "insert", || {
            let before = entries_quietly(&store);
            let result = insert(&store, &key, row(1));
            if result.is_err() {
                assert_eq!(entries_quietly(&store), before);
            }
            result
        }));
        model.insert((key, row(1)));
    }
    assert!(entries(&store).into_iter().eq(model));
    let most = places.iter().max().expect("some");
    assert!(*most > 15, "splits of several levels were among them: {most}");
}

/// The number of entries, without counting down to the next failure.
fn entries_quietly(store: &Arc<Store>) -> usize {
    let fail_in = store.fail_in.swap(-1, Ordering::Relaxed);
    let count = entries(store).len();
    store.fail_in.store(fail_in, Ordering::Relaxed);
    count
}

#[test]
fn a_failed_removal_leaves_a_sound_tree() {
    let store = Store::with_tree(2048, false);
    for n in 0..600 {
        insert(&store, &key(n), row(1)).expect("nothing fails");
    }
    for n in 0..600 {
        let key = key(n * 7919 % 600);
        fail_everywhere(&store, "remove", || remove(&store, &key, row(1)));
        assert_eq!(rows_with_key(&store, &key).expect("nothing fails"), []);
    }
    let structure = super::super::check::check(&store).expect("nothing fails");
    assert_eq!(structure.entries, 0);
}

#[test]
fn failed_scans_and_unique_inserts_hold_nothing() {
    let store = Store::with_tree(2048, false);
    for n in 0..900 {
        insert(&store, &key(n / 3), row(n)).expect("nothing fails");
    }
    for descending in [false, true] {
        fail_everywhere(&store, "scan", || {
            let mut cursor = Cursor::new(Bound::Included(key(20)), Bound::Unbounded, descending);
            while cursor.next(&store)?.is_some() {}
            Ok(())
        });
    }
    for r in 0..40 {
        fail_everywhere(&store, "insert_unique", || {
            insert_unique(&store, &key(150), row(5000 + r), &mut |_| Ok(Judgement::Proceed)).map(|_| ())
        });
    }
    assert_eq!(rows_with_key(&store, &key(150)).expect("nothing fails").len(), 43);
    let judged = insert_unique(&store, &key(150), row(1), &mut |_| Err(EngineError::ShuttingDown));
    assert!(matches!(judged, Err(EngineError::ShuttingDown)));
    assert_eq!(HELD.get(), 0);
}

#[test]
fn a_failed_build_says_so() {
    let build = |fail_in: i64| {
        let store = Store::new(2048, false);
        store.fail_in.store(fail_in, Ordering::Relaxed);
        let mut entries = (0..300).map(|n| Ok((key(n), row(1))));
        crate::btree::build::build(&store, 2048, &mut entries).is_ok()
    };
    assert!(build(-1));
    let first_good = (0..).find(|fail_in| build(*fail_in)).expect("at last nothing is left to fail");
    assert!(first_good > 30);
}
