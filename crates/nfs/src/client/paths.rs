//! Paths that broke: tried again beside those who had to leave them, workers and the control connection, which come back to a path when it works.
//!
//! ```text
//! works -> broken   a connection was lost there, or could not be made           [Paths::broke]
//! broken -> works   a connection was made there, and the server answered        [watch]
//! ```
//! Workers look at a flag; the lock is taken when a path breaks. The thread `nfsp` lives while one is broken, or the control connection is not on the first
//! that works; it takes that home.

use super::caller::{Caller, Trouble};
use super::connection::Connection;
use super::control::CONNECT_MAX;
use super::file::lock;
use super::mount::Shared;
use super::target::Version;
use crate::rpc::Procedure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use units::{Nanos, clock};

/// How soon a broken path is tried again; twice as late each time that it did not last, up to the longest.
const AGAIN_MIN: Nanos = Nanos::millis(500);
const AGAIN_MAX: Nanos = Nanos::millis(60_000);
/// A path that worked so many pauses long has lasted.
const LASTED: u64 = 10;

pub(super) struct Paths {
    broken: Vec<AtomicBool>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By path.
    tries: Vec<Tries>,
    /// The thread is there.
    watched: bool,
}

#[derive(Clone, Copy, Default)]
struct Tries {
    pause: Nanos,
    /// Not before.
    due: Nanos,
    /// When it was last found to work.
    worked: Nanos,
}

impl Paths {
    pub(super) fn new(count: usize) -> Self {
        let inner = Inner { tries: vec![Tries::default(); count], watched: false };
        Self { broken: (0..count).map(|_| AtomicBool::new(false)).collect(), inner: Mutex::new(inner) }
    }

    pub(super) fn works(&self, path: usize) -> bool {
        !self.broken[path].load(Ordering::Relaxed)
    }

    /// The first that is not known to be broken.
    pub(super) fn first(&self) -> usize {
        (0..self.broken.len()).find(|&path| self.works(path)).unwrap_or(0)
    }

    /// Where worker `worker` goes from `path`, which broke: to another that is not known to be broken, so that workers are spread over what is left.
    pub(super) fn other(&self, path: usize, worker: u32) -> usize {
        let count = self.broken.len();
        if count == 1 {
            return path;
        }
        let others: Vec<usize> = (1..count).map(|n| (path + n) % count).collect();
        let working: Vec<usize> = others.iter().copied().filter(|&other| self.works(other)).collect();
        let choice = if working.is_empty() { &others } else { &working };
        choice[worker as usize % choice.len()]
    }

    /// Has `path` tried again until it works. Where there is no other, whoever needs it tries it.
    pub(super) fn broke(&self, shared: &Arc<Shared>, path: usize) {
        if self.broken.len() == 1 || self.broken[path].swap(true, Ordering::AcqRel) {
            return;
        }
        let mut inner = lock(&self.inner);
        let now = clock::now();
        let tries = &mut inner.tries[path];
        let lasted = tries.worked == Nanos(0) || now > tries.worked + Nanos(tries.pause.0 * LASTED);
        tries.pause = if lasted { AGAIN_MIN } else { Nanos(tries.pause.0 * 2).min(AGAIN_MAX) };
        tries.due = now + tries.pause;
        if !inner.watched {
            let weak = Arc::downgrade(shared);
            // Without a thread, workers stay where they are.
            inner.watched =
                std::thread::Builder::new().name("nfsp".into()).spawn(move || watch(&weak)).is_ok();
        }
    }

    /// The paths that are due; none in the outer sense: nothing is broken, the control connection `is_home`, and whoever asked ends.
    fn due(&self, is_home: bool) -> Option<Vec<usize>> {
        let mut inner = lock(&self.inner);
        let broken: Vec<usize> = (0..self.broken.len()).filter(|&path| !self.works(path)).collect();
        inner.watched = !(broken.is_empty() && is_home);
        let now = clock::now();
        inner.watched.then(|| broken.into_iter().filter(|&path| inner.tries[path].due <= now).collect())
    }

    fn tried(&self, path: usize, works: bool) {
        let mut inner = lock(&self.inner);
        let now = clock::now();
        let tries = &mut inner.tries[path];
        if works {
            tries.worked = now;
            self.broken[path].store(false, Ordering::Release);
        } else {
            tries.due = now + tries.pause;
        }
    }
}

fn watch(shared: &Weak<Shared>) {
    loop {
        clock::sleep(Nanos(AGAIN_MIN.0 / 5));
        let Some(shared) = shared.upgrade() else { return };
        // One that is at a call is not waited for: other paths are.
        let is_home = shared.try_control().is_some_and(|mut control| control.come_home(&shared));
        let Some(due) = shared.paths.due(is_home) else { return };
        for path in due {
            let works = answers(&shared, path).is_ok();
            shared.paths.tried(path, works);
            if works {
                let (server, it) = (&shared.way.target.server, shared.way.target.paths[path]);
                shared
                    .way
                    .alerts
                    .say(format!("path [{it}] to {server} is UP again; its channels come back to it"));
            }
        }
    }
}

/// Connects by `path`, and has the server answer: what accepts connections need not be it.
fn answers(shared: &Shared, path: usize) -> Result<(), Trouble> {
    let way = &shared.way;
    let deadline = clock::now() + CONNECT_MAX;
    let connection = Connection::open(&way.target.paths[path], way.target.port, deadline, way)?;
    let version = if way.target.version == Version::V3 { 3 } else { 4 };
    let null = Procedure { program: 100_003, version, number: 0 };
    Caller::new(connection).call(null, &way.credential, &[], deadline).map(drop)
}
