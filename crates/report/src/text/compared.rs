//! Where DB time of one operation went under each configuration, as bars of signs.

use super::Page;
use super::area;
use super::run::class_bar;
use super::style::{left, right, width};
use crate::model::compare::{Comparison, Workload};
use crate::model::database::spent::SAMPLED;
use crate::words;

/// Columns of a time, and of the longest bar.
const TIME: usize = 9;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    let told = |w: &&Workload| w.headline && w.cells.iter().any(|cell| cell.spent.is_some());
    let workloads: Vec<&Workload> = comparison.workloads.iter().filter(told).collect();
    let mut classes: Vec<_> = workloads
        .iter()
        .flat_map(|w| w.cells.iter().filter_map(|cell| cell.spent.as_ref()))
        .flat_map(|spent| spent.classes())
        .map(|(class, _)| class)
        .collect();
    if classes.is_empty() {
        return String::new();
    }
    classes.sort_unstable();
    classes.dedup();
    let mut out = page.title("Where DB time went: DB time of one operation");
    let legend = classes.iter().map(|class| format!("{} {}", area::sign(*class), class.name()));
    out.push_str(&page.dim_fold(&legend.collect::<Vec<_>>().join("  "), "", 0));
    for workload in workloads {
        out.push_str(&panel(page, comparison, workload));
    }
    if comparison.sampled() {
        out.push_str(&page.dim_fold(SAMPLED, "", 0));
    }
    out
}

fn panel(page: Page, comparison: &Comparison, workload: &Workload) -> String {
    let names = comparison.configurations.iter().map(|c| width(&c.name)).max().unwrap_or(4).min(24);
    let columns = page.width.saturating_sub(names + 1 + TIME + 2 + 2 + 31).clamp(10, 40);
    let longest = workload.cells.iter().filter_map(|cell| cell.db_time_ns).fold(1.0, f64::max);
    let mut out = format!("{}\n", page.paint.dim(&words::capital(&workload.title)));
    for (configuration, cell) in comparison.configurations.iter().zip(&workload.cells) {
        let name = left(&configuration.name, names);
        let (Some(spent), Some(each)) = (&cell.spent, cell.db_time_ns) else {
            out.push_str(&format!("{name} {}\n", right("–", TIME)));
            continue;
        };
        let long = ((each / longest * columns as f64).round() as usize).max(1);
        let top =
            spent.top().map_or_else(String::new, |top| format!("{} {}", words::percent(top.share), top.name));
        let text = format!(
            "{name} {}  {}{}  {}",
            right(&words::latency(each), TIME),
            class_bar(page, spent, long),
            " ".repeat(columns - long),
            left(&top, page.width - names - TIME - columns - 5)
        );
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}
