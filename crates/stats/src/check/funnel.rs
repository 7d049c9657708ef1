//! F1–F4: the funnel from requests to device operations and bytes. Self-consistency is necessary, not sufficient: only the
//! device's counters tell a fast disk from a cache.

use super::{Check, Entry, Status, grouped, percent};

const F1: Entry = Entry::integrity(
    "F1",
    "device operations per request",
    "device operations per expected operation: warn below 0.98, fail below 0.90, warn above 1.1",
);
const F2: Entry = Entry::integrity(
    "F2",
    "device bytes per requested byte",
    "device bytes per requested byte: warn below 0.98, fail below 0.90, warn above 1.1",
);
const F3: Entry = Entry::integrity(
    "F3",
    "our own physical bytes",
    "own physical bytes per requested byte: warn below 0.98, fail below 0.90; background: warn above 2 %, fail above 10 % of the device's bytes",
);
const F4: Entry =
    Entry::integrity("F4", "nothing lost in counting", "histogram, counter and intervals are equal");

/// Less than asked for reached the device, or more.
fn phi_status(phi: f64) -> Status {
    if phi < 0.90 {
        Status::Fail
    } else if !(0.98..=1.1).contains(&phi) {
        Status::Warn
    } else {
        Status::Pass
    }
}

/// F1: `requests` of ours against `device_ops` that the device completed meanwhile; `expected_per_request`: operations that one
/// request should become (1, or the block size over the device's largest request).
pub fn funnel_ops(requests: u64, device_ops: Option<u64>, expected_per_request: f64) -> Check {
    let Some(device_ops) = device_ops else {
        return F1
            .absent("No device counter belongs to this target, so a cache cannot be told from the device.");
    };
    if requests == 0 {
        return F1.absent("No requests were made.");
    }
    let phi = device_ops as f64 / (requests as f64 * expected_per_request);
    let seen = format!(
        "{} requests became {} device operations, {phi:.4} of what is expected",
        grouped(requests as f64),
        grouped(device_ops as f64)
    );
    let cause = match phi_status(phi) {
        Status::Pass => ".",
        _ if phi < 1.0 => ": a cache, or a hole in the file, answered the rest.",
        _ => ": requests were split, read-ahead was at work, or others used the device.",
    };
    F1.answer(phi_status(phi), phi, seen + cause)
}

/// F2: the same in bytes.
pub fn funnel_bytes(requested_bytes: u64, device_bytes: Option<u64>) -> Check {
    let Some(device_bytes) = device_bytes else {
        return F2
            .absent("No device counter belongs to this target, so a cache cannot be told from the device.");
    };
    if requested_bytes == 0 {
        return F2.absent("No bytes were requested.");
    }
    let phi = device_bytes as f64 / requested_bytes as f64;
    let seen = format!(
        "{} bytes were requested, the device moved {}, {phi:.4} of it",
        grouped(requested_bytes as f64),
        grouped(device_bytes as f64)
    );
    let cause = match phi_status(phi) {
        Status::Pass => ".",
        _ if phi < 1.0 => ": a cache, or a hole in the file, answered the rest.",
        _ => ": read-ahead, read-modify-write, or others used the device.",
    };
    F2.answer(phi_status(phi), phi, seen + cause)
}

/// F3: what the kernel books to this process as physical, against what was requested, and what the device did for others.
pub fn own_physical(requested_bytes: u64, own_read_bytes: Option<u64>, device_bytes: Option<u64>) -> Check {
    let Some(own) = own_read_bytes else {
        return F3.absent("The kernel does not account physical bytes per process here (/proc/self/io).");
    };
    if requested_bytes == 0 {
        return F3.absent("No bytes were requested.");
    }
    let phi = own as f64 / requested_bytes as f64;
    let short = if phi < 0.90 {
        Status::Fail
    } else if phi < 0.98 {
        Status::Warn
    } else {
        Status::Pass
    };
    let mut evidence = format!(
        "Of {} bytes requested, {} were physical for this process ({phi:.4})",
        grouped(requested_bytes as f64),
        grouped(own as f64)
    );
    if short != Status::Pass {
        evidence += ": a cache, or a hole in the file, answered the rest";
    }
    let background = device_bytes.filter(|d| *d > 0).map(|d| d.saturating_sub(own) as f64 / d as f64);
    let foreign = background.map_or(Status::Pass, |share| super::above(share, 0.02, 0.10));
    if let Some(share) = background {
        evidence += &format!("; {} of the device's bytes were not ours", percent(share));
        if foreign != Status::Pass {
            evidence += ": others use this device, or a cache is being filled in the background";
        }
    }
    let worst = if short == Status::Fail || foreign == Status::Fail {
        Status::Fail
    } else if short == Status::Warn || foreign == Status::Warn {
        Status::Warn
    } else {
        Status::Pass
    };
    F3.answer(worst, phi, evidence + ".")
}

/// F4: latencies in the histogram, the operation counter, the sum over the intervals, and the number of intervals missing.
pub fn conservation(histogram_count: u64, ops: u64, interval_ops: u64, intervals_missing: u64) -> Check {
    let equal = histogram_count == ops && ops == interval_ops && intervals_missing == 0;
    let status = if equal { Status::Pass } else { Status::Fail };
    let apart = histogram_count.max(ops).max(interval_ops) - histogram_count.min(ops).min(interval_ops);
    let seen = format!(
        "The histogram holds {}, the counter {}, the intervals {}, and {intervals_missing} intervals are missing",
        grouped(histogram_count as f64),
        grouped(ops as f64),
        grouped(interval_ops as f64)
    );
    F4.answer(
        status,
        apart as f64,
        seen + if equal {
            "."
        } else {
            ": operations were lost in counting; this is a defect of the program."
        },
    )
}
