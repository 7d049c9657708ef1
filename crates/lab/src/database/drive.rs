//! Sessions against the clock: each plays transactions again and again, in a closed loop, with think times, or at a given
//! rate with latencies from the intended start.

use super::interval::{Interval, Moment};
use crate::LabError;
use crate::workload::{Tally, Trial, Window, join_all};
use engine::Instance;
use host::counters::{Thread, Watch};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
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

/// How sessions play.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Before the window, not measured.
    pub settle: Nanos,
    /// Length of the window.
    pub measure: Nanos,
    /// Slice of its time line.
    pub slice: Nanos,
    /// When transactions begin.
    pub pace: Pace,
    /// Where chance comes from.
    pub seed: Seed,
    /// Ctrl-C.
    pub cancel: &'a AtomicBool,
    /// The devices below.
    pub watch: &'a Watch,
}

/// All sessions of a window.
pub struct Performance {
    /// All classes together.
    pub trial: Trial,
    /// Each class by itself, in the order of the classes.
    pub classes: Vec<Trial>,
    /// Transactions of each class from the first to the last, also before and after the window.
    pub played: Vec<u64>,
    /// The counters at both edges of the window.
    pub interval: Interval,
}

/// Longest sleep before a session looks whether it should stop.
const NAP: Nanos = Nanos::millis(20);

/// What sessions did in a window.
struct Shown {
    trial: Trial,
    classes: Vec<Trial>,
    played: Vec<u64>,
}

/// Plays on the embedded database until the window is over.
///
/// # Errors
/// The first error of a session.
pub fn play(
    instance: &Instance,
    players: Vec<Box<dyn Player + '_>>,
    classes: usize,
    terms: Terms<'_>,
) -> Result<Performance, LabError> {
    play_counted(players, classes, terms, &mut |threads| Moment::of(instance, threads, terms.watch))
}

/// The same on any database, whose counters `count` takes at both edges of the window, with the sessions' threads.
///
/// # Errors
/// The first error of a session; [`LabError::Cancelled`].
pub fn play_counted(
    players: Vec<Box<dyn Player + '_>>,
    classes: usize,
    terms: Terms<'_>,
    count: &mut dyn FnMut(&[Thread]) -> Moment,
) -> Result<Performance, LabError> {
    let mut edges = Vec::with_capacity(2);
    let Shown { trial, classes, played } =
        perform(players, classes, terms, &mut |threads| edges.push(count(threads)))?;
    let (Some(after), Some(before)) = (edges.pop(), edges.pop()) else { return Err(LabError::Cancelled) };
    Ok(Performance { trial, classes, played, interval: Interval { before, after } })
}

/// Plays until the window is over. `look` is called at both of its edges, with the sessions' threads.
///
/// # Errors
/// The first error of a session; [`LabError::Cancelled`].
fn perform(
    players: Vec<Box<dyn Player + '_>>,
    classes: usize,
    terms: Terms<'_>,
    look: &mut dyn FnMut(&[Thread]),
) -> Result<Shown, LabError> {
    let window = Window::after(terms.settle, terms.measure, terms.slice);
    let stage = Stage {
        classes,
        window,
        terms,
        began: clock::now(),
        next: AtomicU64::new(0),
        failed: AtomicBool::new(false),
        threads: Mutex::default(),
        looked: AtomicBool::new(false),
    };
    let stage = &stage;
    let (seen, parts) = std::thread::scope(|scope| {
        let handles = players
            .into_iter()
            .enumerate()
            .map(|(index, player)| {
                let rng = Rng::new(terms.seed.part(index as u64));
                scope.spawn(move || {
                    let result = stage.session(player, rng);
                    if result.is_err() {
                        stage.failed.store(true, Ordering::Relaxed);
                    }
                    stage.stay_to_be_counted();
                    result
                })
            })
            .collect();
        let seen = stage.look(look);
        join_all(handles).map(|parts| (seen, parts))
    })?;
    // Without an error only Ctrl-C keeps a window from its end.
    if !seen || terms.cancel.load(Ordering::Relaxed) {
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
    Ok(Shown { trial: trial(all), classes: each.into_iter().map(trial).collect(), played })
}

/// What all sessions share.
struct Stage<'a> {
    classes: usize,
    window: Window,
    terms: Terms<'a>,
    began: Nanos,
    /// Number of the next transaction, at an open pace.
    next: AtomicU64,
    failed: AtomicBool,
    threads: Mutex<Vec<Thread>>,
    /// The counters were read at the window's end, or never will be.
    looked: AtomicBool,
}

/// What one session counted.
struct Part {
    tallies: Vec<Tally>,
    played: Vec<u64>,
}

impl Stage<'_> {
    /// Has the counters taken at both edges of the window; whether it came to both. On a machine that let nobody run until the window was
    /// over both are late, and nobody called it off.
    fn look(&self, look: &mut dyn FnMut(&[Thread])) -> bool {
        let mut moment = || look(&self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone());
        self.wait_until(self.window.start);
        let comes = !self.called_off();
        if comes {
            moment();
        }
        self.wait_until(self.window.end);
        if comes {
            moment();
        }
        self.looked.store(true, Ordering::Release);
        comes
    }

    fn called_off(&self) -> bool {
        self.terms.cancel.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// A thread that has ended can no longer be asked how much it has worked.
    fn stay_to_be_counted(&self) {
        while !self.looked.load(Ordering::Acquire) {
            clock::sleep(Nanos::millis(1));
        }
    }

    fn session(&self, mut player: Box<dyn Player + '_>, mut rng: Rng) -> Result<Part, LabError> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(Thread::this());
        let mut part = Part {
            tallies: (0..self.classes).map(|_| Tally::new(self.window)).collect(),
            played: vec![0; self.classes],
        };
        while self.goes_on() {
            let began = match self.terms.pace {
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
        self.window.open(clock::now(), self.terms.cancel) && !self.failed.load(Ordering::Relaxed)
    }

    fn wait_until(&self, due: Nanos) {
        while clock::now() < due && self.goes_on() {
            clock::sleep_until(due.min(clock::now() + NAP));
        }
    }
}
