//! Latches, marks, replacement and waits of single pages.

use super::world::{World, config, page, world};
use crate::cache::{BufferHeader, BufferStates, BufferStatus, CacheConfig, Pool, Site, TornPageProtection};
use crate::context::Background;
use crate::page::PageId;
use crate::statistics::Statistic;
use crate::{Context, EngineError};
use io::IoMode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use waits::Event;

fn inline(frames: usize) -> (Arc<World>, Context) {
    let world = world(&config(frames), Background::Inline, &[400, 400]);
    let context = world.context();
    (world, context)
}

fn waited(world: &World, event: Event) -> u64 {
    world.registry.totals().event(event).waits
}

#[test]
fn images_are_due_after_a_read_and_after_a_write() {
    let (world, context) = inline(20);
    let due = || {
        let latched = world.cache.write_latch(&*world, &context, page(1)).unwrap();
        latched.image_due()
    };
    let mut fresh = world.cache.format_latch(&*world, &context, page(1)).unwrap();
    fresh.bytes_mut().fill(0);
    world.set_in(&mut fresh, 5);
    drop(fresh);
    assert!(!due(), "the format is in redo");
    world.cache.write_dirty(&*world, &context, None).unwrap();
    assert!(due(), "the write may have been torn");
    let mut latched = world.cache.write_latch(&*world, &context, page(1)).unwrap();
    latched.note_image();
    world.set_in(&mut latched, 6);
    drop(latched);
    assert!(!due());
    world.cache.flush(&*world, &context).unwrap();
    assert!(due(), "read from disk, where it may be torn next time");
}

#[test]
fn images_are_never_due_with_another_protection() {
    let config = CacheConfig { torn_page_protection: TornPageProtection::Off, ..config(20) };
    let world = world(&config, Background::Inline, &[100]);
    let context = world.context();
    world.set(&context, page(1), 1).unwrap();
    world.cache.write_dirty(&*world, &context, None).unwrap();
    assert!(!world.cache.write_latch(&*world, &context, page(1)).unwrap().image_due());
}

#[test]
fn a_new_page_that_came_to_nothing_was_never_there() {
    let (world, context) = inline(20);
    world.set(&context, page(7), 7).unwrap();
    world.cache.flush(&*world, &context).unwrap();
    let mut fresh = world.cache.format_latch(&*world, &context, page(7)).unwrap();
    fresh.bytes_mut().fill(0xEE);
    drop(fresh);
    assert!(!world.cache.is_cached(page(7)));
    assert_eq!(world.cache.states().free, 20);
    assert_eq!(world.get(&context, page(7)).unwrap(), 7);
}

#[test]
fn who_only_tries_does_not_wait() {
    let (world, context) = inline(20);
    let reading = world.cache.read(&*world, &context, page(3)).unwrap();
    assert!(world.cache.try_write_latch(&*world, &context, page(3)).unwrap().is_none());
    assert_eq!(reading.id(), page(3));
    drop(reading);
    assert!(world.cache.try_write_latch(&*world, &context, page(3)).unwrap().is_some());
    assert!(world.cache.try_write_latch(&*world, &context, page(4)).unwrap().is_some(), "read first");
}

#[test]
fn a_full_house_is_told_in_words() {
    let (world, context) = inline(16);
    let latched: Vec<_> =
        (1..=16).map(|block| world.cache.write_latch(&*world, &context, page(block)).unwrap()).collect();
    let error = world.cache.read(&*world, &context, page(17)).err().unwrap();
    assert!(error.to_string().contains("all 16 are in use at once; use a larger db_cache_size"), "{error}");
    drop(latched);
    world.cache.read(&*world, &context, page(17)).unwrap();
}

#[test]
fn a_latched_page_stops_a_checkpoint_with_words() {
    let (world, context) = inline(16);
    world.set(&context, page(2), 1).unwrap();
    let latched = world.cache.write_latch(&*world, &context, page(2)).unwrap();
    let error = world.cache.write_dirty(&*world, &context, None).unwrap_err();
    assert!(matches!(&error, EngineError::Invalid(words) if words.contains("file 1 block 2")), "{error}");
    drop(latched);
    world.cache.write_dirty(&*world, &context, None).unwrap();
}

#[test]
fn the_checkpoint_is_where_the_oldest_dirty_page_begins() {
    let (world, context) = inline(20);
    assert_eq!(world.cache.checkpoint_lsn(&*world), world.redo_tail());
    let begin = world.redo_tail();
    world.set(&context, page(1), 1).unwrap();
    world.set(&context, page(2), 1).unwrap();
    assert_eq!(world.cache.checkpoint_lsn(&*world), begin);
    world.set(&context, page(1), 2).unwrap();
    assert_eq!(world.cache.checkpoint_lsn(&*world), begin, "an older mark stays");
    world.cache.write_dirty(&*world, &context, Some(11)).unwrap();
    assert_eq!((world.on_disk(page(1)), world.on_disk(page(2))), (2, 0), "page 2 is of object 10");
    assert!(world.cache.checkpoint_lsn(&*world) > begin);
    world.assert_covered(world.cache.checkpoint_lsn(&*world));
}

#[test]
fn a_waiting_log_group_is_set_free() {
    let (world, context) = inline(20);
    for block in 1..10 {
        world.set(&context, page(block), 1).unwrap();
    }
    let wanted = world.redo_tail();
    for block in 10..15 {
        world.set(&context, page(block), 1).unwrap();
    }
    world.wanted.store(wanted.0, Ordering::SeqCst);
    assert!(world.cache.urge_checkpoint(&*world, &context, wanted).unwrap());
    let noted = world.noted.load(Ordering::SeqCst);
    assert!(noted >= wanted.0);
    assert_eq!(world.cache.states().dirty, 5, "no more is written than has to be");
}

#[test]
fn the_checkpointer_keeps_redo_short() {
    let world = world(&config(200), Background::Inline, &[400]);
    world.checkpoint_target.store(2_000, Ordering::Relaxed);
    let context = world.context();
    for round in 1..2_000 {
        world.set(&context, page(round % 150 + 1), u64::from(round)).unwrap();
        world.cache.checkpoint_step(&*world, &context).unwrap();
        while world.step_writers().unwrap() {}
        let open = world.redo_tail().0 - world.cache.checkpoint_lsn(&*world).0;
        assert!(open <= 2_100, "{open} bytes of redo are open");
    }
    assert!(world.count(Statistic::DbwrCheckpointBuffersWritten) > 100);
}

#[test]
fn neighbours_come_and_go_together() {
    let config = CacheConfig { mode: IoMode::Setall, ..config(200) };
    let world = world(&config, Background::Inline, &[400, 400]);
    let context = world.context();
    let ids: Vec<PageId> = (1..=20).chain([50, 52, 54]).map(page).collect();
    world.cache.prefetch(&*world, &context, &ids).unwrap();
    assert_eq!(waited(&world, Event::DbFileScatteredRead), 3, "8 + 8 + 4 blocks");
    assert_eq!(waited(&world, Event::DbFileParallelRead), 1, "three single ones");
    assert_eq!(waited(&world, Event::DbFileSequentialRead), 0);
    assert_eq!(world.count(Statistic::PhysicalReadsCachePrefetch), 23);
    assert_eq!(world.count(Statistic::PhysicalReadIoRequests), 6);
    assert!(ids.iter().all(|id| world.cache.is_cached(*id)));
    world.cache.prefetch(&*world, &context, &ids).unwrap();
    assert_eq!(world.count(Statistic::PhysicalReads), 23, "all there already");
    for id in &ids {
        world.set(&context, *id, 1).unwrap();
    }
    world.cache.write_dirty(&*world, &context, None).unwrap();
    assert_eq!(world.count(Statistic::PhysicalWrites), 23);
    assert_eq!(world.count(Statistic::PhysicalWriteIoRequests), 4);
    assert_eq!(waited(&world, Event::DbFileParallelWrite), 1);
}

#[test]
fn a_scan_does_not_wash_out_what_is_used() {
    let (world, context) = inline(64);
    for _ in 0..5 {
        for block in 1..30 {
            world.get(&context, page(block)).unwrap();
        }
        // Another epoch: a quarter of the cache is replaced.
        for block in 31..60 {
            world.get(&context, PageId { file: 2, block }).unwrap();
        }
    }
    for first in (100..390).step_by(8) {
        let run: Vec<PageId> = (first..first + 8).map(page).collect();
        world.cache.prefetch(&*world, &context, &run).unwrap();
        for id in run {
            world.get(&context, id).unwrap();
        }
    }
    let kept = (1..30).filter(|block| world.cache.is_cached(page(*block))).count();
    assert!(kept >= 20, "only {kept} of 29 hot pages survived a scan of 36 times 8 blocks");
}

#[test]
fn pools_decide_who_goes() {
    let (world, context) = inline(64);
    for block in 1..120 {
        world.set(&context, page(block), 1).unwrap();
    }
    world.cache.flush(&*world, &context).unwrap();
    // Odd blocks are of object 11, even ones of object 10.
    world.cache.set_pool(11, Pool::Keep);
    for block in (1..40).step_by(2) {
        world.get(&context, page(block)).unwrap();
    }
    for _ in 0..3 {
        for block in 1..399 {
            world.get(&context, PageId { file: 2, block }).unwrap();
        }
    }
    assert!((1..40).step_by(2).all(|block| world.cache.is_cached(page(block))), "kept");
    world.cache.set_pool(10, Pool::Recycle);
    let before = world.cache.headers().filter(|header| header.id.file == 2).count();
    for block in (2..120).step_by(2) {
        world.get(&context, page(block)).unwrap();
        world.get(&context, page(block)).unwrap();
    }
    let after = world.cache.headers().filter(|header| header.id.file == 2).count();
    assert!(before - after <= 20, "recycled blocks took {} frames of others", before - after);
}

#[test]
fn headers_tell_what_is_in_the_frames() {
    let (world, context) = inline(20);
    world.set(&context, page(1), 1).unwrap();
    world.get(&context, page(9)).unwrap();
    world.cache.set_pool(11, Pool::Keep);
    let states = BufferStates { free: 18, xcur: 2, dirty: 1, ..BufferStates::default() };
    assert_eq!(world.cache.states(), states);
    let mut rows: Vec<BufferHeader> = world.cache.headers().filter(|row| row.id.is_some()).collect();
    rows.sort_by_key(|row| row.id);
    let expected = BufferHeader {
        id: page(1),
        object: 11,
        status: BufferStatus::Xcur,
        dirty: true,
        touches: 1,
        pool: Pool::Keep,
    };
    assert_eq!(rows[0], expected);
    assert_eq!((rows[1].object, rows[1].dirty, rows[1].status.name()), (0, false, "xcur"));
}

#[test]
fn what_is_discarded_is_not_written() {
    let (world, context) = inline(20);
    world.set(&context, page(1), 1).unwrap();
    world.set(&context, page(2), 2).unwrap();
    world.cache.discard(&*world, 11);
    assert!(!world.cache.is_cached(page(1)) && world.cache.is_cached(page(2)));
    world.cache.checkpoint(&*world, &context).unwrap();
    assert_eq!((world.on_disk(page(1)), world.on_disk(page(2))), (0, 2));
    assert_eq!(world.cache.checkpoint_lsn(&*world), world.redo_tail());
}

#[test]
fn flushing_forgets_everything_that_nobody_holds() {
    let (world, context) = inline(20);
    for block in 1..10 {
        world.set(&context, page(block), u64::from(block)).unwrap();
    }
    let held = world.cache.read(&*world, &context, page(3)).unwrap();
    world.cache.flush(&*world, &context).unwrap();
    assert_eq!(world.cache.states(), BufferStates { free: 19, xcur: 1, ..BufferStates::default() });
    drop(held);
    assert!((1..10).all(|block| world.on_disk(page(block)) == u64::from(block)));
}
