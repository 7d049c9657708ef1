//! Comparisons: from visits to values per block, from values per block to verdicts.
//!
//! The unit of evidence is the block (docs/method.md, rule 1). Visits that were not measured, and phases that an
//! integrity rule failed, are left out with their reason and counted. A configuration whose figure is withdrawn is
//! shown, but neither decides nor is decided.

use super::calls::Calls;
use super::database::spent::Spent;
use super::devices::DeviceUse;
use super::doubts::{Doubts, Marks};
use super::evidence::Evidence;
use super::factors::{self, Effects, Proof, Varied};
use super::network::{self, Reads};
use super::nodes::{self, Nodes};
use super::over_time::Stretch;
use super::passes::{self, Passes};
use super::placement::{self, Placement};
use super::shape::Shape;
use super::weighted::{self, Mix};
use record::PhaseRow;
use record::json::Value;
use stats::interval::Interval;
use stats::rank::Ranking;
use stats::verdict::{self, Decision, Rule, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Fewest blocks that a verdict rests on (docs/method.md, 5.2).
const BLOCKS_MIN: usize = 4;
/// A configuration with fewer than this share of the blocks of the best measured one is not compared.
const BLOCKS_SHARE_MIN: f64 = 0.5;

/// A whole comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What was compared, in the order of the plan.
    pub configurations: Vec<Configuration>,
    /// Index of the one that the others are held against.
    pub baseline: usize,
    /// What varies between them.
    pub factors: Vec<Varied>,
    /// Which one move of files pays, where places were varied.
    pub placements: Vec<Placement>,
    /// What a flash cache makes of repeated scans, where that was asked.
    pub passes: Vec<Passes>,
    /// What became of calls, where that was asked.
    pub calls: Calls,
    /// What an NFS server gave over each version, where that was asked.
    pub network: Vec<Reads>,
    /// What storage nodes used and did, where they could be asked.
    pub nodes: Vec<Nodes>,
    /// The workloads, in the order of the plan.
    pub workloads: Vec<Workload>,
    /// The weighted verdict, or why there is none.
    pub mix: Result<Mix, String>,
    /// How verdicts are formed.
    pub rule: Terms,
    /// Blocks that were begun.
    pub blocks: usize,
    /// Seconds of one block.
    pub block_seconds: f64,
    /// Visits and phases that were not used: reason, how many.
    pub left_out: Vec<(String, usize)>,
    /// Configurations that could not run here, with the reason.
    pub not_run: Vec<(String, String)>,
}

/// How verdicts are formed.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Margin of a material difference, 0.03 for 3 %.
    pub delta: f64,
    /// Blocks at which the plan looks.
    pub looks: Vec<usize>,
    /// Two-sided level of each look.
    pub level_per_look: f64,
}

/// One configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Row in the record.
    pub id: i64,
    /// `setall io_uring`.
    pub name: String,
    /// Factor and level.
    pub levels: Vec<(String, String)>,
    /// Open flags as the kernel showed them, where they were read.
    pub flags: Option<String>,
    /// What else was shown to be in force.
    pub proofs: Vec<Proof>,
    /// Visits that were measured, and that were begun.
    pub visits: (usize, usize),
    /// Doubts about the configuration as a whole.
    pub marks: Marks,
}

impl Configuration {
    /// Whether its reads go through the page cache: modes without O_DIRECT.
    pub fn buffered(&self) -> bool {
        match self.levels.iter().find(|(factor, _)| factor == "io") {
            Some((_, level)) => matches!(level.as_str(), "none" | "cached" | "asynch"),
            None => self.flags.as_deref().is_some_and(|flags| !flags.contains("O_DIRECT")),
        }
    }
}

/// One workload under all configurations.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Stable key.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// Unit of its rate.
    pub metric: String,
    /// False for latencies.
    pub higher_is_better: bool,
    /// Sessions, where known.
    pub sessions: Option<u32>,
    /// Belongs on the first page.
    pub headline: bool,
    /// One for each configuration, in their order.
    pub cells: Vec<Cell>,
    /// Configurations that may be the best: indices.
    pub best: Vec<usize>,
    /// Why there is no verdict at all.
    pub undecided: Option<String>,
    /// Who stands where.
    pub ranking: Option<Ranking>,
    /// What the factors do, where several were varied.
    pub effects: Option<Effects>,
}

/// One configuration under one workload.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// One value per block: ordinal of the block, geometric mean of its visits.
    pub blocks: BTreeMap<u32, f64>,
    /// The level, with its interval over blocks.
    pub absolute: Option<Interval>,
    /// Against the baseline; `None` for the baseline itself and where nothing is decided.
    pub decision: Option<Decision>,
    /// Why this cell is not compared.
    pub not_compared: Option<String>,
    /// Its doubts.
    pub marks: Marks,
    /// Its latencies.
    pub shape: Option<Shape>,
    /// Mean latency, nanoseconds.
    pub latency_ns: Option<f64>,
    /// CPU time of one operation, nanoseconds.
    pub cpu_ns: Option<f64>,
    /// Device requests for each request.
    pub device_ops: Option<f64>,
    /// Requests really in flight.
    pub in_flight: Option<f64>,
    /// Share of the threads' time inside submit.
    pub submit_share: Option<f64>,
    /// Where DB time went, where the target is a database that says so.
    pub spent: Option<Spent>,
    /// DB time of one operation, nanoseconds.
    pub db_time_ns: Option<f64>,
    /// Coefficient of variation of the rate from slice to slice.
    pub unsteadiness: Option<f64>,
    /// What the devices beneath counted, each by itself.
    pub devices: Vec<DeviceUse>,
    /// The rate over time, phase after phase.
    pub over_time: Vec<Stretch>,
}

impl Cell {
    /// The verdict's word, where there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        self.decision.as_ref().map(|d| d.verdict)
    }

    /// Whether its figure is withdrawn.
    pub fn withdrawn(&self) -> bool {
        self.marks.withdrawn.is_some()
    }
}

impl Comparison {
    /// From the evidence; `None` when nothing was compared.
    pub fn read(evidence: &Evidence, doubts: &Doubts) -> Option<Self> {
        if evidence.configurations.is_empty() {
            return None;
        }
        let baseline = evidence.configurations.iter().position(|(_, c)| c.is_baseline).unwrap_or(0);
        let mut left_out = BTreeMap::new();
        for visit in evidence.visits.values().filter(|v| v.status != "measured") {
            let reason = visit.drop_reason.as_deref().unwrap_or(match visit.status.as_str() {
                "open" => "the run ended inside the visit",
                other => other,
            });
            *left_out.entry(reason.to_owned()).or_insert(0) += 1;
        }
        let rule = Terms::read(&evidence.plan, evidence.blocks.len());
        let mut comparison = Self {
            configurations: configurations(evidence, doubts),
            baseline,
            factors: factors::varied(evidence),
            placements: Vec::new(),
            passes: Vec::new(),
            calls: Calls::default(),
            network: Vec::new(),
            nodes: Vec::new(),
            workloads: Vec::new(),
            mix: Err(String::new()),
            rule,
            blocks: evidence.blocks.len(),
            block_seconds: block_seconds(evidence),
            left_out: Vec::new(),
            not_run: not_run(evidence),
        };
        for (id, row) in &evidence.workloads {
            let mut workload = about(&row.name, &row.json);
            for configuration in &comparison.configurations {
                let cell = Cell::of(evidence, doubts, configuration, *id, &row.name, &mut left_out);
                workload.cells.push(cell);
            }
            workload.decide(baseline, &comparison.rule);
            if comparison.general() {
                workload.ranking = workload.rank(&comparison.rule);
                workload.effects = workload.effects(&comparison.points(), baseline, &comparison.rule);
            }
            comparison.workloads.push(workload);
        }
        comparison.placements = placement::read(&comparison);
        comparison.passes = passes::read(evidence, &comparison);
        comparison.calls = Calls::read(evidence, &comparison);
        comparison.network = network::read(evidence, &comparison);
        comparison.nodes = nodes::read(evidence, &comparison);
        comparison.left_out = left_out.into_iter().collect();
        comparison.mix = weighted::mix(evidence, &comparison);
        Some(comparison)
    }

    /// Name of the baseline.
    pub fn baseline_name(&self) -> &str {
        &self.configurations[self.baseline].name
    }

    /// Name of a configuration inside a sentence: `mode none`, because "none" alone reads as a word.
    pub fn said(&self, index: usize) -> String {
        match self.configurations[index].name.as_str() {
            "none" => "mode none".into(),
            name => name.into(),
        }
    }

    /// The workload of that name.
    pub fn workload(&self, name: &str) -> Option<&Workload> {
        self.workloads.iter().find(|w| w.name == name)
    }

    /// How long `blocks` more blocks would take, seconds.
    pub fn seconds_for(&self, blocks: usize) -> f64 {
        blocks as f64 * self.block_seconds
    }
}

impl Terms {
    /// As the plan says; the planned looks of the method when it says nothing.
    fn read(plan: &Value, blocks: usize) -> Self {
        let planned = Rule::planned(blocks.max(4));
        let looks: Vec<usize> = plan["looks"]
            .as_array()
            .map(|looks| looks.iter().filter_map(|l| l.as_u64().map(|l| l as usize)).collect())
            .unwrap_or_default();
        Self {
            delta: plan["delta"].as_f64().unwrap_or(planned.delta),
            looks: if looks.is_empty() { planned.looks } else { looks },
            level_per_look: plan["level_per_look"].as_f64().unwrap_or(planned.level_per_look),
        }
    }

    /// As `stats` wants it, for `blocks` blocks. A plan with one look, at its end, spends its error there whether or not a
    /// dropped visit or an interruption left fewer blocks, so the look moves to where the run ended.
    pub fn rule(&self, blocks: usize) -> Rule {
        let looks = match self.looks[..] {
            [only] => vec![blocks.clamp(BLOCKS_MIN.min(only), only.max(BLOCKS_MIN))],
            _ => self.looks.clone(),
        };
        Rule { delta: self.delta, looks, level_per_look: self.level_per_look }
    }
}

fn configurations(evidence: &Evidence, doubts: &Doubts) -> Vec<Configuration> {
    let flags = |id: i64| {
        let of_configuration = |p: &&(i64, PhaseRow)| {
            evidence.visits.get(&p.1.visit_id).is_some_and(|v| v.configuration_id == Some(id))
        };
        evidence.phases.iter().filter(of_configuration).find_map(|(_, p)| p.proof.clone())
    };
    let visits = |id: i64| {
        let of = || evidence.visits.values().filter(move |v| v.configuration_id == Some(id));
        (of().filter(|v| v.status == "measured").count(), of().count())
    };
    evidence
        .configurations
        .iter()
        .map(|(id, row)| Configuration {
            id: *id,
            name: row.name.clone(),
            levels: row.levels.iter().map(|(factor, level, _)| (factor.clone(), level.clone())).collect(),
            flags: flags(*id),
            proofs: factors::proofs(evidence, *id, &row.name),
            visits: visits(*id),
            marks: doubts.of_configuration(*id),
        })
        .collect()
}

fn not_run(evidence: &Evidence) -> Vec<(String, String)> {
    let text = |json: &Value, key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let left_out = evidence.events.iter().filter(|e| e.kind == "left_out");
    left_out.map(|e| (text(&e.json, "configuration"), text(&e.json, "reason"))).collect()
}

/// Median of the distances between the beginnings of blocks; the whole span when there is only one.
fn block_seconds(evidence: &Evidence) -> f64 {
    let mut begins: BTreeMap<i64, u64> = BTreeMap::new();
    for visit in evidence.visits.values() {
        if let Some(block) = visit.block_id {
            let begin = begins.entry(block).or_insert(visit.start_ns);
            *begin = (*begin).min(visit.start_ns);
        }
    }
    let mut begins: Vec<u64> = begins.into_values().collect();
    begins.extend(evidence.phases.iter().map(|(_, p)| p.end_ns).max());
    begins.sort_unstable();
    let mut steps: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e9)
}

fn about(name: &str, json: &Value) -> Workload {
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let title = text("title");
    Workload {
        name: name.to_owned(),
        title: if title.is_empty() { name.to_owned() } else { title },
        question: text("question"),
        metric: text("metric"),
        higher_is_better: json["higher_is_better"].as_bool().unwrap_or(true),
        sessions: json["sessions"].as_u64().map(|n| n as u32),
        headline: json["headline"].as_bool().unwrap_or(false),
        cells: Vec::new(),
        best: Vec::new(),
        undecided: None,
        ranking: None,
        effects: None,
    }
}

/// exp of the mean logarithm; `values` are positive and not empty.
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

impl Workload {
    /// Decides every configuration against the baseline, on the blocks that all of them have.
    pub fn decide(&mut self, baseline: usize, terms: &Terms) {
        let most = self.cells.iter().map(|cell| cell.blocks.len()).max().unwrap_or(0);
        for cell in &mut self.cells {
            cell.not_compared = if let Some(reason) = &cell.marks.withdrawn {
                Some(format!("withdrawn: {reason}"))
            } else if cell.blocks.is_empty() {
                Some("not measured".to_owned())
            } else if (cell.blocks.len() as f64) < most as f64 * BLOCKS_SHARE_MIN {
                Some(format!("measured in {} of {most} blocks only", cell.blocks.len()))
            } else {
                None
            };
        }
        let (alive, common) = self.alive(baseline, most, terms);
        if let Some(reason) = &self.cells[baseline].not_compared {
            self.undecided = Some(format!("the baseline cannot be used ({reason})"));
            return;
        }
        if common.len() < 2 {
            self.undecided = Some(format!(
                "only {} of the blocks hold every configuration; a verdict needs 2 or more",
                common.len()
            ));
            return;
        }
        let values =
            |i: usize| -> Vec<f64> { common.iter().map(|block| self.cells[i].blocks[block]).collect() };
        let others: Vec<usize> = alive.iter().copied().filter(|i| *i != baseline).collect();
        let rule = terms.rule(common.len());
        let their: Vec<Vec<f64>> = others.iter().map(|i| values(*i)).collect();
        let decisions = verdict::decide_all(&values(baseline), &their, self.higher_is_better, &rule);
        let all: Vec<Vec<f64>> = alive.iter().map(|i| values(*i)).collect();
        self.best =
            verdict::best_set(&all, self.higher_is_better, &rule).into_iter().map(|i| alive[i]).collect();
        for (i, decision) in others.into_iter().zip(decisions) {
            self.cells[i].decision = Some(decision);
        }
    }

    /// Who is compared, and on which blocks. When a few missing blocks of some would leave too few for all, those some are
    /// left out instead.
    fn alive(&mut self, baseline: usize, most: usize, terms: &Terms) -> (Vec<usize>, BTreeSet<u32>) {
        loop {
            let compared = |i: &usize| self.cells[*i].not_compared.is_none();
            let alive: Vec<usize> = (0..self.cells.len()).filter(compared).collect();
            let common = common_blocks(alive.iter().map(|i| &self.cells[*i]));
            let first_look = terms.rule(BLOCKS_MIN).looks.first().copied().unwrap_or(BLOCKS_MIN);
            let others = alive.iter().copied().filter(|i| *i != baseline);
            let shortest = others.min_by_key(|i| self.cells[*i].blocks.len());
            let possible = self.cells[baseline].blocks.len().min(most) >= first_look;
            match shortest {
                Some(i) if possible && common.len() < first_look && self.cells[i].blocks.len() < most => {
                    let have = self.cells[i].blocks.len();
                    self.cells[i].not_compared = Some(format!("measured in {have} of {most} blocks only"));
                }
                _ => return (alive, common),
            }
        }
    }

    /// What one operation is called: `commit`, `read`; `operation` where the unit names none.
    pub fn one_operation(&self) -> &str {
        self.metric.strip_suffix("s/s").filter(|_| self.metric != "MB/s").unwrap_or("operation")
    }

    /// Notes of all its cells.
    pub fn notes(&self) -> BTreeSet<usize> {
        self.cells.iter().flat_map(|cell| cell.marks.notes.iter().copied()).collect()
    }
}

/// Ordinals of the blocks that all `cells` have.
pub fn common_blocks<'c>(cells: impl Iterator<Item = &'c Cell>) -> BTreeSet<u32> {
    cells
        .map(|cell| cell.blocks.keys().copied().collect::<BTreeSet<u32>>())
        .reduce(|a, b| a.intersection(&b).copied().collect())
        .unwrap_or_default()
}
