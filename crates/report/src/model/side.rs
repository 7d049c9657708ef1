//! Several runs side by side: ratio of each figure to the first run's, and why they may not be comparable.
//!
//! Two servers measured at different times are not paired: what lies between them is the servers *and* the hours. The
//! interval therefore says only what the sessions themselves leave open, and no verdict word is given
//! (docs/method.md, section 9: "environment not separated from server"). Three runs or more of each of two machines make the run
//! the unit of evidence. What was not measured alike (another size, method, durability) is shown and not ranked.

use super::{Figure, Model};
use crate::words;
use stats::interval::{self, Interval};
use std::collections::BTreeMap;

/// All runs beside the first.
#[derive(Clone, Debug)]
pub struct Side {
    /// What is said first.
    pub headline: String,
    /// Why runs are not ranked at all; their figures stand beside each other without a ratio.
    pub refusals: Vec<String>,
    /// Reasons why a comparison may mislead.
    pub warnings: Vec<String>,
    /// What is not the same of the machines.
    pub facts: Vec<Difference>,
    /// The same figures over sessions, where two machines have three runs each.
    pub sessions: Option<Sessions>,
    /// What holds for all runs that are not paired.
    pub caveat: String,
    /// Figures that at least two runs have.
    pub rows: Vec<Row>,
}

/// One figure over all runs.
#[derive(Clone, Debug)]
pub struct Row {
    /// Stable key.
    pub key: String,
    /// For people.
    pub label: String,
    /// Unit.
    pub unit: String,
    /// One for each run.
    pub values: Vec<Option<Value>>,
    /// Ratio to the first run with its interval within the sessions; `None` for the first and where one is missing.
    pub ratios: Vec<Option<(f64, f64, f64)>>,
}

/// A fact that is not the same in all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `kernel release`, `device vda scheduler` ….
    pub name: String,
    /// One for each run; none where it is not known.
    pub values: Vec<Option<String>>,
}

/// Two machines with three runs or more each: the run is then the unit of evidence, and what lies between hours is in the interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Sessions {
    /// Runs of the first machine, and of the other.
    pub runs: (Vec<usize>, Vec<usize>),
    /// Label of each figure, ratio of the other machine to the first, with its interval over sessions.
    pub ratios: Vec<(String, Interval)>,
}

/// One run's figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Level.
    pub value: f64,
    /// Interval.
    pub interval: Option<(f64, f64)>,
    /// Mean latency, nanoseconds.
    pub latency_ns: Option<f64>,
    /// Withdrawn: shown, not compared.
    pub withdrawn: Option<String>,
    /// Values over blocks behind it, where there are any.
    pub blocks: Vec<f64>,
}

const CAVEAT: &str = "Runs at different times are not paired: the intervals hold within the sessions; what lies between them \
                      (other load, other hours) is not separated from the storage.";
/// Sizes that differ by more than this share are not the same (docs/method.md, S1).
const SIZE_TOLERANCE: f64 = 0.001;
/// Runs of a machine from which on sessions are the unit of evidence (docs/method.md, 9).
const SESSIONS_MIN: usize = 3;
/// Confidence level of ratios.
const LEVEL: f64 = 0.95;

impl Side {
    /// Puts `models`, two or more, side by side.
    pub fn of(models: &[Model]) -> Self {
        let (refused, warned): (Vec<Found>, Vec<Found>) = found(models).into_iter().partition(|f| f.refuses);
        let refused_runs: Vec<usize> = refused.iter().map(|f| f.run).collect();
        let rows = rows(models, &refused_runs);
        let texts = |found: Vec<Found>| -> Vec<String> {
            found.into_iter().map(|f| format!("A and {}: {}", letter(f.run), f.text)).collect()
        };
        let (refusals, warnings) = (texts(refused), texts(warned));
        let sessions = sessions(models, &rows, &refused_runs);
        let headline = headline(models, &rows, &refusals, &warnings, sessions.as_ref());
        Self { headline, refusals, warnings, facts: facts(models), sessions, caveat: CAVEAT.into(), rows }
    }
}

/// Name of run `index` in tables: its place in the order given.
pub fn letter(index: usize) -> char {
    char::from(b'A' + (index % 26) as u8)
}

fn rows(models: &[Model], refused: &[usize]) -> Vec<Row> {
    let all: Vec<Vec<(String, String, String, Value)>> = models.iter().map(values).collect();
    let mut rows: Vec<Row> = Vec::new();
    for (key, label, unit, _) in all.iter().flatten() {
        if rows.iter().any(|row| row.key == *key) {
            continue;
        }
        let values: Vec<Option<Value>> = all
            .iter()
            .map(|run| run.iter().find(|v| v.0 == *key && v.2 == *unit).map(|v| v.3.clone()))
            .collect();
        if values.iter().flatten().count() < 2 {
            continue;
        }
        let ratios = values.iter().enumerate().map(|(i, new)| match i {
            0 => None,
            _ if refused.contains(&i) => None,
            _ => ratio(values[0].as_ref()?, new.as_ref()?),
        });
        rows.push(Row {
            key: key.clone(),
            label: label.clone(),
            unit: unit.clone(),
            ratios: ratios.collect(),
            values: values.clone(),
        });
    }
    rows
}

/// Every figure of a run: calibrated ones, or each workload under each configuration.
fn values(model: &Model) -> Vec<(String, String, String, Value)> {
    let figure = |f: &Figure| {
        let value = Value {
            value: f.value,
            interval: f.interval,
            latency_ns: f.latency_ns,
            withdrawn: f.marks.withdrawn.clone(),
            blocks: Vec::new(),
        };
        (f.key.clone(), f.label.clone(), f.unit.clone(), value)
    };
    let mut all: Vec<_> = model.figures.iter().map(figure).collect();
    if let Some(comparison) = &model.comparison {
        let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
        for workload in mix.into_iter().chain(&comparison.workloads) {
            for (configuration, cell) in comparison.configurations.iter().zip(&workload.cells) {
                let Some(level) = cell.absolute else { continue };
                let value = Value {
                    value: level.value,
                    interval: Some((level.low, level.high)),
                    latency_ns: cell.latency_ns,
                    withdrawn: cell.marks.withdrawn.clone(),
                    blocks: cell.blocks.values().copied().collect(),
                };
                let key = format!("{}: {}", workload.name, configuration.name);
                all.push((
                    key,
                    format!("{}, {}", workload.title, configuration.name),
                    workload.metric.clone(),
                    value,
                ));
            }
        }
    }
    all
}

/// Welch's interval over the blocks of both, where there are blocks; else independent intervals on the log scale, whose half widths add
/// in quadrature.
fn ratio(old: &Value, new: &Value) -> Option<(f64, f64, f64)> {
    if old.withdrawn.is_some() || new.withdrawn.is_some() || old.value <= 0.0 || new.value <= 0.0 {
        return None;
    }
    if let Ok(i) = interval::unpaired(&old.blocks, &new.blocks, LEVEL) {
        return Some((i.value, i.low, i.high));
    }
    let half =
        |v: &Value| v.interval.map(|(low, high)| ((high / low).ln() / 2.0).abs()).filter(|h| h.is_finite());
    let value = new.value / old.value;
    let both = half(old)?.hypot(half(new)?);
    Some((value, value * (-both).exp(), value * both.exp()))
}

fn headline(
    models: &[Model],
    rows: &[Row],
    refusals: &[String],
    warnings: &[String],
    sessions: Option<&Sessions>,
) -> String {
    if let Some((label, r)) = sessions.and_then(|s| s.ratios.first()) {
        let others = sessions.map_or(1, |s| s.runs.1.first().copied().unwrap_or(1));
        return format!(
            "{}: the machine of run {} gives {} × that of run A {} over sessions.",
            words::capital(label),
            letter(others),
            words::ratio(r.value),
            words::ratio_interval(r.low, r.high)
        );
    }
    let ratio = rows.iter().any(|row| row.ratios.iter().flatten().next().is_some());
    if !ratio && !refusals.is_empty() {
        let reason = refusals[0].split_once(": ").map_or(refusals[0].as_str(), |(_, reason)| reason);
        return format!("These runs cannot be ranked: {}.", reason.trim_end_matches('.'));
    }
    let preferred = ["read_iops_max", "mix: "];
    let row = preferred.iter().find_map(|key| {
        rows.iter()
            .filter(|row| row.key.starts_with(key))
            .find(|row| row.ratios.iter().flatten().next().is_some())
    });
    let row = row.or_else(|| rows.iter().find(|row| row.ratios.iter().flatten().next().is_some()));
    let Some(row) = row else {
        return format!("These {} runs share no figure that could be compared.", models.len());
    };
    let parts: Vec<String> = row
        .ratios
        .iter()
        .enumerate()
        .filter_map(|(i, r)| {
            let (value, low, high) = (*r)?;
            Some(format!(
                "run {} gives {} × run A {}",
                letter(i),
                words::ratio(value),
                words::ratio_interval(low, high)
            ))
        })
        .collect();
    let caution = if warnings.is_empty() && refusals.is_empty() {
        ""
    } else {
        " But the runs are not alike; see the warnings."
    };
    format!("{}: {}.{caution}", words::capital(&row.label), words::list(&parts))
}

/// A difference between the first run and another.
struct Found {
    run: usize,
    refuses: bool,
    text: String,
}

fn found(models: &[Model]) -> Vec<Found> {
    let first = &models[0];
    let others = models.iter().enumerate().skip(1);
    others
        .flat_map(|(run, other)| {
            let found = move |(refuses, text)| Found { run, refuses, text };
            differences(first, other).into_iter().map(found)
        })
        .collect()
}

/// Why two runs are not alike, and whether that leaves nothing to rank: another method, other work, another size of data.
fn differences(a: &Model, b: &Model) -> Vec<(bool, String)> {
    let mut all = Vec::new();
    let (a, b) = (&a.run, &b.run);
    let mut differ = |refuses: bool, what: &str, a: &str, b: &str, why: &str| {
        if a != b {
            all.push((refuses, format!("{what} differs ({a}, {b}){why}")));
        }
    };
    differ(false, "the kind of run", &a.kind, &b.kind, ": only what both measured is shown");
    let case = |case: &Option<String>| case.clone().unwrap_or_else(|| "none".into());
    differ(true, "the case", &case(&a.case), &case(&b.case), ": other work was done");
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    differ(
        true,
        "the method's major version",
        &major(&a.method_version),
        &major(&b.method_version),
        ": figures may mean different things; measure again with the same Redoubt",
    );
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    differ(true, "durability", &text(&a.durability), &text(&b.durability), ": writes are not the same work");
    differ(false, "the kind of target", &text(&a.target_kind), &text(&b.target_kind), "");
    differ(true, "the build", &a.build_profile, &b.build_profile, ": debug figures say nothing");
    let block = |bytes: Option<f64>| bytes.map_or("unknown".into(), |b| units::Bytes(b as u64).to_string());
    differ(true, "the block size", &block(a.block_bytes), &block(b.block_bytes), ": repeat one with --block");
    all.extend(sizes(a, b));
    if (a.budget_seconds / b.budget_seconds.max(1e-9)).ln().abs() > 1.5f64.ln() {
        all.push((
            false,
            format!(
                "the time budget differs ({}, {}): the shorter run found less and is less sure",
                words::span(a.budget_seconds),
                words::span(b.budget_seconds)
            ),
        ));
    }
    all
}

/// Facts of the machines that are not the same everywhere. What changes from hour to hour (free space, load) is none.
fn facts(models: &[Model]) -> Vec<Difference> {
    const LAYERS: [&str; 6] = ["host", "cpu", "memory", "kernel", "filesystem", "device"];
    const PASSING: [&str; 3] = ["available", "free", "temperature"];
    let stated = |model: &Model| -> Vec<(String, Option<String>)> {
        let mut seen: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for fact in &model.facts {
            let objects = seen.entry(&fact.layer).or_default();
            if !objects.contains(&fact.object.as_str()) {
                objects.push(&fact.object);
            }
        }
        let place = |fact: &record::FactRow| {
            seen[fact.layer.as_str()].iter().position(|o| *o == fact.object).unwrap_or(0)
        };
        // Devices and mounts are matched by their place in the record: their names differ from machine to machine.
        let name = |fact: &record::FactRow| match place(fact) {
            0 => format!("{} {}", fact.layer, fact.name.replace('_', " ")),
            n => format!("{} {} {}", fact.layer, n + 1, fact.name.replace('_', " ")),
        };
        let lasting = |fact: &&record::FactRow| {
            LAYERS.contains(&fact.layer.as_str()) && !PASSING.iter().any(|p| fact.name.contains(p))
        };
        let value = |fact: &record::FactRow| {
            fact.value
                .as_ref()
                .map(|v| if fact.unit.is_empty() { v.clone() } else { format!("{v} {}", fact.unit) })
        };
        model.facts.iter().filter(lasting).map(|f| (name(f), value(f))).collect()
    };
    let all: Vec<Vec<(String, Option<String>)>> = models.iter().map(stated).collect();
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in all.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .map(|name| Difference {
            name: name.clone(),
            values: all
                .iter()
                .map(|run| run.iter().find(|f| f.0 == *name).and_then(|f| f.1.clone()))
                .collect(),
        })
        .filter(|d| d.values.iter().any(|v| *v != d.values[0]))
        .collect()
}

/// Ratios over sessions, when the runs are of two machines (or two boots with different kernels), three or more of each.
fn sessions(models: &[Model], rows: &[Row], refused: &[usize]) -> Option<Sessions> {
    let who = |model: &Model| -> Vec<(String, Option<String>)> {
        let lasting = ["cpu model", "kernel release", "memory total", "host name"];
        let facts = model.facts.iter().map(|f| (format!("{} {}", f.layer, f.name), f.value.clone()));
        facts.filter(|f| lasting.contains(&f.0.as_str())).collect()
    };
    let first = who(&models[0]);
    let usable = (0..models.len()).filter(|i| !refused.contains(i));
    let (ours, theirs): (Vec<usize>, Vec<usize>) = usable.partition(|i| who(&models[*i]) == first);
    let other = theirs.first().map(|i| who(&models[*i]))?;
    let one_other = theirs.iter().all(|i| who(&models[*i]) == other);
    if !one_other || ours.len() < SESSIONS_MIN || theirs.len() < SESSIONS_MIN {
        return None;
    }
    let levels = |row: &Row, runs: &[usize]| -> Vec<f64> {
        let fit = |v: &&Value| v.withdrawn.is_none() && v.value > 0.0;
        runs.iter().filter_map(|i| row.values[*i].as_ref().filter(fit)).map(|v| v.value).collect()
    };
    let ratios = rows
        .iter()
        .filter_map(|row| {
            let (old, new) = (levels(row, &ours), levels(row, &theirs));
            let enough = old.len().min(new.len()) >= SESSIONS_MIN;
            let interval = interval::unpaired(&old, &new, LEVEL).ok().filter(|_| enough)?;
            Some((row.label.clone(), interval))
        })
        .collect();
    Some(Sessions { runs: (ours, theirs), ratios })
}

/// File size alone, and file size against memory, where caches live.
fn sizes(a: &super::Run, b: &super::Run) -> Option<(bool, String)> {
    let differ = |x: f64, y: f64| (x / y - 1.0).abs() > SIZE_TOLERANCE;
    let show = |bytes: f64| units::Bytes(bytes as u64).to_string();
    match (a.data_bytes, b.data_bytes) {
        (Some(x), Some(y)) if differ(x, y) => Some((
            true,
            format!(
                "the data differs in size ({}, {}): caches hold a different share of it; lay it out again with --size",
                show(x),
                show(y)
            ),
        )),
        (Some(x), Some(y)) => match (a.memory_bytes, b.memory_bytes) {
            (Some(m), Some(n)) if differ(x / m, y / n) => Some((
                false,
                format!(
                    "memory differs ({}, {}), so page caches could hold a different share of the data ({}, {}); with direct \
                 I/O this does not matter, with cached modes it does",
                    show(m),
                    show(n),
                    words::percent((x / m).min(1.0)),
                    words::percent((y / n).min(1.0))
                ),
            )),
            _ => None,
        },
        (None, None) => None,
        _ => Some((false, "the size of the data is known of one run only".into())),
    }
}
