//! Top lists of the brush, and the words for what stands in them.

use super::Filter;
use crate::class::{self, COUNT};
use crate::history::{Event, History, OTHERS};
use crate::view::Step;
use std::collections::HashMap;
use units::Nanos;
use waits::Grade;

/// Lines of a list that are kept.
const TOP_MAX: usize = 60;

/// A line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// What stands behind it: the server's word for an event, a session's number.
    pub beside: String,
    /// Mean active sessions.
    pub mean: f32,
    /// Share of all that is shown, 0–1.
    pub share: f32,
    /// Mean by class.
    pub classes: [f32; COUNT],
    /// Where Enter leads.
    pub step: Step,
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Top {
    /// Most active first.
    pub rows: Vec<Entry>,
    /// Why it is empty, in a few words.
    pub empty: &'static str,
}

#[derive(Default)]
struct Sum {
    seconds: f32,
    classes: [f32; COUNT],
}

impl Sum {
    fn add(&mut self, class: usize, seconds: f32) {
        self.seconds += seconds;
        self.classes[class] += seconds;
    }
}

impl Filter<'_> {
    /// The lists, and mean active sessions.
    pub(super) fn lists(&self, (from, to): (Nanos, Nanos)) -> ([Top; 5], f32) {
        let mut seen = 0.0f32;
        let mut classes = Sum::default();
        let mut events: HashMap<u16, Sum> = HashMap::new();
        let mut sessions: HashMap<(u32, u16), Sum> = HashMap::new();
        let mut statements: HashMap<u16, Sum> = HashMap::new();
        let mut files: HashMap<u16, Sum> = HashMap::new();
        for span in self.history.between(from, to) {
            let length = span.to.0.saturating_sub(span.from.0).max(1) as f64;
            let inside = span.to.min(to).0.saturating_sub(span.from.max(from).0) as f64;
            let share = (inside / length) as f32;
            seen += span.seen * share;
            for (row, event) in self.rows(span) {
                let (class, seconds) = (class::index(event.class), row.seconds * share);
                classes.add(class, seconds);
                events.entry(row.event).or_default().add(class, seconds);
                sessions.entry((row.session, row.program)).or_default().add(class, seconds);
                if row.statement != 0 {
                    statements.entry(row.statement).or_default().add(class, seconds);
                }
                if row.file != 0 {
                    files.entry(row.file).or_default().add(class, seconds);
                }
            }
        }
        let scale = Scale { seen, whole: classes.seconds };
        let text = |id: u16| (self.history.text(id).to_owned(), String::new());
        let lists = [
            scale.classes(&classes),
            scale.top(events, |id| (event_words(self.history.event(id)), Step::Event(id))),
            scale.top(sessions, |(number, program)| {
                let name = session_name(self.history.text(program), number);
                ((name, String::new()), Step::Session(number, program))
            }),
            scale.top(statements, |id| (text(id), Step::Statement(id))),
            scale.top(files, |id| (file_words(self.history.text(id)), Step::File(id))),
        ];
        (lists, scale.mean(classes.seconds))
    }
}

/// What sums are told in.
struct Scale {
    seen: f32,
    whole: f32,
}

impl Scale {
    fn mean(&self, seconds: f32) -> f32 {
        if self.seen > 0.0 { seconds / self.seen } else { 0.0 }
    }

    fn entry(&self, (name, beside): (String, String), sum: &Sum, step: Step) -> Entry {
        let share = if self.whole > 0.0 { sum.seconds / self.whole } else { 0.0 };
        let classes = sum.classes.map(|seconds| self.mean(seconds));
        Entry { name, beside, mean: self.mean(sum.seconds), share, classes, step }
    }

    /// All classes that occur, from the top of the chart.
    fn classes(&self, sum: &Sum) -> Top {
        let entry = |(at, seconds): (usize, &f32)| {
            let class = class::ALL[at];
            let mut alone = Sum::default();
            alone.add(at, *seconds);
            self.entry((class::name(class).to_owned(), String::new()), &alone, Step::Class(class))
        };
        let occurring = sum.classes.iter().enumerate().rev().filter(|(_, seconds)| **seconds > 0.0);
        Top { rows: occurring.map(entry).collect(), empty: "nobody was active" }
    }

    fn top<K: Copy>(&self, sums: HashMap<K, Sum>, words: impl Fn(K) -> ((String, String), Step)) -> Top {
        let empty = if self.seen <= 0.0 {
            "nothing was seen here"
        } else if self.whole > 0.0 {
            "the server tells none"
        } else {
            "nobody was active"
        };
        let mut rows: Vec<Entry> = sums
            .into_iter()
            .map(|(key, sum)| {
                let (name, step) = words(key);
                self.entry(name, &sum, step)
            })
            .collect();
        rows.sort_by(|a, b| b.mean.total_cmp(&a.mean).then_with(|| a.name.cmp(&b.name)));
        rows.truncate(TOP_MAX);
        Top { rows, empty }
    }
}

/// A step as it stands above the chart.
pub(super) fn words(history: &History, step: Step) -> String {
    match step {
        Step::Class(class) => class::name(class).to_owned(),
        Step::Event(id) => history.events().get(usize::from(id)).map_or_else(String::new, |e| e.name.clone()),
        Step::Session(number, program) => session_name(history.text(program), number),
        Step::Statement(id) => history.text(id).to_owned(),
        Step::File(id) => file_words(history.text(id)).0,
    }
}

fn session_name(program: &str, number: u32) -> String {
    if number == OTHERS { "(others)".to_owned() } else { format!("{number} {program}") }
}

/// A file by what tells it from others, the end of its path, and the folder before that.
fn file_words(path: &str) -> (String, String) {
    match path.rmatch_indices('/').nth(1) {
        Some((at, _)) => (path[at + 1..].to_owned(), path[..=at].to_owned()),
        None => (path.to_owned(), String::new()),
    }
}

/// An event's name with how well it fits, and the server's word.
fn event_words(event: &Event) -> (String, String) {
    let mark = match event.grade {
        Some(Grade::Approximate) => " ≈",
        Some(Grade::Inferred) => " ?",
        _ => "",
    };
    (format!("{}{mark}", event.name), event.native.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_ends() {
        let check = |path, name: &str, folder: &str| {
            assert_eq!(file_words(path), (name.to_owned(), folder.to_owned()));
        };
        check("/var/lib/mysql/shop/orders.ibd", "shop/orders.ibd", "/var/lib/mysql/");
        check("/shop/orders.ibd", "shop/orders.ibd", "/");
        check("shop/orders.ibd", "shop/orders.ibd", "");
        check("file 3", "file 3", "");
    }
}
