//! A section for each configuration: its levels, the proof that it was in force, and what it did.

use super::numbers;
use crate::chart::escape;
use crate::model::compare::{Comparison, Configuration};
use crate::words;

pub(super) fn sections(comparison: &Comparison) -> String {
    let all: String = comparison
        .configurations
        .iter()
        .enumerate()
        .map(|(i, configuration)| section(comparison, i, configuration))
        .collect();
    format!("<section id=\"configurations\">\n<h2>Configuration by configuration</h2>\n{all}</section>\n")
}

fn section(comparison: &Comparison, index: usize, configuration: &Configuration) -> String {
    let levels: Vec<String> = configuration
        .levels
        .iter()
        .map(|(factor, level)| format!("{} <b>{}</b>", escape(factor), escape(level)))
        .collect();
    let (measured, begun) = configuration.visits;
    let dropped = if begun > measured { format!(", {} not used", begun - measured) } else { String::new() };
    let base = if index == comparison.baseline { " <small>baseline</small>" } else { "" };
    let flags = configuration.flags.as_ref().map(|flags| ("open flags", flags.as_str()));
    let row = |what: &str, value: &str, visits: &str| {
        format!(
            "<div><dt>{}</dt><dd><code>{}</code>{visits}</dd></div>\n",
            escape(what),
            if value.is_empty() { "not shown".into() } else { escape(value) }
        )
    };
    let proofs: String = flags
        .map(|(what, value)| row(what, value, ""))
        .into_iter()
        .chain(configuration.proofs.iter().map(|p| {
            let visits = match p.visits {
                n if n >= measured => String::new(),
                n => format!(" <i>in {} of {}</i>", n, words::count(measured, "visit")),
            };
            row(&p.what, &p.value, &visits)
        }))
        .collect();
    let proofs = if proofs.is_empty() {
        "<p class=\"note\">No proof was recorded.</p>\n".to_owned()
    } else {
        format!("<dl class=\"facts\">\n{proofs}</dl>\n")
    };
    format!(
        "<section class=\"panel configuration\" id=\"c-{index}\">\n<h3>{}{}{base}</h3>\n<p class=\"note\">{} · {}{dropped} · {}</p>\n{proofs}</section>\n",
        escape(&configuration.name),
        numbers(&configuration.marks.notes),
        levels.join(", "),
        words::count(measured, "visit"),
        places(comparison, index)
    )
}

/// `1st of 7 in order-entry, 3rd in commit`.
fn places(comparison: &Comparison, index: usize) -> String {
    let all: Vec<String> = comparison
        .workloads
        .iter()
        .filter(|w| w.headline)
        .filter_map(|w| {
            let order = &w.ranking.as_ref()?.order;
            let place = order.iter().position(|i| *i == index)? + 1;
            Some(format!("place {place} of {} in {}", order.len(), escape(&w.title)))
        })
        .collect();
    if all.is_empty() { "not ranked".into() } else { all.join(", ") }
}
