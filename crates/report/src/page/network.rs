//! What an NFS server gave over each version, on the page.

use crate::chart::escape;
use crate::model::compare::Comparison;
use crate::words;

pub(super) fn section(comparison: &Comparison) -> String {
    if comparison.network.is_empty() {
        return String::new();
    }
    let share = |share: Option<f64>| share.map_or_else(|| "–".into(), words::percent);
    let row = |reads: &crate::model::network::Reads| {
        let doubt = if reads.holds_together() { "" } else { " class=\"v-worse\"" };
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{:.0}</td><td><span{doubt}>{:.1}</span></td><td>{}</td><td>{}</td></tr>\n",
            escape(&comparison.configurations[reads.configuration].name),
            escape(&comparison.workloads[reads.workload].title),
            words::amount(reads.rate),
            words::latency(reads.latency_ns),
            reads.in_flight,
            reads.little(),
            share(reads.client_cpu),
            share(reads.steal),
        )
    };
    let rows: String = comparison.network.iter().map(row).collect();
    format!(
        "<section class=\"panel\" id=\"network\">\n<h2>What the server gave, and what it took of the client</h2>\n<p class=\"note\">Means over the \
         trials. By Little's law rate × latency are the requests in flight: where that is not what was kept there, the latency is not that of \
         these requests. Client CPU: this program's share of all processors of this machine; stolen: what the hypervisor took away.</p>\n<div \
         class=\"scroll\"><table>\n<thead><tr><th></th><th class=\"text\" scope=\"col\"></th><th scope=\"col\">IOPS</th><th \
         scope=\"col\">latency</th><th scope=\"col\">in flight</th><th scope=\"col\">by Little's law</th><th scope=\"col\">client CPU</th><th \
         scope=\"col\">stolen</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}
