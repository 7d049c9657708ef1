//! L1–L3: Little's law. Rate × latency is the number of requests in flight, whatever the system; a number that
//! contradicts it is not one measurement but two. Source: Little 1961, Oper. Res. 9.

use super::{Check, Entry, Status, grouped, time, within};

const L1: Entry = Entry::integrity(
    "L1",
    "Little's law, own load",
    "rate × latency / in flight: warn outside 0.95–1.05, fail outside 0.85–1.15",
);
const L2: Entry = Entry::integrity(
    "L2",
    "Little's law, imported number",
    "rate × latency / known in flight: warn outside 0.7–1.4, fail outside 0.5–2; below 1 in flight fails when 2 or more wait",
);
const L3: Entry = Entry::context(
    "L3",
    "Little's law, device",
    "device rate × latency against its in-flight counter: warn beyond 10 %",
);

/// L1: did our generator keep `in_flight` requests in flight? `rate` per second, `latency_ns` mean.
pub fn little_own(rate: f64, latency_ns: f64, in_flight: f64) -> Check {
    if !(in_flight > 0.0 && rate > 0.0) {
        return L1.absent("No requests were completed, so there is nothing to hold against Little's law.");
    }
    let implied = rate * latency_ns / 1e9;
    let q = implied / in_flight;
    let status = within(q, (0.95, 1.05), (0.85, 1.15));
    let seen = format!(
        "{}/s × {} = {implied:.2} requests in flight of {in_flight:.0} asked for",
        grouped(rate),
        time(latency_ns)
    );
    let cause = match status {
        Status::Pass => "; they agree.",
        _ if q < 1.0 => ": the generator did not keep them in flight; submission blocks, or it lacks CPU.",
        _ => {
            ": completions were reaped late, so waiting in our own queue is counted as the device's latency."
        }
    };
    L1.answer(status, q, seen + cause)
}

/// L2: a number from elsewhere (a database view, AWR, `iostat`, a report): can `rate` per second and `latency_ns` belong to
/// the same system with `in_flight_known` requests in flight (active sessions × their share of waiting, aqu-sz)?
///
/// Without a known concurrency it can still be wrong: fewer than one request in flight on a saturated system.
pub fn little_imported(rate: f64, latency_ns: f64, in_flight_known: Option<f64>) -> Check {
    let implied = rate * latency_ns / 1e9;
    let seen = format!("{}/s × {} = {implied:.2} requests in flight", grouped(rate), time(latency_ns));
    let Some(known) = in_flight_known else {
        return L2.absent(format!(
            "{seen}; how many really were in flight is not known, so it cannot be held against anything."
        ));
    };
    if !(known > 0.0 && rate > 0.0) {
        return L2.absent(
            "No rate or no concurrency was given, so there is nothing to hold against Little's law.",
        );
    }
    let ratio = implied / known;
    let idle = implied < 1.0 && known >= 2.0;
    let status = if idle { Status::Fail } else { within(ratio, (0.7, 1.4), (0.5, 2.0)) };
    let honest = time(known / rate * 1e9);
    let cause = match status {
        Status::Pass => format!(", where {known:.1} are known to be; they agree."),
        _ if ratio < 1.0 => format!(
            ", where {known:.1} are known to be: with those the latency would be {honest}. The figure averages over completions \
             that came from a cache or were reaped late by asynchronous I/O."
        ),
        _ => format!(
            ", where only {known:.1} are known to be: with those the latency would be {honest}. The figure counts waiting that is \
             not the storage's, or the rate counts other requests."
        ),
    };
    L2.answer(status, ratio, seen + &cause)
}

/// L3: do the device's own counters agree with each other? `rate` and `latency_ns` of the device; `in_flight` its
/// time-weighted queue (aqu-sz).
pub fn little_device(rate: f64, latency_ns: f64, in_flight: Option<f64>) -> Check {
    let Some(in_flight) = in_flight.filter(|n| *n > 0.0) else {
        return L3.absent("The device does not count its requests in flight.");
    };
    let implied = rate * latency_ns / 1e9;
    let q = implied / in_flight;
    let status = if (q - 1.0).abs() <= 0.10 { Status::Pass } else { Status::Warn };
    let verdict = if status == Status::Pass {
        "they agree"
    } else {
        "they disagree; do not read this device's latency as exact"
    };
    L3.answer(status, q, format!("The device's rate and latency imply {implied:.2} in flight, its queue counter says {in_flight:.2}: {verdict}."))
}
