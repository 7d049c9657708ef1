//! What a real server called its waits, and what each was taken for: the grade behind every band of the top activity.

use crate::model::evidence::Evidence;

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
