//! Do the database's own accounts agree? Waits against the time model, DB time against the clock, samples against exact
//! counters, ticks against plan.
//!
//! These rules need nothing but the record, so they are applied here, to every record of the embedded database, and stand among
//! its other checks. Times that do not add up label the shares; the rate beside them was counted by others and stands.

use super::Axis;
use super::activity::{self, Activity};
use super::spent::{Spent, TOLERANCE};
use crate::model::evidence::Evidence;
use crate::words;
use record::CheckRow;

/// Waits and CPU that miss DB time by more than this fail.
const FAIL: f64 = 0.15;
/// DB time may be this much of sessions × time, and beyond the second the rule fails.
const FITS: (f64, f64) = (1.05, 1.2);
/// Samples may miss the counters by this share.
const SAMPLED_TOLERANCE: f64 = 0.1;
/// Fewer samples say nothing.
const SAMPLES_MIN: usize = 400;
/// More missing ticks than this make the picture one-sided: a sampler is late when the machine is busiest.
const MISSED_MAX: f64 = 0.05;

/// What a rule found.
struct Found {
    status: &'static str,
    value: Option<f64>,
    evidence: String,
}

/// Every rule on every workload that the database was asked about.
pub fn checks(evidence: &Evidence) -> Vec<CheckRow> {
    let mut all = match evidence.experiment.kind.as_str() {
        "run" => of_run(evidence),
        _ => of_configurations(evidence),
    };
    // A run that applied one of these itself has the last word.
    all.retain(|check| !evidence.checks.iter().any(|theirs| theirs.check_id == check.check_id));
    all
}

fn of_run(evidence: &Evidence) -> Vec<CheckRow> {
    let mut all = Vec::new();
    for (workload, row) in &evidence.workloads {
        let measured =
            evidence.phases.iter().filter(|(_, p)| p.kind == "measure" && p.workload_id == *workload);
        let phases: Vec<i64> = measured.map(|(id, _)| *id).collect();
        let Some(spent) = Spent::of(evidence, &phases) else { continue };
        let scope = |check: (&str, &str, &str), found: Found| {
            check_row(("phase", phases[0], &row.name), check, found)
        };
        all.push(scope(ACCOUNTED, accounted(&spent)));
        all.push(scope(WITHIN, within(evidence, &phases, &spent)));
        if !evidence.ash.is_empty() {
            all.push(scope(SAMPLED, sampled(evidence, &phases, &spent)));
        }
    }
    if let Some(activity) = Axis::of(evidence).and_then(|axis| Activity::read(evidence, axis)) {
        all.push(CheckRow { scope_id: None, ..check_row(("run", 0, ""), TICKS, ticks(&activity)) });
    }
    all
}

fn of_configurations(evidence: &Evidence) -> Vec<CheckRow> {
    let mut all = Vec::new();
    for (id, configuration) in &evidence.configurations {
        for (workload, row) in &evidence.workloads {
            let of_cell = evidence.phases.iter().filter(|(_, p)| {
                let visit = evidence.visits.get(&p.visit_id);
                p.kind == "measure"
                    && p.workload_id == *workload
                    && visit.is_some_and(|v| v.configuration_id == Some(*id) && v.status == "measured")
            });
            let phases: Vec<i64> = of_cell.map(|(id, _)| *id).collect();
            let Some(spent) = Spent::of(evidence, &phases) else { continue };
            let subject = format!("{}: {}", configuration.name, row.name);
            // Of samples it holds by itself.
            if spent.looks.is_none() {
                all.push(check_row(("configuration", *id, &subject), ACCOUNTED, accounted(&spent)));
            }
            all.push(check_row(("configuration", *id, &subject), WITHIN, within(evidence, &phases, &spent)));
        }
    }
    all
}

/// No more sessions can have been active than there were. More of them means that the database counted longer than the
/// measured window lasts.
fn within(evidence: &Evidence, phases: &[i64], spent: &Spent) -> Found {
    let of_phases = evidence.phases.iter().filter(|(id, _)| phases.contains(id));
    let sessions = of_phases.map(|(_, p)| p.threads).max().unwrap_or(0);
    if sessions == 0 || spent.seconds <= 0.0 {
        return Found { status: "na", value: None, evidence: "The number of sessions is not known.".into() };
    }
    let value = spent.aas() / f64::from(sessions);
    let status = match () {
        () if value <= FITS.0 => "pass",
        () if value <= FITS.1 => "warn",
        () => "fail",
    };
    let why = match status {
        "pass" => "",
        _ => {
            ": it was counted over more than the measured time, so AAS and DB time of an operation are too large by that"
        }
    };
    let evidence = format!(
        "DB time is {} × the time of {}{why}.",
        words::ratio(value),
        words::count(sessions as usize, "session")
    );
    Found { status, value: Some(value), evidence }
}

/// Id, title and rule.
type Rule = (&'static str, &'static str, &'static str);
const ACCOUNTED: Rule =
    ("J2", "waits and CPU add up to DB time", "within 5 % of DB time; beyond 15 % it fails");
const WITHIN: Rule =
    ("J5", "DB time fits into the measured time", "at most 1.05 × sessions × time; beyond 1.2 it fails");
const SAMPLED: Rule = ("J3", "samples agree with the exact counters", "sampled time 0.9 to 1.1 of DB time");
const TICKS: Rule = ("J4", "the sampler kept its time", "at most 5 % of the ticks missing");

fn check_row(
    (scope, id, subject): (&str, i64, &str),
    (check_id, title, threshold): (&str, &str, &str),
    found: Found,
) -> CheckRow {
    CheckRow {
        scope: scope.into(),
        scope_id: Some(id),
        subject: subject.into(),
        check_id: check_id.into(),
        title: title.into(),
        severity: "context".into(),
        status: found.status.into(),
        value: found.value,
        threshold: threshold.into(),
        evidence: found.evidence,
    }
}

fn accounted(spent: &Spent) -> Found {
    let Some(value) = spent.accounted() else {
        return Found { status: "na", value: None, evidence: "No user session was active.".into() };
    };
    let off = (value - 1.0).abs();
    let status = match () {
        () if off <= TOLERANCE => "pass",
        () if off <= FAIL => "warn",
        () => "fail",
    };
    let inside = match spent.cpu_inside_waits_ns / spent.db_time_ns {
        share if share < 0.005 => String::new(),
        share => format!("; {} more CPU was used inside waits and is counted there", words::percent(share)),
    };
    let side = if value < 1.0 { "some waits are not counted" } else { "some time is counted twice" };
    let evidence = format!(
        "Waits, CPU and waiting for a CPU are {} of DB time ({} s){}{inside}.",
        words::percent(value),
        words::amount(spent.db_time_ns / 1e9),
        if status == "pass" { String::new() } else { format!(": {side}") }
    );
    Found { status, value: Some(value), evidence }
}

fn sampled(evidence: &Evidence, phases: &[i64], spent: &Spent) -> Found {
    let of_phases = evidence.phases.iter().filter(|(id, _)| phases.contains(id));
    let sums = of_phases.map(|(_, p)| activity::sampled(evidence, p.start_ns, p.end_ns));
    let (seconds, samples) = sums.fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let exact = spent.db_time_ns / 1e9;
    if samples < SAMPLES_MIN || exact <= 0.0 {
        let evidence = format!("{samples} samples are too few to hold against the counters.");
        return Found { status: "na", value: None, evidence };
    }
    let value = seconds / exact;
    let status = if (value - 1.0).abs() <= SAMPLED_TOLERANCE { "pass" } else { "warn" };
    let evidence = format!(
        "The samples say {} s of activity, the exact counters {} s: a ratio of {}.",
        words::amount(seconds),
        words::amount(exact),
        words::ratio(value)
    );
    Found { status, value: Some(value), evidence }
}

fn ticks(activity: &Activity) -> Found {
    let sampler = activity.sampler;
    let status = if sampler.missed <= MISSED_MAX { "pass" } else { "warn" };
    let evidence = format!(
        "{} of the ticks planned every {} ms did not come{}.",
        words::percent(sampler.missed),
        words::amount(sampler.interval * 1e3),
        if status == "pass" { "" } else { ": where they are missing, nothing is drawn" }
    );
    Found { status, value: Some(sampler.missed), evidence }
}
