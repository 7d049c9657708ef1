//! Case `growth` on a server, as the article's script has it: a table doubles itself again and again, counted cold and warm.

use super::{create_source, table_bytes};
use crate::LabError;
use crate::database::growth::{COUNTS, Growth, Round};
use crate::database::{inconsistent, source};
use crate::server::Server;
use std::sync::atomic::{AtomicBool, Ordering};
use units::clock;

/// Makes the source of about `bytes`.
///
/// # Errors
/// What the server says.
pub fn prepare(server: &Server, bytes: u64) -> Result<(), LabError> {
    let mut session = server.connect("prepare")?;
    create_source(server.kind(), &mut *session, "source", (bytes / source::ROW_BYTES).max(100))?;
    Ok(())
}

/// Runs the script; `begin_round` is told before each round what comes. Emptying the caches is not part of any time.
///
/// # Errors
/// What the server says; a count that is not what was inserted; [`LabError::Cancelled`].
pub fn run(
    server: &mut Server,
    rounds: u32,
    cancel: &AtomicBool,
    begin_round: &mut dyn FnMut(&str),
) -> Result<Growth, LabError> {
    let mut growth = Growth::default();
    begin_round("CREATE TABLE T AS SELECT");
    let mut session = server.connect("growth")?;
    let began = clock::now();
    session.execute("create table t as select * from source")?;
    growth.create = clock::now() - began;
    growth.first_bytes = table_bytes(server, &mut *session, "t")?;
    let mut rows = session.number("select count(*) from t")? as u64;
    drop(session);
    for number in 1..=rounds {
        if cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        begin_round(&format!("round {number}: INSERT INTO T SELECT * FROM T, then count"));
        let round = round(server, number, &mut rows, cancel)?;
        growth.rounds.push(round);
    }
    server.connect("growth")?.execute("drop table t")?;
    Ok(growth)
}

fn round(server: &mut Server, number: u32, rows: &mut u64, cancel: &AtomicBool) -> Result<Round, LabError> {
    server.empty_caches(cancel)?;
    let mut session = server.connect("growth")?;
    let began = clock::now();
    session.execute("insert into t select * from t")?;
    let insert = clock::now() - began;
    let added = *rows;
    *rows *= 2;
    let segment_bytes = table_bytes(server, &mut *session, "t")?;
    drop(session);
    server.empty_caches(cancel)?;
    let mut session = server.connect("growth")?;
    let mut counts = Vec::new();
    for _ in 0..COUNTS {
        if cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let began = clock::now();
        let counted = session.number("select count(*) from t")? as u64;
        counts.push(clock::now() - began);
        if counted != *rows {
            return Err(inconsistent(
                "growth",
                format!("round {number}: {rows} rows are {counted} by COUNT(*)"),
            ));
        }
    }
    Ok(Round { number, insert, rows: added, segment_bytes, counts })
}
