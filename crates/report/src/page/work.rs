//! The figures of a run on the page: growth round by round, response times, files, counters of the database.

use crate::chart::bar::{self, Part};
use crate::chart::cell::{self, Latency};
use crate::chart::{escape, extent};
use crate::model::database::rounds::{Round, Rounds};
use crate::model::database::work::{FileLine, Requests, Work};
use crate::words;

/// Labels on the axis of latencies.
const TICKS: usize = 4;

/// Rounds of growth: what each took, and the rate of the insert as a bar.
pub(super) fn rounds(rounds: &Rounds) -> String {
    let fastest = extent(rounds.rounds.iter().flat_map(|r| {
        [r.insert_mb_s, r.scan_mb_s(r.cold_s), r.scan_mb_s(r.warm_mean_s())].into_iter().flatten()
    }))
    .map_or(1.0, |e| e.1);
    let rows: String = rounds.rounds.iter().map(|r| round(r, fastest)).collect();
    let total = format!(
        "<tr class=\"total\"><th scope=\"row\">all</th><td></td><td>{}</td><td></td><td class=\"draw\"></td><td>{}</td><td \
         class=\"draw\"></td><td>{}</td><td class=\"draw\"></td></tr>\n",
        words::amount(rounds.insert_s()),
        words::amount(rounds.cold_s()),
        words::amount(rounds.warm_s())
    );
    format!(
        concat!(
            "<section id=\"rounds\">\n<h2>Round by round</h2>\n<p class=\"note\">Each round inserts the table into itself and counts it: ",
            "once with empty caches, then again. Bars: MB/s, all on one scale.</p>\n<div class=\"scroll\"><table class=\"bars\">\n",
            "<colgroup><col style=\"width:7%\"><col style=\"width:11%\"><col style=\"width:10%\"><col style=\"width:10%\">",
            "<col style=\"width:15%\"><col style=\"width:8%\"><col style=\"width:15%\"><col style=\"width:9%\"><col></colgroup>\n",
            "<thead><tr><th scope=\"col\">round</th><th scope=\"col\">segment</th><th scope=\"col\">insert, s</th><th scope=\"col\">insert, ",
            "MB/s</th><th class=\"draw\"></th><th scope=\"col\">cold, s</th><th class=\"draw\"></th><th scope=\"col\">warm, s</th><th ",
            "class=\"draw\"></th></tr></thead>\n<tbody>\n{}{}</tbody></table></div>\n</section>\n"
        ),
        rows, total
    )
}

fn round(r: &Round, fastest: f64) -> String {
    let drawn = |rate: Option<f64>| {
        let rate = rate.unwrap_or(0.0);
        let tip = format!("{} MB/s", words::amount(rate));
        let parts = [Part { class: "c plain".into(), value: rate, tip, labels: Vec::new() }];
        bar::parts(150.0, 24.0, &parts, fastest)
    };
    let text = |value: Option<f64>| value.map_or("–".to_owned(), words::amount);
    let each: Vec<String> = r.warm_s.iter().map(|s| words::amount(*s)).collect();
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td class=\"draw\">{}</td><td>{}</td><td class=\"draw\">{}</td><td \
         title=\"{}\">{}</td><td class=\"draw\">{}</td></tr>\n",
        r.number,
        r.segment_bytes.map_or("–".into(), |b| units::Bytes(b as u64).to_string()),
        words::amount(r.insert_s),
        text(r.insert_mb_s),
        drawn(r.insert_mb_s),
        text(r.cold_s),
        drawn(r.scan_mb_s(r.cold_s)),
        escape(&each.join(", ")),
        text(r.warm_mean_s()),
        drawn(r.scan_mb_s(r.warm_mean_s())),
    )
}

/// Response times by kind of transaction.
pub(super) fn kinds(works: &[Work]) -> String {
    let all: Vec<(&Work, &_)> = works.iter().flat_map(|w| w.kinds.iter().map(move |k| (w, k))).collect();
    if all.is_empty() {
        return String::new();
    }
    let span =
        extent(all.iter().flat_map(|(_, k)| [k.shape.span().0, k.shape.span().1])).unwrap_or((1e3, 1e6));
    let scale = cell::latency_scale(span.0 * 0.9, span.1 * 1.1);
    let steps = all.iter().flat_map(|(_, k)| k.shape.steps.iter().map(|step| step.2));
    let peak = extent(steps).map_or(1.0, |e| e.1);
    let several = works.iter().filter(|w| !w.kinds.is_empty()).count() > 1;
    let quoted = |ns: Option<f64>| ns.map_or_else(String::new, words::latency);
    let rows: String = all
        .iter()
        .map(|(work, kind)| {
            let shape = &kind.shape;
            let drawn = Latency { steps: &shape.steps, p50_ns: shape.p50_ns, p99_ns: shape.p99_ns };
            let p99 = quoted(shape.p99_ns);
            let name = match (several, work.kinds.len()) {
                (true, 1) => work.title.clone(),
                (true, _) => format!("{}: {}", work.title, kind.name),
                (false, _) => kind.name.replace('-', " "),
            };
            format!(
                "<tr class=\"{}\"><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"draw\">{}</td><td>{}</td><td>{}</td><td>{p99}</td><td>{}</td><td>{}</td></tr>\n",
                if work.marks.withdrawn.is_some() { "out" } else { "" },
                escape(&words::capital(&name)),
                words::thousands(kind.count as f64),
                words::percent(kind.share),
                words::amount(kind.count as f64 / work.seconds.max(1e-9) * 60.0),
                words::thousands(kind.errors as f64),
                cell::latency(&scale, TICKS, Some(&drawn), peak, &format!("99th percentile {p99}")),
                words::latency(shape.mean_ns),
                words::latency(shape.p50_ns),
                quoted(shape.p999_ns),
                words::latency(shape.max_ns),
            )
        })
        .collect();
    format!(
        concat!(
            "<section id=\"responses\">\n<h2>Response times</h2>\n<div class=\"scroll\"><table class=\"bars\">\n<colgroup>",
            "<col style=\"width:16%\"><col style=\"width:8%\"><col style=\"width:6%\"><col style=\"width:8.5%\"><col style=\"width:6%\">",
            "<col style=\"width:16%\"><col><col><col><col><col></colgroup>\n<thead><tr><th></th><th scope=\"col\">count</th><th ",
            "scope=\"col\">share</th><th scope=\"col\">per minute</th><th scope=\"col\">errors</th><th class=\"draw\">{}</th><th ",
            "scope=\"col\">mean</th><th scope=\"col\">p50</th><th scope=\"col\">p99</th><th scope=\"col\">p99.9</th><th ",
            "scope=\"col\">max</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n</section>\n"
        ),
        cell::axis(&scale, cell::LATENCY_WIDTH, TICKS, words::latency_short),
        rows
    )
}

/// What each file saw: requests, bytes, and the mean time of small and of large requests.
pub(super) fn files(works: &[Work]) -> String {
    let told: Vec<&Work> = works.iter().filter(|w| w.files.iter().any(busy)).collect();
    if told.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<section id=\"files\">\n<h2>Files</h2>\n<p class=\"note\">Requests of the database, as it timed them; large ones are those above \
         128 KiB, and beneath both stands their mean time. Bars: bytes, all on one scale.</p>\n",
    );
    let most =
        told.iter().flat_map(|w| &w.files).map(|f| sum(&f.reads).bytes.max(sum(&f.writes).bytes)).max();
    for work in &told {
        if told.len() > 1 {
            out.push_str(&format!("<h3>{}</h3>\n", escape(&words::capital(&work.title))));
        }
        let rows: String =
            work.files.iter().filter(|f| busy(f)).map(|f| file(f, most.unwrap_or(1) as f64)).collect();
        out.push_str(&format!(
            concat!(
                "<div class=\"scroll\"><table class=\"bars files\">\n<colgroup><col style=\"width:14%\"><col style=\"width:6%\">{half}{half}</colgroup>\n",
                "<thead><tr class=\"groups\"><th></th><th></th><th colspan=\"5\" scope=\"colgroup\">reads</th><th colspan=\"5\" ",
                "scope=\"colgroup\">writes</th></tr>\n<tr><th scope=\"col\">file</th><th class=\"text\" scope=\"col\">type</th>{heads}{heads}</tr></thead>\n",
                "<tbody>\n{rows}</tbody></table></div>\n"
            ),
            half = "<col style=\"width:8.5%\"><col style=\"width:7.5%\"><col style=\"width:8%\"><col style=\"width:8%\"><col style=\"width:8%\">",
            heads = "<th scope=\"col\">requests</th><th scope=\"col\">MB</th><th class=\"draw\"></th><th scope=\"col\">small</th><th scope=\"col\">large</th>",
            rows = rows
        ));
    }
    out.push_str("</section>\n");
    out
}

fn sum(both: &[Requests; 2]) -> Requests {
    both[0].with(both[1])
}

fn busy(file: &FileLine) -> bool {
    sum(&file.reads).count + sum(&file.writes).count > 0
}

fn file(f: &FileLine, most: f64) -> String {
    let half = |both: &[Requests; 2], class: &str| {
        let all = sum(both);
        if all.count == 0 {
            return "<td class=\"dim\">–</td><td></td><td class=\"draw\"></td><td></td><td></td>".to_owned();
        }
        let mean = |r: &Requests| r.mean_ns().map_or_else(String::new, words::latency);
        let tip = format!(
            "{} small requests of {} MB, {} large of {} MB",
            words::thousands(both[0].count as f64),
            words::amount(both[0].bytes as f64 / 1e6),
            words::thousands(both[1].count as f64),
            words::amount(both[1].bytes as f64 / 1e6)
        );
        let part = Part { class: class.into(), value: all.bytes as f64, tip, labels: Vec::new() };
        format!(
            "<td>{}</td><td>{}</td><td class=\"draw\">{}</td><td>{}</td><td>{}</td>",
            words::thousands(all.count as f64),
            words::amount(all.bytes as f64 / 1e6),
            bar::parts(86.0, 24.0, &[part], most),
            mean(&both[0]),
            mean(&both[1])
        )
    };
    format!(
        "<tr title=\"{}\"><th scope=\"row\">{}</th><td class=\"text dim\">{}</td>{}{}</tr>\n",
        escape(&f.path),
        escape(f.name()),
        escape(&f.file_type.replace(" File", "").to_lowercase()),
        half(&f.reads, "c plain"),
        half(&f.writes, "c second")
    )
}

/// Counters that say what a transaction costs, in this order.
const COSTS: [(&str, &str); 14] = [
    ("session logical reads", "blocks asked of the cache"),
    ("physical reads", "blocks read"),
    ("physical read IO requests", "requests to read"),
    ("db block changes", "blocks changed"),
    ("physical writes", "blocks written"),
    ("physical write IO requests", "requests to write"),
    ("redo entries", "redo records"),
    ("redo size", "bytes of redo"),
    ("redo writes", "writes of the log"),
    ("redo wastage", "bytes that padded them"),
    ("undo change vector size", "bytes of undo"),
    ("user commits", "commits"),
    ("user rollbacks", "rollbacks"),
    ("enqueue waits", "locks waited for"),
];

/// Counters of the database: in all, a second, an operation.
pub(super) fn statistics(works: &[Work]) -> String {
    let told: Vec<&Work> = works.iter().filter(|w| !w.statistics.is_empty()).collect();
    if told.is_empty() {
        return String::new();
    }
    let mut out = String::from("<section id=\"counters\">\n<h2>What it cost</h2>\n");
    for work in &told {
        out.push_str(&statistics_of(work, told.len() > 1));
    }
    out.push_str("</section>\n");
    out
}

fn statistics_of(work: &Work, several: bool) -> String {
    let row = |name: &str, means: &str, value: f64| {
        let means =
            if means.is_empty() { String::new() } else { format!(" <span class=\"dim\">{means}</span>") };
        format!(
            "<tr><th scope=\"row\">{}{means}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escape(name),
            words::thousands(value),
            words::amount(value / work.seconds.max(1e-9)),
            words::short_fine(value / work.ops.max(1) as f64)
        )
    };
    let chosen: String = COSTS
        .iter()
        .filter_map(|(name, means)| Some(row(name, means, work.statistic(name).filter(|v| *v > 0.0)?)))
        .collect();
    let rest: String = work
        .statistics
        .iter()
        .filter(|(name, value)| **value != 0.0 && !COSTS.iter().any(|(known, _)| known == name))
        .map(|(name, value)| row(name, "", *value))
        .collect();
    let head = format!(
        "<thead><tr><th scope=\"col\">counter</th><th scope=\"col\">in all</th><th scope=\"col\">per second</th><th scope=\"col\">per {}</th></tr></thead>\n",
        escape(work.one())
    );
    let title =
        if several { format!("<h3>{}</h3>\n", escape(&words::capital(&work.title))) } else { String::new() };
    let hits = work.hit_ratio().map_or_else(String::new, |hits| {
        format!("<p class=\"note\">Buffer cache hit ratio {}.</p>\n", words::percent(hits))
    });
    let more = if rest.is_empty() {
        String::new()
    } else {
        format!(
            "<details class=\"numbers\">\n<summary>all other counters</summary>\n<table class=\"lines\">\n{head}<tbody>\n{rest}</tbody></table>\n</details>\n"
        )
    };
    format!(
        "<section class=\"panel\">\n{title}{hits}<div class=\"scroll\"><table class=\"lines\">\n{head}<tbody>\n{chosen}</tbody></table></div>\n{more}</section>\n"
    )
}
