//! J1: a job's time alone proves nothing; the work must have been the same, and the time accounted for.

use super::{Check, Entry, Status, grouped, percent};

const J1: Entry = Entry::integrity("J1", "equal work", "work per job: fail when it differs by more than 5 %");
const J1_TIME: Entry =
    Entry::integrity("J1-time", "the time is accounted for", "unexplained time: fail above 10 %");

/// J1: the same quantity (`what`: "device reads per job", "bytes written") for both sides.
pub fn equal_work(what: &str, old: Option<f64>, new: Option<f64>) -> Check {
    let (Some(old), Some(new)) = (old, new) else {
        return J1.absent(format!("{what} is not known for both sides."));
    };
    let ratio = if old == new { 1.0 } else { new / old };
    let equal = ratio.is_finite() && ratio > 0.0 && ratio.ln().abs() <= 0.05f64.ln_1p();
    let status = if equal { Status::Pass } else { Status::Fail };
    let tail = if equal { "." } else { ": they did different work, so their times cannot be compared." };
    J1.answer(status, ratio, format!("{what}: old {}, new {}{tail}", grouped(old), grouped(new)))
}

/// J1 for a job's time: seconds in all, and seconds explained by CPU, reads, writes and the log.
pub fn job_time(seconds: f64, explained_seconds: &[(&str, f64)]) -> Check {
    if seconds.is_nan() || seconds <= 0.0 || explained_seconds.is_empty() {
        return J1_TIME.absent("The job's time was not taken apart.");
    }
    let other = 1.0 - explained_seconds.iter().map(|part| part.1).sum::<f64>() / seconds;
    let status = if other.abs() > 0.10 { Status::Fail } else { Status::Pass };
    let parts: Vec<String> =
        explained_seconds.iter().map(|(name, s)| format!("{name} {}", percent(s / seconds))).collect();
    let tail = if status == Status::Fail { ": too much is unexplained to blame the storage." } else { "." };
    J1_TIME.answer(
        status,
        other,
        format!("Of {seconds:.1} s: {}, other {}{tail}", parts.join(", "), percent(other)),
    )
}
