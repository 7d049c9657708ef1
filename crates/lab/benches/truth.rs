//! Known truth: on devices slowed by a known ratio, the reported interval contains that ratio, and equals are called equal.
//!
//! Each trial compares two loop devices with caps on their reads per second: random single-block reads with direct I/O, in mirrored
//! randomised blocks, decided by the planned looks of `stats::verdict` as every comparison is. Judged is the interval at the look
//! that ended the trial, as it is. Trials on several pairs of devices run at once: their caps, not the disk below, are what holds them.
//!
//! What makes the truth known, and the windows fair: the kernel lets a capped device's requests through in portions, one each
//! 100 ms, counted from the first request after a rest. So (1) more requests are kept in flight than the machine answers while a
//! portion goes through: one that has to be asked for is late, and a device that nobody waits for is behind its cap. (2) A window
//! is whole portions long: between two it would hold one more or one less. (3) It begins after a rest and late in a portion, when
//! nothing comes any more: at an edge that falls onto a portion, a machine that is a little late decides whether the window holds it.
//! (4) Where exactly is drawn: always at the same place, what spills over would be an error that all blocks share, and no interval
//! knows of those.
//!
//! `cargo x bench truth --trials 100 --lanes 16 --blocks 8 --portions 5`
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
use units::{Bytes, Nanos, Rng, Seed, clock};

const BLOCK_BYTES: u32 = 4096;
const DEVICE_BYTES: Bytes = Bytes::mib(32);
const IN_FLIGHT: u32 = 64;
/// How often the kernel lets a portion through: `throtl_slice` of its `block/blk-throttle.c`.
const PORTION: Nanos = Nanos::millis(100);
/// A device that rested so long counts its portions anew.
const REST: Nanos = Nanos::millis(150);
/// A window begins so long after a portion, and up to so much later.
const QUIET: (Nanos, Nanos) = (Nanos::millis(50), Nanos::millis(35));
/// `(words, reads per second of one, reads per second of the other)`: whole numbers in a portion, and all lanes together far below
/// what the machine can do.
const RATIOS: [(&str, u64, u64); 4] =
    [("1:2", 500, 1000), ("1:9", 200, 1800), ("1:1.05", 1000, 1050), ("1:1", 1000, 1000)];
const MINUTES_MAX: f64 = 12.0;
/// A ratio of two counts that are exact comes out of logarithms with rounding errors of this size.
const ROUNDING: f64 = 1e-9;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let whole = |name, measuring, rehearsing| {
        flags.number(name, if measured { measuring } else { rehearsing }) as usize
    };
    let trials = whole("trials", 100.0, 1.0);
    let lanes = whole("lanes", 16.0, 1.0);
    let rule = Rule::planned(whole("blocks", 8.0, 2.0));
    let window = Nanos(PORTION.0 * whole("portions", 5.0, 2.0) as u64);
    let seed =
        flags.text("seed").map_or_else(Seed::draw, |text| Seed(text.parse().expect("--seed takes a number")));
    println!(
        "known truth: {trials} trials a ratio, {lanes} at once, looks after {:?} blocks of 4 visits of {window}, seed {}",
        rule.looks, seed.0
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
        let trial = Trial { rule: &rule, window, show: flags.has("show") };
        let all = trial.run_many(&devices, trials, seed.part(index as u64));
        caps.lift(&mut journal).expect("caps are lifted");
        judge(words, new as f64 / old as f64, &all, &mut goals);
    }
    let minutes = (clock::now() - began).as_secs() / 60.0;
    goals.value("all trials", minutes, "minutes", Aim::AtMost(MINUTES_MAX));
    let left = journal.undo_all().expect("everything is undone");
    assert!(left.iter().all(|line| line.result.is_settled()), "{left:?}");
    goals.conclude(measured)
}

/// One comparison, to the look that decides.
struct Trial<'r> {
    rule: &'r Rule,
    window: Nanos,
    /// Print what each visit read.
    show: bool,
}

impl Trial<'_> {
    /// All trials of a ratio, on as many pairs of devices at once as there are.
    fn run_many(&self, devices: &[LoopDevice], trials: usize, seed: Seed) -> Vec<Decision> {
        let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for pair in devices.chunks(2) {
                scope.spawn(|| {
                    let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
                    for number in numbers.take_while(|number| *number < trials) {
                        let decision = self.run(pair, seed.part(number as u64));
                        all.lock().expect("no panic").push(decision);
                    }
                });
            }
        });
        all.into_inner().expect("no panic")
    }

    fn run(&self, pair: &[LoopDevice], seed: Seed) -> Decision {
        let mut values = [Vec::new(), Vec::new()];
        for block in 0.. {
            let mut logs = [Vec::new(), Vec::new()];
            for (position, side) in stats::order::block(2, block, seed).into_iter().enumerate() {
                let seed = seed.part((1000 + block * 10 + position) as u64);
                logs[side].push(self.visit(pair[side].path.clone(), seed).max(1e-9).ln());
            }
            for (values, logs) in values.iter_mut().zip(&logs) {
                values.push((logs.iter().sum::<f64>() / logs.len() as f64).exp());
            }
            if self.rule.is_look(block + 1) {
                let decision = decide(&values[0], &values[1], true, self.rule);
                if decision.verdict != Verdict::Unknown || self.rule.looks.last() == Some(&(block + 1)) {
                    if self.show {
                        println!(
                            "{:.4} [{:.4}, {:.4}] {values:.2?}",
                            decision.ratio.value, decision.ratio.low, decision.ratio.high
                        );
                    }
                    return decision;
                }
            }
        }
        unreachable!("the last look ends every trial")
    }

    /// Reads per second of a device in one visit.
    fn visit(&self, path: PathBuf, seed: Seed) -> f64 {
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
            notes: None,
            file_id: FILE_ID,
            seed,
            interval: PORTION,
            pin_cores: false,
            settle: QUIET.0 + Nanos(Rng::new(seed).below(QUIET.1.0)),
            measure: self.window,
            lock_writes: false,
        };
        clock::sleep(REST);
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
}

/// How often the interval holds the truth, and how wide it is: one that is always wide holds everything.
fn judge(words: &str, truth: f64, all: &[Decision], goals: &mut Goals) {
    let share = |count: usize| 100.0 * count as f64 / all.len() as f64;
    let contains =
        |d: &&Decision| d.ratio.low <= truth * (1.0 + ROUNDING) && d.ratio.high >= truth * (1.0 - ROUNDING);
    let called = all.iter().filter(|d| matches!(d.verdict, Verdict::Better | Verdict::Worse)).count();
    let middle = |value: fn(&Decision) -> f64| median(&all.iter().map(value).collect::<Vec<_>>());
    let beside = format!(
        "% (median {:.4} ± {:.2} % after {} blocks; called different: {:.0} %)",
        middle(|d| d.ratio.value),
        middle(|d| 100.0 * d.ratio.half_width()),
        middle(|d| d.ratio.n as f64),
        share(called)
    );
    let covered = share(all.iter().filter(contains).count());
    goals.value(&format!("{words}: intervals that contain {truth}"), covered, &beside, Aim::AtLeast(95.0));
    if truth == 1.0 {
        goals.value(&format!("{words}: called different"), share(called), "%", Aim::AtMost(5.0));
    }
}
