//! The references of some blocks, in order, in bounded memory.

use super::{KEEP_ALL, hash, is_kept};
use std::collections::{HashMap, HashSet};

/// What happened to a block at the edge of the buffer cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was not in the buffer cache and was read.
    Read,
    /// It left the buffer cache clean.
    Offer,
    /// It was changed in the buffer cache: a copy below is stale from here on.
    Change,
}

/// One event of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Address, below 2⁶².
    pub block: u64,
    /// What happened.
    pub event: Event,
}

impl Reference {
    fn pack(self) -> u64 {
        self.block << 2 | self.event as u64
    }

    fn unpack(packed: u64) -> Self {
        let event = match packed & 3 {
            0 => Event::Read,
            1 => Event::Offer,
            _ => Event::Change,
        };
        Self { block: packed >> 2, event }
    }
}

/// Fewer blocks than this say too little: rather than sample more thinly, the sampler ends.
const BLOCKS_MIN: usize = 4096;

/// Takes references and keeps those of sampled blocks.
///
/// Begins with all blocks. Whenever what it keeps reaches its limit, it halves the share of blocks that it keeps and forgets the others, so memory is
/// bounded and short runs lose nothing. Where that would leave fewer than 4096 blocks it ends instead: what comes later is not kept.
#[derive(Debug)]
pub struct Sampler {
    seed: u64,
    threshold: u64,
    limit: usize,
    log: Vec<u64>,
    reads: u64,
    /// Nothing more is kept.
    ended: bool,
}

impl Sampler {
    /// Keeps at most `limit` references (8 bytes each), of the blocks that `seed` chooses.
    pub fn new(seed: u64, limit: usize) -> Self {
        Self { seed, threshold: KEEP_ALL, limit: limit.max(1), log: Vec::new(), reads: 0, ended: false }
    }

    /// Begins with one block in `1 / rate` instead of all.
    #[must_use]
    pub fn at_rate(mut self, rate: f64) -> Self {
        self.threshold = ((rate.clamp(0.0, 1.0) * KEEP_ALL as f64) as u64).max(1);
        self
    }

    /// What [`is_kept`] needs; 0 when the sampler has ended.
    pub fn threshold(&self) -> u64 {
        if self.ended { 0 } else { self.threshold }
    }

    /// Takes a reference, whether it is kept or not.
    pub fn note(&mut self, reference: Reference) {
        if !self.ended {
            self.reads += u64::from(reference.event == Event::Read);
        }
        self.keep(reference);
    }

    /// Keeps a reference, if its block is sampled: for a caller that asks [`is_kept`] first and counts all reads itself ([`Self::finish_with`]).
    pub fn keep(&mut self, reference: Reference) {
        if !is_kept(reference.block, self.seed, self.threshold()) {
            return;
        }
        if self.log.len() >= self.limit {
            self.thin();
            if !is_kept(reference.block, self.seed, self.threshold()) {
                return;
            }
        }
        self.log.push(reference.pack());
    }

    #[cold]
    fn thin(&mut self) {
        let (seed, limit) = (self.seed, self.limit);
        while self.log.len() >= limit {
            let threshold = self.threshold / 2;
            let left = |packed: &u64| is_kept(packed >> 2, seed, threshold);
            let blocks: HashSet<u64> = self.log.iter().filter(|p| left(p)).map(|p| p >> 2).collect();
            if blocks.len() < BLOCKS_MIN.min(limit / 4) {
                self.ended = true;
                return;
            }
            self.threshold = threshold;
            self.log.retain(left);
        }
    }

    /// What was kept.
    pub fn finish(self) -> References {
        let reads = self.reads;
        self.finish_with(reads)
    }

    /// The same, of `reads` reads in all.
    pub fn finish_with(self, reads: u64) -> References {
        let rate = self.threshold as f64 / KEEP_ALL as f64;
        References { seed: self.seed, rate, reads, log: self.log }
    }
}

/// References of sampled blocks, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct References {
    /// Which blocks were chosen.
    pub seed: u64,
    /// Share of blocks that were kept, above 0 to 1.
    pub rate: f64,
    /// Reads of all blocks, kept or not.
    pub reads: u64,
    log: Vec<u64>,
}

impl References {
    /// All that was kept, in order.
    pub fn iter(&self) -> impl Iterator<Item = Reference> + '_ {
        self.log.iter().map(|packed| Reference::unpack(*packed))
    }

    /// How many references were kept.
    pub fn len(&self) -> usize {
        self.log.len()
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Reads that were kept.
    pub fn reads_kept(&self) -> u64 {
        self.iter().filter(|reference| reference.event == Event::Read).count() as u64
    }

    /// Different blocks that were read, of all blocks: estimated by the sampling rate.
    pub fn blocks(&self) -> f64 {
        let read = self.iter().filter(|reference| reference.event == Event::Read);
        read.map(|reference| reference.block).collect::<HashSet<_>>().len() as f64 / self.rate
    }

    /// Kept reads per read that the rate lets expect: 1 when the sampled blocks are as hot as the others.
    pub fn overweight(&self) -> f64 {
        let expected = self.reads as f64 * self.rate;
        if expected > 0.0 { self.reads_kept() as f64 / expected } else { 1.0 }
    }

    /// Number of the group that a block belongs to, 0 .. `groups`: independent of whether it was sampled.
    pub(super) fn group(&self, block: u64, groups: usize) -> usize {
        (hash(block, self.seed) & 0xFFFF) as usize % groups
    }

    /// As bytes: LEB128 numbers, for each reference `(number of the block + 1) · 4 + event`, or `event` and then the address of a block that is
    /// new; blocks are numbered from 0 as they come.
    pub fn encode(&self) -> Vec<u8> {
        let mut numbers: HashMap<u64, u64> = HashMap::new();
        let mut bytes = Vec::with_capacity(self.log.len() * 3);
        for packed in &self.log {
            let (block, event) = (packed >> 2, packed & 3);
            let next = numbers.len() as u64;
            match numbers.entry(block) {
                std::collections::hash_map::Entry::Occupied(known) => {
                    write(&mut bytes, (known.get() + 1) << 2 | event);
                }
                std::collections::hash_map::Entry::Vacant(new) => {
                    new.insert(next);
                    write(&mut bytes, event);
                    write(&mut bytes, block);
                }
            }
        }
        bytes
    }

    /// Back; `None` when the bytes are not what [`Self::encode`] makes.
    pub fn decode(seed: u64, rate: f64, reads: u64, bytes: &[u8]) -> Option<Self> {
        if !(rate > 0.0 && rate <= 1.0) {
            return None;
        }
        let (mut blocks, mut log, mut rest) = (Vec::new(), Vec::new(), bytes);
        while !rest.is_empty() {
            let number = read(&mut rest)?;
            let event = number & 3;
            let block = match number >> 2 {
                0 => {
                    let block = read(&mut rest)?;
                    blocks.push(block);
                    block
                }
                known => *blocks.get(known as usize - 1)?,
            };
            if event > Event::Change as u64 || block >> 62 != 0 {
                return None;
            }
            log.push(block << 2 | event);
        }
        Some(Self { seed, rate, reads, log })
    }
}

fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7F) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
