//! The generator is light: IOPS and CPU per request against fio, alternating, on one pinned core.
//!
//! 8 KiB random reads of one file through io_uring: from the page cache at depth 32 (what the generator itself costs), and
//! with O_DIRECT at depths 32 and 64, about the knee of a good device (what it costs beside real storage). Both sides run as
//! a process of their own under `taskset`, in turns whose order reverses each round, and are charged their whole process,
//! start and end included. Our side records every latency and verifies one read in 64, as in `calibrate`.
//!
//! `cargo x bench generator --rounds 7 --seconds 8`
#![forbid(unsafe_code)]

mod common;

use common::file::{FILE_ID, TestFile};
use common::flags::Flags;
use common::goals::{Aim, Goals, median};
use common::{child, fio};
use io::{Access, Api};
use lab::load::{LoadSpec, Pattern};
use record::json::{self, Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed};

const BLOCK_BYTES: u32 = 8192;
const CACHED_DEPTH: u32 = 32;
const DIRECT_DEPTHS: [u32; 2] = [32, 64];

fn main() -> ExitCode {
    let flags = Flags::parse();
    if flags.has("worker") {
        work(&flags);
        return ExitCode::SUCCESS;
    }
    let measured = flags.measured();
    let rounds = flags.number("rounds", if measured { 7.0 } else { 1.0 }) as usize;
    let seconds = flags.number("seconds", if measured { 8.0 } else { 0.2 });
    let bytes = if measured { Bytes::gib(1) } else { Bytes::mib(16) };
    let file = TestFile::make("generator", bytes.0, BLOCK_BYTES);
    let bench = Bench { path: &file.path, core: child::core(), rounds, seconds };
    println!("{bytes} file, 8 KiB random reads, core {}, {rounds} rounds of {seconds} s a side", bench.core);

    let mut goals = Goals::default();
    file.warm();
    bench.cached(&mut goals);
    file.drop_cache();
    for depth in DIRECT_DEPTHS {
        bench.direct(depth, &mut goals);
    }
    goals.conclude(measured)
}

/// One side's run.
struct Run {
    iops: f64,
    cpu_whole: f64,
    cpu_submitters: f64,
}

struct Bench<'a> {
    path: &'a Path,
    core: String,
    rounds: usize,
    seconds: f64,
}

impl Bench<'_> {
    fn cached(&self, goals: &mut Goals) {
        println!("\nfrom the page cache, io_uring, depth {CACHED_DEPTH}");
        let common = fio_options(CACHED_DEPTH, false);
        let lean = ["--gtod_reduce=1", "--iodepth_batch=16", "--iodepth_batch_complete_min=16"];
        let lean: Vec<String> = common.iter().cloned().chain(lean.map(str::to_owned)).collect();
        let sides: [(&str, &dyn Fn() -> Run); 3] = [
            ("ours, every latency", &|| self.ours(CACHED_DEPTH, false)),
            ("fio, its latencies on", &|| self.fio(&common)),
            ("fio, gtod_reduce, batches of 16", &|| self.fio(&lean)),
        ];
        let [ours, fio, lean] = self.alternate(sides);
        let iops = |run: &Run| run.iops;
        goals.rounds("page cache: IOPS, ours / fio", &ratios(&ours, &fio, iops), Aim::AtLeast(1.25));
        let name = "page cache: IOPS, ours / fio with gtod_reduce and batches of 16";
        goals.rounds(name, &ratios(&ours, &lean, iops), Aim::AtLeast(1.0));
    }

    fn direct(&self, depth: u32, goals: &mut Goals) {
        println!("\nO_DIRECT, io_uring, depth {depth}");
        let options = fio_options(depth, true);
        let sides: [(&str, &dyn Fn() -> Run); 2] = [
            ("ours, every latency", &|| self.ours(depth, true)),
            ("fio, its latencies on", &|| self.fio(&options)),
        ];
        let [ours, fio] = self.alternate(sides);
        let at = format!("O_DIRECT, depth {depth}");
        goals.rounds(
            &format!("{at}: IOPS, ours / fio"),
            &ratios(&ours, &fio, |r| r.iops),
            Aim::AtLeast(0.97),
        );
        let whole = ratios(&ours, &fio, |r| r.cpu_whole);
        goals.rounds(
            &format!("{at}: CPU per request, whole processes, ours / fio"),
            &whole,
            Aim::AtMost(0.7),
        );
        let submitters = ratios(&ours, &fio, |r| r.cpu_submitters);
        goals.rounds(&format!("{at}: CPU per request, submitting threads alone"), &submitters, Aim::Told);
    }

    /// Each side once per round, the order reversed in every other round; prints what each did.
    fn alternate<const N: usize>(&self, sides: [(&str, &dyn Fn() -> Run); N]) -> [Vec<Run>; N] {
        let mut runs = [const { Vec::new() }; N];
        for round in 0..self.rounds {
            for step in 0..N {
                let side = if round % 2 == 0 { step } else { N - 1 - step };
                runs[side].push(sides[side].1());
            }
        }
        for ((name, _), runs) in sides.iter().zip(&runs) {
            let of = |value: fn(&Run) -> f64| median(&runs.iter().map(value).collect::<Vec<_>>());
            println!(
                "  {name:<32} {:>9.0} reads/s   CPU per read {:>6.2} µs, of the submitter {:>6.2} µs   (medians)",
                of(|r| r.iops),
                of(|r| r.cpu_whole * 1e6),
                of(|r| r.cpu_submitters * 1e6)
            );
        }
        runs
    }

    fn fio(&self, options: &[String]) -> Run {
        let run = fio::random_reads(self.path, BLOCK_BYTES, self.seconds, options, Some(&self.core));
        Run { iops: run.iops, cpu_whole: run.cpu_whole, cpu_submitters: run.cpu_submitters }
    }

    /// This very program as a child under `taskset`.
    fn ours(&self, depth: u32, direct: bool) -> Run {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut words = vec![program.display().to_string(), "--worker".into()];
        for (name, value) in [
            ("path", self.path.display().to_string()),
            ("depth", depth.to_string()),
            ("direct", u8::from(direct).to_string()),
            ("seconds", self.seconds.to_string()),
        ] {
            words.extend([format!("--{name}"), value]);
        }
        let finished = child::run(&child::pinned(&self.core, words));
        let text: Value = json::from_str(&finished.stdout).expect("our worker prints JSON");
        let number = |name: &str| text[name].as_f64().expect("a number of ours");
        Run {
            iops: number("iops"),
            cpu_whole: finished.cpu_seconds / number("requests").max(1.0),
            cpu_submitters: number("cpu_ns") / 1e9 / number("ops").max(1.0),
        }
    }
}

fn fio_options(depth: u32, direct: bool) -> Vec<String> {
    ["--ioengine=io_uring", "--fixedbufs", "--registerfiles"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("--iodepth={depth}"), format!("--direct={}", u8::from(direct))])
        .collect()
}

/// Ours over theirs, round by round.
fn ratios(ours: &[Run], theirs: &[Run], value: impl Fn(&Run) -> f64) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(a, b)| value(a) / value(b)).collect()
}

/// The child: one load, its numbers as JSON.
fn work(flags: &Flags) {
    let path = flags.text("path").expect("the parent names the file");
    let bytes = std::fs::metadata(&path).expect("the parent made the file").len();
    let depth = flags.number("depth", 1.0) as u32;
    let direct = flags.number("direct", 0.0) == 1.0;
    let spec = LoadSpec {
        api: Api::IoUring,
        access: Access { read: true, write: false, direct, dsync: false },
        paths: vec![path.into()],
        threads: 1,
        in_flight: depth,
        pattern: Pattern::RandomRead,
        block_bytes: BLOCK_BYTES,
        span: 0..bytes,
        batch_min: 0,
        verify_every: 64,
        notes: None,
        file_id: FILE_ID,
        seed: Seed::draw(),
        interval: Nanos::millis(250),
        pin_cores: false,
        settle: Nanos(0),
        measure: Nanos::secs(flags.number("seconds", 1.0)),
        lock_writes: false,
    };
    let seen = lab::load::run(&spec, &AtomicBool::new(false)).expect("the load runs");
    assert_eq!((seen.errors, seen.wrong_count), (0, 0), "{:?} {:?}", seen.first_error, seen.wrong);
    assert_eq!(seen.histogram.count(), seen.ops, "every latency is recorded");
    let numbers = json!({
        "iops": seen.ops as f64 / (seen.ended - seen.started).as_secs(),
        "ops": seen.ops, "requests": seen.requests_total, "cpu_ns": seen.cpu_user_ns + seen.cpu_system_ns,
    });
    println!("{numbers}");
}
