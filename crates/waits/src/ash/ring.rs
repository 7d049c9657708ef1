//! The last ticks, bounded, and readers that take each tick once.

use super::Tick;
use std::collections::VecDeque;
use std::sync::Arc;

/// The last complete ticks. A tick takes one place and one more per row.
pub(super) struct Ring {
    ticks: VecDeque<Arc<Tick>>,
    taken: usize,
    places: usize,
}

fn places(tick: &Tick) -> usize {
    1 + tick.rows.len()
}

impl Ring {
    pub fn new(places: usize) -> Self {
        Self { ticks: VecDeque::new(), taken: 0, places }
    }

    /// The oldest ones leave when there is no place; the new one stays in any case.
    pub fn push(&mut self, tick: Tick) {
        self.taken += places(&tick);
        self.ticks.push_back(Arc::new(tick));
        while self.taken > self.places && self.ticks.len() > 1 {
            self.taken -= self.ticks.pop_front().map_or(0, |old| places(&old));
        }
    }

    pub fn all(&self) -> Vec<Arc<Tick>> {
        self.ticks.iter().cloned().collect()
    }

    /// Ticks from number `id` on, and how many of those are gone already.
    pub fn from(&self, id: u64) -> Drained {
        let oldest = self.ticks.front().map_or(id, |tick| tick.id);
        let ticks = self.ticks.iter().filter(|tick| tick.id >= id).cloned().collect();
        Drained { ticks, overwritten: oldest.saturating_sub(id) }
    }
}

/// Where somebody is who takes each tick once, such as the writer of a record. Made by [`super::Sampler::reader`]; several
/// do not disturb each other.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) next: u64,
}

/// What a reader gets.
#[derive(Clone, Debug, Default)]
pub struct Drained {
    /// Complete ticks, the oldest first.
    pub ticks: Vec<Arc<Tick>>,
    /// Ticks that left the ring before they were read: read more often, or give it more places.
    pub overwritten: u64,
}
