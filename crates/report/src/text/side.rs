//! Several runs in the terminal: one line for each figure, the ratio to the first run behind it.

use super::Page;
use super::style::{fold, left, right, width};
use crate::model::Model;
use crate::model::side::{Row, Side, letter};
use crate::words;

pub(super) fn report(page: Page, models: &[Model]) -> String {
    let side = Side::of(models);
    let mut out = String::new();
    for (index, model) in models.iter().enumerate() {
        let run = &model.run;
        let storage = run.storage.as_ref().map_or_else(String::new, |storage| format!(" ({storage})"));
        let what = words::what(&run.kind, run.case.as_deref());
        let text = format!("{what} · {}{storage} · {}", run.target, words::moment(&run.started_utc));
        out.push_str(&fold(&text, page.width, &format!("{}  ", letter(index)), 3));
    }
    out.push('\n');
    out.push_str(&page.bold_fold(&side.headline));
    for refusal in &side.refusals {
        out.push_str(&fold(&format!("{refusal}. Not ranked."), page.width, "  ✗ ", 4));
    }
    for warning in &side.warnings {
        out.push_str(&fold(warning, page.width, "  ! ", 4));
    }
    out.push_str(&page.dim_fold(&side.caveat, "  ", 4));
    let mut unit = "";
    out.push_str(&page.title("Figures"));
    out.push_str(&page.paint.dim(&head(page, models.len())));
    out.push('\n');
    for row in &side.rows {
        if row.unit != unit {
            unit = &row.unit;
            out.push_str(&page.paint.dim(unit));
            out.push('\n');
        }
        out.push_str(&line(page, row));
        out.push('\n');
    }
    out.push_str(&sessions(page, &side));
    out.push_str(&facts(page, &side));
    for (index, model) in models.iter().enumerate() {
        out.push_str(&page.title(&format!("{}  {}", letter(index), model.run.target)));
        out.push_str(&fold(&model.answer.headline, page.width, "", 0));
    }
    out
}

/// Ratios over sessions, where there are enough.
fn sessions(page: Page, side: &Side) -> String {
    let Some(sessions) = &side.sessions else { return String::new() };
    let letters = |runs: &[usize]| runs.iter().map(|i| letter(*i)).collect::<String>();
    let (ours, theirs) = (letters(&sessions.runs.0), letters(&sessions.runs.1));
    let mut out = page.title(&format!("Over sessions: {theirs} to {ours}"));
    for (label, r) in &sessions.ratios {
        let text = format!("{} {}", words::ratio(r.value), words::ratio_interval(r.low, r.high));
        out.push_str(&format!("{} {text}\n", left(label, label_width(page, 2))));
    }
    out
}

/// What is not the same of the machines.
fn facts(page: Page, side: &Side) -> String {
    if side.facts.is_empty() {
        return String::new();
    }
    let mut out = page.title("Differences of the machines");
    for fact in &side.facts {
        let values: Vec<String> = fact
            .values
            .iter()
            .enumerate()
            .map(|(i, v)| format!("{} {}", letter(i), v.as_deref().unwrap_or("unknown")))
            .collect();
        out.push_str(&fold(&format!("{}: {}", fact.name, values.join(", ")), page.width, "  ", 4));
    }
    out
}

const VALUE: usize = 9;
const RATIO: usize = 18;

fn label_width(page: Page, runs: usize) -> usize {
    page.width.saturating_sub(runs * (VALUE + 1) + (runs - 1) * (RATIO + 1)).clamp(16, 44)
}

fn head(page: Page, runs: usize) -> String {
    let mut out = left("", label_width(page, runs));
    for index in 0..runs {
        out.push(' ');
        out.push_str(&right(&letter(index).to_string(), VALUE));
        if index > 0 {
            out.push_str(&format!(" {}", left(&format!("{} / A", letter(index)), RATIO)));
        }
    }
    out.trim_end().to_owned()
}

fn line(page: Page, row: &Row) -> String {
    let runs = row.values.len();
    let mut out = left(&row.label, label_width(page, runs));
    for (index, (value, ratio)) in row.values.iter().zip(&row.ratios).enumerate() {
        let text = value.as_ref().map_or("–".into(), |v| {
            let amount = words::amount(v.value);
            if v.withdrawn.is_some() { format!("({amount})") } else { amount }
        });
        out.push_str(&format!(" {}", right(&text, VALUE)));
        if index > 0 {
            let text = match (ratio, value) {
                (Some((value, low, high)), _) => {
                    format!("{} {}", words::ratio(*value), words::ratio_interval(*low, *high))
                }
                (None, Some(v)) if v.withdrawn.is_some() => "withdrawn".into(),
                _ => String::new(),
            };
            out.push_str(&format!(" {}", left(&text, RATIO.max(width(&text)))));
        }
    }
    out.trim_end().to_owned()
}
