//! A trace on the page: a table for each role, the verdict under the calls of each class of files.

use crate::chart::bar::{Part, parts};
use crate::chart::escape;
use crate::model::trace::{Role, Row, Trace, Use};
use crate::words;

/// Width of the longest bar.
const BAR: f64 = 120.0;

pub(super) fn sections(trace: &Trace) -> String {
    let rows = trace.roles.iter().flat_map(|role| &role.uses).flat_map(|of| &of.rows);
    let most = rows.map(|row| row.seconds).fold(0.0, f64::max);
    let roles: String = trace.roles.iter().map(|role| section(role, most)).collect();
    let counts: Vec<String> = trace
        .counts
        .iter()
        .map(|(name, count)| format!("{} {}", escape(name), words::thousands(*count as f64)))
        .collect();
    let all = if counts.is_empty() {
        String::new()
    } else {
        format!(
            "<section id=\"calls\">\n<h2>Calls in all</h2>\n<p class=\"note\">{}</p>\n</section>\n",
            counts.join(", ")
        )
    };
    roles + &all
}

/// `most`: seconds of the longest bar.
fn section(role: &Role, most: f64) -> String {
    let body: String = role.uses.iter().map(|of| of_class(of, most)).collect();
    format!(
        "<section class=\"panel\">\n<h2>{} · {}</h2>\n<div class=\"scroll\"><table class=\"calls\">\n<thead><tr><th class=\"text\" \
         scope=\"col\">call</th><th scope=\"col\">requests</th><th scope=\"col\">size</th><th scope=\"col\">batch</th><th \
         scope=\"col\">p50</th><th scope=\"col\">p99</th><th scope=\"col\">submit</th><th \
         scope=\"col\">workers</th><th scope=\"col\">time, s</th><th></th></tr></thead>\n<tbody>\n{body}</tbody></table></div>\n</section>\n",
        escape(&role.shown()),
        words::count(role.threads as usize, "thread"),
    )
}

fn of_class(of: &Use, most: f64) -> String {
    let flags = match of.flags.as_slice() {
        [] => "open flags not seen".to_owned(),
        all => all.join(" | "),
    };
    let rows: String = of.rows.iter().map(|of| row(of, most)).collect();
    let verdicts: String = of
        .verdicts
        .iter()
        .map(|verdict| {
            let direction = if verdict.direction == "read" { "Reads" } else { "Writes" };
            format!(
                "<tr class=\"verdict\"><td class=\"text\" colspan=\"10\">{direction}: {}</td></tr>\n",
                escape(&verdict.said())
            )
        })
        .collect();
    format!(
        "<tr><th class=\"text\" colspan=\"10\" scope=\"rowgroup\">{}: {} <span class=\"interval\">{}</span></th></tr>\n{rows}{verdicts}",
        escape(&words::capital(&of.class)),
        escape(&of.named()),
        escape(&flags),
    )
}

fn row(row: &Row, most: f64) -> String {
    let part = Part {
        class: "rank-odd".into(),
        value: row.seconds,
        tip: format!("{}: {} s", row.call, words::fine(row.seconds)),
        labels: Vec::new(),
    };
    let time = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), words::latency);
    let share = |part: u64| words::share(part as f64 / row.requests.max(1) as f64);
    format!(
        "<tr><td class=\"text\">{}</td><td class=\"value\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"draw\">{}</td></tr>\n",
        escape(&row.call),
        words::thousands(row.requests as f64),
        escape(&row.sizes()),
        row.batches(),
        time(row.p50_ns),
        time(row.p99_ns),
        row.submit_share.map_or_else(|| "–".to_owned(), words::share),
        if row.to_workers == 0 { "–".to_owned() } else { share(row.to_workers) },
        words::fine(row.seconds),
        parts(BAR, 24.0, &[part], most),
    )
}
