//! Is it really asynchronous? Do writers run side by side? In the terminal.

use super::Page;
use super::style::{fold, left, right, width};
use crate::model::calls::{by_configuration, done};
use crate::model::compare::Comparison;
use crate::words;

/// Columns of a pair's name, at most.
const NAMES: usize = 30;

pub(super) fn report(page: Page, comparison: &Comparison) -> String {
    let mut out = String::new();
    let by_configuration = by_configuration(comparison);
    if !by_configuration.is_empty() {
        out.push_str(&page.title("Is it really asynchronous?"));
        for (index, said) in by_configuration {
            let text = format!("{}: {said}.", comparison.said(index));
            out.push_str(&fold(&text, page.width, "", 2));
        }
    }
    let pairs = &comparison.calls.pairs;
    if let Some(first) = pairs.first() {
        out.push_str(&page.title("Do writers run side by side?"));
        let names = pairs.iter().map(|p| width(&p.name)).max().unwrap_or(8).clamp(8, NAMES);
        let head = format!(
            "{} {} {} {} {}  in the device",
            left("", names),
            left("", 18),
            right("one/s", 8),
            right(&format!("{}/s", first.writers), 8),
            left("  ratio", 20)
        );
        out.push_str(&page.paint.dim(&head));
        out.push('\n');
        for pair in pairs {
            let workload = &comparison.workloads[pair.workload];
            let rate =
                |i: usize| workload.cells[i].absolute.map_or_else(|| "–".into(), |a| words::amount(a.value));
            let r = &pair.decision.ratio;
            let ratio = format!("{} {}", words::ratio(r.value), words::ratio_interval(r.low, r.high));
            let depth = |depth: Option<f64>| depth.map_or_else(|| "–".into(), |d| format!("{d:.1}"));
            out.push_str(&format!(
                "{} {} {} {}   {} {} → {}  {}\n",
                left(&pair.name, names),
                left(done(workload), 18),
                right(&rate(pair.one), 8),
                right(&rate(pair.many), 8),
                left(&ratio, 18),
                depth(pair.depths.0),
                depth(pair.depths.1),
                pair.word()
            ));
        }
    }
    out
}
