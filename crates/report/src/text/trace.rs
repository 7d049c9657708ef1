//! A trace in the terminal: by role and class of files, a line for each kind of call.

use super::Page;
use super::style::{left, right};
use crate::model::trace::{Role, Row, Trace, Use};
use crate::words;

pub(super) fn report(page: Page, trace: &Trace) -> String {
    trace.roles.iter().map(|role| of_role(page, role)).collect::<String>() + &counts(page, trace)
}

fn of_role(page: Page, role: &Role) -> String {
    let mut out =
        page.title(&format!("{} · {}", role.shown(), words::count(role.threads as usize, "thread")));
    let head = line([
        left("  call", 20),
        right("requests", 9),
        right("size", 14),
        right("batch", 6),
        right("p50", 9),
        right("p99", 9),
        right("submit", 7),
    ]);
    out.push_str(&page.paint.dim(&head));
    out.push('\n');
    for of in &role.uses {
        out.push_str(&heading(page, of));
        of.rows.iter().for_each(|row| out.push_str(&row_line(row)));
        for verdict in &of.verdicts {
            let direction = if verdict.direction == "read" { "reads" } else { "writes" };
            out.push_str(&super::fold(&format!("→ {direction}: {}", verdict.said()), page.width, "  ", 4));
        }
    }
    out
}

fn heading(page: Page, of: &Use) -> String {
    let flags = match of.flags.as_slice() {
        [] => "open flags not seen".to_owned(),
        all => all.join(" | "),
    };
    let names = of.named();
    let names = if names.is_empty() { String::new() } else { format!(": {names}") };
    page.bold_fold(&format!("{}{names} · {flags}", of.class))
}

fn row_line(row: &Row) -> String {
    let time = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), words::latency);
    let mut text = line([
        left(&format!("  {}", row.call), 20),
        right(&words::thousands(row.requests as f64), 9),
        right(&row.sizes(), 14),
        right(&row.batches(), 6),
        right(&time(row.p50_ns), 9),
        right(&time(row.p99_ns), 9),
        right(&row.submit_share.map_or_else(|| "–".to_owned(), words::share), 7),
    ]);
    if row.errors > 0 {
        text.push_str(&format!("\n    {} failed", words::thousands(row.errors as f64)));
    }
    if row.to_workers > 0 {
        let share = row.to_workers as f64 / row.requests.max(1) as f64;
        text.push_str(&format!("\n    {} handed to workers of the kernel", words::share(share)));
    }
    text.push('\n');
    text
}

fn line(cells: [String; 7]) -> String {
    cells.join(" ").trim_end().to_owned()
}

/// As strace -c would count them.
fn counts(page: Page, trace: &Trace) -> String {
    let all: Vec<String> = trace
        .counts
        .iter()
        .map(|(name, count)| format!("{name} {}", words::thousands(*count as f64)))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let title = page.title("Calls in all");
    title + &page.dim_fold(&all.join(", "), "", 2)
}
