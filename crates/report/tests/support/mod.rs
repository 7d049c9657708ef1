//! Records as `lab` writes them, with synthetic numbers from a seed: a comparison of I/O modes and a calibration.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod calibration;
pub mod comparison;
pub mod general;
pub mod passes;
pub mod run;

use record::{CounterRow, Experiment, FactRow, IntervalRow, PhaseRow, Writer};
use stats::histogram::Histogram;
use std::path::Path;
use units::{Rng, Seed};

/// A random source for fixtures.
pub fn rng(seed: u64) -> Rng {
    Rng::new(Seed(seed))
}

/// What was asked.
pub fn experiment(kind: &str, target: &str) -> Experiment {
    Experiment {
        kind: kind.into(),
        case: None,
        target: target.into(),
        command: format!("redoubt {kind} {target}"),
        seed: 20_261_121,
        method_version: "1.0".into(),
        tool_version: "0.1.0".into(),
        build_profile: "release".into(),
        started_utc: "2026-11-21T09:30:00Z".into(),
        budget_seconds: 240.0,
    }
}

/// A machine like a small cloud server.
pub fn facts(writer: &mut Writer, device: &str, file_system: &str) {
    facts_of(writer, device, file_system, "6.12.0");
}

/// The same with another kernel.
pub fn facts_of(writer: &mut Writer, device: &str, file_system: &str, kernel: &str) {
    let rows = [
        ("cpu", "", "model", Some("AMD EPYC 7B13"), "", "/proc/cpuinfo"),
        ("cpu", "", "allowed", Some("2"), "", "sched_getaffinity(2)"),
        ("cpu", "", "hypervisor", Some("KVM"), "", "/proc/cpuinfo"),
        ("cpu", "", "governor", None, "", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("memory", "", "total", Some("25769803776"), "B", "/proc/meminfo"),
        ("memory", "", "swap_total", Some("0"), "B", "/proc/meminfo"),
        ("kernel", "", "release", Some(kernel), "", "uname(2)"),
        ("filesystem", "/data", "type", Some(file_system), "", "/proc/self/mountinfo"),
        ("filesystem", "/data", "options", Some("rw,relatime"), "", "/proc/self/mountinfo"),
        ("filesystem", "/data", "available", Some("187904819200"), "B", "statvfs"),
        ("device", device, "scheduler", Some("none"), "", "/sys/class/block/vda/queue/scheduler"),
        ("device", device, "rotational", Some("no"), "", "/sys/class/block/vda/queue/rotational"),
        ("device", device, "write_cache", Some("write back"), "", "/sys/class/block/vda/queue/write_cache"),
        ("device", device, "read_ahead", Some("128"), "KiB", "/sys/class/block/vda/queue/read_ahead_kb"),
    ];
    for (layer, object, name, value, unit, source) in rows {
        let row = FactRow {
            layer: layer.into(),
            object: object.into(),
            name: name.into(),
            value: value.map(Into::into),
            unit: unit.into(),
            source: source.into(),
        };
        writer.fact(&row).expect("fact");
    }
}

/// Log-normal latencies around `mean_ns` with a tail, `ops` of them.
pub fn latencies(rng: &mut Rng, mean_ns: f64, ops: u64, spread: f64) -> Histogram {
    let mut histogram = Histogram::new();
    let steps = 400u64.min(ops.max(1));
    for _ in 0..steps {
        let tail = if rng.unit() < 0.012 { 4.0 + 6.0 * rng.unit() } else { 1.0 };
        let ns = mean_ns * (spread * rng.normal() - spread * spread / 2.0).exp() * tail;
        histogram.record_n(ns.max(200.0) as u64, (ops / steps).max(1));
    }
    histogram
}

/// One timed stretch of work and everything that is recorded about it.
pub struct Stretch<'a> {
    pub visit_id: i64,
    pub workload_id: i64,
    pub workload: &'a str,
    pub metric: &'a str,
    pub start_ns: u64,
    pub seconds: f64,
    /// In `metric`.
    pub rate: f64,
    /// Bytes of one operation.
    pub op_bytes: u64,
    pub sessions: u32,
    pub direct: bool,
    pub cached: bool,
    pub cpu_ns_per_op: f64,
}

/// Writes the phase, its intervals and its histogram; answers what the device did: requests and bytes.
pub fn stretch(writer: &mut Writer, rng: &mut Rng, s: &Stretch<'_>) -> Busy {
    let per_second = if s.metric == "MB/s" { s.rate * 1e6 / s.op_bytes as f64 } else { s.rate };
    let ops = (per_second * s.seconds).round() as u64;
    let mean_ns = f64::from(s.sessions) * 1e9 / per_second;
    let histogram = latencies(rng, mean_ns, ops, 0.32);
    let device_ops = if s.cached { ops / 500 } else { ops };
    let end_ns = s.start_ns + (s.seconds * 1e9) as u64;
    let phase = writer
        .phase(&PhaseRow {
            visit_id: s.visit_id,
            workload_id: s.workload_id,
            kind: "measure".into(),
            threads: s.sessions,
            in_flight: s.sessions,
            start_ns: s.start_ns,
            end_ns,
            ops,
            bytes: ops * s.op_bytes,
            errors: 0,
            latency_sum_ns: (mean_ns * ops as f64) as u64,
            seconds: s.seconds,
            rate: s.rate,
            metric: s.metric.into(),
            steady_class: Some("flat".into()),
            drift_percent_per_minute: Some(0.4),
            in_flight_mean: Some(f64::from(s.sessions) * 0.99),
            submit_share: Some(if s.direct { 0.06 } else { 0.41 }),
            cpu_ns: Some((s.cpu_ns_per_op * ops as f64) as u64),
            proof: Some(if s.direct { "O_RDWR|O_DSYNC|O_DIRECT" } else { "O_RDWR|O_DSYNC" }.into()),
            requests: Some(ops),
            device_ops: Some(device_ops),
            device_bytes: Some(device_ops * s.op_bytes),
        })
        .expect("phase");
    let slices = (s.seconds / 0.1).round().max(1.0) as u64;
    let rows: Vec<IntervalRow> = (0..slices)
        .map(|i| IntervalRow {
            t_ns: s.start_ns + i * 100_000_000,
            op_class: s.workload.into(),
            ops: (ops as f64 / slices as f64 * (1.0 + 0.05 * rng.normal()).max(0.1)) as u64,
            bytes: ops / slices * s.op_bytes,
            lat_sum_ns: (mean_ns * ops as f64 / slices as f64) as u64,
            lat_max_ns: (mean_ns * 4.0) as u64,
            errors: 0,
        })
        .collect();
    writer.intervals(phase, &rows).expect("intervals");
    writer.histogram(phase, s.workload, &histogram.encode()).expect("histogram");
    let reads = s.workload.contains("read") || s.workload.contains("scan");
    Busy {
        phase,
        from: s.start_ns,
        to: end_ns,
        ops: device_ops as f64,
        bytes: (device_ops * s.op_bytes) as f64,
        reads,
        in_flight: if s.cached { 0.1 } else { f64::from(s.sessions) },
        dirty: !s.direct && !reads,
    }
}

/// What the device was doing.
#[derive(Clone, Copy)]
pub struct Busy {
    /// Row of the phase in which.
    pub phase: i64,
    pub from: u64,
    pub to: u64,
    pub ops: f64,
    pub bytes: f64,
    pub reads: bool,
    pub in_flight: f64,
    pub dirty: bool,
}

/// Cumulative counters every half second over all that was busy.
pub fn counters(writer: &mut Writer, device: &str, busy: &[Busy], until_ns: u64) {
    let mut rows = Vec::new();
    for t_ns in (0..=until_ns).step_by(500_000_000) {
        let done = |b: &Busy| {
            ((t_ns.min(b.to).saturating_sub(b.from)) as f64 / (b.to - b.from) as f64).clamp(0.0, 1.0)
        };
        let sum = |reads: bool, value: fn(&Busy) -> f64| -> f64 {
            busy.iter().filter(|b| b.reads == reads).map(|b| value(b) * done(b)).sum()
        };
        let active: f64 = busy.iter().map(|b| done(b) * (b.to - b.from) as f64 / 1e9).sum();
        let queue: f64 = busy.iter().map(|b| b.in_flight * done(b) * (b.to - b.from) as f64 / 1e6).sum();
        let dirty = if busy.iter().any(|b| b.dirty && b.from <= t_ns && t_ns <= b.to) { 96e6 } else { 4e6 };
        let ticks = t_ns as f64 / 1e9 * 200.0;
        for (layer, object, metric, value) in [
            ("device", device, "reads", sum(true, |b| b.ops).floor()),
            ("device", device, "read_bytes", sum(true, |b| b.bytes).floor()),
            ("device", device, "writes", sum(false, |b| b.ops).floor()),
            ("device", device, "write_bytes", sum(false, |b| b.bytes).floor()),
            ("device", device, "queue_ms", queue.floor()),
            ("cpu", "all", "busy_ticks", (active * 120.0).floor()),
            ("cpu", "all", "steal_ticks", (ticks * 0.011).floor()),
            ("cpu", "all", "total_ticks", ticks.floor()),
            ("load", "1min", "load_average", 1.0 + 9.0 * (1.0 - (-(t_ns as f64) / 60e9).exp())),
            ("memory", "page cache", "dirty_bytes", dirty),
        ] {
            let (layer, object, metric) = (layer.into(), object.into(), metric.into());
            rows.push(CounterRow { phase_id: None, t_ns, layer, object, metric, value });
        }
    }
    writer.counters(&rows).expect("counters");
}

/// A check row.
pub fn check(
    writer: &mut Writer,
    (scope, scope_id, subject): (&str, Option<i64>, &str),
    (id, title, severity, status): (&str, &str, &str, &str),
    (value, threshold, evidence): (Option<f64>, &str, &str),
) {
    writer
        .check(&record::CheckRow {
            scope: scope.into(),
            scope_id,
            subject: subject.into(),
            check_id: id.into(),
            title: title.into(),
            severity: severity.into(),
            status: status.into(),
            value,
            threshold: threshold.into(),
            evidence: evidence.into(),
        })
        .expect("check");
}

/// A directory for records, and a path in it.
pub fn place(directory: &Path, name: &str) -> std::path::PathBuf {
    directory.join(format!("{name}.redoubt"))
}
