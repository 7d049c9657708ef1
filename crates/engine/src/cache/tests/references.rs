//! What a flash cache below would see, as the cache tells it.

use super::world::{BLOCK, config, page, with_flash, world};
use crate::cache::CacheConfig;
use crate::context::Background;
use crate::flash::Policy;
use crate::page::PageId;
use crate::statistics::Statistic;
use stats::mrc::{Event, Reference, References};
use units::{Rng, Seed};

fn blocks(references: &References, event: Event) -> Vec<u32> {
    let of = references.iter().filter(|r| r.event == event);
    of.map(|Reference { block, .. }| PageId::from_u64(block).block).collect()
}

#[test]
fn reads_evictions_and_first_changes_are_told_once_each() {
    let world = world(&config(16), Background::Inline, &[100]);
    let context = world.context();
    for block in 1..10 {
        world.set(&context, page(block), block.into()).unwrap();
    }
    world.cache.flush(&*world, &context).unwrap();
    world.get(&context, page(1)).unwrap();
    assert!(world.cache.references().stop().is_none(), "nobody asked");
    world.cache.references().start(1, 1_000);
    world.get(&context, page(1)).unwrap();
    world.get(&context, page(2)).unwrap();
    world.set(&context, page(2), 7).unwrap();
    world.set(&context, page(2), 8).unwrap();
    world.cache.prefetch(&*world, &context, &[page(3), page(4), page(5), page(6), page(9)]).unwrap();
    let references = world.cache.references().stop().unwrap();
    let mut read = blocks(&references, Event::Read);
    read.sort_unstable();
    assert_eq!((references.reads, read[0]), (read.len() as u64, 2), "{read:?}");
    assert!(read[1..].iter().all(|block| [3, 4, 5, 6, 9].contains(block)), "{read:?}");
    assert_eq!(blocks(&references, Event::Change), [2]);
    world.cache.references().start(1, 1_000);
    world.cache.flush(&*world, &context).unwrap();
    let references = world.cache.references().stop().unwrap();
    let mut left = blocks(&references, Event::Offer);
    left.sort_unstable();
    assert_eq!(left[..2], [1, 2], "also the one that was written meanwhile");
    assert_eq!(references.reads, 0);
}

/// The model of the flash cache, fed with what the cache tells, against the flash cache itself.
#[test]
fn the_model_hits_what_the_flash_cache_hits() {
    use stats::mrc::miniature::{self, flash_hit_ratio};
    for policy in [Policy::Classic, Policy::ScanResistant] {
        let (alone, ..) = play(&config(64));
        let mut below = with_flash(config(64), policy, 600 * BLOCK as u64, None);
        // One file: among two, the few neighbourhoods of this table would not spread evenly.
        below.flash.iter_mut().for_each(|flash| flash.files.truncate(1));
        let (_, hits, slots) = play(&below);
        let model = match policy {
            Policy::Classic => miniature::Policy::Classic,
            Policy::ScanResistant => miniature::Policy::ScanResistant,
        };
        let said = flash_hit_ratio(&alone, model, slots, 0.0).unwrap().value;
        let exact = hits as f64 / alone.reads as f64;
        assert!(exact > 0.2 && exact < 0.9, "{policy:?}: {exact}");
        assert!((said - exact).abs() < 0.02, "{policy:?}: {said}, the flash cache itself {exact}");
    }
}

/// Sessions get and change blocks, a few of them often: the references, the hits in the flash cache, and its size in blocks.
fn play(config: &CacheConfig) -> (References, u64, u64) {
    const BLOCKS: u32 = 1_900;
    let world = world(config, Background::Inline, &[BLOCKS + 1]);
    let (context, mut rng) = (world.context(), Rng::new(Seed(3)));
    for block in 1..=BLOCKS {
        world.set(&context, page(block), block.into()).unwrap();
    }
    world.cache.flush(&*world, &context).unwrap();
    let slots = world.cache.flash().map_or(0, |flash| {
        flash.flush();
        flash.states().1
    });
    let before = world.count(Statistic::FlashHits);
    world.cache.references().start(1, usize::MAX);
    for _ in 0..20_000 {
        let block = 1 + (f64::from(BLOCKS).powf(rng.unit()) as u32 * 7) % BLOCKS;
        if rng.below(20) == 0 {
            world.set(&context, page(block), block.into()).unwrap();
        } else {
            world.get(&context, page(block)).unwrap();
        }
    }
    let references = world.cache.references().stop().unwrap();
    (references, world.count(Statistic::FlashHits) - before, slots)
}
