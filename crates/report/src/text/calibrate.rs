//! A calibration in the terminal: the table of figures and the drawn load → latency curve.

use super::Page;
use super::plot::{Mark, Plot};
use super::style::{left, right, width};
use crate::chart::{Scale, extent};
use crate::model::curve::{Curve, Point};
use crate::model::{Figure, Model};
use crate::words;

/// Columns of a latency.
const LATENCY: usize = 8;

pub(super) fn report(page: Page, model: &Model) -> String {
    let mut out = figures(page, model);
    for (index, curve) in model.curves.iter().enumerate() {
        if index == 0 || curve.points.len() > 3 {
            out.push_str(&drawn(page, curve, index == 0));
        }
    }
    out
}

fn figures(page: Page, model: &Model) -> String {
    if model.figures.is_empty() {
        return String::new();
    }
    let mut out = page.title("Figures");
    let interval_width = model.figures.iter().map(|f| width(&interval(f))).max().unwrap_or(0).max(8);
    let extra = page.width >= 96;
    let rest = 1 + 9 + 1 + interval_width + 1 + LATENCY + LATENCY + if extra { 20 } else { 0 };
    let label = page.width.saturating_sub(rest).clamp(20, 44);
    let level = model.figures.iter().find_map(|f| f.level).unwrap_or(0.95);
    let head = format!(
        "{} {} {} {}{}{}",
        left("", label),
        right("", 9),
        left(&words::percent(level), interval_width),
        right("latency", LATENCY),
        right("p99", LATENCY),
        if extra { right("in flight × threads", 20) } else { String::new() }
    );
    out.push_str(&page.paint.dim(head.trim_end()));
    out.push('\n');
    let usual = model.steady_of_most();
    let mut unit = "";
    for figure in &model.figures {
        if figure.unit != unit {
            unit = &figure.unit;
            out.push_str(&page.paint.dim(unit));
            out.push('\n');
        }
        out.push_str(&row(page, figure, usual, label, interval_width, extra));
    }
    if let Some(usual) = usual {
        out.push_str(&page.dim_fold(&format!("Steady state, where nothing else is said: {usual}."), "", 2));
    }
    out
}

fn interval(figure: &Figure) -> String {
    if figure.marks.withdrawn.is_some() {
        return "withdrawn".into();
    }
    figure.interval.map_or_else(String::new, |(low, high)| words::amount_interval(low, high))
}

fn row(
    page: Page,
    figure: &Figure,
    usual: Option<&str>,
    label: usize,
    interval_width: usize,
    extra: bool,
) -> String {
    let latency = |ns: Option<f64>| right(&ns.map_or_else(String::new, words::latency), LATENCY);
    let notes = words::superscripts(&figure.marks.notes);
    let name = format!("{}{notes}", left(&figure.label, label.saturating_sub(width(&notes))).trim_end());
    let place = match (figure.in_flight, figure.threads) {
        (Some(n), Some(threads)) => format!("{n} × {threads}"),
        (Some(n), None) => n.to_string(),
        _ => String::new(),
    };
    let value = words::amount(figure.value);
    let withdrawn = figure.marks.withdrawn.is_some();
    let line = format!(
        "{} {} {} {}{}{}",
        left(&name, label),
        right(&if withdrawn { format!("({value})") } else { value }, 9),
        left(&interval(figure), interval_width),
        latency(figure.latency_ns),
        latency(figure.latency_p99_ns),
        if extra { right(&place, 20) } else { String::new() }
    );
    let mut out = if withdrawn { page.paint.dim(line.trim_end()) } else { line.trim_end().to_owned() };
    out.push('\n');
    let steady = figure.steady.as_deref().filter(|class| Some(*class) != usual);
    let beside: Vec<&str> = figure.note.as_deref().into_iter().chain(steady).collect();
    if !beside.is_empty() {
        out.push_str(&page.dim_fold(&beside.join("; "), "  ", 2));
    }
    out
}

/// Rate against requests in flight, and the latency beneath each.
fn drawn(page: Page, curve: &Curve, first: bool) -> String {
    let all = || curve.points.iter().chain(&curve.beyond);
    let Some((n_low, n_high)) = extent(all().map(|p| f64::from(p.n))) else { return String::new() };
    let Some((low, high)) = extent(all().map(|p| p.rate)) else { return String::new() };
    let title = if first { "Load → latency: " } else { "" };
    let mut out = page.title(&format!("{title}{}", curve.series));
    let line =
        |points: &[Point]| -> Vec<(f64, f64)> { points.iter().map(|p| (f64::from(p.n), p.rate)).collect() };
    let mut marks = Vec::new();
    let mut legend = Vec::new();
    let mut mark = |n: u32, rate: f64, sign: char, text: String| {
        marks.push(Mark { at: (f64::from(n), rate), sign });
        legend.push(format!("{sign} {text}"));
    };
    let at = |n: Option<u32>| n.and_then(|n| Some((n, curve.rate_at(n)?)));
    if let Some((n, rate)) = at(curve.knee).filter(|(n, _)| Some(*n) != curve.best) {
        mark(n, rate, '◆', format!("knee {n}"));
    }
    if let Some((n, rate)) = at(curve.best) {
        mark(n, rate, '▲', format!("maximum at {n}"));
    }
    if let Some(collapse) = &curve.collapse {
        let word = if collapse.collapse { "collapse" } else { "loss" };
        mark(collapse.n, collapse.rate, '✕', format!("{word} at {}", collapse.n));
    }
    if let Some(name) = curve.beyond_name.as_ref().filter(|_| !curve.beyond.is_empty()) {
        legend.push(format!("· {name}"));
    }
    let plot = Plot {
        lines: vec![line(&curve.points)],
        dotted: vec![line(&curve.beyond)],
        guides: curve.knee.filter(|n| Some(*n) != curve.best).map(f64::from).into_iter().collect(),
        levels: Vec::new(),
        marks,
        x: &|range| Scale::log((n_low, n_high), range),
        y: &|range| Scale::log((low * 0.9, high * 1.1), range),
        x_labels: powers(n_low, n_high).into_iter().map(|n| (n, format!("{n:.0}"))).collect(),
        y_label: &words::short,
    };
    let columns = page.width.min(100);
    out.push_str(&plot.draw(columns, 10));
    let beneath: Vec<(f64, String)> = powers(n_low, n_high)
        .into_iter()
        .filter_map(|n| {
            let at = curve.points.iter().find(|p| f64::from(p.n) == n)?;
            at.latency_ns.is_finite().then(|| (n, words::latency(at.latency_ns)))
        })
        .collect();
    out.push_str(&page.paint.dim(&plot.row_beneath(columns, "latency", &beneath)));
    out.push_str(&page.dim_fold(
        &format!("x: requests in flight, y: per second.  {}", legend.join("  ")),
        "          ",
        10,
    ));
    out
}

/// Powers of two from `low` to `high`.
fn powers(low: f64, high: f64) -> Vec<f64> {
    (0..16).map(|e| f64::from(1u32 << e)).filter(|n| *n >= low && *n <= high).collect()
}
