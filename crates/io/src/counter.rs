//! The processor's time stamp counter as a clock: about 20 ns for a look where the system's takes 40.
//!
//! Used where the kernel itself keeps time by it: then it has the same rate on all cores, does not stop when they sleep, and
//! the kernel watches over it. `units::Counter` says how it stays with the system's time.

use std::sync::OnceLock;
use units::{Clock, Counter};

/// The cheapest clock of this machine: the processor's counter where the kernel trusts it, else [`Clock::Real`]. The first call
/// takes five milliseconds.
pub fn clock() -> Clock {
    static COUNTER: OnceLock<Option<Counter>> = OnceLock::new();
    match COUNTER.get_or_init(|| invariant().then(|| Counter::calibrate(read)).flatten()) {
        Some(counter) => Clock::Counter(counter),
        None => Clock::Real,
    }
}

/// Whether the counter has one rate for ever, and the kernel reads it too.
fn invariant() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let used = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let about = read("/proc/cpuinfo");
    let flags = about.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag: &str| flags.split_ascii_whitespace().any(|word| word == flag);
    cfg!(target_arch = "x86_64") && used.trim() == "tsc" && has("constant_tsc") && has("nonstop_tsc")
}

#[cfg(target_arch = "x86_64")]
fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction. It touches no memory; a system that forbids it to programs kills them,
    // but then the kernel's own vDSO, which reads it in programs, could not use it as its clock source.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Never called: such a processor has no counter that is known here.
#[cfg(not(target_arch = "x86_64"))]
fn read() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn tells_the_systems_time() {
        let clock = clock();
        for _ in 0..100 {
            let (before, now, after) = (units::clock::now(), clock.now(), units::clock::now());
            assert!(
                now <= after + Nanos::micros(20) && now + Nanos::micros(20) >= before,
                "{before:?} {now:?} {after:?}"
            );
            units::clock::sleep(Nanos::millis(1));
        }
    }
}
