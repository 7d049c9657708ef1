//! What the storage nodes used and did, on the page: a bar of their processor time for one read, and the figures.

use crate::chart::bar::{self, Part};
use crate::chart::escape;
use crate::model::compare::Comparison;
use crate::model::nodes::Nodes;
use crate::words;

/// Bars of so many nodes are told apart.
const COLOURS: usize = 4;
const BAR_WIDTH: f64 = 190.0;
/// Where the columns of moves stand beside.
const BAR_WIDTH_OF_MOVES: f64 = 150.0;

pub(super) fn section(comparison: &Comparison) -> String {
    let Some(first) = comparison.nodes.first() else { return String::new() };
    let names = first.nodes.iter().map(|node| escape(&node.name));
    let cpu: String = names.clone().map(|name| format!("<th scope=\"col\">CPU {name}</th>")).collect();
    let bytes: String = names.clone().map(|name| format!("<th scope=\"col\">MB/s {name}</th>")).collect();
    let legend: String = names
        .enumerate()
        .map(|(index, name)| format!("<li><i class=\"key {}\"></i>node {name}</li>", colour(index)))
        .collect();
    let mut tables = String::new();
    for workload in 0..comparison.workloads.len() {
        let here: Vec<&Nodes> = comparison.nodes.iter().filter(|nodes| nodes.workload == workload).collect();
        if here.is_empty() {
            continue;
        }
        let most = here.iter().map(|nodes| nodes.cpu_ns_all()).fold(0.0, f64::max);
        let (moves, bar) = match here.iter().any(|nodes| nodes.moves.is_some()) {
            true => {
                ("<th scope=\"col\">followed</th><th scope=\"col\">longest stall</th>", BAR_WIDTH_OF_MOVES)
            }
            false => ("", BAR_WIDTH),
        };
        let rows: String = here.into_iter().map(|nodes| row(comparison, nodes, most, bar)).collect();
        tables.push_str(&format!(
            "<h3>{}</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th></th><th class=\"text\" scope=\"col\">processor time for one request</th><th></th>{cpu}<th scope=\"col\">wrong node</th>{bytes}{moves}</tr></thead>\n\
             <tbody>\n{rows}</tbody></table></div>\n",
            escape(&words::capital(&comparison.workloads[workload].title)),
        ));
    }
    format!(
        "<section class=\"panel\" id=\"nodes\">\n<h2>What each storage node used</h2>\n<p class=\"note\">Sums over the trials, from before each load \
         until after it. CPU: share of {}. Wrong node: clients' requests that a node passed on to the one that has the data. MB/s: 10⁶ bytes, sent \
         and received.</p>\n<ul class=\"legend\">{legend}</ul>\n{tables}</section>\n",
        escape(&first.processors)
    )
}

/// CSS class of a node's bars.
fn colour(index: usize) -> String {
    format!("c n-{}", index % COLOURS)
}

fn row(comparison: &Comparison, nodes: &Nodes, most: f64, width: f64) -> String {
    let part = |(index, node): (usize, &crate::model::nodes::Node)| {
        let time = words::latency(nodes.cpu_ns(node));
        Part {
            class: colour(index),
            value: nodes.cpu_ns(node),
            tip: format!("node {}: {time}", node.name),
            labels: vec![format!("{} {time}", node.name), node.name.clone()],
        }
    };
    let parts: Vec<Part> = nodes.nodes.iter().enumerate().map(part).collect();
    let cells = |figure: &dyn Fn(&crate::model::nodes::Node) -> String| -> String {
        nodes.nodes.iter().map(|node| format!("<td>{}</td>", figure(node))).collect()
    };
    let moves = nodes.moves.map_or_else(String::new, |moves| {
        let stall = if moves.followed > 0 { words::latency(moves.stall_max_ns) } else { "–".into() };
        format!("<td>{} of {}</td><td>{stall}</td>", moves.followed, moves.made)
    });
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td>{}</td>{}<td>{}</td>{}{moves}</tr>\n",
        escape(&comparison.configurations[nodes.configuration].name),
        bar::parts(width, 24.0, &parts, most),
        words::latency(nodes.cpu_ns_all()),
        cells(&|node| words::percent(node.cpu_share())),
        nodes.wrong_share().map_or_else(|| "–".into(), words::share),
        cells(&|node| words::amount(node.bytes_per_second() / 1e6)),
    )
}
