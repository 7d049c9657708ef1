//! Every name that the catalogue maps a wait to is asked of the real servers: a name that none of them knows maps nothing.

use crate::stand::{Stand, settings};
use lab::server::Kind;
use std::collections::BTreeSet;
use std::path::PathBuf;
use waits::{Event, Mapping};

/// Names of PostgreSQL 16 to 18, which the version of Debian's package (15) does not have yet.
const LATER: [&str; 6] = [
    "AioIoCompletion",
    "AioIoUringExecution",
    "AioIoUringSubmit",
    "AioUringCompletion",
    "AioWorkerSubmissionQueue",
    "SpinDelay",
];

fn mapped(of: fn(Event) -> Mapping) -> BTreeSet<&'static str> {
    Event::ALL.into_iter().flat_map(|event| of(event).names.iter().copied()).collect()
}

/// PostgreSQL up to 16 has no list of its waits: their names are texts of its program.
#[test]
fn every_wait_of_postgresql_is_in_its_program() {
    let programs = lab::server::find::programs(Kind::Postgres, None).unwrap_or_else(|e| panic!("{e}"));
    let program = std::fs::read(programs.server).expect("the program");
    let texts: BTreeSet<String> = program
        .split(|byte| !byte.is_ascii_graphic())
        .filter(|text| (3..64).contains(&text.len()))
        .map(|text| String::from_utf8_lossy(text).to_ascii_lowercase())
        .collect();
    let unknown: Vec<&str> = mapped(|event| event.info().postgres)
        .into_iter()
        .filter(|wait| {
            let name = wait.split_once(':').map_or(*wait, |(_, name)| name);
            // A linker lets a text be the end of a longer one: LockManager of PredicateLockManager.
            let is_there = || texts.iter().any(|text| text.ends_with(&name.to_ascii_lowercase()));
            !name.ends_with('*') && !LATER.contains(&name) && !is_there()
        })
        .collect();
    assert!(unknown.is_empty(), "PostgreSQL knows no {unknown:?}");
}

/// Of a server that runs: the one whose programs REDOUBT_PG_BIN names (`cargo x servers` fetches one), else the installed one. From 17 on a
/// view lists its waits; from 16 on it counts its I/O by object.
#[test]
fn waits_and_counters_of_postgresql_are_in_its_views() {
    let programs = std::env::var_os("REDOUBT_PG_BIN").map(PathBuf::from);
    let mut stand = Stand::new();
    let server = stand.server_of(Kind::Postgres, programs.as_deref(), &settings(12));
    let major: u32 = server.version().split('.').next().and_then(|n| n.parse().ok()).expect("a version");
    let mut session = server.connect("names").expect("a session");
    if major >= 17 {
        let rows = session.rows("select lower(type || ':' || name) from pg_wait_events").expect("a list");
        let known: BTreeSet<String> =
            rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        let is_there = |wait: &&str| {
            let wait = wait.to_ascii_lowercase();
            known.iter().any(|known| match wait.strip_suffix('*') {
                Some(start) => known.starts_with(start),
                None => *known == wait,
            })
        };
        let mut unknown = mapped(|event| event.info().postgres);
        unknown.retain(|wait| !is_there(wait));
        assert!(unknown.is_empty(), "PostgreSQL {} knows no {unknown:?}", server.version());
    }
    let counted = lab::server::counters::read(Kind::Postgres, &mut *session).expect("counters");
    for (since, name) in [
        (15, "pg_stat_wal.wal_records"),
        (16, "pg_stat_io.relation.reads"),
        (17, "pg_stat_checkpointer.buffers_written"),
        (18, "pg_stat_io.wal.fsyncs"),
    ] {
        assert_eq!(counted.contains_key(name), major >= since, "{name} of {}", server.version());
    }
    drop((session, server));
    stand.end();
}

#[test]
fn every_wait_and_counter_of_mariadb_is_in_its_tables() {
    let mut stand = Stand::new();
    let server = stand.server(Kind::Mariadb, &settings(12));
    let mut session = server.connect("names").expect("a session");
    let mut column = |sql: &str| -> Vec<String> {
        let rows = session.rows(sql).expect("rows");
        rows.into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .map(|n| n.to_ascii_lowercase())
            .collect()
    };
    let mut known = column("select name from performance_schema.setup_instruments");
    known.extend(column("show global status"));
    // What stands for a session's state, and what events_waits_current says of one that has nothing to do.
    known.extend(["state:commit", "idle", "wait/io/socket/sql/client_connection"].map(str::to_owned));
    let unknown: Vec<&str> = mapped(|event| event.info().mariadb)
        .into_iter()
        .filter(|name| {
            let name = name.to_ascii_lowercase();
            !known.iter().any(|known| match name.strip_suffix('*') {
                Some(start) => known.starts_with(start),
                None => *known == name,
            })
        })
        .collect();
    assert!(unknown.is_empty(), "MariaDB knows no {unknown:?}");
    drop((session, server));
    stand.end();
}
