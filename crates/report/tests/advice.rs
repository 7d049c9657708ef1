//! Advice on a flash cache: the sentence, the table, the picture.

mod support;

use record::json::{Value, json};
use record::{EstimateRow, Reader, Writer};
use std::path::Path;
use support::{experiment, facts, place};

/// Size in GiB, hit ratio, speed-up, each with half of its interval.
type Size = (u64, (f64, f64), Option<(f64, f64)>);

const SIZES: [Size; 5] = [
    (2, (0.31, 0.02), Some((1.4, 0.1))),
    (4, (0.52, 0.03), Some((1.7, 0.2))),
    (8, (0.71, 0.03), Some((2.1, 0.3))),
    (12, (0.755, 0.03), Some((2.3, 0.3))),
    (16, (0.76, 0.03), Some((2.3, 0.3))),
];

fn record(directory: &Path, name: &str, sizes: &[Size]) -> Reader {
    let path = place(directory, name);
    let mut writer = Writer::create(&path, &experiment("advise", "/hdd")).expect("create");
    facts(&mut writer, "sda", "ext4");
    let plan = json!({
        "source": "run order-entry", "block_bytes": 8192, "cache_bytes": 1u64 << 30, "policy": "scan_resistant", "reads": 812_345,
        "sampled_share": 0.125, "read_bytes_distinct": 14.2e9, "sessions": 10, "slow": "/hdd", "fast": "/ssd",
    });
    writer.plan(&plan).expect("plan");
    let seconds = json!({ "slow_read_seconds": 0.0061, "slow_read_seconds_loaded": 0.041, "fast_read_seconds": 92e-6,
                          "fast_read_seconds_loaded": 120e-6, "unfitted": null });
    if sizes.iter().any(|size| size.2.is_some()) {
        writer.event("workload", &seconds).expect("event");
    }
    for (gib, hits, speed_up) in sizes {
        let row = |metric: &str, (value, half): (f64, f64)| EstimateRow {
            metric: format!("{metric}_{}", gib << 30),
            value,
            low: Some(value - half),
            high: Some(value + half),
            level: Some(0.95),
            unit: "of reads".into(),
            ..EstimateRow::default()
        };
        writer.estimate(&row("flash_hit_ratio", *hits)).expect("estimate");
        if let Some(speed_up) = speed_up {
            writer.estimate(&row("flash_speed_up", *speed_up)).expect("estimate");
        }
    }
    let lru: Vec<_> =
        (1..=16).map(|gib| json!([f64::from(gib) * 1073741824.0, f64::from(gib) / 22.0])).collect();
    writer.event("lru_curve", &json!({ "points": lru })).expect("event");
    writer.finish("finished").expect("finish");
    Reader::open(&path).expect("open")
}

fn text(reader: &Reader, width: usize) -> String {
    report::terminal(std::slice::from_ref(reader), width, false).expect("text")
}

#[test]
fn the_sentence_names_a_size_what_it_serves_and_where_it_ends() {
    let folder = tempfile::tempdir().expect("folder");
    let reader = record(folder.path(), "advise", &SIZES);
    let shown = text(&reader, 400);
    let headline = "A flash cache of 8 GiB would serve 71 % [68–74] of the reads that a buffer cache of 1 GiB leaves and make this 2.10 × \
                    [1.80–2.40] as fast; beyond 12 GiB nothing more is gained.";
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(headline), "{flat}");
    assert!(flat.contains("A read takes 6100 µs where the data files are (/hdd; 41.0 ms with all sessions reading) and 92.0 µs where the flash cache would be (/ssd; 120 µs"), "{flat}");
    assert!(
        flat.contains("From 812,300 reads of run order-entry (12 % of the blocks were followed)"),
        "{flat}"
    );
    for width in [60, 80, 110] {
        let widest = text(&reader, width).lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= width, "{width}: {widest}");
    }
}

#[test]
fn without_devices_nothing_is_said_of_speed() {
    let folder = tempfile::tempdir().expect("folder");
    let sizes = SIZES.map(|(gib, hits, _)| (gib, hits, None));
    let shown = text(&record(folder.path(), "advise", &sizes), 100);
    assert!(shown.contains("--fast 90us") && !shown.contains("as fast"), "{shown}");
}

#[test]
fn what_does_not_help_is_said() {
    let folder = tempfile::tempdir().expect("folder");
    let sizes = SIZES.map(|(gib, ..)| (gib, (0.004, 0.002), Some((1.0, 0.01))));
    let shown = text(&record(folder.path(), "advise", &sizes), 400);
    assert!(
        shown.contains("A flash cache would not help: even one of 16 GiB would serve 0 % [0–1]"),
        "{shown}"
    );
}

#[test]
fn page_and_json_say_the_same() {
    let folder = tempfile::tempdir().expect("folder");
    let reader = [record(folder.path(), "advise", &SIZES)];
    let html = report::html(&reader).expect("html");
    for part in ["id=\"sizes\"", "scan_resistant", "LRU", "16 GiB", "[68.0–74.0]"] {
        assert!(html.contains(part), "{part} is missing");
    }
    assert!(!html.contains("NaN"));
    for head in html.split("scope=\"col\">").skip(1) {
        let head = head.split("</th>").next().unwrap_or_default();
        assert!(report::COLUMNS.contains(&head), "{head:?} is not in COLUMNS");
    }
    let json: Value = record::json::from_str(&report::json(&reader).expect("json")).expect("JSON");
    let advice = &json["advice"];
    assert_eq!(advice["choice_bytes"], 8u64 << 30);
    assert_eq!(advice["enough_bytes"], 12u64 << 30);
    assert_eq!(advice["sizes"][2]["speed_up"]["high"], 2.4);
    assert_eq!(advice["fast"]["name"], "/ssd");
}
