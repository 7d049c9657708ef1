//! Events as the kernel gives them, of this very process, so that descriptors can be looked at.

use super::analysis::Analysis;
use super::figures::{Act, Direction, Figures};
use super::verdict::{Manner, Verdict, judge};
use host::trace::{Call, Event, Request, What, own_thread};
use std::os::fd::AsRawFd;
use units::Nanos;

struct Story {
    events: Vec<Event>,
    at: u64,
    tid: u32,
}

impl Story {
    fn new() -> Self {
        Self { events: Vec::new(), at: 1_000_000, tid: own_thread() }
    }

    /// Something happens `later` nanoseconds after what happened last.
    fn then(&mut self, later: u64, what: What) -> &mut Self {
        self.at += later;
        self.events.push(Event { at: Nanos(self.at), tid: self.tid, what });
        self
    }

    fn enter(&mut self, later: u64, call: Call, arguments: [u64; 3]) -> &mut Self {
        let [a, b, c] = arguments;
        self.then(later, What::Enter { call, arguments: [a, b, c, 0, 0, 0] })
    }

    fn exit(&mut self, later: u64, call: Call, result: i64) -> &mut Self {
        self.then(later, What::Exit { call, result })
    }

    /// What it makes: the figures by kind of call, and the verdict on writes.
    fn told(&mut self) -> (Vec<(Act, Figures)>, Option<Verdict>) {
        let mut analysis = Analysis::default();
        analysis.take(std::mem::take(&mut self.events));
        let all: Vec<(Act, Figures)> =
            analysis.figures.iter().map(|((_, _, act), figures)| (*act, figures.clone())).collect();
        let flags: Vec<u32> = analysis.files.places.iter().filter_map(|place| place.flags).collect();
        let acts: Vec<(Act, &Figures)> = all.iter().map(|(act, figures)| (*act, figures)).collect();
        let verdict = judge(&flags, &acts, Direction::Write);
        (all, verdict)
    }
}

fn request(address: u64) -> Request {
    Request { ring: 0xffff_8000, address }
}

/// `IORING_OP_WRITE`.
const WRITE: u8 = 23;

#[test]
fn a_blocking_write_and_its_sync() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let fd = file.as_file().as_raw_fd() as u64;
    let mut story = Story::new();
    // The end of a call whose beginning was before the trace.
    story.exit(0, Call::Pwrite64, 8192);
    story.enter(10, Call::Pwrite64, [fd, 0, 8192]).exit(300, Call::Pwrite64, 8192);
    story.enter(10, Call::Pwrite64, [fd, 0, 8192]).exit(500, Call::Pwrite64, -28);
    story.enter(10, Call::Fdatasync, [fd, 0, 0]).exit(9_000, Call::Fdatasync, 0);
    let (all, verdict) = story.told();
    let of = |call| &all.iter().find(|(act, _)| *act == Act::Call(call)).expect("figures").1;
    let write = of(Call::Pwrite64);
    assert_eq!((write.requests, write.errors, write.bytes), (2, 1, 8192));
    assert_eq!((write.latency.count(), write.latency.sum()), (2, 800));
    assert_eq!(of(Call::Fdatasync).latency.sum(), 9_000);
    let verdict = verdict.expect("writes");
    assert_eq!((verdict.direct, verdict.manner), (Some(false), Manner::Blocking));
    assert_eq!(verdict.durable.map(super::verdict::Durable::name), Some("by_sync"));
}

/// Four writes in one call: one is done inside it, one goes to a worker, two come back while the thread waits.
#[test]
fn requests_of_a_ring() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let fd = file.as_file().as_raw_fd();
    let mut story = Story::new();
    story.enter(0, Call::IoUringEnter, [77, 4, 4]);
    for address in 1..=4 {
        story.then(10, What::Submitted { request: request(address), opcode: WRITE, registered: false });
        story.then(0, What::FileTaken { request: request(address), fd });
    }
    story.then(0, What::ToWorker { request: request(2) });
    story.then(60, What::Completed { request: request(1), result: 4096 });
    story.then(0, What::WaitBegun);
    for (address, result) in [(2, 4096), (3, 4096), (4, -5)] {
        story.then(200, What::Completed { request: request(address), result });
    }
    story.exit(0, Call::IoUringEnter, 4);
    let (all, verdict) = story.told();
    let (act, of) = all.first().expect("figures");
    assert_eq!((*act, all.len()), (Act::Ring(WRITE), 1));
    assert_eq!((of.calls, of.requests, of.errors, of.bytes), (1, 4, 1, 3 * 4096));
    assert_eq!((of.done_at_return, of.to_workers), (1, 1));
    assert_eq!((of.batches.median(), of.sizes.max()), (Some(4), Some(4096)));
    // 100 ns inside until it waits, 600 ns of waiting.
    assert_eq!((of.submit_ns, of.span_ns), (100, 700));
    let verdict = verdict.expect("writes");
    assert_eq!(verdict.manner, Manner::Workers);
    assert!((verdict.inside - 100.0 / 700.0).abs() < 1e-9, "{verdict:?}");
}

/// Before it waits a thread does what came back meanwhile: that is no work of the call that handed it over.
#[test]
fn completions_that_came_by_themselves() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let fd = file.as_file().as_raw_fd();
    let mut story = Story::new();
    story.enter(0, Call::IoUringEnter, [77, 3, 3]);
    for address in 1..=3 {
        story.then(10, What::Submitted { request: request(address), opcode: WRITE, registered: false });
        story.then(0, What::FileTaken { request: request(address), fd });
    }
    story.then(0, What::Completed { request: request(1), result: 4096 });
    story.then(500, What::Completed { request: request(2), result: 4096 });
    story.then(0, What::Completed { request: request(3), result: 4096 });
    story.then(0, What::WorkRun { count: 2 });
    story.exit(0, Call::IoUringEnter, 3);
    let (all, verdict) = story.told();
    assert_eq!(all.first().map(|(_, of)| of.done_at_return), Some(1));
    assert_eq!(verdict.map(|verdict| verdict.manner), Some(Manner::Held));
}

#[test]
fn what_is_done_inside_submit_is_asynchronous_in_name_only() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let fd = file.as_file().as_raw_fd();
    let mut story = Story::new();
    for address in 1..=3 {
        story.enter(5, Call::IoUringEnter, [77, 1, 1]);
        story.then(1, What::Submitted { request: request(address), opcode: WRITE, registered: false });
        story.then(0, What::FileTaken { request: request(address), fd });
        story.then(50, What::Completed { request: request(address), result: 8192 });
        story.exit(1, Call::IoUringEnter, 1);
    }
    let (_, verdict) = story.told();
    let verdict = verdict.expect("writes");
    assert_eq!((verdict.manner, verdict.done_at_return, verdict.inside), (Manner::NameOnly, 1.0, 1.0));
}

/// Completions are read from memory: here they are this test's own. They are taken in order of submission.
#[test]
fn batches_of_libaio() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let fd = file.as_file().as_raw_fd() as u64;
    // struct iocb: data, key and flags, opcode (1: write) and descriptor …; struct io_event: data, control block, result, second result.
    let block = [0, 0, 1 | fd << 32, 0, 0, 0, 0, 0u64];
    let events: Vec<[u64; 4]> = [8192, 16384].map(|bytes| [0, block.as_ptr() as u64, bytes, 0]).to_vec();
    let mut story = Story::new();
    story.enter(0, Call::IoSubmit, [0x7f00, 2, 0]).exit(100, Call::IoSubmit, 2);
    for (n, later) in [(0, 300), (1, 600)] {
        let address = events[n..].as_ptr() as u64;
        let arguments = [0x7f00, 1, 2, address, 0, 0];
        story.then(0, What::Enter { call: Call::IoGetevents, arguments }).exit(later, Call::IoGetevents, 1);
    }
    let (all, verdict) = story.told();
    drop(events);
    let (act, of) = all.first().expect("figures");
    assert_eq!((*act, all.len()), (Act::Aio(Direction::Write), 1));
    assert_eq!((of.calls, of.requests, of.bytes), (1, 2, 8192 + 16384));
    assert_eq!((of.sizes.min(), of.sizes.max(), of.batches.max()), (Some(8192), Some(16384), Some(2)));
    assert_eq!((of.latency.min(), of.latency.max()), (400, 1000));
    assert_eq!((of.submit_ns, of.span_ns), (100, 1000));
    // The file is not open with O_DIRECT: the kernel does the work inside the call.
    assert_eq!(verdict.expect("writes").manner, Manner::NameOnly);
}

#[test]
fn a_descriptor_that_is_closed_meanwhile_is_not_believed() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let fd = file.as_file().as_raw_fd() as u64;
    let mut story = Story::new();
    story.enter(0, Call::Pwrite64, [fd, 0, 1]).exit(1, Call::Pwrite64, 1);
    story.enter(0, Call::Close, [fd, 0, 0]).exit(1, Call::Close, 0);
    let mut analysis = Analysis::default();
    analysis.take(std::mem::take(&mut story.events));
    let classes: Vec<String> =
        analysis.files.places.iter().filter_map(|place| Some(place.class.as_ref()?.to_string())).collect();
    assert_eq!(classes, ["closed at once"]);
}
