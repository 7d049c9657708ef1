//! Case `growth`, as the article's script has it: a table doubles itself again and again; between the rounds it is
//! counted, once cold and four times warm.

use super::{inconsistent, segment_bytes, source, stop_if};
use crate::LabError;
use engine::{AlterSystem, Session};
use std::sync::atomic::AtomicBool;
use units::{Nanos, Seed, clock};

/// Rounds of the script.
pub const ROUNDS: u32 = 5;
/// Counts in each round; the first one is cold.
pub const COUNTS: u32 = 5;
/// Bytes of the article's table when it begins.
pub const ARTICLE_BYTES: u64 = 220 << 20;

/// One round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// `INSERT INTO t SELECT * FROM t` and its commit.
    pub insert: Nanos,
    /// Rows that it added.
    pub rows: u64,
    /// Bytes of the segment afterwards.
    pub segment_bytes: u64,
    /// `SELECT COUNT(*)`, each.
    pub counts: Vec<Nanos>,
}

/// What was grown.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// `CREATE TABLE … AS SELECT`.
    pub create: Nanos,
    /// Bytes of the segment then.
    pub first_bytes: u64,
    /// Each round.
    pub rounds: Vec<Round>,
}

/// The table that grows.
pub const TABLE: &str = "T";
/// The table that it is created from; made before the clock starts.
pub const SOURCE: &str = "SOURCE";

/// Makes the source of about `bytes`.
///
/// # Errors
/// What the engine says.
pub fn prepare(session: &mut Session, bytes: u64, seed: Seed, cancel: &AtomicBool) -> Result<(), LabError> {
    source::create(session, SOURCE, (bytes / source::ROW_BYTES).max(100), seed, cancel)
}

/// Runs the script; `begin_round` is told before each round what comes.
///
/// # Errors
/// What the engine says; a count that is not what was inserted; [`LabError::Cancelled`].
pub fn run(
    session: &mut Session,
    rounds: u32,
    cancel: &AtomicBool,
    begin_round: &mut dyn FnMut(&str),
) -> Result<Growth, LabError> {
    let mut growth = Growth::default();
    begin_round("CREATE TABLE T AS SELECT");
    let began = clock::now();
    let table = session.create_table(&source::definition(TABLE))?;
    let from = session.table(SOURCE)?;
    let mut scan = session.scan(&from)?;
    let mut rows = session.insert_select(&table, &mut scan)?;
    drop(scan);
    session.commit()?;
    growth.create = clock::now() - began;
    growth.first_bytes = segment_bytes(session, &table)?;
    for number in 1..=rounds {
        stop_if(cancel, session)?;
        begin_round(&format!("round {number}: INSERT INTO T SELECT * FROM T, then count"));
        let round = round(session, number, &mut rows, cancel)?;
        growth.rounds.push(round);
    }
    session.drop_table(TABLE)?;
    Ok(growth)
}

fn round(session: &mut Session, number: u32, rows: &mut u64, cancel: &AtomicBool) -> Result<Round, LabError> {
    let table = session.table(TABLE)?;
    session.alter_system(&AlterSystem::FlushBufferCache)?;
    let began = clock::now();
    let mut scan = session.scan(&table)?;
    let added = session.insert_select(&table, &mut scan)?;
    drop(scan);
    session.commit()?;
    let insert = clock::now() - began;
    if added != *rows {
        return Err(inconsistent("growth", format!("round {number} doubled {rows} rows by {added}")));
    }
    *rows += added;
    let segment_bytes = segment_bytes(session, &table)?;
    session.alter_system(&AlterSystem::FlushBufferCache)?;
    let mut counts = Vec::new();
    for _ in 0..COUNTS {
        stop_if(cancel, session)?;
        let began = clock::now();
        let counted = session.count(&table)?;
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
