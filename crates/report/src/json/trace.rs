//! A trace for programs.

use super::number;
use crate::model::trace::{Judged, Role, Row, Trace, Use};
use record::json::{Value, json};

pub(super) fn trace(t: &Trace) -> Value {
    json!({
        "subject": t.subject, "by": t.by, "seconds": number(t.seconds), "events": t.events.0, "events_lost": t.events.1,
        "calls": t.calls, "call_cost_ns": t.call_cost_ns, "collector_cpu_seconds": number(t.collector_seconds),
        "processors": t.processors, "counts": t.counts.iter().map(|(name, n)| (name.clone(), json!(n)))
            .collect::<record::json::Map<_, _>>(),
        "roles": t.roles.iter().map(role).collect::<Vec<_>>(),
    })
}

fn role(r: &Role) -> Value {
    json!({ "role": r.name, "threads": r.threads, "files": r.uses.iter().map(of).collect::<Vec<_>>() })
}

fn of(u: &Use) -> Value {
    json!({
        "class": u.class, "names": u.files, "files_seen": u.files_seen, "flags": u.flags,
        "calls": u.rows.iter().map(row).collect::<Vec<_>>(),
        "verdicts": u.verdicts.iter().map(verdict).collect::<Vec<_>>(),
    })
}

fn row(r: &Row) -> Value {
    json!({
        "call": r.call, "calls": r.calls, "requests": r.requests, "errors": r.errors, "bytes": r.bytes,
        "size_min": r.size.map(|s| s.0), "size_p50": r.size.map(|s| s.1), "size_max": r.size.map(|s| s.2),
        "batch_p50": r.batch.map(|b| b.0), "batch_max": r.batch.map(|b| b.1), "p50_ns": r.p50_ns, "p99_ns": r.p99_ns, "seconds": number(r.seconds),
        "submit_share": r.submit_share, "done_at_return": r.done_at_return, "to_workers": r.to_workers,
    })
}

fn verdict(v: &Judged) -> Value {
    json!({
        "direction": v.direction, "direct": v.direct, "durable": v.durable, "manner": v.manner, "sentence": v.said(),
        "done_at_return": number(v.done_at_return), "submit_share": number(v.inside), "worker_share": number(v.workers),
    })
}
