//! Runs of the embedded database: what is said agrees with what was counted, and what does not agree is said.

mod support;

use record::Reader;
use report::model::Model;
use report::model::database::Database;
use report::model::database::class::Class;
use support::{comparison, run};

fn model(story: &run::Story) -> Model {
    let directory = tempfile::tempdir().expect("directory");
    Model::read(&run::record(directory.path(), "run", story)).expect("model")
}

fn told(model: &Model) -> &Database {
    model.database.as_ref().expect("a run")
}

fn status(model: &Model, id: &str) -> &'static str {
    let broken = model.doubts.notes.iter().find(|note| note.check_id == id).map(|note| note.status.word());
    let held = model.doubts.passed.iter().any(|(passed, ..)| passed == id);
    broken.unwrap_or(if held { "pass" } else { "not applied" })
}

#[test]
fn the_first_sentence_has_rate_interval_and_the_wait_that_explains_it() {
    let model = model(&run::Story::default());
    let work = told(&model).leading();
    let (low, high) = work.rate.interval.expect("an interval");
    assert!(low < work.rate.value && work.rate.value < high && high / low < 1.2, "{:?}", work.rate);
    for part in
        ["10 sessions committed 4,310 times a second [", "log file sync took 86", "With setall io_uring"]
    {
        assert!(model.answer.headline.contains(part), "{part:?} in {}", model.answer.headline);
    }
    let more = model.answer.more.join(" ");
    for part in [
        "in the queue",
        "in the write",
        "until the session ran again",
        "commits shared a write",
        "5 log switches",
    ] {
        assert!(more.contains(part), "{part:?} in {more}");
    }
}

/// Three accounts of the same time: the time model, the exact waits, the samples.
#[test]
fn accounts_that_agree_are_said_to() {
    for case in ["commit", "order-entry", "growth", "random-read", "scan"] {
        let model = model(&run::Story { case, ..run::Story::default() });
        // One session gives too few samples to hold them against the counters.
        let sampled = if matches!(case, "growth" | "scan") { "not applied" } else { "pass" };
        for (id, expected) in [("J2", "pass"), ("J3", sampled), ("J4", "pass"), ("J5", "pass")] {
            assert_eq!(status(&model, id), expected, "{case}: {id} {:?}", model.doubts.notes);
        }
        let database = told(&model);
        let spent: Vec<_> = database.works.iter().filter_map(|w| w.spent.as_ref()).collect();
        let seconds: f64 = spent.iter().map(|s| s.seconds).sum();
        let exact = spent.iter().map(|s| s.db_time_ns / 1e9).sum::<f64>() / seconds;
        let activity = database.activity.as_ref().expect("samples");
        let sampled: f64 = activity.foreground.means().iter().sum();
        assert!((sampled / exact - 1.0).abs() < 0.05, "{case}: {sampled} sampled, {exact} counted");
        let listed: f64 = activity.statements.iter().map(|line| line.aas).sum();
        assert!((listed / sampled - 1.0).abs() < 0.02, "{case}: the list says {listed}");
    }
}

#[test]
fn waits_that_were_lost_are_missed() {
    let warned = model(&run::Story { lost: 0.08, ..run::Story::default() });
    assert_eq!(status(&warned, "J2"), "warn");
    let failed = model(&run::Story { lost: 0.3, ..run::Story::default() });
    assert_eq!(status(&failed, "J2"), "fail");
    // The rate was counted by others and stands; the shares carry the note.
    assert_eq!(told(&failed).leading().marks.withdrawn, None);
    assert!(!told(&failed).leading().marks.notes.is_empty());
    assert!(failed.answer.headline.contains("4,310"), "{}", failed.answer.headline);
}

/// The scheduler counts a thread's CPU whether or not the session says that it waits: what a wait has is its own.
#[test]
fn time_of_the_scheduler_fills_what_waits_leave() {
    let line = |model: &Model, name: &str| {
        let spent = told(model).leading().spent.as_ref().expect("waits");
        spent.foreground.iter().find(|line| line.name == name).map_or(0.0, |line| line.share)
    };
    let plain = model(&run::Story::default());
    let queued = model(&run::Story { scheduled: Some((0.0, 0.01)), ..run::Story::default() });
    assert_eq!(status(&queued, "J2"), "pass");
    assert!((line(&queued, "waiting for a CPU") - 0.01).abs() < 1e-4, "its own line");
    assert!((line(&plain, "CPU") - line(&queued, "CPU") - 0.01).abs() < 1e-4, "and not on CPU");
    let inside = model(&run::Story { scheduled: Some((0.2, 0.0)), ..run::Story::default() });
    assert_eq!(status(&inside, "J2"), "pass", "not counted twice");
    assert!((line(&plain, "CPU") - line(&inside, "CPU")).abs() < 1e-4);
    // Waits that nobody entered: neither CPU nor run queue explains the time.
    let lost = model(&run::Story { scheduled: Some((0.0, 0.0)), lost: 0.3, ..run::Story::default() });
    assert_eq!(status(&lost, "J2"), "fail");
}

/// The database counted from before the window until after it: more sessions would have been active than there are.
#[test]
fn time_that_does_not_fit_is_noticed() {
    for (longer, expected) in [(1.0, "pass"), (1.1, "warn"), (1.5, "fail")] {
        let model = model(&run::Story { longer, ..run::Story::default() });
        assert_eq!(status(&model, "J5"), expected, "{longer}");
        assert_eq!(status(&model, "J2"), "pass", "both sides counted equally long");
    }
}

#[test]
fn where_the_sampler_was_blind_nothing_is_drawn() {
    let blind = model(&run::Story { blind: true, ..run::Story::default() });
    assert_eq!(status(&blind, "J4"), "warn");
    let activity = told(&blind).activity.as_ref().expect("samples");
    assert!((activity.sampler.missed - 0.2).abs() < 0.02, "{:?}", activity.sampler);
    let drawn = |from: f64, to: f64| activity.foreground.steps.iter().any(|s| s.0 < to && s.1 > from);
    assert!(drawn(0.0, 20.0) && !drawn(26.0, 34.0) && drawn(40.0, 60.0));
    let mean: f64 = activity.foreground.means().iter().sum();
    assert!((mean - 9.85).abs() < 0.2, "what is seen is not scaled by what is not: {mean}");
}

#[test]
fn data_that_is_wrong_withdraws_the_rate() {
    let lie = model(&run::Story { lie: true, ..run::Story::default() });
    assert!(
        lie.answer.headline.starts_with("No rate can be stated: 9 of 100,000"),
        "{}",
        lie.answer.headline
    );
    assert!(lie.figures.iter().all(|figure| figure.marks.withdrawn.is_some()));
}

#[test]
fn parts_of_log_file_sync_add_up_and_are_not_counted_twice() {
    let model = model(&run::Story::default());
    let spent = told(&model).leading().spent.as_ref().expect("waits");
    let whole = spent.event("log file sync").expect("commits waited").time_ns;
    let parts: Vec<f64> = spent.sync.iter().map(|line| line.time_ns).collect();
    assert_eq!(parts.len(), 3);
    assert!((parts.iter().sum::<f64>() / whole - 1.0).abs() < 1e-3);
    let names: Vec<&str> = spent.sync.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["log file sync: queue", "log file sync: write", "log file sync: wake-up"]);
    assert!(spent.foreground.iter().all(|line| !line.name.contains(": queue")));
    let commit = spent.classes().into_iter().find(|(class, _)| *class == Class::Commit).expect("a class").1;
    assert_eq!(commit, whole);
    assert!(
        spent.foreground.iter().chain(&spent.background).all(|line| line.name != "rdbms ipc message"),
        "idle"
    );
}

/// Three ways to scan, in turns: rates are each one's, with intervals over passes; the waits are those of all.
#[test]
fn what_took_turns_shares_its_time() {
    let model = model(&run::Story { case: "scan", ..run::Story::default() });
    let database = told(&model);
    assert!(database.together);
    for work in &database.works {
        let (low, high) = work.rate.interval.expect("over passes");
        assert!(low < work.rate.value && work.rate.value < high, "{}", work.name);
        assert_eq!(work.rate.basis.as_deref(), Some("9 passes"));
    }
    let headline = &model.answer.headline;
    assert!(
        headline.contains("(scan direct path); over all of them, db file scattered read took 66"),
        "{headline}"
    );
}

/// Intervals under the workload's name hold all kinds; those by kind beside them are not counted again.
#[test]
fn transactions_are_counted_once() {
    let model = model(&run::Story { case: "order-entry", ..run::Story::default() });
    let work = told(&model).leading();
    let busiest = work.busiest_minute.expect("a run of more than two minutes");
    assert!((busiest / work.rate.value - 1.0).abs() < 0.05, "{busiest} of {}", work.rate.value);
    let line = told(&model).time_line.as_ref().expect("time line");
    let lane = line.lanes.iter().find(|lane| lane.title.contains("operations")).expect("throughput");
    let steps = &lane.lines[0].steps;
    let drawn = steps.iter().map(|s| s.2).sum::<f64>() / steps.len() as f64;
    assert!((drawn / (work.rate.value / 60.0) - 1.0).abs() < 0.05, "{drawn} a second");
}

#[test]
fn growth_is_told_round_by_round() {
    let model = model(&run::Story { case: "growth", ..run::Story::default() });
    let rounds = told(&model).rounds.as_ref().expect("rounds");
    assert_eq!(rounds.rounds.len(), 5);
    let by_hand: f64 = rounds.rounds.iter().map(|r| r.insert_s).sum();
    assert_eq!(rounds.insert_s(), by_hand);
    assert!(rounds.cold_s() > 2.0 * rounds.warm_s());
    assert_eq!(told(&model).works.len(), 3);
    assert!(
        model.answer.more[0].starts_with("The table grew to 6.9 GiB in 5 rounds"),
        "{:?}",
        model.answer.more
    );
    let redo = told(&model).redo.as_ref().expect("redo");
    assert!(redo.switches.len() > 50 && redo.to_recover_max_mb() < redo.capacity_mb);
}

#[test]
fn a_comparison_tells_where_db_time_went() {
    let directory = tempfile::tempdir().expect("directory");
    let story = comparison::Story { engine: Some(0.08), ..comparison::Story::default() };
    let model = Model::read(&comparison::record(directory.path(), "run", &story)).expect("model");
    let comparison = model.comparison.as_ref().expect("comparison");
    let reads = comparison.workload("read-cold").expect("workload");
    let each = |i: usize| reads.cells[i].db_time_ns.expect("DB time");
    // Ten sessions without think time: DB time of a read is sessions / rate, so the faster one has the shorter bar.
    let rate = |i: usize| reads.cells[i].absolute.expect("level").value;
    for i in 0..comparison.configurations.len() {
        assert!((each(i) / (10.0 / rate(i) * 1e9) - 1.0).abs() < 0.01, "{i}");
    }
    let note = model.doubts.notes.iter().find(|note| note.check_id == "J2").expect("directio lost waits");
    assert!(note.places.iter().all(|place| place.subject.starts_with("directio: ")), "{note:?}");
    let directio = comparison.configurations.iter().position(|c| c.name == "directio").expect("mode");
    assert!(reads.cells[directio].marks.notes.contains(&note.number));
    assert!(reads.cells[directio].decision.is_some(), "times that do not add up withdraw no rate");
}

/// A record that says nothing but what was done (another target, an older version) is told as far as it goes.
#[test]
fn a_run_without_the_databases_own_account_is_told_as_far_as_it_goes() {
    use record::{Experiment, PhaseRow, VisitRow, Writer, json::json};
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("bare.redoubt");
    let asked = Experiment { case: Some("commit".into()), ..support::experiment("run", "/data") };
    let mut writer = Writer::create(&path, &asked).expect("create");
    let visit_id = writer.visit(&VisitRow::default()).expect("visit");
    let workload_id = writer.workload("commit", &json!({})).expect("workload");
    let phase = PhaseRow {
        visit_id,
        workload_id,
        kind: "measure".into(),
        threads: 1,
        end_ns: 5_000_000_000,
        ops: 500,
        seconds: 5.0,
        rate: 100.0,
        metric: "commits/s".into(),
        ..PhaseRow::default()
    };
    writer.phase(&phase).expect("phase");
    drop(writer);
    let reader = [Reader::open(&path).expect("open")];
    let text = report::terminal(&reader, 80, false).expect("text");
    assert!(text.contains("One session committed 100 times a second."), "{text}");
    let html = report::html(&reader).expect("page");
    assert!(!html.contains("id=\"activity\"") && !html.contains("id=\"events\""), "nothing to show");
    assert!(report::json(&reader).expect("json").contains("\"activity\": null"));
}
