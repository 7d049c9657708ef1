//! The report for a terminal: the sentence, tables whose columns stand under each other, curves drawn in braille.
//!
//! 80 columns are enough for everything. [`compare`], [`calibrate`] and [`run`] lay out one run, [`side`] several; [`plot`] and
//! [`area`] draw.

mod advice;
mod area;
mod calibrate;
mod calls;
mod canvas;
mod compare;
mod compared;
mod devices;
mod dnfs;
mod network;
mod nodes;
mod passes;
mod plot;
mod ranked;
mod run;
mod side;
mod style;
mod trace;

use crate::model::Model;
use crate::model::doubts::{Doubts, Status};
use crate::words;
use style::{Paint, fold};

/// What every part of the layout needs.
#[derive(Clone, Copy)]
struct Page {
    width: usize,
    paint: Paint,
}

/// One run, or several side by side.
pub fn report(models: &[Model], width: usize, color: bool) -> String {
    let page = Page { width, paint: Paint { color } };
    words::plain(&match models {
        [only] => single(page, only),
        several => side::report(page, several),
    })
}

fn single(page: Page, model: &Model) -> String {
    let mut out = header(page, model);
    out.push('\n');
    out.push_str(&page.bold_fold(&model.answer.headline));
    for sentence in &model.answer.more {
        out.push_str(&fold(sentence, page.width, "  ", 4));
    }
    match (&model.comparison, &model.database) {
        _ if model.advice.is_some() => out.extend(model.advice.iter().map(|a| advice::report(page, a))),
        _ if model.trace.is_some() => out.extend(model.trace.iter().map(|t| trace::report(page, t))),
        (Some(comparison), _) => out.push_str(&compare::report(page, comparison)),
        (None, Some(database)) => out.push_str(&run::report(page, database)),
        (None, None) => out.push_str(&calibrate::report(page, model)),
    }
    out.extend(model.dnfs.iter().map(|seen| dnfs::report(page, seen)));
    out.push_str(&doubts(page, &model.doubts));
    out.push_str(&how(page, model));
    out
}

impl Page {
    /// A sentence in bold, folded before it is painted, so that codes do not count as columns.
    fn bold_fold(self, text: &str) -> String {
        fold(text, self.width, "", 0)
            .lines()
            .fold(String::new(), |out, line| out + &self.paint.bold(line) + "\n")
    }

    fn dim_fold(self, text: &str, first: &str, indent: usize) -> String {
        let folded = fold(text, self.width, first, indent);
        folded.lines().fold(String::new(), |out, line| out + &self.paint.dim(line) + "\n")
    }

    fn title(self, text: &str) -> String {
        format!("\n{}\n", self.paint.bold(&style::clean(text)))
    }
}

fn header(page: Page, model: &Model) -> String {
    let run = &model.run;
    let storage = run.storage.as_ref().map_or_else(String::new, |storage| format!(" ({storage})"));
    let text = format!(
        "redoubt {} · {}{storage} · {} · {}",
        words::what(&run.kind, run.case.as_deref()),
        run.target,
        words::moment(&run.started_utc),
        words::span(run.seconds)
    );
    page.dim_fold(&text, "", 0)
}

/// The notes under the report, and what was checked without finding anything.
fn doubts(page: Page, doubts: &Doubts) -> String {
    let mut out = page.title("Doubts");
    for note in &doubts.notes {
        let number = words::superscript(note.number);
        let places = note.places.len();
        let word = if note.status == Status::Fail && note.integrity {
            "fail, withdrawn"
        } else {
            note.status.word()
        };
        let more = if places > 1 { format!(" ({})", words::count(places, "place")) } else { String::new() };
        let head = style::clean(&format!("{number} {} {}: {word}{more}", note.check_id, note.title));
        let head = if note.status == Status::Fail { page.paint.alarm(&head) } else { page.paint.bold(&head) };
        out.push_str(&format!("{head}\n"));
        let shown = if note.status == Status::Fail { 3 } else { 1 };
        for place in note.places.iter().take(shown) {
            let subject = if place.subject.is_empty() || place.evidence.starts_with(&place.subject) {
                String::new()
            } else {
                format!("{}. ", place.subject)
            };
            out.push_str(&fold(&format!("{subject}{}", place.evidence), page.width, "  ", 4));
        }
        if places > shown {
            out.push_str(&page.dim_fold(&format!("also: {}", note.places_in_short(shown)), "  ", 4));
        }
    }
    if let Some(verified) = &doubts.verified {
        out.push_str(&fold(&format!("Verified: {verified}"), page.width, "", 2));
    }
    let held: usize = doubts.passed.iter().map(|p| p.2).sum();
    let ids = |ids: Vec<&str>| ids.join(" ");
    let mut rest = if doubts.notes.is_empty() {
        "None of the rules that were applied was broken. ".to_owned()
    } else {
        String::new()
    };
    if held > 0 {
        let names = ids(doubts.passed.iter().map(|p| p.0.as_str()).collect());
        rest.push_str(&format!("{} held ({names}). ", words::count(held, "check")));
    }
    if !doubts.not_applicable.is_empty() {
        let names = ids(doubts.not_applicable.iter().map(|n| n.0.as_str()).collect());
        rest.push_str(&format!("Not applicable here: {names}."));
    }
    if held == 0 && doubts.notes.is_empty() && doubts.not_applicable.is_empty() {
        rest = "No rule was applied: the run ended before its checks.".into();
    }
    out.push_str(&page.dim_fold(&rest, "", 2));
    out
}

/// How it was found, in two lines.
fn how(page: Page, model: &Model) -> String {
    let run = &model.run;
    let mut text = format!("Record {}, seed {}, method {}", run.name, run.seed, run.method_version);
    if let Some(hash) = &run.plan_sha256 {
        text.push_str(&format!(", plan {}", hash.get(..12).unwrap_or(hash)));
    }
    text.push_str(&format!(
        ", Redoubt {} ({}). Command: {}",
        run.tool_version, run.build_profile, run.command
    ));
    format!("\n{}", page.dim_fold(&text, "", 2))
}
