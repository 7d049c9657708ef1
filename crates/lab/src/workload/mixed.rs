//! Reads, changes and commits together: sessions run transactions while database writers write what they dirtied.
//!
//! A transaction reads [`READS`] blocks at random, dirties [`DIRTY`] of them, and commits. Dirty blocks go to the
//! database writers in batches; when too many wait, sessions stop (`free buffer waits`), as in a database.

use super::commit::{GroupCommit, Log, REDO_PER_COMMIT_BYTES};
use super::{Tally, Trial, Window, join_all};
use crate::LabError;
use crate::verify::Generations;
use io::stamp::{Stamp, Stamper};
use io::{Action, Api, Completion, File, Outcome, Queue, QueueOptions, Request};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use units::{Rng, Seed, clock};

/// Single-block reads per transaction.
pub const READS: u32 = 4;
/// Blocks dirtied per transaction.
pub const DIRTY: usize = 2;
/// Dirty blocks that may wait per database writer before sessions stop.
const DIRTY_WAITING_MAX: usize = 512;

/// What runs.
#[derive(Clone)]
pub struct Mixed {
    /// The data file, opened as the I/O mode wants it.
    pub file: Arc<File>,
    /// API of data-file calls.
    pub api: Api,
    /// Concurrent sessions.
    pub sessions: u32,
    /// Database writers; more than one only where the mode lets many write one file at once.
    pub writers: u32,
    /// Blocks that a database writer keeps in flight: 1 for blocking calls.
    pub batch: u32,
    /// Database block.
    pub block_bytes: u32,
    /// How much of the file is used.
    pub span_bytes: u64,
    /// File number in the stamps.
    pub file_id: u64,
    /// Where it is noted what was written, with `--verify`.
    pub notes: Option<Arc<Generations>>,
    /// Where chance comes from.
    pub seed: Seed,
}

/// Blocks waiting for one database writer. Writer `w` owns the blocks whose index is `w` modulo the writers, so no two
/// writes to one block are ever in flight together: overlapping direct writes may tear.
#[derive(Default)]
struct DirtyList {
    blocks: Mutex<Vec<u64>>,
    changed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DirtyList {
    fn push(&self, block: u64, stop: &AtomicBool) {
        let mut blocks = lock(&self.blocks);
        while blocks.len() >= DIRTY_WAITING_MAX && !stop.load(Ordering::Relaxed) {
            blocks = self.wait(blocks);
        }
        blocks.push(block);
        self.changed.notify_all();
    }

    /// Takes up to `max` distinct blocks in file order; an empty batch means stop.
    fn take(&self, max: usize, batch: &mut Vec<u64>, stop: &AtomicBool) {
        batch.clear();
        let mut blocks = lock(&self.blocks);
        while blocks.is_empty() && !stop.load(Ordering::Relaxed) {
            blocks = self.wait(blocks);
        }
        let from = blocks.len() - blocks.len().min(max);
        batch.extend(blocks.drain(from..));
        drop(blocks);
        self.changed.notify_all();
        batch.sort_unstable();
        batch.dedup();
    }

    fn wait<'a>(&self, blocks: MutexGuard<'a, Vec<u64>>) -> MutexGuard<'a, Vec<u64>> {
        self.changed.wait_timeout(blocks, Duration::from_millis(20)).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Runs transactions for the length of `window`.
///
/// # Errors
/// The first read, dirty-page write or redo write that failed.
pub fn run(mixed: &Mixed, log: Log, window: Window, cancel: &AtomicBool) -> Result<Trial, LabError> {
    let group = GroupCommit::new(mixed.sessions as usize);
    let lists: Vec<DirtyList> = (0..mixed.writers).map(|_| DirtyList::default()).collect();
    let (stop, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let flags = mixed.file.flags_in_force()?.text;
    let (tallies, log) = thread::scope(|scope| {
        let (group, lists, stop, moved) = (&group, &lists, &stop, &moved);
        let spawn = |name: String| thread::Builder::new().name(name);
        let lgwr = spawn("lgwr".into()).spawn_scoped(scope, || group.log_writer(log)).expect("spawn lgwr");
        let writers: Vec<_> = (0..mixed.writers)
            .map(|w| {
                spawn(format!("dbw{w}"))
                    .spawn_scoped(scope, move || {
                        let result = database_writer(mixed, &lists[w as usize], w, stop, moved);
                        // A dead writer must not leave sessions waiting for room in its list.
                        stop.fetch_or(result.is_err(), Ordering::Relaxed);
                        result
                    })
                    .expect("spawn dbw")
            })
            .collect();
        let sessions: Vec<_> = (0..mixed.sessions)
            .map(|s| {
                spawn(format!("fg{s:02}"))
                    .spawn_scoped(scope, move || session(mixed, group, lists, s, window, cancel, stop, moved))
                    .expect("spawn session")
            })
            .collect();
        let tallies = join_all(sessions);
        stop.store(true, Ordering::Relaxed);
        group.close();
        let written = join_all(writers);
        let log = lgwr.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written?;
        Ok::<_, LabError>((tallies?, log?))
    })?;
    let mut total = Tally::new(window);
    tallies.iter().for_each(|t| total.merge(t));
    let moved = moved.into_inner();
    let bytes = moved * u64::from(mixed.block_bytes) + log.written_bytes();
    Ok(total.into_trial(flags, moved + log.writes(), bytes))
}

#[expect(clippy::too_many_arguments, reason = "what a session shares with the others, named once")]
fn session(
    mixed: &Mixed,
    group: &GroupCommit,
    lists: &[DirtyList],
    index: u32,
    window: Window,
    cancel: &AtomicBool,
    stop: &AtomicBool,
    moved: &AtomicU64,
) -> Result<Tally, LabError> {
    let options = QueueOptions::new(1, mixed.block_bytes, vec![mixed.file.clone()]);
    let mut queue = io::open_queue(mixed.api, options)?;
    let mut rng = Rng::new(mixed.seed.part(u64::from(index)));
    let mut done = Vec::with_capacity(1);
    let blocks = mixed.span_bytes / u64::from(mixed.block_bytes);
    group.join(index as usize);
    let mut tally = Tally::new(window);
    let mut now = clock::now();
    while window.open(now, cancel) {
        let began = now;
        for read in 0..READS as usize {
            let block = rng.below(blocks);
            transfer(queue.as_mut(), mixed, block, Action::Read, &mut done)?;
            if read < DIRTY {
                lists[(block % lists.len() as u64) as usize].push(block, stop);
            }
        }
        moved.fetch_add(u64::from(READS), Ordering::Relaxed);
        if !group.commit(index as usize, REDO_PER_COMMIT_BYTES) {
            break;
        }
        now = clock::now();
        tally.count(began, now, u64::from(READS * mixed.block_bytes));
    }
    Ok(tally)
}

/// One block through a queue of depth 1.
fn transfer(
    queue: &mut dyn Queue,
    mixed: &Mixed,
    block: u64,
    action: Action,
    done: &mut Vec<Completion>,
) -> Result<(), LabError> {
    let offset = block * u64::from(mixed.block_bytes);
    queue.stage(0, Request { file: 0, offset, bytes: mixed.block_bytes, action });
    done.clear();
    queue.submit_and_reap(1, done)?;
    check(&done[0], action, offset)
}

fn check(completion: &Completion, action: Action, offset: u64) -> Result<(), LabError> {
    match completion.outcome {
        Outcome::Full => Ok(()),
        outcome => Err(LabError::Workload {
            workload: "mixed",
            reason: format!("{action:?} at offset {offset}: {outcome:?}"),
        }),
    }
}

/// Writes batches until told to stop; a batch is complete before the next one starts.
fn database_writer(
    mixed: &Mixed,
    list: &DirtyList,
    index: u32,
    stop: &AtomicBool,
    moved: &AtomicU64,
) -> Result<(), LabError> {
    let options = QueueOptions::new(mixed.batch, mixed.block_bytes, vec![mixed.file.clone()]);
    let mut queue = io::open_queue(mixed.api, options)?;
    let stamper = Stamper::new(mixed.seed.part(1_000 + u64::from(index)));
    let (mut batch, mut done) = (Vec::new(), Vec::new());
    let mut generation = 2;
    loop {
        list.take(mixed.batch as usize, &mut batch, stop);
        if batch.is_empty() {
            return Ok(());
        }
        for (slot, &block) in (0u32..).zip(&batch) {
            let offset = block * u64::from(mixed.block_bytes);
            stamper.fill(queue.buffer_mut(slot), Stamp { file_id: mixed.file_id, offset, generation });
            queue.stage(slot, Request { file: 0, offset, bytes: mixed.block_bytes, action: Action::Write });
        }
        done.clear();
        let mut left = batch.len() as u32;
        while left > 0 {
            let before = done.len();
            queue.submit_and_reap(left, &mut done)?;
            left -= (done.len() - before) as u32;
        }
        for completion in &done {
            check(completion, Action::Write, batch[completion.slot as usize] * u64::from(mixed.block_bytes))?;
        }
        if let Some(notes) = &mixed.notes {
            batch.iter().for_each(|block| notes.written(block * u64::from(mixed.block_bytes), generation));
        }
        moved.fetch_add(batch.len() as u64, Ordering::Relaxed);
        generation += 1;
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}
