//! Writes reports into a directory, to be looked at: of the test fixtures, or of the records that are named.
//! `cargo run -p report --example fixtures -- DIR [RECORD…]`

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::PathBuf;

fn main() {
    let directory = PathBuf::from(std::env::args().nth(1).expect("a directory"));
    let records = directory.join("records");
    let _ = std::fs::remove_dir_all(&records);
    std::fs::create_dir_all(&records).expect("directory");
    let write = |name: &str, records: &[record::Reader]| {
        std::fs::write(directory.join(format!("{name}.html")), report::html(records).expect("html"))
            .expect("write");
        std::fs::write(directory.join(format!("{name}.json")), report::json(records).expect("json"))
            .expect("write");
        let text = report::terminal(records, 80, false).expect("text");
        std::fs::write(directory.join(format!("{name}.txt")), text).expect("write");
    };
    let named: Vec<record::Reader> = std::env::args()
        .skip(2)
        .map(|path| record::Reader::open(std::path::Path::new(&path)).expect("a record"))
        .collect();
    if !named.is_empty() {
        return write("report", &named);
    }
    let compare = |name: &str, story: support::comparison::Story| {
        write(name, &[support::comparison::record(&records, name, &story)]);
    };
    use support::comparison::Story;
    compare("compare", Story::default());
    compare("compare-lie", Story { lie: true, dropped: vec![(2, 4)], ..Story::default() });
    compare("compare-equal", Story { equal: true, noise: 0.03, blocks: 4, ..Story::default() });
    compare("compare-killed", Story { killed_after: Some(21), ..Story::default() });
    compare("compare-engine", Story { engine: Some(0.08), ..Story::default() });
    write("passes", &[support::passes::record(&records, "passes")]);
    let calibrate =
        |name: &str, story: support::calibration::Story| support::calibration::record(&records, name, &story);
    use support::calibration::Story as Calibration;
    write("calibrate", &[calibrate("calibrate", Calibration::default())]);
    write(
        "calibrate-lie",
        &[calibrate("calibrate-lie", Calibration { lie: true, ..Calibration::default() })],
    );
    let new = Calibration {
        seed: 12,
        speed: 1.9,
        data_bytes: 2 << 30,
        file_system: "xfs",
        target: "/new",
        ..Calibration::default()
    };
    write("side", &[calibrate("old", Calibration::default()), calibrate("new", new)]);
    use support::run::Story as Run;
    for case in ["commit", "order-entry", "growth", "random-read", "scan"] {
        let name = format!("run-{case}");
        write(&name, &[support::run::record(&records, &name, &Run { case, ..Run::default() })]);
    }
    let trouble = Run { lost: 0.2, blind: true, case: "order-entry", ..Run::default() };
    write("run-trouble", &[support::run::record(&records, "run-trouble", &trouble)]);
    let lie = Run { lie: true, ..Run::default() };
    write("run-lie", &[support::run::record(&records, "run-lie", &lie)]);
    let faster = Run { seed: 9, speed: 1.4, ..Run::default() };
    let pair = [
        support::run::record(&records, "run-old", &Run::default()),
        support::run::record(&records, "run-new", &faster),
    ];
    write("side-run", &pair);
    let again = Story { seed: 8, ..Story::default() };
    let pair = [
        support::comparison::record(&records, "first", &Story::default()),
        support::comparison::record(&records, "second", &again),
    ];
    write("side-compare", &pair);
}
