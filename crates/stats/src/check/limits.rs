//! Q1–Q3: is it a cap that was measured? Limits of a cloud, a cgroup, a queue.

use super::physics::{per_second, round_number};
use super::{Check, Entry, Status, time};
use crate::sample;

const Q1: Entry =
    Entry::context("Q1", "no throttle", "rate constant within 0.5 % while latency grows with the load");
const Q1_CGROUP: Entry = Entry::context(
    "Q1-cgroup",
    "no limit set on us",
    "no io.max, io.weight or CPU limit that applies to this process",
);
const Q3: Entry = Entry::context(
    "Q3",
    "queued in the device, not in the host",
    "requests in flight within the device's queue",
);

/// Q1: is the rate capped? `rates` per second and interval at the highest load; `curve`: `(in flight, mean latency ns)` at two or
/// more loads beyond the knee.
pub fn throttle_cap(rates: &[f64], curve: &[(u32, f64)]) -> Check {
    let (Some(first), Some(last)) = (curve.first(), curve.last()) else {
        return Q1.absent("There is no curve beyond the knee.");
    };
    if rates.len() < 5 || last.0 < 2 * first.0 {
        return Q1.absent("Too few intervals, or loads too close together, to tell a cap from a maximum.");
    }
    let mean = sample::mean(rates);
    let spread = sample::deviation(rates) / mean;
    let growth = (last.1 / first.1) / (f64::from(last.0) / f64::from(first.0));
    let capped = spread < 0.005 && (growth - 1.0).abs() < 0.1;
    let status = if capped { Status::Warn } else { Status::Pass };
    let round = round_number(mean).map_or(String::new(), |n| format!(", close to the round number {n:.0}"));
    let seen = format!(
        "{} ± {:.2} % from interval to interval{round}, while latency went from {} at {} in flight to {} at {}",
        per_second(mean),
        100.0 * spread,
        time(first.1),
        first.0,
        time(last.1),
        last.0
    );
    let cause = if capped {
        ": this is a limit that somebody set, not what the device can do."
    } else {
        "; no sign of a set limit."
    };
    Q1.answer(status, spread, seen + cause)
}

/// Q1 for cgroups: the limit that applies to this process as text, `None` when there is none that can be seen.
pub fn cgroup_limit(limit: Option<&str>) -> Check {
    match limit {
        Some(limit) => Q1_CGROUP.answer(
            Status::Warn,
            f64::NAN,
            format!("A cgroup limits this process: {limit}. What is measured is that limit wherever it is lower than the device."),
        ),
        None => Q1_CGROUP.answer(Status::Pass, f64::NAN, "No cgroup limit applies to this process.".into()),
    }
}

/// Q3: `in_flight` against the depth of the queue beneath (`nr_requests`, device queue, NFS slots), called `queue`.
pub fn queue_limit(in_flight: u32, depth: Option<u32>, queue: &str) -> Check {
    let Some(depth) = depth.filter(|d| *d > 0) else {
        return Q3.absent("The depth of the queue beneath is not known.");
    };
    let status = if in_flight > depth { Status::Warn } else { Status::Pass };
    let tail = if status == Status::Warn {
        format!(": from {depth} on they queue in the host.")
    } else {
        ".".into()
    };
    Q3.answer(
        status,
        f64::from(in_flight) / f64::from(depth),
        format!("{in_flight} in flight, {queue} holds {depth}{tail}"),
    )
}
