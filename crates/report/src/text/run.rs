//! A run of one configuration in the terminal: figures, who was active when, where the time went, files.

use super::Page;
use super::area::{self, Area};
use super::style::{cut, fold, left, right, width};
use crate::model::database::Database;
use crate::model::database::activity::Activity;
use crate::model::database::class::Class;
use crate::model::database::native::{self, NativeWait};
use crate::model::database::rounds::Rounds;
use crate::model::database::spent::{EventLine, Spent};
use crate::model::database::work::{FileLine, Requests, Work};
use crate::words;

/// Columns of the legend beside the top activity.
const LEGEND: usize = 24;
/// Rows of the drawing.
const ROWS: usize = 12;
/// Events of a table.
const EVENTS: usize = 8;
/// Background events of a table.
const EVENTS_BACKGROUND: usize = 4;

pub(super) fn report(page: Page, database: &Database) -> String {
    let mut out = String::new();
    if database.works.len() > 1 {
        out.push_str(&works(page, &database.works, database.together));
    }
    if let Some(all) = &database.rounds {
        out.push_str(&rounds(page, all));
    }
    out.push_str(&kinds(page, &database.works));
    if let Some(activity) = &database.activity {
        out.push_str(&top_activity(page, database, activity));
    }
    out.push_str(&native(page, &database.native));
    let told: Vec<(&Work, &Spent)> =
        database.works.iter().filter_map(|w| Some((w, w.spent.as_ref()?))).collect();
    for (work, spent) in &told {
        out.push_str(&events(page, work, spent, database.title_of_time(work, told.len())));
    }
    let sync = |spent: &Spent| spent.event("log file sync").map_or(0.0, |line| line.time_ns);
    if let Some((_, spent)) = told.iter().max_by(|a, b| sync(a.1).total_cmp(&sync(b.1))) {
        out.push_str(&log_sync(page, spent));
    }
    out.push_str(&memory(page, database));
    out.push_str(&files(page, &database.works));
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

/// A real server's own words for its waits, and how well they are what they are shown as.
fn native(page: Page, waits: &[NativeWait]) -> String {
    if waits.is_empty() {
        return String::new();
    }
    let mut out = page.title("What the server calls it");
    let event = (page.width.saturating_sub(38 + 13 + 9)).clamp(16, 34);
    let row = |wait: &str, shown: &str, grade: &str, share: &str| {
        let cells =
            [left(&cut(wait, 37), 38), left(&cut(shown, event - 1), event), left(grade, 13), right(share, 8)];
        cells.concat()
    };
    line(&mut out, &page.paint.dim(&row("server's word", "shown as", "grade", "% samples")));
    for foreground in [true, false] {
        let told = waits.iter().filter(|wait| wait.foreground == foreground);
        let most = if foreground { EVENTS } else { EVENTS_BACKGROUND };
        for (at, wait) in told.take(most).enumerate() {
            if at == 0 && !foreground {
                line(&mut out, &page.paint.dim("background processes"));
            }
            line(&mut out, &row(&wait.wait, &wait.event, &wait.grade, &words::percent(wait.share)));
        }
    }
    out
}

/// Workloads beside each other, with a bar of where each one's time went.
fn works(page: Page, works: &[Work], all_in_one: bool) -> String {
    let mut out = page.title("What was done");
    const BAR: usize = 16;
    let name = page.width.saturating_sub(10 + 10 + 18 + BAR + 1).clamp(14, 34);
    let head = format!(
        "{} {} {} {} {}",
        left("", name),
        right("rate", 9),
        left("", 9),
        left("interval", 17),
        if all_in_one { "" } else { "DB time" }
    );
    line(&mut out, &page.paint.dim(head.trim_end()));
    for work in works {
        let notes = words::superscripts(&work.marks.notes);
        let title = format!("{}{notes}", cut(&words::capital(&work.title), name - width(&notes)));
        let interval = match (&work.marks.withdrawn, work.rate.interval) {
            (Some(_), _) => "withdrawn".into(),
            (None, Some((low, high))) => words::amount_interval(low, high),
            (None, None) => String::new(),
        };
        let spent = work.spent.as_ref().filter(|_| !all_in_one);
        let bar = spent.map_or_else(String::new, |spent| class_bar(page, spent, BAR));
        let text = format!(
            "{} {} {} {} {bar}",
            left(&title, name),
            right(&words::amount(work.rate.value), 9),
            left(words::unit(&work.metric), 9),
            left(&interval, 17)
        );
        line(&mut out, &text);
    }
    out
}

/// Where DB time went, in signs of the classes.
pub(super) fn class_bar(page: Page, spent: &Spent, columns: usize) -> String {
    let classes = spent.classes();
    let whole = f64::max(spent.db_time_ns, classes.iter().map(|c| c.1).sum());
    let parts: Vec<(char, f64)> = classes.iter().map(|(class, ns)| (area::sign(*class), *ns)).collect();
    let plain = area::bar(&parts, whole, columns);
    let letters: Vec<char> = plain.chars().collect();
    letters.chunk_by(|a, b| a == b).fold(String::new(), |out, run| {
        let text: String = run.iter().collect();
        let class = Class::ALL.into_iter().find(|class| area::sign(*class) == run[0]);
        out + &class.map_or(text.clone(), |class| page.paint.class(area::colour(class), &text))
    })
}

fn rounds(page: Page, all: &Rounds) -> String {
    let mut out = page.title("Round by round");
    let row = |cells: [String; 6]| {
        let [number, segment, insert, rate, cold, warm] = cells;
        format!(
            "{} {} {} {} {} {}",
            left(&number, 6),
            right(&segment, 10),
            right(&insert, 10),
            right(&rate, 13),
            right(&cold, 10),
            right(&warm, 10)
        )
    };
    let heads = ["round", "segment", "insert, s", "insert, MB/s", "cold, s", "warm, s"].map(str::to_owned);
    line(&mut out, &page.paint.dim(row(heads).trim_end()));
    let text = |value: Option<f64>| value.map_or("–".to_owned(), words::amount);
    for r in &all.rounds {
        let segment = r.segment_bytes.map_or("–".into(), |b| units::Bytes(b as u64).to_string());
        let cells = [
            r.number.to_string(),
            segment,
            words::amount(r.insert_s),
            text(r.insert_mb_s),
            text(r.cold_s),
            text(r.warm_mean_s()),
        ];
        line(&mut out, &row(cells));
    }
    let sums = [
        "all".into(),
        String::new(),
        words::amount(all.insert_s()),
        String::new(),
        words::amount(all.cold_s()),
        words::amount(all.warm_s()),
    ];
    line(&mut out, &page.paint.bold(row(sums).trim_end()));
    out
}

fn kinds(page: Page, works: &[Work]) -> String {
    let told: Vec<&Work> = works.iter().filter(|w| !w.kinds.is_empty()).collect();
    if told.is_empty() {
        return String::new();
    }
    let mut out = page.title("Response times");
    // A column of zeros tells less than longer names do.
    let errors = if told.iter().any(|w| w.kinds.iter().any(|k| k.errors > 0)) { 8 } else { 0 };
    let name = page.width.saturating_sub(9 + 8 + 12 + errors + 9 * 3).clamp(14, 30);
    let row = |cells: [&str; 8]| {
        let widths = [name, 9, 8, 12, errors, 9, 9, 9];
        let shown = cells.iter().zip(widths).filter(|(_, width)| *width > 0);
        shown.enumerate().fold(String::new(), |out, (i, (cell, width))| {
            out + &if i == 0 { left(cell, width) } else { right(cell, width) }
        })
    };
    let heads = ["", "count", "share", "per minute", "errors", "mean", "p50", "p99"];
    line(&mut out, &page.paint.dim(row(heads).trim_end()));
    for work in &told {
        for kind in &work.kinds {
            let title = match (told.len() > 1, work.kinds.len()) {
                (true, 1) => words::capital(&work.title),
                (true, _) => words::capital(&format!("{}: {}", work.title, kind.name)),
                (false, _) => words::capital(&kind.name.replace('-', " ")),
            };
            let cells = [
                words::thousands(kind.count as f64),
                words::percent(kind.share),
                words::amount(kind.count as f64 / work.seconds.max(1e-9) * 60.0),
                words::thousands(kind.errors as f64),
                words::latency(kind.shape.mean_ns),
                words::latency(kind.shape.p50_ns),
                kind.shape.p99_ns.map_or_else(String::new, words::latency),
            ];
            let [count, share, minute, errors, mean, p50, p99] = &cells;
            let text = row([&title, count, share, minute, errors, mean, p50, p99]);
            let withdrawn = work.marks.withdrawn.is_some();
            line(&mut out, &if withdrawn { page.paint.dim(text.trim_end()) } else { text });
        }
    }
    out
}

/// Active sessions by wait class over time, the legend at the right in the order of the drawing.
fn top_activity(page: Page, database: &Database, activity: &Activity) -> String {
    let mut out = page.title("Top activity: users' sessions");
    let bands = &activity.foreground;
    if bands.steps.is_empty() {
        out.push_str(&page.dim_fold("The sampler missed too much to draw it.", "", 0));
        return out;
    }
    let means = bands.means();
    let mut legend: Vec<String> = bands
        .keys
        .iter()
        .zip(means)
        .rev()
        .map(|(class, mean)| {
            let sign = page.paint.class(area::colour(*class), &area::sign(*class).to_string());
            let grade = native::mark(native::grade(&database.native, *class, true));
            format!(
                "{sign} {} {}",
                left(&format!("{}{grade}", class.name()), 15),
                right(&words::sessions(mean), 6)
            )
        })
        .collect();
    legend.truncate(ROWS - 1);
    if let Some(cpus) = database.cpus {
        legend.push(format!("─ {} {}", left("CPUs", 15), right(&words::short(cpus), 6)));
    }
    let drawn = Area {
        steps: &bands.steps,
        classes: &bands.keys,
        seconds: database.axis.seconds(),
        limit: database.cpus,
    };
    let columns = page.width.min(120) - LEGEND - 2;
    out.push_str(
        &drawn.draw(columns, ROWS, &legend, &|class, text| page.paint.class(area::colour(class), text)),
    );
    let who = activity.processes.iter().map(|p| format!("{} {} ({})", p.name, words::sessions(p.aas), p.top));
    let who: Vec<String> = who.collect();
    let background =
        if who.is_empty() { String::new() } else { format!(" Background processes: {}.", who.join(", ")) };
    let said = format!(
        "Average active sessions, sampled every {} ms; the numbers are means.{}{background}",
        words::amount(activity.sampler.interval * 1e3),
        if database.native.is_empty() { "" } else { " ≈: approximate; ?: inferred." }
    );
    out.push_str(&page.dim_fold(&said, "", 2));
    out
}

fn events(page: Page, work: &Work, spent: &Spent, title: Option<&str>) -> String {
    let title = title.map_or_else(String::new, |title| format!(": {title}"));
    let mut out = page.title(&format!("Where the time went{title}"));
    let notes = words::superscripts(&work.marks.notes);
    let agree = spent.accounted().map_or_else(String::new, |value| {
        format!("; waits and CPU add up to {} of it{notes}", words::percent(value))
    });
    let said = format!(
        "DB time {} s over {} s, {} active sessions on average{agree}.",
        words::amount(spent.db_time_ns / 1e9),
        words::amount(spent.seconds),
        words::sessions(spent.aas())
    );
    out.push_str(&page.dim_fold(&said, "", 2));
    out.push_str(&table(page, &spent.foreground, "% DB time", EVENTS));
    if spent.background.iter().any(|l| l.time_ns > 0.0) {
        line(&mut out, &page.paint.dim("background processes"));
        out.push_str(&table(page, &spent.background, "% activity", EVENTS_BACKGROUND));
    }
    out
}

/// The largest events: how often, how long, of what share, and waits by length from short to long.
fn table(page: Page, lines: &[EventLine], share: &str, most: usize) -> String {
    let spans = lines.iter().take(most).filter_map(|l| l.buckets.span());
    let (first, last) = spans.fold((usize::MAX, 0), |sum, s| (sum.0.min(s.0), sum.1.max(s.1)));
    let rest = 10 + 8 + 11 + 7 + 9;
    let drawn = page.width.saturating_sub(rest + 2 + 24).clamp(0, 14);
    let name = page.width.saturating_sub(rest + drawn + 2).clamp(20, 44);
    // Neighbouring lengths are put together until all of them fit.
    let together = (last + 1).saturating_sub(first).div_ceil(drawn.max(1)).max(1);
    let mut out = String::new();
    let row = |cells: [&str; 6]| {
        let widths = [name, 10, 8, 11, 7, 9];
        cells.iter().zip(widths).enumerate().fold(String::new(), |out, (i, (cell, width))| {
            out + &if i == 0 { left(cell, width) } else { right(cell, width) }
        })
    };
    line(&mut out, &page.paint.dim(&row(["event", "waits", "time, s", share, "AAS", "mean"])));
    for event in lines.iter().take(most).filter(|l| l.time_ns > 0.0) {
        let waits = event.waits.map_or_else(String::new, |n| words::thousands(n as f64));
        let mean = event.mean_ns().map_or_else(String::new, words::latency);
        let cells = [
            event.name.as_str(),
            &waits,
            &words::fine(event.time_ns / 1e9),
            &words::share(event.share),
            &words::sessions(event.aas),
            &mean,
        ];
        let shares = event.buckets.shares();
        let spark = match (event.waits, first <= last) {
            (Some(_), true) => {
                let heights = shares[first..=last].chunks(together).map(|part| part.iter().sum());
                area::spark(&heights.collect::<Vec<f64>>())
            }
            _ => String::new(),
        };
        let text = if drawn > 0 { format!("{}  {spark}", row(cells)) } else { row(cells) };
        line(&mut out, &text);
    }
    out
}

/// `log file sync` in parts, as one bar.
fn log_sync(page: Page, spent: &Spent) -> String {
    const SIGNS: [char; 3] = ['░', '█', '▒'];
    let Some(sync) = spent.event("log file sync").filter(|_| !spent.sync.is_empty()) else {
        return String::new();
    };
    let mean = sync.mean_ns().map_or_else(String::new, words::latency);
    let mut out = page.title(&format!("log file sync in parts, {mean} on average"));
    let whole: f64 = spent.sync.iter().map(|l| l.time_ns).sum();
    let parts: Vec<(char, f64)> = spent.sync.iter().zip(SIGNS).map(|(l, sign)| (sign, l.time_ns)).collect();
    line(&mut out, &area::bar(&parts, whole, page.width.min(100)));
    let named = spent.sync.iter().zip(SIGNS).map(|(l, sign)| {
        let name = l.name.rsplit(": ").next().unwrap_or_default();
        let p99 = l.buckets.p99_ns().map_or_else(String::new, |ns| format!(", p99 < {}", words::latency(ns)));
        format!("{sign} {name} {}{p99}", l.mean_ns().map_or_else(String::new, words::latency))
    });
    let named: Vec<String> = named.collect();
    out.push_str(&fold(&named.join("   "), page.width, "", 0));
    out
}

/// Buffer cache and redo in a few sentences.
fn memory(page: Page, database: &Database) -> String {
    let mut out = String::new();
    if let Some(buffers) = &database.buffers {
        let means = buffers.means();
        let all: f64 = means.iter().sum();
        let states = buffers.keys.iter().zip(&means).map(|(state, mean)| {
            format!("{state} {}", words::percent(if all > 0.0 { mean / all } else { 0.0 }))
        });
        let states: Vec<String> = states.collect();
        let hits = database
            .leading()
            .hit_ratio()
            .map_or_else(String::new, |hits| format!(" Hit ratio {}.", words::percent(hits)));
        let text = format!("Buffer cache, {} buffers: {}.{hits}", words::thousands(all), states.join(", "));
        out.push_str(&fold(&text, page.width, "", 2));
    }
    if let Some(redo) = &database.redo {
        let text = format!(
            "Redo: {} MB/s, {}; a recovery would have read at most {} MB of the {} MB that the groups hold.",
            words::fine(redo.mb_s()),
            words::count(redo.switches.len(), "log switch"),
            words::amount(redo.to_recover_max_mb()),
            words::amount(redo.capacity_mb)
        );
        out.push_str(&fold(&text, page.width, "", 2));
    }
    if out.is_empty() { out } else { format!("{}{out}", page.title("Buffer cache and redo")) }
}

fn files(page: Page, works: &[Work]) -> String {
    let sum = |both: &[Requests; 2]| both[0].with(both[1]);
    let busy = |f: &&FileLine| sum(&f.reads).count + sum(&f.writes).count > 0;
    let mut out = String::new();
    let several = works.iter().filter(|w| w.files.iter().any(|f| busy(&f))).count() > 1;
    let name = page.width.saturating_sub(2 * (11 + 9 + 9)).clamp(14, 34);
    for work in works {
        let lines: Vec<&FileLine> = work.files.iter().filter(busy).collect();
        if lines.is_empty() {
            continue;
        }
        let title = if several { format!(": {}", work.title) } else { String::new() };
        out.push_str(&page.title(&format!("Files{title}")));
        let half = |requests: &str, mb: &str, mean: &str| {
            format!("{}{}{}", right(requests, 11), right(mb, 9), right(mean, 9))
        };
        let head =
            format!("{}{}{}", left("file", name), half("reads", "MB", "mean"), half("writes", "MB", "mean"));
        line(&mut out, &page.paint.dim(&head));
        for file in lines {
            let cells = |both: &[Requests; 2]| match sum(both) {
                all if all.count == 0 => half("–", "", ""),
                all => half(
                    &words::thousands(all.count as f64),
                    &words::amount(all.bytes as f64 / 1e6),
                    &all.mean_ns().map_or_else(String::new, words::latency),
                ),
            };
            line(
                &mut out,
                &format!("{}{}{}", left(file.name(), name), cells(&file.reads), cells(&file.writes)),
            );
        }
    }
    out
}
