//! Each doubt with the numbers that must raise it, most of them measured once on a real machine (section 7).

use super::*;
use crate::steady::{Assessment, Class};

#[track_caller]
fn expect(check: &Check, id: &str, status: Status, words: &[&str]) {
    assert_eq!((check.id, check.status), (id, status), "{check:?}");
    for word in words {
        assert!(check.evidence.contains(word), "{word:?} is missing in {:?}", check.evidence);
    }
    assert!(check.evidence.ends_with('.') && check.evidence.len() > 15, "{:?}", check.evidence);
    assert!(!check.threshold.is_empty() && !check.title.is_empty());
}

#[test]
fn twenty_microseconds_at_25547_per_second_cannot_be() {
    let check = little_imported(25_547.0, 20_000.0, Some(9.6));
    expect(&check, "L2", Status::Fail, &["25,547/s", "20.0 µs", "0.51", "9.6", "376 µs"]);
    assert!(check.withdraws());
    expect(&little_imported(27_066.0, 355_000.0, Some(9.6)), "L2", Status::Pass, &["9.61"]);
    expect(&little_imported(27_066.0, 355_000.0, None), "L2", Status::NotApplicable, &["9.61"]);
    expect(&little_imported(10_000.0, 90_000.0, Some(2.0)), "L2", Status::Fail, &["0.90"]);
    expect(&little_imported(1_000.0, 30e6, Some(10.0)), "L2", Status::Fail, &["only 10.0"]);
    expect(&little_imported(1_000.0, 6e6, Some(10.0)), "L2", Status::Warn, &[]);
}

#[test]
fn little_on_our_own_load() {
    expect(&little_own(28_560.0, 140_056.0, 4.0), "L1", Status::Pass, &["4.00"]);
    expect(&little_own(28_560.0, 126_000.0, 4.0), "L1", Status::Warn, &["did not keep"]);
    expect(&little_own(28_560.0, 70_000.0, 4.0), "L1", Status::Fail, &[]);
    expect(&little_own(28_560.0, 250_000.0, 4.0), "L1", Status::Fail, &["reaped late"]);
    expect(&little_own(0.0, 0.0, 4.0), "L1", Status::NotApplicable, &[]);
    expect(&little_device(1_000.0, 1e6, Some(1.05)), "L3", Status::Pass, &[]);
    expect(&little_device(1_000.0, 1e6, Some(2.0)), "L3", Status::Warn, &[]);
    expect(&little_device(1_000.0, 1e6, None), "L3", Status::NotApplicable, &[]);
}

/// The table of section 7: what Little's law lets through, the funnel stops.
#[test]
fn the_funnel_on_measured_targets() {
    let rows: [(&str, f64, f64, f64, Status); 5] = [
        ("written random data", 28_560.0, 140_000.0, 1.0007, Status::Pass),
        ("sparse", 844_139.0, 4_600.0, 0.0, Status::Fail),
        ("allocated, never written", 419_591.0, 9_300.0, 0.0, Status::Fail),
        ("buffered, half cold", 46_509.0, 86_000.0, 0.78, Status::Fail),
        ("page cache", 229_000.0, 17_000.0, 0.002, Status::Fail),
    ];
    for (name, rate, latency, per_request, status) in rows {
        let requests = (rate * 10.0) as u64;
        let device = (requests as f64 * per_request) as u64;
        assert_eq!(little_own(rate, latency, 4.0).status, Status::Pass, "{name}: Little's law cannot see it");
        assert_eq!(funnel_ops(requests, Some(device), 1.0).status, status, "{name}");
        assert_eq!(funnel_bytes(requests * 8192, Some(device * 8192)).status, status, "{name}");
    }
}

#[test]
fn the_funnel_names_causes() {
    expect(&funnel_ops(1_000, Some(900), 1.0), "F1", Status::Warn, &["1,000", "0.9000", "cache"]);
    expect(&funnel_ops(1_000, Some(1_500), 1.0), "F1", Status::Warn, &["split"]);
    expect(&funnel_ops(1_000, Some(2_000), 2.0), "F1", Status::Pass, &[]);
    expect(&funnel_ops(1_000, None, 1.0), "F1", Status::NotApplicable, &["counter"]);
    expect(&funnel_ops(0, Some(5), 1.0), "F1", Status::NotApplicable, &[]);
    expect(&funnel_bytes(1_000, Some(2_000)), "F2", Status::Warn, &["read-ahead"]);
    expect(&funnel_bytes(1_000, None), "F2", Status::NotApplicable, &[]);
    expect(&own_physical(1_000_000, Some(1_000_000), Some(1_005_000)), "F3", Status::Pass, &["0.5 %"]);
    expect(&own_physical(1_000_000, Some(1_000_000), Some(1_050_000)), "F3", Status::Warn, &["others"]);
    expect(&own_physical(1_000_000, Some(1_000_000), Some(2_000_000)), "F3", Status::Fail, &["50.0 %"]);
    expect(&own_physical(1_000_000, Some(0), None), "F3", Status::Fail, &["cache"]);
    expect(&own_physical(1_000_000, None, None), "F3", Status::NotApplicable, &[]);
    expect(&conservation(10, 10, 10, 0), "F4", Status::Pass, &[]);
    expect(&conservation(10, 10, 9, 0), "F4", Status::Fail, &["lost"]);
    expect(&conservation(10, 10, 10, 1), "F4", Status::Fail, &["1 intervals"]);
}

#[test]
fn physics() {
    expect(&wire(700e6, Some(550e6), "SATA"), "P1", Status::Fail, &["700 MB/s", "SATA", "cache"]);
    expect(&wire(540e6, Some(550e6), "SATA"), "P1", Status::Pass, &[]);
    expect(&wire(540e6, None, "SATA"), "P1", Status::NotApplicable, &[]);
    expect(&medium(120e3, Medium::Rotating), "P2", Status::Fail, &["120 µs", "rotating"]);
    expect(&medium(5e6, Medium::Rotating), "P2", Status::Pass, &[]);
    expect(&medium(20e3, Medium::NvmeFlash), "P2", Status::Warn, &[]);
    expect(&medium(5e3, Medium::NvmeFlash), "P2", Status::Fail, &[]);
    expect(&medium(30e3, Medium::SataFlash), "P2", Status::Fail, &[]);
    expect(&medium(100e3, Medium::Network { round_trip_ns: 200e3 }), "P2", Status::Fail, &["round trip"]);
    expect(&medium(5e3, Medium::Unknown), "P2", Status::NotApplicable, &[]);
    expect(&near_memory(4_600.0, Some(3_000.0)), "P3", Status::Fail, &["memory"]);
    expect(&near_memory(90e3, Some(3_000.0)), "P3", Status::Pass, &[]);
    expect(&near_memory(90e3, None), "P3", Status::NotApplicable, &[]);
    expect(&memory_file_system("tmpfs"), "P4", Status::Fail, &["tmpfs", "memory"]);
    expect(&memory_file_system("ext4"), "P4", Status::Pass, &["ext4"]);
}

#[test]
fn data() {
    expect(&holes(1 << 30, Some(0), Some(1 << 29)), "D1", Status::Fail, &["50.0 %", "zeros"]);
    expect(&holes(1 << 30, Some(1 << 30), Some(0)), "D1", Status::Fail, &[]);
    expect(&holes(1 << 30, Some(0), Some(4096)), "D1", Status::Pass, &[]);
    expect(&holes(1 << 30, None, Some(0)), "D1", Status::Pass, &["only one"]);
    expect(&holes(1 << 30, None, None), "D1", Status::NotApplicable, &["F1"]);
    expect(&wrong_data(10_000, 1, "torn"), "D2", Status::Fail, &["10,000", "torn"]);
    expect(&wrong_data(10_000, 0, "stamp"), "D2", Status::Pass, &[]);
    expect(&wrong_data(0, 0, "stamp"), "D2", Status::NotApplicable, &[]);
    expect(&discarded(Some(true), Some(false)), "D3", Status::Pass, &[]);
    expect(&discarded(Some(true), None), "D3", Status::Pass, &["not counted"]);
    expect(&discarded(Some(true), Some(true)), "D3", Status::Fail, &[]);
    expect(&discarded(Some(false), None), "D3", Status::Fail, &[]);
    expect(&discarded(None, None), "D3", Status::NotApplicable, &[]);
    expect(&reducible(100.0, Some(120.0)), "D4", Status::Warn, &["1.20"]);
    expect(&reducible(100.0, Some(101.0)), "D4", Status::Pass, &[]);
    expect(&reducible(100.0, None), "D4", Status::NotApplicable, &[]);
}

#[test]
fn caches() {
    expect(&size_against_caches(1 << 30, Some(24 << 30)), "S1", Status::Warn, &["1 GiB", "24 GiB", "0.04"]);
    expect(&size_against_caches(48 << 30, Some(24 << 30)), "S1", Status::Pass, &[]);
    expect(&size_against_caches(1 << 30, None), "S1", Status::NotApplicable, &[]);
    expect(&comparable_sizes(1 << 30, 1 << 30), "S1", Status::Pass, &[]);
    expect(&comparable_sizes(1 << 30, 1 << 31), "S1", Status::Fail, &["smaller"]);
    expect(&residency(Some(0.3)), "S2", Status::Fail, &["30.0 %"]);
    expect(&residency(Some(0.0)), "S2", Status::Pass, &[]);
    expect(&residency(None), "S2", Status::NotApplicable, &[]);
}

#[test]
fn host() {
    expect(&steal(Some(0.10), None), "H1", Status::Fail, &["10.0 %", "hypervisor"]);
    expect(&steal(Some(0.03), None), "H1", Status::Warn, &["neighbours"]);
    expect(&steal(Some(0.0), Some(30.0)), "H1", Status::Warn, &["30.0 %", "short"]);
    expect(&steal(None, Some(1.0)), "H1", Status::Pass, &["unknown"]);
    expect(&steal(None, None), "H1", Status::NotApplicable, &[]);
    expect(&pause(Some(12e6)), "H2", Status::Fail, &["12.0 ms"]);
    expect(&pause(Some(2e6)), "H2", Status::Warn, &[]);
    expect(&pause(Some(60e3)), "H2", Status::Pass, &[]);
    expect(&pause(None), "H2", Status::NotApplicable, &[]);
    let measured = generator_bound(Some(0.6), 8.0, 475e3, Some((2.0, 116e3)));
    expect(&measured, "H3", Status::Warn, &["116 µs", "475 µs", "limit of the host"]);
    expect(&generator_bound(Some(0.95), 8.0, 475e3, None), "H3", Status::Warn, &["95.0 %"]);
    expect(&generator_bound(Some(0.2), 8.0, 475e3, Some((7.6, 450e3))), "H3", Status::Pass, &[]);
    expect(&generator_bound(None, 8.0, 475e3, None), "H3", Status::NotApplicable, &[]);
    expect(&others(Some(0.4)), "H5", Status::Fail, &["40.0 %", "queued behind"]);
    expect(&others(Some(0.15)), "H5", Status::Warn, &[]);
    expect(&others(Some(0.02)), "H5", Status::Pass, &[]);
    expect(&others(None), "H5", Status::NotApplicable, &[]);
    expect(&frequency(Some(-0.2), None), "H4", Status::Warn, &["20.0 %"]);
    expect(&frequency(Some(0.0), Some(0)), "H4", Status::Pass, &[]);
    expect(&frequency(None, None), "H4", Status::NotApplicable, &[]);
}

#[test]
fn limits() {
    let flat = [3_000.0, 3_001.0, 2_999.0, 3_000.0, 3_000.0, 3_001.0];
    expect(
        &throttle_cap(&flat, &[(16, 5.33e6), (64, 21.3e6)]),
        "Q1",
        Status::Warn,
        &["round number 3000", "somebody set"],
    );
    let alive = [3_000.0, 3_100.0, 2_900.0, 3_050.0, 2_950.0];
    expect(&throttle_cap(&alive, &[(16, 5.33e6), (64, 21.3e6)]), "Q1", Status::Pass, &[]);
    expect(&throttle_cap(&flat, &[(16, 5.33e6), (64, 40e6)]), "Q1", Status::Pass, &[]);
    expect(&throttle_cap(&flat, &[(16, 5.33e6)]), "Q1", Status::NotApplicable, &[]);
    expect(&throttle_cap(&flat, &[]), "Q1", Status::NotApplicable, &[]);
    expect(&cgroup_limit(Some("io.max 8:0 riops=3000")), "Q1-cgroup", Status::Warn, &["riops=3000"]);
    expect(&cgroup_limit(None), "Q1-cgroup", Status::Pass, &[]);
    expect(&queue_limit(128, Some(64), "nr_requests"), "Q3", Status::Warn, &["from 64 on"]);
    expect(&queue_limit(32, Some(64), "nr_requests"), "Q3", Status::Pass, &[]);
    expect(&queue_limit(32, None, "nr_requests"), "Q3", Status::NotApplicable, &[]);
}

#[test]
fn durability() {
    expect(
        &volatile_cache(Some("write back"), Some(1_010), 1_000, 104e3, None),
        "W1",
        Status::Pass,
        &["1.01", "not proven"],
    );
    expect(
        &volatile_cache(Some("write back\n"), Some(0), 1_000, 104e3, None),
        "W1",
        Status::Fail,
        &["0.00 flushes", "power cut"],
    );
    expect(
        &volatile_cache(Some("write back"), Some(1_000), 1_000, 4e3, None),
        "W1",
        Status::Fail,
        &["4.00 µs"],
    );
    expect(&volatile_cache(Some("write back"), None, 1_000, 4e3, None), "W1", Status::Fail, &[]);
    expect(&volatile_cache(Some("write through"), Some(0), 1_000, 104e3, None), "W1", Status::Pass, &[]);
    expect(&volatile_cache(None, None, 1_000, 4e3, None), "W1", Status::Warn, &[]);
    expect(&volatile_cache(None, None, 1_000, 104e3, None), "W1", Status::NotApplicable, &[]);
    expect(
        &volatile_cache(Some("write back"), None, 1_000, 104e3, None),
        "W1",
        Status::NotApplicable,
        &["not counted"],
    );
    expect(
        &volatile_cache(Some("write back"), Some(1_000), 1_000, 1e6, Some(7_200.0)),
        "W1",
        Status::Fail,
        &["7200 turns"],
    );
    expect(
        &volatile_cache(Some("write back"), Some(1_000), 1_000, 9e6, Some(7_200.0)),
        "W1",
        Status::Pass,
        &[],
    );
    expect(&volatile_cache(None, None, 0, 0.0, None), "W1", Status::NotApplicable, &[]);
    expect(&same_durability("O_DSYNC", "not synced"), "W2", Status::Fail, &["not comparable"]);
    expect(&same_durability("O_DSYNC", "fdatasync"), "W2", Status::Pass, &[]);
}

#[test]
fn device() {
    expect(&alignment(Some(1 << 20), 8192, Some(4096)), "A1", Status::Pass, &[]);
    expect(&alignment(Some(512), 8192, Some(4096)), "A1", Status::Warn, &["read and a write"]);
    expect(&alignment(None, 8192, Some(4096)), "A1", Status::NotApplicable, &[]);
    expect(&merges(Some(500), 10_000), "A2", Status::Warn, &["5.0 %"]);
    expect(&merges(Some(5), 10_000), "A2", Status::Pass, &[]);
    expect(&merges(None, 10_000), "A2", Status::NotApplicable, &[]);
    expect(&read_ahead(Some(131_072.0), 8192, Some(128)), "A3", Status::Warn, &["128 KiB"]);
    expect(&read_ahead(Some(8192.0), 8192, None), "A3", Status::Pass, &[]);
    expect(&read_ahead(None, 8192, None), "A3", Status::NotApplicable, &[]);
    expect(&temperature(Some(8.0), None), "T1", Status::Warn, &["+8 K"]);
    expect(&temperature(Some(1.0), Some(0)), "T1", Status::Pass, &[]);
    expect(&temperature(None, None), "T1", Status::NotApplicable, &[]);
    expect(&errors(3, Some("EIO at 4096")), "E1", Status::Fail, &["EIO at 4096"]);
    expect(&errors(3, None), "E1", Status::Fail, &[]);
    expect(&errors(0, None), "E1", Status::Pass, &[]);
    expect(
        &slow_member(&[("sda", 5e6), ("sdb", 5.2e6), ("sdc", 14e6)]),
        "E2",
        Status::Warn,
        &["sdc", "SMART"],
    );
    expect(&slow_member(&[("sda", 5e6), ("sdb", 5.2e6), ("sdc", 6e6)]), "E2", Status::Pass, &[]);
    expect(&slow_member(&[("sda", 5e6)]), "E2", Status::NotApplicable, &[]);
    let rise = [Rise { disk: "sda".into(), counter: "media errors".into(), before: 7, after: 9 }];
    let failing = ["sda: the disk's self-assessment is FAILED".to_owned()];
    expect(
        &disk_health(0, &[], &[], None, "No disk beneath tells its health: vda is virtual."),
        "E3",
        Status::NotApplicable,
        &["virtual"],
    );
    expect(&disk_health(1, &[], &[], None, ""), "E3", Status::Pass, &["none says that it fails"]);
    expect(
        &disk_health(1, &[], &rise, None, ""),
        "E3",
        Status::Fail,
        &["media errors of sda rose from 7 to 9"],
    );
    expect(&disk_health(1, &[], &rise, Some("4 visits are left out"), ""), "E3", Status::Warn, &["4 visits"]);
    expect(&disk_health(1, &failing, &rise, Some("x"), ""), "E3", Status::Fail, &["FAILED", "from 7 to 9"]);
    let wrong = "/d/users.dbf block 7: lost: expected LSN 9, found LSN 5";
    expect(&read_back(0, 0, None, 0, false), "D5", Status::NotApplicable, &["none was read back"]);
    expect(
        &read_back(12_345, 0, None, 0, false),
        "D5",
        Status::Pass,
        &["12,345 blocks written were read back"],
    );
    expect(&read_back(12_345, 0, None, 2, false), "D5", Status::Warn, &["2 files", "page cache"]);
    expect(&read_back(12, 0, None, 0, true), "D5", Status::NotApplicable, &["stopped after 12"]);
    expect(&read_back(12, 3, Some(wrong), 0, true), "D5", Status::Fail, &["3 of 12", "block 7: lost"]);
}

#[test]
fn series_and_work() {
    let of = |class, proven| Assessment {
        class,
        proven,
        drift_percent_per_minute: -1.5,
        window_start: 0,
        mean: 1.0,
        period: None,
    };
    expect(&super::steady(&of(Class::Flat, true)), "S3", Status::Pass, &["flat", "-1.50 %"]);
    expect(&super::steady(&of(Class::Flat, false)), "S3", Status::Warn, &["not shown"]);
    expect(&super::steady(&of(Class::Slowdown, true)), "S3", Status::Warn, &[]);
    expect(&super::steady(&of(Class::Drift, false)), "S3", Status::Fail, &["drift"]);
    expect(&super::steady(&of(Class::TooShort, false)), "S3", Status::NotApplicable, &[]);
    expect(
        &super::steady(&Assessment { period: Some(45), ..of(Class::Periodic, true) }),
        "S3",
        Status::Pass,
        &["45 intervals"],
    );
    expect(&burst(&of(Class::Slowdown, true)), "Q2", Status::Warn, &["later number"]);
    expect(&burst(&of(Class::Flat, true)), "Q2", Status::Pass, &[]);
    expect(&burst(&of(Class::TooShort, false)), "Q2", Status::NotApplicable, &[]);
    expect(&anchor(Some(100e3), Some(102e3)), "B1", Status::Pass, &["100 µs", "102 µs"]);
    expect(&anchor(Some(100e3), Some(90e3)), "B1", Status::Warn, &["side by side"]);
    expect(&anchor(Some(100e3), Some(200e3)), "B1", Status::Fail, &["100.0 %"]);
    expect(&anchor(None, Some(1.0)), "B1", Status::NotApplicable, &[]);
    expect(&equal_work("Device reads per job", Some(1_000.0), Some(1_020.0)), "J1", Status::Pass, &["1,020"]);
    expect(
        &equal_work("Device reads per job", Some(1_000.0), Some(500.0)),
        "J1",
        Status::Fail,
        &["different work"],
    );
    expect(&equal_work("Device reads per job", Some(0.0), Some(0.0)), "J1", Status::Pass, &[]);
    expect(&equal_work("Device reads per job", Some(0.0), Some(9.0)), "J1", Status::Fail, &[]);
    expect(&equal_work("Device reads per job", None, Some(9.0)), "J1", Status::NotApplicable, &[]);
    expect(&job_time(10.0, &[("CPU", 3.0), ("reads", 6.5)]), "J1-time", Status::Pass, &["reads 65.0 %"]);
    expect(&job_time(10.0, &[("CPU", 3.0)]), "J1-time", Status::Fail, &["unexplained"]);
    expect(&job_time(10.0, &[]), "J1-time", Status::NotApplicable, &[]);
}

#[test]
fn words() {
    let all = [Status::Pass, Status::Warn, Status::Fail, Status::NotApplicable].map(|s| s.to_string());
    assert_eq!(all, ["pass", "warn", "fail", "not applicable"]);
    assert_eq!([Severity::Integrity, Severity::Context].map(|s| s.to_string()), ["integrity", "context"]);
    assert_eq!(
        [0.0, 999.0, 1_000.0, 25_547.0, 1_234_567.0, -1_500.0].map(grouped),
        ["0", "999", "1,000", "25,547", "1,234,567", "-1,500"]
    );
}
