//! The page in a real browser, without a network: no console error, charts drawn, A4 on paper.

use crate::stage::{Stage, is_root, measuring};
use std::path::Path;
use std::process::{Command, Output};

/// Chromium in a network namespace that has no network.
fn chromium(stage: &Stage, arguments: &[&str], page: &Path) -> Output {
    let mut command = Command::new("unshare");
    if !is_root() {
        command.arg("--map-root-user");
    }
    command.args([
        "--net",
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0", "--window-size=1280,2400"]);
    command.arg(format!("--user-data-dir={}", stage.folder().join("browser").display()));
    command.args(arguments).arg(format!("file://{}", page.display()));
    let output = command.output().expect("unshare is in package util-linux");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "chromium (package chromium) ended with {}:\n{errors}", output.status);
    // Chromium's own pages complain about the missing network; ours must not say a word.
    let ours = |line: &&str| line.contains("CONSOLE") && !line.contains("source: chrome://");
    let console: Vec<_> = errors.lines().filter(ours).collect();
    assert!(console.is_empty(), "the page writes to the console:\n{}", console.join("\n"));
    output
}

/// What a page would load from elsewhere.
fn assert_self_contained(html: &str) {
    let marks = ["src=\"http", "href=\"http", "url(http", "@import", "src=\"//", "fetch(", "XMLHttpRequest"];
    for mark in marks {
        assert!(!html.contains(mark), "the page is not self-contained: {mark}");
    }
}

fn text_of_pdf(pdf: &Path) -> String {
    let output =
        Command::new("pdftotext").arg(pdf).arg("-").output().expect("pdftotext is in package poppler-utils");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Opens `page`, prints it, and finds `words` on paper.
pub fn check(stage: &Stage, page: &Path, words: &[&str]) {
    assert_self_contained(&std::fs::read_to_string(page).expect("the page"));
    let dom = chromium(stage, &["--dump-dom"], page);
    let dom = String::from_utf8_lossy(&dom.stdout).into_owned();
    assert!(dom.matches("<svg").count() >= 1, "no chart was drawn");
    let pdf = page.with_extension("pdf");
    chromium(stage, &[&format!("--print-to-pdf={}", pdf.display()), "--no-pdf-header-footer"], page);
    let info = Command::new("pdfinfo").arg(&pdf).output().expect("pdfinfo is in package poppler-utils");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("A4"), "not printed on A4:\n{info}");
    let text = text_of_pdf(&pdf);
    for word in words {
        assert!(text.contains(word), "{word:?} is not on paper:\n{text}");
    }
    let shot = page.with_extension("png");
    chromium(stage, &[&format!("--screenshot={}", shot.display())], page);
    assert!(std::fs::metadata(&shot).is_ok_and(|m| m.len() > 20_000), "an empty picture");
}

/// A stopped run has a page too; it must not break the browser for lack of numbers.
#[test]
fn a_stopped_calibration_opens_as_well() {
    let _turn = measuring();
    let stage = Stage::new();
    let done = crate::stage::Done::of(
        Command::new("timeout")
            .args(["--signal=INT", "--foreground", "8", env!("CARGO_BIN_EXE_redoubt")])
            .args(crate::runs::CALIBRATE)
            .env("REDOUBT_HOME", &stage.home)
            .current_dir(&stage.directory)
            .output()
            .expect("start redoubt"),
    );
    let page = stage.folder().join("stopped.html");
    stage.run(&["report", "last", "--html", page.to_str().expect("a plain path")]).ok();
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    assert_self_contained(&std::fs::read_to_string(&page).expect("the page"));
    chromium(&stage, &["--dump-dom"], &page);
}
