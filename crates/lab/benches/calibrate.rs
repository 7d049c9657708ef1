//! True limits: what calibrate reports against limits that we set, against fio's exhaustive sweep, and on simulated devices.
//!
//! Three parts. *throttled*: a loop device limited to 150 and 3,000 reads/s and to 35 MB/s must be reported within 2 %, with the
//! limit inside the interval. *plain*: the operating point that calibrate chose on the plain disk and the best point of a
//! sweep with fio (threads 1–8 × depth 1–64, io_uring and libaio, 10 s each) are measured again in alternating blocks, and
//! differ by 3 % at most; calibrate took a third of the sweep's time at most. *simulated*: 95 % of searches within 3 %.
//!
//! `cargo x bench calibrate --only throttled|plain|simulated --sweep-seconds 10 --blocks 8 --block-seconds 4 --seeds 50`
#![forbid(unsafe_code)]

mod common;

use common::calibration::Calibration;
use common::file::{FILE_ID, TestFile};
use common::fio;
use common::flags::Flags;
use common::goals::{Aim, Goals};
use host::change::{Limits, loop_device, throttle};
use host::journal::Journal;
use io::{Access, Api};
use lab::calibrate::effort::Effort;
use lab::load::{LoadSpec, Pattern};
use stats::search::Plan;
use stats::sim::{Device, Noise, acceptance_of};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed, clock};

const BLOCK_BYTES: u32 = 8192;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let only = flags.text("only");
    let wanted = |part: &str| only.as_deref().map_or(measured || part == "simulated", |only| only == part);
    let mut goals = Goals::default();
    if wanted("simulated") {
        simulated(flags.number("seeds", if measured { 50.0 } else { 1.0 }) as u32, &mut goals);
    }
    if wanted("throttled") {
        throttled(&mut goals);
    }
    if wanted("plain") {
        plain(&flags, &mut goals);
    }
    goals.conclude(measured)
}

fn simulated(seeds: u32, goals: &mut Goals) {
    println!("simulated devices, typical noise, {seeds} seeds each");
    for (name, plan, aim) in [
        ("thorough", Plan::thorough(), Aim::AtLeast(0.95)),
        ("standard", Plan::standard(), Aim::Told),
        ("quick", Plan::quick(), Aim::Told),
    ] {
        let mut within = 0.0;
        let mut seconds = 0.0;
        for device in Device::ALL {
            let got = acceptance_of(device, Noise::Typical, seeds, &plan);
            let (share, time, device) = (got.within_3_percent, got.seconds, device.name());
            println!(
                "  {name:<9} {device:<14} within 3 %: {share:.2}   collapse named: {:.2}   {time:.0} s",
                got.collapse_named
            );
            within += share / Device::ALL.len() as f64;
            seconds += time / Device::ALL.len() as f64;
        }
        let what = format!("simulated: share of searches within 3 %, {name} plan");
        goals.value(&what, within, &format!("({seconds:.0} simulated seconds on average)"), aim);
    }
}

/// A limit that we set, and the figure that must report it.
struct Limit {
    name: &'static str,
    limits: Limits,
    metric: &'static str,
    value: f64,
}

fn throttled(goals: &mut Goals) {
    let unlimited = Limits::default();
    for limit in [
        Limit {
            name: "150 reads/s",
            limits: Limits { read_iops: Some(150), ..unlimited },
            metric: "read_iops_max",
            value: 150.0,
        },
        Limit {
            name: "3,000 reads/s",
            limits: Limits { read_iops: Some(3000), ..unlimited },
            metric: "read_iops_max",
            value: 3000.0,
        },
        Limit {
            name: "35 MB/s",
            limits: Limits { read_bps: Some(35_000_000), ..unlimited },
            metric: "read_mbps_max",
            value: 35.0,
        },
    ] {
        println!("\nloop device throttled to {}", limit.name);
        let file = TestFile::make("throttled", Bytes::mib(256).0, BLOCK_BYTES);
        file.drop_cache();
        let mut journal = Journal::open("bench calibrate").expect("a journal");
        let device = loop_device(&mut journal, &file.path, true, None).expect("a loop device; needs root");
        let throttle =
            throttle(&mut journal, &device.device(), limit.limits).expect("a throttle; needs root");
        throttle.enter_self().expect("enter the throttled group");
        let calibration = Calibration::of(&device.path, Effort::Standard);
        throttle.leave_self().expect("leave the throttled group");
        let undone = journal.undo_all().expect("a journal that can be removed");
        assert!(undone.iter().all(|line| line.result.is_settled()), "not as it was: {undone:?}");
        reported(&limit, &calibration, goals);
    }
}

fn reported(limit: &Limit, calibration: &Calibration, goals: &mut Goals) {
    let figure = calibration.figure(limit.metric);
    let (low, high) = (figure.low.unwrap_or(f64::NAN), figure.high.unwrap_or(f64::NAN));
    println!(
        "  {}: {:.2} {} [{low:.2}, {high:.2}] in {:.0} s",
        figure.label, figure.value, figure.unit, calibration.seconds
    );
    let percent = 100.0 * (figure.value / limit.value - 1.0);
    let name = limit.name;
    let beside = format!("({:.2} {})", figure.value, figure.unit);
    goals.value(
        &format!("throttled to {name}: |error| of the reported maximum, %"),
        percent.abs(),
        &beside,
        Aim::AtMost(2.0),
    );
    let inside = f64::from(u8::from((low..=high).contains(&limit.value)));
    let beside = format!("[{low:.2}, {high:.2}]");
    goals.value(
        &format!("throttled to {name}: interval contains the limit (1 = yes)"),
        inside,
        &beside,
        Aim::AtLeast(1.0),
    );
}

/// How requests are issued.
#[derive(Clone, Copy, Debug)]
struct Point {
    api: Api,
    threads: u32,
    /// Over all threads.
    in_flight: u32,
}

impl Point {
    fn text(self) -> String {
        format!("{}, {} threads, {} in flight", self.api, self.threads, self.in_flight)
    }

    /// By fio, reads per second. fio gives every job the same depth, so what does not divide is rounded.
    fn by_fio(self, file: &TestFile, seconds: f64) -> f64 {
        let depth = (f64::from(self.in_flight) / f64::from(self.threads)).round().max(1.0);
        let mut options = vec![
            "--direct=1".to_owned(),
            format!("--numjobs={}", self.threads),
            format!("--iodepth={depth}"),
        ];
        options.extend(match self.api {
            Api::IoUring => {
                ["--ioengine=io_uring", "--fixedbufs", "--registerfiles"].map(str::to_owned).to_vec()
            }
            Api::Libaio => vec!["--ioengine=libaio".to_owned()],
            Api::Threads => vec!["--ioengine=psync".to_owned()],
        });
        fio::random_reads(&file.path, BLOCK_BYTES, seconds, &options, None).iops
    }

    /// By our own generator, as calibrate drives it.
    fn by_ours(self, file: &TestFile, seconds: f64) -> f64 {
        let spec = LoadSpec {
            api: self.api,
            access: Access { read: true, write: false, direct: true, dsync: false },
            paths: vec![file.path.clone()],
            threads: self.threads,
            in_flight: self.in_flight,
            pattern: Pattern::RandomRead,
            block_bytes: BLOCK_BYTES,
            span: 0..file.bytes,
            batch_min: 0,
            verify_every: 64,
            notes: None,
            file_id: FILE_ID,
            seed: Seed::draw(),
            interval: Nanos::millis(250),
            pin_cores: false,
            settle: Nanos::millis(200),
            measure: Nanos::secs(seconds),
            lock_writes: false,
        };
        let seen = lab::load::run(&spec, &AtomicBool::new(false)).expect("the load runs");
        assert_eq!(seen.wrong_count, 0, "{:?}", seen.wrong);
        seen.ops as f64 / (seen.ended - seen.started).as_secs()
    }
}

fn plain(flags: &Flags, goals: &mut Goals) {
    const CELL_SECONDS: f64 = 10.0;
    let cell_seconds = flags.number("sweep-seconds", CELL_SECONDS);
    let file = TestFile::make("plain", Bytes::gib(1).0, BLOCK_BYTES);
    file.drop_cache();
    println!("\nplain disk, {} file: calibrate", Bytes(file.bytes));
    let calibration = Calibration::of(&file.path, Effort::Standard);
    let figure = calibration.figure("read_iops_max");
    let threads = figure.threads.expect("threads of the maximum");
    let chosen = Point {
        api: calibration.api(threads),
        threads,
        in_flight: figure.in_flight.expect("in flight at the maximum"),
    };
    println!("  chose {}: {:.0} reads/s in {:.0} s", chosen.text(), figure.value, calibration.seconds);

    println!("exhaustive sweep with fio, {cell_seconds} s a cell");
    let (best, cells, sweep_seconds) = sweep(&file, cell_seconds);
    println!("  best {} of {cells} cells in {sweep_seconds:.0} s", best.text());
    alternate(flags, &file, chosen, best, goals);

    let shortened = cell_seconds < CELL_SECONDS;
    let whole = if shortened { f64::from(cells) * CELL_SECONDS } else { sweep_seconds };
    let beside = format!(
        "({:.0} s / {whole:.0} s{})",
        calibration.seconds,
        if shortened { " at 10 s a cell" } else { "" }
    );
    goals.value(
        "plain disk: time, calibrate / sweep",
        calibration.seconds / whole,
        &beside,
        Aim::AtMost(1.0 / 3.0),
    );
}

/// Every cell once; the best, how many there were, and how long it took.
fn sweep(file: &TestFile, seconds: f64) -> (Point, u32, f64) {
    let began = clock::now();
    let mut best: Option<(Point, f64)> = None;
    let mut cells = 0;
    for api in [Api::IoUring, Api::Libaio] {
        for threads in [1, 2, 4, 8] {
            let mut line = format!("  {api:<9} {threads} threads:");
            for depth in [1, 2, 4, 8, 16, 32, 64] {
                let point = Point { api, threads, in_flight: threads * depth };
                let rate = point.by_fio(file, seconds);
                line += &format!(" {rate:>7.0}");
                cells += 1;
                if best.is_none_or(|(_, most)| rate > most) {
                    best = Some((point, rate));
                }
            }
            println!("{line}");
        }
    }
    let (point, _) = best.expect("the sweep has cells");
    (point, cells, (clock::now() - began).as_secs())
}

/// Both points again, in blocks of random mirrored order: fio at both, and our generator at ours.
fn alternate(flags: &Flags, file: &TestFile, chosen: Point, best: Point, goals: &mut Goals) {
    let blocks = flags.number("blocks", 8.0) as usize;
    let seconds = flags.number("block-seconds", 4.0);
    let seed = Seed::draw();
    println!("both points again, {blocks} blocks of {seconds} s visits, seed {}", seed.0);
    let mut values = [const { Vec::new() }; 3];
    for block in 0..blocks {
        let mut logs = [const { Vec::new() }; 3];
        for side in stats::order::block(3, block, seed) {
            let rate = match side {
                0 => best.by_fio(file, seconds),
                1 => chosen.by_fio(file, seconds),
                _ => chosen.by_ours(file, seconds),
            };
            logs[side].push(rate.ln());
        }
        for (values, logs) in values.iter_mut().zip(&logs) {
            values.push((logs.iter().sum::<f64>() / logs.len() as f64).exp());
        }
        println!(
            "  fio at the sweep's best {:>7.0}   fio at ours {:>7.0}   ours at ours {:>7.0}",
            values[0][block], values[1][block], values[2][block]
        );
    }
    let [best, chosen, ours] = values;
    for (name, new, aim) in [
        ("fio at calibrate's point / fio at the sweep's best", chosen, Aim::AtLeast(0.97)),
        ("ours at calibrate's point / fio at the sweep's best", ours, Aim::Told),
    ] {
        let ratio = stats::interval::ratio(&best, &new, 0.95).expect("enough blocks for an interval");
        let beside = format!("[{:.3}, {:.3}], {blocks} blocks", ratio.low, ratio.high);
        goals.value(&format!("plain disk: {name}"), ratio.value, &beside, aim);
    }
}
