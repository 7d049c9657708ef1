//! D1–D5: is there anything to read, is it what was written, and could the path have made it smaller?

use super::{Check, Entry, Status, grouped, percent};

const D1: Entry = Entry::integrity(
    "D1",
    "no holes, no unwritten extents",
    "share of the span that was never written: fail above 0.1 %",
);
const D2: Entry = Entry::integrity("D2", "the data read is the data written", "fail at one mismatch");
const D3: Entry = Entry::integrity(
    "D3",
    "device blocks not discarded",
    "the span was written in this experiment and not trimmed since",
);
const D4: Entry = Entry::context(
    "D4",
    "no data reduction in the path",
    "zeros / random data: warn when zeros are more than 5 % faster",
);

const D5: Entry = Entry::integrity(
    "D5",
    "what was written is on the device",
    "every block that was written is read back past the caches: fail at one that is not as written",
);

/// D1: bytes of the measured span that are allocated but unwritten, and that are holes. A read of either never reaches the device.
pub fn holes(span_bytes: u64, unwritten_bytes: Option<u64>, hole_bytes: Option<u64>) -> Check {
    if unwritten_bytes.is_none() && hole_bytes.is_none() {
        return D1.absent("This file system tells neither its extents nor its holes; device operations per request (F1) must decide.");
    }
    if span_bytes == 0 {
        return D1.absent("The span is empty.");
    }
    let (unwritten, hole) = (unwritten_bytes.unwrap_or(0), hole_bytes.unwrap_or(0));
    let share = (unwritten + hole) as f64 / span_bytes as f64;
    let status = if share > 0.001 { Status::Fail } else { Status::Pass };
    let seen = format!(
        "Of {} bytes, {} are unwritten and {} are holes ({})",
        grouped(span_bytes as f64),
        grouped(unwritten as f64),
        grouped(hole as f64),
        percent(share)
    );
    let mut evidence = seen
        + if status == Status::Fail {
            ": reads there are answered with zeros by the kernel, not by the device"
        } else {
            ""
        };
    if unwritten_bytes.is_none() || hole_bytes.is_none() {
        evidence += "; only one of the two could be looked up";
    }
    D1.answer(status, share, evidence + ".")
}

/// D2: blocks verified by their stamp and how many were wrong; `kind` names what was wrong (lost, torn, misdirected) or how it
/// is verified.
pub fn wrong_data(verified: u64, wrong: u64, kind: &str) -> Check {
    if verified == 0 && wrong == 0 {
        return D2.absent("No block was verified.");
    }
    let status = if wrong > 0 { Status::Fail } else { Status::Pass };
    let seen =
        format!("{} blocks were verified, {} were wrong", grouped(verified as f64), grouped(wrong as f64));
    let tail =
        if wrong > 0 { format!(" ({kind}): do not use this storage for a database.") } else { ".".into() };
    D2.answer(status, wrong as f64, seen + &tail)
}

/// D5: blocks that were written and read back, how many of them were wrong, and the first of these in words; files that could be read through the
/// page cache alone; whether it was stopped before the end.
pub fn read_back(blocks: u64, wrong: u64, first: Option<&str>, cached_files: usize, stopped: bool) -> Check {
    if wrong > 0 {
        let first = first.map_or_else(String::new, |first| format!("; the first: {first}"));
        let (wrong_said, blocks) = (grouped(wrong as f64), grouped(blocks as f64));
        let evidence = format!(
            "{wrong_said} of {blocks} blocks written are not on the device as written{first}. Do not use this storage for a database."
        );
        return D5.answer(Status::Fail, wrong as f64, evidence);
    }
    if stopped {
        return D5.absent(format!("The reading back was stopped after {} blocks.", grouped(blocks as f64)));
    }
    if blocks == 0 {
        return D5.absent("No block was written, so none was read back.");
    }
    let seen =
        format!("{} blocks written were read back from the device, all as written", grouped(blocks as f64));
    if cached_files > 0 {
        let tail = format!(
            "; {cached_files} files could be read through the page cache alone, which proves little."
        );
        return D5.answer(Status::Warn, 0.0, seen + &tail);
    }
    D5.answer(Status::Pass, 0.0, seen + ".")
}

/// D3: was the span written in this experiment, and trimmed since?
pub fn discarded(written_here: Option<bool>, trimmed_since: Option<bool>) -> Check {
    match (written_here, trimmed_since) {
        (None, _) => D3.absent("Nothing is known of what was written to this device."),
        (Some(false), _) => D3.answer(
            Status::Fail,
            f64::NAN,
            "The device was not written in this experiment: blocks that were discarded are read at the speed of a lookup.".into(),
        ),
        (Some(true), Some(true)) => D3.answer(Status::Fail, f64::NAN, "The span was written, and trimmed since.".into()),
        (Some(true), Some(false)) => D3.answer(Status::Pass, f64::NAN, "The span was written in this experiment and not trimmed.".into()),
        (Some(true), None) => D3.answer(Status::Pass, f64::NAN, "The span was written in this experiment; trims are not counted here.".into()),
    }
}

/// D4: rates of the same load with random data and with zeros.
pub fn reducible(random_rate: f64, zero_rate: Option<f64>) -> Check {
    let Some(zero) = zero_rate.filter(|_| random_rate > 0.0) else {
        return D4.absent(
            "Zeros were not tried; our data is incompressible and unique, so reduction cannot flatter it.",
        );
    };
    let ratio = zero / random_rate;
    let status = if ratio > 1.05 { Status::Warn } else { Status::Pass };
    let cause =
        if status == Status::Warn { ": something in the path compresses or deduplicates." } else { "." };
    D4.answer(status, ratio, format!("Zeros run at {ratio:.2} × the rate of random data{cause}"))
}
