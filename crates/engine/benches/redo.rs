//! How much of the device's durable writes the redo log reaches: group commit by 1 and by 10 sessions against the raw ceiling.
//!
//! The ceiling of one session is a lone `pwrite` of a log block in a loop. That of ten is the leanest group commit there is: threads
//! that hand 1 KiB each to one writer, which writes what has gathered and wakes them; no log format, no groups, no waits
//! counted. Both on files of the same kind (O_DSYNC, O_DIRECT unless `--cached 1`), written before. The sides take turns.
//!
//! A round counts only when other processes used less than a tenth of the processors in all of its turns: on a busy machine
//! the ratios say who got them. What a round brought plays no part in that. With too few such rounds there is no verdict.
//!
//! Before each round it waits for a quiet moment, up to `--patience` seconds in all.
//!
//! `cargo x bench redo --rounds 7 --seconds 1 --patience 300 --directory /data`
#![forbid(unsafe_code)]

#[path = "../../lab/benches/common/flags.rs"]
mod flags;

use engine::files::control::{FileState, GroupRecord, LogRecord, MemberRecord};
use engine::redo::{FIRST_LSN, Keeper, RedoLog, RedoOptions, create_files};
use engine::statistics::{Statistic, Statistics};
use engine::{Background, Context, Environment};
use flags::Flags;
use io::sim::Disk;
use io::{Access, RealStorage, Storage};
use parking_lot::{Condvar, Mutex};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use units::{Clock, Nanos, Seed, clock};
use waits::SessionKind;

/// Log block, and the write of a lone commit.
const BLOCK: usize = 4096;
/// Redo of one commit: a row of about 1 KB.
const RECORD: usize = 1024;
const SESSIONS: usize = 10;
/// The promises.
const ONE_MIN: f64 = 0.9;
const TEN_MIN: f64 = 0.75;
/// Most of the processors that others may use during a turn that counts.
const OTHERS_MAX: f64 = 0.1;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 7.0 } else { 1.0 }) as usize;
    let patience = Nanos::secs(flags.number("patience", 300.0));
    let span = Nanos::secs(flags.number("seconds", if measured { 1.0 } else { 0.05 }));
    let file_bytes = if measured { 64 << 20 } else { 4 << 20 };
    let direct = flags.number("cached", 0.0) == 0.0;

    let above = flags.text("directory").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(above).expect("a folder that can be written");
    let bed = Bed { folder: folder.path().to_path_buf(), file_bytes, direct };
    let raw = bed.raw();
    let log = bed.log();
    let sides: [(&str, &dyn Fn() -> Side); 4] = [
        ("1 thread, pwrite alone", &|| alone(&raw, span)),
        ("1 session, redo log", &|| sessions(&log, 1, span)),
        ("10 threads, one raw writer", &|| group(&raw, span)),
        ("10 sessions, redo log", &|| sessions(&log, SESSIONS, span)),
    ];
    let (mut seen, mut dismissed) = ([const { Vec::new() }; 4], 0);
    let give_up = clock::now() + patience;
    for attempt in 0.. {
        if seen[0].len() == rounds || (measured && !quiet_before(give_up)) {
            break;
        }
        // Back and forth, so that a drift favours nobody.
        let order = if attempt % 2 == 0 { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
        let mut round: Vec<(usize, Side)> = order.into_iter().map(|side| (side, (sides[side].1)())).collect();
        if measured && round.iter().any(|(_, turn)| turn.others > OTHERS_MAX) {
            dismissed += 1;
            continue;
        }
        round.sort_by_key(|(side, _)| *side);
        seen.iter_mut().zip(round).for_each(|(values, (_, turn))| values.push(turn));
    }
    log.close();
    if measured {
        println!("{} rounds; {dismissed} dismissed: other processes used the processors", seen[0].len());
    }
    if seen[0].len() < rounds {
        println!("no verdict: too few rounds; let the machine be quiet, or raise --patience");
        return ExitCode::FAILURE;
    }
    for ((name, _), values) in sides.iter().zip(&seen) {
        report(name, values);
    }
    let one = ratio("1 session", &seen[1], &seen[0], ONE_MIN, measured);
    let ten = ratio("10 sessions", &seen[3], &seen[2], TEN_MIN, measured);
    if one && ten { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What one side did in its turn.
#[derive(Clone, Copy)]
struct Side {
    commits_per_second: f64,
    commits_per_write: f64,
    cpu_us_per_commit: f64,
    p50_us: f64,
    /// Share of all processors that other processes used meanwhile.
    others: f64,
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn report(name: &str, values: &[Side]) {
    let of = |field: fn(&Side) -> f64| median(values.iter().map(field).collect());
    let (rate, low, high) = of(|s| s.commits_per_second);
    println!(
        "{name:<28} {rate:>7.0}/s  (min {low:.0}, max {high:.0})  {:>5.1} a write  {:>5.1} us CPU  p50 {:>5.0} us",
        of(|s| s.commits_per_write).0,
        of(|s| s.cpu_us_per_commit).0,
        of(|s| s.p50_us).0,
    );
}

/// The median over rounds of ours to theirs in the same round. Whether it is good enough, where that was measured.
fn ratio(name: &str, ours: &[Side], theirs: &[Side], least: f64, measured: bool) -> bool {
    let ratios =
        ours.iter().zip(theirs).map(|(ours, theirs)| ours.commits_per_second / theirs.commits_per_second);
    let (middle, low, high) = median(ratios.collect());
    let met = middle >= least;
    let verdict = match (measured, met) {
        (false, _) => String::new(),
        (true, true) => format!("  goal >= {least}: met"),
        (true, false) => format!("  goal >= {least}: MISSED"),
    };
    println!("{name:<28} {middle:>7.2} of the ceiling  (min {low:.2}, max {high:.2}){verdict}");
    met || !measured
}

/// Where the files are and how they are opened.
struct Bed {
    folder: PathBuf,
    file_bytes: u64,
    direct: bool,
}

impl Bed {
    fn access(&self) -> Access {
        Access { read: true, write: true, direct: self.direct, dsync: true }
    }

    fn raw(&self) -> Raw {
        let path = self.folder.join("raw");
        let disk = RealStorage.create(&path, self.file_bytes, self.access()).expect("the raw file");
        Raw { disk, bytes: self.file_bytes, at: AtomicU64::new(0) }
    }

    fn log(&self) -> Log {
        let storage: Arc<dyn Storage> = Arc::new(RealStorage);
        let record = |number: u32| GroupRecord {
            number,
            bytes: self.file_bytes,
            members: vec![MemberRecord {
                state: FileState::Online,
                path: self.folder.join(format!("redo{number}")),
            }],
        };
        let groups: Vec<GroupRecord> = (1..=3).map(record).collect();
        create_files(&*storage, self.access(), 1, BLOCK as u32, &groups).expect("the redo files");
        Log::open(storage, self.access(), groups)
    }
}

/// The raw side's file, written round and round.
struct Raw {
    disk: Arc<dyn Disk>,
    bytes: u64,
    at: AtomicU64,
}

impl Raw {
    fn write(&self, data: &[u8]) {
        let length = data.len() as u64;
        let at = self.at.load(Ordering::Relaxed);
        let at = if at + length > self.bytes { 0 } else { at };
        assert!(self.disk.write_at(data, at).is_full(), "the device failed");
        self.at.store(at + length, Ordering::Relaxed);
    }
}

/// Counts commits, their times and the processor time of everybody.
struct Watch {
    began: Nanos,
    own: f64,
    busy: f64,
}

impl Watch {
    fn start() -> Self {
        Self { began: clock::now(), own: own_seconds(), busy: busy_seconds() }
    }

    fn end(self, mut took: Vec<f64>, writes: u64) -> Side {
        let commits = took.len() as f64;
        let span = (clock::now() - self.began).as_secs();
        let (own, busy) = (own_seconds() - self.own, busy_seconds() - self.busy);
        let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        took.sort_by(f64::total_cmp);
        Side {
            commits_per_second: commits / span,
            commits_per_write: commits / writes.max(1) as f64,
            cpu_us_per_commit: own * 1e6 / commits,
            p50_us: took.get(took.len() / 2).copied().unwrap_or_default(),
            others: (busy - own).max(0.0) / span / processors,
        }
    }
}

/// Sleeps until others leave the processors alone for a moment; false when they do not before `give_up`.
fn quiet_before(give_up: Nanos) -> bool {
    let moment = Nanos::millis(300);
    while clock::now() < give_up {
        let watch = Watch::start();
        clock::sleep(moment);
        if watch.end(Vec::new(), 0).others <= OTHERS_MAX {
            return true;
        }
        clock::sleep(Nanos::millis(700));
    }
    false
}

/// Processor time of this process, user and system.
fn own_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    ticks(&fields[11..13])
}

/// Processor time of all processes: user, nice, system, interrupts, and what the hypervisor gave to others.
fn busy_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let fields: Vec<&str> = stat.lines().next().unwrap_or_default().split_whitespace().collect();
    ticks(&fields[1..4]) + ticks(&fields[6..9])
}

/// A tick is a hundredth of a second in /proc, whatever the kernel's own is.
fn ticks(fields: &[&str]) -> f64 {
    fields.iter().filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn alone(raw: &Raw, span: Nanos) -> Side {
    let mut block = io::Buffer::new(BLOCK).expect("memory");
    block.fill(7);
    let (watch, end, mut took) = (Watch::start(), clock::now() + span, Vec::new());
    let mut now = clock::now();
    while now < end {
        let began = now;
        raw.write(&block);
        now = clock::now();
        took.push((now - began).as_micros());
    }
    let writes = took.len() as u64;
    watch.end(took, writes)
}

/// A thread of the raw group commit.
struct Seat {
    thread: Thread,
    durable: AtomicBool,
}

#[derive(Default)]
struct Gathered {
    seats: Vec<Arc<Seat>>,
    closed: bool,
}

/// The leanest group commit: one mutex, one condition for the writer, `unpark` for the others.
fn group(raw: &Raw, span: Nanos) -> Side {
    let gathered = Mutex::new(Gathered::default());
    let work = Condvar::new();
    let (watch, end) = (Watch::start(), clock::now() + span);
    let mut writes = 0;
    let mut took = Vec::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_groups(raw, &gathered, &work));
        let threads: Vec<_> = (0..SESSIONS)
            .map(|_| {
                let (gathered, work) = (&gathered, &work);
                scope.spawn(move || commit_raw(gathered, work, end))
            })
            .collect();
        for thread in threads {
            took.extend(thread.join().expect("a session"));
        }
        gathered.lock().closed = true;
        work.notify_one();
        writes = writer.join().expect("the writer");
    });
    watch.end(took, writes)
}

fn commit_raw(gathered: &Mutex<Gathered>, work: &Condvar, end: Nanos) -> Vec<f64> {
    let seat = Arc::new(Seat { thread: std::thread::current(), durable: AtomicBool::new(false) });
    let mut took = Vec::new();
    let mut now = clock::now();
    while now < end {
        let began = now;
        {
            let mut gathered = gathered.lock();
            gathered.seats.push(seat.clone());
            if gathered.seats.len() == 1 {
                work.notify_one();
            }
        }
        while !seat.durable.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
        now = clock::now();
        took.push((now - began).as_micros());
    }
    took
}

fn write_groups(raw: &Raw, gathered: &Mutex<Gathered>, work: &Condvar) -> u64 {
    let mut buffer = io::Buffer::new((SESSIONS * RECORD).next_multiple_of(BLOCK)).expect("memory");
    let (mut seats, mut writes) = (Vec::new(), 0);
    loop {
        {
            let mut gathered = gathered.lock();
            while gathered.seats.is_empty() {
                if gathered.closed {
                    return writes;
                }
                work.wait(&mut gathered);
            }
            std::mem::swap(&mut seats, &mut gathered.seats);
        }
        let bytes = (seats.len() * RECORD).next_multiple_of(BLOCK);
        buffer[..seats.len() * RECORD].fill(writes as u8);
        raw.write(&buffer[..bytes]);
        writes += 1;
        for seat in seats.drain(..) {
            seat.durable.store(true, Ordering::Release);
            seat.thread.unpark();
        }
    }
}

/// Nobody keeps anything here: the log is not opened again.
struct Forgetful;

impl Keeper for Forgetful {
    fn keep(&self, _: &Context, _: &[GroupRecord]) -> engine::Result<()> {
        Ok(())
    }
    fn switched(&self, _: &Context, _: LogRecord) {}
    fn crashed(&self, why: &str) {
        panic!("{why}");
    }
    fn failure(&self) -> Option<String> {
        None
    }
    fn alert(&self, _: &str) {}
}

/// What wakes the log writer, as in an instance.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    ringing: Condvar,
}

/// The log under test, with its log writer's thread.
struct Log {
    redo: Arc<RedoLog>,
    waits: Arc<waits::Registry>,
    statistics: Arc<Statistics>,
    checkpoint: Mutex<()>,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
}

impl Log {
    fn open(storage: Arc<dyn Storage>, access: Access, groups: Vec<GroupRecord>) -> Self {
        let waits = waits::Registry::new(Clock::Real, 64);
        let statistics = Statistics::new();
        let environment =
            Environment { storage, clock: Clock::Real, background: Background::Threads, seed: Seed(1) };
        let options = RedoOptions {
            database: 1,
            buffer_bytes: 8 << 20,
            access,
            checkpoint: FIRST_LSN,
            block: BLOCK as u32,
            groups,
            statistics: Arc::default(),
        };
        let background = |program: &str| context(&waits, &statistics, SessionKind::Background, program);
        let redo =
            RedoLog::over(&environment, options, Arc::new(Forgetful), background("lg00")).expect("the log");
        let redo = Arc::new(redo);
        let (bell, stop): (Arc<Bell>, Arc<AtomicBool>) = Default::default();
        let ring = bell.clone();
        redo.set_log_writer(Box::new(move || {
            *ring.rung.lock() = true;
            ring.ringing.notify_one();
        }));
        let lgwr = background("lgwr");
        let (log, rings, stops) = (redo.clone(), bell.clone(), stop.clone());
        std::thread::Builder::new()
            .name("lgwr".into())
            .spawn(move || {
                while !stops.load(Ordering::Acquire) {
                    if log.log_writer_step(&lgwr).expect("the log goes on") {
                        continue;
                    }
                    let mut rung = rings.rung.lock();
                    if !*rung {
                        rings.ringing.wait_for(&mut rung, Nanos::millis(1_000).duration());
                    }
                    *rung = false;
                }
            })
            .expect("a thread");
        Self { redo, waits, statistics, checkpoint: Mutex::new(()), bell, stop }
    }

    /// All redo counts as being in data files at once: the device is measured, not a cache.
    fn make_room(&self) {
        let _one = self.checkpoint.lock();
        self.redo.note_checkpoint(self.redo.restart_point(self.redo.durable_lsn()));
    }

    fn close(&self) {
        self.stop.store(true, Ordering::Release);
        *self.bell.rung.lock() = true;
        self.bell.ringing.notify_one();
    }

    fn writes(&self) -> u64 {
        self.statistics.value(Statistic::RedoWrites)
    }
}

fn context(
    waits: &Arc<waits::Registry>,
    statistics: &Arc<Statistics>,
    kind: SessionKind,
    program: &str,
) -> Context {
    let slot = waits.register(kind, program);
    Context { session: slot.sid(), slot, counters: statistics.counters() }
}

fn sessions(log: &Log, count: usize, span: Nanos) -> Side {
    let contexts: Vec<Context> = (0..count)
        .map(|_| context(&log.waits, &log.statistics, SessionKind::Foreground, "session"))
        .collect();
    let before = log.writes();
    let (watch, end) = (Watch::start(), clock::now() + span);
    let took = std::thread::scope(|scope| {
        let threads: Vec<_> = contexts
            .into_iter()
            .map(|context| scope.spawn(move || commit_redo(log, &context, end)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a session")).collect()
    });
    watch.end(took, log.writes() - before)
}

fn commit_redo(log: &Log, context: &Context, end: Nanos) -> Vec<f64> {
    let record = [7; RECORD];
    let mut took = Vec::new();
    let mut now = clock::now();
    while now < end {
        let began = now;
        let _call = context.slot.call();
        let reservation = loop {
            match log.redo.try_reserve(RECORD).expect("the log goes on") {
                Some(reservation) => break reservation,
                None => log.make_room(),
            }
        };
        let lsn = log.redo.append(reservation, &record);
        log.redo.sync(context, lsn).expect("the log goes on");
        now = clock::now();
        took.push((now - began).as_micros());
    }
    took
}
