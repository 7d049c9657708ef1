//! Ranked configurations in the terminal: matrix of ratios to the best, bars, effects.

use super::Page;
use super::style::{cut, fold, left, right, sign, width};
use crate::model::compare::{Comparison, Workload};
use crate::model::ranked as said;
use crate::words;
use stats::verdict::Verdict;

/// Columns of one workload in the matrix.
const COLUMN: usize = 13;
/// Columns of a level.
const LEVEL: usize = 9;
/// Columns of configurations' names, at most.
const NAMES: usize = 30;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    let mut out = matrix(page, comparison);
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
    for workload in mix.into_iter().chain(comparison.workloads.iter().filter(|w| w.headline)) {
        out.push_str(&bars(page, comparison, workload));
    }
    out.push_str(&effects(page, comparison));
    out.push_str(&super::passes::report(page, comparison));
    out.push_str(&placement(page, comparison));
    out.push_str(&super::devices::report(page, comparison));
    out
}

fn names(comparison: &Comparison) -> usize {
    comparison.configurations.iter().map(|c| width(&c.name)).max().unwrap_or(8).clamp(8, NAMES)
}

/// Configurations × workloads: ratio to the best of each workload.
fn matrix(page: Page, comparison: &Comparison) -> String {
    let mut out = page.title("Ratio to the best of each workload");
    out.push_str(&page.paint.dim("● best  = as good  ? not decided against the best  – not compared"));
    out.push('\n');
    let names = names(comparison);
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
    let all: Vec<&Workload> = mix.into_iter().chain(&comparison.workloads).collect();
    let fit = (page.width.saturating_sub(names) / COLUMN).max(1);
    for part in all.chunks(fit) {
        let heads: String =
            part.iter().map(|w| format!(" {}", right(&cut(&w.name, COLUMN - 1), COLUMN - 1))).collect();
        out.push_str(&page.paint.dim(&format!("{}{heads}", " ".repeat(names))));
        out.push('\n');
        for (i, configuration) in comparison.configurations.iter().enumerate() {
            let cells: String = part.iter().map(|w| format!(" {}", right(&cell(w, i), COLUMN - 1))).collect();
            out.push_str(&format!("{}{}\n", left(&configuration.name, names), cells.trim_end()));
        }
    }
    out
}

fn cell(workload: &Workload, index: usize) -> String {
    match workload.to_best(index) {
        None => "–".into(),
        Some((_, None)) => "● 1".into(),
        Some((ratio, Some(d))) => match d.verdict {
            Verdict::Same => format!("= {}", words::ratio(ratio)),
            Verdict::Unknown => format!("? {}", words::ratio(ratio)),
            _ => words::ratio(ratio),
        },
    }
}

fn bars(page: Page, comparison: &Comparison, workload: &Workload) -> String {
    let Some(ranking) = &workload.ranking else { return String::new() };
    let title = if workload.name == "mix" { "Your mix".into() } else { words::capital(&workload.title) };
    let mut out = page.title(&format!("{title}, ranked"));
    let say = format!("{}.", said::of(comparison, workload));
    out.push_str(&fold(&say, page.width, "", 0));
    let names = names(comparison);
    let drawn = page.width.saturating_sub(3 + names + 1 + LEVEL + 2 + 22 + 2 + 6).clamp(8, 40);
    let largest = ranking.order.iter().filter_map(|i| workload.to_best(*i)).map(|b| b.0).fold(1.0, f64::max);
    let head = format!(
        "{} {}  {} {} {}",
        left("", names + 3),
        right(words::unit(&workload.metric), LEVEL),
        left("", drawn),
        left("to the best", 20),
        right("CV", 7)
    );
    out.push_str(&page.paint.dim(head.trim_end()));
    out.push('\n');
    let mut place = 0;
    for group in &ranking.groups {
        for index in &group.members {
            place += 1;
            let cell = &workload.cells[*index];
            let (ratio, decision) = workload.to_best(*index).unwrap_or((0.0, None));
            let long = ((ratio / largest * drawn as f64).round() as usize).clamp(1, drawn);
            let text = decision.map_or_else(
                || "1".to_owned(),
                |d| format!("{} {}", words::ratio(ratio), words::ratio_interval(d.ratio.low, d.ratio.high)),
            );
            let mark = decision.map_or('●', |d| sign(Some(d.verdict)));
            let level = cell.absolute.map_or_else(|| "–".into(), |a| words::amount(a.value));
            let line = format!(
                "{} {} {}  {}{} {} {} {}",
                right(&place.to_string(), 2),
                left(&comparison.configurations[*index].name, names),
                right(&level, LEVEL),
                "█".repeat(long),
                " ".repeat(drawn - long),
                left(&text, 20),
                mark,
                right(&cell.unsteadiness.map_or_else(|| "–".into(), words::percent), 5),
            );
            out.push_str(
                &page.paint.verdict(decision.map(|d| d.verdict).or(Some(Verdict::Same)), line.trim_end()),
            );
            out.push('\n');
        }
    }
    out
}

/// What each factor does, in sentences.
fn effects(page: Page, comparison: &Comparison) -> String {
    let mut out = String::new();
    for workload in comparison.workloads.iter().filter(|w| w.headline) {
        let said = said::effects(comparison, workload);
        if !said.is_empty() {
            out.push_str(&format!("{}\n", page.paint.dim(&words::capital(&workload.title))));
        }
        for sentence in said {
            out.push_str(&fold(&sentence, page.width, "  ", 4));
        }
    }
    if out.is_empty() { out } else { page.title("What each factor does") + &out }
}

fn placement(page: Page, comparison: &Comparison) -> String {
    let mut out = String::new();
    for placement in &comparison.placements {
        let workload = &comparison.workloads[placement.workload];
        out.push_str(&format!("{}\n", page.paint.dim(&words::capital(&workload.title))));
        for m in &placement.moves {
            let Some(d) = &workload.cells[m.configuration].decision else { continue };
            let share = m.share.as_ref().map_or_else(
                || "–".to_owned(),
                |s| {
                    format!(
                        "{} [{} to {}]",
                        words::percent(s.value),
                        words::percent(s.low),
                        words::percent(s.high)
                    )
                },
            );
            let share = if Some(m.configuration) == placement.all { "all of it".into() } else { share };
            let waits = m.waits.first().map_or_else(String::new, |(event, old, new)| {
                format!("{event} {} → {}", words::latency(*old), words::latency(*new))
            });
            let name = if Some(m.configuration) == placement.all {
                "everything".into()
            } else {
                words::list(&m.classes)
            };
            let ratio = format!(
                "{} {}",
                words::ratio(d.ratio.value),
                words::ratio_interval(d.ratio.low, d.ratio.high)
            );
            let line = format!("{} {} {}  {waits}", left(&name, 12), left(&ratio, 18), left(&share, 22));
            out.push_str(cut(&line, page.width).trim_end());
            out.push('\n');
        }
    }
    if out.is_empty() {
        return out;
    }
    let head =
        format!("{} {} {}  {}", left("moved", 12), left("ratio", 18), left("share of the gain", 22), "waits");
    page.title("Which one move pays?") + &page.paint.dim(&head) + "\n" + &out
}
