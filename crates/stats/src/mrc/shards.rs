//! SHARDS: the miss-ratio curve of an LRU cache from the reuse distances of sampled blocks.

use super::stack::Stack;
use super::{Event, KEEP_ALL, Reference, hash};
use std::collections::BinaryHeap;

/// Bins of a power of two: sizes are told apart to 1 / 256.
const BINS_BITS: u32 = 8;

/// Reuse distances, for all sizes of an LRU cache at once.
///
/// At a fixed rate memory grows with the blocks that are used. With a limit ([`Shards::fixed_size`]) the rate falls when more blocks come than it allows: the blocks
/// with the greatest hashes are forgotten, and later references weigh more. What the sampled blocks are hotter or colder than the rate lets
/// expect is added to the shortest distance (the paper's `SHARDS-adj`).
#[derive(Debug)]
pub struct Shards {
    seed: u64,
    threshold: u64,
    blocks_max: usize,
    stack: Stack,
    /// The blocks of the stack by hash, when there is a limit; also those that have left it.
    by_hash: BinaryHeap<(u64, u64)>,
    bins: Vec<f64>,
    cold: f64,
    reads: u64,
}

impl Shards {
    /// Samples one block in `1 / rate`; 1 takes all and is exact.
    pub fn fixed_rate(seed: u64, rate: f64) -> Self {
        let threshold = ((rate.clamp(0.0, 1.0) * KEEP_ALL as f64) as u64).max(1);
        Self {
            seed,
            threshold,
            blocks_max: usize::MAX,
            stack: Stack::default(),
            by_hash: BinaryHeap::new(),
            bins: Vec::new(),
            cold: 0.0,
            reads: 0,
        }
    }

    /// Holds at most `blocks` blocks at a time, about 60 bytes each.
    pub fn fixed_size(seed: u64, blocks: usize) -> Self {
        Self { blocks_max: blocks.max(1), ..Self::fixed_rate(seed, 1.0) }
    }

    /// Share of blocks that is sampled now.
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / KEEP_ALL as f64
    }

    /// A use of a block in an LRU cache that takes what it reads.
    pub fn touch(&mut self, block: u64) {
        self.reads += 1;
        if self.is_sampled(block) {
            let depth = self.stack.depth(block);
            self.count(depth);
            self.put(block);
        }
    }

    /// An event at a *victim* cache: a block that is read goes up into the buffer cache, one that leaves it comes here. With an LRU buffer cache above of
    /// B blocks, a cache here of F hits exactly what an LRU cache of B + F would hit and one of B would not.
    pub fn victim(&mut self, reference: Reference) {
        let Reference { block, event } = reference;
        self.reads += u64::from(event == Event::Read);
        if self.is_sampled(block) {
            match event {
                Event::Read => {
                    let depth = self.stack.take(block);
                    self.count(depth);
                }
                Event::Offer => self.put(block),
                Event::Change => drop(self.stack.take(block)),
            }
        }
    }

    /// What was seen so far has filled the cache; reads count from here.
    pub fn count_from_here(&mut self) {
        self.bins.clear();
        (self.cold, self.reads) = (0.0, 0);
    }

    fn is_sampled(&self, block: u64) -> bool {
        hash(block, self.seed) >> 32 < self.threshold
    }

    fn count(&mut self, depth: Option<usize>) {
        let weight = 1.0 / self.rate();
        let Some(depth) = depth else {
            self.cold += weight;
            return;
        };
        let bin = bin((depth as f64 / self.rate()) as u64 + 1);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0.0);
        }
        self.bins[bin] += weight;
    }

    fn put(&mut self, block: u64) {
        let new = self.stack.put(block);
        if self.blocks_max == usize::MAX || !new {
            return;
        }
        self.by_hash.push((hash(block, self.seed) >> 32, block));
        while self.stack.len() > self.blocks_max {
            let Some((greatest, _)) = self.by_hash.peek().copied() else { return };
            self.threshold = greatest;
            while self.by_hash.peek().is_some_and(|(hash, _)| *hash >= greatest) {
                let Some((_, block)) = self.by_hash.pop() else { return };
                self.stack.take(block);
            }
        }
        if self.by_hash.len() > 2 * self.blocks_max {
            let kept: Vec<_> = self.by_hash.drain().collect();
            self.by_hash = kept.into_iter().filter(|(_, block)| self.stack.depth(*block).is_some()).collect();
        }
    }

    /// The curve of what was seen so far. `reads`: how many there were in all, when what was given is a sample itself; none: what was counted here.
    pub fn curve(&self, reads: Option<u64>) -> Curve {
        let reads = reads.unwrap_or(self.reads) as f64;
        let seen: f64 = self.bins.iter().sum::<f64>() + self.cold;
        let mut hits = reads - seen;
        let mut points = Vec::new();
        for (bin, weight) in self.bins.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            hits += weight;
            points.push((blocks_of(bin), (hits / reads).clamp(0.0, 1.0)));
        }
        Curve { points }
    }
}

/// Hit ratio of an LRU cache against its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// From this many blocks on, this hit ratio; sizes rise.
    points: Vec<(u64, f64)>,
}

impl Curve {
    /// Share of reads that a cache of `blocks` blocks serves, 0 to 1; nothing for a cache of no blocks.
    pub fn hit_ratio(&self, blocks: u64) -> f64 {
        match self.points.partition_point(|(size, _)| *size <= blocks) {
            0 => 0.0,
            n => self.points[n - 1].1,
        }
    }

    /// The smallest size, blocks, at which the ratio is within `tolerance` of its greatest: more gains nothing. 0 when nothing is ever hit.
    pub fn enough(&self, tolerance: f64) -> u64 {
        let best = self.points.last().map_or(0.0, |point| point.1);
        self.points.iter().find(|point| point.1 >= best - tolerance).map_or(0, |point| point.0)
    }
}

fn bin(blocks: u64) -> usize {
    if blocks >> BINS_BITS == 0 {
        return blocks as usize;
    }
    let shift = blocks.ilog2() - BINS_BITS;
    ((u64::from(shift) << BINS_BITS) + (blocks >> shift)) as usize
}

/// The greatest size of a bin.
fn blocks_of(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin >> (BINS_BITS + 1) == 0 {
        return bin;
    }
    let shift = (bin >> BINS_BITS) - 1;
    let first = (bin & ((1 << BINS_BITS) - 1)) + (1 << BINS_BITS);
    ((first + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_follow_each_other_and_are_narrow() {
        let mut last = 0;
        for blocks in 1..100_000u64 {
            let at = bin(blocks);
            assert!(at == last || at == last + 1, "{blocks}: {at} after {last}");
            last = at;
            let most = blocks_of(at);
            assert!(most >= blocks && most <= blocks + blocks / 256, "{blocks}: {most}");
            assert_ne!(bin(most + 1), at);
        }
    }
}
