//! One workload of a run: how fast, how long each transaction took, where the time went, what it cost.

use super::rate::{self, Rate};
use super::spent::Spent;
use crate::model::doubts::{Doubts, Marks};
use crate::model::evidence::Evidence;
use crate::model::shape::{self, Shape};
use record::{FileStatRow, PhaseRow};
use stats::histogram::Histogram;
use std::collections::BTreeMap;

/// A minute of the busiest-minute figure, seconds.
const MINUTE: f64 = 60.0;

/// A workload over its measured phases.
#[derive(Clone, Debug)]
pub struct Work {
    /// Stable key: `commit`, `growth-write` ….
    pub name: String,
    /// For people.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// Unit of its rate.
    pub metric: String,
    /// Sessions that did it.
    pub sessions: u32,
    /// Belongs into the first sentence.
    pub headline: bool,
    /// How fast.
    pub rate: Rate,
    /// Measured time, seconds.
    pub seconds: f64,
    /// Completed operations.
    pub ops: u64,
    /// Those that failed.
    pub errors: u64,
    /// Mean latency, nanoseconds.
    pub latency_ns: Option<f64>,
    /// All latencies.
    pub shape: Option<Shape>,
    /// Latencies by kind of transaction, in the order of the record.
    pub kinds: Vec<Kind>,
    /// Transactions of the busiest minute, where the run was longer than that.
    pub busiest_minute: Option<f64>,
    /// Where DB time went.
    pub spent: Option<Spent>,
    /// What the files saw, the busiest first.
    pub files: Vec<FileLine>,
    /// Counters of the database (`v$sysstat`) over the measured time.
    pub statistics: BTreeMap<String, f64>,
    /// Steady-state class, where all phases agree.
    pub steady: Option<String>,
    /// Open flags as the kernel showed them.
    pub proof: Option<String>,
    /// Its doubts.
    pub marks: Marks,
    /// Its measured phases.
    pub phases: Vec<i64>,
}

/// A kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Completed.
    pub count: u64,
    /// Failed.
    pub errors: u64,
    /// Share of all completed ones, 0–1.
    pub share: f64,
    /// Its latencies.
    pub shape: Shape,
}

/// Requests of one kind and size to one file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their time, nanoseconds.
    pub ns: u64,
}

impl Requests {
    fn add(&mut self, count: u64, bytes: u64, ns: u64) {
        *self = Self { count: self.count + count, bytes: self.bytes + bytes, ns: self.ns + ns };
    }

    /// Both together.
    pub fn with(self, other: Self) -> Self {
        Self { count: self.count + other.count, bytes: self.bytes + other.bytes, ns: self.ns + other.ns }
    }

    /// Mean time of a request, nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.ns as f64 / self.count as f64)
    }
}

/// One file of the database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileLine {
    /// `Data File`, `Log File` ….
    pub file_type: String,
    /// Where it is; empty where the record does not say.
    pub path: String,
    /// Absolute file number; 0 for redo and control files.
    pub file_no: u32,
    /// Reads of up to 128 KiB, and larger ones.
    pub reads: [Requests; 2],
    /// Writes of up to 128 KiB, and larger ones.
    pub writes: [Requests; 2],
}

impl FileLine {
    /// The last part of its path; its type where there is none.
    pub fn name(&self) -> &str {
        let last = self.path.rsplit(['/', '\\']).next().unwrap_or_default();
        if last.is_empty() { &self.file_type } else { last }
    }
}

impl Work {
    /// Every workload that was measured, in the order of the record.
    pub fn read_all(evidence: &Evidence, doubts: &Doubts) -> Vec<Self> {
        let measured = |workload: i64| -> Vec<(i64, &PhaseRow)> {
            let of_workload = |p: &&(i64, PhaseRow)| p.1.kind == "measure" && p.1.workload_id == workload;
            evidence.phases.iter().filter(of_workload).map(|(id, p)| (*id, p)).collect()
        };
        let all = evidence.workloads.iter().map(|(id, row)| (row, measured(*id)));
        all.filter(|(_, phases)| !phases.is_empty())
            .map(|(row, phases)| Self::of(evidence, doubts, &row.name, &row.json, &phases))
            .collect()
    }

    fn of(
        evidence: &Evidence,
        doubts: &Doubts,
        name: &str,
        json: &record::json::Value,
        phases: &[(i64, &PhaseRow)],
    ) -> Self {
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let title = text("title");
        let ids: Vec<i64> = phases.iter().map(|(id, _)| *id).collect();
        let (ops, latency): (u64, u64) =
            phases.iter().fold((0, 0), |sum, (_, p)| (sum.0 + p.ops, sum.1 + p.latency_sum_ns));
        let first = phases[0].1;
        let agreed = |field: fn(&PhaseRow) -> &Option<String>| {
            phases.iter().all(|(_, p)| field(p) == field(first)).then(|| field(first).clone()).flatten()
        };
        let mut marks = doubts.of_figure(name);
        for id in &ids {
            marks.inherit(&doubts.of_phase(*id));
        }
        Self {
            name: name.to_owned(),
            title: if title.is_empty() { name.replace('-', " ") } else { title },
            question: text("question"),
            metric: first.metric.clone(),
            sessions: phases.iter().map(|(_, p)| p.threads).max().unwrap_or(0),
            headline: json["headline"].as_bool().unwrap_or(false),
            rate: Rate::of(evidence, phases),
            seconds: phases.iter().map(|(_, p)| p.seconds).sum(),
            ops,
            errors: phases.iter().map(|(_, p)| p.errors).sum(),
            latency_ns: (ops > 0 && latency > 0).then(|| latency as f64 / ops as f64),
            shape: Shape::of(&shape::merged(evidence, ids.iter().copied())),
            kinds: kinds(evidence, &ids, phases.iter().map(|(_, p)| p.errors).sum()),
            busiest_minute: phases
                .iter()
                .filter_map(|(id, p)| busiest_minute(evidence, *id, p))
                .reduce(f64::max),
            spent: Spent::of(evidence, &ids),
            files: sorted(files(evidence, &ids)),
            statistics: statistics(evidence, &ids),
            steady: agreed(|p| &p.steady_class),
            proof: agreed(|p| &p.proof),
            marks,
            phases: ids,
        }
    }

    /// A counter of the database over the measured time.
    pub fn statistic(&self, name: &str) -> Option<f64> {
        self.statistics.get(name).copied()
    }

    /// Share of the blocks asked of the buffer cache that it held; none where more were read ahead than asked for.
    pub fn hit_ratio(&self) -> Option<f64> {
        let asked = self.statistic("session logical reads").filter(|asked| *asked > 0.0)?;
        let missed = self.statistic("physical reads cache").unwrap_or(0.0);
        (missed <= asked).then(|| 1.0 - missed / asked)
    }

    /// What one operation is called: `commit`, `read`, `transaction`; `operation` where data is counted, not operations.
    pub fn one(&self) -> &str {
        match self.metric.as_str() {
            "MB/s" => "operation",
            "tx/min" | "tx/s" => "transaction",
            metric => metric.strip_suffix("s/s").unwrap_or("operation"),
        }
    }

    /// Commits that shared one write of the log.
    pub fn commits_per_redo_write(&self) -> Option<f64> {
        let writes = self.statistic("redo writes").filter(|writes| *writes > 0.0)?;
        Some(self.statistic("redo synch writes")? / writes)
    }
}

/// `all_errors`: of the workload, which belong to its only kind where there is one.
fn kinds(evidence: &Evidence, phases: &[i64], all_errors: u64) -> Vec<Kind> {
    let mut sums: Vec<(String, Histogram)> = Vec::new();
    for row in phases.iter().filter_map(|id| evidence.histograms.get(id)).flatten() {
        let Ok(one) = Histogram::decode(&row.encoded) else { continue };
        match sums.iter_mut().find(|(name, _)| *name == row.op_class) {
            Some((_, sum)) => sum.merge(&one),
            None => sums.push((row.op_class.clone(), one)),
        }
    }
    let errors = |name: &str| -> u64 {
        let rows = phases.iter().filter_map(|id| evidence.intervals.get(id)).flatten();
        rows.filter(|row| row.op_class == name).map(|row| row.errors).sum()
    };
    let all: u64 = sums.iter().map(|(_, sum)| sum.count()).sum();
    let only = sums.len() == 1;
    sums.into_iter()
        .filter_map(|(name, sum)| {
            let shape = Shape::of(&sum)?;
            let share = sum.count() as f64 / all.max(1) as f64;
            let errors = if only { all_errors } else { errors(&name) };
            Some(Kind { errors, count: sum.count(), share, shape, name })
        })
        .collect()
}

/// Most operations that were completed in any 60 s; none where the phase was not longer than two minutes, in which any
/// minute is nearly all of it.
fn busiest_minute(evidence: &Evidence, id: i64, phase: &PhaseRow) -> Option<f64> {
    let amounts = rate::per_interval(evidence, id, "");
    let each = (MINUTE / (phase.seconds / amounts.len().max(1) as f64)).round() as usize;
    if phase.seconds < 2.0 * MINUTE || each == 0 || amounts.len() < each {
        return None;
    }
    amounts.windows(each).map(|minute| minute.iter().sum()).reduce(f64::max)
}

fn files(evidence: &Evidence, phases: &[i64]) -> Vec<FileLine> {
    let mut lines: Vec<FileLine> = Vec::new();
    for row in phases.iter().filter_map(|id| evidence.files.get(id)).flatten() {
        let same =
            |l: &FileLine| l.file_no == row.file_no && l.path == row.path && l.file_type == row.file_type;
        let index = lines.iter().position(same).unwrap_or_else(|| {
            let (file_type, path) = (row.file_type.clone(), row.path.clone());
            lines.push(FileLine { file_type, path, file_no: row.file_no, ..FileLine::default() });
            lines.len() - 1
        });
        add(&mut lines[index], row);
    }
    lines
}

/// By bytes moved, most first.
fn sorted(mut lines: Vec<FileLine>) -> Vec<FileLine> {
    let bytes = |l: &FileLine| l.reads.iter().chain(&l.writes).map(|r| r.bytes).sum::<u64>();
    lines.sort_by_key(|line| std::cmp::Reverse(bytes(line)));
    lines
}

fn add(line: &mut FileLine, r: &FileStatRow) {
    line.reads[0].add(r.small_reads, r.small_read_bytes, r.small_read_ns);
    line.reads[1].add(r.large_reads, r.large_read_bytes, r.large_read_ns);
    line.writes[0].add(r.small_writes, r.small_write_bytes, r.small_write_ns);
    line.writes[1].add(r.large_writes, r.large_write_bytes, r.large_write_ns);
}

fn statistics(evidence: &Evidence, phases: &[i64]) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for row in phases.iter().filter_map(|id| evidence.statistics.get(id)).flatten() {
        if row.class == "system" {
            *sums.entry(row.name.clone()).or_insert(0.0) += row.value;
        }
    }
    sums
}
