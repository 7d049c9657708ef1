//! What a real server called its waits, and what each was taken for: the grade behind every band of the top activity.

use super::class::Class;
use crate::model::evidence::Evidence;
use waits::{Event, Grade};

/// Below this share of the sampled time a wait is not told.
const WORTH_SAYING: f64 = 0.001;

/// A wait in the server's words.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeWait {
    /// Its name there, or that nothing was told.
    pub wait: String,
    /// The event that it is shown as.
    pub event: String,
    /// `exact`, `approximate`, `inferred`, or `none`.
    pub grade: String,
    /// Whether users' sessions waited.
    pub foreground: bool,
    /// Share of the sampled time of users' sessions, or of processes, 0 to 1.
    pub share: f64,
}

/// The greatest first, users' sessions before processes; empty for the embedded database, which uses the words itself.
pub fn read(evidence: &Evidence) -> Vec<NativeWait> {
    let all = |foreground: bool| {
        let rows = evidence.native.iter().filter(move |row| row.foreground == foreground);
        rows.map(|row| row.time_ns as f64).sum::<f64>().max(1.0)
    };
    let (users, processes) = (all(true), all(false));
    let mut waits: Vec<NativeWait> = evidence
        .native
        .iter()
        .map(|row| NativeWait {
            wait: if row.wait.is_empty() { "no wait told".into() } else { row.wait.clone() },
            event: match (&row.event, row.wait.is_empty()) {
                (Some(event), _) => event.clone(),
                (None, true) => "CPU".into(),
                (None, false) => "its own name".into(),
            },
            grade: row.grade.clone(),
            foreground: row.foreground,
            share: row.time_ns as f64 / if row.foreground { users } else { processes },
        })
        .filter(|wait| wait.share >= WORTH_SAYING)
        .collect();
    waits.sort_by(|a, b| b.foreground.cmp(&a.foreground).then(b.share.total_cmp(&a.share)));
    waits
}

/// What the marks of [`mark`] mean.
pub const MARKS: &str =
    " ≈: approximate, the same cause with another boundary; ? and hatched: inferred from something else.";

/// The grade that most of a class's time has; none where the server named no wait of it.
pub fn grade(waits: &[NativeWait], class: Class, foreground: bool) -> Option<Grade> {
    let is_of = |wait: &&NativeWait| {
        let event = Event::named(&wait.event);
        wait.foreground == foreground
            && event.is_some_and(|event| Class::named(event.info().class.name()) == Some(class))
    };
    let of_class: Vec<&NativeWait> = waits.iter().filter(is_of).collect();
    let share = |grade: &Grade| {
        of_class.iter().filter(|wait| wait.grade == grade.name()).map(|wait| wait.share).sum::<f64>()
    };
    let grades = [Grade::Exact, Grade::Approximate, Grade::Inferred];
    grades.into_iter().filter(|grade| share(grade) > 0.0).max_by(|a, b| share(a).total_cmp(&share(b)))
}

/// Behind the name of a class in a picture.
pub fn mark(grade: Option<Grade>) -> &'static str {
    match grade {
        Some(Grade::Approximate) => " ≈",
        Some(Grade::Inferred) => " ?",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(event: &str, grade: &str, foreground: bool, share: f64) -> NativeWait {
        NativeWait { wait: "its word".into(), event: event.into(), grade: grade.into(), foreground, share }
    }

    #[test]
    fn a_class_has_the_grade_of_most_of_its_time() {
        let waits = [
            wait("log file sync", "inferred", true, 0.6),
            wait("log file sync", "exact", true, 0.3),
            wait("db file sequential read", "approximate", true, 0.1),
            wait("log file sync", "exact", false, 0.9),
        ];
        assert_eq!(grade(&waits, Class::Commit, true), Some(Grade::Inferred));
        assert_eq!(grade(&waits, Class::Commit, false), Some(Grade::Exact));
        assert_eq!(grade(&waits, Class::UserIo, true), Some(Grade::Approximate));
        assert_eq!(grade(&waits, Class::Network, true), None);
        assert_eq!([None, Some(Grade::Exact), Some(Grade::Inferred)].map(mark), ["", "", " ?"]);
    }
}
