//! The number over time: steady, burst, anchor.

use super::{Check, Entry, Status, above, percent, time};
use crate::steady::{Assessment, Class};

const STEADY: Entry = Entry::context(
    "S3",
    "steady",
    "the drift's interval lies inside the margin (proven), or is not shown to leave it",
);
const Q2: Entry = Entry::context("Q2", "not a burst", "warn when it was faster first and slower later");
const B1: Entry = Entry::context(
    "B1",
    "the machine is the same as at the start",
    "latency of one request alone, last / first: warn beyond 5 %, fail beyond 15 %",
);

/// Was the series steady where the number comes from?
pub fn steady(assessment: &Assessment) -> Check {
    let drift = assessment.drift_percent_per_minute;
    let status = match (assessment.class, assessment.proven) {
        (Class::TooShort, _) => {
            return STEADY.absent("The measurement was too short to say whether it was steady.");
        }
        (Class::Drift | Class::NotSteady, _) => Status::Fail,
        (Class::Slowdown, _) | (_, false) => Status::Warn,
        (_, true) => Status::Pass,
    };
    let proof = if assessment.proven { "shown to be steady" } else { "not shown to be steady" };
    let rhythm = assessment.period.map_or(String::new(), |p| format!(", with a rhythm of {p} intervals"));
    STEADY.answer(
        status,
        drift,
        format!(
            "The series is of the kind \"{}\", {proof}, drift {drift:+.2} % per minute{rhythm}.",
            assessment.class
        ),
    )
}

/// Q2: did a burst budget, a cache or a cool device flatter the beginning?
pub fn burst(assessment: &Assessment) -> Check {
    match assessment.class {
        Class::TooShort => Q2.absent("The measurement was too short to see a burst end."),
        Class::Slowdown => Q2.answer(
            Status::Warn,
            f64::NAN,
            "It was faster first and slower later: a burst budget ran out, a write cache filled, or the device grew hot. The later number is the one to plan with.".into(),
        ),
        _ => Q2.answer(Status::Pass, f64::NAN, "No slowdown was seen; nothing is claimed beyond the time it was watched.".into()),
    }
}

/// B1: latency of one request at a time, first and last, nanoseconds.
pub fn anchor(first_ns: Option<f64>, last_ns: Option<f64>) -> Check {
    let (Some(first), Some(last)) = (first_ns.filter(|f| *f > 0.0), last_ns.filter(|l| *l > 0.0)) else {
        return B1.absent("The anchor was not measured at both ends.");
    };
    let moved = (last / first).ln().abs().exp_m1();
    let status = above(moved, 0.05, 0.15);
    let tail = if status == Status::Pass {
        "."
    } else {
        ": the machine or the storage changed meanwhile; only figures measured side by side can be compared."
    };
    B1.answer(
        status,
        last / first,
        format!(
            "One request alone took {} at first and {} at last, moved by {}{tail}",
            time(first),
            time(last),
            percent(moved)
        ),
    )
}
