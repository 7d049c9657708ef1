//! What a flash cache makes of a table that is scanned again and again: case `flash`.
//!
//! The second pass is the riddle: it may be slower than the first. The counters explain it: what the first pass skipped is written while the
//! second one reads.

use super::compare::{Cell, Comparison, Configuration};
use super::database::Axis;
use super::database::activity::Bands;
use super::database::memory;
use super::evidence::Evidence;
use crate::words;
use record::PhaseRow;
use stats::interval::{self, Interval};

/// Confidence level of the ratio of passes.
const LEVEL: f64 = 0.95;
/// Shares below this are not worth a clause.
const SHARE_MIN: f64 = 0.01;
/// The workloads, in order.
pub const PASSES: [&str; 3] = ["flash-pass-1", "flash-pass-2", "flash-pass-3"];
/// What the database calls a block that was not written to the flash cache, before the reason.
const SKIP: &str = "flash cache insert skip: ";

/// All passes under one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Passes {
    /// Index of the configuration.
    pub configuration: usize,
    /// Whether it has a flash cache.
    pub flash: bool,
    /// One for each of [`PASSES`].
    pub passes: Vec<Pass>,
    /// Speed of the second pass over that of the first.
    pub second: Option<Interval>,
    /// Speed of the third pass over that of the first.
    pub third: Option<Interval>,
    /// The caches over time, in the visit whose second pass was the middle one.
    pub states: Option<States>,
}

/// One pass; means over the visits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pass {
    /// How long it took.
    pub seconds: f64,
    /// Blocks that the buffer cache did not hold.
    pub blocks: f64,
    /// Those that came from the flash cache.
    pub hits: f64,
    /// Blocks written to the flash cache meanwhile.
    pub inserts: f64,
    /// Blocks given up there for others.
    pub aged_out: f64,
    /// Blocks that were not written there, by reason, the most first.
    pub skips: Vec<(String, f64)>,
}

/// Buffers by state over time, from the begin of the first pass to the end of the third.
#[derive(Clone, Debug, PartialEq)]
pub struct States {
    /// Seconds from the begin.
    pub bands: Bands<String>,
    /// When each pass was run: from, to.
    pub passes: Vec<(f64, f64)>,
}

impl Pass {
    /// Share of the blocks that came from the flash cache.
    pub fn from_flash(&self) -> f64 {
        self.hits / self.blocks.max(1.0)
    }

    /// Blocks written to the flash cache, as a share of those that were read.
    pub fn into_flash(&self) -> f64 {
        self.inserts / self.blocks.max(1.0)
    }

    /// The reason for which most blocks were skipped, and their share, when it counts.
    pub fn skipped(&self) -> Option<(&str, f64)> {
        let (reason, count) = self.skips.first()?;
        let share = count / self.blocks.max(1.0);
        (share >= SHARE_MIN).then_some((reason.as_str(), share))
    }
}

/// The passes of every configuration; nothing where they were not run.
pub fn read(evidence: &Evidence, comparison: &Comparison) -> Vec<Passes> {
    let ids = PASSES.map(|name| evidence.workloads.iter().find(|(_, w)| w.name == name).map(|(id, _)| *id));
    let [Some(one), Some(two), Some(three)] = ids else { return Vec::new() };
    let all = comparison.configurations.iter().enumerate();
    all.filter_map(|(index, c)| of(evidence, comparison, index, c, [one, two, three])).collect()
}

fn of(
    evidence: &Evidence,
    comparison: &Comparison,
    index: usize,
    configuration: &Configuration,
    workloads: [i64; 3],
) -> Option<Passes> {
    let measured = |workload: i64| -> Vec<(i64, &PhaseRow)> {
        let mine = |p: &&(i64, PhaseRow)| {
            let visit = evidence.visits.get(&p.1.visit_id);
            p.1.workload_id == workload
                && visit
                    .is_some_and(|v| v.configuration_id == Some(configuration.id) && v.status == "measured")
        };
        evidence.phases.iter().filter(mine).map(|(id, p)| (*id, p)).collect()
    };
    let phases = workloads.map(measured);
    if phases.iter().any(Vec::is_empty) {
        return None;
    }
    let cell = |name: &str| comparison.workload(name).map(|w| &w.cells[index]);
    let [first, second, third] = PASSES.map(cell);
    Some(Passes {
        configuration: index,
        flash: configuration.level("place.flash").is_some_and(|level| level != "none"),
        passes: phases.iter().map(|phases| pass(evidence, phases)).collect(),
        second: first.zip(second).and_then(faster),
        third: first.zip(third).and_then(faster),
        states: states(evidence, &phases),
    })
}

/// Speed of a later pass over that of an earlier one, over the blocks that have both.
fn faster((earlier, later): (&Cell, &Cell)) -> Option<Interval> {
    let both = earlier.blocks.iter().filter_map(|(block, old)| Some((*old, *later.blocks.get(block)?)));
    let (old, new): (Vec<f64>, Vec<f64>) = both.unzip();
    interval::ratio(&old, &new, LEVEL).ok()
}

fn pass(evidence: &Evidence, phases: &[(i64, &PhaseRow)]) -> Pass {
    let visits = phases.len() as f64;
    let rows = || {
        let all = phases.iter().filter_map(|(id, _)| evidence.statistics.get(id)).flatten();
        all.filter(|row| row.class == "system")
    };
    // A sum of nothing is -0 otherwise.
    let sum = |name: &str| rows().filter(|row| row.name == name).fold(0.0, |sum, row| sum + row.value);
    let mean = |name: &str| sum(name) / visits;
    let mut skips: Vec<(String, f64)> = Vec::new();
    for row in rows() {
        let Some(reason) = row.name.strip_prefix(SKIP) else { continue };
        match skips.iter_mut().find(|(known, _)| known == reason) {
            Some((_, sum)) => *sum += row.value / visits,
            None => skips.push((reason.to_owned(), row.value / visits)),
        }
    }
    skips.sort_by(|a, b| b.1.total_cmp(&a.1));
    let hits = mean("physical read flash cache hits");
    Pass {
        seconds: phases.iter().map(|(_, p)| p.seconds).sum::<f64>() / visits,
        blocks: hits + mean("physical reads"),
        hits,
        inserts: mean("flash cache inserts"),
        aged_out: mean("flash cache eviction: aged out"),
        skips,
    }
}

/// The caches in the visit whose second pass is the middle one.
fn states(evidence: &Evidence, phases: &[Vec<(i64, &PhaseRow)>; 3]) -> Option<States> {
    let mut second: Vec<&PhaseRow> = phases[1].iter().map(|(_, p)| *p).collect();
    second.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let visit = second[second.len() / 2].visit_id;
    let spans = phases.each_ref().map(|pass| {
        let here = pass.iter().find(|(_, p)| p.visit_id == visit);
        here.map(|(_, p)| (p.start_ns, p.end_ns))
    });
    let [Some(one), Some(two), Some(three)] = spans else { return None };
    let axis = Axis { from_ns: one.0, to_ns: three.1 };
    let passes = [one, two, three].map(|(from, to)| (axis.at(from), axis.at(to))).into();
    Some(States { bands: memory::buffers(evidence, axis)?, passes })
}

impl Passes {
    /// What the second pass found, and why it took as long as it did: `With slow + flash classic, pass 2 is no faster than pass 1 (0.98 ×
    /// [0.95–1.01]): it read 61 % of the blocks from flash while writing 42 % into it.`
    pub fn sentences(&self, comparison: &Comparison) -> Vec<String> {
        let (Some(second), [first, again, last]) = (&self.second, &self.passes[..]) else {
            return Vec::new();
        };
        let mut found = format!("it read {} of the blocks from flash", words::percent(again.from_flash()));
        found.push_str(&match again.into_flash() {
            share if share >= SHARE_MIN => format!(" while writing {} into it", words::percent(share)),
            _ => " and wrote next to nothing into it".to_owned(),
        });
        let mut all = vec![format!(
            "With {}, pass 2 is {}: {found}.",
            comparison.said(self.configuration),
            compared(second)
        )];
        let skipped = first.skipped().map(|(reason, share)| {
            format!(
                "Pass 1 had skipped {} ({reason}) and written {}",
                words::percent(share),
                words::percent(first.into_flash())
            )
        });
        let third = self.third.as_ref().map(|third| {
            format!(
                "pass 3 reads {} from flash and is {}",
                words::percent(last.from_flash()),
                compared(third)
            )
        });
        all.extend(match (skipped, third) {
            (Some(skipped), Some(third)) => Some(format!("{skipped}; {third}.")),
            (one, other) => one.or(other.map(|text| words::capital(&text))).map(|text| text + "."),
        });
        all
    }
}

/// `2.3 × as fast as pass 1 [2.1–2.5]`.
fn compared(ratio: &Interval) -> String {
    let interval = words::ratio_interval(ratio.low, ratio.high);
    let value = words::ratio(ratio.value);
    if ratio.low > 1.0 {
        format!("{value} × as fast as pass 1 {interval}")
    } else if ratio.high < 1.0 {
        format!("slower than pass 1, {value} × as fast {interval}")
    } else {
        format!("no faster than pass 1, {value} × {interval}")
    }
}

/// Whether it pays, for what was measured beside the passes: `Order entry: 2.1 × that of slow [..] with slow + flash classic, …`.
pub fn pays(comparison: &Comparison) -> Option<String> {
    let workload = comparison.workloads.iter().find(|w| w.headline && !PASSES.contains(&w.name.as_str()))?;
    let told = workload.cells.iter().enumerate().filter_map(|(index, cell)| {
        let ratio = &cell.decision.as_ref()?.ratio;
        Some(format!(
            "{} {} × {}",
            comparison.said(index),
            words::ratio(ratio.value),
            words::ratio_interval(ratio.low, ratio.high)
        ))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "{}, against {}: {}.",
            words::capital(&workload.title),
            comparison.said(comparison.baseline),
            told.join("; ")
        )
    })
}
