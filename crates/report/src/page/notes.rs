//! The end of the page: doubts, how it was decided, facts.

use crate::chart::escape;
use crate::model::Model;
use crate::model::database::Database;
use crate::model::doubts::{Doubt, Doubts, Status};
use crate::words;
use record::FactRow;

pub(super) fn sections(model: &Model) -> String {
    format!("{}{}{}", doubts(&model.doubts), how(model), facts(&model.facts))
}

fn doubts(doubts: &Doubts) -> String {
    let mut out = String::from("<section id=\"doubts\">\n<h2>Doubts</h2>\n");
    if doubts.notes.is_empty() {
        let none = if doubts.passed.is_empty() {
            "No rule was applied: the run ended before its checks."
        } else {
            "None of the rules that were applied was broken."
        };
        out.push_str(&format!("<p>{none}</p>\n"));
    } else {
        out.push_str("<ol class=\"doubts\">\n");
        for note in &doubts.notes {
            out.push_str(&doubt(note));
        }
        out.push_str("</ol>\n");
    }
    if let Some(verified) = &doubts.verified {
        out.push_str(&format!("<p>Verified: {}</p>\n", escape(verified)));
    }
    let list = |rows: Vec<String>| rows.join(", ");
    if !doubts.passed.is_empty() {
        let held =
            doubts.passed.iter().map(|(id, title, n)| format!("{} {} ({n})", escape(id), escape(title)));
        out.push_str(&format!("<p class=\"note\">Rules that held: {}.</p>\n", list(held.collect())));
    }
    if !doubts.not_applicable.is_empty() {
        let rows = doubts.not_applicable.iter();
        let rows = rows.map(|(id, title, why)| {
            format!("{} {} ({})", escape(id), escape(title), escape(why.trim_end_matches('.')))
        });
        out.push_str(&format!("<p class=\"note\">Not applicable here: {}.</p>\n", list(rows.collect())));
    }
    out.push_str("</section>\n");
    out
}

fn doubt(note: &Doubt) -> String {
    let (class, word) = match (note.status, note.integrity) {
        (Status::Fail, true) => ("fail", "fail: the figure is withdrawn"),
        (Status::Fail, false) => ("fail", "fail: to be known beside the figure"),
        _ => ("warn", "to be known beside the figure"),
    };
    // One in full says what it is about; the rest are subject and number. The JSON report has every sentence.
    let full = if note.places.len() > 3 { 1 } else { 3 };
    let mut places: String = note
        .places
        .iter()
        .take(full)
        .map(|place| {
            let subject = if place.subject.is_empty() || place.evidence.starts_with(&place.subject) {
                String::new()
            } else {
                format!("{}. ", escape(&place.subject))
            };
            format!("<li>{subject}{}</li>\n", escape(&place.evidence))
        })
        .collect();
    if note.places.len() > full {
        places.push_str(&format!("<li>also: {}</li>\n", escape(&note.places_in_short(full))));
    }
    let good = if note.threshold.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"note\">Rule: {}.</span>", escape(note.threshold.trim_end_matches('.')))
    };
    format!(
        "<li id=\"doubt-{n}\"><span class=\"number\">{n}</span><b class=\"{class}\">{} {}</b> <span class=\"dim\">– \
         {word}.</span>{good}\n<ul>\n{places}</ul></li>\n",
        escape(&note.check_id),
        escape(&words::capital(&note.title)),
        n = note.number,
    )
}

fn how(model: &Model) -> String {
    let run = &model.run;
    let mut rows: Vec<(&str, String)> = vec![("Command", format!("<code>{}</code>", escape(&run.command)))];
    if let Some(c) = &model.comparison {
        rows.push((
            "Order",
            format!(
                "{} of {}; every configuration once in each, in random order",
                words::count(c.blocks, "block"),
                words::span(c.block_seconds)
            ),
        ));
        rows.push((
            "Verdicts",
            format!(
                "ratio of paired block values on the log scale, {} intervals over blocks; material beyond ±{}; Holm's correction \
                 over all configurations; looks after {} blocks",
                words::percent(1.0 - c.rule.level_per_look),
                words::percent(c.rule.delta),
                c.rule.looks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ),
        ));
        for (reason, n) in &c.left_out {
            rows.push(("Not used", format!("{} × {}", n, escape(reason))));
        }
        for (name, reason) in &c.not_run {
            rows.push(("Left out", format!("{}: {}", escape(name), escape(reason))));
        }
    }
    if let Some(database) = &model.database {
        rows.extend(of_run(database));
    }
    if let Some(durable) = &run.durability {
        rows.push(("Durability", escape(durable)));
    }
    if let Some(bytes) = run.data_bytes {
        rows.push(("Data", units::Bytes(bytes as u64).to_string()));
    }
    if let Some(bytes) = run.block_bytes {
        rows.push(("Block", units::Bytes(bytes as u64).to_string()));
    }
    let hash = run
        .plan_sha256
        .as_ref()
        .map_or_else(String::new, |h| format!(", plan {}", escape(h.get(..16).unwrap_or(h))));
    rows.push(("Record", format!("{}, {}{hash}", escape(&run.name), escape(&run.status))));
    rows.push(("Seed", run.seed.to_string()));
    rows.push((
        "Version",
        format!(
            "method {}, Redoubt {} ({})",
            escape(&run.method_version),
            escape(&run.tool_version),
            escape(&run.build_profile)
        ),
    ));
    let settings = run.settings.iter().map(|(name, value)| row(name, &escape(value)));
    let rows: String = rows.iter().map(|(name, text)| row(name, text)).chain(settings).collect();
    format!(
        "<section id=\"how\">\n<h2>How it was found</h2>\n<dl class=\"facts\">\n{rows}</dl>\n</section>\n"
    )
}

/// The configuration that was run, what its intervals rest on, and what was in force.
fn of_run(database: &Database) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(name) = &database.configuration {
        let levels: Vec<String> = database.levels.iter().map(|(f, l)| format!("{f} {l}")).collect();
        rows.push(("Configuration", format!("{} ({})", escape(name), escape(&levels.join(", ")))));
    }
    for work in &database.works {
        let title = escape(&work.title);
        let basis = work.rate.basis.as_ref().map(|basis| format!("interval over {}", escape(basis)));
        let steady = work.steady.as_ref().map(|class| format!("steady: {}", escape(class)));
        let flags = work.proof.as_ref().map(|flags| format!("open flags <code>{}</code>", escape(flags)));
        let said: Vec<String> = [basis, steady, flags].into_iter().flatten().collect();
        if !said.is_empty() {
            rows.push(("Measured", format!("{title}: {}", said.join("; "))));
        }
    }
    rows
}

fn row(name: &str, html: &str) -> String {
    format!("<div><dt>{}</dt><dd>{html}</dd></div>\n", escape(name))
}

/// All facts, those that are known first; unknown is said, never shown as zero.
fn facts(facts: &[FactRow]) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let known = facts.iter().filter(|f| f.value.is_some());
    let unknown = facts.iter().filter(|f| f.value.is_none());
    let rows: String = known
        .chain(unknown)
        .map(|f| {
            let object = if f.object.is_empty() { String::new() } else { format!(" {}", f.object) };
            let name = format!("{}{object}: {}", f.layer, f.name.replace('_', " "));
            let value = f.value.as_deref().map_or("<i>unknown</i>".into(), |v| escape(&value(v, &f.unit)));
            format!("<div title=\"{}\"><dt>{}</dt><dd>{value}</dd></div>\n", escape(&f.source), escape(&name))
        })
        .collect();
    format!(
        "<section id=\"facts\">\n<h2>The machine</h2>\n<details open>\n<summary>{}; point at one to see where it was read</summary>\n<dl \
         class=\"facts\">\n{rows}</dl>\n</details>\n</section>\n",
        words::count(facts.len(), "fact")
    )
}

/// Bytes as people read them; everything else with its unit.
fn value(text: &str, unit: &str) -> String {
    match (unit, text.trim().parse::<u64>()) {
        ("B" | "bytes", Ok(bytes)) => units::Bytes(bytes).to_string(),
        ("", _) => text.to_owned(),
        _ => format!("{text} {unit}"),
    }
}
