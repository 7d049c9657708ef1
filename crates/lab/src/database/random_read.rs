//! Case `random-read`: sessions read single rows by address from a table that the cache does not hold; one row a block.

use super::drive::{self, Performance, Played, Player, Terms};
use super::{Action, inconsistent, sessions, stop_if, until};
use crate::LabError;
use engine::{Column, ColumnKind, Instance, RowId, Session, Table, TableDef, Value};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Rng, Seed};

/// Its only transaction.
pub const CLASSES: [&str; 1] = ["read"];
/// The table.
pub const TABLE: &str = "ROWS_TO_READ";

/// The table, with the address of every row.
#[derive(Clone)]
pub struct Rows {
    table: Arc<Table>,
    addresses: Arc<[RowId]>,
}

impl Rows {
    /// How many.
    pub fn count(&self) -> u64 {
        self.addresses.len() as u64
    }

    /// Reads row `id` and compares it with what it should be.
    ///
    /// # Errors
    /// What the engine says; another row than asked for.
    pub fn read(&self, session: &mut Session, id: u64) -> Result<(), LabError> {
        let row = session.get(&self.table, self.addresses[id as usize])?;
        match row.as_ref().and_then(|row| row.first()) {
            Some(Value::Integer(found)) if *found as u64 == id => Ok(()),
            found => Err(inconsistent("random-read", format!("row {id} has the id {found:?}"))),
        }
    }
}

/// Makes a table of `blocks` blocks of `block` bytes, one row in each.
///
/// # Errors
/// What the engine says.
pub fn prepare(
    session: &mut Session,
    blocks: u64,
    block: Bytes,
    seed: Seed,
    cancel: &AtomicBool,
) -> Result<(), LabError> {
    // More than half of a block: a second row never fits.
    let filler = vec![0x5a; block.0 as usize * 6 / 10];
    let columns = vec![Column::new("ID", ColumnKind::Integer), Column::new("FILLER", ColumnKind::Blob)];
    let table = session.create_table(&TableDef::new(TABLE, columns))?;
    let mut rng = Rng::new(seed);
    let rows = (0..blocks).map(|id| {
        let mut filler = filler.clone();
        for chunk in filler.chunks_exact_mut(8) {
            chunk.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        vec![Value::Integer(id as i64), Value::Blob(filler)]
    });
    session.insert_many(&table, &mut until(cancel, rows))?;
    stop_if(cancel, session)?;
    session.commit()?;
    Ok(())
}

/// The table that [`prepare`] made, with the address of each row by its id.
///
/// # Errors
/// What the engine says; rows that are missing.
pub fn open(session: &mut Session) -> Result<Rows, LabError> {
    let table = session.table(TABLE)?;
    let mut scan = session.scan_columns(&table, &[0])?;
    let mut found = Vec::new();
    while let Some((address, row)) = scan.next(session)? {
        match row.first() {
            Some(Value::Integer(id)) => found.push((*id, address)),
            other => return Err(inconsistent("random-read", format!("{address} has the id {other:?}"))),
        }
    }
    found.sort_unstable();
    if let Some(gap) = found.iter().enumerate().find(|(n, (id, _))| *n as i64 != *id) {
        return Err(inconsistent("random-read", format!("row {} is missing", gap.0)));
    }
    Ok(Rows { table, addresses: found.into_iter().map(|(_, address)| address).collect() })
}

struct Reader {
    session: Session,
    rows: Rows,
    span: Range<u64>,
    /// Rows that are asked for together: their blocks are read with that many requests in flight.
    batch: u32,
    wanted: Vec<u64>,
    block_bytes: u64,
}

impl Player for Reader {
    fn play(&mut self, rng: &mut Rng) -> Result<Played, LabError> {
        if self.wanted.is_empty() {
            let span = self.span.end - self.span.start;
            self.wanted.extend((0..self.batch).map(|_| self.span.start + rng.below(span)));
            if self.batch > 1 {
                let pages: Vec<_> =
                    self.wanted.iter().map(|id| self.rows.addresses[*id as usize].page).collect();
                let core = self.session.core();
                core.cache.prefetch(&**core, self.session.context(), &pages)?;
            }
        }
        let id = self.wanted.pop().expect("a batch has a row");
        self.rows.read(&mut self.session, id)?;
        Ok(Played { class: 0, bytes: self.block_bytes })
    }
}

/// How it is read.
pub struct Shape {
    /// Sessions at once.
    pub sessions: u32,
    /// Rows that each asks for together; 1: one after the other.
    pub batch: u32,
    /// Which rows; all of them or a hot part.
    pub span: Range<u64>,
}

/// Reads until the window is over; each row is checked.
///
/// # Errors
/// What the engine says; rows that are not what they should be.
pub fn run(
    instance: &Instance,
    rows: &Rows,
    shape: &Shape,
    terms: Terms<'_>,
) -> Result<Performance, LabError> {
    let block_bytes = instance.core.files.block_bytes() as u64;
    let players = sessions(instance, "random-read", shape.sessions)?
        .into_iter()
        .map(|session| {
            Action::new(&session, CLASSES[0]).set(&session);
            Box::new(Reader {
                session,
                rows: rows.clone(),
                span: shape.span.clone(),
                batch: shape.batch,
                wanted: Vec::new(),
                block_bytes,
            }) as Box<dyn Player>
        })
        .collect();
    drive::play(instance, players, CLASSES.len(), terms)
}
