//! What the database writers are asked to do, and who waits for them.
//!
//! Sessions ask and post; writers look, work (`database_writer`), and report progress. With background threads each writer
//! is one; without, whoever would wait has the writers do a step each on his own thread.

use super::BufferCache;
use super::database_writer::Writer;
use super::site::Site;
use crate::instance::Core;
use crate::instance::process::{Process, Role};
use crate::page::{Lsn, PageId};
use crate::{Context, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use units::Nanos;

/// Pages with addresses that agree but for the lower bits belong to the same writer, so that neighbours can be written
/// together.
const NEIGHBOURHOOD_BITS: u32 = 6;

/// How long a writer sleeps when nothing is asked of it.
const SLEEP: Nanos = Nanos::millis(3_000);
/// How long it sleeps when all that it is asked to write is latched.
const SLEEP_BUSY: Nanos = Nanos::millis(2);

/// A writer, and whether somebody wants clean frames of it.
struct Seat {
    writer: Mutex<Writer>,
    need_free: AtomicBool,
}

/// A request to write what is dirty since `upto` or earlier.
struct Demand {
    ticket: u64,
    object: Option<u32>,
    upto: Lsn,
}

#[derive(Default)]
struct Demands {
    drawn: u64,
    open: Vec<Demand>,
}

/// What has to be written now.
#[derive(Default)]
pub(super) struct Wanted {
    /// Everything dirty since this position or earlier.
    all: Option<Lsn>,
    /// Of single objects.
    objects: Vec<(u32, Lsn)>,
}

impl Wanted {
    /// Whether anything is.
    pub fn is_nothing(&self) -> bool {
        self.all.is_none() && self.objects.is_empty()
    }

    /// Whether a page of `object` that is dirty since `since` is meant.
    pub fn includes(&self, object: u32, since: Lsn) -> bool {
        self.all.is_some_and(|upto| since <= upto)
            || self.objects.iter().any(|(wanted, upto)| *wanted == object && since <= *upto)
    }
}

/// All database writers of a cache.
pub(super) struct Writers {
    seats: Box<[Seat]>,
    demands: Mutex<Demands>,
    /// Incremental checkpoint: everything dirty since before this position is to be written. 0 for nothing.
    aim: AtomicU64,
    /// Somebody waits for a log group: the checkpointer wants to hear of every batch.
    pressing: AtomicBool,
    /// Grows whenever a write was completed.
    progress: Mutex<u64>,
    moved: Condvar,
    /// Writers of one file take turns: each file has one writer.
    by_file: bool,
}

/// A demand that is withdrawn when dropped.
pub(super) struct DemandGuard<'a> {
    writers: &'a Writers,
    ticket: u64,
}

impl Drop for DemandGuard<'_> {
    fn drop(&mut self) {
        self.writers.demands.lock().open.retain(|demand| demand.ticket != self.ticket);
    }
}

impl Writers {
    pub fn new(count: u32, by_file: bool) -> Self {
        let seat =
            |number| Seat { writer: Mutex::new(Writer::new(number)), need_free: AtomicBool::new(false) };
        Self {
            seats: (0..count.max(1)).map(seat).collect(),
            demands: Mutex::default(),
            aim: AtomicU64::new(0),
            pressing: AtomicBool::new(false),
            progress: Mutex::new(0),
            moved: Condvar::new(),
            by_file,
        }
    }

    /// Which writer a page belongs to. No page has two, so no page is written by two at once.
    pub fn of(&self, id: PageId) -> usize {
        let key = if self.by_file { u64::from(id.file) } else { id.to_u64() >> NEIGHBOURHOOD_BITS };
        (key % self.seats.len() as u64) as usize
    }

    /// Asks all writers for clean frames.
    pub fn want_free(&self, site: &dyn Site) {
        let mut news = false;
        for seat in &self.seats {
            // Looked at first: who misses often should not write to a line that all share.
            news |= !seat.need_free.load(Ordering::Relaxed) && !seat.need_free.swap(true, Ordering::AcqRel);
        }
        if news {
            site.post_writers();
        }
    }

    /// Asks for everything of an object (or everything) that is dirty since `upto` or earlier, until the result is dropped.
    pub fn demand(&self, site: &dyn Site, object: Option<u32>, upto: Lsn) -> DemandGuard<'_> {
        let mut demands = self.demands.lock();
        demands.drawn += 1;
        let ticket = demands.drawn;
        demands.open.push(Demand { ticket, object, upto });
        drop(demands);
        site.post_writers();
        DemandGuard { writers: self, ticket }
    }

    /// Asks for everything that is dirty since before `target`; `pressing` when somebody waits for that.
    pub fn aim(&self, target: Lsn, pressing: bool) {
        self.aim.store(target.0, Ordering::Release);
        self.pressing.store(pressing, Ordering::Release);
    }

    pub fn pressing(&self) -> bool {
        self.pressing.load(Ordering::Acquire)
    }

    /// What is asked for now.
    pub fn wanted(&self) -> Wanted {
        let aim = self.aim.load(Ordering::Acquire).checked_sub(1).map(Lsn);
        let mut wanted = Wanted { all: aim, objects: Vec::new() };
        for demand in &self.demands.lock().open {
            match demand.object {
                None => wanted.all = wanted.all.max(Some(demand.upto)),
                Some(object) => wanted.objects.push((object, demand.upto)),
            }
        }
        wanted
    }

    /// Whether writer `number` was asked for clean frames; the question is then answered.
    pub fn take_need_free(&self, number: usize) -> bool {
        let need_free = &self.seats[number].need_free;
        need_free.load(Ordering::Relaxed) && need_free.swap(false, Ordering::AcqRel)
    }

    /// Writes were completed: whoever waits looks again.
    pub fn note_progress(&self) {
        *self.progress.lock() += 1;
        self.moved.notify_all();
    }

    /// To be taken before looking at what one waits for.
    pub fn progress(&self) -> u64 {
        *self.progress.lock()
    }

    /// Waits until there was progress since `seen` was taken, at most for `most`.
    pub fn wait_progress(&self, seen: u64, most: Duration) {
        let mut progress = self.progress.lock();
        if *progress == seen {
            self.moved.wait_for(&mut progress, most);
        }
    }

    /// How long a writer without work sleeps unless it is posted.
    fn idle(&self, number: usize) -> Nanos {
        let seat = &self.seats[number];
        let asked =
            seat.need_free.load(Ordering::Acquire) || self.pressing() || !self.demands.lock().open.is_empty();
        if asked { SLEEP_BUSY } else { SLEEP }
    }
}

impl BufferCache {
    /// How many database writers there are, from `dbw0` on.
    pub fn writer_count(&self) -> u32 {
        self.writers.seats.len() as u32
    }

    /// One turn of database writer `number`: chooses dirty pages, writes a batch. False when there was nothing that it
    /// could write; then how long it may sleep unless it is posted.
    ///
    /// # Errors
    /// [`crate::EngineError::Crashed`]: the instance stopped, perhaps just now because writing failed again and again.
    pub fn writer_step(&self, core: &dyn Site, context: &Context, number: u32) -> Result<(bool, Nanos)> {
        core.alive()?;
        // Held already only when a step comes here again, without background threads.
        let Some(mut writer) = self.writers.seats[number as usize].writer.try_lock() else {
            return Ok((false, SLEEP_BUSY));
        };
        let worked = self.write_some(core, context, &mut writer)?;
        if worked && self.writers.pressing() {
            core.post_checkpointer();
        }
        Ok((worked, self.writers.idle(number as usize)))
    }

    /// Wakes everybody who waits here, so that they see that the instance stops. Called from any thread.
    pub fn wake_all(&self) {
        self.writers.note_progress();
    }
}

/// A database writer as a process: `dbw0` …
struct DatabaseWriter {
    number: u32,
    idle: Nanos,
}

impl Process for DatabaseWriter {
    fn role(&self) -> Role {
        Role::DatabaseWriter(self.number as u8)
    }

    fn step(&mut self, core: &Core, context: &Context) -> Result<bool> {
        let (worked, idle) = core.cache.writer_step(core, context, self.number)?;
        self.idle = idle;
        Ok(worked)
    }

    fn idle(&self) -> Nanos {
        self.idle
    }
}

/// The processes `dbw0` …, as many as `db_writer_processes`.
///
/// # Errors
/// None yet: queues are opened by the thread that drives them.
pub fn database_writers(core: &Core) -> Result<Vec<Box<dyn Process>>> {
    let writer = |number| -> Box<dyn Process> { Box::new(DatabaseWriter { number, idle: SLEEP }) };
    Ok((0..core.cache.writer_count()).map(writer).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_one_writer_and_neighbours_share_it() {
        let writers = Writers::new(3, false);
        let page = |block| PageId { file: 1, block };
        assert!((0..64).all(|block| writers.of(page(block)) == writers.of(page(0))));
        assert_ne!(writers.of(page(64)), writers.of(page(0)));
        let turns = Writers::new(3, true);
        assert!((0..999).all(|block| turns.of(page(block)) == turns.of(page(0))));
    }

    #[test]
    fn what_is_aimed_at_lies_before_the_aim() {
        let writers = Writers::new(1, false);
        assert!(writers.wanted().is_nothing());
        writers.aim(Lsn(100), false);
        assert!(writers.wanted().includes(7, Lsn(99)) && !writers.wanted().includes(7, Lsn(100)));
    }
}
