//! What each device beneath the places of a configuration counts while a workload is measured: slow and fast apart.

use super::stay::Stay;
use crate::LabError;
use crate::bench::Bench;
use crate::evidence::Delta;
use crate::factor::Setup;
use crate::stage::{Beneath, Stage};
use host::counters::{DiskCounters, Snapshot, Watch};
use record::CounterRow;
use record::json::json;

/// The layer of these counters in the record.
const LAYER: &str = "place";

/// The devices of one visit.
pub(super) struct Devices {
    beneath: Vec<Beneath>,
}

impl Devices {
    /// Those beneath `stage`; none without one. What each place has is noted for the visit.
    pub(super) fn of(
        stage: Option<&Stage>,
        setup: &Setup,
        visit: i64,
        bench: &mut Bench,
    ) -> Result<Self, LabError> {
        let beneath = stage.map_or_else(Vec::new, |stage| stage.beneath(setup));
        for one in &beneath {
            let limit = one.limit;
            bench.writer.event(
                "place",
                &json!({ "visit": visit, "place": one.place, "disks": one.disks,
                         "classes": one.classes.iter().map(ToString::to_string).collect::<Vec<_>>(),
                         "iops_max": limit.and_then(|l| l.iops), "bytes_per_second_max": limit.and_then(|l| l.bytes_per_second),
                         "write_iops_max": limit.and_then(|l| l.write_iops),
                         "write_bytes_per_second_max": limit.and_then(|l| l.write_bytes_per_second) }),
            )?;
        }
        Ok(Self { beneath })
    }

    /// What to read at both edges of a window.
    pub(super) fn watch(&self) -> Watch {
        let disks = self.beneath.iter().flat_map(|one| one.disks.iter().cloned()).collect();
        Watch { disks, flushes: Vec::new() }
    }

    /// All of them now.
    pub(super) fn snapshot(&self) -> Snapshot {
        host::counters::snapshot(&self.watch())
    }

    /// Requests in them between two snapshots, mean over time; `None` without a device.
    pub(super) fn depth(before: &Snapshot, after: &Snapshot) -> Option<f64> {
        let elapsed_ms = (after.t - before.t).as_secs() * 1e3;
        let queue_ms = Delta::between(before, after).device_queue_ms?;
        (elapsed_ms > 0.0).then(|| queue_ms as f64 / elapsed_ms)
    }

    /// What they counted during the last run of `stay`: at the edges of its window where the target looked there itself, else at
    /// those of the whole trial.
    pub(super) fn store(
        &self,
        phase: i64,
        stay: &Stay<'_>,
        trial: (&Snapshot, &Snapshot),
        bench: &mut Bench,
    ) -> Result<(), LabError> {
        let (before, after) = stay.machine().unwrap_or(trial);
        let mut rows = Vec::new();
        for (snapshot, one) in
            [before, after].into_iter().flat_map(|s| self.beneath.iter().map(move |b| (s, b)))
        {
            let disks: Vec<&DiskCounters> =
                one.disks.iter().filter_map(|name| snapshot.disks.get(name)).collect();
            for (metric, value) in metrics(&disks) {
                rows.push(CounterRow {
                    phase_id: Some(phase),
                    t_ns: snapshot.t.0,
                    layer: LAYER.into(),
                    object: one.place.clone(),
                    metric: metric.into(),
                    value,
                });
            }
        }
        bench.writer.counters(&rows)?;
        Ok(())
    }
}

/// Cumulative counters of the disks of one place together. Requests count one by one, also those that were merged on the way: so do
/// caps. Time with something in flight is the mean over the disks.
fn metrics(disks: &[&DiskCounters]) -> Vec<(&'static str, f64)> {
    if disks.is_empty() {
        return Vec::new();
    }
    let sum = |field: fn(&DiskCounters) -> u64| disks.iter().map(|d| field(d)).sum::<u64>() as f64;
    vec![
        ("reads", sum(|d| d.reads + d.reads_merged)),
        ("read_bytes", sum(|d| d.sectors_read * 512)),
        ("writes", sum(|d| d.writes + d.writes_merged)),
        ("write_bytes", sum(|d| d.sectors_written * 512)),
        ("flushes", sum(|d| d.flushes.unwrap_or(0))),
        ("queue_ms", sum(|d| d.weighted_ms)),
        ("busy_ms", sum(|d| d.io_ms) / disks.len() as f64),
    ]
}
