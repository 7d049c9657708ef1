//! W1–W2: was it durable when it was said to be?

use super::{Check, Entry, Status, time};

const W1: Entry = Entry::integrity(
    "W1",
    "a sync reaches the medium",
    "write-back cache: flushes per sync fail below 0.9, median sync fail below 20 µs; disk: syncs per second fail above 1.1 × turns",
);
const W2: Entry = Entry::integrity(
    "W2",
    "equally durable",
    "writes that are synced are never compared with writes that are not",
);

/// What is always true.
const NOT_PROVEN: &str = " Durability is not proven without cutting the power.";

/// W1: does the device honour a sync? `write_cache`: as in queue/write_cache ("write back", "write through"); `flushes`: flush
/// requests that the device completed during `syncs` syncs; `sync_median_ns`; `rotational_rpm`: turns per minute of a disk.
pub fn volatile_cache(
    write_cache: Option<&str>,
    flushes: Option<u64>,
    syncs: u64,
    sync_median_ns: f64,
    rotational_rpm: Option<f64>,
) -> Check {
    if syncs == 0 {
        return W1.absent("Nothing was synced.");
    }
    let median = time(sync_median_ns);
    let write_back = write_cache.map(|w| w.trim() == "write back");
    let per_sync = flushes.map(|f| f as f64 / syncs as f64);
    if let Some(rpm) = rotational_rpm.filter(|r| *r > 0.0) {
        let per_second = 1e9 / sync_median_ns;
        if per_second > rpm / 60.0 * 1.1 {
            let text = format!(
                "A disk of {rpm:.0} turns per minute synced every {median}, {per_second:.0} per second: faster than it turns, so a volatile cache said yes."
            );
            return W1.answer(Status::Fail, per_second, text + NOT_PROVEN);
        }
    }
    match (write_back, per_sync) {
        (Some(true), Some(ratio)) if ratio < 0.9 => {
            let text = format!("The device has a write-back cache and saw {ratio:.2} flushes per sync: syncs stop before it (barriers off, or a layer that swallows them), and a power cut loses what was acknowledged.");
            W1.answer(Status::Fail, ratio, text + NOT_PROVEN)
        }
        (Some(true), _) if sync_median_ns < 20e3 => {
            let text = format!("The median sync took {median} on a device with a write-back cache: no medium is that fast, so it was not flushed, unless the cache is protected against power loss.");
            W1.answer(Status::Fail, sync_median_ns, text + NOT_PROVEN)
        }
        (None, _) if sync_median_ns < 20e3 => {
            let text = format!("The median sync took {median}, faster than any medium; whether there is a volatile cache is not known.");
            W1.answer(Status::Warn, sync_median_ns, text + NOT_PROVEN)
        }
        (Some(true), Some(ratio)) => {
            W1.answer(Status::Pass, ratio, format!("{ratio:.2} flushes per sync, median sync {median}.{NOT_PROVEN}"))
        }
        (Some(true), None) => W1.absent(format!("The device has a write-back cache, and its flushes are not counted (median sync {median}).{NOT_PROVEN}")),
        (Some(false), _) => W1.answer(
            Status::Pass,
            sync_median_ns,
            format!("The device says that it writes through, so no flush is needed; median sync {median}.{NOT_PROVEN}"),
        ),
        (None, _) => W1.absent(format!("Whether the device has a volatile cache is not known (median sync {median}).{NOT_PROVEN}")),
    }
}

/// W2: `old` and `new` name how each side's writes become durable ("O_DSYNC", "fdatasync", "not synced").
pub fn same_durability(old: &str, new: &str) -> Check {
    let synced = |text: &str| text != "not synced";
    let status = if synced(old) == synced(new) { Status::Pass } else { Status::Fail };
    let tail = if status == Status::Fail {
        ": one side pays for durability and the other does not; their rates are not comparable."
    } else {
        "."
    };
    W2.answer(status, f64::NAN, format!("Old: {old}; new: {new}{tail}"))
}
