//! The collapse beyond the knee is found and named, and never reported as the maximum.

use crate::fuse::Trampling;
use crate::stage::{Stage, measuring};
use record::json::json;
use record::{CurvePointRow, EstimateRow, Experiment, Reader, Writer};
use stats::search::{Found, Plan, Stage as SearchStage, maximum};
use stats::sim::{Device, Noise, SimDevice};
use std::path::Path;
use units::{Bytes, Seed};

/// Many threads on few cores over a FUSE file system whose workers spin on a lock: real threads, real cores.
#[test]
fn on_a_real_oversubscribed_file_system() {
    let _turn = measuring();
    let stage = Stage::new();
    let mount_point = stage.folder().join("mount");
    std::fs::create_dir(&mount_point).expect("make the mount point");
    let file_system = Trampling::mount(&mount_point, Bytes::mib(256).0);
    let file = file_system.file();
    let done = stage.run(&["calibrate", file.to_str().expect("a plain path"), "--quick"]).ok();

    let reader = stage.reader();
    let estimates = reader.estimates().expect("estimates");
    let most = estimates.iter().find(|e| e.metric == "read_iops_max").expect("the maximum");
    let events = reader.events().expect("events");
    let collapse = events.iter().find(|e| e.kind == "collapse").unwrap_or_else(|| {
        panic!("no collapse was found; maximum {most:?}, curve {:?}", reader.curve_points().expect("curve"))
    });
    let (n, rate) = (collapse.json["n"].as_u64().expect("n"), collapse.json["rate"].as_f64().expect("rate"));
    assert!(rate < 0.5 * most.value, "{rate} is no collapse against {}", most.value);
    assert!(
        u64::from(most.in_flight.expect("in flight")) < n,
        "the maximum lies before the collapse at {n}: {most:?}"
    );
    named(&done.stdout);
}

/// The simulated device on which a calibration once reported 5,058 where 219,893 were to be had.
#[test]
fn on_a_simulated_device() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for seed in 0..5 {
        let mut device = SimDevice::new(Device::CpuCollapse, Noise::Typical, Seed(seed));
        let Ok(found) = maximum(&mut device, &Plan::standard(), Seed(seed), &mut |_| ());
        let collapse = found
            .collapse
            .clone()
            .unwrap_or_else(|| panic!("seed {seed}: no collapse in {:?}", found.points));
        assert!(collapse.share_of_max < 0.5 && collapse.n > found.n_best, "seed {seed}: {collapse:?}");
        let knee = found.n_knee.expect("a standard search looks for the knee");
        assert!(
            knee <= found.n_best && device.true_rate(knee) >= 0.9 * device.true_max().1,
            "seed {seed}: knee {knee}"
        );
        let path = folder.path().join(format!("{seed}.redoubt"));
        write(&path, &found);
        let text =
            report::terminal(&[Reader::open(&path).expect("the record")], 100, false).expect("the report");
        named(&text);
    }
}

/// A sentence says that it collapses, on how many threads or requests, and how far down.
fn named(text: &str) {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = words
        .split(['.', ':'])
        .find(|s| s.contains("collapse"))
        .unwrap_or_else(|| panic!("nothing names the collapse:\n{text}"));
    assert!(sentence.chars().any(|c| c.is_ascii_digit()), "a sentence without numbers: {sentence}");
}

/// The record of a search, as calibrate writes it.
fn write(path: &Path, found: &Found) {
    let experiment =
        Experiment { kind: "calibrate".into(), target: "a simulated device".into(), ..Experiment::default() };
    let mut writer = Writer::create(path, &experiment).expect("create the record");
    for point in &found.points {
        let row = CurvePointRow {
            series: "random reads of 8 KiB".into(),
            n: point.n,
            threads: point.n,
            depth: 1,
            stage: point.stage.to_string(),
            round: point.round,
            rate: point.rate,
            latency_mean_ns: point.latency_ns,
            sd: point.sd,
            seconds: point.seconds,
        };
        writer.curve_point(&row).expect("a point");
    }
    let confirmed: Vec<f64> =
        found.points.iter().filter(|p| p.stage == SearchStage::Confirm).map(|p| p.rate).collect();
    writer
        .estimate(&EstimateRow {
            metric: "read_iops_max".into(),
            label: "max random 8 KiB reads".into(),
            value: found.rate_confirmed,
            n: confirmed.len() as u64,
            unit: "reads/s".into(),
            latency_ns: Some(found.latency_ns),
            in_flight: Some(found.n_best),
            threads: Some(found.n_best),
            ..EstimateRow::default()
        })
        .expect("the estimate");
    let collapse = found.collapse.as_ref().expect("a collapse");
    let event = json!({ "n": collapse.n, "threads": collapse.n, "rate": collapse.rate, "share_of_max": collapse.share_of_max,
                        "rate_max": found.rate_confirmed, "n_best": found.n_best, "cores": 4 });
    writer.event("collapse", &event).expect("the event");
    writer.finish("finished").expect("the end");
}
