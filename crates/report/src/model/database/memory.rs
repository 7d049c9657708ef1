//! The buffer cache and the redo log over time, from their samples.

use super::Axis;
use super::activity::Bands;
use crate::model::evidence::Evidence;
use crate::model::timeline::Line;
use record::RedoStateRow;
use std::collections::BTreeMap;

/// States of buffers as people know them, from the bottom of the chart, those of the flash cache on top. Others follow the first three, in
/// the order of the alphabet.
const STATES: [&str; 6] = ["dirty", "xcur", "read", "free", "flashcur", "flashfree"];

/// Buffers by state over time; none where nobody looked.
pub fn buffers(evidence: &Evidence, axis: Axis) -> Option<Bands<String>> {
    let mut looks: BTreeMap<u64, BTreeMap<&str, f64>> = BTreeMap::new();
    for row in &evidence.buffers {
        *looks.entry(row.t_ns).or_default().entry(&row.state).or_default() += row.buffers as f64;
    }
    let mut keys: Vec<String> =
        looks.values().flat_map(|look| look.keys().map(|k| (*k).to_owned())).collect();
    let order = |state: &String| STATES.iter().position(|s| s == state).unwrap_or(3);
    keys.sort_by_key(|state| (order(state), state.clone()));
    keys.dedup();
    keys.retain(|key| looks.values().any(|look| look.get(key.as_str()).is_some_and(|n| *n > 0.0)));
    let times: Vec<u64> = looks.keys().copied().collect();
    let values = |look: &BTreeMap<&str, f64>| -> Vec<f64> {
        keys.iter().map(|key| look.get(key.as_str()).copied().unwrap_or(0.0)).collect()
    };
    let step = |pair: &[u64]| (axis.at(pair[0]), axis.at(pair[1]), values(&looks[&pair[0]]));
    // What was seen before the axis begins has no length on it.
    let steps: Vec<_> = times.windows(2).map(step).filter(|s| s.1 > s.0).collect();
    (!steps.is_empty()).then_some(Bands { keys, steps })
}

/// The redo log over time. Positions are megabytes (10⁶) since the first look.
#[derive(Clone, Debug, PartialEq)]
pub struct Redo {
    /// End of the redo.
    pub tail: Line,
    /// Durable up to here.
    pub durable: Line,
    /// Recovery would begin here.
    pub checkpoint: Line,
    /// Redo that a recovery would read: from the checkpoint to the end, MB.
    pub to_recover: Line,
    /// Bytes of all groups together, MB: what must not be reached.
    pub capacity_mb: f64,
    /// When another group became the current one: seconds and its number.
    pub switches: Vec<(f64, u32)>,
    /// Seconds that were looked at.
    pub seconds: f64,
}

impl Redo {
    /// From the samples; none where nobody looked.
    pub fn read(evidence: &Evidence, axis: Axis) -> Option<Self> {
        let mut rows: Vec<&RedoStateRow> = evidence.redo.iter().collect();
        rows.sort_by_key(|row| row.t_ns);
        let (first, last) = (rows.first()?, rows.last()?);
        if rows.len() < 2 {
            return None;
        }
        let base = first.checkpoint_lsn.min(first.durable_lsn).min(first.tail_lsn);
        let mb = |lsn: u64| lsn.saturating_sub(base) as f64 / 1e6;
        let line = |name: &str, value: &dyn Fn(&RedoStateRow) -> f64| Line {
            name: name.into(),
            steps: rows.windows(2).map(|p| (axis.at(p[0].t_ns), axis.at(p[1].t_ns), value(p[0]))).collect(),
        };
        // Between two looks the log may have switched more than once; each is drawn where it was seen.
        let switched = rows.windows(2).filter(|pair| pair[1].sequence > pair[0].sequence);
        let switches = switched.flat_map(|pair| {
            let times = (pair[1].sequence - pair[0].sequence) as usize;
            std::iter::repeat_n((axis.at(pair[1].t_ns), pair[1].current_group), times)
        });
        Some(Self {
            tail: line("end of redo", &|r| mb(r.tail_lsn)),
            durable: line("durable", &|r| mb(r.durable_lsn)),
            checkpoint: line("checkpoint", &|r| mb(r.checkpoint_lsn)),
            to_recover: line("to recover", &|r| r.tail_lsn.saturating_sub(r.checkpoint_lsn) as f64 / 1e6),
            capacity_mb: last.redo_bytes as f64 / 1e6,
            switches: switches.collect(),
            seconds: (last.t_ns - first.t_ns) as f64 / 1e9,
        })
    }

    /// Redo made a second, MB/s.
    pub fn mb_s(&self) -> f64 {
        let (first, last) = (self.tail.steps.first(), self.tail.steps.last());
        let grown = first.zip(last).map_or(0.0, |(a, b)| b.2 - a.2);
        if self.seconds > 0.0 { grown / self.seconds } else { 0.0 }
    }

    /// Most redo that a recovery would have had to read, MB.
    pub fn to_recover_max_mb(&self) -> f64 {
        self.to_recover.steps.iter().map(|s| s.2).fold(0.0, f64::max)
    }
}
