//! One calibration as the binary runs it, and what its record says.

use lab::calibrate::effort::Effort;
use lab::calibrate::{Options, run};
use lab::control::{Control, Progress};
use lab::target::Target;
use record::{EstimateRow, Reader};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos, Seed, clock};

/// A finished calibration.
pub struct Calibration {
    pub reader: Reader,
    pub seconds: f64,
    // Holds the record until it was read.
    _folder: tempfile::TempDir,
}

/// Prints what the user would see on the way.
struct Lines;

impl Progress for Lines {
    fn step(&mut self, _: &str, _: f64, _: f64) {}
    fn say(&mut self, line: &str) {
        println!("    {line}");
    }
}

impl Calibration {
    /// Calibrates `target` with `effort`.
    ///
    /// # Panics
    /// When the run fails.
    pub fn of(target: &Path, effort: Effort) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the record");
        let options = Options {
            target: Target::resolve(target, None).expect("a target of our own"),
            effort,
            latency_max: Nanos::millis(20),
            block: Bytes::kib(8),
            size: None,
            sessions: 10,
            seed: Seed::draw(),
            command: format!("redoubt calibrate {}", target.display()),
            record_path: Some(folder.path().join("calibrate.redoubt")),
        };
        let began = clock::now();
        let mut control = Control { cancel: &AtomicBool::new(false), progress: &mut Lines };
        let finished = run(&options, &mut control).expect("the calibration runs through");
        let seconds = (clock::now() - began).as_secs();
        Self { reader: Reader::open(&finished.record).expect("its record opens"), seconds, _folder: folder }
    }

    /// The figure with this key.
    ///
    /// # Panics
    /// When it is not in the record.
    pub fn figure(&self, metric: &str) -> EstimateRow {
        let all = self.reader.estimates().expect("estimates");
        all.into_iter()
            .find(|e| e.metric == metric)
            .unwrap_or_else(|| panic!("no figure {metric} in the record"))
    }

    /// The API through which its reads were issued with `threads`: what the record says, else the faster one of the probe
    /// that decided it.
    ///
    /// # Panics
    /// When the record does not tell.
    pub fn api(&self, threads: u32) -> io::Api {
        let events = self.reader.events().expect("events");
        let named = events.iter().filter(|e| e.kind == "knee").find_map(|e| e.json["api"].as_str());
        let points = self.reader.curve_points().expect("curve points");
        let probes = points.iter().filter(|p| p.stage == "probe" && p.threads == threads);
        let fastest =
            probes.max_by(|a, b| a.rate.total_cmp(&b.rate)).and_then(|p| p.series.rsplit(' ').next());
        named.or(fastest).and_then(|name| name.parse().ok()).expect("the record tells the API")
    }
}
