//! What a connection and its virtual tables share: the engine's session, and what a running statement has in hand.
//!
//! SQLite calls the virtual tables while the connection waits for SQLite, on the same thread. So the lock is never waited for;
//! it is there because SQLite wants to be able to move a connection to another thread, and nobody holds it across a call into SQLite.

use crate::virtual_table::{Entry, Late, Pending};
use engine::{EngineError, Session};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use waits::ash::Sampler;

/// Shared by a [`crate::Connection`] and its virtual tables.
pub struct Link(Mutex<Inner>);

/// What is shared.
pub struct Inner {
    /// Where everything is done.
    pub session: Session,
    /// Tables that SQLite knows, by name in small letters, as it knows them.
    pub entries: BTreeMap<String, Arc<Entry>>,
    /// Rows of the running INSERT that the engine has not got yet.
    pub pending: Option<Pending>,
    /// Rows whose change waits until other rows have lost their keys.
    pub late: Vec<Late>,
    /// Rows that the running statement has changed.
    pub changed: u64,
    /// Why a virtual table failed; SQLite only carries the words.
    pub failed: Option<EngineError>,
    /// A panic on its way through SQLite.
    pub panicked: Option<Box<dyn Any + Send>>,
    /// Active session history, when somebody samples.
    pub history: Option<Arc<Sampler>>,
    /// How many lines `dba_source` has.
    pub source_lines: u64,
}

/// Lines of `dba_source` unless told otherwise: about 26 MB of text, as in a database with some packages installed.
const SOURCE_LINES: u64 = 300_000;

impl Link {
    /// Over a session.
    pub fn new(session: Session) -> Arc<Self> {
        let history = Some(session.core().history.clone());
        Arc::new(Self(Mutex::new(Inner {
            session,
            entries: BTreeMap::new(),
            pending: None,
            late: Vec::new(),
            changed: 0,
            failed: None,
            panicked: None,
            history,
            source_lines: SOURCE_LINES,
        })))
    }

    /// What is shared, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the session for SQLite. An error is kept for the connection, and handed to SQLite in words. So is a
    /// panic, which must not unwind through SQLite: [`Link::go_on`] lets it go on behind it.
    pub fn with<T>(&self, work: impl FnOnce(&mut Inner) -> engine::Result<T>) -> rusqlite::Result<T> {
        let mut inner = self.lock();
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut inner)));
        let words = match done {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => {
                let words = error.to_string();
                inner.failed = Some(error);
                words
            }
            Err(panic) => {
                inner.panicked = Some(panic);
                "the engine panicked".into()
            }
        };
        Err(rusqlite::Error::ModuleError(words))
    }

    /// Lets a panic go on that had to stop for SQLite.
    pub fn go_on(&self) {
        let panicked = self.lock().panicked.take();
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }
}
