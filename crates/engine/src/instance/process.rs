//! Background processes: who they are, how they are woken, and who does their work when there are no threads.
//!
//! Each process is an object with a [`Process::step`]. With [`crate::Background::Threads`] a thread of its name calls it
//! whenever it is posted or its time has come; with [`crate::Background::Inline`] whoever would wait for it calls it
//! ([`Processes::drive`]). The same code in both.

use super::Core;
use crate::{Background, Context, EngineError, Result};
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use units::Nanos;
use waits::{Event, SessionKind};

/// A background process, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Writes the log.
    LogWriter,
    /// Writes dirty blocks; there may be several.
    DatabaseWriter(u8),
    /// Writes to the flash cache what left the buffer cache.
    FlashWriter,
    /// Moves the checkpoint on.
    Checkpointer,
    /// Rolls back what a crash left, purges, tidies.
    SystemMonitor,
}

impl fmt::Display for Role {
    /// The name that DBAs know: `lgwr`, `dbw0`, `ckpt`, `smon`; and `fcw0`, which is ours. As Oracle, `dbwa` follows `dbw9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogWriter => f.pad("lgwr"),
            Self::DatabaseWriter(n) => {
                let digit = char::from_digit((*n).into(), 36).unwrap_or('z');
                f.pad(&format!("dbw{digit}"))
            }
            Self::FlashWriter => f.pad("fcw0"),
            Self::Checkpointer => f.pad("ckpt"),
            Self::SystemMonitor => f.pad("smon"),
        }
    }
}

/// What a background process does.
pub trait Process: Send {
    /// Which one it is.
    fn role(&self) -> Role;

    /// Does what there is to do now, once; whether there was anything. Called again at once after `true`.
    ///
    /// # Errors
    /// Any error stops the instance. What the process can live with, it handles itself.
    fn step(&mut self, core: &Core, context: &Context) -> Result<bool>;

    /// How long to sleep after a step that had nothing to do, unless somebody posts.
    fn idle(&self) -> Nanos;
}

/// Body and context of a process; whoever runs a step holds the lock.
struct Body {
    process: Box<dyn Process>,
    context: Context,
}

struct Desk {
    role: Role,
    body: Mutex<Body>,
    posted: Mutex<bool>,
    bell: Condvar,
    stop: AtomicBool,
}

impl Desk {
    fn post(&self) {
        *self.posted.lock() = true;
        self.bell.notify_one();
    }

    fn wait(&self, span: Nanos) {
        let mut posted = self.posted.lock();
        if !*posted {
            self.bell.wait_for(&mut posted, span.duration());
        }
        *posted = false;
    }
}

/// The background processes of an instance.
#[derive(Default)]
pub struct Processes {
    /// Sorted by role. Filled while the instance opens, then only read.
    desks: parking_lot::RwLock<Vec<Arc<Desk>>>,
    threads: Mutex<Vec<(Role, JoinHandle<()>)>>,
}

impl Processes {
    fn desk(&self, role: Role) -> Option<Arc<Desk>> {
        let desks = self.desks.read();
        desks.binary_search_by_key(&role, |desk| desk.role).ok().map(|index| desks[index].clone())
    }

    /// The roles that are at work, sorted.
    pub fn roles(&self) -> Vec<Role> {
        self.desks.read().iter().map(|desk| desk.role).collect()
    }

    /// Wakes a process: there is something to do. Nothing happens when it is not at work (yet, or any more), or when the work
    /// is done inline.
    pub fn post(&self, role: Role) {
        if let Some(desk) = self.desk(role) {
            desk.post();
        }
    }

    /// Posts all database writers.
    pub fn post_database_writers(&self) {
        for desk in self.desks.read().iter().filter(|d| matches!(d.role, Role::DatabaseWriter(_))) {
            desk.post();
        }
    }

    /// Does one step of a process on the calling thread; whether it did something. `false` also when it is not at work, or in
    /// the middle of a step already: the caller is then part of that step.
    ///
    /// # Errors
    /// What the step met; the instance is crashed then.
    pub fn step(&self, core: &Core, role: Role) -> Result<bool> {
        core.health.check()?;
        let Some(desk) = self.desk(role) else { return Ok(false) };
        let Some(mut body) = desk.body.try_lock() else { return Ok(false) };
        let Body { process, context } = &mut *body;
        process.step(core, context).inspect_err(|error| {
            core.health.crash(&format!("{role}: {error}"));
        })
    }

    /// With [`Background::Inline`]: does steps of `roles` in turn until `done`. For whoever would otherwise sleep until they
    /// have done their work.
    ///
    /// # Errors
    /// What a step or `done` met. [`EngineError::Invalid`] when nothing moves any more: nobody else could change that.
    pub fn drive(&self, core: &Core, roles: &[Role], done: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        while !done()? {
            let mut moved = false;
            for role in roles {
                moved |= self.step(core, *role)?;
            }
            if !moved && !done()? {
                let names: Vec<_> = roles.iter().map(Role::to_string).collect();
                return Err(EngineError::Invalid(format!(
                    "waiting for {} for ever: they have nothing to do and nobody else is there",
                    names.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Puts a process to work.
    pub(super) fn start(&self, core: &Arc<Core>, process: Box<dyn Process>) -> Result<()> {
        let role = process.role();
        let context = core.context(SessionKind::Background, &role.to_string())?;
        let desk = Arc::new(Desk {
            role,
            body: Mutex::new(Body { process, context }),
            posted: Mutex::new(false),
            bell: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let mut desks = self.desks.write();
        let at = desks.partition_point(|other| other.role < role);
        desks.insert(at, desk.clone());
        drop(desks);
        if core.environment.background == Background::Threads {
            let core = core.clone();
            let thread = std::thread::Builder::new().name(role.to_string()).spawn(move || work(&core, &desk));
            let thread = thread.map_err(|error| {
                EngineError::Invalid(format!("no thread for {role}: {error}; see `ulimit -u`"))
            })?;
            self.threads.lock().push((role, thread));
        }
        Ok(())
    }

    /// Takes a process away from work, after the step that it is in.
    pub(super) fn stop(&self, role: Role) {
        let Some(desk) = self.desk(role) else { return };
        desk.stop.store(true, Ordering::Release);
        desk.post();
        let thread = {
            let mut threads = self.threads.lock();
            threads.iter().position(|(other, _)| *other == role).map(|at| threads.swap_remove(at).1)
        };
        if let Some(thread) = thread {
            // A panic was reported where it happened, and has crashed the instance (`PanicGuard`).
            let _ = thread.join();
        }
        self.desks.write().retain(|other| other.role != role);
    }
}

/// How long the system monitor sleeps when nobody posts it.
const MONITOR_IDLE: Nanos = Nanos::millis(500);

/// The system monitor: what transactions and space want done when nobody waits for it.
struct SystemMonitor;

impl Process for SystemMonitor {
    fn role(&self) -> Role {
        Role::SystemMonitor
    }

    fn step(&mut self, core: &Core, context: &Context) -> Result<bool> {
        let purged = core.transactions.monitor_step(core, context)?;
        Ok(core.space.monitor_step(core, context)? || purged)
    }

    fn idle(&self) -> Nanos {
        MONITOR_IDLE
    }
}

/// `smon`.
pub(super) fn system_monitor() -> Box<dyn Process> {
    Box::new(SystemMonitor)
}

/// A process that panics may have left anything half done, and nobody would wait for it in vain: the instance stops.
struct PanicGuard<'a> {
    core: &'a Core,
    role: Role,
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.core.health.crash(&format!("{} panicked", self.role));
        }
    }
}

/// The life of a background thread.
fn work(core: &Core, desk: &Desk) {
    let _guard = PanicGuard { core, role: desk.role };
    let mut body = desk.body.lock();
    let Body { process, context } = &mut *body;
    while !desk.stop.load(Ordering::Acquire) && core.health.check().is_ok() {
        match process.step(core, context) {
            Ok(true) => {}
            Ok(false) => {
                let span = process.idle();
                let event =
                    if desk.role == Role::SystemMonitor { Event::SmonTimer } else { Event::RdbmsIpcMessage };
                let _wait = context.slot.enter(event, span.0 / 10_000_000, 0, 0);
                desk.wait(span);
            }
            Err(error) => core.health.crash(&format!("{}: {error}", desk.role)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn names_are_the_ones_that_administrators_know() {
        let names: Vec<_> = [
            Role::LogWriter,
            Role::DatabaseWriter(0),
            Role::DatabaseWriter(11),
            Role::FlashWriter,
            Role::Checkpointer,
            Role::SystemMonitor,
        ]
        .iter()
        .map(Role::to_string)
        .collect();
        assert_eq!(names, ["lgwr", "dbw0", "dbwb", "fcw0", "ckpt", "smon"]);
    }
}
