//! A run of one configuration on the page: figures, who was active when, where the time went, everything on one time axis.

use super::{spent, work};
use crate::chart::bar;
use crate::chart::escape;
use crate::chart::strips::{Content, Layer, Step, Stretch, Strip, Strips};
use crate::model::database::activity::{Active, Activity, Bands};
use crate::model::database::class::Class;
use crate::model::database::memory::Redo;
use crate::model::database::native::{self, NativeWait};
use crate::model::database::{Axis, Database};
use crate::model::timeline::{Lane, TimeLine};
use crate::words;

/// Steps of one line in the drawn strips.
const CELLS: usize = 400;
/// Rows of the table behind a drawing.
const NUMBERS: usize = 40;

pub(super) fn sections(database: &Database) -> String {
    let mut out = figures(database);
    out.push_str(&activity(database));
    out.push_str(&native(&database.native));
    out.push_str(&events(database));
    out.push_str(&over_time(database));
    out.push_str(&work::files(&database.works));
    out.push_str(&work::statistics(&database.works));
    out
}

/// What was measured: workloads beside each other, rounds, response times.
fn figures(database: &Database) -> String {
    let mut out = String::new();
    if database.works.len() > 1 {
        out.push_str(&format!(
            "<section id=\"works\">\n<h2>What was done</h2>\n{}</section>\n",
            spent::works(&database.works, database.together)
        ));
    }
    if let Some(rounds) = &database.rounds {
        out.push_str(&work::rounds(rounds));
    }
    out.push_str(&work::kinds(&database.works));
    out
}

/// What was done when, for the head of a drawing; one workload alone needs none.
struct Done<'d> {
    names: Vec<String>,
    line: Option<&'d TimeLine>,
}

impl<'d> Done<'d> {
    fn of(database: &'d Database) -> Self {
        let line = database.time_line.as_ref().filter(|line| line.band_rows.len() > 1);
        let title = |key: &String| {
            let work = database.works.iter().find(|work| work.name == *key);
            words::capital(work.map_or(key, |work| &work.title))
        };
        Self { names: line.iter().flat_map(|line| &line.band_rows).map(title).collect(), line }
    }

    fn stretches(&self) -> Vec<Stretch<'_>> {
        let bands = self.line.iter().flat_map(|line| &line.bands);
        bands.map(|b| Stretch { from: b.from, to: b.to, row: b.row, name: &self.names[b.row] }).collect()
    }
}

/// Active sessions by wait class, the numbers behind it, and who was active.
fn activity(database: &Database) -> String {
    let Some(activity) = &database.activity else { return String::new() };
    format!(
        "<section id=\"activity\">\n<div class=\"beside\"><h2>Top activity</h2>{}</div>\n{}{}{}</section>\n",
        spent::switch(),
        top_activity(database),
        activity_numbers(activity),
        active(activity)
    )
}

/// A real server's own words for its waits, and how well they are what they are shown as.
fn native(waits: &[NativeWait]) -> String {
    if waits.is_empty() {
        return String::new();
    }
    let row = |wait: &NativeWait| {
        format!(
            "<tr><th scope=\"row\" class=\"text\">{}</th><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td></tr>\n",
            escape(&wait.wait),
            escape(&wait.event),
            escape(&wait.grade),
            if wait.foreground { "users" } else { "processes" },
            words::percent(wait.share)
        )
    };
    format!(
        "<section id=\"native\">\n<h2>What the server calls it</h2>\n<p class=\"note\">The server's own words, sampled from outside, and \
         the event that each is shown as. exact: the same thing; approximate: the same cause, another boundary; inferred: concluded \
         from something else; none: shown under its own name. What no wait accounts for is shown as CPU.</p>\n<div class=\"scroll\"><table>\n\
         <thead><tr><th class=\"text\" scope=\"col\">server's word</th><th class=\"text\" scope=\"col\">shown as</th><th class=\"text\" \
         scope=\"col\">grade</th><th class=\"text\" scope=\"col\">whose</th><th scope=\"col\">% samples</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n\
         </section>\n",
        waits.iter().map(row).collect::<String>()
    )
}

/// Users' sessions by wait class, background processes beneath.
pub(super) fn top_activity(database: &Database) -> String {
    let Some(activity) = &database.activity else { return String::new() };
    let shown = [
        ("Users' sessions", 250.0, &activity.foreground),
        ("Background processes", 90.0, &activity.background),
    ];
    let colours: Vec<Vec<String>> =
        shown.iter().map(|(_, _, bands)| bands.keys.iter().map(|k| spent::colour(*k)).collect()).collect();
    let grade = |index: usize, class: Class| native::grade(&database.native, class, index == 0);
    let named = |index: usize, class: Class| format!("{}{}", class.name(), native::mark(grade(index, class)));
    let names: Vec<Vec<String>> = shown
        .iter()
        .enumerate()
        .map(|(index, (_, _, bands))| bands.keys.iter().map(|class| named(index, *class)).collect())
        .collect();
    let mut strips = Vec::new();
    for (index, (title, height, bands)) in shown.into_iter().enumerate() {
        let means = bands.means();
        if means.is_empty() {
            continue;
        }
        let layer = |k: usize| Layer {
            name: &names[index][k],
            class: &colours[index][k],
            value: words::sessions(means[k]),
            hatched: grade(index, bands.keys[k]) == Some(waits::Grade::Inferred),
        };
        strips.push(Strip {
            title,
            unit: "average active sessions",
            height,
            content: Content::Stack { layers: (0..means.len()).map(layer).collect(), steps: &bands.steps },
            limit: database.cpus.filter(|_| index == 0).map(|cpus| (cpus, "CPUs")),
            marks: Vec::new(),
        });
    }
    let done = Done::of(database);
    let (rows, stretches) = (&done.names[..], done.stretches());
    let drawn = Strips { name: "Top activity", seconds: database.axis.seconds(), rows, stretches, strips };
    let s = activity.sampler;
    format!(
        "<figure><div class=\"scroll\">{}</div>\n<figcaption>Sampled every {} ms, {} samples, {} of the time spent on it; the numbers \
         at the right are means. Red line: CPUs. Above it in green: CPU is short; above it in another colour: sessions \
         wait.{}</figcaption></figure>\n",
        drawn.draw(),
        words::amount(s.interval * 1e3),
        words::thousands(s.ticks as f64),
        if s.cost < 1e-3 { "less than 0.1\u{a0}%".to_owned() } else { words::percent(s.cost) },
        if database.native.is_empty() { "" } else { native::MARKS },
    )
}

fn activity_numbers(activity: &Activity) -> String {
    let table = |title: &str, bands: &Bands| {
        let heads: String =
            bands.keys.iter().rev().map(|k| format!("<th scope=\"col\">{}</th>", escape(k.name()))).collect();
        let row = |(from, to, values): &Step| {
            let cells: String =
                values.iter().rev().map(|v| format!("<td>{}</td>", words::short_fine(*v))).collect();
            let sum: f64 = values.iter().sum();
            format!(
                "<tr><th scope=\"row\">{}–{}</th>{cells}<td>{}</td></tr>\n",
                words::ratio(*from),
                words::ratio(*to),
                words::short_fine(sum)
            )
        };
        let rows: String = bands.coarser(NUMBERS).iter().map(row).collect();
        format!(
            "<h4>{title}</h4>\n<table class=\"lines\">\n<thead><tr><th scope=\"col\">seconds</th>{heads}<th scope=\"col\">AAS</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
        )
    };
    format!(
        "<details class=\"numbers\">\n<summary>the numbers behind this drawing</summary>\n{}{}</details>\n",
        table("Users' sessions", &activity.foreground),
        table("Background processes", &activity.background)
    )
}

/// The two lists beneath: by statement, by process.
fn active(activity: &Activity) -> String {
    let table = |title: &str, lines: &[Active]| {
        let most = lines.first().map_or(1.0, |line| line.aas);
        let row = |line: &Active| {
            let parts: Vec<bar::Part> = line
                .classes
                .iter()
                .map(|(class, aas)| bar::Part {
                    class: spent::colour(*class),
                    value: *aas,
                    tip: format!("{} {}", class.name(), words::short_fine(*aas)),
                    labels: Vec::new(),
                })
                .collect();
            format!(
                "<tr><th scope=\"row\" title=\"{0}\">{0}</th><td>{1}</td><td>{2}</td><td class=\"draw\">{3}</td><td class=\"text\">{4}</td></tr>\n",
                escape(&line.name),
                words::sessions(line.aas),
                words::percent(line.share),
                bar::parts(120.0, 24.0, &parts, most),
                escape(&line.top)
            )
        };
        if lines.is_empty() {
            return String::new();
        }
        let rows: String = lines.iter().map(row).collect();
        format!(
            concat!(
                "<div class=\"scroll\"><table class=\"bars\">\n<colgroup><col style=\"width:27%\"><col style=\"width:10%\"><col style=\"width:11.5%\">",
                "<col style=\"width:15%\"><col></colgroup>\n<thead><tr><th class=\"text\" scope=\"col\">{}</th><th scope=\"col\">AAS</th><th ",
                "scope=\"col\">share</th><th class=\"draw\"></th><th class=\"text\" scope=\"col\">most in</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n"
            ),
            title, rows
        )
    };
    format!(
        "<div class=\"two\">\n<div>{}</div>\n<div>{}</div>\n</div>\n",
        table(if activity.by_session { "session" } else { "statement" }, &activity.statements),
        table("process", &activity.processes)
    )
}

/// Top events of each workload, and `log file sync` in parts.
fn events(database: &Database) -> String {
    let told: Vec<_> = database.works.iter().filter_map(|w| Some((w, w.spent.as_ref()?))).collect();
    if told.is_empty() {
        return String::new();
    }
    let mut out = String::from("<section id=\"events\">\n<h2>Where the time went</h2>\n");
    for (work, spent) in &told {
        out.push_str(&super::spent::events(work, spent, database.title_of_time(work, told.len())));
    }
    if let Some((_, spent)) = told.iter().max_by(|a, b| sync_time(a.1).total_cmp(&sync_time(b.1))) {
        out.push_str(&super::spent::log_sync(spent));
    }
    out.push_str("</section>\n");
    out
}

fn sync_time(spent: &crate::model::database::spent::Spent) -> f64 {
    spent.event("log file sync").map_or(0.0, |line| line.time_ns)
}

/// Throughput, buffers, redo, devices: strips with the margins of the top activity, so that moments line up.
fn over_time(database: &Database) -> String {
    let buffers = database.buffers.as_ref().map(thin);
    let lanes: &[Lane] = database.time_line.as_ref().map_or(&[], |line| &line.lanes);
    // What is counted in megabytes is not counted in operations, and the other way round.
    let counted = |unit: &str| database.works.iter().any(|w| (w.metric == "MB/s") == (unit == "MB/s"));
    let (ours, theirs): (Vec<&Lane>, Vec<&Lane>) =
        lanes.iter().partition(|lane| lane.title.starts_with("Redoubt"));
    let seconds = database.axis.seconds();
    let mut strips: Vec<Strip<'_>> =
        ours.iter().filter(|l| counted(&l.unit)).map(|l| lane(l, seconds)).collect();
    if let Some(bands) = &buffers {
        strips.push(buffer_strip("Buffer cache", bands));
    }
    if let Some(redo) = &database.redo {
        strips.extend(redo_strips(redo, database.axis));
    }
    strips.extend(theirs.iter().map(|l| lane(l, seconds)));
    if strips.is_empty() {
        return String::new();
    }
    let done = Done::of(database);
    let (rows, stretches) = (&done.names[..], done.stretches());
    let drawn = Strips { name: "The run over time", seconds, rows, stretches, strips };
    format!(
        "<section id=\"time\">\n<h2>On the same time axis</h2>\n<figure><div class=\"scroll\">{}</div>\n<figcaption>Throughput as Redoubt \
         counted it; the buffer cache and the redo log as the database shows them (▾ a log switch); then what the device, the CPU \
         and the kernel counted meanwhile.</figcaption></figure>\n</section>\n",
        drawn.draw()
    )
}

/// Classes of the lines of a strip.
const LINES: [&str; 3] = ["line-first", "line-second", "line-third"];

fn lane(lane: &Lane, seconds: f64) -> Strip<'_> {
    let lines = lane.lines.iter().zip(LINES).map(|(l, class)| {
        (Layer { name: &l.name, class, value: String::new(), hatched: false }, l.thinned(seconds, CELLS))
    });
    Strip {
        title: &lane.title,
        unit: &lane.unit,
        height: 54.0,
        content: Content::Lines { lines: lines.collect() },
        limit: None,
        marks: Vec::new(),
    }
}

fn thin(bands: &Bands<String>) -> Bands<String> {
    Bands { keys: bands.keys.clone(), steps: bands.coarser(CELLS) }
}

/// The caches over time, by state of their blocks.
pub(super) fn buffer_strip<'a>(title: &'a str, bands: &'a Bands<String>) -> Strip<'a> {
    let class = |state: &str| match state {
        "dirty" => "b b-dirty",
        "xcur" => "b b-xcur",
        "free" => "b b-free",
        "flashcur" => "b b-flash",
        "flashfree" => "b b-flashfree",
        _ => "b b-read",
    };
    let means = bands.means();
    Strip {
        title,
        unit: "buffers",
        height: 90.0,
        content: Content::Stack {
            layers: bands
                .keys
                .iter()
                .zip(means)
                .map(|(state, mean)| Layer {
                    name: state,
                    class: class(state),
                    value: words::short(mean.round()),
                    hatched: false,
                })
                .collect(),
            steps: &bands.steps,
        },
        limit: None,
        marks: Vec::new(),
    }
}

/// Positions in the redo, with the switches; and what a recovery would read, against what the groups hold.
fn redo_strips(redo: &Redo, axis: Axis) -> [Strip<'_>; 2] {
    let seconds = axis.seconds();
    let line = |l: &'_ crate::model::timeline::Line| l.thinned(seconds, CELLS);
    let marks = redo
        .switches
        .iter()
        .map(|(at, group)| (*at, format!("{} s: switch to group {group}", words::ratio(*at))));
    let named = |name, class| Layer { name, class, value: String::new(), hatched: false };
    [
        Strip {
            title: "Redo log",
            unit: "MB since the first look",
            height: 90.0,
            content: Content::Lines {
                lines: vec![
                    (named("end of redo", LINES[0]), line(&redo.tail)),
                    (named("durable", LINES[2]), line(&redo.durable)),
                    (named("checkpoint", LINES[1]), line(&redo.checkpoint)),
                ],
            },
            limit: None,
            marks: marks.collect(),
        },
        Strip {
            title: "Redo that a recovery would read",
            unit: "MB",
            height: 54.0,
            content: Content::Lines { lines: vec![(named("to recover", LINES[0]), line(&redo.to_recover))] },
            limit: Some((redo.capacity_mb, "all groups, MB")),
            marks: Vec::new(),
        },
    ]
}
