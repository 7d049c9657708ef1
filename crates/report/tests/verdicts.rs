//! What is said rests on what was found: sentences never claim more than their verdict, doubts decide nothing silently.

mod support;

use record::json::{self, Value};
use record::{CheckRow, Reader, Writer};
use report::model::Model;
use report::model::mix::Pays;
use stats::verdict::Verdict;
use support::{calibration, comparison};

fn model(reader: &Reader) -> Model {
    Model::read(reader).expect("model")
}

fn compare(story: &comparison::Story) -> Model {
    let directory = tempfile::tempdir().expect("directory");
    model(&comparison::record(directory.path(), "run", story))
}

#[test]
fn a_clear_winner_is_named_with_interval_break_even_and_bottleneck() {
    let model = compare(&comparison::Story::default());
    let comparison = model.comparison.as_ref().expect("comparison");
    let mix = comparison.mix.as_ref().expect("mix");
    let decision = mix.workload.cells[mix.leader].decision.as_ref().expect("decision");
    assert_eq!(decision.verdict, Verdict::Better);
    assert!(decision.ratio.low > 1.0 && decision.ratio.low <= decision.ratio.value);
    let Pays::Between { from: None, to: Some(h) } = mix.pays else { panic!("{:?}", mix.pays) };
    assert!(h > mix.inputs.hit_ratio && h < 1.0, "{h}");
    let said = format!("{} {}", model.answer.headline, model.answer.more.join(" "));
    for part in ["For your mix, ", "%", "It pays", "The limit of mode none is "] {
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
    // At the user's hit ratio the drawn curve and the verdict are the same number.
    let here =
        mix.curve.iter().find(|(h, _)| (*h - mix.inputs.hit_ratio).abs() < 1e-9).expect("on the curve").1;
    assert!((here.value / decision.ratio.value - 1.0).abs() < 1e-9);
}

/// A against A: at most the promised 5 % of runs may name a winner. The seeds are fixed; 20 runs × 5 % promise one, two are
/// within chance (p = 0.26), three would have p = 0.08 and four p = 0.016.
#[test]
fn equal_configurations_have_no_winner() {
    let mut winners = Vec::new();
    for seed in 100..120 {
        let model =
            compare(&comparison::Story { seed, equal: true, blocks: 4, ..comparison::Story::default() });
        if !model.answer.headline.contains("nothing") {
            winners.push((seed, model.answer.headline));
        }
    }
    assert!(winners.len() <= 2, "{winners:?}");
}

#[test]
fn unknown_says_what_it_would_take() {
    let model =
        compare(&comparison::Story { equal: true, noise: 0.05, blocks: 4, ..comparison::Story::default() });
    let said = format!("{} {}", model.answer.headline, model.answer.more.join(" "));
    assert!(said.contains("nothing is shown to beat mode none yet"), "{said}");
    assert!(said.contains("more block") && said.contains("would decide"), "{said}");
}

#[test]
fn a_withdrawn_figure_decides_nothing_and_says_why() {
    let model = compare(&comparison::Story { lie: true, ..comparison::Story::default() });
    let comparison = model.comparison.as_ref().expect("comparison");
    let reads = comparison.workload("read-cold").expect("reads");
    let mix = comparison.mix.as_ref().expect("mix");
    for (configuration, (read, whole)) in
        comparison.configurations.iter().zip(reads.cells.iter().zip(&mix.workload.cells))
    {
        let direct = !configuration.buffered();
        assert_eq!(read.withdrawn(), direct, "{}", configuration.name);
        assert_eq!(whole.withdrawn(), direct, "{}: what is made of it goes with it", configuration.name);
        assert!(!direct || (read.decision.is_none() && whole.decision.is_none()));
    }
    assert!(!comparison.configurations[mix.leader].name.contains("setall"));
    assert!(model.answer.more.iter().any(|text| text.starts_with("Withdrawn")), "{:?}", model.answer.more);
    // Only what is in doubt is withdrawn: commits of the same configurations are still compared.
    assert!(comparison.workload("commit").expect("commits").cells.iter().all(|cell| !cell.withdrawn()));
}

#[test]
fn a_dropped_visit_is_counted_and_the_rest_decides() {
    let model = compare(&comparison::Story { dropped: vec![(0, 1), (3, 5)], ..comparison::Story::default() });
    let comparison = model.comparison.as_ref().expect("comparison");
    assert_eq!(comparison.left_out, [("CPU steal above 5 % (7.3 %)".to_owned(), 2)]);
    let writers = comparison.workload("writers").expect("writers");
    assert_eq!(
        writers.cells[6].decision.as_ref().expect("decided").ratio.n,
        4,
        "the blocks that all of them have"
    );
    assert_eq!(writers.cells[6].verdict(), Some(Verdict::Better));
}

#[test]
fn a_run_on_memory_has_no_verdict_at_all() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("run.redoubt");
    let mut writer = Writer::create(&path, &support::experiment("calibrate", "/dev/shm")).expect("create");
    support::facts(&mut writer, "none", "tmpfs");
    writer
        .estimate(&record::EstimateRow {
            metric: "read_iops_max".into(),
            label: "max random 8 KiB reads".into(),
            value: 900_000.0,
            low: Some(880_000.0),
            high: Some(920_000.0),
            level: Some(0.95),
            n: 4,
            unit: "reads/s".into(),
            steady: None,
            note: None,
            latency_ns: Some(4_000.0),
            latency_p99_ns: None,
            configuration_id: None,
            in_flight: Some(4),
            threads: Some(2),
        })
        .expect("estimate");
    let check = stats::check::memory_file_system("tmpfs");
    writer
        .check(&CheckRow {
            scope: "run".into(),
            scope_id: None,
            subject: String::new(),
            check_id: check.id.into(),
            title: check.title.into(),
            severity: check.severity.to_string(),
            status: check.status.to_string(),
            value: check.value,
            threshold: check.threshold.into(),
            evidence: check.evidence,
        })
        .expect("check");
    writer.finish("finished").expect("finish");
    drop(writer);
    let model = model(&Reader::open(&path).expect("open"));
    assert!(
        model.answer.headline.starts_with("No maximum of random reads can be stated"),
        "{}",
        model.answer.headline
    );
    assert!(model.figures[0].marks.withdrawn.is_some());
}

#[test]
fn an_empty_record_says_so() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("run.redoubt");
    drop(Writer::create(&path, &support::experiment("compare", "/data")).expect("create"));
    let reader = [Reader::open(&path).expect("open")];
    let text = report::terminal(&reader, 80, false).expect("text");
    assert!(text.contains("ended before the first") && text.contains("killed"), "{text}");
    assert!(report::html(&reader).expect("page").contains("ended before the first"));
}

#[test]
fn runs_that_are_not_alike_are_warned_of_and_get_no_verdict_word() {
    let directory = tempfile::tempdir().expect("directory");
    let old = calibration::record(directory.path(), "old", &calibration::Story::default());
    let story = calibration::Story {
        seed: 3,
        speed: 2.0,
        data_bytes: (1 << 30) + (4 << 20),
        file_system: "xfs",
        target: "/new",
        lie: false,
    };
    let new = calibration::record(directory.path(), "new", &story);
    let side: Value = json::from_str(&report::json(&[old, new]).expect("json")).expect("parses");
    let warnings = side["warnings"].to_string();
    assert!(warnings.contains("differs in size") && warnings.contains("kind of target"), "{warnings}");
    let max = &side["figures"].as_array().expect("figures")[1];
    let ratio = max["ratios_to_first"][1]["value"].as_f64().expect("ratio");
    assert!((ratio - 2.0).abs() < 0.01, "{max}");
    assert!(!side["headline"].to_string().contains("better"), "{}", side["headline"]);
}

#[test]
fn json_carries_what_the_page_says() {
    let directory = tempfile::tempdir().expect("directory");
    let reader = [comparison::record(directory.path(), "run", &comparison::Story::default())];
    let value: Value = json::from_str(&report::json(&reader).expect("json")).expect("parses");
    let text = report::terminal(&reader, 80, false).expect("text");
    let headline = value["headline"].as_str().expect("headline");
    let first_words: String = headline.split(' ').take(6).collect::<Vec<_>>().join(" ");
    assert!(text.contains(&first_words), "{first_words}");
    let mix = &value["comparison"]["mix"];
    assert_eq!(mix["cells"].as_array().map(Vec::len), Some(8));
    assert_eq!(mix["cells"][6]["verdict"], "better");
    assert!(mix["pays_at_hit_ratios"]["estimate"]["to"].as_f64().is_some_and(|h| h > 0.9), "{mix}");
    assert_eq!(value["comparison"]["workloads"].as_array().map(Vec::len), Some(10));
    assert!(
        value["doubts"]["notes"].as_array().is_some_and(|notes| notes.iter().any(|n| n["check"] == "X1"))
    );
}
