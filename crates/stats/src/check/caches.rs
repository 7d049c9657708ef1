//! S1–S2: the size of the data against the caches it may hide in.

use super::{Check, Entry, Status, percent};
use units::Bytes;

const S1: Entry = Entry::integrity(
    "S1",
    "size against caches",
    "file / memory: below 1 needs direct I/O or an emptied cache; between runs equal within 0.1 %",
);
const S2: Entry = Entry::integrity(
    "S2",
    "nothing resident before a cold read",
    "share of the file in the page cache: fail above 1 %",
);

/// S1: how large the target is against this machine's memory. Informs; whether a cache really answered is F1's question.
pub fn size_against_caches(file_bytes: u64, ram_bytes: Option<u64>) -> Check {
    let Some(ram) = ram_bytes.filter(|r| *r > 0) else {
        return S1.absent("The size of memory is not known.");
    };
    let ratio = file_bytes as f64 / ram as f64;
    let status = if ratio < 1.0 { Status::Warn } else { Status::Pass };
    let tail = if ratio < 1.0 {
        ": it fits into memory, so buffered reads may never reach the storage, and a storage cache may hold it too; compare only with runs of the same size."
    } else {
        "."
    };
    S1.answer(
        status,
        ratio,
        format!("The target is {}, memory {}, {ratio:.2} ×{tail}", Bytes(file_bytes), Bytes(ram)),
    )
}

/// S1 between two runs: sizes must be equal within 0.1 %, or a cache favours one of them.
pub fn comparable_sizes(old_bytes: u64, new_bytes: u64) -> Check {
    let apart = (new_bytes as f64 / old_bytes as f64).ln().abs();
    let status = if apart <= 0.001 { Status::Pass } else { Status::Fail };
    let tail = if status == Status::Fail {
        ": the caches favour the smaller; lay one of them out again at the size of the other."
    } else {
        "."
    };
    S1.answer(
        status,
        apart.exp_m1(),
        format!("The targets are {} and {}{tail}", Bytes(old_bytes), Bytes(new_bytes)),
    )
}

/// S2: share of the target that was in the page cache before a cold read.
pub fn residency(cached_share: Option<f64>) -> Check {
    let Some(share) = cached_share else {
        return S2.absent("What the page cache holds of the target could not be asked (mincore).");
    };
    let status = if share > 0.01 { Status::Fail } else { Status::Pass };
    let tail = if status == Status::Fail { ": this was not a cold read." } else { "." };
    S2.answer(
        status,
        share,
        format!("{} of the target was in the page cache before the start{tail}", percent(share)),
    )
}
