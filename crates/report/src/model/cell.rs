//! One cell of a comparison: a workload under a configuration, from the phases that may be used.

use super::compare::{Cell, Configuration, geometric_mean};
use super::database::spent::Spent;
use super::devices;
use super::doubts::Doubts;
use super::evidence::Evidence;
use super::factors;
use super::over_time;
use super::shape::{self, Shape};
use record::PhaseRow;
use stats::interval;
use std::collections::BTreeMap;

/// Confidence level of absolute figures.
const LEVEL: f64 = 0.95;

impl Cell {
    /// Of `configuration` and the workload with this id and name; what was left out is counted by reason.
    pub(super) fn of(
        evidence: &Evidence,
        doubts: &Doubts,
        configuration: &Configuration,
        workload: i64,
        workload_name: &str,
        left_out: &mut BTreeMap<String, usize>,
    ) -> Self {
        let mut cell = Self { marks: doubts.of_cell(configuration.id, workload_name), ..Self::default() };
        let mut used: Vec<(i64, &PhaseRow)> = Vec::new();
        let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let mut failed: Vec<String> = Vec::new();
        for (id, phase) in
            evidence.phases.iter().filter(|(_, p)| p.kind == "measure" && p.workload_id == workload)
        {
            let Some(visit) = evidence.visits.get(&phase.visit_id) else { continue };
            if visit.configuration_id != Some(configuration.id) || visit.status != "measured" {
                continue;
            }
            let marks = doubts.of_phase(*id);
            cell.marks.notes.extend(&marks.notes);
            if let Some(reason) = marks.withdrawn {
                failed.push(reason);
                continue;
            }
            let block =
                visit.block_id.and_then(|id| evidence.blocks.get(&id)).map_or(0, |block| block.ordinal);
            if phase.rate > 0.0 && phase.rate.is_finite() {
                values.entry(block).or_default().push(phase.rate);
                used.push((*id, phase));
            } else {
                *left_out.entry("nothing was completed in the window".to_owned()).or_insert(0) += 1;
            }
        }
        if failed.len() > used.len() {
            // Most phases broke a rule: that is the figure, not an accident of one block.
            cell.marks.withdrawn = cell.marks.withdrawn.or_else(|| failed.first().cloned());
        } else if !failed.is_empty() {
            *left_out.entry("an integrity rule failed in the phase".to_owned()).or_insert(0) += failed.len();
        }
        cell.marks.notes.sort_unstable();
        cell.marks.notes.dedup();
        cell.blocks = values.into_iter().map(|(block, values)| (block, geometric_mean(&values))).collect();
        cell.measure(evidence, &used);
        cell
    }

    /// Levels and latencies over all phases that are used.
    fn measure(&mut self, evidence: &Evidence, used: &[(i64, &PhaseRow)]) {
        let values: Vec<f64> = self.blocks.values().copied().collect();
        let ops: u64 = used.iter().map(|(_, p)| p.ops).sum();
        self.absolute = interval::absolute(&values, LEVEL, 1.0 / ops.max(1) as f64).ok();
        let per_op = |sum: u64| (ops > 0).then(|| sum as f64 / ops as f64);
        let latency_sum = used.iter().map(|(_, p)| p.latency_sum_ns).sum();
        self.latency_ns = per_op(latency_sum).filter(|ns| *ns > 0.0);
        self.cpu_ns = all(used, |p| p.cpu_ns).and_then(per_op);
        let requests = all(used, |p| p.requests).filter(|n| *n > 0);
        self.device_ops =
            all(used, |p| p.device_ops).zip(requests).map(|(device, ours)| device as f64 / ours as f64);
        self.in_flight = mean(used, |p| p.in_flight_mean);
        self.submit_share = mean(used, |p| p.submit_share);
        self.shape = Shape::of(&shape::merged(evidence, used.iter().map(|(id, _)| *id)));
        let phases: Vec<i64> = used.iter().map(|(id, _)| *id).collect();
        self.spent = Spent::of(evidence, &phases);
        self.unsteadiness = factors::unsteadiness(evidence, &phases);
        self.devices = devices::of(evidence, &phases);
        self.over_time = over_time::read(evidence, &phases);
        self.db_time_ns = self.spent.as_ref().filter(|_| ops > 0).map(|spent| spent.db_time_ns / ops as f64);
    }
}

/// Sum over all phases; unknown when it is unknown in one.
fn all(used: &[(i64, &PhaseRow)], field: impl Fn(&PhaseRow) -> Option<u64>) -> Option<u64> {
    if used.is_empty() { None } else { used.iter().map(|(_, p)| field(p)).sum() }
}

fn mean(used: &[(i64, &PhaseRow)], field: impl Fn(&PhaseRow) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = used.iter().map(|(_, p)| field(p)).collect();
    values.filter(|v| !v.is_empty()).map(|v| v.iter().sum::<f64>() / v.len() as f64)
}
