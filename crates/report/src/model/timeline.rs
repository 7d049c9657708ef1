//! The run on one time axis: what was offered, and what the device, the CPU and the kernel counted meanwhile.

use super::database::Axis;
use super::evidence::Evidence;
use std::collections::BTreeMap;

/// All lanes over one axis, seconds from the first sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeLine {
    /// End of the axis, seconds.
    pub seconds: f64,
    /// What was being done when.
    pub bands: Vec<Band>,
    /// Names of the rows in which bands lie.
    pub band_rows: Vec<String>,
    /// From top to bottom.
    pub lanes: Vec<Lane>,
}

/// A stretch of time with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Begin, seconds.
    pub from: f64,
    /// End, seconds.
    pub to: f64,
    /// Index into `band_rows`.
    pub row: usize,
    /// For the tooltip.
    pub name: String,
}

/// One quantity, or two that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// What.
    pub title: String,
    /// Unit of the axis.
    pub unit: String,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line of a lane: `(from, to, value)`, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Steps in order; a hole between two is a hole in the line.
    pub steps: Vec<(f64, f64, f64)>,
}

impl TimeLine {
    /// From intervals and counters; `None` when there are neither.
    pub fn read(evidence: &Evidence) -> Option<Self> {
        let (from_ns, to_ns) = evidence.span_ns()?;
        Self::within(evidence, Axis { from_ns, to_ns })
    }

    /// From intervals and counters of a part of the run.
    pub fn within(evidence: &Evidence, axis: Axis) -> Option<Self> {
        let at = |ns: u64| axis.at(ns);
        let (bands, band_rows) = bands(evidence, &at);
        let mut lanes = Vec::new();
        lanes.extend(offered(evidence, &at));
        lanes.extend(counted(evidence, axis));
        let any = lanes.iter().any(|lane| lane.lines.iter().any(|line| !line.steps.is_empty()));
        any.then(|| Self { seconds: axis.seconds(), bands, band_rows, lanes })
    }
}

/// Visits by configuration; phases by workload where nothing is compared.
fn bands(evidence: &Evidence, at: &dyn Fn(u64) -> f64) -> (Vec<Band>, Vec<String>) {
    let mut rows: Vec<String> = evidence.configurations.iter().map(|(_, c)| c.name.clone()).collect();
    // With one configuration, and in a run of one, what was done says more than its name.
    let compared = rows.len() > 1;
    rows.truncate(if compared { rows.len() } else { 0 });
    let mut bands = Vec::new();
    for (_, phase) in &evidence.phases {
        let workload = evidence.workload_name(phase.workload_id);
        let configuration = evidence.visits.get(&phase.visit_id).and_then(|v| v.configuration_id);
        let row = if compared {
            evidence.configurations.iter().position(|(id, _)| Some(*id) == configuration)
        } else {
            Some(rows.iter().position(|row| row == workload).unwrap_or_else(|| {
                rows.push(workload.to_owned());
                rows.len() - 1
            }))
        };
        if let Some(row) = row {
            let name = if compared { format!("{}: {workload}", rows[row]) } else { workload.to_owned() };
            bands.push(Band { from: at(phase.start_ns), to: at(phase.end_ns), row, name });
        }
    }
    (bands, rows)
}

/// Requests and bytes per second as Redoubt counted them. The intervals of a phase share its window equally: their own
/// time stamps are only used for their order.
fn offered(evidence: &Evidence, at: &dyn Fn(u64) -> f64) -> Vec<Lane> {
    let (mut rate, mut bytes) = (Vec::new(), Vec::new());
    for (id, phase) in &evidence.phases {
        let mut by_time: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for row in evidence.whole_intervals(*id) {
            let sum = by_time.entry(row.t_ns).or_default();
            sum.0 += row.ops;
            sum.1 += row.bytes;
        }
        let (begin, end) = (at(phase.start_ns), at(phase.end_ns));
        let step = (end - begin) / by_time.len().max(1) as f64;
        if step <= 0.0 {
            continue;
        }
        for (index, (ops, moved)) in by_time.into_values().enumerate() {
            let from = begin + step * index as f64;
            rate.push((from, from + step, ops as f64 / step));
            bytes.push((from, from + step, moved as f64 / 1e6 / step));
        }
    }
    let lane = |title: &str, unit: &str, name: &str, steps: Vec<(f64, f64, f64)>| Lane {
        title: title.into(),
        unit: unit.into(),
        lines: vec![Line { name: name.into(), steps }],
    };
    if rate.is_empty() {
        return Vec::new();
    }
    vec![
        lane("Redoubt: operations", "per second", "operations", rate),
        lane("Redoubt: data", "MB/s", "data", bytes),
    ]
}

/// One cumulative or instantaneous counter: samples in order of time.
type Samples = Vec<(f64, f64)>;

fn counted(evidence: &Evidence, axis: Axis) -> Vec<Lane> {
    let mut all: BTreeMap<(String, String, String), Samples> = BTreeMap::new();
    for row in evidence.counters.iter().filter(|row| axis.holds(row.t_ns)) {
        let key = (row.layer.clone(), row.object.clone(), row.metric.clone());
        all.entry(key).or_default().push((axis.at(row.t_ns), row.value));
    }
    for samples in all.values_mut() {
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let get = |layer: &str, object: &str, metric: &str| {
        all.get(&(layer.to_owned(), object.to_owned(), metric.to_owned()))
    };
    let mut devices: Vec<String> = all.keys().filter(|k| k.0 == "device").map(|k| k.1.clone()).collect();
    devices.dedup();
    let mut lanes = Vec::new();
    for device in &devices {
        let line = |name: &str, metric: &str, scale: f64| {
            get("device", device, metric).map(|s| Line { name: name.into(), steps: per_second(s, scale) })
        };
        let mut lane = |title: String, unit: &str, lines: [Option<Line>; 2]| {
            let lines: Vec<Line> = lines.into_iter().flatten().collect();
            if !lines.is_empty() {
                lanes.push(Lane { title, unit: unit.into(), lines });
            }
        };
        let requests = [line("reads", "reads", 1.0), line("writes", "writes", 1.0)];
        lane(format!("device {device}: requests"), "per second", requests);
        let data = [line("read", "read_bytes", 1e-6), line("written", "write_bytes", 1e-6)];
        lane(format!("device {device}: data"), "MB/s", data);
        // Milliseconds of queueing per millisecond: the mean number of requests at the device (iostat's aqu-sz).
        lane(
            format!("device {device}: requests in flight"),
            "mean",
            [line("in flight", "queue_ms", 1e-3), None],
        );
    }
    let share = |metric: &str, name: &str| {
        let (part, total) = (get("cpu", "all", metric)?, get("cpu", "all", "total_ticks")?);
        Some(Line { name: name.into(), steps: shares(part, total) })
    };
    let cpu: Vec<Line> =
        [share("busy_ticks", "busy"), share("steal_ticks", "stolen")].into_iter().flatten().collect();
    if !cpu.is_empty() {
        lanes.push(Lane { title: "CPU".into(), unit: "%".into(), lines: cpu });
    }
    let level = |layer: &str, object: &str, metric: &str, scale: f64| {
        get(layer, object, metric).map(|s| level(s, scale))
    };
    if let Some(steps) = level("load", "1min", "load_average", 1.0) {
        let lines = vec![Line { name: "1 min".into(), steps }];
        lanes.push(Lane { title: "load average".into(), unit: "threads".into(), lines });
    }
    if let Some(steps) = level("memory", "page cache", "dirty_bytes", 1e-6) {
        let lines = vec![Line { name: "dirty".into(), steps }];
        lanes.push(Lane { title: "page cache: dirty".into(), unit: "MB".into(), lines });
    }
    lanes
}

/// Rate of a cumulative counter between neighbours; a counter that runs backwards was reset, which makes a hole.
fn per_second(samples: &Samples, scale: f64) -> Vec<(f64, f64, f64)> {
    samples
        .windows(2)
        .filter(|pair| pair[1].0 > pair[0].0 && pair[1].1 >= pair[0].1)
        .map(|pair| (pair[0].0, pair[1].0, (pair[1].1 - pair[0].1) * scale / (pair[1].0 - pair[0].0)))
        .collect()
}

fn shares(part: &Samples, total: &Samples) -> Vec<(f64, f64, f64)> {
    part.windows(2)
        .zip(total.windows(2))
        .filter(|(_, t)| t[1].1 > t[0].1)
        .map(|(p, t)| (p[0].0, p[1].0, 100.0 * (p[1].1 - p[0].1).max(0.0) / (t[1].1 - t[0].1)))
        .collect()
}

fn level(samples: &Samples, scale: f64) -> Vec<(f64, f64, f64)> {
    samples.windows(2).map(|pair| (pair[0].0, pair[1].0, pair[0].1 * scale)).collect()
}

impl Line {
    /// The line in at most `cells` steps: means weighted by time, so that a long run is drawn without drawing every sample.
    pub fn thinned(&self, seconds: f64, cells: usize) -> Vec<(f64, f64, f64)> {
        if self.steps.len() <= cells {
            return self.steps.clone();
        }
        let width = seconds / cells as f64;
        let mut sums: BTreeMap<usize, (f64, f64, f64, f64)> = BTreeMap::new();
        for (from, to, value) in &self.steps {
            let cell = (((from + to) / 2.0 / width) as usize).min(cells - 1);
            let sum = sums.entry(cell).or_insert((f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0));
            let length = to - from;
            *sum = (sum.0.min(*from), sum.1.max(*to), sum.2 + value * length, sum.3 + length);
        }
        sums.into_values().map(|(from, to, sum, length)| (from, to, sum / length)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_rates_and_resets_become_holes() {
        let samples = vec![(0.0, 100.0), (0.5, 150.0), (1.0, 20.0), (2.0, 30.0)];
        assert_eq!(per_second(&samples, 1.0), [(0.0, 0.5, 100.0), (1.0, 2.0, 10.0)]);
    }

    #[test]
    fn thinning_keeps_the_mean() {
        let line = Line {
            name: String::new(),
            steps: (0..1_000).map(|i| (f64::from(i), f64::from(i + 1), f64::from(i % 10))).collect(),
        };
        let thin = line.thinned(1_000.0, 100);
        assert_eq!(thin.len(), 100);
        assert!(thin.iter().all(|step| (step.2 - 4.5).abs() < 0.6), "{thin:?}");
    }
}
