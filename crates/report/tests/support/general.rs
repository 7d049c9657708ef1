//! Comparisons of more than I/O modes: file systems, two factors crossed, files moved to a fast device, async off and on.

use super::run::{Told, told};
use super::{Busy, Stretch, check, counters, experiment, facts, place, rng, stretch};
use record::json::json;
use record::{ConfigurationRow, CounterRow, Experiment, Reader, VisitRow, Writer};
use std::path::Path;

/// A configuration with its speed under each of the two workloads.
struct Point {
    levels: Vec<(&'static str, &'static str, &'static str)>,
    speeds: [f64; 2],
    /// What sessions wait for in the first workload.
    waits: (&'static str, &'static str),
}

/// What to make up.
pub struct Story {
    pub case: &'static str,
    pub seed: u64,
    pub blocks: u32,
    /// Standard deviation of a visit's value.
    pub noise: f64,
    /// Visits dropped: (block, configuration index).
    pub dropped: Vec<(u32, usize)>,
    /// Under order entry: the speed after moving data, undo, temp, redo, and everything.
    pub moves: [f64; 5],
    /// The database is a server: looks saw this share of the time that its clients waited for answers.
    pub looked: Option<f64>,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            case: "filesystem",
            seed: 7,
            blocks: 4,
            noise: 0.015,
            dropped: Vec::new(),
            moves: [1.05, 1.03, 1.0, 11.6, 13.5],
            looked: None,
        }
    }
}

const SYNC: (&str, &str) = ("log file sync", "Commit");
const READ: (&str, &str) = ("db file sequential read", "User I/O");

fn points(story: &Story) -> Vec<Point> {
    let point = |levels: &[(&'static str, &'static str)], cost, speeds, waits| Point {
        levels: levels.iter().map(|(f, l)| (*f, *l, cost)).collect(),
        speeds,
        waits,
    };
    match story.case {
        "filesystem" => [
            ("xfs", [1.0, 1.0]),
            ("ext4:data=writeback", [0.995, 0.97]),
            ("ext4:data=ordered", [0.99, 0.93]),
            ("ext2", [0.88, 1.02]),
            ("ext3:data=writeback", [0.66, 0.71]),
            ("ext3:data=ordered", [0.62, 0.64]),
            ("btrfs", [0.35, 0.15]),
        ]
        .map(|(fs, speeds)| point(&[("fs", fs)], "hard", speeds, SYNC))
        .into(),
        "crossed" => ["xfs", "ext3"]
            .iter()
            .flat_map(|fs| ["none", "directio", "setall"].map(|io| (*fs, io)))
            .map(|(fs, io)| {
                let speed = match (fs, io) {
                    ("xfs", "setall") => 1.40,
                    ("xfs", "directio") => 1.04,
                    ("xfs", _) => 1.0,
                    _ => 0.7,
                };
                point(&[("fs", fs), ("io", io)], "hard", [speed, speed], SYNC)
            })
            .collect(),
        "placement" => {
            let slow = "throttled:hdd-7200";
            let classes = ["place.data", "place.undo", "place.temp", "place.redo"];
            let at = |moved: &[&str]| -> Vec<(&'static str, &'static str)> {
                classes.iter().map(|c| (*c, if moved.contains(c) { "/ssd" } else { slow })).collect()
            };
            let [data, undo, temp, redo, all] = story.moves;
            // What makes it slower is waits of another kind.
            let waits = |speed: f64| if speed < 0.95 { READ } else { SYNC };
            vec![
                point(&at(&[]), "hard", [1.0, 1.0], SYNC),
                point(&at(&["place.data"]), "hard", [data, 3.1], waits(data)),
                point(&at(&["place.undo"]), "hard", [undo, 1.02], waits(undo)),
                point(&at(&["place.temp"]), "hard", [temp, 1.0], waits(temp)),
                point(&at(&["place.redo"]), "hard", [redo, 1.3], READ),
                point(&at(&classes), "hard", [all, 9.0], READ),
            ]
        }
        "async" => [
            ("throttled:hdd-7200", "directio"),
            ("throttled:hdd-7200", "setall"),
            ("here", "directio"),
            ("here", "setall"),
        ]
        .iter()
        .zip([[1.0, 1.0], [1.3, 1.1], [2.9, 2.0], [5.1, 3.0]])
        .zip([SYNC, READ, SYNC, READ])
        .map(|((levels, speeds), waits)| {
            point(&[("throttle", levels.0), ("io", levels.1)], "medium", speeds, waits)
        })
        .collect(),
        "dnfs" => [("v3", "A"), ("v3", "B"), ("pnfs", "A"), ("pnfs", "B")]
            .iter()
            .zip([[1.0, 0.97], [0.93, 0.97], [0.98, 0.95], [0.97, 0.95]])
            .map(|((nfs, node), speeds)| point(&[("nfs", nfs), ("node", node)], "medium", speeds, READ))
            .collect(),
        other => panic!("no story {other}"),
    }
}

/// The name joins the levels of varied factors; a placement says what is moved.
fn name(case: &str, point: &Point) -> String {
    let moved: Vec<&str> = point.levels.iter().filter(|l| l.1 == "/ssd").map(|l| &l.0[6..]).collect();
    match (case, moved.len()) {
        ("placement", 0) => "all on the slow device".into(),
        ("placement", 4) => "all on /ssd".into(),
        ("placement", _) => format!("{} on /ssd", moved.join("+")),
        _ => point.levels.iter().map(|l| l.1).collect::<Vec<_>>().join(" "),
    }
}

/// Writes the story's record and opens it.
pub fn record(directory: &Path, file: &str, story: &Story) -> Reader {
    let path = place(directory, file);
    let asked = Experiment { case: Some(story.case.into()), ..experiment("compare", "/data") };
    let mut writer = Writer::create(&path, &asked).expect("create");
    facts(&mut writer, "vda", "ext4");
    let mut plan = json!({ "baseline": "", "blocks": story.blocks, "delta": 0.03, "looks": [story.blocks], "level_per_look": 0.05,
                       "block_bytes": 8192, "data_bytes": 268_435_456u64 });
    if story.case == "placement" {
        plan["slow"] = "throttled:hdd-7200".into();
        plan["fast"] = "/ssd".into();
    }
    writer.plan(&plan).expect("plan");
    let points = points(story);
    let configurations: Vec<i64> = points
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let levels = p.levels.iter().map(|(f, l, c)| ((*f).into(), (*l).into(), (*c).into())).collect();
            let row = ConfigurationRow { name: name(story.case, p), is_baseline: i == 0, levels };
            writer.configuration(&row).expect("configuration")
        })
        .collect();
    let moved = "single-block reads while the data moves";
    let workloads = match story.case {
        "dnfs" => [
            ("read-cold", "single-block reads, cold", "reads/s", 20_000.0),
            ("read-moved", moved, "reads/s", 20_000.0),
        ],
        _ => [
            ("order-entry", "order entry", "transactions/s", 420.0),
            ("scan", "full scan", "reads/s", 9_000.0),
        ],
    };
    let ids: Vec<i64> = workloads
        .iter()
        .map(|(name, title, metric, _)| {
            let about = json!({ "title": title, "question": "How fast?", "metric": metric, "higher_is_better": true,
                                "sessions": 10, "headline": true });
            writer.workload(name, &about).expect("workload")
        })
        .collect();
    let mut rng = rng(story.seed);
    let (mut now, mut busy): (u64, Vec<Busy>) = (1_000_000_000, Vec::new());
    for block in 0..story.blocks {
        let mut order: Vec<usize> = (0..points.len()).collect();
        rng.shuffle(&mut order);
        let block_id = writer.block(block, &order, story.seed).expect("block");
        let hour = 0.04 * rng.normal();
        for (position, &c) in order.iter().enumerate() {
            let visit = VisitRow {
                block_id: Some(block_id),
                position: position as u32,
                configuration_id: Some(configurations[c]),
                started_utc: "2026-11-21T09:31:00Z".into(),
                start_ns: now,
            };
            let visit_id = writer.visit(&visit).expect("visit");
            prove(&mut writer, visit_id, configurations[c], &points[c], block);
            for (w, (workload, _, metric, level)) in workloads.iter().enumerate() {
                let rate = level * points[c].speeds[w] * (hour + story.noise * rng.normal()).exp();
                let done = stretch(
                    &mut writer,
                    &mut rng,
                    &Stretch {
                        visit_id,
                        workload_id: ids[w],
                        workload,
                        metric,
                        start_ns: now,
                        seconds: 1.0,
                        rate,
                        op_bytes: 8192,
                        sessions: 10,
                        direct: true,
                        cached: false,
                        cpu_ns_per_op: 60e3,
                    },
                );
                let time = Told {
                    seconds: 1.0,
                    sessions: 10,
                    ops: rate,
                    cpu_ns_per_op: 60e3,
                    lost: 0.0,
                    looked: story.looked,
                };
                told(&mut writer, &mut rng, done.phase, if w == 0 { points[c].waits } else { READ }, &time);
                if story.case == "dnfs" {
                    nodes(&mut writer, done.phase, &points[c], w == 1, rate);
                }
                if story.case == "placement" {
                    beneath(&mut writer, done.phase, now, &points[c], rate);
                }
                busy.push(done);
                now += 1_100_000_000;
            }
            now += 8_000_000_000;
            match story.dropped.contains(&(block, c)) {
                true => writer.end_visit(visit_id, "dropped", Some("CPU steal above 5 % (7.3 %)")),
                false => writer.end_visit(visit_id, "measured", None),
            }
            .expect("end");
        }
    }
    counters(&mut writer, "vda", &busy, now);
    let text = "Every request reached the device.";
    check(
        &mut writer,
        ("run", None, ""),
        ("F1", "requests reach the device", "integrity", "pass"),
        (Some(1.0), "", text),
    );
    writer.finish("finished").expect("finish");
    drop(writer);
    Reader::open(&path).expect("open")
}

/// What two storage nodes used in a second of `rate` reads: who asks the wrong one has both at work.
fn nodes(writer: &mut Writer, phase: i64, point: &Point, moving: bool, rate: f64) {
    let level =
        |factor: &str| point.levels.iter().find(|level| level.0 == factor).map_or("", |level| level.1);
    let (follows, home) = (level("nfs") == "pnfs", level("node") == "A");
    // Microseconds a read of A and of B, and the share that went through the wrong node.
    let (a, b, wrong) = match (moving, follows, home) {
        (true, true, _) => (12.0, 9.0, 0.004),
        (true, false, _) => (22.0, 9.0, 0.5),
        (false, _, true) => (20.0, 0.0, 0.0),
        (false, true, false) => (0.1, 20.5, 0.001),
        (false, false, false) => (22.0, 18.0, 1.0),
    };
    let node = |name: &str, us: f64, transfers: f64, forwarded: f64| {
        json!({ "name": name, "cpu_seconds": us * 1e-6 * rate, "processor_seconds": 1.0, "seconds": 1.0, "sent_bytes": transfers * 8192.0,
                "received_bytes": 0, "transfers": transfers, "forwarded": forwarded })
    };
    let at_a = if follows && !home { 0.0 } else { rate };
    let moves = moving.then(|| json!({ "made": 4, "followed": if follows { 4 } else { 0 }, "stall_max_ns": if follows { 4.2e6 } else { 0.0 } }));
    let both = [node("A", a, at_a, wrong * rate), node("B", b, rate - at_a, 0.0)];
    let event = json!({ "phase": phase, "requests": rate, "processors": "one processor", "nodes": both, "moves": moves });
    writer.event("nodes", &event).expect("nodes");
}

/// Counters of the slow and the fast device at both edges of a phase: redo is written once for each operation, data for every tenth.
fn beneath(writer: &mut Writer, phase: i64, start_ns: u64, point: &Point, rate: f64) {
    let on_fast =
        |class: &str| point.levels.iter().any(|(factor, level, _)| *factor == class && *level == "/ssd");
    let mut rows = Vec::new();
    for place in ["throttled:hdd-7200", "/ssd"] {
        let here = |class: &str| on_fast(class) == (place == "/ssd");
        let writes = rate * (f64::from(here("place.redo")) + 0.1 * f64::from(here("place.data")));
        for (metric, per_second) in
            [("reads", 0.0), ("writes", writes), ("write_bytes", writes * 4096.0), ("busy_ms", 400.0)]
        {
            let metric = metric.to_owned();
            let row = CounterRow {
                phase_id: Some(phase),
                t_ns: start_ns,
                layer: "place".into(),
                object: place.into(),
                metric,
                value: 1e6,
            };
            let after = CounterRow { t_ns: start_ns + 1_000_000_000, value: 1e6 + per_second, ..row.clone() };
            rows.extend([row, after]);
        }
    }
    writer.counters(&rows).expect("counters");
}

/// What a stage shows of itself in a visit.
fn prove(writer: &mut Writer, visit: i64, configuration: i64, point: &Point, block: u32) {
    let (factor, level, _) = point.levels[0];
    let kind = level.split(':').next().unwrap_or(level);
    let options = level.split_once(':').map_or("rw,relatime".into(), |(_, o)| format!("rw,relatime,{o}"));
    let mount = format!("/mnt/redoubt {kind} /dev/loop{block} {options}");
    for (what, value) in
        [(format!("{factor}: /proc/self/mountinfo"), mount), ("scheduler of vda".into(), "none".to_owned())]
    {
        writer
            .event(
                "proof",
                &json!({ "visit": visit, "configuration": configuration, "what": what, "value": value }),
            )
            .expect("proof");
    }
}
