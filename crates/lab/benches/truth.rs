//! Known truth: on devices slowed by a known ratio, the reported interval contains that ratio, and equals are called equal.
//!
//! Each trial compares two loop devices with caps on their reads per second: random single-block reads with direct I/O, in mirrored
//! randomised blocks, decided by the planned looks of `stats::verdict` as every comparison is. Reported is the interval at the look
//! that ended the trial. Trials on several pairs of devices run at once: their caps, not the disk below, are what holds them.
//!
//! `cargo x bench truth --trials 100 --lanes 8 --blocks 8`
#![forbid(unsafe_code)]

mod common;

use common::file::{FILE_ID, TestFile};
use common::flags::Flags;
use common::goals::{Aim, Goals, median};
use host::change::{Caps, Limits, LoopDevice, loop_device};
use host::journal::Journal;
use io::{Access, Api};
use lab::load::{self, LoadSpec, Pattern};
use stats::verdict::{Decision, Rule, Verdict, decide};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use units::{Bytes, Nanos, Seed, clock};

const BLOCK_BYTES: u32 = 4096;
const DEVICE_BYTES: Bytes = Bytes::mib(32);
const IN_FLIGHT: u32 = 16;
/// The kernel lets a capped device's requests through in portions, one each 100 ms. A window of two portions that begins and ends
/// between them holds exactly two.
const SETTLE: Nanos = Nanos::millis(50);
const VISIT: Nanos = Nanos::millis(200);
/// `(words, reads per second of one, reads per second of the other)`.
const RATIOS: [(&str, u64, u64); 4] =
    [("1:2", 2000, 4000), ("1:9", 300, 2700), ("1:1.05", 2000, 2100), ("1:1", 2000, 2000)];
const MINUTES_MAX: f64 = 10.0;
/// Visits of each device in a block.
const VISITS: f64 = 2.0;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let trials = flags.number("trials", if measured { 100.0 } else { 1.0 }) as usize;
    let lanes = flags.number("lanes", if measured { 8.0 } else { 1.0 }) as usize;
    let blocks = flags.number("blocks", if measured { 8.0 } else { 2.0 }) as usize;
    let seed =
        flags.text("seed").map_or_else(Seed::draw, |text| Seed(text.parse().expect("--seed takes a number")));
    println!(
        "known truth: {trials} trials a ratio, up to {blocks} blocks of 4 visits of {VISIT}, seed {}",
        seed.0
    );
    let files: Vec<TestFile> =
        (0..2 * lanes).map(|n| TestFile::make(&format!("truth-{n}"), DEVICE_BYTES.0, BLOCK_BYTES)).collect();
    let mut journal = Journal::open("bench truth").expect("a journal");
    let devices: Vec<LoopDevice> = files
        .iter()
        .map(|file| loop_device(&mut journal, &file.path, true, None).expect("a loop device; run as root"))
        .collect();
    let mut goals = Goals::default();
    let began = clock::now();
    for (index, (words, old, new)) in RATIOS.into_iter().enumerate() {
        let mut caps = Caps::default();
        for pair in devices.chunks(2) {
            for (device, iops) in pair.iter().zip([old, new]) {
                let limits = Limits { read_iops: Some(iops), ..Limits::default() };
                caps.add(&mut journal, &device.device(), limits).expect("a cap");
            }
        }
        let rule = Rule::planned(blocks);
        let all = run_trials(&devices, trials, &rule, seed.part(index as u64));
        caps.lift(&mut journal).expect("caps are lifted");
        judge(words, old as f64, new as f64, &all, &mut goals);
    }
    let minutes = (clock::now() - began).as_secs() / 60.0;
    goals.value("all trials", minutes, "minutes", Aim::AtMost(MINUTES_MAX));
    let left = journal.undo_all().expect("everything is undone");
    assert!(left.iter().all(|line| line.result.is_settled()), "{left:?}");
    goals.conclude(measured)
}

/// All trials of a ratio, on as many pairs of devices at once as there are.
fn run_trials(devices: &[LoopDevice], trials: usize, rule: &Rule, seed: Seed) -> Vec<Decision> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for pair in devices.chunks(2) {
            scope.spawn(|| {
                let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
                for number in numbers.take_while(|number| *number < trials) {
                    let decision = trial(pair, rule, seed.part(number as u64));
                    all.lock().expect("no panic").push(decision);
                }
            });
        }
    });
    all.into_inner().expect("no panic")
}

/// One comparison, to the look that decides.
fn trial(pair: &[LoopDevice], rule: &Rule, seed: Seed) -> Decision {
    let mut values = [Vec::new(), Vec::new()];
    for block in 0.. {
        let mut logs = [Vec::new(), Vec::new()];
        for (position, side) in stats::order::block(2, block, seed).into_iter().enumerate() {
            let rate = visit(pair[side].path.clone(), seed.part((1000 + block * 10 + position) as u64));
            logs[side].push(rate.max(1e-9).ln());
        }
        for (values, logs) in values.iter_mut().zip(&logs) {
            values.push((logs.iter().sum::<f64>() / logs.len() as f64).exp());
        }
        if rule.is_look(block + 1) {
            let decision = decide(&values[0], &values[1], true, rule);
            if decision.verdict != Verdict::Unknown || rule.looks.last() == Some(&(block + 1)) {
                return decision;
            }
        }
    }
    unreachable!("the last look ends every trial")
}

/// Reads per second of a device in one visit.
fn visit(path: PathBuf, seed: Seed) -> f64 {
    let spec = LoadSpec {
        api: Api::IoUring,
        access: Access { read: true, write: false, direct: true, dsync: false },
        paths: vec![path],
        threads: 1,
        in_flight: IN_FLIGHT,
        pattern: Pattern::RandomRead,
        block_bytes: BLOCK_BYTES,
        span: 0..DEVICE_BYTES.0,
        batch_min: 1,
        verify_every: 64,
        file_id: FILE_ID,
        seed,
        interval: Nanos::millis(100),
        pin_cores: false,
        settle: SETTLE,
        measure: VISIT,
        lock_writes: false,
    };
    let measured = load::run(&spec, &AtomicBool::new(false)).expect("a visit runs through");
    assert_eq!(
        (measured.errors, measured.wrong_count),
        (0, 0),
        "{:?} {:?}",
        measured.first_error,
        measured.wrong
    );
    measured.ops as f64 / (measured.ended - measured.started).as_secs()
}

/// A block counts so many requests of the slower device that no ratio is known better than one in them: where the kernel is exact
/// the interval has hardly any width, and is widened by that.
fn judge(words: &str, old: f64, new: f64, all: &[Decision], goals: &mut Goals) {
    let (truth, resolution) = (new / old, 1.0 / (VISITS * VISIT.as_secs() * old));
    let share = |count: usize| 100.0 * count as f64 / all.len() as f64;
    let covered = |by: f64| {
        let contains =
            |d: &&Decision| d.ratio.low <= truth * (1.0 + by) && d.ratio.high >= truth * (1.0 - by);
        share(all.iter().filter(contains).count())
    };
    let called = all.iter().filter(|d| matches!(d.verdict, Verdict::Better | Verdict::Worse)).count();
    let halves: Vec<f64> = all.iter().map(|d| 50.0 * (d.ratio.high / d.ratio.low - 1.0)).collect();
    let values: Vec<f64> = all.iter().map(|d| d.ratio.value).collect();
    let beside = format!("% (median {:.4}, half width {:.2} %)", median(&values), median(&halves));
    goals.value(
        &format!("{words}: intervals that contain {truth}"),
        covered(resolution),
        &beside,
        Aim::AtLeast(95.0),
    );
    let beside = format!("% (as they are; one request in a block is {:.2} %)", 100.0 * resolution);
    goals.value(&format!("{words}: not widened"), covered(0.0), &beside, Aim::Told);
    // How often a true difference is found depends on how noisy the disk is; that equals are not called different does not.
    let aim = if truth == 1.0 { Aim::AtMost(5.0) } else { Aim::Told };
    let blocks: Vec<f64> = all.iter().map(|d| d.ratio.n as f64).collect();
    let beside = format!("% (median {} blocks)", median(&blocks));
    goals.value(&format!("{words}: called different"), share(called), &beside, aim);
}
