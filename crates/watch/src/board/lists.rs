//! Top lists of the brush, and the words for what stands in them.

use super::brush::Brush;
use super::tally::{Sum, Tally};
use crate::class::{self, COUNT};
use crate::history::{Event, History, OTHERS, TextId};
use crate::view::Step;
use std::hash::Hash;
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

/// The lists of `brush`, and mean active sessions.
pub fn lists(history: &History, brush: &Brush) -> ([Top; 5], f32) {
    let scale = Scale { seen: brush.seen, whole: brush.whole.total };
    let text = |id: TextId| (history.text(id).to_owned(), String::new());
    let lists = [
        scale.classes(&brush.whole),
        scale.top(&brush.events, |id| (event_words(history.event(id)), Step::Event(id))),
        scale.top(&brush.sessions, |(number, program)| {
            let name = session_name(history.text(program), number);
            ((name, String::new()), Step::Session(number, program))
        }),
        scale.top(&brush.statements, |id| (text(id), Step::Statement(id))),
        scale.top(&brush.files, |id| (file_words(history.text(id)), Step::File(id))),
    ];
    (lists, scale.mean(brush.whole.total))
}

/// What sums are told in: what was seen, and all that is shown, nanoseconds.
struct Scale {
    seen: i64,
    whole: i64,
}

impl Scale {
    fn mean(&self, nanos: i64) -> f32 {
        if self.seen > 0 { (nanos as f64 / self.seen as f64) as f32 } else { 0.0 }
    }

    fn entry(&self, (name, beside): (String, String), sum: &Sum, step: Step) -> Entry {
        let share = if self.whole > 0 { (sum.total as f64 / self.whole as f64) as f32 } else { 0.0 };
        let classes = sum.classes.map(|nanos| self.mean(nanos));
        Entry { name, beside, mean: self.mean(sum.total), share, classes, step }
    }

    /// All classes that occur, from the top of the chart.
    fn classes(&self, sum: &Sum) -> Top {
        let entry = |(at, nanos): (usize, &i64)| {
            let class = class::ALL[at];
            let mut alone = Sum { total: *nanos, ..Sum::default() };
            alone.classes[at] = *nanos;
            self.entry((class::name(class).to_owned(), String::new()), &alone, Step::Class(class))
        };
        let occurring = sum.classes.iter().enumerate().rev().filter(|(_, nanos)| **nanos > 0);
        Top { rows: occurring.map(entry).collect(), empty: "nobody was active" }
    }

    fn top<K>(&self, tally: &Tally<K>, words: impl Fn(K) -> ((String, String), Step)) -> Top
    where
        K: Copy + Ord + Hash,
    {
        let empty = if self.seen <= 0 {
            "nothing was seen here"
        } else if self.whole > 0 {
            "the server tells none"
        } else {
            "nobody was active"
        };
        let entry = |(key, sum): &(K, Sum)| {
            let (name, step) = words(*key);
            self.entry(name, sum, step)
        };
        let mut top = tally.top(TOP_MAX);
        top.sort_unstable_by_key(|(key, _)| *key);
        let mut rows: Vec<Entry> = top.iter().map(entry).collect();
        rows.sort_by(|a, b| b.mean.total_cmp(&a.mean).then_with(|| a.name.cmp(&b.name)));
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
