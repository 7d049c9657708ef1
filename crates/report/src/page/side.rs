//! Several runs on one page: warnings first, then figure beside figure, then each run's own page in short.

use super::{document, lead, notes, sentence, time_line};
use crate::chart::cell;
use crate::chart::{Scale, escape, extent};
use crate::model::Model;
use crate::model::side::{Row, Side, letter};
use crate::words;
use stats::interval::Interval;
use stats::verdict::Verdict;

const TICKS: usize = 5;

pub(super) fn report(models: &[Model]) -> String {
    let side = Side::of(models);
    let mut body =
        String::from("<header class=\"run\"><b>redoubt report</b> · side by side</header>\n<main>\n");
    body.push_str(&format!("<h1>{}</h1>\n", sentence(&side.headline)));
    let runs: String = models
        .iter()
        .enumerate()
        .map(|(i, m)| {
            let storage = m.run.storage.as_ref().map_or_else(String::new, |s| format!(", {s}"));
            let text = format!(
                "{} of {}{storage}, {}",
                words::what(&m.run.kind, m.run.case.as_deref()),
                m.run.target,
                words::moment(&m.run.started_utc)
            );
            format!("<li><b>{}</b>  {}</li>\n", letter(i), escape(&text))
        })
        .collect();
    body.push_str(&format!("<ul class=\"lead\">\n{runs}</ul>\n"));
    let refused: String =
        side.refusals.iter().map(|r| format!("<li><b>Not ranked.</b> {}</li>\n", escape(r))).collect();
    if !refused.is_empty() {
        body.push_str(&format!("<ul class=\"warnings\">\n{refused}</ul>\n"));
    }
    let warnings: String = side.warnings.iter().map(|w| format!("<li>{}</li>\n", escape(w))).collect();
    if !warnings.is_empty() {
        body.push_str(&format!("<ul class=\"warnings\">\n{warnings}</ul>\n"));
    }
    body.push_str(&format!("<p class=\"note\">{}</p>\n", escape(&side.caveat)));
    body.push_str(&table(&side, models.len()));
    body.push_str(&sessions(&side));
    body.push_str(&facts(&side, models.len()));
    for (index, model) in models.iter().enumerate() {
        body.push_str(&format!(
            "<section>\n<h2>{}: {}</h2>\n<p class=\"say big\">{}</p>\n{}</section>\n",
            letter(index),
            escape(&model.run.target),
            sentence(&model.answer.headline),
            lead(&model.answer.more)
        ));
        if let Some(database) = &model.database {
            body.push_str(&super::spent::works(&database.works, database.together));
            if index == 0 {
                body.push_str(super::spent::switch());
            }
            body.push_str(&super::run::top_activity(database));
        }
        if let Some(line) = &model.time_line {
            body.push_str(&time_line(line).replace("id=\"time\"", &format!("id=\"time-{}\"", letter(index))));
        }
        let rest = notes::sections(model);
        body.push_str(
            &["doubts", "how", "facts"]
                .iter()
                .fold(rest, |text, id| {
                    text.replace(&format!("id=\"{id}\""), &format!("id=\"{id}-{}\"", letter(index)))
                })
                .replace("id=\"doubt-", &format!("id=\"doubt-{}-", letter(index))),
        );
    }
    body.push_str("</main>\n");
    document("Runs side by side", &body)
}

/// Ratios over sessions, where two machines have enough of them.
fn sessions(side: &Side) -> String {
    let Some(sessions) = &side.sessions else { return String::new() };
    let letters =
        |runs: &[usize]| words::list(&runs.iter().map(|i| letter(*i).to_string()).collect::<Vec<_>>());
    let rows: String = sessions
        .ratios
        .iter()
        .map(|(label, r)| {
            format!(
                "<tr><th scope=\"row\">{}</th><td class=\"text\">{} {}</td></tr>\n",
                escape(label),
                words::ratio(r.value),
                words::ratio_interval(r.low, r.high)
            )
        })
        .collect();
    format!(
        "<section id=\"sessions\">\n<h2>Over sessions</h2>\n<p class=\"note\">Runs {} to runs {}: the run is the unit, so the hours between \
         them are in the interval.</p>\n<table style=\"width:auto\">\n<tbody>\n{rows}</tbody></table>\n</section>\n",
        letters(&sessions.runs.1),
        letters(&sessions.runs.0)
    )
}

/// What is not the same of the machines.
fn facts(side: &Side, runs: usize) -> String {
    if side.facts.is_empty() {
        return String::new();
    }
    let heads: String =
        (0..runs).map(|i| format!("<th class=\"text\" scope=\"col\">{}</th>", letter(i))).collect();
    let rows: String = side
        .facts
        .iter()
        .map(|fact| {
            let cells: String = fact
                .values
                .iter()
                .map(|v| format!("<td class=\"text\">{}</td>", escape(v.as_deref().unwrap_or("unknown"))))
                .collect();
            format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&fact.name))
        })
        .collect();
    format!(
        "<section id=\"differences\">\n<h2>Differences of the machines</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th></th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn table(side: &Side, runs: usize) -> String {
    if side.rows.is_empty() {
        return "<section id=\"figures\">\n<h2>Figure beside figure</h2>\n<p class=\"note\">No two of these runs have a figure in common.</p>\n</section>\n"
            .into();
    }
    // A run that is not ranked has figures alone, and no axis.
    let ranked: Vec<bool> = (0..runs).map(|i| side.rows.iter().any(|row| row.ratios[i].is_some())).collect();
    let columns = 1 + runs + 2 * ranked.iter().filter(|ranked| **ranked).count();
    let ends = side.rows.iter().flat_map(|r| r.ratios.iter().flatten().flat_map(|r| [r.1, r.2]));
    let (low, high) = extent(ends.chain([1.0])).unwrap_or((0.9, 1.1));
    let scale = cell::ratio_scale((low.max(1.0 / 64.0) * 0.98).min(0.9), (high.min(64.0) * 1.02).max(1.1));
    let heads: String = (0..runs)
        .map(|i| match ranked[i] {
            false => format!("<th scope=\"col\">{}</th>", letter(i)),
            true => format!(
                "<th scope=\"col\">{0}</th><th class=\"draw\">{1}</th><th class=\"text\" scope=\"col\">{0} / A</th>",
                letter(i),
                cell::axis(&scale, cell::INTERVAL_WIDTH, TICKS, words::short)
            ),
        })
        .collect();
    let mut rows = String::new();
    let mut unit = "";
    for row in &side.rows {
        if row.unit != unit {
            unit = &row.unit;
            rows.push_str(&format!(
                "<tr><th colspan=\"{}\" scope=\"rowgroup\"><span class=\"note\">{}</span></th></tr>\n",
                columns,
                escape(unit)
            ));
        }
        rows.push_str(&table_row(row, &ranked, &scale));
    }
    format!(
        "<section id=\"figures\">\n<h2>Figure beside figure</h2>\n<div class=\"scroll\"><table \
         class=\"bars\" style=\"table-layout:auto\">\n<thead><tr><th></th>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn table_row(row: &Row, ranked: &[bool], scale: &Scale) -> String {
    let cells: String = row
        .values
        .iter()
        .zip(&row.ratios)
        .enumerate()
        .map(|(i, (value, ratio))| {
            let level = value.as_ref().map_or("–".into(), |v| match &v.withdrawn {
                Some(why) => {
                    format!("<span class=\"withdrawn\" title=\"{}\">{}</span>", escape(why), words::amount(v.value))
                }
                None => words::amount(v.value),
            });
            let level = format!("<td>{level}</td>");
            match (ranked[i], ratio) {
                (false, _) => level,
                (true, Some((value, low, high))) => {
                    // No verdict word: unpaired sessions. The mark is the neutral one.
                    let interval = Interval { value: *value, low: *low, high: *high, level: 0.95, n: 0 };
                    let text = format!("{} {}", words::ratio(*value), words::ratio_interval(*low, *high));
                    let drawn = cell::interval(scale, TICKS, Some((&interval, Verdict::Same)), &text);
                    format!("{level}<td class=\"draw\" style=\"width:22%\">{drawn}</td><td class=\"text\">{text}</td>")
                }
                (true, None) => format!("{level}<td class=\"draw\">{}</td><td></td>", cell::empty(scale, TICKS)),
            }
        })
        .collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&row.label))
}
