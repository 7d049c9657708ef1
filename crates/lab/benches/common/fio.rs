//! The peer: fio, its own words in, its own numbers out.

use super::child;
use record::json::{self, Value};
use std::path::Path;

/// One fio run.
pub struct Run {
    pub iops: f64,
    /// Seconds of processor time per request, whole process.
    pub cpu_whole: f64,
    /// The same, of the submitting processes alone, by fio's own account.
    pub cpu_submitters: f64,
}

/// Random reads of `block` bytes from `file` for `seconds`, with `options` (`--name=value`), behind `prefix` (`taskset` …).
///
/// The page cache is left as it is (`invalidate=0`), and fio keeps no map of blocks read (`norandommap`): both make fio faster.
pub fn random_reads(file: &Path, block: u32, seconds: f64, options: &[String], core: Option<&str>) -> Run {
    let size = std::fs::metadata(file).expect("the file was made before").len();
    let mut words: Vec<String> = [
        "fio".to_owned(),
        "--name=peer".into(),
        format!("--filename={}", file.display()),
        format!("--size={size}"),
        "--rw=randread".into(),
        "--readonly".into(),
        format!("--bs={block}"),
        "--norandommap".into(),
        "--invalidate=0".into(),
        "--time_based".into(),
        format!("--runtime={}ms", (seconds * 1e3).round()),
        "--group_reporting".into(),
        "--output-format=json".into(),
    ]
    .into();
    words.extend_from_slice(options);
    let words = match core {
        Some(core) => child::pinned(core, words),
        None => words,
    };
    let finished = child::run(&words);
    let start = finished.stdout.find('{').expect("fio prints JSON");
    let text: Value = json::from_str(&finished.stdout[start..]).expect("fio prints JSON");
    let job = &text["jobs"][0];
    assert_eq!(job["error"].as_i64(), Some(0), "fio met an error: {job}");
    let number = |value: &Value| value.as_f64().expect("a number of fio");
    let requests = number(&job["read"]["total_ios"]).max(1.0);
    // Percent of the time that all jobs of the group ran.
    let share = (number(&job["usr_cpu"]) + number(&job["sys_cpu"])) / 100.0;
    let job_seconds = number(&job["job_runtime"]) / 1e3;
    Run {
        iops: number(&job["read"]["iops"]),
        cpu_whole: finished.cpu_seconds / requests,
        cpu_submitters: share * job_seconds / requests,
    }
}
