//! A run that is killed leaves a record with everything that was acknowledged.
//!
//! This binary is its own victim: called as `kill write PATH` it writes a record without end and says which phases are
//! kept; as `kill finish PATH` it writes a small one to its end; called otherwise it starts such a child, kills it (SIGKILL) somewhere in the middle, and reads what is left.

use record::json::json;
use record::{Experiment, IntervalRow, PhaseRow, Reader, RecordError, VisitRow, Writer};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use units::{Nanos, Rng, Seed, clock};

/// Rows of one phase; written in one call, so a phase has all or none.
const INTERVALS: usize = 25;
/// Phases of one visit.
const PHASES: usize = 3;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[..] {
        [_, verb, path] if verb == "write" => {
            return write_without_end(Path::new(path)).expect("writes until it is killed");
        }
        [_, verb, path] if verb == "finish" => {
            return finish(Path::new(path)).expect("finishes, or is killed");
        }
        _ => {}
    }
    let seed = Seed::draw();
    println!("kill: seed {}", seed.0);
    let mut rng = Rng::new(seed);
    for phases in (1..=12).map(|round| usize::div_ceil(round * round, 2)) {
        killed_after_phases(phases, &mut rng);
    }
    for _ in 0..12 {
        killed_after(Nanos::micros(rng.below(20_000)));
    }
    for _ in 0..12 {
        killed_while_it_finishes(Nanos::micros(rng.below(5_000)));
    }
    println!("kill: 36 killed runs read");
}

fn write_without_end(path: &Path) -> Result<(), RecordError> {
    let mut writer = Writer::create(path, &Experiment { kind: "compare".into(), ..Experiment::default() })?;
    writer.plan(&json!({"delta": 0.03}))?;
    let workload_id = writer.workload("read-cold", &json!({}))?;
    loop {
        let visit_id = writer.visit(&VisitRow::default())?;
        for _ in 0..PHASES {
            let phase = PhaseRow { visit_id, workload_id, kind: "measure".into(), ..PhaseRow::default() };
            let phase = writer.phase(&phase)?;
            let interval = |i| IntervalRow { t_ns: i as u64, ops: 7, ..IntervalRow::default() };
            writer.intervals(phase, &(0..INTERVALS).map(interval).collect::<Vec<_>>())?;
            writer.histogram(phase, "read", &[7; 300])?;
            println!("{phase}");
            std::io::stdout().flush().expect("the parent listens");
        }
        writer.end_visit(visit_id, "measured", None)?;
    }
}

fn finish(path: &Path) -> Result<(), RecordError> {
    let mut writer = Writer::create(path, &Experiment::default())?;
    let visit = writer.visit(&VisitRow::default())?;
    writer.end_visit(visit, "measured", None)?;
    println!("measured");
    writer.finish("finished")
}

fn start(verb: &str, path: &Path) -> Child {
    let this = std::env::current_exe().expect("this test has a file");
    Command::new(this).arg(verb).arg(path).stdout(Stdio::piped()).spawn().expect("this test can start itself")
}

/// Waits until the child said that `phases` are kept, lets it run on for a moment, kills it, reads.
fn killed_after_phases(phases: usize, rng: &mut Rng) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.redoubt");
    let mut child = start("write", &path);
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    for _ in 0..phases {
        said.read_line(&mut String::new()).expect("the child speaks");
    }
    let beside = Reader::open(&path).expect("a record is readable while it is written");
    assert!(beside.phases().expect("phases").len() >= phases);
    drop(beside);
    clock::sleep(Nanos::micros(rng.below(3_000)));
    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("what was said before");
    // The last line may be cut by the kill.
    let acknowledged = phases + rest.matches('\n').count();
    whole(&path, acknowledged);
    moved_with_its_log(&path, folder.path(), acknowledged);
}

/// All that was acknowledged is there, whole.
fn whole(path: &Path, acknowledged: usize) {
    let record = Reader::open(path).expect("a killed run's record opens");
    assert_eq!(record.status().expect("status"), "running");
    let phases = record.phases().expect("phases");
    assert!(phases.len() >= acknowledged, "{} phases of {acknowledged} acknowledged", phases.len());
    let mut intervals: HashMap<i64, usize> = HashMap::new();
    for (phase, row) in record.all_intervals().expect("intervals") {
        assert_eq!(row.ops, 7);
        *intervals.entry(phase).or_default() += 1;
    }
    assert!(intervals.values().all(|count| *count == INTERVALS), "a batch was torn: {intervals:?}");
    assert!(phases[..acknowledged].iter().all(|(id, _)| intervals.contains_key(id)));
    let ended = record.visits().expect("visits").iter().filter(|(_, visit)| visit.sha256.is_some()).count();
    assert!(ended >= (acknowledged - 1) / PHASES, "{ended} ended visits");
    assert_eq!(record.verify().expect("the chain holds").len(), 1 + ended);
}

/// Moved elsewhere with its log, as a user would who sends it.
fn moved_with_its_log(path: &Path, folder: &Path, acknowledged: usize) {
    let copy = folder.join("copy.redoubt");
    for suffix in ["", "-wal"] {
        let with = |path: &Path| format!("{}{suffix}", path.display());
        std::fs::copy(with(path), with(&copy)).expect("copied");
    }
    whole(&copy, acknowledged);
}

/// Killed at any moment, the creation of the file included.
fn killed_after(delay: Nanos) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.redoubt");
    let mut child = start("write", &path);
    clock::sleep(delay);
    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");
    match Reader::open(&path) {
        Ok(record) => drop(record.verify().expect("the chain holds")),
        Err(RecordError::Missing(_) | RecordError::NotARecord { .. }) => {}
        Err(other) => panic!("after {delay}: {other}"),
    }
}

/// Killed on the last steps, where the log is merged into the file.
fn killed_while_it_finishes(delay: Nanos) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run.redoubt");
    let mut child = start("finish", &path);
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    said.read_line(&mut String::new()).expect("the child speaks");
    clock::sleep(delay);
    child.kill().expect("the child can be killed, or has ended");
    child.wait().expect("the child ends");
    let record = Reader::open(&path).unwrap_or_else(|e| panic!("after {delay}: {e}"));
    assert_eq!(record.verify().expect("the chain holds").len(), 1);
    assert!(["running", "finished"].contains(&record.status().expect("status").as_str()));
}
