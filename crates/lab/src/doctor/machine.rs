//! Memory, swap, processors and the limits set on us.

use super::{Finding, Patient};
use host::facts::{self, Fact, IoLimit};
use std::sync::atomic::AtomicBool;
use units::Bytes;

pub(super) fn examine(patient: &Patient, _: &AtomicBool) -> Vec<Finding> {
    let mut findings = vec![memory(patient), swap(facts::swap_used())];
    findings.extend(limits(patient));
    findings.extend(governor(patient.fact("cpu", "governor")));
    findings.extend(clock(patient.fact("kernel", "clocksource")));
    findings.extend(virtual_machine(patient.fact("cpu", "hypervisor")));
    findings
}

fn memory(patient: &Patient) -> Finding {
    let Some(total) = facts::memory_total() else {
        return Finding::unknown("memory", "/proc/meminfo cannot be read");
    };
    let file = std::fs::metadata(&patient.path).ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
    let free = patient.directory.as_deref().and_then(|d| io::prepare::free_space(d).ok());
    judge_memory(total, facts::memory_available(), file, free)
}

/// `file`: size of the file that was given, if one was; `free`: space for a new one.
fn judge_memory(total: u64, available: Option<u64>, file: Option<u64>, free: Option<u64>) -> Finding {
    let left = available.map_or(String::new(), |a| format!(", {} available", Bytes(a)));
    let seen = format!("{} of memory{left}", Bytes(total));
    match (file, free) {
        (Some(size), _) if size < total => Finding::warn("memory", format!("{seen}; the file has {}", Bytes(size)))
            .effect("after one pass the whole file is in memory: cached reads then measure memory, not storage")
            .advice("compare direct with direct, cold with cold; or use a file of at least twice the memory"),
        (None, Some(free)) if free < total.saturating_mul(2) => {
            Finding::note("memory", format!("{seen}; {} free for a test file", Bytes(free)))
                .effect("a file larger than memory does not fit: cached modes are measured cold by dropping the cache, warm as memory")
                .advice("nothing for direct modes; for cached ones choose a place with more room")
        }
        _ => Finding::good("memory", seen),
    }
}

fn swap(used: Option<u64>) -> Finding {
    let Some(used) = used else { return Finding::unknown("swap", "/proc/meminfo tells nothing about swap") };
    if used < 64 << 20 {
        return Finding::good("swap", format!("{} in use", Bytes(used)));
    }
    Finding::warn("swap", format!("{} in use", Bytes(used)))
        .effect(
            "pages that come back from swap are storage requests that nobody ordered; pauses of milliseconds",
        )
        .advice("free memory, then: sudo swapoff -a && sudo swapon -a")
}

fn limits(patient: &Patient) -> Vec<Finding> {
    let facts = facts::cgroup_limits(&patient.storage.stack);
    let mut findings: Vec<Finding> = facts::io_limits(&patient.storage.stack).iter().map(io_limit).collect();
    let get = |name| facts.iter().find(|f| f.name == name);
    findings.extend(get("cpu_quota").and_then(|f| limit(f, "the load generator is stopped when the quota is used up: rates have a ceiling, latencies have gaps of tens of milliseconds")));
    findings.extend(get("memory_limit").and_then(|f| limit(f, "the page cache is charged to the group: cached modes have only this much memory, whatever the machine has")));
    if findings.is_empty() && facts.iter().all(|f| f.value.is_some()) {
        findings.push(Finding::good("control groups", "no limit on processors, memory or I/O applies to us"));
    }
    let hidden: Vec<&str> = facts.iter().filter(|f| f.value.is_none()).map(|f| f.name).collect();
    if !hidden.is_empty() {
        findings.push(Finding::unknown(
            "control groups",
            format!("cannot be seen from here: {}", hidden.join(", ")),
        ));
    }
    findings
}

fn io_limit(limit: &IoLimit) -> Finding {
    let rate = |value: Option<u64>, words: &str| value.map(|v| format!("{v} {words}"));
    let bytes =
        |value: Option<u64>, words: &str| value.map(|v| format!("{:.1} MB/s {words}", v as f64 / 1e6));
    let all = [
        rate(limit.read_iops, "reads/s"),
        rate(limit.write_iops, "writes/s"),
        bytes(limit.read_bps, "read"),
        bytes(limit.write_bps, "written"),
    ];
    let words: Vec<String> = all.into_iter().flatten().collect();
    Finding::bad("control groups", format!("{} is limited for us to {}", limit.device, words.join(", ")))
        .effect("the maximum that is measured is this limit and not the device's")
        .advice(format!("leave the group or lift the limit in {}", limit.source))
}

fn limit(fact: &Fact, effect: &str) -> Option<Finding> {
    let value = fact.value.as_deref().filter(|v| *v != "unlimited")?;
    let shown = match (fact.unit, value.parse()) {
        ("B", Ok(bytes)) => Bytes(bytes).to_string(),
        _ => format!("{value} {}", fact.unit),
    };
    let seen = format!("{}: {shown}", fact.name.replace('_', " "));
    Some(
        Finding::warn("control groups", seen)
            .effect(effect)
            .advice(format!("run it outside the container, or raise it in {}", fact.source)),
    )
}

fn governor(governor: Option<&str>) -> Option<Finding> {
    match governor? {
        "powersave" | "conservative" | "ondemand" => Some(
            Finding::warn("processor clock", format!("governor {}", governor?))
                .effect("processors sleep between requests and wake slowly: latencies at low load are higher than at high load")
                .advice("sudo cpupower frequency-set -g performance   (with intel_pstate, powersave is less bad than its name)"),
        ),
        other => Some(Finding::good("processor clock", format!("governor {other}"))),
    }
}

fn clock(source: Option<&str>) -> Option<Finding> {
    match source? {
        "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" | "xen" => None,
        slow => Some(
            Finding::warn("time source", format!("the kernel's clock is {slow}"))
                .effect("reading the time takes a microsecond or more instead of 25 ns: it is in every latency")
                .advice("cat /sys/devices/system/clocksource/clocksource0/available_clocksource; choose tsc if it is there"),
        ),
    }
}

fn virtual_machine(hypervisor: Option<&str>) -> Option<Finding> {
    let name = hypervisor.filter(|h| *h != "none")?;
    Some(
        Finding::note("virtual machine", format!("this is one ({name})"))
            .effect("neighbours come and go, caches of the host are out of sight, and disks may have credits that run out")
            .advice("compare only what was measured alternating in one run; repeat a calibration on another day"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_file_smaller_than_memory_is_a_warning() {
        let gib = |n: u64| n << 30;
        assert_eq!(judge_memory(gib(24), Some(gib(20)), Some(gib(8)), None).level, Level::Warn);
        assert_eq!(judge_memory(gib(24), Some(gib(20)), Some(gib(80)), None).level, Level::Good);
        assert_eq!(judge_memory(gib(24), None, None, Some(gib(30))).level, Level::Note);
        assert_eq!(judge_memory(gib(24), None, None, Some(gib(300))).level, Level::Good);
    }

    #[test]
    fn limits_are_named_with_their_numbers() {
        let limit = IoLimit {
            device: "vda".into(),
            read_iops: Some(150),
            write_bps: Some(35_000_000),
            source: "/g".into(),
            ..IoLimit::default()
        };
        let finding = io_limit(&limit);
        assert_eq!(finding.seen, "vda is limited for us to 150 reads/s, 35.0 MB/s written");
        assert_eq!(
            (swap(Some(1 << 30)).level, swap(Some(0)).level, swap(None).level),
            (Level::Warn, Level::Good, Level::Unknown)
        );
    }

    #[test]
    fn slow_clocks_and_sleepy_processors_are_told() {
        assert!(clock(Some("tsc")).is_none() && clock(None).is_none());
        assert_eq!(clock(Some("hpet")).map(|f| f.level), Some(Level::Warn));
        assert_eq!(governor(Some("powersave")).map(|f| f.level), Some(Level::Warn));
        assert_eq!(governor(None), None);
    }
}
