//! Where a chain of the directory begins, and which keys are certainly not in it.
//!
//! A slot lies anywhere in memory: to look at one costs as much as the rest of a look-up. Most keys that are looked for are not there, and the head alone
//! tells of seven in eight chains of one slot.

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
/// Slots of a shard at most.
pub(super) const SLOTS_MAX: u32 = (1 << SLOT_BITS) - 1;
/// Spreads keys.
pub(super) const HASH: u64 = 0x9E37_79B9_7F4A_7C15;

/// Bits of a head that hold a slot; all set: none.
const SLOT_BITS: u32 = 24;

/// The first slot of a chain, and which of eight kinds of keys are in it.
#[derive(Clone, Copy)]
pub(super) struct Head(u32);

impl Head {
    /// Of a chain without slots.
    pub const EMPTY: Self = Self(SLOTS_MAX);

    /// The first slot, or [`NONE`].
    pub fn slot(self) -> u32 {
        let slot = self.0 & SLOTS_MAX;
        if slot == SLOTS_MAX { NONE } else { slot }
    }

    /// False when the key is certainly not in the chain.
    pub fn may_have(self, key: u64) -> bool {
        self.0 & kind(key) != 0
    }

    /// With a slot in front, whose key is `key`.
    #[must_use]
    pub fn with(self, slot: u32, key: u64) -> Self {
        Self((self.0 & !SLOTS_MAX) | kind(key) | slot)
    }
}

/// By the bits of the hash that do not choose the chain.
fn kind(key: u64) -> u32 {
    1 << (SLOT_BITS + (key.wrapping_mul(HASH) >> 61) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_what_was_put_and_little_else() {
        for key in 0..1_000 {
            let head = Head::EMPTY.with(7, key);
            assert!(head.slot() == 7 && head.may_have(key));
            let false_alarms = (1_000..2_000).filter(|other| head.may_have(*other)).count();
            assert!((50..250).contains(&false_alarms), "{false_alarms} of 1,000, not one in eight");
        }
        assert!(Head::EMPTY.slot() == NONE && (0..1_000).all(|key| !Head::EMPTY.may_have(key)));
    }
}
