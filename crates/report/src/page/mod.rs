//! The report as one page of HTML: no network, no script; drawings are SVG made in Rust, colours are CSS variables.
//!
//! Order: the sentence in large type, what belongs to it, the evidence as tables that carry their drawings in their rows
//! (so the numbers stand beside the picture, for eyes and for screen readers), time lines, doubts, facts, how it was found.

mod advice;
mod calibrate;
mod calls;
mod compare;
mod compared;
mod configurations;
mod devices;
mod dnfs;
mod mix;
mod network;
mod nodes;
mod notes;
mod passes;
mod placement;
mod ranked;
mod run;
pub mod runs;
mod side;
mod spent;
mod trace;
mod work;

use crate::chart::escape;
use crate::chart::timeline::{LaneChart, Stretch, TimeChart};
use crate::model::Model;
use crate::model::doubts::Marks;
use crate::model::timeline::TimeLine;
use crate::words;

/// Steps of one line in the drawn time lines: more than a screen has pixels would only make the page heavy.
const CELLS: usize = 640;

/// One run, or several side by side.
pub fn report(models: &[Model]) -> String {
    match models {
        [only] => single(only),
        several => side::report(several),
    }
}

fn single(model: &Model) -> String {
    let mut body = header(model);
    body.push_str(&format!("<main>\n<h1>{}</h1>\n", sentence(&model.answer.headline)));
    body.push_str(&lead(&model.answer.more));
    match (&model.comparison, &model.database) {
        _ if model.advice.is_some() => body.extend(model.advice.iter().map(advice::sections)),
        _ if model.trace.is_some() => body.extend(model.trace.iter().map(trace::sections)),
        (Some(comparison), _) => body.push_str(&compare::sections(comparison)),
        (None, Some(database)) => body.push_str(&run::sections(database)),
        (None, None) => body.push_str(&calibrate::sections(model)),
    }
    body.extend(model.dnfs.iter().map(dnfs::section));
    if let Some(line) = &model.time_line {
        body.push_str(&time_line(line));
    }
    body.push_str(&notes::sections(model));
    body.push_str("</main>\n");
    let what = words::capital(&words::what(&model.run.kind, model.run.case.as_deref()));
    document(&format!("{what} of {}", model.run.target), &body)
}

/// The page around `body`.
fn document(title: &str, body: &str) -> String {
    format!(
        concat!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} – Redoubt</title>\n",
            "<link rel=\"icon\" href=\"data:,\">\n",
            "<style>\n{}</style>\n</head>\n<body>\n{}</body>\n</html>\n"
        ),
        escape(title),
        include_str!("page.css"),
        body
    )
}

fn header(model: &Model) -> String {
    let run = &model.run;
    let storage = run.storage.as_ref().map_or_else(String::new, |s| format!(", {}", escape(s)));
    format!(
        "<header class=\"run\"><b>redoubt {}</b> · {}{storage} · {} · {}</header>\n",
        escape(&words::what(&run.kind, run.case.as_deref())),
        escape(&run.target),
        escape(&words::moment(&run.started_utc)),
        words::span(run.seconds)
    )
}

/// A sentence of ours, escaped; intervals in brackets are set softer and not broken, nor is a ratio from its ×.
fn sentence(text: &str) -> String {
    let text = escape(text).replace(" ×", "\u{a0}×");
    let mut parts = text.split(" [");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((interval, rest)) => {
                out.push_str(&format!(" <span class=\"interval\">[{interval}]</span>{rest}"))
            }
            None => out.push_str(&format!(" [{part}")),
        }
    }
    out
}

fn lead(more: &[String]) -> String {
    if more.is_empty() {
        return String::new();
    }
    let items: String = more.iter().map(|text| format!("<li>{}</li>\n", sentence(text))).collect();
    format!("<ul class=\"lead\">\n{items}</ul>\n")
}

/// Links to the notes of a figure.
fn marks(marks: &Marks) -> String {
    numbers(&marks.notes)
}

fn numbers(notes: &[usize]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let links: Vec<String> = notes.iter().map(|n| format!("<a href=\"#doubt-{n}\">{n}</a>")).collect();
    format!("<sup>{}</sup>", links.join(","))
}

fn time_line(line: &TimeLine) -> String {
    let chart = TimeChart {
        seconds: line.seconds,
        rows: &line.band_rows,
        stretches: line
            .bands
            .iter()
            .map(|b| Stretch { from: b.from, to: b.to, row: b.row, name: &b.name })
            .collect(),
        lanes: line
            .lanes
            .iter()
            .map(|lane| LaneChart {
                title: &lane.title,
                unit: &lane.unit,
                lines: lane.lines.iter().map(|l| (l.name.as_str(), l.thinned(line.seconds, CELLS))).collect(),
            })
            .collect(),
    };
    format!(
        "<section id=\"time\">\n<h2>The run on one time axis</h2>\n<figure><div class=\"scroll\">{}</div>\n<figcaption>Above: what \
         was measured when. Beneath: what Redoubt did, and what the device, the CPU and the kernel counted meanwhile, each \
         lane up to its peak.</figcaption></figure>\n</section>\n",
        chart.draw()
    )
}
