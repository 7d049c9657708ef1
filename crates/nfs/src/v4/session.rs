//! Slots of a session: what makes each call of 4.1 happen exactly once. Source: RFC 8881, 2.10.6.
//!
//! ```text
//! idle -> called       [call]         the sequence id goes up by one
//! called -> idle       [answered]
//! called -> idle       [not_begun]    SEQUENCE itself was refused: the sequence id goes back
//! called -> called     [repeat]       the connection broke: the same sequence id again, and the server tells whether it had it
//! ```

use crate::transfer::SlotCall;

/// What the server calls a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 16]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot {
    /// Of the latest call; 0 before the first.
    sequence: u32,
    called: bool,
}

/// A session's slots.
#[derive(Clone, Debug)]
pub struct Slots {
    slots: Vec<Slot>,
}

impl Slots {
    /// Those of a new session, `count` of them.
    pub fn new(count: u32) -> Self {
        Self { slots: vec![Slot::default(); count as usize] }
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    fn idle_to(&mut self, slot: u32, called: bool) -> &mut Slot {
        let it = &mut self.slots[slot as usize];
        assert_eq!(it.called, called, "slot {slot} of a session");
        it
    }

    /// A new call in `slot`.
    ///
    /// # Panics
    /// While it has one: a bug.
    pub fn call(&mut self, slot: u32) -> SlotCall {
        let it = self.idle_to(slot, false);
        *it = Slot { sequence: it.sequence.wrapping_add(1), called: true };
        SlotCall { slot, sequence: it.sequence }
    }

    /// The call that `slot` has, to be sent again as it was.
    ///
    /// # Panics
    /// When it has none: a bug.
    pub fn repeat(&mut self, slot: u32) -> SlotCall {
        let sequence = self.idle_to(slot, true).sequence;
        SlotCall { slot, sequence }
    }

    /// The call in `slot` has its reply; the server went through SEQUENCE.
    ///
    /// # Panics
    /// When it has none: a bug.
    pub fn answered(&mut self, slot: u32) {
        self.idle_to(slot, true).called = false;
    }

    /// The server refused SEQUENCE: to it, there was no call.
    ///
    /// # Panics
    /// When it has none: a bug.
    pub fn not_begun(&mut self, slot: u32) {
        let it = self.idle_to(slot, true);
        *it = Slot { sequence: it.sequence.wrapping_sub(1), called: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_ids_go_up_by_one_for_what_was_begun() {
        let mut slots = Slots::new(2);
        assert_eq!(slots.call(0), SlotCall { slot: 0, sequence: 1 });
        assert_eq!(slots.repeat(0).sequence, 1, "the same call again");
        slots.answered(0);
        assert_eq!((slots.call(0).sequence, slots.call(1).sequence), (2, 1), "each slot has its own");
        slots.not_begun(0);
        assert_eq!(slots.call(0).sequence, 2, "the refused one does not count");
    }

    #[test]
    #[should_panic(expected = "slot 1")]
    fn one_call_at_a_time() {
        let mut slots = Slots::new(2);
        slots.call(1);
        slots.call(1);
    }
}
