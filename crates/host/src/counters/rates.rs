//! From two readings to rates, as `iostat -x` and `mpstat` compute them.

use super::{CpuTimes, DiskCounters, Snapshot};

/// Rates between two readings of one device; names as in `iostat -x`. Kilobytes are 1024 bytes. A mean is none when
/// nothing completed, a column is none when the kernel has no such counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskRates {
    /// Reads per second.
    pub r_s: f64,
    /// Writes per second.
    pub w_s: f64,
    /// KiB read per second.
    pub rkb_s: f64,
    /// KiB written per second.
    pub wkb_s: f64,
    /// Reads merged per second.
    pub rrqm_s: f64,
    /// Writes merged per second.
    pub wrqm_s: f64,
    /// Mean time of a read, queue included, milliseconds.
    pub r_await_ms: Option<f64>,
    /// Mean time of a write, queue included, milliseconds.
    pub w_await_ms: Option<f64>,
    /// Mean requests in flight.
    pub aqu_sz: f64,
    /// Share of time with something in flight; approximate since kernel 5.0, never evidence.
    pub util_percent: f64,
    /// Discards per second.
    pub d_s: Option<f64>,
    /// KiB discarded per second.
    pub dkb_s: Option<f64>,
    /// Mean time of a discard, milliseconds.
    pub d_await_ms: Option<f64>,
    /// Flushes per second.
    pub flush_s: Option<f64>,
    /// Mean time of a flush, milliseconds.
    pub f_await_ms: Option<f64>,
}

/// Rates from `a` to the later `b`, `seconds` apart (> 0). Millisecond fields wrap at 2³² in the kernel and are
/// unwrapped; a count that went backwards (a device replaced by another of the same name) gives zero.
///
/// Source: sysstat 12 `rd_stats.c`, `compute_ext_disk_stats`; kernel `Documentation/admin-guide/iostats.rst`.
pub fn rates(a: &DiskCounters, b: &DiskCounters, seconds: f64) -> DiskRates {
    let per_second = |old: u64, new: u64| new.saturating_sub(old) as f64 / seconds;
    let mean_ms = |count: u64, ms: u64| (count > 0).then(|| ms as f64 / count as f64);
    let both = |old: Option<u64>, new: Option<u64>| Some((old?, new?));
    let mean_of = |n: Option<(u64, u64)>, ms: Option<(u64, u64)>| {
        let ((n_old, n_new), (ms_old, ms_new)) = (n?, ms?);
        mean_ms(n_new.saturating_sub(n_old), wrapped(ms_old, ms_new))
    };
    DiskRates {
        r_s: per_second(a.reads, b.reads),
        w_s: per_second(a.writes, b.writes),
        rkb_s: per_second(a.sectors_read, b.sectors_read) / 2.0,
        wkb_s: per_second(a.sectors_written, b.sectors_written) / 2.0,
        rrqm_s: per_second(a.reads_merged, b.reads_merged),
        wrqm_s: per_second(a.writes_merged, b.writes_merged),
        r_await_ms: mean_ms(b.reads.saturating_sub(a.reads), wrapped(a.read_ms, b.read_ms)),
        w_await_ms: mean_ms(b.writes.saturating_sub(a.writes), wrapped(a.write_ms, b.write_ms)),
        aqu_sz: wrapped(a.weighted_ms, b.weighted_ms) as f64 / (seconds * 1e3),
        util_percent: (wrapped(a.io_ms, b.io_ms) as f64 / (seconds * 10.0)).min(100.0),
        d_s: both(a.discards, b.discards).map(|(old, new)| per_second(old, new)),
        dkb_s: both(a.sectors_discarded, b.sectors_discarded).map(|(old, new)| per_second(old, new) / 2.0),
        d_await_ms: mean_of(both(a.discards, b.discards), both(a.discard_ms, b.discard_ms)),
        flush_s: both(a.flushes, b.flushes).map(|(old, new)| per_second(old, new)),
        f_await_ms: mean_of(both(a.flushes, b.flushes), both(a.flush_ms, b.flush_ms)),
    }
}

/// Growth of a counter that the kernel prints modulo 2³².
fn wrapped(old: u64, new: u64) -> u64 {
    if new >= old {
        new - old
    } else if old <= u64::from(u32::MAX) && old - new > 1 << 31 {
        new + (1 << 32) - old
    } else {
        0
    }
}

/// Shares of CPU time between two readings, 0 to 1 of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuShares {
    /// Running: user, nice, system and interrupts.
    pub busy: f64,
    /// In the kernel, interrupts included.
    pub system: f64,
    /// Idle while a task waits for I/O.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

/// Shares from `a` to the later `b`; none when no tick has passed.
pub fn cpu_shares(a: &CpuTimes, b: &CpuTimes) -> Option<CpuShares> {
    let grown = |field: fn(&CpuTimes) -> u64| field(b).saturating_sub(field(a));
    let interrupts = grown(|c| c.irq) + grown(|c| c.softirq);
    let system = grown(|c| c.system) + interrupts;
    let busy = grown(|c| c.user) + grown(|c| c.nice) + system;
    let (iowait, steal) = (grown(|c| c.iowait), grown(|c| c.steal));
    let total = busy + grown(|c| c.idle) + iowait + steal;
    let share = |ticks: u64| ticks as f64 / total as f64;
    (total > 0).then(|| CpuShares {
        busy: share(busy),
        system: share(system),
        iowait: share(iowait),
        steal: share(steal),
    })
}

/// Share of the machine's CPU time that other processes used between two snapshots; interrupts, which belong to nobody,
/// are left out. None when a source is missing or no tick has passed.
pub fn others_cpu_share(a: &Snapshot, b: &Snapshot) -> Option<f64> {
    let (old, new) = (a.cpu.as_ref()?, b.cpu.as_ref()?);
    let shares = cpu_shares(old, new)?;
    let grown = |field: fn(&CpuTimes) -> u64| field(new).saturating_sub(field(old)) as f64;
    let running = grown(|c| c.user) + grown(|c| c.nice) + grown(|c| c.system);
    let busy = running + grown(|c| c.irq) + grown(|c| c.softirq);
    let own = b.own_cpu_ticks?.saturating_sub(a.own_cpu_ticks?) as f64;
    // busy ticks / busy share = all ticks
    (busy > 0.0).then(|| (running - own).max(0.0) * shares.busy / busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_our_own_cpu_time_from_that_of_others() {
        let at = |user, idle, own| Snapshot {
            cpu: Some(CpuTimes { user, idle, ..CpuTimes::default() }),
            own_cpu_ticks: own,
            ..Snapshot::default()
        };
        let share = others_cpu_share(&at(0, 0, Some(0)), &at(60, 40, Some(20)));
        assert!(share.is_some_and(|s| (s - 0.4).abs() < 1e-9), "{share:?}");
        assert_eq!(others_cpu_share(&at(0, 0, None), &at(60, 40, Some(20))), None);
    }

    /// Two readings of vda two seconds apart, and what `iostat -x 2` printed for them: worked by hand.
    #[test]
    fn agrees_with_iostat() {
        let a = DiskCounters {
            reads: 1_000,
            sectors_read: 16_000,
            read_ms: 500,
            flushes: Some(10),
            flush_ms: Some(20),
            ..DiskCounters::default()
        };
        let b = DiskCounters {
            reads: 3_000,
            sectors_read: 48_000,
            read_ms: 1_000,
            writes: 100,
            sectors_written: 800,
            write_ms: 50,
            io_ms: 1_500,
            weighted_ms: 8_000,
            flushes: Some(30),
            flush_ms: Some(60),
            ..a
        };
        let r = rates(&a, &b, 2.0);
        assert_eq!((r.r_s, r.rkb_s, r.r_await_ms), (1_000.0, 8_000.0, Some(0.25)));
        assert_eq!((r.w_s, r.wkb_s, r.w_await_ms), (50.0, 200.0, Some(0.5)));
        assert_eq!((r.aqu_sz, r.util_percent), (4.0, 75.0));
        assert_eq!((r.flush_s, r.f_await_ms, r.d_s, r.d_await_ms), (Some(10.0), Some(2.0), None, None));
    }

    #[test]
    fn nothing_completed_has_no_mean() {
        let r = rates(&DiskCounters::default(), &DiskCounters::default(), 1.0);
        assert_eq!((r.r_s, r.r_await_ms, r.flush_s), (0.0, None, None));
    }

    #[test]
    fn milliseconds_wrap_and_counts_do_not() {
        let a = DiskCounters { reads: 10, read_ms: u64::from(u32::MAX) - 99, ..DiskCounters::default() };
        let b = DiskCounters { reads: 20, read_ms: 100, ..DiskCounters::default() };
        assert_eq!(rates(&a, &b, 1.0).r_await_ms, Some(20.0));
        assert_eq!(rates(&b, &a, 1.0).r_s, 0.0, "a device of the same name that starts anew");
    }

    #[test]
    fn cpu_shares_sum_to_one() {
        let a = CpuTimes::default();
        let b =
            CpuTimes { user: 30, nice: 0, system: 10, idle: 40, iowait: 10, irq: 0, softirq: 5, steal: 5 };
        let expected = CpuShares { busy: 0.45, system: 0.15, iowait: 0.10, steal: 0.05 };
        assert_eq!(cpu_shares(&a, &b), Some(expected));
        assert_eq!(cpu_shares(&a, &a), None);
    }
}
