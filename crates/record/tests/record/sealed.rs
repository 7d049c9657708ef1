//! The chain of hashes: what is sealed cannot be changed without being seen.

use crate::sample;
use record::json::json;
use record::{Reader, RecordError, VisitRow};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

#[test]
fn a_first_plan_has_the_plain_hash_of_its_text() {
    let (_folder, path, _writer) = sample::unfinished();
    let plan = Reader::open(&path).unwrap().plan().unwrap().unwrap();
    let plain: String =
        Sha256::digest(r#"{"delta":0.03,"looks":[4,6,8]}"#).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!((plan.previous_sha256.as_str(), plan.sha256), ("", plain));
}

#[test]
fn every_link_names_the_one_before() {
    let (_folder, path, mut writer) = sample::unfinished();
    let second = writer.plan(&json!({"looks": [12]})).unwrap();
    writer.end_visit(2, "dropped", Some("steal 7 % > 5 %")).unwrap();
    let third = writer.visit(&VisitRow::default()).unwrap();
    writer.end_visit(third, "measured", None).unwrap();
    let links = Reader::open(&path).unwrap().verify().unwrap();
    let rows: Vec<_> = links.iter().map(|link| link.row.as_str()).collect();
    assert_eq!(rows, ["plan 1", "visit 1", "plan 2", "visit 2", "visit 3"]);
    assert_eq!(links[2].sha256, second);
    assert!(links.windows(2).all(|pair| pair[0].sha256 == pair[1].previous_sha256));
}

#[test]
fn every_change_of_sealed_rows_is_seen() {
    for (change, row) in [
        ("UPDATE plan SET json = '{\"delta\":0.1}'", "plan 1"),
        ("UPDATE visit SET position = 3 WHERE id = 1", "visit 1"),
        ("UPDATE visit_end SET status = 'dropped'", "visit 1"),
        ("UPDATE visit_end SET drop_reason = ''", "visit 1"),
        ("UPDATE phase SET rate = rate * 1.01", "visit 1"),
        ("UPDATE phase SET steady_class = NULL", "visit 1"),
        ("DELETE FROM histogram; DELETE FROM interval WHERE id = 2", "visit 1"),
        ("UPDATE interval SET ops = ops + 1 WHERE id = 2", "visit 1"),
        ("UPDATE histogram SET encoded = x'00'", "visit 1"),
        ("DELETE FROM plan", "visit 1"),
        ("INSERT INTO plan SELECT 2, created_utc, json, 'ff', sha256 FROM plan", "plan 2"),
    ] {
        let (_folder, record) = sample::finished();
        record.verify().expect("unchanged");
        Connection::open(record.path()).unwrap().execute_batch(change).unwrap();
        match record.verify() {
            Err(RecordError::Changed { row: found, .. }) => assert_eq!(found, row, "{change}"),
            other => panic!("{change}: {other:?}"),
        }
    }
}

#[test]
fn what_is_not_sealed_may_grow() {
    let (_folder, path, mut writer) = sample::unfinished();
    let before = Reader::open(&path).unwrap().verify().unwrap();
    writer.counters(&sample::counters(1)).unwrap();
    writer.check(&sample::check()).unwrap();
    writer.phase(&sample::phase(2, 1)).unwrap();
    assert_eq!(Reader::open(&path).unwrap().verify().unwrap(), before);
}
