//! Which one move pays? Every file class moved alone, then all: gain, share of the whole gain, waits that went away, and what
//! that did to the devices.

use super::compare::{Comparison, Workload};
use super::devices::{DeviceUse, IDLE};
use crate::words;
use stats::interval::{self, Interval};
use stats::verdict::Verdict;
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
}

/// Placement of every workload whose configurations differ in where files lie, and in nothing else.
pub fn read(comparison: &Comparison) -> Vec<Placement> {
    let places: Vec<&str> = comparison.factors.iter().map(|f| f.name.as_str()).collect();
    let moves = |name: &&str| name.starts_with("place.") && *name != "place.flash";
    if places.is_empty() || !places.iter().all(moves) {
        return Vec::new();
    }
    let all = comparison.workloads.iter().enumerate();
    all.filter(|(_, w)| w.headline && w.undecided.is_none())
        .map(|(index, workload)| placement(comparison, &places, index, workload))
        .collect()
}

fn placement(comparison: &Comparison, places: &[&str], index: usize, workload: &Workload) -> Placement {
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

impl Placement {
    /// `the one move that pays most is redo: 11.2 × [10.8–11.6], 86 % of the gain of moving everything [84 % to 88 %].` And why.
    pub fn sentences(&self, comparison: &Comparison) -> Vec<String> {
        let workload = &comparison.workloads[self.workload];
        let alone = |m: &&Move| Some(m.configuration) != self.all;
        let mut all = Vec::new();
        for (place, m) in self.moves.iter().filter(alone).enumerate().take(2) {
            let Some(d) = &workload.cells[m.configuration].decision else { continue };
            if place > 0 && d.verdict != Verdict::Better {
                all.push("No other single move is shown to help.".to_owned());
                break;
            }
            let what = words::list(&m.classes);
            let gain = words::ratio_interval(d.ratio.low, d.ratio.high);
            // A loss is no part of a gain.
            let share =
                m.share.as_ref().filter(|_| d.verdict != Verdict::Worse).map_or_else(String::new, |s| {
                    let (low, high) = (words::percent(s.low), words::percent(s.high));
                    format!(
                        ", {} of the gain of moving everything [{low} to {high}]",
                        words::percent(s.value)
                    )
                });
            let lead = match (place, d.verdict) {
                (0, Verdict::Better) => "the one move that pays most is",
                (0, Verdict::Worse) => "no single move pays; least is lost by moving",
                (0, _) => "no single move is shown to pay; nearest to it comes",
                _ => "Next is",
            };
            all.push(format!("{lead} {what}: {} × {gain}{share}.", words::ratio(d.ratio.value)));
            if place == 0 {
                all.extend(m.because(workload, d.verdict));
                all.extend(m.on_the_devices(comparison, workload));
            }
        }
        all.extend(self.everything(workload));
        all
    }

    /// What moving everything gives, and what is left to wait for then.
    fn everything(&self, workload: &Workload) -> Option<String> {
        let m = self.moves.iter().find(|m| Some(m.configuration) == self.all)?;
        let cell = &workload.cells[m.configuration];
        let d = cell.decision.as_ref()?;
        let interval = words::ratio_interval(d.ratio.low, d.ratio.high);
        let left = cell.spent.as_ref().and_then(|spent| spent.top()).map_or_else(String::new, |top| {
            format!("; what is left is {}, {} of the time", top.name, words::percent(top.share))
        });
        Some(format!("Everything moved gives {} × {interval}{left}.", words::ratio(d.ratio.value)))
    }
}

impl Move {
    /// What it removed from one operation, or added to it where it is worse.
    fn because(&self, workload: &Workload, verdict: Verdict) -> Option<String> {
        let changed = || self.waits.iter().filter(|w| (w.1 > w.2) != (verdict == Verdict::Worse));
        // Who waits for a lock waits for what its holder waits for: that is the reason, where it is known.
        let own =
            |w: &&(String, f64, f64)| !w.0.starts_with("enq: ") && !w.0.starts_with("waiting for a CPU");
        let (event, old, new) = changed().find(own).or_else(|| changed().next())?;
        let one = workload.one_operation();
        if *new < 0.001 * old {
            let old = words::latency(*old);
            return Some(format!("That is because a {one} no longer waits in {event}, {old} before."));
        }
        let (new_words, old_words) = (words::latency(*new), words::latency(*old));
        if *old < 0.001 * new {
            return Some(format!(
                "That is because a {one} then waits {new_words} in {event}, not at all before."
            ));
        }
        Some(format!("That is because a {one} then waits {new_words} in {event} instead of {old_words}."))
    }

    /// What it took from the devices and gave to them: `The slow device had 79 writes/s at 99 % of its cap before, and 4 after; …`
    fn on_the_devices(&self, comparison: &Comparison, workload: &Workload) -> Option<String> {
        let (old, new) =
            (&workload.cells[comparison.baseline].devices, &workload.cells[self.configuration].devices);
        // The device that the baseline keeps busiest is the one that is relieved.
        let before = old.iter().filter(|d| d.used()).max_by(|a, b| requests(a).total_cmp(&requests(b)))?;
        let after = new.iter().find(|d| d.name == before.name)?;
        let busy = |d: &DeviceUse| d.busy.map_or_else(String::new, |busy| format!(" ({})", busy.said()));
        let mut text = format!(
            "The {} device counted {}{} before, and {}{} after",
            before.short(),
            traffic(before),
            busy(before),
            traffic(after),
            busy(after)
        );
        let taken = new.iter().filter(|d| d.used() && d.name != before.name);
        if let Some(other) = taken.max_by(|a, b| requests(a).total_cmp(&requests(b))) {
            text.push_str(&format!("; the {} one takes {}{}", other.short(), traffic(other), busy(other)));
        }
        Some(text + ".")
    }
}

fn requests(device: &DeviceUse) -> f64 {
    device.reads + device.writes
}

/// `1,240 writes/s`, with reads where they count.
fn traffic(device: &DeviceUse) -> String {
    let writes = format!("{} writes/s", words::amount(device.writes));
    match device.reads > 0.1 * device.writes && device.reads >= IDLE {
        true => format!("{} reads/s and {writes}", words::amount(device.reads)),
        false => writes,
    }
}
