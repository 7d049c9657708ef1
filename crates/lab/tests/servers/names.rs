//! Every name that the catalogue maps a wait to is asked of the real servers: a name that none of them knows maps nothing.

use crate::stand::{Stand, settings};
use lab::server::Kind;
use std::collections::BTreeSet;
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

/// Names of PostgreSQL 15 to 17, which 18 no longer has.
const EARLIER: [&str; 0] = [];

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

/// From 17 on a view lists them. Names that only older versions have are left to the test above.
#[test]
#[ignore = "needs PostgreSQL 17 or later: cargo x servers; REDOUBT_PG_BIN=DIR cargo test -p lab --test servers -- --ignored"]
fn every_wait_of_postgresql_18_is_in_its_list() {
    let programs = std::env::var_os("REDOUBT_PG_BIN").expect("REDOUBT_PG_BIN, as cargo x servers prints it");
    let mut stand = Stand::new();
    let server = stand.server_of(Kind::Postgres, Some(programs.as_ref()), &settings(12));
    let mut session = server.connect("names").expect("a session");
    let known: BTreeSet<String> = session
        .rows("select type || ':' || name from pg_wait_events")
        .expect("17 or later")
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let unknown: Vec<&str> = mapped(|event| event.info().postgres)
        .into_iter()
        .filter(|wait| {
            let wait = wait.to_ascii_lowercase();
            !known.iter().any(|known| match wait.strip_suffix('*') {
                Some(start) => known.starts_with(start),
                None => *known == wait,
            })
        })
        .collect();
    println!("of {} waits in the list; unknown there: {unknown:?}", known.len());
    assert!(
        unknown.iter().all(|wait| EARLIER.contains(wait)),
        "PostgreSQL {} knows no {unknown:?}",
        server.version()
    );
    let counted = lab::server::counters::read(Kind::Postgres, &mut *session).expect("counters");
    for name in ["pg_stat_io.relation.reads", "pg_stat_io.wal.fsyncs", "pg_stat_checkpointer.buffers_written"]
    {
        assert!(counted.contains_key(name), "no {name} in {:?}", counted.keys());
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
