//! A model beside the cache: whatever is done, a page holds what was put last, in memory, and on disk after a checkpoint.

use super::world::{World, config, page, with_flash, world};
use crate::Context;
use crate::cache::{CacheConfig, TornPageProtection};
use crate::context::Background;
use crate::flash::Policy;
use crate::page::PageId;
use crate::statistics::Statistic;
use io::IoMode;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Rng, Seed};

const BLOCKS: u32 = 300;

fn any_page(rng: &mut Rng) -> PageId {
    PageId { file: rng.below(2) as u16 + 1, block: rng.below(u64::from(BLOCKS) - 1) as u32 + 1 }
}

/// One act of a session; the model says what must be seen.
fn act(world: &Arc<World>, context: &Context, rng: &mut Rng, model: &mut BTreeMap<PageId, u64>) {
    let id = any_page(rng);
    let expected = model.get(&id).copied().unwrap_or(0);
    match rng.below(100) {
        0..45 => assert_eq!(world.get(context, id).unwrap(), expected, "{id}"),
        45..90 => {
            let value = rng.next_u64() | 1;
            world.set(context, id, value).unwrap();
            model.insert(id, value);
        }
        90..93 => {
            let run = (id.block..BLOCKS.min(id.block + 12)).map(|block| PageId { block, ..id });
            let mut ids: Vec<PageId> = run.collect();
            ids.extend((0..10).map(|_| any_page(rng)));
            world.cache.prefetch(&**world, context, &ids).unwrap();
        }
        93..95 => {
            let mut fresh = world.cache.format_latch(&**world, context, id).unwrap();
            if rng.below(2) == 0 {
                fresh.bytes_mut()[..64].fill(0);
                let value = rng.next_u64() | 1;
                world.set_in(&mut fresh, value);
                model.insert(id, value);
            }
        }
        95..97 => world.cache.write_dirty(&**world, context, Some(10 + rng.below(2) as u32)).unwrap(),
        97 => world.cache.flush(&**world, context).unwrap(),
        98 => drop(world.cache.checkpoint_step(&**world, context).unwrap()),
        _ => world.cache.checkpoint(&**world, context).unwrap(),
    }
}

fn run(config: &CacheConfig, seed: u64) -> Arc<World> {
    let world = world(config, Background::Inline, &[BLOCKS, BLOCKS]);
    let context = world.context();
    let (mut rng, mut model) = (Rng::new(Seed(seed)), BTreeMap::new());
    for _ in 0..4_000 {
        act(&world, &context, &mut rng, &mut model);
    }
    world.cache.checkpoint(&*world, &context).unwrap();
    assert_eq!(world.cache.checkpoint_lsn(&*world), crate::cache::Site::redo_tail(&*world));
    for (id, value) in &model {
        assert_eq!(world.on_disk(*id), *value, "{id} (seed {seed})");
    }
    assert_eq!(world.cache.states().dirty, 0);
    world.assert_sound();
    world
}

#[test]
fn every_mode_keeps_what_was_put() {
    for (seed, mode) in IoMode::ALL.into_iter().enumerate() {
        for frames in [16, 40, 1000] {
            run(&CacheConfig { mode, writers: 1 + seed as u32 % 3, ..config(frames) }, seed as u64);
        }
    }
}

#[test]
fn every_protection_keeps_what_was_put() {
    for torn_page_protection in [TornPageProtection::Off, TornPageProtection::Doublewrite] {
        let doublewrite =
            Some(crate::cache::DoublewriteFile { path: "/memory/doublewrite".into(), database_id: 1 });
        run(
            &CacheConfig {
                torn_page_protection,
                doublewrite,
                mode: IoMode::Setall,
                writers: 2,
                ..config(40)
            },
            9,
        );
    }
}

/// With a second level, of which hits and changes hit the same blocks all the time.
#[test]
fn every_flash_cache_keeps_what_was_put() {
    let mut seed = 0;
    for policy in [Policy::Classic, Policy::ScanResistant] {
        for (mode, frames, bytes) in
            [(IoMode::None, 16, 200 << 10), (IoMode::Setall, 40, 400 << 10), (IoMode::Asynch, 100, 1 << 20)]
        {
            seed += 1;
            let config = CacheConfig { mode, writers: 1 + seed as u32 % 2, ..config(frames) };
            let world = run(&with_flash(config, policy, bytes, None), seed);
            assert!(world.cache.flash().unwrap().is_on(), "{:?}", world.alerts.lock());
            let counts = [Statistic::FlashInserts, Statistic::FlashHits, Statistic::FlashEvictionInvalidated]
                .map(|statistic| world.count(statistic));
            assert!(counts.iter().all(|count| *count > 20), "{policy:?} {mode:?}: {counts:?}");
        }
    }
}

#[test]
fn a_page_is_read_once_and_then_found() {
    let world = world(&config(100), Background::Inline, &[BLOCKS]);
    let context = world.context();
    for _ in 0..3 {
        for block in 1..50 {
            assert_eq!(world.get(&context, page(block)).unwrap(), 0);
        }
    }
    assert_eq!(world.count(crate::statistics::Statistic::PhysicalReads), 49);
    assert_eq!(world.count(crate::statistics::Statistic::ConsistentGets), 147);
}
