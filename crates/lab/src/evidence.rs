//! The other side of every number: what the device, the CPU and the kernel counted meanwhile.

use crate::bench::Bench;
use crate::workload::Trial;
use host::counters::Snapshot;
use io::{Access, File};
use record::{CheckRow, IntervalRow, PhaseRow};
use stats::check::{self, Check};
use std::path::Path;
use units::Nanos;

/// What changed between two snapshots, summed over the devices that count our requests. `None`: source absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delta {
    /// Completed reads and writes of the device, each request counted that was merged on the way.
    pub device_reads: Option<u64>,
    /// See `device_reads`.
    pub device_writes: Option<u64>,
    /// Bytes read and written by the device.
    pub device_read_bytes: Option<u64>,
    /// See `device_read_bytes`.
    pub device_write_bytes: Option<u64>,
    /// Milliseconds × requests in the device's queue: its slope is the mean queue size.
    pub device_queue_ms: Option<u64>,
    /// Milliseconds spent by all reads in the device.
    pub device_read_ms: Option<u64>,
    /// Time between the snapshots.
    pub elapsed: Nanos,
    /// Flush requests completed where our syncs arrive ([`host::counters::Watch::flushes`]).
    pub device_flushes: Option<u64>,
    /// Bytes that this process read from and wrote to storage, as the kernel accounts them.
    pub own_read_bytes: Option<u64>,
    /// See `own_read_bytes`.
    pub own_write_bytes: Option<u64>,
    /// Share of CPU time stolen by the hypervisor.
    pub steal_share: Option<f64>,
    /// Share of CPU time that other processes used.
    pub others_cpu_share: Option<f64>,
    /// Share of CPU time not idle.
    pub cpu_busy_share: Option<f64>,
}

impl Delta {
    /// Later minus earlier.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let disks = |field: fn(&host::counters::DiskCounters) -> u64| {
            let pairs: Vec<_> =
                after.disks.iter().filter_map(|(name, b)| before.disks.get(name).map(|a| (a, b))).collect();
            (!pairs.is_empty())
                .then(|| pairs.iter().map(|(a, b)| field(b).saturating_sub(field(a))).sum::<u64>())
        };
        let own = |field: fn(&host::counters::OwnIo) -> u64| match (&before.own_io, &after.own_io) {
            (Some(a), Some(b)) => Some(field(b).saturating_sub(field(a))),
            _ => None,
        };
        let cpu = match (&before.cpu, &after.cpu) {
            (Some(a), Some(b)) => host::counters::cpu_shares(a, b),
            _ => None,
        };
        Self {
            device_reads: disks(|d| d.reads + d.reads_merged),
            device_writes: disks(|d| d.writes + d.writes_merged),
            device_read_bytes: disks(|d| d.sectors_read * 512),
            device_write_bytes: disks(|d| d.sectors_written * 512),
            device_queue_ms: disks(|d| d.weighted_ms),
            device_read_ms: disks(|d| d.read_ms),
            elapsed: after.t - before.t,
            device_flushes: before.flushes.zip(after.flushes).map(|(a, b)| b.saturating_sub(a)),
            own_read_bytes: own(|o| o.read_bytes),
            own_write_bytes: own(|o| o.write_bytes),
            steal_share: cpu.map(|shares| shares.steal),
            others_cpu_share: host::counters::others_cpu_share(before, after),
            cpu_busy_share: cpu.map(|shares| shares.busy),
        }
    }

    /// Mean requests in the device, and the mean latency of a read there, nanoseconds: the device's own view.
    pub fn device_view(&self) -> Option<(f64, f64)> {
        let (queue_ms, read_ms, reads) = (self.device_queue_ms?, self.device_read_ms?, self.device_reads?);
        (reads > 0 && self.elapsed.0 > 0)
            .then(|| (queue_ms as f64 * 1e6 / self.elapsed.0 as f64, read_ms as f64 * 1e6 / reads as f64))
    }

    /// Adds another trial's evidence; what is unknown in one is unknown in the sum.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut Option<u64>, b: Option<u64>| *a = a.zip(b).map(|(a, b)| a + b);
        sum(&mut self.device_reads, other.device_reads);
        sum(&mut self.device_writes, other.device_writes);
        sum(&mut self.device_read_bytes, other.device_read_bytes);
        sum(&mut self.device_write_bytes, other.device_write_bytes);
        sum(&mut self.device_queue_ms, other.device_queue_ms);
        sum(&mut self.device_read_ms, other.device_read_ms);
        self.elapsed += other.elapsed;
        sum(&mut self.device_flushes, other.device_flushes);
        sum(&mut self.own_read_bytes, other.own_read_bytes);
        sum(&mut self.own_write_bytes, other.own_write_bytes);
        let most = |a: &mut Option<f64>, b: Option<f64>| *a = a.zip(b).map(|(a, b)| a.max(b));
        most(&mut self.steal_share, other.steal_share);
        most(&mut self.cpu_busy_share, other.cpu_busy_share);
    }
}

/// A trial and what was counted while it ran.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Our side.
    pub trial: Trial,
    /// The other side.
    pub delta: Delta,
}

/// A check of the catalogue as a row of the record.
pub fn check_row(scope: &str, scope_id: Option<i64>, subject: &str, check: &Check) -> CheckRow {
    CheckRow {
        scope: scope.into(),
        scope_id,
        subject: subject.into(),
        check_id: check.id.into(),
        title: check.title.into(),
        severity: check.severity.to_string(),
        status: check.status.to_string(),
        value: check.value,
        threshold: check.threshold.into(),
        evidence: check.evidence.clone(),
    }
}

/// A rule that holds of a whole run: a pass, or a warning beside its figures.
pub fn run_row(
    id: &str,
    title: &str,
    good: bool,
    value: f64,
    threshold: String,
    evidence: String,
) -> CheckRow {
    CheckRow {
        scope: "run".into(),
        check_id: id.into(),
        title: title.into(),
        severity: "context".into(),
        status: if good { "pass" } else { "warn" }.into(),
        value: Some(value),
        threshold,
        evidence,
        ..CheckRow::default()
    }
}

/// The checks that every trial of single-block reads must pass, whatever the target.
pub fn read_checks(observed: &Observed) -> Vec<Check> {
    let Observed { trial, delta } = observed;
    vec![
        check::funnel_ops(trial.requests, delta.device_reads, 1.0),
        check::funnel_bytes(trial.request_bytes, delta.device_read_bytes),
        check::wrong_data(trial.verified, trial.wrong, "stamp"),
        check::steal(delta.steal_share, None),
        check::errors(trial.errors, trial.first_error.as_deref()),
    ]
}

/// What the machine did to a phase that is no plain load.
pub fn machine_checks(delta: &Delta) -> Vec<Check> {
    vec![check::steal(delta.steal_share, None), check::others(delta.others_cpu_share)]
}

/// Do histogram, counter and slices agree?
pub fn conservation(trial: &Trial) -> Check {
    let sliced = trial.slices.iter().map(|slice| slice.ops).sum();
    check::conservation(trial.histogram.count(), trial.ops, sliced, 0)
}

/// Little's law for our own load; none when the window is too short for the law to show: at its edges a window cuts
/// requests in two, and below some twenty latencies that alone is more than the tolerance.
pub fn little(rate: f64, latency_mean_ns: f64, in_flight: u32, window_seconds: f64) -> Option<Check> {
    (window_seconds * 1e9 >= 20.0 * latency_mean_ns)
        .then(|| check::little_own(rate, latency_mean_ns, f64::from(in_flight)))
}

/// Checks of a run as a whole; `data`: the file or device that was read, of `data_bytes`.
pub fn run_checks(bench: &Bench, data: &Path, data_bytes: u64) -> Vec<Check> {
    let mounted = bench.storage.mount.as_ref().map_or("unknown", |m| m.fs_type.as_str());
    let file_system = if crate::export::is_export(data) { "an NFS server" } else { mounted };
    let limits: Vec<String> = host::facts::cgroup_limits(&bench.storage.stack)
        .into_iter()
        .filter(|fact| fact.name != "cpuset")
        .filter_map(|fact| {
            Some((fact.value.filter(|v| v != "unlimited")?, fact.object, fact.name, fact.unit))
        })
        .map(|(value, object, name, unit)| format!("{object} {name} = {value} {unit}").trim().to_owned())
        .collect();
    vec![
        check::others(bench.since_start().others_cpu_share),
        check::cgroup_limit((!limits.is_empty()).then(|| limits.join(", ")).as_deref()),
        check::memory_file_system(file_system),
        holes(data, data_bytes),
        check::size_against_caches(data_bytes, host::facts::memory_total()),
    ]
}

/// Holes and unwritten extents: reads of them never reach the device.
fn holes(data: &Path, data_bytes: u64) -> Check {
    let access = Access { read: true, write: false, direct: false, dsync: false };
    if crate::export::is_export(data) {
        return check::holes(data_bytes, None, None);
    }
    match File::open(data, access).and_then(|file| file.extents()) {
        Ok(e) => check::holes(data_bytes, Some(e.unwritten_bytes + e.inline_bytes), Some(e.hole_bytes)),
        Err(_) => check::holes(data_bytes, None, None),
    }
}

/// What a trial says of itself as a measured phase of the record; who stores it adds what it was held against.
pub fn trial_row(visit_id: i64, workload_id: i64, trial: &Trial) -> PhaseRow {
    PhaseRow {
        visit_id,
        workload_id,
        kind: "measure".into(),
        start_ns: trial.window.start.0,
        end_ns: trial.window.end.0,
        ops: trial.ops,
        bytes: trial.bytes,
        errors: trial.errors,
        latency_sum_ns: trial.histogram.sum(),
        seconds: trial.seconds(),
        ..PhaseRow::default()
    }
}

/// One slice as a row of the record.
pub fn interval_row(op_class: &str, slice: &crate::load::Slice) -> IntervalRow {
    IntervalRow {
        t_ns: slice.t.0,
        op_class: op_class.into(),
        ops: slice.ops,
        bytes: slice.bytes,
        lat_sum_ns: slice.latency_sum_ns,
        lat_max_ns: slice.latency_max_ns,
        errors: slice.errors,
    }
}
