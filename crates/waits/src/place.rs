//! A session's place in memory: what it publishes about itself, written by its own thread alone, read by everybody.
//!
//! All words are relaxed atomics, so the writer pays plain stores. A sequence number makes them one: odd while the writer
//! is at it, so a reader that saw the same even number before and after has seen one moment.
//!
//! ```text
//!  writer: seq := odd | fence(release) | words …            | seq := even (release)
//!  reader: seq even? (acquire)         | words … | fence(acquire) | seq still the same? else again
//! ```
//!
//! The fences pair: whoever reads a word of the new state also sees the odd number (or a later one) behind his fence, and
//! whoever saw the even number sees all words stored before it. Source: H. Boehm, "Can seqlocks get along with
//! programming language memory models?", 2012.
//!
//! What it buys: no lock and no read-modify-write (a locked add costs 5 ns, three of them half the budget of a wait). Its
//! price: a reader may have to read again, and each place needs one writer, which `Slot` sees to by not being `Sync`.

use crate::event::Event;
use crate::totals::{BUCKETS, EventTotals, ROWS, bucket};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use units::Nanos;

/// A published word.
#[derive(Default)]
pub(crate) struct Word(AtomicU64);

impl Word {
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// By the one writer, so a load and a store do what elsewhere needs a locked add.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }
}

/// The counters of one event.
pub(crate) struct Row {
    waits: Word,
    waited: Word,
    longest: Word,
    timeouts: Word,
    histogram: [Word; BUCKETS],
}

impl Row {
    fn new() -> Self {
        Self {
            waits: Word::default(),
            waited: Word::default(),
            longest: Word::default(),
            timeouts: Word::default(),
            histogram: std::array::from_fn(|_| Word::default()),
        }
    }

    #[inline(always)]
    pub fn add(&self, waited: u64, timed_out: bool) {
        self.waits.add(1);
        self.waited.add(waited);
        if waited > self.longest.get() {
            self.longest.set(waited);
        }
        if timed_out {
            self.timeouts.add(1);
        }
        self.histogram[bucket(Nanos(waited))].add(1);
    }

    fn read(&self) -> EventTotals {
        EventTotals {
            waits: self.waits.get(),
            timeouts: self.timeouts.get(),
            waited: Nanos(self.waited.get()),
            longest: Nanos(self.longest.get()),
            histogram: std::array::from_fn(|bucket| self.histogram[bucket].get()),
        }
    }

    fn clear(&self) {
        for word in [&self.waits, &self.waited, &self.longest, &self.timeouts] {
            word.set(0);
        }
        self.histogram.iter().for_each(|word| word.set(0));
    }
}

/// No call is open.
pub(crate) const NO_CALL: u64 = u64::MAX;
/// No wait was begun yet.
const NO_EVENT: u64 = u64::MAX >> 1;

/// On a cache line of its own: it is the sampler that writes here.
#[repr(align(128))]
#[derive(Default)]
struct Apart(Word);

/// See the head of the file. Times are nanoseconds of the registry's clock. What each wait writes comes first, so that it
/// shares cache lines (`repr(C)`: in this order).
#[repr(C, align(128))]
pub(crate) struct Place {
    seq: AtomicU64,
    /// The event of this or of the last wait, twice, plus one while it goes on.
    state: Word,
    /// Counts the waits of this place; never starts again, so that a number names one wait for ever.
    number: Word,
    /// When this state began.
    since: Word,
    parameters: [Word; 3],
    /// Time in waits that are not idle, ended ones.
    waited: Word,
    /// Time in idle waits, ended ones.
    idle: Word,
    last_waited: Word,
    /// When the open call began, later by the idle waits inside it; [`NO_CALL`] without one.
    call_since: Word,
    /// Time in ended calls.
    db_time: Word,
    calls: Word,
    logon: Word,
    sql: Word,
    action: Word,
    transaction: Word,
    /// The wait that the next four speak of; they hold for no other.
    detail_number: Word,
    blocker: Word,
    file: Word,
    block: Word,
    object: Word,
    /// What the sampler wanted to know: how long the wait of that number was.
    answer_number: Word,
    answer_waited: Word,
    wanted: Apart,
    rows: Box<[Row; ROWS]>,
}

/// What a place said at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    /// Of this or of the last wait.
    pub event: Option<Event>,
    pub waiting: bool,
    pub number: u64,
    pub since: u64,
    pub parameters: [u64; 3],
    pub waited: u64,
    pub idle: u64,
    pub last_waited: u64,
    pub call_since: Option<u64>,
    pub db_time: u64,
    pub calls: u64,
    pub logon: u64,
    pub sql: u64,
    pub action: u64,
    pub transaction: u64,
    /// Blocker, file, block, object, when they were told for this wait.
    pub detail: Option<[u64; 4]>,
    answer: (u64, u64),
}

/// What became of a wait that was seen going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It took so long.
    After(u64),
    /// It still goes on.
    NotYet,
    /// It ended, and nobody knows when.
    Unknown,
}

impl Observed {
    /// What became of the wait of that number.
    pub fn ended(&self, number: u64) -> Ended {
        if self.answer.0 == number {
            Ended::After(self.answer.1)
        } else if self.number != number {
            Ended::Unknown
        } else if self.waiting {
            Ended::NotYet
        } else {
            Ended::After(self.last_waited)
        }
    }
}

impl Place {
    pub fn new() -> Self {
        let place = Self {
            seq: AtomicU64::new(0),
            state: Word::default(),
            number: Word::default(),
            since: Word::default(),
            parameters: Default::default(),
            waited: Word::default(),
            idle: Word::default(),
            last_waited: Word::default(),
            call_since: Word::default(),
            db_time: Word::default(),
            calls: Word::default(),
            logon: Word::default(),
            sql: Word::default(),
            action: Word::default(),
            transaction: Word::default(),
            detail_number: Word::default(),
            blocker: Word::default(),
            file: Word::default(),
            block: Word::default(),
            object: Word::default(),
            answer_number: Word::default(),
            answer_waited: Word::default(),
            wanted: Apart::default(),
            rows: Box::new(std::array::from_fn(|_| Row::new())),
        };
        place.reset(0);
        place
    }

    /// For a new session. The number of waits and the answer to the sampler stay: it may still ask about the last owner.
    pub fn reset(&self, now: u64) {
        self.publish(|| {
            self.state.set(NO_EVENT << 1);
            self.since.set(now);
            self.logon.set(now);
            self.call_since.set(NO_CALL);
            let zero = [
                &self.waited,
                &self.idle,
                &self.last_waited,
                &self.db_time,
                &self.calls,
                &self.sql,
                &self.action,
                &self.transaction,
                &self.detail_number,
            ];
            zero.into_iter().chain(&self.parameters).for_each(|word| word.set(0));
            self.rows.iter().for_each(Row::clear);
        });
    }

    #[inline(always)]
    fn publish<T>(&self, write: impl FnOnce() -> T) -> T {
        let seq = self.seq.load(Ordering::Relaxed);
        self.seq.store(seq.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let written = write();
        self.seq.store(seq.wrapping_add(2), Ordering::Release);
        written
    }

    /// Reads as often as it takes. Writers hold the number odd for nanoseconds; one that lost its processor just then is
    /// given time.
    fn observe<T>(&self, read: impl Fn() -> T) -> T {
        let mut attempts = 0u32;
        loop {
            let before = self.seq.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let seen = read();
                fence(Ordering::Acquire);
                if self.seq.load(Ordering::Relaxed) == before {
                    return seen;
                }
            }
            attempts = attempts.wrapping_add(1);
            match attempts % 64 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }

    // By the owner.

    /// A wait begins.
    #[inline(always)]
    pub fn begin(&self, event: Event, parameters: [u64; 3], now: u64) {
        self.publish(|| self.begin_inside(event, parameters, now));
    }

    #[inline(always)]
    fn begin_inside(&self, event: Event, parameters: [u64; 3], now: u64) {
        self.state.set((event as u64) << 1 | 1);
        self.number.add(1);
        self.since.set(now);
        self.parameters[0].set(parameters[0]);
        self.parameters[1].set(parameters[1]);
        self.parameters[2].set(parameters[2]);
    }

    /// The wait that goes on ends.
    #[inline(always)]
    pub fn end(&self, event: Event, waited: u64, now: u64, timed_out: bool) {
        self.publish(|| self.end_inside(event, waited, now, timed_out));
        // After the stores: the sampler stores its question, then looks whether the wait goes on (see `ash`).
        if self.wanted.0.get() == self.number.get() {
            self.answer(waited);
        }
    }

    #[inline(always)]
    fn end_inside(&self, event: Event, waited: u64, now: u64, timed_out: bool) {
        self.rows[event as usize].add(waited, timed_out);
        if event.is_idle() {
            self.idle.add(waited);
            if self.call_since.get() != NO_CALL {
                self.call_since.add(waited);
            }
        } else {
            self.waited.add(waited);
        }
        self.last_waited.set(waited);
        self.state.set((event as u64) << 1);
        self.since.set(now);
    }

    #[cold]
    fn answer(&self, waited: u64) {
        self.publish(|| {
            self.answer_number.set(self.number.get());
            self.answer_waited.set(waited);
        });
    }

    /// The idle wait of a session without a call ends, and a call begins.
    #[inline]
    pub fn open_call(&self, idle: Event, now: u64) {
        self.publish(|| {
            let waited = now.saturating_sub(self.since.get());
            self.end_inside(idle, waited, now, false);
            self.call_since.set(now);
        });
    }

    /// The call ends, and the idle wait begins.
    #[inline]
    pub fn close_call(&self, idle: Event, now: u64) {
        self.publish(|| {
            self.db_time.add(now.saturating_sub(self.call_since.get()));
            self.calls.add(1);
            self.call_since.set(NO_CALL);
            self.begin_inside(idle, [0; 3], now);
        });
    }

    /// Counts something that is no wait: a part of one.
    pub fn count(&self, row: usize, took: u64) {
        self.publish(|| self.rows[row].add(took, false));
    }

    pub fn set_sql(&self, id: u64) {
        self.publish(|| self.sql.set(id));
    }

    pub fn set_action(&self, id: u64) {
        self.publish(|| self.action.set(id));
    }

    pub fn set_transaction(&self, id: u64) {
        self.publish(|| self.transaction.set(id));
    }

    pub fn set_blocker(&self, session: u64) {
        self.detail(|| self.blocker.set(session));
    }

    pub fn set_file(&self, file: u64, block: u64) {
        self.detail(|| {
            self.file.set(file);
            self.block.set(block);
        });
    }

    pub fn set_object(&self, object: u64) {
        self.detail(|| self.object.set(object));
    }

    /// Of the wait that goes on, or else of the next one.
    fn detail(&self, write: impl FnOnce()) {
        self.publish(|| {
            let going_on = self.state.get() & 1 == 1;
            let number = self.number.get() + u64::from(!going_on);
            if self.detail_number.get() != number {
                self.detail_number.set(number);
                for word in [&self.blocker, &self.file, &self.block, &self.object] {
                    word.set(0);
                }
            }
            write();
        });
    }

    // By anybody.

    /// Asks the owner to keep the length of the wait of that number. One asker only.
    pub fn want(&self, number: u64) {
        self.wanted.0.set(number);
    }

    pub fn observed(&self) -> Observed {
        self.observe(|| {
            let state = self.state.get();
            let number = self.number.get();
            let call = self.call_since.get();
            let detail = [&self.blocker, &self.file, &self.block, &self.object].map(Word::get);
            Observed {
                event: Event::numbered((state >> 1) as usize),
                waiting: state & 1 == 1,
                number,
                since: self.since.get(),
                parameters: [0, 1, 2].map(|p: usize| self.parameters[p].get()),
                waited: self.waited.get(),
                idle: self.idle.get(),
                last_waited: self.last_waited.get(),
                call_since: (call != NO_CALL).then_some(call),
                db_time: self.db_time.get(),
                calls: self.calls.get(),
                logon: self.logon.get(),
                sql: self.sql.get(),
                action: self.action.get(),
                transaction: self.transaction.get(),
                detail: (self.detail_number.get() == number).then_some(detail),
                answer: (self.answer_number.get(), self.answer_waited.get()),
            }
        })
    }

    /// The counters of a row; `None` when they are zero.
    pub fn row(&self, row: usize) -> Option<EventTotals> {
        if self.rows[row].waits.get() == 0 {
            return None;
        }
        Some(self.observe(|| self.rows[row].read()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A writer loses its processor in the middle: a reader waits for it, and then sees all or nothing.
    #[test]
    fn a_reader_sees_no_half_of_it() {
        let place = Place::new();
        place.begin(Event::DbFileSequentialRead, [1, 1, 1], 0);
        std::thread::scope(|scope| {
            let (seen, see) = mpsc::channel();
            let place = &place;
            place.publish(|| {
                place.parameters[0].set(2);
                scope.spawn(move || seen.send(place.observed().parameters).expect("the test listens"));
                assert_eq!(see.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
                place.parameters[1].set(2);
                place.parameters[2].set(2);
            });
            assert_eq!(see.recv(), Ok([2, 2, 2]));
        });
    }
}
