//! Is it really asynchronous? Do writers run side by side? A row for each configuration.

use crate::chart::escape;
use crate::model::calls::{Manner, Submit, by_configuration, done};
use crate::model::compare::Comparison;
use crate::words;
use stats::verdict::Verdict;

pub(super) fn sections(comparison: &Comparison) -> String {
    asynchronous(comparison) + &side_by_side(comparison)
}

fn asynchronous(comparison: &Comparison) -> String {
    let batches: Vec<&Submit> = comparison.calls.batches(comparison).collect();
    let asked: Vec<usize> =
        (0..comparison.workloads.len()).filter(|w| batches.iter().any(|s| s.workload == *w)).collect();
    if asked.is_empty() {
        return String::new();
    }
    let heads: String = asked
        .iter()
        .map(|w| {
            format!(
                "<th class=\"text\" colspan=\"4\" scope=\"colgroup\">{}</th>",
                escape(&words::capital(done(&comparison.workloads[*w])))
            )
        })
        .collect();
    let columns =
        "<th scope=\"col\">inside submit</th><th scope=\"col\">done at return</th><th scope=\"col\">in the \
                   device</th><th scope=\"col\">workers</th>"
            .repeat(asked.len());
    let rows: String = by_configuration(comparison)
        .iter()
        .map(|(index, said)| {
            let cells: String = asked
                .iter()
                .map(|w| batches.iter().find(|s| s.workload == *w && s.configuration == *index))
                .map(|s| s.map_or_else(|| "<td>–</td>".repeat(4), |s| figures(s)))
                .collect();
            format!(
                "<tr><th scope=\"row\" rowspan=\"2\">{}</th>{cells}</tr>\n<tr class=\"verdict\"><td class=\"text\" colspan=\"{}\">{}</td></tr>\n",
                escape(&comparison.configurations[*index].name),
                4 * asked.len(),
                escape(&words::capital(said)),
            )
        })
        .collect();
    let in_flight = batches.iter().map(|s| s.in_flight).max().unwrap_or(1);
    format!(
        "<section class=\"panel\" id=\"asynchronous\">\n<h2>Is it really asynchronous?</h2>\n<p class=\"note\">One process hands over \
         batches of {in_flight} requests and waits for each batch, as a database writer does. Inside submit: share of its time in the call that \
         should only hand over. Done at return: requests that were complete when that call came back; above 50 % it is asynchronous in name only. \
         In the device: requests there, mean over the trial. Workers: threads of the kernel that waited in its place.</p>\n<div \
         class=\"scroll\"><table class=\"calls\">\n<thead><tr><th rowspan=\"2\"></th>{heads}</tr><tr>{columns}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn figures(submit: &Submit) -> String {
    let class = match submit.manner {
        Manner::Really => "v-better",
        Manner::NameOnly => "v-worse",
        Manner::Workers | Manner::Held | Manner::Blocking => "v-same",
    };
    format!(
        "<td><span class=\"{class}\">{}</span></td><td>{}</td><td>{}</td><td>{}</td>",
        words::percent(submit.inside),
        words::percent(submit.done_at_return),
        submit.depth.map_or_else(|| "–".to_owned(), |depth| format!("{depth:.1}")),
        submit.workers
    )
}

fn side_by_side(comparison: &Comparison) -> String {
    if comparison.calls.pairs.is_empty() {
        return String::new();
    }
    let depth = |depth: Option<f64>| depth.map_or_else(|| "–".to_owned(), |depth| format!("{depth:.1}"));
    let rows: String = comparison
        .calls
        .pairs
        .iter()
        .map(|pair| {
            let workload = &comparison.workloads[pair.workload];
            let rate = |i: usize| {
                let cell = &workload.cells[i];
                cell.absolute.map_or_else(|| "–".to_owned(), |a| words::amount(a.value))
            };
            let r = &pair.decision.ratio;
            let class = match pair.decision.verdict {
                Verdict::Better => "v-better",
                Verdict::Unknown => "v-unknown",
                Verdict::Same | Verdict::Worse => "v-worse",
            };
            format!(
                "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td>{}</td><td>{}</td><td class=\"text\">{} {}</td><td>{}</td><td>{}</td><td \
                 class=\"text\"><span class=\"{class}\">{}</span></td></tr>\n",
                escape(&pair.name),
                done(workload),
                rate(pair.one),
                rate(pair.many),
                words::ratio(r.value),
                words::ratio_interval(r.low, r.high),
                depth(pair.depths.0),
                depth(pair.depths.1),
                pair.word(),
            )
        })
        .collect();
    let many = &comparison.calls.pairs[0].writers;
    format!(
        "<section class=\"panel\" id=\"side-by-side\">\n<h2>Do writers run side by side?</h2>\n<p class=\"note\">Durable single-block writes \
         into one file: {many} writers, each with one write in flight, against one. Overwriting: blocks that are there. Extending: each write makes a \
         new file longer. In the device: requests there, mean over the trial; 1 or less says that they queue above it.</p>\n<div \
         class=\"scroll\"><table>\n<thead><tr><th></th><th class=\"text\" scope=\"col\"></th><th scope=\"col\">one, writes/s</th><th scope=\"col\">{many}, \
         writes/s</th><th class=\"text\" scope=\"col\">ratio</th><th scope=\"col\">in the device, one</th><th scope=\"col\">in the device, \
         {many}</th><th class=\"text\" scope=\"col\">verdict</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}
