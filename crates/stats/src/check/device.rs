//! A1–A3, T1, E1–E3: the device's own story: alignment, merges, read-ahead, heat, errors, a member that is failing.

use super::{Check, Entry, Status, grouped, percent, time};
use crate::sample;

const A1: Entry = Entry::context(
    "A1",
    "aligned",
    "offset of the partition and block size are multiples of the physical block",
);
const A2: Entry =
    Entry::context("A2", "random requests are not merged", "merged / operations: warn above 1 %");
const A3: Entry = Entry::context(
    "A3",
    "no read-ahead in a random test",
    "device bytes per operation / block: warn above 1.1",
);
const T1: Entry =
    Entry::context("T1", "temperature", "change: warn above 5 K; any warning of the device: warn");
const E1: Entry = Entry::integrity("E1", "no errors, retries, retransmits", "fail at one");
const E2: Entry = Entry::context(
    "E2",
    "no member slower than its siblings",
    "latency / median of the siblings: warn above 2",
);

const E3: Entry = Entry::integrity(
    "E3",
    "the disks are well",
    "fail when a counter of errors (SMART) rises during the run, or the disk says that it fails",
);

/// A counter of errors of a disk that rose while it was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rise {
    /// The disk.
    pub disk: String,
    /// What it counts.
    pub counter: String,
    /// What it said before.
    pub before: u64,
    /// What it said after.
    pub after: u64,
}

impl std::fmt::Display for Rise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { disk, counter, before, after } = self;
        write!(f, "{counter} of {disk} rose from {before} to {after}")
    }
}

/// A1: byte offset of the partition (or first extent), block size used, and the device's physical block size.
pub fn alignment(offset_bytes: Option<u64>, block_bytes: u64, physical_block_bytes: Option<u64>) -> Check {
    let (Some(offset), Some(physical)) = (offset_bytes, physical_block_bytes.filter(|p| *p > 0)) else {
        return A1.absent("The device does not tell its physical block size or its offset.");
    };
    let aligned = offset.is_multiple_of(physical) && block_bytes.is_multiple_of(physical);
    let status = if aligned { Status::Pass } else { Status::Warn };
    let tail = if aligned { "." } else { ": each write of ours is a read and a write of the device." };
    A1.answer(
        status,
        (offset % physical) as f64,
        format!(
            "Offset {}, block {block_bytes} B, physical block {physical} B{tail}",
            grouped(offset as f64)
        ),
    )
}

/// A2: requests that the kernel merged, and operations.
pub fn merges(merged: Option<u64>, ops: u64) -> Check {
    let Some(merged) = merged.filter(|_| ops > 0) else {
        return A2.absent("Merges are not counted for this target.");
    };
    let share = merged as f64 / ops as f64;
    let status = if share > 0.01 { Status::Warn } else { Status::Pass };
    let tail = if status == Status::Warn {
        ": requests were not as random as meant, or others work sequentially."
    } else {
        "."
    };
    A2.answer(status, share, format!("{} of the operations were merged{tail}", percent(share)))
}

/// A3: device bytes per operation against the block size, and the read-ahead setting in KiB.
pub fn read_ahead(bytes_per_op: Option<f64>, block_bytes: u64, read_ahead_kib: Option<u64>) -> Check {
    let Some(bytes) = bytes_per_op else {
        return A3.absent("Device bytes and operations are not counted for this target.");
    };
    let ratio = bytes / block_bytes as f64;
    let status = if ratio > 1.1 { Status::Warn } else { Status::Pass };
    let setting = read_ahead_kib.map_or(String::new(), |k| format!(" (read-ahead is set to {k} KiB)"));
    let tail = if status == Status::Warn { ": the kernel reads ahead what nobody asked for." } else { "." };
    A3.answer(
        status,
        ratio,
        format!("The device moved {bytes:.0} bytes per operation, {ratio:.2} × the block{setting}{tail}"),
    )
}

/// T1: change of the device's temperature in kelvin, and seconds that it spent above its own warning limit.
pub fn temperature(change_kelvin: Option<f64>, warning_seconds: Option<u64>) -> Check {
    if change_kelvin.is_none() && warning_seconds.is_none() {
        return T1.absent("The device does not tell its temperature.");
    }
    let (change, warned) = (change_kelvin.unwrap_or(0.0), warning_seconds.unwrap_or(0));
    let status = if change.abs() > 5.0 || warned > 0 { Status::Warn } else { Status::Pass };
    T1.answer(
        status,
        change,
        format!("The device changed by {change:+.0} K and was above its warning limit for {warned} s."),
    )
}

/// E1: failed operations, retries, retransmits; `first`: what the first one was.
pub fn errors(errors: u64, first: Option<&str>) -> Check {
    let status = if errors > 0 { Status::Fail } else { Status::Pass };
    let evidence = match (errors, first) {
        (0, _) => "No operation failed.".into(),
        (n, Some(first)) => format!("{} operations failed; the first: {first}.", grouped(n as f64)),
        (n, None) => format!("{} operations failed.", grouped(n as f64)),
    };
    E1.answer(status, errors as f64, evidence)
}

/// E3: how many disks tell their health, what they said of failing, counters that rose, and which trials were left out for that (`None`: there is no
/// way to leave only some out). `why`: why disks do not tell.
pub fn disk_health(
    known: usize,
    failing: &[String],
    rises: &[Rise],
    left_out: Option<&str>,
    why: &str,
) -> Check {
    let rose: Vec<String> = rises.iter().map(ToString::to_string).collect();
    if let Some(first) = failing.first() {
        let more = if rose.is_empty() { String::new() } else { format!("; {}", rose.join("; ")) };
        let evidence = format!(
            "{first}{more}: it retries for seconds, so nothing measured on it is used. Back up, replace it, then measure."
        );
        return E3.answer(Status::Fail, rises.len() as f64, evidence);
    }
    match (rose.is_empty(), left_out) {
        (true, _) if known == 0 => E3.absent(why),
        (true, _) => E3.answer(
            Status::Pass,
            0.0,
            "No disk counted an error meanwhile, and none says that it fails.".into(),
        ),
        (false, Some(left_out)) => {
            E3.answer(Status::Warn, rises.len() as f64, format!("{}: {left_out}.", rose.join("; ")))
        }
        (false, None) => E3.answer(
            Status::Fail,
            rises.len() as f64,
            format!(
                "{} meanwhile: retries are in the number. Look at smartctl -a of the disk.",
                rose.join("; ")
            ),
        ),
    }
}

/// E2: mean latency of each member of an array, by name, nanoseconds.
pub fn slow_member(members: &[(&str, f64)]) -> Check {
    if members.len() < 3 {
        return E2.absent("Fewer than three members, so none can be called slower than its siblings.");
    }
    let middle = sample::median(&members.iter().map(|m| m.1).collect::<Vec<_>>());
    let slowest = members.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (name, latency) = slowest.map_or(("", 0.0), |m| *m);
    let ratio = latency / middle;
    let status = if ratio > 2.0 { Status::Warn } else { Status::Pass };
    let tail = if status == Status::Warn { ": it may be failing; look at its SMART record." } else { "." };
    E2.answer(
        status,
        ratio,
        format!(
            "The slowest member, {name}, needs {} where the median needs {}{tail}",
            time(latency),
            time(middle)
        ),
    )
}
