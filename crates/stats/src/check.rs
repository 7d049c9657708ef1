//! "Does this number hold together?" — the catalogue of section 7 as pure functions over plain numbers.
//!
//! Each function takes what was seen and returns one [`Check`]. A source that is absent (`None`) gives
//! [`Status::NotApplicable`] with the reason, never a silent pass. A failed check of severity [`Severity::Integrity`]
//! withdraws the number; one of severity [`Severity::Context`] labels it.
//!
//! Order of trust: device counters before self-consistency. Reads of a file that was allocated but never written reached
//! 420,000/s with Little's law satisfied (3.91 of 4 in flight) and 0.0000 device reads per request.

mod caches;
mod commit;
mod data;
mod device;
mod durability;
mod funnel;
mod host;
mod limits;
mod little;
mod physics;
mod series;
mod work;

pub use caches::{comparable_sizes, residency, size_against_caches};
pub use commit::{CommitTime, commit_time};
pub use data::{discarded, holes, read_back, reducible, wrong_data};
pub use device::{Rise, alignment, disk_health, errors, merges, read_ahead, slow_member, temperature};
pub use durability::{same_durability, volatile_cache};
pub use funnel::{conservation, funnel_bytes, funnel_ops, own_physical};
pub use host::{frequency, generator_bound, others, pause, steal};
pub use limits::{cgroup_limit, queue_limit, throttle_cap};
pub use little::{little_device, little_imported, little_own};
pub use physics::{Medium, medium, memory_file_system, near_memory, wire};
pub use series::{anchor, burst, steady};
pub use work::{equal_work, job_time};

use std::fmt;
use units::Nanos;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It holds.
    Pass,
    /// Look at it.
    Warn,
    /// It does not hold.
    Fail,
    /// It could not be made; the evidence says why.
    NotApplicable,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::NotApplicable => "not applicable",
        })
    }
}

/// What a failure does to the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Withdraws it.
    Integrity,
    /// Labels it.
    Context,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Integrity => "integrity",
            Self::Context => "context",
        })
    }
}

/// One doubt, asked and answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Its number in the catalogue: `L2`.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What a failure does.
    pub severity: Severity,
    /// How it ended.
    pub status: Status,
    /// The quantity that was judged, in the unit of `threshold`.
    pub value: Option<f64>,
    /// What is demanded.
    pub threshold: &'static str,
    /// One sentence with the numbers and the likely cause.
    pub evidence: String,
}

impl Check {
    /// Does it withdraw the number?
    pub fn withdraws(&self) -> bool {
        self.status == Status::Fail && self.severity == Severity::Integrity
    }
}

/// An entry of the catalogue, without an answer yet.
#[derive(Clone, Copy)]
struct Entry {
    id: &'static str,
    title: &'static str,
    severity: Severity,
    threshold: &'static str,
}

impl Entry {
    const fn integrity(id: &'static str, title: &'static str, threshold: &'static str) -> Self {
        Self { id, title, severity: Severity::Integrity, threshold }
    }

    const fn context(id: &'static str, title: &'static str, threshold: &'static str) -> Self {
        Self { id, title, severity: Severity::Context, threshold }
    }

    fn answer(self, status: Status, value: f64, evidence: String) -> Check {
        let Self { id, title, severity, threshold } = self;
        let value = value.is_finite().then_some(value);
        Check { id, title, severity, status, value, threshold, evidence }
    }

    /// The source is absent or says nothing here.
    fn absent(self, why: impl Into<String>) -> Check {
        self.answer(Status::NotApplicable, f64::NAN, why.into())
    }
}

/// Status of `value` when more than `warn` is doubtful and more than `fail` is wrong.
fn above(value: f64, warn: f64, fail: f64) -> Status {
    if value > fail {
        Status::Fail
    } else if value > warn {
        Status::Warn
    } else {
        Status::Pass
    }
}

/// Status of `value` inside `warn`, inside `fail` only, or outside both. Ends belong to the range; NaN fails.
fn within(value: f64, warn: (f64, f64), fail: (f64, f64)) -> Status {
    let inside = |(low, high): (f64, f64)| low <= value && value <= high;
    if inside(warn) {
        Status::Pass
    } else if inside(fail) {
        Status::Warn
    } else {
        Status::Fail
    }
}

/// `1234567` as `1,234,567`.
fn grouped(n: f64) -> String {
    let digits = format!("{:.0}", n.abs());
    let mut out = String::from(if n < -0.5 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Nanoseconds for people.
fn time(ns: f64) -> Nanos {
    Nanos(ns.max(0.0) as u64)
}

/// A share for people: `0.123` as `12.3 %`.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests;
