//! What the embedded database saw, for programs: exact times, samples, figures of a run.

use super::number;
use crate::model::compare::Cell;
use crate::model::database::activity::{Activity, Bands};
use crate::model::database::spent::{EventLine, Spent};
use crate::model::database::work::{FileLine, Requests, Work};
use crate::model::database::{Database, class::Class};
use record::json::{Map, Value, json};

pub(super) fn database(d: &Database) -> Value {
    json!({
        "configuration": d.configuration,
        "levels": d.levels.iter().map(|(f, l)| (f.clone(), json!(l))).collect::<Map<_, _>>(),
        "seconds": number(d.axis.seconds()),
        "cpus": d.cpus,
        "workloads": d.works.iter().map(work).collect::<Vec<_>>(),
        "activity": d.activity.as_ref().map(activity),
        "buffers": d.buffers.as_ref().map(|b| bands(b, |state| state.clone())),
        "redo": d.redo.as_ref().map(|r| json!({
            "mb_per_second": number(r.mb_s()), "capacity_mb": number(r.capacity_mb),
            "to_recover_max_mb": number(r.to_recover_max_mb()),
            "log_switches": r.switches.iter().map(|(at, group)| json!({ "at": number(*at), "group": group })).collect::<Vec<_>>(),
        })),
        "rounds": d.rounds.as_ref().map(|all| all.rounds.iter().map(|r| json!({
            "round": r.number, "insert_s": number(r.insert_s), "insert_mb_s": r.insert_mb_s, "cold_s": r.cold_s,
            "warm_s": r.warm_s, "segment_bytes": r.segment_bytes })).collect::<Vec<_>>()),
    })
}

/// Of a configuration under a workload of a comparison.
pub(super) fn cell(cell: &Cell) -> Value {
    cell.spent.as_ref().map_or(Value::Null, |s| {
        let mut value = spent(s);
        value["db_time_ns_per_operation"] = json!(cell.db_time_ns);
        value
    })
}

fn work(w: &Work) -> Value {
    json!({
        "name": w.name, "title": w.title, "metric": w.metric, "sessions": w.sessions, "rate": number(w.rate.value),
        "low": w.rate.interval.map(|i| number(i.0)), "high": w.rate.interval.map(|i| number(i.1)),
        "interval_over": w.rate.basis, "seconds": number(w.seconds), "operations": w.ops, "errors": w.errors,
        "latency_ns": w.latency_ns, "busiest_minute": w.busiest_minute, "steady": w.steady, "open_flags": w.proof,
        "doubts": w.marks.notes, "withdrawn": w.marks.withdrawn, "hit_ratio": w.hit_ratio(),
        "kinds": w.kinds.iter().map(|k| json!({
            "name": k.name, "count": k.count, "share": number(k.share), "errors": k.errors,
            "mean_ns": number(k.shape.mean_ns), "p50_ns": number(k.shape.p50_ns), "p99_ns": k.shape.p99_ns,
            "p999_ns": k.shape.p999_ns, "max_ns": number(k.shape.max_ns) })).collect::<Vec<_>>(),
        "time": w.spent.as_ref().map(spent),
        "files": w.files.iter().map(file).collect::<Vec<_>>(),
        "statistics": w.statistics.iter().map(|(name, value)| (name.clone(), number(*value))).collect::<Map<_, _>>(),
    })
}

fn spent(s: &Spent) -> Value {
    json!({
        "db_time_ns": number(s.db_time_ns), "cpu_ns": number(s.cpu_ns), "average_active_sessions": number(s.aas()),
        "accounted": s.accounted().map(number),
        "classes": classes(&s.classes()),
        "foreground": s.foreground.iter().map(event).collect::<Vec<_>>(),
        "background": s.background.iter().map(event).collect::<Vec<_>>(),
        "log_file_sync": s.sync.iter().map(event).collect::<Vec<_>>(),
    })
}

fn classes(all: &[(Class, f64)]) -> Value {
    all.iter().map(|(class, value)| (class.name().to_owned(), number(*value))).collect::<Map<_, _>>().into()
}

/// Percentiles are bounds of powers of two: so many waits were shorter.
fn event(e: &EventLine) -> Value {
    json!({
        "event": e.name, "wait_class": e.class.name(), "waits": e.waits, "timeouts": e.timeouts, "time_ns": number(e.time_ns),
        "share": number(e.share), "average_active_sessions": number(e.aas), "mean_ns": e.mean_ns().map(number),
        "p50_below_ns": e.buckets.p50_ns().map(number), "p99_below_ns": e.buckets.p99_ns().map(number),
    })
}

fn file(f: &FileLine) -> Value {
    let requests = |r: &Requests| json!({ "requests": r.count, "bytes": r.bytes, "time_ns": r.ns });
    json!({
        "file_no": f.file_no, "path": f.path, "type": f.file_type,
        "small_reads": requests(&f.reads[0]), "large_reads": requests(&f.reads[1]),
        "small_writes": requests(&f.writes[0]), "large_writes": requests(&f.writes[1]),
    })
}

fn activity(a: &Activity) -> Value {
    let name = |class: &Class| class.name().to_owned();
    let lists = [
        (if a.by_session { "sessions" } else { "statements" }, &a.statements),
        ("processes", &a.processes),
    ]
    .map(|(key, lines)| {
        let line = |l: &crate::model::database::activity::Active| {
            json!({ "name": l.name, "average_active_sessions": number(l.aas), "share": number(l.share),
                    "classes": classes(&l.classes), "most_in": l.top })
        };
        (key.to_owned(), Value::from(lines.iter().map(line).collect::<Vec<_>>()))
    });
    let mut value = json!({
        "interval_seconds": number(a.sampler.interval), "ticks": a.sampler.ticks, "missed_share": number(a.sampler.missed),
        "cost_share": number(a.sampler.cost), "foreground": bands(&a.foreground, name),
        "background": bands(&a.background, name),
    });
    for (key, list) in lists {
        value[key] = list;
    }
    value
}

/// `[from, to, value of each key]` in seconds, from the bottom of the chart.
fn bands<K>(b: &Bands<K>, name: impl Fn(&K) -> String) -> Value {
    let step = |(from, to, values): &(f64, f64, Vec<f64>)| {
        [*from, *to].iter().chain(values).map(|v| number(*v)).collect::<Vec<_>>()
    };
    json!({ "keys": b.keys.iter().map(name).collect::<Vec<_>>(), "steps": b.steps.iter().map(step).collect::<Vec<_>>() })
}
