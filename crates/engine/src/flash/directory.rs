//! A part of the directory: which block is in which slot of the flash cache, and which slot is given up next.
//!
//! Each shard has slots of one file, one after the other, and its own lock. Start with [`Shard::offer`] and [`Shard::find`].
//!
//! ```text
//! free    -> pending  [offer]   the block waits to be written, or is being written: not in its slot, though maybe still in memory
//! pending -> valid    [settle]  its write has ended well
//! pending -> doomed   [remove]  the block has changed meanwhile: out of the map, but the slot is not reused before its write has ended
//! doomed  -> free     [settle]
//! valid   -> free     [remove, replaced]
//! ```
//!
//! Memory: 33 bytes for each slot (address, LSN, object, chain, queue; state), 4 to 8 for the heads of the chains, 4 to 8 for what is
//! remembered of blocks that were turned away: at most [`BYTES_PER_BLOCK_MAX`].

use super::head::{HASH, Head, NONE, SLOTS_MAX};
use super::policy::{Ghosts, Policy};
use crate::page::{Lsn, PageId};

/// Bytes of memory for each block that fits.
pub const BYTES_PER_BLOCK_MAX: usize = 49;

/// More hits than this count for nothing.
const HITS_MAX: u8 = 3;
/// Slots looked at for one that can be given up. Each that was hit is spared once more for each of its hits, so the
/// blocks that pay stay, however many others knock.
const LOOKS_MAX: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Pending,
    Valid,
    Doomed,
}

/// Which queue a slot is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Default,
    Keep,
}

#[derive(Clone, Copy)]
struct Slot {
    /// [`PageId::to_u64`].
    key: u64,
    lsn: u64,
    object: u32,
    /// Next slot of the chain.
    chain: u32,
    prev: u32,
    next: u32,
}

const EMPTY: Slot = Slot { key: 0, lsn: 0, object: 0, chain: NONE, prev: NONE, next: NONE };

/// State, hits and class in one byte.
#[derive(Clone, Copy)]
struct Mark(u8);

impl Mark {
    const FREE: Self = Self(0);

    fn new(state: State, hits: u8, class: Class) -> Self {
        Self(state as u8 | hits << 2 | (class as u8) << 4)
    }

    fn state(self) -> State {
        [State::Free, State::Pending, State::Valid, State::Doomed][usize::from(self.0 & 3)]
    }

    fn hits(self) -> u8 {
        self.0 >> 2 & 3
    }

    fn class(self) -> Class {
        if self.0 & 16 == 0 { Class::Default } else { Class::Keep }
    }

    fn with_state(self, state: State) -> Self {
        Self::new(state, self.hits(), self.class())
    }

    fn with_hits(self, hits: u8) -> Self {
        Self::new(self.state(), hits, self.class())
    }
}

/// A queue through the slots; the head is given up first.
#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// A block that leaves the buffer cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub id: PageId,
    pub lsn: Lsn,
    pub object: u32,
    pub keep: bool,
}

/// What had to go for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// A block was given up.
    pub aged_out: bool,
    /// Slots passed over because their write is under way.
    pub pinned: u64,
}

/// A block found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub slot: u32,
    pub lsn: Lsn,
    /// Its write has not ended: its slot holds something else.
    pub pending: bool,
}

/// A block that is there, for views and for the saved index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub slot: u32,
    pub id: PageId,
    pub lsn: Lsn,
    pub object: u32,
    pub keep: bool,
}

/// A part of the directory; whoever calls holds its lock.
pub(super) struct Shard {
    slots: Box<[Slot]>,
    marks: Box<[Mark]>,
    heads: Box<[Head]>,
    queues: [List; 2],
    /// Slots from here on were never used.
    fresh: u32,
    /// Slots that were freed, by [`Slot::next`].
    free: u32,
    free_count: u32,
    valid_count: u32,
    ghosts: Ghosts,
    policy: Policy,
}

impl Shard {
    pub fn new(slots: u32, policy: Policy) -> Self {
        assert!(slots <= SLOTS_MAX, "{slots} slots in a shard");
        let buckets = (slots as usize).next_power_of_two();
        let ghosts = if policy == Policy::Classic { 0 } else { buckets };
        Self {
            slots: vec![EMPTY; slots as usize].into(),
            marks: vec![Mark::FREE; slots as usize].into(),
            heads: vec![Head::EMPTY; buckets].into(),
            queues: [List { head: NONE, tail: NONE }; 2],
            fresh: 0,
            free: NONE,
            free_count: slots,
            valid_count: 0,
            ghosts: Ghosts::new(ghosts),
            policy,
        }
    }

    /// Slots that hold nothing.
    pub fn free_count(&self) -> u32 {
        self.free_count
    }

    /// Blocks that can be read.
    pub fn valid_count(&self) -> u32 {
        self.valid_count
    }

    /// Bytes of memory.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.slots) + self.marks.len() + size_of_val(&*self.heads) + self.ghosts.bytes()
    }

    fn bucket(&self, key: u64) -> usize {
        (key.wrapping_mul(HASH) >> 32) as usize & (self.heads.len() - 1)
    }

    fn slot_of(&self, key: u64) -> Option<u32> {
        let head = self.heads[self.bucket(key)];
        let mut at = if head.may_have(key) { head.slot() } else { NONE };
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.key == key {
                return Some(at);
            }
            at = slot.chain;
        }
        None
    }

    /// The slot of a block; counts as a hit.
    pub fn find(&mut self, id: PageId) -> Option<Found> {
        let slot = self.slot_of(id.to_u64())?;
        let mark = self.marks[slot as usize];
        match self.policy {
            Policy::Classic => self.move_to_tail(slot),
            Policy::ScanResistant => {
                self.marks[slot as usize] = mark.with_hits((mark.hits() + 1).min(HITS_MAX));
            }
        }
        let pending = mark.state() == State::Pending;
        Some(Found { slot, lsn: Lsn(self.slots[slot as usize].lsn), pending })
    }

    /// Whether the block is still where it was found.
    pub fn is_still(&self, id: PageId, found: Found) -> bool {
        self.slot_of(id.to_u64()) == Some(found.slot)
            && self.marks[found.slot as usize].state() == State::Valid
            && self.slots[found.slot as usize].lsn == found.lsn.0
    }

    /// Whether the block is there, to be read or on its way.
    pub fn has(&self, id: PageId) -> bool {
        self.slot_of(id.to_u64()).is_some()
    }

    /// A block that is not there leaves the buffer cache: gives it a slot, in state pending, if that is worth a write.
    pub fn offer(&mut self, candidate: Candidate) -> (Option<u32>, Given) {
        let mut given = Given::default();
        let free = self.take_free();
        let slot = free.or_else(|| self.make_room(candidate.id.to_u64(), candidate.keep, &mut given));
        if let Some(slot) = slot {
            self.put(slot, candidate, State::Pending);
        }
        (slot, given)
    }

    /// Takes back an offer whose write was not begun.
    pub fn cancel(&mut self, id: PageId, slot: u32) {
        self.remove(id);
        self.give_back(slot);
    }

    /// A slot of a block that is worth less than the one that wants in.
    fn make_room(&mut self, key: u64, keep: bool, given: &mut Given) -> Option<u32> {
        // Wanted a second time since it was turned away, else a scan would wash the cache out and wear the device.
        if self.policy == Policy::ScanResistant && !keep && !self.ghosts.take(key) {
            self.ghosts.remember(key);
            return None;
        }
        let victim = self.victim(Class::Default, given);
        let victim = victim.or_else(|| if keep { self.victim(Class::Keep, given) } else { None });
        let Some(victim) = victim else {
            self.ghosts.remember(key);
            return None;
        };
        given.aged_out = true;
        self.take_out(victim);
        self.unlink(victim);
        self.valid_count -= 1;
        Some(victim)
    }

    fn victim(&mut self, class: Class, given: &mut Given) -> Option<u32> {
        for _ in 0..LOOKS_MAX {
            let slot = self.queues[class as usize].head;
            if slot == NONE {
                return None;
            }
            let mark = self.marks[slot as usize];
            if mark.state() != State::Valid {
                given.pinned += 1;
            } else if mark.hits() == 0 {
                return Some(slot);
            } else {
                self.marks[slot as usize] = mark.with_hits(mark.hits() - 1);
            }
            self.move_to_tail(slot);
        }
        None
    }

    fn put(&mut self, slot: u32, candidate: Candidate, state: State) {
        let class = if candidate.keep { Class::Keep } else { Class::Default };
        let (key, bucket) = (candidate.id.to_u64(), self.bucket(candidate.id.to_u64()));
        let (lsn, object) = (candidate.lsn.0, candidate.object);
        let head = self.heads[bucket];
        self.slots[slot as usize] = Slot { key, lsn, object, chain: head.slot(), prev: NONE, next: NONE };
        self.heads[bucket] = head.with(slot, key);
        self.marks[slot as usize] = Mark::new(state, 0, class);
        self.link(slot);
    }

    /// The write of a slot has ended. False when the block was doomed meanwhile: the slot is free now.
    pub fn settle(&mut self, slot: u32) -> bool {
        let mark = self.marks[slot as usize];
        match mark.state() {
            State::Pending => {
                self.marks[slot as usize] = mark.with_state(State::Valid);
                self.valid_count += 1;
                true
            }
            State::Doomed => {
                self.give_back(slot);
                false
            }
            state => panic!("the write of a {state:?} slot has ended"),
        }
    }

    /// Whether what waits for this slot is still worth writing; else the slot is free now.
    pub fn is_wanted(&mut self, slot: u32) -> bool {
        if self.marks[slot as usize].state() == State::Doomed {
            self.give_back(slot);
            return false;
        }
        true
    }

    /// The block changes, or is nobody's any more. Whether it was there.
    pub fn remove(&mut self, id: PageId) -> bool {
        let Some(slot) = self.slot_of(id.to_u64()) else { return false };
        self.drop_slot(slot);
        true
    }

    /// All blocks of an object. How many.
    pub fn remove_object(&mut self, object: u32) -> u64 {
        let mut count = 0;
        for slot in 0..self.fresh {
            let there = matches!(self.marks[slot as usize].state(), State::Pending | State::Valid);
            if there && self.slots[slot as usize].object == object {
                self.drop_slot(slot);
                count += 1;
            }
        }
        count
    }

    fn drop_slot(&mut self, slot: u32) {
        self.take_out(slot);
        self.unlink(slot);
        let mark = self.marks[slot as usize];
        if mark.state() == State::Pending {
            self.marks[slot as usize] = mark.with_state(State::Doomed);
        } else {
            self.valid_count -= 1;
            self.give_back(slot);
        }
    }

    fn take_free(&mut self) -> Option<u32> {
        let slot = if self.free != NONE {
            let slot = self.free;
            self.free = self.slots[slot as usize].next;
            slot
        } else if (self.fresh as usize) < self.slots.len() {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return None;
        };
        self.free_count -= 1;
        Some(slot)
    }

    fn give_back(&mut self, slot: u32) {
        self.slots[slot as usize] = Slot { next: self.free, ..EMPTY };
        self.marks[slot as usize] = Mark::FREE;
        self.free = slot;
        self.free_count += 1;
    }

    /// Out of its chain, which is linked anew.
    fn take_out(&mut self, slot: u32) {
        let bucket = self.bucket(self.slots[slot as usize].key);
        let mut at = std::mem::replace(&mut self.heads[bucket], Head::EMPTY).slot();
        while at != NONE {
            let Slot { key, chain, .. } = self.slots[at as usize];
            if at != slot {
                self.slots[at as usize].chain = self.heads[bucket].slot();
                self.heads[bucket] = self.heads[bucket].with(at, key);
            }
            at = chain;
        }
    }

    fn queue(&mut self, slot: u32) -> &mut List {
        &mut self.queues[self.marks[slot as usize].class() as usize]
    }

    fn link(&mut self, slot: u32) {
        let queue = self.queue(slot);
        let last = std::mem::replace(&mut queue.tail, slot);
        if last == NONE {
            queue.head = slot;
        } else {
            self.slots[last as usize].next = slot;
        }
        let at = &mut self.slots[slot as usize];
        (at.prev, at.next) = (last, NONE);
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { prev, next, .. } = self.slots[slot as usize];
        if next == NONE {
            self.queue(slot).tail = prev;
        } else {
            self.slots[next as usize].prev = prev;
        }
        if prev == NONE {
            self.queue(slot).head = next;
        } else {
            self.slots[prev as usize].next = next;
        }
    }

    fn move_to_tail(&mut self, slot: u32) {
        self.unlink(slot);
        self.link(slot);
    }

    /// All blocks that can be read, by slot.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let there = |slot: &u32| self.marks[*slot as usize].state() == State::Valid;
        (0..self.fresh).filter(there).map(|slot| {
            let Slot { key, lsn, object, .. } = self.slots[slot as usize];
            let keep = self.marks[slot as usize].class() == Class::Keep;
            Entry { slot, id: PageId::from_u64(key), lsn: Lsn(lsn), object, keep }
        })
    }

    /// Takes over what a clean shutdown left in the slots, in their order; of an empty shard.
    pub fn restore(&mut self, entries: &[Entry]) {
        assert_eq!(self.fresh, 0, "a shard in use is not restored");
        for entry in entries {
            while self.fresh < entry.slot {
                let skipped = self.fresh;
                self.fresh += 1;
                self.free_count -= 1;
                self.give_back(skipped);
            }
            self.fresh += 1;
            self.free_count -= 1;
            self.valid_count += 1;
            let Entry { id, lsn, object, keep, .. } = *entry;
            self.put(entry.slot, Candidate { id, lsn, object, keep }, State::Valid);
        }
    }
}
