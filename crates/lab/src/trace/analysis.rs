//! From events to figures: each call finds its end, each request its completion, each descriptor its file.
//!
//! States of a thread: outside → in a call → outside; inside `io_uring_enter` it first submits, and then, from
//! [`What::WaitBegun`] on, waits. What is completed while it still submits was done by the call itself.

use super::aio::{Aio, Reaped};
use super::class::Product;
use super::figures::{Act, Direction, Figures};
use super::files::{Files, PlaceId};
use super::ring::Rings;
use super::role;
use host::trace::{Call, Event, What, process};
use std::collections::{BTreeMap, BTreeSet};
use units::Nanos;

/// After so many calls of a thread its process is looked at again.
const EARLY_LOOKS: [u64; 3] = [5, 20, 80];

/// Who did what to which files.
pub(super) type Key = (u32, PlaceId, Act);

/// A process, as it was last seen.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) product: Product,
    pub(super) program: String,
    pub(super) command_line: String,
}

/// A thread, as it was last seen.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) process: u32,
    pub(super) seen: role::Seen,
    pub(super) calls: u64,
}

/// Everything that was seen so far.
#[derive(Debug, Default)]
pub(super) struct Analysis {
    pub(super) processes: BTreeMap<u32, Process>,
    pub(super) threads: BTreeMap<u32, Thread>,
    pub(super) files: Files,
    pub(super) figures: BTreeMap<Key, Figures>,
    /// All calls, by name: what strace would count.
    pub(super) counts: BTreeMap<Call, u64>,
    pub(super) calls: u64,
    /// In the kernel: by which call, with what, since when.
    inside: BTreeMap<u32, (Call, [u64; 6], Nanos)>,
    rings: Rings,
    aio: Aio,
    /// Threads that are not to be looked at.
    ignored: BTreeSet<u32>,
}

impl Analysis {
    /// Nothing that these threads do is counted.
    pub(super) fn ignore(&mut self, threads: &[u32]) {
        self.ignored.extend(threads);
    }

    /// What the database calls its threads.
    pub(super) fn tell(&mut self, tid: u32, name: &str) {
        self.know(tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.seen.told = Some(name.to_owned());
        }
    }

    /// Events, those of each thread in order.
    pub(super) fn take(&mut self, events: Vec<Event>) {
        self.files.new_batch();
        self.aio.new_batch();
        self.announce_closes(&events);
        for event in events {
            if !self.ignored.contains(&event.tid) {
                self.know(event.tid);
                self.event(event);
            }
        }
    }

    /// Names and titles change while a process lives: the last ones count.
    pub(super) fn refresh(&mut self) {
        for (tid, thread) in &mut self.threads {
            if let Some(task) = process::task(*tid) {
                thread.process = task.process;
                thread.seen.name = task.name;
            }
        }
        for (pid, known) in &mut self.processes {
            if let Some(seen) = look(*pid) {
                *known = seen;
            }
        }
    }

    pub(super) fn product(&self, tid: u32) -> Product {
        let process = self.threads.get(&tid).and_then(|thread| self.processes.get(&thread.process));
        process.map_or(Product::Other, |process| process.product)
    }

    pub(super) fn process(&self, tid: u32) -> u32 {
        self.threads.get(&tid).map_or(tid, |thread| thread.process)
    }

    /// The role of a thread.
    pub(super) fn role(&self, tid: u32) -> String {
        let Some(thread) = self.threads.get(&tid) else { return "unknown".into() };
        let command_line = self.processes.get(&thread.process).map(|p| p.command_line.clone());
        let seen = role::Seen { command_line: command_line.unwrap_or_default(), ..thread.seen.clone() };
        role::of(self.product(tid), &seen)
    }

    /// Closes of this batch: until they have come, `/proc` is not to be believed of their descriptors.
    fn announce_closes(&mut self, events: &[Event]) {
        for event in events {
            if let What::Enter { call: Call::Close, arguments } = event.what {
                self.know(event.tid);
                self.files.will_close(self.process(event.tid), arguments[0] as i32);
            }
        }
    }

    fn know(&mut self, tid: u32) {
        if self.threads.contains_key(&tid) {
            return;
        }
        // One that has ended already: a process of its own, of whom nothing more is known.
        let task = process::task(tid);
        let process = task.as_ref().map_or(tid, |task| task.process);
        let name = task.map(|task| task.name).unwrap_or_default();
        let seen = role::Seen { name, ..role::Seen::default() };
        self.threads.insert(tid, Thread { process, seen, calls: 0 });
        if let Some(seen) = look(process) {
            self.processes.entry(process).or_insert(seen);
        }
    }

    fn event(&mut self, event: Event) {
        let Event { at, tid, what } = event;
        match what {
            What::Enter { call, arguments } => {
                self.inside.insert(tid, (call, arguments, at));
                if call == Call::IoUringEnter {
                    self.rings.enter(tid, arguments[0] as i32, at);
                }
            }
            What::Exit { call, result } => {
                // Without its beginning, which was before the trace.
                let Some((begun, arguments, since)) = self.inside.remove(&tid) else { return };
                if begun == call {
                    self.exit(tid, call, arguments, since, at, result);
                }
            }
            What::Named { fd, path } => {
                let process = self.process(tid);
                self.files.named(process, fd, path);
            }
            What::Submitted { request, opcode, registered } => {
                let (process, product) = (self.process(tid), self.product(tid));
                let ring = self.rings.descriptor(tid);
                let place = ring
                    .filter(|_| registered)
                    .and_then(|ring| self.files.registered(product, process, ring));
                self.rings.submitted(tid, request, opcode, place, at);
            }
            What::FileTaken { request, fd } => {
                let (process, product) = (self.process(tid), self.product(tid));
                let place = self.files.place(product, process, fd);
                self.rings.file_taken(tid, request, place);
            }
            What::ToWorker { request } => self.rings.handed_to_worker(request),
            What::Completed { request, result } => {
                self.rings.completed(tid, request, i64::from(result), at, &mut self.figures);
            }
            What::WaitBegun => self.rings.wait_begun(tid, at),
            What::WorkRun { count } => self.rings.work_run(tid, count, at),
            What::Born { tid: child, is_thread } => {
                self.know(child);
                let process = if is_thread { self.process(tid) } else { child };
                if let Some(thread) = self.threads.get_mut(&child) {
                    thread.process = process;
                }
            }
        }
    }

    fn exit(&mut self, tid: u32, call: Call, arguments: [u64; 6], since: Nanos, at: Nanos, result: i64) {
        self.calls += 1;
        *self.counts.entry(call).or_default() += 1;
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.calls += 1;
            // A process that was just made has the name of its maker, and some do not live until the next look.
            if EARLY_LOOKS.contains(&thread.calls)
                && let Some(seen) = look(thread.process)
            {
                self.processes.insert(thread.process, seen);
            }
        }
        let (process, product) = (self.process(tid), self.product(tid));
        let fd = arguments[0] as i32;
        let span = at - since;
        match call {
            Call::Openat => {
                if let Ok(fd @ 0..) = i32::try_from(result) {
                    self.files.opened(process, fd, arguments[2] as u32);
                    if let Some(place) = self.files.place(product, process, fd) {
                        self.plain((tid, place, Act::Call(call)), span, 0);
                    }
                }
            }
            Call::Close => self.files.closed(process, fd),
            Call::Dup | Call::Dup2 | Call::Dup3 => {
                if let Ok(new @ 0..) = i32::try_from(result) {
                    self.files.duplicated(process, fd, new);
                }
            }
            Call::Recvfrom => self.mark(tid, |seen| seen.serves = true),
            Call::IoUringEnter => self.rings.exit(tid, at, &mut self.figures),
            Call::IoSubmit => {
                if let Ok(count @ 1..) = u64::try_from(result) {
                    self.aio.submitted((tid, process), arguments[0], count, (since, at));
                }
            }
            Call::IoGetevents | Call::IoPgetevents => {
                self.mark(tid, |seen| seen.reaps = true);
                let (count, files) = (u64::try_from(result).unwrap_or(0), &mut self.files);
                let reaped = Reaped { process, product, arguments, count, at, files };
                self.aio.reaped(reaped, &mut self.figures);
            }
            _ => {
                if let Some(place) = self.files.place(product, process, fd) {
                    self.plain((tid, place, Act::Call(call)), span, result);
                }
            }
        }
    }

    fn plain(&mut self, key: Key, span: Nanos, result: i64) {
        let figures = self.figures.entry(key).or_default();
        figures.calls += 1;
        figures.requests += 1;
        figures.latency.record(span.0);
        figures.end(result, key.2.direction());
    }

    fn mark(&mut self, tid: u32, mark: impl FnOnce(&mut role::Seen)) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            mark(&mut thread.seen);
        }
    }
}

fn look(pid: u32) -> Option<Process> {
    let program = process::program(pid)?;
    let command_line = process::command_line(pid)?;
    Some(Process { product: Product::of(&program), program, command_line })
}

/// The direction of an operation of libaio (linux/aio_abi.h).
pub(super) const fn aio_direction(opcode: u16) -> Direction {
    match opcode {
        0 | 7 => Direction::Read,
        1 | 8 => Direction::Write,
        2 | 3 => Direction::Sync,
        _ => Direction::Other,
    }
}
