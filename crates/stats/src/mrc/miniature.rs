//! Miniature simulation: a cache of any policy, its size and its references scaled down by the same factor, hits what the full one would.
//!
//! [`Flash`] is the engine's flash cache as a model: `crates/engine/src/flash/directory.rs` without files, locks and writes under way.

use super::{Event, Reference, References};
use crate::interval::Interval;
use crate::special::t_quantile;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

/// A second-level cache, as its events move it.
pub trait Cache {
    /// A block is read; whether it is here.
    fn read(&mut self, block: u64) -> bool;
    /// A block leaves the level above.
    fn offer(&mut self, block: u64);
    /// A block changes: what is here is stale.
    fn change(&mut self, block: u64);
}

/// Which blocks the flash cache takes and gives up: `db_flash_cache_policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// What is wanted a second time, in place of what was not hit since the hand last came by.
    #[default]
    ScanResistant,
    /// Everything, in place of what was not used for longest.
    Classic,
}

impl Policy {
    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScanResistant => "scan_resistant",
            Self::Classic => "classic",
        }
    }
}

impl FromStr for Policy {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::ScanResistant, Self::Classic]
            .into_iter()
            .find(|policy| policy.name() == text)
            .ok_or_else(|| format!("{text:?} is not a policy; type scan_resistant or classic"))
    }
}

/// Slots that one search looks at, and hits that are remembered: the engine's.
const LOOKS_MAX: u32 = 2;
const HITS_MAX: u8 = 3;

/// The engine's flash cache.
///
/// A queue whose head is given up first is a map from turn to block; whoever moves to the tail gets the next turn.
#[derive(Debug)]
pub struct Flash {
    policy: Policy,
    slots: usize,
    blocks: HashMap<u64, (u64, u8)>,
    queue: BTreeMap<u64, u64>,
    turn: u64,
    /// Blocks that were turned away, by turn, and back; the oldest is forgotten.
    ghosts: HashMap<u64, u64>,
    ghost_queue: BTreeMap<u64, u64>,
    ghosts_max: usize,
}

impl Flash {
    /// Empty, for `slots` blocks; remembers `ghosts` that were turned away.
    pub fn new(policy: Policy, slots: usize, ghosts: usize) -> Self {
        Self {
            policy,
            slots,
            blocks: HashMap::new(),
            queue: BTreeMap::new(),
            turn: 0,
            ghosts: HashMap::new(),
            ghost_queue: BTreeMap::new(),
            ghosts_max: ghosts,
        }
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn enqueue(&mut self, block: u64, hits: u8) {
        let turn = self.next_turn();
        self.queue.insert(turn, block);
        self.blocks.insert(block, (turn, hits));
    }

    fn remember(&mut self, block: u64) {
        let turn = self.next_turn();
        if let Some(old) = self.ghosts.insert(block, turn) {
            self.ghost_queue.remove(&old);
        }
        self.ghost_queue.insert(turn, block);
        if self.ghosts.len() > self.ghosts_max
            && let Some((_, oldest)) = self.ghost_queue.pop_first()
        {
            self.ghosts.remove(&oldest);
        }
    }

    fn was_turned_away(&mut self, block: u64) -> bool {
        let turn = self.ghosts.remove(&block);
        turn.is_some_and(|turn| self.ghost_queue.remove(&turn).is_some())
    }

    /// Gives up a block, if one is found that may go.
    fn make_room(&mut self) -> bool {
        for _ in 0..LOOKS_MAX {
            let Some((_, block)) = self.queue.pop_first() else { return false };
            match self.blocks.remove(&block) {
                Some((_, hits)) if hits > 0 => self.enqueue(block, hits - 1),
                _ => return true,
            }
        }
        false
    }
}

impl Cache for Flash {
    fn read(&mut self, block: u64) -> bool {
        let Some((turn, hits)) = self.blocks.get(&block).copied() else { return false };
        match self.policy {
            Policy::Classic => {
                self.queue.remove(&turn);
                self.enqueue(block, 0);
            }
            Policy::ScanResistant => {
                self.blocks.insert(block, (turn, (hits + 1).min(HITS_MAX)));
            }
        }
        true
    }

    fn offer(&mut self, block: u64) {
        if self.slots == 0 || self.blocks.contains_key(&block) {
            return;
        }
        if self.blocks.len() < self.slots {
            return self.enqueue(block, 0);
        }
        // Wanted a second time since it was turned away, or it stays out.
        let wanted = self.policy == Policy::Classic || self.was_turned_away(block);
        if wanted && self.make_room() {
            self.enqueue(block, 0);
        } else {
            self.remember(block);
        }
    }

    fn change(&mut self, block: u64) {
        if let Some((turn, _)) = self.blocks.remove(&block) {
            self.queue.remove(&turn);
        }
    }
}

/// As [`hit_ratio`], of the engine's flash cache of `blocks` blocks.
pub fn flash_hit_ratio(references: &References, policy: Policy, blocks: u64, warm: f64) -> Option<Interval> {
    // The engine remembers, for each part of at most 16,384 slots, a power of two of blocks.
    let slots = blocks.div_ceil(blocks.div_ceil(16_384).clamp(1, 64)).max(1);
    let ghosts = slots.next_power_of_two() as f64 / slots as f64 * blocks as f64 * references.rate;
    hit_ratio(references, blocks, warm, |slots| Flash::new(policy, slots, ghosts.round() as usize))
}

/// Groups of blocks, and stretches of the run, over which the interval is formed.
const GROUPS: usize = 16;
const STRETCHES: usize = 12;
/// Level of the interval.
const LEVEL: f64 = 0.95;

/// Share of reads that a cache of `blocks` blocks serves, once the first `warm` of the references (0 to below 1) have filled it.
///
/// `make`: the empty cache for so many blocks; it is asked for one of `blocks` times the sampling rate. The interval (95 %) holds
/// what another choice of blocks and another stretch of the run would change: the spread over 16 groups of blocks, as far as blocks were
/// left out, and over 12 stretches of time. `None` when no read is left to count.
pub fn hit_ratio<C: Cache>(
    references: &References,
    blocks: u64,
    warm: f64,
    make: impl FnOnce(usize) -> C,
) -> Option<Interval> {
    let mut cache = make((blocks as f64 * references.rate).round() as usize);
    let counted_from = (references.len() as f64 * warm.clamp(0.0, 1.0)) as usize;
    let counted = references.iter().skip(counted_from).filter(|r| r.event == Event::Read).count();
    let (mut groups, mut stretches) = ([Tally::default(); GROUPS], [Tally::default(); STRETCHES]);
    let mut at = 0;
    for (index, Reference { block, event }) in references.iter().enumerate() {
        match event {
            Event::Read => {
                let hit = cache.read(block);
                if index >= counted_from {
                    groups[references.group(block, GROUPS)].count(hit);
                    stretches[at * STRETCHES / counted].count(hit);
                    at += 1;
                }
            }
            Event::Offer => cache.offer(block),
            Event::Change => cache.change(block),
        }
    }
    if counted == 0 {
        return None;
    }
    let misses: f64 = groups.iter().map(|tally| tally.misses).sum();
    // What the chosen blocks are hotter than the rest are hits of a few hot blocks: misses per expected read, as in SHARDS-adj.
    let expected = counted as f64 / references.overweight();
    let value = (1.0 - misses / expected).clamp(0.0, 1.0);
    let left_out = 1.0 - references.rate;
    let variance = spread(&groups, counted as f64) * left_out + spread(&stretches, counted as f64);
    let half = t_quantile(0.5 + LEVEL / 2.0, (STRETCHES - 1) as f64) * variance.sqrt();
    let (low, high) = ((value - half).max(0.0), (value + half).min(1.0));
    Some(Interval { value, low, high, level: LEVEL, n: counted })
}

#[derive(Clone, Copy, Default)]
struct Tally {
    reads: f64,
    misses: f64,
}

impl Tally {
    fn count(&mut self, hit: bool) {
        self.reads += 1.0;
        self.misses += f64::from(u8::from(!hit));
    }
}

/// Variance of the ratio of misses to reads over clusters (Cochran 1977, 6.4).
fn spread(tallies: &[Tally], reads: f64) -> f64 {
    let ratio = tallies.iter().map(|tally| tally.misses).sum::<f64>() / reads;
    let squares: f64 = tallies.iter().map(|tally| (tally.misses - ratio * tally.reads).powi(2)).sum();
    let count = tallies.len() as f64;
    squares * count / (count - 1.0) / (reads * reads)
}
