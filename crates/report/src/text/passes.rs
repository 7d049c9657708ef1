//! A table scanned again and again, in the terminal: what each pass found, and the caches over time in characters.

use super::Page;
use super::style::{cut, left, right, width};
use crate::model::compare::Comparison;
use crate::model::passes::{Pass, Passes, States};
use crate::words;

/// Columns of configurations' names at most, and of a number.
const NAMES: usize = 28;
const NUMBER: usize = 11;
/// Rows of a drawing.
const ROWS: usize = 6;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    if comparison.passes.is_empty() {
        return String::new();
    }
    let names = comparison.configurations.iter().map(|c| width(&c.name)).max().unwrap_or(8).clamp(8, NAMES);
    let numbers: String = ["time, s", "from flash", "into flash"].map(|head| right(head, NUMBER)).concat();
    let head = format!("{} pass{numbers}  skipped", left("", names));
    let mut out = page.title("The second pass") + &page.paint.dim(&head) + "\n";
    for passes in &comparison.passes {
        for (index, pass) in passes.passes.iter().enumerate() {
            let name =
                if index == 0 { comparison.configurations[passes.configuration].name.as_str() } else { "" };
            let line = format!(
                "{} {}{}",
                left(&cut(name, names), names),
                left(&(index + 1).to_string(), 4),
                figures(passes, pass)
            );
            out.push_str(cut(&line, page.width).trim_end());
            out.push('\n');
        }
    }
    for passes in comparison.passes.iter().filter(|passes| passes.flash) {
        if let Some(states) = &passes.states {
            out.push_str(
                &page.paint.dim(&format!("Blocks by state, {}", comparison.said(passes.configuration))),
            );
            out.push('\n');
            out.push_str(&drawing(states, page.width));
        }
    }
    out
}

fn figures(passes: &Passes, pass: &Pass) -> String {
    let share = |share: f64| if passes.flash { words::percent(share) } else { "–".into() };
    let skipped = pass
        .skipped()
        .map_or_else(String::new, |(reason, share)| format!("{} {reason}", words::percent(share)));
    let numbers = [words::fine(pass.seconds), share(pass.from_flash()), share(pass.into_flash())];
    format!("{}  {skipped}", numbers.map(|number| right(&number, NUMBER)).concat())
}

/// The sign of a state.
fn sign(state: &str) -> char {
    match state {
        "xcur" | "dirty" => '█',
        "flashcur" => '▓',
        "flashfree" => '░',
        "free" => '·',
        _ => '▒',
    }
}

/// Columns of time, rows of blocks; beneath it where each pass begins.
fn drawing(states: &States, columns: usize) -> String {
    let inner = columns.saturating_sub(12).clamp(10, 100);
    let (bands, end) = (&states.bands, states.passes.last().map_or(0.0, |pass| pass.1));
    let peak = bands.peak();
    let at = |column: usize| {
        let moment = (column as f64 + 0.5) / inner as f64 * end;
        bands.steps.iter().find(|step| step.0 <= moment && moment < step.1)
    };
    let seen = |column: usize, height: f64| {
        let mut sum = 0.0;
        let state = at(column)?.2.iter().zip(&bands.keys).find(|(blocks, _)| {
            sum += **blocks;
            sum > height
        });
        state.map(|(_, state)| sign(state))
    };
    let mut out = String::new();
    for row in 0..ROWS {
        let label = if row == 0 { words::short(peak.round()) } else { String::new() };
        let height = (ROWS - row) as f64 - 0.5;
        let line: String =
            (0..inner).map(|column| seen(column, height / ROWS as f64 * peak).unwrap_or(' ')).collect();
        out.push_str(&format!("{} │{}", right(&label, 7), line.trim_end()));
        out.push('\n');
    }
    let mut marks = vec![' '; inner];
    for (pass, (from, _)) in states.passes.iter().enumerate() {
        let column = ((from / end.max(1e-9) * inner as f64) as usize).min(inner - 1);
        marks[column] = char::from_digit(pass as u32 + 1, 10).unwrap_or('?');
    }
    let marks: String = marks.into_iter().collect();
    out.push_str(&format!("{} └{}\n", right("pass", 7), marks.trim_end()));
    let legend: Vec<String> = bands.keys.iter().map(|state| format!("{} {state}", sign(state))).collect();
    out.push_str(&cut(&format!("         {}, {}", legend.join("  "), words::span(end)), columns));
    out.push('\n');
    out
}
