//! The chain of hashes over plans and visits: what was planned and measured cannot be changed without being seen.
//!
//! Each plan and each ended visit carries the hash of its predecessor and its own, which covers it. Tamper-evident,
//! not tamper-proof: who rewrites the whole chain is not seen, unless the last hash was written down elsewhere.
//!
//! Bytes that are hashed, in this order: the predecessor's hash as text (64 hex digits; nothing for the first); then
//! for a plan its JSON text; for a visit every value of: its row, its status and drop reason, its phases, their
//! intervals, their histograms, and what the database said (waits, statistics, files, samples, buffers, redo), each in the
//! order of writing with all columns; a table without rows adds nothing. A value is one letter for its type
//! (`n`, `i`, `r`, `t`, `b`), then for numbers eight bytes little-endian, for text and bytes the length in eight bytes
//! little-endian and the content.

use crate::rows::{
    AshRow, AshTickRow, BufferStateRow, FileStatRow, HistogramRow, IntervalRow, NativeWaitRow, PhaseRow,
    RedoStateRow, StatisticRow, VisitRow, WaitEventRow,
};
use crate::table::Table;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params};
use sha2::{Digest, Sha256};

/// One sealed row of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// `plan 1`, `visit 7`.
    pub row: String,
    /// Hash of the link before; empty for the first.
    pub previous_sha256: String,
    /// Its own.
    pub sha256: String,
}

/// Hash of a plan: of the first one, what `sha256sum` says of its JSON text.
pub(crate) fn plan(previous: &str, json: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(json);
    hex(&hash.finalize())
}

/// Hash of a visit and all its raw rows, as they stand in the file.
pub(crate) fn visit(
    db: &Connection,
    id: i64,
    status: &str,
    drop_reason: Option<&str>,
    previous: &str,
) -> rusqlite::Result<String> {
    let mut hash = Sha256::new();
    hash.update(previous);
    update(db, &mut hash, &VisitRow::TABLE.select("WHERE id = ?1"), [id])?;
    update(db, &mut hash, "SELECT ?1, ?2", (status, drop_reason))?;
    update(db, &mut hash, &PhaseRow::TABLE.select("WHERE visit_id = ?1 ORDER BY id"), [id])?;
    let of_visit = "WHERE phase_id IN (SELECT id FROM phase WHERE visit_id = ?1) ORDER BY id";
    update(db, &mut hash, &IntervalRow::TABLE.select(of_visit), [id])?;
    update(db, &mut hash, &HistogramRow::TABLE.select(of_visit), [id])?;
    for table in [WaitEventRow::TABLE, StatisticRow::TABLE, FileStatRow::TABLE] {
        update(db, &mut hash, &table.select(of_visit), [id])?;
    }
    for table in
        [AshRow::TABLE, AshTickRow::TABLE, NativeWaitRow::TABLE, BufferStateRow::TABLE, RedoStateRow::TABLE]
    {
        update(db, &mut hash, &table.select("WHERE visit_id = ?1 ORDER BY id"), [id])?;
    }
    Ok(hex(&hash.finalize()))
}

fn update(db: &Connection, hash: &mut Sha256, query: &str, params: impl Params) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached(query)?;
    let columns = statement.column_count();
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            update_value(hash, row.get_ref(column)?);
        }
    }
    Ok(())
}

fn update_value(hash: &mut Sha256, value: ValueRef) {
    let (letter, number, content): (u8, Option<[u8; 8]>, &[u8]) = match value {
        ValueRef::Null => (b'n', None, b""),
        ValueRef::Integer(n) => (b'i', Some(n.to_le_bytes()), b""),
        ValueRef::Real(x) => (b'r', Some(x.to_le_bytes()), b""),
        ValueRef::Text(text) => (b't', Some((text.len() as u64).to_le_bytes()), text),
        ValueRef::Blob(bytes) => (b'b', Some((bytes.len() as u64).to_le_bytes()), bytes),
    };
    hash.update([letter]);
    hash.update(number.as_ref().map_or(&[][..], |bytes| bytes));
    hash.update(content);
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
