//! Comparisons of general configurations: who stands where, what a factor does, which move pays, and the proof.

mod support;

use record::json::Value;
use report::model::Model;
use support::general::{Story, record};
use support::run::BACKGROUND;

fn model(story: &Story) -> Model {
    let directory = tempfile::tempdir().expect("directory");
    Model::read(&record(directory.path(), story.case, story)).expect("model")
}

fn plain(text: &str) -> String {
    text.replace(['\u{a0}', '\u{202f}'], " ")
}

#[test]
fn file_systems_are_ranked_in_a_sentence() {
    let model = model(&Story { blocks: 8, ..Story::default() });
    let headline = plain(&model.answer.headline);
    assert!(headline.starts_with("Order entry: "), "{headline}");
    for part in ["xfs", "ext4:data=writeback", "do not differ", "btrfs is 65 % slower [", "ext2 is 1"] {
        assert!(headline.contains(part), "{part:?} is missing: {headline}");
    }
    let comparison = model.comparison.expect("comparison");
    assert!(comparison.general());
    let ranking = comparison.workloads[0].ranking.as_ref().expect("ranking");
    assert_eq!(*ranking.order.last().expect("ranked"), 6, "btrfs is last");
    let proofs = &comparison.configurations[1].proofs;
    assert!(proofs.iter().any(|p| p.value.contains("data=writeback")), "{proofs:?}");
    assert!(proofs.iter().any(|p| p.visits == 8), "the same in all visits is one row: {proofs:?}");
}

#[test]
fn a_noisy_machine_is_told_what_it_would_take() {
    let model = model(&Story { noise: 0.05, ..Story::default() });
    let headline = plain(&model.answer.headline);
    assert!(
        headline.contains("are not told apart (about ") && headline.contains("would decide"),
        "{headline}"
    );
}

#[test]
fn dropped_visits_leave_a_ranking() {
    let model = model(&Story { dropped: vec![(0, 0), (1, 2), (2, 5)], blocks: 6, ..Story::default() });
    let comparison = model.comparison.expect("comparison");
    let ranking = comparison.workloads[0].ranking.as_ref().expect("ranking");
    assert_eq!(ranking.order.len(), 7);
    assert_eq!(comparison.configurations[0].visits, (5, 6));
}

#[test]
fn an_effect_is_told_where_it_is() {
    let model = model(&Story { case: "crossed", blocks: 6, ..Story::default() });
    let more = plain(&model.answer.more.join(" "));
    assert!(more.contains("io setall instead of none helps with fs xfs (1."), "{more}");
    assert!(more.contains("makes no difference with fs ext3"), "{more}");
}

#[test]
fn the_one_move_that_pays_is_named_with_its_share_and_its_reason() {
    let model = model(&Story { case: "placement", ..Story::default() });
    let more = plain(&model.answer.more.join(" "));
    let headline = plain(&model.answer.headline);
    assert!(headline.starts_with("Order entry: the one move that pays most is redo: 1"), "{headline}");
    assert!(headline.contains("of the gain of moving everything ["), "{headline}");
    assert!(more.contains("no longer waits in log file sync, 23"), "{more}");
    let comparison = model.comparison.expect("comparison");
    let best = comparison.placements[0].moves.iter().find(|m| m.classes == ["redo"]).expect("redo");
    let share = best.share.expect("share");
    assert!(share.low > 0.8 && share.high < 0.9, "{share:?}");
    let cell = &comparison.workloads[0].cells[best.configuration];
    let names: Vec<&str> = cell.used_devices().iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["slow (throttled:hdd-7200)", "fast (/ssd)"]);
    assert!(more.contains("The slow device counted"), "{more}");
    assert!(more.contains("the fast one takes"), "{more}");
}

/// What is lost by a move is not praised as what pays, and the reason is what it added, not what it removed.
#[test]
fn moves_that_harm_are_not_advised() {
    let told = |moves| {
        let model = model(&Story { case: "placement", moves, ..Story::default() });
        let all = plain(&format!("{} {}", model.answer.headline, model.answer.more.join(" ")));
        all.split("Full scan: ").next().unwrap_or_default().to_owned()
    };
    let harmful = told([0.9, 0.7, 0.6, 0.5, 0.4]);
    assert!(
        harmful.starts_with("Order entry: no single move pays; least is lost by moving data: 0."),
        "{harmful}"
    );
    for part in [
        "That is because a transaction then waits 2",
        " ms in db file sequential read, not at all before.",
        "No other single move is shown to help.",
        "Everything moved gives 0.4",
    ] {
        assert!(harmful.contains(part), "{part:?} is missing: {harmful}");
    }
    for wrong in ["pays most", "no longer waits", "Next is", "of the gain"] {
        assert!(!harmful.contains(wrong), "{wrong:?} in {harmful}");
    }
    let useless = told([1.0, 1.0, 1.0, 0.5, 0.4]);
    let lead = "Order entry: no single move is shown to pay; nearest to it comes ";
    assert!(useless.starts_with(lead), "{useless}");
    assert!(!useless.contains("pays most") && !useless.contains("Next is"), "{useless}");
}

/// Looks miss some of what the clients waited for: the clients' time is all of it, and the looks say how it divides.
#[test]
fn time_that_looks_missed_is_divided_as_they_saw_the_rest() {
    let spent = |looked| {
        let model = model(&Story { looked, ..Story::default() });
        let comparison = model.comparison.expect("comparison");
        let cell = &comparison.workloads[0].cells[0];
        (cell.spent.clone().expect("waits"), cell.db_time_ns.expect("DB time of one"))
    };
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.03, "{a} {b}");
    let (counted, one_counted) = spent(None);
    let (looked, one_looked) = spent(Some(0.6));
    assert_eq!((counted.looks, looked.looks), (None, Some(40.0)));
    // Four blocks of one second with ten sessions.
    near(looked.db_time_ns, 40e9);
    near(looked.db_time_ns, counted.db_time_ns);
    near(one_looked, one_counted);
    near(looked.cpu_ns, counted.cpu_ns);
    near(looked.accounted().expect("a sum"), 1.0);
    for name in ["log file sync", "buffer busy waits", "CPU"] {
        let (looked, counted) = (looked.event(name).expect(name), counted.event(name).expect(name));
        near(looked.time_ns, counted.time_ns);
        near(looked.share, counted.share);
        near(looked.aas, counted.aas);
    }
    // Nobody else knows how long background processes took.
    near(looked.background[0].time_ns, 40e9 * BACKGROUND);
}

#[test]
fn the_second_pass_is_told_with_what_it_found() {
    let directory = tempfile::tempdir().expect("directory");
    let model = Model::read(&support::passes::record(directory.path(), "passes")).expect("model");
    let headline = plain(&model.answer.headline);
    assert!(headline.starts_with("Transactions with dirty-page batches, against slow: "), "{headline}");
    let more = plain(&model.answer.more.join(" "));
    for part in [
        "With slow + flash classic, pass 2 is slower than pass 1, 0.9",
        "it read 58 % of the blocks from flash while writing 42 % into it.",
        "Pass 1 had skipped 42 % (DBWR overloaded) and written 58 %; pass 3 reads 100 % from flash and is 5.",
        "With slow + flash scan-resistant, pass 2 is 3.9",
    ] {
        assert!(more.contains(part), "{part:?} is missing: {more}");
    }
    let comparison = model.comparison.expect("comparison");
    assert_eq!(comparison.passes.iter().filter(|p| p.flash).count(), 2);
    let states = comparison.passes[1].states.as_ref().expect("states");
    let first = &states.bands.steps[0].2;
    let flashcur = states.bands.keys.iter().position(|key| key == "flashcur").expect("flashcur");
    assert!(first[flashcur] < 100.0, "only looks of that visit: {first:?}");
}

#[test]
fn unsteadiness_stands_beside_the_mean_and_the_bottleneck_is_named() {
    let model = model(&Story { case: "async", ..Story::default() });
    let more = plain(&model.answer.more.join(" "));
    let said = "sessions spend most of their time in log file sync under throttled:hdd-7200 directio and here directio \
                and in db file sequential read under";
    assert!(more.contains(said), "{more}");
    let comparison = model.comparison.expect("comparison");
    let cv = comparison.workloads[0].cells[0].unsteadiness.expect("slices");
    assert!((0.02..0.1).contains(&cv), "made up with 5 %: {cv}");
}

#[test]
fn programs_read_the_same() {
    let directory = tempfile::tempdir().expect("directory");
    let reader = record(directory.path(), "json", &Story { case: "crossed", ..Story::default() });
    let text = report::json(&[reader]).expect("json");
    let value: Value = text.parse().expect("valid");
    let workload = &value["comparison"]["workloads"][0];
    assert_eq!(workload["ranking"]["order"][0], "xfs setall");
    assert_eq!(workload["ranking"]["pairs"].as_array().map(Vec::len), Some(15));
    assert_eq!(workload["effects"]["main"].as_array().map(Vec::len), Some(3));
    assert_eq!(value["comparison"]["factors"][0]["levels"][1], "ext3");
    assert!(value["comparison"]["configurations"][0]["proofs"][0]["value"].is_string());
}

#[test]
fn what_a_wrong_way_costs_is_said_first() {
    let model = model(&Story { case: "dnfs", blocks: 6, ..Story::default() });
    let (headline, more) = (plain(&model.answer.headline), plain(&model.answer.more.join(" ")));
    assert!(headline.starts_with("Through the wrong node sessions read by NFSv3 at 0.9"), "{headline}");
    assert!(headline.contains("the nodes use 2.00 × [2.00–2.00] the processor time per read"), "{headline}");
    for part in [
        "pNFS goes where the data is: 0.1 % of its requests went through the wrong node",
        "pNFS followed 48 of 48 moves, its requests waited 4200 µs at the longest (0.4 % through the wrong node)",
        "NFSv3 stayed at the node that was mounted (50 % of its requests through the wrong one)",
        // Who is best is told behind it.
        "Single-block reads, cold: ",
    ] {
        assert!(more.contains(part), "{part:?} is missing: {more}");
    }
}
