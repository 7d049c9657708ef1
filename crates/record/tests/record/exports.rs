//! What went in comes out: through the reader, through JSON, through CSV.

use crate::sample;
use record::json::{Value, from_value, json};
use record::{
    CheckRow, ConfigurationRow, CounterRow, CurvePointRow, EstimateRow, Experiment, FactRow, HistogramRow,
    IntervalRow, PhaseRow, Reader, ReferenceRow, VisitRow, export_csv, export_json,
};
use serde::de::DeserializeOwned;
use std::fs;

fn phases(record: &Reader) -> Vec<PhaseRow> {
    record.phases().unwrap().into_iter().map(|(_, phase)| phase).collect()
}

#[test]
fn reader_returns_what_the_writer_was_given() {
    let (_folder, record) = sample::finished();
    assert_eq!(record.experiment().unwrap(), sample::experiment());
    assert_eq!(record.status().unwrap(), "finished");
    assert_eq!(record.facts().unwrap(), sample::facts());
    assert_eq!(record.plan().unwrap().unwrap().json, json!({"delta": 0.03, "looks": [4, 6, 8]}));
    assert_eq!(record.configurations().unwrap(), [(1, sample::configuration())]);
    assert_eq!(record.workloads().unwrap()[0].1.name, "read-cold");
    let (_, block) = &record.blocks().unwrap()[0];
    assert_eq!((block.permutation.as_slice(), block.seed), (&[1, 0, 0, 1][..], u64::MAX - 7));
    let visits = record.visits().unwrap();
    let states: Vec<_> =
        visits.iter().map(|(id, v)| (*id, v.position, v.status.as_str(), v.sha256.is_some())).collect();
    assert_eq!(states, [(1, 0, "measured", true), (2, 1, "open", false)]);
    assert_eq!(phases(&record), [sample::phase(1, 1)]);
    assert_eq!(record.intervals(1).unwrap(), sample::intervals());
    assert_eq!(record.intervals(2).unwrap(), []);
    assert!(record.all_intervals().unwrap().iter().all(|(phase, _)| *phase == 1));
    assert_eq!(record.histogram(1, "read").unwrap().as_deref(), Some(&sample::HISTOGRAM[..]));
    assert_eq!(record.histogram(1, "write").unwrap(), None);
    assert_eq!(record.counters().unwrap(), sample::counters(1));
    assert_eq!(record.curve_points().unwrap(), [sample::curve_point()]);
    assert_eq!(record.checks().unwrap(), [sample::check()]);
    assert_eq!(record.estimates().unwrap(), [sample::estimate()]);
    assert_eq!(record.references().unwrap(), [sample::references()]);
    assert_eq!(record.events().unwrap()[0].kind, "collapse");
}

#[test]
fn a_zero_by_zero_does_not_stop_a_run() {
    let (_folder, path, mut writer) = sample::unfinished();
    let broken = record::CurvePointRow { rate: f64::NAN, sd: f64::INFINITY, ..sample::curve_point() };
    writer.curve_point(&broken).unwrap();
    let points = Reader::open(&path).unwrap().curve_points().unwrap();
    assert!(points[1].rate.is_nan() && points[1].sd == f64::INFINITY && points[1].latency_mean_ns > 0.0);
}

/// The exported rows of `table`, typed.
fn from_json<T: DeserializeOwned>(all: &Value, table: &str) -> Vec<T> {
    from_value(all[table].clone()).unwrap_or_else(|e| panic!("{table}: {e}: {}", all[table]))
}

#[test]
fn json_comes_back_equal() {
    let (_folder, record) = sample::finished();
    let text = export_json(&record).unwrap().to_string();
    let all: Value = record::json::from_str(&text).unwrap();
    assert_eq!(all["schema_version"], json!(record::SCHEMA_VERSION));
    assert_eq!(from_json::<Experiment>(&all, "experiment"), [sample::experiment()]);
    assert_eq!(from_json::<FactRow>(&all, "fact"), sample::facts());
    assert_eq!(from_json::<ConfigurationRow>(&all, "configuration"), [sample::configuration()]);
    assert_eq!(from_json::<VisitRow>(&all, "visit")[0], sample::visit(1, 1));
    assert_eq!(from_json::<PhaseRow>(&all, "phase"), phases(&record));
    assert_eq!(from_json::<IntervalRow>(&all, "interval"), sample::intervals());
    assert_eq!(from_json::<HistogramRow>(&all, "histogram")[0].encoded, sample::HISTOGRAM);
    assert_eq!(from_json::<CounterRow>(&all, "counter"), sample::counters(1));
    assert_eq!(from_json::<CurvePointRow>(&all, "curve_point"), [sample::curve_point()]);
    assert_eq!(from_json::<CheckRow>(&all, "checks"), [sample::check()]);
    assert_eq!(from_json::<EstimateRow>(&all, "estimate"), [sample::estimate()]);
    assert_eq!(from_json::<ReferenceRow>(&all, "reference_sample"), [sample::references()]);
    assert_eq!(all["interval"][1]["phase_id"], json!(1));
    assert_eq!(all["event"][0]["json"]["n"], json!(80), "nested JSON stays JSON");
    assert_eq!(all["visit_end"][0]["status"], json!("measured"));
}

#[test]
fn csv_comes_back_equal() {
    let (folder, record) = sample::finished();
    let directory = folder.path().join("as/csv");
    let files = export_csv(&record, &directory).unwrap();
    let tables = export_json(&record).unwrap();
    let expected: Vec<_> = files.iter().map(|file| file.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(expected.len(), tables.as_object().unwrap().len() - 1, "one file for each table");
    assert!(expected.iter().all(|name| tables[*name].is_array()), "{expected:?}");

    fn rows<T: DeserializeOwned>(directory: &std::path::Path, table: &str) -> Vec<T> {
        let mut file = csv::Reader::from_path(directory.join(format!("{table}.csv"))).unwrap();
        file.deserialize().collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{table}: {e}"))
    }
    assert_eq!(rows::<Experiment>(&directory, "experiment"), [sample::experiment()]);
    assert_eq!(rows::<FactRow>(&directory, "fact"), sample::facts());
    assert_eq!(rows::<PhaseRow>(&directory, "phase"), phases(&record));
    assert_eq!(rows::<IntervalRow>(&directory, "interval"), sample::intervals());
    assert_eq!(rows::<HistogramRow>(&directory, "histogram")[0].encoded, sample::HISTOGRAM);
    assert_eq!(rows::<CounterRow>(&directory, "counter"), sample::counters(1));
    assert_eq!(rows::<CheckRow>(&directory, "checks"), [sample::check()]);
    assert_eq!(rows::<EstimateRow>(&directory, "estimate"), [sample::estimate()]);
    let configuration = fs::read_to_string(directory.join("configuration.csv")).unwrap();
    assert!(
        configuration.starts_with("id,name,is_baseline,levels\n1,setall (io_uring),true,"),
        "{configuration}"
    );
}
