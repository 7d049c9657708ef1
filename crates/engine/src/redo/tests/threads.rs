//! Many sessions at once: nobody is forgotten, nobody is woken too early, a crash reaches all.

use super::*;
use crate::statistics::Statistic;
use std::sync::mpsc;
use std::time::Duration;

/// Runs `body`, which must end; a hang is a failure with words instead of a test that never ends.
fn within(seconds: u64, body: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    match ended.recv_timeout(Duration::from_secs(seconds)) {
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().unwrap(),
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("somebody waits for ever"),
    }
}

/// Sessions, and with `lgwr` the log writer's thread.
fn sessions(log: &Arc<RedoLog>, bed: &Bed, lgwr: bool, count: u64, body: impl Fn(u64, Context) + Sync) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = lgwr.then(|| {
            let (context, writes, stop) = (bed.context(), log.clone(), &stop);
            let thread = scope.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    if !matches!(writes.log_writer_step(&context), Ok(true)) {
                        std::thread::park_timeout(Duration::from_millis(50));
                    }
                }
            });
            let handle = thread.thread().clone();
            log.set_log_writer(Box::new(move || handle.unpark()));
            thread
        });
        let contexts: Vec<Context> = (0..count).map(|_| bed.context()).collect();
        let threads: Vec<_> = contexts
            .into_iter()
            .zip(0..)
            .map(|(context, number)| {
                let body = &body;
                scope.spawn(move || body(number, context))
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        stop.store(true, Ordering::Release);
        if let Some(writer) = writer {
            writer.thread().unpark();
        }
        results.into_iter().for_each(|result| result.unwrap());
    });
}

/// `write_us`: how long a write takes. Groups form only behind slow ones; without, everything else happens more often.
fn commits_of_many(lgwr: bool, write_us: u64) {
    let bed = Bed::new(Background::Threads, 3, 1, 256 << 10);
    bed.memory.write_us.store(write_us, Ordering::Relaxed);
    let pages = Table::default();
    let log = Arc::new(bed.open(&pages, true).unwrap().0);
    let (highest, synced) = (AtomicU64::new(0), AtomicU64::new(0));
    let writes = bed.statistics.value(Statistic::RedoWrites);
    sessions(&log, &bed, lgwr, 10, |number, context| {
        let mut rng = Rng::new(Seed(number));
        for _ in 0..300 {
            let bytes = 1 + rng.below(3_000) as usize;
            let mut urge = |_| {
                // No pages: all redo is in the data files as soon as it is durable.
                let end = log.durable_lsn();
                log.note_checkpoint_for_test(end);
                Ok(true)
            };
            let reservation = log.reserve_waiting(&context, bytes, &mut urge).unwrap();
            let end = log.append(reservation, &vec![number as u8; bytes]);
            if rng.below(4) > 0 {
                log.sync(&context, end).unwrap();
                assert!(log.durable_lsn() >= end);
                highest.fetch_max(end.0, Ordering::Relaxed);
                synced.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert!(log.durable_lsn().0 >= highest.into_inner());
    let state = log.state.lock();
    assert_eq!((state.reserved, state.writing), (0, false));
    // Nobody waits any more; one who led although queued may have left its name.
    assert!(state.waiting.iter().all(|waiter| waiter.lsn <= log.durable_lsn()));
    let writes = bed.statistics.value(Statistic::RedoWrites) - writes;
    if write_us > 0 {
        let synced = synced.into_inner();
        assert!(writes * 2 < synced, "{synced} commits in {writes} writes: hardly a group");
    }
}

impl RedoLog {
    /// Checkpoints of several threads at once, in any order.
    fn note_checkpoint_for_test(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        let lsn = lsn.max(state.groups.checkpoint);
        state.note_checkpoint(lsn);
        self.room.notify_all();
    }
}

#[test]
fn ten_sessions_commit_and_none_is_forgotten() {
    within(60, || commits_of_many(true, 0));
    within(60, || commits_of_many(true, 150));
}

#[test]
fn ten_sessions_commit_without_a_log_writer() {
    within(60, || commits_of_many(false, 0));
    within(60, || commits_of_many(false, 150));
}

#[test]
fn a_failed_write_reaches_everybody() {
    for lgwr in [false, true] {
        within(60, move || {
            let bed = Bed::new(Background::Threads, 2, 1, 256 << 10);
            let log = Arc::new(bed.open(&Table::default(), true).unwrap().0);
            bed.memory.write_us.store(100, Ordering::Relaxed);
            bed.memory.fail_after(50, "");
            sessions(&log, &bed, lgwr, 10, |number, context| {
                loop {
                    let Ok(reservation) = log.reserve_waiting(&context, 600, &mut |_| Ok(true)) else {
                        return;
                    };
                    let end = log.append(reservation, &[number as u8; 600]);
                    match log.sync(&context, end) {
                        Ok(()) => assert!(log.durable_lsn() >= end),
                        Err(error) => {
                            assert!(matches!(error, crate::EngineError::Crashed(_)), "{error}");
                            return;
                        }
                    }
                }
            });
        });
    }
}

#[test]
fn groups_change_under_load() {
    within(60, || {
        let bed = Bed::new(Background::Threads, 3, 1, 256 << 10);
        let log = Arc::new(bed.open(&Table::default(), true).unwrap().0);
        sessions(&log, &bed, true, 6, |number, context| {
            let mut urge = |_| {
                log.note_checkpoint_for_test(log.durable_lsn());
                Ok(true)
            };
            for turn in 0..60 {
                match number {
                    0 => log.switch(&context, &mut urge).unwrap(),
                    1 if turn < 10 => {
                        let group = 10 + turn as u32;
                        log.add_group(&context, Some(group), &bed.spec(group, 1, 256 << 10)).unwrap();
                        // May be current, or promised to somebody.
                        let _ = log.drop_group(&context, group);
                    }
                    _ => {
                        let reservation = log.reserve_waiting(&context, 2_000, &mut urge).unwrap();
                        let end = log.append(reservation, &[1; 2_000]);
                        log.sync(&context, end).unwrap();
                    }
                }
            }
        });
        assert!(log.state.lock().switches >= 60);
    });
}

#[test]
fn redo_that_nobody_waits_for_is_written_when_posted() {
    within(20, || {
        let bed = Bed::new(Background::Threads, 2, 1, 256 << 10);
        let log = Arc::new(bed.open(&Table::default(), true).unwrap().0);
        sessions(&log, &bed, true, 1, |_, _| {
            let end = log.append(log.try_reserve(100).unwrap().unwrap(), &[1; 100]);
            log.post();
            while log.durable_lsn() < end {
                std::thread::yield_now();
            }
        });
    });
}

#[test]
fn who_comes_while_its_chunk_is_being_written_leaves_with_it() {
    for lgwr in [false, true] {
        within(20, move || {
            let bed = Bed::new(Background::Threads, 2, 1, 256 << 10);
            let log = Arc::new(bed.open(&Table::default(), true).unwrap().0);
            bed.memory.write_us.store(100_000, Ordering::Relaxed);
            // The log writer does not flush by itself now.
            log.flushed.store(u64::MAX, Ordering::Relaxed);
            // Its record is in the chunk that the other one leads, and nobody writes another.
            let late = log.append(log.try_reserve(100).unwrap().unwrap(), &[1; 100]);
            sessions(&log, &bed, lgwr, 2, |number, context| {
                if number == 0 {
                    let end = log.append(log.try_reserve(100).unwrap().unwrap(), &[2; 100]);
                    return log.sync(&context, end).unwrap();
                }
                while !log.state.lock().writing {
                    std::thread::yield_now();
                }
                log.sync(&context, late).unwrap();
            });
            assert_eq!(bed.statistics.value(Statistic::RedoWrites), 1);
        });
    }
}
