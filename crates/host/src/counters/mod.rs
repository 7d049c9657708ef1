//! What the kernel has counted: cumulative, sampled on one time axis, absent where the kernel has no such counter.
//!
//! Start with [`snapshot`]; two of them give [`rates()`] as `iostat -x` prints them. [`Sampler`] takes one every interval
//! in its own thread; [`PauseDetector`] measures how long this machine keeps a ready thread waiting. The formats are
//! parsed in `parse.rs`, from text alone, so that golden files test them.

mod parse;
mod pause;
mod rates;
mod sampler;
mod strain;
mod thread;

pub use pause::{PauseDetector, PauseResult};
pub use rates::{CpuShares, DiskRates, cpu_shares, others_cpu_share, rates};
pub use sampler::Sampler;
pub use strain::{Strain, strain};
pub use thread::{Schedule, Thread};

use crate::facts::cgroup;
use crate::files;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use units::{Nanos, clock};

/// The seventeen fields of a line of `/proc/diskstats`, cumulative since the device appeared. Sectors are 512 bytes on
/// every device. Fields that the kernel does not have are none (discards since 4.18, flushes since 5.5).
///
/// `io_ms` counts jiffies in which something was in flight and is approximate since kernel 5.0: no check uses it as
/// evidence (`docs/method.md` section 7). Flushes are counted on the whole disk only, never on a partition.
///
/// Source: kernel `Documentation/admin-guide/iostats.rst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Reads completed.
    pub reads: u64,
    /// Reads merged into a neighbour before they reached the device.
    pub reads_merged: u64,
    /// 512-byte sectors read.
    pub sectors_read: u64,
    /// Milliseconds spent by all reads, from queueing to completion.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes merged.
    pub writes_merged: u64,
    /// 512-byte sectors written.
    pub sectors_written: u64,
    /// Milliseconds spent by all writes.
    pub write_ms: u64,
    /// Requests in flight now (the only field that is not cumulative).
    pub in_flight: u64,
    /// Milliseconds with something in flight; approximate.
    pub io_ms: u64,
    /// Milliseconds × requests in flight: its slope is the mean queue size.
    pub weighted_ms: u64,
    /// Discards completed.
    pub discards: Option<u64>,
    /// Discards merged.
    pub discards_merged: Option<u64>,
    /// 512-byte sectors discarded.
    pub sectors_discarded: Option<u64>,
    /// Milliseconds spent by all discards.
    pub discard_ms: Option<u64>,
    /// Flushes completed.
    pub flushes: Option<u64>,
    /// Milliseconds spent by all flushes.
    pub flush_ms: Option<u64>,
}

/// CPU time of all processors since boot, in clock ticks of 10 ms (`/proc/stat`, first line). Guest time is inside
/// `user` already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In user mode.
    pub user: u64,
    /// In user mode at low priority.
    pub nice: u64,
    /// In the kernel.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a task waits for I/O.
    pub iowait: u64,
    /// Hardware interrupts.
    pub irq: u64,
    /// Software interrupts.
    pub softirq: u64,
    /// Wanted to run, but the hypervisor ran somebody else.
    pub steal: u64,
}

/// What this process asked for and got (`/proc/self/io`), threads that have ended included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnIo {
    /// Bytes fetched from storage for us: page cache hits are not in it.
    pub read_bytes: u64,
    /// Bytes we caused to be sent to storage (counted when a page is dirtied, or at direct I/O).
    pub write_bytes: u64,
    /// Dirtied pages that were dropped before they were written, in bytes.
    pub cancelled_write_bytes: u64,
    /// Bytes passed through read calls, cache hits included. io_uring is counted since kernel 5.11 or so.
    pub rchar: u64,
    /// Bytes passed through write calls.
    pub wchar: u64,
    /// Read system calls.
    pub syscr: u64,
    /// Write system calls.
    pub syscw: u64,
}

/// Pressure stall totals of the machine in microseconds since boot (`/proc/pressure`): *some* task was held up, or *all*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Psi {
    /// Some task waited for a CPU.
    pub cpu_some_us: Option<u64>,
    /// Some task waited for I/O.
    pub io_some_us: Option<u64>,
    /// All tasks waited for I/O.
    pub io_full_us: Option<u64>,
    /// Some task waited for memory.
    pub memory_some_us: Option<u64>,
    /// All tasks waited for memory.
    pub memory_full_us: Option<u64>,
}

/// How often our cgroup's CPU quota stopped us (`cpu.stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupThrottled {
    /// Quota periods that have passed.
    pub periods: u64,
    /// Periods in which we were stopped.
    pub throttled_periods: u64,
    /// Time stopped, summed over threads, microseconds.
    pub throttled_us: u64,
}

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// When the disks were read, on this process's clock ([`clock::now`]).
    pub t: Nanos,
    /// By device name, for those asked for that exist.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Flushes completed so far by the devices that [`Watch::flushes`] names; none when one of them does not count them.
    pub flushes: Option<u64>,
    /// CPU times of the machine.
    pub cpu: Option<CpuTimes>,
    /// This process's own I/O.
    pub own_io: Option<OwnIo>,
    /// CPU time of this process in clock ticks, all its threads, those that have ended included.
    pub own_cpu_ticks: Option<u64>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Pressure stall totals; none when the kernel is built or booted without PSI.
    pub psi: Option<Psi>,
    /// Pages written to but not yet on their way to storage, KiB.
    pub dirty_kb: Option<u64>,
    /// Pages on their way to storage, KiB.
    pub writeback_kb: Option<u64>,
    /// CPU quota of our cgroup; none without a quota controller.
    pub cgroup_throttled: Option<CgroupThrottled>,
}

/// Which devices a snapshot reads, by kernel name (`vda`, `nvme0n1`, `dm-0`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// Those whose transfers count as ours.
    pub disks: Vec<String>,
    /// Those whose flushes count as ours: where a sync arrives first, so that nobody else's is taken for it.
    pub flushes: Vec<String>,
}

/// Reads all counters: about 150 µs, no privilege. `watch`: usually [`crate::facts::Storage::watch`]; a device that does
/// not exist is left out of the answer.
pub fn snapshot(watch: &Watch) -> Snapshot {
    let own_io = files::text("/proc/self/io").and_then(|text| parse::own_io(&text));
    let (t, mut disks) = disks(watch);
    let flushes = watch.flushes.iter().map(|name| disks.get(name)?.flushes).collect::<Option<Vec<u64>>>();
    disks.retain(|name, _| watch.disks.contains(name));
    let (dirty_kb, writeback_kb) =
        files::text("/proc/meminfo").map_or((None, None), |text| parse::dirty(&text));
    Snapshot {
        t,
        disks,
        flushes: flushes.filter(|f| !f.is_empty()).map(|f| f.iter().sum()),
        cpu: files::text("/proc/stat").and_then(|text| parse::cpu(&text)),
        own_io,
        own_cpu_ticks: own_cpu(),
        load: files::text("/proc/loadavg").and_then(|text| parse::load(&text)),
        psi: psi(),
        dirty_kb,
        writeback_kb,
        cgroup_throttled: throttled(),
    }
}

/// All block devices as one watches them together: whole ones, by kernel name.
pub fn all_disks() -> Watch {
    Watch { disks: files::names("/sys/block"), flushes: Vec::new() }
}

/// Load averages over 1, 5 and 15 minutes.
pub fn load_average() -> Option<[f64; 3]> {
    files::text("/proc/loadavg").and_then(|text| parse::load(&text))
}

fn disks(watch: &Watch) -> (Nanos, BTreeMap<String, DiskCounters>) {
    if watch.disks.is_empty() && watch.flushes.is_empty() {
        return (clock::now(), BTreeMap::new());
    }
    let text = files::text("/proc/diskstats").unwrap_or_default();
    let t = clock::now();
    (
        t,
        parse::diskstats(&text)
            .filter(|(name, _)| watch.disks.iter().chain(&watch.flushes).any(|d| d == name))
            .map(|(n, c)| (n.to_owned(), c))
            .collect(),
    )
}

fn psi() -> Option<Psi> {
    let read = |name: &str| files::text(Path::new("/proc/pressure").join(name));
    let (cpu, io, memory) = (read("cpu"), read("io"), read("memory"));
    if cpu.is_none() && io.is_none() && memory.is_none() {
        return None;
    }
    let total = |text: &Option<String>, kind: &str| text.as_deref().and_then(|t| parse::pressure(t, kind));
    Some(Psi {
        cpu_some_us: total(&cpu, "some"),
        io_some_us: total(&io, "some"),
        io_full_us: total(&io, "full"),
        memory_some_us: total(&memory, "some"),
        memory_full_us: total(&memory, "full"),
    })
}

/// The place of our cgroup is looked up once: this process never changes its CPU cgroup.
fn throttled() -> Option<CgroupThrottled> {
    static FILE: OnceLock<Option<std::path::PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| cgroup::own_directory("cpu").map(|d| d.join("cpu.stat"))).as_ref()?;
    parse::cpu_stat(&files::text(file)?)
}

/// CPU time of this process and, once it has made a server, of all processes that come from it: what a server does is our own work.
fn own_cpu() -> Option<u64> {
    if !crate::server::any() {
        return parse::own_cpu(&files::text("/proc/self/stat")?);
    }
    let of = |name: &String| {
        let text = files::text(std::path::Path::new("/proc").join(name).join("stat"))?;
        Some((name.parse().ok()?, parse::family_cpu(&text)?))
    };
    let all: BTreeMap<u32, (u32, u64)> = files::names("/proc").iter().filter_map(of).collect();
    let ours = |pid: &u32| {
        let mut pid = *pid;
        // No chain is longer than there are processes.
        (0..all.len()).any(|_| {
            let found = pid == std::process::id();
            pid = all.get(&pid).map_or(0, |(parent, _)| *parent);
            found
        })
    };
    Some(all.iter().filter(|(pid, _)| ours(pid)).map(|(_, (_, ticks))| ticks).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_this_machine() {
        let watch = crate::facts::storage(Path::new("/")).watch();
        let seen = snapshot(&watch);
        assert!(seen.cpu.is_some_and(|c| c.user > 0 && c.idle > 0));
        assert!(seen.own_io.is_some_and(|o| o.rchar > 0));
        assert!(seen.own_cpu_ticks.is_some());
        assert!(seen.load.is_some() && seen.dirty_kb.is_some() && seen.writeback_kb.is_some());
        assert_eq!(seen.disks.len(), watch.disks.len());
        let absent =
            snapshot(&Watch { disks: vec!["no-such-disk".into()], flushes: vec!["no-such-disk".into()] });
        assert!(absent.disks.is_empty() && absent.flushes.is_none(), "an unknown device is absent, not zero");
    }
}
