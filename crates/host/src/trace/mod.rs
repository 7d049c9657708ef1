//! What processes ask of the kernel: system calls about files, requests of io_uring, and who does the work.
//!
//! [`Tracer::open`] makes a private instance of the kernel's own tracer (`instance`), whose buffers are read as they are (`page`) and
//! decoded by the descriptions that this kernel gives (`format`) into [`Event`]s. Where that is not allowed, [`Tracer::strace`] gives the
//! same events, io_uring left out. [`process`] says whose they are. What it all means is not known here.

mod event;
mod format;
pub(crate) mod instance;
mod page;
pub mod process;
mod strace;
#[cfg(test)]
mod tests;

pub use event::{Call, Event, Request, What};
pub use instance::Lost;

use crate::error::HostError;
use crate::journal::Journal;
use instance::Instance;
use process::state;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use strace::Strace;
use units::{Nanos, clock};

/// Calls in a round of [`cost`], and rounds, of which the fastest counts.
const COST_CALLS: u32 = 2_000;
const COST_ROUNDS: usize = 7;
/// Longest that a started command may take to stop before its first step.
const START_MAX: Nanos = Nanos::millis(10_000);

/// Watches threads.
#[derive(Debug)]
pub struct Tracer {
    source: Source,
    /// Added to each traced call, where it was measured.
    call_cost: Option<Nanos>,
}

#[derive(Debug)]
enum Source {
    Kernel(Box<Instance>),
    Strace(Option<Strace>, u64),
}

impl Tracer {
    /// By the kernel's tracer. Measures what it costs on calls of its own; that takes about 50 ms.
    ///
    /// # Errors
    /// Not root, no tracefs, a container, a kernel without events of system calls.
    pub fn open(journal: &mut Journal) -> Result<Self, HostError> {
        let free = cost();
        let mut instance = Instance::create(journal)?;
        let traced = instance.add(&[own_thread()]).ok().and_then(|()| cost());
        instance.forget()?;
        let call_cost = free.zip(traced).map(|(free, traced)| traced - free);
        Ok(Self { source: Source::Kernel(Box::new(instance)), call_cost })
    }

    /// By `strace`, which sees no io_uring. It attaches when it is told whom to follow.
    pub const fn strace() -> Self {
        Self { source: Source::Strace(None, 0), call_cost: None }
    }

    /// Follows processes with all their threads, and whatever they make from now on.
    ///
    /// # Errors
    /// The kernel refuses; `strace` is not installed.
    pub fn follow(&mut self, processes: &[u32]) -> Result<(), HostError> {
        match &mut self.source {
            Source::Kernel(instance) => {
                let threads: Vec<u32> = processes.iter().flat_map(|pid| process::threads(*pid)).collect();
                instance.add(&threads)
            }
            Source::Strace(strace, _) => {
                *strace = Some(Strace::attach(processes)?);
                Ok(())
            }
        }
    }

    /// Follows single threads, and whatever they make from now on; nothing where the source is `strace`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn follow_threads(&mut self, threads: &[u32]) -> Result<(), HostError> {
        match &self.source {
            Source::Kernel(instance) => instance.add(threads),
            Source::Strace(..) => Ok(()),
        }
    }

    /// What happened since the last time, those of each thread in order.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn drain(&mut self) -> Result<Vec<Event>, HostError> {
        match &mut self.source {
            Source::Kernel(instance) => {
                let events = instance.drain()?;
                // Workers of the kernel are not listed with their makers.
                let born: Vec<u32> = events
                    .iter()
                    .filter_map(|event| match event.what {
                        What::Born { tid, is_thread: true } => Some(tid),
                        _ => None,
                    })
                    .collect();
                if !born.is_empty() {
                    instance.add(&born)?;
                }
                Ok(events)
            }
            Source::Strace(strace, _) => Ok(strace.as_mut().map(Strace::drain).unwrap_or_default()),
        }
    }

    /// Ends; the events since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn stop(&mut self) -> Result<Vec<Event>, HostError> {
        match &mut self.source {
            Source::Kernel(instance) => instance.stop(),
            Source::Strace(strace, read) => {
                let Some(strace) = strace.take() else { return Ok(Vec::new()) };
                let before = strace.read;
                let events = strace.stop();
                *read = before + events.len() as u64;
                Ok(events)
            }
        }
    }

    /// Whether it still sees anything: `strace` ends when it may not look.
    pub fn lives(&mut self) -> bool {
        match &mut self.source {
            Source::Kernel(_) => true,
            Source::Strace(strace, _) => strace.as_mut().is_some_and(Strace::lives),
        }
    }

    /// Events read and lost so far.
    pub fn lost(&self) -> Lost {
        match &self.source {
            Source::Kernel(instance) => instance.lost(),
            Source::Strace(strace, read) => {
                Lost { events: 0, read: strace.as_ref().map_or(*read, |strace| strace.read) }
            }
        }
    }

    /// Time that it adds to a call, measured on calls of one byte; none where it was not measured.
    pub fn call_cost(&self) -> Option<Nanos> {
        self.call_cost
    }

    /// Events that this kernel does not have.
    pub fn missing(&self) -> &[String] {
        match &self.source {
            Source::Kernel(instance) => &instance.missing,
            Source::Strace(..) => &[],
        }
    }

    /// `the kernel's tracer` or `strace`.
    pub const fn name(&self) -> &'static str {
        match self.source {
            Source::Kernel(_) => "ftrace",
            Source::Strace(..) => "strace",
        }
    }

    /// Takes it away.
    ///
    /// # Errors
    /// It is still there; the journal knows.
    pub fn remove(self, journal: &mut Journal) -> Result<(), HostError> {
        match self.source {
            Source::Kernel(instance) => instance.remove(journal),
            Source::Strace(..) => Ok(()),
        }
    }
}

/// The thread that asks.
pub fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// Time of one small call: the fastest of some rounds.
fn cost() -> Option<Nanos> {
    let file = File::open("/dev/zero").ok()?;
    let round = |_| {
        let began = clock::now();
        let mut byte = [0];
        for _ in 0..COST_CALLS {
            file.read_at(&mut byte, 0).ok()?;
        }
        Some((clock::now() - began).0)
    };
    (0..COST_ROUNDS).filter_map(round).min().map(|ns| Nanos(ns / u64::from(COST_CALLS)))
}

/// A command that was started and waits before its first step, so that nothing of it is missed.
#[derive(Debug)]
pub struct Waiting {
    child: Child,
}

impl Waiting {
    /// Starts a shell that stops itself, and becomes the command when it goes on.
    ///
    /// # Errors
    /// There is no shell.
    pub fn start(words: &[OsString]) -> Result<Self, HostError> {
        let shell = || HostError::NoCommand { command: "sh".into(), package: "dash" };
        let child = Command::new("sh")
            .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
            .args(words)
            .stdin(Stdio::inherit())
            .spawn()
            .map_err(|_| shell())?;
        let until = clock::now() + START_MAX;
        while state(child.id()).is_some_and(|state| state != 'T') && clock::now() < until {
            clock::sleep(Nanos::millis(1));
        }
        Ok(Self { child })
    }

    /// Its number, also when it has become the command.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on; the caller waits for its end.
    ///
    /// # Errors
    /// It is gone.
    pub fn go(self) -> Result<Child, HostError> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::CONT)
            .map_err(|e| HostError::call("start", std::path::Path::new("sh"), e))?;
        Ok(self.child)
    }
}
