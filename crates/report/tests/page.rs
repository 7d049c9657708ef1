//! The page: needs nothing else, is well formed, links to what exists, and shows no stranger's markup.

mod support;

use record::{Experiment, Reader, Writer};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use support::{calibration, comparison, general, passes, run};

/// Every kind of page by name, made once for all tests.
fn pages() -> &'static [(&'static str, String)] {
    static PAGES: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    PAGES.get_or_init(|| {
        let directory = tempfile::tempdir().expect("directory");
        make_pages(directory.path())
    })
}

/// Pages of runs of the embedded database.
fn run_pages() -> impl Iterator<Item = &'static (&'static str, String)> {
    let runs = pages().iter().filter(|(name, _)| name.starts_with("run ") && *name != "run side by side");
    assert_eq!(runs.clone().count(), 7);
    runs
}

fn make_pages(directory: &std::path::Path) -> Vec<(&'static str, String)> {
    let html = |records: &[Reader]| report::html(records).expect("page");
    let compare = comparison::record(directory, "compare", &comparison::Story::default());
    let lie = comparison::Story { lie: true, dropped: vec![(1, 3)], ..comparison::Story::default() };
    let withdrawn = comparison::record(directory, "withdrawn", &lie);
    let killed = comparison::Story { killed_after: Some(9), ..comparison::Story::default() };
    let killed = comparison::record(directory, "killed", &killed);
    let calibrate = calibration::record(directory, "calibrate", &calibration::Story::default());
    let new = calibration::Story { seed: 5, speed: 2.0, ..calibration::Story::default() };
    let pair = [
        calibration::record(directory, "old", &calibration::Story::default()),
        calibration::record(directory, "new", &new),
    ];
    let engine = comparison::Story { engine: Some(0.08), ..comparison::Story::default() };
    let engine = comparison::record(directory, "engine", &engine);
    let runs = [
        run::record(directory, "run-old", &run::Story::default()),
        run::record(directory, "run-new", &run::Story { seed: 9, speed: 1.4, ..run::Story::default() }),
    ];
    let mut pages = vec![
        ("compare", html(&[compare])),
        ("withdrawn", html(&[withdrawn])),
        ("killed", html(&[killed])),
        ("calibrate", html(&[calibrate])),
        ("side by side", html(&pair)),
        ("compare engine", html(&[engine])),
        ("run side by side", html(&runs)),
    ];
    for case in ["filesystem", "crossed", "placement", "async"] {
        let story = general::Story { case, ..general::Story::default() };
        pages.push((case, html(&[general::record(directory, case, &story)])));
    }
    pages.push(("passes", html(&[passes::record(directory, "passes")])));
    pages.extend(make_run_pages(directory));
    pages
}

fn make_run_pages(directory: &std::path::Path) -> Vec<(&'static str, String)> {
    let page = |name, story: run::Story| {
        let record = run::record(directory, &format!("page-{name}"), &story);
        (name, report::html(&[record]).expect("page"))
    };
    let trouble = run::Story { case: "order-entry", lost: 0.2, blind: true, ..run::Story::default() };
    vec![
        page("run commit", run::Story::default()),
        page("run order-entry", run::Story { case: "order-entry", ..run::Story::default() }),
        page("run growth", run::Story { case: "growth", ..run::Story::default() }),
        page("run random-read", run::Story { case: "random-read", ..run::Story::default() }),
        page("run scan", run::Story { case: "scan", ..run::Story::default() }),
        page("run trouble", trouble),
        page("run withdrawn", run::Story { lie: true, ..run::Story::default() }),
    ]
}

/// Names of the elements in order: `Ok` when each one that opens is closed where it should be.
fn balanced(html: &str) -> Result<(), String> {
    const VOID: [&str; 5] = ["meta", "link", "br", "col", "!doctype"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').ok_or("a tag that does not end")? + at;
        let tag = &rest[at + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default().to_owned();
        if let Some(closing) = tag.strip_prefix('/') {
            let last = open.pop().ok_or(format!("</{closing}> without beginning"))?;
            if last != name {
                return Err(format!("</{name}> closes <{last}>"));
            }
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            open.push(name.clone());
        }
        rest = &rest[end + 1..];
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>").ok_or("style without end")?..];
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
}

/// Values of an attribute, in order.
fn attributes<'h>(html: &'h str, name: &str) -> Vec<&'h str> {
    let key = format!(" {name}=\"");
    html.split(key.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn needs_nothing_else() {
    for (name, html) in pages() {
        // A drawing may name a part of its own page.
        let html = html.replace("url(#", "");
        for forbidden in ["http:", "https:", "<script", "url(", "@import", "src=", "<iframe", "javascript:"] {
            assert!(!html.contains(forbidden), "{name} contains {forbidden}");
        }
        assert!(html.len() < 1 << 20, "{name}: {} bytes", html.len());
        for missing in ["NaN", "inf\"", "[–", "–]"] {
            assert!(!html.contains(missing), "{name} shows {missing}");
        }
    }
}

#[test]
fn is_well_formed_and_its_links_lead_somewhere() {
    for (name, html) in pages() {
        balanced(html).unwrap_or_else(|why| panic!("{name}: {why}"));
        let ids = attributes(html, "id");
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{name}: an id twice");
        for href in attributes(html, "href").into_iter().filter_map(|h| h.strip_prefix('#')) {
            assert!(unique.contains(href), "{name}: #{href} leads nowhere");
        }
        let drawings = html.matches("<svg role=\"img\"").count();
        assert!(drawings > 0, "{name} has no drawing");
        assert_eq!(
            drawings,
            html.matches("<title>").count().min(drawings),
            "{name}: a drawing without title"
        );
    }
}

#[test]
fn verdict_first_evidence_after() {
    let (_, html) = &pages()[0];
    let places: Vec<usize> = [
        "<h1>",
        "id=\"overview\"",
        "id=\"w-mix\"",
        "id=\"break-even\"",
        "id=\"workloads\"",
        "id=\"time\"",
        "id=\"doubts\"",
        "id=\"facts\"",
    ]
    .iter()
    .map(|part| html.find(part).unwrap_or_else(|| panic!("{part} is missing")))
    .collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// What was done, who was active, where the time went, all on one axis, what it rests on.
#[test]
fn a_run_is_told_from_the_sentence_to_the_machine() {
    for (name, html) in run_pages() {
        let parts = [
            "<h1>",
            "id=\"responses\"",
            "id=\"activity\"",
            "id=\"events\"",
            "id=\"time\"",
            "id=\"files\"",
            "id=\"doubts\"",
        ];
        let places: Vec<usize> = parts
            .iter()
            .map(|part| html.find(part).unwrap_or_else(|| panic!("{name}: {part} is missing")))
            .collect();
        assert!(places.is_sorted(), "{name}: {places:?}");
        assert!(html.contains("id=\"safe-colours\"") && html.contains("class=\"limit\""), "{name}");
    }
}

/// Heads of columns are words of their own, explained in the manual; wait classes are no columns of ours.
#[test]
fn every_column_of_a_run_is_listed() {
    let known = |text: &str| {
        let per = text.strip_prefix("per ").is_some_and(|one| !one.contains(' '));
        per || report::COLUMNS.contains(&text)
            || waits::WaitClass::ALL.iter().any(|class| class.name() == text)
            || text == "CPU"
    };
    for (name, html) in run_pages() {
        for head in html.split("scope=\"col\">").skip(1) {
            let text = head.split("</th>").next().unwrap_or_default();
            assert!(known(text), "{name}: column {text:?} is not in COLUMNS");
        }
    }
}

#[test]
fn a_strangers_markup_stays_text() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("x.redoubt");
    let evil = "<img src=x onerror=alert(1)>\"'&\x1b[2J";
    let experiment =
        Experiment { target: evil.into(), command: evil.into(), ..support::experiment("calibrate", "x") };
    let mut writer = Writer::create(&path, &experiment).expect("create");
    writer.finish(evil).expect("finish");
    drop(writer);
    let reader = [Reader::open(&path).expect("open")];
    let html = report::html(&reader).expect("page");
    assert!(!html.contains("<img"), "{html}");
    balanced(&html).expect("well formed");
    evil_run(directory.path(), evil);
    let text = report::terminal(&reader, 80, false).expect("text");
    assert!(!text.contains('\x1b') && text.contains("onerror"), "{text}");
}

/// Names of events, files, states and statements come from the record too.
fn evil_run(directory: &std::path::Path, evil: &str) {
    use record::*;
    let path = directory.join("run.redoubt");
    let asked = Experiment { case: Some(evil.into()), ..support::experiment("run", evil) };
    let mut writer = Writer::create(&path, &asked).expect("create");
    let visit = writer.visit(&VisitRow::default()).expect("visit");
    let workload = writer.workload(evil, &json::json!({ "title": evil })).expect("workload");
    let row = PhaseRow {
        visit_id: visit,
        workload_id: workload,
        kind: "measure".into(),
        end_ns: 2_000_000_000,
        seconds: 2.0,
        ops: 10,
        rate: 5.0,
        metric: evil.into(),
        ..PhaseRow::default()
    };
    let phase = writer.phase(&row).expect("phase");
    let waited = WaitEventRow {
        foreground: true,
        event: evil.into(),
        wait_class: evil.into(),
        waits: Some(1),
        time_ns: 9,
        histogram_micro: vec![1],
        ..WaitEventRow::default()
    };
    writer.of_phase(phase, &[waited]).expect("waits");
    let counted = StatisticRow { class: "system".into(), name: evil.into(), value: 1.0 };
    writer.of_phase(phase, &[counted]).expect("statistics");
    let file =
        FileStatRow { path: evil.into(), file_type: evil.into(), small_reads: 1, ..FileStatRow::default() };
    writer.of_phase(phase, &[file]).expect("files");
    let ticks = (1..9u64).map(|i| AshTickRow { t_ns: i << 27, planned_ns: i << 27, ..AshTickRow::default() });
    writer.of_visit(visit, &ticks.collect::<Vec<_>>()).expect("ticks");
    let samples = (2..9u64).map(|i| AshRow {
        t_ns: i << 27,
        weight_ns: 1 << 27,
        foreground: i % 2 == 0,
        program: evil.into(),
        event: Some(evil.into()),
        wait_class: evil.into(),
        statement: Some(evil.into()),
        ..AshRow::default()
    });
    writer.of_visit(visit, &samples.collect::<Vec<_>>()).expect("ash");
    let states = (1..9u64).map(|i| BufferStateRow { t_ns: i << 27, state: evil.into(), buffers: 5 });
    writer.of_visit(visit, &states.collect::<Vec<_>>()).expect("buffers");
    drop(writer);
    let reader = [Reader::open(&path).expect("open")];
    let html = report::html(&reader).expect("page");
    assert!(html.matches("&lt;img").count() > 8 && !html.contains("<img"), "{html}");
    balanced(&html).expect("well formed");
    let text = report::terminal(&reader, 80, true).expect("text");
    assert!(!text.contains("\x1b[2J") && text.contains("onerror"), "{text}");
}
