//! Which one move pays? A row for each move: gain, share of the gain of moving everything, waits that changed.

use crate::chart::escape;
use crate::chart::ranked;
use crate::model::compare::Comparison;
use crate::model::placement::{Move, Placement};
use crate::words;

pub(super) fn sections(comparison: &Comparison) -> String {
    if comparison.placements.is_empty() {
        return String::new();
    }
    let panels: String = comparison.placements.iter().map(|p| panel(comparison, p)).collect();
    format!(
        "<section id=\"placement\">\n<h2>Which one move pays?</h2>\n<p class=\"note\">Each row moves the named file classes away from where {} has \
         them. Share: of what moving everything gains, with its interval over blocks. Waits: of users' sessions, in one operation, before and \
         after.</p>\n{panels}</section>\n",
        escape(&comparison.said(comparison.baseline))
    )
}

fn panel(comparison: &Comparison, placement: &Placement) -> String {
    let workload = &comparison.workloads[placement.workload];
    let ratio = |m: &Move| workload.cells[m.configuration].decision.as_ref().map(|d| d.ratio);
    let largest =
        placement.moves.iter().filter_map(ratio).map(|r| r.high.min(2.0 * r.value)).fold(1.0, f64::max);
    let scale = ranked::scale(largest * 1.02);
    let said: String = placement
        .sentences(comparison)
        .iter()
        .map(|s| format!("<li>{}</li>\n", super::sentence(&words::capital(s))))
        .collect();
    let rows: String = placement
        .moves
        .iter()
        .filter_map(|m| {
            let r = ratio(m)?;
            let text = format!("{} {}", words::ratio(r.value), words::ratio_interval(r.low, r.high));
            let share = m.share.as_ref().map_or_else(
                || "–".to_owned(),
                |s| format!("{} <span class=\"interval\">[{} to {}]</span>", words::percent(s.value), words::percent(s.low), words::percent(s.high)),
            );
            let all = Some(m.configuration) == placement.all;
            let share = if all { "all of it".to_owned() } else { share };
            let name = if all { "everything".to_owned() } else { words::list(&m.classes) };
            Some(format!(
                "<tr><th scope=\"row\">{}</th><td class=\"draw\">{}</td><td class=\"text\">{text}</td><td class=\"text\">{share}</td><td class=\"text \
                 because\">{}</td></tr>\n",
                escape(&name),
                ranked::bar(&scale, r.value, Some((r.low, r.high)), "rank-odd", &text),
                waits(m),
            ))
        })
        .collect();
    format!(
        concat!(
            "<section class=\"panel\">\n<h3>{}</h3>\n<ul class=\"lead\">\n{}</ul>\n<div class=\"scroll\"><table class=\"bars\">\n<colgroup><col ",
            "style=\"width:13%\"><col style=\"width:25%\"><col style=\"width:17%\"><col style=\"width:16%\"><col></colgroup>\n<thead><tr><th ",
            "class=\"text\" scope=\"col\">moved</th><th class=\"draw\">{}</th><th class=\"text\" scope=\"col\">ratio</th><th class=\"text\" ",
            "scope=\"col\">share of the gain</th><th class=\"text\" scope=\"col\">waits</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n</section>\n"
        ),
        escape(&words::capital(&workload.title)),
        said,
        crate::chart::cell::axis(&scale, ranked::WIDTH, 5, words::short),
        rows,
    )
}

fn waits(m: &Move) -> String {
    let one = |(event, old, new): &(String, f64, f64)| {
        format!("{} {} → {}", escape(event), words::latency(*old), words::latency(*new))
    };
    m.waits.iter().map(one).collect::<Vec<_>>().join("<br>")
}
