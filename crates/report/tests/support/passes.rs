//! Case `flash`: a table scanned three times and order entry, on four configurations, with the counters of the study's riddle.

use super::{Stretch, experiment, facts, place, rng, stretch};
use record::json::json;
use record::{BufferStateRow, ConfigurationRow, Experiment, Reader, StatisticRow, VisitRow, Writer};
use std::path::Path;

/// Blocks of the table, buffers, and blocks that fit into the flash cache.
const BLOCKS: f64 = 8_192.0;
const BUFFERS: u64 = 1_024;
const SLOTS: u64 = 12_288;

/// Shares of the blocks in one pass: from flash, into it, skipped and why; and its speed, MB/s.
type Pass = (f64, f64, f64, &'static str, f64);

const WORKLOADS: [(&str, &str); 4] = [
    ("flash-pass-1", "scan, first pass"),
    ("flash-pass-2", "scan, second pass"),
    ("flash-pass-3", "scan, third pass"),
    ("mixed", "transactions with dirty-page batches"),
];

/// Name, place, place of the flash cache, policy, three passes, transactions a second.
fn points() -> [(&'static str, [&'static str; 3], [Pass; 3], f64); 4] {
    let (slow, fast) = ("throttled:hdd-7200", "here");
    let at = |speed: f64| [(0.0, 0.0, 0.0, "", speed); 3];
    [
        ("slow", [slow, "none", "none"], at(80.0), 4.0),
        (
            "slow + flash classic",
            [slow, fast, "classic"],
            [
                (0.0, 0.58, 0.42, "DBWR overloaded", 79.0),
                (0.58, 0.42, 0.0, "exists", 74.0),
                (1.0, 0.0, 0.0, "exists", 420.0),
            ],
            9.1,
        ),
        (
            "slow + flash scan-resistant",
            [slow, fast, "scan_resistant"],
            [
                (0.0, 0.96, 0.04, "DBWR overloaded", 79.0),
                (0.96, 0.02, 0.02, "not useful", 310.0),
                (0.98, 0.0, 0.0, "exists", 400.0),
            ],
            9.6,
        ),
        ("fast", [fast, "none", "none"], at(900.0), 17.0),
    ]
}

/// Writes the story's record and opens it.
pub fn record(directory: &Path, file: &str) -> Reader {
    let path = place(directory, file);
    let asked = Experiment { case: Some("flash".into()), ..experiment("compare", "/data") };
    let mut writer = Writer::create(&path, &asked).expect("create");
    facts(&mut writer, "vda", "ext4");
    let plan = json!({ "baseline": "", "blocks": 4, "delta": 0.03, "looks": [4], "level_per_look": 0.05, "block_bytes": 8192,
                       "data_bytes": 67_108_864u64, "slow": "throttled:hdd-7200", "fast": "here" });
    writer.plan(&plan).expect("plan");
    let points = points();
    let configurations = points.each_ref().map(|&(name, [place, flash, policy], _, _)| {
        let level = |factor: &str, level: &str| (factor.to_owned(), level.to_owned(), "hard".to_owned());
        let levels = vec![level("place", place), level("place.flash", flash), level("flash_policy", policy)];
        let row = ConfigurationRow { name: name.into(), is_baseline: name == "slow", levels };
        writer.configuration(&row).expect("configuration")
    });
    let ids = WORKLOADS.map(|(name, title)| {
        let metric = if name == "mixed" { "transactions/s" } else { "MB/s" };
        let about = json!({ "title": title, "question": "How fast?", "metric": metric, "higher_is_better": true,
                            "sessions": if name == "mixed" { 10 } else { 1 }, "headline": true });
        writer.workload(name, &about).expect("workload")
    });
    let (mut rng, mut now) = (rng(7), 1_000_000_000);
    for block in 0..4 {
        let mut order: Vec<usize> = (0..points.len()).collect();
        rng.shuffle(&mut order);
        let block_id = writer.block(block, &order, 7).expect("block");
        for (position, &c) in order.iter().enumerate() {
            let visit = VisitRow {
                block_id: Some(block_id),
                position: position as u32,
                configuration_id: Some(configurations[c]),
                started_utc: "2026-11-21T09:31:00Z".into(),
                start_ns: now,
            };
            let visit_id = writer.visit(&visit).expect("visit");
            let (_, levels, passes, transactions) = points[c];
            let mut flashed = 0.0;
            for (w, (workload, _)) in WORKLOADS.iter().enumerate() {
                let noise = (0.01 * rng.normal()).exp();
                let (metric, rate, sessions) = match passes.get(w) {
                    Some(pass) => ("MB/s", pass.4 * noise, 1),
                    None => ("transactions/s", transactions * noise, 10),
                };
                let seconds = if metric == "MB/s" { BLOCKS * 8192.0 / 1e6 / rate } else { 3.0 };
                let op_bytes = if metric == "MB/s" { (BLOCKS * 8192.0) as u64 } else { 8192 };
                let done = stretch(
                    &mut writer,
                    &mut rng,
                    &Stretch {
                        visit_id,
                        workload_id: ids[w],
                        workload,
                        metric,
                        start_ns: now,
                        seconds,
                        rate,
                        op_bytes,
                        sessions,
                        direct: true,
                        cached: false,
                        cpu_ns_per_op: 60e3,
                    },
                );
                if let Some(pass) = passes.get(w) {
                    writer.of_phase(done.phase, &counted(*pass)).expect("statistics");
                    let slots = if levels[1] == "none" { 0 } else { SLOTS };
                    look(&mut writer, visit_id, (done.from, done.to), slots, (flashed, pass.1));
                    flashed += pass.1;
                }
                now = done.to + 1_000_000;
            }
            now += 4_000_000_000;
            writer.end_visit(visit_id, "measured", None).expect("end");
        }
    }
    writer.finish("finished").expect("finish");
    drop(writer);
    Reader::open(&path).expect("open")
}

fn counted((hits, inserts, skipped, reason, _): Pass) -> Vec<StatisticRow> {
    let row = |name: &str, share: f64| StatisticRow {
        class: "system".into(),
        name: name.into(),
        value: (share * BLOCKS).round(),
    };
    let all = [
        row("physical reads", 1.0 - hits),
        row("physical read flash cache hits", hits),
        row("flash cache inserts", inserts),
        row(&format!("flash cache insert skip: {reason}"), skipped),
    ];
    all.into_iter().filter(|row| row.value > 0.0).collect()
}

/// Blocks by state during a pass; of those in the flash cache, shares of the table: at the begin, and what comes.
fn look(writer: &mut Writer, visit: i64, (from, to): (u64, u64), slots: u64, (before, comes): (f64, f64)) {
    let mut rows = Vec::new();
    for step in 0..20 {
        let t_ns = from + (to - from) / 20 * step;
        let flashed = ((before + comes * step as f64 / 20.0) * BLOCKS) as u64;
        let states = [("xcur", BUFFERS), ("flashcur", flashed), ("flashfree", slots - flashed.min(slots))];
        rows.extend(states.map(|(state, buffers)| BufferStateRow { t_ns, state: state.into(), buffers }));
    }
    writer.of_visit(visit, &rows).expect("states");
}
