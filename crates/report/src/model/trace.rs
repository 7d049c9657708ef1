//! A trace: who asked what of which files, and what follows: direct? durable when it returns? truly asynchronous?

use super::evidence::Evidence;
use super::sentence::Answer;
use crate::words;
use record::json::Value;

/// Verdicts on less than this share of all requests are told in the tables alone.
const SHARE_MIN: f64 = 0.005;

/// What was seen of the processes that were traced.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// `PostgreSQL 15.20, commit, 10 sessions`.
    pub subject: String,
    /// `ftrace` or `strace`.
    pub by: String,
    /// How long.
    pub seconds: f64,
    /// Events read, and lost.
    pub events: (u64, u64),
    /// System calls that were seen.
    pub calls: u64,
    /// What tracing added to each, nanoseconds, where it was measured.
    pub call_cost_ns: Option<f64>,
    /// Processor time of who collected, seconds.
    pub collector_seconds: f64,
    /// Processors.
    pub processors: f64,
    /// Calls by name, as strace counts them.
    pub counts: Vec<(String, u64)>,
    /// By role, most requests first.
    pub roles: Vec<Role>,
}

/// Threads that do the same work.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// `log writer`.
    pub name: String,
    /// How many of them touched storage.
    pub threads: u64,
    /// By class of files, most requests first.
    pub uses: Vec<Use>,
}

/// What a role did to files of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// `redo`.
    pub class: String,
    /// Some of the files' names.
    pub files: Vec<String>,
    /// How many were seen.
    pub files_seen: u64,
    /// Open flags, each way in which they are open.
    pub flags: Vec<String>,
    /// By kind of call, most requests first.
    pub rows: Vec<Row>,
    /// Of reads, and of writes.
    pub verdicts: Vec<Judged>,
}

/// One kind of call.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `pwrite64`, `io_uring write` ….
    pub call: String,
    /// System calls; of queued requests those that handed them over.
    pub calls: u64,
    /// Requests.
    pub requests: u64,
    /// That failed.
    pub errors: u64,
    /// Bytes of them all.
    pub bytes: u64,
    /// Smallest, middle and largest request, bytes.
    pub size: Option<(u64, u64, u64)>,
    /// Requests handed over at once: middle, most.
    pub batch: Option<(u64, u64)>,
    /// Of the call, or from submission to completion, nanoseconds.
    pub p50_ns: Option<f64>,
    /// See `p50_ns`.
    pub p99_ns: Option<f64>,
    /// All of it, seconds: of calls that overlap more than passed.
    pub seconds: f64,
    /// Share of the time until all was completed that went into handing over, where anything was queued.
    pub submit_share: Option<f64>,
    /// Requests that were done when submit returned.
    pub done_at_return: u64,
    /// Requests that a worker of the kernel took.
    pub to_workers: u64,
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// `read` or `write`.
    pub direction: String,
    /// Past the page cache; none: not to be said.
    pub direct: Option<bool>,
    /// `on_return`, `by_sync`, `later`; none for reads.
    pub durable: Option<String>,
    /// `blocking`, `really`, `workers`, `held`, `name_only`.
    pub manner: String,
    /// Share of requests that were done when submit returned.
    pub done_at_return: f64,
    /// Share of the time that was spent in submit.
    pub inside: f64,
    /// Share of requests that workers of the kernel took.
    pub workers: f64,
}

impl Trace {
    /// Of a record of `trace`.
    pub fn read(evidence: &Evidence) -> Option<Self> {
        let of = |kind: &'static str| {
            evidence.events.iter().filter(move |event| event.kind == kind).map(|event| &event.json)
        };
        let traced = of("traced").next_back()?;
        let number = |name: &str| traced[name].as_f64().unwrap_or(0.0);
        let mut this = Self {
            subject: subject(&traced["about"]),
            by: text(traced, "by"),
            seconds: number("seconds"),
            events: (whole(traced, "events"), whole(traced, "events_lost")),
            calls: whole(traced, "calls"),
            call_cost_ns: traced["call_cost_ns"].as_f64(),
            collector_seconds: number("collector_cpu_seconds"),
            processors: number("processors").max(1.0),
            counts: counts(&traced["counts"]),
            roles: Vec::new(),
        };
        for row in of("trace_row") {
            this.place(row).rows.push(Row::read(row));
            let role = text(row, "role");
            let threads = whole(row, "threads");
            if let Some(role) = this.roles.iter_mut().find(|known| known.name == role) {
                role.threads = role.threads.max(threads);
            }
        }
        for verdict in of("trace_verdict") {
            this.place(verdict).verdicts.push(Judged::read(verdict));
        }
        for role in &mut this.roles {
            role.uses.iter_mut().for_each(|of| of.rows.sort_by_key(|row| std::cmp::Reverse(row.requests)));
            role.uses.sort_by_key(|of| std::cmp::Reverse(of.requests()));
        }
        this.roles.sort_by_key(|role| std::cmp::Reverse(role.requests()));
        Some(this)
    }

    /// The use that a row or a verdict belongs to.
    fn place(&mut self, json: &Value) -> &mut Use {
        let (role, class) = (text(json, "role"), text(json, "class"));
        let at = self.roles.iter().position(|known| known.name == role).unwrap_or_else(|| {
            self.roles.push(Role { name: role, threads: 0, uses: Vec::new() });
            self.roles.len() - 1
        });
        let uses = &mut self.roles[at].uses;
        let at = uses.iter().position(|known| known.class == class).unwrap_or_else(|| {
            uses.push(Use {
                class,
                files: texts(&json["files"]),
                files_seen: whole(json, "files_seen"),
                flags: texts(&json["flags"]),
                rows: Vec::new(),
                verdicts: Vec::new(),
            });
            uses.len() - 1
        });
        &mut uses[at]
    }

    /// Storage requests of all roles: what was only opened or grown does not count.
    pub fn requests(&self) -> u64 {
        self.roles.iter().map(Role::requests).sum()
    }

    /// What tracing cost, in a sentence.
    pub fn cost(&self) -> String {
        let busy = self.collector_seconds / self.seconds.max(1e-9);
        let events = words::thousands(self.events.0 as f64);
        let lost = match self.events.1 {
            0 => "none was lost".to_owned(),
            n => format!("{} were lost: the figures are too small by as much", words::thousands(n as f64)),
        };
        let added = match self.call_cost_ns {
            Some(ns) if self.by == "ftrace" => format!(
                "tracing added {} to a call, measured before it began: {} of the processors' time with {} calls",
                words::latency(ns),
                words::share(ns * 1e-9 * self.calls as f64 / self.seconds.max(1e-9) / self.processors),
                words::thousands(self.calls as f64)
            ),
            _ => "strace stops a thread twice for each call: latencies are much longer than without it"
                .to_owned(),
        };
        format!(
            "{events} events in {} by {}, {lost}; {added}; collecting them took {} of one processor.",
            words::span(self.seconds),
            self.by,
            words::share(busy)
        )
    }
}

impl Role {
    /// As a heading; what is a program's own name stays as it is.
    pub fn shown(&self) -> String {
        const WORDS: [&str; 5] = ["foreground", "checkpointer", "postmaster", "autovacuum", "replication"];
        let is_ours = self.name.contains(' ') || WORDS.contains(&self.name.as_str());
        if is_ours { words::capital(&self.name) } else { self.name.clone() }
    }

    fn requests(&self) -> u64 {
        self.uses.iter().map(Use::requests).sum()
    }
}

impl Use {
    /// Reads, writes and syncs.
    fn requests(&self) -> u64 {
        self.rows.iter().filter(|row| row.moves()).map(|row| row.requests).sum()
    }

    /// `redo01.log, redo02.log and 3 more`.
    pub fn named(&self) -> String {
        const SHOWN: usize = 3;
        let mut names: Vec<String> = self.files.iter().take(SHOWN).cloned().collect();
        let more = (self.files_seen as usize).saturating_sub(names.len());
        if more > 0 {
            names.push(format!("{more} more"));
        }
        words::list(&names)
    }
}

impl Row {
    fn read(json: &Value) -> Self {
        let number = |name: &str| json[name].as_u64();
        let (submit, span) = (whole(json, "submit_ns"), whole(json, "span_ns"));
        Self {
            call: text(json, "call"),
            calls: whole(json, "calls"),
            requests: whole(json, "requests"),
            errors: whole(json, "errors"),
            bytes: whole(json, "bytes"),
            size: number("size_min")
                .zip(number("size_p50"))
                .zip(number("size_max"))
                .map(|((min, middle), max)| (min, middle, max)),
            batch: number("batch_p50").zip(number("batch_max")),
            p50_ns: json["p50_ns"].as_f64(),
            p99_ns: json["p99_ns"].as_f64(),
            seconds: whole(json, "total_ns") as f64 / 1e9,
            submit_share: (submit > 0 && span > 0).then(|| (submit as f64 / span as f64).min(1.0)),
            done_at_return: whole(json, "done_at_return"),
            to_workers: whole(json, "to_workers"),
        }
    }

    /// Whether it reads, writes or syncs.
    fn moves(&self) -> bool {
        !["openat", "fallocate", "ftruncate", "sync_file_range"].contains(&self.call.as_str())
    }

    /// `8 KiB`, `512 B–48 KiB`: all of them, or the smallest and the largest.
    pub fn sizes(&self) -> String {
        let bytes = |n: u64| units::Bytes(n).to_string();
        match self.size {
            None => "–".to_owned(),
            Some((min, _, max)) if min == max => bytes(min),
            Some((min, _, max)) => format!("{}–{}", bytes(min), bytes(max)).replace(' ', ""),
        }
    }

    /// `32`, `4–58`: the middle batch and the largest.
    pub fn batches(&self) -> String {
        match self.batch {
            None => "–".to_owned(),
            Some((middle, max)) if middle == max => max.to_string(),
            Some((middle, max)) => format!("{middle}–{max}"),
        }
    }
}

impl Judged {
    fn read(json: &Value) -> Self {
        let share = |name: &str| json[name].as_f64().unwrap_or(0.0).clamp(0.0, 1.0);
        Self {
            direction: text(json, "direction"),
            direct: json["direct"].as_bool(),
            durable: json["durable"].as_str().map(str::to_owned),
            manner: text(json, "manner"),
            done_at_return: share("done_at_return"),
            inside: share("inside"),
            workers: share("workers"),
        }
    }

    /// `direct, durable when they return, truly asynchronous (4 % of the time in submit)`.
    pub fn said(&self) -> String {
        let direct = match self.direct {
            Some(true) => "direct",
            Some(false) => "through the page cache",
            None => "direct or not is not known",
        };
        let durable = match self.durable.as_deref() {
            Some("on_return") => Some("durable when they return"),
            Some("by_sync") => Some("made durable by a sync of the same role"),
            Some(_) => Some("not made durable by this role"),
            None => None,
        };
        let inside = words::percent(self.inside);
        let manner = match self.manner.as_str() {
            "really" => format!("truly asynchronous ({inside} of the time until completion in submit)"),
            "workers" => format!(
                "asynchronous through workers of the kernel, which took {}",
                words::percent(self.workers)
            ),
            "held" => format!("asynchronous, but {inside} of the time until completion is spent in submit"),
            "name_only" if self.done_at_return > 0.0 => format!(
                "asynchronous in name only: {} were done when submit returned",
                words::percent(self.done_at_return)
            ),
            "name_only" => format!(
                "asynchronous in name only: the call itself does the work ({inside} of the time until completion)"
            ),
            _ => "synchronous, by blocking calls".to_owned(),
        };
        [Some(direct.to_owned()), durable.map(str::to_owned), Some(manner)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; ")
    }
}

/// What is said first.
pub fn answer(trace: &Trace) -> Answer {
    let all = trace.requests();
    if all == 0 {
        return Answer {
            headline: format!("{}: no request to storage was seen.", words::capital(&trace.subject)),
            more: vec![trace.cost()],
        };
    }
    let mut more = Vec::new();
    let mut by_manner: Vec<(&str, u64)> = Vec::new();
    for role in &trace.roles {
        for of in &role.uses {
            for verdict in &of.verdicts {
                let moved = moved(of, &verdict.direction);
                match by_manner.iter_mut().find(|(manner, _)| *manner == verdict.manner) {
                    Some((_, sum)) => *sum += moved,
                    None => by_manner.push((&verdict.manner, moved)),
                }
                if moved as f64 >= SHARE_MIN * all as f64 {
                    more.push(format!(
                        "{}, {} of {}: {}.",
                        role.shown(),
                        if verdict.direction == "read" { "reads" } else { "writes" },
                        of.class,
                        verdict.said()
                    ));
                }
            }
        }
    }
    more.push(trace.cost());
    let moved: u64 = by_manner.iter().map(|(_, n)| n).sum();
    let share = |manners: &[&str]| {
        let own =
            by_manner.iter().filter(|(manner, _)| manners.contains(manner)).map(|(_, n)| n).sum::<u64>();
        own as f64 / moved.max(1) as f64
    };
    let parts: Vec<String> = [
        ("truly asynchronous", share(&["really"])),
        ("through workers of the kernel", share(&["workers"])),
        ("asynchronous in name only", share(&["held", "name_only"])),
        ("blocking calls", share(&["blocking"])),
    ]
    .into_iter()
    .filter(|(_, share)| *share > 0.0)
    .enumerate()
    .map(|(index, (what, share))| {
        let whole = if index == 0 { " of the reads and writes are" } else { "" };
        format!("{}{whole} {what}", words::share(share))
    })
    .collect();
    let said = match share(&["blocking"]) {
        1.0 => "every read and write is a blocking call".to_owned(),
        _ => words::list(&parts),
    };
    Answer { headline: format!("{}: {said}.", words::capital(&trace.subject)), more }
}

/// Requests of one direction.
fn moved(of: &Use, direction: &str) -> u64 {
    let is = |row: &&Row| {
        let name = row.call.rsplit(' ').next().unwrap_or_default();
        let reads = name.contains("read");
        let writes = name.contains("write");
        if direction == "read" { reads } else { writes }
    };
    of.rows.iter().filter(is).map(|row| row.requests).sum()
}

fn subject(about: &Value) -> String {
    match about["what"].as_str() {
        Some("process") => {
            format!("process {} ({})", about["pid"].as_u64().unwrap_or(0), text(about, "program"))
        }
        Some("command") => format!("`{}`", texts(&about["command"]).join(" ")),
        _ => format!(
            "{}, {}, case {}, {}",
            text(about, "product"),
            text(about, "configuration"),
            text(about, "case"),
            words::count(about["sessions"].as_u64().unwrap_or(1) as usize, "session")
        ),
    }
}

fn counts(json: &Value) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = json
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)))
        .collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

fn text(json: &Value, name: &str) -> String {
    json[name].as_str().unwrap_or_default().to_owned()
}

fn texts(json: &Value) -> Vec<String> {
    json.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

fn whole(json: &Value, name: &str) -> u64 {
    json[name].as_u64().unwrap_or(0)
}
