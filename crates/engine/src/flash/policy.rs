//! What is let in: the choice `db_flash_cache_policy`, and the memory of what was turned away.

/// Which blocks are written to the flash cache, and which are given up for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// While there is room, everything; then only what leaves the buffer cache a second time, in place of a block that was not hit since
    /// the hand last came by. Writes give way to reads where they cost more than they save (`balance`); a writer that is behind catches up before more is
    /// let in.
    #[default]
    ScanResistant,
    /// Everything that is evicted, in place of what was not used for longest, as fast as the writer can.
    Classic,
}

impl Policy {
    /// Of `staged` places for blocks that wait: once all were taken, blocks are let in again when no more than so many wait.
    pub(super) fn resume_at(self, staged: usize) -> usize {
        match self {
            Self::ScanResistant => staged / 4,
            Self::Classic => staged,
        }
    }

    /// Fewest places for blocks that wait, in a cache of `frames`: a scan evicts as many blocks at once as it reads with one request
    /// (`db_file_multiblock_read_count`), and two such stretches find a place.
    pub(crate) fn staged_min(self, frames: usize) -> usize {
        match self {
            Self::ScanResistant => (frames / 4).clamp(64, 256),
            Self::Classic => 64,
        }
    }
}

/// Ways of a bucket.
const WAYS: usize = 4;

/// The blocks that were turned away lately, as fingerprints in buckets of four; the oldest of a bucket goes first.
pub(super) struct Ghosts(Box<[u32]>);

impl Ghosts {
    /// Room for so many; 0 or a power of two.
    pub fn new(count: usize) -> Self {
        Self(vec![0; count.next_multiple_of(WAYS).min(count * WAYS)].into())
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn bucket(&mut self, key: u64) -> Option<(&mut [u32], u32)> {
        if self.0.is_empty() {
            return None;
        }
        let hash = (key ^ 0x5851_F42D_4C95_7F2D).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = (hash >> 40) as usize % (self.0.len() / WAYS) * WAYS;
        // 0 is an empty place.
        Some((&mut self.0[at..at + WAYS], (hash as u32 ^ (hash >> 32) as u32) | 1))
    }

    /// Notes a block.
    pub fn remember(&mut self, key: u64) {
        if let Some((bucket, print)) = self.bucket(key) {
            bucket.rotate_right(1);
            bucket[0] = print;
        }
    }

    /// Whether the block was noted; it is forgotten then.
    pub fn take(&mut self, key: u64) -> bool {
        let Some((bucket, print)) = self.bucket(key) else { return false };
        let Some(at) = bucket.iter().position(|other| *other == print) else { return false };
        bucket[at..].rotate_left(1);
        bucket[WAYS - 1] = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_turned_away_is_known_once_and_for_a_while() {
        let mut ghosts = Ghosts::new(1024);
        (0..300).for_each(|key| ghosts.remember(key));
        let known = (0..300).filter(|key| ghosts.take(*key)).count();
        assert!(known > 280, "{known}");
        assert!((0..300).all(|key| !ghosts.take(key)));
        (0..100_000).for_each(|key| ghosts.remember(key));
        assert!((0..50_000).filter(|key| ghosts.take(*key)).count() < 50, "long ago");
    }
}
