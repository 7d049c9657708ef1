//! What a write to the flash cache costs sessions, against what it promises them.
//!
//! A write makes hits slower while it is under way, and may turn a miss into a hit later. Where a hit saves a session many times what a write takes,
//! nothing is worth more than filling the cache; where it saves less, as in a scan of a disk that streams well, writes should be rare.

use units::Nanos;

/// What was longer ago than this counts little.
const MEMORY: Nanos = Nanos::millis(200);

/// Time and blocks of one kind of transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// All sessions' together.
    pub time: Nanos,
    pub blocks: u64,
}

/// The same of late, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    seconds: f64,
    blocks: f64,
}

impl Lately {
    fn note(&mut self, kept: f64, before: Spent, now: Spent) {
        self.seconds = self.seconds * kept + (now.time - before.time).as_secs();
        self.blocks = self.blocks * kept + now.blocks.saturating_sub(before.blocks) as f64;
    }

    /// Seconds.
    fn of_a_block(&self) -> Option<f64> {
        (self.blocks > 0.0).then(|| self.seconds / self.blocks)
    }
}

/// What hits, misses and writes took of late.
#[derive(Debug, Default)]
pub(super) struct Balance {
    at: Nanos,
    seen: [Spent; 3],
    hits: Lately,
    misses: Lately,
    writes: Lately,
    /// Seconds.
    span: f64,
}

impl Balance {
    /// What was spent by now: in reads from here, in reads of data files, and in writes to here (any that is under way).
    pub fn note(&mut self, now: Nanos, [hits, misses, writes]: [Spent; 3]) {
        let span = (now - self.at).as_secs();
        let kept = (-span / MEMORY.as_secs()).exp();
        self.hits.note(kept, self.seen[0], hits);
        self.misses.note(kept, self.seen[1], misses);
        self.writes.note(kept, self.seen[2], writes);
        self.span = self.span * kept + span;
        (self.at, self.seen) = (now, [hits, misses, writes]);
    }

    /// How far writes should give way to reads: from 0, where nobody reads from here, or a hit saves more than a write takes, to 1, where sessions do
    /// nothing but read from here, and a write takes twice as long as a hit saves.
    pub fn yielding(&self) -> f64 {
        let Some(hit) = self.hits.of_a_block() else { return 0.0 };
        let busy = (self.hits.seconds / self.span).min(1.0);
        let saved = self.misses.of_a_block().map_or(0.0, |miss| miss - hit);
        let cost = self.writes.of_a_block().unwrap_or(hit);
        if cost >= 2.0 * saved { busy } else { busy * (cost / saved - 1.0).max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In each millisecond so many blocks that take so many microseconds each: hits, misses, writes.
    fn steady(balance: &mut Balance, blocks: [u64; 3], micros: [u64; 3]) {
        for _ in 0..2_000 {
            let mut spent = balance.seen;
            for (n, spent) in spent.iter_mut().enumerate() {
                spent.time += Nanos::micros(blocks[n] * micros[n]);
                spent.blocks += blocks[n];
            }
            balance.note(balance.at + Nanos::millis(1), spent);
        }
    }

    #[test]
    fn writes_give_way_where_hits_fill_the_time_and_save_little() {
        let mut balance = Balance::default();
        assert_eq!(balance.yielding(), 0.0);
        let mut after = |blocks, micros| {
            steady(&mut balance, blocks, micros);
            balance.yielding()
        };
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 0.01, "{found}, not {expected}");
        near(after([5, 0, 1], [100, 0, 100]), 0.5);
        near(after([40, 0, 1], [100, 0, 100]), 1.0);
        near(after([40, 4, 1], [100, 150, 100]), 1.0);
        near(after([40, 4, 1], [100, 180, 100]), 0.25);
        near(after([40, 4, 1], [100, 2_100, 100]), 0.0);
        near(after([0, 4, 1], [0, 2_100, 100]), 0.0);
    }
}
