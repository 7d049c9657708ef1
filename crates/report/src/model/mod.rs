//! The model: everything that a report says, computed from one record.
//!
//! The road: [`evidence`] reads the rows; [`doubts`] says which figures may be believed; [`compare`] and [`weighted`]
//! decide (arithmetic of the network: [`mix`]), [`factors`], [`placement`] and [`passes`] where more than modes were varied ([`ranked`] says it); [`database`] says what the embedded database saw of a run; [`curve`], [`shape`] and
//! [`timeline`] prepare what is drawn; [`sentence`] says it; [`side`] puts several runs beside each other. Nothing below this folder looks into a record.

pub mod advice;
pub mod calls;
mod cell;
pub mod compare;
pub mod curve;
pub mod database;
pub mod devices;
pub mod dnfs;
pub mod doubts;
pub mod evidence;
pub mod factors;
pub mod given;
pub mod mix;
pub mod network;
pub mod nodes;
pub mod over_time;
pub mod passes;
pub mod placement;
mod profile;
pub mod ranked;
pub mod sentence;
pub mod shape;
pub mod side;
pub mod timeline;
pub mod trace;
pub mod weighted;
pub mod winners;

use crate::ReportError;
use crate::words;
use advice::Advice;
use compare::Comparison;
use curve::Curve;
use database::Database;
use doubts::{Doubts, Marks};
use evidence::Evidence;
use given::Given;
use record::json::Value;
use record::{CheckRow, FactRow, Reader};
use sentence::Answer;
use shape::Shape;
use timeline::TimeLine;

/// One run, ready to be told.
#[derive(Clone, Debug)]
pub struct Model {
    /// What was run.
    pub run: Run,
    /// What is said first.
    pub answer: Answer,
    /// Calibrated figures in the order of the record.
    pub figures: Vec<Figure>,
    /// Load → latency curves.
    pub curves: Vec<Curve>,
    /// The comparison, where configurations were compared.
    pub comparison: Option<Comparison>,
    /// What the database saw, where one configuration was run.
    pub database: Option<Database>,
    /// What our own NFS client saw, where an export was used.
    pub dnfs: Option<dnfs::Dnfs>,
    /// What a flash cache would be worth, where that was asked.
    pub advice: Option<Advice>,
    /// What processes asked of the kernel, where they were traced.
    pub trace: Option<trace::Trace>,
    /// Broken rules, and those that held.
    pub doubts: Doubts,
    /// About the machine.
    pub facts: Vec<FactRow>,
    /// The run on one time axis.
    pub time_line: Option<TimeLine>,
}

/// What was run, when and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name of the record's file.
    pub name: String,
    /// `calibrate`, `compare`.
    pub kind: String,
    /// The case, where one was named.
    pub case: Option<String>,
    /// What was measured.
    pub target: String,
    /// `ext4 on vda`, as far as it is known.
    pub storage: Option<String>,
    /// As typed.
    pub command: String,
    /// RFC 3339.
    pub started_utc: String,
    /// From the first to the last measurement, seconds.
    pub seconds: f64,
    /// What the user allowed, seconds.
    pub budget_seconds: f64,
    /// `finished`, `interrupted`, `running`, `failed: …`.
    pub status: String,
    /// Where chance came from.
    pub seed: u64,
    /// Version of the method.
    pub method_version: String,
    /// Version of Redoubt.
    pub tool_version: String,
    /// `release` or `debug`.
    pub build_profile: String,
    /// Hash of the plan.
    pub plan_sha256: Option<String>,
    /// Bytes of the data that was measured, where the plan says so.
    pub data_bytes: Option<f64>,
    /// Database block, bytes, where the plan says so.
    pub block_bytes: Option<f64>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<f64>,
    /// What had to be durable before it counted.
    pub durability: Option<String>,
    /// Kind of file system, or of device.
    pub target_kind: Option<String>,
    /// The plan's other settings of a run, as they are read: name and value.
    pub settings: Vec<(String, String)>,
}

/// One calibrated figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Stable key: `read_iops_max`.
    pub key: String,
    /// For people.
    pub label: String,
    /// The level.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Confidence level of the interval.
    pub level: Option<f64>,
    /// Independent values behind it.
    pub n: u64,
    /// Unit.
    pub unit: String,
    /// Steady-state class of its window.
    pub steady: Option<String>,
    /// What must be known beside the number.
    pub note: Option<String>,
    /// Mean latency, nanoseconds.
    pub latency_ns: Option<f64>,
    /// 99th percentile, nanoseconds.
    pub latency_p99_ns: Option<f64>,
    /// Requests in flight at the operating point.
    pub in_flight: Option<u32>,
    /// Threads there.
    pub threads: Option<u32>,
    /// Its doubts.
    pub marks: Marks,
    /// Its latencies.
    pub shape: Option<Shape>,
}

impl Model {
    /// Reads a record and computes everything.
    ///
    /// # Errors
    /// [`ReportError::Record`] when it cannot be read.
    pub fn read(reader: &Reader) -> Result<Self, ReportError> {
        Self::read_with(reader, None)
    }

    /// The same with the user's own mix in place of the one that the run was given.
    ///
    /// # Errors
    /// As [`Model::read`].
    pub fn read_with(reader: &Reader, given: Option<&Given>) -> Result<Self, ReportError> {
        let evidence = Evidence { given: given.cloned(), ..Evidence::read(reader)? };
        Ok(Self::of(&evidence))
    }

    /// Computes everything from the rows of a record.
    pub fn of(evidence: &Evidence) -> Self {
        let mut checks = evidence.checks.clone();
        checks.extend(database::checks::checks(evidence));
        let doubts = Doubts::gather(&checks, |check| subject(evidence, check));
        let is_run = evidence.experiment.kind == "run";
        let compares = !is_run && !["advise", "trace"].contains(&evidence.experiment.kind.as_str());
        let database = Database::read(evidence, &doubts);
        let mut figures = figures(evidence, &doubts);
        let told = |key: &str| evidence.estimates.iter().any(|e| e.metric == key);
        let works = database.iter().flat_map(|d| &d.works).filter(|work| !told(&work.name));
        figures.extend(works.map(Figure::of_work));
        let mut model = Self {
            run: Run::of(evidence),
            answer: Answer::default(),
            figures,
            curves: Curve::read_all(evidence),
            comparison: if compares { Comparison::read(evidence, &doubts) } else { None },
            facts: evidence.facts.clone(),
            time_line: if compares { TimeLine::read(evidence) } else { None },
            database,
            dnfs: dnfs::Dnfs::of(&evidence.dnfs),
            advice: Advice::read(evidence),
            trace: trace::Trace::read(evidence),
            doubts,
        };
        model.answer = sentence::answer(&model);
        model
    }

    /// The steady-state class that most figures have: said once instead of beside each of them.
    pub fn steady_of_most(&self) -> Option<&str> {
        let all: Vec<&str> = self.figures.iter().filter_map(|f| f.steady.as_deref()).collect();
        let count = |class: &str| all.iter().filter(|other| **other == class).count();
        let most = all.iter().copied().max_by_key(|class| count(class))?;
        (count(most) * 2 > self.figures.len()).then_some(most)
    }

    /// The figure of that key.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| f.key == key)
    }
}

impl Figure {
    /// The rate of a workload of a run, so that two runs can stand side by side.
    fn of_work(work: &database::work::Work) -> Self {
        Self {
            key: work.name.clone(),
            label: work.title.clone(),
            value: work.rate.value,
            interval: work.rate.interval,
            level: work.rate.interval.map(|_| 0.95),
            n: work.phases.len() as u64,
            unit: work.metric.clone(),
            steady: work.steady.clone(),
            note: work.rate.basis.as_ref().map(|basis| format!("over {basis}")),
            latency_ns: work.latency_ns,
            latency_p99_ns: work.shape.as_ref().and_then(|shape| shape.p99_ns),
            in_flight: None,
            threads: Some(work.sessions),
            marks: work.marks.clone(),
            shape: work.shape.clone(),
        }
    }
}

impl Run {
    fn of(evidence: &Evidence) -> Self {
        let e = &evidence.experiment;
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let seconds = evidence.span_ns().map_or(0.0, |(from, to)| (to - from) as f64 / 1e9);
        let file_system = evidence.fact("filesystem", "type").map(str::to_owned);
        let device = evidence.facts.iter().find(|f| f.layer == "device").map(|f| f.object.clone());
        let storage = match (&file_system, &device) {
            (Some(kind), Some(device)) => Some(format!("{kind} on {device}")),
            (Some(kind), None) => Some(kind.clone()),
            (None, Some(device)) => Some(format!("device {device}")),
            (None, None) => None,
        };
        let plan = &evidence.plan;
        Self {
            name: evidence.name.clone(),
            kind: e.kind.clone(),
            case: e.case.clone(),
            target: e.target.clone(),
            storage,
            command: e.command.clone(),
            started_utc: e.started_utc.clone(),
            seconds,
            budget_seconds: e.budget_seconds,
            status: evidence.status.clone(),
            seed: e.seed,
            method_version: e.method_version.clone(),
            tool_version: e.tool_version.clone(),
            build_profile: e.build_profile.clone(),
            plan_sha256: evidence.plan_sha256.clone(),
            data_bytes: plan["data_bytes"].as_f64(),
            block_bytes: plan["block_bytes"].as_f64(),
            memory_bytes: evidence.fact("memory", "total").and_then(number),
            durability: plan["durability"].as_str().map(str::to_owned),
            target_kind: file_system,
            settings: if e.kind == "run" { settings(plan) } else { Vec::new() },
        }
    }
}

/// What the plan says beside what is told elsewhere.
fn settings(plan: &Value) -> Vec<(String, String)> {
    const ELSEWHERE: [&str; 6] =
        ["case", "configuration", "data_bytes", "block_bytes", "durability", "seconds"];
    let value = |name: &str, value: &Value| -> Option<String> {
        match value {
            Value::Number(n) if name.ends_with("_bytes") => Some(units::Bytes(n.as_u64()?).to_string()),
            Value::Number(n) => Some(n.to_string()),
            Value::String(text) => Some(text.clone()),
            Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.to_owned()),
            Value::Array(pairs) if !pairs.is_empty() => {
                let pair = |pair: &Value| Some(format!("{} = {}", pair[0].as_str()?, pair[1].as_str()?));
                Some(pairs.iter().map(pair).collect::<Option<Vec<_>>>()?.join(", "))
            }
            _ => None,
        }
    };
    let all = plan.as_object().into_iter().flatten();
    let told = all.filter(|(name, _)| !ELSEWHERE.contains(&name.as_str()));
    told.filter_map(|(name, v)| {
        let shown = name.strip_suffix("_bytes").unwrap_or(name).replace('_', " ");
        Some((words::capital(&shown), value(name, v)?))
    })
    .collect()
}

fn figures(evidence: &Evidence, doubts: &Doubts) -> Vec<Figure> {
    let shape = |metric: &str| {
        let of_metric = evidence
            .phases
            .iter()
            .filter(|(_, p)| p.kind == "measure" && evidence.workload_name(p.workload_id) == metric);
        Shape::of(&shape::merged(evidence, of_metric.map(|(id, _)| *id)))
    };
    evidence
        .estimates
        .iter()
        .filter(|e| e.configuration_id.is_none())
        .map(|e| Figure {
            key: e.metric.clone(),
            label: e.label.clone(),
            value: e.value,
            interval: e.low.zip(e.high),
            level: e.level,
            n: e.n,
            unit: e.unit.clone(),
            steady: e.steady.clone(),
            note: e.note.clone(),
            latency_ns: e.latency_ns,
            latency_p99_ns: e.latency_p99_ns,
            in_flight: e.in_flight,
            threads: e.threads,
            marks: doubts.of_figure(&e.metric),
            shape: shape(&e.metric),
        })
        .collect()
}

/// What a check is about, in words.
fn subject(evidence: &Evidence, check: &CheckRow) -> String {
    match (check.scope.as_str(), check.scope_id) {
        ("run", _) => String::new(),
        ("figure", _) => {
            let label =
                evidence.estimates.iter().find(|e| e.metric == check.subject).map(|e| e.label.clone());
            label.unwrap_or_else(|| check.subject.clone())
        }
        ("phase", Some(id)) if check.subject.is_empty() => {
            let phase = evidence.phases.iter().find(|(phase, _)| *phase == id);
            phase.map_or_else(String::new, |(_, p)| evidence.workload_name(p.workload_id).to_owned())
        }
        _ => check.subject.clone(),
    }
}
