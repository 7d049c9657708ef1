//! The flash cache under a buffer cache: passes over a table, a restart, devices that go wrong.

mod directory;

use super::{Policy, Stamp};
use crate::Context;
use crate::cache::tests::world::{
    FlashFault, MemoryStorage, World, config, page, with_flash, world, world_on,
};
use crate::context::Background;
use crate::page::{Lsn, PageId};
use crate::statistics::Statistic;
use io::Storage;
use std::path::Path;
use std::sync::Arc;
use waits::Event;

const BYTES: u64 = 1 << 20;
const BLOCKS: u32 = 200;
const STAMP: Stamp = Stamp { database_id: 1, opens: 3, checkpoint: Lsn(77) };

/// A cache of 32 frames with 200 pages that have been written.
fn filled(policy: Policy) -> (Arc<World>, Context) {
    let world = world(&with_flash(config(32), policy, BYTES, None), Background::Inline, &[BLOCKS + 1]);
    let context = world.context();
    for block in 1..=BLOCKS {
        world.set(&context, page(block), u64::from(block)).unwrap();
    }
    world.cache.checkpoint(&*world, &context).unwrap();
    (world, context)
}

/// Reads all pages, some at a time.
fn pass(world: &Arc<World>, context: &Context) {
    let ids: Vec<PageId> = (1..=BLOCKS).map(page).collect();
    for chunk in ids.chunks(4) {
        world.cache.prefetch(&**world, context, chunk).unwrap();
        for id in chunk {
            assert_eq!(world.get(context, *id).unwrap(), u64::from(id.block));
        }
    }
    world.cache.flash().unwrap().turn(&**world, context);
}

fn counts(world: &World) -> [u64; 3] {
    [Statistic::FlashInserts, Statistic::FlashHits, Statistic::PhysicalReads].map(|s| world.count(s))
}

/// The block states and the counters of the passes that the case `flash` shows.
#[test]
fn what_is_read_again_comes_from_the_flash_cache() {
    for policy in [Policy::Classic, Policy::ScanResistant] {
        let (world, context) = filled(policy);
        (0..4).for_each(|_| pass(&world, &context));
        let before = counts(&world);
        pass(&world, &context);
        assert_eq!(world.get(&context, page(5)).unwrap(), 5);
        let [inserts, hits, reads] = counts(&world);
        assert!(hits - before[1] > 150, "{policy:?}: {hits} {before:?}");
        assert!(
            reads - before[2] <= 20 && inserts - before[0] <= 20,
            "{policy:?}: {reads} {inserts} {before:?}"
        );
        let states = world.cache.states();
        assert!(states.flashcur > 150 && states.flashfree > 500, "{states:?}");
        assert_eq!(world.cache.headers().count() as u64, 32 + states.flashcur + states.flashfree);
        assert!(world.count(Statistic::FlashSkipExists) > 300);
        let waits = world.registry.totals();
        assert!(waits.event(Event::DbFlashCacheMultiblockPhysicalRead).waits > 20);
        assert!(waits.event(Event::DbFlashCacheSingleBlockPhysicalRead).waits > 0);
        let rows = world.cache.flash().unwrap().file_rows();
        assert!(rows.iter().any(|row| row.enabled && row.io.small_write.requests > 0), "{rows:?}");
    }
}

/// Before its writer has had a turn, a block is found in memory, and never after it changed.
#[test]
fn what_waits_to_be_written_is_found() {
    let (world, context) = filled(Policy::Classic);
    world.cache.flush(&*world, &context).unwrap();
    let flash = world.cache.flash().unwrap();
    flash.turn(&*world, &context);
    flash.flush();
    let read = |block: u32| assert_eq!(world.get(&context, page(block)).unwrap() % 1_000, u64::from(block));
    let turn = flash.writer.lock();
    (1..=48).for_each(read);
    assert!(flash.waiting() >= 16, "{}", flash.waiting());
    let before = counts(&world);
    let gone: Vec<u32> = (1..=48).filter(|block| !world.cache.is_cached(page(*block))).take(4).collect();
    gone.iter().copied().for_each(read);
    let [inserts, hits, reads] = counts(&world);
    assert_eq!([inserts, hits - before[1], reads], [before[0], 4, before[2]]);
    world.set(&context, page(gone[0]), 1_000 + u64::from(gone[0])).unwrap();
    (100..=140).for_each(read);
    drop(turn);
    flash.turn(&*world, &context);
    assert_eq!(world.get(&context, page(gone[0])).unwrap(), 1_000 + u64::from(gone[0]));
}

#[test]
fn a_block_that_changes_is_read_from_home_again() {
    let (world, context) = filled(Policy::Classic);
    (0..3).for_each(|_| pass(&world, &context));
    let before = world.count(Statistic::FlashEvictionInvalidated);
    for block in 1..=BLOCKS {
        world.set(&context, page(block), 1_000 + u64::from(block)).unwrap();
        world.cache.flush(&*world, &context).unwrap();
        assert_eq!(world.get(&context, page(block)).unwrap(), 1_000 + u64::from(block));
    }
    world.cache.flash().unwrap().turn(&*world, &context);
    assert!(world.count(Statistic::FlashEvictionInvalidated) - before > 150);
}

#[test]
fn what_an_object_had_goes_with_it() {
    let (world, context) = filled(Policy::Classic);
    (0..3).for_each(|_| pass(&world, &context));
    let flash = world.cache.flash().unwrap();
    assert!(flash.blocks().iter().any(|(_, object)| *object == 11));
    world.cache.discard(&*world, 11);
    flash.set_use(10, super::FlashUse::None);
    assert_eq!(flash.blocks(), []);
    (0..3).for_each(|_| pass(&world, &context));
    assert!(flash.blocks().iter().all(|(_, object)| *object != 10));
}

/// Warm after a clean restart, empty after any other.
#[test]
fn the_index_counts_for_one_start_after_the_very_shutdown_that_saved_it() {
    let (world, context) = filled(Policy::Classic);
    (0..3).for_each(|_| pass(&world, &context));
    let flash = world.cache.flash().unwrap();
    let mut before = flash.blocks();
    before.sort_unstable();
    flash.save(&*world, STAMP);
    let open = |clean: Option<Stamp>| {
        let config = with_flash(config(32), Policy::Classic, BYTES, clean);
        world_on(world.storage.clone(), &config, Background::Inline, &[BLOCKS + 1])
    };
    let warm = open(Some(STAMP));
    let mut found = warm.cache.flash().unwrap().blocks();
    found.sort_unstable();
    assert_eq!(found, before);
    pass(&warm, &warm.context());
    assert!(warm.count(Statistic::FlashHits) > 150);
    assert_eq!(open(Some(STAMP)).cache.states().flashcur, 0, "it was in use since");
    for other in [None, Some(Stamp { opens: 4, ..STAMP }), Some(Stamp { checkpoint: Lsn(78), ..STAMP })] {
        flash.on.store(true, std::sync::atomic::Ordering::Release);
        flash.save(&*world, STAMP);
        assert_eq!(open(other).cache.states().flashcur, 0, "{other:?}");
    }
}

/// Whatever the device does, answers stay right; it is told once, and nobody asks it again.
#[test]
fn a_device_that_goes_wrong_is_switched_off() {
    for fault in [
        FlashFault::Reads,
        FlashFault::Writes,
        FlashFault::Misdirected,
        FlashFault::Rotten,
        FlashFault::Short,
    ] {
        let (world, context) = filled(Policy::Classic);
        pass(&world, &context);
        *world.storage.faults.flash.lock() = fault;
        for block in 1..=BLOCKS {
            // So that there is something to write.
            world.set(&context, page(block), u64::from(block)).unwrap();
        }
        (0..3).for_each(|_| pass(&world, &context));
        let flash = world.cache.flash().unwrap();
        assert!(!flash.is_on(), "{fault:?}");
        assert!(flash.off().is_some_and(|off| off.cause.contains("/memory/flash")), "{:?}", flash.off());
        let alerts = world.alerts.lock().clone();
        assert_eq!(alerts.iter().filter(|line| line.contains("switched off")).count(), 1, "{alerts:?}");
        assert_eq!((world.cache.states().flashcur, flash.blocks()), (0, Vec::new()));
        let hits = world.count(Statistic::FlashHits);
        pass(&world, &context);
        assert_eq!(world.count(Statistic::FlashHits), hits);
    }
}

#[test]
fn somebody_elses_file_is_never_overwritten() {
    let storage = MemoryStorage::new();
    let access = io::Access { read: true, write: true, direct: false, dsync: false };
    storage.create(Path::new("/memory/flash1"), BYTES, access).unwrap();
    storage.damage(Path::new("/memory/flash1"), 0, |bytes| bytes[..5].copy_from_slice(b"hello"));
    let config = with_flash(config(32), Policy::Classic, BYTES, None);
    let refused = crate::cache::BufferCache::with(&*storage, &config).err().unwrap().to_string();
    assert!(refused.contains("/memory/flash1 is there and is no flash cache"), "{refused}");
}

/// A simulated transfer takes a microsecond: one that may take none hangs.
#[test]
fn a_transfer_beyond_the_limit_switches_it_off() {
    let mut config = with_flash(config(32), Policy::Classic, BYTES, None);
    config.flash.as_mut().unwrap().timeout = units::Nanos(0);
    let world = world(&config, Background::Inline, &[BLOCKS + 1]);
    let context = world.context();
    for block in 1..=BLOCKS {
        world.set(&context, page(block), u64::from(block)).unwrap();
    }
    pass(&world, &context);
    let cause = world.cache.flash().unwrap().off().map(|off| off.cause.clone()).unwrap_or_default();
    assert!(cause.contains("_flash_cache_timeout") || cause.contains("hangs"), "{cause}");
    pass(&world, &context);
}
