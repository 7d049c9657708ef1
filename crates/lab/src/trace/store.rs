//! What was seen, into the record: one event for the trace, one for each role, class of files and kind of call, one for each verdict.

use super::analysis::Analysis;
use super::class::Class;
use super::collect::Collected;
use super::doubts;
use super::figures::{Act, Direction, Figures};
use super::verdict::judge;
use crate::LabError;
use crate::bench::Bench;
use host::trace::process::flag_names;
use record::json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Paths that are named in the record.
const PATHS_MAX: usize = 6;

/// Files of one class, by the role that uses them.
#[derive(Default)]
struct Used {
    threads: BTreeSet<u32>,
    flags: BTreeSet<Option<u32>>,
    paths: BTreeSet<String>,
    acts: BTreeMap<Act, Figures>,
}

/// Writes it down. `about`: whom it was of.
///
/// # Errors
/// The record cannot be written.
pub(super) fn store(collected: &Collected, about: Value, bench: &mut Bench) -> Result<(), LabError> {
    let analysis = &collected.analysis;
    let used = by_role(analysis);
    let counts: BTreeMap<&str, u64> = analysis.counts.iter().map(|(call, n)| (call.name(), *n)).collect();
    let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
    for process in analysis.processes.values() {
        *programs.entry(&process.program).or_default() += 1;
    }
    let active = analysis.threads.values().filter(|thread| thread.calls > 0).count();
    bench.writer.event(
        "traced",
        &json!({
            "about": about, "by": collected.tracer.name(), "seconds": collected.elapsed.as_secs(),
            "events": collected.lost.read, "events_lost": collected.lost.events, "calls": analysis.calls,
            "call_cost_ns": collected.tracer.call_cost().map(|cost| cost.0), "collector_cpu_seconds": collected.cpu.as_secs(),
            "processors": std::thread::available_parallelism().map_or(1, usize::from),
            "programs": programs, "threads": active, "counts": counts, "missing": collected.tracer.missing(),
        }),
    )?;
    for check in doubts::checks(collected) {
        bench.writer.check(&check)?;
    }
    for ((role, class), used) in &used {
        let flags: Vec<u32> = used.flags.iter().copied().flatten().collect();
        for (act, figures) in &used.acts {
            bench.writer.event("trace_row", &row(role, class, used, *act, figures))?;
        }
        if *class == Class::ShortLived {
            continue;
        }
        let acts: Vec<(Act, &Figures)> = used.acts.iter().map(|(act, figures)| (*act, figures)).collect();
        for direction in [Direction::Read, Direction::Write] {
            let Some(verdict) = judge(&flags, &acts, direction) else { continue };
            bench.writer.event(
                "trace_verdict",
                &json!({
                    "role": role, "class": class.to_string(), "direction": direction.name(), "direct": verdict.direct,
                    "durable": verdict.durable.map(super::verdict::Durable::name), "manner": verdict.manner.name(),
                    "done_at_return": verdict.done_at_return, "inside": verdict.inside, "workers": verdict.workers,
                }),
            )?;
        }
    }
    Ok(())
}

fn by_role(analysis: &Analysis) -> BTreeMap<(String, Class), Used> {
    let mut all: BTreeMap<(String, Class), Used> = BTreeMap::new();
    let roles: BTreeMap<u32, String> =
        analysis.threads.keys().map(|tid| (*tid, analysis.role(*tid))).collect();
    for ((tid, place, act), figures) in &analysis.figures {
        let place = &analysis.files.places[*place];
        let (Some(role), Some(class)) = (roles.get(tid), &place.class) else { continue };
        let used = all.entry((role.clone(), class.clone())).or_default();
        used.threads.insert(*tid);
        used.flags.insert(place.flags);
        used.paths.extend(place.paths.iter().cloned());
        used.acts.entry(*act).or_default().merge(figures);
    }
    all
}

fn row(role: &str, class: &Class, used: &Used, act: Act, figures: &Figures) -> Value {
    let timed = figures.latency.count() > 0;
    let quantile = |q: f64| timed.then(|| figures.latency.quantile(q));
    let flags: Vec<String> = used.flags.iter().flatten().map(|flags| flag_names(*flags).join(" ")).collect();
    let names = |path: &String| path.rsplit('/').next().unwrap_or(path).to_owned();
    json!({
        "role": role, "threads": used.threads.len(), "class": class.to_string(), "flags": flags,
        "files": used.paths.iter().take(PATHS_MAX).map(names).collect::<Vec<_>>(), "files_seen": used.paths.len(),
        "call": act.name(), "direction": act.direction().name(), "calls": figures.calls, "requests": figures.requests,
        "errors": figures.errors, "bytes": figures.bytes, "size_min": figures.sizes.min(),
        "size_p50": figures.sizes.median(), "size_max": figures.sizes.max(), "batch_p50": figures.batches.median(),
        "batch_max": figures.batches.max(), "p50_ns": quantile(0.5), "p99_ns": quantile(0.99),
        "total_ns": figures.latency.sum(), "submit_ns": figures.submit_ns, "span_ns": figures.span_ns,
        "done_at_return": figures.done_at_return, "to_workers": figures.to_workers,
    })
}
