//! A calibration on the page: the load → latency curve, then every figure with its interval and its latencies.

use super::marks;
use crate::chart::cell::{self, Latency};
use crate::chart::curve::{At, CurveChart};
use crate::chart::{escape, extent};
use crate::model::curve::{Curve, Point};
use crate::model::{Figure, Model};
use crate::words;

const TICKS: usize = 4;

pub(super) fn sections(model: &Model) -> String {
    let mut out = String::new();
    if let Some((first, rest)) = model.curves.split_first() {
        out.push_str(&format!(
            "<section id=\"curve\">\n<h2>Load and latency: {}</h2>\n",
            escape(&first.series)
        ));
        out.push_str(&curve(first));
        out.push_str(&figures(model));
        for more in rest.iter().filter(|c| c.points.len() > 2) {
            out.push_str(&format!(
                "<section class=\"panel\">\n<h3>Load and latency: {}</h3>\n",
                escape(&more.series)
            ));
            out.push_str(&curve(more));
        }
    } else {
        out.push_str(&figures(model));
    }
    out
}

fn at(point: &Point) -> At {
    At { n: f64::from(point.n), rate: point.rate, spread: point.spread, latency_ns: point.latency_ns }
}

fn curve(curve: &Curve) -> String {
    let chart = CurveChart {
        title: &curve.series,
        points: curve.points.iter().map(at).collect(),
        beyond: curve.beyond.iter().map(at).collect(),
        beyond_name: curve.beyond_name.as_deref(),
        knee: curve
            .knee
            .filter(|n| Some(*n) != curve.best)
            .and_then(|n| curve.rate_at(n).map(|rate| (f64::from(n), rate))),
        best: curve.best.and_then(|n| curve.rate_at(n).map(|rate| (f64::from(n), rate))),
        collapse: curve
            .collapse
            .as_ref()
            .map(|c| (f64::from(c.n), c.rate, if c.collapse { "collapse" } else { "loss" })),
    };
    let mut caption = Vec::new();
    if let Some(n) = curve.saturation.filter(|n| n.is_finite()) {
        caption.push(format!(
            "The storage acts like {n:.1} servers at work in parallel (maximum / rate with one in flight)."
        ));
    }
    if let Some(n) = curve.power {
        caption.push(format!("Most rate for its latency: {n} in flight."));
    }
    if curve.lower_bound {
        caption.push("The search stopped at its first bracket: the maximum may be higher.".into());
    }
    if let Some(why) = &curve.unstable {
        caption.push(format!("The environment was not stable: {why}."));
    }
    format!(
        "<figure><div class=\"scroll\">{}</div>\n<figcaption>{}</figcaption></figure>\n{}</section>\n",
        chart.draw(),
        escape(&caption.join(" ")),
        points(curve)
    )
}

/// The numbers behind the drawing.
fn points(curve: &Curve) -> String {
    let row = |p: &Point, what: &str| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
            p.n,
            p.threads,
            words::amount(p.rate),
            words::latency(p.latency_ns),
            p.readings,
            escape(what)
        )
    };
    let rows: String = curve
        .points
        .iter()
        .map(|p| row(p, &p.stages.join(", ")))
        .chain(curve.beyond.iter().map(|p| row(p, curve.beyond_name.as_deref().unwrap_or("beyond"))))
        .collect();
    format!(
        "<details class=\"numbers\">\n<summary>the numbers behind this drawing</summary>\n<table>\n<thead><tr><th scope=\"col\">in flight</th><th \
         scope=\"col\">threads</th><th scope=\"col\">rate/s</th><th scope=\"col\">latency</th><th scope=\"col\">readings</th><th \
         class=\"text\" scope=\"col\">visited for</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n</details>\n"
    )
}

fn figures(model: &Model) -> String {
    if model.figures.is_empty() {
        return String::new();
    }
    let shapes: Vec<_> = model.figures.iter().map(|f| f.shape.as_ref()).collect();
    let span = extent(shapes.iter().flatten().flat_map(|s| [s.span().0, s.span().1])).unwrap_or((1e3, 1e6));
    let scale = cell::latency_scale(span.0 * 0.9, span.1 * 1.1);
    let peak =
        extent(shapes.iter().flatten().flat_map(|s| s.steps.iter().map(|step| step.2))).map_or(1.0, |e| e.1);
    let level = model.figures.iter().find_map(|f| f.level).unwrap_or(0.95);
    let usual = model.steady_of_most();
    let steady = usual
        .map_or_else(String::new, |u| format!(" Steady state, where nothing else is said: {}.", escape(u)));
    let mut rows = String::new();
    let mut unit = "";
    for (figure, shape) in model.figures.iter().zip(&shapes) {
        if figure.unit != unit {
            unit = &figure.unit;
            rows.push_str(&format!("<tr><th class=\"dim\" scope=\"rowgroup\" colspan=\"7\"><span class=\"note\">{}</span></th></tr>\n", escape(unit)));
        }
        let drawn = shape.map(|s| Latency { steps: &s.steps, p50_ns: s.p50_ns, p99_ns: s.p99_ns });
        let p99 = figure.latency_p99_ns.map_or_else(String::new, words::latency);
        rows.push_str(&row(
            figure,
            usual,
            &cell::latency(&scale, TICKS, drawn.as_ref(), peak, &format!("99th percentile {p99}")),
            &p99,
        ));
    }
    format!(
        concat!(
            "<section id=\"figures\">\n<h2>Figures</h2>\n<p class=\"note\">Measured again on fresh data at their operating points; {level} ",
            "intervals. Latency: the shape of all latencies on one log axis; the stroke is the median, the dot the 99th percentile.{steady}</p>\n",
            "<div class=\"scroll\"><table class=\"bars\">\n<colgroup><col style=\"width:31%\"><col style=\"width:9%\">",
            "<col style=\"width:15%\"><col style=\"width:20%\"><col style=\"width:7.5%\"><col style=\"width:7.5%\">",
            "<col style=\"width:10%\"></colgroup>\n<thead><tr><th></th><th scope=\"col\">figure</th><th class=\"text\" ",
            "scope=\"col\">interval</th><th class=\"draw\">{axis}</th><th scope=\"col\">mean</th><th scope=\"col\">p99</th>",
            "<th scope=\"col\">in flight,<br>threads</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
        ),
        level = words::percent(level),
        steady = steady,
        axis = cell::axis(&scale, cell::LATENCY_WIDTH, TICKS, words::latency_short),
        rows = rows,
    )
}

fn row(figure: &Figure, usual: Option<&str>, drawn: &str, p99: &str) -> String {
    let withdrawn = figure.marks.withdrawn.is_some();
    let interval = match (&figure.marks.withdrawn, figure.interval) {
        (Some(_), _) => "withdrawn".into(),
        (None, Some((low, high))) => words::amount_interval(low, high),
        (None, None) => String::new(),
    };
    let place = match (figure.in_flight, figure.threads) {
        (Some(n), Some(threads)) => format!("{n}, {threads}"),
        (Some(n), None) => n.to_string(),
        _ => String::new(),
    };
    let steady = figure.steady.as_deref().filter(|class| Some(*class) != usual);
    let because = figure.marks.withdrawn.as_deref();
    let beside: Vec<&str> = figure.note.as_deref().into_iter().chain(steady).chain(because).collect();
    let beside = if beside.is_empty() {
        String::new()
    } else {
        format!("<br><span class=\"note\" style=\"white-space:normal\">{}</span>", escape(&beside.join("; ")))
    };
    format!(
        "<tr class=\"{}\"><th scope=\"row\">{}{}{beside}</th><td class=\"value\">{}</td><td class=\"text\">{interval}</td><td \
         class=\"draw\">{drawn}</td><td>{}</td><td>{p99}</td><td>{place}</td></tr>\n",
        if withdrawn { "out" } else { "" },
        escape(&figure.label),
        marks(&figure.marks),
        words::amount(figure.value),
        figure.latency_ns.map_or_else(String::new, words::latency),
    )
}
