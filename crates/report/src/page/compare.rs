//! A comparison on the page: matrix of ratios, the mix with its break-even curve, one table-graphic for each workload.

use super::{marks, numbers};
use crate::chart::cell::{self, Latency};
use crate::chart::{Scale, escape, extent};
use crate::model::compare::{Cell, Comparison, Workload};
use crate::model::sentence;
use crate::words;
use stats::verdict::Verdict;

/// Widest ratio that an axis shows; beyond it an arrow stands.
const RATIO_MAX: f64 = 64.0;
/// Labels on the axis of ratios and of latencies.
pub(super) const TICKS: usize = 5;
const TICKS_LATENCY: usize = 3;

pub(super) fn sections(comparison: &Comparison) -> String {
    let mut out = super::network::section(comparison) + &super::nodes::section(comparison);
    out.push_str(&match comparison.general() {
        true => [
            super::passes::sections(comparison),
            super::placement::sections(comparison),
            super::devices::sections(comparison),
            super::ranked::sections(comparison),
        ]
        .concat(),
        false => matrix(comparison),
    });
    out.push_str(&super::calls::sections(comparison));
    if let Ok(mix) = &comparison.mix {
        out.push_str(&super::mix::section(comparison, mix));
    }
    out.push_str("<section id=\"workloads\">\n<h2>Workload by workload</h2>\n");
    out.push_str(&format!(
        "<p class=\"note\">Ratio to {} with its interval over blocks. Latency: the shape of all latencies on a log axis; the stroke is \
         the median, the dot the 99th percentile where enough latencies lie beyond it.</p>\n",
        escape(&comparison.said(comparison.baseline))
    ));
    let (first, rest): (Vec<&Workload>, Vec<&Workload>) =
        comparison.workloads.iter().partition(|w| w.headline);
    for workload in first.into_iter().chain(rest) {
        out.push_str(&panel(comparison, workload));
    }
    out.push_str("</section>\n");
    out.push_str(&super::compared::section(comparison));
    if comparison.workload("read-cold").is_some() || comparison.workload("writers").is_some() {
        out.push_str(&proofs(comparison));
    }
    if comparison.general() {
        out.push_str(&super::configurations::sections(comparison));
    }
    out
}

pub(super) fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "▲",
        Verdict::Worse => "▼",
        Verdict::Same => "=",
        Verdict::Unknown => "?",
    }
}

/// `mode` on one line and `api` beneath it, with the notes about the configuration.
fn heading(comparison: &Comparison, index: usize) -> String {
    let configuration = &comparison.configurations[index];
    let (first, second) = configuration.name.split_once(' ').unwrap_or((&configuration.name, ""));
    let second = if second.is_empty() { String::new() } else { format!("<br>{}", escape(second)) };
    format!("<th scope=\"col\">{}{}{second}</th>", escape(first), numbers(&configuration.marks.notes))
}

fn matrix(comparison: &Comparison) -> String {
    let others: Vec<usize> =
        (0..comparison.configurations.len()).filter(|i| *i != comparison.baseline).collect();
    let heads: String = others.iter().map(|i| heading(comparison, *i)).collect();
    let mix = comparison.mix.as_ref().ok().map(|mix| &mix.workload);
    let rows: String = mix
        .into_iter()
        .chain(&comparison.workloads)
        .map(|w| {
            let cells: String = others.iter().map(|i| matrix_cell(comparison, w, *i)).collect();
            let class = if w.name == "mix" {
                "mix"
            } else if w.headline {
                ""
            } else {
                "minor"
            };
            let title = if w.name == "mix" { "your mix".to_owned() } else { w.title.clone() };
            format!(
                "<tr class=\"{class}\"><th scope=\"row\"><a href=\"#{}\">{}</a></th>{cells}</tr>\n",
                anchor(w),
                escape(&title)
            )
        })
        .collect();
    format!(
        "<section id=\"overview\">\n<h2>Ratio to {}</h2>\n<ul class=\"legend\"><li><span class=\"v-better\">▲ better</span></li><li><span \
         class=\"v-worse\">▼ worse</span></li><li><span class=\"v-same\">= same within ±{}</span></li><li><span class=\"v-unknown\">? \
         unknown yet</span></li><li><span class=\"dim\">withdrawn: a rule of integrity failed, see its note</span></li></ul>\n<div class=\"scroll\"><table \
         class=\"matrix\">\n<thead><tr><th></th>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n",
        escape(&comparison.said(comparison.baseline)),
        words::percent(comparison.rule.delta)
    )
}

pub(super) fn anchor(workload: &Workload) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("w-{}", workload.name.chars().map(safe).collect::<String>())
}

fn matrix_cell(comparison: &Comparison, workload: &Workload, index: usize) -> String {
    let cell = &workload.cells[index];
    let Some(d) = &cell.decision else {
        let why = cell.not_compared.clone().or_else(|| workload.undecided.clone()).unwrap_or_default();
        let text = if cell.withdrawn() { "withdrawn" } else { "–" };
        return format!("<td class=\"none\" title=\"{}\">{text}{}</td>", escape(&why), marks(&cell.marks));
    };
    let tip = format!(
        "{}, {}: {} × {} ({})",
        comparison.configurations[index].name,
        workload.title,
        words::ratio(d.ratio.value),
        words::ratio_interval(d.ratio.low, d.ratio.high),
        d.reason
    );
    format!(
        "<td title=\"{}\"><span class=\"v-{}\">{} {}</span>{}</td>",
        escape(&tip),
        cell::class(d.verdict),
        sign(d.verdict),
        words::ratio(d.ratio.value),
        marks(&cell.marks)
    )
}

pub(super) fn level(cell: &Cell) -> String {
    let first = cell.blocks.values().next().copied();
    cell.absolute.map(|a| a.value).or(first).map_or("–".into(), words::amount)
}

/// The axis of one panel: wide enough for its intervals, never so narrow that nothing looks like much.
pub(super) fn axis(workload: &Workload) -> Scale {
    let decisions = workload.cells.iter().filter_map(|cell| cell.decision.as_ref());
    let ends =
        decisions.flat_map(|d| [d.ratio.low.max(d.ratio.value / 2.0), d.ratio.high.min(d.ratio.value * 2.0)]);
    let (low, high) = extent(ends.chain([1.0])).unwrap_or((0.9, 1.1));
    let clip = |v: f64| v.clamp(1.0 / RATIO_MAX, RATIO_MAX);
    cell::ratio_scale((clip(low) * 0.98).min(0.9), (clip(high) * 1.02).max(1.1))
}

/// One configuration's interval cell, and what stands beside it: ratio and verdict.
pub(super) fn ratio_cells(
    comparison: &Comparison,
    workload: &Workload,
    index: usize,
    scale: &Scale,
) -> String {
    let cell = &workload.cells[index];
    if index == comparison.baseline {
        let drawn = cell::interval(scale, TICKS, None, "baseline");
        return format!(
            "<td class=\"draw\">{drawn}</td><td class=\"text\">1</td><td class=\"text\">baseline</td>"
        );
    }
    match (&cell.decision, &cell.not_compared) {
        (Some(d), _) => {
            let ratio = format!(
                "{} {}",
                words::ratio(d.ratio.value),
                words::ratio_interval(d.ratio.low, d.ratio.high)
            );
            let drawn =
                cell::interval(scale, TICKS, Some((&d.ratio, d.verdict)), &format!("{ratio} {}", d.verdict));
            let needed = match d.blocks_needed {
                Some(blocks) if blocks < 1_000 => {
                    format!("about {} would decide", words::count(blocks.max(1), "more block"))
                }
                _ => d.reason.to_string(),
            };
            format!(
                "<td class=\"draw\">{drawn}</td><td class=\"text\">{ratio}</td><td class=\"text\" title=\"{}\"><span class=\"v-{}\">{} \
                 {}</span>{}</td>",
                escape(&needed),
                cell::class(d.verdict),
                sign(d.verdict),
                d.verdict,
                marks(&cell.marks)
            )
        }
        (None, reason) if cell.withdrawn() => format!(
            "<td class=\"draw\">{}</td><td class=\"text\">–</td><td class=\"text\" title=\"{}\">withdrawn{}</td>",
            cell::empty(scale, TICKS),
            escape(reason.as_deref().unwrap_or_default()),
            marks(&cell.marks),
        ),
        (None, reason) => format!(
            "<td class=\"draw\">{}</td><td class=\"because\" colspan=\"2\" title=\"{full}\">{full}{}</td>",
            cell::empty(scale, TICKS),
            marks(&cell.marks),
            full = escape(reason.as_deref().unwrap_or("no verdict")),
        ),
    }
}

pub(super) fn row_class(comparison: &Comparison, workload: &Workload, index: usize) -> &'static str {
    match () {
        () if workload.cells[index].withdrawn() => "out",
        () if index == comparison.baseline => "base",
        () => "",
    }
}

fn panel(comparison: &Comparison, workload: &Workload) -> String {
    let scale = axis(workload);
    let shapes: Vec<_> = workload.cells.iter().map(|cell| cell.shape.as_ref()).collect();
    let span = extent(shapes.iter().flatten().flat_map(|s| [s.span().0, s.span().1])).unwrap_or((1e3, 1e6));
    let latency = cell::latency_scale(span.0 * 0.9, span.1 * 1.1);
    let steps = shapes.iter().flatten().flat_map(|s| s.steps.iter().map(|step| step.2));
    let peak = extent(steps).map_or(1.0, |e| e.1);
    let rows: String = (0..workload.cells.len())
        .map(|i| {
            let cell = &workload.cells[i];
            let drawn = shapes[i].map(|s| Latency { steps: &s.steps, p50_ns: s.p50_ns, p99_ns: s.p99_ns });
            let p99 = shapes[i].and_then(|s| s.p99_ns).map_or_else(String::new, words::latency);
            format!(
                "<tr class=\"{}\"><th scope=\"row\">{}</th><td class=\"value\"{}>{}</td>{}<td class=\"draw\">{}</td><td>{}</td><td>{p99}</td></tr>\n",
                row_class(comparison, workload, i),
                escape(&comparison.configurations[i].name),
                absolute_tip(cell),
                level(cell),
                ratio_cells(comparison, workload, i, &scale),
                cell::latency(&latency, TICKS_LATENCY, drawn.as_ref(), peak, &format!("99th percentile {p99}")),
                cell.latency_ns.map_or_else(String::new, words::latency),
            )
        })
        .collect();
    let sessions =
        workload.sessions.map_or_else(String::new, |n| format!(" · {}", words::count(n as usize, "session")));
    format!(
        concat!(
            "<section class=\"panel\" id=\"{id}\">\n<h3>{title} <small>{question}{sessions}</small></h3>\n<p class=\"say\">{say}.</p>\n",
            "<div class=\"scroll\"><table class=\"bars\">\n<colgroup><col style=\"width:18%\"><col style=\"width:8%\">",
            "<col style=\"width:19.5%\"><col style=\"width:17%\"><col style=\"width:9.5%\"><col style=\"width:11%\">",
            "<col style=\"width:8.5%\"><col style=\"width:8.5%\"></colgroup>\n<thead><tr><th></th><th scope=\"col\">{metric}</th>",
            "<th class=\"draw\">{axis}</th><th class=\"text\" scope=\"col\">ratio</th><th class=\"text\" scope=\"col\">verdict</th>",
            "<th class=\"draw\">{latency}</th><th scope=\"col\">mean</th><th scope=\"col\">p99</th></tr></thead>\n",
            "<tbody>\n{rows}</tbody></table></div>\n</section>\n"
        ),
        id = anchor(workload),
        title = escape(&words::capital(&workload.title)),
        question = escape(&workload.question),
        sessions = sessions,
        say = super::sentence(&words::capital(&sentence::of_workload(comparison, workload))),
        metric = escape(words::unit(&workload.metric)),
        axis = cell::axis(&scale, cell::INTERVAL_WIDTH, TICKS, words::short),
        latency = cell::axis(&latency, cell::LATENCY_WIDTH, TICKS_LATENCY, words::latency_short),
        rows = rows,
    )
}

pub(super) fn absolute_tip(cell: &Cell) -> String {
    cell.absolute.map_or_else(String::new, |a| {
        format!(
            " title=\"{} at {} over {}\"",
            words::amount_interval(a.low, a.high),
            words::percent(a.level),
            words::count(a.n, "block")
        )
    })
}

/// What is proven of each configuration: flags from the kernel, requests in flight, time inside submit.
fn proofs(comparison: &Comparison) -> String {
    let of = |name: &str, i: usize| comparison.workload(name).map(|w| &w.cells[i]);
    let text = |value: Option<f64>, show: &dyn Fn(f64) -> String| value.map_or("–".to_owned(), show);
    let rows: String = comparison
        .configurations
        .iter()
        .enumerate()
        .map(|(i, configuration)| {
            let (reads, writers) = (of("read-cold", i), of("writers", i));
            format!(
                "<tr><th scope=\"row\">{}{}</th><td class=\"text\"><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escape(&configuration.name),
                numbers(&configuration.marks.notes),
                escape(configuration.flags.as_deref().unwrap_or("not read")),
                text(reads.and_then(|c| c.in_flight), &|v| format!("{v:.1}")),
                text(reads.and_then(|c| c.device_ops), &|v| format!("{v:.2}")),
                text(reads.and_then(|c| c.cpu_ns), &words::latency),
                text(writers.and_then(|c| c.submit_share), &words::percent),
            )
        })
        .collect();
    format!(
        "<section class=\"panel\" id=\"proofs\">\n<h2>What was really in force</h2>\n<p class=\"note\">Open flags as the kernel shows them; \
         cold reads: requests in flight as the generator counted them, device reads for each read, CPU time of a read; writers: share of \
         their time spent inside submit calls (near 100 %: not asynchronous).</p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th><th \
         class=\"text\" scope=\"col\">open flags</th><th scope=\"col\">in flight</th><th scope=\"col\">device reads / read</th><th \
         scope=\"col\">CPU / read</th><th scope=\"col\">inside submit</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}
