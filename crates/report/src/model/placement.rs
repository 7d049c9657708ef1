//! Which one move pays? Every file class moved alone, then all: gain, share of the whole gain, waits that went away, what the
//! devices counted.

use super::compare::{Comparison, Workload};
use super::evidence::Evidence;
use crate::words;
use stats::interval::{self, Interval};
use std::collections::BTreeMap;

/// Confidence level of shares.
const LEVEL: f64 = 0.95;
/// Waits that are shown of a move.
const WAITS_MAX: usize = 3;

/// The moves of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Index of the workload.
    pub workload: usize,
    /// Moves in the order of their gain, the largest first; moving everything is one of them.
    pub moves: Vec<Move>,
    /// Index of the configuration that moves everything.
    pub all: Option<usize>,
}

/// Some file classes elsewhere than in the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Index of the configuration.
    pub configuration: usize,
    /// `redo`, `data` ….
    pub classes: Vec<String>,
    /// Share of the gain of moving everything, 1 is all of it; none where that gain is not clear of zero.
    pub share: Option<Interval>,
    /// What users' sessions waited for in one operation, nanoseconds: event, in the baseline, after the move; what changed most first.
    pub waits: Vec<(String, f64, f64)>,
    /// What the devices did meanwhile.
    pub devices: Vec<DeviceUse>,
}

/// What one device counted while a configuration was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceUse {
    /// Its name.
    pub name: String,
    /// Reads per second.
    pub reads: f64,
    /// Writes per second.
    pub writes: f64,
    /// 10⁶ bytes read and written per second.
    pub megabytes: f64,
    /// Mean requests in it; none where it is not counted.
    pub queue: Option<f64>,
}

/// Placement of every workload whose configurations differ in where files lie, and in nothing else.
pub fn read(evidence: &Evidence, comparison: &Comparison) -> Vec<Placement> {
    let places: Vec<&str> = comparison.factors.iter().map(|f| f.name.as_str()).collect();
    if places.is_empty() || !places.iter().all(|name| name.starts_with("place.")) {
        return Vec::new();
    }
    let all = comparison.workloads.iter().enumerate();
    all.filter(|(_, w)| w.headline && w.undecided.is_none())
        .map(|(index, workload)| placement(evidence, comparison, &places, index, workload))
        .collect()
}

fn placement(
    evidence: &Evidence,
    comparison: &Comparison,
    places: &[&str],
    index: usize,
    workload: &Workload,
) -> Placement {
    let baseline = &comparison.configurations[comparison.baseline];
    let moved = |i: usize| -> Vec<String> {
        let here = &comparison.configurations[i];
        let differs = places.iter().filter(|f| here.level(f) != baseline.level(f));
        differs.map(|f| f.trim_start_matches("place.").to_owned()).collect()
    };
    let most = (0..comparison.configurations.len()).max_by_key(|i| moved(*i).len());
    let all = most.filter(|i| moved(*i).len() > 1 && workload.cells[*i].decision.is_some());
    let mut moves: Vec<Move> = (0..comparison.configurations.len())
        .filter(|i| *i != comparison.baseline && workload.cells[*i].decision.is_some())
        .map(|i| Move {
            configuration: i,
            classes: moved(i),
            share: all.filter(|all| *all != i).and_then(|all| share(comparison, workload, i, all)),
            waits: waits(comparison, workload, i),
            devices: devices(evidence, comparison, index, i),
        })
        .collect();
    let gain = |m: &Move| {
        let ratio = workload.cells[m.configuration].decision.as_ref().map_or(1.0, |d| d.ratio.value);
        workload.goodness(ratio)
    };
    moves.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    Placement { workload: index, moves, all }
}

/// Gain of a move over that of all, per block; for times, the time that is saved.
fn share(comparison: &Comparison, workload: &Workload, one: usize, all: usize) -> Option<Interval> {
    let blocks = |i: usize| &workload.cells[i].blocks;
    let base = blocks(comparison.baseline);
    let (part, whole): (Vec<f64>, Vec<f64>) = base
        .iter()
        .filter_map(|(b, old)| Some((blocks(one).get(b)? - old, blocks(all).get(b)? - old)))
        .unzip();
    interval::share(&part, &whole, LEVEL)
}

fn waits(comparison: &Comparison, workload: &Workload, index: usize) -> Vec<(String, f64, f64)> {
    let each = |i: usize| -> BTreeMap<String, f64> {
        let cell = &workload.cells[i];
        let (Some(spent), Some(one)) = (&cell.spent, cell.db_time_ns) else { return BTreeMap::new() };
        let scale = one / spent.db_time_ns.max(1.0);
        spent.foreground.iter().map(|line| (line.name.clone(), line.time_ns * scale)).collect()
    };
    let (old, new) = (each(comparison.baseline), each(index));
    let mut all: Vec<(String, f64, f64)> = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)))
        .map(|name| {
            let of = |times: &BTreeMap<String, f64>| times.get(name).copied().unwrap_or(0.0);
            (name.clone(), of(&old), of(&new))
        })
        .collect();
    all.sort_by(|a, b| (b.1 - b.2).abs().total_cmp(&(a.1 - a.2).abs()));
    let largest = all.first().map_or(0.0, |w| (w.1 - w.2).abs());
    all.retain(|w| (w.1 - w.2).abs() > 0.05 * largest);
    all.truncate(WAITS_MAX);
    all
}

/// Instants and values of a cumulative counter.
type Series = Vec<(u64, f64)>;

/// Cumulative counters of each device at the two ends of each phase, straight between samples.
fn devices(evidence: &Evidence, comparison: &Comparison, workload: usize, index: usize) -> Vec<DeviceUse> {
    let Some((workload_id, _)) = evidence.workloads.get(workload) else { return Vec::new() };
    let id = comparison.configurations[index].id;
    let windows: Vec<(u64, u64)> = evidence
        .phases
        .iter()
        .map(|(_, p)| p)
        .filter(|p| p.kind == "measure" && p.workload_id == *workload_id)
        .filter(|p| evidence.visits.get(&p.visit_id).is_some_and(|v| v.configuration_id == Some(id)))
        .map(|p| (p.start_ns, p.end_ns))
        .collect();
    let seconds: f64 = windows.iter().map(|(from, to)| to.saturating_sub(*from) as f64 / 1e9).sum();
    let mut series: BTreeMap<&str, BTreeMap<&str, Series>> = BTreeMap::new();
    for row in evidence.counters.iter().filter(|c| c.layer == "device") {
        series.entry(&row.object).or_default().entry(&row.metric).or_default().push((row.t_ns, row.value));
    }
    let grown = |points: &[(u64, f64)]| -> f64 {
        windows.iter().map(|(from, to)| (at(points, *to) - at(points, *from)).max(0.0)).sum()
    };
    let used = series.into_iter().map(|(name, metrics)| {
        let per_second = |metric: &str| metrics.get(metric).map(|points| grown(points) / seconds.max(1e-9));
        let sum = |a: &str, b: &str| per_second(a).unwrap_or(0.0) + per_second(b).unwrap_or(0.0);
        DeviceUse {
            name: name.to_owned(),
            reads: per_second("reads").unwrap_or(0.0),
            writes: per_second("writes").unwrap_or(0.0),
            megabytes: sum("read_bytes", "write_bytes") / 1e6,
            queue: per_second("queue_ms").map(|ms| ms / 1e3),
        }
    });
    used.filter(|d| d.reads + d.writes > 0.5).collect()
}

/// The value of a cumulative counter at an instant.
fn at(points: &[(u64, f64)], t: u64) -> f64 {
    let after = points.partition_point(|(time, _)| *time < t);
    match (after.checked_sub(1).and_then(|i| points.get(i)), points.get(after)) {
        (Some(a), Some(b)) => {
            let share = (t - a.0) as f64 / (b.0 - a.0).max(1) as f64;
            a.1 + share * (b.1 - a.1)
        }
        (Some(only), None) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    }
}

impl Placement {
    /// `redo alone on its other place gives 11.2 × [10.8–11.6]: 86 % [84 %–88 %] of the gain of moving everything; it removes …`
    pub fn sentences(&self, comparison: &Comparison) -> Vec<String> {
        let workload = &comparison.workloads[self.workload];
        let alone = |m: &&Move| Some(m.configuration) != self.all;
        let mut all = Vec::new();
        for (place, m) in self.moves.iter().filter(alone).enumerate().take(2) {
            let Some(d) = &workload.cells[m.configuration].decision else { continue };
            let what = words::list(&m.classes);
            let gain = words::ratio_interval(d.ratio.low, d.ratio.high);
            let share = m.share.as_ref().map_or_else(String::new, |s| {
                let (low, high) = (words::percent(s.low), words::percent(s.high));
                format!(": {} of the gain of moving everything [{low} to {high}]", words::percent(s.value))
            });
            let lead = if place == 0 { "the one move that pays most is" } else { "Next is" };
            all.push(format!("{lead} {what}: {} × {gain}{share}.", words::ratio(d.ratio.value)));
            if place == 0 {
                all.extend(m.because(workload));
            }
        }
        if let Some(m) = self.moves.iter().find(|m| Some(m.configuration) == self.all)
            && let Some(d) = &workload.cells[m.configuration].decision
        {
            let interval = words::ratio_interval(d.ratio.low, d.ratio.high);
            all.push(format!("Everything moved gives {} × {interval}.", words::ratio(d.ratio.value)));
        }
        all
    }
}

impl Move {
    /// What it removed from one operation.
    fn because(&self, workload: &Workload) -> Option<String> {
        let (event, old, new) = self.waits.first().filter(|w| w.1 > w.2)?;
        let one = workload.one_operation();
        if *new < 0.001 * old {
            let old = words::latency(*old);
            return Some(format!("That is because a {one} no longer waits in {event}, {old} before."));
        }
        Some(format!(
            "That is because a {one} then waits {} in {event} instead of {}.",
            words::latency(*new),
            words::latency(*old)
        ))
    }
}
