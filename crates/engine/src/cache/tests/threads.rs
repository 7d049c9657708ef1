//! Many threads at a small cache: contents, waits, and what the checkpoint claims while everything moves.

use super::world::{World, config, page, value, with_flash, world};
use crate::cache::{CacheConfig, DirectRead, DoublewriteFile, Site, TornPageProtection};
use crate::context::Background;
use crate::flash::Policy;
use crate::page::PageId;
use crate::statistics::Statistic;
use io::IoMode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Rng, Seed};
use waits::Event;

const PAGES: u32 = 250;
const THREADS: u64 = 6;

/// Adds one to a random page, again and again; sometimes reads, prefetches or flushes.
fn session(world: &Arc<World>, seed: u64, turns: u32, added: &[AtomicU64]) {
    let context = world.context();
    let mut rng = Rng::new(Seed(seed));
    for _ in 0..turns {
        let id = page(rng.below(u64::from(PAGES) - 1) as u32 + 1);
        match rng.below(100) {
            0..40 => drop(world.get(&context, id).unwrap()),
            40..42 => {
                let ids: Vec<PageId> = (id.block..PAGES.min(id.block + 6)).map(page).collect();
                world.cache.prefetch(&**world, &context, &ids).unwrap();
            }
            42 => world.cache.write_dirty(&**world, &context, Some(10)).unwrap(),
            43 => world.cache.flush(&**world, &context).unwrap(),
            _ => {
                let mut latched = world.cache.write_latch(&**world, &context, id).unwrap();
                let before = value(latched.bytes(), id);
                world.set_in(&mut latched, before + 1);
                added[id.block as usize].fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The checkpointer's part, and the question whether its position is true at every moment.
fn checkpointer(world: &Arc<World>, done: &AtomicBool) {
    let context = world.context();
    while !done.load(Ordering::Acquire) {
        world.cache.checkpoint_step(&**world, &context).unwrap();
        let reached = world.cache.checkpoint_lsn(&**world);
        world.assert_covered(reached);
        std::thread::yield_now();
    }
}

fn stress(config: &CacheConfig, turns: u32) -> Arc<World> {
    let world = world(config, Background::Threads, &[PAGES]);
    let added: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    world.storage.faults.slow.store(2, Ordering::Relaxed);
    world.with_threads(|| {
        std::thread::scope(|scope| {
            let checkpointer = scope.spawn(|| checkpointer(&world, &done));
            let sessions: Vec<_> = (0..THREADS)
                .map(|seed| {
                    scope.spawn({
                        let (world, added) = (&world, &added);
                        move || session(world, seed, turns, added)
                    })
                })
                .collect();
            let ended: Vec<_> = sessions.into_iter().map(|session| session.join()).collect();
            done.store(true, Ordering::Release);
            checkpointer.join().unwrap();
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        world.cache.checkpoint(&*world, &world.context()).unwrap();
    });
    for (block, added) in (0..).zip(&added).skip(1) {
        assert_eq!(world.on_disk(page(block)), added.load(Ordering::Relaxed), "block {block}");
    }
    assert_eq!(world.noted.load(Ordering::Relaxed), world.redo_tail().0);
    world.assert_sound();
    world
}

#[test]
fn many_sessions_lose_nothing_in_a_small_cache() {
    for (mode, writers) in [(IoMode::None, 1), (IoMode::Setall, 2), (IoMode::Directio, 3)] {
        let config = CacheConfig { mode, writers, writes_max: 8, ..config(48) };
        let world = stress(&config, 3_000);
        assert!(world.registry.totals().event(Event::DbFileSequentialRead).waits > 1_000);
        assert!(world.registry.totals().event(Event::DbFileParallelWrite).waits > 100);
    }
}

#[test]
fn many_sessions_lose_nothing_with_a_doublewrite_file() {
    let config = CacheConfig {
        mode: IoMode::Setall,
        writers: 2,
        torn_page_protection: TornPageProtection::Doublewrite,
        doublewrite: Some(DoublewriteFile { path: "/memory/doublewrite".into(), database_id: 1 }),
        ..config(48)
    };
    stress(&config, 2_000);
}

#[test]
fn many_sessions_lose_nothing_above_a_flash_cache() {
    for (policy, mode, bytes) in [
        (Policy::Classic, IoMode::None, 200 << 10),
        (Policy::ScanResistant, IoMode::Setall, 400 << 10),
        (Policy::ScanResistant, IoMode::Directio, 200 << 10),
    ] {
        let config = CacheConfig { mode, writers: 2, writes_max: 8, ..config(48) };
        let world = stress(&with_flash(config, policy, bytes, None), 2_000);
        assert!(world.cache.flash().unwrap().is_on(), "{:?}", world.alerts.lock());
        assert!(world.count(Statistic::FlashHits) > 50, "{}", world.count(Statistic::FlashHits));
    }
}

/// Pages are written while they are scanned past the cache: each comes whole, and not older than the scan.
#[test]
fn a_direct_scan_beside_writers_sees_whole_pages() {
    let config = CacheConfig { mode: IoMode::Setall, writers: 2, writes_max: 8, ..config(300) };
    let world = world(&config, Background::Threads, &[PAGES]);
    let latest: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    let torn = || world.files().all().iter().map(|file| file.statistics.look().errors).sum::<u64>();
    world.storage.faults.slow.store(20, Ordering::Relaxed);
    world.with_threads(|| {
        std::thread::scope(|scope| {
            let changing = || {
                let (context, mut rng) = (world.context(), Rng::new(Seed(5)));
                for turn in 1.. {
                    if done.load(Ordering::Acquire) {
                        return;
                    }
                    let block = rng.below(u64::from(PAGES) - 1) as u32 + 1;
                    let mut latched = world.cache.write_latch(&*world, &context, page(block)).unwrap();
                    world.set_in(&mut latched, turn);
                    latest[block as usize].store(turn, Ordering::Release);
                    drop(latched);
                    if turn % 50 == 0 {
                        world.cache.checkpoint_step(&*world, &context).unwrap();
                        std::thread::yield_now();
                    }
                }
            };
            scope.spawn(changing);
            let _done = Done(&done);
            let context = world.context();
            for round in 0..20_000 {
                if round >= 60 && torn() > 0 {
                    break;
                }
                let least: Vec<u64> = latest.iter().map(|value| value.load(Ordering::Acquire)).collect();
                world.cache.write_dirty(&*world, &context, None).unwrap();
                let mut scan = DirectRead::open(&*world, &context, vec![(page(1), PAGES - 1)]).unwrap();
                let mut each = |id: PageId, bytes: &[u8]| {
                    assert!(value(bytes, id) >= least[id.block as usize], "{id} is older than the scan");
                    Ok(())
                };
                while scan.next(&context, &mut each).unwrap() {}
            }
        });
    });
    assert!(torn() > 0, "no scan met a half-written page: this test tests nothing");
}

/// Sets the flag however the scope is left.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn waits_have_their_names() {
    let world = world(&config(16), Background::Threads, &[PAGES]);
    let waits = |event| world.registry.totals().event(event).waits;
    let until = |what: &dyn Fn() -> bool| {
        while !what() {
            std::thread::yield_now();
        }
    };
    let waiting =
        |event| world.registry.sessions().iter().any(|session| session.doing == waits::Doing::Waiting(event));
    world.with_threads(|| {
        std::thread::scope(|scope| {
            let context = world.context();
            let held = world.cache.write_latch(&*world, &context, page(1)).unwrap();
            scope.spawn(|| world.get(&world.context(), page(1)).unwrap());
            until(&|| waiting(Event::BufferBusyWaits));
            drop(held);
            world.storage.faults.slow.store(200_000, Ordering::Relaxed);
            scope.spawn(|| world.get(&world.context(), page(2)).unwrap());
            until(&|| waiting(Event::DbFileSequentialRead));
            scope.spawn(|| world.get(&world.context(), page(2)).unwrap());
            until(&|| waiting(Event::ReadByOtherSession));
            world.storage.faults.slow.store(0, Ordering::Relaxed);
        });
        let context = world.context();
        let held: Vec<_> =
            (10..26).map(|block| world.cache.write_latch(&*world, &context, page(block)).unwrap()).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| world.get(&world.context(), page(40)).unwrap());
            until(&|| waiting(Event::FreeBufferWaits));
            drop(held);
        });
    });
    assert!(waits(Event::ReadByOtherSession) >= 1 && waits(Event::FreeBufferWaits) >= 1);
}
