//! Numbers of calls. They pair a reply with its call, and they are what servers recognise a repeated call by.

use units::{Rng, Seed};

/// Gives each call a number that names its slot, and that comes back only after 2²² calls or more of that slot. (A server's
/// cache of replies goes by the number: one that came back soon was answered with an old reply.)
///
/// ```text
/// | count of the slot's calls | slot |
/// ```
#[derive(Clone, Debug)]
pub struct Xids {
    counts: Vec<u32>,
    slot_bits: u32,
}

/// Most slots.
pub const SLOTS_MAX: u32 = 1024;

impl Xids {
    /// For `slots` slots, 1 to 1024, starting anywhere.
    ///
    /// # Panics
    /// With another number of slots: a bug.
    pub fn new(slots: u32, seed: Seed) -> Self {
        assert!((1..=SLOTS_MAX).contains(&slots), "{slots} slots");
        let mut rng = Rng::new(seed);
        let counts = (0..slots).map(|_| rng.next_u64() as u32).collect();
        Self { counts, slot_bits: slots.next_power_of_two().trailing_zeros() }
    }

    /// A new number for the next call of `slot`.
    ///
    /// # Panics
    /// With an unknown slot: a bug.
    pub fn draw(&mut self, slot: u32) -> u32 {
        let count = &mut self.counts[slot as usize];
        *count = count.wrapping_add(1);
        self.current(slot)
    }

    /// The number of the latest call of `slot`, to send it again.
    ///
    /// # Panics
    /// With an unknown slot: a bug.
    pub fn current(&self, slot: u32) -> u32 {
        self.counts[slot as usize] << self.slot_bits | slot
    }

    /// The slot whose latest call has number `xid`; `None` for an older call, or one that is not ours.
    pub fn slot(&self, xid: u32) -> Option<u32> {
        let slot = xid & ((1 << self.slot_bits) - 1);
        ((slot as usize) < self.counts.len() && self.current(slot) == xid).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_slot_and_does_not_come_back_soon() {
        for slots in [1, 2, 3, 32, 1000, 1024] {
            let mut xids = Xids::new(slots, Seed(3));
            let mut seen = std::collections::HashSet::new();
            for round in 0..20_000 {
                let slot = round % slots;
                let xid = xids.draw(slot);
                assert!(seen.insert(xid), "{xid} came back");
                assert_eq!(xids.slot(xid), Some(slot));
            }
            let old = xids.draw(0);
            xids.draw(0);
            assert_eq!(xids.slot(old), None, "the reply to a call that was given up");
        }
        let xids = Xids::new(3, Seed(3));
        assert!(xids.slot(3).is_none(), "a slot that does not exist");
    }
}
