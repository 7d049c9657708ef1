//! What an NFS server gave over each version, in the terminal.

use super::Page;
use super::style::{cut, left, right, width};
use crate::model::compare::Comparison;
use crate::words;

/// Columns of configurations' names at most, and of a number.
const NAMES: usize = 20;
const NUMBER: usize = 11;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    if comparison.network.is_empty() {
        return String::new();
    }
    let names = comparison.configurations.iter().map(|c| width(&c.name)).max().unwrap_or(8).clamp(8, NAMES);
    let heads = ["IOPS", "latency", "in flight", "by Little", "client CPU", "stolen"];
    let head: String = heads.map(|head| right(head, NUMBER)).concat();
    let mut out = page.title("What the server gave, and what it took of the client");
    let mut before = None;
    for reads in &comparison.network {
        if before != Some(reads.workload) {
            let title = words::capital(&comparison.workloads[reads.workload].title);
            out.push_str(&format!("{title}\n{}\n", page.paint.dim(&format!("{}{head}", left("", names)))));
            before = Some(reads.workload);
        }
        let share = |share: Option<f64>| share.map_or_else(|| "–".into(), words::percent);
        let figures = [
            words::amount(reads.rate),
            words::latency(reads.latency_ns),
            format!("{:.0}", reads.in_flight),
            format!("{:.1}", reads.little()),
            share(reads.client_cpu),
            share(reads.steal),
        ];
        let figures: String = figures.map(|figure| right(&figure, NUMBER)).concat();
        let name = &comparison.configurations[reads.configuration].name;
        let doubt = if reads.holds_together() { "" } else { "  the latency is not that of these requests" };
        out.push_str(&format!("{}{figures}{doubt}\n", left(&cut(name, names), names)));
    }
    out
}
