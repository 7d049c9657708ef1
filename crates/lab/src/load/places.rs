//! Where the next request goes.

use super::{LoadSpec, Pattern};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Rng, Seed};

/// A block of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: u32,
    pub(super) offset: u64,
}

/// One thread's source of places.
pub(super) struct Places {
    next: Next,
    blocks_per_file: u64,
    block_bytes: u64,
    first: u64,
    /// Whether the pattern ends, and has ended.
    ends: bool,
    ended: bool,
}

enum Next {
    Random { rng: Rng, blocks: u64 },
    Once(Deck),
    Append { dealt: Arc<AtomicU64>, blocks: u64 },
    Sequential { from: u64, to: u64, at: u64 },
}

/// A source for each of `threads` threads over `files` files.
pub(super) fn split(spec: &LoadSpec, files: u64, threads: u64) -> Vec<Places> {
    let block_bytes = u64::from(spec.block_bytes);
    let blocks_per_file = (spec.span.end - spec.span.start) / block_bytes;
    let blocks = blocks_per_file * files;
    let dealt = Arc::new(AtomicU64::new(0));
    let next = |thread: u64| match spec.pattern {
        Pattern::RandomRead => Next::Random { rng: Rng::new(spec.seed.part(thread)), blocks },
        // Two writes to one block in flight together may tear it, so writes are dealt from one deck too.
        Pattern::RandomReadOnce | Pattern::RandomReadAll | Pattern::RandomWrite => {
            Next::Once(Deck::new(spec.seed, blocks, dealt.clone()))
        }
        Pattern::Append => Next::Append { dealt: dealt.clone(), blocks },
        Pattern::SequentialRead | Pattern::SequentialWrite => {
            // More threads than blocks: some share one.
            let from = (blocks * thread / threads).min(blocks - 1);
            let to = (blocks * (thread + 1) / threads).max(from + 1);
            Next::Sequential { from, to, at: from }
        }
    };
    let ends = matches!(spec.pattern, Pattern::RandomReadAll | Pattern::Append);
    let places = |thread| Places {
        next: next(thread),
        blocks_per_file,
        block_bytes,
        first: spec.span.start,
        ends,
        ended: false,
    };
    (0..threads).map(places).collect()
}

impl Places {
    #[inline]
    pub(super) fn next(&mut self) -> Place {
        let block = match &mut self.next {
            Next::Random { rng, blocks } => rng.below(*blocks),
            Next::Once(deck) => {
                let block = deck.draw();
                self.ended |= self.ends && deck.at >= deck.blocks;
                block
            }
            Next::Append { dealt, blocks } => {
                let block = dealt.fetch_add(1, Ordering::Relaxed);
                self.ended |= block + 1 >= *blocks;
                block % *blocks
            }
            Next::Sequential { from, to, at } => {
                let block = *at;
                *at = if block + 1 == *to { *from } else { block + 1 };
                block
            }
        };
        self.place(block)
    }

    /// Whether the last block has been dealt of a pattern that comes to an end.
    #[inline]
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    #[inline]
    fn place(&self, block: u64) -> Place {
        // The division is for several files only: it costs as much as drawing the number.
        let (file, block) = if block < self.blocks_per_file {
            (0, block)
        } else {
            (block / self.blocks_per_file, block % self.blocks_per_file)
        };
        Place { file: file as u32, offset: self.first + block * self.block_bytes }
    }
}

/// Draws that a thread takes from the common deck at once, so that threads seldom meet at its counter.
const HAND: u64 = 256;

/// All blocks in an order that looks random, without a table: a bijection on the next power of two, walked until it falls
/// below the number of blocks (cycle walking, Black & Rogaway 2002; under two steps on average).
struct Deck {
    permutation: Permutation,
    blocks: u64,
    dealt: Arc<AtomicU64>,
    at: u64,
    hand_end: u64,
}

impl Deck {
    fn new(seed: Seed, blocks: u64, dealt: Arc<AtomicU64>) -> Self {
        Self { permutation: Permutation::new(seed, blocks), blocks, dealt, at: 0, hand_end: 0 }
    }

    #[inline]
    fn draw(&mut self) -> u64 {
        if self.at == self.hand_end {
            self.at = self.dealt.fetch_add(HAND, Ordering::Relaxed);
            self.hand_end = self.at + HAND;
        }
        let index = self.at % self.blocks;
        self.at += 1;
        self.permutation.of(index, self.blocks)
    }
}

/// Rounds of multiply by an odd number and xor with the upper half: each step can be undone, so all of it is a bijection.
struct Permutation {
    factors: [u64; 3],
    offset: u64,
    mask: u64,
    shift: u32,
}

impl Permutation {
    fn new(seed: Seed, blocks: u64) -> Self {
        let mut rng = Rng::new(seed);
        let bits = (u64::BITS - blocks.saturating_sub(1).leading_zeros()).max(1);
        let factors = [rng.next_u64() | 1, rng.next_u64() | 1, rng.next_u64() | 1];
        Self {
            factors,
            offset: rng.next_u64(),
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
        }
    }

    #[inline]
    fn of(&self, index: u64, blocks: u64) -> u64 {
        let mut word = index;
        loop {
            word = word.wrapping_add(self.offset) & self.mask;
            for factor in self.factors {
                word = word.wrapping_mul(factor) & self.mask;
                word ^= word >> self.shift;
            }
            if word < blocks {
                return word;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(pattern: Pattern) -> LoadSpec {
        LoadSpec {
            pattern,
            block_bytes: 4096,
            span: 8192..8192 + 1000 * 4096 + 5,
            ..super::super::tests::spec()
        }
    }

    fn draw(pattern: Pattern, files: u64, threads: u64, each: usize) -> Vec<Vec<Place>> {
        let mut sources = split(&spec(pattern), files, threads);
        // Threads take turns, as they would at the same speed.
        let mut drawn = vec![Vec::new(); threads as usize];
        for _ in 0..each {
            for (source, places) in sources.iter_mut().zip(&mut drawn) {
                places.push(source.next());
            }
        }
        drawn
    }

    #[test]
    fn places_are_blocks_of_the_span() {
        for pattern in [Pattern::RandomRead, Pattern::RandomReadOnce, Pattern::SequentialWrite] {
            for files in [1, 3] {
                let drawn = draw(pattern, files, 2, 5000);
                for place in drawn.iter().flatten() {
                    assert!(u64::from(place.file) < files);
                    assert!(
                        place.offset >= 8192 && place.offset < 8192 + 1000 * 4096 && place.offset % 4096 == 0
                    );
                }
                let used: std::collections::BTreeSet<_> = drawn.iter().flatten().map(|p| p.file).collect();
                assert_eq!(used.len() as u64, files);
            }
        }
    }

    #[test]
    fn once_is_once_over_all_threads() {
        for threads in [1, 4] {
            let drawn = draw(Pattern::RandomReadOnce, 1, threads, 1000 / threads as usize);
            let mut offsets: Vec<u64> = drawn.iter().flatten().map(|place| place.offset).collect();
            offsets.sort_unstable();
            offsets.dedup();
            // Hands are dealt whole: the last ones may reach into the second round.
            assert!(
                offsets.len() >= 1000 - threads as usize * HAND as usize / 2,
                "{threads}: {}",
                offsets.len()
            );
            assert!(threads > 1 || offsets.len() == 1000);
        }
    }

    #[test]
    fn sequences_are_contiguous_and_apart() {
        let drawn = draw(Pattern::SequentialRead, 2, 4, 700);
        for (thread, places) in drawn.iter().enumerate() {
            let first = places[0];
            assert_eq!(
                (first.file, first.offset),
                (thread as u32 / 2, 8192 + (thread as u64 % 2) * 500 * 4096)
            );
            assert!(places[..500].windows(2).all(|pair| pair[1].offset == pair[0].offset + 4096));
            assert_eq!(places[500], first, "and again from the start");
        }
        let alone = draw(Pattern::SequentialRead, 1, 3000, 2);
        assert_eq!(alone.len(), 3000, "more threads than blocks share some");
    }

    #[test]
    fn a_permutation_meets_each_block_once() {
        for blocks in [1, 2, 3, 7, 8, 1000, 4096, 5000] {
            for seed in 0..5 {
                let permutation = Permutation::new(Seed(seed), blocks);
                let mut seen: Vec<u64> = (0..blocks).map(|index| permutation.of(index, blocks)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..blocks).collect::<Vec<_>>(), "{blocks} blocks, seed {seed}");
            }
        }
    }

    #[test]
    fn a_permutation_does_not_march() {
        let blocks = 100_000;
        let permutation = Permutation::new(Seed(3), blocks);
        let mut strides = std::collections::BTreeMap::new();
        for index in 1..10_000 {
            let stride = permutation.of(index, blocks).wrapping_sub(permutation.of(index - 1, blocks));
            *strides.entry(stride).or_insert(0) += 1;
        }
        let most = strides.values().max().unwrap();
        assert!(*most < 500, "the same stride {most} times of 10,000: a device would see a pattern");
    }
}
