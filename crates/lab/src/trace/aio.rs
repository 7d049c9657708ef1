//! Requests of libaio. The kernel's events tell how many were handed over and how many came back; which files and sizes they were is
//! read from the control blocks in the process's memory, a moment later: a sample, as a block may be in use for the next by then.

use super::analysis::{Key, aio_direction};
use super::class::Product;
use super::figures::{Act, Direction, Figures};
use super::files::{Files, PlaceId};
use host::trace::process::Memory;
use std::collections::{BTreeMap, VecDeque};
use units::Nanos;

/// Control blocks that are looked at in one call, and calls that are looked at in one batch of events.
const BLOCKS_MAX: u64 = 8;
const LOOKS_MAX: u32 = 100;

/// When it was handed over, how many are left, whose.
type Batch = (Nanos, u64, Key);

/// All contexts of all processes.
#[derive(Debug, Default)]
pub(super) struct Aio {
    memory: BTreeMap<u32, Option<Memory>>,
    /// What requests of a context were last seen to be.
    seen: BTreeMap<(u32, u64), (PlaceId, Direction)>,
    /// Sizes of the call that is under way.
    sizes: Vec<u64>,
    /// In order of submission.
    in_flight: BTreeMap<(u32, u64), VecDeque<Batch>>,
    looks: u32,
}

impl Aio {
    pub(super) fn new_batch(&mut self) {
        self.looks = 0;
    }

    /// Looks at the control blocks of a call that begins.
    pub(super) fn look(&mut self, process: u32, product: Product, arguments: [u64; 6], files: &mut Files) {
        let [context, count, pointers, ..] = arguments;
        self.sizes.clear();
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            return;
        }
        let memory = self.memory.entry(process).or_insert_with(|| Memory::of(process));
        let Some(memory) = memory else { return };
        for n in 0..count.min(BLOCKS_MAX) {
            // struct iocb: data, key and flags, opcode with priority and descriptor, buffer, bytes, offset.
            let block = memory.words::<1>(pointers + n * 8).and_then(|[block]| memory.words::<5>(block));
            let Some([_, _, head, _, bytes]) = block else { return };
            let (opcode, fd) = (head as u16, (head >> 32) as i32);
            if let Some(place) = files.place(product, process, fd) {
                self.seen.insert((process, context), (place, aio_direction(opcode)));
                // Vectored ones have a number of pieces there.
                if opcode <= 1 {
                    self.sizes.push(bytes);
                }
            }
        }
    }

    pub(super) fn submitted(
        &mut self,
        (tid, process): (u32, u32),
        arguments: [u64; 6],
        result: i64,
        (since, at): (Nanos, Nanos),
        figures: &mut BTreeMap<Key, Figures>,
    ) {
        let context = (process, arguments[0]);
        let Some((place, direction)) = self.seen.get(&context).copied() else { return };
        let key = (tid, place, Act::Aio(direction));
        let own = figures.entry(key).or_default();
        own.calls += 1;
        own.submit_ns += (at - since).0;
        let Ok(count @ 1..) = u64::try_from(result) else {
            own.errors += u64::from(result < 0);
            return;
        };
        own.requests += count;
        own.batches.add(count, 1);
        let sampled = self.sizes.len() as u64;
        self.sizes.iter().for_each(|size| own.sizes.add(*size, 1));
        // What was not looked at is as large as what was.
        own.bytes += self.sizes.iter().sum::<u64>() * count / sampled.max(1);
        self.in_flight.entry(context).or_default().push_back((since, count, key));
    }

    /// Completions belong to the requests that wait longest: the events do not tell which.
    pub(super) fn reaped(
        &mut self,
        process: u32,
        context: u64,
        result: i64,
        at: Nanos,
        figures: &mut BTreeMap<Key, Figures>,
    ) {
        let Some(queue) = self.in_flight.get_mut(&(process, context)) else { return };
        let mut left = u64::try_from(result).unwrap_or(0);
        while left > 0 {
            let Some((begun, count, key)) = queue.front_mut() else { return };
            let some = left.min(*count);
            let own = figures.entry(*key).or_default();
            own.latency.record_n((at - *begun).0, some);
            left -= some;
            *count -= some;
            if *count == 0 {
                own.span_ns += (at - *begun).0;
                queue.pop_front();
            }
        }
    }
}
