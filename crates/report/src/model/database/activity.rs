//! Active sessions over time, from the samples: who was active, on CPU or in which wait.
//!
//! A sample stands for the time since the tick before it, so `AAS = Σ weights of the sessions / Σ weights of the ticks`; a
//! sampler that came late, or an interval that was changed, does not scale anything. Where more than 5 % of the ticks are
//! missing nothing is drawn: a hole is better than a guess.

use super::Axis;
use super::class::Class;
use crate::model::evidence::Evidence;
use record::{AshRow, AshTickRow};
use std::collections::BTreeMap;

/// At most this many steps are drawn.
const BINS_MAX: usize = 240;
/// A step rests on at least this many samples of users' sessions on average: of three samples, one more or less is a spike.
const SAMPLES_WANTED: usize = 8;
/// A step that saw fewer of its ticks than this share stays empty.
const SEEN_MIN: f64 = 0.95;
/// Lines of a list of who was active.
const TOP_MAX: usize = 8;

/// Sampled sessions over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// Users' sessions.
    pub foreground: Bands,
    /// Background processes.
    pub background: Bands,
    /// The sampler's own account.
    pub sampler: Sampler,
    /// Users' time by statement or transaction class, most active first; by session where no sample has a statement.
    pub statements: Vec<Active>,
    /// Whether `statements` are sessions.
    pub by_session: bool,
    /// Background time by process, most active first.
    pub processes: Vec<Active>,
}

/// Quantities on top of each other over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bands<K = Class> {
    /// What is drawn, from the bottom.
    pub keys: Vec<K>,
    /// `(from, to, one value for each key)`, seconds of the axis; a hole between two is a hole in the drawing.
    pub steps: Vec<(f64, f64, Vec<f64>)>,
}

impl<K> Bands<K> {
    /// Mean of each key over the drawn time.
    pub fn means(&self) -> Vec<f64> {
        let time: f64 = self.steps.iter().map(|s| s.1 - s.0).sum();
        let mean = |key: usize| self.steps.iter().map(|s| s.2[key] * (s.1 - s.0)).sum::<f64>() / time;
        (0..self.keys.len()).map(|key| if time > 0.0 { mean(key) } else { 0.0 }).collect()
    }

    /// Highest sum of a step.
    pub fn peak(&self) -> f64 {
        self.steps.iter().map(|s| s.2.iter().sum()).fold(0.0, f64::max)
    }

    /// In at most `count` steps of equal numbers of the drawn ones: for tables and terminals.
    pub fn coarser(&self, count: usize) -> Vec<(f64, f64, Vec<f64>)> {
        let each = self.steps.len().div_ceil(count.max(1)).max(1);
        let merge = |part: &[(f64, f64, Vec<f64>)]| {
            let time: f64 = part.iter().map(|s| s.1 - s.0).sum();
            let mean = |key: usize| part.iter().map(|s| s.2[key] * (s.1 - s.0)).sum::<f64>() / time;
            (part[0].0, part[part.len() - 1].1, (0..self.keys.len()).map(mean).collect())
        };
        self.steps.chunks(each).map(merge).collect()
    }
}

/// What the sampler says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampler {
    /// Planned time between two ticks, seconds.
    pub interval: f64,
    /// Ticks that came.
    pub ticks: usize,
    /// Share of the planned ticks that did not come, 0–1.
    pub missed: f64,
    /// Share of the time that sampling took.
    pub cost: f64,
}

/// Who was active, and in what.
#[derive(Clone, Debug, PartialEq)]
pub struct Active {
    /// Statement, transaction class or process.
    pub name: String,
    /// Average active sessions.
    pub aas: f64,
    /// Of all that its list counts, 0–1.
    pub share: f64,
    /// AAS by class, from the bottom of the chart.
    pub classes: Vec<(Class, f64)>,
    /// The event (or CPU) that it was seen in most often.
    pub top: String,
}

/// A tick with the time that it stands for, nanoseconds.
#[derive(Clone, Copy)]
struct Tick {
    t_ns: u64,
    weight_ns: u64,
}

impl Activity {
    /// From the samples of `evidence`; none where nothing was sampled.
    pub fn read(evidence: &Evidence, axis: Axis) -> Option<Self> {
        let ticks = ticks(&evidence.ticks);
        let seconds: f64 = ticks.iter().map(|t| t.weight_ns as f64 / 1e9).sum();
        if ticks.len() < 2 || seconds <= 0.0 {
            return None;
        }
        let sampler = Sampler::of(&evidence.ticks, seconds);
        let samples = evidence.ash.iter().filter(|r| r.foreground).count();
        let grid = Grid::over(&ticks, axis, sampler.interval, samples);
        let bands = |foreground: bool| grid.bands(evidence.ash.iter().filter(|r| r.foreground == foreground));
        let by_session = !evidence.ash.iter().any(|r| r.foreground && r.statement.is_some());
        let statement = |r: &AshRow| r.statement.clone().unwrap_or_else(|| r.program.clone());
        // A tick behind a gap stands for all of it, which says too much of one moment.
        let (seen, seconds) = (|r: &&AshRow| grid.step_of(r.t_ns).is_some(), grid.seconds());
        Some(Self {
            foreground: bands(true),
            background: bands(false),
            sampler,
            by_session,
            statements: active(evidence.ash.iter().filter(seen).filter(|r| r.foreground), statement, seconds),
            processes: active(
                evidence.ash.iter().filter(seen).filter(|r| !r.foreground),
                |r| r.program.clone(),
                seconds,
            ),
        })
    }
}

/// Seconds that users' sessions were seen active between `from` and `to`, with the number of samples it rests on.
pub fn sampled(evidence: &Evidence, from: u64, to: u64) -> (f64, usize) {
    let inside =
        |r: &&AshRow| r.foreground && r.t_ns > from && r.t_ns <= to && Class::named(&r.wait_class).is_some();
    let rows = evidence.ash.iter().filter(inside);
    rows.fold((0.0, 0), |(sum, n), row| (sum + row.weight_ns as f64 / 1e9, n + 1))
}

fn ticks(rows: &[AshTickRow]) -> Vec<Tick> {
    let mut at: Vec<u64> = rows.iter().map(|row| row.t_ns).collect();
    at.sort_unstable();
    at.windows(2).map(|pair| Tick { t_ns: pair[1], weight_ns: pair[1] - pair[0] }).collect()
}

impl Sampler {
    fn of(rows: &[AshTickRow], seconds: f64) -> Self {
        let mut planned: Vec<u64> = rows.iter().map(|row| row.planned_ns).collect();
        planned.sort_unstable();
        let mut steps: Vec<u64> =
            planned.windows(2).map(|pair| pair[1] - pair[0]).filter(|s| *s > 0).collect();
        steps.sort_unstable();
        let interval = steps.get(steps.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e9);
        let wanted = if interval > 0.0 { (seconds / interval).round() + 1.0 } else { rows.len() as f64 };
        let cost: f64 = rows.iter().map(|row| row.cost_ns as f64 / 1e9).sum();
        Self {
            interval,
            ticks: rows.len(),
            missed: (1.0 - rows.len() as f64 / wanted).max(0.0),
            cost: cost / seconds,
        }
    }
}

/// Some ticks in a row: a step of the drawing. Steps are cut between ticks, not by the clock: a tick a little late would
/// leave one step empty and count twice in the next.
struct Step {
    from_ns: u64,
    to_ns: u64,
    /// Too few of the planned ticks came.
    blind: bool,
}

struct Grid {
    axis: Axis,
    steps: Vec<Step>,
}

impl Grid {
    fn over(ticks: &[Tick], axis: Axis, interval: f64, samples: usize) -> Self {
        let inside: Vec<Tick> =
            ticks.iter().filter(|t| t.t_ns > axis.from_ns && t.t_ns <= axis.to_ns).copied().collect();
        let steps = (samples / SAMPLES_WANTED).clamp(1, BINS_MAX);
        let each = inside.len().div_ceil(steps).max(1);
        let step = |part: &[Tick]| {
            let (from_ns, to_ns) = (part[0].t_ns - part[0].weight_ns, part[part.len() - 1].t_ns);
            let planned = ((to_ns - from_ns) as f64 / 1e9 / interval.max(1e-9)).round();
            Step { from_ns, to_ns, blind: (part.len() as f64) < planned * SEEN_MIN }
        };
        Self { axis, steps: inside.chunks(each).map(step).collect() }
    }

    /// The step that holds an instant and saw enough.
    fn step_of(&self, t_ns: u64) -> Option<usize> {
        let index = self.steps.partition_point(|step| step.to_ns < t_ns);
        self.steps.get(index).filter(|step| t_ns > step.from_ns && !step.blind).map(|_| index)
    }

    /// Length of the steps that saw enough.
    fn seconds(&self) -> f64 {
        let seen = self.steps.iter().filter(|step| !step.blind);
        seen.map(|step| (step.to_ns - step.from_ns) as f64 / 1e9).sum()
    }

    fn bands<'r>(&self, rows: impl Iterator<Item = &'r AshRow>) -> Bands {
        let mut sums: BTreeMap<(usize, Class), f64> = BTreeMap::new();
        let mut keys: Vec<Class> = Vec::new();
        for row in rows {
            let Some(class) = Class::named(&row.wait_class) else { continue };
            let Some(index) = self.step_of(row.t_ns) else { continue };
            *sums.entry((index, class)).or_default() += row.weight_ns as f64;
            if !keys.contains(&class) {
                keys.push(class);
            }
        }
        keys.sort_unstable();
        let drawn = |(index, step): (usize, &Step)| {
            let weight = (step.to_ns - step.from_ns) as f64;
            let value = |key: &Class| sums.get(&(index, *key)).copied().unwrap_or(0.0) / weight;
            (self.axis.at(step.from_ns), self.axis.at(step.to_ns), keys.iter().map(value).collect())
        };
        let seen = self.steps.iter().enumerate().filter(|(_, step)| !step.blind);
        Bands { steps: seen.map(drawn).collect(), keys }
    }
}

fn active<'r>(
    rows: impl Iterator<Item = &'r AshRow>,
    name: impl Fn(&AshRow) -> String,
    seconds: f64,
) -> Vec<Active> {
    type Events = BTreeMap<(Class, String), f64>;
    let mut all: BTreeMap<String, Events> = BTreeMap::new();
    for row in rows {
        let Some(class) = Class::named(&row.wait_class) else { continue };
        let event = row.event.clone().unwrap_or_else(|| "CPU".into());
        *all.entry(name(row)).or_default().entry((class, event)).or_default() += row.weight_ns as f64 / 1e9;
    }
    let whole: f64 = all.values().flat_map(BTreeMap::values).sum();
    let line = |(name, events): (String, Events)| {
        let sum: f64 = events.values().sum();
        let top = events.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(key, _)| key.1.clone());
        let mut classes: BTreeMap<Class, f64> = BTreeMap::new();
        for ((class, _), time) in &events {
            *classes.entry(*class).or_default() += time / seconds;
        }
        Active {
            name,
            aas: sum / seconds,
            share: if whole > 0.0 { sum / whole } else { 0.0 },
            classes: classes.into_iter().collect(),
            top: top.unwrap_or_default(),
        }
    };
    let mut lines: Vec<Active> = all.into_iter().map(line).collect();
    lines.sort_by(|a, b| b.aas.total_cmp(&a.aas));
    lines.truncate(TOP_MAX);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(t_ns: u64) -> AshTickRow {
        AshTickRow { t_ns, planned_ns: t_ns, cost_ns: 1_000, active: 1 }
    }

    fn row(t_ns: u64, weight_ns: u64, wait_class: &str) -> AshRow {
        let wait_class = wait_class.to_owned();
        AshRow { t_ns, weight_ns, foreground: true, program: "a".into(), wait_class, ..AshRow::default() }
    }

    #[test]
    fn late_ticks_scale_nothing_and_missing_ones_are_holes() {
        const MS: u64 = 1_000_000;
        // Ten a second; the one at 500 ms comes 40 ms late, those from 1.0 s to 1.9 s never come.
        let at: Vec<u64> = (0..=40)
            .filter(|i| !(10..20).contains(i))
            .map(|i| i * 100 * MS + if i == 5 { 40 * MS } else { 0 })
            .collect();
        let rows: Vec<AshTickRow> = at.iter().map(|t| tick(*t)).collect();
        let ticks = ticks(&rows);
        let axis = Axis { from_ns: 0, to_ns: 4_000 * MS };
        let grid = Grid::over(&ticks, axis, 0.1, usize::MAX);
        let samples: Vec<AshRow> = ticks
            .iter()
            .flat_map(|t| [row(t.t_ns, t.weight_ns, "Commit"), row(t.t_ns, t.weight_ns, "CPU")])
            .collect();
        let bands = grid.bands(samples.iter());
        assert_eq!(bands.keys, [Class::Cpu, Class::Commit]);
        for (from, _, values) in &bands.steps {
            assert!(values.iter().all(|v| (v - 1.0).abs() < 1e-9), "{from}: {values:?}");
        }
        assert!((bands.means()[1] - 1.0).abs() < 1e-9);
        assert!(bands.steps.iter().all(|s| s.1 < 0.95 || s.0 > 1.95), "the gap is drawn: {bands:?}");
        assert!(bands.steps.iter().any(|s| (s.1 - 0.54).abs() < 1e-9), "the late one is not: {bands:?}");
        let sampler = Sampler::of(&rows, 4.0);
        assert!((sampler.missed - 10.0 / 41.0).abs() < 0.01, "{sampler:?}");
    }

    #[test]
    fn coarser_steps_keep_the_mean() {
        let bands = Bands {
            keys: vec![Class::Cpu],
            steps: (0..100).map(|i| (f64::from(i), f64::from(i + 1), vec![f64::from(i % 2)])).collect(),
        };
        let coarse = bands.coarser(10);
        assert_eq!(coarse.len(), 10);
        assert!(coarse.iter().all(|s| (s.2[0] - 0.5).abs() < 1e-9));
        assert_eq!((coarse[0].0, coarse[9].1), (0.0, 100.0));
    }
}
