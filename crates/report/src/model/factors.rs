//! What varies between the configurations of a comparison, who stands where, and what each factor does.

use super::compare::{Cell, Comparison, Configuration, Terms, Workload};
use super::evidence::Evidence;
use stats::rank::{Effect, Factorial, Interaction, Ranking};
use stats::verdict::{Decision, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A factor of which there is more than one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Varied {
    /// `fs`, `io`, `place.redo` ….
    pub name: String,
    /// Its levels in the order of the configurations.
    pub levels: Vec<String>,
}

/// What was shown to be in force for a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// What was looked at: a mount, a setting, a device.
    pub what: String,
    /// What was seen.
    pub value: String,
    /// In how many visits.
    pub visits: usize,
}

/// What the factors do to one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// Each level against the baseline's, averaged over the other factors.
    pub main: Vec<Effect>,
    /// The later factor's levels within each level of the earlier one, for each pair of factors.
    pub within: Vec<Effect>,
    /// Whether an effect depends on another factor.
    pub interactions: Vec<Interaction>,
}

/// Factors with more than one level, in the order in which configurations name them.
pub fn varied(evidence: &Evidence) -> Vec<Varied> {
    let mut all: Vec<Varied> = Vec::new();
    for (_, configuration) in &evidence.configurations {
        let levels: Vec<(String, String)> =
            configuration.levels.iter().map(|(factor, level, _)| (factor.clone(), level.clone())).collect();
        for (factor, level) in with_api(&levels) {
            match all.iter_mut().find(|v| v.name == factor) {
                Some(known) if known.levels.contains(&level) => {}
                Some(known) => known.levels.push(level),
                None => all.push(Varied { name: factor, levels: vec![level] }),
            }
        }
    }
    all.retain(|v| v.levels.len() > 1);
    all
}

/// I/O mode and API are one factor here: a blocking mode has no API, so the two are never crossed.
fn with_api(levels: &[(String, String)]) -> Vec<(String, String)> {
    let api = levels.iter().find(|(factor, _)| factor == "api").map(|(_, level)| level.as_str());
    let mode = levels.iter().any(|(factor, _)| factor == "io");
    levels
        .iter()
        .filter(|(factor, _)| !(mode && factor == "api"))
        .map(|(factor, level)| match api {
            Some(api) if factor == "io" && api != "threads" => (factor.clone(), format!("{level} {api}")),
            _ => (factor.clone(), level.clone()),
        })
        .collect()
}

/// Rows of what was proven for the configuration, the same value of all visits in one row.
pub fn proofs(evidence: &Evidence, id: i64, name: &str) -> Vec<Proof> {
    let mut seen: BTreeMap<(String, String), BTreeSet<i64>> = BTreeMap::new();
    for event in evidence.events.iter().filter(|e| e.kind == "proof") {
        let of = &event.json["configuration"];
        if of.as_i64() != Some(id) && of.as_str() != Some(name) {
            continue;
        }
        let text = |key: &str| match &event.json[key] {
            record::json::Value::String(text) => text.clone(),
            record::json::Value::Null => String::new(),
            other => other.to_string(),
        };
        let visits = seen.entry((text("what"), text("value"))).or_default();
        visits.insert(event.json["visit"].as_i64().unwrap_or(-1));
    }
    seen.into_iter().map(|((what, value), visits)| Proof { what, value, visits: visits.len() }).collect()
}

impl Configuration {
    /// Its level of a factor.
    pub fn level(&self, factor: &str) -> Option<String> {
        with_api(&self.levels).into_iter().find(|(f, _)| f == factor).map(|(_, level)| level)
    }
}

impl Comparison {
    /// Whether more than I/O mode and API was varied: then the configurations are ranked, and told by their factors.
    pub fn general(&self) -> bool {
        self.factors.iter().any(|f| f.name != "io" && f.name != "api")
    }

    /// Whether any DB time was concluded from samples.
    pub fn sampled(&self) -> bool {
        let mut cells = self.workloads.iter().flat_map(|w| &w.cells);
        cells.any(|cell| cell.spent.as_ref().is_some_and(|spent| spent.looks.is_some()))
    }

    /// Whether more than one device was used and counted by itself.
    pub fn tells_devices_apart(&self) -> bool {
        let cells = self.workloads.iter().flat_map(|w| &w.cells);
        let used: BTreeSet<&str> =
            cells.flat_map(|c| c.devices.iter().filter(|d| d.used()).map(|d| d.name.as_str())).collect();
        used.len() > 1
    }

    /// Index of each varied factor's level in each configuration; a factor that a configuration does not name is at its first.
    pub fn points(&self) -> Vec<Vec<usize>> {
        let place = |c: &Configuration, f: &Varied| {
            c.level(&f.name).and_then(|level| f.levels.iter().position(|l| *l == level)).unwrap_or(0)
        };
        self.configurations.iter().map(|c| self.factors.iter().map(|f| place(c, f)).collect()).collect()
    }
}

impl Workload {
    /// One value per block for each configuration, over all blocks that hold any; none for what is not compared.
    pub fn values(&self) -> Vec<Vec<Option<f64>>> {
        let blocks: BTreeSet<u32> = self.cells.iter().flat_map(|c| c.blocks.keys().copied()).collect();
        let usable = |cell: &Cell| !cell.withdrawn();
        self.cells
            .iter()
            .map(|cell| blocks.iter().map(|b| cell.blocks.get(b).copied().filter(|_| usable(cell))).collect())
            .collect()
    }

    /// Puts the configurations in order, where there are three or more.
    pub fn rank(&self, terms: &Terms) -> Option<Ranking> {
        let values = self.values();
        let blocks = values.first().map_or(0, Vec::len);
        let ranking = Ranking::of(&values, self.higher_is_better, &terms.rule(blocks));
        (ranking.order.len() > 1 && blocks > 1).then_some(ranking)
    }

    /// What the factors do, where there are two or more and the design tells them apart.
    pub fn effects(&self, points: &[Vec<usize>], baseline: usize, terms: &Terms) -> Option<Effects> {
        let values = self.values();
        let reference = points.get(baseline)?;
        let factors = reference.len();
        if factors < 2 {
            return None;
        }
        let (higher, rule) = (self.higher_is_better, terms.rule(values.first().map_or(0, Vec::len)));
        let design = Factorial { levels: points, values: &values };
        let pairs = (0..factors).flat_map(|g| (g + 1..factors).map(move |f| (f, g)));
        Some(Effects {
            main: design.main_effects(reference, higher, &rule),
            within: pairs.flat_map(|(f, g)| design.effects_within(f, g, reference, higher, &rule)).collect(),
            interactions: design.interactions(reference, higher, &rule),
        })
    }

    /// Ratio of a configuration to the best one: 1 for the best; none where it is not ranked.
    pub fn to_best(&self, index: usize) -> Option<(f64, Option<&Decision>)> {
        let ranking = self.ranking.as_ref()?;
        match ranking.to_best(index) {
            Some(decision) => Some((decision.ratio.value, Some(decision))),
            None => (ranking.order.first() == Some(&index)).then_some((1.0, None)),
        }
    }

    /// A ratio to the best as a share of it, 1 is as good, whichever way is better.
    pub fn goodness(&self, ratio: f64) -> f64 {
        if self.higher_is_better { ratio } else { 1.0 / ratio }
    }
}

impl Effects {
    /// Interactions that are shown to be there.
    pub fn shown(&self) -> impl Iterator<Item = &Interaction> {
        let decided = |i: &&Interaction| matches!(i.decision.verdict, Verdict::Better | Verdict::Worse);
        self.interactions.iter().filter(decided)
    }
}

/// Coefficient of variation of the rate from slice to slice inside phases: root mean square over the phases with four slices or
/// more; the last slice of a phase may be a short one and is left out.
pub fn unsteadiness(evidence: &Evidence, phases: &[i64]) -> Option<f64> {
    let one = |phase: &i64| -> Option<f64> {
        let mut by_time: BTreeMap<u64, u64> = BTreeMap::new();
        for row in evidence.whole_intervals(*phase) {
            *by_time.entry(row.t_ns).or_default() += row.ops;
        }
        let mut rates: Vec<f64> = by_time.into_values().map(|ops| ops as f64).collect();
        rates.pop();
        let mean = stats::sample::mean(&rates);
        (rates.len() >= 4 && mean > 0.0).then(|| stats::sample::deviation(&rates) / mean)
    };
    let all: Vec<f64> = phases.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| (all.iter().map(|cv| cv * cv).sum::<f64>() / all.len() as f64).sqrt())
}
