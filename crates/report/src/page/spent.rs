//! Where time went, on the page: top events with waits by length, bars by wait class, `log file sync` in parts.
//!
//! Runs and comparisons share it; colours are CSS variables of the wait classes, in two themes.

use crate::chart::bar::{self, Part};
use crate::chart::{Scale, escape};
use crate::model::database::buckets::Buckets;
use crate::model::database::class::Class;
use crate::model::database::spent::{EventLine, Spent, by_class};
use crate::model::database::work::Work;
use crate::words;

/// Events that took less than this share are gathered behind the numbers.
const SHOWN_MIN: f64 = 0.001;
/// Lines of a table of events at most; the rest stands behind the numbers.
const SHOWN_MAX: usize = 10;

/// CSS class of a wait class.
pub fn colour(class: Class) -> String {
    let key: String = class
        .name()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    format!("c c-{key}")
}

/// The switch between the two themes; once on a page.
pub fn switch() -> &'static str {
    "<label class=\"switch\"><input type=\"checkbox\" id=\"safe-colours\" /> colours that all eyes tell apart</label>"
}

/// A legend of the classes that `spent` shows, from the bottom of the chart.
pub fn legend<'s>(spent: impl Iterator<Item = &'s Spent>) -> String {
    let mut classes: Vec<Class> = spent.flat_map(Spent::classes).map(|(class, _)| class).collect();
    classes.sort_unstable();
    classes.dedup();
    let items: String = classes
        .into_iter()
        .map(|class| format!("<li><i class=\"key {}\"></i>{}</li>", colour(class), escape(class.name())))
        .collect();
    format!("<ul class=\"legend\">{items}</ul>\n")
}

/// Parts of a bar by class, `unit` being what one nanosecond of the whole is.
pub fn class_parts(classes: &[(Class, f64)], whole_ns: f64, tip: impl Fn(f64) -> String) -> Vec<Part> {
    let part = |(class, ns): &(Class, f64)| Part {
        class: colour(*class),
        value: *ns,
        tip: format!("{} {} ({})", class.name(), words::percent(ns / whole_ns.max(1e-9)), tip(*ns)),
        labels: Vec::new(),
    };
    classes.iter().map(part).collect()
}

/// One workload against the other: rate, and a bar of where each one's time went.
/// `together`: only the sum of their times is known, which is no one's.
pub fn works(works: &[Work], together: bool) -> String {
    let rows: String =
        works.iter().map(|work| work_row(work, work.spent.as_ref().filter(|_| !together))).collect();
    format!(
        concat!(
            "<div class=\"scroll\"><table class=\"bars\">\n<colgroup><col style=\"width:22%\"><col style=\"width:9%\">",
            "<col style=\"width:8%\"><col style=\"width:15%\"><col style=\"width:7%\"><col style=\"width:17%\">",
            "<col style=\"width:22%\"></colgroup>\n<thead><tr><th></th><th scope=\"col\">rate</th><th class=\"text\" ",
            "scope=\"col\">unit</th><th class=\"text\" scope=\"col\">interval</th>{}</tr></thead>\n",
            "<tbody>\n{}</tbody></table></div>\n{}"
        ),
        if together {
            "<th></th><th></th><th></th>"
        } else {
            concat!(
                "<th scope=\"col\">AAS</th><th class=\"text\" scope=\"col\">where DB time went</th>",
                "<th class=\"text\" scope=\"col\">top event</th>"
            )
        },
        rows,
        legend(works.iter().filter_map(|work| work.spent.as_ref()).filter(|_| !together))
    )
}

fn work_row(work: &Work, spent: Option<&Spent>) -> String {
    let interval = match (&work.marks.withdrawn, work.rate.interval) {
        (Some(_), _) => "withdrawn".into(),
        (None, Some((low, high))) => words::amount_interval(low, high),
        (None, None) => String::new(),
    };
    let drawn = spent.map_or_else(String::new, |spent| {
        let parts = class_parts(&spent.classes(), spent.db_time_ns, seconds);
        bar::parts(170.0, 24.0, &parts, parts.iter().map(|p| p.value).sum())
    });
    let top = spent
        .and_then(Spent::top)
        .map_or_else(String::new, |top| format!("{} {}", escape(&top.name), words::percent(top.share)));
    let basis = work
        .rate
        .basis
        .as_ref()
        .map_or_else(String::new, |basis| format!(" title=\"over {}\"", escape(basis)));
    format!(
        "<tr class=\"{}\"><th scope=\"row\">{}{}</th><td class=\"value\">{}</td><td class=\"text\">{}</td><td \
         class=\"text\"{basis}>{interval}</td><td>{}</td><td class=\"draw\">{drawn}</td><td class=\"text\">{top}</td></tr>\n",
        if work.marks.withdrawn.is_some() { "out" } else { "" },
        escape(&words::capital(&work.title)),
        super::marks(&work.marks),
        words::amount(work.rate.value),
        escape(words::unit(&work.metric)),
        spent.map_or_else(String::new, |s| words::sessions(s.aas())),
    )
}

/// `1.3 s` of a time in nanoseconds.
fn seconds(ns: f64) -> String {
    words::latency(ns)
}

/// The top events of a workload: users' sessions, then background processes.
/// `title`: none where there is but one.
pub fn events(work: &Work, spent: &Spent, title: Option<&str>) -> String {
    let title =
        title.map_or_else(String::new, |title| format!("<h3>{}</h3>\n", escape(&words::capital(title))));
    let agree = spent.accounted().map_or_else(String::new, |value| {
        format!("; waits and CPU add up to {} of it{}", words::percent(value), super::marks(&work.marks))
    });
    let means = spent.top().and_then(EventLine::means).map_or_else(String::new, |means| {
        format!(
            " <b>{}</b>: {}",
            escape(&spent.top().map_or(String::new(), |t| t.name.clone())),
            escape(means)
        )
    });
    let bar = class_parts(&spent.classes(), spent.db_time_ns, seconds);
    let whole: f64 = bar.iter().map(|p| p.value).sum::<f64>().max(spent.db_time_ns);
    let labelled: Vec<Part> = bar
        .into_iter()
        .zip(spent.classes())
        .map(|(part, (class, ns))| Part {
            labels: vec![
                format!("{} {}", class.name(), words::percent(ns / spent.db_time_ns.max(1e-9))),
                class.name().to_owned(),
            ],
            ..part
        })
        .collect();
    let background = if spent.background.iter().any(|line| line.time_ns > 0.0) {
        let sum: f64 = by_class(&spent.background).iter().map(|c| c.1).sum();
        format!(
            "<h4>Background processes <small>{} s of activity; their waits are not part of DB time</small></h4>\n{}",
            words::amount(sum / 1e9),
            table(&spent.background, "% activity", &|i| colour(spent.background[i].class))
        )
    } else {
        String::new()
    };
    format!(
        "<section class=\"panel\">\n{title}<p class=\"note\">DB time {} s over {} s, {} active sessions on average{agree}.{means}</p>\n\
         <div class=\"scroll wide-bar\">{}</div>\n<h4>Users' sessions</h4>\n{}{background}</section>\n",
        words::amount(spent.db_time_ns / 1e9),
        words::amount(spent.seconds),
        words::sessions(spent.aas()),
        bar::parts(1000.0, 30.0, &labelled, whole),
        table(&spent.foreground, "% DB time", &|i| colour(spent.foreground[i].class)),
    )
}

/// `paint`: CSS class of a line, by its place.
fn table(lines: &[EventLine], share: &str, paint: &dyn Fn(usize) -> String) -> String {
    let spans = lines.iter().filter_map(|line| line.buckets.span());
    let (first, last) = spans.fold((usize::MAX, 0), |sum, s| (sum.0.min(s.0), sum.1.max(s.1)));
    let (first, last) =
        if first > last { (0, 20) } else { (first.saturating_sub(1), (last + 1).max(first + 8)) };
    let scale = bar::bucket_scale(first, last);
    let shown = lines.iter().filter(|l| l.share >= SHOWN_MIN).count().clamp(1.min(lines.len()), SHOWN_MAX);
    let rows: String = (0..shown).map(|i| row(&lines[i], &paint(i), &scale, (first, last))).collect();
    let rest: String =
        (shown..lines.len()).map(|i| row(&lines[i], &paint(i), &scale, (first, last))).collect();
    let head = format!(
        concat!(
            "<colgroup><col style=\"width:27%\"><col style=\"width:8%\"><col style=\"width:7%\"><col style=\"width:12.5%\">",
            "<col style=\"width:5.5%\"><col style=\"width:8%\"><col style=\"width:9%\"><col style=\"width:9%\">",
            "<col></colgroup>\n<thead><tr><th class=\"text\" scope=\"col\">event</th><th scope=\"col\">waits</th><th ",
            "scope=\"col\">time, s</th><th class=\"text\" scope=\"col\">{}</th><th scope=\"col\">AAS</th><th ",
            "scope=\"col\">mean</th><th scope=\"col\">p50</th><th scope=\"col\">p99</th><th class=\"draw\">{}</th></tr></thead>\n"
        ),
        share,
        bar::bucket_axis(&scale, first, last, |k| words::latency_round(Buckets::bound_ns(k)))
    );
    let more = if rest.is_empty() {
        String::new()
    } else {
        format!(
            "<details class=\"numbers\">\n<summary>{}</summary>\n<table class=\"bars events\">\n{head}<tbody>\n{rest}</tbody></table>\n</details>\n",
            words::count(lines.len() - shown, "smaller one")
        )
    };
    format!(
        "<div class=\"scroll\"><table class=\"bars events\">\n{head}<tbody>\n{rows}</tbody></table></div>\n{more}"
    )
}

fn row(line: &EventLine, colour: &str, scale: &Scale, span: (usize, usize)) -> String {
    let bound = |ns: Option<f64>| ns.map_or_else(String::new, |ns| escape(&below(ns)));
    let shares = line.buckets.shares();
    let tip = |(k, share): (usize, &f64)| {
        format!("{} of the waits {}", words::share(*share), below(Buckets::bound_ns(k)))
    };
    let tips: Vec<String> = shares.iter().enumerate().map(tip).collect();
    let drawn = match line.waits {
        Some(waits) if waits > 0 => bar::buckets(scale, span, &shares, colour, &tips),
        _ => String::new(),
    };
    let means = line.means().map_or_else(String::new, |means| format!(" title=\"{}\"", escape(means)));
    let part = Part {
        class: colour.to_owned(),
        value: line.share,
        tip: line.class.name().into(),
        labels: Vec::new(),
    };
    format!(
        "<tr><th scope=\"row\"{means}><i class=\"key {}\"></i>{}</th><td>{}</td><td>{}</td><td class=\"share\"><span>{}</span>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td \
         class=\"draw\">{drawn}</td></tr>\n",
        colour,
        escape(&line.name),
        line.waits.map_or_else(String::new, |n| words::thousands(n as f64)),
        words::fine(line.time_ns / 1e9),
        escape(&words::share(line.share)),
        bar::parts(76.0, 24.0, &[part], 1.0),
        words::sessions(line.aas),
        line.mean_ns().map_or_else(String::new, words::latency),
        bound(line.buckets.p50_ns()),
        bound(line.buckets.p99_ns()),
    )
}

/// `< 512 µs`: the bound of a power-of-two bucket.
pub fn below(ns: f64) -> String {
    if ns.is_finite() { format!("<\u{a0}{}", words::latency(ns)) } else { ">\u{a0}71\u{a0}min".into() }
}

/// `log file sync` in parts: one bar, then the parts with their waits by length.
pub fn log_sync(spent: &Spent) -> String {
    let Some(sync) = spent.event("log file sync") else { return String::new() };
    if spent.sync.is_empty() {
        return String::new();
    }
    let name = |line: &EventLine| line.name.rsplit(": ").next().unwrap_or_default().to_owned();
    let whole: f64 = spent.sync.iter().map(|line| line.time_ns).sum();
    let parts: Vec<Part> = spent
        .sync
        .iter()
        .enumerate()
        .map(|(i, line)| Part {
            class: format!("c sync-{i}"),
            value: line.time_ns,
            tip: format!("{}: {}", name(line), line.mean_ns().map_or_else(String::new, words::latency)),
            labels: vec![
                format!("{} {}", name(line), line.mean_ns().map_or_else(String::new, words::latency)),
                name(line),
            ],
        })
        .collect();
    format!(
        "<section class=\"panel\" id=\"log-sync\">\n<h3>log file sync in parts <small>{} waits of {} on average</small></h3>\n<p \
         class=\"note\">Queue: until the log writer took the redo into a write. Write: until that write was durable; this part is \
         the storage's. Wake-up: until the session ran again.</p>\n<div class=\"scroll wide-bar\">{}</div>\n{}</section>\n",
        words::thousands(sync.waits.unwrap_or(0) as f64),
        sync.mean_ns().map_or_else(String::new, words::latency),
        bar::parts(1000.0, 34.0, &parts, whole),
        table(&spent.sync, "% DB time", &|i| format!("c sync-{i}"))
    )
}
