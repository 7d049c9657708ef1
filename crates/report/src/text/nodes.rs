//! What the storage nodes used and did, in the terminal.

use super::Page;
use super::style::{cut, left, right, width};
use crate::model::compare::Comparison;
use crate::model::nodes::Nodes;
use crate::words;

/// Columns of configurations' names at most, and of a number.
const NAMES: usize = 20;
const NUMBER: usize = 11;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    let Some(first) = comparison.nodes.first() else { return String::new() };
    let names = comparison.configurations.iter().map(|c| width(&c.name)).max().unwrap_or(8).clamp(8, NAMES);
    let mut out = page.title("What each storage node used");
    out.push_str(&page.dim_fold(&format!(
        "CPU: share of {}. CPU/read: processor time of all nodes for one read. Wrong node: reads that a node passed on to another.",
        first.processors
    ), "", 0));
    let mut before = None;
    for nodes in &comparison.nodes {
        if before != Some(nodes.workload) {
            let title = words::capital(&comparison.workloads[nodes.workload].title);
            let head: String =
                columns(page, nodes, names).into_iter().map(|(head, _)| right(&head, NUMBER)).collect();
            out.push_str(&format!("{title}\n{}\n", page.paint.dim(&format!("{}{head}", left("", names)))));
            before = Some(nodes.workload);
        }
        let figures: String =
            columns(page, nodes, names).into_iter().map(|(_, figure)| right(&figure, NUMBER)).collect();
        let name = &comparison.configurations[nodes.configuration].name;
        out.push_str(&format!("{}{figures}\n", left(&cut(name, names), names)));
    }
    out
}

/// Heads and figures, as many as there is room for; what has none is on the page.
fn columns(page: Page, nodes: &Nodes, names: usize) -> Vec<(String, String)> {
    let cpu = nodes.nodes.iter().map(|node| (format!("CPU {}", node.name), words::percent(node.cpu_share())));
    let all = [
        ("CPU/read".to_owned(), words::latency(nodes.cpu_ns_all())),
        ("wrong node".to_owned(), nodes.wrong_share().map_or_else(|| "–".into(), words::share)),
    ];
    let bytes = nodes
        .nodes
        .iter()
        .map(|node| (format!("MB/s {}", node.name), words::amount(node.bytes_per_second() / 1e6)));
    let room = page.width.saturating_sub(names) / NUMBER;
    cpu.chain(all).chain(bytes).take(room.max(1)).collect()
}
