//! The rate of a configuration over time, phase after phase: whether it is steady is seen, not only computed.

use super::evidence::Evidence;
use std::collections::BTreeMap;

/// Each window is drawn in so many parts, as its variation is computed from (docs/method.md, 1.3).
const PARTS: usize = 10;

/// One window: operations per second in its parts, in order.
pub type Stretch = Vec<f64>;

/// The windows of `phases`, in order of time; those too short to be cut are left out.
pub fn read(evidence: &Evidence, phases: &[i64]) -> Vec<Stretch> {
    let mut all: Vec<(u64, Stretch)> = phases
        .iter()
        .filter_map(|id| {
            let (_, phase) = evidence.phases.iter().find(|(other, _)| other == id)?;
            let mut by_time: BTreeMap<u64, u64> = BTreeMap::new();
            for row in evidence.whole_intervals(*id) {
                *by_time.entry(row.t_ns).or_default() += row.ops;
            }
            let slices: Vec<u64> = by_time.into_values().collect();
            let each = slices.len() / PARTS;
            let slice = phase.end_ns.saturating_sub(phase.start_ns) as f64 / 1e9 / slices.len().max(1) as f64;
            let parts = slices.chunks_exact(each.max(1)).take(PARTS);
            let rates =
                parts.map(|part| part.iter().sum::<u64>() as f64 / slice / part.len() as f64).collect();
            (each > 0 && slice > 0.0).then_some((phase.start_ns, rates))
        })
        .collect();
    all.sort_by_key(|(start, _)| *start);
    all.into_iter().map(|(_, stretch)| stretch).collect()
}
