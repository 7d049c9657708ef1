//! The formats of /proc and cgroup counters, from text alone.

use super::{CgroupThrottled, CpuTimes, DiskCounters, OwnIo};

/// Every line of `/proc/diskstats` as (name, counters). Lines with fewer than the eleven fields of 2.6 are left out.
pub(super) fn diskstats(text: &str) -> impl Iterator<Item = (&str, DiskCounters)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name = words.nth(2)?;
        let mut fields = words.map_while(|w| w.parse::<u64>().ok());
        let mut next = || fields.next();
        Some((
            name,
            DiskCounters {
                reads: next()?,
                reads_merged: next()?,
                sectors_read: next()?,
                read_ms: next()?,
                writes: next()?,
                writes_merged: next()?,
                sectors_written: next()?,
                write_ms: next()?,
                in_flight: next()?,
                io_ms: next()?,
                weighted_ms: next()?,
                discards: next(),
                discards_merged: next(),
                sectors_discarded: next(),
                discard_ms: next(),
                flushes: next(),
                flush_ms: next(),
            },
        ))
    })
}

/// The sum line of `/proc/stat`.
pub(super) fn cpu(text: &str) -> Option<CpuTimes> {
    let line = text.lines().find(|l| l.starts_with("cpu "))?;
    let mut fields = line.split_ascii_whitespace().skip(1).map_while(|w| w.parse::<u64>().ok());
    let mut next = || fields.next();
    Some(CpuTimes {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?,
        softirq: next()?,
        steal: next()?,
    })
}

/// `/proc/self/io`.
pub(super) fn own_io(text: &str) -> Option<OwnIo> {
    let get = |key| keyed(text, key, ':');
    Some(OwnIo {
        read_bytes: get("read_bytes")?,
        write_bytes: get("write_bytes")?,
        cancelled_write_bytes: get("cancelled_write_bytes")?,
        rchar: get("rchar")?,
        wchar: get("wchar")?,
        syscr: get("syscr")?,
        syscw: get("syscw")?,
    })
}

/// User and system time in `/proc/self/stat`, clock ticks. The second field is the command in brackets and may hold blanks,
/// so fields are counted from the last bracket.
pub(super) fn own_cpu(text: &str) -> Option<u64> {
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

/// Of a `/proc/N/stat`: number of the parent, and user and system time of the process and of its children that have ended, clock
/// ticks.
pub(super) fn family_cpu(text: &str) -> Option<(u32, u64)> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}

/// `/proc/loadavg`.
pub(super) fn load(text: &str) -> Option<[f64; 3]> {
    let mut words = text.split_ascii_whitespace().map_while(|w| w.parse::<f64>().ok());
    Some([words.next()?, words.next()?, words.next()?])
}

/// Microseconds of line `kind` (`some`, `full`) of a pressure file.
pub(super) fn pressure(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.split_ascii_whitespace().next() == Some(kind))?;
    line.split_ascii_whitespace().find_map(|w| w.strip_prefix("total="))?.parse().ok()
}

/// (dirty, writeback) of `/proc/meminfo`, KiB.
pub(super) fn dirty(text: &str) -> (Option<u64>, Option<u64>) {
    (keyed(text, "Dirty", ':'), keyed(text, "Writeback", ':'))
}

/// `cpu.stat` of cgroup v1 (`throttled_time` in ns) or v2 (`throttled_usec`). None when the group has no quota
/// controller: then the file has other lines only.
pub(super) fn cpu_stat(text: &str) -> Option<CgroupThrottled> {
    let get = |key| keyed(text, key, ' ');
    Some(CgroupThrottled {
        periods: get("nr_periods")?,
        throttled_periods: get("nr_throttled")?,
        throttled_us: get("throttled_usec").or_else(|| get("throttled_time").map(|ns| ns / 1_000))?,
    })
}

/// The number after `key` and `separator` on the line that starts with exactly that key.
fn keyed(text: &str, key: &str, separator: char) -> Option<u64> {
    let rest = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(separator))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_diskstats_of_three_ages() {
        let text = include_str!("../../testdata/diskstats");
        let all: Vec<_> = diskstats(text).collect();
        let names: Vec<&str> = all.iter().map(|(n, _)| *n).collect();
        assert_eq!(names, ["sda", "sda1", "nvme0n1", "vda", "cciss/c0d0"], "the torn line is left out");
        let vda = all[3].1;
        assert_eq!(
            (vda.reads, vda.reads_merged, vda.sectors_read, vda.read_ms),
            (116_321, 31_644, 4_283_738, 16_003)
        );
        assert_eq!(
            (vda.writes, vda.writes_merged, vda.sectors_written, vda.write_ms),
            (29_133, 18_413, 2_275_896, 6_970)
        );
        assert_eq!((vda.in_flight, vda.io_ms, vda.weighted_ms), (0, 12_408, 23_836));
        assert_eq!(
            (vda.discards, vda.discards_merged, vda.sectors_discarded),
            (Some(8_175), Some(79), Some(715_608))
        );
        assert_eq!((vda.discard_ms, vda.flushes, vda.flush_ms), (Some(644), Some(3_935), Some(217)));
        assert_eq!((all[0].1.discards, all[0].1.flushes), (None, None), "kernel 4.9 has eleven fields");
        assert_eq!((all[2].1.discards, all[2].1.flushes), (Some(5), None), "kernel 5.4 has fifteen");
    }

    #[test]
    fn reads_the_sum_of_the_cpus() {
        let times = cpu("cpu  4705 150 1120 16250 520 30 45 77 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 1 2\n");
        let expected = CpuTimes {
            user: 4705,
            nice: 150,
            system: 1120,
            idle: 16250,
            iowait: 520,
            irq: 30,
            softirq: 45,
            steal: 77,
        };
        assert_eq!(times, Some(expected));
        assert_eq!(cpu("cpu0 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(cpu("cpu  1 2 3\n"), None, "a short line is unknown, not zero");
    }

    #[test]
    fn reads_pressure_memory_load_and_quota() {
        let text = "some avg10=0.01 avg60=1.14 avg300=0.89 total=7910949\nfull avg10=0.00 avg60=1.13 avg300=0.86 total=7632171\n";
        assert_eq!((pressure(text, "some"), pressure(text, "full")), (Some(7_910_949), Some(7_632_171)));
        assert_eq!(pressure("some avg10=0.0", "some"), None);
        let memory =
            "MemTotal: 9 kB\nDirty:              1234 kB\nWriteback:             8 kB\nWritebackTmp: 99 kB\n";
        assert_eq!(dirty(memory), (Some(1234), Some(8)));
        assert_eq!(load("0.78 0.20 0.06 2/123 4567\n"), Some([0.78, 0.20, 0.06]));
        let v1 = "nr_periods 10\nnr_throttled 4\nthrottled_time 5000000\nwait_sum 3\n";
        let v2 = "usage_usec 9\nuser_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 5000\n";
        for text in [v1, v2] {
            assert_eq!(
                cpu_stat(text),
                Some(CgroupThrottled { periods: 10, throttled_periods: 4, throttled_us: 5_000 })
            );
        }
        assert_eq!(cpu_stat("usage_usec 9\n"), None);
    }

    #[test]
    fn reads_our_own_cpu_time() {
        let text = "4711 (a ) b) S 1 4711 4711 0 -1 4194560 1 2 3 4 250 75 0 0 20 0 1 0 100 0 0";
        assert_eq!(own_cpu(text), Some(325));
        assert_eq!(own_cpu("4711 (cut"), None);
        assert_eq!(
            family_cpu("7 (postgres: x) S 4711 7 7 0 -1 0 1 2 3 4 250 75 5 6 20 0 1"),
            Some((4711, 336))
        );
        assert_eq!(family_cpu("7 (cut) S 1"), None);
    }

    #[test]
    fn reads_our_own_io() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n";
        let expected = OwnIo {
            rchar: 1,
            wchar: 2,
            syscr: 3,
            syscw: 4,
            read_bytes: 5,
            write_bytes: 6,
            cancelled_write_bytes: 7,
        };
        assert_eq!(own_io(text), Some(expected));
        assert_eq!(own_io("rchar: 1\n"), None);
    }
}
