//! A calibration.

use super::{Stretch, check, counters, experiment, facts_of, place, rng, stretch};
use record::json::json;
use record::{CurvePointRow, EstimateRow, Reader, VisitRow, Writer};
use std::path::Path;

/// What to make up.
pub struct Story {
    pub seed: u64,
    /// All rates times this: a faster server.
    pub speed: f64,
    pub data_bytes: u64,
    pub file_system: &'static str,
    pub target: &'static str,
    /// Random reads are served by a cache: the maximum is withdrawn.
    pub lie: bool,
    /// Release of the kernel.
    pub kernel: &'static str,
}

impl Default for Story {
    fn default() -> Self {
        Self {
            seed: 11,
            speed: 1.0,
            data_bytes: 1 << 30,
            file_system: "ext4",
            target: "/data",
            lie: false,
            kernel: "6.12.0",
        }
    }
}

const MAXIMUM: f64 = 61_200.0;
const BEST: u32 = 64;
const KNEE: u32 = 36;

/// A device that saturates, X(n) = max · n / (n^p + s^p)^(1/p).
fn curve(n: f64, max: f64) -> f64 {
    const SATURATION: f64 = 4.8;
    max * 1.012 * n / (n.powf(1.15) + SATURATION.powf(1.15)).powf(1.0 / 1.15)
}

/// Writes the story's record and opens it.
pub fn record(directory: &Path, name: &str, story: &Story) -> Reader {
    let path = place(directory, name);
    let mut writer = Writer::create(&path, &experiment("calibrate", story.target)).expect("create");
    facts_of(&mut writer, "vda", story.file_system, story.kernel);
    writer
        .plan(&json!({ "effort": "standard", "data_bytes": story.data_bytes, "block_bytes": 8192, "direct": true,
                       "rounds": 4, "sessions": 10, "delta": 0.03, "latency_max_ns": 20_000_000u64 }))
        .expect("plan");
    points(&mut writer, story);
    figures(&mut writer, story);
    writer
        .event(
            "knee",
            &json!({ "series": "random reads of 8 KiB", "n_best": BEST, "n_knee": KNEE, "n_saturation": 4.9,
                     "n_power": 8, "lower_bound_only": false, "unstable": null }),
        )
        .expect("event");
    writer
        .event(
            "collapse",
            &json!({ "n": 128, "threads": 128, "rate": 9_400.0 * story.speed, "share_of_max": 0.154, "rate_max": 61_200.0,
                     "n_best": BEST, "cpu_busy_share": 0.99, "load_average": 104.2, "cores": 2 }),
        )
        .expect("event");
    check(
        &mut writer,
        ("run", None, ""),
        ("S1", "size against caches", "integrity", "warn"),
        (
            Some(0.04),
            "file / memory",
            "The target is 1 GiB, memory 24 GiB, 0.04 ×: a storage cache may hold it.",
        ),
    );
    writer.finish("finished").expect("finish");
    drop(writer);
    Reader::open(&path).expect("open")
}

fn points(writer: &mut Writer, story: &Story) {
    let mut rng = rng(story.seed);
    let mut point = |series: &str, n: u32, threads: u32, stage: &str, round: u32, rate: f64| {
        let rate = rate * story.speed * (0.02 * rng.normal()).exp();
        writer
            .curve_point(&CurvePointRow {
                series: series.into(),
                n,
                threads,
                depth: n / threads,
                stage: stage.into(),
                round,
                rate,
                latency_mean_ns: f64::from(n) * 1e9 / rate,
                sd: 0.02,
                seconds: 1.5,
            })
            .expect("point");
    };
    let reads = "random reads of 8 KiB";
    for api in ["io_uring", "libaio"] {
        point(&format!("probe of API and threads: {api}"), 32, 2, "probe", 0, 59_000.0);
    }
    for n in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
        point(reads, n, 2.min(n), "bracket", 0, curve(f64::from(n), MAXIMUM));
    }
    for round in 0..3 {
        for n in [40, 51, 64, 81, 102] {
            point(reads, n, 2, "race", round, curve(f64::from(n), MAXIMUM));
        }
    }
    point(reads, BEST, 2, "confirm", 0, MAXIMUM);
    point(reads, KNEE, 2, "knee", 0, MAXIMUM * 0.971);
    for (threads, rate) in [(4, 28_000.0), (16, 33_000.0), (40, 24_000.0), (128, 9_400.0)] {
        point("one thread per read", threads, threads, "beyond", 0, rate);
    }
    for n in [1, 2, 4, 8, 16] {
        point("random reads of 1 MiB", n, 2.min(n), "bracket", 0, curve(f64::from(n), 1_350.0).min(1_290.0));
    }
    for n in [1, 2, 4, 8, 16, 32] {
        point("random writes", n, 2.min(n), "bracket", 0, curve(f64::from(n), 38_000.0));
    }
}

struct About {
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    rate: f64,
    op_bytes: u64,
    in_flight: u32,
    threads: u32,
    note: Option<&'static str>,
}

fn abouts() -> Vec<About> {
    let about = |key, label, unit, rate, op_bytes, in_flight, threads, note| About {
        key,
        label,
        unit,
        rate,
        op_bytes,
        in_flight,
        threads,
        note,
    };
    vec![
        about("read_iops_1", "random 8 KiB reads, one in flight", "reads/s", 12_400.0, 8192, 1, 1, None),
        about(
            "read_iops_max",
            "max random 8 KiB reads",
            "reads/s",
            MAXIMUM,
            8192,
            BEST,
            2,
            Some("within the limit of 20.0 ms as well"),
        ),
        about(
            "read_iops_knee",
            "random 8 KiB reads at the knee",
            "reads/s",
            MAXIMUM * 0.971,
            8192,
            KNEE,
            2,
            None,
        ),
        about("read_mbps_max", "max 1 MiB reads", "MB/s", 1_352.0, 1 << 20, 8, 2, None),
        about("read_mbps_stream", "one stream of 1 MiB reads", "MB/s", 611.0, 1 << 20, 1, 1, None),
        about(
            "write_iops_max",
            "max random 8 KiB writes, not synced",
            "writes/s",
            38_100.0,
            8192,
            32,
            2,
            None,
        ),
        about("redo_o_dsync_4096", "redo write 4 KiB, O_DSYNC", "writes/s", 838.0, 4096, 1, 1, None),
        about("redo_fdatasync_4096", "redo write 4 KiB, fdatasync", "writes/s", 804.0, 4096, 1, 1, None),
        about("redo_o_dsync_65536", "redo write 64 KiB, O_DSYNC", "writes/s", 612.0, 65_536, 1, 1, None),
        about(
            "commit_o_dsync",
            "group commit, 10 sessions, O_DSYNC",
            "commits/s",
            4_310.0,
            4096,
            10,
            10,
            None,
        ),
    ]
}

fn figures(writer: &mut Writer, story: &Story) {
    let mut rng = rng(story.seed + 1);
    let abouts = abouts();
    let (mut now, mut busy) = (75_000_000_000u64, Vec::new());
    let workloads: Vec<i64> = abouts
        .iter()
        .map(|a| {
            let about = json!({ "title": a.label, "metric": a.unit, "higher_is_better": true });
            writer.workload(a.key, &about).expect("workload")
        })
        .collect();
    for round in 0..4u32 {
        let order: Vec<usize> = (0..abouts.len()).collect();
        let block_id = writer.block(round, &order, story.seed).expect("block");
        for (position, (about, &workload_id)) in abouts.iter().zip(&workloads).enumerate() {
            let visit_id = writer
                .visit(&VisitRow {
                    block_id: Some(block_id),
                    position: position as u32,
                    configuration_id: None,
                    started_utc: "2026-11-21T09:31:00Z".into(),
                    start_ns: now,
                })
                .expect("visit");
            let seconds = 1.6;
            busy.push(stretch(
                writer,
                &mut rng,
                &Stretch {
                    visit_id,
                    workload_id,
                    workload: about.key,
                    metric: about.unit,
                    start_ns: now,
                    seconds,
                    rate: about.rate * story.speed,
                    op_bytes: about.op_bytes,
                    sessions: about.in_flight,
                    direct: true,
                    cached: false,
                    cpu_ns_per_op: 14e3,
                },
            ));
            now += (seconds * 1e9) as u64 + 200_000_000;
            writer.end_visit(visit_id, "measured", None).expect("end");
        }
    }
    for about in &abouts {
        estimate(writer, story, about);
    }
    counters(writer, "vda", &busy, now);
}

fn estimate(writer: &mut Writer, story: &Story, about: &About) {
    let value = about.rate * story.speed;
    let per_second = if about.unit == "MB/s" { value * 1e6 / about.op_bytes as f64 } else { value };
    let latency = f64::from(about.in_flight) * 1e9 / per_second;
    writer
        .estimate(&EstimateRow {
            metric: about.key.into(),
            label: about.label.into(),
            value,
            low: Some(value * 0.982),
            high: Some(value * 1.018),
            level: Some(0.95),
            n: 4,
            unit: about.unit.into(),
            steady: Some(if about.key == "write_iops_max" { "slowdown, not proven" } else { "flat" }.into()),
            note: about.note.map(Into::into),
            latency_ns: Some(latency),
            latency_p99_ns: (per_second > 3_000.0).then_some(latency * 2.7),
            configuration_id: None,
            in_flight: Some(about.in_flight),
            threads: Some(about.threads),
        })
        .expect("estimate");
    let lies = story.lie && about.key.starts_with("read_iops");
    let (status, evidence) = match lies {
        true => ("fail", "0.0000 device reads for each request: a cache or a hole served them"),
        false => ("pass", "1.00 device reads for each request"),
    };
    let scope = ("figure", None, about.key);
    check(
        writer,
        scope,
        ("F1", "requests reach the device", "integrity", status),
        (Some(if lies { 0.0 } else { 1.0 }), "0.98 to 1.1 device reads for each request", evidence),
    );
    if about.key == "redo_fdatasync_4096" {
        check(
            writer,
            scope,
            ("W1", "a flush reaches the medium", "integrity", "warn"),
            (
                Some(1.01),
                "at least 0.9 flushes for each fdatasync",
                "1.01 device flushes for each fdatasync on a cache that says write back; not proven without a power cut.",
            ),
        );
    }
}
