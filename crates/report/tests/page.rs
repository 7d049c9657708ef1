//! The page: needs nothing else, is well formed, links to what exists, and shows no stranger's markup.

mod support;

use record::{Experiment, Reader, Writer};
use std::collections::BTreeSet;
use support::{calibration, comparison};

fn pages(directory: &std::path::Path) -> Vec<(&'static str, String)> {
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
    vec![
        ("compare", html(&[compare])),
        ("withdrawn", html(&[withdrawn])),
        ("killed", html(&[killed])),
        ("calibrate", html(&[calibrate])),
        ("side by side", html(&pair)),
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
    let directory = tempfile::tempdir().expect("directory");
    for (name, html) in pages(directory.path()) {
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
    let directory = tempfile::tempdir().expect("directory");
    for (name, html) in pages(directory.path()) {
        balanced(&html).unwrap_or_else(|why| panic!("{name}: {why}"));
        let ids = attributes(&html, "id");
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "{name}: an id twice");
        for href in attributes(&html, "href").into_iter().filter_map(|h| h.strip_prefix('#')) {
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
    let directory = tempfile::tempdir().expect("directory");
    let (_, html) = pages(directory.path()).swap_remove(0);
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
    let text = report::terminal(&reader, 80, false).expect("text");
    assert!(!text.contains('\x1b') && text.contains("onerror"), "{text}");
}
