//! What does a database ask of the kernel? `redoubt trace`: calls, sizes, batches and latencies by the role of each thread and the class
//! of each file, and a verdict: direct? durable when it returns? truly asynchronous?
//!
//! The journey of [`run`]: somebody is found, or started (`play`: a database of ours with a short workload) → the kernel's tracer follows
//! them (`host::trace`) → a thread empties its buffers (`collect`) → each call finds its end, each request its completion, each descriptor
//! its file (`analysis`, with `ring`, `aio` and `files`) → threads become roles (`role`), files classes (`class`), figures a verdict
//! (`verdict`) → the record (`store`).

mod aio;
mod analysis;
mod class;
mod collect;
mod doubts;
mod figures;
mod files;
mod play;
mod ring;
mod role;
mod store;
#[cfg(test)]
mod tests;
mod verdict;

use crate::LabError;
use crate::bench::{Bench, Finished, Purpose};
use crate::compare::configuration::Configuration;
use crate::compare::stop_if_cancelled;
use crate::control::Control;
use crate::run::Case;
use crate::server::Kind;
use analysis::Analysis;
use collect::{Collected, Collector, Follow};
use host::trace::{Tracer, Waiting, process};
use record::json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use units::{Nanos, Seed, clock};

/// Who is traced.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A process, its threads, and all that came from it.
    Process(u32),
    /// A command that is started, and all that it starts.
    Command(Vec<OsString>),
    /// A private database, with a short workload.
    Database {
        /// Which product; none: the embedded database.
        kind: Option<Kind>,
        /// Folder of its programs; none: found.
        programs: Option<PathBuf>,
        /// What is played.
        case: Case,
        /// I/O mode and API.
        configuration: Configuration,
        /// Sessions that play.
        sessions: u32,
        /// Parameters of the database, by name.
        parameters: Vec<(String, String)>,
    },
}

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is traced.
    pub subject: Subject,
    /// How long, seconds; a command is traced to its end.
    pub seconds: f64,
    /// Where a database of ours is made.
    pub directory: PathBuf,
    /// By `strace`, also where the kernel's tracer works.
    pub strace: bool,
    /// Where chance comes from.
    pub seed: Seed,
    /// The command as typed.
    pub command: String,
    /// Where the record goes; `None`: the usual place.
    pub record_path: Option<PathBuf>,
}

/// How often a command is asked whether it has ended, and Ctrl-C is looked for.
const LOOK_EVERY: Nanos = Nanos::millis(20);

/// Traces; returns where the record is.
///
/// # Errors
/// Nobody there; no right to trace, with what to type; what a database of ours says. Ctrl-C ends a trace early and is no error.
pub fn run(options: &Options, control: &mut Control<'_>) -> Result<Finished, LabError> {
    if !(0.5..=86_400.0).contains(&options.seconds) {
        return Err(LabError::Target(format!(
            "--seconds {} is out of range; type 0.5 to 86400",
            options.seconds
        )));
    }
    let workspace_in = matches!(options.subject, Subject::Database { .. }).then(|| options.directory.clone());
    let case = match &options.subject {
        Subject::Database { case, .. } => Some(case.name()),
        _ => None,
    };
    let purpose = Purpose {
        kind: "trace",
        case,
        command: options.command.clone(),
        seed: options.seed,
        budget_seconds: options.seconds,
        record_path: options.record_path.clone(),
        workspace_in,
        is_server_ours: false,
    };
    let mut bench = Bench::open(&options.directory, purpose)?;
    let result = trace(options, &mut bench, control);
    bench.finish(result)
}

fn trace(options: &Options, bench: &mut Bench, control: &mut Control<'_>) -> Result<(), LabError> {
    let (collected, about) = match &options.subject {
        Subject::Process(pid) => follow(*pid, options, bench, control)?,
        Subject::Command(words) => command(words, options, bench, control)?,
        Subject::Database { .. } => play::database(options, bench, control)?,
    };
    bench.step(control, "writing down what was seen");
    let stored = store::store(&collected, about, bench);
    collected.tracer.remove(bench.journal())?;
    stored
}

/// The kernel's tracer, or `strace` where that is not to be had.
fn tracer(options: &Options, bench: &mut Bench, control: &mut Control<'_>) -> Result<Tracer, LabError> {
    if options.strace {
        return Ok(Tracer::strace());
    }
    match Tracer::open(bench.journal()) {
        Ok(tracer) => Ok(tracer),
        Err(error) if matches!(options.subject, Subject::Database { kind: None, .. }) => {
            Err(LabError::Target(format!(
                "{error}. The embedded database runs in this very process, which strace cannot stop"
            )))
        }
        Err(error) => {
            control.progress.say(&format!(
                "{error}. Until then strace is used: it slows every call down and cannot see io_uring."
            ));
            Ok(Tracer::strace())
        }
    }
}

/// A process that is there already.
fn follow(
    pid: u32,
    options: &Options,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(Collected, Value), LabError> {
    let Some(program) = process::program(pid).or_else(|| process::task(pid).map(|task| task.name)) else {
        return Err(LabError::Target(format!(
            "there is no process {pid}, or it belongs to another user; list them with: ps aux, and try with sudo"
        )));
    };
    if pid == std::process::id() {
        return Err(LabError::Target("a trace of itself would never end; give another process".into()));
    }
    let tracer = tracer(options, bench, control)?;
    let processes = process::with_descendants(pid);
    let count = processes.len();
    let collector = Collector::start(tracer, Analysis::default(), Follow::Processes(processes))?;
    let until = clock::now() + Nanos::secs(options.seconds);
    bench.set_forecast(bench.elapsed_seconds() + options.seconds);
    while clock::now() < until
        && !control.cancelled()
        && process::state(pid).is_some_and(|state| state != 'Z')
    {
        bench.step(control, &format!("tracing {program} ({pid})"));
        clock::sleep(LOOK_EVERY);
    }
    let collected = collector.stop()?;
    Ok((collected, json!({ "what": "process", "pid": pid, "program": program, "processes": count })))
}

/// A command, from its first step to its end.
fn command(
    words: &[OsString],
    options: &Options,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(Collected, Value), LabError> {
    let tracer = tracer(options, bench, control)?;
    let waiting = Waiting::start(words)?;
    let pid = waiting.process();
    let collector = Collector::start(tracer, Analysis::default(), Follow::Processes(vec![pid]))?;
    let mut child = waiting.go()?;
    let status = loop {
        match child.try_wait() {
            Ok(None) if control.cancelled() => {
                // It has its Ctrl-C from the terminal already; one that was sent to us alone ends it too.
                let _ = child.kill();
            }
            Ok(None) => {}
            Ok(Some(status)) => break status,
            Err(error) => return Err(LabError::Target(format!("the command cannot be waited for: {error}"))),
        }
        clock::sleep(LOOK_EVERY);
    };
    let collected = collector.stop()?;
    let shown: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if status.code() == Some(127) {
        return Err(LabError::Target(format!("the command was not found: {}", shown.join(" "))));
    }
    Ok((collected, json!({ "what": "command", "command": shown, "status": status.code() })))
}

/// Stops on Ctrl-C.
fn go_on(control: &Control<'_>) -> Result<(), LabError> {
    stop_if_cancelled(control)
}
