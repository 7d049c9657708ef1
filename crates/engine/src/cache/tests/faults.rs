//! What storage does wrong, and what becomes of it: nothing is lost, nothing wrong is shown.

use super::world::{BLOCK, MemoryStorage, World, config, page, path, value, world, world_on};
use crate::cache::{BufferCache, CacheConfig, DirectRead, DoublewriteFile, Site, TornPageProtection};
use crate::context::Background;
use crate::page::{self, PageId, PageKind};
use crate::statistics::Statistic;
use crate::{Context, EngineError, Result};
use io::IoMode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{Rng, Seed};

fn inline(frames: usize) -> (Arc<World>, Context) {
    let world = world(&config(frames), Background::Inline, &[200]);
    let context = world.context();
    (world, context)
}

fn at(id: PageId) -> u64 {
    u64::from(id.block) * BLOCK as u64
}

#[test]
fn a_failed_read_leaves_nothing_behind() {
    let (world, context) = inline(80);
    world.storage.faults.bad_reads.lock().insert(at(page(5)));
    let error = world.get(&context, page(5)).unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, EngineError::Io(_)) && words.contains("/memory/file1.dbf"), "{words}");
    let run: Vec<PageId> = (1..9).map(page).collect();
    world.cache.prefetch(&*world, &context, &run).unwrap_err();
    assert_eq!(world.cache.states().free, 80);
    world.storage.faults.bad_reads.lock().clear();
    assert_eq!(world.get(&context, page(5)).unwrap(), 0);
}

#[test]
fn a_corrupt_block_is_named_with_what_was_expected_and_found() {
    let (world, context) = inline(80);
    for block in 1..9 {
        world.set(&context, page(block), 77).unwrap();
    }
    world.cache.flush(&*world, &context).unwrap();
    world.storage.damage(&path(1), at(page(5)) + 300, |bytes| bytes[0] ^= 4);
    let words = world.get(&context, page(5)).unwrap_err().to_string();
    for part in ["/memory/file1.dbf block 5 (file 1)", "expected checksum 0x", "found 0x", "restore the file"]
    {
        assert!(words.contains(part), "{words}");
    }
    let run: Vec<PageId> = (1..9).map(page).collect();
    let error = world.cache.prefetch(&*world, &context, &run).unwrap_err();
    assert!(matches!(error, EngineError::CorruptBlock { id, .. } if id == page(5)));
    assert_eq!(world.cache.states().xcur, 7, "the others of the same read are fine");
    // A block that was written to the wrong place.
    let right = at(page(4));
    let mut block = vec![0; BLOCK];
    world.storage.damage(&path(1), right, |bytes| block.copy_from_slice(&bytes[..BLOCK]));
    world.storage.damage(&path(1), at(page(5)), |bytes| bytes[..BLOCK].copy_from_slice(&block));
    let words = world.get(&context, page(5)).unwrap_err().to_string();
    assert!(words.contains("expected file 1 block 5, found file 1 block 4"), "{words}");
}

#[test]
fn a_failed_write_is_told_and_tried_again() {
    let (world, context) = inline(20);
    world.set(&context, page(3), 3).unwrap();
    let begin = world.cache.checkpoint_lsn(&*world);
    world.storage.faults.good_calls.store(0, Ordering::Relaxed);
    world.storage.faults.only_one.store(true, Ordering::Relaxed);
    assert!(world.step_writers().is_ok_and(|moved| !moved), "nobody asked");
    world.cache.write_dirty(&*world, &context, None).unwrap();
    assert!(world.storage.faults.fired.load(Ordering::Relaxed));
    assert_eq!(world.on_disk(page(3)), 3);
    let alerts = world.alerts.lock();
    assert_eq!(alerts.len(), 1);
    assert!(alerts[0].contains("/memory/file1.dbf") && alerts[0].contains("stays dirty"), "{}", alerts[0]);
    assert!(world.cache.checkpoint_lsn(&*world) > begin);
}

#[test]
fn a_page_that_can_never_be_written_stops_the_instance() {
    let (world, context) = inline(20);
    for block in 1..10 {
        world.set(&context, page(block), 5).unwrap();
    }
    let begin = world.cache.checkpoint_lsn(&*world);
    world.storage.faults.bad_writes.lock().insert(at(page(5)));
    let error = world.cache.checkpoint(&*world, &context).unwrap_err();
    assert!(matches!(error, EngineError::Crashed(_)), "{error}");
    assert_eq!(world.alerts.lock().len(), 5);
    assert_eq!(
        world.cache.checkpoint_lsn(&*world),
        begin,
        "the checkpoint does not pass what is not written"
    );
    assert_eq!(world.noted.load(Ordering::Relaxed), 0);
    assert!(world.cache.write_dirty(&*world, &context, None).is_err());
    assert_eq!(world.get(&context, page(5)).unwrap(), 5, "what is in memory can still be seen");
}

/// What a session might do; stops at the first error.
fn work(world: &Arc<World>, context: &Context, values: &mut [u64]) -> Result<()> {
    let mut rng = Rng::new(Seed(4));
    for round in 1..300 {
        let block = rng.below(values.len() as u64 - 1) as u32 + 1;
        match rng.below(10) {
            0 => world.cache.write_dirty(&**world, context, None)?,
            1 => drop(world.cache.checkpoint_step(&**world, context)?),
            2 => world.cache.prefetch(
                &**world,
                context,
                &(block..values.len() as u32).map(page).collect::<Vec<_>>(),
            )?,
            3..5 => assert_eq!(world.get(context, page(block))?, values[block as usize]),
            _ => {
                world.set(context, page(block), round)?;
                values[block as usize] = round;
            }
        }
    }
    Ok(())
}

/// The n-th transfer fails, for each n: alone, or with all that follow.
#[test]
fn whichever_call_fails_nothing_is_lost() {
    for protection in [TornPageProtection::Redo, TornPageProtection::Doublewrite] {
        for only_one in [true, false] {
            let fired = (0..).step_by(7).take_while(|nth| fails_at(*nth, only_one, protection)).count();
            assert!(fired > 20, "{fired} calls failed");
        }
    }
}

fn fails_at(nth: u64, only_one: bool, torn_page_protection: TornPageProtection) -> bool {
    let doublewrite = Some(DoublewriteFile { path: "/memory/doublewrite".into(), database_id: 1 });
    let config = CacheConfig { mode: IoMode::Setall, torn_page_protection, doublewrite, ..config(24) };
    let world = world(&config, Background::Inline, &[100]);
    let context = world.context();
    world.checkpoint_target.store(0, Ordering::Relaxed);
    let mut values = [0; 60];
    world.storage.faults.good_calls.store(nth, Ordering::Relaxed);
    world.storage.faults.only_one.store(only_one, Ordering::Relaxed);
    let ended = work(&world, &context, &mut values);
    let fired = world.storage.faults.fired.load(Ordering::Relaxed);
    assert!(ended.is_ok() || fired);
    world.storage.faults.good_calls.store(u64::MAX, Ordering::Relaxed);
    world.assert_covered(world.cache.checkpoint_lsn(&*world));
    if world.alive().is_ok() {
        world.cache.checkpoint(&*world, &context).unwrap();
        for block in 1..60 {
            assert_eq!(world.on_disk(page(block)), values[block as usize], "call {nth}, block {block}");
        }
    }
    world.assert_sound();
    fired
}

fn doublewrite(writers: u32) -> CacheConfig {
    CacheConfig {
        torn_page_protection: TornPageProtection::Doublewrite,
        doublewrite: Some(DoublewriteFile { path: "/memory/doublewrite".into(), database_id: 1 }),
        writers,
        ..config(64)
    }
}

/// Half of the block is as it was before.
fn tear(storage: &MemoryStorage, id: PageId) {
    storage.damage(&path(id.file), at(id) + BLOCK as u64 / 2, |bytes| bytes[..BLOCK / 2].fill(0x5A));
}

#[test]
fn torn_pages_are_restored_from_the_doublewrite_file() {
    let first = world(&doublewrite(3), Background::Inline, &[200]);
    let context = first.context();
    for round in 1..4 {
        for block in 1..150 {
            first.set(&context, page(block), round * 1000 + u64::from(block)).unwrap();
        }
        first.cache.checkpoint(&*first, &context).unwrap();
    }
    // The last batch of two writers: other copies are overwritten once their pages are home.
    for block in [10, 11, 149] {
        first.set(&context, page(block), 4000 + u64::from(block)).unwrap();
    }
    first.cache.checkpoint(&*first, &context).unwrap();
    assert!(first.count(Statistic::DoublewriteBlocks) > 200);
    let storage = first.storage.clone();
    drop(first);
    for block in [10, 149] {
        tear(&storage, page(block));
    }
    let second = world_on(storage.clone(), &doublewrite(1), Background::Inline, &[200]);
    let context = second.context();
    assert_eq!(second.cache.restore_torn(&*second, &context).unwrap(), 2);
    assert_eq!((second.on_disk(page(10)), second.on_disk(page(149))), (4010, 4149), "the newest copies");
    assert_eq!(second.cache.restore_torn(&*second, &context).unwrap(), 0);
    assert!(
        second.alerts.lock()[0].contains("block 10 was torn by a crash: restored from /memory/doublewrite")
    );
}

#[test]
fn the_doublewrite_file_goes_with_its_protection_and_its_database() {
    let first = world(&doublewrite(1), Background::Inline, &[200]);
    let context = first.context();
    for value in 1..3 {
        first.set(&context, page(9), value).unwrap();
        first.cache.checkpoint(&*first, &context).unwrap();
    }
    let storage = first.storage.clone();
    drop(first);
    tear(&storage, page(9));
    let other = DoublewriteFile { path: "/memory/doublewrite".into(), database_id: 2 };
    let off = CacheConfig { torn_page_protection: TornPageProtection::Off, ..doublewrite(1) };
    let stranger = CacheConfig { doublewrite: Some(other), ..off.clone() };
    let world = world_on(storage.clone(), &stranger, Background::Inline, &[200]);
    assert_eq!(world.cache.restore_torn(&*world, &context).unwrap(), 0, "another database's");
    let world = world_on(storage.clone(), &off, Background::Inline, &[200]);
    assert_eq!(world.cache.restore_torn(&*world, &context).unwrap(), 1);
    assert_eq!(world.on_disk(page(9)), 2);
    let exists = io::Storage::exists(&*storage, std::path::Path::new("/memory/doublewrite"));
    assert!(!exists, "its copies would grow old");
}

#[test]
fn a_strangers_file_is_not_taken_for_the_doublewrite_file() {
    let storage = MemoryStorage::new();
    let path = std::path::Path::new("/memory/doublewrite");
    io::Storage::create(&*storage, path, 8192, io::Access::for_mode(IoMode::None, true)).unwrap();
    storage.damage(path, 0, |bytes| bytes[..8].copy_from_slice(b"my notes"));
    let error = BufferCache::with(&*storage, &doublewrite(1)).err().unwrap();
    assert!(matches!(error, EngineError::Exists { .. }), "{error}");
    storage.damage(path, 0, |bytes| bytes.fill(0));
    BufferCache::with(&*storage, &doublewrite(1)).expect("left by an attempt that the power ended");
}

#[test]
fn pages_that_recovery_need_not_read_are_written_once() {
    let world = world(&doublewrite(1), Background::Inline, &[200]);
    let context = world.context();
    for block in 1..50 {
        let mut fresh = world.cache.format_latch(&*world, &context, page(block)).unwrap();
        page::format(fresh.bytes_mut(), page(block), PageKind::Heap, 1);
        fresh.note_image();
        world.set_in(&mut fresh, 1);
    }
    world.cache.write_dirty(&*world, &context, None).unwrap();
    assert_eq!(world.count(Statistic::DoublewriteBlocks), 0);
    for block in 1..11 {
        world.set(&context, page(block), 2).unwrap();
    }
    world.cache.write_dirty(&*world, &context, None).unwrap();
    assert_eq!(world.count(Statistic::DoublewriteBlocks), 10);
}

#[test]
fn atomic_protection_is_refused_with_words() {
    let config = CacheConfig { torn_page_protection: TornPageProtection::Atomic, ..config(20) };
    let error = BufferCache::with(&*MemoryStorage::new(), &config).err().unwrap();
    assert!(error.to_string().contains("set it to redo or doublewrite"), "{error}");
}

#[test]
fn recovery_sees_torn_pages_as_blank_until_they_are_mended() {
    let (world, context) = inline(20);
    world.set(&context, page(4), 4).unwrap();
    world.cache.flush(&*world, &context).unwrap();
    tear(&world.storage, page(4));
    let torn = world.cache.recovery_latch(&*world, &context, page(4)).unwrap();
    assert!(torn.bytes().iter().all(|b| *b == 0) && world.cache.is_damaged(page(4)));
    drop(torn);
    assert!(matches!(&world.cache.damaged()[..], [EngineError::CorruptBlock { id, .. }] if *id == page(4)));
    let mut torn = world.cache.recovery_latch(&*world, &context, page(4)).unwrap();
    world.set_in(&mut torn, 5);
    drop(torn);
    world.cache.mend(page(4));
    assert!(world.cache.damaged().is_empty());
    world.cache.flush(&*world, &context).unwrap();
    assert_eq!(world.on_disk(page(4)), 5);
}

fn scan(world: &World, context: &Context, runs: &[(u32, u32)]) -> Result<Vec<(u32, u64)>> {
    let runs = runs.iter().map(|(first, blocks)| (page(*first), *blocks)).collect();
    let mut scan = DirectRead::open(world, context, runs)?;
    let mut seen = Vec::new();
    while scan.next(context, &mut |id, bytes| {
        seen.push((id.block, value(bytes, id)));
        Ok(())
    })? {}
    Ok(seen)
}

#[test]
fn a_direct_scan_sees_every_page_once_in_order() {
    for mode in [IoMode::None, IoMode::Setall] {
        let world = world(&CacheConfig { mode, ..config(64) }, Background::Inline, &[200]);
        let context = world.context();
        for block in 1..150 {
            world.set(&context, page(block), u64::from(block)).unwrap();
        }
        world.cache.write_dirty(&*world, &context, None).unwrap();
        let seen = scan(&world, &context, &[(1, 30), (31, 0), (40, 1), (42, 100)]).unwrap();
        let expected: Vec<(u32, u64)> =
            (1..31).chain([40]).chain(42..142).map(|block| (block, u64::from(block))).collect();
        assert_eq!(seen, expected);
        assert_eq!(world.count(Statistic::PhysicalReadsDirect), 131);
        assert_eq!(scan(&world, &context, &[]).unwrap(), []);
    }
}

#[test]
fn a_direct_scan_takes_a_half_written_page_from_the_cache() {
    let world = world(&CacheConfig { mode: IoMode::Setall, ..config(64) }, Background::Inline, &[200]);
    let context = world.context();
    for block in 1..50 {
        world.set(&context, page(block), 1).unwrap();
    }
    world.cache.flush(&*world, &context).unwrap();
    world.set(&context, page(20), 2).unwrap();
    tear(&world.storage, page(20));
    let seen = scan(&world, &context, &[(1, 49)]).unwrap();
    assert_eq!(seen[19], (20, 2));
    tear(&world.storage, page(30));
    let error = scan(&world, &context, &[(1, 49)]).unwrap_err();
    assert!(matches!(error, EngineError::CorruptBlock { id, .. } if id == page(30)), "{error}");
    world.storage.faults.bad_reads.lock().insert(at(page(3)));
    let error = scan(&world, &context, &[(1, 49)]).unwrap_err();
    assert!(matches!(error, EngineError::Io(_)), "{error}");
}
