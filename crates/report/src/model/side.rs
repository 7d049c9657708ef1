//! Several runs side by side: ratio of each figure to the first run's, and why they may not be comparable.
//!
//! Two servers measured at different times are not paired: what lies between them is the servers *and* the hours. The
//! interval therefore says only what the sessions themselves leave open, and no verdict word is given
//! (docs/method.md, section 9: "environment not separated from server").

use super::{Figure, Model};
use crate::words;

/// All runs beside the first.
#[derive(Clone, Debug)]
pub struct Side {
    /// What is said first.
    pub headline: String,
    /// Reasons why a comparison may mislead.
    pub warnings: Vec<String>,
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
}

const CAVEAT: &str = "Runs at different times are not paired: the intervals hold within the sessions; what lies between them \
                      (other load, other hours) is not separated from the storage.";
/// Sizes that differ by more than this share are not the same (docs/method.md, S1).
const SIZE_TOLERANCE: f64 = 0.001;

impl Side {
    /// Puts `models`, two or more, side by side.
    pub fn of(models: &[Model]) -> Self {
        let rows = rows(models);
        let warnings = warnings(models);
        let headline = headline(models, &rows, &warnings);
        Self { headline, warnings, caveat: CAVEAT.into(), rows }
    }
}

/// Name of run `index` in tables: its place in the order given.
pub fn letter(index: usize) -> char {
    char::from(b'A' + (index % 26) as u8)
}

fn rows(models: &[Model]) -> Vec<Row> {
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
        let ratios = values
            .iter()
            .enumerate()
            .map(|(i, new)| if i == 0 { None } else { ratio(values[0].as_ref()?, new.as_ref()?) });
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

/// Independent intervals on the log scale: half widths add in quadrature.
fn ratio(old: &Value, new: &Value) -> Option<(f64, f64, f64)> {
    if old.withdrawn.is_some() || new.withdrawn.is_some() || old.value <= 0.0 || new.value <= 0.0 {
        return None;
    }
    let half =
        |v: &Value| v.interval.map(|(low, high)| ((high / low).ln() / 2.0).abs()).filter(|h| h.is_finite());
    let value = new.value / old.value;
    let both = half(old)?.hypot(half(new)?);
    Some((value, value * (-both).exp(), value * both.exp()))
}

fn headline(models: &[Model], rows: &[Row], warnings: &[String]) -> String {
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
    let caution = if warnings.is_empty() { "" } else { " But the runs are not alike; see the warnings." };
    format!("{}: {}.{caution}", words::capital(&row.label), words::list(&parts))
}

fn warnings(models: &[Model]) -> Vec<String> {
    let mut warnings = Vec::new();
    let first = &models[0];
    for (index, other) in models.iter().enumerate().skip(1) {
        warnings.extend(
            differences(first, other).into_iter().map(|text| format!("A and {}: {text}", letter(index))),
        );
    }
    warnings
}

/// Why two runs are not alike.
fn differences(a: &Model, b: &Model) -> Vec<String> {
    let mut all = Vec::new();
    let (a, b) = (&a.run, &b.run);
    let mut differ = |what: &str, a: &str, b: &str, why: &str| {
        if a != b {
            all.push(format!("{what} differs ({a}, {b}){why}"));
        }
    };
    differ("the kind of run", &a.kind, &b.kind, ": only what both measured is shown");
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    differ(
        "the method's major version",
        &major(&a.method_version),
        &major(&b.method_version),
        ": figures may mean different things",
    );
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    differ("durability", &text(&a.durability), &text(&b.durability), ": writes are not the same work");
    differ("the kind of target", &text(&a.target_kind), &text(&b.target_kind), "");
    differ("the build", &a.build_profile, &b.build_profile, ": debug figures say nothing");
    let block = |bytes: Option<f64>| bytes.map_or("unknown".into(), |b| units::Bytes(b as u64).to_string());
    differ("the block size", &block(a.block_bytes), &block(b.block_bytes), "");
    all.extend(sizes(a, b));
    if (a.budget_seconds / b.budget_seconds.max(1e-9)).ln().abs() > 1.5f64.ln() {
        all.push(format!(
            "the time budget differs ({}, {}): the shorter run found less and is less sure",
            words::span(a.budget_seconds),
            words::span(b.budget_seconds)
        ));
    }
    all
}

/// File size alone, and file size against memory, where caches live.
fn sizes(a: &super::Run, b: &super::Run) -> Option<String> {
    let differ = |x: f64, y: f64| (x / y - 1.0).abs() > SIZE_TOLERANCE;
    let show = |bytes: f64| units::Bytes(bytes as u64).to_string();
    match (a.data_bytes, b.data_bytes) {
        (Some(x), Some(y)) if differ(x, y) => Some(format!(
            "the data differs in size ({}, {}): caches hold a different share of it; lay it out again with --size",
            show(x),
            show(y)
        )),
        (Some(x), Some(y)) => match (a.memory_bytes, b.memory_bytes) {
            (Some(m), Some(n)) if differ(x / m, y / n) => Some(format!(
                "memory differs ({}, {}), so page caches could hold a different share of the data ({}, {}); with direct \
                 I/O this does not matter, with cached modes it does",
                show(m),
                show(n),
                words::percent((x / m).min(1.0)),
                words::percent((y / n).min(1.0))
            )),
            _ => None,
        },
        (None, None) => None,
        _ => Some("the size of the data is known of one run only".into()),
    }
}
