//! Requests of libaio. The kernel's events tell how many were handed over and how many came back; what they were is read from the
//! completions in the process's memory, a moment later: a sample, as the next ones may stand there by then.

use super::analysis::{Key, aio_direction};
use super::class::Product;
use super::figures::{Act, Direction, Figures};
use super::files::{Files, PlaceId};
use host::trace::process::Memory;
use std::collections::{BTreeMap, VecDeque};
use units::Nanos;

/// Completions that are looked at in one call, and in one batch of events.
const EVENTS_MAX: u64 = 64;
const LOOKS_MAX: u32 = 2_000;
/// Longest transfer of the kernel (`MAX_RW_COUNT`): what is larger is no size.
const BYTES_MAX: i64 = 0x7fff_f000;

/// All contexts of all processes.
#[derive(Debug, Default)]
pub(super) struct Aio {
    memory: BTreeMap<u32, Option<Memory>>,
    /// What requests of a context were last seen to be.
    seen: BTreeMap<(u32, u64), (PlaceId, Direction)>,
    /// In order of submission.
    in_flight: BTreeMap<(u32, u64), VecDeque<Batch>>,
    looks: u32,
}

/// What one call handed over.
#[derive(Debug)]
struct Batch {
    tid: u32,
    since: Nanos,
    submit: Nanos,
    count: u64,
    left: u64,
    /// Where its calls are counted, as soon as that is known.
    key: Option<Key>,
}

/// Whose completions are looked at.
pub(super) struct Reaped<'a> {
    pub(super) process: u32,
    pub(super) product: Product,
    /// Of the call: the context first, the completions' address fourth.
    pub(super) arguments: [u64; 6],
    /// How many came.
    pub(super) count: u64,
    pub(super) at: Nanos,
    pub(super) files: &'a mut Files,
}

impl Aio {
    pub(super) fn new_batch(&mut self) {
        self.looks = 0;
    }

    pub(super) fn submitted(
        &mut self,
        (tid, process): (u32, u32),
        context: u64,
        count: u64,
        (since, at): (Nanos, Nanos),
    ) {
        let batch = Batch { tid, since, submit: at - since, count, left: count, key: None };
        self.in_flight.entry((process, context)).or_default().push_back(batch);
    }

    /// Completions belong to the requests that wait longest: the events do not tell which.
    pub(super) fn reaped(&mut self, reaped: Reaped<'_>, figures: &mut BTreeMap<Key, Figures>) {
        let Reaped { process, product, arguments, count, at, files } = reaped;
        let context = (process, arguments[0]);
        for n in 0..count {
            let event = if n < EVENTS_MAX { self.look(process, arguments[3], n) } else { None };
            let place = event.and_then(|(fd, opcode, _)| {
                Some((files.place(product, process, fd)?, aio_direction(opcode)))
            });
            if let Some(place) = place {
                self.seen.insert(context, place);
            }
            let Some(queue) = self.in_flight.get_mut(&context) else { return };
            let Some(batch) = queue.front_mut() else { return };
            if let Some((place, direction)) = place.or(self.seen.get(&context).copied()) {
                let key = (batch.tid, place, Act::Aio(direction));
                let own = figures.entry(key).or_default();
                own.requests += 1;
                own.latency.record((at - batch.since).0);
                if let Some((_, _, bytes)) = event {
                    own.end(bytes, direction);
                }
                if batch.key.is_none() {
                    batch.key = Some(key);
                    own.calls += 1;
                    own.submit_ns += batch.submit.0;
                    own.batches.add(batch.count, 1);
                }
            }
            batch.left -= 1;
            if batch.left == 0 {
                if let Some(own) = batch.key.and_then(|key| figures.get_mut(&key)) {
                    own.span_ns += (at - batch.since).0;
                }
                queue.pop_front();
            }
        }
    }

    /// Descriptor, operation and result of completion `n` at `address`, as far as they make sense.
    fn look(&mut self, process: u32, address: u64, n: u64) -> Option<(i32, u16, i64)> {
        self.looks += 1;
        if self.looks > LOOKS_MAX {
            return None;
        }
        let memory = self.memory.entry(process).or_insert_with(|| Memory::of(process)).as_ref()?;
        // struct io_event: data, control block, result, second result.
        let [_, block, result, _] = memory.words::<4>(address.checked_add(n * 32)?)?;
        // struct iocb: data, key and flags, opcode with priority and descriptor, buffer, bytes, offset.
        let [_, _, head] = memory.words::<3>(block)?;
        let (opcode, fd, bytes) = (head as u16, (head >> 32) as i32, result as i64);
        (opcode <= 8 && fd >= 0 && (-4096..=BYTES_MAX).contains(&bytes)).then_some((fd, opcode, bytes))
    }
}
