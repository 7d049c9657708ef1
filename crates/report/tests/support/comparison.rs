//! A comparison of I/O modes.

use super::run::{Told, told};
use super::{Busy, Stretch, check, counters, experiment, facts, place, rng, stretch};
use record::json::json;
use record::{ConfigurationRow, Reader, VisitRow, Writer};
use std::path::Path;

/// What to make up.
pub struct Story {
    pub seed: u64,
    pub blocks: u32,
    /// Standard deviation of a visit's value.
    pub noise: f64,
    /// All configurations the same.
    pub equal: bool,
    /// The direct modes' cached reads come from a cache below: an integrity rule fails.
    pub lie: bool,
    /// Visits dropped for steal: (block, configuration index).
    pub dropped: Vec<(u32, usize)>,
    /// Killed after this many visits.
    pub killed_after: Option<usize>,
    pub sessions: u32,
    pub hit_ratio: f64,
    /// The target is the embedded database, which says where its time went; this share of the waits is not counted.
    pub engine: Option<f64>,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            seed: 7,
            blocks: 6,
            noise: 0.02,
            equal: false,
            lie: false,
            dropped: Vec::new(),
            killed_after: None,
            sessions: 10,
            hit_ratio: 0.9,
            engine: None,
        }
    }
}

const CONFIGURATIONS: [(&str, &str, &str); 8] = [
    ("none", "none", "threads"),
    ("asynch io_uring", "asynch", "io_uring"),
    ("asynch libaio", "asynch", "libaio"),
    ("directio", "directio", "threads"),
    ("setall io_uring", "setall", "io_uring"),
    ("setall libaio", "setall", "libaio"),
    ("concurrent io_uring", "concurrent", "io_uring"),
    ("concurrent libaio", "concurrent", "libaio"),
];

struct Kind {
    name: &'static str,
    title: &'static str,
    question: &'static str,
    metric: &'static str,
    headline: bool,
    seconds: f64,
    op_bytes: u64,
    level: f64,
    /// Ratio to `none` for asynch, directio, setall, concurrent.
    ratios: [f64; 4],
    cpu_ns: f64,
}

fn kinds() -> Vec<Kind> {
    let kind = |name, title, question, metric, headline, seconds, op_bytes, level, ratios, cpu_ns| Kind {
        name,
        title,
        question,
        metric,
        headline,
        seconds,
        op_bytes,
        level,
        ratios,
        cpu_ns,
    };
    vec![
        kind(
            "read-cold-1",
            "single-block reads, cold, one session",
            "How long does one session wait for a block that no cache holds?",
            "reads/s",
            false,
            0.35,
            8192,
            2_380.0,
            [1.0, 1.18, 1.17, 1.18],
            14e3,
        ),
        kind(
            "read-cold",
            "single-block reads, cold",
            "How many blocks per second do the sessions read that no cache holds?",
            "reads/s",
            true,
            0.7,
            8192,
            17_900.0,
            [1.0, 1.24, 1.26, 1.27],
            16e3,
        ),
        kind(
            "read-cached",
            "single-block reads, hot region",
            "What does the file system's page cache give to blocks that the database's own cache missed?",
            "reads/s",
            true,
            0.3,
            8192,
            310_000.0,
            [0.97, 0.072, 0.073, 0.073],
            4e3,
        ),
        kind(
            "growth-write",
            "growth: bulk write",
            "How fast does a table grow, commit included?",
            "MB/s",
            true,
            0.8,
            1 << 20,
            92.0,
            [1.9, 1.15, 3.1, 3.4],
            500e3,
        ),
        kind(
            "growth-scan-cold",
            "growth: full scan, cold",
            "How fast is it scanned when no cache holds it?",
            "MB/s",
            true,
            0.4,
            1 << 20,
            640.0,
            [1.05, 0.62, 1.44, 1.45],
            250e3,
        ),
        kind(
            "growth-scan-warm",
            "growth: full scan, second pass",
            "How fast is it scanned again?",
            "MB/s",
            false,
            0.3,
            1 << 20,
            4_900.0,
            [0.98, 0.085, 0.19, 0.19],
            120e3,
        ),
        kind(
            "commit-1",
            "redo commits, one session",
            "How long does a lone commit take?",
            "commits/s",
            false,
            0.35,
            4096,
            810.0,
            [0.99, 1.04, 1.03, 1.035],
            20e3,
        ),
        kind(
            "commit",
            "redo commits",
            "How many commits per second do the sessions get through one log writer?",
            "commits/s",
            true,
            0.7,
            4096,
            3_650.0,
            [1.0, 1.02, 1.01, 1.015],
            18e3,
        ),
        kind(
            "mixed",
            "transactions beside dirty-page writes",
            "How many transactions (reads, changes, a commit) per second, while dirty pages are written?",
            "transactions/s",
            true,
            0.7,
            57_344,
            905.0,
            [1.12, 1.02, 1.47, 1.62],
            160e3,
        ),
        kind(
            "writers",
            "many writers on one file",
            "How many durable single-block writes per second do many writers bring into one file?",
            "writes/s",
            true,
            0.6,
            8192,
            1_480.0,
            [1.3, 0.72, 3.0, 4.6],
            30e3,
        ),
    ]
}

/// Writes the story's record and opens it.
pub fn record(directory: &Path, name: &str, story: &Story) -> Reader {
    let path = place(directory, name);
    let mut writer = Writer::create(&path, &experiment("compare", "/data")).expect("create");
    facts(&mut writer, "vda", "ext4");
    writer
        .plan(&json!({
            "baseline": "none", "blocks": story.blocks, "seed": 20_261_121, "delta": 0.03, "looks": [story.blocks],
            "level_per_look": 0.05, "sessions": story.sessions, "block_bytes": 8192, "data_bytes": 1_073_741_824u64,
            "durability": "every data and redo write is durable before it counts (O_DSYNC)",
            "mix": { "read_share": 0.9, "hit_ratio": story.hit_ratio, "sessions": story.sessions },
            "detectable_difference": { "read-cold": 0.04, "commit": 0.05 },
        }))
        .expect("plan");
    let configurations: Vec<i64> = CONFIGURATIONS
        .iter()
        .enumerate()
        .map(|(i, (name, io, api))| {
            let easy = |factor: &str, level: &str| (factor.to_owned(), level.to_owned(), "easy".to_owned());
            let levels = vec![easy("io", io), easy("api", api)];
            writer
                .configuration(&ConfigurationRow { name: (*name).into(), is_baseline: i == 0, levels })
                .expect("row")
        })
        .collect();
    let kinds = kinds();
    let workloads: Vec<i64> = kinds
        .iter()
        .map(|k| {
            let sessions = sessions(k, story);
            let about = json!({ "title": k.title, "question": k.question, "metric": k.metric,
                                "higher_is_better": true, "sessions": sessions, "headline": k.headline });
            writer.workload(k.name, &about).expect("workload")
        })
        .collect();
    let (busy, end) = visits(&mut writer, story, &kinds, &configurations, &workloads);
    counters(&mut writer, "vda", &busy, end);
    if story.killed_after.is_none() {
        checks(&mut writer, story, &kinds, &configurations);
        writer.finish("finished").expect("finish");
    }
    drop(writer);
    Reader::open(&path).expect("open")
}

/// What sessions of a database wait for in a workload.
fn waits_of(workload: &str) -> (&'static str, &'static str) {
    match workload {
        "growth-write" => ("free buffer waits", "Configuration"),
        "growth-scan-cold" | "growth-scan-warm" => ("direct path read", "User I/O"),
        "commit" | "commit-1" | "mixed" => ("log file sync", "Commit"),
        _ => ("db file sequential read", "User I/O"),
    }
}

fn sessions(kind: &Kind, story: &Story) -> u32 {
    match kind.name {
        "read-cold-1" | "commit-1" | "growth-write" | "growth-scan-cold" | "growth-scan-warm" => 1,
        "writers" => 8,
        _ => story.sessions,
    }
}

fn visits(
    writer: &mut Writer,
    story: &Story,
    kinds: &[Kind],
    configurations: &[i64],
    workloads: &[i64],
) -> (Vec<Busy>, u64) {
    let mut rng = rng(story.seed);
    let (mut now, mut count, mut busy) = (1_000_000_000u64, 0, Vec::new());
    for block in 0..story.blocks {
        let mut order: Vec<usize> = (0..configurations.len()).collect();
        rng.shuffle(&mut order);
        let block_id = writer.block(block, &order, story.seed).expect("block");
        let hour = 0.04 * rng.normal();
        for (position, &c) in order.iter().enumerate() {
            let visit_id = writer
                .visit(&VisitRow {
                    block_id: Some(block_id),
                    position: position as u32,
                    configuration_id: Some(configurations[c]),
                    started_utc: "2026-11-21T09:31:00Z".into(),
                    start_ns: now,
                })
                .expect("visit");
            for (kind, &workload_id) in kinds.iter().zip(workloads) {
                let mode = CONFIGURATIONS[c].1;
                let libaio = if CONFIGURATIONS[c].2 == "libaio" && !story.equal { 0.995 } else { 1.0 };
                let ratio = match mode {
                    _ if story.equal => 1.0,
                    "asynch" => kind.ratios[0] * libaio,
                    "directio" => kind.ratios[1],
                    "setall" => kind.ratios[2] * libaio,
                    "concurrent" => kind.ratios[3] * libaio,
                    _ => 1.0,
                };
                let direct = !matches!(mode, "none" | "asynch");
                let rate = kind.level * ratio * (hour + story.noise * rng.normal()).exp();
                busy.push(stretch(
                    writer,
                    &mut rng,
                    &Stretch {
                        visit_id,
                        workload_id,
                        workload: kind.name,
                        metric: kind.metric,
                        start_ns: now,
                        seconds: kind.seconds,
                        rate,
                        op_bytes: kind.op_bytes,
                        sessions: sessions(kind, story),
                        direct,
                        cached: !direct && matches!(kind.name, "read-cached" | "growth-scan-warm"),
                        cpu_ns_per_op: kind.cpu_ns,
                    },
                ));
                if let (Some(lost), Some(done)) = (story.engine, busy.last()) {
                    let per_second =
                        if kind.metric == "MB/s" { rate * 1e6 / kind.op_bytes as f64 } else { rate };
                    let time = Told {
                        seconds: kind.seconds,
                        sessions: sessions(kind, story),
                        ops: per_second * kind.seconds,
                        cpu_ns_per_op: kind.cpu_ns,
                        lost: if mode == "directio" { lost } else { 0.0 },
                        looked: None,
                    };
                    told(writer, &mut rng, done.phase, waits_of(kind.name), &time);
                }
                now += (kind.seconds * 1e9) as u64 + 60_000_000;
            }
            count += 1;
            if story.killed_after == Some(count) {
                return (busy, now);
            }
            match story.dropped.contains(&(block, c)) {
                true => writer.end_visit(visit_id, "dropped", Some("CPU steal above 5 % (7.3 %)")),
                false => writer.end_visit(visit_id, "measured", None),
            }
            .expect("end");
        }
    }
    (busy, now)
}

fn checks(writer: &mut Writer, story: &Story, kinds: &[Kind], configurations: &[i64]) {
    for (c, id) in configurations.iter().enumerate() {
        let (name, mode) = (CONFIGURATIONS[c].0, CONFIGURATIONS[c].1);
        let direct = !matches!(mode, "none" | "asynch");
        if mode == "asynch" {
            let evidence = format!(
                "{name} is asynchronous in name only: 100 % of the batched writes were already done when submit returned, \
                 and the writer spent 97 % of its time inside that call"
            );
            check(
                writer,
                ("configuration", Some(*id), name),
                ("X1", "really asynchronous", "context", "warn"),
                (Some(1.0), "at most 50 % of the writes complete inside submit", &evidence),
            );
        }
        for kind in kinds {
            let subject = format!("{name}: {}", kind.name);
            let lies = story.lie && direct && kind.name == "read-cold";
            let (status, evidence) = if lies {
                (
                    "fail",
                    "0.003 device reads for each request: a cache below the file system, or a hole, served the rest.",
                )
            } else {
                ("pass", "1.00 device reads for each request.")
            };
            check(
                writer,
                ("configuration", Some(*id), &subject),
                ("F1", "requests reach the device", "integrity", status),
                (Some(if lies { 0.003 } else { 1.0 }), "0.98 to 1.1 device reads for each request", evidence),
            );
        }
        let subject = format!("{name}: commit");
        let (status, share) = if c == 3 { ("warn", 0.026) } else { ("pass", 0.008) };
        let evidence = format!("The hypervisor took {:.1} % of the CPU time.", share * 100.0);
        check(
            writer,
            ("configuration", Some(*id), &subject),
            ("H1", "CPU stolen by the hypervisor", "context", status),
            (Some(share), "2 % warn, 10 % fail", &evidence),
        );
    }
    check(
        writer,
        ("run", None, ""),
        ("S1", "size against caches", "integrity", "warn"),
        (
            Some(0.04),
            "file / memory",
            "The target is 1 GiB, memory 24 GiB, 0.04 ×: it fits into memory, so buffered reads may never reach the storage, \
             and a storage cache may hold it too; compare only with runs of the same size.",
        ),
    );
    check(
        writer,
        ("run", None, ""),
        ("H4", "CPU frequency", "context", "not applicable"),
        (None, "", "This virtual machine does not show its frequency."),
    );
}
