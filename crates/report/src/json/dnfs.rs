//! Where NFS calls went.

use super::number;
use crate::model::dnfs::{Dnfs, Export, Layout, Move, Node, Transfers};
use record::json::{Value, json};

/// Each export in each version.
pub(super) fn dnfs(all: &Dnfs) -> Value {
    all.exports.iter().map(export).collect()
}

fn export(it: &Export) -> Value {
    json!({
        "server": it.server, "directory": it.directory, "version": it.version, "paths": it.paths,
        "read_bytes_max": it.transfer_max.0, "write_bytes_max": it.transfer_max.1, "mounts": it.mounts,
        "nodes": it.nodes.iter().map(node).collect::<Vec<_>>(),
        "layouts": it.layouts.iter().map(layout).collect::<Vec<_>>(),
        "moves": it.moves.iter().map(moved).collect::<Vec<_>>(),
        "sentences": it.sentences(),
    })
}

fn node(it: &Node) -> Value {
    json!({
        "address": it.address, "data_server": it.data_server, "channels": it.channels, "channels_down": it.down,
        "reads": transfers(&it.reads), "writes": transfers(&it.writes), "replays": it.replays,
        "reconnects": it.reconnects, "stalls": it.stalls, "stall_max_ns": it.stall_max_ns,
    })
}

fn transfers(it: &Transfers) -> Value {
    json!({ "sent": it.sent, "done": it.done, "bytes": it.bytes, "latency_ns": it.mean_ns().map(number), "latency_max_ns": it.max_ns })
}

fn layout(it: &Layout) -> Value {
    let (recalls, refreshes, doubts) = it.looks;
    json!({ "kind": it.kind, "nodes": it.nodes, "files": it.files, "since_ns": it.since_ns, "recalls": recalls,
            "refreshes": refreshes, "doubts": doubts })
}

fn moved(it: &Move) -> Value {
    json!({ "old_nodes": it.old, "new_nodes": it.new, "cause": it.cause, "files": it.files, "t_ns": it.t_ns,
            "stall_max_ns": it.stall_max_ns, "unsure_bytes": it.unsure_bytes })
}
