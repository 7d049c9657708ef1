//! The sentences. Each is formed from verdicts, and none claims more than its verdict.

use super::Model;
use super::compare::{Comparison, Workload};
use super::mix::Pays;
use super::weighted::Mix;
use super::{Figure, curve::Curve};
use crate::words;
use stats::interval::Interval;
use stats::verdict::{Reason, Verdict};

/// What is said first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// One sentence.
    pub headline: String,
    /// What belongs to it, most important first.
    pub more: Vec<String>,
}

/// The answer of a run.
pub fn answer(model: &Model) -> Answer {
    let advised = model.advice.as_ref().map(super::advice::answer);
    let told = advised.or_else(|| model.trace.as_ref().map(super::trace::answer));
    let mut answer = match (&model.comparison, &model.database) {
        _ if told.is_some() => told.unwrap_or_default(),
        (Some(comparison), _) => of_comparison(comparison),
        (None, Some(database)) => super::database::said::answer(database, model.run.case.as_deref()),
        (None, None) if !model.figures.is_empty() => of_calibration(model),
        (None, None) => Answer {
            headline: "This record holds no figure and no comparison: the run ended before the first.".into(),
            more: Vec::new(),
        },
    };
    match model.run.status.as_str() {
        "finished" => {}
        "running" => {
            answer.more.push("The run has not ended, or was killed: this is what it had recorded.".into())
        }
        "interrupted" => {
            answer.more.push("The run was interrupted: this rests on what was finished until then.".into());
        }
        status => {
            answer.more.push(format!("The run did not finish ({status}): this rests on what was recorded."))
        }
    }
    if model.run.build_profile == "debug" {
        answer.more.push("Measured with a debug build: the figures say nothing about the storage.".into());
    }
    answer
}

/// A ratio as people say it: `1.84 × the transactions of none`, `12 % more transactions than none`.
fn times(ratio: &Interval, what: &str, than: &str) -> String {
    let (low, high) = (ratio.low, ratio.high);
    if (1.0..1.3).contains(&ratio.value) {
        let (more, low, high) = (words::change(ratio.value), words::change(low), words::change(high));
        format!("{} more {what} than {than} [{low} to {high}]", more.trim_start_matches('+'))
    } else {
        format!("{} × the {what} of {than} {}", words::ratio(ratio.value), words::ratio_interval(low, high))
    }
}

fn of_comparison(comparison: &Comparison) -> Answer {
    if let Some(answer) = super::calls::answer(comparison) {
        return answer;
    }
    if comparison.general()
        && let Some(answer) = super::ranked::answer(comparison)
    {
        return answer;
    }
    match &comparison.mix {
        Ok(mix) => of_mix(comparison, mix),
        Err(reason) => without_mix(comparison, reason),
    }
}

/// No weighted verdict: the first headline workload speaks.
fn without_mix(comparison: &Comparison, reason: &str) -> Answer {
    let speaking = comparison.workloads.iter().find(|w| w.headline && w.undecided.is_none());
    let reason = format!("{}.", words::capital(reason.trim_end_matches('.')));
    match speaking {
        Some(w) => Answer {
            headline: format!("{}: {}.", words::capital(&w.title), of_workload(comparison, w)),
            more: vec![reason],
        },
        None => Answer { headline: format!("Nothing could be decided. {reason}"), more: Vec::new() },
    }
}

fn names(comparison: &Comparison, indices: &[usize]) -> String {
    words::list(&indices.iter().map(|i| comparison.said(*i)).collect::<Vec<_>>())
}

/// What a workload's verdicts come to, grouped.
struct Groups {
    better: Vec<usize>,
    worse: Vec<usize>,
    same: Vec<usize>,
    unknown: Vec<usize>,
}

impl Groups {
    fn of(workload: &Workload) -> Self {
        let with = |verdict: Verdict| -> Vec<usize> {
            (0..workload.cells.len()).filter(|i| workload.cells[*i].verdict() == Some(verdict)).collect()
        };
        Self {
            better: with(Verdict::Better),
            worse: with(Verdict::Worse),
            same: with(Verdict::Same),
            unknown: with(Verdict::Unknown),
        }
    }
}

/// How long it would take to decide `indices`: `about 6 more blocks (2 min)`.
fn would_take(comparison: &Comparison, workload: &Workload, indices: &[usize]) -> String {
    let needed = indices.iter().filter_map(|i| workload.cells[*i].decision.as_ref()?.blocks_needed).max();
    match needed {
        Some(blocks) if blocks < 1_000 => format!(
            "about {} ({}) would decide",
            words::count(blocks.max(1), "more block"),
            words::span(comparison.seconds_for(blocks.max(1)))
        ),
        _ => "no affordable number of blocks would decide".into(),
    }
}

/// Why `indices` are unknown, and what it would take.
fn not_decided(comparison: &Comparison, workload: &Workload, indices: &[usize]) -> String {
    let outlier = |i: &&usize| {
        workload.cells[**i].decision.as_ref().is_some_and(|d| d.reason == Reason::OutlierDecides)
    };
    if indices.iter().filter(outlier).count() == indices.len() && !indices.is_empty() {
        return "one block alone would decide, so nothing is claimed; run it again".into();
    }
    would_take(comparison, workload, indices)
}

/// `best: setall io_uring, 2.31 × mode none [2.10–2.55]`, without the full stop.
pub fn of_workload(comparison: &Comparison, workload: &Workload) -> String {
    if let Some(reason) = &workload.undecided {
        return format!("no verdict: {}", reason.trim_end_matches('.'));
    }
    let withdrawn = workload.cells.iter().filter(|cell| cell.withdrawn()).count();
    let tail = if withdrawn > 0 { format!("; {withdrawn} withdrawn") } else { String::new() };
    format!("{}{tail}", of_decided(comparison, workload))
}

fn of_decided(comparison: &Comparison, workload: &Workload) -> String {
    let baseline = comparison.said(comparison.baseline);
    let groups = Groups::of(workload);
    let ratio = |i: usize| workload.cells[i].decision.as_ref().map(|d| d.ratio);
    match groups.better.as_slice() {
        [] => without_better(comparison, workload, &groups),
        better => {
            let values = better.iter().filter_map(|i| Some(ratio(*i)?.value));
            let (low, high) = crate::chart::extent(values).unwrap_or((f64::NAN, f64::NAN));
            let leading: Vec<usize> = workload.best.iter().copied().filter(|i| better.contains(i)).collect();
            let open: Vec<usize> = workload.best.iter().copied().filter(|i| !better.contains(i)).collect();
            let mut tail = String::new();
            if let ([only], []) = (leading.as_slice(), open.as_slice())
                && let Some(r) = ratio(*only)
            {
                let rest = match better.len() {
                    1 => String::new(),
                    2 => "; one more is better".into(),
                    n => format!("; {} more are better", n - 1),
                };
                let interval = words::ratio_interval(r.low, r.high);
                return format!(
                    "best: {}, {} × {baseline} {interval}{rest}",
                    names(comparison, &[*only]),
                    words::ratio(r.value)
                );
            }
            if !open.is_empty() {
                tail = format!("; {} may be as good", names(comparison, &open));
            } else if better.len() > 1 {
                tail = "; which of them is best is not decided".into();
                if leading.len() < better.len() {
                    tail = format!("; best is one of {}", names(comparison, &leading));
                }
            }
            let range = if words::ratio(low) == words::ratio(high) {
                words::ratio(low)
            } else {
                format!("{}–{}", words::ratio(low), words::ratio(high))
            };
            let all = better.len() == workload.cells.len() - 1 && better.len() > 2;
            let who = if all { "every other one".to_owned() } else { names(comparison, better) };
            format!("better: {who}, {range} × {baseline}{tail}")
        }
    }
}

fn without_better(comparison: &Comparison, workload: &Workload, groups: &Groups) -> String {
    let baseline = comparison.said(comparison.baseline);
    let margin = words::percent(comparison.rule.delta);
    match (groups.same.as_slice(), groups.worse.as_slice(), groups.unknown.as_slice()) {
        ([], [], []) => "nothing to compare".into(),
        (_, [], []) => format!("no difference beyond ±{margin}: all are as good as {baseline}"),
        ([], _, []) => format!("best: {baseline}; every other one is worse"),
        (same, _, []) => format!("best: {baseline}, and as good: {}", names(comparison, same)),
        (_, _, unknown) => {
            let better =
                if unknown.len() == decided(workload) { "" } else { "nothing is shown to be better than " };
            let than = if better.is_empty() { String::new() } else { format!("{better}{baseline}; ") };
            let which = if better.is_empty() {
                String::new()
            } else {
                format!(" for {}", names(comparison, unknown))
            };
            format!("{than}not decided{which}: {}", not_decided(comparison, workload, unknown))
        }
    }
}

fn of_mix(comparison: &Comparison, mix: &Mix) -> Answer {
    let baseline = &comparison.said(comparison.baseline);
    let leader = &comparison.said(mix.leader);
    let workload = &mix.workload;
    let groups = Groups::of(workload);
    let decision = workload.cells[mix.leader].decision.as_ref();
    let mut more = Vec::new();
    let headline = match decision {
        Some(d) if d.verdict == Verdict::Better => {
            let equals: Vec<usize> = workload.best.iter().copied().filter(|i| *i != mix.leader).collect();
            if !equals.is_empty() {
                more.push(format!("Not told apart from it: {}.", names(comparison, &equals)));
            }
            format!("For your mix, {leader} gives {}.", times(&d.ratio, "transactions", baseline))
        }
        _ if !groups.worse.is_empty() && groups.worse.len() == decided(workload) => {
            format!("For your mix, stay with {baseline}: every other configuration is slower.")
        }
        _ if groups.unknown.is_empty() => {
            let margin = words::percent(comparison.rule.delta);
            format!("For your mix, nothing beats {baseline}: no gain beyond {margin} is to be had.")
        }
        Some(d) => {
            let interval = words::ratio_interval(d.ratio.low, d.ratio.high);
            more.push(format!("{}.", words::capital(&not_decided(comparison, workload, &groups.unknown))));
            let place = if d.ratio.value > 1.0 { "is ahead with" } else { "comes nearest with" };
            format!(
                "For your mix, nothing is shown to beat {baseline} yet; {leader} {place} {} × {interval}.",
                words::ratio(d.ratio.value)
            )
        }
        None => "For your mix, there is no verdict.".into(),
    };
    if let Some(d) = decision.filter(|d| d.verdict == Verdict::Better) {
        more.push(pays(mix, leader, d.ratio.value));
    }
    more.extend(withdrawn(comparison, workload));
    if decision.is_some_and(|d| d.verdict == Verdict::Better) {
        more.extend(limits(comparison, mix));
    }
    Answer { headline, more }
}

fn decided(workload: &Workload) -> usize {
    workload.cells.iter().filter(|cell| cell.decision.is_some()).count()
}

/// Where it stops paying, and where the user is.
fn pays(mix: &Mix, leader: &str, gain: f64) -> String {
    let margin = words::percent(mix.delta);
    let yours = words::percent(mix.inputs.hit_ratio);
    match mix.pays {
        Pays::Nowhere => {
            format!("That is less than the {margin} that pay; {leader} reaches them at no hit ratio.")
        }
        _ if gain < 1.0 + mix.delta => {
            format!(
                "At your hit ratio of {yours} that is less than the {margin} that pay; it pays {}.",
                mix.where_it_pays()
            )
        }
        _ => format!("It pays (≥ {margin}) {}; yours is {yours}.", mix.where_it_pays()),
    }
}

/// Who is not part of the answer because a rule of integrity failed.
fn withdrawn(comparison: &Comparison, workload: &Workload) -> Option<String> {
    let out: Vec<usize> = (0..workload.cells.len()).filter(|i| workload.cells[*i].withdrawn()).collect();
    let reason = workload.cells[*out.first()?].marks.withdrawn.as_deref()?;
    let names = names(comparison, &out);
    Some(format!(
        "Withdrawn, so not part of this answer: {names}. {}.",
        words::capital(reason.trim_end_matches('.'))
    ))
}

/// The question over the break-even curve.
pub fn when_it_pays(comparison: &Comparison, mix: &Mix) -> String {
    let leader = comparison.said(mix.leader);
    match mix.workload.cells[mix.leader].verdict() {
        Some(Verdict::Better) => format!("When does {leader} pay?"),
        _ => format!("Would {leader} pay at another hit ratio?"),
    }
}

/// What limits baseline and leader.
fn limits(comparison: &Comparison, mix: &Mix) -> Option<String> {
    let (old, new) = (mix.bottlenecks[comparison.baseline]?, mix.bottlenecks[mix.leader]?);
    Some(if old == new {
        format!("Both are limited by {old}.")
    } else {
        let (baseline, leader) = (comparison.said(comparison.baseline), comparison.said(mix.leader));
        format!("The limit of {baseline} is {old}, of {leader} {new}.")
    })
}

/// `61,230 random reads … [60,100–62,300]`.
fn level(figure: &Figure) -> String {
    let interval = figure
        .interval
        .map_or_else(String::new, |(low, high)| format!(" {}", words::amount_interval(low, high)));
    format!("{} {}{interval}", words::amount(figure.value), per(&figure.unit))
}

/// `reads/s` → `reads a second`.
fn per(unit: &str) -> String {
    unit.strip_suffix("/s").map_or_else(
        || unit.to_owned(),
        |what| if what == "MB" { unit.to_owned() } else { format!("{what} a second") },
    )
}

fn of_calibration(model: &Model) -> Answer {
    let mut more = Vec::new();
    let believed = |key: &str| model.figure(key).filter(|f| f.marks.withdrawn.is_none());
    let curve = model.curves.first();
    let headline = match (model.figure("read_iops_max"), believed("read_iops_max")) {
        (_, Some(max)) => maximum(max, curve),
        (Some(max), None) => format!(
            "No maximum of random reads can be stated: {}.",
            max.marks.withdrawn.as_deref().unwrap_or_default().trim_end_matches('.')
        ),
        (None, _) => match model.figures.iter().find(|f| f.marks.withdrawn.is_none()) {
            Some(first) => format!("{}: {}.", words::capital(&first.label), level(first)),
            None => "No figure of this run can be believed.".into(),
        },
    };
    // Knee and collapse are shares of the maximum: without it, they say nothing.
    if let Some(curve) =
        curve.filter(|_| model.figure("read_iops_max").is_none() || believed("read_iops_max").is_some())
    {
        more.extend(knee(curve, believed("read_iops_knee")));
        more.extend(curve.collapse.as_ref().map(|collapse| collapse.sentence.clone()));
    }
    if let Some(within) = believed("read_iops_within_latency") {
        more.push(format!("{}: {}.", words::capital(&within.label), level(within)));
    }
    let large: Vec<String> = ["read_mbps_max", "read_mbps_stream", "read_mbps_one_stream"]
        .iter()
        .filter_map(|key| believed(key))
        .map(|f| format!("{}: {}", f.label, level(f)))
        .collect();
    if !large.is_empty() {
        more.push(format!("{}.", words::capital(&large.join("; "))));
    }
    let redo = model.figures.iter().filter(|f| f.key.starts_with("redo_") && f.marks.withdrawn.is_none());
    if let Some((figure, ns)) = redo.filter_map(|f| Some((f, f.latency_ns?))).next() {
        more.push(format!(
            "{}: {}, durable after {} on average.",
            words::capital(&figure.label),
            level(figure),
            words::latency(ns)
        ));
    }
    if let Some(why) = curve.and_then(|curve| curve.unstable.as_deref()) {
        more.push(format!(
            "The environment was not stable ({why}): trust the shape of the curve, not its level."
        ));
    }
    Answer { headline, more }
}

fn maximum(max: &Figure, curve: Option<&Curve>) -> String {
    let at = match (max.in_flight, max.latency_ns) {
        (Some(n), Some(ns)) => format!(", {} each with {n} in flight", words::latency(ns)),
        (Some(n), None) => format!(" with {n} in flight"),
        (None, _) => String::new(),
    };
    let kind = max.label.trim_start_matches("max ");
    let interval = max
        .interval
        .map_or_else(String::new, |(low, high)| format!(" {}", words::amount_interval(low, high)));
    let least = if curve.is_some_and(|c| c.lower_bound) { "at least " } else { "" };
    format!("This storage gives {least}{} {kind} a second{interval}{at}.", words::amount(max.value))
}

/// The recommended operating point.
fn knee(curve: &Curve, figure: Option<&Figure>) -> Option<String> {
    let (knee, best) = (curve.knee?, curve.best?);
    if knee >= best {
        return None;
    }
    let latency = figure.and_then(|f| f.latency_ns).or_else(|| Some(curve.at(knee)?.latency_ns));
    let each = latency
        .filter(|ns| ns.is_finite())
        .map_or_else(String::new, |ns| format!(", at {} each", words::latency(ns)));
    Some(format!("{knee} in flight are enough for 97 % of it{each}: the knee, and the place to work."))
}
