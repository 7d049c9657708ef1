//! The sort area: records in memory, sorted by their keys.
//!
//! A record is a key and a payload. An index beside the bytes keeps the first eight bytes of each key, so that most comparisons
//! look at nothing else.

use std::cmp::Ordering;

/// Index of one record. Key and payload lie in `bytes`, one after the other.
#[derive(Clone, Copy)]
struct Slot {
    head: u64,
    at: u32,
    key_bytes: u32,
    payload_bytes: u32,
}

const SLOT_BYTES: usize = size_of::<Slot>();

/// An area is never larger: its records are found by 32 bits.
pub(super) const AREA_BYTES_MAX: usize = 2 << 30;

/// Records in memory.
#[derive(Default)]
pub(super) struct Area {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

/// The first eight bytes of a key as a number that orders as they do; shorter keys are filled up with zeroes.
pub(super) fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let bytes = key.len().min(8);
    head[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(head)
}

impl Area {
    /// What it takes in memory.
    pub fn bytes_used(&self) -> usize {
        self.bytes.len() + SLOT_BYTES * self.slots.len()
    }

    /// What it would take with one more record.
    pub fn bytes_with(&self, key: &[u8], payload: &[u8]) -> usize {
        self.bytes_used() + SLOT_BYTES + key.len() + payload.len()
    }

    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Takes a record.
    ///
    /// # Panics
    /// With more than [`AREA_BYTES_MAX`] bytes before it.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) {
        let at = u32::try_from(self.bytes.len()).expect("the area is below 4 GiB");
        let (key_bytes, payload_bytes) = (key.len() as u32, payload.len() as u32);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        self.slots.push(Slot { head: head(key), at, key_bytes, payload_bytes });
    }

    /// Brings the records in order of their keys; equal ones stay in the order in which they came.
    pub fn sort(&mut self) {
        let Self { bytes, slots } = self;
        let key = |slot: &Slot| &bytes[slot.at as usize..][..slot.key_bytes as usize];
        // The position makes the order total, so the faster sort that is not stable gives the stable result.
        slots.sort_unstable_by(|a, b| match a.head.cmp(&b.head) {
            Ordering::Equal => key(a).cmp(key(b)).then(a.at.cmp(&b.at)),
            unequal => unequal,
        });
    }

    /// Record `index`: key and payload.
    pub fn record(&self, index: usize) -> (&[u8], &[u8]) {
        let slot = &self.slots[index];
        let (key, rest) = self.bytes[slot.at as usize..].split_at(slot.key_bytes as usize);
        (key, &rest[..slot.payload_bytes as usize])
    }

    /// Forgets all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
    }
}
