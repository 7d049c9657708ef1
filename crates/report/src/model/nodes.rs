//! What the storage nodes behind an export used and did under each configuration, and what a wrong way costs: from the events `nodes`, one a
//! trial.

use super::compare::Comparison;
use super::evidence::Evidence;
use crate::words;
use record::json::Value;
use stats::interval::{self, Interval};
use std::collections::BTreeMap;

/// Confidence level of ratios of data on another node to data on the node that was mounted.
const LEVEL: f64 = 0.95;
/// The workloads whose figures make the sentence: of all sessions, and of one.
const READS: &str = "read-cold";
const LONE: &str = "read-cold-1";
/// From this share of requests on they went through the wrong node; below the other, they did not.
const WRONG_MIN: f64 = 0.5;
const RIGHT_MAX: f64 = 0.02;

/// All nodes under one configuration and workload; sums over the trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Nodes {
    /// Index of the configuration.
    pub configuration: usize,
    /// Index of the workload.
    pub workload: usize,
    /// What shares of processor time are of.
    pub processors: String,
    /// Each of them.
    pub nodes: Vec<Node>,
    /// Requests of the client.
    pub requests: f64,
    /// Processor time of all nodes for a request, by block, nanoseconds.
    pub cpu_by_block: BTreeMap<u32, f64>,
    /// Clients' transfers, and those that one node passed on to another.
    pub transfers: Option<(f64, f64)>,
    /// Moves that were made on purpose meanwhile.
    pub moves: Option<Moves>,
}

/// One node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// `A` …
    pub name: String,
    /// Processor time, seconds.
    pub cpu_seconds: f64,
    /// Processor time that there was, seconds.
    pub processor_seconds: f64,
    /// Bytes that it sent and received.
    pub sent: f64,
    /// See `sent`.
    pub received: f64,
    /// Time, seconds.
    pub seconds: f64,
}

/// Moves of data under a load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moves {
    /// How often the data went to another node.
    pub made: u64,
    /// How often the client went after it.
    pub followed: u64,
    /// Longest that its requests waited for that, nanoseconds.
    pub stall_max_ns: f64,
}

impl Node {
    /// Share of its processors, 0 to 1.
    pub fn cpu_share(&self) -> f64 {
        self.cpu_seconds / self.processor_seconds.max(1e-9)
    }

    /// Bytes a second, both ways.
    pub fn bytes_per_second(&self) -> f64 {
        (self.sent + self.received) / self.seconds.max(1e-9)
    }
}

impl Nodes {
    /// Processor time of `node` for a request, nanoseconds.
    pub fn cpu_ns(&self, node: &Node) -> f64 {
        node.cpu_seconds * 1e9 / self.requests.max(1.0)
    }

    /// The same of all of them.
    pub fn cpu_ns_all(&self) -> f64 {
        self.nodes.iter().map(|node| self.cpu_ns(node)).sum()
    }

    /// Share of clients' transfers that went through the wrong node, 0 to 1.
    pub fn wrong_share(&self) -> Option<f64> {
        // One that is in two pieces may be passed on twice.
        self.transfers.map(|(all, passed)| (passed / all.max(1.0)).min(1.0))
    }

    fn add(&mut self, trial: &Value, block: Option<u32>) {
        let requests = number(&trial["requests"]);
        let (mut cpu, mut all, mut passed) = (0.0, Some(0.0), 0.0);
        for json in trial["nodes"].as_array().into_iter().flatten() {
            let name = json["name"].as_str().unwrap_or_default();
            let at = self.nodes.iter().position(|node| node.name == name).unwrap_or_else(|| {
                self.nodes.push(Node { name: name.into(), ..Node::default() });
                self.nodes.len() - 1
            });
            let (node, used) = (&mut self.nodes[at], number(&json["cpu_seconds"]));
            node.cpu_seconds += used;
            node.processor_seconds += number(&json["processor_seconds"]);
            node.sent += number(&json["sent_bytes"]);
            node.received += number(&json["received_bytes"]);
            node.seconds += number(&json["seconds"]);
            cpu += used;
            all = all.zip(json["transfers"].as_f64()).map(|(sum, more)| sum + more);
            passed += number(&json["forwarded"]);
        }
        self.requests += requests;
        if let Some(block) = block.filter(|_| requests > 0.0) {
            self.cpu_by_block.insert(block, cpu * 1e9 / requests);
        }
        self.transfers = match (self.transfers, all) {
            (Some((sum, wrong)), Some(all)) => Some((sum + all, wrong + passed)),
            _ => None,
        };
        if let Some(json) = trial.get("moves").filter(|moves| !moves.is_null()) {
            let moves = self.moves.get_or_insert_default();
            moves.made += json["made"].as_u64().unwrap_or(0);
            moves.followed += json["followed"].as_u64().unwrap_or(0);
            moves.stall_max_ns = moves.stall_max_ns.max(number(&json["stall_max_ns"]));
        }
    }
}

fn number(json: &Value) -> f64 {
    json.as_f64().unwrap_or(0.0)
}

/// Those of a comparison, by workload and configuration; none where no node could be asked.
pub fn read(evidence: &Evidence, comparison: &Comparison) -> Vec<Nodes> {
    let mut found: BTreeMap<(usize, usize), Nodes> = BTreeMap::new();
    for event in evidence.events.iter().filter(|event| event.kind == "nodes") {
        let phase = event.json["phase"].as_i64();
        let phase = evidence.phases.iter().find(|(id, _)| Some(*id) == phase);
        let place = phase.and_then(|(_, phase)| {
            let visit = evidence.visits.get(&phase.visit_id).filter(|visit| visit.status == "measured")?;
            let name = &evidence.workloads.iter().find(|(id, _)| *id == phase.workload_id)?.1.name;
            let block = visit.block_id.and_then(|id| Some(evidence.blocks.get(&id)?.ordinal));
            Some((
                comparison.workloads.iter().position(|w| w.name == *name)?,
                comparison.configurations.iter().position(|c| Some(c.id) == visit.configuration_id)?,
                block,
            ))
        });
        let Some((workload, configuration, block)) = place else { continue };
        let nodes = found.entry((workload, configuration)).or_insert_with(|| Nodes {
            configuration,
            workload,
            processors: event.json["processors"].as_str().unwrap_or_default().into(),
            nodes: Vec::new(),
            requests: 0.0,
            cpu_by_block: BTreeMap::new(),
            transfers: Some((0.0, 0.0)),
            moves: None,
        });
        nodes.add(&event.json, block);
    }
    found.into_values().collect()
}

/// Data on another node than the one that was mounted, against data on that one.
struct Away {
    version: String,
    /// Mean latency of one session alone on both, nanoseconds.
    lone_ns: Option<(f64, f64)>,
    rate: Interval,
    cpu: Interval,
    wrong_share: f64,
}

/// What the wrong way costs with each version, whether the client follows, and what a move under load did; nothing where data was not on
/// several nodes.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let away = away(comparison);
    if away.is_empty() {
        return Vec::new();
    }
    let ratio =
        |it: &Interval| format!("{} × {}", words::ratio(it.value), words::ratio_interval(it.low, it.high));
    let costs = |it: &&Away| it.wrong_share >= WRONG_MIN;
    let wrong = away.iter().filter(costs).enumerate().map(|(place, it)| {
        let (version, rate, cpu) = (&it.version, ratio(&it.rate), ratio(&it.cpu));
        let lone = it.lone_ns.map(|(old, new)| format!("{} instead of {}", words::latency(new), words::latency(old)));
        // What the figures are of is said with the first version.
        match (place, lone) {
            (0, Some(lone)) => format!(
                "a lone read by {version} takes {lone}, the sessions read at {rate} the rate, and the nodes use {cpu} the processor time per read"
            ),
            (0, None) => {
                format!("sessions read by {version} at {rate} the rate, and the nodes use {cpu} the processor time per read")
            }
            (_, Some(lone)) => format!("by {version} {lone}, {rate}, {cpu}"),
            (_, None) => format!("by {version} {rate}, {cpu}"),
        }
    });
    let wrong: Vec<String> = wrong.collect();
    let mut all = Vec::new();
    if !wrong.is_empty() {
        all.push(format!("Through the wrong node {}.", wrong.join("; ")));
    }
    all.extend(away.iter().filter(|it| !costs(it)).map(|it| {
        let verdict = if it.wrong_share <= RIGHT_MAX { "goes where the data is" } else { "follows the data only in part" };
        format!(
            "{} {verdict}: {} of its requests went through the wrong node, at {} the rate and {} the processor time.",
            it.version,
            words::share(it.wrong_share),
            ratio(&it.rate),
            ratio(&it.cpu)
        )
    }));
    all.extend(moves(comparison));
    all
}

fn away(comparison: &Comparison) -> Vec<Away> {
    let of = |configuration: usize| {
        let reads = |nodes: &&Nodes| {
            nodes.configuration == configuration && comparison.workloads[nodes.workload].name == READS
        };
        comparison.nodes.iter().find(reads)
    };
    let Some(reads) = comparison.workload(READS) else { return Vec::new() };
    let level = |index: usize, factor| comparison.configurations[index].level(factor);
    let all = 0..comparison.configurations.len();
    let pairs = all.clone().filter_map(|home| {
        let version = level(home, "nfs")?;
        let first = level(home, "node").filter(|node| *node == "A")?;
        let other = all.clone().find(|other| {
            level(*other, "nfs").as_ref() == Some(&version)
                && level(*other, "node").is_some_and(|node| node != first)
        })?;
        let (here, there) = (of(home)?, of(other)?);
        let (old, new) = (&reads.cells[home], &reads.cells[other]);
        if old.withdrawn() || new.withdrawn() {
            return None;
        }
        let lone = comparison.workload(LONE);
        let latency = |index: usize| lone.and_then(|lone| lone.cells[index].latency_ns);
        Some(Away {
            lone_ns: latency(home).zip(latency(other)),
            version: title(&version).to_owned(),
            rate: paired(&old.blocks, &new.blocks)?,
            cpu: paired(&here.cpu_by_block, &there.cpu_by_block)?,
            wrong_share: there.wrong_share()?,
        })
    });
    pairs.collect()
}

/// As people call it.
fn title(version: &str) -> &str {
    match version {
        "v3" => "NFSv3",
        "v4.0" => "NFSv4.0",
        "v4.1" => "NFSv4.1",
        "pnfs" => "pNFS",
        other => other,
    }
}

fn paired(old: &BTreeMap<u32, f64>, new: &BTreeMap<u32, f64>) -> Option<Interval> {
    let both = old.iter().filter_map(|(block, old)| Some((*old, *new.get(block)?)));
    let (old, new): (Vec<f64>, Vec<f64>) = both.unzip();
    interval::ratio(&old, &new, LEVEL).ok()
}

/// `While the data moved under load, pNFS followed 48 of 48 moves; its requests waited 4.2 ms at the longest.`
fn moves(comparison: &Comparison) -> Vec<String> {
    let mut by_version: BTreeMap<String, (Moves, f64, f64)> = BTreeMap::new();
    for nodes in &comparison.nodes {
        let version = comparison.configurations[nodes.configuration].level("nfs");
        let (Some(version), Some(moves)) = (version, nodes.moves) else { continue };
        let (sum, all, passed) = by_version.entry(version).or_default();
        sum.made += moves.made;
        sum.followed += moves.followed;
        sum.stall_max_ns = sum.stall_max_ns.max(moves.stall_max_ns);
        let (more, wrong) = nodes.transfers.unwrap_or_default();
        (*all, *passed) = (*all + more, *passed + wrong);
    }
    let told = |(version, (moves, all, passed)): (&String, &(Moves, f64, f64))| {
        let wrong = words::share(passed / all.max(1.0));
        let version = title(version);
        match moves.followed {
            0 => format!(
                "{version} stayed at the node that was mounted ({wrong} of its requests through the wrong one)"
            ),
            followed => format!(
                "{version} followed {followed} of {} moves, its requests waited {} at the longest ({wrong} through the wrong node)",
                moves.made,
                words::latency(moves.stall_max_ns)
            ),
        }
    };
    let all: Vec<String> = by_version.iter().map(told).collect();
    match all.is_empty() {
        true => Vec::new(),
        false => vec![format!("While the data moved under load, {}.", all.join("; "))],
    }
}
