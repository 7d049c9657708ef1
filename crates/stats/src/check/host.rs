//! H1–H5: is it the host that is slow? Of a latency of 475 µs the device needed 116 µs; the rest was two CPUs.

use super::{Check, Entry, Status, above, percent, time};

const H1: Entry = Entry::context(
    "H1",
    "CPU time stolen or waited for",
    "steal: warn above 2 %, fail above 5 %; CPU pressure: warn above 10 %",
);
const H2: Entry = Entry::context(
    "H2",
    "pauses of the machine",
    "overshoot of a 1 ms sleeper, p99.9: warn above 1 ms, fail above 10 ms",
);
const H3: Entry = Entry::context(
    "H3",
    "the load generator is not the limit",
    "CPU of the generator: warn above 85 %; or less than half in flight at the device with more than twice its latency",
);
const H4: Entry = Entry::context(
    "H4",
    "CPU frequency and heat",
    "frequency change: warn above 5 %; any throttle event: warn",
);

const H5: Entry = Entry::context(
    "H5",
    "nobody else on the CPUs",
    "CPU time used by other processes: warn above 10 %, fail above 25 %",
);

/// H5: share of the machine's CPU time that processes other than ours used. On a machine short of CPUs every wake-up
/// queues behind them, up to a scheduler tick: milliseconds beside a device's microseconds.
pub fn others(share: Option<f64>) -> Check {
    let Some(share) = share else {
        return H5.absent("The CPU time of this process or of the machine cannot be read here.");
    };
    let status = above(share, 0.10, 0.25);
    let cause = if status == Status::Pass {
        "."
    } else {
        ": our threads queued behind them, and that is in the latencies. Stop other work and run again."
    };
    H5.answer(
        status,
        share,
        format!("Other processes used {} of the machine's CPU time{cause}", percent(share)),
    )
}

/// H1: share of CPU time that the hypervisor took, and CPU pressure (`some avg10`) in percent, as in /proc/pressure/cpu.
pub fn steal(steal_share: Option<f64>, cpu_pressure_percent: Option<f64>) -> Check {
    let (Some(worst), seen) = (steal_share.or(cpu_pressure_percent.map(|_| 0.0)), steal_share) else {
        return H1.absent("Neither stolen time nor CPU pressure can be read here.");
    };
    let stolen = above(worst, 0.02, 0.05);
    let pressed = cpu_pressure_percent.is_some_and(|p| p > 10.0);
    let status = if stolen == Status::Pass && pressed { Status::Warn } else { stolen };
    let steal_text = seen.map_or("Stolen time is unknown".into(), |s| {
        format!("{} of CPU time was stolen by the hypervisor", percent(s))
    });
    let pressure_text = cpu_pressure_percent
        .map_or(String::new(), |p| format!("; tasks waited for a CPU {p:.1} % of the time"));
    let cause = match status {
        Status::Pass => ".",
        _ if stolen != Status::Pass => ": neighbours on this host are in the number; latencies suffer first.",
        _ => ": the CPUs are short, and their queue is counted as the storage's latency.",
    };
    H1.answer(status, worst, steal_text + &pressure_text + cause)
}

/// H2: by how much a thread that sleeps 1 ms at a time woke too late, 99.9th percentile in nanoseconds.
pub fn pause(p999_ns: Option<f64>) -> Check {
    let Some(p999) = p999_ns else {
        return H2.absent("The pause detector did not run.");
    };
    let status = above(p999, 1e6, 10e6);
    let cause = if status == Status::Pass {
        "."
    } else {
        ": the machine stood still at times; long latencies may be its own."
    };
    H2.answer(
        status,
        p999,
        format!("A thread that sleeps 1 ms woke up to {} late (p99.9){cause}", time(p999)),
    )
}

/// H3: is the host the maximum? `cpu_share`: busy share of the CPUs allowed to the generator. `in_flight`, `latency_ns`: as asked
/// for and as the application saw it. `device`: `(in flight, latency_ns)` as the device counted.
pub fn generator_bound(
    cpu_share: Option<f64>,
    in_flight: f64,
    latency_ns: f64,
    device: Option<(f64, f64)>,
) -> Check {
    let busy = cpu_share.is_some_and(|c| c > 0.85);
    let starved = device.is_some_and(|(n, r)| n < 0.5 * in_flight && latency_ns > 2.0 * r);
    if cpu_share.is_none() && device.is_none() {
        return H3.absent("Neither the CPU of the generator nor the device's queue is known.");
    }
    let cpu =
        cpu_share.map_or("CPU unknown".into(), |c| format!("the generator used {} of its CPUs", percent(c)));
    let seen = device.map_or(String::new(), |(n, r)| {
        format!(
            ", the device had {n:.1} of {in_flight:.0} in flight and needed {} of the {}",
            time(r),
            time(latency_ns)
        )
    });
    let status = if busy || starved { Status::Warn } else { Status::Pass };
    let cause =
        if status == Status::Warn { ": this is the limit of the host, not of the device." } else { "." };
    let mut evidence = cpu + &seen + cause;
    evidence[..1].make_ascii_uppercase();
    H3.answer(status, cpu_share.unwrap_or(f64::NAN), evidence)
}

/// H4: relative change of the CPU frequency during the measurement, and throttle events.
pub fn frequency(change: Option<f64>, throttle_events: Option<u64>) -> Check {
    if change.is_none() && throttle_events.is_none() {
        return H4.absent("Neither CPU frequency nor throttle events can be read here.");
    }
    let (moved, events) = (change.unwrap_or(0.0), throttle_events.unwrap_or(0));
    let status = if moved.abs() > 0.05 || events > 0 { Status::Warn } else { Status::Pass };
    H4.answer(
        status,
        moved,
        format!(
            "The CPU frequency moved by {} and there were {events} throttle events.",
            percent(moved.abs())
        ),
    )
}
