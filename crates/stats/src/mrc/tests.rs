//! Samples against exact simulations: the laws that the curves promise.

use super::gain::{Device, Workload};
use super::miniature::{Cache, Flash, Policy, flash_hit_ratio};
use super::*;
use crate::interval::Interval;
use std::collections::{BTreeMap, HashMap};
use units::{Rng, Seed};

/// An LRU cache, simply.
#[derive(Default)]
struct Lru {
    size: usize,
    turn: u64,
    places: HashMap<u64, u64>,
    order: BTreeMap<u64, u64>,
}

impl Lru {
    fn new(size: usize) -> Self {
        Self { size, ..Self::default() }
    }

    fn take(&mut self, block: u64) -> bool {
        self.places.remove(&block).is_some_and(|turn| self.order.remove(&turn).is_some())
    }

    /// On top; who had to go for it.
    fn put(&mut self, block: u64) -> Option<u64> {
        self.take(block);
        self.turn += 1;
        self.places.insert(block, self.turn);
        self.order.insert(self.turn, block);
        let (_, oldest) = if self.order.len() > self.size { self.order.pop_first()? } else { return None };
        self.places.remove(&oldest);
        Some(oldest)
    }
}

/// Gets: most of them of few blocks (about Zipf), some of a scan that comes round again and again.
fn gets(seed: u64, count: usize, blocks: u64, scans: u64) -> Vec<u64> {
    let mut rng = Rng::new(Seed(seed));
    let mut scan = 0;
    let get = |_| {
        if rng.below(100) < scans {
            scan = (scan + 1) % blocks;
            return blocks + scan;
        }
        // Addresses are mixed, so that hot blocks are no neighbours.
        let rank = ((blocks as f64).powf(rng.unit()) as u64).min(blocks - 1);
        rank * 7919 % blocks
    };
    (0..count).map(get).collect()
}

/// What goes on below an LRU buffer cache; a tenth of the blocks change when they are got.
fn below(gets: &[u64], buffers: usize, changes: u64) -> Vec<Reference> {
    let (mut buffer, mut rng) = (Lru::new(buffers), Rng::new(Seed(99)));
    let mut events = Vec::new();
    for block in gets.iter().copied() {
        if !buffer.take(block) {
            events.push(Reference { block, event: Event::Read });
        }
        if rng.below(100) < changes {
            events.push(Reference { block, event: Event::Change });
        }
        if let Some(block) = buffer.put(block) {
            events.push(Reference { block, event: Event::Offer });
        }
    }
    events
}

fn lru_hits(gets: &[u64], size: usize) -> usize {
    let mut lru = Lru::new(size);
    let mut hit = |block: &u64| {
        let hit = lru.places.contains_key(block);
        lru.put(*block);
        hit
    };
    gets.iter().filter(|block| hit(block)).count()
}

fn sampled(events: &[Reference], seed: u64, limit: usize, rate: f64) -> References {
    let mut sampler = Sampler::new(seed, limit).at_rate(rate);
    events.iter().for_each(|event| sampler.note(*event));
    sampler.finish()
}

fn ratio(references: &References, policy: Policy, blocks: u64) -> Interval {
    flash_hit_ratio(references, policy, blocks, 0.5).unwrap()
}

#[test]
fn all_blocks_give_the_exact_curve_at_every_size() {
    for (seed, scans) in [(1, 0), (2, 30), (3, 100)] {
        let gets = gets(seed, 40_000, 2_000, scans);
        let mut shards = Shards::fixed_rate(7, 1.0);
        gets.iter().for_each(|block| shards.touch(*block));
        let curve = shards.curve(None);
        for size in [0, 1, 2, 17, 100, 255, 500] {
            let exact = lru_hits(&gets, size) as f64 / gets.len() as f64;
            assert!((curve.hit_ratio(size as u64) - exact).abs() < 1e-9, "{scans} % scans, {size} blocks");
        }
        // Above 512 sizes are told apart to one in 256.
        for size in [1_000, 1_999, 2_500, 4_000, 10_000] {
            let least = lru_hits(&gets, size * 255 / 256) as f64 / gets.len() as f64;
            let most = lru_hits(&gets, size) as f64 / gets.len() as f64;
            let said = curve.hit_ratio(size as u64);
            assert!(least - 1e-9 <= said && said <= most + 1e-9, "{size} blocks: {said}, {least} to {most}");
        }
    }
}

#[test]
fn samples_of_fixed_rate_and_of_fixed_size_come_close_to_the_exact_curve() {
    for seed in 0..4 {
        let gets = gets(seed, 300_000, 40_000, 10);
        let (mut tenth, mut bounded) =
            (Shards::fixed_rate(seed + 10, 0.1), Shards::fixed_size(seed + 10, 4_000));
        for block in &gets {
            tenth.touch(*block);
            bounded.touch(*block);
        }
        assert!(bounded.rate() < 0.2, "{}", bounded.rate());
        let curves = [tenth.curve(None), bounded.curve(None)];
        let mut errors = [0.0; 2];
        let sizes = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000, 80_000];
        for size in sizes {
            let exact = lru_hits(&gets, size) as f64 / gets.len() as f64;
            for (error, curve) in errors.iter_mut().zip(&curves) {
                *error += (curve.hit_ratio(size as u64) - exact).abs() / sizes.len() as f64;
            }
        }
        assert!(errors.iter().all(|error| *error < 0.02), "seed {seed}: {errors:?}");
    }
}

/// The law of two levels: an LRU buffer cache of B and a victim cache of F hit together what one LRU cache of B + F hits.
#[test]
fn a_victim_cache_adds_its_size_to_the_buffer_cache() {
    let (gets, buffers) = (gets(5, 60_000, 3_000, 20), 300);
    let events = below(&gets, buffers, 0);
    let mut shards = Shards::fixed_rate(7, 1.0);
    events.iter().for_each(|event| shards.victim(*event));
    let reads = events.iter().filter(|r| r.event == Event::Read).count();
    let curve = shards.curve(None);
    for flash in [1, 10, 100, 200, 400] {
        let together = lru_hits(&gets, buffers + flash) - lru_hits(&gets, buffers);
        let said = curve.hit_ratio(flash as u64) * reads as f64;
        assert!((said - together as f64).abs() < 0.5, "{flash} blocks: {said}, exactly {together}");
    }
}

#[test]
fn a_miniature_hits_what_the_full_cache_hits() {
    for (seed, policy) in (0..3).flat_map(|seed| [(seed, Policy::Classic), (seed, Policy::ScanResistant)]) {
        let events = below(&gets(seed, 400_000, 60_000, 10), 3_000, 3);
        let all = sampled(&events, 1, usize::MAX, 1.0);
        let few = sampled(&events, seed + 20, usize::MAX, 0.1);
        assert!((few.rate - 0.1).abs() < 1e-3 && few.reads == all.reads);
        for blocks in [4_000, 10_000, 30_000] {
            let (exact, said) = (ratio(&all, policy, blocks), ratio(&few, policy, blocks));
            let name = policy.name();
            assert!(
                (exact.value - said.value).abs() < 0.03,
                "{name}, {blocks} blocks: {said:?}, exactly {exact:?}"
            );
            assert!(
                said.high - said.low > exact.high - exact.low,
                "{name}: what was left out is doubted: {said:?}, {exact:?}"
            );
        }
    }
}

/// The interval of a sample holds what all blocks give, about as often as it promises.
#[test]
fn intervals_hold_what_they_promise() {
    let events = below(&gets(8, 150_000, 40_000, 10), 2_000, 3);
    let exact = ratio(&sampled(&events, 1, usize::MAX, 1.0), Policy::ScanResistant, 10_000).value;
    let held = (0..60)
        .filter(|seed| {
            let said = ratio(&sampled(&events, *seed, usize::MAX, 0.1), Policy::ScanResistant, 10_000);
            said.contains(exact)
        })
        .count();
    assert!(held >= 54, "{held} of 60");
}

/// The riddle of the study: of a table that is scanned again and again a classic cache keeps nothing, a resistant one what fits.
#[test]
fn a_scan_larger_than_the_cache_is_the_difference_between_the_policies() {
    let gets: Vec<u64> = (0..120_000).map(|n| n % 20_000).collect();
    let all = sampled(&below(&gets, 500, 0), 1, usize::MAX, 1.0);
    let classic = ratio(&all, Policy::Classic, 5_000).value;
    let resistant = ratio(&all, Policy::ScanResistant, 5_000).value;
    assert!(classic < 0.01, "{classic}");
    assert!((resistant - 0.25).abs() < 0.01, "{resistant}");
    assert!(ratio(&all, Policy::Classic, 20_000).value > 0.95);
}

#[test]
fn what_changed_is_not_hit() {
    let mut flash = Flash::new(Policy::Classic, 10, 10);
    flash.offer(1);
    assert!(flash.read(1), "it stays when it is read");
    flash.change(1);
    assert!(!flash.read(1));
    flash.offer(1);
    assert!(flash.read(1));
}

#[test]
fn a_sampler_keeps_to_its_limit_and_to_whole_blocks() {
    let events = below(&gets(3, 200_000, 50_000, 10), 1_000, 3);
    let references = sampled(&events, 4, 60_000, 1.0);
    assert!(references.len() <= 60_000 && references.len() > 20_000, "{}", references.len());
    assert!(references.rate < 0.5);
    let of = |block: u64| events.iter().filter(move |event| event.block == block).copied();
    for block in references.iter().map(|r| r.block).step_by(5_000) {
        let kept: Vec<_> = references.iter().filter(|r| r.block == block).collect();
        assert_eq!(kept, of(block).collect::<Vec<_>>());
    }
    let exact = sampled(&events, 4, usize::MAX, 1.0);
    assert_eq!(references.reads, exact.reads);
    assert!((references.blocks() / exact.blocks() - 1.0).abs() < 0.05);
}

#[test]
fn a_sampler_ends_before_it_keeps_too_few_blocks() {
    let mut sampler = Sampler::new(1, 1_000);
    (0..100_000).for_each(|n| sampler.note(Reference { block: n % 10, event: Event::Read }));
    assert_eq!(sampler.threshold(), 0);
    let references = sampler.finish();
    assert_eq!((references.len(), references.reads, references.rate), (1_000, 1_001, 1.0));
}

#[test]
fn references_survive_as_bytes() {
    let references = sampled(&below(&gets(3, 5_000, 900, 10), 100, 5), 4, usize::MAX, 0.3);
    let bytes = references.encode();
    assert!(bytes.len() < 4 * references.len(), "{} for {}", bytes.len(), references.len());
    let back = |bytes: &[u8]| References::decode(4, references.rate, references.reads, bytes);
    assert_eq!(back(&bytes).as_ref(), Some(&references));
    assert_eq!(back(&bytes[..bytes.len() - 1]), None, "cut");
    assert_eq!(back(&[8]), None, "a block that was never named");
    assert_eq!(back(&[3, 1]), None, "no event");
    assert_eq!(References::decode(4, 0.0, 1, &bytes), None);
}

fn exactly(hits: f64) -> Interval {
    Interval { value: hits, low: hits, high: hits, level: 0.95, n: 100 }
}

#[test]
fn one_session_gains_what_its_latencies_say() {
    let (slow, fast) =
        (Device::measured(&[(1, 100.0)]).unwrap(), Device::measured(&[(1, 10_000.0)]).unwrap());
    let alone = Workload { sessions: 1, cores: 2, cpu_seconds: 0.0, other_seconds: 0.0 };
    let said = alone.speed_up(&slow, &fast, &exactly(0.5), 0.0);
    assert!((said.value - 0.01 / (0.005 + 0.00005)).abs() < 1e-6, "{said:?}");
    assert!((alone.speed_up(&slow, &fast, &exactly(0.0), 0.0).value - 1.0).abs() < 1e-9);
    let busy = Workload { cpu_seconds: 0.01, ..alone };
    let said = busy.speed_up(&slow, &fast, &exactly(1.0), 0.0);
    assert!((said.value - 0.02 / 0.0101).abs() < 1e-6, "half of the time was the processor's: {said:?}");
}

#[test]
fn many_sessions_gain_until_something_else_holds_them_up() {
    let (slow, fast) = (
        Device::measured(&[(1, 100.0)]).unwrap(),
        Device::measured(&[(1, 10_000.0), (10, 50_000.0)]).unwrap(),
    );
    let many = Workload { sessions: 10, cores: 2, cpu_seconds: 0.0005, other_seconds: 0.0 };
    let at = |hits: f64| many.speed_up(&slow, &fast, &exactly(hits), 0.0).value;
    assert!((at(0.5) / 2.0 - 1.0).abs() < 0.01, "the device is what all wait for: {}", at(0.5));
    assert!((at(0.9) / 10.0 - 1.0).abs() < 0.03, "{}", at(0.9));
    assert!(at(1.0) < 41.0, "2 processors carry 4,000 reads a second, 40 times the device: {}", at(1.0));
    let doubted = Interval { value: 0.5, low: 0.45, high: 0.55, level: 0.95, n: 100 };
    let said = many.speed_up(&slow, &fast, &doubted, 0.0);
    assert!((said.low - 1.82).abs() < 0.02 && (said.high - 2.22).abs() < 0.02, "{said:?}");
}

#[test]
fn a_device_is_held_to_what_the_run_showed() {
    let device = Device::measured(&[(1, 100.0), (4, 250.0), (8, 300.0)]).unwrap();
    assert!((device.latency(1) - 0.01).abs() < 1e-9 && (device.latency(16) - 16.0 / 300.0).abs() < 1e-9);
    let many = Workload { sessions: 8, cores: 2, cpu_seconds: 0.001, other_seconds: 0.002 };
    let fitted = many.fitted(&device, 400.0).unwrap();
    let reached = many.reads_per_second(&fitted, &device, 0.0);
    assert!((reached - 400.0).abs() < 0.01, "{reached}");
    assert!(many.fitted(&device, 5_000.0).is_none(), "processors carry 2,000 at most");
    assert!(Device::measured(&[(0, 5.0), (3, 0.0)]).is_none());
}
