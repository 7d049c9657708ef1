//! A small record with every table filled, and with the values that break careless code.

use record::json::json;
use record::{
    CheckRow, ConfigurationRow, CounterRow, CurvePointRow, DnfsChannelRow, EstimateRow, Experiment, FactRow,
    IntervalRow, PhaseRow, Reader, ReferenceRow, VisitRow, Writer,
};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub fn text(s: &str) -> String {
    s.to_owned()
}

pub fn experiment() -> Experiment {
    Experiment {
        kind: text("compare"),
        case: Some(text("commit, \"quoted\"\nand broken")),
        target: text("/data/ünïcode"),
        command: text("redoubt compare --seed 18446744073709551615"),
        seed: u64::MAX,
        method_version: text("1.0"),
        tool_version: text("0.1.0"),
        build_profile: text("debug"),
        started_utc: text("2026-11-21T09:30:00Z"),
        budget_seconds: 0.1 + 0.2,
    }
}

pub fn facts() -> Vec<FactRow> {
    let fact = |name, value: Option<&str>, unit| FactRow {
        layer: text("device"),
        object: text("vda"),
        name: text(name),
        value: value.map(text),
        unit: text(unit),
        source: text("/sys/block/vda/queue"),
    };
    vec![fact("scheduler", Some("none"), ""), fact("temperature", None, "°C")]
}

pub fn configuration() -> ConfigurationRow {
    let levels =
        vec![(text("io"), text("setall"), text("easy")), (text("api"), text("io_uring"), text("easy"))];
    ConfigurationRow { name: text("setall (io_uring)"), is_baseline: true, levels }
}

pub fn visit(block: i64, configuration: i64) -> VisitRow {
    VisitRow {
        block_id: Some(block),
        position: 0,
        configuration_id: Some(configuration),
        started_utc: text("2026-11-21T09:30:05Z"),
        start_ns: 5_000_000_000,
    }
}

pub fn phase(visit_id: i64, workload_id: i64) -> PhaseRow {
    PhaseRow {
        visit_id,
        workload_id,
        kind: text("measure"),
        threads: 2,
        in_flight: 64,
        start_ns: 6_000_000_000,
        end_ns: 8_000_000_000,
        ops: 54_132,
        bytes: 54_132 * 8192,
        errors: 0,
        latency_sum_ns: u64::MAX - 1,
        seconds: 2.0,
        rate: 27_066.0,
        metric: text("reads/s"),
        steady_class: Some(text("flat")),
        in_flight_mean: Some(9.6),
        ..PhaseRow::default()
    }
}

pub fn intervals() -> Vec<IntervalRow> {
    let interval = |i: u64| IntervalRow {
        t_ns: 6_000_000_000 + i * 1_000_000_000,
        op_class: text("read"),
        ops: 27_066,
        bytes: 27_066 * 8192,
        lat_sum_ns: 9_600_000_000,
        lat_max_ns: 4_000_000,
        errors: 0,
    };
    vec![interval(1), interval(2)]
}

pub fn counters(phase: i64) -> Vec<CounterRow> {
    let counter = |phase_id, value| CounterRow {
        phase_id,
        t_ns: 6_000_000_000,
        layer: text("device"),
        object: text("vda"),
        metric: text("reads"),
        value,
    };
    vec![counter(Some(phase), 9_007_199_254_740_993.0), counter(None, 1e-300)]
}

pub fn curve_point() -> CurvePointRow {
    CurvePointRow {
        series: text("random read 8 KiB"),
        n: 64,
        threads: 2,
        depth: 32,
        stage: text("race"),
        round: 3,
        rate: 56_100.25,
        latency_mean_ns: 1_140_819.96,
        sd: 12.5,
        seconds: 1.5,
    }
}

pub fn check() -> CheckRow {
    CheckRow {
        scope: text("figure"),
        subject: text("read_iops_max"),
        check_id: text("L1"),
        title: text("Little's law"),
        severity: text("integrity"),
        status: text("pass"),
        value: Some(1.003),
        threshold: text("0.95-1.05"),
        evidence: text("27066/s × 355 µs = 9.6 of 9.6"),
        ..CheckRow::default()
    }
}

pub fn estimate() -> EstimateRow {
    EstimateRow {
        metric: text("read_iops_max"),
        label: text("max IOPS"),
        value: 56_100.0,
        low: Some(54_000.0),
        high: Some(58_200.5),
        level: Some(0.95),
        n: 8,
        unit: text("reads/s"),
        in_flight: Some(64),
        ..EstimateRow::default()
    }
}

pub fn references() -> ReferenceRow {
    ReferenceRow {
        source: text("run order-entry"),
        block_bytes: 8192,
        cache_bytes: 64 << 20,
        seed: u64::MAX,
        rate: 0.25,
        reads: 1_000,
        kept: 2,
        encoded: vec![0, 7, 5],
    }
}

pub fn dnfs_channel() -> DnfsChannelRow {
    DnfsChannelRow {
        t_ns: 1_000,
        address: text("192.0.2.1:2049"),
        local: Some(text("192.0.2.9")),
        local_port: Some(777),
        state: text("UP"),
        reads: 10,
        reads_done: 10,
        read_ns: 3_550_000,
        ..DnfsChannelRow::default()
    }
}

pub const HISTOGRAM: [u8; 5] = [0, 1, 127, 128, 255];

/// Writes a record of one measured and one open visit into a new folder; not finished.
pub fn unfinished() -> (TempDir, PathBuf, Writer) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a run.redoubt");
    let writer = fill(&path).unwrap();
    (folder, path, writer)
}

/// The same, finished and opened.
pub fn finished() -> (TempDir, Reader) {
    let (folder, path, mut writer) = unfinished();
    writer.finish("finished").unwrap();
    (folder, Reader::open(&path).unwrap())
}

fn fill(path: &Path) -> Result<Writer, record::RecordError> {
    let mut writer = Writer::create(path, &experiment())?;
    writer.facts(&facts())?;
    writer.plan(&json!({"delta": 0.03, "looks": [4, 6, 8]}))?;
    let configuration = writer.configuration(&configuration())?;
    let workload = writer.workload("read-cold", &json!({"title": "cold reads", "headline": true}))?;
    let block = writer.block(0, &[1, 0, 0, 1], u64::MAX - 7)?;
    let measured = writer.visit(&visit(block, configuration))?;
    let phase = writer.phase(&phase(measured, workload))?;
    writer.intervals(phase, &intervals())?;
    writer.histogram(phase, "read", &HISTOGRAM)?;
    writer.counters(&counters(phase))?;
    writer.end_visit(measured, "measured", None)?;
    writer.visit(&VisitRow { position: 1, ..visit(block, configuration) })?;
    writer.curve_point(&curve_point())?;
    writer.check(&check())?;
    writer.estimate(&estimate())?;
    writer.references(&references())?;
    writer.beside()?.add(&[dnfs_channel()])?;
    writer.event("collapse", &json!({"n": 80, "sentence": "…"}))?;
    Ok(writer)
}
