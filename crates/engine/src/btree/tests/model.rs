//! Trees against `BTreeSet`, with chance from a seed.

use super::*;
use crate::btree::insert::{Judgement, insert, insert_unique};
use crate::btree::remove::remove;
use crate::btree::scan::{Cursor, rows_with_key};
use std::ops::Bound;
use units::{Rng, Seed};

type Entry = (Vec<u8>, RowId);

fn range_of(store: &Arc<Store>, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>, descending: bool) -> Vec<Entry> {
    let mut cursor = Cursor::new(from.clone(), to.clone(), descending);
    let mut found = Vec::new();
    while let Some((key, row)) = cursor.next(store).expect("nothing fails") {
        found.push((key.to_vec(), row));
    }
    found
}

fn contains(from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>, key: &Vec<u8>) -> bool {
    std::ops::RangeBounds::contains(&(from.clone(), to.clone()), key)
}

/// How keys look in one run.
#[derive(Clone, Copy, Debug)]
struct Shape {
    keys: u64,
    rows: u64,
    key_bytes_max: u64,
}

fn any_key(rng: &mut Rng, shape: Shape) -> Vec<u8> {
    let n = rng.below(shape.keys);
    let mut key = n.to_be_bytes()[5..].to_vec();
    // The length belongs to the key, so that the same number is the same key.
    let tail = n.wrapping_mul(0x9E37_79B9) % (shape.key_bytes_max + 1);
    key.resize(3 + tail as usize, n as u8);
    key
}

fn any_bound(rng: &mut Rng, shape: Shape) -> Bound<Vec<u8>> {
    match rng.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(any_key(rng, shape)),
        _ => Bound::Excluded(any_key(rng, shape)),
    }
}

fn compare_ranges(store: &Arc<Store>, model: &BTreeSet<Entry>, rng: &mut Rng, shape: Shape) {
    for descending in [false, true] {
        let (from, to) = (any_bound(rng, shape), any_bound(rng, shape));
        let mut wanted: Vec<_> = model.iter().filter(|(key, _)| contains(&from, &to, key)).cloned().collect();
        if descending {
            wanted.reverse();
        }
        let found = range_of(store, &from, &to, descending);
        assert!(found == wanted, "{from:x?} {to:x?} {descending}: {} {}", found.len(), wanted.len());
    }
    let key = any_key(rng, shape);
    let wanted: Vec<_> = model.iter().filter(|(k, _)| *k == key).map(|(_, row)| *row).collect();
    assert_eq!(rows_with_key(store, &key).expect("nothing fails"), wanted);
}

fn run(seed: u64, page_bytes: usize, shape: Shape, steps: u64) {
    let mut rng = Rng::new(Seed(seed));
    let store = Store::with_tree(page_bytes, true);
    let mut model: BTreeSet<Entry> = BTreeSet::new();
    let mut undone = 0;
    for step in 0..steps {
        // Phases of growth and of shrinking, so that leaves empty and levels come.
        let removing = if (step / (steps / 6)) % 2 == 1 { 8 } else { 2 };
        let key = any_key(&mut rng, shape);
        let row = row(rng.below(shape.rows));
        if rng.below(10) < removing && !model.is_empty() {
            let some = model.range((key.clone(), row)..).next().cloned().unwrap_or((key, row));
            remove(&store, &some.0, some.1).expect("nothing fails");
            model.remove(&some);
        } else {
            insert(&store, &key, row).expect("nothing fails");
            undone += usize::from(model.insert((key, row)));
        }
        if step % (steps / 60) == 0 {
            compare_ranges(&store, &model, &mut rng, shape);
            assert_eq!(store.assert_sound().entries, model.len() as u64);
        }
    }
    assert_eq!(store.undo.lock().len(), undone, "an undo record for each new entry and none else");
    let all = range_of(&store, &Bound::Unbounded, &Bound::Unbounded, false);
    assert!(all.iter().eq(model.iter()));
    for (key, row) in all {
        remove(&store, &key, row).expect("nothing fails");
    }
    let left = store.assert_sound();
    assert_eq!((left.entries, left.leaves), (0, 1), "an empty tree has one leaf");
}

#[test]
fn a_tree_is_a_sorted_set() {
    for (seed, page_bytes, shape) in [
        (1, 2048, Shape { keys: 1 << 20, rows: 4, key_bytes_max: 20 }),
        (2, 2048, Shape { keys: 300, rows: 1 << 30, key_bytes_max: 8 }),
        (3, 2048, Shape { keys: 5000, rows: 2, key_bytes_max: 400 }),
        (4, 8192, Shape { keys: 1 << 22, rows: 2, key_bytes_max: 0 }),
    ] {
        run(seed, page_bytes, shape, 12_000);
    }
}

#[test]
fn ascending_keys_leave_full_leaves_and_descending_ones_half_full() {
    let fill = |numbers: &mut dyn Iterator<Item = u64>| {
        let store = Store::with_tree(8192, false);
        for n in numbers {
            insert(&store, &n.to_be_bytes(), row(n)).expect("nothing fails");
        }
        let structure = store.assert_sound();
        (structure.leaf_bytes_used as f64 / structure.leaf_bytes as f64, structure.height)
    };
    let (ascending, height) = fill(&mut (0..50_000));
    assert!((0.87..0.95).contains(&ascending), "{ascending}");
    assert_eq!(height, 2);
    let (descending, _) = fill(&mut (0..50_000).rev());
    assert!((0.45..0.60).contains(&descending), "{descending}");
}

#[test]
fn a_built_tree_is_the_inserted_one() {
    for (count, page_bytes) in [(0, 2048), (1, 2048), (70, 2048), (5_000, 2048), (60_000, 8192)] {
        let entries: Vec<Entry> = (0..count).map(|n: u64| ((n / 3).to_be_bytes().to_vec(), row(n))).collect();
        let store = Store::new(page_bytes, true);
        let mut stream = entries.iter().cloned().map(Ok);
        let built = crate::btree::build::build(&store, page_bytes, &mut stream).expect("nothing fails");
        assert_eq!(built, count);
        let structure = store.assert_sound();
        assert_eq!(structure.entries, count);
        if count > 1000 {
            assert!(structure.leaf_bytes_used * 10 > structure.leaf_bytes * 8);
        }
        let all = range_of(&store, &Bound::Unbounded, &Bound::Unbounded, false);
        assert!(all == entries);
        for n in 0..200 {
            insert(&store, &(n * 7_u64).to_be_bytes(), row(1 << 40)).expect("nothing fails");
        }
        assert_eq!(store.assert_sound().entries, count + 200);
    }
}

#[test]
#[should_panic(expected = "not in order")]
fn building_from_disorder_is_refused() {
    let store = Store::new(2048, false);
    let mut stream = [2, 1].into_iter().map(|n| Ok((vec![n], row(1))));
    let _ = crate::btree::build::build(&store, 2048, &mut stream);
}

#[test]
fn a_key_too_long_is_refused_and_the_longest_is_taken() {
    let store = Store::with_tree(2048, true);
    let max = node::key_bytes_max(2048);
    let error = insert(&store, &vec![1; max + 1], row(1)).expect_err("too long");
    assert!(error.to_string().contains("db_block_size"), "{error}");
    for n in 0..200 {
        let mut key = vec![7; max];
        key[max - 1] = n;
        for r in 0..3 {
            insert(&store, &key, row(r)).expect("it fits");
        }
    }
    let structure = store.assert_sound();
    assert_eq!(structure.entries, 600);
    assert!(structure.height > 4, "{structure:?}");
}

#[test]
fn a_scan_goes_on_while_leaves_split_and_vanish() {
    for (seed, descending) in [(1, false), (2, true), (3, false), (4, true)] {
        let mut rng = Rng::new(Seed(seed));
        let store = Store::with_tree(2048, false);
        // Even numbers stay, odd ones come and go.
        for n in 0..4000_u64 {
            insert(&store, &(2 * n).to_be_bytes(), row(1)).expect("nothing fails");
        }
        let mut cursor = Cursor::new(Bound::Unbounded, Bound::Unbounded, descending);
        let mut evens = Vec::new();
        let mut before: Option<u64> = None;
        while let Some((key, _)) = cursor.next(&store).expect("nothing fails") {
            let n = u64::from_be_bytes(key.try_into().expect("8 bytes"));
            assert!(before.is_none_or(|b| if descending { b > n } else { b < n }), "{before:?} {n}");
            before = Some(n);
            evens.extend(n.is_multiple_of(2).then_some(n));
            let here = rng.below(8000);
            for near in here..here + 6 {
                let key = (near | 1).to_be_bytes();
                if rng.below(2) == 0 {
                    insert(&store, &key, row(1)).expect("nothing fails");
                } else {
                    remove(&store, &key, row(1)).expect("nothing fails");
                }
            }
        }
        if descending {
            evens.reverse();
        }
        assert!(evens.into_iter().eq((0..4000).map(|n| 2 * n)));
        store.assert_sound();
    }
}

/// Alike for long, so that leaves and branches hold some ten each.
fn wide(n: u64) -> Vec<u8> {
    let mut key = vec![7; 150];
    key.extend_from_slice(&n.to_be_bytes());
    key
}

/// The range of a vanished neighbour is inherited under a scan's feet, without a change of the branch that it remembers; it must
/// give each entry once all the same. Every place where the neighbour's range may begin is tried.
#[test]
fn a_scan_goes_on_while_whole_branches_vanish() {
    const ALL: u64 = 800;
    const HERE: u64 = 250;
    for (descending, first_gone) in (1..150).flat_map(|n| [(false, HERE + n), (true, HERE - n)]) {
        let store = Store::new(2048, false);
        let mut entries = (0..ALL).map(|n| Ok((wide(n), row(1))));
        crate::btree::build::build(&store, 2048, &mut entries).expect("nothing fails");
        let mut cursor = Cursor::new(Bound::Unbounded, Bound::Unbounded, descending);
        let mut found = Vec::new();
        let already = if descending { ALL - HERE } else { HERE };
        while let Some((key, _)) = cursor.next(&store).expect("nothing fails") {
            found.push(u64::from_be_bytes(*key.last_chunk().expect("a number")));
            if found.len() as u64 == already {
                let gone = if descending { 0..first_gone } else { first_gone..first_gone + 350 };
                let back = if descending {
                    [first_gone / 2, first_gone - 1]
                } else {
                    [first_gone, first_gone + 100]
                };
                for n in gone {
                    remove(&store, &wide(n), row(1)).expect("nothing fails");
                }
                // Into the range that was inherited.
                for n in back {
                    insert(&store, &wide(n), row(1)).expect("nothing fails");
                }
            }
        }
        let steps =
            found.windows(2).all(|pair| if descending { pair[0] > pair[1] } else { pair[0] < pair[1] });
        assert!(steps, "{descending} {first_gone}: {found:?}");
        store.assert_sound();
    }
}

#[test]
fn a_scan_of_many_leaves_spares_the_way_through_the_root() {
    let store = Store::with_tree(2048, false);
    for n in 0..10_000_u64 {
        insert(&store, &n.to_be_bytes(), row(1)).expect("nothing fails");
    }
    let leaves = store.assert_sound().leaves;
    for descending in [false, true] {
        let before = store.reads.load(Ordering::Relaxed);
        assert_eq!(range_of(&store, &Bound::Unbounded, &Bound::Unbounded, descending).len(), 10_000);
        let reads = store.reads.load(Ordering::Relaxed) - before;
        assert!(reads < leaves * 5 / 2, "{reads} reads for {leaves} leaves");
    }
}

#[test]
fn unique_inserts_are_judged_by_all_other_rows() {
    let store = Store::with_tree(2048, true);
    let key = b"key".to_vec();
    for n in 0..1500_u64 {
        insert(&store, &n.to_be_bytes(), row(1)).expect("nothing fails");
    }
    let mut asked = Vec::new();
    let mut judge_with = |verdict: Judgement, r: u64| {
        let mut seen = Vec::new();
        let result = insert_unique(&store, &key, row(r), &mut |rows| {
            seen = rows.to_vec();
            Ok(verdict)
        });
        asked.push(seen);
        result.expect("nothing fails")
    };
    assert_eq!(judge_with(Judgement::Duplicate, 500), Judgement::Proceed, "nobody is there: nobody is asked");
    assert_eq!(judge_with(Judgement::Duplicate, 501), Judgement::Duplicate);
    assert_eq!(judge_with(Judgement::Proceed, 400), Judgement::Proceed);
    let waiting = Judgement::WaitFor(crate::transaction::Xid(9));
    assert_eq!(judge_with(waiting, 502), waiting);
    assert_eq!(
        judge_with(Judgement::Duplicate, 500),
        Judgement::Duplicate,
        "a row's own entry does not count"
    );
    assert_eq!(asked, [vec![], vec![row(500)], vec![row(500)], vec![row(400), row(500)], vec![row(400)]]);
    // So many dead rows of one key that they fill several leaves.
    for r in 1000..1400 {
        let mut seen = 0;
        let done = insert_unique(&store, &key, row(r), &mut |rows| {
            seen = rows.len();
            Ok(Judgement::Proceed)
        });
        assert_eq!(done.expect("nothing fails"), Judgement::Proceed);
        assert_eq!(seen as u64, 2 + r - 1000);
    }
    assert_eq!(rows_with_key(&store, &key).expect("nothing fails").len(), 402);
    let mut seen = 0;
    let verdict = insert_unique(&store, &key, row(7), &mut |rows| {
        seen = rows.len();
        Ok(Judgement::Duplicate)
    });
    assert_eq!((verdict.expect("nothing fails"), seen), (Judgement::Duplicate, 402));
    store.assert_sound();
}
