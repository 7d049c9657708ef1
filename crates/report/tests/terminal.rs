//! All text that a terminal shows, as snapshots; and what must hold of it at any width.

mod support;

use record::Reader;
use support::{calibration, comparison, general, passes, run};

/// The reports of every kind of run, by name.
fn reports(directory: &std::path::Path) -> Vec<(&'static str, Vec<Reader>)> {
    let compare = |name, story: comparison::Story| comparison::record(directory, name, &story);
    let calibrate = |name, story: calibration::Story| calibration::record(directory, name, &story);
    use calibration::Story as Calibration;
    use comparison::Story;
    let faster = Calibration {
        seed: 12,
        speed: 1.9,
        data_bytes: 2 << 30,
        file_system: "xfs",
        target: "/new",
        ..Calibration::default()
    };
    vec![
        ("compare", vec![compare("compare", Story::default())]),
        (
            "compare_withdrawn",
            vec![compare("withdrawn", Story { lie: true, dropped: vec![(2, 4)], ..Story::default() })],
        ),
        (
            "compare_equal",
            vec![compare("equal", Story { equal: true, noise: 0.03, blocks: 4, ..Story::default() })],
        ),
        ("compare_killed", vec![compare("killed", Story { killed_after: Some(21), ..Story::default() })]),
        ("calibrate", vec![calibrate("calibrate", Calibration::default())]),
        ("calibrate_withdrawn", vec![calibrate("lie", Calibration { lie: true, ..Calibration::default() })]),
        ("side_by_side", vec![calibrate("old", Calibration::default()), calibrate("new", faster)]),
        ("compare_engine", vec![compare("engine", Story { engine: Some(0.08), ..Story::default() })]),
        ("ranked_filesystem", vec![general::record(directory, "filesystem", &general::Story::default())]),
        ("ranked_crossed", vec![of_case(directory, "crossed")]),
        ("ranked_placement", vec![of_case(directory, "placement")]),
        ("ranked_dnfs", vec![of_case(directory, "dnfs")]),
        ("passes", vec![passes::record(directory, "passes")]),
    ]
    .into_iter()
    .chain(runs(directory))
    .collect()
}

fn of_case(directory: &std::path::Path, case: &'static str) -> Reader {
    general::record(directory, case, &general::Story { case, ..general::Story::default() })
}

/// Runs of the embedded database.
fn runs(directory: &std::path::Path) -> Vec<(&'static str, Vec<Reader>)> {
    let one = |name, story: run::Story| vec![run::record(directory, name, &story)];
    use run::Story;
    let trouble = Story { case: "order-entry", lost: 0.2, blind: true, ..Story::default() };
    let mut side = one("run-old", Story::default());
    side.extend(one("run-new", Story { seed: 9, speed: 1.4, ..Story::default() }));
    vec![
        ("run_commit", one("run-commit", Story::default())),
        ("run_order_entry", one("run-order-entry", Story { case: "order-entry", ..Story::default() })),
        ("run_growth", one("run-growth", Story { case: "growth", ..Story::default() })),
        ("run_random_read", one("run-random-read", Story { case: "random-read", ..Story::default() })),
        ("run_scan", one("run-scan", Story { case: "scan", ..Story::default() })),
        ("run_trouble", one("run-trouble", trouble)),
        ("run_withdrawn", one("run-withdrawn", Story { lie: true, ..Story::default() })),
        ("run_side_by_side", side),
    ]
}

#[test]
fn every_report_as_people_see_it() {
    let directory = tempfile::tempdir().expect("directory");
    for (name, records) in reports(directory.path()) {
        insta::assert_snapshot!(name, report::terminal(&records, 80, false).expect("text"));
    }
}

#[test]
fn lines_fit_and_colour_changes_no_letter() {
    let directory = tempfile::tempdir().expect("directory");
    for (name, records) in reports(directory.path()) {
        for width in [80, 100, 132] {
            let plain = report::terminal(&records, width, false).expect("text");
            for line in plain.lines() {
                let long = line.chars().count();
                assert!(long <= width, "{name} at {width}: {long} columns: {line}");
                assert!(!line.ends_with(' '), "{name}: blanks at the end of {line:?}");
            }
            let mut coloured = report::terminal(&records, width, true).expect("text");
            assert!(coloured.contains("\x1b[1m"), "{name}: nothing is emphasised");
            while let Some(begin) = coloured.find("\x1b[") {
                let end = begin + coloured[begin..].find('m').expect("a code that ends");
                coloured.replace_range(begin..=end, "");
            }
            let trimmed = |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
            assert_eq!(trimmed(&coloured), trimmed(&plain), "{name} at {width}");
        }
    }
}

#[test]
fn no_record_is_an_error_that_says_what_to_type() {
    let error = report::terminal(&[], 80, false).expect_err("nothing to report");
    assert!(error.to_string().contains("redoubt report last"), "{error}");
}
