//! Ranks, effects, placement and proofs for programs.

use super::{interval, number};
use crate::model::calls::{Pair, Submit};
use crate::model::compare::{Cell, Comparison, Workload};
use crate::model::devices::DeviceUse;
use crate::model::factors::Proof;
use crate::model::network::Reads;
use crate::model::nodes::Nodes;
use crate::model::passes::{Pass, Passes};
use crate::model::ranked as said;
use record::json::{Value, json};
use stats::rank::Effect;
use stats::verdict::Decision;

fn decision(d: &Decision) -> Value {
    json!({ "ratio": interval(&d.ratio), "verdict": d.verdict.to_string(), "reason": d.reason.to_string(),
            "p": number(d.t_p), "p_holm": d.p_holm.map(number), "blocks_needed": d.blocks_needed })
}

/// Order, groups and pairs; null where nothing is ranked.
pub(super) fn ranking(c: &Comparison, w: &Workload) -> Value {
    let Some(r) = &w.ranking else { return Value::Null };
    let name = |i: &usize| c.configurations[*i].name.clone();
    json!({
        "sentence": said::of(c, w),
        "order": r.order.iter().map(name).collect::<Vec<_>>(),
        "groups": r.groups.iter().map(|g| json!({ "members": g.members.iter().map(name).collect::<Vec<_>>(),
            "same": g.same, "blocks_needed": g.blocks_needed })).collect::<Vec<_>>(),
        "pairs": r.pairs.iter().map(|(a, b, d)| {
            let mut value = decision(d);
            value["old"] = json!(name(a));
            value["new"] = json!(name(b));
            value
        }).collect::<Vec<_>>(),
    })
}

/// Main effects, effects within another factor's levels, interactions; null where fewer than two factors vary.
pub(super) fn effects(c: &Comparison, w: &Workload) -> Value {
    let Some(e) = &w.effects else { return Value::Null };
    let level = |f: usize, l: usize| json!({ "factor": c.factors[f].name, "level": c.factors[f].levels[l] });
    let effect = |e: &Effect| {
        let mut value = decision(&e.decision);
        value["of"] = level(e.factor, e.level);
        value["instead_of"] = json!(c.factors[e.factor].levels[e.reference]);
        value["within"] = e.within.map_or(Value::Null, |(f, l)| level(f, l));
        value["settings"] = json!(e.settings);
        value
    };
    json!({
        "sentences": said::effects(c, w),
        "main": e.main.iter().map(effect).collect::<Vec<_>>(),
        "within": e.within.iter().map(effect).collect::<Vec<_>>(),
        "interactions": e.interactions.iter().map(|i| {
            let mut value = decision(&i.decision);
            value["of"] = level(i.effect.0, i.effect.1);
            value["with"] = level(i.other.0, i.other.1);
            value
        }).collect::<Vec<_>>(),
    })
}

/// How requests of each workload were handed over.
pub(super) fn submits(c: &Comparison) -> Value {
    let one = |s: &Submit| {
        json!({ "configuration": c.configurations[s.configuration].name, "workload": c.workloads[s.workload].name,
                "verdict": s.manner.words(), "sentence": s.said(), "inside_submit": number(s.inside),
                "done_at_return": number(s.done_at_return), "in_the_device": s.depth.map(number), "workers": s.workers })
    };
    c.calls.submits.iter().map(one).collect()
}

/// Many writers of one file against one.
pub(super) fn writers(c: &Comparison) -> Value {
    let one = |p: &Pair| {
        let mut value = decision(&p.decision);
        value["configuration"] = json!(p.name);
        value["workload"] = json!(c.workloads[p.workload].name);
        value["writers"] = json!(p.writers);
        value["in_the_device"] = json!([p.depths.0.map(number), p.depths.1.map(number)]);
        value["sentence"] = json!(p.said(c));
        value
    };
    c.calls.pairs.iter().map(one).collect()
}

/// What an NFS server gave over each version.
pub(super) fn network(c: &Comparison) -> Value {
    let one = |r: &Reads| {
        json!({ "configuration": c.configurations[r.configuration].name, "workload": c.workloads[r.workload].name,
                "ops_per_second": number(r.rate), "latency_ns": number(r.latency_ns), "in_flight": number(r.in_flight),
                "in_flight_by_little": number(r.little()), "client_cpu_share": r.client_cpu.map(number),
                "steal_share": r.steal.map(number) })
    };
    c.network.iter().map(one).collect()
}

/// What the storage nodes behind an export used and did.
pub(super) fn nodes(c: &Comparison) -> Value {
    let one = |n: &Nodes| {
        let each = n.nodes.iter().map(|node| {
            json!({ "name": node.name, "cpu_share": number(node.cpu_share()), "cpu_ns_per_request": number(n.cpu_ns(node)),
                    "bytes_per_second": number(node.bytes_per_second()) })
        });
        json!({ "configuration": c.configurations[n.configuration].name, "workload": c.workloads[n.workload].name,
                "nodes": each.collect::<Vec<_>>(), "cpu_ns_per_request": number(n.cpu_ns_all()),
                "wrong_node_share": n.wrong_share().map(number),
                "moves": n.moves.map(|moves| json!({ "made": moves.made, "followed": moves.followed,
                                                     "stall_max_ns": number(moves.stall_max_ns) })) })
    };
    c.nodes.iter().map(one).collect()
}

/// Every move of files, the largest gain first.
pub(super) fn placements(c: &Comparison) -> Value {
    c.placements
        .iter()
        .map(|p| {
            let workload = &c.workloads[p.workload];
            json!({ "workload": workload.name, "sentences": p.sentences(c), "moves": p.moves.iter().map(|m| json!({
                "configuration": c.configurations[m.configuration].name, "moved": m.classes,
                "everything": p.all == Some(m.configuration),
                "gain": workload.cells[m.configuration].decision.as_ref().map(decision),
                "share_of_gain": m.share.as_ref().map(interval),
                "waits": m.waits.iter().map(|(event, old, new)| json!({ "event": event, "before_ns": number(*old),
                    "after_ns": number(*new) })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>() })
        })
        .collect()
}

/// Repeated scans with and without a flash cache.
pub(super) fn passes(c: &Comparison) -> Value {
    let pass = |p: &Pass| {
        json!({ "seconds": number(p.seconds), "blocks": number(p.blocks), "hits": number(p.hits), "inserts": number(p.inserts),
                "aged_out": number(p.aged_out),
                "skips": p.skips.iter().map(|(reason, n)| json!({ "reason": reason, "blocks": number(*n) })).collect::<Vec<_>>() })
    };
    let one = |p: &Passes| {
        json!({ "configuration": c.configurations[p.configuration].name, "flash_cache": p.flash,
                "passes": p.passes.iter().map(pass).collect::<Vec<_>>(), "second_to_first": p.second.as_ref().map(interval),
                "third_to_first": p.third.as_ref().map(interval), "sentences": p.sentences(c) })
    };
    c.passes.iter().map(one).collect()
}

/// The devices of a configuration, each by itself.
pub(super) fn devices(cell: &Cell) -> Value {
    let one = |d: &DeviceUse| {
        json!({ "name": d.name, "reads_per_second": number(d.reads), "writes_per_second": number(d.writes),
                "read_megabytes_per_second": number(d.read_megabytes), "write_megabytes_per_second": number(d.write_megabytes),
                "busy": d.busy.map(|b| number(b.share)), "busy_is_of_cap": d.busy.map(|b| b.of_cap) })
    };
    cell.devices.iter().map(one).collect()
}

pub(super) fn proofs(proofs: &[Proof]) -> Value {
    proofs.iter().map(|p| json!({ "what": p.what, "value": p.value, "visits": p.visits })).collect()
}
