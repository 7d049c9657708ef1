//! Where DB time of one operation went under each configuration: why one of them is faster.

use super::spent::{class_parts, colour, legend, switch};
use crate::chart::bar;
use crate::chart::escape;
use crate::model::compare::{Cell, Comparison, Workload};
use crate::model::database::spent::{SAMPLED, Spent};
use crate::words;

/// One bar for each configuration, as long as DB time of one operation, for each workload that a database told about.
pub(super) fn section(comparison: &Comparison) -> String {
    let told = |w: &&Workload| w.cells.iter().any(|cell| cell.spent.is_some());
    let (first, rest): (Vec<&Workload>, Vec<&Workload>) =
        comparison.workloads.iter().filter(told).partition(|w| w.headline);
    if first.is_empty() && rest.is_empty() {
        return String::new();
    }
    let all = first.iter().chain(&rest).flat_map(|w| w.cells.iter().filter_map(|cell| cell.spent.as_ref()));
    let panels: String = first.iter().chain(&rest).map(|w| panel(comparison, w)).collect();
    format!(
        "<section id=\"db-time\">\n<div class=\"beside\"><h2>Where DB time went</h2>{}</div>\n<p class=\"note\">DB time of one operation \
         as a bar, by wait class, over all blocks: the shorter bar is the faster configuration, and the part that shrank is why.{}</p>\n{}{panels}</section>\n",
        switch(),
        if comparison.sampled() { format!(" {SAMPLED}") } else { String::new() },
        legend(all)
    )
}

fn panel(comparison: &Comparison, workload: &Workload) -> String {
    let one = match workload.metric.strip_suffix("s/s") {
        Some(one) if workload.metric != "MB/s" => one.to_owned(),
        _ => "op".to_owned(),
    };
    let longest = workload.cells.iter().filter_map(|cell| cell.db_time_ns).fold(0.0, f64::max);
    let rows: String = comparison
        .configurations
        .iter()
        .zip(&workload.cells)
        .enumerate()
        .map(|(i, (configuration, cell))| {
            let class = match () {
                () if cell.withdrawn() => "out",
                () if i == comparison.baseline => "base",
                () => "",
            };
            format!(
                "<tr class=\"{class}\"><th scope=\"row\">{}</th>{}</tr>\n",
                escape(&configuration.name),
                cells(cell, longest)
            )
        })
        .collect();
    format!(
        concat!(
            "<section class=\"panel\">\n<h3>{}</h3>\n<div class=\"scroll\"><table class=\"bars\">\n<colgroup><col style=\"width:16%\">",
            "<col style=\"width:15%\"><col style=\"width:36%\"><col style=\"width:7%\"><col></colgroup>\n<thead><tr><th></th><th ",
            "scope=\"col\">DB time / {}</th><th class=\"draw\"></th><th scope=\"col\">AAS</th><th class=\"text\" scope=\"col\">top ",
            "event</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n</section>\n"
        ),
        escape(&words::capital(&workload.title)),
        escape(&one),
        rows
    )
}

fn cells(cell: &Cell, longest: f64) -> String {
    let (Some(spent), Some(each)) = (&cell.spent, cell.db_time_ns) else {
        return "<td class=\"dim\">–</td><td></td><td></td><td></td>".to_owned();
    };
    let classes = spent.classes();
    let counted: f64 = classes.iter().map(|(_, ns)| ns).sum::<f64>().max(1.0);
    // The parts share the bar as they share what was counted; its length is DB time.
    let scaled: Vec<_> = classes.iter().map(|(class, ns)| (*class, ns / counted * each)).collect();
    let parts = class_parts(&scaled, each, words::latency);
    let top = spent.top().map_or_else(String::new, |top| {
        format!(
            "<i class=\"key {}\"></i>{} {}",
            colour(top.class),
            escape(&top.name),
            words::percent(top.share)
        )
    });
    format!(
        "<td class=\"value\">{}</td><td class=\"draw\">{}</td><td>{}</td><td class=\"text\">{top}</td>",
        words::latency(each),
        bar::parts(380.0, 24.0, &parts, longest),
        words::sessions(Spent::aas(spent)),
    )
}
