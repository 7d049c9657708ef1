//! What became of calls: is asynchronous I/O really asynchronous, and do writers of one file run side by side?
//!
//! From the events `submit`: one for each configuration and workload, means over its trials. Pairs of one writer and many are judged
//! over blocks as everything else.

use super::compare::{Comparison, Terms, Workload, common_blocks};
use super::evidence::Evidence;
use super::sentence::Answer;
use crate::words;
use stats::verdict::{self, Decision, Verdict};

/// Above this share of requests that were done when submit returned, it was no asynchronous call. The same share of time inside
/// submit is worth a word.
const SHARE_MAX: f64 = 0.5;
/// The factor whose levels are pairs of one and many.
const WRITERS: &str = "writers";

/// What was seen of the calls of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// How requests were handed over: by configuration and workload.
    pub submits: Vec<Submit>,
    /// One writer against many: by configuration of the many and workload.
    pub pairs: Vec<Pair>,
}

/// How requests of one workload were handed over under one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Submit {
    /// Index of the configuration.
    pub configuration: usize,
    /// Index of the workload.
    pub workload: usize,
    /// Share of the requests that were done when submit returned, 0 to 1.
    pub done_at_return: f64,
    /// Share of the threads' time inside submit, 0 to 1.
    pub inside: f64,
    /// Workers of the kernel that took requests over.
    pub workers: u32,
    /// Requests in the device, mean over time, where it could be counted.
    pub depth: Option<f64>,
    /// Requests that were kept in flight.
    pub in_flight: u32,
    /// What follows from them.
    pub manner: Manner,
}

/// How asynchronous it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    /// Requests go on while the process does.
    Really,
    /// Workers of the kernel do what would have waited.
    Workers,
    /// It goes on, but the call itself takes most of the time.
    Held,
    /// The call returns when the work is done.
    NameOnly,
    /// Not meant to be asynchronous.
    Blocking,
}

/// Many writers on one file against one, everything else the same.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Index of the configuration with many writers, and of that with one.
    pub many: usize,
    /// See `many`.
    pub one: usize,
    /// How many.
    pub writers: String,
    /// What the two are called without their number of writers.
    pub name: String,
    /// Index of the workload.
    pub workload: usize,
    /// Of the rates.
    pub decision: Decision,
    /// Requests in the device with one writer, and with many.
    pub depths: (Option<f64>, Option<f64>),
}

impl Calls {
    /// From the events of a comparison and its blocks.
    pub fn read(evidence: &Evidence, comparison: &Comparison) -> Self {
        let submits: Vec<Submit> = evidence
            .events
            .iter()
            .filter(|event| event.kind == "submit")
            .filter_map(|event| {
                let text = |key: &str| event.json[key].as_str();
                let share = |key: &str| event.json[key].as_f64().map(|v| v.clamp(0.0, 1.0));
                let named = text("configuration")?;
                let configuration = comparison.configurations.iter().position(|c| c.name == named)?;
                let workload =
                    comparison.workloads.iter().position(|w| Some(w.name.as_str()) == text("workload"))?;
                let (done_at_return, inside) = (share("completed_at_submit")?, share("submit_share")?);
                let workers = event.json["kernel_workers"].as_u64().unwrap_or(0) as u32;
                let asynchronous = event.json["asynchronous"].as_bool().unwrap_or(true);
                Some(Submit {
                    configuration,
                    workload,
                    done_at_return,
                    inside,
                    workers,
                    depth: event.json["device_depth"].as_f64(),
                    in_flight: event.json["in_flight"].as_u64().unwrap_or(1) as u32,
                    manner: Manner::of(asynchronous, done_at_return, inside, workers),
                })
            })
            .collect();
        Self { pairs: pairs(comparison, &submits), submits }
    }

    /// Those of batches, which ask whether it is asynchronous; the others are there for their depth.
    pub fn batches<'c>(&'c self, comparison: &'c Comparison) -> impl Iterator<Item = &'c Submit> {
        self.submits.iter().filter(|s| comparison.workloads[s.workload].name.starts_with("batch-"))
    }
}

impl Manner {
    fn of(asynchronous: bool, done_at_return: f64, inside: f64, workers: u32) -> Self {
        match () {
            () if !asynchronous => Self::Blocking,
            () if done_at_return > SHARE_MAX => Self::NameOnly,
            () if inside > SHARE_MAX => Self::Held,
            () if workers > 0 => Self::Workers,
            () => Self::Really,
        }
    }

    /// `really asynchronous`, `asynchronous in name only` …
    pub fn words(self) -> &'static str {
        match self {
            Self::Really => "really asynchronous",
            Self::Workers => "asynchronous through workers of the kernel",
            Self::Held => "asynchronous, but held up in submit",
            Self::NameOnly => "asynchronous in name only",
            Self::Blocking => "blocking calls",
        }
    }
}

impl Submit {
    /// `asynchronous in name only: 98 % of the time is spent in submit`.
    pub fn said(&self) -> String {
        let inside = words::percent(self.inside);
        match self.manner {
            Manner::Workers => format!(
                "asynchronous through {}",
                words::count(self.workers as usize, "worker of the kernel")
            )
            .replace("worker of the kernels", "workers of the kernel"),
            Manner::Held => format!("asynchronous, but {inside} of the time is spent in submit"),
            Manner::NameOnly => {
                format!("asynchronous in name only: {inside} of the time is spent in submit")
            }
            manner => manner.words().to_owned(),
        }
    }
}

/// What a workload does, in few words.
pub fn done(workload: &Workload) -> &str {
    match workload.name.as_str() {
        "batch-read" => "cold reads",
        "batch-overwrite" | "writers" => "overwriting writes",
        "batch-extend" | "writers-extend" => "extending writes",
        _ => &workload.title,
    }
}

/// One sentence for each configuration: `ext4 setall libaio: cold reads and overwriting writes really asynchronous; extending writes …`.
pub fn by_configuration(comparison: &Comparison) -> Vec<(usize, String)> {
    let batches: Vec<&Submit> = comparison.calls.batches(comparison).collect();
    (0..comparison.configurations.len())
        .filter_map(|index| {
            let mut groups: Vec<(String, Vec<String>)> = Vec::new();
            for submit in batches.iter().filter(|s| s.configuration == index) {
                let what = done(&comparison.workloads[submit.workload]).to_owned();
                let said = submit.said();
                match groups.iter_mut().find(|(how, _)| *how == said) {
                    Some((_, all)) => all.push(what),
                    None => groups.push((said, vec![what])),
                }
            }
            let parts: Vec<String> =
                groups.iter().map(|(how, what)| format!("{} {how}", words::list(what))).collect();
            (!parts.is_empty()).then(|| (index, parts.join("; ")))
        })
        .collect()
}

/// One sentence for each workload: who is asynchronous in which manner.
fn by_workload(comparison: &Comparison) -> Vec<String> {
    let batches: Vec<&Submit> = comparison.calls.batches(comparison).collect();
    let told = |index: usize, workload: &Workload| {
        let mut manners: Vec<Manner> =
            batches.iter().filter(|s| s.workload == index).map(|s| s.manner).collect();
        manners.sort_unstable();
        manners.dedup();
        let of = |wanted: Option<Manner>| -> Vec<usize> {
            let own = batches.iter().filter(|s| s.workload == index && wanted.is_none_or(|m| m == s.manner));
            own.map(|s| s.configuration).collect()
        };
        let all = of(None);
        let parts: Vec<String> = manners
            .iter()
            .map(|manner| {
                let under = of(Some(*manner));
                match under.len() == all.len() {
                    true => format!("{} everywhere", manner.words()),
                    false => {
                        format!(
                            "{} under {}",
                            manner.words(),
                            words::list(&together(comparison, &under, &all))
                        )
                    }
                }
            })
            .collect();
        (!parts.is_empty()).then(|| format!("{} are {}.", words::capital(done(workload)), parts.join("; ")))
    };
    comparison.workloads.iter().enumerate().filter_map(|(index, w)| told(index, w)).collect()
}

/// Configurations of `all` in few words: a level that is in `some` with every level of the others is named once (`setall libaio whatever
/// the fs`).
fn together(comparison: &Comparison, some: &[usize], all: &[usize]) -> Vec<String> {
    let mut left = some.to_vec();
    let mut told = Vec::new();
    for factor in comparison.factors.iter().rev() {
        let mut whole = Vec::new();
        for level in &factor.levels {
            let has =
                |i: &&usize| comparison.configurations[**i].level(&factor.name).as_deref() == Some(level);
            let with: Vec<usize> = all.iter().filter(has).copied().collect();
            if with.len() > 1 && with.iter().all(|i| left.contains(i)) {
                left.retain(|i| !with.contains(i));
                whole.push(level.clone());
            }
        }
        let others: Vec<String> =
            comparison.factors.iter().filter(|f| f.name != factor.name).map(|f| f.name.clone()).collect();
        if !whole.is_empty() {
            told.push(format!("{} whatever the {}", words::list(&whole), words::list(&others)));
        }
    }
    told.extend(left.into_iter().map(|i| comparison.said(i)));
    told
}

/// The answer of a comparison that asks about calls.
pub fn answer(comparison: &Comparison) -> Option<Answer> {
    let of_workloads = by_workload(comparison);
    if !of_workloads.is_empty() {
        let really: Vec<String> = (0..comparison.configurations.len())
            .filter(|index| {
                let mut own =
                    comparison.calls.batches(comparison).filter(|s| s.configuration == *index).peekable();
                own.peek().is_some() && own.all(|s| s.manner == Manner::Really)
            })
            .map(|index| comparison.said(index))
            .collect();
        let headline = match really.as_slice() {
            [] => "Nothing here is really asynchronous whatever is done; it depends on reading, overwriting and extending.".into(),
            all => format!("Really asynchronous whatever is done: {}.", words::list(all)),
        };
        return Some(Answer { headline, more: of_workloads });
    }
    let mut said = (0..comparison.workloads.len()).filter_map(|workload| side_by_side(comparison, workload));
    Some(Answer { headline: said.next()?, more: said.collect() })
}

/// `Overwriting writes of 8 writers go: side by side under ext4 none and xfs none (3.86 to 3.9 × of what one brings); not decided under …`
fn side_by_side(comparison: &Comparison, workload: usize) -> Option<String> {
    let pairs: Vec<&Pair> = comparison.calls.pairs.iter().filter(|pair| pair.workload == workload).collect();
    let first = pairs.first()?;
    let parts: Vec<String> = ["side by side", "one after another", "not decided"]
        .into_iter()
        .filter_map(|word| {
            let alike: Vec<&&Pair> = pairs.iter().filter(|pair| pair.word() == word).collect();
            let ratios = alike.iter().map(|pair| pair.decision.ratio.value);
            let (low, high) = (ratios.clone().fold(f64::INFINITY, f64::min), ratios.fold(0.0, f64::max));
            let ratios = match alike.len() {
                0 => return None,
                1 => words::ratio(low),
                _ => format!("{} to {}", words::ratio(low), words::ratio(high)),
            };
            let names: Vec<String> = alike.iter().map(|pair| pair.name.clone()).collect();
            Some(format!("{word} under {} ({ratios} × of what one brings)", words::list(&names)))
        })
        .collect();
    let what = words::capital(done(&comparison.workloads[workload]));
    Some(format!("{what} of {} writers go: {}.", first.writers, parts.join("; ")))
}

impl Pair {
    /// `xfs setall, overwriting writes: 8 writers do 3.1 × [2.8–3.4] of one: side by side, 6.2 requests in the device.`
    pub fn said(&self, comparison: &Comparison) -> String {
        let r = &self.decision.ratio;
        format!(
            "{}, {}: {} writers bring {} × {} of what one does{}: {}.",
            self.name,
            done(&comparison.workloads[self.workload]),
            self.writers,
            words::ratio(r.value),
            words::ratio_interval(r.low, r.high),
            self.depths.1.map_or_else(String::new, |depth| format!(", {depth:.1} requests in the device")),
            self.word()
        )
    }

    /// `side by side`, `one after another`, `not decided`.
    pub fn word(&self) -> &'static str {
        match self.decision.verdict {
            Verdict::Better => "side by side",
            Verdict::Same | Verdict::Worse => "one after another",
            Verdict::Unknown => "not decided",
        }
    }
}

fn pairs(comparison: &Comparison, submits: &[Submit]) -> Vec<Pair> {
    let writers = |i: usize| level(comparison, i, WRITERS).and_then(|l| l.parse::<u32>().ok());
    let alike = |a: usize, b: usize| {
        let others = |i: usize| {
            comparison.configurations[i].levels.iter().filter(|(f, _)| f != WRITERS).collect::<Vec<_>>()
        };
        others(a) == others(b)
    };
    let depth = |configuration: usize, workload: usize| {
        let own = |s: &&Submit| s.configuration == configuration && s.workload == workload;
        submits.iter().find(own).and_then(|s| s.depth)
    };
    let all = 0..comparison.configurations.len();
    let couples: Vec<(usize, usize)> = all
        .clone()
        .filter(|many| writers(*many).is_some_and(|n| n > 1))
        .filter_map(|many| {
            Some((many, all.clone().find(|one| writers(*one) == Some(1) && alike(*one, many))?))
        })
        .collect();
    couples
        .iter()
        .flat_map(|&(many, one)| {
            comparison.workloads.iter().enumerate().filter_map(move |(workload, w)| {
                Some(Pair {
                    many,
                    one,
                    writers: level(comparison, many, WRITERS)?.to_owned(),
                    name: without_writers(comparison, many),
                    workload,
                    decision: decided(w, one, many, &comparison.rule)?,
                    depths: (depth(one, workload), depth(many, workload)),
                })
            })
        })
        .collect()
}

fn decided(workload: &Workload, one: usize, many: usize, terms: &Terms) -> Option<Decision> {
    let cells = [&workload.cells[one], &workload.cells[many]];
    if cells.iter().any(|cell| cell.withdrawn()) {
        return None;
    }
    let common = common_blocks(cells.into_iter());
    let values = |i: usize| -> Vec<f64> { common.iter().map(|b| workload.cells[i].blocks[b]).collect() };
    let rule = terms.rule(common.len());
    (common.len() >= 2)
        .then(|| verdict::decide_all(&values(one), &[values(many)], workload.higher_is_better, &rule))
        .and_then(|mut all| all.pop())
}

fn level<'c>(comparison: &'c Comparison, index: usize, factor: &str) -> Option<&'c str> {
    let mut levels = comparison.configurations[index].levels.iter();
    levels.find(|(name, _)| name == factor).map(|(_, level)| level.as_str())
}

/// The levels that vary, without the number of writers.
fn without_writers(comparison: &Comparison, index: usize) -> String {
    let varied = comparison.factors.iter().filter(|f| f.levels.len() > 1 && f.name != WRITERS);
    let levels: Vec<String> = varied
        .filter_map(|factor| level(comparison, index, &factor.name))
        .map(|level| if level == "none" { "mode none".into() } else { level.to_owned() })
        .filter(|level| level != "threads")
        .collect();
    if levels.is_empty() { "one file".into() } else { levels.join(" ") }
}
