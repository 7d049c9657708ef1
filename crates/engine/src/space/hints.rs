//! How full the pages of a segment are: hints, so that space that was freed is found again.
//!
//! In memory there is a byte for each page, and queues of the pages that have room. Who asks for a page with room takes it out of
//! its queue; it comes back when somebody notes that it has room. That no two sessions insert into the same page is the
//! heap's care (its claims). A hint may be wrong: who comes to the page looks for himself, and notes what he finds.
//!
//! From time to time, and at shutdown, the hints go to free-space pages (see `free_space`). After a restart a page whose hint
//! never got there is *unknown*: a few of them are looked at whenever somebody needs space.

use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// How full a page is, as stored in 4 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Fullness {
    /// Nobody has noted it since the segment was last loaded; perhaps blank.
    Unknown = 0,
    /// Less than a quarter is free: no candidate for rows.
    Full = 1,
    /// At least a quarter is free.
    ThreeQuarters = 2,
    /// At least half is free.
    Half = 3,
    /// At least three quarters are free.
    Quarter = 4,
}

impl Fullness {
    const CANDIDATES: [Self; 3] = [Self::ThreeQuarters, Self::Half, Self::Quarter];

    pub fn of(free_bytes: usize, block_bytes: usize) -> Self {
        match free_bytes * 4 / block_bytes {
            0 => Self::Full,
            1 => Self::ThreeQuarters,
            2 => Self::Half,
            _ => Self::Quarter,
        }
    }

    pub fn from_bits(bits: u8) -> Self {
        match bits & 0xF {
            1 => Self::Full,
            2 => Self::ThreeQuarters,
            3 => Self::Half,
            4 => Self::Quarter,
            _ => Self::Unknown,
        }
    }

    /// Where pages of this fullness wait for rows, from 1; 0 is nowhere.
    fn queue(self) -> usize {
        (self as usize).saturating_sub(Self::Full as usize)
    }

    /// Bytes that are free at least.
    fn free_bytes_min(self, block_bytes: usize) -> usize {
        match self {
            Self::Unknown | Self::Full => 0,
            Self::ThreeQuarters => block_bytes / 4,
            Self::Half => block_bytes / 2,
            Self::Quarter => block_bytes / 4 * 3,
        }
    }
}

/// Bits of a page's byte besides its [`Fullness`]: it was given out since the segment was loaded; the queue that it is in, from 1, or 0.
const GIVEN: u8 = 0x10;
const QUEUE: u8 = 0x60;
const QUEUE_SHIFT: u32 = QUEUE.trailing_zeros();

/// The queue that a page is in, from 1; 0 is none.
fn queue_of(byte: u8) -> usize {
    usize::from((byte & QUEUE) >> QUEUE_SHIFT)
}

/// The hints of one segment.
pub(super) struct Hints {
    /// By page number.
    bytes: RwLock<Vec<AtomicU8>>,
    /// Page numbers, by [`Fullness::CANDIDATES`]. A page is in the queue that its byte says; elsewhere it is left over, and passed
    /// over. When it has become fuller since, that is found out when it is its turn; when emptier, it is queued anew.
    queues: Mutex<[Vec<u32>; 3]>,
    /// Pages that were below the high-water mark when the segment was loaded, and are not looked at yet: those below this number.
    unknown: Mutex<u32>,
    /// Something was noted since the hints were last written.
    pub changed: AtomicBool,
}

fn enqueue(queues: &mut [Vec<u32>; 3], byte: &AtomicU8, number: u32, queue: usize) {
    let bits = (queue as u8) << QUEUE_SHIFT;
    byte.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now & !QUEUE | bits))
        .expect("never refused");
    queues[queue - 1].push(number);
}

impl Hints {
    /// Of a segment with `pages` pages: nothing is known of the first `unknown`, the others have been given to somebody.
    pub fn new(pages: u32, unknown: u32) -> Self {
        let byte = |number| AtomicU8::new(if number < unknown { 0 } else { GIVEN });
        Self {
            bytes: RwLock::new((0..pages).map(byte).collect()),
            queues: Mutex::default(),
            unknown: Mutex::new(unknown),
            changed: AtomicBool::new(false),
        }
    }

    /// The segment has so many pages now; the new ones are somebody's, or about to be.
    pub fn grow(&self, pages: u32) {
        let mut bytes = self.bytes.write();
        while bytes.len() < pages as usize {
            bytes.push(AtomicU8::new(GIVEN));
        }
    }

    /// Notes how much is free in a page.
    pub fn note(&self, number: u32, free_bytes: usize, block_bytes: usize) {
        let bytes = self.bytes.read();
        let Some(byte) = bytes.get(number as usize) else { return };
        let fullness = Fullness::of(free_bytes, block_bytes);
        let set = |now: u8| Some(now & !0xF | fullness as u8);
        let old = byte.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set).expect("never refused");
        if Fullness::from_bits(old) != fullness {
            self.changed.store(true, Ordering::Relaxed);
        }
        if fullness.queue() > queue_of(old) {
            self.queue(byte, number);
        }
    }

    /// Puts a page into the queue it belongs to, unless it is in that or in a better one. Two that do so at once meet at the mutex,
    /// under which alone the queue of a page changes.
    fn queue(&self, byte: &AtomicU8, number: u32) {
        let mut queues = self.queues.lock();
        let now = byte.load(Ordering::Relaxed);
        let queue = Fullness::from_bits(now).queue();
        if queue > queue_of(now) {
            enqueue(&mut queues, byte, number, queue);
        }
    }

    /// Takes the fullest page that has at least `free_bytes` free, as far as the hints know, out of the queues.
    pub fn take(&self, free_bytes: usize, block_bytes: usize) -> Option<u32> {
        let bytes = self.bytes.read();
        let mut queues = self.queues.lock();
        for fullness in Fullness::CANDIDATES {
            if fullness.free_bytes_min(block_bytes) < free_bytes {
                continue;
            }
            while let Some(number) = queues[fullness.queue() - 1].pop() {
                let byte = &bytes[number as usize];
                if queue_of(byte.load(Ordering::Relaxed)) != fullness.queue() {
                    continue;
                }
                let is = Fullness::from_bits(byte.fetch_and(!QUEUE, Ordering::Relaxed));
                if is.queue() > 0 {
                    if is.free_bytes_min(block_bytes) >= free_bytes {
                        return Some(number);
                    }
                    enqueue(&mut queues, byte, number, is.queue());
                }
            }
        }
        None
    }

    /// The next page of which nothing is known, from the end of the segment: that is where the last inserts were.
    pub fn next_unknown(&self) -> Option<u32> {
        let mut unknown = self.unknown.lock();
        let bytes = self.bytes.read();
        while *unknown > 0 {
            *unknown -= 1;
            let byte = &bytes[*unknown as usize];
            if byte.load(Ordering::Relaxed) == Fullness::Unknown as u8 {
                byte.store(GIVEN, Ordering::Relaxed);
                return Some(*unknown);
            }
        }
        None
    }

    /// An unknown page that turned out to be no place for rows.
    pub fn is_no_candidate(&self, number: u32) {
        self.bytes.read()[number as usize].store(Fullness::Full as u8, Ordering::Relaxed);
    }

    /// Sets what a free-space page says of pages from `first` on; not of those that somebody knows better already.
    pub fn load(&self, first: u32, levels: impl Iterator<Item = u8>) {
        let bytes = self.bytes.read();
        for (number, level) in (first as usize..bytes.len()).zip(levels) {
            let level = Fullness::from_bits(level) as u8;
            let byte = &bytes[number];
            if byte.compare_exchange(0, level, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.queue(byte, number as u32);
            }
        }
    }

    /// What is known of `count` pages from `first` on, as a free-space page has it.
    pub fn save(&self, first: u32, count: usize) -> Vec<u8> {
        let bytes = self.bytes.read();
        let known = bytes.iter().skip(first as usize).take(count);
        known.map(|byte| Fullness::from_bits(byte.load(Ordering::Relaxed)) as u8).collect()
    }

    /// Pages that there are hints of.
    pub fn pages(&self) -> u32 {
        self.bytes.read().len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 8192;

    #[test]
    fn a_page_that_becomes_emptier_is_found_once() {
        let hints = Hints::new(10, 10);
        for n in 0..10 {
            hints.note(n, 100, BLOCK);
        }
        assert_eq!(hints.take(100, BLOCK), None, "all are full");
        hints.note(4, 2100, BLOCK);
        hints.note(4, 4100, BLOCK);
        hints.note(5, 7000, BLOCK);
        assert_eq!(hints.take(5000, BLOCK), Some(5));
        assert_eq!(hints.take(5000, BLOCK), None, "taken");
        hints.note(5, 7000, BLOCK);
        assert_eq!(hints.take(2000, BLOCK), Some(4), "the fuller one");
        hints.note(5, 10, BLOCK);
        assert_eq!(hints.take(2000, BLOCK), None, "it has become full while it waited");
        hints.note(5, 2100, BLOCK);
        hints.note(5, 7000, BLOCK);
        assert_eq!(hints.take(6000, BLOCK), Some(5), "it has become emptier while it waited");
        assert_eq!(hints.take(10, BLOCK), None, "it was taken, wherever else it is left over");
    }

    #[test]
    fn queues_do_not_grow_with_the_number_of_notes() {
        let hints = Hints::new(1, 1);
        for _ in 0..1000 {
            for free in [10, 3000, 5000, 7000, 2100] {
                hints.note(0, free, BLOCK);
            }
        }
        assert!(hints.queues.lock().iter().map(Vec::len).sum::<usize>() <= 3);
        assert_eq!((hints.take(100, BLOCK), hints.take(100, BLOCK)), (Some(0), None));
    }

    #[test]
    fn what_nobody_knows_is_looked_at_from_the_end() {
        let hints = Hints::new(5, 4);
        hints.load(0, [1, 0, 3, 0, 4].into_iter());
        assert_eq!(hints.take(4000, BLOCK), Some(2), "page 4 was given to somebody, who knows better");
        assert_eq!(hints.take(4000, BLOCK), None);
        assert_eq!(
            (hints.next_unknown(), hints.next_unknown(), hints.next_unknown()),
            (Some(3), Some(1), None)
        );
        assert_eq!(hints.save(0, 5), [1, 0, 3, 0, 0]);
    }
}
