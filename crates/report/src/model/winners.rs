//! Who wins where: the winner for every hit ratio and read share, and where along the user's own lines it changes.

use super::compare::Comparison;
use super::mix::{Inputs, Measured, hits};
use crate::words;
use stats::mix::{Winner, winner};
use stats::verdict::Rule;
use std::collections::BTreeMap;

/// Columns and rows of the map.
const COLUMNS: usize = 18;
const ROWS: usize = 10;
/// Points of a line on which a change of the winner is looked for.
const LINE: usize = 48;

/// The map.
#[derive(Clone, Debug, PartialEq)]
pub struct WinnersMap {
    /// Hit ratios, ascending: a column each.
    pub hits: Vec<f64>,
    /// Read shares, ascending: a row each.
    pub reads: Vec<f64>,
    /// The winner at each read share and hit ratio; none where nothing can be compared.
    pub cells: Vec<Vec<Option<Winner>>>,
    /// At the user's read share: the winners by hit ratio.
    pub by_hit: Vec<Stretch>,
    /// At the user's hit ratio: the winners by read share.
    pub by_read: Vec<Stretch>,
}

/// A stretch of a line with one winner.
#[derive(Clone, Debug, PartialEq)]
pub struct Stretch {
    /// From here.
    pub from: f64,
    /// To here.
    pub to: f64,
    /// Who wins.
    pub winner: Winner,
}

/// What each configuration did, block by block; those that are withdrawn are empty.
pub type Field = [BTreeMap<u32, Measured>];

impl WinnersMap {
    /// Over all hit ratios up to `hit_max` and all read shares, around the user's `inputs`.
    pub fn of(inputs: &Inputs, field: &Field, hit_max: f64, rule: &Rule) -> Self {
        let common: Vec<u32> = blocks(field);
        let at = |h: f64, r: f64| {
            let here = Inputs { hit_ratio: h, read_share: r, ..*inputs };
            let rates = |row: &BTreeMap<u32, Measured>| -> Vec<f64> {
                common.iter().filter_map(|b| row.get(b)).map(|m| here.throughput(m)).collect()
            };
            winner(&field.iter().map(rates).collect::<Vec<_>>(), rule)
        };
        let columns: Vec<f64> = hits(COLUMNS - 1, hit_max, 1.0);
        let rows: Vec<f64> = (0..=ROWS).map(|i| i as f64 / ROWS as f64).collect();
        let cells = rows.iter().map(|r| columns.iter().map(|h| at(*h, *r)).collect()).collect();
        let line = hits(LINE, hit_max, inputs.hit_ratio);
        let shares: Vec<f64> = (0..=LINE).map(|i| i as f64 / LINE as f64).collect();
        Self {
            by_hit: stretches(&line, &|h| at(h, inputs.read_share)),
            by_read: stretches(&shares, &|r| at(inputs.hit_ratio, r)),
            hits: columns,
            reads: rows,
            cells,
        }
    }

    /// Whether anything is decided anywhere.
    pub fn decided(&self) -> bool {
        self.cells.iter().flatten().flatten().any(|winner| !matches!(winner, Winner::Unknown(_)))
    }

    /// Who wins from where on: one sentence for each of the two lines on which the winner changes; one alone where nothing is decided.
    pub fn sentences(&self, comparison: &Comparison, inputs: &Inputs) -> Vec<String> {
        if !self.decided() {
            return vec![
                "Nothing is decided at any hit ratio or read share: the blocks differ too much from each other. More --minutes would tell.".into(),
            ];
        }
        let along = |stretches: &[Stretch], what: &str, held: String| -> Option<String> {
            let told: Vec<String> = stretches.iter().map(|s| s.told(comparison)).collect();
            match told.as_slice() {
                [] => None,
                [only] => Some(format!("{held}, {only} at every {what}.")),
                all => Some(format!("{held}, by {what}: {}.", all.join("; "))),
            }
        };
        let reads = format!("With reads {} of the work", words::percent(inputs.read_share));
        let hit = format!("With a hit ratio of {}", words::percent(inputs.hit_ratio));
        along(&self.by_hit, "hit ratio", reads)
            .into_iter()
            .chain(along(&self.by_read, "read share", hit))
            .collect()
    }
}

/// Blocks that every configuration has that has any.
fn blocks(field: &Field) -> Vec<u32> {
    let alive: Vec<&BTreeMap<u32, Measured>> = field.iter().filter(|row| !row.is_empty()).collect();
    let Some(first) = alive.first() else { return Vec::new() };
    first.keys().copied().filter(|b| alive.iter().all(|row| row.contains_key(b))).collect()
}

/// Neighbours with the same winner together. Who else is not decided does not break a stretch; who leads one does.
fn stretches(line: &[f64], at: &dyn Fn(f64) -> Option<Winner>) -> Vec<Stretch> {
    let alike = |a: &Winner, b: &Winner| match (a, b) {
        (Winner::One(a), Winner::One(b)) => a == b,
        (Winner::Same(_), Winner::Same(_)) | (Winner::Unknown(_), Winner::Unknown(_)) => true,
        _ => false,
    };
    let mut all: Vec<Stretch> = Vec::new();
    for place in line {
        let Some(here) = at(*place) else { continue };
        match all.last_mut() {
            Some(last) if alike(&last.winner, &here) => last.to = *place,
            _ => all.push(Stretch { from: *place, to: *place, winner: here }),
        }
    }
    all
}

impl Stretch {
    fn told(&self, comparison: &Comparison) -> String {
        let who = match &self.winner {
            Winner::One(i) => format!("{} wins", comparison.said(*i)),
            Winner::Same(all) => {
                let names: Vec<String> = all.iter().take(3).map(|i| comparison.said(*i)).collect();
                let more = if all.len() > 3 { " and others" } else { "" };
                format!("{}{more} do not differ", words::list(&names))
            }
            Winner::Unknown(_) => "not decided".into(),
        };
        format!("{who} ({} to {})", words::percent(self.from), words::percent(self.to))
    }
}
