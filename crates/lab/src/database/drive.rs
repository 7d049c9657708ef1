//! Sessions against the clock: each plays transactions again and again, in a closed loop, with think times, or at a given
//! rate with latencies from the intended start.

use crate::LabError;
use crate::workload::{Tally, Trial, Window, join_all};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Nanos, Rng, Seed, clock};

/// What one session does.
pub trait Player: Send {
    /// One transaction, from its first statement to its commit.
    ///
    /// # Errors
    /// What spoils the workload; expected rollbacks are no errors.
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError>;

    /// Keying and thinking time after a transaction of `class`.
    fn pause(&self, _class: usize, _rng: &mut Rng) -> Nanos {
        Nanos(0)
    }
}

/// A transaction that was played.
#[derive(Clone, Copy, Debug)]
pub struct Played {
    /// Index into the workload's classes.
    pub class: usize,
    /// Bytes that it moved, as the workload counts them.
    pub bytes: u64,
}

/// When sessions begin their transactions.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// Each as soon as its last one is over, and its pause.
    Closed,
    /// This many per second over all sessions, at fixed instants; who comes late is late, and its latency says so.
    Open {
        /// Transactions per second.
        rate: f64,
    },
}

/// All sessions of a window.
pub struct Performance {
    /// All classes together.
    pub trial: Trial,
    /// Each class by itself, in the order of the classes.
    pub classes: Vec<Trial>,
    /// Transactions of each class from the first to the last, also before and after the window.
    pub played: Vec<u64>,
}

/// Longest sleep before a session looks whether it should stop.
const NAP: Nanos = Nanos::millis(20);

/// Plays until the window is over.
///
/// # Errors
/// The first error of a session.
pub fn play(
    players: Vec<Box<dyn Player + '_>>,
    classes: usize,
    window: Window,
    pace: Pace,
    seed: Seed,
    cancel: &AtomicBool,
) -> Result<Performance, LabError> {
    let (next, failed, began) = (AtomicU64::new(0), AtomicBool::new(false), clock::now());
    let stage = Stage { classes, window, pace, next: &next, failed: &failed, began, cancel };
    let parts = std::thread::scope(|scope| {
        let handles = players
            .into_iter()
            .enumerate()
            .map(|(index, player)| {
                let rng = Rng::new(seed.part(index as u64));
                scope.spawn(move || {
                    let result = stage.session(player, rng);
                    if result.is_err() {
                        stage.failed.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        join_all(handles)
    })?;
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    let mut all = Tally::new(window);
    let mut each: Vec<Tally> = (0..classes).map(|_| Tally::new(window)).collect();
    let mut played = vec![0; classes];
    for part in parts {
        for (class, tally) in part.tallies.iter().enumerate() {
            all.merge(tally);
            each[class].merge(tally);
            played[class] += part.played[class];
        }
    }
    let trial = |tally: Tally| tally.into_trial(String::new(), 0, 0);
    Ok(Performance { trial: trial(all), classes: each.into_iter().map(trial).collect(), played })
}

/// What all sessions share.
#[derive(Clone, Copy)]
struct Stage<'a> {
    classes: usize,
    window: Window,
    pace: Pace,
    next: &'a AtomicU64,
    failed: &'a AtomicBool,
    began: Nanos,
    cancel: &'a AtomicBool,
}

/// What one session counted.
struct Part {
    tallies: Vec<Tally>,
    played: Vec<u64>,
}

impl Stage<'_> {
    fn session(&self, mut player: Box<dyn Player + '_>, mut rng: Rng) -> Result<Part, LabError> {
        let mut part = Part {
            tallies: (0..self.classes).map(|_| Tally::new(self.window)).collect(),
            played: vec![0; self.classes],
        };
        while self.goes_on() {
            let began = match self.pace {
                Pace::Closed => clock::now(),
                Pace::Open { rate } => {
                    let turn = self.next.fetch_add(1, Ordering::Relaxed);
                    let due = self.began + Nanos::secs(turn as f64 / rate);
                    self.wait_until(due);
                    if !self.goes_on() {
                        break;
                    }
                    due
                }
            };
            let Played { class, bytes } = player.play(&mut rng)?;
            part.tallies[class].count(began, clock::now(), bytes);
            part.played[class] += 1;
            let pause = player.pause(class, &mut rng);
            if pause.0 > 0 {
                self.wait_until(clock::now() + pause);
            }
        }
        Ok(part)
    }

    fn goes_on(&self) -> bool {
        self.window.open(clock::now(), self.cancel) && !self.failed.load(Ordering::Relaxed)
    }

    fn wait_until(&self, due: Nanos) {
        while clock::now() < due && self.goes_on() {
            clock::sleep_until(due.min(clock::now() + NAP));
        }
    }
}
