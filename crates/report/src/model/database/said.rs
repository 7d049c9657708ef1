//! What is said of a run: what was done, how fast, and the wait that explains it.

use super::Database;
use super::rounds::Rounds;
use super::spent::{EventLine, Spent};
use super::work::Work;
use crate::model::sentence::Answer;
use crate::words;

/// Waits below this share of DB time are not mentioned.
const WORTH_SAYING: f64 = 0.01;
/// `log file sync` above this share is taken apart.
const SYNC_MATTERS: f64 = 0.1;
/// More sessions on CPU than this share of the CPUs: they are what is short.
const CPU_BOUND: f64 = 0.9;

/// The answer of a run. Without `database` there was nothing to tell.
pub fn answer(database: &Database, case: Option<&str>) -> Answer {
    let work = database.leading();
    if let Some(why) = &work.marks.withdrawn {
        let why = why.trim_end_matches('.');
        return Answer { headline: format!("No rate can be stated: {why}."), more: Vec::new() };
    }
    let mut more = Vec::new();
    more.extend(latency(work, database.offered));
    if case == Some("order-entry") || work.kinds.len() > 1 {
        more.extend(per_minute(work));
    }
    if let Some(rounds) = &database.rounds {
        more.extend(grown(rounds));
    }
    more.extend(database.works.iter().filter(|w| w.name != work.name).map(beside));
    more.extend(log_sync(work));
    more.extend(active(database, work));
    more.extend(log_groups(database, work));
    let mode =
        database.configuration.as_deref().map(said).map_or_else(String::new, |m| format!("With {m}, "));
    let alone = work.sessions == 1;
    let who = if alone { "one session".to_owned() } else { words::count(work.sessions as usize, "session") };
    let what = match (database.works.len(), &database.rounds) {
        (1, _) | (_, Some(_)) => String::new(),
        _ => format!(" ({})", work.title),
    };
    let because = work.spent.as_ref().and_then(Spent::top).map_or_else(String::new, |top| {
        let (over, whose) = match (database.together, alone) {
            (true, _) => ("over all of them, ", "the"),
            (false, true) => ("", "its"),
            (false, false) => ("", "their"),
        };
        format!("; {over}{} took {} of {whose} time", top.name, words::percent(top.share))
    });
    Answer { headline: words::capital(&format!("{mode}{who} {}{what}{because}.", did(work))), more }
}

/// Name of a configuration inside a sentence: "none" alone reads as a word.
fn said(name: &str) -> String {
    if name == "none" { "mode none".into() } else { name.into() }
}

/// `committed 4,310 times a second [4,230–4,390]`.
fn did(work: &Work) -> String {
    let amount = words::amount(work.rate.value);
    let interval = work
        .rate
        .interval
        .map_or_else(String::new, |(low, high)| format!(" {}", words::amount_interval(low, high)));
    let writes = ["write", "insert", "growth"].iter().any(|word| work.name.contains(word))
        && !work.name.contains("scan");
    match work.metric.as_str() {
        "commits/s" => format!("committed {amount} times a second{interval}"),
        "reads/s" => format!("read {amount} blocks a second{interval}"),
        "writes/s" => format!("wrote {amount} blocks a second{interval}"),
        "MB/s" if writes => format!("wrote {amount} MB a second{interval}"),
        "MB/s" => format!("read {amount} MB a second{interval}"),
        "tx/min" => format!("completed {amount} transactions a minute{interval}"),
        metric => match metric.strip_suffix("/s") {
            Some(what) => format!("completed {amount} {what} a second{interval}"),
            None => format!("reached {amount} {metric}{interval}"),
        },
    }
}

/// `Each took 2.3 ms on average; of 100, 99 at most 6.3 ms.`
fn latency(work: &Work, offered: Option<f64>) -> Option<String> {
    let mean = work.latency_ns?;
    let one = match work.one() {
        "operation" => return None,
        one => format!("A {one}"),
    };
    let p99 = work.shape.as_ref().and_then(|s| s.p99_ns);
    let tail = p99.map_or_else(String::new, |ns| format!(", 99 of 100 at most {}", words::latency(ns)));
    let from = offered.map_or_else(String::new, |rate| {
        format!(
            ", counted from the instant when it was to begin: {} a second were offered",
            words::amount(rate)
        )
    });
    Some(format!("{one} took {} on average{tail}{from}.", words::latency(mean)))
}

/// Order entry counts by the minute; the definition stands beside the number.
fn per_minute(work: &Work) -> Option<String> {
    if work.one() != "transaction" || work.seconds <= 0.0 {
        return None;
    }
    let minute = |count: f64| words::amount(count / work.seconds * 60.0);
    let new_orders = work.kinds.iter().find(|k| k.name.replace(['-', '_'], " ") == "new order");
    let orders =
        new_orders.map_or_else(String::new, |k| format!(", {} of them new orders", minute(k.count as f64)));
    let busiest = work
        .busiest_minute
        .map_or_else(String::new, |n| format!("; {} in the busiest 60 s", words::amount(n)));
    if work.metric == "tx/min" {
        let orders = new_orders.map(|k| format!("{} a minute were new orders", minute(k.count as f64)));
        let busiest =
            work.busiest_minute.map(|n| format!("the busiest 60 s had {} transactions", words::amount(n)));
        let said: Vec<String> = orders.into_iter().chain(busiest).collect();
        return (!said.is_empty()).then(|| format!("{}.", words::capital(&said.join("; "))));
    }
    Some(format!("Per minute: {} transactions of all kinds{orders}{busiest}.", minute(work.ops as f64)))
}

fn grown(rounds: &Rounds) -> Option<String> {
    let bytes = units::Bytes(rounds.bytes()? as u64);
    let count = |time: f64, how: &str| {
        (time > 0.0)
            .then(|| format!("{} {how} ({} MB/s)", seconds(time), words::amount(rounds.scan_mb_s(time))))
    };
    let counts: Vec<String> =
        [count(rounds.cold_s(), "with empty caches"), count(rounds.warm_s(), "when repeated")]
            .into_iter()
            .flatten()
            .collect();
    let counts = match counts.is_empty() {
        true => String::new(),
        false => format!("; one count after each took {}", words::list(&counts)),
    };
    Some(format!(
        "The table grew to {bytes} in {}, {} of inserts{counts}.",
        words::count(rounds.rounds.len(), "round"),
        seconds(rounds.insert_s())
    ))
}

/// A time of seconds with three digits: `12.3 s`.
pub fn seconds(value: f64) -> String {
    words::latency(value * 1e9)
}

/// A further workload in one line.
fn beside(work: &Work) -> String {
    if work.marks.withdrawn.is_some() {
        return format!("{}: withdrawn.", words::capital(&work.title));
    }
    let interval = work
        .rate
        .interval
        .map_or_else(String::new, |(low, high)| format!(" {}", words::amount_interval(low, high)));
    let top = work.spent.as_ref().and_then(Spent::top);
    let because = top.map_or_else(String::new, |top| format!("; {} {}", top.name, words::percent(top.share)));
    format!(
        "{}: {} {}{interval}{because}.",
        words::capital(&work.title),
        words::amount(work.rate.value),
        work.metric
    )
}

/// `log file sync` in its parts, and how many commits shared a write.
fn log_sync(work: &Work) -> Option<String> {
    let spent = work.spent.as_ref()?;
    let sync = spent.event("log file sync").filter(|line| line.share >= SYNC_MATTERS)?;
    let part = |line: &EventLine| {
        let name = line.name.rsplit(": ").next().unwrap_or_default();
        Some(format!("{} {}", words::latency(line.mean_ns()?), part_words(name)))
    };
    let parts: Vec<String> = spent.sync.iter().filter_map(part).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", words::list(&parts)) };
    let shared = work
        .commits_per_redo_write()
        .filter(|n| *n > 0.0)
        .map_or_else(String::new, |n| format!("; {} commits shared a write of the log", words::ratio(n)));
    Some(format!("A log file sync took {}{parts}{shared}.", words::latency(sync.mean_ns()?)))
}

/// What a part of `log file sync` is, in a sentence.
fn part_words(name: &str) -> &str {
    match name {
        "queue" => "in the queue",
        "write" => "in the write",
        "wake-up" => "until the session ran again",
        other => other,
    }
}

/// Sessions against CPUs.
fn active(database: &Database, work: &Work) -> Option<String> {
    let (spent, cpus) = (work.spent.as_ref()?, database.cpus?);
    if work.sessions < 2 {
        return None;
    }
    let cpu_ns = spent.cpu_ns + spent.cpu_inside_waits_ns;
    let (all, on_cpu) = (spent.aas(), cpu_ns / 1e9 / spent.seconds.max(1e-9));
    let many = if cpus == 1.0 { "1 CPU".to_owned() } else { format!("{} CPUs", words::short(cpus)) };
    let word = match () {
        () if on_cpu >= CPU_BOUND * cpus => ": the CPUs are fully used",
        () if on_cpu < 0.5 * cpus => ": the CPUs are not what limits",
        () => "",
    };
    Some(format!(
        "{} sessions were active on average and used {}{word}.",
        words::sessions(all),
        format_args!("{} of {many}", words::sessions(on_cpu))
    ))
}

/// Log switches, and whether sessions waited for a group.
fn log_groups(database: &Database, work: &Work) -> Option<String> {
    let switches = database.redo.as_ref().map(|redo| (redo.switches.len(), redo.seconds))?;
    let blocked = work.spent.as_ref().and_then(|s| s.event("log file switch (checkpoint incomplete)"));
    let blocked = blocked.filter(|line| line.share >= WORTH_SAYING);
    match (switches, blocked) {
        ((0, _), None) => None,
        ((n, over), blocked) => {
            let each =
                if n > 1 { format!(", one every {}", seconds(over / n as f64)) } else { String::new() };
            let waited = blocked.map_or_else(String::new, |line| {
                format!(
                    "; {} of DB time went into waiting until a checkpoint had freed a group: larger or more groups, or faster \
                     writes of dirty blocks, would help",
                    words::percent(line.share)
                )
            });
            Some(format!("{}{each}{waited}.", words::count(n, "log switch")))
        }
    }
}
