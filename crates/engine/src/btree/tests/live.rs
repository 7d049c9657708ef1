//! Trees in a real instance, whose cache is too small for them: latches, evictions, redo and database writers are the engine's.

use super::threads::{THREADS, one_scan, one_thread};
use super::*;
use crate::btree::pages::Live;
use crate::btree::{self, RangeScan, Structure};
use crate::instance::{Core, Instance, InstanceConfig};
use crate::space::Segment;
use crate::{Background, Context, testing};
use std::ops::Bound;
use units::{Clock, Rng, Seed};
use waits::SessionKind;

/// A number that no catalog gives.
const FAR: u32 = 1_000_000;
const USERS: u16 = 1;

fn instance(background: Background) -> Instance {
    let mut environment = testing::environment(&testing::storage());
    environment.background = background;
    if background == Background::Threads {
        environment.clock = Clock::Real;
    }
    let config = InstanceConfig::new("/db").with("db_block_size", "2k").with("db_cache_size", "512k");
    Instance::create(environment, config).expect("nothing fails")
}

fn new_tree(core: &Core, context: &Context, object: u32) -> Segment {
    let segment = core.space.create_segment(core, context, object, USERS).expect("there is space");
    btree::create(core, context, &segment).expect("there is space");
    segment
}

fn sound(core: &Core, context: &Context, segment: &Segment) -> Structure {
    let structure = btree::check(core, context, segment).expect("nothing fails");
    assert_eq!(structure.problems, Vec::<String>::new());
    structure
}

#[test]
fn a_tree_larger_than_the_cache_is_a_sorted_set() {
    let instance = instance(Background::Inline);
    let (core, context) =
        (&instance.core, &instance.core.context(SessionKind::Foreground, "test").expect("a seat"));
    let segment = new_tree(core, context, FAR);
    let mut rng = Rng::new(Seed(21));
    let mut model = BTreeSet::new();
    let key = |n: u64| {
        let mut key = n.to_be_bytes().to_vec();
        key.resize(100, 9);
        key
    };
    for step in 0..16_000_u64 {
        let (n, row) = (rng.below(1 << 14), row(rng.below(2)));
        if rng.below(10) < if step / 4_000 % 2 == 1 { 8 } else { 1 } {
            btree::remove(core, context, &segment, &key(n), row).expect("nothing fails");
            model.remove(&(n, row));
        } else {
            btree::insert(core, context, &segment, None, &key(n), row).expect("nothing fails");
            model.insert((n, row));
        }
    }
    let structure = sound(core, context, &segment);
    assert_eq!(structure.entries, model.len() as u64);
    assert!(structure.leaves > 256, "more than the cache has frames: {structure:?}");
    for descending in [false, true] {
        let mut scan =
            RangeScan::new(&segment, Bound::Included(key(100)), Bound::Excluded(key(9_000)), descending);
        let mut found = Vec::new();
        while let Some((key, row)) = scan.next(core, context).expect("nothing fails") {
            found.push((u64::from_be_bytes(*key.first_chunk().expect("a number")), row));
        }
        if descending {
            found.reverse();
        }
        assert!(found.into_iter().eq(model.range((100, row(0))..(9_000, row(0))).copied()));
    }
    for n in (0..1 << 14).step_by(37) {
        let rows = btree::entries_with_key(core, context, &segment, &key(n)).expect("nothing fails");
        assert!(rows.into_iter().eq(model.range((n, row(0))..(n + 1, row(0))).map(|(_, row)| *row)));
    }
    instance.shutdown(crate::Shutdown::Immediate).expect("nothing fails");
}

#[test]
fn each_thread_finds_what_it_put_there() {
    let instance = instance(Background::Threads);
    let core = &instance.core;
    let context = || core.context(SessionKind::Foreground, "test").expect("a seat");
    let segment = new_tree(core, &context(), FAR);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || one_thread(&Live::new(core, &context(), &segment), thread));
        }
        for descending in [false, true] {
            scope.spawn(move || {
                let context = context();
                (0..20).for_each(|_| one_scan(&Live::new(core, &context, &segment), descending));
            });
        }
    });
    sound(core, &context(), &segment);
    instance.shutdown(crate::Shutdown::Immediate).expect("nothing fails");
}
