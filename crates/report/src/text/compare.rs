//! A comparison in the terminal: the matrix of ratios, the break-even curve, one panel for each headline workload.

use super::Page;
use super::plot::{self, Mark, Plot};
use super::style::{cut, left, right, sign, width};
use crate::chart::{Scale, extent};
use crate::model::compare::{Cell, Comparison, Workload};
use crate::model::sentence;
use crate::model::weighted::{HIT_MAX, Mix};
use crate::words;

/// Widest ratio that an axis shows; beyond it an arrow stands.
const RATIO_MAX: f64 = 64.0;
/// Columns of one configuration in the matrix.
const COLUMN: usize = 9;
/// Columns of a level, and of a verdict with its notes.
const LEVEL: usize = 9;
const VERDICT: usize = 12;
/// Columns of the workloads' names.
const NAMES: usize = 17;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    let mut out = super::network::report(page, comparison) + &super::nodes::report(page, comparison);
    out.push_str(&match comparison.general() {
        true => super::ranked::report(page, comparison),
        false => matrix(page, comparison),
    });
    out.push_str(&super::calls::report(page, comparison));
    if let Ok(mix) = &comparison.mix {
        out.push_str(&break_even(page, comparison, mix));
    }
    if !comparison.general() {
        for workload in shown(comparison) {
            out.push_str(&panel(page, comparison, workload));
        }
    }
    out.push_str(&super::compared::report(page, comparison));
    out.push_str(&left_out(page, comparison));
    out
}

/// The mix, then the workloads of the first page.
fn shown(comparison: &Comparison) -> impl Iterator<Item = &Workload> {
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
    mix.into_iter().chain(comparison.workloads.iter().filter(|w| w.headline))
}

/// The axis of one panel: wide enough for its intervals, never so narrow that nothing looks like much.
fn axis(workload: &Workload, columns: usize) -> Scale {
    let decisions = workload.cells.iter().filter_map(|cell| cell.decision.as_ref());
    let ends =
        decisions.flat_map(|d| [d.ratio.low.max(d.ratio.value / 2.0), d.ratio.high.min(d.ratio.value * 2.0)]);
    let (low, high) = extent(ends.chain([1.0])).unwrap_or((0.9, 1.1));
    let clip = |v: f64| v.clamp(1.0 / RATIO_MAX, RATIO_MAX);
    Scale::log((clip(low).min(0.9), clip(high).max(1.1)), (0.0, (columns - 1) as f64))
}

/// All workloads × all configurations: sign and ratio.
fn matrix(page: Page, comparison: &Comparison) -> String {
    let mut out = page.title(&format!("Ratio to {}", comparison.said(comparison.baseline)));
    out.push_str(&page.paint.dim("▲ better  ▼ worse  = same  ? unknown  – not compared"));
    out.push('\n');
    let others: Vec<usize> =
        (0..comparison.configurations.len()).filter(|i| *i != comparison.baseline).collect();
    let fit = ((page.width - NAMES) / COLUMN).max(1);
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
    for part in others.chunks(fit) {
        for word in 0..2 {
            let names = part.iter().map(|i| {
                let name = &comparison.configurations[*i].name;
                let (first, second) = name.split_once(' ').unwrap_or((name, ""));
                let notes = words::superscripts(&comparison.configurations[*i].marks.notes);
                let text = if word == 0 {
                    cut(first, COLUMN - 1 - width(&notes)) + &notes
                } else {
                    second.to_owned()
                };
                format!(" {}", right(&text, COLUMN - 1))
            });
            out.push_str(&page.paint.dim(&format!("{}{}", " ".repeat(NAMES), names.collect::<String>())));
            out.push('\n');
        }
        for workload in mix.into_iter().chain(&comparison.workloads) {
            let name = if workload.name == "mix" { "your mix" } else { &workload.name };
            let name = left(name, NAMES);
            out.push_str(&if workload.headline { page.paint.bold(&name) } else { name });
            for i in part {
                out.push_str(&matrix_cell(page, &workload.cells[*i]));
            }
            out.push('\n');
        }
    }
    out
}

fn matrix_cell(page: Page, cell: &Cell) -> String {
    let text = match &cell.decision {
        Some(d) => format!("{} {}", sign(cell.verdict()), words::ratio(d.ratio.value)),
        None => "–".into(),
    };
    let notes = words::superscripts(&cell.marks.notes);
    let fits = width(&text) + width(&notes) < COLUMN;
    page.paint.verdict(cell.verdict(), &right(&if fits { text + &notes } else { text }, COLUMN))
}

/// The speed-up of the leader against hit ratio, where it stops paying, and where the user is.
fn break_even(page: Page, comparison: &Comparison, mix: &Mix) -> String {
    let mut out = page.title(&sentence::when_it_pays(comparison, mix));
    out.push_str(&page.dim_fold(
        &format!(
            "Speed-up over {} against the buffer cache hit ratio; dotted: 1 × and the margin of {}.",
            comparison.said(comparison.baseline),
            words::percent(mix.delta)
        ),
        "",
        0,
    ));
    // Equal steps of the axis are equal factors of the miss ratio.
    let misses = |h: f64| 1.0 / (1.0 - h);
    let points: Vec<(f64, f64)> = mix.curve.iter().map(|(h, i)| (misses(*h), i.value)).collect();
    let (low, high) = extent(points.iter().map(|p| p.1).chain([1.0, 1.0 + mix.delta])).unwrap_or((1.0, 2.0));
    let here = mix.workload.cells[mix.leader].decision.as_ref().map_or(1.0, |d| d.ratio.value);
    let mut marks = vec![Mark { at: (misses(mix.inputs.hit_ratio.min(HIT_MAX)), here), sign: '●' }];
    let mut legend = format!("● you: {} × at {}", words::ratio(here), words::percent(mix.inputs.hit_ratio));
    for h in mix.break_even() {
        marks.push(Mark { at: (misses(h), 1.0 + mix.delta), sign: '◆' });
        legend.push_str(&format!("   ◆ break-even: {}", words::percent(h)));
    }
    let plot = Plot {
        lines: vec![points],
        dotted: Vec::new(),
        guides: Vec::new(),
        levels: vec![1.0, 1.0 + mix.delta],
        marks,
        x: &|range| Scale::log((1.0, misses(HIT_MAX)), range),
        y: &|range| Scale::log((low * 0.97, high * 1.03), range),
        x_labels: [0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999]
            .map(|h| (misses(h), words::percent(h)))
            .into(),
        y_label: &|v| format!("{} ×", words::ratio(v)),
    };
    out.push_str(&plot.draw(page.width.min(100), 9));
    out.push_str(&format!("          {legend}\n"));
    let said: String = mix.said.iter().map(|sentence| format!(" {sentence}")).collect();
    let assumed = format!(
        "Your mix: {}, reads {} of the work, hit ratio {}.{said} Assumed: {}.",
        words::count(mix.inputs.sessions as usize, "session"),
        words::percent(mix.inputs.read_share),
        words::percent(mix.inputs.hit_ratio),
        mix.assumptions.join("; ")
    );
    out.push_str(&page.dim_fold(&assumed, "", 2));
    if let Some(share) = mix.page_cache_break_even {
        out.push_str(&page.dim_fold(
            &format!(
                "If the page cache caught more than {} of the misses of {}, its reads would be the faster ones.",
                words::percent(share),
                comparison.said(comparison.baseline)
            ),
            "",
            2,
        ));
    }
    for sentence in mix.map.sentences(comparison, &mix.inputs) {
        out.push_str(&super::style::fold(&sentence, page.width, "", 2));
    }
    if let Some(strongest) = mix.sensitivity.first() {
        out.push_str(&page.dim_fold(&flip(mix, strongest.input), "", 2));
    }
    out
}

/// The input that moves the verdict most, and whether a tenth of it would flip the answer.
fn flip(mix: &Mix, strongest: &str) -> String {
    match mix.sensitivity.iter().find(|s| s.flips) {
        Some(s) => format!(
            "A tenth more or less of this would change whether it pays: {}. Measure it better.",
            s.input
        ),
        None => format!(
            "What moves this most is the {strongest}; a tenth more or less of any input changes no answer."
        ),
    }
}

/// One workload: level, interval of the ratio drawn and written, verdict.
fn panel(page: Page, comparison: &Comparison, workload: &Workload) -> String {
    let sessions = match workload.sessions {
        Some(n) if workload.name != "mix" => format!(", {}", words::count(n as usize, "session")),
        _ => String::new(),
    };
    let mut out = page.title(&format!("{}{sessions}", words::capital(&workload.title)));
    let say = format!("{}.", words::capital(&sentence::of_workload(comparison, workload)));
    out.push_str(&super::style::fold(&say, page.width, "", 0));
    let names = comparison.configurations.iter().map(|c| width(&c.name)).max().unwrap_or(4).min(24);
    let text = workload.cells.iter().map(|cell| width(&ratio_text(cell))).max().unwrap_or(16).clamp(16, 20);
    // Name, level, drawing, ratio, verdict: what the others leave belongs to the drawing.
    let drawn = page.width.saturating_sub(names + 1 + LEVEL + 2 + 1 + text + 1 + VERDICT).clamp(12, 48);
    let scale = axis(workload, drawn);
    let head = format!(
        "{} {}  {} ratio",
        left("", names),
        right(words::unit(&workload.metric), LEVEL),
        plot::ticks(&scale, drawn, words::short),
    );
    out.push_str(&page.paint.dim(&head));
    out.push('\n');
    for (i, cell) in workload.cells.iter().enumerate() {
        let name = left(&comparison.configurations[i].name, names);
        let row = row(cell, i == comparison.baseline, &scale, drawn, text);
        let line = format!("{name} {row}");
        let decided = cell.decision.is_some();
        out.push_str(&match i == comparison.baseline {
            true => line.trim_end().to_owned(),
            false if decided => page.paint.verdict(cell.verdict(), line.trim_end()),
            false => page.paint.dim(line.trim_end()),
        });
        out.push('\n');
    }
    out
}

/// Everything of a row behind the name.
fn row(cell: &Cell, baseline: bool, scale: &Scale, drawn: usize, text: usize) -> String {
    let first = cell.blocks.values().next().copied();
    let level = cell.absolute.map(|a| a.value).or(first).map_or("–".into(), words::amount);
    let level = if cell.withdrawn() { format!("({level})") } else { level };
    let (picture, word) = match (&cell.decision, cell.verdict()) {
        (Some(d), Some(verdict)) => {
            let sign = sign(Some(verdict));
            let r = &d.ratio;
            (plot::interval(scale, drawn, r.low, r.value, r.high, sign), format!("{sign} {verdict}"))
        }
        _ if baseline => (plot::interval(scale, drawn, 1.0, 1.0, 1.0, '│'), "  baseline".into()),
        _ => (" ".repeat(drawn), "–".into()),
    };
    let notes = if cell.withdrawn() { String::new() } else { words::superscripts(&cell.marks.notes) };
    format!("{}  {picture} {} {word}{notes}", right(&level, LEVEL), left(&ratio_text(cell), text))
}

fn ratio_text(cell: &Cell) -> String {
    match (&cell.decision, &cell.not_compared) {
        (Some(d), _) => {
            format!("{} {}", words::ratio(d.ratio.value), words::ratio_interval(d.ratio.low, d.ratio.high))
        }
        (None, Some(_)) if cell.withdrawn() => format!("withdrawn{}", words::superscripts(&cell.marks.notes)),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    }
}

/// What did not run, and what was not used.
fn left_out(page: Page, comparison: &Comparison) -> String {
    let mut out = String::new();
    for (name, reason) in &comparison.not_run {
        out.push_str(&page.dim_fold(&format!("Left out: {name}. {reason}"), "", 2));
    }
    for (reason, how_many) in &comparison.left_out {
        let text = format!("Not used: {how_many} × {reason}.");
        out.push_str(&page.dim_fold(&text, "", 2));
    }
    let text = format!(
        "{} of {} each, every configuration once in each, in random order; intervals at {} over blocks; better, worse and same \
         are beyond or within ±{}.",
        words::count(comparison.blocks, "block"),
        words::span(comparison.block_seconds),
        words::percent(1.0 - comparison.rule.level_per_look),
        words::percent(comparison.rule.delta)
    );
    out.push_str(&page.dim_fold(&text, "", 2));
    if out.is_empty() { out } else { format!("\n{out}") }
}
