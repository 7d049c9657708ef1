//! The measured parts of a mix: what each configuration did in each block, and pairs of configurations put into the network.

use super::super::compare::{Cell, Comparison, Workload, common_blocks};
use super::super::doubts::Marks;
use super::super::mix::{Curve, Inputs, Measured};
use stats::interval::{self, Interval};
use std::collections::BTreeMap;

/// The workloads that the network is built from.
pub(super) struct Parts<'c> {
    read: &'c Workload,
    read_one: Option<&'c Workload>,
    cached: Option<&'c Workload>,
    commit: Option<&'c Workload>,
    commit_one: Option<&'c Workload>,
    write: Option<&'c Workload>,
}

impl<'c> Parts<'c> {
    pub(super) fn of(
        comparison: &'c Comparison,
        inputs: &Inputs,
        assumptions: &mut Vec<String>,
    ) -> Result<Self, String> {
        let measured = |name: &str| {
            comparison.workload(name).filter(|w| w.cells.iter().any(|cell| !cell.blocks.is_empty()))
        };
        let read = measured("read-cold").ok_or("no verdict for your mix: cold reads were not measured")?;
        let parts = Self {
            read,
            read_one: measured("read-cold-1"),
            cached: measured("read-cached"),
            commit: measured("commit"),
            commit_one: measured("commit-1"),
            write: measured("writers"),
        };
        if parts.commit.is_none() && inputs.commits > 0.0 {
            assumptions.push("commits cost nothing, because they were not measured".into());
        }
        if parts.write.is_none() && inputs.writes() > 0.0 {
            assumptions.push("block writes cost nothing, because writers were not measured".into());
        }
        Ok(parts)
    }

    /// Workloads without which a configuration has no value.
    fn needed(&self) -> impl Iterator<Item = &'c Workload> {
        [Some(self.read), self.commit, self.write].into_iter().flatten()
    }

    /// What each configuration did in each block that holds all of its components.
    pub(super) fn per_block(&self, comparison: &Comparison) -> Vec<BTreeMap<u32, Measured>> {
        (0..comparison.configurations.len())
            .map(|i| {
                let common = common_blocks(self.needed().map(|w| &w.cells[i]));
                common.into_iter().map(|block| (block, self.measured(comparison, i, block))).collect()
            })
            .collect()
    }

    fn measured(&self, comparison: &Comparison, i: usize, block: u32) -> Measured {
        let value = |w: Option<&Workload>| w.and_then(|w| w.cells[i].blocks.get(&block).copied());
        let curve = |one: Option<&Workload>, many: &Workload| Curve {
            one: value(one),
            many: value(Some(many)).unwrap_or(f64::NAN),
            sessions: many.sessions.unwrap_or(1),
        };
        let cpu = |w: Option<&Workload>| w.and_then(|w| w.cells[i].cpu_ns).unwrap_or(0.0);
        let buffered = comparison.configurations[i].buffered();
        let page_cache_ns = self.cached.filter(|_| buffered).and_then(|w| w.cells[i].latency_ns);
        Measured {
            read: curve(self.read_one, self.read),
            commit: self.commit.map(|many| curve(self.commit_one, many)),
            write: value(self.write),
            cpu_ns: [cpu(Some(self.read)), cpu(self.commit), cpu(self.write)],
            page_cache_ns,
        }
    }

    pub(super) fn cell(
        &self,
        comparison: &Comparison,
        i: usize,
        inputs: &Inputs,
        blocks: &BTreeMap<u32, Measured>,
    ) -> Cell {
        let mut marks = Marks::default();
        for workload in self.needed() {
            let mut of_part = workload.cells[i].marks.clone();
            of_part.withdrawn = of_part.withdrawn.map(|reason| format!("{}: {reason}", workload.title));
            marks.inherit(&of_part);
        }
        let values: BTreeMap<u32, f64> =
            blocks.iter().map(|(block, m)| (*block, inputs.throughput(m))).collect();
        let level: Vec<f64> = values.values().copied().collect();
        Cell {
            absolute: interval::absolute(&level, 0.95, 0.0).ok(),
            blocks: values,
            marks,
            cpu_ns: None,
            in_flight: Some(f64::from(inputs.sessions)).filter(|_| comparison.baseline == i),
            ..Cell::default()
        }
    }
}

/// Baseline and one configuration, block by block.
pub(super) struct Pair {
    pub(super) blocks: Vec<(Measured, Measured)>,
    level: f64,
}

impl Pair {
    pub(super) fn of(per_block: &[BTreeMap<u32, Measured>], comparison: &Comparison, i: usize) -> Self {
        let baseline = &per_block[comparison.baseline];
        let blocks =
            baseline.iter().filter_map(|(block, old)| Some((*old, *per_block[i].get(block)?))).collect();
        Self { blocks, level: 1.0 - comparison.rule.level_per_look }
    }

    fn throughputs(&self, inputs: &Inputs) -> (Vec<f64>, Vec<f64>) {
        self.blocks.iter().map(|(old, new)| (inputs.throughput(old), inputs.throughput(new))).unzip()
    }

    pub(super) fn ratio(&self, inputs: &Inputs) -> f64 {
        let (old, new) = self.throughputs(inputs);
        let logs: f64 = old.iter().zip(&new).map(|(a, b)| (b / a).ln()).sum();
        (logs / old.len().max(1) as f64).exp()
    }

    pub(super) fn interval(&self, inputs: &Inputs) -> Option<Interval> {
        let (old, new) = self.throughputs(inputs);
        interval::ratio(&old, &new, self.level).ok()
    }

    pub(super) fn by_hand(&self, inputs: &Inputs) -> f64 {
        let logs: f64 =
            self.blocks.iter().map(|(a, b)| (inputs.by_hand_ns(a) / inputs.by_hand_ns(b)).ln()).sum();
        (logs / self.blocks.len().max(1) as f64).exp()
    }
}
