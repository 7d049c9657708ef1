//! The weighted verdict: the user's mix under every configuration, block by block, as one more workload.
//!
//! Each block gives one value of every component, measured minutes apart; a transaction rate is computed per block and
//! then judged as any other workload, so that drift stays paired. The arithmetic is in [`super::mix`].

mod parts;

use super::compare::{Comparison, Workload};
use super::evidence::Evidence;
use super::mix::{Curve, Inputs, Measured, Part, Pays, hits, where_it_pays};
use super::winners::WinnersMap;
use crate::words;
use parts::{Pair, Parts};
use record::json::Value;
use stats::interval::Interval;
use stats::verdict::Verdict;
use std::collections::BTreeMap;

/// Highest hit ratio that is drawn and searched: one miss in two thousand.
pub const HIT_MAX: f64 = 0.9995;
/// Points of the drawn curve.
const STEPS: usize = 72;
/// How far each input is moved to see what moves the verdict.
const MOVE: f64 = 0.10;
/// Blocks that a transaction gets, when the user says nothing (docs/method.md, 8.2).
const GETS: f64 = 40.0;
/// CPU time of one get, nanoseconds, when the user says nothing.
const CPU_PER_GET_NS: f64 = 5_000.0;

/// The verdict for the user's mix.
#[derive(Clone, Debug)]
pub struct Mix {
    /// The user's workload as it was understood.
    pub inputs: Inputs,
    /// Where it comes from, in sentences.
    pub said: Vec<String>,
    /// What was assumed because nobody said or measured it.
    pub assumptions: Vec<String>,
    /// Transactions per second, judged as a workload.
    pub workload: Workload,
    /// What limits each configuration.
    pub bottlenecks: Vec<Option<Part>>,
    /// The configuration whose gain is drawn: the winner, or the one that is ahead.
    pub leader: usize,
    /// Its speed-up over the baseline against hit ratio, with the interval over blocks.
    pub curve: Vec<(f64, Interval)>,
    /// The others' speed-ups: configuration, points.
    pub others: Vec<(usize, Vec<(f64, f64)>)>,
    /// Up to which hit ratio the leader pays.
    pub pays: Pays,
    /// The same for the lower and upper end of the interval.
    pub pays_range: (Pays, Pays),
    /// The same by hand: one session, latencies only (docs/method.md, 8.2, first level).
    pub pays_by_hand: Pays,
    /// Page-cache share of the misses below which a direct leader pays on read latency (second level).
    pub page_cache_break_even: Option<f64>,
    /// What moves the verdict, strongest first.
    pub sensitivity: Vec<Sensitivity>,
    /// Margin that pays, 0.03.
    pub delta: f64,
    /// Who wins where.
    pub map: WinnersMap,
}

/// An input moved by a tenth down and up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// Which.
    pub input: &'static str,
    /// Speed-up with the input a tenth lower.
    pub lower: f64,
    /// Speed-up with the input a tenth higher.
    pub higher: f64,
    /// Whether one of them changes the answer to "does it pay?".
    pub flips: bool,
}

/// The mix of a comparison, or the sentence why there is none.
pub fn mix(evidence: &Evidence, comparison: &Comparison) -> Result<Mix, String> {
    let (inputs, said, mut assumptions) = inputs(evidence, comparison)?;
    let parts = Parts::of(comparison, &inputs, &mut assumptions)?;
    let per_block = parts.per_block(comparison);
    let mut workload = Workload {
        name: "mix".into(),
        title: "your mix".into(),
        question: "How many transactions of your mix per second?".into(),
        metric: "transactions/s".into(),
        higher_is_better: true,
        sessions: Some(inputs.sessions),
        headline: true,
        cells: (0..comparison.configurations.len())
            .map(|i| parts.cell(comparison, i, &inputs, &per_block[i]))
            .collect(),
        best: Vec::new(),
        undecided: None,
        ranking: None,
        effects: None,
    };
    workload.decide(comparison.baseline, &comparison.rule);
    if let Some(reason) = &workload.undecided {
        return Err(format!("no verdict for your mix: {reason}"));
    }
    if comparison.general() {
        workload.ranking = workload.rank(&comparison.rule);
    }
    let leader =
        leader(&workload, comparison.baseline).ok_or("no verdict for your mix: nothing to compare with")?;
    let pair = Pair::of(&per_block, comparison, leader);
    let threshold = 1.0 + comparison.rule.delta;
    let grid = hits(STEPS, HIT_MAX, inputs.hit_ratio);
    let curve: Vec<(f64, Interval)> =
        grid.iter().filter_map(|h| Some((*h, pair.interval(&inputs.at(*h))?))).collect();
    let cross = |value: &dyn Fn(&Interval) -> f64| {
        let points: Vec<(f64, f64)> = curve.iter().map(|(h, i)| (*h, value(i))).collect();
        where_it_pays(&points, threshold, inputs.hit_ratio)
    };
    let by_hand: Vec<(f64, f64)> = grid.iter().map(|h| (*h, pair.by_hand(&inputs.at(*h)))).collect();
    let bottlenecks =
        per_block.iter().map(|blocks| blocks.values().next().map(|m| inputs.bottleneck(m))).collect();
    let others = (0..comparison.configurations.len())
        .filter(|i| *i != leader && *i != comparison.baseline && workload.cells[*i].decision.is_some())
        .map(|i| {
            let pair = Pair::of(&per_block, comparison, i);
            (i, grid.iter().map(|h| (*h, pair.ratio(&inputs.at(*h)))).collect())
        })
        .collect();
    let field: Vec<BTreeMap<u32, Measured>> = per_block
        .iter()
        .zip(&workload.cells)
        .map(|(row, cell)| if cell.not_compared.is_none() { row.clone() } else { BTreeMap::new() })
        .collect();
    let blocks = field.iter().map(BTreeMap::len).max().unwrap_or(0);
    Ok(Mix {
        map: WinnersMap::of(&inputs, &field, HIT_MAX, &comparison.rule.rule(blocks)),
        pays: cross(&|i| i.value),
        pays_range: (cross(&|i| i.low), cross(&|i| i.high)),
        pays_by_hand: where_it_pays(&by_hand, threshold, inputs.hit_ratio),
        page_cache_break_even: page_cache_break_even(comparison, leader, &pair),
        sensitivity: sensitivity(&inputs, &pair, threshold),
        delta: comparison.rule.delta,
        curve,
        inputs,
        said,
        assumptions,
        workload,
        bottlenecks,
        leader,
        others,
    })
}

/// The winner; else the one with the largest ratio among those shown to be better; else among all.
fn leader(workload: &Workload, baseline: usize) -> Option<usize> {
    if let [only] = workload.best[..]
        && only != baseline
    {
        return Some(only);
    }
    let rank = |i: &usize| {
        let decision = workload.cells[*i].decision.as_ref()?;
        Some((decision.verdict == Verdict::Better, decision.ratio.value))
    };
    (0..workload.cells.len())
        .filter(|i| rank(i).is_some())
        .max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(std::cmp::Ordering::Equal))
}

/// Inputs from the plan, or from the event `mix`, and where they come from; what neither says is assumed, and said to be.
fn inputs(
    evidence: &Evidence,
    comparison: &Comparison,
) -> Result<(Inputs, Vec<String>, Vec<String>), String> {
    let event = evidence.event("mix").unwrap_or(&Value::Null);
    let own = evidence.given.as_ref();
    let given = |key: &str| {
        let own = own.and_then(|given| given.get(key));
        own.or_else(|| event[key].as_f64()).or_else(|| evidence.plan["mix"][key].as_f64())
    };
    let share = |key: &str| given(key).filter(|v| (0.0..=1.0).contains(v));
    let (Some(read_share), Some(hit_ratio)) = (share("read_share"), share("hit_ratio")) else {
        return Err(
            "no mix was given with this run; type --read-share and --hit-ratio with the next one".into()
        );
    };
    let plan = &evidence.plan["mix"];
    let texts = |key: &str| plan[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut said = own.map_or_else(Vec::new, |given| given.said.clone());
    said.extend(texts("said").map(str::to_owned));
    let mut assumptions = Vec::new();
    let nobody = |key: &str| own.is_none_or(|own| own.get(key).is_none()) && event[key].is_null();
    for key in texts("assumed").filter(|key| nobody(key)) {
        assumptions.push(match key {
            "read_share" => {
                format!("reads are {} of the work (--read-share says otherwise)", words::percent(read_share))
            }
            _ => format!(
                "the buffer cache hits {} of the gets (--hit-ratio says otherwise)",
                words::percent(hit_ratio)
            ),
        });
    }
    let mut or = |key: &str, otherwise: f64, words: &str| {
        given(key).filter(|v| *v >= 0.0 && v.is_finite()).unwrap_or_else(|| {
            assumptions.push(words.to_owned());
            otherwise
        })
    };
    let gets = or("gets_per_transaction", GETS, "a transaction gets 40 blocks");
    let commits = or("commits_per_transaction", 1.0, "it commits once");
    let cpu_per_get_ns = or("cpu_per_get_ns", CPU_PER_GET_NS, "each get takes 5 µs of CPU");
    let page_cache_hit_ratio = or(
        "page_cache_hit_ratio",
        0.0,
        "memory belongs to the buffer cache: what misses it misses the page cache too",
    );
    let block_writes = given("block_writes_per_transaction").filter(|w| *w >= 0.0);
    if block_writes.is_none() {
        assumptions.push("a changed block is written once, when it leaves the cache".into());
    }
    let measured = comparison.workload("read-cold").and_then(|w| w.sessions).unwrap_or(1);
    let sessions = given("sessions").filter(|n| *n >= 1.0).map_or(measured, |n| n as u32);
    let known = given("cores").or_else(|| evidence.fact("cpu", "allowed")?.trim().parse().ok());
    let cores = known.filter(|n| *n >= 1.0).unwrap_or_else(|| {
        assumptions.push("there are as many cores as sessions".into());
        f64::from(sessions)
    }) as u32;
    assumptions.push("sessions do not think between transactions".into());
    assumptions.push("reads, log and processors slow each other down under every configuration alike".into());
    assumptions.push("database writers hold sessions up only when they cannot keep up".into());
    let inputs = Inputs {
        read_share,
        hit_ratio,
        page_cache_hit_ratio,
        gets,
        block_writes,
        commits,
        cpu_per_get_ns,
        cores,
        sessions,
    };
    Ok((inputs, said, assumptions))
}

/// Only a question when the baseline uses the page cache, the leader does not, and the leader's reads are faster.
fn page_cache_break_even(comparison: &Comparison, leader: usize, pair: &Pair) -> Option<f64> {
    if !comparison.configurations[comparison.baseline].buffered()
        || comparison.configurations[leader].buffered()
    {
        return None;
    }
    let alone = |curve: &Curve| curve.one.map(|rate| 1e9 / rate);
    let mean = |values: Option<Vec<f64>>| {
        values.filter(|v| !v.is_empty()).map(|v| v.iter().sum::<f64>() / v.len() as f64)
    };
    let r_a = mean(pair.blocks.iter().map(|(old, _)| alone(&old.read)).collect())?;
    let r_b = mean(pair.blocks.iter().map(|(_, new)| alone(&new.read)).collect())?;
    let r_page_cache = pair.blocks.first()?.0.page_cache_ns?;
    let share = stats::mix::second_level_break_even(r_a, r_b, r_page_cache);
    (0.0..1.0).contains(&share).then_some(share)
}

fn sensitivity(inputs: &Inputs, pair: &Pair, threshold: f64) -> Vec<Sensitivity> {
    let pays = pair.ratio(inputs) >= threshold;
    let moved = |input: &'static str, change: &dyn Fn(f64) -> Inputs| {
        let (lower, higher) = (pair.ratio(&change(1.0 - MOVE)), pair.ratio(&change(1.0 + MOVE)));
        Sensitivity {
            input,
            lower,
            higher,
            flips: (lower >= threshold) != pays || (higher >= threshold) != pays,
        }
    };
    let mut all = vec![
        moved("miss ratio of the buffer cache", &|f| {
            inputs.at((1.0 - (1.0 - inputs.hit_ratio) * f).clamp(0.0, 1.0))
        }),
        moved("share of changes", &|f| Inputs {
            read_share: (1.0 - (1.0 - inputs.read_share) * f).clamp(0.0, 1.0),
            ..*inputs
        }),
        moved("commits in a transaction", &|f| Inputs { commits: inputs.commits * f, ..*inputs }),
        moved("blocks that a transaction gets", &|f| Inputs { gets: inputs.gets * f, ..*inputs }),
        moved("CPU time of a get", &|f| Inputs { cpu_per_get_ns: inputs.cpu_per_get_ns * f, ..*inputs }),
    ];
    let strength = |s: &Sensitivity| (s.higher / s.lower).ln().abs();
    all.sort_by(|a, b| strength(b).partial_cmp(&strength(a)).unwrap_or(std::cmp::Ordering::Equal));
    all
}

impl Mix {
    /// Where it pays, in words: `below a buffer cache hit ratio of 99.3 % [99.1 % to 99.5 %]`.
    pub fn where_it_pays(&self) -> String {
        let (low, high) = self.pays_range;
        let end = |pays: Pays, from_side: bool| match pays {
            Pays::Nowhere => "nowhere".to_owned(),
            Pays::Between { from, to } => match (from_side, from, to) {
                (true, Some(h), _) | (false, _, Some(h)) => words::percent(h),
                (true, None, _) => words::percent(0.0),
                (false, _, None) => format!("above {}", words::percent(HIT_MAX)),
            },
        };
        match self.pays {
            Pays::Nowhere => "at no buffer cache hit ratio".into(),
            Pays::Between { from: None, to: None } => {
                format!("at any buffer cache hit ratio up to {}", words::percent(HIT_MAX))
            }
            Pays::Between { from: None, to: Some(h) } => format!(
                "below a buffer cache hit ratio of {} [{} to {}]",
                words::percent(h),
                end(low, false),
                end(high, false)
            ),
            Pays::Between { from: Some(h), to: None } => format!(
                "above a buffer cache hit ratio of {} [{} to {}]",
                words::percent(h),
                end(high, true),
                end(low, true)
            ),
            Pays::Between { from: Some(from), to: Some(to) } => {
                format!(
                    "between buffer cache hit ratios of {} and {}",
                    words::percent(from),
                    words::percent(to)
                )
            }
        }
    }

    /// The hit ratios at which it begins or ceases to pay.
    pub fn break_even(&self) -> Vec<f64> {
        match self.pays {
            Pays::Nowhere => Vec::new(),
            Pays::Between { from, to } => from.into_iter().chain(to).collect(),
        }
    }
}
