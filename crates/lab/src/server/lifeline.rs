//! Whether a server still answers: a session of its own asks once a second, and where no answer comes in time, all sessions are let go.
//!
//! A statement may take long for good reasons: a table is filled, a device is slow. So no session has a limit of its own, and who waits
//! is let go only when the server does not even answer `select 1`, or when one of its threads stays in a single wait of the kernel: then
//! a device or file system does not answer it.

use super::connection::{Connection, Parameter, StatementId};
use super::{Connector, ServerError};
use host::process::{Process, Waits};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use units::{Nanos, clock};

/// Longest that a server may say nothing, unless somebody says otherwise.
pub const PATIENCE: Nanos = Nanos::millis(60_000);
/// How often it is asked.
const ASK_EVERY: Nanos = Nanos::millis(1_000);
/// What our session is called.
const PROGRAM: &str = "lifeline";

/// Why the sessions with a server were let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hang {
    /// It did not even answer `select 1`.
    Mute,
    /// A thread of it stayed in one wait of the kernel.
    Stuck(Process),
}

/// All sessions with one server, to be let go together.
#[derive(Debug)]
pub struct Lifeline {
    patience: Nanos,
    hang: OnceLock<Hang>,
    next: AtomicU64,
    /// Second descriptors of their sockets.
    sockets: Mutex<Vec<(u64, UnixStream)>>,
}

impl Lifeline {
    /// Nobody hangs on it yet. `patience`: the longest that the server may say nothing.
    pub fn new(patience: Nanos) -> Arc<Self> {
        Arc::new(Self { patience, hang: OnceLock::new(), next: AtomicU64::new(0), sockets: Mutex::default() })
    }

    /// Why the sessions were let go; none: they were not.
    pub fn hang(&self) -> Option<&Hang> {
        self.hang.get()
    }

    /// The longest that it may say nothing, or a thread of it wait for one thing.
    pub fn patience(&self) -> Nanos {
        self.patience
    }

    /// The session, let go with all others.
    pub(super) fn hold(self: &Arc<Self>, session: Box<dyn Connection>) -> Box<dyn Connection> {
        // Without a second descriptor it waits as long as it takes.
        let Ok(socket) = session.socket().map(UnixStream::from) else { return session };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push((number, socket));
        Box::new(Held { lifeline: self.clone(), number, session })
    }

    fn let_go(&self, why: Hang) {
        // Whoever saw it first has said why.
        let _ = self.hang.set(why);
        for (_, socket) in self.sockets.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // One that has ended need not be let go.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Sets the longest that an answer may take on a socket of any family; none: as long as it takes.
pub(super) fn set_patience(socket: OwnedFd, patience: Option<Nanos>) -> std::io::Result<()> {
    UnixStream::from(socket).set_read_timeout(patience.map(Nanos::duration))
}

struct Held {
    lifeline: Arc<Lifeline>,
    number: u64,
    session: Box<dyn Connection>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut sockets = self.lifeline.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.retain(|(number, _)| *number != self.number);
    }
}

impl Connection for Held {
    fn execute(&mut self, sql: &str) -> Result<(), ServerError> {
        self.session.execute(sql)
    }

    fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, ServerError> {
        self.session.rows(sql)
    }

    fn prepare(&mut self, sql: &str) -> Result<StatementId, ServerError> {
        self.session.prepare(sql)
    }

    fn call(&mut self, statement: StatementId, values: &[Parameter<'_>]) -> Result<Option<i64>, ServerError> {
        self.session.call(statement, values)
    }

    fn socket(&self) -> std::io::Result<OwnedFd> {
        self.session.socket()
    }
}

/// Asks until this is dropped, or the server is gone.
#[derive(Debug)]
pub struct Pulse {
    stop: mpsc::Sender<()>,
    /// Of its session, to end one that waits for an answer.
    socket: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    /// Begins to ask the server of `connector`, whose sessions all hang on `lifeline`, and to look at its `processes` as far as they
    /// are known.
    ///
    /// # Errors
    /// The server refuses the session.
    pub fn start(
        connector: &Connector,
        lifeline: &Arc<Lifeline>,
        processes: impl Fn() -> Vec<i32> + Send + 'static,
    ) -> Result<Self, ServerError> {
        let mut session = connector.connect(PROGRAM)?;
        let socket = session.socket().map(UnixStream::from).ok();
        let patience = lifeline.patience;
        // Where the system refuses, it asks as patiently as all others.
        let _ = session.socket().and_then(|socket| set_patience(socket, Some(patience)));
        let lifeline = lifeline.clone();
        let (stop, stopped) = mpsc::channel();
        let ask = move || {
            let mut waits = Waits::default();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(ASK_EVERY.duration()) {
                if let Some(stuck) = waits.look(&processes(), patience) {
                    lifeline.let_go(Hang::Stuck(stuck));
                    return;
                }
                let asked = clock::now();
                if session.execute("select 1").is_err() {
                    // A server that is gone says so to everybody at once.
                    if (clock::now() - asked).0 >= patience.0 / 10 * 9 {
                        lifeline.let_go(Hang::Mute);
                    }
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(PROGRAM.into()).spawn(ask).ok();
        Ok(Self { stop, socket, thread })
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(Shutdown::Read);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
