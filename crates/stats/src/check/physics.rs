//! P1–P4: faster than the wire, faster than the medium, as fast as memory, on memory.

use super::{Check, Entry, Status, grouped, time};

const P1: Entry = Entry::integrity(
    "P1",
    "not faster than the wire",
    "bytes per second / limit of the link: fail above 1.02",
);
const P2: Entry = Entry::integrity(
    "P2",
    "not faster than the medium",
    "5th percentile of latency: disk 1 ms, SATA flash 40 µs, NVMe flash 50 µs (warn) and 8 µs (fail), network one round trip",
);
const P3: Entry = Entry::integrity(
    "P3",
    "slower than the page cache",
    "latency alone / latency of a cached page: fail below 3",
);
const P4: Entry = Entry::integrity("P4", "not a file system in memory", "fail on tmpfs, ramfs and the like");

/// P1: `bytes_per_second` against the slowest known link on the way (`limit_bytes_per_second`), called `link`.
pub fn wire(bytes_per_second: f64, limit_bytes_per_second: Option<f64>, link: &str) -> Check {
    let Some(limit) = limit_bytes_per_second.filter(|l| *l > 0.0) else {
        return P1.absent("No link speed is known for this target.");
    };
    let share = bytes_per_second / limit;
    let status = if share > 1.02 { Status::Fail } else { Status::Pass };
    let cause = if status == Status::Fail {
        ": it cannot have come over it; a cache on this side answered."
    } else {
        "."
    };
    P1.answer(
        status,
        share,
        format!(
            "{:.0} MB/s over {link}, which carries {:.0} MB/s{cause}",
            bytes_per_second / 1e6,
            limit / 1e6
        ),
    )
}

/// What the data lies on, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Medium {
    /// A rotating disk.
    Rotating,
    /// Flash behind SATA or SAS.
    SataFlash,
    /// Flash behind NVMe.
    NvmeFlash,
    /// Behind a network with this round trip, nanoseconds.
    Network {
        /// Round trip in nanoseconds.
        round_trip_ns: f64,
    },
    /// Virtual, or not known.
    Unknown,
}

/// P2: the 5th percentile of random-read latency, nanoseconds, against what the medium can do.
pub fn medium(latency_p5_ns: f64, medium: Medium) -> Check {
    let (name, warn, fail) = match medium {
        Medium::Rotating => ("a rotating disk", 1e6, 1e6),
        Medium::SataFlash => ("SATA flash", 40e3, 40e3),
        Medium::NvmeFlash => ("NVMe flash", 50e3, 8e3),
        Medium::Network { round_trip_ns } => ("the network's round trip", round_trip_ns, round_trip_ns),
        Medium::Unknown => {
            return P2
                .absent("What the data lies on is not known (a virtual device), so no floor can be set.");
        }
    };
    let status = if latency_p5_ns < fail {
        Status::Fail
    } else if latency_p5_ns < warn {
        Status::Warn
    } else {
        Status::Pass
    };
    let cause = if status == Status::Pass {
        "."
    } else {
        ": a cache above it or inside it answers; device operations per request (F1) say which."
    };
    P2.answer(
        status,
        latency_p5_ns,
        format!("5 % of the reads took {} or less; {name} needs {}{cause}", time(latency_p5_ns), time(warn)),
    )
}

/// P3: median latency of one read at a time against a read of a cached page, both nanoseconds.
pub fn near_memory(r1_ns: f64, page_cache_ns: Option<f64>) -> Check {
    let Some(cached) = page_cache_ns.filter(|c| *c > 0.0) else {
        return P3.absent("The latency of a cached page was not calibrated.");
    };
    let ratio = r1_ns / cached;
    let status = if ratio < 3.0 { Status::Fail } else { Status::Pass };
    let cause = if status == Status::Fail { ": these reads come from memory." } else { "." };
    P3.answer(
        status,
        ratio,
        format!(
            "One read at a time takes {}, a cached page {}, {ratio:.1} ×{cause}",
            time(r1_ns),
            time(cached)
        ),
    )
}

/// P4: the file system of the target by name; one that lives in memory cannot be asked about storage.
pub fn memory_file_system(name: &str) -> Check {
    let memory = matches!(name, "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" | "rootfs");
    let status = if memory { Status::Fail } else { Status::Pass };
    let evidence = if memory {
        format!("The target is on {name}, which is memory: choose a directory on the storage in question.")
    } else {
        format!("The target is on {name}.")
    };
    P4.answer(status, f64::NAN, evidence)
}

/// Used by [`super::limits`]: is this a round number such as an operator would set as a limit? `3000`, `16000`, `35 MB/s`.
pub(super) fn round_number(rate: f64) -> Option<f64> {
    let digits = 10f64.powf(rate.log10().floor() - 1.0);
    let nearest = (rate / digits).round() * digits;
    (rate > 0.0 && (rate / nearest - 1.0).abs() < 0.005 && nearest >= 50.0).then_some(nearest)
}

/// Used in evidence: a rate with its unit.
pub(super) fn per_second(rate: f64) -> String {
    format!("{}/s", grouped(rate))
}
