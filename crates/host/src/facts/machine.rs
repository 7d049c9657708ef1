//! Processors, memory and kernel.

use super::{Fact, cgroup};
use crate::files;

/// Everything about the machine that may matter to a number, about sixty facts.
pub fn machine() -> Vec<Fact> {
    let mut facts = cpu();
    facts.extend(memory());
    facts.extend(kernel());
    facts
}

/// Usable RAM, bytes.
pub fn memory_total() -> Option<u64> {
    meminfo("MemTotal")
}

/// What programs can still get without swapping, bytes (page cache counted as free).
pub fn memory_available() -> Option<u64> {
    meminfo("MemAvailable")
}

/// Swap in use, bytes.
pub fn swap_used() -> Option<u64> {
    Some(meminfo("SwapTotal")?.saturating_sub(meminfo("SwapFree")?))
}

/// Processors that this process may use at once: its affinity mask, cut by the CPU quota of its cgroups (rounded up);
/// at least 1.
pub fn cores_allowed() -> usize {
    let mask = affinity();
    let quota = cgroup::cpu_quota().map_or(mask, |cores| cores.ceil() as usize);
    mask.min(quota).max(1)
}

fn affinity() -> usize {
    let counted = rustix::thread::sched_getaffinity(None).map(|set| set.count() as usize);
    counted.unwrap_or_else(|_| std::thread::available_parallelism().map_or(1, usize::from))
}

fn meminfo(key: &str) -> Option<u64> {
    parse_meminfo(&files::text("/proc/meminfo")?, key)
}

/// A line `Key:   123 kB` in bytes, or a plain count without unit.
fn parse_meminfo(text: &str, key: &str) -> Option<u64> {
    let mut words =
        text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    Some(if words.next() == Some("kB") { number * 1024 } else { number })
}

/// The value of `key : value` in /proc/cpuinfo.
fn cpuinfo<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|l| l.split_once(':').filter(|(k, _)| k.trim() == key)).map(|(_, v)| v.trim())
}

fn cpu() -> Vec<Fact> {
    const SYS: &str = "/sys/devices/system/cpu";
    let info = files::text("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo(&info, "model name")
        .or_else(|| cpuinfo(&info, "Processor"))
        .or_else(|| cpuinfo(&info, "CPU part"));
    let fact = |name, value: Option<String>, source| Fact::found("cpu", "", name, value, source);
    let file = |name, path: &str| Fact::file("cpu", "", name, format!("{SYS}/{path}"));
    let mut facts = vec![
        fact("model", model.map(str::to_owned), "/proc/cpuinfo"),
        fact(
            "online",
            files::text(format!("{SYS}/online")).and_then(|t| count_list(&t)).map(|n| n.to_string()),
            "/sys/devices/system/cpu/online",
        ),
        Fact::known("cpu", "", "allowed", affinity(), "sched_getaffinity(2)"),
        file("smt_active", "smt/active"),
        file("governor", "cpu0/cpufreq/scaling_governor"),
        file("frequency_driver", "cpu0/cpufreq/scaling_driver"),
        file("frequency_max", "cpu0/cpufreq/cpuinfo_max_freq").unit("kHz"),
        fact("frequency_seen", cpuinfo(&info, "cpu MHz").map(str::to_owned), "/proc/cpuinfo").unit("MHz"),
        file("turbo_off", "intel_pstate/no_turbo"),
        file("idle_driver", "cpuidle/current_driver"),
        file("idle_governor", "cpuidle/current_governor"),
        fact("hypervisor", hypervisor(&info), "/proc/cpuinfo, /sys/class/dmi/id, /sys/hypervisor"),
        Fact::file("cpu", "", "numa_nodes", "/sys/devices/system/node/online"),
    ];
    facts.extend(
        files::names(format!("{SYS}/vulnerabilities"))
            .iter()
            .map(|name| Fact::file("cpu", name, "mitigation", format!("{SYS}/vulnerabilities/{name}"))),
    );
    facts
}

/// `none`, or the name of what this machine runs in; none (unknown) on architectures that do not tell.
fn hypervisor(info: &str) -> Option<String> {
    let product = || {
        let read = |name| files::text(format!("/sys/class/dmi/id/{name}"));
        Some(
            format!("{} {}", read("sys_vendor")?, read("product_name").unwrap_or_default()).trim().to_owned(),
        )
    };
    let flagged = cpuinfo(info, "flags").map(|flags| flags.split(' ').any(|f| f == "hypervisor"));
    match (files::text("/sys/hypervisor/type"), flagged) {
        (Some(kind), _) => Some(kind),
        (None, Some(true)) => Some(product().unwrap_or_else(|| "unnamed".into())),
        (None, Some(false)) => Some("none".into()),
        (None, None) => None,
    }
}

/// `0-3,8` counts 5.
pub(super) fn count_list(text: &str) -> Option<usize> {
    text.trim().split(',').filter(|part| !part.is_empty()).try_fold(0, |sum, part| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (usize, usize) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        Some(sum + high.checked_sub(low)? + 1)
    })
}

fn memory() -> Vec<Fact> {
    let text = files::text("/proc/meminfo").unwrap_or_default();
    let info = |name, key| Fact::found("memory", "", name, parse_meminfo(&text, key), "/proc/meminfo");
    let vm = |name, file: &str| Fact::file("memory", "", name, format!("/proc/sys/vm/{file}"));
    let mut facts = vec![
        info("total", "MemTotal").unit("B"),
        info("available", "MemAvailable").unit("B"),
        info("page_cache", "Cached").unit("B"),
        info("dirty", "Dirty").unit("B"),
        info("swap_total", "SwapTotal").unit("B"),
        info("swap_free", "SwapFree").unit("B"),
        info("huge_pages", "HugePages_Total"),
        vm("swappiness", "swappiness"),
        vm("dirty_ratio", "dirty_ratio").unit("%"),
        vm("dirty_background_ratio", "dirty_background_ratio").unit("%"),
        vm("dirty_bytes", "dirty_bytes").unit("B"),
        vm("dirty_background_bytes", "dirty_background_bytes").unit("B"),
        vm("dirty_expire", "dirty_expire_centisecs").unit("cs"),
        vm("dirty_writeback", "dirty_writeback_centisecs").unit("cs"),
    ];
    let huge = "/sys/kernel/mm/transparent_hugepage/enabled";
    let chosen = files::text(huge).and_then(|t| bracketed(&t));
    facts.push(Fact::found("memory", "", "transparent_huge_pages", chosen, huge));
    facts
}

/// The word in brackets of `always [madvise] never`.
fn bracketed(text: &str) -> Option<String> {
    text.split_whitespace().find(|w| w.starts_with('[')).map(|w| w.trim_matches(['[', ']']).to_owned())
}

fn kernel() -> Vec<Fact> {
    let name = rustix::system::uname();
    let system = files::text("/etc/os-release").unwrap_or_default();
    let pretty =
        system.lines().find_map(|l| l.strip_prefix("PRETTY_NAME=")).map(|n| n.trim_matches('"').to_owned());
    let words = files::text("/proc/cmdline").unwrap_or_default();
    let switch =
        words.split_whitespace().find(|w| w.starts_with("mitigations=")).unwrap_or("mitigations=(default)");
    let uring = "/proc/sys/kernel/io_uring_disabled";
    let uptime = files::text("/proc/uptime").and_then(|t| t.split('.').next().map(str::to_owned));
    vec![
        Fact::known("kernel", "", "release", name.release().to_string_lossy(), "uname(2)"),
        Fact::known("kernel", "", "version", name.version().to_string_lossy(), "uname(2)"),
        Fact::known("kernel", "", "architecture", name.machine().to_string_lossy(), "uname(2)"),
        Fact::found("kernel", "", "system", pretty, "/etc/os-release"),
        Fact::known("kernel", "", "mitigations_switch", switch, "/proc/cmdline"),
        Fact::file(
            "kernel",
            "",
            "clocksource",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        Fact::file("kernel", "", "aio_max_nr", "/proc/sys/fs/aio-max-nr"),
        Fact::file("kernel", "", "aio_nr", "/proc/sys/fs/aio-nr"),
        Fact::file("kernel", "", "io_uring_disabled", uring),
        Fact::file("kernel", "", "file_max", "/proc/sys/fs/file-max"),
        Fact::found("kernel", "", "uptime", uptime, "/proc/uptime").unit("s"),
        Fact::found(
            "kernel",
            "",
            "load_average",
            super::load_average().map(|l| format!("{} {} {}", l[0], l[1], l[2])),
            "/proc/loadavg",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_processor_lists() {
        for (text, count) in [
            ("0-3,8", Some(5)),
            ("0", Some(1)),
            ("0-1\n", Some(2)),
            ("", Some(0)),
            ("3-1", None),
            ("x", None),
        ] {
            assert_eq!(count_list(text), count, "{text:?}");
        }
    }

    #[test]
    fn reads_meminfo_in_bytes() {
        let text = "MemTotal:       24684084 kB\nSwapTotal:             0 kB\nHugePages_Total:       7\n";
        assert_eq!(parse_meminfo(text, "MemTotal"), Some(24_684_084 * 1024));
        assert_eq!(parse_meminfo(text, "SwapTotal"), Some(0));
        assert_eq!(parse_meminfo(text, "HugePages_Total"), Some(7));
        assert_eq!(parse_meminfo(text, "Mem"), None, "no prefix matches");
    }

    #[test]
    fn knows_this_machine() {
        let facts = machine();
        let value = |name| facts.iter().find(|f| f.name == name).and_then(|f| f.value.clone());
        assert!(value("release").is_some_and(|r| r.contains('.')) && value("total").is_some());
        assert!(memory_total() > memory_available() && cores_allowed() >= 1);
        assert!(
            facts.iter().filter(|f| f.value.is_none()).all(|f| f.source.contains(": ")),
            "unknown says why"
        );
    }
}
