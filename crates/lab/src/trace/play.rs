//! A private database with a short workload, to be traced: made and filled before, removed by the journal.

use super::analysis::Analysis;
use super::collect::{Collected, Collector, Follow};
use super::{Options, Subject, go_on, tracer};
use crate::LabError;
use crate::bench::Bench;
use crate::control::Control;
use crate::database::drive::{Pace, Performance, Terms};
use crate::database::order_entry::{self, Scale, Think};
use crate::database::random_read::{self, Shape};
use crate::database::{Database, Sizes, commit};
use crate::run::Case;
use crate::server::cases;
use crate::server::possible::SPARE_CONNECTIONS;
use crate::server::{Kind, Server, Settings};
use engine::{AlterSystem, Instance, Placement, Shutdown};
use host::trace::{Tracer, own_thread, process};
use record::json::{Value, json};
use units::{Bytes, Nanos};

/// Small, so that blocks are read and written, not only kept.
const CACHE: Bytes = Bytes::mib(16);
const DATA: Bytes = Bytes::mib(64);
const REDO: Bytes = Bytes::mib(32);
const REDO_GROUPS: u32 = 3;
const BLOCK: Bytes = Bytes::kib(8);
const ORDERS: Scale = Scale::small(2);
/// Before the figures of the workload itself begin; traced all the same.
const SETTLE: Nanos = Nanos::millis(200);
const SLICE: Nanos = Nanos::millis(250);

/// Makes it, plays, and returns what was seen meanwhile.
///
/// # Errors
/// What the database says; no right to trace; [`LabError::Cancelled`].
pub(super) fn database(
    options: &Options,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(Collected, Value), LabError> {
    let Subject::Database { kind, case, configuration, sessions, .. } = &options.subject else {
        return Err(LabError::Target("no database was named".into()));
    };
    if matches!(case, Case::Growth | Case::Scan) {
        return Err(LabError::Target(format!(
            "case {case} cannot be traced yet; type commit, order-entry or random-read"
        )));
    }
    let (collected, version, transactions) = match kind {
        None => embedded(options, bench, control)?,
        Some(kind) => served(*kind, options, bench, control)?,
    };
    let product = kind.map_or("the embedded database".to_owned(), |kind| format!("{kind} {version}"));
    let about = json!({ "what": "database", "product": product, "case": case.name(), "sessions": sessions,
                        "configuration": configuration.name(), "transactions": transactions });
    Ok((collected, about))
}

fn embedded(
    options: &Options,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(Collected, String, u64), LabError> {
    let Subject::Database { case, configuration, sessions, parameters, .. } = &options.subject else {
        return Err(LabError::Cancelled);
    };
    bench.step(control, "making the database");
    let sizes = Sizes {
        block: BLOCK,
        cache: CACHE,
        data: Bytes(DATA.0 * 2),
        undo: REDO,
        redo: REDO,
        redo_groups: REDO_GROUPS,
        flash: Bytes(0),
    };
    let database = Database::create(bench.workspace(), &sizes, &[], options.seed)?;
    let instance = database.open_with(configuration, parameters)?;
    let result = (|| -> Result<(Collected, u64), LabError> {
        let mut session = instance.session("prepare")?;
        let seed = options.seed.part(7);
        let rows = match case {
            Case::OrderEntry => {
                order_entry::prepare(&mut session, ORDERS, seed, control.cancel)?;
                None
            }
            Case::RandomRead => {
                random_read::prepare(&mut session, DATA.0 / BLOCK.0, BLOCK, seed, control.cancel)?;
                Some(random_read::open(&mut session)?)
            }
            _ => None,
        };
        session.alter_system(&AlterSystem::Checkpoint)?;
        session.alter_system(&AlterSystem::FlushBufferCache)?;
        drop(session);
        go_on(control)?;
        let tracer = tracer(options, bench, control)?;
        let traced = (tracer, Analysis::default(), Follow::Threads(own_threads()));
        play(traced, options, bench, control, |terms| {
            let instance: &Instance = &instance;
            match (case, &rows) {
                (Case::OrderEntry, _) => order_entry::run(instance, *sessions, Think::None, false, terms),
                (_, Some(rows)) => {
                    let shape = Shape { sessions: *sessions, batch: 1, span: 0..rows.count() };
                    random_read::run(instance, rows, &shape, terms)
                }
                _ => commit::run(instance, *sessions, terms),
            }
        })
    })();
    let how = if result.is_ok() { Shutdown::Immediate } else { Shutdown::Abort };
    let closed = instance.shutdown(how);
    let (collected, transactions) = result?;
    closed?;
    Ok((collected, String::new(), transactions))
}

/// The database's threads, and this one, whose children the sessions are: not the one that samples counters for the record.
fn own_threads() -> Vec<u32> {
    let of_database = |tid: &u32| {
        let named = process::task(*tid).map(|task| task.name).unwrap_or_default();
        *tid == own_thread() || named != "mmnl" && named != "redoubt"
    };
    process::threads(std::process::id()).into_iter().filter(of_database).collect()
}

fn served(
    kind: Kind,
    options: &Options,
    bench: &mut Bench,
    control: &mut Control<'_>,
) -> Result<(Collected, String, u64), LabError> {
    let Subject::Database { case, configuration, sessions, parameters, programs, .. } = &options.subject
    else {
        return Err(LabError::Cancelled);
    };
    bench.step(control, &format!("making a private {kind} server"));
    let settings = Settings {
        cache: CACHE,
        redo: Bytes(REDO.0 * u64::from(REDO_GROUPS)),
        mode: configuration.mode,
        api: configuration.api,
        block: None,
        connections: sessions + SPARE_CONNECTIONS,
        parameters: parameters.clone(),
    };
    let workspace = bench.workspace();
    let at = (workspace.path(), &Placement::default());
    let mut server =
        Server::create(kind, programs.as_deref(), at, &settings, bench.journal(), control.cancel)?;
    server.start(control.cancel)?;
    let rows = match case {
        Case::OrderEntry => {
            cases::order_entry::prepare(&server, ORDERS, control.cancel)?;
            None
        }
        Case::RandomRead => Some(cases::random_read::prepare(&server, DATA.0)?),
        _ => None,
    };
    if rows.is_some() {
        server.empty_caches(control.cancel)?;
    }
    go_on(control)?;
    let tracer = tracer(options, bench, control)?;
    let mut analysis = Analysis::default();
    tell_threads(&server, &mut analysis);
    let processes = process::with_descendants(server.process().unwrap_or_default());
    let traced = (tracer, analysis, Follow::Processes(processes));
    let version = server.version().to_owned();
    let (collected, transactions) = play(traced, options, bench, control, |terms| match (case, rows) {
        (Case::OrderEntry, _) => {
            cases::order_entry::run(&server, ORDERS, *sessions, Think::None, false, terms)
        }
        (_, Some(rows)) => {
            let shape = Shape { sessions: *sessions, batch: 1, span: 0..rows };
            cases::random_read::run(&server, rows, &shape, terms)
        }
        _ => cases::commit::run(&server, *sessions, terms),
    })?;
    server.stop()?;
    Ok((collected, version, transactions))
}

/// MariaDB's threads have no names of their own, but it knows them.
fn tell_threads(server: &Server, analysis: &mut Analysis) {
    if server.kind() != Kind::Mariadb {
        return;
    }
    let names = "select thread_os_id, name from performance_schema.threads where thread_os_id is not null";
    let rows = server.connect("threads").and_then(|mut session| session.rows(names)).unwrap_or_default();
    for row in rows {
        if let [Some(tid), Some(name)] = row.as_slice()
            && let Ok(tid) = tid.parse()
        {
            // Threads of sessions end, and their numbers and threads are used for others.
            if !name.contains("one_connection") {
                analysis.tell(tid, name);
            }
        }
    }
}

/// Plays while a thread collects.
fn play(
    (tracer, analysis, follow): (Tracer, Analysis, Follow),
    options: &Options,
    bench: &mut Bench,
    control: &mut Control<'_>,
    play: impl FnOnce(Terms<'_>) -> Result<Performance, LabError>,
) -> Result<(Collected, u64), LabError> {
    bench.set_forecast(bench.elapsed_seconds() + options.seconds + 1.0);
    bench.step(control, "playing and tracing");
    let watch = bench.watch();
    let terms = Terms {
        settle: SETTLE,
        measure: Nanos::secs(options.seconds),
        slice: SLICE,
        pace: Pace::Closed,
        seed: options.seed.part(8),
        cancel: control.cancel,
        watch: &watch,
    };
    let collector = Collector::start(tracer, analysis, follow)?;
    let played = play(terms);
    let collected = collector.stop();
    let played = played?;
    Ok((collected?, played.played.iter().sum()))
}
