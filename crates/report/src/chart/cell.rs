//! Small drawings that stand in the cells of a table: an interval of a ratio, the shape of a latency distribution. The
//! axis is a cell of its own, above the rows; the cells have no space between them, so guides run through.

use super::{Anchor, Scale, Svg};
use stats::interval::Interval;
use stats::verdict::Verdict;

/// Height of a row's cell.
pub const HEIGHT: f64 = 24.0;
/// Width of an interval's cell.
pub const INTERVAL_WIDTH: f64 = 280.0;
/// Width of a latency's cell.
pub const LATENCY_WIDTH: f64 = 190.0;
/// Blank at both ends, so that end ticks can be labelled.
const MARGIN: f64 = 14.0;

/// The axis of ratios, log, over the width of an interval's cell.
pub fn ratio_scale(low: f64, high: f64) -> Scale {
    Scale::log((low, high), (MARGIN, INTERVAL_WIDTH - MARGIN))
}

/// The axis of latencies, log.
pub fn latency_scale(low: f64, high: f64) -> Scale {
    Scale::log((low, high), (MARGIN, LATENCY_WIDTH - MARGIN))
}

/// Labels of `scale`, at most `wanted`, at the foot of a cell `width` wide.
pub fn axis(scale: &Scale, width: f64, wanted: usize, label: impl Fn(f64) -> String) -> String {
    let mut svg = Svg::new(width, 18.0);
    let mut free = f64::NEG_INFINITY;
    for tick in scale.ticks(wanted) {
        let (x, text) = (scale.place(tick), label(tick));
        let half = text.chars().count() as f64 * 3.1;
        if x - half < free {
            continue;
        }
        free = x + half + 5.0;
        let (at, anchor) = if x - half < 0.0 {
            (0.0, Anchor::Start)
        } else if x + half > width {
            (width, Anchor::End)
        } else {
            (x, Anchor::Middle)
        };
        svg.text("tick", (at, 11.0), anchor, &text);
        svg.line("tickmark", (x, 14.0), (x, 18.0));
    }
    svg.finish_hidden()
}

/// Thin lines at the ticks, stronger at 1.
fn guides(svg: &mut Svg, scale: &Scale, wanted: usize) {
    for tick in scale.ticks(wanted) {
        let x = scale.place(tick);
        svg.line("guide", (x, 0.0), (x, HEIGHT));
    }
}

/// An interval with the mark of its verdict; `None` for the baseline, which is a point at 1.
pub fn interval(scale: &Scale, ticks: usize, decided: Option<(&Interval, Verdict)>, tip: &str) -> String {
    let mut svg = Svg::new(INTERVAL_WIDTH, HEIGHT);
    guides(&mut svg, scale, ticks);
    let one = scale.place(1.0);
    svg.line("one", (one, 0.0), (one, HEIGHT));
    let middle = HEIGHT / 2.0;
    let Some((ratio, verdict)) = decided else {
        svg.dot("mark-base", (one, middle), 3.0, tip);
        return svg.finish_hidden();
    };
    let class = class(verdict);
    let (from, to) = (scale.place_inside(ratio.low), scale.place_inside(ratio.high));
    svg.line(&format!("whisker {class}"), (from, middle), (to, middle));
    for (end, value) in [(from, ratio.low), (to, ratio.high)] {
        if scale.contains(value) {
            svg.line(&format!("whisker {class}"), (end, middle - 4.0), (end, middle + 4.0));
        } else {
            let way = if value < 1.0 { -1.0 } else { 1.0 };
            let head = [(0.0, -4.0), (6.0 * way, 0.0), (0.0, 4.0)];
            svg.mark(&format!("arrow {class}"), (end, middle), &head, "beyond the axis");
        }
    }
    let at = (scale.place_inside(ratio.value), middle);
    match verdict {
        Verdict::Better => {
            svg.mark(&format!("mark {class}"), at, &[(0.0, -5.5), (5.5, 4.5), (-5.5, 4.5)], tip)
        }
        Verdict::Worse => {
            svg.mark(&format!("mark {class}"), at, &[(0.0, 5.5), (5.5, -4.5), (-5.5, -4.5)], tip)
        }
        Verdict::Same => {
            svg.mark(&format!("mark {class}"), at, &[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)], tip)
        }
        Verdict::Unknown => svg.dot(&format!("mark {class}"), at, 4.5, tip),
    }
    svg.finish_hidden()
}

/// A withdrawn or missing cell: guides only.
pub fn empty(scale: &Scale, ticks: usize) -> String {
    let mut svg = Svg::new(INTERVAL_WIDTH, HEIGHT);
    guides(&mut svg, scale, ticks);
    let one = scale.place(1.0);
    svg.line("one", (one, 0.0), (one, HEIGHT));
    svg.finish_hidden()
}

/// CSS class of a verdict.
pub fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same => "same",
        Verdict::Unknown => "unknown",
    }
}

/// What a latency cell draws.
pub struct Latency<'a> {
    /// `(low, high, share)` in nanoseconds, ascending.
    pub steps: &'a [(f64, f64, f64)],
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile where it may be quoted.
    pub p99_ns: Option<f64>,
}

/// The shape of a distribution: area for the density over log latency, a stroke at the median, a dot at p99. `peak` is the
/// largest share of a step in all rows that share the axis.
pub fn latency(scale: &Scale, ticks: usize, shape: Option<&Latency<'_>>, peak: f64, tip: &str) -> String {
    let mut svg = Svg::new(LATENCY_WIDTH, HEIGHT);
    guides(&mut svg, scale, ticks);
    let Some(shape) = shape else { return svg.finish_hidden() };
    let (foot, top) = (HEIGHT - 1.0, HEIGHT - 3.0);
    let mut outline = Vec::new();
    let mut end = None;
    for (low, high, share) in shape.steps {
        let (x0, x1) = (scale.place_inside(*low), scale.place_inside(*high));
        if end.is_some_and(|end: f64| (end - x0).abs() > 0.05) || end.is_none() {
            outline.push((end.unwrap_or(x0), foot));
            outline.push((x0, foot));
        }
        let y = foot - top * (share / peak).min(1.0);
        outline.push((x0, y));
        outline.push((x1, y));
        end = Some(x1);
    }
    outline.push((end.unwrap_or(0.0), foot));
    svg.area("density", &outline);
    let median = scale.place_inside(shape.p50_ns);
    svg.line("median", (median, 3.0), (median, foot));
    if let Some(p99) = shape.p99_ns {
        svg.dot("p99", (scale.place_inside(p99), foot - 4.0), 2.4, tip);
    }
    svg.finish_hidden()
}
