//! Doubts: the rules that did not hold, gathered into few numbered notes, and which figures they withdraw.

use crate::words;
use record::CheckRow;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The rule held.
    Pass,
    /// The rule could not be applied; the evidence says why.
    NotApplicable,
    /// To be known beside the figure.
    Warn,
    /// The rule is broken.
    Fail,
}

impl Status {
    fn parse(text: &str) -> Self {
        match text.to_ascii_lowercase().as_str() {
            "pass" => Self::Pass,
            "warn" => Self::Warn,
            "fail" => Self::Fail,
            _ => Self::NotApplicable,
        }
    }

    /// `pass`, `not applicable`, `warn`, `fail`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NotApplicable => "not applicable",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// Where a rule was broken, and how it showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Figure, configuration and workload, or empty for the run as a whole.
    pub subject: String,
    /// The sentence of the check.
    pub evidence: String,
    /// What was found.
    pub value: Option<f64>,
}

/// A note under the report: one rule, every place where it did not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// Its number in the report, from 1.
    pub number: usize,
    /// Identifier in the catalogue: `F1`, `H1` …
    pub check_id: String,
    /// The rule in words.
    pub title: String,
    /// Whether a failure withdraws the figure.
    pub integrity: bool,
    /// [`Status::Warn`] or [`Status::Fail`].
    pub status: Status,
    /// What would have been good.
    pub threshold: String,
    /// Where.
    pub places: Vec<Place>,
}

impl Doubt {
    /// The places from `first` on, workloads gathered behind their configuration, with what was found there:
    /// `directio (read-cold 1.14, read-cached 1.26); setall libaio (commit 0.83)`.
    pub fn places_in_short(&self, first: usize) -> String {
        let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
        for place in self.places.iter().skip(first) {
            let (configuration, workload) = place.subject.split_once(": ").unwrap_or((&place.subject, ""));
            let value = place.value.map(words::ratio).unwrap_or_default();
            let text = format!("{workload} {value}").trim().to_owned();
            match groups.iter_mut().find(|group| group.0 == configuration) {
                Some(group) => group.1.push(text),
                None => groups.push((configuration, vec![text])),
            }
        }
        let text = groups.iter().map(|(configuration, found)| match found.join(", ") {
            found if found.is_empty() => (*configuration).to_owned(),
            found => format!("{configuration} ({found})"),
        });
        text.collect::<Vec<_>>().join("; ")
    }
}

/// All checks of a run, sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Doubts {
    /// The numbered notes, worst first.
    pub notes: Vec<Doubt>,
    /// Rules that held, as `(id, title, how often)`.
    pub passed: Vec<(String, String, usize)>,
    /// What `--verify` saw, when all was well: said by itself, as it was asked for.
    pub verified: Option<String>,
    /// Rules that could not be applied, with the reason of the first.
    pub not_applicable: Vec<(String, String, String)>,
    found: Vec<Found>,
}

/// A broken rule at one place, for looking up.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    note: usize,
    scope: String,
    scope_id: Option<i64>,
    subject: String,
    withdraws: bool,
    evidence: String,
}

impl Found {
    fn is_about(&self, configuration: i64) -> bool {
        self.scope == "configuration" && self.scope_id == Some(configuration)
    }

    /// Checks of a configuration name one workload behind a colon, or none when they are about the configuration as a whole.
    fn workload(&self) -> Option<&str> {
        self.subject.rsplit_once(": ").map(|(_, workload)| workload)
    }
}

/// The check that what was written is on the device.
const VERIFIED: &str = "D5";

/// What a figure carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    /// Numbers of its notes, ascending.
    pub notes: Vec<usize>,
    /// Why the figure is withdrawn: it is shown grey and decides nothing.
    pub withdrawn: Option<String>,
}

impl Marks {
    /// Takes over the notes, and a withdrawal, of another figure that this one is made from.
    pub fn inherit(&mut self, other: &Self) {
        self.notes.extend(&other.notes);
        self.notes.sort_unstable();
        self.notes.dedup();
        self.withdrawn = self.withdrawn.take().or_else(|| other.withdrawn.clone());
    }
}

impl Doubts {
    /// Sorts `checks` into notes. `name` turns a scope, its id and its subject into words.
    pub fn gather(checks: &[CheckRow], name: impl Fn(&CheckRow) -> String) -> Self {
        let mut all = Self::default();
        let mut broken: Vec<(&CheckRow, Status)> = Vec::new();
        for check in checks {
            if check.check_id == VERIFIED && Status::parse(&check.status) == Status::Pass {
                all.verified = Some(check.evidence.clone());
            }
            match Status::parse(&check.status) {
                Status::Pass => match all.passed.iter_mut().find(|p| p.0 == check.check_id) {
                    Some(passed) => passed.2 += 1,
                    None => all.passed.push((check.check_id.clone(), check.title.clone(), 1)),
                },
                Status::NotApplicable => {
                    if !all.not_applicable.iter().any(|n| n.0 == check.check_id) {
                        let row = (check.check_id.clone(), check.title.clone(), check.evidence.clone());
                        all.not_applicable.push(row);
                    }
                }
                status => broken.push((check, status)),
            }
        }
        // Worst first; the sort is stable, so places keep the order of the record.
        broken.sort_by_key(|(check, status)| {
            (std::cmp::Reverse(*status), !is_integrity(check), check.check_id.clone())
        });
        for (check, status) in broken {
            all.add(check, status, name(check));
        }
        all
    }

    fn add(&mut self, check: &CheckRow, status: Status, subject: String) {
        let same = |d: &Doubt| d.check_id == check.check_id && d.status == status;
        let index = self.notes.iter().position(same).unwrap_or_else(|| {
            self.notes.push(Doubt {
                number: self.notes.len() + 1,
                check_id: check.check_id.clone(),
                title: check.title.clone(),
                integrity: is_integrity(check),
                status,
                threshold: check.threshold.clone(),
                places: Vec::new(),
            });
            self.notes.len() - 1
        });
        self.notes[index].places.push(Place {
            subject,
            evidence: check.evidence.clone(),
            value: check.value,
        });
        self.found.push(Found {
            note: index + 1,
            scope: check.scope.clone(),
            scope_id: check.scope_id,
            subject: check.subject.clone(),
            withdraws: status == Status::Fail && is_integrity(check),
            evidence: check.evidence.clone(),
        });
    }

    fn marks(&self, belongs: impl Fn(&Found) -> bool) -> Marks {
        let mut marks = Marks::default();
        for found in self.found.iter().filter(|f| belongs(f)) {
            if found.scope != "run" {
                marks.notes.push(found.note);
            }
            if found.withdraws && marks.withdrawn.is_none() {
                marks.withdrawn = Some(found.evidence.clone());
            }
        }
        marks.notes.sort_unstable();
        marks.notes.dedup();
        marks
    }

    /// Of a figure of calibration.
    pub fn of_figure(&self, metric: &str) -> Marks {
        self.marks(|f| f.scope == "run" || (f.scope == "figure" && f.subject == metric))
    }

    /// Of a configuration under a workload. What withdraws the run or the whole configuration withdraws this too, but its
    /// notes stand where it is named: [`Doubts::of_run`], [`Doubts::of_configuration`].
    pub fn of_cell(&self, configuration: i64, workload: &str) -> Marks {
        let mut marks =
            self.marks(|f| f.is_about(configuration) && f.workload().is_some_and(|about| about == workload));
        let above = self.of_configuration(configuration).withdrawn.or_else(|| self.of_run().withdrawn);
        marks.withdrawn = marks.withdrawn.or(above);
        marks
    }

    /// Of a configuration as a whole.
    pub fn of_configuration(&self, configuration: i64) -> Marks {
        self.marks(|f| f.is_about(configuration) && f.workload().is_none())
    }

    /// Of one phase.
    pub fn of_phase(&self, phase: i64) -> Marks {
        self.marks(|f| f.scope == "phase" && f.scope_id == Some(phase))
    }

    /// The notes about the run as a whole.
    pub fn of_run(&self) -> Marks {
        let mut marks = self.marks(|f| f.scope == "run");
        marks.notes = self.found.iter().filter(|f| f.scope == "run").map(|f| f.note).collect();
        marks.notes.sort_unstable();
        marks.notes.dedup();
        marks
    }
}

fn is_integrity(check: &CheckRow) -> bool {
    check.severity.eq_ignore_ascii_case("integrity")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        scope: &str,
        id: Option<i64>,
        subject: &str,
        check_id: &str,
        severity: &str,
        status: &str,
    ) -> CheckRow {
        CheckRow {
            scope: scope.into(),
            scope_id: id,
            subject: subject.into(),
            check_id: check_id.into(),
            title: format!("rule {check_id}"),
            severity: severity.into(),
            status: status.into(),
            value: None,
            threshold: String::new(),
            evidence: format!("{subject} {status}"),
        }
    }

    #[test]
    fn places_are_gathered() {
        let mut rows: Vec<CheckRow> = ["a: x", "b: x", "b: y", "c"]
            .map(|subject| row("configuration", Some(1), subject, "F1", "integrity", "warn"))
            .into();
        rows[2].value = Some(1.266);
        let doubts = Doubts::gather(&rows, |check| check.subject.clone());
        assert_eq!(doubts.notes[0].places_in_short(1), "b (x, y 1.27); c");
    }

    #[test]
    fn what_was_verified_is_said() {
        let mut rows = vec![row("run", None, "", "D5", "integrity", "pass")];
        rows[0].evidence = "9 blocks written were read back from the device, all as written.".into();
        let gathered = |rows: &[CheckRow]| Doubts::gather(rows, |check| check.subject.clone()).verified;
        assert_eq!(gathered(&rows).as_ref(), Some(&rows[0].evidence));
        rows[0].status = "fail".into();
        assert_eq!(gathered(&rows), None, "it is a doubt then");
    }

    #[test]
    fn failures_withdraw_and_warnings_label() {
        let doubts = Doubts::gather(
            &[
                row("configuration", Some(1), "none: commit", "H1", "context", "warn"),
                row("configuration", Some(2), "setall: read-cold", "F1", "integrity", "fail"),
                row("configuration", Some(2), "setall: commit", "F1", "integrity", "pass"),
                row("configuration", Some(3), "asynch", "X1", "context", "fail"),
                row("run", None, "", "S1", "context", "warn"),
                row("run", None, "", "H4", "context", "na"),
            ],
            |check| check.subject.clone(),
        );
        assert_eq!(
            doubts.notes.iter().map(|d| d.check_id.as_str()).collect::<Vec<_>>(),
            ["F1", "X1", "H1", "S1"]
        );
        assert_eq!(doubts.of_cell(2, "read-cold").withdrawn.as_deref(), Some("setall: read-cold fail"));
        assert_eq!(doubts.of_cell(2, "commit"), Marks::default());
        assert_eq!(doubts.of_cell(1, "commit").notes, [3]);
        // A broken context rule labels, whatever its status; one about the configuration stands at its name.
        assert_eq!(doubts.of_configuration(3), Marks { notes: vec![2], withdrawn: None });
        assert_eq!(doubts.of_cell(3, "mixed"), Marks::default());
        assert_eq!(doubts.of_run().notes, [4]);
        assert_eq!((doubts.passed.len(), doubts.not_applicable.len()), (1, 1));
    }
}
