//! What our own NFS client saw of its servers, in the terminal.

use super::Page;
use super::style::{cut, left, right};
use crate::model::dnfs::{Dnfs, Export, Node, Transfers};
use crate::words;

/// Columns of an address and its port, and of numbers.
const ADDRESS: usize = 21;
const NUMBERS: [usize; 7] = [9, 9, 7, 9, 9, 7, 9];

pub(super) fn report(page: Page, dnfs: &Dnfs) -> String {
    let mut out = page.title("Where NFS calls went");
    dnfs.exports.iter().for_each(|export| out.push_str(&of_export(page, export)));
    out
}

fn of_export(page: Page, export: &Export) -> String {
    let mut out = String::new();
    let mounted =
        if export.mounts > 1 { format!(", mounted {} times", export.mounts) } else { String::new() };
    let title = format!(
        "{} (paths {}; READ up to {}, WRITE up to {}{mounted})",
        export.title(),
        export.paths,
        units::Bytes(export.transfer_max.0),
        units::Bytes(export.transfer_max.1)
    );
    out.push_str(&super::style::fold(&title, page.width, "", 2));
    let heads = ["channels", "reads", "MB", "mean", "writes", "MB", "mean"];
    let head = row("node", heads.map(str::to_owned));
    out.push_str(&format!("{}\n", page.paint.dim(&head)));
    let several = export.nodes.iter().any(|node| node.data_server);
    let mut before = None;
    for node in &export.nodes {
        if several && before != Some(node.data_server) {
            let which = if node.data_server { "by layouts" } else { "by the mount" };
            out.push_str(&format!("{}\n", page.paint.dim(which)));
            before = Some(node.data_server);
        }
        out.push_str(&of_node(node));
    }
    for sentence in export.sentences() {
        out.push_str(&super::style::fold(&sentence, page.width, "  ", 4));
    }
    out
}

fn row(name: &str, cells: [String; 7]) -> String {
    let cells: String = cells.iter().zip(NUMBERS).map(|(cell, columns)| right(cell, columns)).collect();
    format!("{}{cells}", left(&cut(name, ADDRESS), ADDRESS))
}

fn of_node(node: &Node) -> String {
    let [reads, writes] = [node.reads, node.writes].map(|it: Transfers| {
        let mean = it.mean_ns().map_or_else(|| "–".into(), words::latency);
        [words::thousands(it.sent as f64), words::megabytes(it.bytes as f64 / 1e6), mean]
    });
    let ([a, b, c], [d, e, f]) = (reads, writes);
    format!("{}\n", row(&node.address, [node.channels.to_string(), a, b, c, d, e, f]).trim_end())
}
