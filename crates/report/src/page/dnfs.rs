//! What our own NFS client saw of its servers, on the page.

use crate::chart::escape;
use crate::model::dnfs::{Dnfs, Export, Node, Transfers};
use crate::words;

pub(super) fn section(dnfs: &Dnfs) -> String {
    let exports: String = dnfs.exports.iter().map(of_export).collect();
    format!(
        "<section class=\"panel\" id=\"dnfs\">\n<h2>Where NFS calls went</h2>\n<p class=\"note\">By our own client, over the whole run: calls that were \
         sent, from sending to reply, to the server that was mounted and by layouts to data servers. Each worker has a channel of its own to each \
         of them. By time and channel it is in the record: <code>redoubt sql RUN -c 'select * from v$dnfs_channels'</code>.</p>\n{exports}</section>\n"
    )
}

fn of_export(export: &Export) -> String {
    let rows: String = export.nodes.iter().map(row).collect();
    let sentences: String =
        export.sentences().iter().map(|it| format!("<li>{}</li>\n", escape(it))).collect();
    let sentences =
        if sentences.is_empty() { String::new() } else { format!("<ul class=\"note\">\n{sentences}</ul>\n") };
    let mounted =
        if export.mounts > 1 { format!(", mounted {} times", export.mounts) } else { String::new() };
    format!(
        "<h3>{}</h3>\n<p class=\"note\">Paths {}; READ up to {}, WRITE up to {}{mounted}.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th></th><th \
         class=\"text\" scope=\"col\"></th><th scope=\"col\">channels</th><th scope=\"col\">reads</th><th scope=\"col\">MB</th><th \
         scope=\"col\">mean</th><th scope=\"col\">max</th><th scope=\"col\">writes</th><th scope=\"col\">MB</th><th scope=\"col\">mean</th><th \
         scope=\"col\">max</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n{sentences}",
        escape(&export.title()),
        escape(&export.paths),
        units::Bytes(export.transfer_max.0),
        units::Bytes(export.transfer_max.1),
    )
}

fn row(node: &Node) -> String {
    let cells: String = [node.reads, node.writes].map(cells).concat();
    let which = if node.data_server { "by layouts" } else { "by the mount" };
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"text\">{which}</td><td>{}</td>{cells}</tr>\n",
        escape(&node.address),
        node.channels
    )
}

fn cells(it: Transfers) -> String {
    let latency = |ns: Option<f64>| ns.map_or_else(|| "–".into(), words::latency);
    format!(
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
        words::thousands(it.sent as f64),
        words::megabytes(it.bytes as f64 / 1e6),
        latency(it.mean_ns()),
        latency((it.done > 0).then_some(it.max_ns as f64))
    )
}
