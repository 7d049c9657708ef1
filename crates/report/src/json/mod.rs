//! The model for programs: the same numbers, words and doubts as on the page.

mod database;
mod dnfs;
mod ranked;
mod trace;

use crate::model::advice::{Advice, Device, Estimate};
use crate::model::compare::{Cell, Comparison, Workload};
use crate::model::curve::{Curve, Point};
use crate::model::doubts::{Doubts, Marks};
use crate::model::mix::Pays;
use crate::model::side::{Side, letter};
use crate::model::weighted::Mix;
use crate::model::winners::Stretch;
use crate::model::{Figure, Model, sentence};
use record::json::{Value, json};
use stats::interval::Interval;
use stats::mix::Winner;

/// One object for one run; for several, the runs and what lies between them.
pub fn report(models: &[Model]) -> String {
    let value = match models {
        [only] => run(only),
        several => {
            let side = Side::of(several);
            json!({
                "headline": side.headline,
                "refusals": side.refusals,
                "warnings": side.warnings,
                "differences": side.facts.iter().map(|f| json!({ "fact": f.name, "values": f.values })).collect::<Vec<_>>(),
                "over_sessions": side.sessions.as_ref().map(|s| s.ratios.iter().map(|(label, r)| json!({ "figure": label,
                    "ratio": interval(r) })).collect::<Vec<_>>()),
                "caveat": side.caveat,
                "figures": side.rows.iter().map(|row| json!({
                    "key": row.key, "label": row.label, "unit": row.unit,
                    "values": row.values.iter().map(|v| v.as_ref().map(|v| json!({
                        "value": number(v.value), "low": v.interval.map(|i| number(i.0)),
                        "high": v.interval.map(|i| number(i.1)), "latency_ns": v.latency_ns, "withdrawn": v.withdrawn,
                    }))).collect::<Vec<_>>(),
                    "ratios_to_first": row.ratios.iter().map(|r| r.map(|(value, low, high)| json!({
                        "value": number(value), "low": number(low), "high": number(high) }))).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
                "runs": several.iter().enumerate().map(|(i, model)| {
                    let mut value = run(model);
                    value["letter"] = json!(letter(i).to_string());
                    value
                }).collect::<Vec<_>>(),
            })
        }
    };
    crate::words::plain(&format!("{value:#}\n"))
}

/// JSON has no infinity and no not-a-number: both become null.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

fn interval(interval: &Interval) -> Value {
    json!({ "value": number(interval.value), "low": number(interval.low), "high": number(interval.high),
            "level": interval.level, "blocks": interval.n })
}

fn run(model: &Model) -> Value {
    let r = &model.run;
    json!({
        "headline": model.answer.headline,
        "more": model.answer.more,
        "run": {
            "name": r.name, "kind": r.kind, "case": r.case, "target": r.target, "storage": r.storage,
            "command": r.command, "started_utc": r.started_utc, "seconds": number(r.seconds),
            "budget_seconds": r.budget_seconds, "status": r.status, "seed": r.seed,
            "method_version": r.method_version, "tool_version": r.tool_version, "build_profile": r.build_profile,
            "plan_sha256": r.plan_sha256, "data_bytes": r.data_bytes, "block_bytes": r.block_bytes,
            "memory_bytes": r.memory_bytes, "durability": r.durability,
        },
        "figures": model.figures.iter().map(figure).collect::<Vec<_>>(),
        "curves": model.curves.iter().map(curve).collect::<Vec<_>>(),
        "comparison": model.comparison.as_ref().map(comparison),
        "advice": model.advice.as_ref().map(advice),
        "trace": model.trace.as_ref().map(trace::trace),
        "database": model.database.as_ref().map(database::database),
        "dnfs": model.dnfs.as_ref().map(dnfs::dnfs),
        "doubts": doubts(&model.doubts),
        "facts": model.facts.iter().map(|f| json!({ "layer": f.layer, "object": f.object, "name": f.name,
            "value": f.value, "unit": f.unit, "source": f.source })).collect::<Vec<_>>(),
    })
}

fn marks(marks: &Marks) -> (Value, Value) {
    (json!(marks.notes), json!(marks.withdrawn))
}

fn figure(f: &Figure) -> Value {
    let (notes, withdrawn) = marks(&f.marks);
    json!({
        "key": f.key, "label": f.label, "value": number(f.value), "low": f.interval.map(|i| number(i.0)),
        "high": f.interval.map(|i| number(i.1)), "level": f.level, "n": f.n, "unit": f.unit, "steady": f.steady,
        "note": f.note, "latency_ns": f.latency_ns, "latency_p99_ns": f.latency_p99_ns, "in_flight": f.in_flight,
        "threads": f.threads, "doubts": notes, "withdrawn": withdrawn,
    })
}

fn curve(c: &Curve) -> Value {
    let points = |points: &[Point]| -> Vec<Value> {
        points
            .iter()
            .map(|p| {
                json!({ "in_flight": p.n, "threads": p.threads, "rate": number(p.rate),
                        "latency_ns": number(p.latency_ns), "readings": p.readings, "stages": p.stages })
            })
            .collect()
    };
    json!({
        "series": c.series, "points": points(&c.points), "beyond": points(&c.beyond), "maximum_at": c.best,
        "knee_at": c.knee, "saturation_at": c.saturation, "power_at": c.power, "lower_bound_only": c.lower_bound,
        "unstable": c.unstable,
        "collapse": c.collapse.as_ref().map(|c| json!({ "in_flight": c.n, "threads": c.threads, "rate": number(c.rate),
            "share_of_max": number(c.share_of_max), "sentence": c.sentence, "below_half": c.collapse })),
    })
}

fn advice(a: &Advice) -> Value {
    let estimate =
        |e: &Estimate| json!({ "value": number(e.value), "low": number(e.low), "high": number(e.high) });
    let bytes = |index: Option<usize>| index.map(|index| a.sizes[index].bytes);
    let device = |d: &Device| json!({ "name": d.name, "latency_ns": number(d.latency_ns), "loaded_ns": number(d.loaded_ns) });
    json!({
        "source": a.source, "policy": a.policy, "choice_bytes": bytes(a.choice), "enough_bytes": bytes(a.enough),
        "sizes": a.sizes.iter().map(|s| json!({ "bytes": s.bytes, "hit_ratio": estimate(&s.hits),
            "speed_up": s.speed_up.as_ref().map(estimate) })).collect::<Vec<_>>(),
        "lru": a.lru, "sessions": a.sessions, "cache_bytes": a.cache_bytes, "reads": number(a.reads),
        "sampled_share": number(a.sampled), "distinct_bytes": number(a.distinct_bytes), "unfitted": a.unfitted,
        "slow": a.devices.as_ref().map(|d| device(&d.0)), "fast": a.devices.as_ref().map(|d| device(&d.1)),
    })
}

fn comparison(c: &Comparison) -> Value {
    json!({
        "baseline": c.baseline_name(),
        "configurations": c.configurations.iter().map(|c| json!({ "name": c.name, "levels": c.levels.iter()
            .map(|(f, l)| (f.clone(), json!(l))).collect::<record::json::Map<_, _>>(), "flags": c.flags, "doubts": c.marks.notes,
            "withdrawn": c.marks.withdrawn, "proofs": ranked::proofs(&c.proofs) }))
            .collect::<Vec<_>>(),
        "mix": c.mix.as_ref().ok().map(|m| mix(c, m)),
        "mix_missing": c.mix.as_ref().err(),
        "workloads": c.workloads.iter().map(|w| workload(c, w)).collect::<Vec<_>>(),
        "factors": c.factors.iter().map(|f| json!({ "name": f.name, "levels": f.levels })).collect::<Vec<_>>(),
        "placements": ranked::placements(c),
        "passes": ranked::passes(c),
        "submits": ranked::submits(c), "nfs": ranked::network(c), "nodes": ranked::nodes(c), "writers": ranked::writers(c),
        "blocks": c.blocks, "block_seconds": number(c.block_seconds), "delta": c.rule.delta, "looks": c.rule.looks,
        "level_per_look": c.rule.level_per_look,
        "not_used": c.left_out.iter().map(|(reason, n)| json!({ "reason": reason, "count": n })).collect::<Vec<_>>(),
        "not_run": c.not_run.iter().map(|(name, why)| json!({ "configuration": name, "reason": why })).collect::<Vec<_>>(),
    })
}

fn workload(c: &Comparison, w: &Workload) -> Value {
    json!({
        "name": w.name, "title": w.title, "question": w.question, "metric": w.metric, "sessions": w.sessions,
        "higher_is_better": w.higher_is_better, "headline": w.headline, "sentence": sentence::of_workload(c, w),
        "undecided": w.undecided,
        "possibly_best": w.best.iter().map(|i| c.configurations[*i].name.clone()).collect::<Vec<_>>(),
        "ranking": ranked::ranking(c, w), "effects": ranked::effects(c, w),
        "cells": c.configurations.iter().zip(&w.cells).map(|(c, x)| cell(&c.name, x)).collect::<Vec<_>>(),
    })
}

fn cell(name: &str, cell: &Cell) -> Value {
    let (notes, withdrawn) = marks(&cell.marks);
    json!({
        "configuration": name,
        "level": cell.absolute.as_ref().map(interval),
        "blocks": cell.blocks.iter().map(|(b, v)| json!([b, number(*v)])).collect::<Vec<_>>(),
        "verdict": cell.verdict().map(|v| v.to_string()),
        "decision": cell.decision.as_ref().map(|d| json!({
            "ratio": interval(&d.ratio), "ratio_equivalence": interval(&d.ratio90), "reason": d.reason.to_string(),
            "p": number(d.t_p), "p_permutation": number(d.permutation_p), "p_holm": d.p_holm.map(number),
            "blocks_needed": d.blocks_needed })),
        "not_compared": cell.not_compared, "doubts": notes, "withdrawn": withdrawn,
        "latency_ns": cell.latency_ns,
        "latency_p50_ns": cell.shape.as_ref().map(|s| s.p50_ns),
        "latency_p99_ns": cell.shape.as_ref().and_then(|s| s.p99_ns),
        "cpu_ns_per_operation": cell.cpu_ns, "device_requests_per_operation": cell.device_ops,
        "in_flight_mean": cell.in_flight, "submit_share": cell.submit_share,
        "unsteadiness": cell.unsteadiness.map(number), "time": database::cell(cell),
        "devices": ranked::devices(cell),
    })
}

fn mix(c: &Comparison, m: &Mix) -> Value {
    let stretch = |pays: Pays| match pays {
        Pays::Nowhere => Value::Null,
        Pays::Between { from, to } => json!({ "from": from, "to": to }),
    };
    let mut value = workload(c, &m.workload);
    let i = &m.inputs;
    value["leader"] = json!(c.configurations[m.leader].name);
    value["inputs"] = json!({ "read_share": i.read_share, "hit_ratio": i.hit_ratio, "gets_per_transaction": i.gets,
        "block_writes_per_transaction": i.writes(),
        "commits_per_transaction": i.commits, "cpu_per_get_ns": i.cpu_per_get_ns, "cores": i.cores,
        "sessions": i.sessions, "page_cache_hit_ratio": i.page_cache_hit_ratio });
    value["said"] = json!(m.said);
    value["assumptions"] = json!(m.assumptions);
    value["bottlenecks"] = c
        .configurations
        .iter()
        .zip(&m.bottlenecks)
        .map(|(c, b)| (c.name.clone(), b.map_or(Value::Null, |b| json!(b.to_string()))))
        .collect::<record::json::Map<_, _>>()
        .into();
    value["pays_at_hit_ratios"] = json!({ "estimate": stretch(m.pays), "low": stretch(m.pays_range.0),
        "high": stretch(m.pays_range.1), "by_hand": stretch(m.pays_by_hand) });
    value["page_cache_break_even"] = json!(m.page_cache_break_even);
    value["curve"] =
        m.curve.iter().map(|(h, i)| json!([h, number(i.value), number(i.low), number(i.high)])).collect();
    let winner = |winner: &Winner| {
        let (word, who) = match winner {
            Winner::One(i) => ("wins", vec![*i]),
            Winner::Same(all) => ("same", all.clone()),
            Winner::Unknown(all) => ("unknown", all.clone()),
        };
        json!({ "verdict": word, "configurations": who.iter().map(|i| c.configurations[*i].name.clone()).collect::<Vec<_>>() })
    };
    let stretch = |s: &Stretch| json!({ "from": s.from, "to": s.to, "winner": winner(&s.winner) });
    value["who_wins_where"] = json!({
        "hit_ratios": m.map.hits, "read_shares": m.map.reads,
        "cells": m.map.cells.iter().map(|row| row.iter().map(|w| w.as_ref().map(winner)).collect::<Vec<_>>()).collect::<Vec<_>>(),
        "by_hit_ratio": m.map.by_hit.iter().map(stretch).collect::<Vec<_>>(),
        "by_read_share": m.map.by_read.iter().map(stretch).collect::<Vec<_>>(),
    });
    value["sensitivity"] = m
        .sensitivity
        .iter()
        .map(|s| json!({ "input": s.input, "tenth_lower": number(s.lower), "tenth_higher": number(s.higher), "flips": s.flips }))
        .collect();
    value
}

fn doubts(d: &Doubts) -> Value {
    json!({
        "notes": d.notes.iter().map(|n| json!({
            "number": n.number, "check": n.check_id, "title": n.title, "integrity": n.integrity,
            "status": n.status.word(), "threshold": n.threshold,
            "places": n.places.iter().map(|p| json!({ "subject": p.subject, "evidence": p.evidence,
                "value": p.value.map(number) })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "verified": d.verified,
        "held": d.passed.iter().map(|(id, title, n)| json!({ "check": id, "title": title, "count": n })).collect::<Vec<_>>(),
        "not_applicable": d.not_applicable.iter().map(|(id, title, why)| json!({ "check": id, "title": title,
            "reason": why })).collect::<Vec<_>>(),
    })
}
