//! A against A: identical configurations are not called different more often than promised, on the disk and simulated.
//!
//! *simulated*: 100 comparisons of a configuration with itself on the simulated noisy device call at most 5; a planted 5 % is
//! found with the power that the plan promises. *real*: 10 comparisons of a configuration with itself on this disk, through
//! the workloads of `compare`; the promise is 5 % per verdict, so among n verdicts at most as many calls as a fair coin of
//! 5 % shows in 99 of 100 such benchmarks.
//!
//! `cargo x bench aa --only real|simulated --comparisons 10 --blocks 6`
#![forbid(unsafe_code)]

mod common;

use common::file::TestFile;
use common::flags::Flags;
use common::goals::{Aim, Goals};
use io::{Access, Api, File, IoMode};
use lab::compare::configuration::Configuration;
use lab::compare::plan::{Plan, Price};
use lab::compare::visit::{Files, Visit, Workload};
use stats::sim::{Environment, NoisyPair};
use stats::verdict::{Rule, Verdict, decide};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Seed};

const BLOCK_BYTES: u32 = 8192;
/// The promise of one verdict.
const ALPHA: f64 = 0.05;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let measured = flags.measured();
    let only = flags.text("only");
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let mut goals = Goals::default();
    if wanted("simulated") {
        simulated(&mut goals);
    }
    if wanted("real") {
        let comparisons = flags.number("comparisons", if measured { 10.0 } else { 1.0 }) as usize;
        let blocks = flags.number("blocks", if measured { 6.0 } else { 4.0 }) as usize;
        let bytes = if measured { Bytes::mib(512) } else { Bytes::mib(64) };
        real(comparisons, blocks, bytes, measured, &mut goals);
    }
    goals.conclude(measured)
}

/// Whether a verdict says that one side is better.
fn calls(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

fn simulated(goals: &mut Goals) {
    const COMPARISONS: u64 = 100;
    const BLOCKS: usize = 12;
    let rule = Rule::planned(BLOCKS);
    let calls_of = |effect: f64| {
        let called = |seed: &u64| {
            let (old, new) = NoisyPair::new(Environment::TYPICAL, effect, Seed(*seed)).blocks(BLOCKS);
            // As the plan has it: a verdict at any of its looks ends the comparison.
            rule.looks.iter().any(|&look| calls(decide(&old[..look], &new[..look], true, &rule).verdict))
        };
        (1..=COMPARISONS).filter(called).count()
    };
    let false_calls = calls_of(0.0);
    goals.value(
        "simulated: calls among 100 comparisons of A with A",
        false_calls as f64,
        "(typical noise, up to 12 blocks)",
        Aim::AtMost(5.0),
    );
    let found = calls_of(0.05);
    goals.value(
        "simulated: a planted 5 % found, of 100",
        found as f64,
        "(the method promises 80)",
        Aim::AtLeast(80.0),
    );
}

/// What the comparisons on the disk measure: cold reads, commits, writers.
const WORKLOADS: [Workload; 3] = [Workload::ReadCold, Workload::Commit, Workload::Writers];

fn real(comparisons: usize, blocks: usize, bytes: Bytes, measured: bool, goals: &mut Goals) {
    let data = TestFile::make("aa-data", bytes.0, BLOCK_BYTES);
    let redo = TestFile::make_with("aa-redo", Bytes::mib(32).0, 4096, lab::workload::commit::REDO_FILE_ID);
    data.drop_cache();
    let files = Files {
        data: data.path.clone(),
        data_bytes: data.bytes,
        cached_bytes: Bytes::mib(16).0,
        redo: redo.path.clone(),
        growth: data.path.with_extension("growth"),
        notes: None,
    };
    let configuration = Configuration { mode: IoMode::Setall, api: Api::IoUring };
    let access = Access { read: true, write: false, direct: true, dsync: false };
    let log_block_bytes = File::open(&redo.path, access).map_or(4096, |f| f.alignment().length.max(512));
    let seed = Seed::draw();
    let budget = if measured { 90.0 } else { 20.0 };
    let price = Price::assumed(2, &WORKLOADS, 0.0);
    let phases = Plan::for_budget(budget, &WORKLOADS, &price, Bytes::mib(8)).phases;
    println!(
        "\nA against A on this disk: {comparisons} comparisons, {blocks} blocks each, {}, seed {}",
        configuration.name(),
        seed.0
    );
    let rule = Rule { looks: vec![blocks], level_per_look: ALPHA, ..Rule::planned(blocks) };
    let mut called = vec![0usize; WORKLOADS.len()];
    for comparison in 0..comparisons {
        let mut values = vec![[Vec::new(), Vec::new()]; WORKLOADS.len()];
        for block in 0..blocks {
            let mut logs = vec![[const { Vec::new() }; 2]; WORKLOADS.len()];
            for (visit, side) in
                stats::order::block(2, block, seed.part(comparison as u64)).into_iter().enumerate()
            {
                let part = ((comparison * blocks + block) * 8 + visit) as u64;
                let visit = Visit {
                    configuration,
                    files: &files,
                    phases,
                    growth: Bytes::mib(8),
                    sessions: 10,
                    writing: configuration.writers(),
                    block_bytes: BLOCK_BYTES,
                    log_block_bytes,
                    seed: seed.part(1000 + part),
                    cancel: &AtomicBool::new(false),
                };
                for (logs, workload) in logs.iter_mut().zip(WORKLOADS) {
                    visit.prepare(workload).expect("caches and files as the workload begins");
                    let trial = visit.run(workload).expect("a trial runs through");
                    logs[side].push(workload.rate(&trial).max(1e-9).ln());
                }
            }
            for (values, logs) in values.iter_mut().zip(&logs) {
                for (values, logs) in values.iter_mut().zip(logs) {
                    values.push((logs.iter().sum::<f64>() / logs.len() as f64).exp());
                }
            }
        }
        let mut line = format!("  {:>2}", comparison + 1);
        for ((called, [old, new]), workload) in called.iter_mut().zip(&values).zip(WORKLOADS) {
            let decision = decide(old, new, true, &rule);
            *called += usize::from(calls(decision.verdict));
            let (name, ratio) = (workload.about().name, decision.ratio);
            line += &format!(
                "   {name}: {} {:.3} [{:.3}, {:.3}]",
                decision.verdict, ratio.value, ratio.low, ratio.high
            );
        }
        println!("{line}");
    }
    let verdicts = comparisons * WORKLOADS.len();
    let most = most_calls(verdicts, ALPHA, 0.99);
    for (workload, called) in WORKLOADS.iter().zip(&called) {
        let what = format!(
            "real disk: calls among {comparisons} comparisons of A with A, {}",
            workload.about().name
        );
        let most = most_calls(comparisons, ALPHA, 0.99);
        goals.value(
            &what,
            *called as f64,
            &format!("(5 % promised: at most {most})"),
            Aim::AtMost(most as f64),
        );
    }
    let all: usize = called.iter().sum();
    goals.value(
        &format!("real disk: calls among all {verdicts} verdicts"),
        all as f64,
        &format!("(5 % promised: at most {most})"),
        Aim::AtMost(most as f64),
    );
}

/// The smallest c with P(X <= c) >= `confidence` for X binomial (`n`, `p`).
fn most_calls(n: usize, p: f64, confidence: f64) -> usize {
    let mut probability = (1.0 - p).powi(n as i32);
    let mut sum = probability;
    let mut calls = 0;
    while sum < confidence && calls < n {
        probability *= (n - calls) as f64 / (calls + 1) as f64 * p / (1.0 - p);
        sum += probability;
        calls += 1;
    }
    calls
}
