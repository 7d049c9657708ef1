//! Trials and doubts into the record.

use super::Comparison;
use super::blocks::Rows;
use super::ground::Ground;
use super::proof::Proof;
use super::visit::Workload;
use crate::LabError;
use crate::bench::Bench;
use crate::evidence::{Observed, check_row, interval_row, trial_row};
use crate::factor::Setup;
use crate::workload::Trial;
use record::PhaseRow;
use record::json::json;

impl Comparison<'_> {
    /// The checks over all trials of each configuration, and of the run as a whole.
    pub(super) fn conclude(&self, rows: &Rows, proof: &Proof, bench: &mut Bench) -> Result<(), LabError> {
        let setups = self.design.candidates.iter().map(|c| &c.setup);
        let (sessions, blocks): (Vec<u32>, Vec<u64>) = setups.map(|s| (s.sessions, s.block.0)).unzip();
        for (index, checks) in proof.checks(&sessions, &blocks).into_iter().enumerate() {
            let name = self.name(index);
            for (workload, check) in checks {
                let subject = match workload {
                    Some(workload) => format!("{name}: {}", workload.about().name),
                    None => name.to_owned(),
                };
                let id = Some(rows.configurations[index]);
                bench.writer.check(&check_row("configuration", id, &subject, &check))?;
            }
        }
        for submit in proof.submits() {
            bench.writer.event(
                "submit",
                &json!({ "configuration": self.name(submit.index), "workload": submit.workload.about().name,
                         "asynchronous": submit.asynchronous, "completed_at_submit": submit.completed_at_submit,
                         "submit_share": submit.submit_share, "kernel_workers": submit.kernel_workers,
                         "device_depth": submit.device_depth, "in_flight": submit.in_flight }),
            )?;
        }
        let networked = self.design.candidates.iter().any(|candidate| candidate.setup.nfs.is_some());
        for reads in proof.network_reads().into_iter().filter(|_| networked) {
            bench.writer.event(
                "nfs",
                &json!({ "configuration": self.name(reads.index), "workload": reads.workload.about().name,
                         "ops_per_second": reads.rate, "latency_mean_ns": reads.latency_ns,
                         "in_flight": reads.workload.sessions(self.setup(reads.index).sessions),
                         "client_cpu_share": reads.own_cpu_share, "steal_share": reads.steal_share }),
            )?;
        }
        let (path, bytes) = match &self.ground {
            Ground::Standing { subject, .. } => subject.data(),
            // No file of a visit is left; the directory has the same storage below.
            Ground::Fresh => (self.options.directory.as_path(), self.size.0),
        };
        for check in crate::evidence::run_checks(bench, path, bytes) {
            bench.writer.check(&check_row("run", None, "", &check))?;
        }
        Ok(())
    }
}

/// One trial into the record.
pub(super) fn store(
    bench: &mut Bench,
    visit_id: i64,
    workload_id: i64,
    workload: Workload,
    setup: &Setup,
    observed: &Observed,
) -> Result<i64, LabError> {
    let Observed { trial, delta } = observed;
    let configuration = setup.configuration();
    let (threads, in_flight) = match workload {
        Workload::Writers | Workload::WritersExtend => setup.writing(),
        batches if batches.batches() => (1, configuration.writer_batch()),
        bulk if bulk.bulk() => (1, configuration.bulk_depth()),
        _ => (workload.sessions(setup.sessions), workload.sessions(setup.sessions)),
    };
    let reads = workload.reads_only();
    let steady = (trial.slices.len() >= 4)
        .then(|| stats::steady::assess(&trial.slice_rates(), 0.1, crate::DELTA).class.to_string());
    let phase = bench.writer.phase(&PhaseRow {
        threads,
        in_flight,
        rate: workload.rate(trial),
        metric: workload.about().metric.into(),
        steady_class: steady,
        in_flight_mean: trial.in_flight_mean,
        submit_share: trial.submit_share,
        cpu_ns: trial.cpu_ns,
        proof: Some(trial.flags.clone()),
        requests: Some(trial.requests),
        device_ops: if reads { delta.device_reads } else { delta.device_writes },
        device_bytes: if reads { delta.device_read_bytes } else { delta.device_write_bytes },
        ..trial_row(visit_id, workload_id, trial)
    })?;
    let rows: Vec<_> = trial.slices.iter().map(|slice| interval_row(workload.about().name, slice)).collect();
    bench.writer.intervals(phase, &rows)?;
    bench.writer.histogram(phase, workload.about().name, &trial.histogram.encode())?;
    Ok(phase)
}

/// How much the rate of a trial varied over time, as a workload of its own: compared over blocks as rates are.
pub(super) fn store_variation(
    bench: &mut Bench,
    visit_id: i64,
    workload_id: i64,
    workload: Workload,
    setup: &Setup,
    trial: &Trial,
) -> Result<(), LabError> {
    let Some(variation) = variation(&trial.slice_rates()) else { return Ok(()) };
    let sessions = workload.sessions(setup.sessions);
    let phase = bench.writer.phase(&PhaseRow {
        threads: sessions,
        in_flight: sessions,
        rate: variation * 100.0,
        metric: VARIATION_METRIC.into(),
        ..trial_row(visit_id, workload_id, trial)
    })?;
    bench.writer.histogram(phase, workload.about().name, &trial.histogram.encode())?;
    Ok(())
}

/// Unit of a variation.
pub(super) const VARIATION_METRIC: &str = "% of the mean";
/// A window is cut into this many parts, whose rates are held against each other.
const PARTS: usize = 10;

/// Coefficient of variation (standard deviation / mean) of the rates of the parts of a window; none without a rate, or
/// when it was too short to cut.
fn variation(slice_rates: &[f64]) -> Option<f64> {
    let each = slice_rates.len() / PARTS;
    if each == 0 {
        return None;
    }
    let parts: Vec<f64> =
        slice_rates.chunks_exact(each).map(|slices| slices.iter().sum::<f64>() / each as f64).collect();
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    let square = parts.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (parts.len() - 1) as f64;
    // Ratios are formed of it: a rate without any variation at all still has one.
    (mean > 0.0).then(|| (square.sqrt() / mean).max(1e-4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_that_of_the_parts_of_a_window() {
        assert_eq!(variation(&[100.0; 9]), None, "too short to cut");
        assert_eq!(variation(&[0.0; 20]), None, "nothing was done");
        assert_eq!(variation(&[100.0; 20]), Some(1e-4));
        // Slices that alternate inside a part are not what people call unstable; halves that differ are.
        let quick: Vec<f64> = (0..40).map(|n| if n % 2 == 0 { 50.0 } else { 150.0 }).collect();
        assert_eq!(variation(&quick), Some(1e-4));
        let halves: Vec<f64> = (0..40).map(|n| if n < 20 { 50.0 } else { 150.0 }).collect();
        assert!((variation(&halves).expect("a variation") - 0.527).abs() < 0.001, "{:?}", variation(&halves));
    }
}
