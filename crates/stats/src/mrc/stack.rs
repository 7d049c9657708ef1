//! Blocks in the order of their last use, with the number of blocks above each in logarithmic time.

use std::collections::HashMap;

/// A stack from which any block can be taken.
///
/// Each block has a place in a Fenwick tree over time; the depth of a block is the count of places behind its own. Places are given out in order and
/// numbered anew when they are used up, so memory follows the number of blocks, not of references.
#[derive(Debug, Default)]
pub struct Stack {
    places: HashMap<u64, u32>,
    /// 1-based sums; `tree.len() - 1` places.
    tree: Vec<u32>,
    next: u32,
}

impl Stack {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Blocks above it; none when it is not there.
    pub fn depth(&self, block: u64) -> Option<usize> {
        let place = *self.places.get(&block)?;
        Some(self.places.len() - self.sum(place) as usize)
    }

    /// Takes it out; how many were above.
    pub fn take(&mut self, block: u64) -> Option<usize> {
        let depth = self.depth(block)?;
        let place = self.places.remove(&block)?;
        self.add(place, u32::MAX);
        Some(depth)
    }

    /// Puts it on top, from wherever it was. Whether it is new.
    pub fn put(&mut self, block: u64) -> bool {
        let old = self.take(block);
        if self.next as usize + 1 >= self.tree.len() {
            self.number_anew();
        }
        self.next += 1;
        self.places.insert(block, self.next);
        self.add(self.next, 1);
        old.is_none()
    }

    fn number_anew(&mut self) {
        let mut order: Vec<(u32, u64)> = self.places.iter().map(|(block, place)| (*place, *block)).collect();
        order.sort_unstable();
        self.tree = vec![0; (2 * order.len()).max(1024) + 1];
        self.next = 0;
        for (_, block) in order {
            self.next += 1;
            self.places.insert(block, self.next);
            self.add(self.next, 1);
        }
    }

    fn add(&mut self, place: u32, by: u32) {
        let mut at = place as usize;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }

    /// Blocks at this place and before.
    fn sum(&self, place: u32) -> u32 {
        let (mut at, mut sum) = (place as usize, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }
}
