//! Should I buy one? From a run and from a trace, with what was stated of the devices and with what was measured.

use crate::stage::{Stage, measuring};
use record::json::{self, Value};
use std::fmt::Write;
use std::fs;

/// Reads that come round again: of 2,000 blocks, 400 far more often.
fn trace() -> String {
    let mut text = String::from("file,block\n");
    for turn in 0..30_000u64 {
        let mixed = turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let block = if turn % 3 == 0 { mixed % 2_000 } else { mixed % 400 };
        writeln!(text, "7,{block}").expect("written");
    }
    text
}

#[test]
fn a_trace_and_two_stated_devices_give_sizes_and_speed() {
    let stage = Stage::new();
    let path = stage.folder().join("reads.csv");
    fs::write(&path, trace()).expect("a trace");
    let trace = path.to_str().expect("a plain path");
    let base = ["advise", "flash", "--trace", trace, "--sizes", "2m,4m,8m,16m,32m"];
    let done = stage.run(&[&base[..], &["--slow", "5ms", "--fast", "100us"]].concat()).ok();
    let flat = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["A flash cache of", "would serve", "as fast", "nothing more is gained", "◆", "Report: "] {
        assert!(flat.contains(words), "{words:?} is missing:\n{}", done.stdout);
    }
    crate::page::check(
        &stage,
        &stage.record().with_extension("html"),
        &["What each size would do", "16 MiB"],
    );
    let shown = stage.run(&["report", "last", "--format", "json"]).ok().stdout;
    let shown: Value = json::from_str(&shown).expect("JSON");
    let sizes = shown["advice"]["sizes"].as_array().expect("sizes");
    assert_eq!(sizes.len(), 5);
    let mut last = 0.0;
    for size in sizes {
        for what in ["hit_ratio", "speed_up"] {
            let of = |end: &str| size[what][end].as_f64().expect("a number");
            assert!(of("low") <= of("value") && of("value") <= of("high"), "{size}");
        }
        let hits = size["hit_ratio"]["value"].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&hits) && hits >= last - 0.01, "{sizes:?}");
        last = hits;
    }
    assert!(last > 0.99, "everything fits: {last}");
    let fits = sizes[4]["speed_up"]["value"].as_f64().expect("a number");
    assert!((30.0..51.0).contains(&fits), "5 ms against 100 µs: {fits}");

    let done = stage.run(&base).ok();
    assert!(done.stdout.contains("add --fast DIR"), "{}", done.stdout);
    stage.run(&[&base[..], &["--fast", "100us"]].concat()).refused(&["--slow DIR", "--slow 5ms"]);
    stage.run(&[&base[..], &["--fast", "/no/ssd", "--slow", "5ms"]].concat()).refused(&["/no/ssd", "90us"]);
    fs::write(&path, "7 12\n7 twelve\n").expect("a trace");
    stage.run(&base).refused(&["reads.csv line 2", "twelve"]);
    fs::write(&path, "7 12\n7 13\n").expect("a trace");
    stage.run(&base).refused(&["2 reads", "too few"]);
}

#[test]
fn a_run_with_references_is_advised_on() {
    let _turn = measuring();
    let stage = Stage::new();
    stage.run(&["advise", "flash"]).refused(&["redoubt run order-entry --references"]);
    let run =
        ["run", "random-read", "--minutes", "0.05", "--scale", "0.004", "--sessions", "2", "--redo", "16m"];
    stage.run(&run).ok();
    stage.run(&["advise", "flash", "last"]).refused(&["redoubt run random-read --references"]);
    stage.run(&[&run[..], &["--references", "--cache", "1m"]].concat()).ok();
    let path = stage.folder().join("advice.redoubt");
    let record = path.to_str().expect("a plain path");
    let done = stage.run(&["advise", "flash", "--fast", ".", "--record", record]).ok();
    stage.assert_untouched();
    assert!(done.stdout.contains("flash cache of"), "{}", done.stdout);
    let reader = record::Reader::open(&path).expect("the record opens");
    assert_eq!(reader.experiment().expect("experiment").kind, "advise");
    assert_eq!(reader.references().expect("references").len(), 1);
    for series in ["slow", "fast"] {
        let points = reader.curve_points().expect("points");
        assert!(points.iter().filter(|p| p.series == series && p.rate > 0.0).count() >= 2, "{points:?}");
    }
    stage.run(&["advise", "flash", "last", "--trace", "x"]).refused(&["--trace"]);
    stage.run(&["advise", "flash", "--sizes", "1k"]).refused(&["too small"]);
    stage.run(&["advise", "house"]).refused(&["flash"]);
}
